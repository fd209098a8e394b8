/* SPDX-License-Identifier: Apache-2.0
 *
 * Imagined branches: simulated futures of a vehicle's agent after another action than the recorded one. A branch starts
 * at the state of a row, simulates imagine_steps steps of the environment and ends with the critic's value:
 *
 *   agent      v1 = max(0, v + a tau), d = (v + v1) tau / 2; a is the given action, later the mean of the policy
 *   leader     moves as the world model predicts; the follower keeps its speed; desired speed and the acceleration by
 *              car following do not change
 *   Q(a)       gamma^k V(final state), 0 after a collision with the leader. Rewards on the way count as equal for all
 *              actions, because a vehicle is a small share of a reward of all traffic
 *
 * Each row compares two branches, of the drawn action a and of its mirror image a' = 2 mean - a, which the policy draws
 * as often, so that errors of the critic common to both cancel. The advantage of the policy loss is
 *
 *   A = (1 - w) A_real + w (Q(a) - Q(a')) / 2 / deviation of A_real        w: imagine_weight
 *
 * Its last part gives the same expected gradient as Q with half of the noise: (grad log p)(a') = -(grad log p)(a) for
 * the mean of a Gaussian. No gradient flows through a branch. (Branches from real states: Sutton
 * 1991, Dyna; Janner et al. 2019; value at their end: Feinberg et al. 2018; mirror images: Hammersley & Morton 1956.)
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_PPO_IMAGINE_H
#define DTRAIN_PHASES_PPO_IMAGINE_H

#include "dtrain/helpers.h"
#include "dtrain/svc/wiring.h"
#include <stdbool.h>

typedef struct imagine_config {
    double weight, gamma; /* weight 0: off */
    int64_t steps;
    bool is_scaled; /* the host normalises observations: rejected, as branches use metres and seconds */
} imagine_config;

/* Errors: DT_ECONFIG, DT_ESHAPE: branches cannot be simulated with this configuration or environment. */
dt_status imagine_check(const dt_host *h, const imagine_config *c, const dt_wiring *w, const char *phase);
/* A as above from `real` [A], the advantage of the reward. Step input advantage_unit: 1 / deviation. The controller may
 * read obs and ego alone (DT_WIRING_OBS_ONLY). Errors: those of the controller. */
dt_status imagine_record(const imagine_config *c, const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p,
                         dt_tensor *real, dt_tensor **out_p);

#endif

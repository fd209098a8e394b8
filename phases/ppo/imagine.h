/* SPDX-License-Identifier: Apache-2.0
 *
 * Imagined branches: what would have followed from a real state of a vehicle's agent, had it done otherwise. A branch
 * begins at the state of a row, drives imagine_steps steps of the environment, and the critic judges where it ends:
 *
 *   the agent       v1 = max(0, v + a tau), d = (v + v1) tau / 2: known, a is its action, later the mean of its policy
 *   the one ahead   moves as the world model foresees; behind, speed is kept; wanted speed and what car following
 *                   would do are left as they were
 *   Q(a)            gamma^k V(where it ends), 0 where it has run into the one ahead. The reward on the way is taken as
 *                   the same whatever the action, because a vehicle is a small share of a reward of all traffic
 *
 * Of every row two branches are compared, of the drawn action a and of its mirror image a' = 2 mean - a, which the
 * policy draws as often; the error of the critic that both have in common is gone. The policy then follows
 *
 *   A = (1 - w) A_real + w (Q(a) - Q(a')) / 2 / deviation of A_real        w: imagine_weight
 *
 * whose last part has the expectation of the gradient that Q has, from half of the noise: (grad log p)(a') is
 * -(grad log p)(a) for the mean of a Gaussian. No gradient flows through a branch. (Branches from real states: Sutton
 * 1991, Dyna; Janner et al. 2019; value at their end: Feinberg et al. 2018; mirror images: Hammersley & Morton 1956.)
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_CLIPPED_IMAGINE_H
#define DTRAIN_PHASES_CLIPPED_IMAGINE_H

#include "dtrain/helpers.h"
#include "dtrain/svc/wiring.h"
#include <stdbool.h>

typedef struct imagine_config {
    double weight, gamma; /* weight 0: off */
    int64_t steps;
    bool is_scaled; /* observations are normalised by the host: a branch cannot be, and is refused */
} imagine_config;

/* Can branches be driven here? Errors: DT_ECONFIG, DT_ESHAPE. */
dt_status imagine_check(const dt_host *h, const imagine_config *c, const dt_wiring *w, const char *phase);
/* A of above in place of `real` [A], the reward's advantage. Step input advantage_unit: 1 / deviation. Errors: those of
 * the controller; one that reads more than a branch has, obs and ego, was refused when it was wired. */
dt_status imagine_record(const imagine_config *c, const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p,
                         dt_tensor *real, dt_tensor **out_p);

#endif

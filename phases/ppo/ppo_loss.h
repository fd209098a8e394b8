/* SPDX-License-Identifier: Apache-2.0
 *
 * The losses that the header of phase2_ppo.c defines, recorded from a policy and the fields of a rollout
 * (svc/rollout.h). Step inputs: entropy_coef with has_entropy, kl_coef with has_kl.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_PPO_LOSS_H
#define DTRAIN_PHASES_PPO_LOSS_H

#include "imagine.h"

#include <stdbool.h>

typedef struct ppo_loss_config {
    double clip, value_clip, value_coef, cost_value_coef;
    uint32_t value_clip_mode; /* DT_VALUE_* */
    bool has_entropy, has_kl;
    bool has_more;          /* the phase adds a loss; clipfrac is omitted if there is no room for it */
    imagine_config imagine; /* step input advantage_unit if it is on */
    bool is_apart;          /* the phase updates the policy itself: policy_loss has weight 0 and is not clipped */
    bool has_mix; /* A is a sum weighted by step input advantage_mix [1 + costs]: of the reward, then of every cost */
} ppo_loss_config;

dt_status ppo_record_losses(dt_wiring *w, const ppo_loss_config *c, dt_graph *g, const dt_policy_tensors *p);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The clipped objective: the losses of phase2_ppo.c's header note, recorded from a policy and the fields of a rollout
 * (svc/rollout.h). Step inputs: entropy_coef where there is an entropy bonus, kl_coef where kl_target is set.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_CLIPPED_LOSS_H
#define DTRAIN_PHASES_CLIPPED_LOSS_H

#include "imagine.h"

#include <stdbool.h>

typedef struct ppo_loss_config {
    double clip, value_clip, value_coef, cost_value_coef;
    uint32_t value_clip_mode; /* DT_VALUE_* */
    bool has_entropy, has_kl;
    bool has_more;          /* the phase adds a loss of its own; where there is no room for it clipfrac is left out */
    imagine_config imagine; /* step input advantage_unit where it is on */
    bool is_apart;          /* the policy is moved by the phase: policy_loss is not clipped, and a report of weight 0 */
    bool has_mix; /* advantages weighted by step input advantage_mix [1 + costs]: the reward's, then every cost's */
} ppo_loss_config;

dt_status ppo_record_losses(dt_wiring *w, const ppo_loss_config *c, dt_graph *g, const dt_policy_tensors *p);

#endif

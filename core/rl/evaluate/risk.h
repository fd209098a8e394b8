/* SPDX-License-Identifier: Apache-2.0
 *
 * How dangerous it is for each vehicle, as the phase's perception predicts it (svc/rollout.h: picture/risk), for
 * pictures of an episode. Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_EVALUATE_RISK_H
#define DTRAIN_CORE_RL_EVALUATE_RISK_H

#include "rl/rollout/rollout.h"

typedef struct dt_risk dt_risk;

/* *out_p NULL: the phase records no such thing. Errors: DT_ENOMEM, DT_ESHAPE, what recording reports. */
dt_status dt_risk_open(dt_rollout *r, dt_trainer *t, dt_risk **out_p) DT_NODISCARD;
void dt_risk_close(dt_risk *s);
uint64_t dt_risk_bytes(const dt_risk *s); /* mapped by the host */

/* Of sample `index` of b, with the trainer's parameters: risk_p [n_p], from 0 to 1, until the next call; n_p 0 where no
 * agent is there to see. Errors: those of running a policy. */
dt_status dt_risk_predict(dt_risk *s, const dt_buffer *b, uint64_t index, const float **risk_p, uint32_t *n_p)
    DT_NODISCARD;

#endif

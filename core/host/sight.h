/* SPDX-License-Identifier: Apache-2.0
 *
 * How dangerous it is for each vehicle, as the phase's perception predicts it (svc/rollout.h: picture/risk), for
 * pictures of an episode. Threads: [main].
 */
#ifndef DTRAIN_CORE_HOST_SIGHT_H
#define DTRAIN_CORE_HOST_SIGHT_H

#include "host/rollout_impl.h"

typedef struct dt_sight dt_sight;

/* *out_p NULL: the phase records no such thing. Errors: DT_ENOMEM, DT_ESHAPE, what recording reports. */
dt_status dt_sight_open(dt_rollout *r, dt_trainer *t, dt_sight **out_p) DT_NODISCARD;
void dt_sight_close(dt_sight *s);
uint64_t dt_sight_bytes(const dt_sight *s); /* mapped by the host */

/* Of sample `index` of b, with the trainer's parameters: risk_p [n_p], from 0 to 1, until the next call; n_p 0 where no
 * agent is there to see. Errors: those of running a policy. */
dt_status dt_sight_look(dt_sight *s, const dt_buffer *b, uint64_t index, const float **risk_p, uint32_t *n_p)
    DT_NODISCARD;

#endif

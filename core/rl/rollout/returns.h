/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns of a collected round: normalised rewards, advantages and value targets. Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_RETURNS_H
#define DTRAIN_CORE_RL_ROLLOUT_RETURNS_H

#include "rl/buffer/buffer.h"
#include "rl/buffer/normaliser.h"

typedef struct dt_returns {
    dt_moments moments;                     /* of discounted returns */
    double *running;                        /* [instances, places] discounted return so far */
    double *scratch;                        /* [2, instances, places] */
    double deviation[1 + DT_ENV_MAX_COSTS]; /* of the last round's advantages, before they were normalised */
} dt_returns;

/* places: of all instances. Errors: DT_ENOMEM. */
dt_status dt_returns_init(dt_returns *x, size_t places) DT_NODISCARD;
void dt_returns_fini(dt_returns *x);
/* Divides the rewards of a round by the deviation of discounted returns, and clips them. */
void dt_returns_normalise_rewards(dt_returns *x, const dt_rollout_desc *d, dt_buffer *b);
/* Advantages and targets of the reward and of each cost. */
void dt_returns_estimate(dt_returns *x, const dt_rollout_desc *d, dt_buffer *b);
/* Lambda returns of values given row by row, in the order of the round's samples and their agents; n_rows: how many
 * there are. next_value may be NULL: nothing follows a truncated step. */
void dt_returns_estimate_from_values(dt_returns *x, const dt_buffer *b, const float *value, const float *next_value,
                                     double gamma, double lambda, float *out, uint64_t n_rows);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation of a policy in its environment: whole episodes. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_EVALUATE_EVALUATE_H
#define DTRAIN_CORE_RL_EVALUATE_EVALUATE_H

#include "rl/rollout/rollout.h"

/* [collective] out: [n_seeds]. */
dt_status dt_rollout_evaluate(dt_rollout *r, dt_train *t, const uint64_t *seed, uint32_t n_seeds, uint32_t episodes,
                              uint8_t greedy, dt_rollout_report *out);
/* The same over the configured seeds, reported as results, with pictures of the first episode. */
dt_status dt_rollout_report_evaluation(dt_rollout *r, dt_train *t) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint keeps of a rollout. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_CHECKPOINT_H
#define DTRAIN_CORE_RL_ROLLOUT_CHECKPOINT_H

#include "plugin/service/stage.h"

/* Environment steps that the phase has used, of all instances; resumed from a checkpoint that does not record how
 * many came before, DT_ENV_STEPS_UNKNOWN. */
#define DT_ENV_STEPS_UNKNOWN UINT64_MAX
uint64_t dt_rollout_env_steps(const struct dt_rollout *r);
void dt_rollout_env_steps_set(struct dt_rollout *r, uint64_t steps);
/* The state, as bytes appended to out; loaded before the first collect. */
dt_status dt_rollout_save(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_save_normaliser(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_load(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;
bool dt_rollout_is_normalised(const struct dt_rollout *r); /* observations, any of them */
dt_status dt_rollout_load_normaliser(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;
/* Its pool of opponents, where it has one; loaded after the rollout. */
bool dt_rollout_has_opponent_pool(const struct dt_rollout *r);
dt_status dt_rollout_save_opponent_pool(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_load_opponent_pool(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;

#endif

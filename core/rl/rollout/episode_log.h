/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions of the episodes in progress, so that a resumed run can play them again: environments save nothing, and the
 * same seed and actions give the same episode, bit for bit. Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_EPISODE_LOG_H
#define DTRAIN_CORE_RL_ROLLOUT_EPISODE_LOG_H

#include "rl/buffer/buffer.h"
#include "rl/env/vector.h"

typedef struct dt_episode_log { /* of an instance */
    uint64_t episode, steps;
    bool is_over;
    char *action; /* [steps, action_bytes] as executed */
    uint64_t cap; /* steps */
} dt_episode_log;

typedef struct dt_episode_logs {
    dt_episode_log *log; /* [n] of all ranks' instances */
    uint32_t n;
    size_t action_bytes; /* of all places of an instance */
} dt_episode_logs;

/* Errors: DT_ENOMEM. */
dt_status dt_episode_logs_init(dt_episode_logs *x, const dt_env_spec *spec, uint32_t instances) DT_NODISCARD;
void dt_episode_logs_fini(dt_episode_logs *x);
/* Adds the actions of a round of all instances. Errors: DT_ENOMEM. */
dt_status dt_episode_logs_add_round(dt_episode_logs *x, const dt_buffer *all) DT_NODISCARD;
/* Room for so many steps. Errors: DT_ENOMEM. */
dt_status dt_episode_log_reserve(dt_episode_log *l, size_t action_bytes, uint64_t steps) DT_NODISCARD;
/* Plays the episodes of the instances of v, the first of which is instance `first`, up to where their logs end; b gets
 * the history that observations have. id: of the environment, for messages. Errors: DT_EDATA (actions that are not
 * possible there), DT_EPLUGIN (an episode ends earlier than before), those of the environment. */
dt_status dt_episode_logs_play(const dt_episode_logs *x, dt_vector *v, dt_buffer *b, const char *id) DT_NODISCARD;

#endif

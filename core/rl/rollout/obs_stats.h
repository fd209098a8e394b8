/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics that observations are normalised with: means and deviations of the plain ports of an environment. Threads:
 * [main].
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_OBS_STATS_H
#define DTRAIN_CORE_RL_ROLLOUT_OBS_STATS_H

#include "rl/buffer/buffer.h"
#include "rl/buffer/normaliser.h"
#include "rl/rollout/partition.h"

typedef struct dt_obs_stats {
    dt_moments port[DT_ENV_MAX_OBS]; /* without columns where a port is not normalised */
    float *fixed[DT_ENV_MAX_OBS];    /* twice mean and scale: of the round that is read, and of the next one */
    uint32_t side;                   /* which of the two was set last */
    float clip;                      /* 0: no bound */
} dt_obs_stats;

/* is_normalised: false leaves all ports as they are. Errors: DT_ENOMEM. */
dt_status dt_obs_stats_init(dt_obs_stats *s, const dt_layout *l, bool is_normalised, float clip) DT_NODISCARD;
void dt_obs_stats_fini(dt_obs_stats *s);
bool dt_obs_stats_has_ports(const dt_obs_stats *s); /* any is normalised */

/* Computes mean and scale from what was added so far. */
void dt_obs_stats_apply(dt_obs_stats *s);
/* Rows that are read from b are normalised with the current statistics, which may change under it. */
void dt_obs_stats_set_scale(const dt_obs_stats *s, dt_buffer *b);
/* The same with a copy, which the next call but one overwrites: an evaluation, or a round collected during learning,
 * uses newer statistics while the round in b is still read. */
void dt_obs_stats_fix_scale(dt_obs_stats *s, dt_buffer *b);
/* [collective] Adds the observations of a round. Instances are added one after another, so that sums do not depend on
 * the number of ranks. Errors: DT_ENOMEM, those of the exchange. */
dt_status dt_obs_stats_add_round(dt_obs_stats *s, const dt_partition *split, const dt_buffer *own) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What plans and checkpoints use of a rollout's replay. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_REPLAY_CHECKPOINT_H
#define DTRAIN_CORE_RL_REPLAY_CHECKPOINT_H

#include "plugin/service/stage.h"

/* open: [collective] before rank 0 saves; of one rank save needs it, too. What this
 * rank has of the records is written piece by piece; to load, the records of all parts are given, of any number of
 * ranks. */
enum { DT_ROLLOUT_REPLAY_VERSION = 2 };
typedef struct dt_rollout_bytes {
    const void *data;
    size_t bytes;
} dt_rollout_bytes;
typedef struct dt_replay_need { /* of all ranks together; zeros: there is none */
    uint64_t samples, bytes;    /* that it has room for */
    uint64_t each;              /* bytes of a sample, at most */
    uint64_t saved;             /* of a checkpoint once it is full, with samples of this mean */
    bool is_in_file;            /* of the run directory: a file of each rank */
} dt_replay_need;
void dt_rollout_replay_plan(const struct dt_rollout *r, const double *mean, dt_replay_need *out);
/* A run that is about to begin: is there room for what is kept in files; taken once all ranks have found so. r may be
 * NULL. Errors: DT_ECONFIG; DT_EIO. */
dt_status dt_rollout_check_room(const struct dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_allocate_replay(struct dt_rollout *r) DT_NODISCARD;
bool dt_rollout_has_replay(const struct dt_rollout *r);
bool dt_rollout_has_replay_memory(const struct dt_rollout *r); /* for its records: it has taken it, or needs none */
dt_status dt_rollout_prepare_replay(struct dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_save_replay(const struct dt_rollout *r, dt_str *state) DT_NODISCARD;
uint64_t dt_rollout_replay_bytes(const struct dt_rollout *r);
dt_status dt_rollout_write_replay(const struct dt_rollout *r, dt_status (*put)(void *to, const void *p, size_t bytes),
                                  void *to) DT_NODISCARD;
dt_status dt_rollout_load_replay(struct dt_rollout *r, uint32_t version, const dt_rollout_bytes *state,
                                 const dt_rollout_bytes *records, uint32_t n_records) DT_NODISCARD;

#endif

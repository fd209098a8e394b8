/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a checkpoint of a stage. First state.json: what of a phase is neither a tensor nor a blob. The table of
 * its fields in snapshot_state.c is the one place that names them; writing and reading follow it. Threads: [main].
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_STATE_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_STATE_H

#include "state/snapshot/snapshot.h"
#include "state/checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "plugin/service/stage.h"

#define DT_STATE_ABSENT INT64_MIN

typedef struct dt_state_list { /* strings, or integers in decimal digits: a line each */
    dt_str lines;
    bool is_there;
} dt_state_list;

typedef struct dt_state { /* integers that a checkpoint lacks are DT_STATE_ABSENT, real numbers NAN */
    const char *phase;    /* saving only */
    int64_t phase_index, step, base_step;
    int64_t updates, passed, good_steps, tolerance, skips, overflows;
    double loss_scale;
    int64_t steps_per_epoch, seed, pending, env_steps, n_stale, stop_rule, stop_values;
    double stop_best, stop_sum;
    dt_state_list models, stores, stream, loaded_roles, groups, group_updates, trainers; /* reading only */
} dt_state;

/* Appends the text of state.json. */
void dt_state_write(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, dt_str *out);
/* dt_state_fini, whatever is returned. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_state_read(const dt_ckpt *c, dt_state *out) DT_NODISCARD;
void dt_state_fini(dt_state *v);
/* Into a started stage whose tensors are loaded. */
dt_status dt_state_apply(const dt_state *v, const dt_ckpt *c, dt_stage *s) DT_NODISCARD;

/* Blobs of a checkpoint: the phase's own state and that of its rollout. The table in snapshot_blobs.c is the one place
 * that names them. Threads: [main]. */
/* What an iteration changes, and the other blobs. */
typedef enum dt_blob_set { DT_BLOBS_BACKED_UP, DT_BLOBS_OTHER } dt_blob_set;

/* Writes the blobs of one set that this stage has into b. */
dt_status dt_blobs_write(dt_stage *s, dt_blob_set set, dt_snapshot_backup *b) DT_NODISCARD;
/* The blobs that this stage has as a checkpoint lists them; their bytes stay in `backup`, and in `now` for the others.
 * out: [DT_CKPT_BLOBS]. */
uint32_t dt_blobs_list(const dt_stage *s, const dt_snapshot_backup *backup, const dt_snapshot_backup *now,
                       dt_ckpt_blob *out);
/* What a policy acts with apart from weights: step inputs, and the phase's own state. */
dt_status dt_blobs_load_acting(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;
/* All that the checkpoint has, into a started stage. */
dt_status dt_blobs_load(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;

/* How several ranks write one checkpoint: rank 0 makes the folder and broadcasts its name, each rank writes a shard of
 * the optimizer's state there, and its part of what each rank has some of, and rank 0 commits when all have said that
 * their shard is on the disk. Threads: [main], each rank's own; [collective]. */
/* Rank 0, instead of dt_ckpt_save. st: how making the description went; where it failed the others learn that nothing
 * comes, and st is returned. Errors: those of dt_ckpt_save and of any rank's shard; DT_EPEER, DT_ECOMM. */
dt_status dt_shards_save_first(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d, dt_ckpt_info *info_p) DT_NODISCARD;
/* The others; st: the same. Errors: DT_EPEER, DT_ECOMM; rank 0 reports errors of shards. */
dt_status dt_shards_save_other(dt_comm *c, dt_status st, const dt_ckpt_save_desc *d) DT_NODISCARD;

#endif

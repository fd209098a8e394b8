/* SPDX-License-Identifier: Apache-2.0
 *
 * Between a stage and a checkpoint: what of a running phase is saved, and how it is loaded. A checkpoint holds tensors
 * (snapshot.c), fields of state.json (one table: snapshot_state.c) and blobs (one table: snapshot_blobs.c); the
 * order of samples, the schedule and random numbers follow from the step. Threads: [main]; rank 0 saves, the others
 * write shards where there are some, every rank loads.
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_H

#include "state/checkpoint/checkpoint.h"
#include "plugin/service/stage.h"

/* A copy, taken before an iteration, of what it changes outside of the arenas before it may fail, so that the state
 * after the last good iteration can still be saved. */
typedef struct dt_snapshot_backup {
    dt_str blob[DT_CKPT_BLOBS]; /* DT_BLOB_* */
    dt_scaler scaler;
    uint64_t env_steps; /* DT_ENV_STEPS_UNKNOWN: there is no rollout, or it does not know */
    bool is_valid;
    bool is_too_large; /* copying this phase's own state before each iteration costs too much */
} dt_snapshot_backup;

/* What was interrupted after the step of a checkpoint: an evaluation, or the end of the phase with its evaluation. */
enum { DT_PENDING_NONE = 0, DT_PENDING_EVALUATION, DT_PENDING_END };

typedef struct dt_snapshot_patience { /* of stop.patience; all 0: nothing was evaluated */
    bool has_best;
    double best;     /* finite */
    int64_t n_stale; /* evaluations since */
    int64_t rule;    /* hash of the metric and its direction, 0: none; of another one nothing here holds */
    double sum;      /* of a metric of training: its values in the epoch that has begun */
    int64_t n;       /* and how many */
} dt_snapshot_patience;

typedef struct dt_snapshot_place { /* where the phase of a checkpoint is */
    int64_t phase_index;
    uint64_t step, base_step;
    bool phase_end;
    uint32_t pending; /* DT_PENDING_* */
    dt_snapshot_patience patience;
} dt_snapshot_place;

typedef struct dt_snapshot_desc {
    const char *run_dir;
    uint64_t base_step; /* steps of the phases before this one */
    uint64_t epoch;     /* epochs of this one that are done, as the phase counts them */
    uint64_t phase_ms;  /* spent on it */
    dt_comm *comm;
    uint32_t ranks;
    uint32_t n_shards; /* of the optimizer's state: ranks that write; 1: rank 0 alone */
    uint32_t pending;  /* DT_PENDING_* */
    dt_snapshot_patience patience;
    bool phase_end;
    bool is_evaluated;                /* the results of the stage are of this step */
    const dt_snapshot_backup *backup; /* NULL: the stage as it is */
} dt_snapshot_desc;

/* Never fails: a copy that cannot be made is not valid. */
void dt_snapshot_back_up(dt_stage *s, dt_snapshot_backup *b);
void dt_snapshot_backup_fini(dt_snapshot_backup *b);

/* Do several ranks write, each a shard of the optimizer or its part of a replay? The same on all. */
bool dt_snapshot_is_shared(const dt_stage *s, const dt_snapshot_desc *d);
/* [collective] where it is shared. Errors: those of dt_ckpt_save, the phase's, and DT_EDIVERGED: what is not finite is
 * never saved. */
dt_status dt_snapshot_save(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info_p) DT_NODISCARD;
/* [collective] Where it is shared the other ranks call this while rank 0 saves. An error is the communicator's
 * alone: what else a shard meets is reported by rank 0. */
dt_status dt_snapshot_save_shard(dt_stage *s, const dt_snapshot_desc *d) DT_NODISCARD;
/* Old ones beyond checkpoint.keep_last go, the best by checkpoint.best_by stay. */
dt_status dt_snapshot_prune(dt_stage *s, const char *run_dir) DT_NODISCARD;
/* Full state into a started stage of the same phase. Errors: DT_ESHAPE (another model), DT_EDATA. */
dt_status dt_snapshot_load(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;
/* What a policy acts with apart from weights, into a started stage of the same phase, for an evaluation or an export:
 * the step, step inputs, and the phase's own state by its load. dir: of one checkpoint; of another phase nothing is
 * loaded. Errors: those of dt_ckpt_open and of load. */
dt_status dt_snapshot_load_acting(dt_stage *s, const char *dir) DT_NODISCARD;
/* What observations are normalised by, alone. is_there_p: whether both sides have it. */
dt_status dt_snapshot_load_normaliser(dt_stage *s, const dt_ckpt *c, bool *is_there_p) DT_NODISCARD;
/* Roles whose first weights the phase of a checkpoint loaded (dt_stage_desc.loaded). */
dt_status dt_snapshot_loaded_roles(const dt_ckpt *c, dt_roles *roles_p) DT_NODISCARD;
/* Digests of the stores that its phase had open (store.h), a line each, appended; known_p: it records them at all. */
dt_status dt_snapshot_list_stores(const dt_ckpt *c, dt_str *out, bool *known_p) DT_NODISCARD;
dt_status dt_snapshot_read_position(const dt_ckpt *c, dt_snapshot_place *out) DT_NODISCARD;

/* The arithmetic class that a phase computes with here (dt_cpu_arithmetic_class, "+" and the kernels of products in
 * bf16 where it has them): another one ends in other bits. */
dt_status dt_snapshot_cpu_class(dt_config *c, int64_t phase, char *out, size_t bytes) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Between a stage and a checkpoint: what of a running phase is saved, and how it comes back. Everything that resuming
 * needs is in the arenas, the number of steps, and the phase's own blob; the order of samples, the schedule and random
 * numbers follow from the step. Threads: [main]; rank 0 saves, the others write shards where there are some, every rank
 * loads.
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_H

#include "state/checkpoint/checkpoint.h"
#include "plugin/service/stage.h"

/* What an iteration changes before it may fail, and no arena holds: kept aside before it, so that the state of the last
 * good one can still be saved. */
typedef struct dt_snapshot_held {
    dt_str phase, rollout, normaliser, replay; /* blobs */
    dt_scaler scaler;
    uint64_t env_steps; /* DT_ENV_STEPS_UNKNOWN: there is no rollout, or it does not know */
    bool is_there;
    bool is_too_large; /* a phase's own state that costs too much to keep aside each time */
} dt_snapshot_held;

/* What was asked to stop before it was done, after the step that a checkpoint holds: an evaluation, or the one that the
 * phase ends with and what follows it. */
enum { DT_OWES_NOTHING = 0, DT_OWES_EVALUATION, DT_OWES_END };

typedef struct dt_snapshot_desc {
    const char *run_dir;
    uint64_t base_step; /* steps of the phases before this one */
    uint64_t epoch;     /* epochs of this one that are done, as the phase counts them */
    uint64_t phase_ms;  /* spent on it */
    dt_comm *comm;
    uint32_t ranks;
    uint32_t n_shards; /* of the optimizer's state: ranks that write; 1: rank 0 alone */
    uint32_t owed;     /* DT_OWES_* */
    bool phase_end;
    bool is_evaluated;            /* what the stage reports is of this very step */
    const dt_snapshot_held *held; /* NULL: the stage as it is */
} dt_snapshot_desc;

/* Never fails: what cannot be kept is not there. */
void dt_snapshot_hold(dt_stage *s, dt_snapshot_held *h);
void dt_snapshot_held_fini(dt_snapshot_held *h);

/* Do several ranks write, each a shard of the optimizer or its part of a replay? The same on all. */
bool dt_snapshot_is_shared(const dt_stage *s, const dt_snapshot_desc *d);
/* [collective] where it is shared. Errors: those of dt_ckpt_save, the phase's, and DT_EDIVERGED: what is not finite is
 * never saved. */
dt_status dt_snapshot_save(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info_p) DT_NODISCARD;
/* [collective] Where it is shared the other ranks call this while rank 0 saves. An error is the communicator's
 * alone: what else a shard meets is rank 0's to tell. */
dt_status dt_snapshot_help(dt_stage *s, const dt_snapshot_desc *d) DT_NODISCARD;
/* Old ones beyond checkpoint.keep_last go, the best by checkpoint.best_by stay. */
dt_status dt_snapshot_prune(dt_stage *s, const char *run_dir) DT_NODISCARD;
/* Full state into a started stage of the same phase. Errors: DT_ESHAPE (another model), DT_EDATA. */
dt_status dt_snapshot_load(dt_stage *s, const dt_ckpt *c) DT_NODISCARD;
/* What observations are normalised by, alone. is_there_p: whether both sides have it. */
dt_status dt_snapshot_load_normaliser(dt_stage *s, const dt_ckpt *c, bool *is_there_p) DT_NODISCARD;
/* Roles that a checkpoint's phase had from elsewhere when it began (dt_stage_desc.loaded). */
dt_status dt_snapshot_loaded(const dt_ckpt *c, dt_roles *roles_p) DT_NODISCARD;
/* Digests of the stores that its phase had open (store.h), a line each, appended; known_p: it says so at all. */
dt_status dt_snapshot_stores(const dt_ckpt *c, dt_str *out, bool *known_p) DT_NODISCARD;
dt_status dt_snapshot_owed(const dt_ckpt *c, uint32_t *owed_p) DT_NODISCARD; /* DT_OWES_* */
/* Where a checkpoint's phase stands. */
dt_status dt_snapshot_position(const dt_ckpt *c, int64_t *phase_index_p, uint64_t *step_p, uint64_t *base_step_p,
                               bool *phase_end_p) DT_NODISCARD;

/* The arithmetic class that a phase computes with here (dt_cpu_class, "+" and the kernels of products in bf16 where it
 * has them): another one ends in other bits. */
dt_status dt_snapshot_cpu(dt_config *c, int64_t phase, char *out, size_t bytes) DT_NODISCARD;

#endif

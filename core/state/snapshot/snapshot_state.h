/* SPDX-License-Identifier: Apache-2.0
 *
 * state.json of a checkpoint: what of a phase is neither a tensor nor a blob. The table of its fields in
 * snapshot_state.c is the one place that names them; writing and reading follow it. Threads: [main].
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_STATE_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_STATE_H

#include "state/snapshot/snapshot.h"

#define DT_STATE_ABSENT INT64_MIN

typedef struct dt_state_list { /* strings, or integers in decimal digits: a line each */
    dt_str lines;
    bool is_there;
} dt_state_list;

typedef struct dt_state { /* integers that a checkpoint lacks are DT_STATE_ABSENT, the scale NAN */
    const char *phase;    /* saving only */
    int64_t phase_index, step, base_step;
    int64_t updates, passed, good_steps, tolerance, skips, overflows;
    double loss_scale;
    int64_t steps_per_epoch, seed, pending, env_steps;
    dt_state_list models, stores, stream, loaded_roles, groups, group_updates; /* reading only */
} dt_state;

/* Appends the text of state.json. */
void dt_state_write(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, dt_str *out);
/* dt_state_fini, whatever is returned. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_state_read(const dt_ckpt *c, dt_state *out) DT_NODISCARD;
void dt_state_fini(dt_state *v);
/* Into a started stage whose tensors are loaded. */
dt_status dt_state_apply(const dt_state *v, const dt_ckpt *c, dt_stage *s) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a phase begins with: the checkpoint that is resumed, --init-from, the file or run of `init`, the phases before
 * it, or random numbers. A run and its plan (--dry-run) find and load it by the same functions, so that both refuse the
 * same weights; a run compares shapes before its first phase begins. In a plan the phases before exist only as
 * shapes: dt_planned_shapes. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RUN_FIRST_WEIGHTS_H
#define DTRAIN_CORE_RUN_FIRST_WEIGHTS_H

#include "state/snapshot/weight_sources.h"
#include "run/run_start.h"

/* Shapes of the models of phases that a plan went through, per role of the newest phase that has it. */
typedef struct dt_planned_shapes dt_planned_shapes;
dt_status dt_planned_shapes_create(dt_planned_shapes **out_p) DT_NODISCARD;
/* A phase that is planned now, as what it would hand on. Errors: DT_ENOMEM. */
dt_status dt_planned_shapes_add(dt_planned_shapes *p, const dt_stage *s) DT_NODISCARD;
/* A phase that was created and not started: what its roles will look like is not known. */
void dt_planned_shapes_remove(dt_planned_shapes *p, const dt_stage *s);
void dt_planned_shapes_clear(dt_planned_shapes *p); /* nothing is known of what the phases before hand on */
void dt_planned_shapes_destroy(dt_planned_shapes *p);

typedef struct dt_initial_weights_desc {
    const dt_session *session;
    const char *run_dir;              /* where the phases before left their checkpoints; it need not exist */
    const char *init_from;            /* of the session's first phase; NULL */
    const dt_run_start *start;        /* where the run begins or continues */
    const dt_planned_shapes *planned; /* of a plan; NULL: a run, whose phases have checkpoints */
    pthread_mutex_t *lock;            /* held while the configuration is read */
} dt_initial_weights_desc;

typedef struct dt_initial_weights { /* where the first weights of a phase come from */
    dt_weight_sources *from;        /* NULL: random ones, and a resumed phase */
    uint32_t want;                  /* DT_WEIGHTS_*   */
    const char *const *fresh;
    bool is_after; /* it takes what the phases before hand on */
} dt_initial_weights;

/* Before a phase is created: what it will begin with, and the roles that this holds (dt_stage_desc.loaded). out may be
 * closed whatever is returned. Errors: DT_ECONFIG (init = "previous" and no phase is before), those of opening it. */
dt_status dt_initial_weights_find(const dt_initial_weights_desc *d, int64_t index, dt_initial_weights *out,
                                  dt_roles *roles_p) DT_NODISCARD;
/* Do the shapes of the phases before, as far as they are planned, fit a started stage? Errors: DT_ESHAPE. */
dt_status dt_initial_weights_check_shapes(const dt_initial_weights_desc *d, const dt_initial_weights *f,
                                          const dt_stage *s) DT_NODISCARD;
/* Into the started stage of that phase. Errors: those of dt_snapshot_load and dt_weight_sources_load; in a plan
 * DT_ESHAPE where a phase before has other shapes. */
dt_status dt_initial_weights_load(const dt_initial_weights_desc *d, const dt_initial_weights *f, dt_stage *s)
    DT_NODISCARD;
void dt_initial_weights_close(dt_initial_weights *f);

#endif

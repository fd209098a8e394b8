/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase evaluated apart from its run, on one rank: what the verbs eval, render and export share. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_EVALUATE_H
#define DTRAIN_CORE_RUN_EVALUATE_H

#include "run/session.h"
#include "plugin/service/stage.h"

typedef struct dt_eval {
    pthread_mutex_t lock;
    dt_comm *comm;
    dt_str stores;
    dt_trained_on trained_on;
    dt_stage *stage; /* with what its evaluation reported and left for pictures */
} dt_eval;

/* The session of a->checkpoint: with the configuration next to it, which options of the command line override. Errors:
 * DT_ECONFIG where no checkpoint is there, or no configuration was found; those of sessions. */
dt_status dt_eval_open(const dt_args *a, dt_session *s) DT_NODISCARD;
/* The phase that a checkpoint is of, or the newest one of a run, where the session has several; the session's own where
 * it has one. Errors: DT_ECONFIG, where it is unknown which. */
dt_status dt_eval_find_phase(const dt_session *s, const char *checkpoint, int64_t *index_p) DT_NODISCARD;
/* Every role of the phase as its newest checkpoint has it, where what path names has one of this phase, and what else
 * it acts with: step inputs, and its own state by its load. taken (may be
 * NULL): which one that is, unchanged for a lone file. Errors: those of weight_sources.h. */
dt_status dt_eval_load_weights(dt_stage *stage, const char *path, dt_ckpt_info *taken) DT_NODISCARD;
/* Phase `index` of the session with the weights of a checkpoint (NULL: those it begins with). frames_every_s: stage.h.
 * To be closed even when it fails. Errors: those of stages and weight_sources.h. */
dt_status dt_eval_run(const dt_session *s, int64_t index, const char *checkpoint, double frames_every_s, dt_eval *e)
    DT_NODISCARD;
void dt_eval_close(dt_eval *e);

#endif

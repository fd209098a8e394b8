/* SPDX-License-Identifier: Apache-2.0
 *
 * The run: phases one after another, on one rank or on several virtual ones, from a session to an exit code. The loop
 * of a phase is dt_rank_train_loop in rank_loop.c; it fits one screen. Threads: [main]; virtual ranks have a thread
 * each.
 */
#ifndef DTRAIN_CORE_RUN_RUN_H
#define DTRAIN_CORE_RUN_RUN_H

#include "run/profile_steps.h"
#include "run/rundir.h"
#include "run/session.h"
#include "telemetry/metrics/progress.h"

typedef struct dt_run_desc {
    dt_session *session;
    dt_rundir *dir;        /* NULL: nothing is written (dry run) */
    dt_comm *processes;    /* of several processes, a rank each; NULL: this one, with virtual ranks if any */
    const char *resume;    /* run or checkpoint to continue from; NULL */
    const char *init_from; /* weights to begin with; NULL */
    uint64_t max_steps;    /* 0: open */
    double max_time_s;     /* 0: open */
    dt_profile_steps profile;
    bool quiet;
    bool *begun_p;    /* set when the first phase stands, ready to step: from then on the run directory is this run's */
    bool *stopped_p;  /* set where --max-steps ended it before its last phase was over; of rank 0 */
    bool *resized_p;  /* set where the launcher's request for another number of processes stopped it */
    bool *advanced_p; /* set once this process has completed an iteration or an evaluation that was pending */
} dt_run_desc;

/* DT_OK, DT_EINTERRUPTED when it stopped early with its state saved, or what went wrong. */
dt_status dt_run_training(const dt_run_desc *d);

/* Does a stage that was evaluated report what stop.metric and checkpoint.best_by name ("": nothing)? A best_by that
 * other phases may report is accepted; n_without_best: phases before that did not report it. Errors: DT_ECONFIG with
 * the results that exist. */
struct dt_stage;
dt_status dt_results_check(const dt_session *s, const struct dt_stage *stage, const char *stop_metric,
                           const char *best_by, int64_t n_without_best) DT_NODISCARD;

/* An evaluation's result as people read it, a line each, and as scripts do. */
void dt_result_text(const struct dt_stage *s, dt_str *out);
/* The same in groups, with unit, direction and text by the extension dtrain.results/1 of phase and environment. */
void dt_result_text_grouped(const struct dt_stage *s, dt_str *out);
void dt_result_json(const struct dt_stage *s, dt_str *out);
/* Warns of costs that are above their limits in it, or not known. */
void dt_result_warn_limits(const struct dt_stage *s);
/* What it left for pictures, as evaluation/<n>-<phase>.pictures.json of the run; nothing where it left nothing. */
dt_status dt_result_write_pictures(const struct dt_stage *s, const char *run_dir) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of a run, as the files rank*.c and run.c share it; the loop of a phase is in rank_loop.c. Ranks do the same
 * things in the same order; rank 0 sends the others what only it knows. Threads: each rank has its own.
 */
#ifndef DTRAIN_CORE_RUN_RANK_H
#define DTRAIN_CORE_RUN_RANK_H

#include "base/err.h"
#include "run/hang_watch.h"
#include "run/run_start.h"
#include "run/progress.h"
#include "plan/device_watch.h"
#include "plan/forecast.h"
#include "plan/memory_watch.h"
#include "run/run.h"
#include "state/snapshot/snapshot.h"
#include "telemetry/metrics/record.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct dt_run_context { /* what all ranks of this process share */
    const dt_run_desc *d;
    dt_metrics *metrics;
    dt_screen *screen;
    double start_s;
    pthread_mutex_t create_lock; /* configuration and loader are used by one rank at a time */
    dt_run_start start;          /* where it begins, in this process or after the last failure */
    uint64_t base_step;          /* steps of finished phases, the same on every rank */
    int64_t phase;               /* that runs */
    bool is_phase_ready;         /* the phase is ready to step, or has stepped */
    uint32_t retries;            /* of the phase so far */
    int64_t n_without_best;      /* evaluated phases of this process that do not report checkpoint.best_by */
    atomic_bool has_saved;       /* this process; read by the watch of callbacks, too */
    bool cannot_save;            /* what was learned, now or soon: nothing is gained by doing it again */
    dt_profile_steps profile;
} dt_run_context;

enum {
    DT_REQUEST_STOP = 1u,
    DT_REQUEST_SAVE = 2u,
    DT_REQUEST_END = 4u,
    DT_REQUEST_GRADIENT = 8u,
    DT_REQUEST_RESIZE = 16u,
    DT_REQUEST_MIRROR = 32u
};

typedef struct dt_rank_message { /* of a rank to all, after an iteration */
    uint32_t requests;           /* DT_REQUEST_* */
    float took_s, waited_s;      /* since the last message; waited_s: of it, for other ranks */
    uint64_t sent;               /* bytes to others, since the last message */
} dt_rank_message;

enum { DT_TREND_ROUNDS = 10 };

typedef struct dt_trend {          /* of a number that rounds report, for the progress line */
    double value[DT_TREND_ROUNDS]; /* of round n - 1 at [(n - 1) % DT_TREND_ROUNDS] */
    uint64_t n;
} dt_trend;

typedef struct dt_rank {
    dt_run_context *r;
    dt_comm *comm;
    bool is_first_here;        /* the first rank of its process: what all ranks there share is its to set */
    dt_rank_message *messages; /* [ranks] of the last agreement */
    struct {
        double at_s, waited_s; /* at the last agreement */
        uint64_t sent;
    } load;
    pthread_t thread;
    dt_hang_rank *hang; /* which callback it is in */
    dt_stage *stage;
    double last_save_s, rate_s;
    struct {
        double at_s, took_s; /* the last one */
        bool is_off;         /* one failed */
    } mirror;
    double save_again_s;     /* rank 0: not before, after saves that failed */
    uint32_t n_failed_saves; /* rank 0: in a row */
    uint64_t rate_samples, last_saved_step;
    uint64_t good_further;              /* steps of further trainers at good_step */
    uint64_t good_step, evaluated_step; /* of the run: where the last iteration began, where it was evaluated */
    dt_progress_mark progress;          /* after the last iteration */
    uint32_t n_idle;                    /* iterations in a row without progress */
    dt_snapshot_backup backup;          /* rank 0: state outside of the arenas, before this iteration */
    double rate;
    uint64_t check_every; /* steps between comparisons of parameters; 0: never */
    dt_training_opts training;
    dt_checkpoint_opts checkpoint;
    dt_stop_opts stop;
    double enter_s;                    /* of the phase with its start; of the process, where it is the first */
    double first_s;                    /* when its first step began */
    double begin_s;                    /* of the phase in this process */
    uint64_t begin_step;               /* the same */
    uint64_t histogram_every;          /* epochs, 0: none */
    uint64_t record_every;             /* iterations */
    dt_trend episode_return, headline; /* rank 0 */
    double from_s, from_part;          /* since when the pace is measured, and how much was done then; NAN: not yet */
    uint64_t iterations;               /* the same */
    bool has_stepped;                  /* the same: a step was made */
    bool has_evaluated;                /* the same */
    bool has_estimated;                /* the same: how long it will take was said, from a measurement */
    uint32_t n_evaluations;  /* of the phase in this process; rank 0: those in which what the configuration names */
    uint32_t n_target_known; /* was a number, of stop.metric */
    uint32_t n_best_known;   /* and of checkpoint.best_by */
    uint64_t n_empty;        /* rank 0: steps without a sample that were recorded */
    uint64_t epoch;          /* epochs of the phase that are done */
    uint32_t pending;        /* DT_PENDING_* */
    dt_snapshot_patience patience; /* rank 0 */
    uint64_t n_training_known;     /* rank 0, in this process: iterations with a value of stop.metric = "train/..." */
    uint64_t n_training_epochs;    /* the same: epochs, or rounds, at whose end it was checked */
    uint32_t n_lost;               /* instances of this rank's environments, as far as they are known */
    dt_forecast forecast;          /* rank 0 */
    bool has_peak;                 /* rank 0: the peak of resident memory is that of the phase */
    dt_memory_watch watch;
    dt_device_watch device; /* rank 0 */
    dt_error error;
} dt_rank;

/* ---- rank.c ----------------------------------------------------------------------------------------------------- */

bool dt_rank_is_first(const dt_rank *k);
/* Where a phase does not count them, each call is one. */
uint64_t dt_rank_iterations(const dt_rank *k, const dt_progress *p);
/* Steps of the run: finished phases and this one. */
uint64_t dt_rank_global_step(const dt_rank *k);
/* Any thread of any rank may ask. */
bool dt_run_is_stopping(void *user);
/* An iteration or a pending evaluation is complete. */
void dt_rank_mark_advanced(const dt_rank *k);
/* Spent on the phase, in earlier processes too. */
double dt_rank_phase_s(const dt_rank *k);

/* ---- rank_save.c ------------------------------------------------------------------------------------------------ */

/* Rank 0 writes; the others wait for its result. A save that the disk refuses is tried again, later and later while
 * training continues; where nothing continues without it (must) it is waited for, checkpoint.wait_s, and then an error.
 * What is not finite is never saved, and an error. */
dt_status dt_rank_save(dt_rank *k, bool phase_end, bool must);
/* The phase fails with st, which all ranks know. Where nothing was learned since the last good iteration its state is
 * saved, so that no more is lost than what failed. backup: taken before the iteration that failed; NULL: the stage
 * as it is. On a device steps are under way that have not been checked: there the last checkpoint has to do. */
dt_status dt_rank_save_after_failure(dt_rank *k, dt_status st, const dt_snapshot_backup *backup);

/* What one of several ranks has of the state goes to rank 0 for this time; of a replay, what all have together.
 * is_due_p: rank 0's counts. */
dt_status dt_rank_open_state(dt_rank *k, uint32_t *is_due_p);
void dt_rank_close_state(const dt_rank *k);
dt_snapshot_desc dt_rank_describe_snapshot(const dt_rank *k);

/* ---- rank_mirror.c ---------------------------------------------------------------------------------------------- */

bool dt_rank_mirror_is_due(const dt_rank *k); /* rank 0 */
/* [collective] Errors: those of the communicator, DT_EDIVERGED. */
dt_status dt_rank_mirror(dt_rank *k);
/* Is the mirror of a run newer than its checkpoints? out: its folder. */
bool dt_mirror_find(const char *run, dt_str *out);
void dt_mirror_remove(const char *run);
void dt_mirror_remove_later(const char *run, uint64_t step); /* one of a later step, or that is damaged */

/* ---- rank_evaluate.c -------------------------------------------------------------------------------------------- */

/* Every so many epochs, and when the phase ends, by whatever rule. */
bool dt_rank_evaluation_due(const dt_rank *k, const dt_progress *p, bool ends);
/* met_p: whether the result ends the phase. */
dt_status dt_rank_evaluate(dt_rank *k, bool *met_p);
/* [collective] After an iteration, before its record: stop.metric = "train/...". met_p: it ends the phase. */
dt_status dt_rank_check_training(dt_rank *k, const dt_progress *p, bool *met_p);
/* Rank 0: appends what stop.metric may name, where the configured name has had no value in this process. */
void dt_rank_list_training_names(const dt_rank *k, dt_str *out);
/* Results that stop.metric and checkpoint.best_by name are looked for before the first step, by an evaluation: which
 * ones a phase reports, is not known before. Several phases may share a best_by that one of them lacks; that is a
 * warning, unless this phase has a result of nearly that name. Errors: DT_ECONFIG with those that there are. */
dt_status dt_rank_check_results(dt_rank *k);

/* Asked to stop during an evaluation: saves the state, and that the evaluation is pending. DT_EINTERRUPTED. */
dt_status dt_rank_save_pending(dt_rank *k, const dt_progress *p, bool ends);
/* The pending evaluation of a resumed phase. DT_DONE: the phase ends with it. */
dt_status dt_rank_run_pending(dt_rank *k);
/* The stream of a phase ended, unknown at the last step: evaluated as at any end of a phase. */
dt_status dt_rank_end_stream(dt_rank *k);

/* The result that checkpoint.best_by names; empty: none. */
const char *dt_rank_best_result_name(const dt_rank *k);

/* ---- rank_finish.c ---------------------------------------------------------------------------------------------- */

/* [collective] The phase is over. Errors: DT_ECONFIG: no step had a sample; what stop.metric or checkpoint.best_by
 * names was never a number; what the phase reports (dt_phase_ops.finish), as of a limit that was never evaluated. Costs
 * that the last evaluation found above their limits are warnings. */
dt_status dt_rank_finish(dt_rank *k);

/* ---- rank_record.c ----------------------------------------------------------------------------------------------- */

dt_status dt_rank_log_plan(dt_rank *k);
dt_status dt_rank_write_progress(const dt_rank *k, int64_t index);
void dt_rank_begin_progress(dt_rank *k); /* before the first iteration in this process */
void dt_rank_report_iteration(dt_rank *k, const dt_progress *p, bool force);
/* The first epoch, every so many, and the last one. */
bool dt_rank_histograms_due(const dt_rank *k, const dt_progress *p); /* is it time for their histograms? */
/* Records of an iteration, for rank 0. What is kept depends on its number alone, so a resumed run keeps the same. */
dt_status dt_rank_record(dt_rank *k, const dt_progress *p, bool is_wanted);

/* ---- rank_load.c ------------------------------------------------------------------------------------------------ */

/* What this rank did since its last message. */
dt_rank_message dt_rank_measure_load(dt_rank *k, uint32_t requests);
/* Rank 0, of several processes: records how the last iteration was spread. */
void dt_rank_record_load(const dt_rank *k);

/* ---- rank_requests.c --------------------------------------------------------------------------------------------- */

/* [collective] requests_p: DT_REQUEST_* of any rank, the same on all of them. */
dt_status dt_rank_exchange_requests(dt_rank *k, const dt_progress *p, uint32_t *requests_p);
/* [collective] Workers of environments that any rank lost in the iteration that began at `step`: the run directory
 * records that the run is not reproducible from there. */
dt_status dt_rank_record_lost_workers(dt_rank *k, uint64_t step);

/* ---- rank_sync.c ------------------------------------------------------------------------------------------------ */

/* Every comm.check_every steps, on all ranks: do they have the same parameters? before: the steps of the phase when the
 * iteration began. Errors: DT_ECOMM (which tensor differs, on which rank). */
dt_status dt_rank_compare_parameters(dt_rank *k, uint64_t before);

/* ---- rank_loop.c ------------------------------------------------------------------------------------------------ */

/* stop_step: of --max-steps; 0: none. DT_DONE: the phase is over; DT_OK: it stopped at stop_step. */
dt_status dt_rank_train_loop(dt_rank *k, uint64_t stop_step);

/* ---- rank_phase.c ----------------------------------------------------------------------------------------------- */

dt_status dt_rank_run_phases(dt_rank *k);

#endif

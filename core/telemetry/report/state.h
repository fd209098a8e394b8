/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a run, from what is in its directory: meta.json (its beginning and end), run.lock (is it alive),
 * progress.json and the last record of metrics.jsonl (how far), the results of its evaluations (how good). Nothing is
 * written, so any number of processes may look during a run. Threads: any.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_STATE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_STATE_H

#include "telemetry/report/flat.h"
#include "telemetry/report/records.h"

typedef enum dt_run_condition {
    DT_RUN_RUNNING,
    DT_RUN_INTERRUPTED, /* state saved on request (75), or killed: --resume continues */
    DT_RUN_STOPPED,     /* --max-steps ended it before its last phase: --resume continues */
    DT_RUN_DONE,
    DT_RUN_FAILED,
    DT_RUN_DAMAGED /* its files cannot be read */
} dt_run_condition;

typedef struct dt_run_state {
    dt_run_condition condition;
    int exit_code;                 /* -1: it has no end */
    bool has_phase;                /* it came to a first record, or at least to the beginning of a phase */
    char phase[128];               /* the last one */
    int64_t phase_index, n_phases; /* 0-based; n_phases 0: not known */
    uint64_t step, steps;          /* of the phase; steps 0: not known, as where time ends it or it was stopped */
    uint64_t parameters, trained;  /* of its models, and without the frozen ones; 0: not known */
    double part;                   /* of the phase, 0..1; NAN: not known */
    double progress;               /* of all phases, 0..1; NAN: not known */
    double wall_s;                 /* training, interruptions left out */
    char start[32], end[32];       /* UTC, "" where not known; start: of the last process */
    char best_name[128];           /* the metric runs are ranked by, "" when nothing was measured */
    bool best_is_min;
    double best, last; /* the best value of it, and the last one */
    uint64_t best_step;
    uint32_t ranks; /* that train it, or did last */
    long process;   /* that trains it now, on host; 0: not known */
    char host[64];
    char error[256]; /* the last line of error.log of a run that failed, "" where there is none */
} dt_run_state;

/* dir: a run directory, which holds meta.json. config: config.origin.json of it, may be empty. */
void dt_run_state_get(const char *dir, const dt_flat *meta, const dt_flat *config, const dt_flat *progress,
                      const dt_records *records, dt_run_state *out);
const char *dt_run_condition_text(dt_run_condition c); /* "running", "interrupted", "stopped" ... */

#endif

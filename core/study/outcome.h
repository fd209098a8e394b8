/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of one training: the state of its folder and its final value of a metric. Nothing is written.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_OUTCOME_H
#define DTRAIN_CORE_STUDY_OUTCOME_H

#include "telemetry/report/state.h"

typedef struct dt_outcome {
    bool has_run; /* there is a run directory */
    dt_run_condition condition;
    int exit_code; /* -1: it has no end */
    uint64_t step;
    bool is_reached;  /* its records come to the steps that were asked for */
    char metric[128]; /* of value; "": none */
    bool is_min;      /* for the metric that runs are ranked by: smaller is better */
    double value;     /* the last one, NAN: unknown, or none was recorded */
    bool is_unknown;  /* the last one was recorded as unknown */
    char error[256];  /* of a run that failed */
} dt_outcome;

/* metric: a name of the records, or of an evaluation without "eval/"; NULL: the one that runs are ranked by.
 * steps: the value is that of the first record with so many steps of the last phase, whatever follows; 0: the last
 * one. near: where the run has no such metric, the most similar name it has, "": none. No run is no error. Errors:
 * DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_outcome_read(const char *run, const char *metric, uint64_t steps, dt_outcome *out, dt_str *near)
    DT_NODISCARD;
/* It ended by itself with an error: what signals end (SIGHUP, SIGINT, SIGTERM, SIGKILL) continues. */
bool dt_outcome_has_failed(const dt_outcome *r);
/* Ended for good: complete, diverged or rejected, which the same command would end alike. */
bool dt_outcome_is_final(const dt_outcome *r);
/* "done", "failed (7)", "waiting" ... */
void dt_outcome_describe(const dt_outcome *r, char *out, size_t bytes);

#endif

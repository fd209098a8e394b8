/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of runs compared by one metric, as Agarwal et al. 2021 (Deep reinforcement learning at the edge of the
 * statistical precipice) recommend: interquartile means with stratified bootstrap intervals, performance profiles, and
 * the probability of improvement. Runs that must not be compared are rejected. Nothing is written. Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_COMPARE_H
#define DTRAIN_CORE_STUDY_COMPARE_H

#include "base/str.h"
#include "telemetry/report/iqm.h"

#include <stdbool.h>

enum { DT_COMPARE_PLACES = 21 }; /* of a curve, and thresholds of a profile */

typedef struct dt_compare_run {
    char *path;
    uint32_t group, task;
    double final, area; /* area: mean of the curve over its steps */
    double *x, *y;      /* [n] the curve */
    double *unknown;    /* [n] where a record without a value follows before the next one; INFINITY: nowhere */
    uint32_t n;
} dt_compare_run;

typedef struct dt_compare_group {
    char *name;
    uint32_t first, n;        /* of run: sorted by task */
    uint32_t *end;            /* [n_tasks] of each task, counted from first */
    dt_iqm final, area;       /* interquartile means */
    double mean, least, most; /* of the final values */
    dt_iqm at[DT_COMPARE_PLACES], share[DT_COMPARE_PLACES];
} dt_compare_group;

typedef struct dt_compare_task { /* what was learned: the environment, or the data */
    char *name, *identity;       /* identity: and all of its options */
    double low, high;            /* of all final values: scores are scaled by them where there are several tasks */
} dt_compare_task;

typedef struct dt_compare {
    dt_compare_run *run;
    dt_compare_group *group;
    dt_compare_task *task;
    dt_iqm *improvement; /* [n_groups, n_groups] row over column */
    uint32_t n_runs, n_groups, n_tasks;
    char metric[160];
    bool is_min, is_over_env_steps;
    double steps; /* that all results are of */
    double place[DT_COMPARE_PLACES], threshold[DT_COMPARE_PLACES];
} dt_compare;

/* path: run folders, folders of dtrain seeds and dtrain sweep (its best trial), or other folders of runs; at least two
 * unless one holds several. metric: a name of the records or of an evaluation without "eval/", "min:" before it where
 * less is better; NULL: the one that runs are ranked by. steps: results of there; 0: the last ones. Errors: DT_ECONFIG:
 * runs that cannot be compared, with the difference; DT_ENOTFOUND, DT_EDATA, DT_EIO, DT_ENOMEM; out is empty then. */
dt_status dt_compare_read(const char *const *path, uint32_t n, const char *metric, double steps, dt_compare *out)
    DT_NODISCARD;
void dt_compare_fini(dt_compare *c);
/* All statistics of runs that were read; dt_compare_read ends with it. */
dt_status dt_compare_summarise(dt_compare *c) DT_NODISCARD;

#endif

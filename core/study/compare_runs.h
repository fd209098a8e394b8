/* SPDX-License-Identifier: Apache-2.0
 *
 * Which runs the folders of a comparison hold, and what each of them learned. Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_COMPARE_RUNS_H
#define DTRAIN_CORE_STUDY_COMPARE_RUNS_H

#include "study/compare.h"
#include "telemetry/report/curve.h"
#include "telemetry/report/logbook.h"

typedef struct dt_run_facts {
    dt_str task, identity; /* name of the environment or data; a line per option of it */
    double steps, env_steps;
    double first_step, first_env_steps; /* of the metric's first value; INFINITY: there is none */
    bool has_env_steps;
} dt_run_facts;

/* run and group of out. Errors: DT_ECONFIG: a folder without runs, a sweep without a result, or nothing to compare. */
dt_status dt_compare_find_runs(const char *const *path, uint32_t n, dt_compare *out) DT_NODISCARD;
/* phase: of the records. */
dt_status dt_run_facts_read_task(const dt_logbook *l, uint32_t phase, dt_run_facts *out) DT_NODISCARD;

#endif

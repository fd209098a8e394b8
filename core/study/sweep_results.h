/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a sweep, read from its summary.json: trials in order of their rank, and where their values come from.
 * The folder may be foreign: nothing in it is trusted. Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_SWEEP_RESULTS_H
#define DTRAIN_CORE_STUDY_SWEEP_RESULTS_H

#include "study/space.h"
#include "telemetry/report/flat.h"
#include "telemetry/report/iqm.h"

enum { DT_SWEEP_RESULTS_SEEDS = 8 };

typedef struct dt_trial_result {
    uint32_t trial; /* from 1 */
    const char *state, *folder;
    double steps, value;                       /* NAN: unknown */
    uint32_t first_seed, n_seeds;              /* of the file's items: values of seeds */
    const char *text[DT_SPACE_MAX_PARAMETERS]; /* values of parameters */
} dt_trial_result;

typedef struct dt_sweep_results {
    dt_flat file; /* owns the texts */
    const char *metric, *search;
    bool is_min;
    dt_space space;         /* of a range n_values is 0, and min < max where they are known */
    dt_trial_result *trial; /* [n_trials] best first; those without a value last */
    uint32_t n_trials, n_ranked, n_seeds;
    int64_t seed[DT_SWEEP_RESULTS_SEEDS]; /* the first of them */
} dt_sweep_results;

/* Errors: DT_ECONFIG: it has no table yet; DT_EDATA, DT_EIO, DT_ENOMEM; out is empty then. */
dt_status dt_sweep_results_read(const char *folder, dt_sweep_results *out) DT_NODISCARD;
void dt_sweep_results_fini(dt_sweep_results *r);
/* Of its seeds, with an interval where several have values. */
dt_iqm dt_sweep_results_interval(const dt_sweep_results *r, uint32_t row);

#endif

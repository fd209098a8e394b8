/* SPDX-License-Identifier: Apache-2.0
 *
 * Which trial trains next, and how far: asynchronous successive halving (Li et al. 2020, "A system for massively
 * parallel hyperparameter tuning"), made deterministic. There, a decision depends on the results that happen to be
 * known. Here, decision j depends on the results of the decisions before j - window, and on no other: it waits for
 * these, and ignores later ones that are known already. So a sweep has the same decisions in any number of processes,
 * up to `window` simultaneously, and after any interruption. With one rung it simply lists the trials. Threads: an
 * object belongs to one thread.
 */
#ifndef DTRAIN_CORE_STUDY_ASHA_H
#define DTRAIN_CORE_STUDY_ASHA_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_asha_job {
    uint32_t trial, rung;
    bool is_idle; /* nothing could be decided: no training */
    bool is_known;
    double value; /* larger is better; NAN: it failed, and is never promoted */
} dt_asha_job;

typedef struct dt_asha {
    uint32_t n_trials, n_rungs, eta, window;
    uint32_t n_begun, n_jobs, n_known; /* n_known: of the first jobs all have results */
    uint32_t *top;                     /* [n_trials] rungs that were assigned to it */
    dt_asha_job *job;                  /* room for every one there can be */
    uint32_t cap;
} dt_asha;

/* window at least 1, eta at least 2. Errors: DT_ENOMEM. */
dt_status dt_asha_init(dt_asha *s, uint32_t n_trials, uint32_t n_rungs, uint32_t eta, uint32_t window) DT_NODISCARD;
void dt_asha_fini(dt_asha *s);
/* The next decision that is no idle one: its number in job. DT_AGAIN: it waits for a result; DT_DONE: none will follow.
 * Errors: DT_ENOMEM. */
dt_status dt_asha_next(dt_asha *s, uint32_t *job_p) DT_NODISCARD;
void dt_asha_set_result(dt_asha *s, uint32_t job, double value);

#endif

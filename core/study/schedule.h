/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sweep trains next, whatever its search: successive halving (asha.h; with one rung all other searches) or
 * population-based training (pbt.h). A job is a trial that trains up to the steps of a rung; of a population a rung is
 * a generation. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_STUDY_SCHEDULE_H
#define DTRAIN_CORE_STUDY_SCHEDULE_H

#include "study/asha.h"
#include "study/pbt.h"
#include "study/sweep_file.h"

typedef struct dt_sweep_schedule {
    const dt_sweep *sweep;
    dt_asha asha;
    dt_pbt pbt;
} dt_sweep_schedule;

typedef struct dt_sweep_job {
    uint32_t number, trial, rung;
} dt_sweep_job;

/* sweep stays the caller's. Errors: DT_ENOMEM. */
dt_status dt_sweep_schedule_init(dt_sweep_schedule *s, const dt_sweep *sweep) DT_NODISCARD;
void dt_sweep_schedule_fini(dt_sweep_schedule *s);
/* DT_AGAIN: it waits for a result; DT_DONE: none will follow. Errors: DT_ENOMEM. */
dt_status dt_sweep_schedule_next(dt_sweep_schedule *s, dt_sweep_job *job_p) DT_NODISCARD;
/* value: by the sweep's goal; NAN: it failed. */
void dt_sweep_schedule_set_result(dt_sweep_schedule *s, uint32_t job, double value);
/* Value of parameter k of a trial at a rung that was begun. */
void dt_sweep_schedule_append_value(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung, uint32_t k, dt_str *out);
/* The trial that it is a copy of at the beginning of this rung; itself: it continues. */
uint32_t dt_sweep_schedule_source(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung);
/* Its folder in that of the sweep: "trial-0003", since a copy in rung 2 "trial-0003/generation-03". */
void dt_sweep_schedule_append_folder(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung, dt_str *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of `dtrain sweep`, read and checked. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_STUDY_SWEEP_FILE_H
#define DTRAIN_CORE_STUDY_SWEEP_FILE_H

#include "config/document.h"
#include "study/seed_list.h"
#include "study/space.h"
#include "study/words.h"

enum { DT_SWEEP_MAX_TRIALS = 10000, DT_SWEEP_MAX_RUNGS = 256 };

typedef struct dt_sweep {
    dt_words arguments; /* of `dtrain run`, for every trial */
    const char *metric;
    bool is_min;
    dt_search search;
    dt_space space;
    uint32_t trials, n_seeds;
    uint64_t seed; /* of the search */
    uint64_t seeds[DT_SEEDS_MAX];
    uint64_t rung_steps[DT_SWEEP_MAX_RUNGS]; /* rising; the last one is that of a whole trial, 0: until it ends */
    uint32_t n_rungs, eta, window;           /* rungs: of DT_SEARCH_PBT generations */
    double truncation, resample;             /* of it */
    dt_words identity;                       /* every value of the file, for the journal */
    dt_document document;                    /* owns the texts */
} dt_sweep;

/* Errors: DT_ECONFIG with file, line and remedy; DT_ENOTFOUND, DT_EIO, DT_ENOMEM; out is empty then. */
dt_status dt_sweep_read(const char *path, dt_sweep *out) DT_NODISCARD;
void dt_sweep_fini(dt_sweep *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Population-based training (Jaderberg et al. 2017), in generations so that it is deterministic: when all members have
 * trained `interval` steps, the worst part of them continues from a copy of a member of the best part, drawn by the
 * seed, with other values of the parameters (truncation selection; each value is perturbed or drawn again). All follows
 * from the results, the file and its seed. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_STUDY_PBT_H
#define DTRAIN_CORE_STUDY_PBT_H

#include "study/space.h"

typedef struct dt_pbt_desc {
    const dt_space *space;
    uint32_t n, n_generations;
    uint64_t seed;
    double truncation; /* share of members that are replaced, (0, 0.5] */
    double resample;   /* probability that a value is drawn again instead of perturbed */
} dt_pbt_desc;

typedef struct dt_pbt_member { /* in one generation */
    uint32_t from;             /* member that it continues from: itself, or the copied one */
    bool is_known;
    double value; /* larger is better, NAN: it failed */
    char *text;   /* values of all parameters, each with a NUL */
} dt_pbt_member;

typedef struct dt_pbt {
    dt_pbt_desc d;
    dt_pbt_member *member; /* [n_generations, n] */
    uint32_t n_begun;      /* jobs: member of a generation */
} dt_pbt;

dt_status dt_pbt_init(dt_pbt *p, const dt_pbt_desc *d) DT_NODISCARD;
void dt_pbt_fini(dt_pbt *p);
/* The next job: generation * n + member. DT_AGAIN: it waits for a result; DT_DONE: none will follow. Errors:
 * DT_ENOMEM. */
dt_status dt_pbt_next(dt_pbt *p, uint32_t *job_p) DT_NODISCARD;
void dt_pbt_set_result(dt_pbt *p, uint32_t job, double value);
/* Value of parameter k of a job that was begun. */
const char *dt_pbt_value(const dt_pbt *p, uint32_t job, uint32_t k);

#endif

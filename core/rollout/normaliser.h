/* SPDX-License-Identifier: Apache-2.0
 *
 * Running mean and deviation of columns. What a collect brings is summed up by itself in double, in the order of its
 * rows, then joined to what is known (Chan, Golub & LeVeque 1983), so that nothing depends on how rows were collected.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ROLLOUT_NORMALISER_H
#define DTRAIN_CORE_ROLLOUT_NORMALISER_H

#include "dtrain/status.h"

#include <stddef.h>

typedef struct dt_moments {
    size_t columns;
    double n;             /* rows so far */
    double *mean, *m2;    /* [columns] mean, sum of squared distances from it */
    double *batch;        /* [2, columns] scratch */
    float *shift, *scale; /* [columns] what dt_moments_apply left: the mean, 1 / deviation */
} dt_moments;

/* Errors: DT_ENOMEM. */
dt_status dt_moments_init(dt_moments *m, size_t columns) DT_NODISCARD;
void dt_moments_fini(dt_moments *m);
/* x: [n, columns]; rows whose lowest bit of flag is not set are left out. */
void dt_moments_add(dt_moments *m, const float *x, const unsigned char *flag, size_t n);
/* shift and scale as of now: (x - shift) * scale has mean 0 and deviation 1; 0 and 1 before anything was added. */
void dt_moments_apply(dt_moments *m);

#endif

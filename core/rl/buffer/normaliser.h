/* SPDX-License-Identifier: Apache-2.0
 *
 * Running mean and deviation of columns. What is new is summed up by itself in double, in the order of its rows, then
 * joined to what is known (Chan, Golub & LeVeque 1983), so that nothing depends on how rows were collected. Of
 * observations every instance is summed up by itself, by the rank that has it, and all are joined in their order.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_BUFFER_NORMALISER_H
#define DTRAIN_CORE_RL_BUFFER_NORMALISER_H

#include "dtrain/status.h"

#include <stddef.h>

typedef struct dt_moments {
    size_t columns;
    double n;             /* rows so far */
    double *mean, *m2;    /* [columns] mean, sum of squared distances from it */
    double *part;         /* [1 + 2 columns] scratch */
    float *shift, *scale; /* [columns] what dt_moments_apply left: the mean, 1 / deviation */
} dt_moments;

/* Errors: DT_ENOMEM. */
dt_status dt_moments_init(dt_moments *m, size_t columns) DT_NODISCARD;
void dt_moments_fini(dt_moments *m);
/* Number, mean and sum of squared distances from it, of rows in blocks: block k is x + k stride columns, n rows of
 * [columns], with flag + k stride. Rows whose lowest bit of flag is not set are left out. part: [1 + 2 columns]. */
typedef struct dt_moments_rows {
    const float *x;
    const unsigned char *flag;
    size_t n, blocks, stride;
} dt_moments_rows;
void dt_moments_sum(const dt_moments_rows *r, size_t columns, double *part);
void dt_moments_merge(dt_moments *m, const double *part);
/* x: [n, columns], all at once. */
void dt_moments_add(dt_moments *m, const float *x, const unsigned char *flag, size_t n);
/* shift and scale as of now: (x - shift) * scale has mean 0 and deviation 1; 0 and 1 before anything was added. */
void dt_moments_apply(dt_moments *m);

#endif

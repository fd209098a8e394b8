/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over rows, over columns and over everything. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* y_m = sum_r dy[r,m] */
void REF(colsum)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]);
    for (int64_t m = 0; m < M; m++) {
        double sum = a->out[0].accum ? y[m] : 0;
        for (int64_t r = 0; r < R; r++) {
            sum += dy[r * M + m];
        }
        y[m] = (real)sum;
    }
}

/* y_r = sum_d x[r,d] */
void REF(rowsum)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        double sum = 0;
        for (int64_t d = 0; d < D; d++) {
            sum += x[r * D + d];
        }
        y[r] = (real)sum;
    }
}

void REF(sum)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    *(double *)a->out[0].data = sum;
}

/* ds [1] f64, x shape -> dx, ds everywhere */
void REF(sum_bwd)(const dt_kernel_args *a)
{
    const double ds = *(const double *)a->in[0].data;
    real *dx = real_out(a, 0);
    const int64_t n = dt_view_count(&a->out[0]);
    for (int64_t i = 0; i < n; i++) {
        dx[i] = (real)ds;
    }
}

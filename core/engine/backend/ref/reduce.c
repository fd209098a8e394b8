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

/* ---- means over runs of rows ------------------------------------------------------------------------------------- */

/* x [R,D], ptr [B+1] -> y [B,D]: mean of rows ptr[b] .. ptr[b+1]-1, zeros when there are none */
void REF(segment_mean)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    const int32_t *ptr = i32_in(a, 1);
    real *y = real_out(a, 0);
    const int64_t B = a->in[1].dim[0] - 1, D = last_dim(&a->in[0]);
    for (int64_t b = 0; b < B; b++) {
        for (int64_t d = 0; d < D; d++) {
            double sum = 0;
            for (int64_t r = ptr[b]; r < ptr[b + 1]; r++) {
                sum += x[r * D + d];
            }
            y[b * D + d] = (real)(ptr[b + 1] > ptr[b] ? sum / (ptr[b + 1] - ptr[b]) : 0);
        }
    }
}

/* dy [B,D], ptr, x shape -> dx [R,D]; rows in no segment get zeros */
void REF(segment_mean_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    const int32_t *ptr = i32_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t B = a->in[1].dim[0] - 1, D = last_dim(&a->out[0]);
    memset(dx, 0, (size_t)dt_view_count(&a->out[0]) * sizeof(*dx));
    for (int64_t b = 0; b < B; b++) {
        for (int64_t r = ptr[b]; r < ptr[b + 1]; r++) {
            for (int64_t d = 0; d < D; d++) {
                dx[r * D + d] = (real)(dy[b * D + d] / (ptr[b + 1] - ptr[b]));
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * LINEAR and its two products backward. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* y = fn(x w^T + b)   x [R,K]  w [M,K]  b [M] or absent  y [R,M]   attr i0: function or 0, f0 its constant */
void REF(linear)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0), *w = real_in(a, 1), *b = real_in(a, 2);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = a->in[1].dim[0];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t m = 0; m < M; m++) {
            double sum = b != NULL ? b[m] : 0;
            for (int64_t k = 0; k < K; k++) {
                sum += (double)x[r * K + k] * w[m * K + k];
            }
            y[r * M + m] = (real)unary_value(a->attr->i[0], a->attr->f[0], sum);
        }
    }
}

/* dx = dy w   dy [R,M]  w [M,K]  dx [R,K] */
void REF(linear_dx)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *w = real_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), M = a->in[1].dim[0], K = a->in[1].dim[1];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t k = 0; k < K; k++) {
            double sum = 0;
            for (int64_t m = 0; m < M; m++) {
                sum += (double)dy[r * M + m] * w[m * K + k];
            }
            dx[r * K + k] = (real)sum;
        }
    }
}

/* dw = dy^T x   x [R,K]  dy [R,M]  dw [M,K] */
void REF(linear_dw)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0), *dy = real_in(a, 1);
    real *dw = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = last_dim(&a->in[1]);
    for (int64_t m = 0; m < M; m++) {
        for (int64_t k = 0; k < K; k++) {
            double sum = a->out[0].accum ? dw[m * K + k] : 0;
            for (int64_t r = 0; r < R; r++) {
                sum += (double)dy[r * M + m] * x[r * K + k];
            }
            dw[m * K + k] = (real)sum;
        }
    }
}

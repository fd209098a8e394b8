/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over the last dim. See ref.h.
 */
#include "engine/backend/ref/ref.h"

void REF(softmax)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        double top = -INFINITY, sum = 0;
        for (int64_t d = 0; d < D; d++) {
            top = greatest(top, x[r * D + d]);
        }
        for (int64_t d = 0; d < D; d++) {
            sum += exp(x[r * D + d] - top);
        }
        for (int64_t d = 0; d < D; d++) {
            y[r * D + d] = (real)(exp(x[r * D + d] - top) / sum);
        }
    }
}

/* dx = y (dy - sum_d y dy) */
void REF(softmax_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *y = real_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        double sum = 0;
        for (int64_t d = 0; d < D; d++) {
            sum += (double)y[r * D + d] * dy[r * D + d];
        }
        for (int64_t d = 0; d < D; d++) {
            dx[r * D + d] = (real)(y[r * D + d] * (dy[r * D + d] - sum));
        }
    }
}

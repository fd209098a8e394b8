/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sum over the last dim but one. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* y[f] = x[0] + .. + x[f], rounded as it is stored   x [R,F,P] */
void REF(cumsum)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            double sum = 0;
            for (int64_t f = 0; f < F; f++) {
                sum += x[(r * F + f) * P + p];
                y[(r * F + f) * P + p] = (real)sum;
            }
        }
    }
}

/* dx[f] = dy[f] + .. + dy[F-1] */
void REF(cumsum_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t p = 0; p < P; p++) {
            double sum = 0;
            for (int64_t f = F - 1; f >= 0; f--) {
                sum += dy[(r * F + f) * P + p];
                dx[(r * F + f) * P + p] = (real)sum;
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that move rows and columns without arithmetic, and what flows back through them. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* x_i [R,A_i] -> [R, sum A_i] */
void REF(concat)(const dt_kernel_args *a)
{
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->out[0], 1), D = last_dim(&a->out[0]);
    int64_t from = 0;
    for (uint32_t i = 0; i < a->n_in; i++) {
        const real *x = real_in(a, i);
        const int64_t n = last_dim(&a->in[i]);
        for (int64_t r = 0; r < R; r++) {
            for (int64_t d = 0; d < n; d++) {
                y[r * D + from + d] = x[r * n + d];
            }
        }
        from += n;
    }
}

/* columns i0 .. i0 + i1 - 1 */
void REF(slice)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]), from = a->attr->i[0], n = a->attr->i[1];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < n; d++) {
            y[r * n + d] = x[r * D + from + d];
        }
    }
}

/* dy [R,n] -> dx [R,D], zeros outside the columns */
void REF(slice_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), from = a->attr->i[0], n = a->attr->i[1], D = a->attr->i[2];
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            dx[r * D + d] = d >= from && d < from + n ? dy[r * n + d - from] : 0;
        }
    }
}

/* x [T,...] -> x[t], t < 0 counts from the end */
void REF(step)(const dt_kernel_args *a)
{
    const int64_t T = a->in[0].dim[0], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0), n = dt_view_count(&a->out[0]);
    for (int64_t i = 0; i < n; i++) {
        real_out(a, 0)[i] = real_in(a, 0)[t * n + i];
    }
}

/* dy [...] -> dx [T,...], zeros in the other steps; i1 is T */
void REF(step_bwd)(const dt_kernel_args *a)
{
    const int64_t T = a->attr->i[1], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0), n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < T * n; i++) {
        real_out(a, 0)[i] = i / n == t ? real_in(a, 0)[i - t * n] : 0;
    }
}

/* x [R,D], idx [...] -> row idx of x, or zeros for -1 */
void REF(gather)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    const int32_t *idx = i32_in(a, 1);
    real *y = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[1]), D = last_dim(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t d = 0; d < D; d++) {
            y[i * D + d] = idx[i] < 0 ? 0 : x[idx[i] * D + d];
        }
    }
}

/* dy [...,D], idx [...], x shape -> dx [R,D], added in the order of idx */
void REF(gather_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    const int32_t *idx = i32_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[1]), D = last_dim(&a->out[0]);
    start_sum(a, 0);
    for (int64_t i = 0; i < n; i++) {
        if (idx[i] >= 0) {
            for (int64_t d = 0; d < D; d++) {
                dx[idx[i] * D + d] += dy[i * D + d];
            }
        }
    }
}

/* x [...,D], idx [...], `of` shape -> y [R,D]: the derivative of GATHER as an op of its own */
void REF(scatter_add)(const dt_kernel_args *a)
{
    REF(gather_bwd)(a);
}

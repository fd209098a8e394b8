/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that move rows and columns without arithmetic, and what flows back through them. Reference:
 * engine/backend/ref/copy.c.
 */
#include "engine/backend/cpu/cpu.h"

static ALWAYS_INLINE void copy_row(float *to, const float *from, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_get(from + i, k), k);
    }
}

static ALWAYS_INLINE void zero_row(float *to, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(to + i, vf_set(0), k);
    }
}

void CPU(concat)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->out[0], 1), D = last_dim(&a->out[0]);
    float *y = f32_out(a, 0);
    for (uint32_t i = 0; i < a->n_in; i++) {
        const float *x = f32_in(a, i);
        const int64_t n = last_dim(&a->in[i]);
        for (int64_t r = 0; r < R; r++) {
            copy_row(y + r * D, x + r * n, n);
        }
        y += n;
    }
}

void CPU(slice)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0) + a->attr->i[0];
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]), n = a->attr->i[1];
    for (int64_t r = 0; r < R; r++) {
        copy_row(y + r * n, x + r * D, n);
    }
}

void CPU(slice_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0);
    float *dx = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), from = a->attr->i[0], n = a->attr->i[1], D = a->attr->i[2];
    for (int64_t r = 0; r < R; r++) {
        zero_row(dx + r * D, from);
        copy_row(dx + r * D + from, dy + r * n, n);
        zero_row(dx + r * D + from + n, D - from - n);
    }
}

void CPU(step)(const dt_kernel_args *a)
{
    const int64_t T = a->in[0].dim[0], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0), n = dt_view_count(&a->out[0]);
    copy_row(f32_out(a, 0), f32_in(a, 0) + t * n, n);
}

void CPU(step_bwd)(const dt_kernel_args *a)
{
    const int64_t T = a->attr->i[1], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0), n = dt_view_count(&a->in[0]);
    float *dx = f32_out(a, 0);
    zero_row(dx, t * n);
    copy_row(dx + t * n, f32_in(a, 0), n);
    zero_row(dx + (t + 1) * n, (T - t - 1) * n);
}

void CPU(gather)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    const int32_t *idx = i32_in(a, 1);
    float *y = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[1]), D = last_dim(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        if (idx[i] >= 0) {
            copy_row(y + i * D, x + idx[i] * D, D);
        } else {
            zero_row(y + i * D, D);
        }
    }
}

void CPU(gather_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0);
    const int32_t *idx = i32_in(a, 1);
    const int64_t n = dt_view_count(&a->in[1]), D = last_dim(&a->out[0]);
    start_sum(a, 0);
    for (int64_t i = 0; i < n; i++) {
        float *dx = f32_out(a, 0) + (idx[i] < 0 ? 0 : idx[i]) * D;
        if (idx[i] < 0) {
            continue;
        }
        VF_FOR (d, k, D) {
            vf_put(dx + d, vf_get(dx + d, k) + vf_get(dy + i * D + d, k), k);
        }
    }
}

void CPU(scatter_add)(const dt_kernel_args *a)
{
    CPU(gather_bwd)(a);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over rows, over columns and over everything. Reference: engine/backend/ref/reduce.c.
 */
#include "engine/backend/cpu/cpu.h"

/* four vectors of columns at a time, so that their sums stay in registers */
void CPU(colsum)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0);
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), M = last_dim(&a->in[0]);
    int64_t m = 0;
    start_sum(a, 0);
    for (; m + 4 * VL <= M; m += 4 * VL) {
        vf sum[4];
        for (int v = 0; v < 4; v++) {
            sum[v] = vf_load(y + m + v * VL);
        }
        for (int64_t r = 0; r < R; r++) {
            for (int v = 0; v < 4; v++) {
                sum[v] = sum[v] + vf_load(dy + r * M + m + v * VL);
            }
        }
        for (int v = 0; v < 4; v++) {
            vf_store(y + m + v * VL, sum[v]);
        }
    }
    for (; m < M; m += VL) {
        const int64_t k = M - m < VL ? M - m : VL;
        vf sum = vf_get(y + m, k);
        for (int64_t r = 0; r < R; r++) {
            sum = sum + vf_get(dy + r * M + m, k);
        }
        vf_put(y + m, sum, k);
    }
}

void CPU(rowsum)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        vw sum = vw_set(0);
        VF_FOR (i, k, D) {
            vw_add(&sum, vf_get(x + r * D + i, k));
        }
        y[r] = vw_sum(sum);
    }
}

/* LANES partial sums in double: the same bits in every build */
void CPU(sum)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    double part[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            part[k] += x[i + k];
        }
    }
    for (int k = 0; i + k < n; k++) {
        part[k] += x[i + k];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++) {
            part[k] += part[k + half];
        }
    }
    *(double *)a->out[0].data = part[0];
}

void CPU(sum_bwd)(const dt_kernel_args *a)
{
    float *dx = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->out[0]);
    const vf ds = vf_set((float)*(const double *)a->in[0].data);
    VF_FOR (i, k, n) {
        vf_put(dx + i, ds, k);
    }
}

/* ---- means over runs of rows ------------------------------------------------------------------------------------- */

void CPU(segment_mean)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    const int32_t *ptr = i32_in(a, 1);
    float *y = f32_out(a, 0);
    const int64_t B = a->in[1].dim[0] - 1, D = last_dim(&a->in[0]);
    for (int64_t b = 0; b < B; b++) {
        const float share = ptr[b + 1] > ptr[b] ? 1.0f / (float)(ptr[b + 1] - ptr[b]) : 0;
        VF_FOR (d, k, D) {
            vf sum = vf_set(0);
            for (int64_t r = ptr[b]; r < ptr[b + 1]; r++) {
                sum = sum + vf_get(x + r * D + d, k);
            }
            vf_put(y + b * D + d, sum * vf_set(share), k);
        }
    }
}

void CPU(segment_mean_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0);
    const int32_t *ptr = i32_in(a, 1);
    float *dx = f32_out(a, 0);
    const int64_t B = a->in[1].dim[0] - 1, D = last_dim(&a->out[0]);
    memset(dx, 0, (size_t)dt_view_count(&a->out[0]) * sizeof(*dx));
    for (int64_t b = 0; b < B; b++) {
        const float share = ptr[b + 1] > ptr[b] ? 1.0f / (float)(ptr[b + 1] - ptr[b]) : 0;
        for (int64_t r = ptr[b]; r < ptr[b + 1]; r++) {
            VF_FOR (d, k, D) {
                vf_put(dx + r * D + d, vf_get(dy + b * D + d, k) * vf_set(share), k);
            }
        }
    }
}

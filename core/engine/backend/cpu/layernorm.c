/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalisation with residual; each row passes through the cache once. Reference: engine/backend/ref/layernorm.c.
 */
#include "engine/backend/cpu/cpu.h"

#include <math.h>

static ALWAYS_INLINE vf load_sum(const float *x, const float *res, int64_t i, int64_t k)
{
    const vf v = vf_get(x + i, k);
    if (res == NULL) {
        return v;
    }
    return v + vf_get(res + i, k);
}

/* elements past k are 0 in v, and must be 0 after the mean is taken off too */
static ALWAYS_INLINE vf subtract_mean(vf v, vf mean, int64_t k)
{
    const vf d = v - mean;
    if (k == VL) {
        return d;
    }
    float part[VL] = {0};
    vf_put(part, d, k);
    return vf_load(part);
}

void CPU(layernorm)(const dt_kernel_args *a)
{
    const float *gamma = f32_in(a, 1), *beta = f32_in(a, 2);
    float *stat = f32_out(a, 1);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        const float *x = f32_in(a, 0) + r * D, *res = f32_in(a, 3) != NULL ? f32_in(a, 3) + r * D : NULL;
        float *y = f32_out(a, 0) + r * D;
        vw sum = vw_set(0), square = vw_set(0);
        VF_FOR (i, k, D) {
            const vf v = load_sum(x, res, i, k);
            vf_put(y + i, v, k);
            vw_add(&sum, v);
        }
        const float mean = vw_sum(sum) / (float)D;
        const vf m = vf_set(mean);
        VF_FOR (i, k, D) {
            const vf v = subtract_mean(vf_get(y + i, k), m, k);
            vw_fma(&square, v, v);
        }
        const float rstd = 1.0f / sqrtf(vw_sum(square) / (float)D + (float)a->attr->f[0]);
        const vf scale = vf_set(rstd);
        VF_FOR (i, k, D) {
            const vf n = (vf_get(y + i, k) - m) * scale;
            vf_put(y + i, vf_fma(n, vf_get(gamma + i, k), vf_get(beta + i, k)), k);
        }
        if (stat != NULL) {
            stat[r * 2] = mean;
            stat[r * 2 + 1] = rstd;
        }
    }
}

void CPU(layernorm_bwd)(const dt_kernel_args *a)
{
    const float *gamma = f32_in(a, 2), *stat = f32_in(a, 4);
    float *dgamma = f32_out(a, 1), *dbeta = f32_out(a, 2);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    start_sum(a, 1);
    start_sum(a, 2);
    for (int64_t r = 0; r < R; r++) {
        const float *dy = f32_in(a, 0) + r * D, *x = f32_in(a, 1) + r * D;
        const float *res = f32_in(a, 3) != NULL ? f32_in(a, 3) + r * D : NULL;
        float *dx = f32_out(a, 0) != NULL ? f32_out(a, 0) + r * D : NULL;
        const vf mean = vf_set(stat[r * 2]), rstd = vf_set(stat[r * 2 + 1]);
        vw sum_g = vw_set(0), sum_gn = vw_set(0);
        VF_FOR (i, k, D) {
            const vf n = (load_sum(x, res, i, k) - mean) * rstd, d = vf_get(dy + i, k), g = d * vf_get(gamma + i, k);
            vw_add(&sum_g, g);
            vw_fma(&sum_gn, g, n);
            if (dgamma != NULL) {
                vf_put(dgamma + i, vf_fma(d, n, vf_get(dgamma + i, k)), k);
            }
            if (dbeta != NULL) {
                vf_put(dbeta + i, d + vf_get(dbeta + i, k), k);
            }
        }
        if (dx == NULL) {
            continue;
        }
        const vf mean_g = vf_set(vw_sum(sum_g) / (float)D), mean_gn = vf_set(vw_sum(sum_gn) / (float)D);
        VF_FOR (i, k, D) {
            const vf n = (load_sum(x, res, i, k) - mean) * rstd, g = vf_get(dy + i, k) * vf_get(gamma + i, k);
            vf_put(dx + i, rstd * (g - vf_fma(n, mean_gn, mean_g)), k);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over the last dim. Reference: engine/backend/ref/softmax.c.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/vmath.h"

/* x, with value past the first k elements */
static ALWAYS_INLINE vf fill_past_end(vf x, int64_t k, float value)
{
    if (k == VL) {
        return x;
    }
    float part[VL];
    vf_store(part, vf_set(value));
    vf_put(part, x, k);
    return vf_load(part);
}

void CPU(softmax)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        const float *x = f32_in(a, 0) + r * D;
        float *y = f32_out(a, 0) + r * D;
        vf top = vf_set(-__builtin_inff());
        vw sum = vw_set(0);
        VF_FOR (i, k, D) {
            top = vf_max(top, fill_past_end(vf_get(x + i, k), k, -__builtin_inff()));
        }
        top = vf_set(vf_max_element(top));
        VF_FOR (i, k, D) {
            const vf e = vf_exp(vf_get(x + i, k) - top);
            vf_put(y + i, e, k);
            vw_add(&sum, fill_past_end(e, k, 0));
        }
        const vf inverse = vf_set(1.0f / vw_sum(sum));
        VF_FOR (i, k, D) {
            vf_put(y + i, vf_get(y + i, k) * inverse, k);
        }
    }
}

void CPU(softmax_bwd)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        const float *dy = f32_in(a, 0) + r * D, *y = f32_in(a, 1) + r * D;
        float *dx = f32_out(a, 0) + r * D;
        vw sum = vw_set(0);
        VF_FOR (i, k, D) {
            vw_fma(&sum, vf_get(y + i, k), vf_get(dy + i, k));
        }
        const vf mean = vf_set(vw_sum(sum));
        VF_FOR (i, k, D) {
            vf_put(dx + i, vf_get(y + i, k) * (vf_get(dy + i, k) - mean), k);
        }
    }
}

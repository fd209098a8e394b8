/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean over runs of rows. Reference: engine/backend/ref/segment_mean.c.
 */
#include "engine/backend/cpu/cpu.h"

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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sum over the last dim but one. Reference: engine/backend/ref/cumsum.c.
 */
#include "engine/backend/cpu/cpu.h"

/* from the first row on, or from the last row back; y may be x */
static void run(const float *x, float *y, int64_t F, int64_t P, bool is_back)
{
    for (int64_t i = 1; i <= F; i++) {
        const int64_t f = is_back ? F - i : i - 1, before = is_back ? f + 1 : f - 1;
        VF_FOR (p, k, P) {
            const vf v = vf_get(x + f * P + p, k);
            vf_put(y + f * P + p, i > 1 ? (vf)(v + vf_get(y + before * P + p, k)) : (vf)v, k);
        }
    }
}

static void runs(const dt_kernel_args *a, bool is_back)
{
    const int64_t R = dt_view_rows(&a->in[0], 2), P = last_dim(&a->in[0]), F = a->in[0].dim[a->in[0].rank - 2];
    for (int64_t r = 0; r < R; r++) {
        run(f32_in(a, 0) + r * F * P, f32_out(a, 0) + r * F * P, F, P, is_back);
    }
}

void CPU(cumsum)(const dt_kernel_args *a)
{
    runs(a, false);
}

void CPU(cumsum_bwd)(const dt_kernel_args *a)
{
    runs(a, true);
}

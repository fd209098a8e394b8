/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements; b may be a row vector or one value per row. Reference: backend/ref/binary.c.
 */
#include "backend/cpu/cpu.h"

#define EACH(expr)                                                                                                     \
    VF_FOR (i, k, n) {                                                                                                 \
        const vf u = vf_get(a + i, k), v = b_step != 0 ? vf_get(b + i, k) : vf_set(*b);                                \
        vf_put(y + i, (expr), k);                                                                                      \
    }                                                                                                                  \
    break

/* n elements; b is one value when b_step is 0 */
static ALWAYS_INLINE void combine(int64_t fn, const float *a, const float *b, const int b_step, float *y, int64_t n)
{
    switch (fn) {
    case DT_BIN_ADD:
        EACH(u + v);
    case DT_BIN_SUB:
        EACH(u - v);
    case DT_BIN_MUL:
        EACH(u * v);
    case DT_BIN_MIN:
        EACH(vf_min(u, v));
    default:
        EACH(vf_max(u, v));
    }
}

void CPU(binary)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[0], *vb = &args->in[1];
    const float *a = f32_in(args, 0), *b = f32_in(args, 1);
    float *y = f32_out(args, 0);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va), fn = args->attr->i[0];
    if (vb->rank == va->rank && last_dim(vb) == D) {
        combine(fn, a, b, 1, y, R * D);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        if (vb->rank < va->rank) {
            combine(fn, a + r * D, b, 1, y + r * D, D);
        } else {
            combine(fn, a + r * D, b + r, 0, y + r * D, D);
        }
    }
}

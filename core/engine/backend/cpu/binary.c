/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements; b may be a row vector or one value per row. Reference: engine/backend/ref/binary.c.
 */
#include "engine/backend/cpu/cpu.h"

#define EACH(expr)                                                                                                     \
    VF_FOR (i, k, n) {                                                                                                 \
        const vf u = vf_get(a + i, k), v = b_step != 0 ? vf_get(b + i, k) : vf_set(*b);                                \
        vf_put(y + i, (expr), k);                                                                                      \
    }                                                                                                                  \
    break

enum { FEW = 8, AT_ONCE = 64 }; /* elements of a row, rows */

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
    case DT_BIN_DIV:
        EACH(u / v);
    case DT_BIN_MIN:
        EACH(vf_least(u, v));
    default:
        EACH(vf_greatest(u, v));
    }
}

/* One value per row of few elements: they are placed next to their rows, some rows at a time. */
static void combine_columns(int64_t fn, const float *a, const float *b, float *y, int64_t R, int64_t D)
{
    float beside[FEW * AT_ONCE];
    for (int64_t r = 0; r < R; r += AT_ONCE) {
        const int64_t rows = R - r < AT_ONCE ? R - r : AT_ONCE;
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t d = 0; d < D; d++) {
                beside[i * D + d] = b[r + i];
            }
        }
        combine(fn, a + r * D, beside, 1, y + r * D, rows * D);
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
    if (vb->rank < va->rank && D == 1) {
        combine(fn, a, b, 0, y, R);
        return;
    }
    if (vb->rank == va->rank && D <= FEW) {
        combine_columns(fn, a, b, y, R, D);
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

/* dy to the lesser of a and b, half each where both are equal; b is one value when b_step is 0 */
static ALWAYS_INLINE void extreme_gradient(const float *dy, const float *a, const float *b, const int b_step, float *da,
                                           float *db, int64_t n, bool is_max)
{
    VF_FOR (i, k, n) {
        const vf g = vf_get(dy + i, k), u = vf_get(a + i, k), v = b_step != 0 ? vf_get(b + i, k) : vf_set(*b);
        const vf zero = vf_set(0), half = g * vf_set(0.5f), low = is_max ? v : u, high = is_max ? u : v;
        if (da != NULL) {
            vf_put(da + i, vf_if_gt(high, low, g, vf_if_gt(low, high, zero, half)), k);
        }
        if (db != NULL) {
            vf_put(db + i, vf_if_gt(high, low, zero, vf_if_gt(low, high, g, half)), k);
        }
    }
}

void CPU(extreme_bwd)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[1], *vb = &args->in[2];
    const float *dy = f32_in(args, 0), *a = f32_in(args, 1), *b = f32_in(args, 2);
    float *da = f32_out(args, 0), *db = f32_out(args, 1);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va);
    const bool is_max = args->attr->i[0] == DT_BIN_MAX, is_row = vb->rank < va->rank;
    const bool is_column = !is_row && last_dim(vb) != D;
    if (!is_row && !is_column) {
        extreme_gradient(dy, a, b, 1, da, db, R * D, is_max);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        float *to_a = da != NULL ? da + r * D : NULL, *to_b = db != NULL ? db + r * D : NULL;
        if (is_column) {
            extreme_gradient(dy + r * D, a + r * D, b + r, 0, to_a, to_b, D, is_max);
        } else {
            extreme_gradient(dy + r * D, a + r * D, b, 1, to_a, to_b, D, is_max);
        }
    }
}

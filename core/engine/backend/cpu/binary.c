/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements and a choice between them; b may be a row vector, one value per row or one number.
 * Reference: engine/backend/ref/binary.c.
 */
#include "engine/backend/cpu/cpu.h"

#define EACH(expr)                                                                                                     \
    VF_FOR (i, k, n) {                                                                                                 \
        const vf u = vf_get(a + i, k), v = b_step != 0 ? vf_get(b + i, k) : vf_set(*b);                                \
        vf_put(y + i, (expr), k);                                                                                      \
    }                                                                                                                  \
    break

enum { FEW = 8, AT_ONCE = 64 }; /* elements of a row, rows */

/* NaN where u or v is, else x */
static ALWAYS_INLINE vf propagate_nan(vf u, vf v, vf x)
{
    return vf_if_nan(u, u, vf_if_nan(v, v, x));
}

/* n elements; b is one value when b_step is 0 */
static ALWAYS_INLINE void combine_elements(int64_t fn, const float *a, const float *b, const int b_step, float *y,
                                           int64_t n)
{
    const vf yes = vf_set(1), no = vf_set(0);
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
    case DT_BIN_MAX:
        EACH(vf_greatest(u, v));
    case DT_BIN_LESS:
        EACH(propagate_nan(u, v, vf_if_gt(v, u, yes, no)));
    case DT_BIN_LESS_EQUAL:
        EACH(propagate_nan(u, v, vf_if_le(u, v, yes, no)));
    case DT_BIN_GREATER:
        EACH(propagate_nan(u, v, vf_if_gt(u, v, yes, no)));
    case DT_BIN_GREATER_EQUAL:
        EACH(propagate_nan(u, v, vf_if_le(v, u, yes, no)));
    default:
        EACH(propagate_nan(u, v, vf_if_le(u, v, vf_if_le(v, u, yes, no), no)));
    }
}

/* One value per row of few elements: they are placed next to their rows, some rows at a time. */
static void combine_columns(int64_t fn, const float *a, const float *b, float *y, int64_t R, int64_t D)
{
    float repeated[FEW * AT_ONCE];
    for (int64_t r = 0; r < R; r += AT_ONCE) {
        const int64_t rows = R - r < AT_ONCE ? R - r : AT_ONCE;
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t d = 0; d < D; d++) {
                repeated[i * D + d] = b[r + i];
            }
        }
        combine_elements(fn, a + r * D, repeated, 1, y + r * D, rows * D);
    }
}

void CPU(binary)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[0], *vb = &args->in[1];
    const float *a = f32_in(args, 0), *b = f32_in(args, 1);
    float *y = f32_out(args, 0);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va), fn = args->attr->i[0];
    if (vb->rank == va->rank && last_dim(vb) == D) {
        combine_elements(fn, a, b, 1, y, R * D);
        return;
    }
    if (vb->rank < va->rank && last_dim(vb) == 1) {
        combine_elements(fn, a, b, 0, y, R * D);
        return;
    }
    if (vb->rank == va->rank && D <= FEW) {
        combine_columns(fn, a, b, y, R, D);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        if (vb->rank < va->rank) {
            combine_elements(fn, a + r * D, b, 1, y + r * D, D);
        } else {
            combine_elements(fn, a + r * D, b + r, 0, y + r * D, D);
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
    const bool is_max = args->attr->i[0] == DT_BIN_MAX, is_row = vb->rank < va->rank && last_dim(vb) == D;
    const bool is_one = !is_row && last_dim(vb) != D; /* [R,1] or [1] */
    const int64_t b_step = vb->rank == va->rank;
    if (!is_row && !is_one) {
        extreme_gradient(dy, a, b, 1, da, db, R * D, is_max);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        float *to_a = da != NULL ? da + r * D : NULL, *to_b = db != NULL ? db + r * D : NULL;
        if (is_one) {
            extreme_gradient(dy + r * D, a + r * D, b + r * b_step, 0, to_a, to_b, D, is_max);
        } else {
            extreme_gradient(dy + r * D, a + r * D, b, 1, to_a, to_b, D, is_max);
        }
    }
}

/* n elements; c is one value when c_step is 0, a and b are zeros when NULL */
static ALWAYS_INLINE void select_elements(const float *c, const int c_step, const float *a, const float *b, float *y,
                                          int64_t n)
{
    const vf zero = vf_set(0);
    VF_FOR (i, k, n) {
        const vf when = c_step != 0 ? vf_get(c + i, k) : vf_set(*c);
        const vf yes = a != NULL ? vf_get(a + i, k) : zero, no = b != NULL ? vf_get(b + i, k) : zero;
        vf_put(y + i, vf_if_nan(when, when, vf_if_gt(vf_abs(when), zero, yes, no)), k);
    }
}

void CPU(select)(const dt_kernel_args *args)
{
    const dt_view *vc = &args->in[0], *vy = &args->out[0];
    const float *c = f32_in(args, 0), *a = f32_in(args, 1), *b = f32_in(args, 2);
    float *y = f32_out(args, 0);
    const int64_t R = dt_view_rows(vy, 1), D = last_dim(vy);
    const bool is_row = vc->rank < vy->rank, is_one = last_dim(vc) != D;
    if (!is_row && !is_one) {
        select_elements(c, 1, a, b, y, R * D);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        const float *yes = a != NULL ? a + r * D : NULL, *no = b != NULL ? b + r * D : NULL;
        if (is_one) {
            select_elements(is_row ? c : c + r, 0, yes, no, y + r * D, D);
        } else {
            select_elements(c, 1, yes, no, y + r * D, D);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements; b may be a row vector or one value per row. See ref.h.
 */
#include "engine/backend/ref/ref.h"

static double binary_value(int64_t fn, double a, double b)
{
    switch (fn) {
    case DT_BIN_ADD:
        return a + b;
    case DT_BIN_SUB:
        return a - b;
    case DT_BIN_MUL:
        return a * b;
    case DT_BIN_DIV:
        return a / b;
    case DT_BIN_MIN:
        return least(a, b);
    default:
        return greatest(a, b);
    }
}

/* a [R,D], b [R,D] or [D] or [R,1] -> [R,D] */
void REF(binary)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[0], *vb = &args->in[1];
    const real *a = real_in(args, 0), *b = real_in(args, 1);
    real *y = real_out(args, 0);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va);
    const bool is_row = vb->rank < va->rank, is_column = !is_row && last_dim(vb) != D;
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            double right = b[is_row ? d : is_column ? r : r * D + d];
            y[r * D + d] = (real)binary_value(args->attr->i[0], a[r * D + d], right);
        }
    }
}

/* dy a [R,D], b [R,D] or [D] or [R,1] -> da, db [R,D]: dy to the one that was taken, half each where both are equal */
void REF(extreme_bwd)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[1], *vb = &args->in[2];
    const real *dy = real_in(args, 0), *a = real_in(args, 1), *b = real_in(args, 2);
    real *da = real_out(args, 0), *db = real_out(args, 1);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va);
    const bool is_row = vb->rank < va->rank, is_column = !is_row && last_dim(vb) != D;
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            const int64_t i = r * D + d;
            const double right = b[is_row ? d : is_column ? r : i], left = a[i];
            const double part = !(left < right || left > right)                      ? 0.5
                                : (right > left) == (args->attr->i[0] == DT_BIN_MIN) ? 1
                                                                                     : 0;
            if (da != NULL) {
                da[i] = (real)(part * dy[i]);
            }
            if (db != NULL) {
                db[i] = (real)((1 - part) * dy[i]);
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements and a choice between them; b may be a row vector, one value per row or one number. See
 * ref.h.
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
    case DT_BIN_MAX:
        return greatest(a, b);
    default:
        break;
    }
    if (isnan(a) || isnan(b)) {
        return NAN;
    }
    switch (fn) {
    case DT_BIN_LESS:
        return a < b;
    case DT_BIN_LESS_EQUAL:
        return a <= b;
    case DT_BIN_GREATER:
        return a > b;
    case DT_BIN_GREATER_EQUAL:
        return a >= b;
    default:
        return a == b;
    }
}

/* Element of b [R,D], [D], [R,1] or [1] next to element d of row r of a [R,D]. */
static int64_t place_of_b(const dt_view *a, const dt_view *b, int64_t r, int64_t d)
{
    const int64_t D = last_dim(a);
    const bool is_row = b->rank < a->rank, is_one = last_dim(b) != D;
    return is_row ? (is_one ? 0 : d) : is_one ? r : r * D + d;
}

/* a [R,D], b [R,D] or [D] or [R,1] or [1] -> [R,D] */
void REF(binary)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[0], *vb = &args->in[1];
    const real *a = real_in(args, 0), *b = real_in(args, 1);
    real *y = real_out(args, 0);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            const double right = b[place_of_b(va, vb, r, d)];
            y[r * D + d] = (real)binary_value(args->attr->i[0], a[r * D + d], right);
        }
    }
}

/* dy a [R,D], b [R,D] or [D] or [R,1] or [1] -> da, db [R,D]: dy to the one that was taken, half each where both are
 * equal */
void REF(extreme_bwd)(const dt_kernel_args *args)
{
    const dt_view *va = &args->in[1], *vb = &args->in[2];
    const real *dy = real_in(args, 0), *a = real_in(args, 1), *b = real_in(args, 2);
    real *da = real_out(args, 0), *db = real_out(args, 1);
    const int64_t R = dt_view_rows(va, 1), D = last_dim(va);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            const int64_t i = r * D + d;
            const double right = b[place_of_b(va, vb, r, d)], left = a[i];
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

/* c as b above, a and b [R,D] or NULL -> [R,D]: a where c is not 0, else b, 0 for NULL, NaN where c is */
void REF(select)(const dt_kernel_args *args)
{
    const dt_view *vc = &args->in[0], *vy = &args->out[0];
    const real *c = real_in(args, 0), *a = real_in(args, 1), *b = real_in(args, 2);
    const int64_t R = dt_view_rows(vy, 1), D = last_dim(vy);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d++) {
            const real condition = c[place_of_b(vy, vc, r, d)], *from = condition != 0 ? a : b;
            real_out(args, 0)[r * D + d] = isnan(condition) ? condition : from != NULL ? from[r * D + d] : 0;
        }
    }
}

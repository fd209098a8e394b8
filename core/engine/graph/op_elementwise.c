/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the ops that work on each element alone.
 */
#include <config.h>

#include "engine/graph/op.h"

#include <math.h>

/* ---- unary ------------------------------------------------------------------------------------------------------- */

static dt_status check_unary(dt_infer *q)
{
    if (q->attr.i[0] < DT_FN_RELU || q->attr.i[0] > DT_FN_COS) {
        return dt_infer_fail(q, DT_EINVAL, "function %lld is not one of DT_FN_* (%d to %d)", (long long)q->attr.i[0],
                             DT_FN_RELU, DT_FN_COS);
    }
    if (!(q->attr.f[0] >= 0 && isfinite(q->attr.f[0]))) { /* below 0 the derivative is not known from y */
        return dt_infer_fail(q, DT_EINVAL, "slope or alpha %g must be finite and not negative", q->attr.f[0]);
    }
    return DT_OK;
}

bool dt_unary_needs_input(int64_t fn)
{
    return fn == DT_FN_GELU || fn == DT_FN_LOG || fn == DT_FN_ABS || fn == DT_FN_SIN || fn == DT_FN_COS;
}

static void vjp_unary(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t of = dt_unary_needs_input(n->attr.i[0]) ? n->in[0] : n->out[0];
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_UNARY_BWD, &n->attr, dy, of));
}

const dt_op_info dt_op_unary = {
    .shape = "x[...] -> y[...]",
    .check = check_unary,
    .vjp = vjp_unary,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_unary_bwd = {
    .shape = "dy[...] s[...] -> dx[...]",
    .flops = dt_flops_ten,
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

/* ---- binary ------------------------------------------------------------------------------------------------------ */

typedef enum broadcast { BROADCAST_NONE, BROADCAST_ROW, BROADCAST_COLUMN, BROADCAST_NUMBER } broadcast;

/* How b[...] meets a[...]: same shape, [D], [...,1], or [1]. False when it does not. */
static bool broadcast_of(const dt_shape *a, const dt_shape *b, broadcast *out_p)
{
    if (dt_shape_equal(a, b)) {
        *out_p = BROADCAST_NONE;
        return true;
    }
    if (b->rank == 1 && dt_extent_equal(b->dim[0], a->dim[a->rank - 1])) {
        *out_p = BROADCAST_ROW;
        return true;
    }
    dt_shape column = *a;
    column.dim[a->rank - 1] = dt_extent_number(1);
    if (dt_shape_equal(&column, b)) {
        *out_p = BROADCAST_COLUMN;
        return true;
    }
    *out_p = BROADCAST_NUMBER;
    return b->dtype == a->dtype && b->rank == 1 && dt_extent_equal(b->dim[0], dt_extent_number(1));
}

static dt_status check_binary(dt_infer *q)
{
    if (q->attr.i[0] < DT_BIN_ADD || q->attr.i[0] > DT_BIN_EQUAL) {
        return dt_infer_fail(q, DT_EINVAL, "function %lld is not one of DT_BIN_* (%d to %d)", (long long)q->attr.i[0],
                             DT_BIN_ADD, DT_BIN_EQUAL);
    }
    broadcast s;
    if (!broadcast_of(q->in[0], q->in[1], &s)) {
        dt_str t = {0};
        dt_infer_input_text(q, 0, &t);
        dt_str_add(&t, ", ");
        dt_infer_input_text(q, 1, &t);
        dt_status st = dt_infer_fail(
            q, DT_ESHAPE, "%s; b must have the shape of a, be one row [D], one column [...,1] or one number [1]",
            dt_str_text(&t));
        dt_str_fini(&t);
        return st;
    }
    return DT_OK;
}

/* The gradient of b is that of the broadcast b, summed over where it was spread. */
static int32_t sum_broadcast(dt_derive *d, const dt_node *n, int32_t db)
{
    broadcast s = BROADCAST_NONE;
    (void)broadcast_of(dt_derive_shape(d, n->in[0]), dt_derive_shape(d, n->in[1]), &s);
    switch (s) {
    case BROADCAST_ROW:
        return DT_EMIT1(d, DT_OPX_COLSUM, NULL, db);
    case BROADCAST_COLUMN:
        return DT_EMIT1(d, DT_OPX_ROWSUM, NULL, db);
    case BROADCAST_NUMBER:
        return DT_EMIT1(d, DT_OPX_COLSUM, NULL, DT_EMIT1(d, DT_OPX_ROWSUM, NULL, db));
    default:
        return db;
    }
}

enum { A, B };

/* y = a / b:  da = dy / b,  db = -y da */
static void vjp_quotient(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_attr div = {.i = {DT_BIN_DIV}}, mul = {.i = {DT_BIN_MUL}}, minus = {.f = {-1}};
    const int32_t da = DT_EMIT1(d, DT_OPX_BINARY, &div, dy, n->in[B]);
    if (dt_derive_needs_grad(d, n, B)) {
        const int32_t db = DT_EMIT1(d, DT_OPX_BINARY, &mul, da, n->out[0]);
        dt_derive_add_grad(d, n, B, DT_EMIT1(d, DT_OPX_AFFINE, &minus, sum_broadcast(d, n, db)));
    }
    DT_ADD_GRAD(d, n, A, da);
}

static void vjp_extreme(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t both = DT_EMIT(d, DT_OPX_EXTREME_BWD, &n->attr, dy, n->in[A], n->in[B]);
    DT_ADD_GRAD(d, n, B, sum_broadcast(d, n, dt_derive_output(d, both, 1)));
    DT_ADD_GRAD(d, n, A, dt_derive_output(d, both, 0));
}

static void vjp_binary(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_attr mul = {.i = {DT_BIN_MUL}}, minus = {.f = {-1}};
    switch (n->attr.i[0]) {
    case DT_BIN_ADD:
        DT_ADD_GRAD(d, n, B, sum_broadcast(d, n, dy));
        DT_ADD_GRAD(d, n, A, dy);
        break;
    case DT_BIN_SUB:
        DT_ADD_GRAD(d, n, B, DT_EMIT1(d, DT_OPX_AFFINE, &minus, sum_broadcast(d, n, dy)));
        DT_ADD_GRAD(d, n, A, dy);
        break;
    case DT_BIN_MUL:
        DT_ADD_GRAD(d, n, B, sum_broadcast(d, n, DT_EMIT1(d, DT_OPX_BINARY, &mul, dy, n->in[A])));
        DT_ADD_GRAD(d, n, A, DT_EMIT1(d, DT_OPX_BINARY, &mul, dy, n->in[B]));
        break;
    case DT_BIN_DIV:
        vjp_quotient(d, n, dy);
        break;
    case DT_BIN_MIN:
    case DT_BIN_MAX:
        vjp_extreme(d, n, dy);
        break;
    default: /* comparisons are constant around every point but a jump */
        break;
    }
}

const dt_op_info dt_op_binary = {
    .shape = "a[...,D] b[*] -> y[...,D]",
    .check = check_binary,
    .vjp = vjp_binary,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0) | DT_BIT(1),
    .inplace = DT_BIT(0) | DT_BIT(1),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

static dt_status check_extreme_bwd(dt_infer *q)
{
    broadcast s;
    return (q->attr.i[0] == DT_BIN_MIN || q->attr.i[0] == DT_BIN_MAX) && broadcast_of(q->in[1], q->in[2], &s)
               ? DT_OK
               : dt_infer_fail(q, DT_ESHAPE, "shapes of a and b do not match, or function %lld is neither min nor max",
                               (long long)q->attr.i[0]);
}

const dt_op_info dt_op_extreme_bwd = {
    .shape = "dy[...,D] a[...,D] b[*] -> da[...,D] db[...,D]",
    .check = check_extreme_bwd,
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- select ------------------------------------------------------------------------------------------------------ */

static dt_status check_select(dt_infer *q)
{
    enum { CONDITION, YES, NO };
    const dt_shape *of = q->in[YES] != NULL ? q->in[YES] : q->in[NO];
    broadcast s;
    if (of == NULL) {
        return dt_infer_fail(q, DT_EINVAL, "inputs a and b are both missing; one must be present");
    }
    if (!broadcast_of(of, q->in[CONDITION], &s)) {
        dt_str t = {0};
        dt_infer_input_text(q, CONDITION, &t);
        dt_str_add(&t, ", ");
        dt_infer_input_text(q, q->in[YES] != NULL ? YES : NO, &t);
        dt_status st = dt_infer_fail(
            q, DT_ESHAPE, "%s; c must have the shape of a and b, be one row [D], one column [...,1] or one number [1]",
            dt_str_text(&t));
        dt_str_fini(&t);
        return st;
    }
    return DT_OK;
}

static void vjp_select(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { CONDITION, YES, NO };
    DT_ADD_GRAD(d, n, NO, DT_EMIT1(d, DT_OPX_SELECT, NULL, n->in[CONDITION], -1, dy));
    DT_ADD_GRAD(d, n, YES, DT_EMIT1(d, DT_OPX_SELECT, NULL, n->in[CONDITION], dy, -1));
}

const dt_op_info dt_op_select = {
    .shape = "c[*] a?[...,D] b?[...,D] -> y[...,D]",
    .check = check_select,
    .vjp = vjp_select,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- stop, fill, noise ------------------------------------------------------------------------------------------- */

/* No gradient flows to the input, so that the derivative never comes here. */
const dt_op_info dt_op_stop = {
    .shape = "x[...] -> y[...]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_HALF},
};

static dt_status check_fill(dt_infer *q)
{
    return isfinite(q->attr.f[0]) ? DT_OK : dt_infer_fail(q, DT_EINVAL, "value %g is not finite", q->attr.f[0]);
}

const dt_op_info dt_op_fill = {
    .shape = "x[...] -> y[...]",
    .check = check_fill,
    .flops = dt_flops_zero,
    .shape_only = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_noise(dt_infer *q)
{
    const int64_t n = q->attr.i[1], kind = q->attr.i[2], in_evaluation = q->attr.i[3];
    if (n < 1) {
        return dt_infer_fail(q, DT_EINVAL, "%lld numbers for each row; expected at least 1", (long long)n);
    }
    if (kind < DT_NOISE_NORMAL || kind > DT_NOISE_UNIFORM || in_evaluation < 0 || in_evaluation > 1) {
        return dt_infer_fail(q, DT_EINVAL, "kind %lld must be one of DT_NOISE_* (%d to %d), i3 %lld must be 0 or 1",
                             (long long)kind, DT_NOISE_NORMAL, DT_NOISE_UNIFORM, (long long)in_evaluation);
    }
    return DT_OK;
}

const dt_op_info dt_op_noise = {
    .shape = "key[...]:i64 -> y[...,i1]",
    .check = check_noise,
    .flops = dt_flops_ten,
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- affine, clamp, dropout -------------------------------------------------------------------------------------- */

static dt_status check_affine(dt_infer *q)
{
    if (!isfinite(q->attr.f[0]) || !isfinite(q->attr.f[1])) {
        return dt_infer_fail(q, DT_EINVAL, "scale %g or shift %g is not finite", q->attr.f[0], q->attr.f[1]);
    }
    return DT_OK;
}

static void vjp_affine(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_attr scale = {.f = {n->attr.f[0]}};
    DT_ADD_GRAD(d, n, 0, n->attr.f[0] == 1.0 ? dy : DT_EMIT1(d, DT_OPX_AFFINE, &scale, dy));
}

const dt_op_info dt_op_affine = {
    .shape = "x[...] -> y[...]",
    .check = check_affine,
    .vjp = vjp_affine,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

static dt_status check_clamp(dt_infer *q)
{
    if (!(q->attr.f[0] <= q->attr.f[1])) {
        return dt_infer_fail(q, DT_EINVAL, "lower bound %g is not below upper bound %g", q->attr.f[0], q->attr.f[1]);
    }
    return DT_OK;
}

static void vjp_clamp(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_CLAMP_BWD, &n->attr, dy, n->in[0]));
}

const dt_op_info dt_op_clamp = {
    .shape = "x[...] -> y[...]",
    .check = check_clamp,
    .vjp = vjp_clamp,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_clamp_bwd = {
    .shape = "dy[...] x[...] -> dx[...]",
    .flops = dt_flops_elements,
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

static dt_status check_dropout(dt_infer *q)
{
    if (!(q->attr.f[0] >= 0 && q->attr.f[0] < 1)) {
        return dt_infer_fail(q, DT_EINVAL, "probability %g is outside [0,1)", q->attr.f[0]);
    }
    return DT_OK;
}

/* The same key and stream draw the same mask. */
static void vjp_dropout(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_DROPOUT, &n->attr, dy, n->in[1]));
}

const dt_op_info dt_op_dropout = {
    .shape = "x[...,D] key[...]:i64 -> y[...,D]",
    .check = check_dropout,
    .vjp = vjp_dropout,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .inplace = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

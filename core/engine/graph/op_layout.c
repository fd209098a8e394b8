/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the ops that view, move or select data.
 */
#include <config.h>

#include "engine/graph/op.h"

#include <math.h>

/* "x is N 256 f32 but ..." for input 0 */
static dt_status fail_input(const dt_infer *q, const char *why)
{
    dt_str t = {0};
    dt_infer_input_text(q, 0, &t);
    dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s but %s", dt_str_text(&t), why);
    dt_str_fini(&t);
    return st;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* A ragged D can only be split into D x 1 (i0 = 0) or 1 x D (i0 = 1). */
static dt_status check_split(dt_infer *q)
{
    int64_t A = q->attr.i[0], D = 0;
    if (A == 0 || A == 1) {
        dt_infer_set(q, A == 0 ? "A" : "B", dt_infer_get(q, "D"));
        dt_infer_set(q, A == 0 ? "B" : "A", dt_extent_number(1));
        return DT_OK;
    }
    if (!dt_infer_number(q, "D", &D)) {
        return fail_input(q, "a ragged dimension cannot be split");
    }
    if (A < 0 || D % A != 0) {
        dt_str t = {0};
        dt_infer_input_text(q, 0, &t);
        dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s but %lld does not divide %lld", dt_str_text(&t), (long long)A,
                                     (long long)D);
        dt_str_fini(&t);
        return st;
    }
    dt_infer_set(q, "A", dt_extent_number(A));
    dt_infer_set(q, "B", dt_extent_number(D / A));
    return DT_OK;
}

static void vjp_split(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_MERGE, NULL, dy));
}

const dt_op_info dt_op_split = {
    .shape = "x[...,D] -> y[...,A,B]",
    .check = check_split,
    .vjp = vjp_split,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

static dt_status check_merge(dt_infer *q)
{
    int64_t A = 0, B = 0;
    bool is_fixed_a = dt_infer_number(q, "A", &A), is_fixed_b = dt_infer_number(q, "B", &B);
    if (is_fixed_a && is_fixed_b) {
        dt_infer_set(q, "C", dt_extent_number(A * B));
    } else if (is_fixed_b && B == 1) {
        dt_infer_set(q, "C", dt_infer_get(q, "A"));
    } else if (is_fixed_a && A == 1) {
        dt_infer_set(q, "C", dt_infer_get(q, "B"));
    } else {
        return fail_input(q, "a ragged dimension can only be merged with 1");
    }
    return DT_OK;
}

static void vjp_merge(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_shape *x = dt_derive_shape(d, n->in[0]);
    dt_extent A = x->dim[x->rank - 2];
    const dt_attr split = {.i = {A.symbol < 0 ? A.size : 0}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_SPLIT, &split, dy));
}

const dt_op_info dt_op_merge = {
    .shape = "x[...,A,B] -> y[...,C]",
    .check = check_merge,
    .vjp = vjp_merge,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

/* ---- columns ----------------------------------------------------------------------------------------------------- */

enum { CONCAT_MAX = 8 };

static dt_status check_concat(dt_infer *q)
{
    static const char *const letter[CONCAT_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H"};
    uint32_t n = 0;
    int64_t sum = 0;
    while (n < CONCAT_MAX && q->in[n] != NULL) {
        int64_t width = 0;
        if (!dt_infer_number(q, letter[n], &width)) {
            return dt_infer_fail(q, DT_ESHAPE, "the last dimension of %s is ragged; only numbers can be joined",
                                 q->in_name[n]);
        }
        sum += width;
        n++;
    }
    for (uint32_t k = n; k < q->n_in; k++) {
        if (q->in[k] != NULL) {
            return dt_infer_fail(q, DT_EINVAL, "input %s is missing before %s", q->in_name[n], q->in_name[k]);
        }
    }
    q->n_in = n;
    dt_infer_set(q, "Z", dt_extent_number(sum));
    return DT_OK;
}

static void vjp_concat(dt_derive *d, const dt_node *n, int32_t dy)
{
    int64_t from = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const dt_shape *x = dt_derive_shape(d, n->in[k]);
        const dt_attr slice = {.i = {from, x->dim[x->rank - 1].size}};
        from += slice.i[1];
        DT_ADD_GRAD(d, n, k, DT_EMIT1(d, DT_OPX_SLICE, &slice, dy));
    }
}

const dt_op_info dt_op_concat = {
    .shape = "x1[...,A] x2[...,B] x3?[...,C] x4?[...,D] x5?[...,E] x6?[...,F] x7?[...,G] x8?[...,H] -> y[...,Z]",
    .check = check_concat,
    .vjp = vjp_concat,
    .flops = dt_flops_zero,
    .grad_in = (1u << CONCAT_MAX) - 1,
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

static dt_status check_slice(dt_infer *q)
{
    int64_t from = q->attr.i[0], n = q->attr.i[1], D = 0;
    if (!dt_infer_number(q, "D", &D)) {
        return fail_input(q, "a ragged dimension cannot be sliced");
    }
    if (from < 0 || n < 1 || n > D || from > D - n) {
        const uint64_t last = (uint64_t)from + (uint64_t)n - 1; /* they may be any numbers */
        return dt_infer_fail(q, DT_EINVAL, "columns %lld to %lld of %lld do not exist", (long long)from,
                             (long long)last, (long long)D);
    }
    return DT_OK;
}

static void vjp_slice(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_shape *x = dt_derive_shape(d, n->in[0]);
    const dt_attr a = {.i = {n->attr.i[0], n->attr.i[1], x->dim[x->rank - 1].size}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_SLICE_BWD, &a, dy));
}

const dt_op_info dt_op_slice = {
    .shape = "x[...,D] -> y[...,i1]",
    .check = check_slice,
    .vjp = vjp_slice,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_slice_bwd = {
    .shape = "dy[...,i1] -> dx[...,i2]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_HALF},
};

/* ---- rows and steps ---------------------------------------------------------------------------------------------- */

static dt_status check_step(dt_infer *q)
{
    int64_t T = 0;
    if (!dt_infer_number(q, "T", &T)) {
        return fail_input(q, "its first dimension must be a number of steps, not ragged");
    }
    if (q->attr.i[0] < -T || q->attr.i[0] >= T) {
        return dt_infer_fail(q, DT_EINVAL, "step %lld is outside -%lld .. %lld", (long long)q->attr.i[0], (long long)T,
                             (long long)(T - 1));
    }
    if (q->attr.i[0] < 0) {
        q->attr.i[0] += T;
    }
    return DT_OK;
}

static void vjp_step(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_attr a = {.i = {n->attr.i[0], dt_derive_shape(d, n->in[0])->dim[0].size}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_STEP_BWD, &a, dy));
}

const dt_op_info dt_op_step = {
    .shape = "x[T,...] -> y[...]",
    .check = check_step,
    .vjp = vjp_step,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_step_bwd = {
    .shape = "dy[...] -> dx[i1,...]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_HALF},
};

static void vjp_gather(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_GATHER_BWD, NULL, dy, n->in[1], n->in[0]));
}

const dt_op_info dt_op_gather = {
    .shape = "x[*,D] idx[...]:i32 -> y[...,D]",
    .vjp = vjp_gather,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_gather_bwd = {
    .shape = "dy[...,D] idx[...]:i32 x[*,D] -> dx[*,D]",
    .flops = dt_flops_elements,
    .shape_only = DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF},
};

/* ---- sums along an axis ------------------------------------------------------------------------------------------ */

static void vjp_cumsum(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_CUMSUM_BWD, NULL, dy));
}

const dt_op_info dt_op_cumsum = {
    .shape = "x[...,F,P] -> y[...,F,P]",
    .vjp = vjp_cumsum,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .is_moving = true},
};

const dt_op_info dt_op_cumsum_bwd = {
    .shape = "dy[...,F,P] -> dx[...,F,P]",
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_HALF},
};

static void vjp_segment_mean(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_SEGMENT_MEAN_BWD, NULL, dy, n->in[1], n->in[0]));
}

const dt_op_info dt_op_segment_mean = {
    .shape = "x[*,D] ptr[B+1]:i32 -> y[B,D]",
    .vjp = vjp_segment_mean,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

const dt_op_info dt_op_segment_mean_bwd = {
    .shape = "dy[B,D] ptr[B+1]:i32 x[*,D] -> dx[*,D]",
    .flops = dt_flops_zero,
    .shape_only = DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF},
};

/* ---- rows added by index ----------------------------------------------------------------------------------------- */

static void vjp_scatter_add(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_GATHER, NULL, dy, n->in[1]));
}

const dt_op_info dt_op_scatter_add = {
    .shape = "x[...,D] idx[...]:i32 of[R,E] -> y[R,D]",
    .vjp = vjp_scatter_add,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .shape_only = DT_BIT(2),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- order of dimensions ----------------------------------------------------------------------------------------- */

enum { PERMUTE_MAX = 4 };

/* Digits of an order into places counted from 0; 0 when they do not name each of 2 to 4 dimensions once. */
static uint32_t decode_order(int64_t order, uint32_t place[PERMUTE_MAX])
{
    uint32_t n = 0, seen = 0;
    for (int64_t left = order; left > 0; left /= 10) {
        n++;
    }
    if (n < 2 || n > PERMUTE_MAX) {
        return 0;
    }
    for (uint32_t k = n; k-- > 0; order /= 10) {
        const int64_t digit = order % 10;
        if (digit < 1 || digit > n || (seen & DT_BIT(digit)) != 0) {
            return 0;
        }
        seen |= DT_BIT(digit);
        place[k] = (uint32_t)digit - 1;
    }
    return n;
}

static dt_status check_permute(dt_infer *q)
{
    const dt_shape *x = q->in[0];
    uint32_t place[PERMUTE_MAX] = {0};
    const uint32_t n = decode_order(q->attr.i[0], place);
    if (n == 0) {
        return dt_infer_fail(q, DT_EINVAL,
                             "order %lld must name each of the last 2 to 4 dimensions once, such as 231 or 2143",
                             (long long)q->attr.i[0]);
    }
    if (x->rank < n) {
        return fail_input(q, "the order names more dimensions");
    }
    const dt_extent *last = &x->dim[x->rank - n];
    q->lead[1] = *x;
    q->has_lead[1] = true;
    for (uint32_t k = 0; k < n; k++) {
        if (last[k].symbol >= 0) {
            return fail_input(q, "a ragged dimension cannot change its place");
        }
        q->lead[1].dim[x->rank - n + k] = last[place[k]];
    }
    return DT_OK;
}

static void vjp_permute(dt_derive *d, const dt_node *n, int32_t dy)
{
    uint32_t place[PERMUTE_MAX] = {0};
    int64_t digit[PERMUTE_MAX] = {0}, order = 0;
    const uint32_t dims = decode_order(n->attr.i[0], place);
    for (uint32_t k = 0; k < dims; k++) {
        digit[place[k]] = (int64_t)k + 1;
    }
    for (uint32_t k = 0; k < dims; k++) {
        order = 10 * order + digit[k];
    }
    const dt_attr back = {.i = {order}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_PERMUTE, &back, dy));
}

const dt_op_info dt_op_permute = {
    .shape = "x[...] -> y[*]",
    .check = check_permute,
    .vjp = vjp_permute,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

const dt_op_info dt_op_cast = {
    .shape = "x[...]:i32|u8 -> y[...]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_constant(dt_infer *q)
{
    enum { MOST = 4 };
    const int64_t n = q->attr.i[0];
    if (n < 1 || n > MOST) {
        return dt_infer_fail(q, DT_EINVAL, "%lld numbers; expected 1 to %d, and dt_constant_row for more", (long long)n,
                             MOST);
    }
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(q->attr.f[i])) {
            return dt_infer_fail(q, DT_EINVAL, "number %lld is %g, not finite", (long long)i, q->attr.f[i]);
        }
    }
    return DT_OK;
}

const dt_op_info dt_op_constant = {
    .shape = "-> y[i0]",
    .check = check_constant,
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

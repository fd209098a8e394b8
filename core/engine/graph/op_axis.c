/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the ops along an axis: reductions, transposition, products of activations, picking and unfolding. What they
 * work on are numbers; ragged dimensions may come before.
 */
#include <config.h>

#include "engine/graph/op.h"

#include <stdint.h>

/* The named extents must be numbers. */
static dt_status require_numbers(const dt_infer *q, const char *const *var, const char *const *called, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t size = 0;
        if (!dt_infer_number(q, var[i], &size)) {
            dt_str t = {0};
            for (uint32_t k = 0; k < q->n_in; k++) {
                dt_str_add(&t, k > 0 ? ", " : "");
                dt_infer_input_text(q, k, &t);
            }
            const dt_status st =
                dt_infer_fail(q, DT_ESHAPE, "%s, but %s is ragged; it must be a number", dt_str_text(&t), called[i]);
            dt_str_fini(&t);
            return st;
        }
    }
    return DT_OK;
}

/* ---- reduce ------------------------------------------------------------------------------------------------------ */

static dt_status check_reduce(dt_infer *q)
{
    static const char *const var[] = {"F", "P"};
    int64_t F = 0;
    if (q->attr.i[0] < DT_REDUCE_SUM || q->attr.i[0] > DT_REDUCE_MIN) {
        return dt_infer_fail(q, DT_EINVAL, "%lld is not one of DT_REDUCE_* (%d to %d)", (long long)q->attr.i[0],
                             DT_REDUCE_SUM, DT_REDUCE_MIN);
    }
    const dt_status st = require_numbers(q, var, var, 2);
    if (st < 0) {
        return st;
    }
    (void)dt_infer_number(q, "F", &F);
    return F > 0 ? DT_OK : dt_infer_fail(q, DT_ESHAPE, "there is nothing to reduce: F is 0");
}

static void vjp_reduce(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_shape *x = dt_derive_shape(d, n->in[0]);
    const dt_attr a = {.i = {n->attr.i[0], x->dim[x->rank - 2].size}};
    const bool is_extreme = n->attr.i[0] == DT_REDUCE_MAX || n->attr.i[0] == DT_REDUCE_MIN;
    DT_ADD_GRAD(d, n, 0,
                is_extreme ? DT_EMIT1(d, DT_OPX_REDUCE_MAX_BWD, NULL, dy, n->in[0], n->out[0])
                           : DT_EMIT1(d, DT_OPX_REDUCE_BWD, &a, dy));
}

const dt_op_info dt_op_reduce = {
    .shape = "x[...,F,P] -> y[...,P]",
    .check = check_reduce,
    .vjp = vjp_reduce,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_reduce_bwd(dt_infer *q)
{
    return q->attr.i[1] > 0 ? DT_OK : dt_infer_fail(q, DT_EINVAL, "F is %lld", (long long)q->attr.i[1]);
}

const dt_op_info dt_op_reduce_bwd = {
    .shape = "dy[...,P] -> dx[...,i1,P]",
    .check = check_reduce_bwd,
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_reduce_max_bwd = {
    .shape = "dy[...,P] x[...,F,P] y[...,P] -> dx[...,F,P]",
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- transpose --------------------------------------------------------------------------------------------------- */

static dt_status check_transpose(dt_infer *q)
{
    static const char *const var[] = {"A", "B"};
    return require_numbers(q, var, var, 2);
}

static void vjp_transpose(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_TRANSPOSE, NULL, dy));
}

const dt_op_info dt_op_transpose = {
    .shape = "x[...,A,B] -> y[...,B,A]",
    .check = check_transpose,
    .vjp = vjp_transpose,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- products of activations ------------------------------------------------------------------------------------- */

static dt_status check_matmul(dt_infer *q)
{
    static const char *const var[] = {"A", "B", "C", "D"};
    static const char *const called[] = {"the last but one dimension of a", "the last dimension of a",
                                         "the last but one dimension of b", "the last dimension of b"};
    const int64_t ta = q->attr.i[0], tb = q->attr.i[1];
    int64_t size[4] = {0};
    if (ta < 0 || ta > 1 || tb < 0 || tb > 1) {
        return dt_infer_fail(q, DT_EINVAL, "transposed is 0 or 1, not %lld and %lld", (long long)ta, (long long)tb);
    }
    const dt_status st = require_numbers(q, var, called, 4);
    if (st < 0) {
        return st;
    }
    for (uint32_t i = 0; i < 4; i++) {
        (void)dt_infer_number(q, var[i], &size[i]);
    }
    if (size[ta ? 0 : 1] != size[tb ? 3 : 2]) {
        return dt_infer_fail(q, DT_ESHAPE, "a has %lld terms for each sum, b %lld", (long long)size[ta ? 0 : 1],
                             (long long)size[tb ? 3 : 2]);
    }
    dt_infer_set(q, "M", dt_extent_number(size[ta ? 1 : 0]));
    dt_infer_set(q, "N", dt_extent_number(size[tb ? 2 : 3]));
    return DT_OK;
}

static int32_t record_matmul(dt_derive *d, int32_t a, int64_t ta, int32_t b, int64_t tb)
{
    const dt_attr attr = {.i = {ta, tb}};
    return DT_EMIT1(d, DT_OPX_MATMUL, &attr, a, b);
}

/* With op(x) = x or its transpose, y = op(a) op(b): the gradient of op(a) is dy op(b)^T, that of op(b) op(a)^T dy. */
static void vjp_matmul(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { LEFT, RIGHT };
    const int32_t a = n->in[LEFT], b = n->in[RIGHT];
    const int64_t ta = n->attr.i[0], tb = n->attr.i[1];
    DT_ADD_GRAD(d, n, RIGHT, tb ? record_matmul(d, dy, 1, a, ta) : record_matmul(d, a, !ta, dy, 0));
    DT_ADD_GRAD(d, n, LEFT, ta ? record_matmul(d, b, tb, dy, 1) : record_matmul(d, dy, 0, b, !tb));
}

/* 2 M N K for each product */
static double flops_matmul(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    const dt_view *a = &in[0];
    return 2.0 * (double)dt_view_count(&out[0]) * (double)a->dim[a->rank - (attr->i[0] ? 2 : 1)];
}

const dt_op_info dt_op_matmul = {
    .shape = "a[...,A,B] b[...,C,D] -> y[...,M,N]",
    .check = check_matmul,
    .vjp = vjp_matmul,
    .flops = flops_matmul,
    .grad_in = DT_BIT(0) | DT_BIT(1),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- pick -------------------------------------------------------------------------------------------------------- */

static dt_status check_pick(dt_infer *q)
{
    static const char *const var[] = {"M", "K"};
    const dt_status st = require_numbers(q, var, var, 2);
    int64_t K = 0;
    if (st < 0) {
        return st;
    }
    (void)dt_infer_number(q, "K", &K);
    if (q->attr.i[0] < 0 || q->attr.i[0] >= K) {
        return dt_infer_fail(q, DT_EINVAL, "column %lld of the %lld of idx does not exist", (long long)q->attr.i[0],
                             (long long)K);
    }
    return DT_OK;
}

static void vjp_pick(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_shape *x = dt_derive_shape(d, n->in[0]);
    const dt_attr a = {.i = {n->attr.i[0], x->dim[x->rank - 1].size}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_PICK_BWD, &a, dy, n->in[1]));
}

const dt_op_info dt_op_pick = {
    .shape = "x[...,M] idx[...,K]:i32 -> y[...,1]",
    .check = check_pick,
    .vjp = vjp_pick,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_pick_bwd = {
    .shape = "dy[...,1] idx[...,K]:i32 -> dx[...,i1]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- unfold ------------------------------------------------------------------------------------------------------ */

static dt_status check_unfold(dt_infer *q)
{
    static const char *const var[] = {"L", "C"};
    const int64_t K = q->attr.i[0], stride = q->attr.i[1], padding = q->attr.i[2];
    int64_t L = 0, C = 0;
    const dt_status st = require_numbers(q, var, var, 2);
    if (st < 0) {
        return st;
    }
    (void)dt_infer_number(q, "L", &L);
    (void)dt_infer_number(q, "C", &C);
    if (K < 1 || K > INT32_MAX || stride < 1 || stride > INT32_MAX) {
        return dt_infer_fail(q, DT_EINVAL, "a kernel of %lld, a stride of %lld: both must be 1 to 2147483647",
                             (long long)K, (long long)stride);
    }
    if (q->attr.i[3] < 0 || q->attr.i[3] > 1) {
        return dt_infer_fail(q, DT_EINVAL, "i3 is %lld; 1 is circular, 0 is not", (long long)q->attr.i[3]);
    }
    if (padding < 0 || padding > L || L + 2 * padding < K) {
        return dt_infer_fail(q, DT_EINVAL,
                             "padding %lld on both sides of %lld: it must be 0 to %lld, and make room for a kernel of "
                             "%lld",
                             (long long)padding, (long long)L, (long long)L, (long long)K);
    }
    dt_infer_set(q, "O", dt_extent_number((L + 2 * padding - K) / stride + 1));
    dt_infer_set(q, "W", dt_extent_number(C > INT64_MAX / K ? INT64_MAX : K * C));
    return DT_OK;
}

static void vjp_unfold(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_UNFOLD_BWD, &n->attr, dy, n->in[0]));
}

const dt_op_info dt_op_unfold = {
    .shape = "x[...,L,C] -> y[...,O,W]",
    .check = check_unfold,
    .vjp = vjp_unfold,
    .flops = dt_flops_zero,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_unfold_bwd = {
    .shape = "dy[...,O,W] x[...,L,C] -> dx[...,L,C]",
    .flops = dt_flops_elements,
    .shape_only = DT_BIT(1),
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static dt_status check_one_hot(dt_infer *q)
{
    static const char *const var[] = {"K"};
    const dt_status st = require_numbers(q, var, var, 1);
    int64_t K = 0;
    if (st < 0) {
        return st;
    }
    (void)dt_infer_number(q, "K", &K);
    if (q->attr.i[0] < 0 || q->attr.i[0] >= K) {
        return dt_infer_fail(q, DT_EINVAL, "column %lld of the %lld of idx does not exist", (long long)q->attr.i[0],
                             (long long)K);
    }
    return q->attr.i[1] >= 1 && q->attr.i[1] <= INT32_MAX
               ? DT_OK
               : dt_infer_fail(q, DT_EINVAL, "%lld columns; expected 1 to 2147483647", (long long)q->attr.i[1]);
}

const dt_op_info dt_op_one_hot = {
    .shape = "idx[...,K]:i32 -> y[...,i1]",
    .check = check_one_hot,
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_top_k(dt_infer *q)
{
    static const char *const var[] = {"M"};
    const dt_status st = require_numbers(q, var, var, 1);
    int64_t M = 0;
    if (st < 0) {
        return st;
    }
    (void)dt_infer_number(q, "M", &M);
    return q->attr.i[1] >= 1 && q->attr.i[1] <= M
               ? DT_OK
               : dt_infer_fail(q, DT_EINVAL, "the %lld greatest of %lld; expected 1 to %lld", (long long)q->attr.i[1],
                               (long long)M, (long long)M);
}

static void vjp_top_k(dt_derive *d, const dt_node *n, int32_t dy)
{
    const dt_shape *x = dt_derive_shape(d, n->in[0]);
    const dt_attr a = {.i = {0, n->attr.i[1], x->dim[x->rank - 1].size}};
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_TOP_K_BWD, &a, dy, n->out[1]));
}

/* one comparison per place and element */
static double flops_top_k(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return (double)attr->i[1] * (double)dt_view_count(&in[0]);
}

const dt_op_info dt_op_top_k = {
    .shape = "x[...,M] -> value[...,i1] index[...,i1]:i32",
    .check = check_top_k,
    .vjp = vjp_top_k,
    .flops = flops_top_k,
    .grad_in = DT_BIT(0),
    .results = 2,
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_top_k_bwd = {
    .shape = "dy[...,K] index[...,K]:i32 -> dx[...,i2]",
    .flops = dt_flops_zero,
    .storage = {.kind = DT_STORAGE_F32},
};

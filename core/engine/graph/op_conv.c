/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the convolution and of its two derivatives.
 */
#include <config.h>

#include "engine/graph/op.h"

enum { X, W, B };

static dt_status fail_shapes(const dt_infer *q, const char *why)
{
    dt_str t = {0};
    dt_infer_input_text(q, X, &t);
    dt_str_add(&t, ", ");
    dt_infer_input_text(q, W, &t);
    const dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s, but %s", dt_str_text(&t), why);
    dt_str_fini(&t);
    return st;
}

/* Output positions along a dimension of `size` with a kernel of `taps`. */
static dt_status set_positions(dt_infer *q, int64_t size, int64_t taps, int64_t padding, const char *called,
                               const char *var)
{
    const int64_t stride = q->attr.i[0], dilation = q->attr.i[3];
    if (padding < 0 || padding > INT32_MAX || taps > INT32_MAX / dilation ||
        size + 2 * padding < dilation * (taps - 1) + 1) {
        return dt_infer_fail(q, DT_EINVAL,
                             "padding %lld on both sides of %lld %s: it must be at least 0, and make room for a kernel "
                             "of %lld with dilation %lld",
                             (long long)padding, (long long)size, called, (long long)taps, (long long)dilation);
    }
    dt_infer_set(q, var, dt_extent_number((size + 2 * padding - dilation * (taps - 1) - 1) / stride + 1));
    return DT_OK;
}

static dt_status check_conv2d(dt_infer *q)
{
    static const char *const var[] = {"H", "W", "C", "M", "I", "J", "G"};
    enum { H, WIDTH, C, M, I, J, G, N_VARS };
    int64_t size[N_VARS] = {0};
    for (int k = 0; k < N_VARS; k++) {
        if (!dt_infer_number(q, var[k], &size[k]) || size[k] < 1) {
            return fail_shapes(q, "the last three dimensions of x and all of w must be numbers, at least 1");
        }
    }
    if (q->attr.i[0] < 1 || q->attr.i[0] > INT32_MAX || q->attr.i[3] < 1 || q->attr.i[3] > INT32_MAX) {
        return dt_infer_fail(q, DT_EINVAL, "a stride of %lld, a dilation of %lld: both must be 1 to 2147483647",
                             (long long)q->attr.i[0], (long long)q->attr.i[3]);
    }
    if (size[C] % size[G] != 0 || size[M] % (size[C] / size[G]) != 0) {
        return fail_shapes(q, "the last dimension of w must divide the channels of x into groups, and the number of "
                              "groups must divide the first dimension of w");
    }
    const dt_status st = set_positions(q, size[H], size[I], q->attr.i[1], "rows", "P");
    return st < 0 ? st : set_positions(q, size[WIDTH], size[J], q->attr.i[2], "columns", "Q");
}

static void vjp_conv2d(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, W, DT_EMIT1(d, DT_OPX_CONV2D_DW, &n->attr, n->in[X], dy, n->in[W]));
    DT_ADD_GRAD(d, n, B, DT_EMIT1(d, DT_OPX_COLSUM, NULL, dy));
    DT_ADD_GRAD(d, n, X, DT_EMIT1(d, DT_OPX_CONV2D_DX, &n->attr, dy, n->in[W], n->in[X]));
}

/* 2 R P Q M I J G: each position of y by all of w */
static double flops_of(const dt_view *y, const dt_view *w)
{
    return 2.0 * (double)dt_view_rows(y, 1) * (double)dt_view_count(w);
}

static double flops_conv2d(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)attr;
    return flops_of(&out[0], &in[W]);
}

static double flops_conv2d_dx(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return flops_of(&in[0], &in[1]);
}

static double flops_conv2d_dw(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)attr;
    return flops_of(&in[1], &out[0]);
}

const dt_op_info dt_op_conv2d = {
    .shape = "x[...,H,W,C] w[M,I,J,G] b?[M] -> y[...,P,Q,M]",
    .check = check_conv2d,
    .vjp = vjp_conv2d,
    .flops = flops_conv2d,
    .grad_in = DT_BIT(X) | DT_BIT(W) | DT_BIT(B),
    .storage = {.kind = DT_STORAGE_HALF, .weight_in = DT_BIT(W) | DT_BIT(B)},
};

const dt_op_info dt_op_conv2d_dx = {
    .shape = "dy[...,P,Q,M] w[M,I,J,G] x[...,H,W,C] -> dx[...,H,W,C]",
    .flops = flops_conv2d_dx,
    .shape_only = DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF, .weight_in = DT_BIT(1)},
};

const dt_op_info dt_op_conv2d_dw = {
    .shape = "x[...,H,W,C] dy[...,P,Q,M] w[M,I,J,G] -> dw[M,I,J,G]",
    .flops = flops_conv2d_dw,
    .accum = DT_BIT(0),
    .shape_only = DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF},
};

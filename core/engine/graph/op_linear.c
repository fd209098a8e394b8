/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the matrix products and of the sums that belong to them.
 */
#include <config.h>

#include "engine/graph/op.h"

/* 2 R K M, from x[...,K] or dy[...,M] and w[M,K] */
static double flops_linear(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return 2.0 * (double)dt_view_rows(&in[0], 1) * (double)dt_view_count(&in[1]);
}

/* x[...,K] dy[...,M] */
static double flops_linear_dw(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 2.0 * (double)dt_view_rows(&in[0], 1) * (double)dt_view_count(&out[0]);
}

/* y = x w^T + b:  dx = dy w,  dw = dy^T x,  db = sum of dy over rows */
static void vjp_linear(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { X, W, B };
    DT_ADD_GRAD(d, n, W, DT_EMIT1(d, DT_OPX_LINEAR_DW, NULL, n->in[X], dy));
    DT_ADD_GRAD(d, n, B, DT_EMIT1(d, DT_OPX_COLSUM, NULL, dy));
    DT_ADD_GRAD(d, n, X, DT_EMIT1(d, DT_OPX_LINEAR_DX, NULL, dy, n->in[W]));
}

const dt_op_info dt_op_linear = {
    .shape = "x[...,K] w[M,K] b?[M] -> y[...,M]",
    .vjp = vjp_linear,
    .flops = flops_linear,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF, .weight_in = DT_BIT(1) | DT_BIT(2)},
};

const dt_op_info dt_op_linear_dx = {
    .shape = "dy[...,M] w[M,K] -> dx[...,K]",
    .flops = flops_linear,
    .storage = {.kind = DT_STORAGE_HALF, .weight_in = DT_BIT(1)},
};

const dt_op_info dt_op_linear_dw = {
    .shape = "x[...,K] dy[...,M] -> dw[M,K]",
    .flops = flops_linear_dw,
    .accum = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF},
};

const dt_op_info dt_op_colsum = {
    .shape = "dy[...,M] -> s[M]",
    .flops = dt_flops_elements,
    .accum = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .full_out = DT_BIT(0)},
};

const dt_op_info dt_op_rowsum = {
    .shape = "x[...,D] -> s[...,1]",
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_HALF, .full_out = DT_BIT(0)},
};

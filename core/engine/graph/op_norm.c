/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisation of rows and of columns, and softmax.
 */
#include <config.h>

#include "engine/graph/op.h"

/* about eight operations per element forward, sixteen backward */
static double flops_layernorm(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 8 * dt_flops_elements(in, out, attr);
}

static double flops_layernorm_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 16 * dt_flops_elements(in, out, attr);
}

static dt_status check_layernorm(dt_infer *q)
{
    if (!(q->attr.f[0] > 0)) {
        return dt_infer_fail(q, DT_EINVAL, "epsilon %g must be positive", q->attr.f[0]);
    }
    return DT_OK;
}

/* v = x + r: both get the gradient of v. */
static void vjp_layernorm(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { X, GAMMA, BETA, R };
    int32_t b = DT_EMIT(d, DT_OPX_LAYERNORM_BWD, &n->attr, dy, n->in[X], n->in[GAMMA], n->in[R], n->out[1]);
    DT_ADD_GRAD(d, n, GAMMA, dt_derive_output(d, b, 1));
    DT_ADD_GRAD(d, n, BETA, dt_derive_output(d, b, 2));
    DT_ADD_GRAD(d, n, R, dt_derive_output(d, b, 0));
    DT_ADD_GRAD(d, n, X, dt_derive_output(d, b, 0));
}

const dt_op_info dt_op_layernorm = {
    .shape = "x[...,D] gamma[D] beta[D] r?[...,D] -> y[...,D] stat[...,2]",
    .check = check_layernorm,
    .vjp = vjp_layernorm,
    .flops = flops_layernorm,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(3),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(1) | DT_BIT(2),
                .full_out = DT_BIT(1),
                .alike_in = DT_BIT(0) | DT_BIT(3),
                .alike_out = DT_BIT(0)},
};

const dt_op_info dt_op_layernorm_bwd = {
    .shape = "dy[...,D] x[...,D] gamma[D] r?[...,D] stat[...,2] -> dx[...,D] dgamma[D] dbeta[D]",
    .flops = flops_layernorm_bwd,
    .accum = DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(2) | DT_BIT(4),
                .full_out = DT_BIT(1) | DT_BIT(2),
                .alike_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(3),
                .alike_out = DT_BIT(0)},
};

/* ---- batch norm -------------------------------------------------------------------------------------------------- */

static dt_status check_batch_norm(dt_infer *q)
{
    const dt_shape *x = q->in[0];
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < x->rank; i++) {
        rows = x->dim[i].symbol >= 0 ? 2 : rows * x->dim[i].size;
    }
    if (rows < 2) {
        return dt_infer_fail(q, DT_ESHAPE,
                             "x has one row, so its columns have no variance; expected [...,D] with a number of rows");
    }
    if (!(q->attr.f[0] > 0)) {
        return dt_infer_fail(q, DT_EINVAL, "epsilon %g must be positive", q->attr.f[0]);
    }
    if (!(q->attr.f[1] >= 0 && q->attr.f[1] <= 1)) {
        return dt_infer_fail(q, DT_EINVAL, "momentum %g, the weight of new statistics, must be 0 to 1", q->attr.f[1]);
    }
    return DT_OK;
}

static void vjp_batch_norm(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { X, GAMMA, BETA, MEAN, VAR, MASK };
    int32_t b = DT_EMIT(d, DT_OPX_BATCH_NORM_BWD, &n->attr, dy, n->in[X], n->in[GAMMA], n->out[1],
                        n->n_in > MASK ? n->in[MASK] : -1);
    DT_ADD_GRAD(d, n, GAMMA, dt_derive_output(d, b, 1));
    DT_ADD_GRAD(d, n, BETA, dt_derive_output(d, b, 2));
    DT_ADD_GRAD(d, n, X, dt_derive_output(d, b, 0));
    for (uint32_t k = MEAN; k <= VAR && n->attr.i[0] == 0; k++) {
        if (dt_derive_moves_statistic(d, n, k)) {
            dt_derive_add_grad(d, n, k, dt_derive_output(d, b, k));
        }
    }
}

const dt_op_info dt_op_batch_norm = {
    .shape = "x[...,D] gamma[D] beta[D] mean[D] var[D] mask?[...] -> y[...,D] stat[4,D]",
    .check = check_batch_norm,
    .vjp = vjp_batch_norm,
    .flops = flops_layernorm,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4) | DT_BIT(5),
                .full_out = DT_BIT(1),
                .alike_in = DT_BIT(0),
                .alike_out = DT_BIT(0)},
};

const dt_op_info dt_op_batch_norm_bwd = {
    .shape = "dy[...,D] x[...,D] gamma[D] stat[4,D] mask?[...] -> dx[...,D] dgamma[D] dbeta[D] dmean[D] dvar[D]",
    .flops = flops_layernorm_bwd,
    .accum = DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
                .full_out = DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
                .alike_in = DT_BIT(0) | DT_BIT(1),
                .alike_out = DT_BIT(0)},
};

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static void vjp_softmax(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_SOFTMAX_BWD, NULL, dy, n->out[0]));
}

const dt_op_info dt_op_softmax = {
    .shape = "x[...,D] -> y[...,D]",
    .vjp = vjp_softmax,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_HALF, .alike_in = DT_BIT(0), .alike_out = DT_BIT(0)},
};

const dt_op_info dt_op_softmax_bwd = {
    .shape = "dy[...,D] y[...,D] -> dx[...,D]",
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_HALF, .alike_in = DT_BIT(0) | DT_BIT(1), .alike_out = DT_BIT(0)},
};

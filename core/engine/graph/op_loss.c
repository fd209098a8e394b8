/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the sums and losses: f64 scalars that the plan adds up over slices.
 */
#include <config.h>

#include "engine/graph/op.h"

static void vjp_sum(dt_derive *d, const dt_node *n, int32_t ds)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_SUM_BWD, NULL, ds, n->in[0]));
}

const dt_op_info dt_op_sum = {
    .shape = "x[...] -> s[1]:f64",
    .vjp = vjp_sum,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_sum_bwd = {
    .shape = "ds[1]:f64 x[...] -> dx[...]",
    .flops = dt_flops_zero,
    .shape_only = DT_BIT(1),
    .storage = {.kind = DT_STORAGE_F32},
};

static void vjp_gaussian_nll(dt_derive *d, const dt_node *n, int32_t ds)
{
    const int32_t *in = n->in;
    int32_t b = DT_EMIT(d, DT_OPX_GAUSSIAN_NLL_BWD, NULL, ds, in[0], in[1], in[2], in[3]);
    DT_ADD_GRAD(d, n, 0, dt_derive_output(d, b, 0));
    DT_ADD_GRAD(d, n, 1, dt_derive_output(d, b, 1));
}

const dt_op_info dt_op_gaussian_nll = {
    .shape = "mean[...,P] log_sigma[...,P] target[...,P] weight[...] -> s[1]:f64",
    .vjp = vjp_gaussian_nll,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0) | DT_BIT(1),
    .storage = {.kind = DT_STORAGE_F32},
};

static double flops_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return dt_flops_ten(in + 1, out, attr); /* input 0 is the scalar ds */
}

const dt_op_info dt_op_gaussian_nll_bwd = {
    .shape = "ds[1]:f64 mean[...,P] log_sigma[...,P] target[...,P] weight[...] -> dmean[...,P] dlog_sigma[...,P]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

/* The three below share one form: prediction, target, weight -> scalar; the gradient goes to the prediction. */
static void add_prediction_grad(dt_derive *d, const dt_node *n, int32_t ds, uint32_t op)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, op, &n->attr, ds, n->in[0], n->in[1], n->in[2]));
}

static void vjp_bce_logits(dt_derive *d, const dt_node *n, int32_t ds)
{
    add_prediction_grad(d, n, ds, DT_OPX_BCE_LOGITS_BWD);
}

const dt_op_info dt_op_bce_logits = {
    .shape = "logit[...] target[...] weight[...] -> s[1]:f64",
    .vjp = vjp_bce_logits,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_bce_logits_bwd = {
    .shape = "ds[1]:f64 logit[...] target[...] weight[...] -> dlogit[...]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

static void vjp_mse(dt_derive *d, const dt_node *n, int32_t ds)
{
    add_prediction_grad(d, n, ds, DT_OPX_MSE_BWD);
}

const dt_op_info dt_op_mse = {
    .shape = "pred[...,P] target[...,P] weight[...] -> s[1]:f64",
    .vjp = vjp_mse,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_mse_bwd = {
    .shape = "ds[1]:f64 pred[...,P] target[...,P] weight[...] -> dpred[...,P]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_huber(dt_infer *q)
{
    if (!(q->attr.f[0] > 0)) {
        return dt_infer_fail(q, DT_EINVAL, "delta %g must be positive", q->attr.f[0]);
    }
    return DT_OK;
}

static void vjp_huber(dt_derive *d, const dt_node *n, int32_t ds)
{
    add_prediction_grad(d, n, ds, DT_OPX_HUBER_BWD);
}

const dt_op_info dt_op_huber = {
    .shape = "pred[...,P] target[...,P] weight[...] -> s[1]:f64",
    .check = check_huber,
    .vjp = vjp_huber,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_huber_bwd = {
    .shape = "ds[1]:f64 pred[...,P] target[...,P] weight[...] -> dpred[...,P]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the ops that reinforcement learning needs, each a value per row: log-probability and entropy of what was
 * drawn, the clipped surrogate, the loss of a value.
 */
#include <config.h>

#include "engine/graph/op.h"

#include <math.h>

static double flops_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return dt_flops_ten(in + 2, out, attr); /* after the gradients of two results */
}

/* "logits is A 3 f32 but ..." for input k */
static dt_status fail_input(const dt_infer *q, uint32_t k, const char *why)
{
    dt_str t = {0};
    dt_infer_input_text(q, k, &t);
    dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s but %s", dt_str_text(&t), why);
    dt_str_fini(&t);
    return st;
}

/* ---- what was drawn ---------------------------------------------------------------------------------------------- */

static dt_status check_categorical(dt_infer *q)
{
    int64_t M = 0, K = 0;
    if (!dt_infer_number(q, "M", &M)) {
        return fail_input(q, 0, "choices cannot be ragged");
    }
    if (!dt_infer_number(q, "K", &K)) {
        return fail_input(q, 1, "its columns cannot be ragged");
    }
    if (q->attr.i[0] < 0 || q->attr.i[0] >= K) {
        return dt_infer_fail(q, DT_EINVAL, "action has no column %lld, it has %lld", (long long)q->attr.i[0],
                             (long long)K);
    }
    return DT_OK;
}

static void vjp_categorical(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t *in = n->in;
    DT_ADD_GRAD(d, n, 0,
                DT_EMIT1(d, DT_OPX_CATEGORICAL_BWD, &n->attr, dy, dt_derive_output_grad(d, n, 1), in[0], in[1], in[2]));
}

const dt_op_info dt_op_categorical = {
    .shape = "logits[...,M] action[...,K]:i32 mask?[...,M] -> log_prob[...] entropy[...]",
    .check = check_categorical,
    .vjp = vjp_categorical,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .results = 2,
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_categorical_bwd = {
    .shape = "dlog_prob?[...] dentropy?[...] logits[...,M] action[...,K]:i32 mask?[...,M] -> dlogits[...,M]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

enum { MEAN, LOG_STD, ACTION };

/* log_std: one row for all, or a row of its own for each */
static dt_status check_gaussian(dt_infer *q)
{
    int64_t P = 0;
    if (!dt_infer_number(q, "P", &P)) {
        return fail_input(q, MEAN, "its last dimension cannot be ragged");
    }
    if (q->lead[1].rank > 0 && !dt_shape_equal(&q->lead[0], &q->lead[1])) {
        return fail_input(q, LOG_STD, "must have the shape of mean or be one row [P]");
    }
    return DT_OK;
}

static void vjp_gaussian(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t *in = n->in;
    const int32_t b =
        DT_EMIT(d, DT_OPX_GAUSSIAN_BWD, NULL, dy, dt_derive_output_grad(d, n, 1), in[MEAN], in[LOG_STD], in[ACTION]);
    const int32_t rows = dt_derive_output(d, b, 1);
    if (dt_derive_needs_grad(d, n, LOG_STD)) {
        const bool is_shared = dt_derive_shape(d, in[LOG_STD])->rank < dt_derive_shape(d, in[MEAN])->rank;
        dt_derive_add_grad(d, n, LOG_STD, is_shared ? DT_EMIT1(d, DT_OPX_COLSUM, NULL, rows) : rows);
    }
    DT_ADD_GRAD(d, n, MEAN, dt_derive_output(d, b, 0));
}

const dt_op_info dt_op_gaussian = {
    .shape = "mean[...,P] log_std[*,P] action[...,P] -> log_prob[...] entropy[...]",
    .check = check_gaussian,
    .vjp = vjp_gaussian,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(MEAN) | DT_BIT(LOG_STD),
    .results = 2,
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_gaussian_bwd = {
    .shape = "dlog_prob?[...] dentropy?[...] mean[...,P] log_std[*,P] action[...,P] -> dmean[...,P] dlog_std[...,P]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

/* ---- losses of rows ---------------------------------------------------------------------------------------------- */

static dt_status check_ppo_clip(dt_infer *q)
{
    const double low = q->attr.f[0], high = q->attr.f[1];
    if (!(low >= 0 && low < 1)) {
        return dt_infer_fail(q, DT_EINVAL, "clip below %g is outside [0,1)", low);
    }
    if (!(high >= 0 && isfinite(high))) {
        return dt_infer_fail(q, DT_EINVAL, "clip above %g must be finite and not negative", high);
    }
    return DT_OK;
}

static void vjp_ppo_clip(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t *in = n->in, dkl = dt_derive_output_grad(d, n, 1);
    if (dy >= 0 || dkl >= 0) { /* clipped alone has none */
        DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_PPO_CLIP_BWD, &n->attr, dy, dkl, in[0], in[1], in[2]));
    }
}

const dt_op_info dt_op_ppo_clip = {
    .shape = "log_prob[...] old[...] advantage[...] -> loss[...] kl[...] clipped[...]",
    .check = check_ppo_clip,
    .vjp = vjp_ppo_clip,
    .flops = dt_flops_ten,
    .grad_in = DT_BIT(0),
    .results = 3,
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_ppo_clip_bwd = {
    .shape = "dloss?[...] dkl?[...] log_prob[...] old[...] advantage[...] -> dlog_prob[...]",
    .flops = flops_bwd,
    .storage = {.kind = DT_STORAGE_F32},
};

static dt_status check_value_loss(dt_infer *q)
{
    enum { OLD = 2 };
    const int64_t how = q->attr.i[0];
    if (how < DT_VALUE_PLAIN || how > DT_VALUE_CLIP_ERROR) {
        return dt_infer_fail(q, DT_EINVAL, "%lld is not one of DT_VALUE_* (%d to %d)", (long long)how, DT_VALUE_PLAIN,
                             DT_VALUE_CLIP_ERROR);
    }
    if (how != DT_VALUE_PLAIN && !(q->attr.f[0] > 0)) {
        return dt_infer_fail(q, DT_EINVAL, "clip %g must be positive", q->attr.f[0]);
    }
    if ((how == DT_VALUE_CLIP_STEP) != (q->in[OLD] != NULL)) {
        return dt_infer_fail(q, DT_EINVAL, "old is %s; CLIP_STEP needs it, the others do without",
                             q->in[OLD] != NULL ? "given" : "missing");
    }
    return DT_OK;
}

static void vjp_value_loss(dt_derive *d, const dt_node *n, int32_t dy)
{
    DT_ADD_GRAD(d, n, 0, DT_EMIT1(d, DT_OPX_VALUE_LOSS_BWD, &n->attr, dy, n->in[0], n->in[1], n->in[2]));
}

const dt_op_info dt_op_value_loss = {
    .shape = "value[...] target[...] old?[...] -> y[...]",
    .check = check_value_loss,
    .vjp = vjp_value_loss,
    .flops = dt_flops_elements,
    .grad_in = DT_BIT(0),
    .storage = {.kind = DT_STORAGE_F32},
};

const dt_op_info dt_op_value_loss_bwd = {
    .shape = "dy[...] value[...] target[...] old?[...] -> dvalue[...]",
    .flops = dt_flops_elements,
    .storage = {.kind = DT_STORAGE_F32},
};

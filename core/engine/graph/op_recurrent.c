/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the recurrent layers, whole sequences at once.
 */
#include <config.h>

#include "engine/graph/op.h"

/* T S steps, each a product of [H] with wh[G H, H] and some twenty operations per unit */
static double flops_cell(const dt_view *x, const dt_view *wh)
{
    double rows = (double)(x->dim[0] * x->dim[1]);
    return rows * (2.0 * (double)dt_view_count(wh) + 20.0 * (double)wh->dim[1]);
}

static double flops_lstm(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return flops_cell(&in[0], &in[1]);
}

static double flops_lstm_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return 2 * flops_cell(&in[0], &in[4]);
}

static double flops_gru_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    (void)out, (void)attr;
    return 2 * flops_cell(&in[0], &in[3]);
}

static dt_status check_cell(dt_infer *q)
{
    int64_t T = 0;
    if (!dt_infer_number(q, "T", &T)) {
        return dt_infer_fail(q, DT_ESHAPE, "the number of time steps (first dimension of xw) must not be ragged");
    }
    return DT_OK;
}

static void vjp_lstm(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { XW, WH, PRESENT, H = 0, GATES, C };
    int32_t b =
        DT_EMIT(d, DT_OPX_LSTM_BWD, &n->attr, dy, n->out[H], n->out[GATES], n->out[C], n->in[WH], n->in[PRESENT]);
    DT_ADD_GRAD(d, n, WH, dt_derive_output(d, b, 1));
    DT_ADD_GRAD(d, n, XW, dt_derive_output(d, b, 0));
}

const dt_op_info dt_op_lstm = {
    .shape = "xw[T,S,4H] wh[4H,H] present?[T,S] -> h[T,S,H] gates[T,S,4H] c[T,S,H]",
    .check = check_cell,
    .vjp = vjp_lstm,
    .flops = flops_lstm,
    .grad_in = DT_BIT(0) | DT_BIT(1),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(2),
                .full_out = DT_BIT(2),
                .alike_in = DT_BIT(0) | DT_BIT(1),
                .alike_out = DT_BIT(0) | DT_BIT(1),
                .weight_in = DT_BIT(1)},
};

const dt_op_info dt_op_lstm_bwd = {
    .shape = "dy[T,S,H] h[T,S,H] gates[T,S,4H] c[T,S,H] wh[4H,H] present?[T,S] -> dxw[T,S,4H] dwh[4H,H]",
    .flops = flops_lstm_bwd,
    .accum = DT_BIT(1),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(3) | DT_BIT(5),
                .full_out = DT_BIT(1),
                .alike_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(4),
                .alike_out = DT_BIT(0),
                .weight_in = DT_BIT(4)},
};

static void vjp_gru(dt_derive *d, const dt_node *n, int32_t dy)
{
    enum { XW, WH, BH, PRESENT, H = 0, GATES };
    int32_t b = DT_EMIT(d, DT_OPX_GRU_BWD, &n->attr, dy, n->out[H], n->out[GATES], n->in[WH], n->in[PRESENT]);
    DT_ADD_GRAD(d, n, WH, dt_derive_output(d, b, 1));
    DT_ADD_GRAD(d, n, BH, dt_derive_output(d, b, 2));
    DT_ADD_GRAD(d, n, XW, dt_derive_output(d, b, 0));
}

const dt_op_info dt_op_gru = {
    .shape = "xw[T,S,3H] wh[3H,H] bh[3H] present?[T,S] -> h[T,S,H] gates[T,S,4H]",
    .check = check_cell,
    .vjp = vjp_gru,
    .flops = flops_lstm,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(2) | DT_BIT(3),
                .alike_in = DT_BIT(0) | DT_BIT(1),
                .alike_out = DT_BIT(0) | DT_BIT(1),
                .weight_in = DT_BIT(1)},
};

const dt_op_info dt_op_gru_bwd = {
    .shape = "dy[T,S,H] h[T,S,H] gates[T,S,4H] wh[3H,H] present?[T,S] -> dxw[T,S,3H] dwh[3H,H] dbh[3H]",
    .flops = flops_gru_bwd,
    .accum = DT_BIT(1) | DT_BIT(2),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(4),
                .full_out = DT_BIT(1) | DT_BIT(2),
                .alike_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(3),
                .alike_out = DT_BIT(0),
                .weight_in = DT_BIT(3)},
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of attention over the edges of a ragged graph (CSR by target).
 */
#include <config.h>

#include "engine/graph/op.h"
#include "base/err.h"

/* The number of heads (attr i0) must divide the width of the first input. */
static dt_status check_heads(dt_infer *q)
{
    int64_t heads = q->attr.i[0], width = 0;
    dt_str t = {0};
    dt_status st = DT_OK;
    if (!dt_infer_number(q, "HC", &width)) {
        dt_infer_input_text(q, 0, &t);
        st = dt_infer_fail(q, DT_ESHAPE, "%s but its width must be a number", dt_str_text(&t));
    } else if (heads < 1 || width % heads != 0) {
        dt_infer_input_text(q, 0, &t);
        st = dt_infer_fail(q, DT_ESHAPE, "%s but heads %lld does not divide %lld", dt_str_text(&t), (long long)heads,
                           (long long)width);
    }
    dt_str_fini(&t);
    return st;
}

/* An input with one number per head must have as many as there are heads. */
static dt_status check_per_head(dt_infer *q, uint32_t k, dt_extent e)
{
    if (q->in[k] == NULL || dt_extent_equal(e, dt_extent_number(q->attr.i[0]))) {
        return DT_OK;
    }
    dt_str t = {0};
    dt_infer_input_text(q, k, &t);
    dt_status st = dt_infer_fail(q, DT_ESHAPE, "%s but there are %lld heads", dt_str_text(&t), (long long)q->attr.i[0]);
    dt_str_fini(&t);
    return st;
}

/* ---- GAT --------------------------------------------------------------------------------------------------------- */

/* per edge: logit and softmax of H heads, the weighted sum of H C */
static double flops_gat(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    double n = (double)in[0].dim[0], hc = (double)in[0].dim[1], e = (double)in[6].dim[0];
    double k = in[4].rank == 2 ? (double)in[4].dim[1] : 0, h = (double)attr->i[0];
    return 4 * n * hc + e * (2 * hc + h * (2 * k + 12));
}

static double flops_gat_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 3 * flops_gat(in + 1, out, attr); /* inputs follow dy */
}

static dt_status check_gat(dt_infer *q)
{
    enum { E = 3, W_E = 4 };
    DT_TRY(check_heads(q));
    if ((q->in[E] == NULL) != (q->in[W_E] == NULL)) {
        return dt_infer_fail(q, DT_EINVAL, "edge features e and their weights w_e are given together or not at all");
    }
    if (q->in[W_E] != NULL) {
        DT_TRY(check_per_head(q, W_E, q->in[W_E]->dim[0]));
    }
    dt_infer_set(q, "H", dt_extent_number(q->attr.i[0]));
    return DT_OK;
}

static void vjp_gat(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t *in = n->in;
    int32_t b = DT_EMIT(d, DT_OPX_GAT_BWD, &n->attr, dy, in[0], in[1], in[2], in[3], in[4], in[5], in[6], n->out[1]);
    for (uint32_t k = 0; k < 5; k++) {
        DT_ADD_GRAD(d, n, k, dt_derive_output(d, b, k));
    }
}

const dt_op_info dt_op_gat = {
    .shape = "h[N,HC] a_dst[HC] a_src[HC] e?[E,K] w_e?[H,K] rowptr[N+1]:i32 col[E]:i32 -> y[N,HC] prob[E,H]",
    .check = check_gat,
    .vjp = vjp_gat,
    .flops = flops_gat,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
                .full_out = DT_BIT(1),
                .alike_in = DT_BIT(0),
                .alike_out = DT_BIT(0)},
};

const dt_op_info dt_op_gat_bwd = {
    .shape = "dy[N,HC] h[N,HC] a_dst[HC] a_src[HC] e?[E,K] w_e?[H,K] rowptr[N+1]:i32 col[E]:i32 prob[E,H] -> "
             "dh[N,HC] da_dst[HC] da_src[HC] de[E,K] dw_e[H,K]",
    .flops = flops_gat_bwd,
    .accum = DT_BIT(1) | DT_BIT(2) | DT_BIT(4),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(2) | DT_BIT(3) | DT_BIT(4) | DT_BIT(5) | DT_BIT(8),
                .full_out = DT_BIT(1) | DT_BIT(2) | DT_BIT(3) | DT_BIT(4),
                .alike_in = DT_BIT(0) | DT_BIT(1),
                .alike_out = DT_BIT(0)},
};

/* ---- GRAPH_QK ---------------------------------------------------------------------------------------------------- */

/* k and v are of the N targets themselves or of M other rows: only columns determine which. */

static double flops_graph_qk(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return (double)in[5].dim[0] * (4 * (double)in[0].dim[1] + 12 * (double)attr->i[0]);
}

static double flops_graph_qk_bwd(const dt_view *in, const dt_view *out, const dt_attr *attr)
{
    return 3 * flops_graph_qk(in + 1, out, attr);
}

static dt_status check_graph_qk(dt_infer *q)
{
    enum { BIAS = 3 };
    DT_TRY(check_heads(q));
    if (q->in[BIAS] != NULL) {
        DT_TRY(check_per_head(q, BIAS, q->in[BIAS]->dim[1]));
    }
    dt_infer_set(q, "H", dt_extent_number(q->attr.i[0]));
    return DT_OK;
}

static void vjp_graph_qk(dt_derive *d, const dt_node *n, int32_t dy)
{
    const int32_t *in = n->in;
    int32_t b = DT_EMIT(d, DT_OPX_GRAPH_QK_BWD, &n->attr, dy, in[0], in[1], in[2], in[3], in[4], in[5], n->out[1]);
    for (uint32_t k = 0; k < 4; k++) {
        DT_ADD_GRAD(d, n, k, dt_derive_output(d, b, k));
    }
}

const dt_op_info dt_op_graph_qk = {
    .shape = "q[N,HC] k[M,HC] v[M,HC] bias?[E,H] rowptr[N+1]:i32 col[E]:i32 -> y[N,HC] prob[E,H]",
    .check = check_graph_qk,
    .vjp = vjp_graph_qk,
    .flops = flops_graph_qk,
    .grad_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(3),
    .storage = {.kind = DT_STORAGE_HALF,
                .full_out = DT_BIT(1),
                .alike_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2),
                .alike_out = DT_BIT(0)},
};

const dt_op_info dt_op_graph_qk_bwd = {
    .shape = "dy[N,HC] q[N,HC] k[M,HC] v[M,HC] bias?[E,H] rowptr[N+1]:i32 col[E]:i32 prob[E,H] -> "
             "dq[N,HC] dk[M,HC] dv[M,HC] dbias[E,H]",
    .flops = flops_graph_qk_bwd,
    .storage = {.kind = DT_STORAGE_HALF,
                .full_in = DT_BIT(7),
                .alike_in = DT_BIT(0) | DT_BIT(1) | DT_BIT(2) | DT_BIT(3),
                .alike_out = DT_BIT(0) | DT_BIT(1) | DT_BIT(2)},
};

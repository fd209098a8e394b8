/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead code, and fusion of neighbouring nodes that one kernel computes. See passes.h.
 */
#include <config.h>

#include "engine/graph/passes.h"
#include "engine/graph/op.h"
#include "base/err.h"
#include "base/mem.h"

static dt_status drop_dead_nodes(dt_ir *ir, bool keeps_shapes)
{
    bool *live = dt_alloc_n((size_t)ir->n_values, sizeof(*live));
    if (live == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", ir->n_values);
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        live[ir->loss[i].value] = true;
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        live[ir->output[i].value] = true;
    }
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) {
        dt_node *n = &ir->node[i];
        bool is_live = false;
        for (uint32_t k = 0; k < n->n_out; k++) {
            is_live = is_live || live[n->out[k]] || ir->value[n->out[k]].kind == DT_VALUE_GRAD;
        }
        if (!is_live) {
            n->op = 0;
            continue;
        }
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (keeps_shapes ? n->in[k] >= 0 : dt_ir_reads(n, k)) {
                live[n->in[k]] = true;
            }
        }
    }
    dt_free(live);
    dt_ir_index(ir);
    return DT_OK;
}

dt_status dt_pass_drop_dead(dt_ir *ir)
{
    return drop_dead_nodes(ir, false);
}

dt_status dt_pass_drop_dead_keep_shapes(dt_ir *ir)
{
    return drop_dead_nodes(ir, true);
}

/* ---- fusion ------------------------------------------------------------------------------------------------------ */

/* The node that writes v, if it has this op and is in the same recompute region as n. */
static dt_node *find_producer(dt_ir *ir, int32_t v, uint32_t op, const dt_node *n)
{
    int32_t i = ir->value[v].kind == DT_VALUE_NODE ? ir->value[v].producer : -1;
    if (i < 0 || ir->node[i].op != op || ir->node[i].region != n->region) {
        return NULL;
    }
    return &ir->node[i];
}

/* u = x w^T + b, y = f(u)  ->  y = f(x w^T + b) */
static bool fuse_linear(dt_ir *ir, dt_node *unary)
{
    if (dt_unary_needs_input(unary->attr.i[0])) {
        return false;
    }
    int32_t u = unary->in[0];
    dt_node *linear = find_producer(ir, u, DT_OPX_LINEAR, unary);
    if (linear == NULL || linear->attr.i[0] != 0 || ir->value[u].n_uses != 1) {
        return false;
    }
    linear->attr.i[0] = unary->attr.i[0];
    linear->attr.f[0] = unary->attr.f[0];
    linear->out[0] = unary->out[0];
    ir->value[linear->out[0]].producer = ir->value[u].producer;
    unary->op = 0;
    return true;
}

/* v = a + b, y = layernorm(v)  ->  y = layernorm(a, residual b), in the derivative as well */
static bool fuse_residual(dt_ir *ir, dt_node *norm)
{
    enum { X, GAMMA, BETA, R, BWD_X = 1, BWD_R = 3, BWD_STAT = 4 };
    int32_t v = norm->in[X];
    dt_node *sum = norm->in[R] < 0 ? find_producer(ir, v, DT_OPX_BINARY, norm) : NULL;
    if (sum == NULL || sum->attr.i[0] != DT_BIN_ADD ||
        !dt_shape_equal(&ir->value[sum->in[0]].shape, &ir->value[sum->in[1]].shape)) {
        return false;
    }
    dt_node *backward = NULL;
    for (dt_node *n = ir->node; n < ir->node + ir->n_nodes; n++) {
        if (n->op == DT_OPX_LAYERNORM_BWD && n->in[BWD_X] == v && n->in[BWD_STAT] == norm->out[1]) {
            backward = n;
        }
    }
    if (ir->value[v].n_uses != (backward != NULL ? 2u : 1u)) {
        return false;
    }
    norm->in[X] = sum->in[0];
    norm->in[R] = sum->in[1];
    if (backward != NULL) {
        backward->in[BWD_X] = sum->in[0];
        backward->in[BWD_R] = sum->in[1];
    }
    sum->op = 0;
    return true;
}

void dt_pass_fuse(dt_ir *ir, uint32_t *n_p)
{
    uint32_t n_fused = 0;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        dt_node *n = &ir->node[i];
        if (n->op == DT_OPX_UNARY) {
            if (fuse_linear(ir, n)) {
                n_fused++;
            }
        } else if (n->op == DT_OPX_LAYERNORM) {
            if (fuse_residual(ir, n)) {
                n_fused++;
            }
        }
    }
    dt_ir_index(ir);
    *n_p = n_fused;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/graph/storage.h"

#include "engine/graph/op.h"

/* ---- marks ------------------------------------------------------------------------------------------------------- */

/* f32 from now on; true when it was not. */
static bool mark_f32(dt_ir *ir, int32_t v)
{
    const bool was_half = v >= 0 && ir->value[v].is_half;
    if (was_half) {
        ir->value[v].is_half = false;
    }
    return was_half;
}

/* Can the value be the one that keeps others in f32? Not an absent one, nor a parameter with a copy in half. */
static bool can_keep_f32(const dt_ir *ir, int32_t v, bool is_weight)
{
    return v >= 0 && !ir->value[v].is_half && !(is_weight && ir->value[v].kind == DT_VALUE_PARAM);
}

static bool keep_operands_alike(dt_ir *ir, const dt_node *n, const dt_op_storage *r)
{
    bool any_full = false, is_changed = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const bool counts = (r->alike_in & DT_BIT(k)) != 0 && dt_ir_reads(n, k);
        any_full = any_full || (counts && can_keep_f32(ir, n->in[k], (r->weight_in & DT_BIT(k)) != 0));
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        any_full = any_full || ((r->alike_out & DT_BIT(k)) != 0 && can_keep_f32(ir, n->out[k], false));
    }
    for (uint32_t k = 0; any_full && k < n->n_in; k++) {
        const bool counts = (r->alike_in & DT_BIT(k)) != 0 && dt_ir_reads(n, k);
        is_changed = (counts && mark_f32(ir, n->in[k])) || is_changed;
    }
    for (uint32_t k = 0; any_full && k < n->n_out; k++) {
        is_changed = ((r->alike_out & DT_BIT(k)) != 0 && mark_f32(ir, n->out[k])) || is_changed;
    }
    return is_changed;
}

static bool keep_listed_operands(dt_ir *ir, const dt_node *n, const dt_op_storage *r)
{
    bool is_changed = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const bool counts = (r->full_in & DT_BIT(k)) != 0 && dt_ir_reads(n, k);
        is_changed = (counts && mark_f32(ir, n->in[k])) || is_changed;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        is_changed = ((r->full_out & DT_BIT(k)) != 0 && mark_f32(ir, n->out[k])) || is_changed;
    }
    return is_changed;
}

/* What reads of f32 are made of; a view is what it views. */
static bool keep_inputs(dt_ir *ir, const dt_node *n)
{
    bool is_changed = false;
    if (dt_ir_is_view(n)) {
        if (ir->value[n->in[0]].is_half != ir->value[n->out[0]].is_half) {
            is_changed = mark_f32(ir, n->in[0]);
            is_changed = mark_f32(ir, n->out[0]) || is_changed;
        }
        return is_changed;
    }
    for (uint32_t k = 0; dt_op_storage_of(n->op).is_moving && !ir->value[n->out[0]].is_half && k < n->n_in; k++) {
        is_changed = mark_f32(ir, n->in[k]) || is_changed;
    }
    return is_changed;
}

/* Made of data alone, without a parameter? Squares of distances do not fit fp16, nor do small numbers that keep a
 * logarithm finite, and bf16 has no differences of positions; the product that reads the result rounds it. */
static bool is_made_of_data(const dt_ir *ir, const dt_node *n)
{
    uint32_t n_read = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] >= 0 && dt_ir_reads(n, k)) {
            const dt_value *v = &ir->value[n->in[k]];
            const bool is_supplied = v->kind == DT_VALUE_FIELD || v->kind == DT_VALUE_STEP;
            if (!is_supplied && !(v->kind == DT_VALUE_NODE && !v->is_half && v->shape.dtype == DT_F32)) {
                return false;
            }
            n_read++;
        }
    }
    return n_read > 0 && !n->is_backward;
}

dt_status dt_pass_assign_storage(dt_ir *ir, uint32_t dtype)
{
    bool is_changed = true;
    ir->half = dtype;
    for (int32_t v = 0; v < ir->n_values; v++) {
        dt_value *x = &ir->value[v];
        x->is_half = x->kind == DT_VALUE_NODE && x->shape.dtype == DT_F32;
    }
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        for (uint32_t k = 0; is_made_of_data(ir, n) && k < n->n_out; k++) {
            (void)mark_f32(ir, n->out[k]);
        }
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        (void)mark_f32(ir, ir->output[i].value);
    }
    while (is_changed) { /* half becomes f32, never the other way */
        is_changed = false;
        for (int32_t i = ir->n_nodes - 1; i >= 0; i--) {
            const dt_node *n = &ir->node[i];
            const dt_op_storage r = dt_op_storage_of(n->op);
            is_changed = keep_listed_operands(ir, n, &r) || is_changed;
            is_changed = keep_operands_alike(ir, n, &r) || is_changed;
            is_changed = keep_inputs(ir, n) || is_changed;
        }
    }
    return ir->status;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

uint32_t dt_storage_dtype(const dt_ir *ir, int32_t v)
{
    return ir->value[v].is_half ? ir->half : ir->value[v].shape.dtype;
}

uint32_t dt_storage_dtype_read(const dt_ir *ir, const dt_node *n, uint32_t k)
{
    const dt_op_storage r = dt_op_storage_of(n->op);
    const dt_value *v = &ir->value[n->in[k]];
    if (ir->half == 0 || v->kind != DT_VALUE_PARAM || (r.weight_in & DT_BIT(k)) == 0) {
        return dt_storage_dtype(ir, n->in[k]);
    }
    const bool is_bias = n->op == DT_OPX_LINEAR && k == 2; /* cuBLASLt adds one of the result's type */
    const bool is_alike = (r.alike_in & DT_BIT(k)) != 0;
    const uint32_t like = is_bias    ? dt_storage_dtype(ir, n->out[0])
                          : is_alike ? dt_storage_dtype(ir, n->in[0])
                                     : ir->half;
    return like;
}

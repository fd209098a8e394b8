/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and nodes. See ir.h.
 */
#include <config.h>

#include "engine/graph/ir.h"
#include "engine/graph/op.h"
#include "base/err.h"
#include "base/mem.h"

#include <string.h>

void dt_ir_fini(dt_ir *ir)
{
    for (uint32_t i = 0; i < ir->n_strings; i++) {
        dt_free(ir->string[i]);
    }
    dt_free(ir->string);
    dt_free(ir->value);
    dt_free(ir->node);
    dt_free(ir->output);
    *ir = (dt_ir){0};
}

/* Make room for one more of n elements; false (sticky error) when out of memory. */
static bool grow_array(dt_ir *ir, void **array, int32_t n, int32_t *cap, size_t size)
{
    if (ir->status != DT_OK) {
        return false;
    }
    if (n < *cap) {
        return true;
    }
    int32_t more = *cap < 64 ? 64 : *cap * 2;
    void *p = dt_realloc(*array, (size_t)more * size);
    if (p == NULL) {
        ir->status =
            DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values and %d nodes", ir->n_values, ir->n_nodes);
        return false;
    }
    *array = p;
    *cap = more;
    return true;
}

const char *dt_ir_copy_string(dt_ir *ir, const char *text)
{
    int32_t cap = (int32_t)ir->cap_strings;
    if (!grow_array(ir, (void **)&ir->string, (int32_t)ir->n_strings, &cap, sizeof(*ir->string))) {
        return "";
    }
    ir->cap_strings = (uint32_t)cap;
    char *copy = dt_strdup(text);
    if (copy == NULL) {
        ir->status = DT_FAIL(DT_ENOMEM, "out of memory for the name %s", text);
        return "";
    }
    ir->string[ir->n_strings++] = copy;
    return copy;
}

dt_status dt_ir_copy(const dt_ir *src, dt_ir *dst)
{
    dt_ir ir = {.n_symbols = src->n_symbols, .n_losses = src->n_losses, .n_groups = src->n_groups};
    for (uint32_t i = 0; i < src->n_symbols; i++) {
        ir.symbol[i] = dt_ir_copy_string(&ir, src->symbol[i]);
    }
    for (int32_t i = 0; i < src->n_values; i++) {
        dt_value v = src->value[i];
        v.name = v.name != NULL ? dt_ir_copy_string(&ir, v.name) : NULL;
        dt_ir_add_value(&ir, &v);
    }
    for (int32_t i = 0; i < src->n_nodes && grow_array(&ir, (void **)&ir.node, i, &ir.cap_nodes, sizeof(*ir.node));
         i++) {
        ir.node[ir.n_nodes++] = src->node[i];
    }
    for (uint32_t i = 0; i < src->n_outputs; i++) {
        (void)dt_ir_add_output(&ir, src->output[i].name, src->output[i].value);
    }
    for (uint32_t i = 0; i < src->n_losses; i++) {
        ir.loss[i] = src->loss[i];
        ir.loss[i].name = dt_ir_copy_string(&ir, src->loss[i].name);
        ir.loss[i].symbol = dt_ir_copy_string(&ir, src->loss[i].symbol);
    }
    if (ir.status != DT_OK) {
        dt_status st = ir.status;
        dt_ir_fini(&ir);
        return st;
    }
    *dst = ir;
    return DT_OK;
}

int32_t dt_ir_add_value(dt_ir *ir, const dt_value *v)
{
    if (!grow_array(ir, (void **)&ir->value, ir->n_values, &ir->cap_values, sizeof(*ir->value))) {
        return -1;
    }
    ir->value[ir->n_values] = *v;
    return ir->n_values++;
}

int32_t dt_ir_emit(dt_ir *ir, uint32_t op, const int32_t *in, uint32_t n_in, const dt_attr *attr)
{
    if (!grow_array(ir, (void **)&ir->node, ir->n_nodes, &ir->cap_nodes, sizeof(*ir->node))) {
        return -1;
    }
    dt_node n = {.op = op, .region = ir->region, .is_backward = ir->is_backward};
    dt_infer q = {.name = dt_op_name(op), .symbol = ir->symbol, .n_in = n_in};
    if (attr != NULL) {
        q.attr = *attr;
    }
    for (uint32_t k = 0; k < DT_KERNEL_MAX_IN; k++) {
        n.in[k] = k < n_in ? in[k] : -1;
        q.in[k] = n.in[k] >= 0 ? &ir->value[n.in[k]].shape : NULL;
    }
    dt_status st = dt_infer_run(&q, dt_op_find(op));
    if (st != DT_OK) {
        ir->status = st;
        return -1;
    }
    n.attr = q.attr;
    n.n_in = q.n_in;
    n.n_out = q.n_out;
    for (uint32_t k = 0; k < n.n_out; k++) {
        dt_value v = {.shape = q.out[k], .kind = DT_VALUE_NODE, .producer = ir->n_nodes};
        n.out[k] = dt_ir_add_value(ir, &v);
    }
    if (ir->status != DT_OK) {
        return -1;
    }
    ir->node[ir->n_nodes] = n;
    return ir->n_nodes++;
}

int32_t dt_ir_output_of(const dt_ir *ir, int32_t node, uint32_t k)
{
    return node < 0 ? -1 : ir->node[node].out[k];
}

dt_status dt_ir_add_output(dt_ir *ir, const char *name, int32_t value)
{
    if (!grow_array(ir, (void **)&ir->output, (int32_t)ir->n_outputs, &ir->cap_outputs, sizeof(*ir->output))) {
        return ir->status;
    }
    ir->output[ir->n_outputs] = (dt_ir_output){.name = dt_ir_copy_string(ir, name), .value = value};
    if (ir->status == DT_OK) {
        ir->n_outputs++;
    }
    return ir->status;
}

static bool is_listed(const char *name, const char *const *names)
{
    while (names != NULL && *names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return names == NULL || *names != NULL;
}

void dt_ir_keep_outputs(dt_ir *ir, bool pictures, const char *const *names)
{
    static const char begin[] = "picture/";
    uint32_t n = 0;
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        const bool is_picture = strncmp(ir->output[i].name, begin, sizeof(begin) - 1) == 0;
        if (is_picture == pictures && is_listed(ir->output[i].name, names)) {
            ir->output[n++] = ir->output[i];
        }
    }
    ir->n_outputs = n;
}

bool dt_ir_is_view(const dt_node *n)
{
    return dt_op_is_view(n->op);
}

bool dt_ir_reads(const dt_node *n, uint32_t k)
{
    return n->in[k] >= 0 && (dt_op_find(n->op)->shape_only & DT_BIT(k)) == 0;
}

void dt_ir_index(dt_ir *ir)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        if (ir->node[i].op != 0) {
            ir->node[kept++] = ir->node[i];
        }
    }
    ir->n_nodes = kept;
    for (int32_t v = 0; v < ir->n_values; v++) {
        ir->value[v].producer = -1;
        ir->value[v].n_uses = 0;
    }
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (dt_ir_reads(n, k)) {
                ir->value[n->in[k]].n_uses++;
            }
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            ir->value[n->out[k]].producer = i;
        }
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        ir->value[ir->output[i].value].n_uses++;
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        ir->value[ir->loss[i].value].n_uses++;
    }
}

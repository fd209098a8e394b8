/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph as text, one line per node:
 *   %7 N 256 f32 = linear x=%5 w=perception.in.w b=perception.in.b i0=1
 */
#include <config.h>

#include "engine/graph/op.h"
#include "engine/graph/storage.h"

#include <string.h>

static void print_value(const dt_ir *ir, int32_t id, dt_str *out)
{
    const dt_value *v = &ir->value[id];
    switch (v->kind) {
    case DT_VALUE_NODE:
        dt_str_addf(out, "%%%d", id);
        break;
    case DT_VALUE_GRAD:
        dt_str_addf(out, "%sgrad(%s)", v->accum ? "+" : "", v->name);
        break;
    case DT_VALUE_SEED:
        dt_str_addf(out, "seed(%s)", ir->loss[v->index].name);
        break;
    default:
        dt_str_add(out, v->name);
        break;
    }
}

/* Name of input k: the k-th word of the shape rule, up to its bracket. */
static void print_input_name(const char *rule, uint32_t k, dt_str *out)
{
    for (; k > 0; k--) {
        rule += strcspn(rule, " ");
        rule += strspn(rule, " ");
    }
    dt_str_add_n(out, rule, strcspn(rule, "[?"));
}

void dt_ir_print_node(const dt_ir *ir, const dt_node *n, dt_str *out)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        const dt_value *v = &ir->value[n->out[k]];
        dt_str_add(out, k > 0 ? ", " : "");
        if (v->kind == DT_VALUE_NODE && v->n_uses == 0 && k > 0) {
            dt_str_add(out, "-");
            continue;
        }
        print_value(ir, n->out[k], out);
        dt_str_add(out, " ");
        dt_shape shape = v->shape;
        shape.dtype = dt_storage_dtype(ir, n->out[k]);
        dt_shape_text(&shape, ir->symbol, out);
    }
    dt_str_addf(out, " = %s", dt_op_name(n->op));
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] >= 0) {
            dt_str_add(out, " ");
            print_input_name(dt_op_find(n->op)->shape, k, out);
            dt_str_add(out, "=");
            print_value(ir, n->in[k], out);
        }
    }
    for (int i = 0; i < 4; i++) {
        if (n->attr.i[i] != 0) {
            dt_str_addf(out, " i%d=%lld", i, (long long)n->attr.i[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        if (n->attr.f[i] != 0) {
            dt_str_addf(out, " f%d=%g", i, n->attr.f[i]);
        }
    }
    if (n->region != 0) {
        dt_str_addf(out, " region=%d", n->region);
    }
    if (n->is_clone) {
        dt_str_add(out, " again");
    }
}

void dt_ir_print(const dt_ir *ir, dt_str *out)
{
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        dt_ir_print_node(ir, &ir->node[i], out);
        dt_str_add(out, "\n");
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        dt_str_addf(out, "loss %s = %g * ", ir->loss[i].name, ir->loss[i].weight);
        print_value(ir, ir->loss[i].value, out);
        dt_str_addf(out, " / %s\n", ir->loss[i].symbol);
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        dt_str_addf(out, "output %s = ", ir->output[i].name);
        print_value(ir, ir->output[i].value, out);
        dt_str_add(out, "\n");
    }
}

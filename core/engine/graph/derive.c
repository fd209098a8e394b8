/* SPDX-License-Identifier: Apache-2.0
 *
 * Reverse mode. See derive.h.
 */
#include <config.h>

#include "engine/graph/derive.h"
#include "engine/graph/op.h"
#include "base/err.h"
#include "base/mem.h"

/* One summand of a parameter's gradient. */
typedef struct contribution {
    int32_t param; /* value */
    int32_t grad;  /* value */
} contribution;

struct dt_derive {
    dt_ir *ir;
    int32_t n_values; /* of the recorded graph; only these have gradients */
    int32_t n_nodes;
    uint32_t group; /* that is derived */
    bool *needs;    /* per value: a trained parameter of the group contributes to it */
    int32_t *grad;  /* per value: its gradient so far, -1 = none yet */
    contribution *part;
    uint32_t n_parts, cap_parts;
};

/* ---- what derivatives call --------------------------------------------------------------------------------------- */

bool dt_derive_needs_grad(const dt_derive *d, const dt_node *n, uint32_t k)
{
    return n->in[k] >= 0 && d->needs[n->in[k]] && (dt_op_find(n->op)->grad_in & DT_BIT(k)) != 0;
}

bool dt_derive_moves_statistic(const dt_derive *d, const dt_node *n, uint32_t k)
{
    const dt_value *v = &d->ir->value[n->in[k]];
    return v->kind == DT_VALUE_PARAM && v->is_statistic && v->group == d->group;
}

int32_t dt_derive_output_grad(const dt_derive *d, const dt_node *n, uint32_t k)
{
    return d->grad[n->out[k]];
}

static void record_contribution(dt_derive *d, int32_t param, int32_t grad)
{
    if (d->n_parts == d->cap_parts) {
        uint32_t cap = d->cap_parts == 0 ? 64 : d->cap_parts * 2;
        contribution *grown = dt_realloc(d->part, cap * sizeof(*grown));
        if (grown == NULL) {
            d->ir->status = DT_FAIL(DT_ENOMEM, "out of memory for %u gradients of parameters", cap);
            return;
        }
        d->part = grown;
        d->cap_parts = cap;
    }
    d->part[d->n_parts++] = (contribution){.param = param, .grad = grad};
}

static int32_t record_sum(dt_derive *d, int32_t a, int32_t b)
{
    const dt_attr plus = {.i = {DT_BIN_ADD}};
    return DT_EMIT1(d, DT_OPX_BINARY, &plus, a, b);
}

void dt_derive_add_grad(dt_derive *d, const dt_node *n, uint32_t k, int32_t grad)
{
    int32_t v = n->in[k];
    if (d->ir->status != DT_OK) {
        return;
    }
    if (d->ir->value[v].kind == DT_VALUE_PARAM) {
        record_contribution(d, v, grad);
    } else {
        d->grad[v] = d->grad[v] < 0 ? grad : record_sum(d, d->grad[v], grad);
    }
}

int32_t dt_derive_emit(dt_derive *d, uint32_t op, const int32_t *in, uint32_t n_in, const dt_attr *attr)
{
    return dt_ir_emit(d->ir, op, in, n_in, attr);
}

int32_t dt_derive_output(const dt_derive *d, int32_t node, uint32_t k)
{
    return dt_ir_output_of(d->ir, node, k);
}

const dt_shape *dt_derive_shape(const dt_derive *d, int32_t value)
{
    return &d->ir->value[value].shape;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void mark_needed(dt_derive *d)
{
    const dt_ir *ir = d->ir;
    for (int32_t v = 0; v < d->n_values; v++) {
        const dt_value *x = &ir->value[v];
        d->needs[v] = x->kind == DT_VALUE_PARAM && x->trained && x->group == d->group;
        d->grad[v] = -1;
    }
    for (int32_t i = 0; i < d->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (dt_derive_needs_grad(d, n, k)) {
                for (uint32_t j = 0; j < dt_op_results(n->op); j++) {
                    d->needs[n->out[j]] = true;
                }
            }
        }
    }
}

/* The derivative of each loss starts from a number that the run supplies: weight / normaliser. */
static void seed_loss_gradients(dt_derive *d)
{
    for (uint32_t i = 0; i < d->ir->n_losses; i++) {
        int32_t v = d->ir->loss[i].value;
        dt_value seed = {.kind = DT_VALUE_SEED, .index = (int32_t)i, .shape = d->ir->value[v].shape};
        seed.name = dt_ir_copy_string(d->ir, "seed");
        if (d->needs[v] && d->ir->loss[i].group == d->group) {
            d->grad[v] = dt_ir_add_value(d->ir, &seed);
        }
    }
}

static void derive_nodes(dt_derive *d)
{
    for (int32_t i = d->n_nodes - 1; i >= 0 && d->ir->status == DT_OK; i--) {
        const dt_node n = d->ir->node[i]; /* a copy: emitting moves the array */
        bool is_reached = false;
        for (uint32_t k = 0; k < dt_op_results(n.op); k++) {
            is_reached = is_reached || d->grad[n.out[k]] >= 0;
        }
        if (!is_reached) {
            continue;
        }
        const dt_op_info *info = dt_op_find(n.op);
        if (info->vjp == NULL) {
            d->ir->status = DT_BREACH(DT_EUNSUPPORTED,
                                      "op %s has no derivative, and is between a loss and a trained parameter; give it "
                                      "one, or record stop before it",
                                      dt_op_name(n.op));
            return;
        }
        info->vjp(d, &n, d->grad[n.out[0]]);
    }
}

/* Statistics that several ops move take a part of the update from each, or they could overshoot. Ops that no gradient
 * of the statistics' group reaches move none. */
static void share_statistics(const dt_derive *d)
{
    enum { MEAN = 3 };
    for (const contribution *c = d->part; c < d->part + d->n_parts; c++) {
        dt_node *n = &d->ir->node[d->ir->value[c->grad].producer];
        uint32_t uses = 0;
        if (n->op != DT_OPX_BATCH_NORM_BWD || n->out[MEAN] != c->grad) {
            continue;
        }
        for (const contribution *o = d->part; o < d->part + d->n_parts; o++) {
            uses += o->param == c->param;
        }
        n->attr.f[1] /= uses;
    }
}

/* Turn a value into the gradient of a parameter, in the gradient arena. */
static void assign_grad_storage(dt_ir *ir, int32_t v, int32_t param, bool accum)
{
    const dt_value *p = &ir->value[param];
    ir->value[v].kind = DT_VALUE_GRAD;
    ir->value[v].index = p->index;
    ir->value[v].offset = p->offset;
    ir->value[v].group = p->group;
    ir->value[v].name = p->name;
    ir->value[v].accum = accum;
}

/* May the op that made this part add it to the gradient arena itself? Not when another op needs the part alone. */
static bool may_add_directly(const dt_derive *d, const contribution *c)
{
    const dt_value *v = &d->ir->value[c->grad];
    if (v->kind != DT_VALUE_NODE || v->n_uses > 0 || v->producer < 0) {
        return false;
    }
    for (const contribution *o = d->part; o < d->part + d->n_parts; o++) {
        if (o != c && o->grad == c->grad) {
            return false;
        }
    }
    const dt_node *n = &d->ir->node[v->producer];
    uint32_t accum = dt_op_find(n->op)->accum;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] == c->grad) {
            return (accum & DT_BIT(k)) != 0;
        }
    }
    return false;
}

static void place_parameter_gradients(dt_derive *d)
{
    dt_ir *ir = d->ir;
    dt_ir_index(ir);
    bool *direct = dt_alloc_n(d->n_parts, sizeof(*direct));
    if (direct == NULL) {
        ir->status = DT_FAIL(DT_ENOMEM, "out of memory for %u gradients of parameters", d->n_parts);
        return;
    }
    for (uint32_t i = 0; i < d->n_parts; i++) {
        direct[i] = may_add_directly(d, &d->part[i]);
    }
    for (uint32_t i = 0; i < d->n_parts && ir->status == DT_OK; i++) {
        const contribution c = d->part[i];
        if (direct[i]) {
            assign_grad_storage(ir, c.grad, c.param, true);
            continue;
        }
        dt_value sum = {.shape = ir->value[c.param].shape};
        int32_t before = dt_ir_add_value(ir, &sum);
        if (before >= 0) {
            assign_grad_storage(ir, before, c.param, false);
        }
        int32_t after = record_sum(d, before, c.grad);
        if (after >= 0) {
            assign_grad_storage(ir, after, c.param, false);
        }
    }
    dt_free(direct);
}

dt_status dt_derive_run(dt_ir *ir)
{
    if (ir->n_losses == 0) {
        return DT_FAIL(DT_EINVAL, "the graph has no loss to train on; record one with loss()");
    }
    dt_derive d = {.ir = ir, .n_values = ir->n_values, .n_nodes = ir->n_nodes};
    d.needs = dt_alloc_n((size_t)ir->n_values, sizeof(*d.needs));
    d.grad = dt_alloc_n((size_t)ir->n_values, sizeof(*d.grad));
    if (d.needs == NULL || d.grad == NULL) {
        ir->status = DT_FAIL(DT_ENOMEM, "out of memory to differentiate %d values", ir->n_values);
    } else {
        ir->is_backward = true;
        do {
            mark_needed(&d);
            seed_loss_gradients(&d);
            derive_nodes(&d);
        } while (++d.group < ir->n_groups && ir->status == DT_OK);
    }
    if (ir->status == DT_OK) {
        share_statistics(&d);
        place_parameter_gradients(&d);
    }
    ir->is_backward = false;
    dt_free(d.part);
    dt_free(d.grad);
    dt_free(d.needs);
    dt_ir_index(ir);
    return ir->status;
}

static bool is_moved(const dt_ir *ir, int32_t param)
{
    for (int32_t v = 0; v < ir->n_values; v++) {
        if (ir->value[v].kind == DT_VALUE_GRAD && ir->value[v].index == ir->value[param].index) {
            return true;
        }
    }
    return false;
}

dt_status dt_derive_check_statistics(const dt_ir *ir)
{
    enum { MEAN = 3, VAR };
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        for (uint32_t k = MEAN; k <= VAR && n->op == DT_OP_BATCH_NORM && n->attr.i[0] == 0; k++) {
            if (!is_moved(ir, n->in[k])) {
                return DT_FAIL(DT_ECONFIG,
                               "no update moves the running statistic %s: no loss that updates its model trains the "
                               "scale, the shift or the input of this layer; freeze it (training.freeze) to use it as "
                               "it is, or train the layer",
                               ir->value[n->in[k]].name);
            }
        }
    }
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/graph/select.h"
#include "engine/graph/op.h"
#include "engine/graph/recorder.h"
#include "base/err.h"
#include "base/mem.h"

#include <string.h>

static dt_recorder *recorder_of(const dt_graph *g)
{
    return (dt_recorder *)(uintptr_t)g;
}

static dt_status find_loss(const dt_recorder *r, const char *name, uint32_t *at_p)
{
    dt_str all = {0};
    for (uint32_t i = 0; i < r->ir.n_losses; i++) {
        if (strcmp(r->ir.loss[i].name, name) == 0) {
            *at_p = i;
            dt_str_fini(&all);
            return DT_OK;
        }
        dt_str_addf(&all, "%s%s", i > 0 ? ", " : "", r->ir.loss[i].name);
    }
    const dt_status st = DT_FAIL(DT_EINVAL, "no loss %s is recorded; recorded are: %s", name, dt_str_text(&all));
    dt_str_fini(&all);
    return st;
}

dt_status dt_graph_select_losses(dt_graph *g, const char *const *loss, uint32_t n)
{
    dt_recorder *r = recorder_of(g);
    dt_ir_loss picked[DT_GRAPH_MAX_LOSSES];
    dt_graph_loss face[DT_GRAPH_MAX_LOSSES];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        DT_TRY(find_loss(r, loss[i], &at));
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(loss[i], loss[j]) == 0) {
                return DT_FAIL(DT_EINVAL, "loss %s is requested twice", loss[i]);
            }
        }
        picked[i] = r->ir.loss[at]; /* different names: never more than there are */
        face[i] = r->loss[at];
    }
    memcpy(r->ir.loss, picked, n * sizeof(*picked));
    memcpy(r->loss, face, n * sizeof(*face));
    r->ir.n_losses = n;
    r->ir.n_outputs = 0;
    return DT_OK;
}

void dt_graph_remove_loss(dt_graph *g, uint32_t i)
{
    dt_recorder *r = recorder_of(g);
    const size_t after = --r->ir.n_losses - i;
    memmove(&r->ir.loss[i], &r->ir.loss[i + 1], after * sizeof(r->ir.loss[0]));
    memmove(&r->loss[i], &r->loss[i + 1], after * sizeof(r->loss[0]));
}

/* From the values that are marked, backwards, all that they are computed from; of_gradient: only where derivatives
 * flow. */
static void mark_needed(const dt_ir *ir, bool of_gradient, bool *is_reached)
{
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) { /* in the order of execution */
        const dt_node *n = &ir->node[i];
        const uint32_t flows = !of_gradient ? UINT32_MAX : n->op != 0 ? dt_op_find(n->op)->grad_in : 0;
        bool is_on_way = false;
        for (uint32_t k = 0; k < n->n_out; k++) {
            is_on_way = is_on_way || is_reached[n->out[k]];
        }
        if (is_on_way) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (n->in[k] >= 0 && (flows & DT_BIT(k)) != 0) {
                    is_reached[n->in[k]] = true;
                }
            }
        }
    }
}

static dt_status allocate_marks(const dt_ir *ir, bool **out_p)
{
    *out_p = dt_alloc_n((size_t)ir->n_values + 1, sizeof(**out_p));
    return *out_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", ir->n_values);
}

dt_status dt_graph_params_of_loss(const dt_graph *g, const char *loss, bool *param_p)
{
    const dt_recorder *r = recorder_of(g);
    const dt_ir *ir = &r->ir;
    uint32_t at = 0;
    bool *is_reached = NULL;
    DT_TRY(find_loss(r, loss, &at));
    DT_TRY(allocate_marks(ir, &is_reached));
    is_reached[ir->loss[at].value] = true;
    mark_needed(ir, true, is_reached);
    memset(param_p, 0, r->desc.params->n * sizeof(*param_p));
    for (int32_t v = 0; v < ir->n_values; v++) {
        const dt_value *x = &ir->value[v];
        if (is_reached[v] && x->kind == DT_VALUE_PARAM && x->trained && x->group == ir->loss[at].group) {
            param_p[ir->value[v].index] = true;
        }
    }
    dt_free(is_reached);
    return DT_OK;
}

dt_status dt_graph_params_of_outputs(const dt_graph *g, const char *const *except, bool *param_p)
{
    const dt_recorder *r = recorder_of(g);
    const dt_ir *ir = &r->ir;
    bool *is_reached = NULL;
    DT_TRY(allocate_marks(ir, &is_reached));
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        const char *const *e = except;
        while (*e != NULL && strcmp(*e, ir->output[i].name) != 0) {
            e++;
        }
        if (*e == NULL) {
            is_reached[ir->output[i].value] = true;
        }
    }
    mark_needed(ir, false, is_reached);
    memset(param_p, 0, r->desc.params->n * sizeof(*param_p));
    for (int32_t v = 0; v < ir->n_values; v++) {
        if (is_reached[v] && ir->value[v].kind == DT_VALUE_PARAM) {
            param_p[ir->value[v].index] = true;
        }
    }
    dt_free(is_reached);
    return DT_OK;
}

void dt_graph_set_groups(dt_graph *g, uint32_t n, const uint32_t *loss, const uint32_t *param)
{
    dt_recorder *r = recorder_of(g);
    dt_ir *ir = &r->ir;
    ir->n_groups = n;
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        ir->loss[i].group = r->loss[i].group = loss[i];
    }
    for (int32_t v = 0; v < ir->n_values; v++) {
        if (ir->value[v].kind == DT_VALUE_PARAM) {
            ir->value[v].group = param[ir->value[v].index];
        }
    }
}

void dt_graph_freeze_params(dt_graph *g, const bool *param)
{
    dt_ir *ir = &recorder_of(g)->ir;
    for (int32_t v = 0; v < ir->n_values; v++) {
        if (ir->value[v].kind == DT_VALUE_PARAM && param[ir->value[v].index]) {
            ir->value[v].trained = false;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "export/bundle.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/backend/user.h"
#include "engine/graph/op.h"
#include "engine/graph/passes.h"

#include <stdio.h>
#include <string.h>

typedef struct maker {
    const dt_bundle_desc *d;
    dt_bundle *b;
    dt_ir old;        /* as recorded, without losses */
    bool *is_read;    /* per old value */
    int32_t *now;     /* per old value: the new one */
    int32_t *input;   /* per field: its input's value, -1 */
    int32_t *mean;    /* per field: value of its statistics, -1; scale is the next one */
    uint32_t present; /* field; n_fields: there is none */
} maker;

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static bool is_dropout(const dt_node *n)
{
    return n->op == DT_OPX_DROPOUT;
}

/* Outputs alone, and which values they are made of. Dropout is the identity here, and its keys are not read. */
static dt_status prune_graph(maker *m)
{
    m->old.n_losses = 0;
    dt_ir_keep_outputs(&m->old, false, m->d->outputs);
    dt_ir_index(&m->old);
    DT_TRY(dt_pass_drop_dead_keep_shapes(&m->old)); /* add_node infers every shape again */
    m->is_read = dt_alloc_n((size_t)m->old.n_values, sizeof(*m->is_read));
    m->now = dt_alloc_n((size_t)m->old.n_values, sizeof(*m->now));
    m->input = dt_alloc_n(m->d->n_fields, sizeof(*m->input));
    m->mean = dt_alloc_n(m->d->n_fields, sizeof(*m->mean));
    if (m->is_read == NULL || m->now == NULL || m->input == NULL || m->mean == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to export a graph of %d values", m->old.n_values);
    }
    for (int32_t i = 0; i < m->old.n_nodes; i++) {
        const dt_node *n = &m->old.node[i];
        for (uint32_t k = 0; k < (is_dropout(n) ? 1 : n->n_in); k++) {
            if (n->in[k] >= 0) {
                m->is_read[n->in[k]] = true;
            }
        }
    }
    for (uint32_t i = 0; i < m->old.n_outputs; i++) {
        m->is_read[m->old.output[i].value] = true;
    }
    return DT_OK;
}

/* ---- inputs and tensors ------------------------------------------------------------------------------------------ */

static bool is_normalised(const maker *m, uint32_t field)
{
    const dt_bundle_field *how = &m->d->how[field];
    const uint32_t of = how->kind == DT_BUNDLE_HISTORY ? (uint32_t)how->of : field;
    return (how->kind == DT_BUNDLE_GIVEN || how->kind == DT_BUNDLE_HISTORY) && m->d->how[of].mean != NULL;
}

/* Old value of a field, -1 when nothing reads it. */
static int32_t field_value(const maker *m, uint32_t field)
{
    for (int32_t v = 0; v < m->old.n_values; v++) {
        if (m->old.value[v].kind == DT_VALUE_FIELD && m->old.value[v].index == (int32_t)field && m->is_read[v]) {
            return v;
        }
    }
    return -1;
}

static dt_status add_input(maker *m, uint32_t field, bool is_read)
{
    dt_bundle *b = m->b;
    const dt_port *p = &m->d->field[field];
    if (b->n_inputs == DT_BUNDLE_MAX_INPUTS) {
        return DT_FAIL(DT_EINVAL, "the graph reads more than %d inputs", DT_BUNDLE_MAX_INPUTS);
    }
    dt_value v = {.kind = DT_VALUE_FIELD, .index = (int32_t)b->n_inputs, .name = dt_ir_copy_string(&b->ir, p->name)};
    DT_TRY(dt_shape_parse(p->dims, p->dtype, b->ir.symbol, b->ir.n_symbols, &v.shape));
    b->input[b->n_inputs++] = (dt_bundle_input){.name = v.name,
                                                .dims = dt_ir_copy_string(&b->ir, p->dims),
                                                .dtype = p->dtype,
                                                .kind = m->d->how[field].kind,
                                                .of = m->d->how[field].of,
                                                .index_of = m->d->how[field].index_of,
                                                .is_read = is_read};
    m->input[field] = dt_ir_add_value(&b->ir, &v);
    return b->ir.status;
}

/* Those that the graph reads, and those that these are made of. */
static dt_status add_inputs(maker *m)
{
    const uint32_t n = m->d->n_fields;
    bool *wanted = dt_alloc_n(n, sizeof(*wanted));
    if (wanted == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to export %u inputs", n);
    }
    for (uint32_t f = 0; f < n; f++) {
        m->input[f] = m->mean[f] = -1;
        if (field_value(m, f) < 0) {
            continue;
        }
        wanted[f] = true;
        if (m->d->how[f].kind == DT_BUNDLE_HISTORY) {
            wanted[m->d->how[f].of] = true;
            wanted[m->present] = wanted[m->present] || is_normalised(m, f);
        }
    }
    dt_status st = DT_OK;
    for (uint32_t f = 0; f < n && st == DT_OK; f++) {
        st = wanted[f] ? add_input(m, f, field_value(m, f) >= 0) : DT_OK;
    }
    for (uint32_t i = 0; i < m->b->n_inputs; i++) { /* from fields to inputs */
        dt_bundle_input *x = &m->b->input[i];
        x->of = x->kind == DT_BUNDLE_HISTORY ? m->input[x->of] : -1;
        x->is_read = x->is_read || x->kind == DT_BUNDLE_PRESENT;
    }
    dt_free(wanted);
    return st;
}

static int32_t add_tensor(maker *m, const char *name, const int64_t *dim, uint32_t n_dims, const float *data)
{
    enum { DIMS = 4 };
    dt_bundle *b = m->b;
    int64_t *own = b->dims + (size_t)b->n_tensors * DIMS;
    dt_value v = {.kind = DT_VALUE_PARAM, .index = (int32_t)b->n_tensors, .name = dt_ir_copy_string(&b->ir, name)};
    v.shape = (dt_shape){.rank = n_dims, .dtype = DT_F32};
    for (uint32_t i = 0; i < n_dims; i++) {
        own[i] = dim[i];
        v.shape.dim[i] = dt_extent_number(dim[i]);
    }
    b->tensor[b->n_tensors++] = (dt_bundle_tensor){.name = v.name, .dim = own, .n_dims = n_dims, .data = data};
    return dt_ir_add_value(&b->ir, &v);
}

/* What it was set to, as a tensor of its own: what is exported depends on data alone. */
static dt_status add_step_input(maker *m, int32_t v)
{
    char name[160];
    uint32_t n = 0;
    const char *input = m->old.value[v].name;
    const float *value = m->d->step != NULL ? m->d->step(m->d->user, input, &n) : NULL;
    const int64_t count = m->old.value[v].shape.dim[0].size;
    if (value == NULL || (int64_t)n != count) {
        return DT_FAIL(DT_EINVAL,
                       "an output depends on the step input %s, which the phase did not set before; what is exported "
                       "must depend only on data",
                       input);
    }
    snprintf(name, sizeof(name), "step.%s", input);
    m->now[v] = add_tensor(m, name, &count, 1, value);
    return DT_OK;
}

static dt_status add_tensors(maker *m)
{
    enum { DIMS = 4 };
    const dt_bundle_desc *d = m->d;
    size_t most = d->params->n + 2 * (size_t)d->n_fields;
    char name[160];
    for (int32_t v = 0; v < m->old.n_values; v++) {
        most += m->old.value[v].kind == DT_VALUE_STEP;
    }
    m->b->tensor = dt_alloc_n(most, sizeof(*m->b->tensor));
    m->b->dims = dt_alloc_n(most, DIMS * sizeof(*m->b->dims));
    if (m->b->tensor == NULL || m->b->dims == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to export %u parameters", d->params->n);
    }
    for (int32_t v = 0; v < m->old.n_values; v++) {
        if (m->is_read[v] && m->old.value[v].kind == DT_VALUE_PARAM) {
            const dt_param *p = &d->params->param[m->old.value[v].index];
            m->now[v] = add_tensor(m, p->name, p->dim, p->n_dims, d->values + p->offset);
        } else if (m->is_read[v] && m->old.value[v].kind == DT_VALUE_STEP) {
            DT_TRY(add_step_input(m, v));
        }
    }
    for (uint32_t f = 0; f < d->n_fields; f++) {
        if (m->input[f] >= 0 && d->how[f].kind == DT_BUNDLE_GIVEN && is_normalised(m, f)) {
            const dt_shape *s = &m->b->ir.value[m->input[f]].shape;
            const int64_t columns = s->dim[s->rank - 1].size;
            snprintf(name, sizeof(name), "normaliser.%s.mean", d->field[f].name);
            m->mean[f] = add_tensor(m, name, &columns, 1, d->how[f].mean);
            snprintf(name, sizeof(name), "normaliser.%s.scale", d->field[f].name);
            (void)add_tensor(m, name, &columns, 1, d->how[f].scale);
        }
    }
    return m->b->ir.status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static int32_t emit_node(maker *m, uint32_t op, int32_t x, int32_t y, const dt_attr *attr)
{
    const int32_t in[2] = {x, y};
    return dt_ir_output_of(&m->b->ir, dt_ir_emit(&m->b->ir, op, in, y >= 0 ? 2 : 1, attr), 0);
}

/* What the host makes of rows before a policy reads them: y = (x - mean) * scale within +- clip; of history only where
 * the agent was there, zeros elsewhere. */
static int32_t emit_normalisation(maker *m, uint32_t field)
{
    const dt_bundle_field *how = &m->d->how[field];
    const uint32_t of = how->kind == DT_BUNDLE_HISTORY ? (uint32_t)how->of : field;
    const double clip = (double)m->d->how[of].clip;
    const dt_attr sub = {.i = {DT_BIN_SUB}}, mul = {.i = {DT_BIN_MUL}}, bounds = {.f = {-clip, clip}}, column = {0};
    int32_t y = emit_node(m, DT_OPX_BINARY, m->input[field], m->mean[of], &sub);
    y = emit_node(m, DT_OPX_BINARY, y, m->mean[of] + 1, &mul);
    if (clip > 0) {
        y = emit_node(m, DT_OPX_CLAMP, y, -1, &bounds);
    }
    if (how->kind == DT_BUNDLE_HISTORY) {
        y = emit_node(m, DT_OPX_BINARY, y, emit_node(m, DT_OPX_SPLIT, m->input[m->present], -1, &column), &mul);
    }
    return y;
}

static dt_status check_nodes(const maker *m)
{
    for (int32_t i = 0; i < m->old.n_nodes; i++) {
        const dt_node *n = &m->old.node[i];
        if (n->op >= DT_USER_OP_FIRST) {
            return DT_FAIL(DT_EINVAL,
                           "op %s is of a plugin; what is exported runs without plugins, and may hold only ops "
                           "of dtrain/ops.def",
                           dt_op_name(n->op));
        }
        if (n->op == DT_OPX_NOISE && n->attr.i[3] != 0) {
            return DT_FAIL(DT_EINVAL, "an output depends on noise that is drawn in evaluation as well; what is "
                                      "exported must depend only on data: record it without that noise where "
                                      "dt_purpose is DT_FOR_ACTING");
        }
    }
    return DT_OK;
}

static void add_node(maker *m, const dt_node *n)
{
    int32_t in[DT_KERNEL_MAX_IN];
    if (is_dropout(n)) {
        m->now[n->out[0]] = m->now[n->in[0]];
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        in[k] = n->in[k] >= 0 ? m->now[n->in[k]] : -1;
    }
    const int32_t node = dt_ir_emit(&m->b->ir, n->op, in, n->n_in, &n->attr);
    for (uint32_t k = 0; k < n->n_out; k++) {
        m->now[n->out[k]] = dt_ir_output_of(&m->b->ir, node, k);
    }
}

static dt_status add_nodes(maker *m)
{
    for (uint32_t f = 0; f < m->d->n_fields; f++) {
        const int32_t v = field_value(m, f);
        if (v >= 0) {
            m->now[v] = is_normalised(m, f) ? emit_normalisation(m, f) : m->input[f];
        }
    }
    for (int32_t i = 0; i < m->old.n_nodes && m->b->ir.status == DT_OK; i++) {
        add_node(m, &m->old.node[i]);
    }
    for (uint32_t i = 0; i < m->old.n_outputs && m->b->ir.status == DT_OK; i++) {
        DT_TRY(dt_ir_add_output(&m->b->ir, m->old.output[i].name, m->now[m->old.output[i].value]));
    }
    return m->b->ir.status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status make_bundle_graph(maker *m)
{
    dt_bundle *b = m->b;
    const dt_bundle_desc *d = m->d;
    DT_TRY(dt_ir_copy(dt_graph_ir(d->graph), &m->old));
    DT_TRY(prune_graph(m));
    DT_TRY(check_nodes(m));
    b->ir.n_symbols = m->old.n_symbols;
    for (uint32_t i = 0; i < b->ir.n_symbols; i++) {
        b->ir.symbol[i] = dt_ir_copy_string(&b->ir, m->old.symbol[i]);
        b->most[i] = d->most[i];
    }
    for (m->present = 0; m->present < d->n_fields && d->how[m->present].kind != DT_BUNDLE_PRESENT;) {
        m->present++;
    }
    b->actions = d->actions;
    DT_TRY(add_inputs(m));
    DT_TRY(add_tensors(m));
    DT_TRY(add_nodes(m));
    dt_ir_index(&b->ir);
    return DT_OK;
}

dt_status dt_bundle_make(const dt_bundle_desc *d, dt_bundle *out_p)
{
    dt_bundle b = {.n_inputs = 0};
    maker m = {.d = d, .b = &b};
    const dt_status st = make_bundle_graph(&m);
    dt_ir_fini(&m.old);
    dt_free(m.is_read);
    dt_free(m.now);
    dt_free(m.input);
    dt_free(m.mean);
    if (st < 0) {
        dt_bundle_fini(&b);
        return st;
    }
    *out_p = b;
    return DT_OK;
}

void dt_bundle_fini(dt_bundle *b)
{
    dt_ir_fini(&b->ir);
    dt_free(b->tensor);
    dt_free(b->dims);
    *b = (dt_bundle){0};
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording a graph: what plugins call through svc/graph.h. See graph.h.
 */
#include <config.h>

#include "engine/graph/graph.h"
#include "engine/graph/fingerprint.h"
#include "engine/graph/op.h"
#include "engine/graph/op_user.h"
#include "engine/graph/recorder.h"
#include "base/mem.h"
#include "base/name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STEP_VALUES = 1 << 24 };     /* of a step input, "a small vector" */
enum { FIRST_DROPOUT_STREAM = 0x10000 }; /* dt_rng_key.op: smaller numbers belong to the data and the host */

static dt_recorder *recorder_of(const dt_graph *g)
{
    return (dt_recorder *)(uintptr_t)g;
}

static bool has_failed(const dt_recorder *r)
{
    return r->error.status != DT_OK;
}

/* Keep the first error, with the model it happened in. */
static dt_status record_failure(dt_recorder *r, dt_status st)
{
    if (!has_failed(r)) {
        if (r->scope[0] != '\0') {
            st = DT_CONTEXT(st, "%s", r->scope);
        }
        if (st == DT_ESHAPE || st == DT_ENOTFOUND || st == DT_EUNSUPPORTED) { /* no user's value, no machine */
            st = dt_error_mark_breach(st);
        }
        dt_error_save(&r->error, st);
        r->ir.status = st;
    }
    return r->error.status;
}

static dt_tensor *fail_tensor(dt_recorder *r, dt_status st)
{
    (void)record_failure(r, st);
    return NULL;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static dt_tensor *tensor_of(dt_recorder *r, int32_t value)
{
    if (value < 0) {
        return fail_tensor(r, r->ir.status);
    }
    if (value >= r->n_tensors) {
        int32_t n = r->ir.cap_values;
        dt_tensor **grown = dt_realloc(r->tensor, (size_t)n * sizeof(*grown));
        if (grown == NULL) {
            return fail_tensor(r, DT_FAIL(DT_ENOMEM, "out of memory for %d tensors", n));
        }
        memset(grown + r->n_tensors, 0, (size_t)(n - r->n_tensors) * sizeof(*grown));
        r->tensor = grown;
        r->n_tensors = n;
    }
    if (r->tensor[value] == NULL) {
        dt_tensor *t = dt_alloc(sizeof(*t));
        if (t == NULL) {
            return fail_tensor(r, DT_FAIL(DT_ENOMEM, "out of memory for a tensor"));
        }
        *t = (dt_tensor){.recorder = r, .value = value};
        r->tensor[value] = t;
    }
    return r->tensor[value];
}

static const dt_value *value_of(const dt_tensor *t)
{
    return &t->recorder->ir.value[t->value];
}

/* Value of external storage that was recorded before, -1 when there is none. */
static int32_t find_external(const dt_recorder *r, dt_value_kind kind, int32_t index)
{
    for (int32_t v = 0; v < r->ir.n_values; v++) {
        if (r->ir.value[v].kind == kind && r->ir.value[v].index == index) {
            return v;
        }
    }
    return -1;
}

static dt_tensor *add_external(dt_recorder *r, dt_value v, const char *name)
{
    v.name = dt_ir_copy_string(&r->ir, name);
    return tensor_of(r, dt_ir_add_value(&r->ir, &v));
}

/* A tensor handed to output(), loss() or result(). */
static dt_status check_tensor(dt_recorder *r, const char *what, const char *name, const dt_tensor *t)
{
    if (t == NULL || t->recorder != r) {
        return DT_FAIL(DT_EINVAL, "%s %s: the tensor %s", what, name,
                       t == NULL ? "is NULL" : "belongs to another graph");
    }
    return DT_OK;
}

/* Columns of what was concatenated, where they are those of one part: columns of that part. So parts that
 * no other op reads, such as one critic of two, are dead code, and so are their derivatives. */
static int32_t slice_of_part(const dt_recorder *r, int32_t value, dt_attr *slice)
{
    const dt_value *v = value >= 0 ? &r->ir.value[value] : NULL;
    if (v == NULL || v->kind != DT_VALUE_NODE || r->ir.node[v->producer].op != DT_OP_CONCAT) {
        return value;
    }
    const dt_node *concat = &r->ir.node[v->producer];
    int64_t first = 0;
    for (uint32_t k = 0; k < concat->n_in; k++) {
        const dt_shape *part = &r->ir.value[concat->in[k]].shape;
        const int64_t columns = part->dim[part->rank - 1].size;
        if (slice->i[0] >= first && slice->i[1] >= 1 && slice->i[1] <= columns &&
            slice->i[0] - first <= columns - slice->i[1]) {
            slice->i[0] -= first;
            return concat->in[k];
        }
        first += columns;
    }
    return value;
}

static bool is_whole_slice(const dt_recorder *r, int32_t value, const dt_attr *slice)
{
    const dt_shape *x = &r->ir.value[value].shape;
    return slice->i[0] == 0 && x->dim[x->rank - 1].size == slice->i[1];
}

/* The name of what is recorded, which may become a key of metrics. */
static dt_status check_key(const char *what, const char *name)
{
    return dt_name_check(DT_EINVAL, DT_NAME_KEY, DT_NAME_MOST_KEY, name, "%s", what);
}

static uint32_t graph_purpose(const dt_graph *g)
{
    const uint32_t purpose = recorder_of(g)->desc.purpose;
    return purpose != 0 ? purpose : DT_FOR_TRAINING;
}

static bool is_statistic_param(const dt_recorder *r, int32_t value)
{
    const dt_value *v = value >= 0 ? &r->ir.value[value] : NULL;
    return v != NULL && v->kind == DT_VALUE_PARAM && r->desc.params->param[v->index].is_statistic;
}

/* Of BATCH_NORM: statistics of the micro-batch where updates move the running ones, else the running ones. The kinds of
 * parameters are not known where an exported policy is loaded, which is for acting. */
static dt_status choose_statistics(const dt_recorder *r, const int32_t *in, uint32_t n_in, dt_attr *a)
{
    enum { MEAN = 3, VAR };
    const bool is_training = graph_purpose(&r->face) == DT_FOR_TRAINING;
    a->i[0] = 1;
    if (!is_training || n_in <= VAR || in[MEAN] < 0 || in[VAR] < 0) {
        return DT_OK;
    }
    if (!is_statistic_param(r, in[MEAN]) || !is_statistic_param(r, in[VAR]) || in[MEAN] == in[VAR]) {
        return DT_FAIL(DT_EINVAL,
                       "batch_norm: mean and var must be two parameters of the model that were registered with "
                       "DT_INIT_STATISTIC");
    }
    a->i[0] = !r->ir.value[in[MEAN]].is_statistic || !r->ir.value[in[VAR]].is_statistic;
    return DT_OK;
}

/* ---- what a model calls ------------------------------------------------------------------------------------------ */

/* An op that is known. */
static dt_tensor *record_op(dt_recorder *r, uint32_t op, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr)
{
    if (in == NULL && n_in > 0) {
        return fail_tensor(
            r, DT_FAIL(DT_EINVAL, "%s: %u inputs, but their list is NULL; pass the list", dt_op_name(op), n_in));
    }
    if (n_in > DT_KERNEL_MAX_IN) {
        return fail_tensor(r, DT_FAIL(DT_EINVAL, "%s: %u inputs given, no op takes more than %d", dt_op_name(op), n_in,
                                      DT_KERNEL_MAX_IN));
    }
    int32_t value[DT_KERNEL_MAX_IN];
    for (uint32_t k = 0; k < n_in; k++) {
        if (in[k] != NULL && in[k]->recorder != r) {
            return fail_tensor(r,
                               DT_FAIL(DT_EINVAL, "%s: input number %u belongs to another graph", dt_op_name(op), k));
        }
        value[k] = in[k] != NULL ? in[k]->value : -1;
    }
    dt_attr a = attr != NULL ? *attr : (dt_attr){0};
    if (op == DT_OP_LINEAR && a.i[0] != 0) {
        return fail_tensor(r, DT_FAIL(DT_EINVAL,
                                      "linear: i0 is %lld, but linear takes no function; record a unary after it",
                                      (long long)a.i[0]));
    }
    if (op == DT_OP_DROPOUT || op == DT_OP_NOISE) {
        a.i[0] = FIRST_DROPOUT_STREAM + r->n_dropouts++;
    }
    if (op == DT_OP_BATCH_NORM) {
        const dt_status st = choose_statistics(r, value, n_in, &a);
        if (st != DT_OK) {
            return fail_tensor(r, st);
        }
    }
    if (op == DT_OP_SLICE && n_in == 1) {
        const int32_t through = slice_of_part(r, value[0], &a);
        if (through != value[0] && is_whole_slice(r, through, &a)) {
            return tensor_of(r, through);
        }
        value[0] = through;
    }
    int32_t node = dt_ir_emit(&r->ir, op, value, n_in, &a);
    return tensor_of(r, dt_ir_output_of(&r->ir, node, 0));
}

static dt_tensor *graph_op(dt_graph *g, uint32_t op, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    if (op >= DT_OP_PUBLIC_END || dt_op_find(op) == NULL) {
        return fail_tensor(
            r, DT_FAIL(DT_EINVAL, "op %u is unknown; this host supports DT_OP_* 1 to %d", op, DT_OP_PUBLIC_END - 1));
    }
    return record_op(r, op, in, n_in, attr);
}

static dt_tensor *graph_user_op(dt_graph *g, const char *name, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    dt_status given = dt_name_given(name, "user_op");
    if (given != DT_OK) {
        return fail_tensor(r, given);
    }
    const uint32_t op = dt_user_op_find(name);
    if (op == 0) {
        dt_str all = {0};
        dt_user_op_names(&all);
        const dt_status st = DT_FAIL(DT_ENOTFOUND, "no loaded plugin has an op named %s; there are %s", name,
                                     all.bytes > 0 ? dt_str_text(&all) : "none");
        dt_str_fini(&all);
        return fail_tensor(r, st);
    }
    return record_op(r, op, in, n_in, attr);
}

static dt_tensor *graph_result(dt_graph *g, dt_tensor *first, uint32_t k)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    dt_status st = check_tensor(r, "result of", "op", first);
    if (st != DT_OK) {
        return fail_tensor(r, st);
    }
    const dt_value *v = value_of(first);
    const dt_node *n = v->kind == DT_VALUE_NODE ? &r->ir.node[v->producer] : NULL;
    if (n == NULL || n->out[0] != first->value) {
        return fail_tensor(r, DT_FAIL(DT_EINVAL, "result %u: the tensor given was not returned by an op", k));
    }
    if (k >= dt_op_results(n->op)) {
        return fail_tensor(r, DT_FAIL(DT_EINVAL, "result %u of %s: it has %u, counted from 0", k, dt_op_name(n->op),
                                      dt_op_results(n->op)));
    }
    return tensor_of(r, n->out[k]);
}

static dt_tensor *graph_param(dt_graph *g, const char *name)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    dt_status given = dt_name_given(name, "param");
    if (given != DT_OK) {
        return fail_tensor(r, given);
    }
    char full[256];
    snprintf(full, sizeof(full), "%s%s%s", r->scope, r->scope[0] != '\0' ? "." : "", name);
    const dt_param *p = r->desc.params != NULL ? dt_param_table_find(r->desc.params, full) : NULL;
    if (p == NULL) {
        return fail_tensor(r, DT_FAIL(DT_ENOTFOUND, "parameter %s was not registered by the model's params()", full));
    }
    int32_t index = (int32_t)(p - r->desc.params->param);
    int32_t known = find_external(r, DT_VALUE_PARAM, index);
    if (known >= 0) {
        return tensor_of(r, known);
    }
    dt_value v = {.kind = DT_VALUE_PARAM,
                  .index = index,
                  .offset = p->offset,
                  .trained = !p->frozen && !p->is_statistic,
                  .is_statistic = !p->frozen && p->is_statistic};
    v.shape = (dt_shape){.rank = p->n_dims, .dtype = DT_F32};
    for (uint32_t i = 0; i < p->n_dims; i++) {
        v.shape.dim[i] = dt_extent_number(p->dim[i]);
    }
    return add_external(r, v, full);
}

/* Is whole what was asked for by name, of the source that is being recorded? */
static bool is_named_input(const dt_recorder *r, const char *whole, const char *name)
{
    const size_t n = r->source != NULL ? strlen(r->source) : 0;
    return strncmp(whole, r->source != NULL ? r->source : "", n) == 0 && strcmp(whole + n, name) == 0;
}

static dt_tensor *graph_input(dt_graph *g, const char *name)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    dt_status given = dt_name_given(name, "input");
    if (given != DT_OK) {
        return fail_tensor(r, given);
    }
    for (uint32_t i = 0; i < r->desc.n_fields; i++) {
        const dt_port *f = &r->desc.field[i];
        if (!is_named_input(r, f->name, name)) {
            continue;
        }
        int32_t known = find_external(r, DT_VALUE_FIELD, (int32_t)i);
        if (known >= 0) {
            return tensor_of(r, known);
        }
        dt_value v = {.kind = DT_VALUE_FIELD, .index = (int32_t)i};
        dt_status st = dt_shape_parse(f->dims, f->dtype, r->ir.symbol, r->ir.n_symbols, &v.shape);
        if (st != DT_OK) {
            return fail_tensor(r, DT_CONTEXT(st, "field %s", name));
        }
        return add_external(r, v, f->name);
    }
    return fail_tensor(r, DT_FAIL(DT_ENOTFOUND, "the data has no field \"%s\"", name));
}

static dt_tensor *graph_step_input(dt_graph *g, const char *name, int64_t n)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return NULL;
    }
    dt_status st = check_key("a step input", name);
    if (st == DT_OK && (n < 1 || n > MOST_STEP_VALUES)) {
        st = DT_FAIL(DT_EINVAL, "step input %s has size %lld; expected 1 to %d", name, (long long)n, MOST_STEP_VALUES);
    }
    if (st != DT_OK) {
        return fail_tensor(r, st);
    }
    for (uint32_t i = 0; i < r->n_step_inputs; i++) {
        int32_t known = find_external(r, DT_VALUE_STEP, (int32_t)i);
        if (strcmp(r->ir.value[known].name, name) != 0) {
            continue;
        }
        int64_t size = r->ir.value[known].shape.dim[0].size;
        if (size != n) {
            return fail_tensor(r, DT_FAIL(DT_EINVAL, "step input %s has size %lld here and %lld before", name,
                                          (long long)n, (long long)size));
        }
        return tensor_of(r, known);
    }
    dt_value v = {.kind = DT_VALUE_STEP, .index = (int32_t)r->n_step_inputs++};
    v.shape = (dt_shape){.rank = 1, .dtype = DT_F32, .dim = {dt_extent_number(n)}};
    return add_external(r, v, name);
}

static dt_status graph_model(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out, uint32_t n_out)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return r->error.status;
    }
    if (r->desc.model == NULL) {
        return record_failure(r, DT_FAIL(DT_EUNSUPPORTED, "this graph was made without models"));
    }
    dt_status st = r->desc.model(r->desc.user, g, m, in, n_in, out, n_out);
    return st < 0 ? record_failure(r, st) : r->error.status;
}

static dt_status graph_model_as(dt_graph *g, dt_model *m, const char *target, const dt_named *in, uint32_t n_in,
                                dt_named *out, uint32_t n_out)
{
    dt_recorder *r = recorder_of(g);
    r->target = target;
    const dt_status st = graph_model(g, m, in, n_in, out, n_out);
    r->target = NULL;
    return st;
}

static dt_status graph_output(dt_graph *g, const char *name, dt_tensor *t)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return r->error.status;
    }
    dt_status st = check_key("an output of a graph", name);
    if (st == DT_OK) {
        st = check_tensor(r, "output", name, t);
    }
    if (st == DT_OK && r->source != NULL) {
        return DT_OK; /* nothing reads it except the outputs of the source itself */
    }
    for (uint32_t i = 0; i < r->ir.n_outputs && st == DT_OK; i++) {
        if (strcmp(r->ir.output[i].name, name) == 0) {
            st = DT_FAIL(DT_EINVAL, "output %s is named twice", name);
        }
    }
    if (st == DT_OK) {
        st = dt_ir_add_output(&r->ir, name, t->value);
    }
    return st == DT_OK ? DT_OK : record_failure(r, st);
}

static dt_status check_loss_value(dt_recorder *r, const char *name, const dt_tensor *t)
{
    const dt_value *v = value_of(t);
    if (v->kind != DT_VALUE_NODE || v->shape.dtype != DT_F64) {
        dt_str s = {0};
        dt_shape_text(&v->shape, r->ir.symbol, &s);
        dt_status st = DT_FAIL(DT_ESHAPE, "loss %s: the value is %s, expected 1 f64, as sum and the losses return",
                               name, dt_str_text(&s));
        dt_str_fini(&s);
        return st;
    }
    for (uint32_t i = 0; i < r->ir.n_losses; i++) {
        if (strcmp(r->ir.loss[i].name, name) == 0) {
            return DT_FAIL(DT_EINVAL, "loss %s is named twice", name);
        }
        if (r->ir.loss[i].value == t->value) {
            return DT_FAIL(DT_EINVAL, "loss %s: its value is already the loss %s", name, r->ir.loss[i].name);
        }
    }
    return DT_OK;
}

/* The symbol as the graph knows it, NULL: it does not; "1" is one too. */
static const char *find_symbol(const dt_recorder *r, const char *name)
{
    for (uint32_t i = 0; i < r->ir.n_symbols; i++) {
        if (is_named_input(r, r->ir.symbol[i], name)) {
            return r->ir.symbol[i];
        }
    }
    return strcmp(name, "1") == 0 ? "1" : NULL;
}

static dt_status check_loss(dt_recorder *r, const char *name, const dt_tensor *t, double weight, const char *symbol)
{
    DT_TRY(check_key("a loss", name));
    DT_TRY(check_tensor(r, "loss", name, t));
    DT_TRY(check_loss_value(r, name, t));
    if (r->ir.n_losses == DT_GRAPH_MAX_LOSSES) {
        return DT_FAIL(DT_EINVAL, "loss %s: a graph has at most %d losses", name, DT_GRAPH_MAX_LOSSES);
    }
    if (!isfinite(weight)) {
        return DT_FAIL(DT_EINVAL, "loss %s: weight %g is not finite", name, weight);
    }
    if (symbol == NULL) {
        return DT_FAIL(DT_EINVAL, "loss %s: its symbol is NULL; pass the one that its value is divided by, or \"1\"",
                       name);
    }
    if (find_symbol(r, symbol) != NULL) {
        return DT_OK;
    }
    dt_str all = {0};
    for (uint32_t i = 0; i < r->ir.n_symbols; i++) {
        dt_str_addf(&all, " %s", r->ir.symbol[i]);
    }
    dt_status st = DT_FAIL(DT_EINVAL, "loss %s: symbol \"%s\" is not one of 1%s", name, symbol, dt_str_text(&all));
    dt_str_fini(&all);
    return st;
}

static dt_status graph_loss(dt_graph *g, const char *name, dt_tensor *value, double weight, const char *symbol)
{
    dt_recorder *r = recorder_of(g);
    if (has_failed(r)) {
        return r->error.status;
    }
    dt_status st = check_loss(r, name, value, weight, symbol);
    if (st != DT_OK) {
        return record_failure(r, st);
    }
    dt_ir_loss l = {.value = value->value, .weight = weight};
    l.name = dt_ir_copy_string(&r->ir, name);
    l.symbol = dt_ir_copy_string(&r->ir, find_symbol(r, symbol));
    if (r->ir.status != DT_OK) {
        return record_failure(r, r->ir.status);
    }
    r->loss[r->ir.n_losses] = (dt_graph_loss){.name = l.name, .symbol = l.symbol, .weight = weight};
    r->ir.loss[r->ir.n_losses++] = l;
    return DT_OK;
}

/* Does a region of the model that is being recorded count? */
static bool is_recomputed(const dt_recorder *r)
{
    const char *const *role = r->desc.recompute;
    if (role == NULL || *role == NULL) {
        return true;
    }
    for (; *role != NULL; role++) {
        const size_t n = strlen(*role);
        if (strncmp(r->scope, *role, n) == 0 && strchr(".@", r->scope[n]) != NULL) { /* or its end */
            return true;
        }
    }
    return false;
}

static void graph_recompute_begin(dt_graph *g)
{
    dt_recorder *r = recorder_of(g);
    if (!has_failed(r) && r->in_region) {
        (void)record_failure(r,
                             DT_FAIL(DT_EINVAL, "recompute_begin inside a recompute region; end the first one before"));
    }
    r->in_region = true;
    r->ir.region = is_recomputed(r) ? ++r->n_regions : 0;
}

static void graph_recompute_end(dt_graph *g)
{
    dt_recorder *r = recorder_of(g);
    if (!has_failed(r) && !r->in_region) {
        (void)record_failure(r, DT_FAIL(DT_EINVAL, "recompute_end without recompute_begin"));
    }
    r->in_region = false;
    r->ir.region = 0;
}

/* Does x stay the same whatever is trained, set or drawn? */
static dt_status is_constant(const dt_recorder *r, int32_t value, bool *is_p)
{
    const dt_ir *ir = &r->ir;
    bool *depends_on = dt_alloc_n((size_t)ir->n_values, sizeof(*depends_on));
    if (depends_on == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", ir->n_values);
    }
    bool is = true;
    depends_on[value] = true;
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) { /* in the order of execution: backwards, all that x needs */
        const dt_node *n = &ir->node[i];
        bool is_needed = false;
        for (uint32_t k = 0; k < n->n_out; k++) {
            is_needed = is_needed || depends_on[n->out[k]];
        }
        if (is_needed) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (n->in[k] >= 0) {
                    depends_on[n->in[k]] = true;
                }
            }
        }
        is = is && !(is_needed && (n->op == DT_OP_DROPOUT || n->op == DT_OP_NOISE));
    }
    for (int32_t v = 0; v < ir->n_values; v++) {
        const dt_value *x = &ir->value[v];
        is = is && !(depends_on[v] &&
                     (x->kind == DT_VALUE_STEP || (x->kind == DT_VALUE_PARAM && (x->trained || x->is_statistic))));
    }
    dt_free(depends_on);
    *is_p = is;
    return DT_OK;
}

static bool is_field(const dt_recorder *r, const char *name)
{
    for (uint32_t i = 0; i < r->desc.n_fields; i++) {
        if (is_named_input(r, r->desc.field[i].name, name)) {
            return true;
        }
    }
    return false;
}

static dt_tensor *graph_kept(dt_graph *g, const char *name, dt_tensor *x)
{
    dt_recorder *r = recorder_of(g);
    bool is = false;
    if (has_failed(r)) {
        return NULL;
    }
    dt_status st = dt_name_check(DT_EINVAL, DT_NAME_WORD, DT_NAME_MOST_PORT, name, "a kept value");
    if (st == DT_OK) {
        st = check_tensor(r, "kept", name, x);
    }
    if (st == DT_OK && is_field(r, name)) {
        st = is_constant(r, x->value, &is);
    }
    if (st != DT_OK) {
        return fail_tensor(r, st);
    }
    if (is) {
        dt_tensor *field = graph_input(g, name);
        if (field == NULL || dt_shape_equal(&value_of(field)->shape, &value_of(x)->shape)) {
            return field;
        }
        dt_str was = {0}, now = {0};
        dt_graph_shape_text(field, &was);
        dt_graph_shape_text(x, &now);
        st =
            DT_FAIL(DT_ESHAPE, "kept %s: the field is %s and the value %s", name, dt_str_text(&was), dt_str_text(&now));
        dt_str_fini(&was);
        dt_str_fini(&now);
        return fail_tensor(r, st);
    }
    for (const char *const *k = r->desc.keep; k != NULL && *k != NULL; k++) {
        if (strcmp(*k, name) == 0) {
            (void)graph_output(g, name, x);
        }
    }
    return x;
}

static int64_t graph_dim(const dt_tensor *t, uint32_t i)
{
    if (t == NULL || i >= value_of(t)->shape.rank || value_of(t)->shape.dim[i].symbol >= 0) {
        return -1;
    }
    return value_of(t)->shape.dim[i].size;
}

static uint32_t graph_rank(const dt_tensor *t)
{
    return t == NULL ? 0 : value_of(t)->shape.rank;
}

static dt_status graph_status(const dt_graph *g)
{
    const dt_recorder *r = recorder_of(g);
    return has_failed(r) ? dt_error_restore(&r->error) : DT_OK;
}

static dt_status graph_fail(dt_graph *g, dt_status st, const char *msg)
{
    const bool is_code = st < 0;
    const bool has_reason = msg != NULL && *msg != '\0';
    st = DT_FAIL(is_code ? st : DT_EINVAL, "%s%s", has_reason ? msg : "a model reported an error without a reason",
                 is_code ? "" : " (with a code that is not an error)");
    return record_failure(recorder_of(g), st);
}

static const dt_graph_api api = {
    .struct_size = sizeof(dt_graph_api),
    .op = graph_op,
    .param = graph_param,
    .input = graph_input,
    .step_input = graph_step_input,
    .model = graph_model,
    .output = graph_output,
    .loss = graph_loss,
    .recompute_begin = graph_recompute_begin,
    .recompute_end = graph_recompute_end,
    .dim = graph_dim,
    .rank = graph_rank,
    .status = graph_status,
    .result = graph_result,
    .kept = graph_kept,
    .model_as = graph_model_as,
    .purpose = graph_purpose,
    .user_op = graph_user_op,
    .fail = graph_fail,
};

const dt_graph_api *dt_graph_api_table(void)
{
    return &api;
}

/* ---- what the host calls ----------------------------------------------------------------------------------------- */

dt_status dt_graph_create(const dt_graph_desc *d, dt_graph **out_p)
{
    if (d->n_symbols > DT_GRAPH_MAX_SYMBOLS) {
        return DT_FAIL(DT_EINVAL, "%u ragged symbols, at most %d are supported", d->n_symbols, DT_GRAPH_MAX_SYMBOLS);
    }
    dt_recorder *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a graph");
    }
    r->face.api = &api;
    r->desc = *d;
    for (uint32_t i = 0; i < d->n_symbols; i++) {
        r->ir.symbol[i] = dt_ir_copy_string(&r->ir, d->symbol[i]);
    }
    r->ir.n_symbols = d->n_symbols;
    if (r->ir.status != DT_OK) {
        dt_status st = r->ir.status;
        dt_graph_destroy(&r->face);
        return st;
    }
    *out_p = &r->face;
    return DT_OK;
}

void dt_graph_destroy(dt_graph *g)
{
    if (g == NULL) {
        return;
    }
    dt_recorder *r = recorder_of(g);
    for (int32_t i = 0; i < r->n_tensors; i++) {
        dt_free(r->tensor[i]);
    }
    dt_free(r->tensor);
    dt_ir_fini(&r->ir);
    dt_free(r);
}

/* "target, opponent": of this role. */
static void list_target_networks(const dt_param_table *t, const char *role, dt_str *out)
{
    for (uint32_t i = 0; t != NULL && i < t->n_targets; i++) {
        if (strcmp(t->target[i].role, role) == 0) {
            dt_str_addf(out, "%s%s", out->bytes > 0 ? ", " : "", t->target[i].name);
        }
    }
}

void dt_graph_set_scope(dt_graph *g, const char *role)
{
    dt_recorder *r = recorder_of(g);
    const bool is_target = r->target != NULL && role[0] != '\0';
    if (is_target && (r->desc.params == NULL || !dt_param_table_has_target(r->desc.params, role, r->target))) {
        dt_str all = {0};
        list_target_networks(r->desc.params, role, &all);
        (void)record_failure(r,
                             DT_FAIL(DT_ENOTFOUND, "model_as: %s has no target network \"%s\"; the trainer gave it %s",
                                     role, r->target, all.bytes > 0 ? dt_str_text(&all) : "none"));
        dt_str_fini(&all);
    }
    snprintf(r->scope, sizeof(r->scope), "%s%s%s", role, is_target ? "@" : "", is_target ? r->target : "");
}

void dt_graph_set_source(dt_graph *g, const char *prefix)
{
    recorder_of(g)->source = prefix[0] != '\0' ? prefix : NULL;
}

void dt_graph_shape_text(const dt_tensor *t, dt_str *out)
{
    dt_shape_text(&value_of(t)->shape, t->recorder->ir.symbol, out);
}

void dt_graph_fingerprint(const dt_graph *g, dt_str *out)
{
    const dt_ir *ir = &recorder_of(g)->ir;
    dt_ir_print(ir, out);
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        for (size_t k = 0; k < sizeof(ir->node[i].attr.f) / sizeof(ir->node[i].attr.f[0]); k++) {
            dt_str_addf(out, "%a ", ir->node[i].attr.f[k]);
        }
    }
}

const dt_ir *dt_graph_ir(const dt_graph *g)
{
    return &recorder_of(g)->ir;
}

bool dt_graph_reads(const dt_graph *g, const char *field)
{
    const dt_recorder *r = recorder_of(g);
    for (int32_t v = 0; v < r->ir.n_values; v++) {
        if (r->ir.value[v].kind == DT_VALUE_FIELD && strcmp(r->ir.value[v].name, field) == 0) {
            return true;
        }
    }
    return false;
}

const char *dt_graph_output_name(const dt_graph *g, uint32_t i)
{
    const dt_ir *ir = &recorder_of(g)->ir;
    return i < ir->n_outputs ? ir->output[i].name : NULL;
}

uint32_t dt_graph_losses(const dt_graph *g, const dt_graph_loss **out_p)
{
    const dt_recorder *r = recorder_of(g);
    *out_p = r->loss;
    return r->ir.n_losses;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A model on trial. See probe.h.
 */
#include <config.h>

#include "plugin/trial/probe.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/graph/fingerprint.h"
#include "engine/graph/plan.h"
#include "plugin/service/stage.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PORTS = 32 };

/* What phases fix by name; small, all different where they can be, so that mixed-up sizes do not fit by chance. */
static const dt_dim dims[] = {
    {"D", 9},      {"H", 16},          {"T", 3},           {"F", 4},         {"W", 5},    {"dt_ms", 200},
    {"K", 2},      {"choices", 7},     {"continuous", 6},  {"phases", 13},   {"ego", 10}, {"advice", 42},
    {"P", 2},      {"Q", 2},           {"moves", 2},       {"others", 14},   {"X", 11},   {"Y", 8},
    {"copies", 3}, {"image_dim1", 36}, {"image_dim2", 44}, {"image_dim3", 4}};
enum { N_DIMS = sizeof(dims) / sizeof(dims[0]) };

static const char *const letters[] = {"B", "N", "E", "S", "A"}; /* ragged, roles.h */
enum { N_LETTERS = sizeof(letters) / sizeof(letters[0]) };

/* ---- host ------------------------------------------------------------------------------------------------------ */

static void probe_log(const dt_host *h, int32_t level, const char *msg)
{
    dt_log(level > DT_LOG_WARN ? DT_LOG_DEBUG : level, "%s", msg != NULL ? msg : "");
}

static void *probe_alloc(const dt_host *h, uint64_t bytes)
{
    void *p = dt_alloc(bytes);
    ((dt_probe_host *)h)->n_live += p != NULL;
    return p;
}

static void probe_release(const dt_host *h, void *p)
{
    ((dt_probe_host *)h)->n_live -= p != NULL;
    dt_free(p);
}

void dt_probe_host_init(dt_probe_host *p)
{
    dt_host_init(&p->host);
    p->host.log = probe_log;
    p->host.alloc = probe_alloc;
    p->host.release = probe_release;
    p->n_live = 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

dt_status dt_probe_create(dt_probe *p, const dt_loaded *model, const void *config)
{
    memset(p, 0, sizeof(*p));
    p->model = model;
    dt_probe_host_init(&p->host);
    p->state = dt_alloc(model->desc.state_size);
    p->config = dt_alloc(model->desc.config_size);
    if (p->state == NULL || p->config == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the state of %s", model->desc.id);
    }
    if (model->desc.config_size > 0) {
        memcpy(p->config, config, model->desc.config_size);
    }
    p->is_created = true; /* destroy follows even a failed create */
    dt_error_clear();
    dt_status st = model->ops.model.create(p->state, &p->host.host, p->config, dims, N_DIMS);
    return st > 0 ? DT_OK : st;
}

void dt_probe_destroy(dt_probe *p)
{
    dt_graph_destroy(p->graph);
    p->graph = NULL;
    dt_param_table_fini(&p->params);
    if (p->is_created) {
        p->model->ops.model.destroy(p->state);
        p->is_created = false;
    }
    dt_free(p->state);
    dt_free(p->config);
    p->state = p->config = NULL;
}

/* ---- ports and parameters -------------------------------------------------------------------------------------- */

static void add_symbol(dt_probe *p, const char *text, size_t bytes)
{
    if (p->n_symbols == DT_GRAPH_MAX_SYMBOLS || bytes >= DT_PROBE_SYMBOL_BYTES) {
        return; /* the port is rejected */
    }
    for (uint32_t i = 0; i < p->n_symbols; i++) {
        if (strlen(p->symbol[i]) == bytes && memcmp(p->symbol[i], text, bytes) == 0) {
            return;
        }
    }
    snprintf(p->symbol_text[p->n_symbols], DT_PROBE_SYMBOL_BYTES, "%.*s", (int)bytes, text);
    p->symbol[p->n_symbols] = p->symbol_text[p->n_symbols];
    p->n_symbols++;
}

/* The symbols of a port: "V 2", "L+1". */
static void add_symbols(dt_probe *p, const dt_port *port)
{
    for (const char *at = port->dims; at != NULL && *at != '\0';) {
        const size_t bytes = strcspn(at, " +");
        if (*at >= 'A' && *at <= 'Z') {
            add_symbol(p, at, bytes);
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
}

static void list_symbols(dt_probe *p)
{
    p->n_symbols = 0;
    for (uint32_t i = 0; i < N_LETTERS; i++) {
        add_symbol(p, letters[i], 1);
    }
    for (uint32_t i = 0; i < p->n_in && i < MAX_PORTS && p->in != NULL; i++) {
        add_symbols(p, &p->in[i]);
    }
}

static dt_status check_ports(const dt_probe *p, const dt_port *port, uint32_t n, const char *side)
{
    if (n > MAX_PORTS || (n > 0 && port == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "%u %ss, expected at most %d in a list that is not NULL", n, side, MAX_PORTS);
    }
    for (uint32_t i = 0; i < n; i++) {
        dt_shape shape;
        if (port[i].name == NULL || port[i].dims == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s %u has no name or no dims", side, i);
        }
        dt_status st = dt_shape_parse(port[i].dims, port[i].dtype, p->symbol, p->n_symbols, &shape);
        if (st != DT_OK) {
            return DT_CONTEXT(DT_EPLUGIN, "%s %s", side, port[i].name);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(port[i].name, port[j].name) == 0) {
                return DT_FAIL(DT_EPLUGIN, "%s %s is declared twice", side, port[i].name);
            }
        }
    }
    return DT_OK;
}

dt_status dt_probe_ports(dt_probe *p)
{
    dt_trial_report_call(p->trial, "inputs");
    p->in = p->model->ops.model.inputs(p->state, &p->n_in);
    dt_trial_report_call(p->trial, "outputs");
    p->out = p->model->ops.model.outputs(p->state, &p->n_out);
    list_symbols(p);
    DT_TRY(check_ports(p, p->in, p->n_in, "input"));
    DT_TRY(check_ports(p, p->out, p->n_out, "output"));
    return p->n_out > 0 ? DT_OK : DT_FAIL(DT_EPLUGIN, "no outputs, expected at least one");
}

static dt_status add_param(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init,
                           double a)
{
    dt_probe *p = reg->priv;
    return dt_param_table_add(&p->params, p->model->desc.role, name, dim, n_dims, init, a);
}

dt_status dt_probe_params(dt_probe *p)
{
    dt_params reg = {.struct_size = sizeof(reg), .priv = p, .add = add_param};
    dt_status st = p->model->ops.model.params(p->state, &reg);
    return st > 0 ? DT_OK : st;
}

/* ---- graph ----------------------------------------------------------------------------------------------------- */

dt_status dt_probe_record(dt_probe *p)
{
    const dt_graph_desc desc = {
        .symbol = p->symbol, .n_symbols = p->n_symbols, .n_fields = p->n_in, .field = p->in, .params = &p->params};
    DT_TRY(dt_graph_create(&desc, &p->graph));
    const dt_graph_api *api = p->graph->api;
    dt_tensor *in[MAX_PORTS], *out[MAX_PORTS] = {NULL};
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = api->input(p->graph, p->in[i].name);
    }
    DT_TRY(api->status(p->graph));
    dt_graph_set_scope(p->graph, p->model->desc.role);
    dt_status st = p->model->ops.model.forward(p->state, p->graph, in, out);
    dt_graph_set_scope(p->graph, "");
    DT_TRY(st);
    DT_TRY(api->status(p->graph));
    for (uint32_t i = 0; i < p->n_out; i++) {
        if (out[i] == NULL) {
            return DT_FAIL(DT_EPLUGIN, "forward leaves output %s unset", p->out[i].name);
        }
        dt_str is = {0}, want = {0};
        dt_graph_shape_text(out[i], &is);
        dt_str_addf(&want, "%s %s", p->out[i].dims, dt_dtype_name(p->out[i].dtype));
        st = strcmp(dt_str_text(&is), dt_str_text(&want)) == 0
                 ? DT_OK
                 : DT_FAIL(DT_ESHAPE, "output %s is [%s], its port is [%s]", p->out[i].name, dt_str_text(&is),
                           dt_str_text(&want));
        dt_str_fini(&is);
        dt_str_fini(&want);
        DT_TRY(st);
        DT_TRY(api->output(p->graph, p->out[i].name, out[i]));
        if (i < DT_GRAPH_MAX_LOSSES) { /* a sum is the simplest loss that reaches every element */
            DT_TRY(api->loss(p->graph, p->out[i].name, dt_sum(p->graph, out[i]), 1.0, "1"));
        }
    }
    return api->status(p->graph);
}

static dt_status compare_record(dt_probe *p, const dt_str *first, const char *what)
{
    dt_graph *kept = p->graph; /* lives, so that a tensor of it is seen where it does not belong */
    dt_str now = {0};
    p->graph = NULL;
    dt_status st = dt_probe_record(p);
    if (st == DT_OK) {
        dt_graph_fingerprint(p->graph, &now);
        st = strcmp(dt_str_text(&now), dt_str_text(first)) == 0
                 ? dt_str_status(&now)
                 : DT_FAIL(DT_EPLUGIN,
                           "%s records another graph: a graph depends on options and sizes alone, not on static "
                           "variables, earlier calls, or random numbers",
                           what);
    }
    dt_graph_destroy(p->graph);
    p->graph = kept;
    dt_str_fini(&now);
    return st;
}

dt_status dt_probe_compare(dt_probe *p, dt_probe *other)
{
    dt_str first = {0};
    dt_graph_fingerprint(p->graph, &first);
    dt_status st = compare_record(p, &first, "forward, called again,");
    if (st == DT_OK && other != NULL && other->is_created) {
        st = dt_probe_ports(other);
        if (st == DT_OK) {
            st = dt_probe_params(other);
        }
        if (st == DT_OK) {
            st = compare_record(other, &first, "a second instance with the same options");
        }
    }
    dt_str_fini(&first);
    return st;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* Zeros of a port's shape; row pointers count up by one, so that every row has one edge, to row 0. */
static dt_status allocate_field(const dt_probe *p, const dt_port *port, const int64_t *size, void **out_p)
{
    dt_shape shape;
    int64_t count = 0;
    DT_TRY(dt_shape_parse(port->dims, port->dtype, p->symbol, p->n_symbols, &shape));
    if (!dt_shape_count(&shape, size, &count)) {
        return DT_FAIL(DT_ESHAPE, "input %s is too large", port->name);
    }
    void *field = dt_alloc_n((size_t)count, dt_dtype_bytes(port->dtype));
    if (field == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for input %s", port->name);
    }
    if (shape.dim[0].size == 1 && shape.dim[0].symbol >= 0 && port->dtype == DT_I32) {
        for (int64_t i = 0; i < count; i++) {
            ((int32_t *)field)[i] = (int32_t)i;
        }
    }
    *out_p = field;
    return DT_OK;
}

static dt_status check_finite(const float *v, int64_t n, const char *what, const char *name)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            return DT_FAIL(DT_EDIVERGED, "%s %s is %g at element %lld, with inputs of zeros", what, name, (double)v[i],
                           (long long)i);
        }
    }
    return DT_OK;
}

/* One slice of a plan. For inference grads is NULL and the outputs are checked, in training the gradients. */
static dt_status run_slice(const dt_probe *p, dt_exec *exec, int64_t live, const float *params, float *grads)
{
    int64_t size[DT_GRAPH_MAX_SYMBOLS];
    double seed[DT_GRAPH_MAX_LOSSES], loss[DT_GRAPH_MAX_LOSSES] = {0};
    void *field[MAX_PORTS] = {NULL};
    const dt_kernel_run run = {.training = grads != NULL};
    dt_status st = DT_OK;
    for (int i = 0; i < DT_GRAPH_MAX_SYMBOLS; i++) {
        size[i] = live;
    }
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        seed[i] = 1.0;
    }
    for (uint32_t i = 0; i < p->n_in && st == DT_OK; i++) {
        st = allocate_field(p, &p->in[i], size, &field[i]);
    }
    const dt_exec_feed feed = {
        .size = size, .field = field, .params = params, .grads = grads, .loss_seed = seed, .loss = loss, .run = &run};
    if (st == DT_OK) {
        st = dt_exec_run(exec, &feed);
    }
    if (grads == NULL) {
        for (uint32_t i = 0; i < p->n_out && st == DT_OK; i++) {
            const dt_view *v = dt_exec_output(exec, p->out[i].name);
            if (v == NULL || v->data == NULL) {
                st = DT_FAIL(DT_EPLUGIN, "output %s has no value after a run", p->out[i].name);
            } else if (v->dtype == DT_F32) {
                st = check_finite(v->data, dt_view_count(v), "output", p->out[i].name);
            }
        }
    }
    if (grads != NULL) {
        for (uint32_t i = 0; i < p->params.n && st == DT_OK; i++) {
            const dt_param *param = &p->params.param[i];
            st = check_finite(grads + param->offset, param->count, "the gradient of", param->name);
        }
    }
    for (uint32_t i = 0; i < p->n_in; i++) {
        dt_free(field[i]);
    }
    return st;
}

enum { LARGE = 3 };

static dt_status run_slices(const dt_probe *p, const dt_plan *plan, const float *params, float *grads, dt_exec **exec_p)
{
    DT_TRY(dt_exec_create(plan, exec_p));
    DT_TRY(run_slice(p, *exec_p, LARGE, params, grads));
    return run_slice(p, *exec_p, 1, params, grads);
}

static dt_status run_plan(const dt_probe *p, const float *params, float *grads)
{
    int64_t cap[DT_GRAPH_MAX_SYMBOLS];
    for (int i = 0; i < DT_GRAPH_MAX_SYMBOLS; i++) {
        cap[i] = LARGE;
    }
    const dt_plan_desc desc = {.kernels = DT_KERNELS_REF32,
                               .training = grads != NULL,
                               .reuse = true,
                               .poison = true,
                               .fuse = true,
                               .cap = cap};
    dt_plan *plan = NULL;
    dt_exec *exec = NULL;
    dt_status st = dt_plan_compile(p->graph, &desc, &plan);
    if (st == DT_OK) {
        st = run_slices(p, plan, params, grads, &exec);
    }
    dt_exec_destroy(exec);
    dt_plan_destroy(plan);
    return st;
}

dt_status dt_probe_run(dt_probe *p)
{
    size_t bytes = (size_t)(p->params.total > 0 ? p->params.total : 1) * sizeof(float);
    float *params = dt_alloc(bytes), *grads = dt_alloc(bytes);
    dt_status st = params != NULL && grads != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for %zu bytes", 2 * bytes);
    if (st == DT_OK) {
        st = dt_param_table_init(&p->params, 1, params);
    }
    if (st == DT_OK) {
        st = run_plan(p, params, NULL);
    }
    if (st == DT_OK && p->params.n > 0) {
        st = run_plan(p, params, grads);
    }
    dt_free(params);
    dt_free(grads);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * libdtmock, see mock.h.
 */
#include "mock.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- host -------------------------------------------------------------------------------------------------------- */

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    mock_host *m = (mock_host *)(uintptr_t)h;
    m->status = st;
    snprintf(m->message, sizeof(m->message), "%s", msg);
    return st;
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    mock_host *m = (mock_host *)(uintptr_t)h;
    snprintf(m->log, sizeof(m->log), "%s", msg);
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    mock_host *m = (mock_host *)(uintptr_t)h;
    if (m->fail_alloc > 0 && --m->fail_alloc == 0) {
        return NULL;
    }
    const size_t rounded = (size_t)(bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded > 0 ? rounded : 64);
    if (p != NULL) {
        memset(p, 0, rounded);
        m->n_live++;
    }
    return p;
}

static void host_release(const dt_host *h, void *p)
{
    mock_host *m = (mock_host *)(uintptr_t)h;
    m->n_live -= p != NULL;
    free(p);
}

static const void *host_service(const dt_host *h, const char *id)
{
    const mock_host *m = (const mock_host *)h;
    for (uint32_t i = 0; i < m->n_services; i++) {
        if (strcmp(m->service_id[i], id) == 0) {
            return m->service[i];
        }
    }
    return NULL;
}

void mock_host_init(mock_host *m)
{
    memset(m, 0, sizeof(*m));
    m->host = (dt_host){.struct_size = sizeof(dt_host),
                        .abi_major = DT_ABI_MAJOR,
                        .abi_minor = DT_ABI_MINOR,
                        .fail = host_fail,
                        .log = host_log,
                        .alloc = host_alloc,
                        .release = host_release,
                        .service = host_service};
}

void mock_host_serve(mock_host *m, const char *id, const void *service)
{
    m->service_id[m->n_services] = id;
    m->service[m->n_services++] = service;
}

/* ---- plugins and options ----------------------------------------------------------------------------------------- */

const dt_component *mock_load(const char *folder, const char *file, const char *id)
{
    const char *build = getenv("DT_BUILDDIR");
    char path[MOCK_TEXT], symbol[MOCK_TEXT];
    snprintf(path, sizeof(path), "%s/%s/.libs/%s.so", build != NULL ? build : ".", folder, file);
    snprintf(symbol, sizeof(symbol), "%s_LTX_dt_plugin_entry", file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    const dt_plugin *(*entry)(void) = NULL;
    *(void **)&entry = dlsym(handle, symbol); /* POSIX's way to a function pointer */
    if (entry == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    const dt_plugin *p = entry();
    for (uint32_t i = 0; i < p->n_components; i++) {
        if (strcmp(p->components[i]->id, id) == 0) {
            return p->components[i];
        }
    }
    fprintf(stderr, "%s has no component %s\n", path, id);
    return NULL;
}

static void set_option(const dt_option *o, void *config, const char *text)
{
    void *at = (char *)config + o->offset;
    switch (o->type) {
    case DT_OPT_BOOL:
        *(uint8_t *)at = strcmp(text, "true") == 0;
        break;
    case DT_OPT_I64:
        *(int64_t *)at = strtoll(text, NULL, 10);
        break;
    case DT_OPT_F64:
        *(double *)at = strtod(text, NULL);
        break;
    case DT_OPT_ENUM:
        for (uint32_t i = 0; o->choices[i] != NULL; i++) {
            if (strcmp(o->choices[i], text) == 0) {
                *(uint32_t *)at = i;
                return;
            }
        }
        fprintf(stderr, "%s: no choice %s\n", o->name, text);
        abort();
    default:
        *(const char **)at = text;
    }
}

void *mock_config(const dt_component *c, const char *const *set)
{
    void *config = calloc(1, c->config_size > 0 ? c->config_size : 1);
    for (const dt_option *o = c->options; config != NULL && o != NULL && o->name != NULL; o++) {
        set_option(o, config, o->dfl);
    }
    for (; config != NULL && set != NULL && *set != NULL; set++) {
        const char *value = strchr(*set, '=');
        const dt_option *o = c->options;
        while (o->name != NULL && (strncmp(o->name, *set, (size_t)(value - *set)) != 0 || o->name[value - *set] != 0)) {
            o++;
        }
        if (o->name == NULL) {
            fprintf(stderr, "%s has no option for %s\n", c->id, *set);
            abort();
        }
        set_option(o, config, value + 1);
    }
    return config;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static dt_status params_add(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init,
                            double a)
{
    mock_params *p = (mock_params *)reg;
    if (p->fails_at > 0 && --p->fails_at == 0) {
        return DT_EINVAL;
    }
    if (p->n == MOCK_MAX || n_dims < 1 || n_dims > 4 || strlen(name) >= MOCK_NAME ||
        mock_params_find(p, name) != NULL) {
        fprintf(stderr, "parameter %s is refused\n", name);
        return DT_EPLUGIN;
    }
    mock_param *q = &p->param[p->n++];
    snprintf(q->name, sizeof(q->name), "%s", name);
    q->count = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        q->dim[i] = dim[i];
        q->count *= dim[i];
    }
    q->n_dims = n_dims;
    q->init = init;
    q->a = a;
    return DT_OK;
}

void mock_params_init(mock_params *p)
{
    memset(p, 0, sizeof(*p));
    p->reg = (dt_params){.struct_size = sizeof(dt_params), .add = params_add};
}

mock_param *mock_params_find(mock_params *p, const char *name)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->param[i].name, name) == 0) {
            return &p->param[i];
        }
    }
    return NULL;
}

int64_t mock_params_total(const mock_params *p)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        total += p->param[i].count;
    }
    return total;
}

/* ---- graph ------------------------------------------------------------------------------------------------------- */

static dt_tensor *graph_error(mock_graph *g, const char *what, const char *name)
{
    if (g->error[0] == '\0') {
        snprintf(g->error, sizeof(g->error), "%s %s", what, name);
    }
    return NULL;
}

dt_tensor *mock_graph_tensor(mock_graph *g, const char *name)
{
    if (g->error[0] != '\0' || g->n == 2 * MOCK_MAX) {
        return graph_error(g, "too many tensors at", name);
    }
    dt_tensor *t = &g->tensor[g->n++];
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static dt_tensor *graph_op(dt_graph *graph, uint32_t op, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr)
{
    mock_graph *g = (mock_graph *)graph;
    char name[MOCK_NAME];
    snprintf(name, sizeof(name), "op %u", op);
    if (op == 0 || op >= DT_OP_PUBLIC_END || n_in == 0 || n_in > 8 || in[0] == NULL) {
        return graph_error(g, "unknown op or no input:", name);
    }
    dt_tensor *t = mock_graph_tensor(g, name);
    if (t == NULL) {
        return NULL;
    }
    t->op = op;
    t->n_in = n_in;
    memcpy(t->in, in, n_in * sizeof(*in));
    t->attr = *attr;
    return t;
}

static dt_tensor *graph_result(dt_graph *graph, dt_tensor *first, uint32_t k)
{
    mock_graph *g = (mock_graph *)graph;
    char name[MOCK_NAME];
    snprintf(name, sizeof(name), "result %u", k);
    return first != NULL ? mock_graph_tensor(g, name) : graph_error(g, "no op for", name);
}

static dt_tensor *graph_kept(dt_graph *graph, const char *name, dt_tensor *x)
{
    return x != NULL ? x : graph_error((mock_graph *)graph, "no value for", name);
}

static dt_tensor *graph_param(dt_graph *graph, const char *name)
{
    mock_graph *g = (mock_graph *)graph;
    mock_param *p = g->params != NULL ? mock_params_find(g->params, name) : NULL;
    if (p == NULL) {
        return graph_error(g, "no parameter", name);
    }
    p->used = true;
    return mock_graph_tensor(g, name);
}

static dt_tensor *graph_input(dt_graph *graph, const char *name)
{
    return mock_graph_tensor((mock_graph *)graph, name);
}

static dt_tensor *graph_step_input(dt_graph *graph, const char *name, int64_t n)
{
    return n > 0 ? mock_graph_tensor((mock_graph *)graph, name) : graph_error((mock_graph *)graph, "empty", name);
}

static dt_status graph_status(const dt_graph *graph)
{
    return ((const mock_graph *)graph)->error[0] == '\0' ? DT_OK : DT_ESHAPE;
}

static dt_status graph_model(dt_graph *graph, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                             uint32_t n_out)
{
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i].tensor == NULL) {
            graph_error((mock_graph *)graph, "no value for", in[i].name);
        }
    }
    for (uint32_t i = 0; i < n_out; i++) {
        out[i].tensor = mock_graph_tensor((mock_graph *)graph, out[i].name);
    }
    return graph_status(graph);
}

static dt_status graph_model_as(dt_graph *graph, dt_model *m, const char *target, const dt_named *in, uint32_t n_in,
                                dt_named *out, uint32_t n_out)
{
    return graph_model(graph, m, in, n_in, out, n_out);
}

static dt_status graph_output(dt_graph *graph, const char *name, dt_tensor *t)
{
    mock_graph *g = (mock_graph *)graph;
    snprintf(g->output[g->n_outputs].name, MOCK_NAME, "%s", name);
    g->output[g->n_outputs++].value = t;
    return graph_status(graph);
}

static dt_status graph_loss(dt_graph *graph, const char *name, dt_tensor *value, double weight, const char *symbol)
{
    mock_graph *g = (mock_graph *)graph;
    snprintf(g->loss[g->n_losses].name, MOCK_NAME, "%s", name);
    snprintf(g->loss[g->n_losses].symbol, 8, "%s", symbol);
    g->loss[g->n_losses].weight = weight;
    g->loss[g->n_losses++].value = value;
    return graph_status(graph);
}

static uint32_t graph_purpose(const dt_graph *graph)
{
    const mock_graph *g = (const mock_graph *)graph;
    return g->purpose != 0 ? g->purpose : (uint32_t)DT_FOR_TRAINING;
}

static void graph_mark(dt_graph *graph) {}

static const dt_graph_api graph_api = {.struct_size = sizeof(dt_graph_api),
                                       .op = graph_op,
                                       .param = graph_param,
                                       .input = graph_input,
                                       .step_input = graph_step_input,
                                       .model = graph_model,
                                       .output = graph_output,
                                       .loss = graph_loss,
                                       .recompute_begin = graph_mark,
                                       .recompute_end = graph_mark,
                                       .status = graph_status,
                                       .result = graph_result,
                                       .kept = graph_kept,
                                       .model_as = graph_model_as,
                                       .purpose = graph_purpose};

bool mock_names(const char *text, const char *words)
{
    char word[MOCK_NAME];
    for (; *words != '\0'; words += strspn(words, " ")) {
        const size_t n = strcspn(words, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, words);
        if (strstr(text, word) == NULL) {
            fprintf(stderr, "\"%s\" is not in \"%s\"\n", word, text);
            return false;
        }
        words += n;
    }
    return true;
}

void mock_graph_init(mock_graph *g, mock_params *params)
{
    memset(g, 0, sizeof(*g));
    g->graph.api = &graph_api;
    g->params = params;
}

uint32_t mock_graph_count(const mock_graph *g, uint32_t op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        n += g->tensor[i].op == op;
    }
    return n;
}

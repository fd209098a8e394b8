/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1": creating the models and data that the configuration names, and comparing ports.
 */
#include <config.h>

#include "plugin/service/stage.h"
#include "plugin/service/stream.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "dtrain/ext/dataset.h"
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static const dt_port *find_port(const dt_port *p, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(p[i].name, name) == 0) {
            return &p[i];
        }
    }
    return NULL;
}

/* Token i of dims: its start and length; false when there are not that many. */
static bool token(const char *dims, uint32_t i, const char **start, size_t *bytes)
{
    for (; *dims != '\0'; i--) {
        *bytes = strcspn(dims, " ");
        *start = dims;
        if (i == 0) {
            return true;
        }
        dims += *bytes;
        dims += *dims == ' ';
    }
    return false;
}

static bool is_number(const char *t, size_t n)
{
    return n > 0 && t[0] >= '0' && t[0] <= '9';
}

/* Does what is offered fit what is asked for? Token by token; a letter in lenient asks for anything ragged or sized. */
static bool dims_fit(const char *have, const char *want, bool lenient)
{
    for (uint32_t i = 0;; i++) {
        const char *h = NULL;
        const char *w = NULL;
        size_t hn = 0;
        size_t wn = 0;
        const bool more_h = token(have, i, &h, &hn);
        const bool more_w = token(want, i, &w, &wn);
        if (!more_h || !more_w) {
            return more_h == more_w;
        }
        const bool same = hn == wn && memcmp(h, w, hn) == 0;
        if (!same && !(lenient && is_number(h, hn) && !is_number(w, wn))) {
            return false;
        }
    }
}

static int64_t bind_port_dim(const dt_port *p, uint32_t i)
{
    const char *t = NULL;
    size_t n = 0;
    char number[24];
    int64_t v = -1;
    if (p == NULL || !token(p->dims, i, &t, &n) || n >= sizeof(number)) {
        return -1;
    }
    memcpy(number, t, n);
    number[n] = '\0';
    return dt_parse_i64(number, &v) ? v : -1;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* "nodes, rowptr, ..." */
static const char *list_ports(const dt_port *p, uint32_t n, char text[256])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n && at < 256; i++) {
        at += (size_t)snprintf(text + at, 256 - at, "%s%s", i > 0 ? ", " : "", p[i].name);
    }
    return text;
}

/* What a plugin lists may lack its texts. */
static dt_status check_texts(const char *id, const char *side, const dt_port *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (p == NULL || p[i].name == NULL || p[i].dims == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s: %s %u has no name or no dims", id, side, i);
        }
    }
    return DT_OK;
}

static dt_status check_ports(const dt_stage *s, const dt_model *m, const dt_model_request *want)
{
    const char *phase = s->d.phase->desc.id;
    const char *id = m->comp->desc.id;
    uint32_t n = 0;
    const dt_port *in = m->comp->ops.model.inputs(m->self, &n);
    DT_TRY(check_texts(id, "input", in, n));
    for (uint32_t i = 0; i < n; i++) {
        const dt_port *o = find_port(want->offers, want->n_offers, in[i].name);
        if (o == NULL && (in[i].flags & DT_PORT_OPTIONAL) == 0) {
            char offered[256];
            return DT_FAIL(DT_ESHAPE, "%s %s needs input %s [%s], which %s does not offer: it has %s", want->role, id,
                           in[i].name, in[i].dims, phase, list_ports(want->offers, want->n_offers, offered));
        }
        if (o != NULL && (!dims_fit(o->dims, in[i].dims, false) || o->dtype != in[i].dtype)) {
            return DT_FAIL(DT_ESHAPE, "%s %s expects input %s [%s], %s offers [%s]", want->role, id, in[i].name,
                           in[i].dims, phase, o->dims);
        }
    }
    const dt_port *out = m->comp->ops.model.outputs(m->self, &n);
    DT_TRY(check_texts(id, "output", out, n));
    for (uint32_t i = 0; i < want->n_needs; i++) {
        const dt_port *need = &want->needs[i];
        const dt_port *o = find_port(out, n, need->name);
        if (o == NULL && (need->flags & DT_PORT_OPTIONAL) == 0) {
            return DT_FAIL(DT_ESHAPE, "%s %s has no output %s [%s], which %s needs; wire another model under models.%s",
                           want->role, id, need->name, need->dims, phase, want->role);
        }
        if (o != NULL && (!dims_fit(o->dims, need->dims, true) || o->dtype != need->dtype)) {
            return DT_FAIL(DT_ESHAPE, "%s %s output %s is [%s], %s expects [%s]", want->role, id, need->name, o->dims,
                           phase, need->dims);
        }
    }
    return DT_OK;
}

static const char *wired(const dt_stage *s, const char *role)
{
    if (s->d.controller == NULL) {
        return dt_config_model(s->d.config, s->d.index, role);
    }
    return strcmp(role, "controller") == 0 ? s->d.controller : NULL;
}

static dt_status bind_model(const dt_host *h, const dt_model_request *want, dt_model **out)
{
    dt_stage *s = dt_stage_of(h);
    const char *id = wired(s, want->role);
    *out = NULL;
    if (id == NULL || id[0] == '\0') {
        if ((want->flags & DT_MODEL_OPTIONAL) != 0) {
            return DT_OK;
        }
        return DT_FAIL(DT_ECONFIG, "%s needs a model in the role %s, but models.%s is empty", s->d.phase->desc.id,
                       want->role, want->role);
    }
    if (s->n_models == DT_STAGE_MAX_MODELS) {
        return DT_FAIL(DT_EPLUGIN, "%s binds more than %d models", s->d.phase->desc.id, DT_STAGE_MAX_MODELS);
    }
    dt_model *m = &s->model[s->n_models];
    memset(m, 0, sizeof(*m));
    DT_TRY(dt_loader_find(s->d.loader, DT_KIND_MODEL, id, &m->comp));
    if (m->comp->desc.role == NULL || strcmp(m->comp->desc.role, want->role) != 0) {
        return DT_FAIL(DT_ECONFIG, "models.%s = \"%s\", but %s is a model for the role %s", want->role, id, id,
                       m->comp->desc.role != NULL ? m->comp->desc.role : "(none)");
    }
    s->n_models++; /* from here on the stage frees it */
    m->role = m->comp->desc.role;
    DT_TRY(dt_bind_config(s, m->comp, NULL, 0, &m->config, &m->self));
    m->created = true; /* destroy is called once per create, even a failed one */
    dt_status st = m->comp->ops.model.create(m->self, h, m->config, want->dims, want->n_dims);
    if (st < 0) {
        return DT_CONTEXT(st, "creating %s", id);
    }
    DT_TRY(check_ports(s, m, want));
    *out = m;
    return DT_OK;
}

static const dt_port *bind_model_output(const dt_model *m, const char *name)
{
    uint32_t n = 0;
    const dt_port *p = m->comp->ops.model.outputs(m->self, &n);
    return find_port(p, n, name);
}

static const char *bind_model_id(const dt_model *m)
{
    return m->comp->desc.id;
}

/* svc/graph.h model(): named tensors into the model's own order and back. */
dt_status dt_bind_forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                          uint32_t n_out)
{
    (void)user;
    enum { MAX_PORTS = 32 };
    dt_tensor *ins[MAX_PORTS] = {NULL};
    dt_tensor *outs[MAX_PORTS] = {NULL};
    uint32_t n_pi = 0;
    uint32_t n_po = 0;
    const dt_port *pi = m->comp->ops.model.inputs(m->self, &n_pi);
    const dt_port *po = m->comp->ops.model.outputs(m->self, &n_po);
    if (n_pi > MAX_PORTS || n_po > MAX_PORTS) {
        return DT_FAIL(DT_EPLUGIN, "%s has more than %d ports", m->comp->desc.id, MAX_PORTS);
    }
    for (uint32_t i = 0; i < n_pi; i++) {
        for (uint32_t k = 0; k < n_in; k++) {
            if (strcmp(pi[i].name, in[k].name) == 0) {
                ins[i] = in[k].tensor;
            }
        }
        if (ins[i] == NULL && (pi[i].flags & DT_PORT_OPTIONAL) == 0) {
            return DT_FAIL(DT_EPLUGIN, "%s is recorded without its input %s", m->comp->desc.id, pi[i].name);
        }
    }
    dt_graph_scope(g, m->role);
    dt_status st = m->comp->ops.model.forward(m->self, g, ins, outs);
    dt_graph_scope(g, "");
    if (st == DT_OK) {
        st = g->api->status(g);
    }
    if (st < 0) {
        return DT_CONTEXT(st, "recording %s", m->comp->desc.id);
    }
    for (uint32_t k = 0; k < n_out; k++) {
        out[k].tensor = NULL;
        for (uint32_t i = 0; i < n_po; i++) {
            if (strcmp(po[i].name, out[k].name) == 0) {
                out[k].tensor = outs[i];
            }
        }
        if (out[k].tensor == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s recorded no output %s", m->comp->desc.id, out[k].name);
        }
    }
    return DT_OK;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* How much of a store is judged where nothing is trained; told once. */
static dt_status choose_judged(const dt_stage *s, const dt_data *d, const char *store, bool is_first, const char **out)
{
    const dt_trained_on *t = s->d.judged;
    const uint32_t folds = s->opts.evaluation.folds;
    const dt_dataset_ext *of = d->comp->desc.extension != NULL ? d->comp->desc.extension(DT_EXT_DATASET) : NULL;
    uint64_t value = 0;
    char digest[17] = "?";
    bool is_other = false;
    if (folds == DT_FOLDS_AUTO && t->is_trained && t->is_known && DT_HAS(of, digest)) {
        DT_TRY_PLUGIN(of->digest(&s->host, store, &value), "digest");
        snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)value);
        is_other = strstr(t->stores, digest) == NULL;
    }
    *out = folds == DT_FOLDS_ALL || is_other ? "all" : "held";
    if (is_first && folds == DT_FOLDS_AUTO && t->is_trained && !t->is_known) {
        dt_log(DT_LOG_WARN,
               "the checkpoint does not record its training data: evaluated on the part of %s that training holds out; "
               "evaluation.folds = \"all\" takes all of it",
               store);
    } else if (is_first) {
        dt_log(DT_LOG_INFO, "evaluated on %s of %s%s", strcmp(*out, "all") == 0 ? "all" : "the part held out", store,
               is_other ? ", which was not trained on" : "");
    }
    return DT_OK;
}

/* The option of the phase that asks for such a part, by its name: "calibration" by calibration_folds. */
static dt_status reject_split(const dt_stage *s, const char *split)
{
    const dt_loaded *phase = s->d.phase;
    const dt_option *o = phase->desc.options;
    while (o != NULL && o->name != NULL && strncmp(o->name, split, strlen(split)) != 0) {
        o++;
    }
    const bool is_found = o != NULL && o->name != NULL;
    return DT_FAIL(DT_ECONFIG, "%s uses the part %s of its training data, which data.stream does not keep%s%s%s%s%s",
                   phase->desc.id, split, is_found ? "; set " : "", is_found ? phase->desc.id : "", is_found ? "." : "",
                   is_found ? o->name : "", is_found ? " = 0" : "");
}

/* Is it what the phase trains on, and does that come as a stream? A phase binds the rest of its data with another split
 * than "train". */
static dt_status find_streamed(const dt_stage *s, const dt_data *d, const dt_data_opts *o, const dt_setting *over,
                               uint32_t n, bool *is_streamed_p)
{
    const char *split = "train";
    *is_streamed_p = false;
    if (o->stream[0] == '\0' || s->d.judged != NULL) {
        return DT_OK;
    }
    if (o->store[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "data.stream needs data.store for evaluations and for the memory plan");
    }
    if (dt_option_find_flag(d->comp->desc.options, DT_OPT_STORE) == NULL) {
        return DT_FAIL(DT_ECONFIG, "data.stream needs a data source that reads stores, and %s does not",
                       d->comp->desc.id);
    }
    const dt_option *parts = dt_option_find_flag(d->comp->desc.options, DT_OPT_SPLIT);
    for (uint32_t i = 0; parts != NULL && i < n; i++) {
        split = strcmp(over[i].key, parts->name) == 0 ? over[i].value : split;
    }
    *is_streamed_p = strcmp(split, "train") == 0;
    return strcmp(split, "calibration") == 0 ? reject_split(s, split) : DT_OK;
}

static int64_t slice_rows_of(const dt_engine_opts *e)
{
    return e->slice_rows > 0 ? e->slice_rows : 512;
}

static dt_status bind_data(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out)
{
    dt_stage *s = dt_stage_of(h);
    const dt_data_opts *opts = &s->opts.data;
    if (s->n_data == DT_STAGE_MAX_DATA || n > 13) {
        return DT_FAIL(DT_EPLUGIN, "%s binds more than %d data sets", s->d.phase->desc.id, DT_STAGE_MAX_DATA);
    }
    if (opts->source[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s reads data, but data.source is empty; set it to the id of a data component",
                       s->d.phase->desc.id);
    }
    dt_data *d = &s->data[s->n_data];
    memset(d, 0, sizeof(*d));
    DT_TRY(dt_loader_find(s->d.loader, DT_KIND_DATA, opts->source, &d->comp));
    s->n_data++;
    /* the component gets data.store by its option with DT_OPT_STORE */
    dt_setting over[16];
    uint32_t n_over = 0;
    const char *store = opts->store[0] != '\0' ? opts->store : s->d.demo_store, *judged = NULL;
    const dt_option *of_store = dt_option_find_flag(d->comp->desc.options, DT_OPT_STORE);
    const dt_option *held = dt_option_find_flag(d->comp->desc.options, DT_OPT_FOLDS);
    if (of_store != NULL) {
        over[n_over++] = (dt_setting){of_store->name, store};
    }
    if (s->d.judged != NULL && of_store != NULL && held != NULL) {
        dt_status st = choose_judged(s, d, store, s->n_data == 1, &judged);
        DT_TRY(st == DT_ENOTFOUND ? DT_EDATA : st);
        over[n_over++] = (dt_setting){held->name, judged};
    }
    bool is_streamed = false;
    DT_TRY(dt_reject_stream_options(s, opts));
    DT_TRY(find_streamed(s, d, opts, overrides, n, &is_streamed));
    if (opts->stream[0] != '\0' && s->d.judged == NULL && held != NULL) {
        over[n_over++] =
            (dt_setting){held->name, "all"}; /* nothing of the store is trained on, and all of a stream is */
    }
    for (uint32_t i = 0; i < n; i++) {
        over[n_over++] = overrides[i];
    }
    DT_TRY(dt_reject_overridden_options(s, d->comp, over, n_over));
    DT_TRY(dt_bind_config(s, d->comp, over, n_over, &d->config, &d->self));
    d->created = true;
    dt_status st = d->comp->ops.data.create(d->self, h, d->config);
    if (st >= 0) {
        st = dt_samples_open(&d->source, &d->comp->ops.data, d->self, slice_rows_of(&s->opts.engine));
    }
    if (st < 0) {
        return DT_CONTEXT(st == DT_ENOTFOUND ? DT_EDATA : st, "opening %s", d->comp->desc.id);
    }
    if (is_streamed && s->stream != NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s trains on two sets of data, and data.stream is one", s->d.phase->desc.id);
    }
    DT_TRY(is_streamed ? dt_stream_create(s, d, over, n_over, opts, &s->stream) : DT_OK);
    *out = d;
    return DT_OK;
}

/* What the phase makes itself; of its table only what it has is read. */
static dt_status bind_own_data(const dt_host *h, const dt_data_ops *ops, void *self, dt_data **out)
{
    dt_stage *s = dt_stage_of(h);
    if (s->n_data == DT_STAGE_MAX_DATA) {
        return DT_FAIL(DT_EPLUGIN, "%s binds more than %d data sets", s->d.phase->desc.id, DT_STAGE_MAX_DATA);
    }
    dt_data *d = &s->data[s->n_data];
    memset(d, 0, sizeof(*d));
    memcpy(&d->own, ops, ops->struct_size < sizeof(d->own) ? ops->struct_size : sizeof(d->own));
    if (d->own.fields == NULL || d->own.symbols == NULL || d->own.count == NULL || d->own.sizes == NULL ||
        d->own.read == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: data of its own requires fields, symbols, count, sizes and read",
                       s->d.phase->desc.id);
    }
    const dt_status st = dt_samples_open(&d->source, &d->own, self, slice_rows_of(&s->opts.engine));
    if (st < 0) {
        return DT_CONTEXT(st, "data that %s makes", s->d.phase->desc.id);
    }
    s->n_data++;
    *out = d;
    return DT_OK;
}

static const dt_port *bind_data_field(const dt_data *d, const char *name)
{
    return find_port(d->source.field, d->source.n_fields, name);
}

static uint64_t bind_data_count(const dt_data *d)
{
    return d->source.count;
}

dt_status dt_bind_check_stat(const char *who, const char *field, uint32_t column, const dt_field_stat *s)
{
    const bool is_finite =
        isfinite(s->n) && isfinite(s->min) && isfinite(s->max) && isfinite(s->mean) && isfinite(s->std);
    const double room = 1e-6 * (fabs(s->min) + fabs(s->max)); /* the mean of many alike may round past them */
    if (is_finite && s->n >= 0 && s->std >= 0 && s->min <= s->max && s->mean >= s->min - room &&
        s->mean <= s->max + room) {
        return DT_OK;
    }
    return DT_FAIL(DT_EPLUGIN,
                   "%s reports for column %u of %s: %g values, least %g, greatest %g, mean %g, deviation %g; these are "
                   "inconsistent",
                   who, column, field, s->n, s->min, s->max, s->mean, s->std);
}

static dt_status bind_data_statistics(const dt_data *d, const char *field, dt_field_stat *out, uint32_t n)
{
    const dt_data_ops *ops = d->comp != NULL ? &d->comp->ops.data : &d->own;
    void *self = d->comp != NULL ? d->self : d->source.self;
    const char *who = d->comp != NULL ? d->comp->desc.id : "the phase's data";
    const dt_port *port = bind_data_field(d, field);
    if (port == NULL) {
        return DT_FAIL(DT_ENOTFOUND, "%s has no field %s", who, field);
    }
    const char *last = strrchr(port->dims, ' ');
    const long columns = last != NULL ? strtol(last, NULL, 10) : 0;
    if (port->dtype != DT_F32 || columns != (long)n || n == 0) {
        return DT_FAIL(DT_ESHAPE, "field %s of %s is \"%s\" of %s, not %u columns of f32", field, who, port->dims,
                       dt_dtype_name(port->dtype), n);
    }
    if (ops->statistics == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s keeps no statistics of its fields", who);
    }
    memset(out, 0, n * sizeof(*out));
    const dt_status st = ops->statistics(self, field, out, n);
    if (st < 0) {
        return DT_CONTEXT(st, "statistics of field %s of %s", field, who);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_bind_check_stat(who, field, i, &out[i]));
    }
    return DT_OK;
}

void dt_bind_fini(dt_stage *s)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (s->model[i].created && s->model[i].comp->ops.model.destroy != NULL) {
            s->model[i].comp->ops.model.destroy(s->model[i].self);
        }
        dt_free(s->model[i].self);
        dt_free(s->model[i].config);
    }
    dt_stream_destroy(s->stream);
    s->stream = NULL;
    for (uint32_t i = 0; i < s->n_data; i++) {
        if (s->data[i].created && s->data[i].comp->ops.data.destroy != NULL) {
            s->data[i].comp->ops.data.destroy(s->data[i].self);
        }
        dt_free(s->data[i].self);
        dt_free(s->data[i].config);
    }
    dt_bind_env_fini(s);
    s->n_models = 0;
    s->n_data = 0;
}

const dt_bind_api dt_bind_service = {.struct_size = sizeof(dt_bind_api),
                                     .model = bind_model,
                                     .model_output = bind_model_output,
                                     .model_id = bind_model_id,
                                     .port_dim = bind_port_dim,
                                     .data = bind_data,
                                     .data_field = bind_data_field,
                                     .data_count = bind_data_count,
                                     .own_data = bind_own_data,
                                     .env_learners = dt_bind_env_learners,
                                     .data_statistics = bind_data_statistics,
                                     .env = dt_bind_env,
                                     .env_spec = dt_bind_env_spec,
                                     .env_id = dt_bind_env_id,
                                     .env_instances = dt_bind_env_instances};

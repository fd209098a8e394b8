/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1": creates the models that the configuration names and checks their ports. Data: bind_data.c,
 * environments: bind_env.c.
 */
#include <config.h>

#include "plugin/service/stage.h"
#include "plugin/service/stream.h"

#include "base/err.h"
#include "base/fp_mode.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/str.h"
#include "dtrain/svc/bind.h"
#include "engine/tensor/port.h"

#include <stdio.h>
#include <string.h>

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Token i of dims: its start and length; false when there are not that many. */
static bool token_of_dims(const char *dims, uint32_t i, const char **start, size_t *bytes)
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

static bool is_number_token(const char *t, size_t n)
{
    return n > 0 && t[0] >= '0' && t[0] <= '9';
}

/* Does what is offered fit what is asked for? Token by token; a letter in lenient accepts anything ragged or sized. */
static bool do_dims_fit(const char *have, const char *want, bool lenient)
{
    for (uint32_t i = 0;; i++) {
        const char *h = NULL;
        const char *w = NULL;
        size_t hn = 0;
        size_t wn = 0;
        const bool more_h = token_of_dims(have, i, &h, &hn);
        const bool more_w = token_of_dims(want, i, &w, &wn);
        if (!more_h || !more_w) {
            return more_h == more_w;
        }
        const bool same = hn == wn && memcmp(h, w, hn) == 0;
        if (!same && !(lenient && is_number_token(h, hn) && !is_number_token(w, wn))) {
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
    if (p == NULL || !token_of_dims(p->dims, i, &t, &n) || n >= sizeof(number)) {
        return -1;
    }
    memcpy(number, t, n);
    number[n] = '\0';
    return dt_parse_i64(number, &v) ? v : -1;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* "nodes, rowptr, ..." */
static const char *append_port_names(const dt_port *p, uint32_t n, char text[256])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n && at < 256; i++) {
        at += (size_t)snprintf(text + at, 256 - at, "%s%s", i > 0 ? ", " : "", p[i].name);
    }
    return text;
}

static dt_status check_ports(const dt_stage *s, const dt_model *m, const dt_model_request *want)
{
    const char *phase = s->d.phase->desc.id;
    const char *id = m->comp->desc.id;
    uint32_t n = 0;
    const dt_port *in = m->comp->ops.model.inputs(m->self, &n);
    DT_TRY(dt_ports_check(DT_EPLUGIN, id, "input", in, n, false));
    for (uint32_t i = 0; i < n; i++) {
        const dt_port *o = dt_port_find(want->offers, want->n_offers, in[i].name);
        if (o == NULL && (in[i].flags & DT_PORT_OPTIONAL) == 0) {
            char offered[256];
            return DT_FAIL(DT_ESHAPE, "%s %s needs input %s [%s], which %s does not offer: it has %s", want->role, id,
                           in[i].name, in[i].dims, phase, append_port_names(want->offers, want->n_offers, offered));
        }
        if (o != NULL && (!do_dims_fit(o->dims, in[i].dims, false) || o->dtype != in[i].dtype)) {
            return DT_FAIL(DT_ESHAPE, "%s %s expects input %s [%s], %s offers [%s]", want->role, id, in[i].name,
                           in[i].dims, phase, o->dims);
        }
    }
    const dt_port *out = m->comp->ops.model.outputs(m->self, &n);
    DT_TRY(dt_ports_check(DT_EPLUGIN, id, "output", out, n, false));
    for (uint32_t i = 0; i < want->n_needs; i++) {
        const dt_port *need = &want->needs[i];
        const dt_port *o = dt_port_find(out, n, need->name);
        if (o == NULL && (need->flags & DT_PORT_OPTIONAL) == 0) {
            return DT_FAIL(DT_ESHAPE, "%s %s has no output %s [%s], which %s needs; wire another model under models.%s",
                           want->role, id, need->name, need->dims, phase, want->role);
        }
        if (o != NULL && (!do_dims_fit(o->dims, need->dims, true) || o->dtype != need->dtype)) {
            return DT_FAIL(DT_ESHAPE, "%s %s output %s is [%s], %s expects [%s]", want->role, id, need->name, o->dims,
                           phase, need->dims);
        }
    }
    return DT_OK;
}

static const char *model_wired_to_role(const dt_stage *s, const char *role)
{
    if (s->d.controller == NULL) {
        return dt_config_model(s->d.config, s->d.index, role);
    }
    return strcmp(role, "controller") == 0 ? s->d.controller : NULL;
}

static dt_status check_request(const char *phase, const dt_model_request *want, dt_model *const *out)
{
    if (want == NULL || out == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s binds a model without a %s", phase,
                       want == NULL ? "description" : "place for its handle");
    }
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, want->role, "%s: the role of a model it binds",
                         phase));
    if (want->dims == NULL && want->n_dims > 0) {
        return DT_FAIL(DT_EPLUGIN, "%s: the model %s gets %u sizes, but their list is NULL", phase, want->role,
                       want->n_dims);
    }
    for (uint32_t i = 0; i < want->n_dims; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_KEY, DT_NAME_MOST_WORD, want->dims[i].name,
                             "%s: size %u that the model %s gets", phase, i, want->role));
    }
    /* the first of a name counts */
    DT_TRY(dt_ports_check(DT_EPLUGIN, phase, "offered input", want->offers, want->n_offers, true));
    return dt_ports_check(DT_EPLUGIN, phase, "needed output", want->needs, want->n_needs, false);
}

static dt_status bind_model(const dt_host *h, const dt_model_request *want, dt_model **out)
{
    dt_stage *s = dt_stage_of(h);
    DT_TRY(check_request(s->d.phase->desc.id, want, out));
    const char *id = model_wired_to_role(s, want->role);
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
    DT_TRY(dt_component_configure(s, m->comp, NULL, 0, &m->config, &m->self));
    m->created = true; /* destroy is called once per create, even a failed one */
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, m->comp->desc.id, "create",
                   m->comp->ops.model.create(m->self, h, m->config, want->dims, want->n_dims));
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
    if (m == NULL || name == NULL) {
        return NULL;
    }
    const dt_port *p = m->comp->ops.model.outputs(m->self, &n);
    return dt_port_find(p, n, name);
}

static const char *bind_model_id(const dt_model *m)
{
    return m->comp->desc.id;
}

/* What a phase records a model with. */
static dt_status check_named(const dt_model *m, const char *side, const dt_named *x, uint32_t n)
{
    if (x == NULL && n > 0) {
        return DT_FAIL(DT_EINVAL, "%s is recorded with %u %ss, but their list is NULL", m->comp->desc.id, n, side);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_name_check(DT_EINVAL, DT_NAME_WORD, DT_NAME_MOST_WORD, x[i].name, "%s is recorded with %s %u",
                             m->comp->desc.id, side, i));
    }
    return DT_OK;
}

/* svc/graph.h model(): named tensors into the model's own order and back. */
dt_status dt_bind_forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                          uint32_t n_out)
{
    enum { MAX_PORTS = 32 };
    dt_tensor *ins[MAX_PORTS] = {NULL};
    dt_tensor *outs[MAX_PORTS] = {NULL};
    uint32_t n_pi = 0;
    uint32_t n_po = 0;
    if (m == NULL) {
        return DT_FAIL(DT_EINVAL, "a graph records the model NULL; pass the handle that bind->model returned");
    }
    DT_TRY(check_named(m, "input", in, n_in));
    DT_TRY(check_named(m, "output", out, n_out));
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
    dt_graph_set_scope(g, m->role);
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, m->comp->desc.id, "forward", m->comp->ops.model.forward(m->self, g, ins, outs));
    dt_graph_set_scope(g, "");
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

void dt_bind_fini(dt_stage *s)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (s->model[i].created && s->model[i].comp->ops.model.destroy != NULL) {
            DT_FP_GUARD(s->model[i].comp->desc.id, "destroy", s->model[i].comp->ops.model.destroy(s->model[i].self));
        }
        dt_free(s->model[i].self);
        dt_free(s->model[i].config);
    }
    dt_stream_destroy(s->stream);
    s->stream = NULL;
    for (uint32_t i = 0; i < s->n_data; i++) {
        if (s->data[i].created && s->data[i].comp->ops.data.destroy != NULL) {
            DT_FP_GUARD(s->data[i].comp->desc.id, "destroy", s->data[i].comp->ops.data.destroy(s->data[i].self));
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
                                     .data = dt_bind_data,
                                     .data_field = dt_bind_data_field,
                                     .data_count = dt_bind_data_count,
                                     .own_data = dt_bind_own_data,
                                     .env_learners = dt_bind_env_learners,
                                     .data_statistics = dt_bind_data_statistics,
                                     .env = dt_bind_env,
                                     .env_spec = dt_bind_env_spec,
                                     .env_id = dt_bind_env_id,
                                     .env_instances = dt_bind_env_instances};

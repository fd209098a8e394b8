/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1", environments: the component under env.id and its first instance, which says what there is.
 */
#include <config.h>

#include "host/env_worker.h"

#include "base/err.h"
#include "base/mem.h"
#include "rollout/process.h"

#include <string.h>

/* An instance; one in a process is under way. */
static dt_status begin(dt_env *e, void **self_p)
{
    if (e->in_process) {
        const dt_process_desc d = {.id = e->comp->desc.id,
                                   .request = dt_str_text(&e->request),
                                   .request_bytes = e->request.bytes,
                                   .timeout_s = e->opts.timeout_s,
                                   .restarts = (uint32_t)e->opts.restarts,
                                   .n_restarts = &e->n_restarts};
        dt_process *p = NULL;
        DT_TRY(dt_process_start(&d, &p));
        *self_p = p;
        return DT_OK;
    }
    void *self = dt_alloc(e->comp->desc.state_size > 0 ? e->comp->desc.state_size : 1);
    if (self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an instance of %s", e->comp->desc.id);
    }
    *self_p = self; /* destroy is called once per create, even a failed one */
    const dt_status st = e->ops->create(self, &e->stage->host, e->config);
    return st < 0 ? DT_CONTEXT(st, "creating %s", e->comp->desc.id) : DT_OK;
}

/* It is what the others are. */
static dt_status finish(dt_env *e, void *self)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    if (e->in_process) {
        DT_TRY(dt_process_meet(self));
    }
    DT_TRY(e->ops->spec(self, &spec));
    if (e->has_layout) {
        DT_TRY(dt_layout_compare(&e->layout, &spec));
    } else {
        e->has_layout = true;
        DT_TRY(dt_layout_init(&e->layout, e->comp->desc.id, &spec));
    }
    return e->in_process ? dt_process_attach(self, &e->layout) : DT_OK;
}

dt_status dt_env_make(dt_env *e, uint32_t first, uint32_t n, void **self)
{
    dt_status st = DT_OK;
    uint32_t i = 0;
    for (; i < n && st == DT_OK; i++) {
        st = begin(e, &self[i]);
    }
    for (uint32_t k = 0; k < n && st == DT_OK; k++) {
        st = finish(e, self[k]);
        i = k + 1;
    }
    return st < 0 && first + n > 1 ? DT_CONTEXT(st, "instance %u", first + i - 1) : st;
}

void dt_env_drop(dt_env *e, void *self)
{
    if (self != NULL) {
        e->ops->destroy(self);
        if (!e->in_process) {
            dt_free(self);
        }
    }
}

/* What comes with dtrain is trusted not to bring the run down, unless it says itself that it needs a process. */
static dt_status choose_isolation(dt_env *e)
{
    const bool needs = (e->comp->desc.flags & DT_COMP_PROCESS) != 0;
    const bool is_ours = e->comp->plugin->desc.vendor != NULL && strcmp(e->comp->plugin->desc.vendor, "dtrain") == 0;
    e->in_process =
        e->opts.isolation == DT_ISOLATION_PROCESS || (e->opts.isolation == DT_ISOLATION_AUTO && (needs || !is_ours));
    e->ops = e->in_process ? &dt_process_ops : &e->comp->ops.env;
    if (needs && !e->in_process && e->opts.instances > 1) {
        return DT_FAIL(DT_ECONFIG,
                       "%s allows one instance per process: leave env.isolation = \"auto\", or set env.instances = 1",
                       e->comp->desc.id);
    }
    return DT_OK;
}

dt_status dt_bind_env(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_env **out)
{
    dt_stage *s = dt_stage_of(h);
    dt_env *e = &s->env;
    void *unused = NULL;
    if (e->comp != NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s binds a second environment; one per phase is possible", s->d.phase->desc.id);
    }
    DT_TRY(dt_config_env(s->d.config, s->d.index, &e->opts));
    if (e->opts.id[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s needs an environment, but env.id is empty; set env.id, such as \"cartpole\"",
                       s->d.phase->desc.id);
    }
    DT_TRY(dt_loader_find(s->d.loader, DT_KIND_ENV, e->opts.id, &e->comp));
    e->stage = s;
    dt_status st = dt_bind_config(s, e->comp, overrides, n, &e->config, &unused);
    dt_free(unused);
    DT_TRY(st);
    DT_TRY(choose_isolation(e));
    if (e->in_process) {
        DT_TRY(dt_env_request(e, overrides, n, &e->request));
    }
    DT_TRY(dt_env_make(e, 0, 1, &e->self));
    *out = e;
    return DT_OK;
}

const dt_env_spec *dt_bind_env_spec(const dt_env *e)
{
    return &e->layout.spec;
}

const char *dt_bind_env_id(const dt_env *e)
{
    return e->comp->desc.id;
}

uint32_t dt_bind_env_instances(const dt_env *e)
{
    return (uint32_t)e->opts.instances;
}

void dt_bind_env_fini(dt_stage *s)
{
    dt_env *e = &s->env;
    if (e->comp != NULL) {
        dt_env_drop(e, e->self);
        dt_layout_fini(&e->layout);
        dt_str_fini(&e->request);
        dt_free(e->config);
    }
    e->comp = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "embed/worlds.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/plugin_call.h"
#include "base/rng.h"
#include "config/options.h"
#include "dtrain/svc/rng.h"
#include "engine/tensor/dtype.h"
#include "plugin/service/stage.h"
#include "rl/env/described.h"
#include "rl/env/vector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_RESET = 0x776f726c }; /* "worl": name of random numbers */

struct dt_worlds {
    dt_stage *stage; /* serves the environment, as of a trial: options, random numbers, services of plugins */
    dt_host host;
    const dt_loaded *comp;
    void *config;
    void **self; /* [n] */
    uint32_t n, n_created;
    dt_layout layout;
    bool has_layout;
    dt_vector_kind kind;
    dt_vector *vector;
    uint64_t *seed; /* [n] */
    uint8_t *over;  /* [n] */
    dt_str description;
};

/* ---- plugins, once in a process ---------------------------------------------------------------------------------- */

static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER;
static dt_loader *the_loader;
static dt_host loader_host;
static dt_str listed;

static dt_status open_loader(const char *plugin_dir)
{
    if (the_loader != NULL) {
        return DT_OK;
    }
    dt_host_init(&loader_host);
    const dt_loader_desc d = {.host = &loader_host,
                              .plugin_path = getenv("DTRAIN_PLUGIN_PATH"),
                              .program_dir = "/nonexistent", /* the program is a foreign one */
                              .plugin_dir = plugin_dir};
    return dt_loader_create(&d, &the_loader);
}

static const void *find_service(const dt_host *h, const char *id)
{
    const dt_stage *s = h->priv;
    return strcmp(id, DT_SVC_RNG) == 0 ? s->host.service(&s->host, id) : dt_loader_find_service(s->d.loader, id);
}

const char *dt_worlds_list(const char *plugin_dir)
{
    dt_str refused = {0};
    pthread_mutex_lock(&loader_lock);
    dt_str_fini(&listed);
    if (open_loader(plugin_dir) == DT_OK && dt_loader_scan(the_loader, &refused) == DT_OK) {
        for (uint32_t i = 0; i < dt_loader_count(the_loader); i++) {
            const dt_component *c = &dt_loader_at(the_loader, i)->desc;
            dt_str_addf(&listed, "%s", c->kind == DT_KIND_ENV ? c->id : "");
            dt_str_add(&listed, c->kind == DT_KIND_ENV ? "\n" : "");
        }
    }
    dt_str_fini(&refused);
    pthread_mutex_unlock(&loader_lock);
    return dt_str_text(&listed);
}

/* ---- description ------------------------------------------------------------------------------------------------- */

static void describe_port(const dt_obs_port *o, const dt_env_spec *s, dt_json_out *out)
{
    char dims[256]; /* of a legal port: "A 3 7" */
    dt_json_obj(out, NULL);
    dt_json_str(out, "name", o->port->name);
    dt_json_str(out, "dtype", dt_dtype_name(o->port->dtype));
    dt_json_i64(out, "symbol", o->symbol);
    dt_json_i64(out, "plus", o->plus);
    dt_json_i64(out, "index_of", o->index_of);
    dt_json_i64(out, "rows", o->cap);
    dt_json_i64(out, "offset", (int64_t)o->offset);
    dt_json_arr(out, "shape");
    snprintf(dims, sizeof(dims), "%s", o->port->dims);
    char *rest = NULL;
    strtok_r(dims, " ", &rest); /* the symbol */
    for (const char *d = strtok_r(NULL, " ", &rest); d != NULL; d = strtok_r(NULL, " ", &rest)) {
        dt_json_i64(out, NULL, strtoll(d, NULL, 10));
    }
    dt_json_end(out, ']');
    dt_describe_columns(s->columns, s->n_columns, o->port->name, out);
    dt_json_end(out, '}');
}

static void describe_names(const char *key, const char *const *name, uint32_t n, dt_json_out *out)
{
    dt_json_arr(out, key);
    for (uint32_t i = 0; i < n; i++) {
        dt_json_str(out, NULL, name[i]);
    }
    dt_json_end(out, ']');
}

static void describe_numbers(const char *key, const float *v, uint32_t n, dt_json_out *out)
{
    dt_json_arr(out, key);
    for (uint32_t i = 0; i < n; i++) {
        dt_json_f64(out, NULL, (double)v[i]);
    }
    dt_json_end(out, ']');
}

static void describe_offsets(const dt_layout *l, dt_json_out *out)
{
    const struct {
        const char *name;
        size_t at;
    } array[] = {{"size", l->size},
                 {"alive", l->alive},
                 {"reward", l->reward},
                 {"cost", l->cost},
                 {"terminated", l->terminated},
                 {"truncated", l->truncated},
                 {"metric", l->metric},
                 {"mask", l->mask},
                 {"act_i", l->act_i},
                 {"act_f", l->act_f}};
    dt_json_obj(out, "offsets");
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        dt_json_i64(out, array[i].name, (int64_t)array[i].at);
    }
    dt_json_end(out, '}');
}

static dt_status describe(dt_worlds *w)
{
    const dt_layout *l = &w->layout;
    const dt_env_spec *s = &l->spec;
    dt_json_out out = {.s = &w->description};
    dt_json_obj(&out, NULL);
    dt_json_str(&out, "id", w->comp->desc.id);
    dt_json_str(&out, "summary", w->comp->desc.summary);
    dt_json_i64(&out, "agents", s->n_agents);
    dt_json_i64(&out, "max_steps", s->max_steps);
    dt_json_f64(&out, "step_s", s->step_s);
    dt_json_i64(&out, "record_bytes", (int64_t)l->record_bytes);
    dt_json_bool(&out, "deterministic", (w->comp->desc.flags & DT_COMP_DETERMINISTIC) != 0);
    dt_json_arr(&out, "observations");
    for (uint32_t i = 0; i < s->n_obs; i++) {
        describe_port(&l->obs[i], s, &out);
    }
    dt_json_end(&out, ']');
    dt_json_arr(&out, "symbols");
    for (uint32_t i = 0; i < s->n_symbols; i++) {
        dt_json_str(&out, NULL, s->symbols[i].name);
    }
    dt_json_end(&out, ']');
    dt_json_arr(&out, "choices");
    for (uint32_t i = 0; i < s->n_heads; i++) {
        dt_json_i64(&out, NULL, s->choices[i]);
    }
    dt_json_end(&out, ']');
    describe_numbers("low", s->low, s->n_continuous, &out);
    describe_numbers("high", s->high, s->n_continuous, &out);
    describe_names("costs", s->costs, s->n_costs, &out);
    describe_names("metrics", s->metrics, s->n_metrics, &out);
    dt_json_arr(&out, "teams");
    for (uint32_t i = 0; s->team != NULL && i < s->n_agents; i++) {
        dt_json_i64(&out, NULL, s->team[i]);
    }
    dt_json_end(&out, ']');
    dt_describe_places(s, &out);
    describe_offsets(l, &out);
    dt_json_end(&out, '}');
    return dt_str_status(&w->description);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status find_env(dt_worlds *w, const dt_worlds_desc *d)
{
    pthread_mutex_lock(&loader_lock);
    dt_status st = open_loader(d->plugin_dir);
    if (st == DT_OK) {
        w->stage->d.loader = the_loader;
        st = strchr(d->env, '/') != NULL ? dt_loader_find_any(the_loader, d->env, &w->comp)
                                         : dt_loader_find(the_loader, DT_KIND_ENV, d->env, &w->comp);
    }
    pthread_mutex_unlock(&loader_lock);
    DT_TRY(st);
    if (w->comp->desc.kind != DT_KIND_ENV) {
        return DT_FAIL(DT_ENOTFOUND, "%s is a %s, expected an environment", d->env, dt_kind_name(w->comp->desc.kind));
    }
    if ((w->comp->desc.flags & DT_COMP_PROCESS) != 0 && d->n > 1) {
        return DT_FAIL(
            DT_EUNSUPPORTED,
            "%s has one instance per process, so %u of them cannot be in this one; make one in each of several "
            "processes (gymnasium.vector.AsyncVectorEnv)",
            w->comp->desc.id, d->n);
    }
    return DT_OK;
}

static dt_status set_option(dt_worlds *w, const char *setting)
{
    const char *equals = strchr(setting, '=');
    if (equals == NULL) {
        return DT_FAIL(DT_ECONFIG, "\"%s\": expected KEY=VALUE", setting);
    }
    dt_str path = {0};
    dt_str_addf(&path, "%s.%.*s", w->comp->desc.id, (int)(equals - setting), setting);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_config_set_option(w->stage->d.config, dt_str_text(&path), equals + 1, "options");
    }
    dt_str_fini(&path);
    return st;
}

static dt_status configure(dt_worlds *w, const char *const *settings)
{
    const dt_component *c = &w->comp->desc;
    void *unused = NULL;
    DT_TRY(dt_config_create(&w->stage->d.config));
    DT_TRY(dt_config_declare(w->stage->d.config, c->id, c->options, c->id));
    for (uint32_t i = 0; settings != NULL && settings[i] != NULL; i++) {
        DT_TRY(set_option(w, settings[i]));
    }
    const dt_status st = dt_component_configure(w->stage, w->comp, NULL, 0, &w->config, &unused);
    dt_free(unused);
    return st;
}

static dt_status create_instance(dt_worlds *w, uint32_t i)
{
    const dt_component *c = &w->comp->desc;
    const dt_env_ops *ops = &w->comp->ops.env;
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_status st = DT_OK;
    w->self[i] = dt_alloc(c->state_size > 0 ? c->state_size : 1);
    if (w->self[i] == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for instance %u of %s", i, c->id);
    }
    w->n_created = i + 1; /* destroy follows even a failed create */
    DT_CALL_PLUGIN(st, c->id, "create", ops->create(w->self[i], &w->host, w->config));
    DT_TRY(st > 0 ? DT_OK : st);
    DT_CALL_PLUGIN(st, c->id, "spec", ops->spec(w->self[i], &spec));
    DT_TRY_PLUGIN(st, "spec");
    if (w->has_layout) {
        return dt_layout_compare(&w->layout, &spec);
    }
    w->has_layout = true;
    return dt_layout_init(&w->layout, c->id, &spec);
}

/* The first episode begins with the seed itself; later ones with a number that follows from it. */
static uint64_t seed_of_episode(void *user, uint32_t number, uint64_t episode)
{
    const dt_worlds *w = user;
    if (episode == 0) {
        return w->seed[number];
    }
    const dt_rng_key key = {.seed = w->seed[number], .op = STREAM_RESET, .step = episode};
    uint32_t words[4];
    dt_philox(&key, 0, words);
    return (uint64_t)words[0] << 32 | words[1];
}

static dt_status create_vector(dt_worlds *w, uint32_t threads)
{
    w->kind = (dt_vector_kind){.id = w->comp->desc.id, .ops = &w->comp->ops.env, .max_steps = w->layout.spec.max_steps};
    const dt_vector_desc d = {.kind = &w->kind,
                              .n_kinds = 1,
                              .layout = &w->layout,
                              .self = w->self,
                              .n = w->n,
                              .workers = threads > 0 ? threads - 1 : 0,
                              .groups = 1,
                              .max_steps_from = "its own spec (max_steps)",
                              .user = w,
                              .seed = seed_of_episode,
                              .passes_episode = true};
    return dt_vector_create(&d, &w->vector);
}

static dt_status create_worlds(dt_worlds *w, const dt_worlds_desc *d)
{
    w->n = d->n;
    w->stage = dt_alloc(sizeof(*w->stage));
    w->self = dt_alloc_n(d->n, sizeof(*w->self));
    w->seed = dt_alloc_n(d->n, sizeof(*w->seed));
    w->over = dt_alloc_n(d->n, sizeof(*w->over));
    if (w->stage == NULL || w->self == NULL || w->seed == NULL || w->over == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", d->n);
    }
    w->stage->d.index = -1;
    dt_services_init(w->stage);
    dt_host_init(&w->host);
    w->host.priv = w->stage;
    w->host.service = find_service;
    DT_TRY(find_env(w, d));
    DT_TRY(configure(w, d->settings));
    for (uint32_t i = 0; i < d->n; i++) {
        const dt_status st = create_instance(w, i);
        if (st < 0) {
            return DT_CONTEXT(st, "creating %s", w->comp->desc.id);
        }
        w->seed[i] = i;
        w->over[i] = 1;
    }
    DT_TRY(create_vector(w, d->threads));
    return describe(w);
}

static dt_status report(dt_status st, char *message, size_t bytes)
{
    if (st < 0 && bytes > 0) {
        snprintf(message, bytes, "%s", dt_error_text()[0] != '\0' ? dt_error_text() : dt_status_text(st));
    }
    return st;
}

dt_status dt_worlds_create(const dt_worlds_desc *d, dt_worlds **out_p, char *message, size_t message_bytes)
{
    dt_error_clear();
    if (d->struct_size != sizeof(*d) || d->n < 1 || d->env == NULL) {
        return report(DT_FAIL(DT_EINVAL, "the description of the environments is not valid"), message, message_bytes);
    }
    dt_worlds *w = dt_alloc(sizeof(*w));
    const dt_status st = w != NULL ? create_worlds(w, d) : DT_FAIL(DT_ENOMEM, "out of memory for environments");
    if (st < 0) {
        report(st, message, message_bytes);
        dt_worlds_destroy(w);
        return st;
    }
    *out_p = w;
    return DT_OK;
}

void dt_worlds_destroy(dt_worlds *w)
{
    if (w == NULL) {
        return;
    }
    dt_vector_destroy(w->vector);
    for (uint32_t i = 0; i < w->n_created; i++) {
        DT_FP_GUARD(w->comp->desc.id, "destroy", w->comp->ops.env.destroy(w->self[i]));
        dt_free(w->self[i]);
    }
    if (w->has_layout) {
        dt_layout_fini(&w->layout);
    }
    if (w->stage != NULL) {
        dt_config_destroy(w->stage->d.config);
    }
    dt_str_fini(&w->description);
    dt_free(w->config);
    dt_free(w->over);
    dt_free(w->seed);
    dt_free(w->self);
    dt_free(w->stage);
    dt_free(w);
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

const char *dt_worlds_describe(const dt_worlds *w)
{
    return dt_str_text(&w->description);
}

void *dt_worlds_memory(dt_worlds *w)
{
    return dt_vector_instance(w->vector, 0)->record;
}

uint8_t *dt_worlds_over(dt_worlds *w)
{
    return w->over;
}

static dt_status step_vector(dt_worlds *w)
{
    dt_error_clear();
    const dt_status st = dt_vector_step(w->vector);
    for (uint32_t i = 0; i < w->n; i++) {
        dt_instance *x = dt_vector_instance(w->vector, i);
        x->is_idle = false;
        w->over[i] = x->is_over;
    }
    return st;
}

dt_status dt_worlds_reset(dt_worlds *w, const uint8_t *which, const uint64_t *seed, char *message, size_t message_bytes)
{
    for (uint32_t i = 0; i < w->n; i++) {
        dt_instance *x = dt_vector_instance(w->vector, i);
        x->is_idle = which != NULL && which[i] == 0;
        if (x->is_idle) {
            continue;
        }
        x->is_over = true;
        if (seed != NULL) {
            w->seed[i] = seed[i];
            x->episodes = 0;
        }
    }
    return report(step_vector(w), message, message_bytes);
}

dt_status dt_worlds_step(dt_worlds *w, char *message, size_t message_bytes)
{
    for (uint32_t i = 0; i < w->n; i++) {
        dt_vector_instance(w->vector, i)->is_over = w->over[i] != 0;
    }
    return report(step_vector(w), message, message_bytes);
}

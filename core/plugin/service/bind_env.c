/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1", environments: the component under env.id and its first instance, which describes what there
 * is.
 */
#include <config.h>

#include "plugin/service/env_evaluation.h"
#include "plugin/service/env_mix.h"
#include "plugin/service/env_worker.h"

#include "base/err.h"
#include "base/fp_mode.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "base/signals.h"
#include "dtrain/ext/isolated.h"
#include "rl/env/process.h"

#include <stdio.h>
#include <string.h>

enum { SETTINGS_MAX = 32, KEY_BYTES = 64 }; /* options of an environment that others set */

typedef struct settings {
    dt_setting at[SETTINGS_MAX + DT_MIX_OPTIONS];
    char key[SETTINGS_MAX][KEY_BYTES];
    uint32_t n_phase, n; /* the first ones are the phase's */
} settings;

typedef struct maker { /* of an instance */
    dt_env *e;
    const dt_loaded *comp;
    dt_env_setup *with;
    uint32_t number;
    bool is_evaluation;
} maker;

static maker make_maker(dt_env *e, dt_env_setup *with, uint32_t number)
{
    maker m = {.e = e, .comp = e->comp, .with = with, .number = number, .is_evaluation = with == &e->evaluation};
    if (e->n_mix > 0 && !m.is_evaluation) {
        dt_env_entry *x = &e->mix[number % e->n_mix];
        m.comp = x->comp;
        m.with = &x->setup;
    }
    return m;
}

/* One in this process cannot be given up while it makes itself, in whatever time that takes; before the stage is
 * complete there is nothing to save, and the program can. */
static dt_status create_in_process(const maker *m, void *self)
{
    const dt_env *e = m->e;
    const dt_stage_desc *d = &e->stage->d;
    const bool is_first = e->stage->rollout == NULL;
    dt_status st = DT_OK;
    dt_signals_set_nothing_to_save(is_first);
    if (is_first && d->stops != NULL && d->stops(d->stops_user)) {
        st = DT_FAIL(DT_EINTERRUPTED, "asked to stop before %s was created", m->comp->desc.id);
    } else {
        DT_CALL_PLUGIN(st, m->comp->desc.id, "create", m->comp->ops.env.create(self, &e->stage->host, m->with->config));
    }
    dt_signals_set_nothing_to_save(false);
    return st;
}

/* An instance in this process. */
static dt_status allocate_instance(const maker *m, void **self_p)
{
    void *self = dt_alloc(m->comp->desc.state_size > 0 ? m->comp->desc.state_size : 1);
    if (self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an instance of %s", m->comp->desc.id);
    }
    *self_p = self; /* destroy is called once per create, even a failed one */
    const dt_status st = create_in_process(m, self);
    return st < 0 ? DT_CONTEXT(st, "creating %s", m->comp->desc.id) : DT_OK;
}

/* What each agent sees and does in training. There may be fewer of them: opponents that are part of the environment. */
static dt_status check_evaluation_spec(dt_env *e, const dt_env_spec *spec)
{
    if (e->n_mix > 0 && !e->has_evaluation_options) {
        DT_TRY(dt_env_mix_compare_evaluation(e, spec));
    }
    const dt_status st = e->has_evaluation_layout ? dt_layout_compare_env(&e->evaluation_layout, spec)
                                                  : dt_layout_compare_fewer_places(&e->layout, spec);
    if (st < 0) {
        return DT_CONTEXT(DT_ECONFIG, "evaluation.env must leave what a policy sees and does as it is");
    }
    if (e->has_evaluation_layout) {
        return DT_OK;
    }
    e->has_evaluation_layout = true;
    return dt_layout_init(&e->evaluation_layout, e->comp->desc.id, spec);
}

static dt_status check_spec(const maker *m, const dt_env_spec *spec)
{
    dt_env *e = m->e;
    if (!e->has_layout) {
        e->has_layout = true;
        return dt_layout_init(&e->layout, m->comp->desc.id, spec);
    }
    if (m->is_evaluation) {
        return check_evaluation_spec(e, spec);
    }
    return e->n_mix > 0 ? dt_env_mix_compare(e, m->number, spec) : dt_layout_compare(&e->layout, spec);
}

const dt_layout *dt_env_get_layout(const dt_env *e, const dt_env_setup *of)
{
    return of == &e->evaluation ? &e->evaluation_layout : &e->layout;
}

/* It is what the others are. */
static dt_status finish_instance(const maker *m, void *self)
{
    dt_env *e = m->e;
    const dt_env_ops *ops = e->in_process ? &dt_process_ops : &m->comp->ops.env;
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, m->comp->desc.id, "spec", ops->spec(self, &spec));
    DT_TRY_PLUGIN(st, "spec");
    m->with->max_steps = spec.max_steps;
    return check_spec(m, &spec);
}

/* In place of one that is broken. */
static dt_status recreate_instance(void *user, uint32_t number, void *self)
{
    const dt_env_restart *r = user;
    const maker m = make_maker(r->e, r->with, number);
    const dt_component *c = &m.comp->desc;
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_status st = DT_OK;
    DT_FP_GUARD(c->id, "destroy", m.comp->ops.env.destroy(self));
    memset(self, 0, c->state_size > 0 ? c->state_size : 1);
    DT_CALL_PLUGIN(st, c->id, "create", m.comp->ops.env.create(self, &r->e->stage->host, m.with->config));
    DT_TRY(st > 0 ? DT_OK : st);
    DT_CALL_PLUGIN(st, m.comp->desc.id, "spec", m.comp->ops.env.spec(self, &spec));
    DT_TRY_PLUGIN(st, "spec");
    return dt_layout_compare(dt_env_get_layout(r->e, r->with), &spec);
}

const dt_vector_restart *dt_env_restart_table(dt_env *e, dt_env_setup *with)
{
    dt_env_restart *r = with == &e->evaluation ? &e->restart_of_evaluation : &e->restart_of_training;
    *r = (dt_env_restart){.e = e,
                          .with = with,
                          .table = {.user = r,
                                    .create = recreate_instance,
                                    .most = (uint32_t)e->opts.restarts,
                                    .n_restarts = &e->n_restarts,
                                    .n_lost = &e->n_lost}};
    return e->can_restart && !e->in_process ? &r->table : NULL;
}

static dt_status make_and_check_here(const maker *m, void **self_p)
{
    DT_TRY(allocate_instance(m, self_p));
    return finish_instance(m, *self_p);
}

static dt_status create_here_all(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void **self)
{
    for (uint32_t i = 0; i < n; i++) {
        const maker m = make_maker(e, with, first + i);
        const dt_status st = make_and_check_here(&m, &self[i]);
        if (st < 0) {
            return first + n > 1 ? DT_CONTEXT(st, "instance %u", first + i) : st;
        }
    }
    return DT_OK;
}

/* ---- in processes ------------------------------------------------------------------------------------------------ */

typedef struct crew { /* the workers of one kind of instances, which take turns in getting the next instance */
    dt_process_instance **last; /* [n] the instance that each got last; NULL: it is not started */
    uint32_t n, places;         /* places of each */
    uint32_t next;              /* which one is next */
} crew;

/* Kinds of instances that workers are made for: entries of a mix. */
static uint32_t count_kinds(const dt_env *e, const dt_env_setup *with)
{
    return e->n_mix > 0 && with != &e->evaluation ? e->n_mix : 1;
}

/* Of n instances of a set of `all`: one worker per core, unless a process can have one alone. */
static uint32_t count_workers(const maker *m, uint32_t n, uint32_t all)
{
    const dt_env *e = m->e;
    const uint64_t threads = e->stage->d.threads > 0 ? e->stage->d.threads : 1;
    const uint64_t n_workers = e->opts.workers > 0 ? (uint64_t)e->opts.workers : threads;
    const uint64_t share = (n_workers * n + all - 1) / all;
    return (m->comp->desc.flags & DT_COMP_PROCESS) != 0 || share > n ? n : (uint32_t)share;
}

static dt_status start_process(const maker *m, uint32_t places, void **self_p)
{
    dt_env *e = m->e;
    const dt_process_desc d = {.id = m->comp->desc.id,
                               .request = dt_str_text(&m->with->request),
                               .request_bytes = m->with->request.bytes,
                               .places = places,
                               .timeout_s = e->opts.timeout_s,
                               .startup_s =
                                   e->opts.startup_timeout_s > 0 ? e->opts.startup_timeout_s : e->opts.timeout_s,
                               .ring_bytes = (uint64_t)(e->opts.ring_mb * 1e6),
                               .restarts = (uint32_t)e->opts.restarts,
                               .is_deterministic = (m->comp->desc.flags & DT_COMP_DETERMINISTIC) != 0,
                               .n_restarts = &e->n_restarts,
                               .n_lost = &e->n_lost,
                               .stops = e->stage->d.stops,
                               .stops_user = e->stage->d.stops_user};
    dt_process_instance *x = NULL;
    DT_TRY(dt_process_start(&d, &x));
    *self_p = x;
    return DT_OK;
}

/* Where an instance goes: a place of the next worker, which is started for it where that is not yet. */
static dt_status begin_in_process(const maker *m, crew *c, void **self_p, bool *is_first_p)
{
    dt_process_instance **last = &c->last[c->next];
    dt_process_instance *x = *last != NULL ? dt_process_begin_instance(*last) : NULL;
    *is_first_p = x == NULL;
    if (x == NULL) {
        DT_TRY(start_process(m, c->places, self_p));
        x = *self_p;
    }
    *self_p = *last = x;
    c->next = (c->next + 1) % c->n;
    return DT_OK;
}

/* A worker's first instance sends its spec; the others begin when there is memory to share. */
static dt_status finish_in_process(const maker *m, void *self, bool is_first)
{
    dt_env *e = m->e;
    if (!is_first) {
        return dt_process_finish_instance(self);
    }
    DT_TRY(dt_process_receive_spec(self));
    DT_TRY(finish_instance(m, self));
    return dt_process_attach(self, m->is_evaluation ? &e->evaluation_layout : &e->layout);
}

/* Workers for n instances; one that runs already, the environment's first, counts with them. */
static dt_status create_crews(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, bool has_one, crew *c)
{
    const uint32_t kinds = count_kinds(e, with), all = n + has_one;
    for (uint32_t k = 0; k < kinds; k++) {
        const maker m = make_maker(e, with, k);
        const bool is_of_one = has_one && e->number % kinds == k;
        uint32_t own = is_of_one;
        for (uint32_t i = 0; i < n; i++) {
            own += (first + i) % kinds == k;
        }
        c[k].n = own > 0 ? count_workers(&m, own, all) : 0;
        c[k].places = c[k].n > 0 ? (own + c[k].n - 1) / c[k].n : 1;
        c[k].last = dt_alloc_n(c[k].n + 1, sizeof(*c[k].last));
        if (c[k].last == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", n);
        }
        if (is_of_one) {
            c[k].last[0] = e->self;
            c[k].next = 1 % c[k].n;
        }
    }
    return DT_OK;
}

/* In rounds: each worker's first instances side by side, then the second ones, which share what those made. */
static dt_status fill_crews(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, crew *c, void **self,
                            bool *is_first, uint32_t *at_p)
{
    const uint32_t kinds = count_kinds(e, with);
    uint32_t done = 0, i = 0;
    while (done < n) {
        for (; i < n; i++) {
            crew *x = &c[(first + i) % kinds];
            const dt_process_instance *last = x->last[x->next];
            if (last != NULL && !dt_process_is_attached(last)) {
                break; /* which is finished first */
            }
            const maker m = make_maker(e, with, first + i);
            *at_p = i;
            DT_TRY(begin_in_process(&m, x, &self[i], &is_first[i]));
        }
        for (; done < i; done++) {
            const maker m = make_maker(e, with, first + done);
            *at_p = done;
            DT_TRY(finish_in_process(&m, self[done], is_first[done]));
        }
    }
    return DT_OK;
}

static dt_status create_in_processes(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, bool has_one,
                                     uint32_t places, void **self)
{
    const uint32_t kinds = count_kinds(e, with);
    crew *c = dt_alloc_n(kinds, sizeof(*c));
    bool *is_first = dt_alloc_n(n + 1, sizeof(*is_first));
    uint32_t at = 0;
    dt_status st = c != NULL && is_first != NULL ? create_crews(e, with, first, n, has_one, c)
                                                 : DT_FAIL(DT_ENOMEM, "out of memory for %u environments", n);
    for (uint32_t k = 0; k < kinds && st == DT_OK; k++) {
        c[k].places = c[k].places > places ? c[k].places : places;
    }
    if (st == DT_OK) {
        st = fill_crews(e, with, first, n, c, self, is_first, &at);
    }
    for (uint32_t k = 0; k < kinds && c != NULL; k++) {
        dt_free(c[k].last);
    }
    dt_free(c);
    dt_free(is_first);
    return st < 0 && first + n > 1 ? DT_CONTEXT(st, "instance %u", first + at) : st;
}

dt_status dt_env_create_instances(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void **self)
{
    return e->in_process ? create_in_processes(e, with, first, n, false, 1, self)
                         : create_here_all(e, with, first, n, self);
}

dt_status dt_env_create_others(dt_env *e, uint32_t first, uint32_t n, void **self)
{
    return e->in_process ? create_in_processes(e, &e->training, first, n, true, 1, self)
                         : create_here_all(e, &e->training, first, n, self);
}

/* The environment's first instance; its worker has places for those that follow in training. */
static dt_status create_first_instance(dt_env *e, dt_env_setup *with, uint32_t number)
{
    const maker m = make_maker(e, with, number);
    const uint32_t n = (uint32_t)e->opts.instances, own = (n + count_kinds(e, with) - 1) / count_kinds(e, with);
    if (!e->in_process) {
        return create_here_all(e, with, number, 1, &e->self);
    }
    const uint32_t workers = count_workers(&m, own, n);
    const uint32_t places = with == &e->training ? (own + workers - 1) / workers : 1;
    return create_in_processes(e, with, number, 1, false, places, &e->self);
}

void dt_env_destroy_instances(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void *const *self)
{
    if (e->in_process) {
        for (uint32_t i = 0; i < n; i++) {
            if (self[i] != NULL) {
                dt_process_begin_shutdown(self[i]);
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (self[i] != NULL && e->in_process) {
            dt_process_ops.destroy(self[i]);
        } else if (self[i] != NULL) {
            const dt_component *c = &make_maker(e, with, first + i).comp->desc;
            DT_FP_GUARD(c->id, "destroy", make_maker(e, with, first + i).comp->ops.env.destroy(self[i]));
            dt_free(self[i]);
        }
    }
}

dt_status dt_env_recreate_first(dt_env *e, dt_env_setup *with, uint32_t number)
{
    dt_env_destroy_instances(e, &e->training, e->number, 1, &e->self); /* with a mix it is never one of an evaluation */
    e->self = NULL;
    e->number = number;
    return create_first_instance(e, with, number);
}

static const void *find_extension(const dt_loaded *c, const char *id)
{
    return c->desc.extension != NULL ? c->desc.extension(id) : NULL;
}

/* What comes with dtrain is trusted not to bring the run down, unless it declares that it needs a process or runs code
 * of the user's. */
static dt_status choose_isolation(dt_env *e)
{
    bool all_ours = true;
    const dt_loaded *needs = NULL;
    for (uint32_t i = 0; i <= e->n_mix; i++) { /* one for all of a mix */
        const dt_loaded *c = i < e->n_mix ? e->mix[i].comp : e->comp;
        needs = (c->desc.flags & DT_COMP_PROCESS) != 0 ? c : needs;
        all_ours = all_ours && c->plugin->desc.vendor != NULL && strcmp(c->plugin->desc.vendor, "dtrain") == 0 &&
                   find_extension(c, DT_EXT_ISOLATED) == NULL;
    }
    e->can_restart = needs != NULL || !all_ours;
    e->in_process = e->opts.isolation == DT_ISOLATION_PROCESS ||
                    (e->opts.isolation == DT_ISOLATION_AUTO && (needs != NULL || !all_ours));
    e->can_restart = e->can_restart || e->in_process;
    e->ops = e->in_process ? &dt_process_ops : &e->comp->ops.env;
    if (needs != NULL && !e->in_process && (e->opts.instances > 1 || e->n_mix > 0)) {
        return DT_FAIL(DT_ECONFIG, "%s allows one instance per process: leave env.isolation = \"auto\"%s",
                       needs->desc.id, e->n_mix > 0 ? "" : ", or set env.instances = 1");
    }
    return DT_OK;
}

/* Options of the environment with which it runs its own program, where the phase's controller leaves it to that. */
static dt_status add_program_options(const dt_stage *s, const dt_loaded *env, settings *set)
{
    const char *id = s->d.controller != NULL ? s->d.controller : dt_config_model(s->d.config, s->d.index, "controller");
    const char *const *program = find_extension(env, DT_EXT_PROGRAM);
    const dt_loaded *controller = NULL;
    if (program == NULL || id == NULL || id[0] == '\0' ||
        dt_loader_find(s->d.loader, DT_KIND_MODEL, id, &controller) < 0) {
        dt_error_clear(); /* a controller that is not there is refused where the phase binds it */
        return DT_OK;
    }
    if (find_extension(controller, DT_EXT_PROGRAM) != NULL) {
        for (uint32_t i = 0; program[i] != NULL; i++) {
            const char *equals = strchr(program[i], '=');
            if (set->n == SETTINGS_MAX || equals == NULL || equals - program[i] >= KEY_BYTES) {
                return DT_FAIL(DT_EPLUGIN, "%s: dtrain.program/1 returns \"%s\"; expected at most %d of key=value",
                               env->desc.id, program[i], SETTINGS_MAX);
            }
            snprintf(set->key[set->n], KEY_BYTES, "%.*s", (int)(equals - program[i]), program[i]);
            set->at[set->n] = (dt_setting){set->key[set->n], equals + 1};
            set->n++;
        }
    }
    return DT_OK;
}

static dt_status create_training_instances(dt_env *e, const dt_loaded *comp, const dt_setting *set, uint32_t n,
                                           dt_env_setup *out)
{
    void *unused = NULL;
    const dt_status st = dt_component_configure(e->stage, comp, set, n, &out->config, &unused);
    dt_free(unused);
    DT_TRY(st);
    const dt_stage_desc *d = &e->stage->d;
    return e->in_process ? dt_env_write_request(d->config, d->seed, d->index, comp, set, n, &out->request) : DT_OK;
}

/* Evaluations are in env.id, with options of their own or not. */
static dt_status create_training_and_evaluation(dt_env *e, const settings *set)
{
    dt_setting evaluation_setting[SETTINGS_MAX + DT_EVALUATION_OPTIONS_MAX];
    uint32_t n_evaluation = 0;
    DT_TRY(create_training_instances(e, e->comp, set->at, set->n, &e->training));
    DT_TRY(dt_env_set_evaluation_options(e, set->at, set->n_phase, set->n, evaluation_setting, &n_evaluation));
    e->has_evaluation_options = n_evaluation > 0;
    e->evaluated = n_evaluation > 0 || e->n_mix > 0 ? &e->evaluation : &e->training;
    if (e->evaluated == &e->training) {
        return DT_OK;
    }
    return n_evaluation > 0 ? create_training_instances(e, e->comp, evaluation_setting, n_evaluation, &e->evaluation)
                            : create_training_instances(e, e->comp, set->at, set->n, &e->evaluation);
}

static dt_status create_mixed_environments(dt_env *e, const settings *of_phase)
{
    for (uint32_t i = 0; i < e->n_mix; i++) {
        dt_env_entry *x = &e->mix[i];
        settings set = {.n_phase = of_phase->n_phase, .n = of_phase->n_phase};
        uint32_t n_own = 0;
        memcpy(set.at, of_phase->at, set.n * sizeof(set.at[0]));
        DT_TRY(add_program_options(e->stage, x->comp, &set));
        DT_TRY(dt_env_mix_options(e, i, set.at, set.n_phase, set.at + set.n, &n_own));
        const dt_status st = create_training_instances(e, x->comp, set.at, set.n + n_own, &x->setup);
        if (st < 0) {
            return DT_CONTEXT(st, "env.mix, entry %u, \"%s\"", i + 1, x->text);
        }
    }
    return DT_OK;
}

static dt_status list_instance_kinds(dt_env *e)
{
    const uint32_t n = e->n_mix > 0 ? e->n_mix : 1;
    e->kind = dt_alloc_n(n, sizeof(*e->kind));
    if (e->kind == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", n);
    }
    e->n_kinds = n;
    for (uint32_t i = 0; i < n; i++) {
        const maker m = make_maker(e, &e->training, i);
        e->kind[i] = (dt_vector_kind){.id = m.comp->desc.id,
                                      .ops = e->in_process ? &dt_process_ops : &m.comp->ops.env,
                                      .async = e->in_process ? &dt_process_async : NULL,
                                      .restart = dt_env_restart_table(e, &e->training),
                                      .max_steps = m.with->max_steps};
    }
    return DT_OK;
}

/* An instance of an entry that is no entry before it. */
static dt_status try_mix_entry(dt_env *e, uint32_t i)
{
    void *tried = NULL;
    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(e->mix[k].text, e->mix[i].text) == 0) {
            e->mix[i].setup.max_steps = e->mix[k].setup.max_steps;
            return DT_OK;
        }
    }
    const dt_status st = dt_env_create_instances(e, &e->training, i, 1, &tried);
    dt_env_destroy_instances(e, &e->training, i, 1, &tried);
    return st;
}

/* An instance of each kind: options that evaluations cannot have are found before training. */
static dt_status make_first_instances(dt_env *e)
{
    void *tried = NULL;
    DT_TRY(create_first_instance(e, &e->training, 0));
    for (uint32_t i = 1; i < e->n_mix; i++) {
        DT_TRY(try_mix_entry(e, i));
    }
    if (e->evaluated == &e->training) {
        return DT_OK;
    }
    if ((e->comp->desc.flags & DT_COMP_PROCESS) != 0 && !e->in_process) {
        DT_TRY(dt_env_recreate_first(e, &e->evaluation, 0));
        return dt_env_recreate_first(e, &e->training, 0);
    }
    const dt_status st = dt_env_create_instances(e, &e->evaluation, 0, 1, &tried);
    dt_env_destroy_instances(e, &e->evaluation, 0, 1, &tried);
    return st < 0 ? DT_CONTEXT(st, "an instance for evaluations") : DT_OK;
}

/* Self-play: the others have opponents. */
static void find_learning_places(dt_env *e)
{
    const dt_opponents_opts *o = &e->stage->opts.opponents;
    const bool has_opponents = o->pool > 0 || o->target[0] != '\0';
    e->learner = e->layout.spec.team != NULL && has_opponents ? o->learner : -1;
}

dt_status dt_bind_env(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_env **out)
{
    dt_stage *s = dt_stage_of(h);
    settings set = {.n_phase = n, .n = n};
    dt_env *e = &s->env;
    if (e->comp != NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s binds a second environment; one per phase is possible", s->d.phase->desc.id);
    }
    e->opts = s->opts.env;
    if (e->opts.id[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s needs an environment, but env.id is empty; set env.id, such as \"cartpole\"",
                       s->d.phase->desc.id);
    }
    DT_TRY(dt_loader_find(s->d.loader, DT_KIND_ENV, e->opts.id, &e->comp));
    e->stage = s;
    if (n > SETTINGS_MAX) {
        return DT_FAIL(DT_EPLUGIN, "%s sets %u options of its environment; at most %d are possible",
                       s->d.phase->desc.id, n, SETTINGS_MAX);
    }
    DT_TRY(dt_settings_check(s->d.phase->desc.id, overrides, n));
    for (uint32_t i = 0; i < n; i++) {
        set.at[i] = overrides[i];
    }
    DT_TRY(add_program_options(s, e->comp, &set));
    DT_TRY(dt_env_mix_read(e));
    DT_TRY(choose_isolation(e));
    DT_TRY(create_training_and_evaluation(e, &set));
    DT_TRY(create_mixed_environments(e, &set));
    DT_TRY(make_first_instances(e));
    DT_TRY(list_instance_kinds(e));
    find_learning_places(e);
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

uint32_t dt_env_count_workers(const dt_env *e, uint32_t n)
{
    uint32_t all = 0;
    for (uint32_t k = 0; k < e->n_kinds; k++) {
        const maker m = make_maker((dt_env *)(uintptr_t)e, (dt_env_setup *)(uintptr_t)&e->training, k);
        all += count_workers(&m, n / e->n_kinds + (k < n % e->n_kinds), n);
    }
    return all;
}

uint32_t dt_bind_env_instances(const dt_env *e)
{
    return (uint32_t)e->opts.instances;
}

bool dt_env_is_learner(const dt_env *e, uint32_t place)
{
    return e->learner < 0 || dt_layout_team_of(&e->layout, place) == (uint64_t)e->learner;
}

uint32_t dt_bind_env_learners(const dt_env *e)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < e->layout.spec.n_agents; a++) {
        n += dt_env_is_learner(e, a);
    }
    return n;
}

void dt_bind_env_fini(dt_stage *s)
{
    dt_env *e = &s->env;
    if (e->comp != NULL) {
        dt_env_destroy_instances(e, &e->training, e->number, 1, &e->self);
        dt_env_mix_fini(e);
        dt_layout_fini(&e->layout);
        dt_layout_fini(&e->evaluation_layout);
        dt_str_fini(&e->training.request);
        dt_free(e->training.config);
        dt_str_fini(&e->evaluation.request);
        dt_free(e->evaluation.config);
    }
    e->comp = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What each kind of component goes through when a plugin is checked (checker.h): a model is created twice, its ports
 * and parameters read, its graph recorded, run forward and backward on zeros by the reference kernels with poisoned
 * memory, and destroyed; a data source reads samples of the configured store, else of the embedded recording, twice
 * into guarded buffers; an environment is played under random actions, and again in another instance
 * and in a worker process; a phase runs two
 * iterations.
 *
 * Every step is left out where it did not return before, and the others are tried as far as they can be without it.
 */
#include <config.h>

#include "plugin/trial/checker.h"

#include "base/err.h"
#include "base/mem.h"
#include "config/schema.h"
#include "plugin/trial/probe_data.h"
#include "plugin/trial/probe_env.h"

#include <inttypes.h>
#include <string.h>

/* Not everything is here; a refusal for that, with a reason, is none of the plugin's faults. */
static bool is_missing_resource(dt_status st)
{
    return (st == DT_ENOTFOUND || st == DT_ECONFIG || st == DT_EUNSUPPORTED) && *dt_error_text() != '\0';
}

/* What never came to be has no more to show. */
static void report_failed_create(dt_checker *k, const dt_component *c, dt_status st)
{
    if (is_missing_resource(st)) {
        dt_check_skip(k, c, "create: %s", dt_error_text());
        return;
    }
    (void)dt_check_fail_status(k, c, "create", st);
}

static void skip_remaining_checks(dt_checker *k, const dt_component *c)
{
    dt_check_skip(k, c, "nothing else can be tried without create");
}

static bool may_create(dt_checker *k, const dt_component *c)
{
    if (!dt_check_may_call(k, c, "create", true)) {
        skip_remaining_checks(k, c);
        return false;
    }
    return true;
}

/* ---- models ---------------------------------------------------------------------------------------------------- */

static bool try_model(dt_checker *k, dt_probe *p, const char *step, bool has_needs, dt_status (*ask)(dt_probe *p))
{
    const dt_component *c = &p->model->desc;
    if (!dt_check_may_call(k, c, step, has_needs)) {
        return false;
    }
    const dt_status st = ask(p);
    return st == DT_OK || dt_check_fail_status(k, c, step, st);
}

static void compare_graphs(dt_checker *k, dt_probe *p, dt_probe *second, bool is_recorded)
{
    const dt_component *c = &p->model->desc;
    if (!dt_check_may_call(k, c, "forward again", is_recorded)) {
        return;
    }
    const dt_status st = dt_probe_compare(p, second);
    if (st == DT_OK) {
        dt_check_pass(k, c, "records the same graph again, and in a second instance");
    } else {
        (void)dt_check_fail_status(k, c, "forward again", st);
    }
}

static void check_model_life(dt_checker *k, dt_probe *p, dt_probe *second)
{
    const dt_component *c = &p->model->desc;
    const bool has_ports = try_model(k, p, "ports", true, dt_probe_ports);
    if (has_ports) {
        dt_check_pass(k, c, "%u inputs and %u outputs, legal and fixed in size", p->n_in, p->n_out);
    }
    const bool has_params = try_model(k, p, "params", true, dt_probe_params);
    if (has_params) {
        dt_check_pass(k, c, "%" PRId64 " parameters in %u tensors", p->params.count, p->params.n);
    }
    const bool is_recorded = try_model(k, p, "forward", has_ports && has_params, dt_probe_record);
    if (is_recorded) {
        dt_check_pass(k, c, "its graph records, outputs have the shapes of their ports");
    }
    compare_graphs(k, p, second, is_recorded);
    if (try_model(k, p, "running on zeros", is_recorded, dt_probe_run)) {
        dt_check_pass(k, c, "runs forward and backward on zeros with finite results");
    }
}

/* Two at once, as in two phases. */
static bool create_second_instance(dt_checker *k, dt_probe *p, const dt_loaded *m, const void *config)
{
    static const char step[] = "a second instance";
    memset(p, 0, sizeof(*p));
    if (!dt_check_may_call(k, &m->desc, step, true)) {
        return false;
    }
    const dt_status st = dt_probe_create(p, m, config);
    return st == DT_OK || dt_check_fail_status(k, &m->desc, step, st);
}

void dt_check_model(dt_checker *k, const dt_loaded *m, const void *config)
{
    const dt_component *c = &m->desc;
    dt_probe first, second;
    if (!may_create(k, c)) {
        return;
    }
    const dt_status st = dt_probe_create(&first, m, config);
    if (st != DT_OK) {
        (void)dt_check_fail_status(k, c, "create", st);
        if (dt_check_may_call(k, c, "destroy", true)) {
            dt_probe_destroy(&first);
        }
        return;
    }
    first.trial = k->trial;
    dt_check_pass(k, c, "created with H 16, T 3, F 4 and its options");
    const bool has_two = create_second_instance(k, &second, m, config);
    check_model_life(k, &first, has_two ? &second : NULL);
    if (!dt_check_may_call(k, c, "destroy", true)) {
        return;
    }
    dt_probe_destroy(&second);
    dt_probe_destroy(&first);
    const int64_t n_live = first.host.n_live + second.host.n_live;
    if (n_live != 0) {
        (void)dt_check_fail(k, c, "destroy leaves %" PRId64 " blocks of host memory", n_live);
    } else if (has_two) {
        dt_check_pass(k, c, "destroyed twice, no blocks are left");
    }
}

bool dt_check_is_acting(const dt_checker *k, const dt_component *c)
{
    return k->desc->run_model != NULL && c->kind == DT_KIND_MODEL;
}

/* Ports against what the environment offers, then rounds of acting and learning. */
void dt_check_acting(dt_checker *k, const dt_loaded *m)
{
    dt_str note = {0};
    dt_error_clear();
    if (!dt_check_may_call(k, &m->desc, "acting", true)) {
        return;
    }
    const dt_status st = k->desc->run_model(k->desc->user, m, k->trial, &note);
    if (st >= 0 && note.bytes == 0) {
        skip_remaining_checks(k, &m->desc);
    } else if (st >= 0) {
        dt_check_pass(k, &m->desc, "%s", dt_str_text(&note));
    } else {
        (void)dt_check_fail_status(k, &m->desc, "acting", st);
    }
    dt_str_fini(&note);
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static bool try_data(dt_checker *k, dt_probe_data *p, const char *step, bool has_needs,
                     dt_status (*ask)(dt_probe_data *p))
{
    const dt_component *c = &p->data->desc;
    if (!dt_check_may_call(k, c, step, has_needs)) {
        return false;
    }
    const dt_status st = ask(p);
    return st >= 0 || dt_check_fail_status(k, c, step, st);
}

/* Nothing is said of a component that keeps none. */
static void check_data_statistics(dt_checker *k, dt_probe_data *p, bool has_needs)
{
    const dt_component *c = &p->data->desc;
    uint32_t n = 0;
    if (p->data->ops.data.statistics == NULL || !dt_check_may_call(k, c, "statistics", has_needs)) {
        return;
    }
    const dt_status st = dt_probe_data_statistics(p, &n);
    if (st >= 0) {
        dt_check_pass(k, c, "statistics of %u fields, possible and twice the same", n);
    } else {
        (void)dt_check_fail_status(k, c, "statistics", st);
    }
}

static void check_data_life(dt_checker *k, dt_probe_data *p)
{
    const dt_component *c = &p->data->desc;
    const bool has_fields = try_data(k, p, "fields and symbols", true, dt_probe_data_describe);
    const bool is_counted = try_data(k, p, "count", true, dt_probe_data_count_samples);
    if (has_fields && is_counted) {
        dt_check_pass(k, c, "%u fields, %" PRIu64 " samples", p->n_fields, p->count);
    }
    if (is_counted && p->count == 0) {
        dt_check_skip(k, c, "read: no samples");
    } else if (try_data(k, p, "read", has_fields && is_counted, dt_probe_data_read)) {
        dt_check_pass(k, c, "reads samples within their buffers, twice the same, augmented or not");
    }
    check_data_statistics(k, p, has_fields && is_counted);
}

void dt_check_data(dt_checker *k, const dt_loaded *d, const void *config)
{
    const dt_component *c = &d->desc;
    dt_probe_data p;
    uint32_t n_datasets = 0;
    if (!may_create(k, c)) {
        return;
    }
    const dt_status st = dt_probe_data_create(&p, d, config);
    p.trial = k->trial;
    if (st >= 0) {
        check_data_life(k, &p);
    } else {
        report_failed_create(k, c, st);
    }
    if (!dt_check_may_call(k, c, "destroy", true)) {
        return;
    }
    dt_probe_data_destroy(&p, &n_datasets);
    if (st >= 0 && (p.host.n_live != 0 || n_datasets != 0)) {
        (void)dt_check_fail(k, c, "destroy leaves %" PRId64 " blocks of host memory and %u open data sets",
                            p.host.n_live, n_datasets);
    } else if (st >= 0) {
        dt_check_pass(k, c, "destroyed, no blocks are left");
    }
}

/* ---- environments ---------------------------------------------------------------------------------------------- */

typedef struct env_life {
    const dt_loaded *env;
    const void *config;
    dt_probe_env first;
    dt_probe_trace *trace; /* of the first game, owned; NULL: there was none */
    int64_t n_live;        /* blocks that destroyed instances left */
} env_life;

static bool try_spec(dt_checker *k, env_life *l)
{
    const dt_component *c = &l->env->desc;
    if (!dt_check_may_call(k, c, "spec", true)) {
        return false;
    }
    const dt_status st = dt_probe_env_spec(&l->first);
    if (st < 0) {
        return dt_check_fail_status(k, c, "spec", st);
    }
    const dt_env_spec *s = &l->first.layout.spec;
    dt_check_pass(
        k, c, "its spec is legal: %u place%s for agents, %u observation%s, %u discrete and %u continuous actions",
        s->n_agents, s->n_agents == 1 ? "" : "s", s->n_obs, s->n_obs == 1 ? "" : "s", s->n_heads, s->n_continuous);
    return true;
}

static bool play_first_episodes(dt_checker *k, env_life *l, bool has_spec)
{
    const dt_component *c = &l->env->desc;
    if (!dt_check_may_call(k, c, "playing", has_spec)) {
        return false;
    }
    l->trace = dt_alloc(sizeof(*l->trace));
    const dt_status st =
        l->trace != NULL ? dt_probe_env_play(&l->first, l->trace) : DT_FAIL(DT_ENOMEM, "no memory for a trial");
    if (st < 0) {
        return dt_check_fail_status(k, c, "playing", st);
    }
    dt_check_pass(k, c,
                  "%u steps under random actions, episodes: %u started, %u ended; sizes, numbers and ends are legal%s",
                  l->trace->n_steps, l->trace->n_episodes, l->trace->n_ended,
                  l->trace->is_cut ? " (no more steps in the time of a check)" : "");
    return true;
}

static bool destroy_env(dt_checker *k, env_life *l, dt_probe_env *p)
{
    if (!dt_check_may_call(k, &l->env->desc, "destroy", true)) {
        return false;
    }
    dt_probe_env_destroy(p);
    l->n_live += p->host.n_live;
    p->host.n_live = 0;
    return true;
}

/* The same game by step_many, in both instances where the process holds two. */
static dt_status play_batched(dt_checker *k, env_life *l, dt_probe_env *second)
{
    dt_probe_env *both[] = {second, &l->first};
    DT_TRY(dt_probe_env_play_many(both, l->first.is_created ? 2 : 1, l->trace));
    dt_check_pass(k, &l->env->desc, "step_many gives the results of step");
    return DT_OK;
}

/* The same game in a second instance, in parallel with the first one where the process may hold two. */
static void replay_in_second_instance(dt_checker *k, env_life *l, bool is_played)
{
    const dt_component *c = &l->env->desc;
    const bool is_alone = (c->flags & DT_COMP_PROCESS) != 0;
    const char *step = "a second instance";
    dt_probe_env second;
    if ((is_alone && !destroy_env(k, l, &l->first)) || !dt_check_may_call(k, c, step, true)) {
        return;
    }
    dt_status st = dt_probe_env_create(&second, l->env, l->config);
    if (st == DT_OK) {
        st = dt_probe_env_spec(&second);
    }
    second.trial = k->trial;
    if (st == DT_OK && dt_check_may_call(k, c, "playing again", is_played)) {
        step = "playing again";
        st = dt_probe_env_replay(&second, l->first.is_created ? &l->first : NULL, l->trace);
        if (st == DT_OK) {
            dt_check_pass(k, c, "the same seeds and actions give identical results in another instance");
        }
    }
    if (st == DT_OK && is_played && l->env->ops.env.step_many != NULL && dt_check_may_call(k, c, "step_many", true)) {
        step = "step_many";
        st = play_batched(k, l, &second);
    }
    if (st < 0) {
        (void)dt_check_fail_status(k, c, step, st);
    }
    (void)destroy_env(k, l, &second);
}

/* And in another process: code and static data have other addresses there. */
static void replay_in_worker(dt_checker *k, env_life *l, bool is_played)
{
    static const char step[] = "another process";
    const dt_component *c = &l->env->desc;
    dt_probe_env p;
    if (!k->desc->has_workers || !is_played || !dt_check_may_call(k, c, step, true)) {
        return;
    }
    dt_status st = dt_probe_env_create_in_worker(&p, l->env, k->tree, k->desc->timeout_s);
    if (st == DT_OK) {
        p.trial = k->trial;
        st = dt_probe_env_replay(&p, NULL, l->trace);
    }
    if (st == DT_OK) {
        dt_check_pass(k, c, "the same in another process, at other addresses");
    } else {
        (void)dt_check_fail_status(k, c, step, st);
    }
    dt_probe_env_destroy(&p);
}

void dt_check_env(dt_checker *k, const dt_loaded *e, const void *config)
{
    const dt_component *c = &e->desc;
    env_life l = {.env = e, .config = config};
    if (!may_create(k, c)) {
        return;
    }
    const dt_status st = dt_probe_env_create(&l.first, e, config);
    l.first.trial = k->trial;
    if (st >= 0) {
        const bool has_spec = try_spec(k, &l);
        const bool is_played = play_first_episodes(k, &l, has_spec);
        if (has_spec) {
            replay_in_second_instance(k, &l, is_played);
            replay_in_worker(k, &l, is_played);
        }
    } else {
        report_failed_create(k, c, st);
    }
    if (destroy_env(k, &l, &l.first) && st >= 0 && l.n_live != 0) {
        (void)dt_check_fail(k, c, "destroy leaves %" PRId64 " blocks of host memory", l.n_live);
    } else if (st >= 0 && !l.first.is_created) {
        dt_check_pass(k, c, "destroyed, no blocks are left");
    }
    dt_free(l.trace);
}

/* ---- phases ---------------------------------------------------------------------------------------------------- */

static const char *const *list_known_ids(void *user)
{
    return dt_loader_list_ids(user);
}

static dt_status find_component_role(void *user, dt_config *c, const char *id, const char **role_p)
{
    const dt_loaded *comp = NULL;
    DT_TRY(dt_loader_find(user, 0, id, &comp));
    *role_p = comp->desc.role;
    return dt_config_declare(c, id, comp->desc.options, comp->plugin->desc.name);
}

/* Its defaults for host sections must be keys that exist, with values in range. */
static dt_status apply_defaults(const dt_checker *k, const char *plugin, const char *const *defaults,
                                dt_config **tree_p)
{
    const dt_config_lookup find = {find_component_role, list_known_ids, k->desc->loader};
    DT_TRY(dt_config_create(tree_p));
    DT_TRY(dt_config_use_plugin(*tree_p, plugin, "check"));
    DT_TRY(dt_config_add_defaults(*tree_p, 0, plugin, defaults));
    return dt_config_check(*tree_p, &find);
}

static void check_defaults(dt_checker *k, const dt_loaded *p)
{
    const dt_component *c = &p->desc;
    if (c->extension == NULL || !dt_check_may_call(k, c, "extension", true)) {
        return;
    }
    const char *const *defaults = c->extension(DT_EXT_DEFAULTS);
    if (defaults == NULL) {
        return;
    }
    dt_config *tree = NULL;
    const dt_status st = apply_defaults(k, p->plugin->desc.name, defaults, &tree);
    dt_config_destroy(tree);
    if (st != DT_OK) {
        (void)dt_check_fail_status(k, c, "its defaults", st);
        return;
    }
    uint32_t n = 0;
    while (defaults[n] != NULL) {
        n++;
    }
    dt_check_pass(k, c, "%u defaults for dtrain's own sections, legal and in range", n);
}

void dt_check_phase(dt_checker *k, const dt_loaded *p)
{
    const dt_component *c = &p->desc;
    check_defaults(k, p);
    if (k->desc->run_phase == NULL) {
        dt_check_skip(k, c, "life cycle: this program does not run phases here");
        return;
    }
    dt_str note = {0};
    dt_error_clear();
    if (!dt_check_may_call(k, c, "life cycle", true)) {
        return;
    }
    const dt_status st = k->desc->run_phase(k->desc->user, p, k->trial, &note);
    if (st >= 0 && note.bytes == 0) {
        skip_remaining_checks(k, c);
    } else if (st >= 0) {
        dt_check_pass(k, c, "%s", dt_str_text(&note));
    } else if (is_missing_resource(st)) {
        dt_check_skip(k, c, "life cycle: %s", dt_error_text());
    } else {
        (void)dt_check_fail_status(k, c, "life cycle", st);
    }
    dt_str_fini(&note);
}

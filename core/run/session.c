/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/session.h"
#include "run/session_parts.h"

#include "base/err.h"
#include "dtrain/ext/keys.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/mix.h"
#include "engine/device/open.h"
#include "run/baselines.h"
#include "run/batch_auto.h"
#include "run/layers.h"
#include "run/profiles.h"
#include "rl/experience/service.h"
#include "plan/machine/limits.h"
#include "plugin/service/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dt_status find_demo(char **out)
{
    dt_str path = {0};
    dt_status st = dt_find_shipped("share/demo.store", "demo.store", &path);
    *out = st == DT_OK ? dt_strdup(dt_str_text(&path)) : NULL;
    dt_str_fini(&path);
    return *out != NULL || st != DT_OK ? st : DT_FAIL(DT_ENOMEM, "out of memory");
}

/* Sections named after components are declared when the checker meets them. */
static dt_status declare_component_section(dt_config *c, const dt_loaded *l)
{
    if (l->desc.kind == DT_KIND_PHASE) {
        return dt_config_declare_phase(c, l->desc.id, l->desc.options, l->plugin->desc.name);
    }
    return l->desc.options != NULL ? dt_config_declare(c, l->desc.id, l->desc.options, l->plugin->desc.name) : DT_OK;
}

static const char *const *list_component_ids(void *user)
{
    const dt_session *s = user;
    return dt_loader_list_ids(s->loader);
}

static dt_status lookup_component(void *user, dt_config *c, const char *id, const char **role_p)
{
    dt_session *s = user;
    const dt_loaded *l = NULL;
    dt_status st = dt_loader_find(s->loader, 0, id, &l);
    if (st < 0) {
        return st == DT_ENOTFOUND || st == DT_EABI ? DT_ENOTFOUND : st;
    }
    *role_p = l->desc.role;
    return declare_component_section(c, l);
}

static dt_status status_of_missing_plugin(dt_status st)
{
    return st == DT_ENOTFOUND || st == DT_EIO || st == DT_EINVAL || st == DT_ECONFIG ? DT_EABI : st; /* exit code 3 */
}

/* A component that is not there is refused where a phase needs it, with more context; lack of memory fails here. */
static dt_status declare_component(dt_session *s, uint32_t kind, const char *id)
{
    const dt_loaded *l = NULL;
    dt_status st = dt_loader_find(s->loader, kind, id, &l);
    if (st == DT_OK) {
        return declare_component_section(s->config, l);
    }
    return st == DT_ENOMEM ? st : DT_OK;
}

/* A run names its plugins by ids, which are looked for where the user keeps plugins. A path in it is opened only where
 * it leads to one of those: the author of a run would choose the code that runs here. */
static dt_status reject_foreign_plugin(const dt_session *s, int64_t phase, const char *plugin)
{
    dt_str where = {0};
    if (strchr(plugin, '/') == NULL || !dt_config_plugin_is_foreign(s->config, phase, &where) ||
        dt_loader_is_on_path(s->loader, plugin)) {
        dt_str_fini(&where);
        return DT_OK;
    }
    const char *slash = strrchr(plugin, '/');
    const int folder = slash > plugin ? (int)(slash - plugin) : 1;
    const dt_status st = DT_FAIL(DT_EABI,
                                 "%s names the plugin %s by its path, and a run may come from another author: it is "
                                 "not loaded. If it is yours, use --plugin %s, or add its folder to DTRAIN_PLUGIN_PATH "
                                 "(%.*s); if you trust the author of the run, use --trust-plugins",
                                 dt_str_text(&where), plugin, plugin, folder, plugin);
    dt_str_fini(&where);
    return st;
}

static dt_status load_phases(dt_session *s)
{
    s->n_phases = dt_config_n_phases(s->config);
    if (s->n_phases > DT_SESSION_MAX_PHASES) {
        return DT_FAIL(DT_ECONFIG, "phases has %lld entries, at most %d are possible", (long long)s->n_phases,
                       DT_SESSION_MAX_PHASES);
    }
    for (int64_t i = 0; i < s->n_phases; i++) {
        const char *plugin = dt_config_plugin(s->config, i);
        if (*plugin == '\0') {
            continue; /* the check reports it with all other errors */
        }
        DT_TRY(reject_foreign_plugin(s, i, plugin));
        dt_status st = dt_loader_find_phase(s->loader, plugin, &s->phase[i]);
        if (st < 0) {
            return status_of_missing_plugin(st);
        }
        const dt_component *desc = &s->phase[i]->desc;
        DT_TRY(declare_component_section(s->config, s->phase[i]));
        const char *const *defaults = desc->extension != NULL ? desc->extension(DT_EXT_DEFAULTS) : NULL;
        if (defaults != NULL) {
            DT_TRY(dt_config_add_defaults(s->config, i, desc->id, defaults));
        }
        DT_TRY(dt_config_distribute_groups(s->config, i, desc->id));
    }
    /* components that are wired but have no section of their own still need their tables */
    for (int64_t i = 0; i < s->n_phases; i++) {
        const char *role[DT_CONFIG_MAX_ROLES];
        const uint32_t n_roles = dt_config_roles(s->config, role);
        for (uint32_t r = 0; r < n_roles; r++) {
            const char *id = dt_config_model(s->config, i, role[r]);
            if (id != NULL && id[0] != '\0') {
                DT_TRY(declare_component(s, DT_KIND_MODEL, id));
            }
        }
        const char *source = NULL;
        dt_origin set_by;
        if (dt_config_get(s->config, i, "data.source", &source, &set_by) == DT_OK && *source != '\0') {
            DT_TRY(declare_component(s, DT_KIND_DATA, source));
        }
        const char *env = NULL;
        if (dt_config_get(s->config, i, "env.id", &env, &set_by) == DT_OK && *env != '\0') {
            DT_TRY(declare_component(s, DT_KIND_ENV, env));
        }
        for (uint32_t k = 0; (env = dt_config_mix_id(s->config, i, k)) != NULL; k++) {
            DT_TRY(declare_component(s, DT_KIND_ENV, env));
        }
        dt_baseline_names baselines;
        DT_TRY(dt_baseline_names_get(s->config, s->loader, i, &baselines));
        dt_baseline_names_fini(&baselines);
    }
    dt_error_clear();
    return DT_OK;
}

/* A phase by its number, from 1, or by its id; -1: none. */
static int64_t find_phase(const dt_session *s, const char *word)
{
    int64_t number = 0;
    if (dt_parse_i64(word, &number)) {
        return number >= 1 && number <= s->n_phases ? number - 1 : -1;
    }
    for (int64_t i = 0; i < s->n_phases; i++) {
        if (strcmp(s->phase[i]->desc.id, word) == 0) {
            return i;
        }
    }
    return -1;
}

/* --phase all, one phase, or a range: A-B, A-, -B. */
static dt_status select_phases(dt_session *s, const char *wanted)
{
    char word[64];
    if (s->n_phases == 0) {
        return DT_FAIL(DT_ECONFIG, "nothing to run: give --plugin FILE_OR_ID, or --config FILE with phases = ( ... )");
    }
    s->first = 0;
    s->last = s->n_phases;
    if (wanted == NULL || strcmp(wanted, "all") == 0) {
        return DT_OK;
    }
    const char *dash = strchr(wanted, '-'); /* no id has one */
    const char *end = dash != NULL ? dash + 1 : wanted;
    snprintf(word, sizeof(word), "%.*s", dash != NULL ? (int)(dash - wanted) : (int)sizeof(word) - 1, wanted);
    const int64_t first = word[0] != '\0' ? find_phase(s, word) : 0;
    const int64_t last = end[0] != '\0' ? find_phase(s, end) : s->n_phases - 1;
    if (first >= 0 && last >= first && strcmp(wanted, "-") != 0 && wanted[0] != '\0') {
        s->first = first;
        s->last = last + 1;
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG,
                   "--phase %s: the configuration has %lld phase%s, numbered from 1; expected all, a number, an id, or "
                   "a range such as 2-3 or 2-",
                   wanted, (long long)s->n_phases, s->n_phases == 1 ? "" : "s");
}

static dt_status read_sections(dt_session *s)
{
    s->opts = dt_alloc_n((size_t)s->n_phases, sizeof(*s->opts));
    if (s->opts == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the options of %lld phases", (long long)s->n_phases);
    }
    for (int64_t i = 0; i < s->n_phases; i++) {
        DT_TRY(dt_config_sections(s->config, i, &s->opts[i]));
    }
    return DT_OK;
}

/* Seed and ranks belong to the run; every phase may have workers and a device of its own. */
static dt_status read_resources(dt_session *s)
{
    dt_root_opts root;
    DT_TRY(dt_config_root(s->config, &root));
    s->seed = (uint64_t)root.seed;
    for (int64_t i = s->first; i < s->last; i++) {
        const dt_comm_opts *comm = &s->opts[i].comm;
        const uint32_t ranks = comm->backend == DT_COMM_SIM ? (uint32_t)comm->ranks : 1;
        s->comm_timeout_s = comm->timeout_s;
        s->ranks = i == s->first ? ranks : s->ranks;
        if (ranks != s->ranks) {
            return DT_FAIL(
                DT_ECONFIG,
                "phase %lld has %u ranks and phase %lld has %u; ranks are those of the run: set comm outside "
                "of phases",
                (long long)s->first + 1, s->ranks, (long long)i + 1, ranks);
        }
    }
    return DT_OK;
}

dt_status dt_session_open_loader(dt_session *s)
{
    memset(s, 0, sizeof(*s));
    dt_host_init(&s->host);
    const dt_loader_desc d = {.host = &s->host, .plugin_path = getenv("DTRAIN_PLUGIN_PATH")};
    DT_TRY(find_demo(&s->demo_store));
    return dt_loader_create(&d, &s->loader);
}

static void use_guide_keys(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    dt_config_set_keys(user, table);
}

dt_status dt_session_empty_config(dt_session *s)
{
    DT_TRY(dt_config_create(&s->config));
    dt_loader_visit_extensions(s->loader, DT_EXT_KEYS, use_guide_keys, s->config);
    return DT_OK;
}

static dt_status begin_config(const dt_args *a, const char *resumed, dt_session *out)
{
    DT_TRY(dt_session_open_loader(out));
    DT_TRY(dt_session_empty_config(out));
    return dt_layers_read(a, resumed, out->config);
}

static dt_status read_config(const dt_args *a, const char *resumed, dt_session *out)
{
    const dt_status st = begin_config(a, resumed, out);
    if (st < 0) {
        dt_session_close(out);
    }
    return st;
}

dt_stage_desc dt_session_describe_stage(const dt_session *s, int64_t phase, dt_comm *comm, pthread_mutex_t *lock)
{
    const uint32_t ranks = dt_comm_process_size(comm); /* threads are the process's */
    return (dt_stage_desc){.config = s->config,
                           .loader = s->loader,
                           .comm = comm,
                           .phase = s->phase[phase],
                           .demo_store = s->demo_store,
                           .index = phase,
                           .seed = s->seed,
                           .threads = s->threads > ranks ? s->threads / ranks : 1,
                           .rollouts = &dt_experience,
                           .device_ops = s->device.ops,
                           .device = s->device.handle,
                           .config_lock = lock};
}

dt_status dt_session_open_config(const dt_args *a, dt_session *out)
{
    DT_TRY(read_config(a, NULL, out));
    dt_status st = dt_config_check_errors(out->config);
    if (st < 0) {
        dt_session_close(out);
    }
    return st;
}

/* Of sections "a, b" the first that is an environment: env.id selects the one that is played. */
static bool find_idle_env(const dt_session *s, const char *sections, char *out, size_t bytes)
{
    const dt_loaded *c = NULL;
    for (const char *at = sections; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        snprintf(out, bytes, "%.*s", (int)n, at);
        if (dt_loader_find(s->loader, DT_KIND_ENV, out, &c) == DT_OK) {
            return true;
        }
        dt_error_clear();
        at += n + strspn(at + n, ", ");
    }
    return false;
}

/* A profile that has nothing for a phase changes nothing of it, which its name does not show. */
static void warn_idle_profile(const dt_args *a, const dt_session *s)
{
    dt_str idle = {0};
    char env[80];
    for (int64_t i = s->first; i < s->last && a->profile != NULL; i++) {
        const char *id = s->phase[i]->desc.id;
        dt_config_list_unused(s->config, i, id, DT_FROM_PROFILE, &idle);
        if (dt_config_count_values(s->config, i, id, DT_FROM_PROFILE) > 0 && idle.bytes > 0) {
            const bool has_env = find_idle_env(s, dt_str_text(&idle), env, sizeof(env));
            dt_log(DT_LOG_WARN,
                   "--profile %s has nothing for phase %lld (%s) itself: its sections %s have no effect there, the "
                   "others have%s%s%s",
                   a->profile, (long long)i + 1, id, dt_str_text(&idle), has_env ? "; set env.id = " : "",
                   has_env ? env : "", has_env ? " to play that one" : "");
        }
        if (dt_config_count_values(s->config, i, id, DT_FROM_PROFILE) == 0) {
            dt_log(DT_LOG_WARN,
                   "--profile %s changes nothing in phase %lld (%s): it has no values for it, or the configuration has "
                   "others, which override a profile's",
                   a->profile, (long long)i + 1, id);
        }
    }
    dt_str_fini(&idle);
}

dt_status dt_session_open(const dt_args *a, const char *resumed_config, const dt_comm *processes, dt_session *out)
{
    memset(out, 0, sizeof(*out));
    DT_TRY(read_config(a, resumed_config, out));
    out->is_job = processes != NULL;
    out->n_processes = processes != NULL ? dt_comm_size(processes) : 1;
    out->n_local = processes != NULL ? dt_comm_local_size(processes) : 1;
    dt_status st = load_phases(out);
    if (st == DT_OK) {
        const dt_config_lookup lookup = {.component = lookup_component, .ids = list_component_ids, .user = out};
        st = dt_config_check(out->config, &lookup);
    }
    if (st == DT_OK) {
        st = read_sections(out);
    }
    if (st == DT_OK) {
        st = dt_batch_restore(out, resumed_config);
    }
    if (st == DT_OK) {
        st = select_phases(out, a->phase);
    }
    if (st == DT_OK) {
        warn_idle_profile(a, out);
        st = read_resources(out);
    }
    if (st == DT_OK) {
        st = dt_session_check(out, resumed_config == NULL && a->is_run);
    }
    if (st == DT_OK) {
        st = dt_session_check_devices(out);
    }
    if (st == DT_OK && a->is_run) {
        st = dt_session_check_names(out, !a->has_resume);
    }
    if (st == DT_OK && a->is_run) {
        st = dt_session_check_shard_weights(out);
    }
    if (st == DT_OK) {
        st = dt_session_enter_phase(out, out->first);
    }
    if (st < 0) {
        dt_session_close(out);
    }
    return st;
}

void dt_session_close(dt_session *s)
{
    dt_session_device_close(&s->device);
    dt_config_destroy(s->config);
    dt_loader_destroy(s->loader);
    dt_free(s->demo_store);
    dt_free(s->opts);
    memset(s, 0, sizeof(*s));
}

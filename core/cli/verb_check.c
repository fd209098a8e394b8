/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain check FILE`: a plugin on trial (check.c), its phases by two iterations and an evaluation of a run.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/phase_trial.h"
#include "plan/machine/limits.h"
#include "run/session.h"
#include "plugin/service/stage.h"
#include "cli/tools.h"
#include "plugin/trial/check.h"
#include "plugin/trial/trial.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SET = 24 }; /* values that are added to those of the user */

typedef struct answer {
    const dt_args *args;
    const dt_session *session;
    char folder[64]; /* for checkpoints of phases on trial */
    dt_str text;     /* JSON that is not printed yet */
    dt_json_out out; /* into it */
} answer;

/* What makes a trial short; there is room. */
static void add_short_run_options(dt_args *a)
{
    static const char *const set[] = {"engine.threads=1", "evaluation.seeds=1", "evaluation.episodes=1",
                                      "evaluation.max_steps=64"};
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        a->set[a->n_set++] = set[i];
    }
}

/* What makes a round short, where a phase has such an option, whose default is larger. */
static const char *const small[][2] = {{"train_batch", "32"},     {"fragment", "16"},      {"sgd_epochs", "2"},
                                       {"learning_starts", "32"}, {"buffer_size", "1024"}, {"collect_steps", "8"},
                                       {"data_passes", "2"},      {"batch_number", "1"},   {"intensity", "2"},
                                       {"updates", "4"},          {"clone_rounds", "2"}};
enum { N_SMALL = sizeof(small) / sizeof(small[0]) };

typedef struct small_round { /* texts of the arguments of a trial */
    char set[N_SMALL][96];
    uint32_t n;
} small_round;

/* What its plugin sets a key to, as text; NULL: nothing. */
static const char *find_plugin_default(const dt_component *c, const char *key)
{
    const char *const *dfl = c->extension != NULL ? c->extension(DT_EXT_DEFAULTS) : NULL;
    const size_t bytes = strlen(key);
    for (; dfl != NULL && *dfl != NULL; dfl++) {
        if (strncmp(*dfl, key, bytes) == 0 && (*dfl)[bytes] == '=') {
            return *dfl + bytes + 1;
        }
    }
    return NULL;
}

/* Of an option, which key names; NULL: the component has none of that name. */
static const char *find_default(const dt_component *c, const char *name, const char *key)
{
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        if (strcmp(o->name, name) == 0) {
            const char *text = find_plugin_default(c, key);
            return text != NULL ? text : o->dfl;
        }
    }
    return NULL;
}

/* What the user sets; NULL: nothing. */
static const char *find_user_value(const answer *given, const char *key)
{
    const char *value = NULL;
    dt_origin origin;
    const dt_status st = dt_config_get(given->session->config, -1, key, &value, &origin);
    dt_error_clear();
    return st == DT_OK && origin.layer > DT_FROM_PLUGIN ? value : NULL;
}

/* Not what the user has set. */
static void add_small_round_options(dt_args *a, const answer *given, const dt_loaded *phase, small_round *r)
{
    const char *id = phase->desc.id;
    r->n = 0;
    for (size_t i = 0; i < N_SMALL; i++) {
        char *set = r->set[r->n];
        snprintf(set, sizeof(r->set[0]), "%s.%s", id, small[i][0]);
        const char *dfl = find_default(&phase->desc, small[i][0], set);
        if (dfl != NULL && strtod(dfl, NULL) > strtod(small[i][1], NULL) && find_user_value(given, set) == NULL) {
            snprintf(set, sizeof(r->set[0]), "%s.%s=%s", id, small[i][0], small[i][1]);
            a->set[a->n_set++] = set;
            r->n++;
        }
    }
}

/* Something that does not fit, as shapes and configuration say: another phase may take it. */
static bool is_misfit(dt_status st)
{
    return st == DT_ESHAPE || st == DT_ECONFIG || st == DT_ENOTFOUND || st == DT_EUNSUPPORTED;
}

static dt_status run_phase_by(const answer *given, const dt_loaded *phase, const char *more, bool is_small, dt_trial *t,
                              dt_str *note_p)
{
    dt_args a = *given->args;
    dt_session s;
    small_round r = {.n = 0};
    a.plugin = phase->plugin->sha256[0] != '\0' ? phase->plugin->path : phase->desc.id; /* a file, or linked in */
    a.set[a.n_set++] = "data.batch=8";
    if (more != NULL) {
        a.set[a.n_set++] = more;
    }
    add_short_run_options(&a);
    if (is_small) {
        add_small_round_options(&a, given, phase, &r);
    }
    DT_TRY(dt_session_open(&a, NULL, NULL, &s));
    return dt_phase_trial(&s, &a, given->folder, NULL, t, note_p); /* not closed: the process ends, and fini of plugins
                                                                    * is tried by itself */
}

/* DTRAIN_PLUGIN_PATH with the plugin's folder in front of those that are searched; empty: it is linked in. */
static dt_status list_search_folders(const dt_loaded_plugin *p, dt_str *out)
{
    const char *slash = strrchr(p->path, '/'), *old = getenv("DTRAIN_PLUGIN_PATH");
    if (slash != NULL) {
        dt_str_add_n(out, p->path, (size_t)(slash - p->path));
        dt_str_addf(out, "%s%s", old != NULL && *old != '\0' ? ":" : "", old != NULL ? old : "");
    }
    return dt_str_status(out);
}

/* "phase.rollouts=FOLDER" of a phase that learns from stored ones, where the user names none; else empty. */
static dt_status collect_rollouts(const answer *given, const dt_loaded *phase, dt_trial *t, dt_str *set)
{
    const dt_component *c = &phase->desc;
    const dt_option *o = dt_option_find_flag(c->options, DT_OPT_ROLLOUTS);
    const char *env = find_user_value(given, "env.id");
    env = env != NULL ? env : find_plugin_default(c, "env.id");
    dt_str key = {0};
    dt_str_addf(&key, "%s.%s", c->id, o != NULL ? o->name : "");
    const bool is_set = o == NULL || find_user_value(given, dt_str_text(&key)) != NULL;
    dt_str_fini(&key);
    if (is_set || env == NULL || !dt_trial_begin_step(t, "collecting rollouts")) {
        return DT_OK;
    }
    dt_str folders = {0};
    dt_status st = list_search_folders(phase->plugin, &folders);
    if (st == DT_OK) {
        dt_str_addf(set, "%s.%s=", c->id, o->name);
        st = dt_phase_trial_collect(given->args, env, dt_str_text(&folders), given->folder, t, set);
    }
    dt_str_fini(&folders);
    return st;
}

/* In short rounds where it takes them. */
static dt_status try_phase(void *user, const dt_loaded *phase, dt_trial *t, dt_str *note_p)
{
    dt_str rollouts = {0};
    dt_status st = collect_rollouts(user, phase, t, &rollouts);
    if (st == DT_OK) {
        const char *more = rollouts.bytes > 0 ? dt_str_text(&rollouts) : NULL;
        st = run_phase_by(user, phase, more, true, t, note_p);
        if (is_misfit(st)) {
            dt_error_clear();
            st = run_phase_by(user, phase, more, false, t, note_p);
        }
    }
    dt_str_fini(&rollouts);
    return st;
}

/* Its folder in front of those that are searched, in this process, which is a copy on trial. */
static dt_status search_folder_of_model(const dt_loaded *model)
{
    dt_str folders = {0};
    dt_status st = list_search_folders(model->plugin, &folders);
    if (st == DT_OK && folders.bytes > 0 && setenv("DTRAIN_PLUGIN_PATH", dt_str_text(&folders), 1) != 0) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for the folders of plugins");
    }
    dt_str_fini(&folders);
    return st;
}

/* One phase with the model in its role, in the environment asked for. */
static dt_status run_model_by(const answer *given, const dt_loaded *model, const dt_loaded *phase, dt_trial *t,
                              dt_str *note_p)
{
    dt_args a = *given->args;
    dt_session s;
    char role[128], env[128];
    small_round r;
    dt_str life = {0};
    snprintf(role, sizeof(role), "models.%s=%s", model->desc.role, model->desc.id);
    snprintf(env, sizeof(env), "env.id=%s", a.env);
    a.plugin = phase->desc.id;
    a.set[a.n_set++] = role;
    a.set[a.n_set++] = env;
    a.set[a.n_set++] = "env.instances=2";
    a.set[a.n_set++] = "data.batch=16";
    add_small_round_options(&a, given, phase, &r);
    add_short_run_options(&a);
    DT_TRY(dt_session_open(&a, NULL, NULL, &s));
    const dt_status st =
        dt_phase_trial(&s, &a, given->folder, model->desc.id, t, &life); /* not closed, as in run_phase_by */
    if (st >= 0 && life.bytes > 0) {
        dt_str_addf(note_p, "acts in %s by %s: %s", a.env, phase->desc.id, dt_str_text(&life));
    }
    dt_str_fini(&life);
    return st;
}

/* Does the phase act in environments by default? */
static bool acts_in_env(const dt_loaded *phase)
{
    const char *const *dfl = phase->desc.extension != NULL ? phase->desc.extension(DT_EXT_DEFAULTS) : NULL;
    bool acts = false;
    for (; dfl != NULL && *dfl != NULL; dfl++) {
        acts = acts || strncmp(*dfl, "env.id=", 7) == 0;
    }
    return acts;
}

/* The first phase that can train the model there: those of its own plugin, then the others, by id. */
static dt_status try_model(void *user, const dt_loaded *model, dt_trial *t, dt_str *note_p)
{
    enum { MOST = 64 };
    const answer *given = user;
    const dt_loaded *phase[MOST];
    dt_str unused = {0}, reasons = {0};
    uint32_t n = 0;
    DT_TRY(search_folder_of_model(model));
    dt_trial_accept_state(t); /* the variable is ours */
    if (!dt_trial_begin_step(t, "wiring")) {
        return DT_OK;
    }
    dt_loader *l = given->session->loader;
    DT_TRY(dt_loader_scan(l, &unused));
    dt_str_fini(&unused);
    for (int own = 1; own >= 0; own--) {
        for (uint32_t i = 0; i < dt_loader_count(l) && n < MOST; i++) {
            const dt_loaded *c = dt_loader_at(l, i);
            if (c->desc.kind == DT_KIND_PHASE && (c->plugin == model->plugin) == (own != 0) && acts_in_env(c)) {
                phase[n++] = c;
            }
        }
    }
    dt_status st = DT_FAIL(DT_ECONFIG, "no phase here acts in environments");
    for (uint32_t i = 0; i < n; i++) {
        dt_error_clear();
        st = run_model_by(given, model, phase[i], t, note_p);
        if (!is_misfit(st)) {
            break;
        }
        dt_str_addf(&reasons, "%s%s: %s", i > 0 ? "; " : "", phase[i]->desc.id, dt_error_text());
    }
    if (is_misfit(st) && reasons.bytes > 0) {
        st = DT_FAIL(DT_ESHAPE, "no phase can train it in %s: %s", given->args->env, dt_str_text(&reasons));
    }
    dt_str_fini(&reasons);
    return st;
}

/* As its verdict and its text. */
static void write_json_verdict(answer *w, const char *line)
{
    dt_str verdict = {0};
    const size_t bytes = strcspn(line, " ");
    dt_str_add_n(&verdict, line, bytes);
    dt_json_obj(&w->out, NULL);
    dt_json_str(&w->out, "verdict", dt_str_text(&verdict));
    dt_json_str(&w->out, "text", line + bytes + (line[bytes] != '\0'));
    dt_json_end(&w->out, '}');
    dt_str_fini(&verdict);
}

static const char *const *list_known_ids(void *user)
{
    return dt_loader_list_ids(user);
}

static dt_status find_component_role(void *user, dt_config *c, const char *id, const char **role_p)
{
    const dt_loaded *comp = NULL;
    DT_TRY(dt_loader_find(user, 0, id, &comp));
    *role_p = comp->desc.role;
    return comp->desc.kind == DT_KIND_PHASE
               ? dt_config_declare_phase(c, id, comp->desc.options, comp->plugin->desc.name)
               : dt_config_declare(c, id, comp->desc.options, comp->plugin->desc.name);
}

/* Where a list of phases is given, it is for runs. */
static dt_status check_config(void *user, const dt_loaded_plugin *p)
{
    const answer *w = user;
    const dt_config_lookup find = {find_component_role, list_known_ids, w->session->loader};
    return dt_config_n_phases(w->session->config) > 0 ? DT_OK : dt_config_check(w->session->config, &find);
}

/* At once: what comes next may take long. */
static void print_verdict(void *user, const char *line)
{
    answer *w = user;
    if (w->args->json) {
        write_json_verdict(w, line);
        dt_print_text(dt_str_text(&w->text));
        dt_str_clear(&w->text);
    } else {
        dt_print_line(line);
    }
    (void)fflush(stdout); /* an error stays with the stream, and is reported at the end */
}

static dt_status check_plugin_file(const dt_check_desc *d, const char *file, answer *w)
{
    if (!w->args->json) {
        return dt_check_plugin(d, file);
    }
    dt_json_arr(&w->out, NULL);
    dt_status st = dt_check_plugin(d, file);
    dt_json_end(&w->out, ']');
    dt_print_line(dt_str_text(&w->text));
    if (dt_str_status(&w->text) < 0) {
        st = DT_ENOMEM;
    }
    dt_str_fini(&w->text);
    return st;
}

/* memory.target_gb, else half of what is free, from 256 MB to 4 GB. */
static uint64_t choose_memory_limit(const dt_memory_opts *o)
{
    static const uint64_t most = UINT64_C(4) << 30, least = UINT64_C(256) << 20;
    dt_limits r;
    const uint64_t half = dt_limits_read("", &r) ? r.memory / 2 : most;
    return o->target_gb > 0 ? (uint64_t)(o->target_gb * 1e9) : half > most ? most : half < least ? least : half;
}

dt_status dt_verb_check(const dt_args *a, int *code_p)
{
    if (a->n_set + MOST_SET > DT_CLI_MAX_REPEAT) {
        return DT_FAIL(DT_ECONFIG, "%u --set are too many for check; put them into a file for --config", a->n_set);
    }
    dt_session s;
    answer w = {.args = a, .session = &s};
    w.out.s = &w.text;
    dt_data_opts data = {0};
    dt_env_opts env = {0};
    dt_memory_opts memory = {0};
    DT_TRY(dt_session_open_config(a, &s));
    dt_status st = dt_config_data(s.config, -1, &data);
    if (st == DT_OK) {
        st = dt_config_env(s.config, -1, &env);
    }
    if (st == DT_OK) {
        st = dt_config_memory(s.config, -1, &memory);
    }
    if (st < 0) {
        dt_session_close(&s);
        return st;
    }
    dt_trial_limit_memory(choose_memory_limit(&memory));
    const dt_check_desc d = {.loader = s.loader,
                             .config = s.config,
                             .timeout_s = env.timeout_s,
                             .has_workers = true,
                             .store = *data.store != '\0' ? data.store : s.demo_store,
                             .run_phase = try_phase,
                             .run_model = a->env != NULL ? try_model : NULL,
                             .check_config = check_config,
                             .report = print_verdict,
                             .user = &w};
    const dt_loaded *env_found = NULL;
    if (a->env != NULL && dt_loader_find(s.loader, DT_KIND_ENV, a->env, &env_found) < 0) {
        st = DT_CONTEXT(DT_ECONFIG, "--env %s", a->env);
        dt_session_close(&s);
        return st;
    }
    snprintf(w.folder, sizeof(w.folder), "/tmp/dtrain-check-XXXXXX");
    st = mkdtemp(w.folder) != NULL ? check_plugin_file(&d, a->word[0], &w)
                                   : DT_FAIL(DT_EIO, "no temporary folder %s: %s", w.folder, strerror(errno));
    dt_error reason;
    dt_error_save(&reason, st);
    if (dt_fs_remove_tree(w.folder) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
    }
    st = dt_error_restore(&reason);
    dt_session_close(&s);
    /* whatever else it is, the plugin is refused */
    return st == DT_OK || st == DT_ENOMEM || st == DT_ECONFIG ? st : DT_EABI;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain check FILE`: a plugin on trial (check.c), its phases by two iterations and an evaluation of a run.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/session.h"
#include "plugin/service/stage.h"
#include "cli/tools.h"
#include "plugin/trial/check.h"
#include "plugin/trial/trial.h"
#include "base/err.h"
#include "base/json.h"
#include "base/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SET = 11 }; /* values that are added to those of the user */

typedef struct blob { /* what a phase saves */
    dt_str bytes;
    size_t at; /* of it was read */
} blob;

static dt_status write_blob(dt_writer *w, const void *p, uint64_t bytes)
{
    blob *b = w->priv;
    dt_str_add_n(&b->bytes, p, bytes);
    return dt_str_status(&b->bytes);
}

static dt_status read_blob(dt_reader *r, void *p, uint64_t bytes)
{
    blob *b = r->priv;
    if (bytes > r->bytes_left) {
        return DT_FAIL(DT_EDATA, "load reads %llu bytes, but %llu are left of what save wrote",
                       (unsigned long long)bytes, (unsigned long long)r->bytes_left);
    }
    memcpy(p, dt_str_text(&b->bytes) + b->at, bytes);
    b->at += bytes;
    r->bytes_left -= bytes;
    return DT_OK;
}

static dt_status set_save_path(const dt_stage *stage, blob *b)
{
    dt_writer w = {.struct_size = sizeof(w), .priv = b, .write = write_blob};
    const dt_status st = stage->d.phase->ops.phase.save(stage->self, &w);
    return st > 0 ? DT_OK : st;
}

/* What save wrote, and again what save writes then: the same bytes. */
static dt_status load_from(const dt_stage *stage, blob *b)
{
    const dt_loaded *phase = stage->d.phase;
    dt_reader r = {.struct_size = sizeof(r), .priv = b, .bytes_left = b->bytes.bytes, .read = read_blob};
    DT_TRY_PLUGIN(phase->ops.phase.load(stage->self, &r, phase->desc.state_version), "load");
    if (r.bytes_left > 0) {
        return DT_FAIL(DT_EPLUGIN, "load leaves %llu of the %zu bytes that save wrote",
                       (unsigned long long)r.bytes_left, b->bytes.bytes);
    }
    blob again = {.at = 0};
    dt_status st = set_save_path(stage, &again);
    if (st == DT_OK && (again.bytes.bytes != b->bytes.bytes ||
                        memcmp(dt_str_text(&again.bytes), dt_str_text(&b->bytes), b->bytes.bytes) != 0)) {
        st = DT_FAIL(DT_EPLUGIN, "after load, save writes other bytes than those that were loaded; a resumed run would "
                                 "continue differently");
    }
    dt_str_fini(&again.bytes);
    return st;
}

static void note(dt_str *note_p, const char *what)
{
    dt_str_addf(note_p, "%s%s", note_p->bytes > 0 ? ", " : "", what);
}

static dt_status save_and_load(const dt_stage *stage, dt_trial *t, dt_str *note_p)
{
    const dt_phase_ops *ops = &stage->d.phase->ops.phase;
    blob b = {.at = 0};
    dt_status st = DT_OK;
    bool is_saved = false;
    if (ops->save != NULL && dt_trial_step(t, "save")) {
        st = set_save_path(stage, &b);
        is_saved = st == DT_OK;
    }
    if (is_saved && ops->load != NULL && dt_trial_step(t, "load")) {
        st = load_from(stage, &b);
        if (st == DT_OK) {
            note(note_p, "saved and loaded");
        }
    }
    dt_str_fini(&b.bytes);
    return st;
}

/* Everything after create, on small batches: two iterations, a short evaluation. */
static dt_status run_check(dt_stage *stage, dt_trial *t, dt_str *note_p)
{
    enum { ITERATIONS = 2 };
    dt_progress p = {.struct_size = sizeof(p)};
    if (!dt_trial_step(t, "start")) {
        return DT_OK;
    }
    DT_TRY(dt_stage_start(stage));
    note(note_p, "started");
    if (dt_trial_step(t, "iterate")) {
        dt_status st = DT_OK;
        int n = 0;
        for (; st == DT_OK && n < ITERATIONS; n++) {
            st = dt_stage_iterate(stage, &p);
        }
        DT_TRY_DONE(st);
        dt_str_addf(note_p, ", iterated %d times", n);
    }
    if (stage->d.phase->ops.phase.evaluate != NULL && dt_trial_step(t, "evaluate")) {
        DT_TRY(dt_stage_evaluate(stage, &p));
        note(note_p, "evaluated");
    }
    return save_and_load(stage, t, note_p);
}

/* A phase as `dtrain run` would have it. */
static dt_status run_stage(const dt_session *s, dt_trial *t, dt_str *note_p)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    DT_TRY(dt_comm_null(&comm));
    const dt_stage_desc d = dt_session_describe_stage(s, 0, comm, &lock);
    if (!dt_trial_step(t, "create")) {
        dt_comm_destroy(comm);
        return DT_OK;
    }
    dt_status st = dt_stage_create(&d, &stage);
    if (st < 0) {
        dt_comm_destroy(comm);
        return st;
    }
    note(note_p, "created");
    st = run_check(stage, t, note_p);
    if (dt_trial_step(t, "stop")) {
        dt_stage_stop(stage);
        note(note_p, "stopped");
        if (dt_trial_step(t, "destroy")) {
            dt_stage_destroy(stage);
            note(note_p, "destroyed");
        }
    }
    dt_comm_destroy(comm);
    if (st < 0) { /* from create on nothing can be missing */
        return st == DT_EDIVERGED ? st : DT_CONTEXT(DT_EPLUGIN, "after create");
    }
    return DT_OK;
}

typedef struct answer {
    const dt_args *args;
    const dt_session *session;
    dt_str text;     /* JSON that is not printed yet */
    dt_json_out out; /* into it */
} answer;

/* What makes a trial short; there is room. */
static void add_short(dt_args *a)
{
    static const char *const set[] = {"engine.threads=1", "evaluation.seeds=1", "evaluation.episodes=1",
                                      "evaluation.max_steps=64"};
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        a->set[a->n_set++] = set[i];
    }
}

static dt_status run_phase(void *user, const dt_loaded *phase, dt_trial *t, dt_str *note_p)
{
    const answer *given = user;
    dt_args a = *given->args;
    dt_session s;
    a.plugin = phase->plugin->sha256[0] != '\0' ? phase->plugin->path : phase->desc.id; /* a file, or linked in */
    a.set[a.n_set++] = "data.batch=8";
    add_short(&a);
    DT_TRY(dt_session_open(&a, NULL, NULL, &s));
    return run_stage(&s, t, note_p); /* not closed: the process ends, and fini of plugins is tried by itself */
}

/* Its folder in front of those that are searched, in this process, which is a copy on trial. */
static dt_status search_own_folder(const dt_loaded *model)
{
    const char *path = model->plugin->path, *slash = strrchr(path, '/'), *old = getenv("DTRAIN_PLUGIN_PATH");
    dt_str folders = {0};
    if (slash == NULL) {
        return DT_OK; /* linked in */
    }
    dt_str_add_n(&folders, path, (size_t)(slash - path));
    dt_str_addf(&folders, "%s%s", old != NULL && *old != '\0' ? ":" : "", old != NULL ? old : "");
    dt_status st = dt_str_status(&folders);
    if (st == DT_OK && setenv("DTRAIN_PLUGIN_PATH", dt_str_text(&folders), 1) != 0) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for the folders of plugins");
    }
    dt_str_fini(&folders);
    return st;
}

/* phase2_ppo with the model in its role, in the environment asked for. */
static dt_status run_model(void *user, const dt_loaded *model, dt_trial *t, dt_str *note_p)
{
    const answer *given = user;
    dt_args a = *given->args;
    dt_session s;
    char role[128], env[128];
    DT_TRY(search_own_folder(model));
    snprintf(role, sizeof(role), "models.%s=%s", model->desc.role, model->desc.id);
    snprintf(env, sizeof(env), "env.id=%s", a.env);
    const char *const set[] = {role,
                               env,
                               "env.instances=2",
                               "phase2_ppo.train_batch=32",
                               "phase2_ppo.fragment=16",
                               "phase2_ppo.sgd_epochs=1",
                               "data.batch=16"};
    a.plugin = "phase2_ppo";
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        a.set[a.n_set++] = set[i];
    }
    add_short(&a);
    if (!dt_trial_step(t, "wiring")) {
        return DT_OK;
    }
    DT_TRY(dt_session_open(&a, NULL, NULL, &s));
    dt_str life = {0};
    const dt_status st = run_stage(&s, t, &life);
    if (st >= 0 && life.bytes > 0) {
        dt_str_addf(note_p, "acts in %s by phase2_ppo: %s", a.env, dt_str_text(&life));
    }
    dt_str_fini(&life);
    return st; /* the session as in run_phase */
}

/* As its verdict and its text. */
static void add_json(answer *w, const char *line)
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

static const char *const *known_ids(void *user)
{
    return dt_loader_ids(user);
}

static dt_status lookup(void *user, dt_config *c, const char *id, const char **role_p)
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
    const dt_config_lookup find = {lookup, known_ids, w->session->loader};
    (void)p;
    return dt_config_n_phases(w->session->config) > 0 ? DT_OK : dt_config_check(w->session->config, &find);
}

/* At once: what comes next may take long. */
static void print_verdict(void *user, const char *line)
{
    answer *w = user;
    if (w->args->json) {
        add_json(w, line);
        dt_print_text(dt_str_text(&w->text));
        dt_str_clear(&w->text);
    } else {
        dt_print_line(line);
    }
    (void)fflush(stdout); /* an error stays with the stream, and is reported at the end */
}

static dt_status check(const dt_check_desc *d, const char *file, answer *w)
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
    dt_trial_limit_memory((uint64_t)(memory.target_gb * 1e9));
    const dt_check_desc d = {.loader = s.loader,
                             .config = s.config,
                             .timeout_s = env.timeout_s,
                             .store = *data.store != '\0' ? data.store : s.demo_store,
                             .run_phase = run_phase,
                             .run_model = a->env != NULL ? run_model : NULL,
                             .check_config = check_config,
                             .tell = print_verdict,
                             .user = &w};
    const dt_loaded *env_found = NULL;
    if (a->env != NULL && dt_loader_find(s.loader, DT_KIND_ENV, a->env, &env_found) < 0) {
        st = DT_CONTEXT(DT_ECONFIG, "--env %s", a->env);
        dt_session_close(&s);
        return st;
    }
    st = check(&d, a->word[0], &w);
    dt_session_close(&s);
    /* whatever else it is, the plugin is refused */
    return st == DT_OK || st == DT_ENOMEM || st == DT_ECONFIG ? st : DT_EABI;
}

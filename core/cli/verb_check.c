/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain check FILE`: a plugin on trial (check.c), its phases by two iterations and an evaluation of a run.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/session.h"
#include "service/stage.h"
#include "cli/tools.h"
#include "trial/check.h"
#include "trial/trial.h"
#include "base/err.h"
#include "base/json.h"
#include "base/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SET = 11 }; /* values that are added to those of the user */

/* A phase as `dtrain run` would have it, on small batches, for two iterations and a short evaluation. */
static dt_status run_stage(const dt_session *s, dt_trial *t, dt_str *note_p)
{
    enum { ITERATIONS = 2 };
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    dt_progress p = {.struct_size = sizeof(p)};
    DT_TRY(dt_comm_null(&comm));
    const dt_stage_desc d = dt_session_stage(s, 0, comm, &lock);
    dt_trial_step(t, "create");
    dt_status st = dt_stage_create(&d, &stage);
    const bool is_created = st == DT_OK; /* from here on nothing can be missing */
    if (st == DT_OK) {
        dt_trial_step(t, "start");
        st = dt_stage_start(stage);
    }
    int n = 0;
    for (; st == DT_OK && n < ITERATIONS; n++) {
        dt_trial_step(t, "iterate");
        st = dt_stage_iterate(stage, &p);
    }
    if (st >= 0 && s->phase[0]->ops.phase.evaluate != NULL) {
        dt_trial_step(t, "evaluate");
        st = dt_stage_evaluate(stage, &p);
    }
    dt_trial_step(t, "stop and destroy");
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
    if (st < 0 && is_created) {
        return st == DT_EDIVERGED ? st : DT_CONTEXT(DT_EPLUGIN, "after create");
    }
    if (st >= 0) {
        dt_str_addf(note_p, "created, started, iterated %d times, %sstopped, destroyed", n,
                    s->phase[0]->ops.phase.evaluate != NULL ? "evaluated, " : "");
    }
    return st;
}

typedef struct answer {
    const dt_args *args;
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
    dt_status st = run_stage(&s, t, note_p);
    dt_session_close(&s);
    return st;
}

/* Its folder in front of those that are searched, in this process, which is a copy on trial. */
static dt_status search_beside(const dt_loaded *model)
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
    DT_TRY(search_beside(model));
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
    dt_trial_step(t, "wiring");
    DT_TRY(dt_session_open(&a, NULL, NULL, &s));
    dt_str life = {0};
    const dt_status st = run_stage(&s, t, &life);
    if (st >= 0) {
        dt_str_addf(note_p, "acts in %s by phase2_ppo: %s", a.env, dt_str_text(&life));
    }
    dt_str_fini(&life);
    dt_session_close(&s);
    return st;
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

/* At once: what comes next may take long. */
static void tell(void *user, const char *line)
{
    answer *w = user;
    if (w->args->json) {
        add_json(w, line);
        dt_print_text(dt_str_text(&w->text));
        dt_str_clear(&w->text);
    } else {
        dt_print_line(line);
    }
    (void)fflush(stdout); /* an error stays with the stream, and is told at the end */
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

dt_status dt_verb_check(const dt_args *a)
{
    if (a->n_words != 1) {
        return DT_FAIL(DT_ECONFIG, "expected dtrain check FILE, got %u words", a->n_words);
    }
    if (a->n_set + MOST_SET > DT_CLI_MAX_REPEAT) {
        return DT_FAIL(DT_ECONFIG, "%u --set are too many for check; put them into a file for --config", a->n_set);
    }
    dt_session s;
    answer w = {.args = a};
    w.out.s = &w.text;
    dt_data_opts data = {0};
    dt_env_opts env = {0};
    DT_TRY(dt_session_config(a, &s));
    dt_status st = dt_config_data(s.config, -1, &data);
    if (st == DT_OK) {
        st = dt_config_env(s.config, -1, &env);
    }
    if (st < 0) {
        dt_session_close(&s);
        return st;
    }
    const dt_check_desc d = {.loader = s.loader,
                             .config = s.config,
                             .timeout_s = env.timeout_s,
                             .store = *data.store != '\0' ? data.store : s.demo_store,
                             .run_phase = run_phase,
                             .run_model = a->env != NULL ? run_model : NULL,
                             .tell = tell,
                             .user = &w};
    st = check(&d, a->word[0], &w);
    dt_session_close(&s);
    return st == DT_OK || st == DT_ENOMEM ? st : DT_EABI; /* whatever it is, the plugin is refused */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/baselines.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- which ------------------------------------------------------------------------------------------------------- */

static dt_status add_name(dt_config *c, dt_loader *l, const char *id, size_t bytes, dt_baseline_names *out)
{
    char name[128];
    const dt_loaded *found = NULL;
    if (bytes >= sizeof(name) || out->n == DT_BASELINES_MAX) {
        return DT_FAIL(DT_ECONFIG, "evaluation.baselines: more than %d controllers, or an invalid name",
                       DT_BASELINES_MAX);
    }
    snprintf(name, sizeof(name), "%.*s", (int)bytes, id);
    dt_status st = dt_loader_find(l, DT_KIND_MODEL, name, &found);
    if (st < 0) {
        return st == DT_ENOMEM ? st : DT_CONTEXT(DT_ECONFIG, "evaluation.baselines");
    }
    if (found->desc.role == NULL || strcmp(found->desc.role, "controller") != 0) {
        return DT_FAIL(DT_ECONFIG, "evaluation.baselines: %s is a model for the role %s, not a controller", name,
                       found->desc.role != NULL ? found->desc.role : "(none)");
    }
    if (found->desc.options != NULL) {
        DT_TRY(dt_config_declare(c, found->desc.id, found->desc.options, found->plugin->desc.name));
    }
    out->id[out->n] = dt_strdup(name);
    return out->id[out->n++] != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
}

/* Those that the environment names; a controller that is not installed is none of them. */
static dt_status add_environment_baselines(dt_config *c, dt_loader *l, int64_t phase, dt_baseline_names *out)
{
    const char *env = NULL;
    const dt_loaded *found = NULL;
    dt_origin unused;
    if (dt_config_get(c, phase, "env.id", &env, &unused) != DT_OK || *env == '\0' ||
        dt_loader_find(l, DT_KIND_ENV, env, &found) != DT_OK || found->desc.extension == NULL) {
        dt_error_clear();
        return DT_OK;
    }
    const char *const *usual = found->desc.extension(DT_EXT_BASELINES);
    for (uint32_t i = 0; usual != NULL && usual[i] != NULL && i < DT_BASELINES_MAX; i++) {
        const dt_status st = add_name(c, l, usual[i], strlen(usual[i]), out);
        if (st == DT_ENOMEM) {
            return st;
        }
        dt_error_clear();
    }
    return DT_OK;
}

dt_status dt_baseline_names_get(dt_config *c, dt_loader *l, int64_t phase, dt_baseline_names *out)
{
    const char *text = NULL;
    dt_origin unused;
    *out = (dt_baseline_names){0};
    DT_TRY(dt_config_get(c, phase, "evaluation.baselines", &text, &unused));
    out->is_auto = strcmp(text, "auto") == 0;
    dt_status st = out->is_auto ? add_environment_baselines(c, l, phase, out) : DT_OK;
    for (const char *at = text; st == DT_OK && !out->is_auto && *at != '\0';) {
        at += strspn(at, ", ");
        const size_t bytes = strcspn(at, ", ");
        st = bytes > 0 ? add_name(c, l, at, bytes, out) : DT_OK;
        at += bytes;
    }
    if (st < 0) {
        dt_baseline_names_fini(out);
    }
    return st;
}

void dt_baseline_names_fini(dt_baseline_names *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        dt_free(b->id[i]);
    }
    b->n = 0;
}

/* ---- the policy's own -------------------------------------------------------------------------------------------- */

dt_status dt_policy_result_capture(dt_stage *s, dt_policy_result **out_p)
{
    *out_p = NULL;
    if (s->results.n == 0 || s->env.comp == NULL || s->rollout == NULL) {
        return DT_OK;
    }
    dt_policy_result *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the results of %s", s->d.phase->desc.id);
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (strcmp(s->model[i].role, "controller") == 0) {
            snprintf(p->controller, sizeof(p->controller), "%s", s->model[i].comp->desc.id);
        }
    }
    dt_result_json(s, &p->json);
    memcpy(p->result, s->results.at, s->results.n * sizeof(*s->results.at));
    p->n = s->results.n;
    s->results.n = 0;
    *out_p = p;
    return dt_str_status(&p->json);
}

void dt_policy_result_free(dt_policy_result *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        dt_free(p->result[i].key);
        dt_free(p->result[i].value);
    }
    dt_str_fini(&p->json);
    dt_free(p);
}

/* ---- evaluations ------------------------------------------------------------------------------------------------- */

typedef struct results {
    const dt_policy_result *policy;
    dt_policy_result *of[DT_BASELINES_MAX];
    uint32_t n;
} results;

/* All ranks do each step, or none does the next. */
static dt_status make_and_evaluate(const dt_stage_desc *d, dt_stage **stage_p, dt_policy_result **out_p)
{
    dt_progress p;
    pthread_mutex_lock(d->config_lock);
    const dt_status made = dt_stage_create(d, stage_p);
    pthread_mutex_unlock(d->config_lock);
    DT_TRY(dt_comm_join(d->comm, made));
    const dt_status started = dt_stage_start(*stage_p);
    DT_TRY(dt_comm_join(d->comm, started));
    const dt_status evaluated = dt_stage_evaluate(*stage_p, &p);
    DT_TRY(dt_comm_join(d->comm, evaluated));
    const dt_status taken = dt_policy_result_capture(*stage_p, out_p);
    return dt_comm_join(d->comm, taken);
}

static dt_status evaluate_baseline(const dt_stage_desc *d, dt_policy_result **out_p)
{
    dt_stage *stage = NULL;
    const dt_status st = make_and_evaluate(d, &stage, out_p);
    dt_stage_destroy(stage);
    return st;
}

static const double *find_result_value(const dt_policy_result *p, const char *key)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->result[i].key, key) == 0) {
            return p->result[i].value;
        }
    }
    return NULL;
}

static bool ends_with_mean(const char *key)
{
    const size_t n = strlen(key);
    return n > 5 && strcmp(key + n - 5, "/mean") == 0;
}

static const char *short_name(const char *id)
{
    return strncmp(id, "controller_", 11) == 0 ? id + 11 : id;
}

/* A row for each measured number, a column for each controller. title: of the policy's column */
static void format_table(const results *r, const char *title, dt_str *out)
{
    dt_str line = {0};
    dt_str_addf(&line, "  %-30s %16s", "", title);
    for (uint32_t k = 0; k < r->n; k++) {
        dt_str_addf(&line, " %16s", short_name(r->of[k]->controller));
    }
    dt_str_addf(out, "the policy and its baselines, on the same seeds:\n%s\n", dt_str_text(&line));
    for (uint32_t i = 0; i < r->policy->n; i++) {
        const char *key = r->policy->result[i].key;
        const double mine = r->policy->result[i].value[0];
        bool is_shown = ends_with_mean(key) && !isnan(mine) && mine != 0;
        if (ends_with_mean(key)) {
            for (uint32_t k = 0; k < r->n; k++) {
                const double *other = find_result_value(r->of[k], key);
                is_shown = is_shown || (other != NULL && !isnan(*other) && *other != 0);
            }
        }
        if (!is_shown) {
            continue;
        }
        dt_str_clear(&line);
        dt_str_addf(&line, "  %-30.*s %16.4g", (int)strlen(key) - 5, key, mine);
        for (uint32_t k = 0; k < r->n; k++) {
            const double *other = find_result_value(r->of[k], key);
            dt_str_addf(&line, " %16.4g", other != NULL ? *other : (double)NAN);
        }
        dt_str_addf(out, "%s\n", dt_str_text(&line));
    }
    dt_str_fini(&line);
}

static void log_table(const results *r)
{
    dt_str text = {0};
    format_table(r, "learnt", &text);
    dt_log_lines(DT_LOG_INFO, dt_str_text(&text));
    dt_str_fini(&text);
}

static void write_results_json(const results *r, uint32_t first, dt_json_out *o)
{
    for (uint32_t i = first; i <= r->n; i++) {
        const dt_policy_result *p = i == 0 ? r->policy : r->of[i - 1];
        dt_json_obj(o, NULL);
        dt_json_str(o, "controller", p->controller);
        dt_json_bool(o, "learnt", i == 0);
        dt_str_addf(o->s, ",\"result\":%s", dt_str_text(&p->json));
        dt_json_end(o, '}');
    }
}

static dt_status write_results_file(const results *r, const dt_stage_desc *d, const char *run_dir)
{
    dt_str text = {0}, path = {0};
    dt_json_out o = {.s = &text};
    dt_str_addf(&path, "%s/evaluation", run_dir);
    dt_status st = dt_fs_mkdirs(dt_str_text(&path));
    dt_str_addf(&path, "/%lld-%s.baselines.json", (long long)d->index + 1, d->phase->desc.id);
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "phase", d->phase->desc.id);
    dt_json_i64(&o, "number", d->index + 1);
    dt_json_arr(&o, "results");
    write_results_json(r, 0, &o);
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    if (st == DT_OK) {
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

/* All ranks continue, or none. */
static dt_status agree_to_continue(const dt_stage_desc *d)
{
    uint32_t go = d->stops == NULL || !d->stops(d->stops_user);
    DT_TRY(dt_comm_broadcast(d->comm, 0, &go, sizeof(go)));
    return go != 0 ? DT_OK : DT_FAIL(DT_EINTERRUPTED, "asked to stop before a baseline");
}

static void pending_path(const char *run_dir, int64_t index, const char *phase, dt_str *out)
{
    dt_str_addf(out, "%s/evaluation/%lld-%s.baselines.pending", run_dir, (long long)index + 1, phase);
}

bool dt_baselines_are_pending(const char *run_dir, int64_t index, const char *phase)
{
    dt_str path = {0};
    pending_path(run_dir, index, phase, &path);
    const bool is_there = dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path));
    dt_str_fini(&path);
    return is_there;
}

static dt_status write_pending(const dt_str *folder, const dt_str *path, bool is_pending)
{
    DT_TRY(dt_str_status(path));
    DT_TRY(dt_str_status(folder));
    if (!is_pending) {
        dt_fs_try_remove(dt_str_text(path));
        return DT_OK;
    }
    DT_TRY(dt_fs_mkdirs(dt_str_text(folder)));
    return dt_fs_write_atomic(dt_str_text(path), "", 0);
}

/* A resume finds it. Without it they are left out then, which is no reason to leave them out now. */
static void set_pending(const dt_stage_desc *d, const char *run_dir, bool is_pending)
{
    dt_str path = {0}, folder = {0};
    if (run_dir == NULL) {
        return;
    }
    pending_path(run_dir, d->index, d->phase->desc.id, &path);
    dt_str_addf(&folder, "%s/evaluation", run_dir);
    if (write_pending(&folder, &path, is_pending) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
        dt_error_clear();
    }
    dt_str_fini(&folder);
    dt_str_fini(&path);
}

static dt_status evaluate_all(const dt_stage_desc *d, const dt_baseline_names *names, bool may_log, results *r)
{
    for (uint32_t i = 0; i < names->n; i++) {
        dt_stage_desc other = *d;
        other.controller = names->id[i];
        other.metrics = NULL;
        other.loaded.n = 0;
        if (strcmp(names->id[i], r->policy->controller) == 0) {
            continue;
        }
        DT_TRY(agree_to_continue(d));
        const dt_status st = evaluate_baseline(&other, &r->of[r->n]);
        if (st == DT_EPEER || st == DT_ECOMM || st == DT_EINTERRUPTED) {
            return st;
        }
        if (st == DT_OK) {
            r->n += r->of[r->n] != NULL;
            continue;
        }
        if (may_log) { /* a rule for other actions is skipped silently unless the user named it */
            const bool is_usual = names->is_auto && (st == DT_ESHAPE || st == DT_ECONFIG);
            dt_log(is_usual ? DT_LOG_DEBUG : DT_LOG_WARN, "baseline %s left out: %s", names->id[i], dt_error_text());
        }
        dt_error_clear();
    }
    return DT_OK;
}

dt_status dt_baselines_run(const dt_stage_desc *d, const dt_policy_result *policy, const char *run_dir)
{
    results r = {.policy = policy};
    dt_baseline_names names;
    pthread_mutex_lock(d->config_lock);
    dt_status st = dt_baseline_names_get(d->config, d->loader, d->index, &names);
    pthread_mutex_unlock(d->config_lock);
    DT_TRY(dt_comm_agree(d->comm, st));
    set_pending(d, run_dir, names.n > 0);
    st = evaluate_all(d, &names, run_dir != NULL, &r);
    if (st == DT_OK) {
        set_pending(d, run_dir, false);
    }
    if (st == DT_OK && r.n > 0 && run_dir != NULL) {
        log_table(&r);
        if (write_results_file(&r, d, run_dir) < 0) {
            dt_log(DT_LOG_WARN, "the results of baselines are not kept: %s", dt_error_text());
            dt_error_clear();
        }
    }
    for (uint32_t i = 0; i < r.n; i++) {
        dt_policy_result_free(r.of[i]);
    }
    dt_baseline_names_fini(&names);
    return st;
}

dt_status dt_baselines_compare(const dt_stage_desc *d, const dt_policy_result *policy, bool is_json, dt_str *out)
{
    results r = {.policy = policy};
    dt_baseline_names names;
    DT_TRY(dt_baseline_names_get(d->config, d->loader, d->index, &names));
    dt_status st = evaluate_all(d, &names, true, &r);
    if (st == DT_OK && is_json) {
        dt_json_out o = {.s = out};
        dt_json_arr(&o, NULL);
        write_results_json(&r, 1, &o);
        dt_json_end(&o, ']');
    } else if (st == DT_OK && r.n > 0) {
        format_table(&r, short_name(policy->controller), out);
    }
    for (uint32_t i = 0; i < r.n; i++) {
        dt_policy_result_free(r.of[i]);
    }
    dt_baseline_names_fini(&names);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/compare.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "study/compare_runs.h"
#include "study/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 0.05; /* of step counts: rounds of different sizes, and resets, which are no steps */

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static double value_at_record(const dt_series *s, uint32_t record)
{
    double v = NAN;
    for (uint32_t i = 0; i < s->n && s->at[i] <= record; i++) {
        v = s->value[i];
    }
    return v;
}

/* Steps of environments where the run counts them, else training steps. */
static void read_axis(const dt_logbook *l, const dt_series *s, dt_run_facts *f)
{
    const dt_records *r = l->records;
    const dt_series *env = dt_records_find(r, s->phase, "env_steps");
    const dt_phase_records *p = &r->phase[s->phase];
    f->has_env_steps = env != NULL && dt_curve_may_use_axis(r, env);
    f->env_steps = f->has_env_steps ? env->value[env->n - 1] : 0;
    f->steps = (double)r->step[p->first + p->n - 1];
    f->first_step = f->first_env_steps = INFINITY;
    for (uint32_t i = s->n; i-- > 0;) {
        if (isfinite(s->value[i])) {
            f->first_step = (double)r->step[s->at[i]];
            f->first_env_steps = f->has_env_steps ? value_at_record(env, s->at[i]) : INFINITY;
        }
    }
}

static dt_status read_curve(const dt_logbook *l, const dt_series *s, bool is_over_env_steps, dt_compare_run *out)
{
    const dt_series *env = dt_records_find(l->records, s->phase, "env_steps");
    out->x = dt_alloc_n(s->n, sizeof(*out->x));
    out->y = dt_alloc_n(s->n, sizeof(*out->y));
    out->unknown = dt_alloc_n(s->n, sizeof(*out->unknown));
    if (out->x == NULL || out->y == NULL || out->unknown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u values of %s", s->n, out->path);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const double x = is_over_env_steps ? value_at_record(env, s->at[i]) : (double)l->records->step[s->at[i]];
        if (isfinite(s->value[i]) && isfinite(x)) {
            out->unknown[out->n] = INFINITY;
            out->x[out->n] = x;
            out->y[out->n++] = s->value[i];
        } else if (out->n > 0 && isfinite(x)) {
            out->unknown[out->n - 1] = fmin(out->unknown[out->n - 1], x);
        }
    }
    return DT_OK;
}

/* ---- do they belong together? ------------------------------------------------------------------------------------ */

/* The first run names it where the user did not. */
static dt_status choose_metric(const dt_logbook *l, const char *path, const char *metric, dt_compare *c)
{
    const dt_run_state *s = &l->state;
    if (metric != NULL) {
        const bool is_min = strncmp(metric, "min:", 4) == 0;
        snprintf(c->metric, sizeof(c->metric), "%s", metric + (is_min ? 4 : 0));
        const char *ranked = strncmp(s->best_name, "eval/", 5) == 0 ? s->best_name + 5 : s->best_name;
        c->is_min =
            is_min || (s->best_is_min && (strcmp(c->metric, ranked) == 0 || strcmp(c->metric, s->best_name) == 0));
        return DT_OK;
    }
    if (s->best_name[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s was not evaluated: name what to compare, such as --metric min:loss", path);
    }
    snprintf(c->metric, sizeof(c->metric), "%s", s->best_name);
    c->is_min = s->best_is_min;
    return DT_OK;
}

static dt_status find_series(const dt_logbook *l, const char *path, const dt_compare *c, const dt_series **out)
{
    *out = dt_records_find_metric(l->records, c->metric);
    if (*out != NULL) {
        return DT_OK;
    }
    dt_outcome o;
    dt_str near = {0};
    dt_status st = dt_outcome_read(path, c->metric, 0, &o, &near);
    const char *text = dt_str_text(&near);
    if (st == DT_OK) {
        st = DT_FAIL(DT_ECONFIG, "metric %s: %s has not recorded it%s%s%s", c->metric, path,
                     text[0] != '\0' ? "; did you mean " : "", text, text[0] != '\0' ? "?" : "");
    }
    dt_str_fini(&near);
    return st;
}

static dt_status check_is_over(const dt_logbook *l, const char *path, double steps)
{
    const dt_run_condition is = l->state.condition;
    if (steps > 0 || is == DT_RUN_DONE || is == DT_RUN_STOPPED) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG, "%s is %s: its last value is not final; --steps N compares values of earlier steps",
                   path, dt_run_condition_text(is));
}

static double steps_of(const dt_compare *c, const dt_run_facts *f)
{
    return c->is_over_env_steps ? f->env_steps : f->steps;
}

static double first_of(const dt_compare *c, const dt_run_facts *f)
{
    return c->is_over_env_steps ? f->first_env_steps : f->first_step;
}

/* All runs of a task end at about the same step, or come to --steps. */
static dt_status check_steps_of(const dt_compare *c, const dt_run_facts *fact, uint32_t task, double steps)
{
    const char *unit = c->is_over_env_steps ? "environment steps" : "training steps";
    uint32_t least = UINT32_MAX, most = UINT32_MAX, late = UINT32_MAX;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        if (c->run[i].task == task) {
            late = late == UINT32_MAX || first_of(c, &fact[i]) > first_of(c, &fact[late]) ? i : late;
            least = least == UINT32_MAX || steps_of(c, &fact[i]) < steps_of(c, &fact[least]) ? i : least;
            most = most == UINT32_MAX || steps_of(c, &fact[i]) > steps_of(c, &fact[most]) ? i : most;
        }
    }
    const double low = steps_of(c, &fact[least]), high = steps_of(c, &fact[most]);
    const double first = first_of(c, &fact[late]);
    if (isinf(first)) {
        return DT_FAIL(DT_ECONFIG, "metric %s: %s has no finite value of it", c->metric, c->run[late].path);
    }
    if (steps > 0 && low < steps * (1 - TOLERANCE)) {
        return DT_FAIL(DT_ECONFIG, "--steps %g: %s has %.10g %s only", steps, c->run[least].path, low, unit);
    }
    if (steps == 0 && low < high * (1 - TOLERANCE) && low < first * (1 - TOLERANCE)) {
        return DT_FAIL(DT_ECONFIG,
                       "different numbers of steps: %s has %.10g %s, %s has %.10g, and the first value of %s that %s "
                       "has is at %.10g: no number of steps can be compared",
                       c->run[least].path, low, unit, c->run[most].path, high, c->metric, c->run[late].path, first);
    }
    if (steps == 0 && low < high * (1 - TOLERANCE)) {
        return DT_FAIL(
            DT_ECONFIG,
            "different numbers of steps: %s has %.10g %s, %s has %.10g; --steps %.10g compares results of the "
            "same number",
            c->run[least].path, low, unit, c->run[most].path, high, fmax(low, first));
    }
    return DT_OK;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static dt_status number_task(dt_compare *c, const dt_run_facts *f, uint32_t *out)
{
    for (uint32_t i = 0; i < c->n_tasks; i++) {
        if (strcmp(c->task[i].identity, dt_str_text(&f->identity)) == 0) {
            *out = i;
            return DT_OK;
        }
    }
    dt_compare_task *grown = dt_realloc(c->task, (c->n_tasks + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", c->n_tasks + 1);
    }
    c->task = grown;
    grown[c->n_tasks] = (dt_compare_task){.name = dt_strdup(dt_str_text(&f->task)),
                                          .identity = dt_strdup(dt_str_text(&f->identity)),
                                          .low = INFINITY,
                                          .high = -INFINITY};
    *out = c->n_tasks++;
    return grown[*out].name != NULL && grown[*out].identity != NULL
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for the name of an environment");
}

static bool has_line(const char *text, const char *line, size_t bytes)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        if (n == bytes && memcmp(text, line, n) == 0) {
            return true;
        }
        text += n + (text[n] == '\n');
    }
    return false;
}

/* The first line of a that b has not, without its end; as much of it as there is room for. */
static void first_difference(const char *a, const char *b, char *out, size_t bytes)
{
    while (*a != '\0') {
        const size_t n = strcspn(a, "\n");
        if (!has_line(b, a, n)) {
            snprintf(out, bytes, "%.*s", n < bytes ? (int)n : (int)bytes - 1, a);
            return;
        }
        a += n + (a[n] == '\n');
    }
    snprintf(out, bytes, "%s", "nothing");
}

static dt_status fail_tasks(const dt_compare *c, const dt_compare_group *g, uint32_t task)
{
    char here[160], there[160];
    const dt_compare_group *has = c->group;
    while (has->end[task] == (task > 0 ? has->end[task - 1] : 0)) {
        has++;
    }
    const dt_compare_task *mine = &c->task[c->run[g->first].task], *other = &c->task[task];
    if (strcmp(mine->name, other->name) != 0) {
        return DT_FAIL(DT_ECONFIG, "different environments: %s is of %s, and %s has no run of it (but of %s)",
                       has->name, other->name, g->name, mine->name);
    }
    first_difference(other->identity, mine->identity, there, sizeof(there));
    first_difference(mine->identity, other->identity, here, sizeof(here));
    return DT_FAIL(DT_ECONFIG, "different environments: %s of %s has %s, that of %s has %s", other->name, has->name,
                   there, g->name, here);
}

static int compare_runs(const void *a, const void *b)
{
    const dt_compare_run *x = a, *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    return x->task != y->task ? (x->task < y->task ? -1 : 1) : strcmp(x->path, y->path);
}

/* Sorts runs, and finds where tasks end: each group has all of them. */
static dt_status divide_by_task(dt_compare *c)
{
    qsort(c->run, c->n_runs, sizeof(*c->run), compare_runs);
    for (uint32_t i = 0; i < c->n_groups; i++) {
        dt_compare_group *g = &c->group[i];
        g->end = dt_alloc_n(c->n_tasks, sizeof(*g->end));
        if (g->end == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", c->n_tasks);
        }
        for (uint32_t k = 0; k < c->n_runs; k++) {
            for (uint32_t t = 0; t < c->n_tasks && c->run[k].group == i; t++) {
                g->end[t] += c->run[k].task <= t;
            }
        }
    }
    for (uint32_t i = 0; i < c->n_groups; i++) {
        for (uint32_t t = 0; t < c->n_tasks; t++) {
            if (c->group[i].end[t] == (t > 0 ? c->group[i].end[t - 1] : 0)) {
                return fail_tasks(c, &c->group[i], t);
            }
        }
    }
    return DT_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static dt_status read_facts_of(const dt_logbook *l, const char *metric, double steps, dt_compare *c, uint32_t run,
                               dt_run_facts *fact)
{
    const dt_series *s = NULL;
    const char *path = c->run[run].path;
    if (run == 0) {
        DT_TRY(choose_metric(l, path, metric, c));
    }
    DT_TRY(find_series(l, path, c, &s));
    DT_TRY(check_is_over(l, path, steps));
    read_axis(l, s, fact);
    c->is_over_env_steps = c->is_over_env_steps && fact->has_env_steps;
    DT_TRY(dt_run_facts_read_task(l, s->phase, fact));
    return number_task(c, fact, &c->run[run].task);
}

static dt_status read_facts(dt_compare *c, const char *metric, double steps, dt_run_facts *fact)
{
    c->is_over_env_steps = true;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        dt_logbook l;
        DT_TRY(dt_logbook_open(c->run[i].path, &l));
        const dt_status st = read_facts_of(&l, metric, steps, c, i, &fact[i]);
        dt_logbook_close(&l);
        DT_TRY(st);
    }
    for (uint32_t t = 0; t < c->n_tasks; t++) {
        DT_TRY(check_steps_of(c, fact, t, steps));
    }
    return DT_OK;
}

static dt_status read_curves(dt_compare *c)
{
    for (uint32_t i = 0; i < c->n_runs; i++) {
        dt_logbook l;
        DT_TRY(dt_logbook_open(c->run[i].path, &l));
        const dt_series *s = dt_records_find_metric(l.records, c->metric);
        const dt_status st = s != NULL ? read_curve(&l, s, c->is_over_env_steps, &c->run[i])
                                       : DT_FAIL(DT_EDATA, "%s changed while it was read", c->run[i].path);
        dt_logbook_close(&l);
        DT_TRY(st);
    }
    return DT_OK;
}

static void choose_steps(dt_compare *c, const dt_run_facts *fact, double steps)
{
    c->steps = steps > 0 ? steps : 0;
    for (uint32_t i = 0; i < c->n_runs && steps == 0; i++) {
        c->steps = fmax(c->steps, steps_of(c, &fact[i]));
    }
}

static dt_status read_all(const char *const *path, uint32_t n, const char *metric, double steps, dt_compare *c)
{
    DT_TRY(dt_compare_find_runs(path, n, c));
    dt_run_facts *fact = dt_alloc_n(c->n_runs, sizeof(*fact));
    if (fact == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u runs", c->n_runs);
    }
    dt_status st = read_facts(c, metric, steps, fact);
    if (st == DT_OK) {
        choose_steps(c, fact, steps);
    }
    for (uint32_t i = 0; i < c->n_runs; i++) {
        dt_str_fini(&fact[i].task);
        dt_str_fini(&fact[i].identity);
    }
    dt_free(fact);
    DT_TRY(st);
    DT_TRY(read_curves(c));
    DT_TRY(divide_by_task(c));
    return dt_compare_summarise(c);
}

dt_status dt_compare_read(const char *const *path, uint32_t n, const char *metric, double steps, dt_compare *out)
{
    *out = (dt_compare){0};
    const dt_status st = read_all(path, n, metric, steps, out);
    if (st < 0) {
        dt_compare_fini(out);
    }
    return st;
}

void dt_compare_fini(dt_compare *c)
{
    for (uint32_t i = 0; i < c->n_runs; i++) {
        dt_free(c->run[i].path);
        dt_free(c->run[i].x);
        dt_free(c->run[i].y);
        dt_free(c->run[i].unknown);
    }
    for (uint32_t i = 0; i < c->n_groups; i++) {
        dt_free(c->group[i].name);
        dt_free(c->group[i].end);
    }
    for (uint32_t i = 0; i < c->n_tasks; i++) {
        dt_free(c->task[i].name);
        dt_free(c->task[i].identity);
    }
    dt_free(c->run);
    dt_free(c->group);
    dt_free(c->task);
    dt_free(c->improvement);
    *c = (dt_compare){0};
}

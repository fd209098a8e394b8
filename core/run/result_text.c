/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluation's result: a table for people, a JSON object for scripts.
 */
#include <config.h>

#include "run/run.h"

#include "base/fs.h"
#include "base/json.h"
#include "config/options.h"
#include "service/stage.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { KEY_COLUMNS = 26 };
#define COUNT_MAX 1e9 /* more digits than a column has */

/* Bytes of what "what/mean" and "what/std" are of, where r and the result after it are such a pair; else 0. */
static size_t spread_of(const dt_result *r, const dt_result *end)
{
    const char *slash = strrchr(r->key, '/');
    const size_t n = slash != NULL ? (size_t)(slash - r->key) : 0;
    const bool is_pair = slash != NULL && strcmp(slash, "/mean") == 0 && r + 1 < end &&
                         strncmp(r[1].key, r->key, n) == 0 && strcmp(r[1].key + n, "/std") == 0;
    return is_pair ? n : 0;
}

/* Counts in full, what is measured in four digits. */
static void number_text(double v, dt_str *out)
{
    const bool is_count = v == floor(v) && fabs(v) < COUNT_MAX;
    dt_str_addf(out, is_count ? " %9.0f" : " %9.4g", v);
}

/* "over seeds 1, 2, 3": no column, so that none of the numbers below stands for one of them */
static void seeds_text(const dt_result *r, dt_str *out)
{
    dt_str_addf(out, "  %s", r->n > 1 ? "mean +- deviation over seeds" : "of seed");
    for (uint32_t j = 0; j < r->n; j++) {
        dt_str_addf(out, "%s %.0f", j > 0 ? "," : "", r->value[j]);
    }
    dt_str_add(out, "\n");
}

/* What evaluations need not have in common with training. */
static void env_text(const dt_stage *s, dt_str *out)
{
    if (s->env.comp != NULL && s->env.n_told > 0) {
        dt_str_addf(out, "  in %s with ", s->env.comp->desc.id);
        dt_env_tell(&s->env, out);
        dt_str_add(out, "\n");
    }
}

static void env_json(const dt_stage *s, dt_json_out *o)
{
    dt_json_str(o, "env", s->env.comp->desc.id);
    if (s->env.n_told == 0) {
        return;
    }
    dt_json_obj(o, "env_options");
    for (uint32_t i = 0; i < s->env.n_told; i++) {
        const dt_env_told *t = &s->env.told[i];
        dt_json_obj(o, t->option->name);
        dt_option_json(t->option, t->value, "value", o);
        dt_option_json(t->option, t->trained, "training", o);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
}

void dt_result_text(const dt_stage *s, dt_str *out)
{
    const dt_result *r = NULL;
    const uint32_t n = dt_stage_results(s, &r);
    env_text(s, out);
    for (uint32_t i = 0; i < n; i++) {
        const size_t what = spread_of(&r[i], r + n);
        const double *deviation = what > 0 ? r[i + 1].value : NULL;
        const dt_result *one = &r[i];
        i += what > 0; /* a line for both, none for what nobody measured */
        if (dt_result_is_detail(one) || (what > 0 && isnan(one->value[0]))) {
            continue;
        }
        if (strcmp(one->key, "seeds") == 0) {
            seeds_text(one, out);
            continue;
        }
        dt_str_addf(out, "  %-*.*s", KEY_COLUMNS, what > 0 ? (int)what : INT_MAX, one->key);
        for (uint32_t j = 0; j < one->n; j++) {
            number_text(one->value[j], out);
        }
        if (deviation != NULL && isfinite(*deviation)) {
            dt_str_addf(out, " +- %.3g", *deviation);
        }
        dt_str_add(out, "\n");
    }
}

static void write_one(dt_json_out *o, const char *key, const dt_result *r)
{
    if (!r->is_list) {
        const double v = r->value[0];
        if (v == floor(v) && fabs(v) < 9e15) {
            dt_json_i64(o, key, (int64_t)v);
        } else {
            dt_json_f64(o, key, v);
        }
        return;
    }
    dt_json_arr(o, key);
    for (uint32_t j = 0; j < r->n; j++) {
        if (r->columns > 0 && j % r->columns == 0) {
            dt_json_arr(o, NULL);
        }
        dt_json_f64(o, NULL, r->value[j]);
        if (r->columns > 0 && (j + 1) % r->columns == 0) {
            dt_json_end(o, ']');
        }
    }
    dt_json_end(o, ']');
}

/* Bytes of path that key shares with it: whole words with their '/'. */
static size_t shared(const char *path, const char *key)
{
    size_t n = 0;
    for (size_t i = 0; path[i] != '\0' && path[i] == key[i]; i++) {
        n = path[i] == '/' ? i + 1 : n;
    }
    return n;
}

/* "costs/collisions/mean" is the member mean of collisions of costs: neighbours with the same beginning share it. */
static void write_nested(dt_json_out *o, const dt_result *r, uint32_t n)
{
    char open[128] = ""; /* objects that are open, each with its '/' */
    for (uint32_t i = 0; i < n; i++) {
        size_t at = shared(open, r[i].key);
        for (const char *c = open + at; *c != '\0'; c++) {
            if (*c == '/') {
                dt_json_end(o, '}');
            }
        }
        const char *slash = NULL;
        while ((slash = strchr(r[i].key + at, '/')) != NULL && (size_t)(slash - r[i].key) + 2 < sizeof(open)) {
            char word[128];
            snprintf(word, sizeof(word), "%.*s", (int)(slash - r[i].key - (ptrdiff_t)at), r[i].key + at);
            dt_json_obj(o, word);
            at = (size_t)(slash - r[i].key) + 1;
        }
        snprintf(open, sizeof(open), "%.*s", (int)at, r[i].key);
        write_one(o, r[i].key + at, &r[i]);
    }
    for (const char *c = open; *c != '\0'; c++) {
        if (*c == '/') {
            dt_json_end(o, '}');
        }
    }
}

void dt_result_json(const dt_stage *s, dt_str *out)
{
    const dt_result *r = NULL;
    const uint32_t n = dt_stage_results(s, &r);
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    if (s->env.comp != NULL) {
        env_json(s, &o);
    }
    write_nested(&o, r, n);
    dt_json_end(&o, '}');
}

dt_status dt_result_pictures(const dt_stage *s, const char *run_dir)
{
    dt_str text = {0}, path = {0};
    dt_json_out o = {.s = &text};
    if (s->results.n_pictures == 0) {
        return DT_OK;
    }
    dt_str_addf(&path, "%s/evaluation", run_dir);
    dt_status st = dt_fs_mkdirs(dt_str_text(&path));
    dt_str_addf(&path, "/%lld-%s.pictures.json", (long long)s->d.index + 1, s->d.phase->desc.id);
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "phase", s->d.phase->desc.id);
    dt_json_i64(&o, "number", s->d.index + 1);
    dt_json_i64(&o, "step", (int64_t)dt_trainer_step_number(s->trainer));
    write_nested(&o, s->results.picture, s->results.n_pictures);
    dt_json_end(&o, '}');
    if (st == DT_OK) {
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

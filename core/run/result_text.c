/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluation's result: a table for people, a JSON object for scripts.
 */
#include <config.h>

#include "run/run.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "config/options.h"
#include "plugin/service/stage.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { KEY_COLUMNS = 26 };
#define COUNT_MAX 1e9 /* more digits than a column has */

/* Bytes of what "what/mean" and "what/std" are of, where r and the result after it are such a pair; else 0. */
static size_t find_deviation(const dt_result *r, const dt_result *end)
{
    const char *slash = strrchr(r->key, '/');
    const size_t n = slash != NULL ? (size_t)(slash - r->key) : 0;
    const bool is_pair = slash != NULL && strcmp(slash, "/mean") == 0 && r + 1 < end &&
                         strncmp(r[1].key, r->key, n) == 0 && strcmp(r[1].key + n, "/std") == 0;
    return is_pair ? n : 0;
}

/* Counts in full, what is measured in four digits. */
static void append_number(double v, dt_str *out)
{
    const bool is_count = v == floor(v) && fabs(v) < COUNT_MAX;
    dt_str_addf(out, is_count ? " %9.0f" : " %9.4g", v);
}

/* "over seeds 1, 2, 3": no column, so that none of the numbers below belongs to one of them */
static void append_seeds(const dt_result *r, dt_str *out)
{
    dt_str_addf(out, "  %s", r->n > 1 ? "mean +- deviation over seeds" : "of seed");
    for (uint32_t j = 0; j < r->n; j++) {
        dt_str_addf(out, "%s %.0f", j > 0 ? "," : "", r->value[j]);
    }
    dt_str_add(out, "\n");
}

/* What evaluations need not have in common with training. */
static const char *model_of_role(const dt_stage *s, const char *role)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (strcmp(s->model[i].role, role) == 0) {
            return s->model[i].comp->desc.id;
        }
    }
    return NULL;
}

/* Rows about a shield that the phase has not. */
static bool is_of_missing_model(const dt_stage *s, const dt_result *r)
{
    return strncmp(r->key, "shield/", 7) == 0 && model_of_role(s, "shield") == NULL;
}

static void append_env_text(const dt_stage *s, dt_str *out)
{
    if (s->env.comp != NULL && s->env.n_differing > 0) {
        dt_str_addf(out, "  in %s with ", s->env.comp->desc.id);
        dt_env_describe_evaluation(&s->env, out);
        dt_str_add(out, "\n");
    }
}

static void write_env_json(const dt_stage *s, dt_json_out *o)
{
    dt_json_str(o, "env", s->env.comp->desc.id);
    if (s->env.n_differing == 0) {
        return;
    }
    dt_json_obj(o, "env_options");
    for (uint32_t i = 0; i < s->env.n_differing; i++) {
        const dt_env_evaluation_option *t = &s->env.differing[i];
        dt_json_obj(o, t->option->name);
        dt_option_json(t->option, t->value, "value", o);
        dt_option_json(t->option, t->trained, "training", o);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
}

/* A line without its end; false: nothing to print. i_p: the result after it. */
static bool format_row(const dt_result *r, uint32_t n, uint32_t *i_p, const char *name, int columns, dt_str *out)
{
    const dt_result *one = &r[*i_p];
    const size_t what = find_deviation(one, r + n);
    const double *deviation = what > 0 ? one[1].value : NULL;
    const size_t skipped = (size_t)(name - one->key);
    *i_p += 1 + (what > 0); /* a line for both, none for what was not measured */
    if (dt_result_is_detail(one) || (what > 0 && isnan(one->value[0]))) {
        return false;
    }
    if (strcmp(one->key, "seeds") == 0) {
        append_seeds(one, out);
        return false;
    }
    dt_str_addf(out, "  %-*.*s", columns, what > 0 ? (int)(what - skipped) : INT_MAX, name);
    for (uint32_t j = 0; j < one->n; j++) {
        append_number(one->value[j], out);
    }
    if (deviation != NULL && isfinite(*deviation)) {
        dt_str_addf(out, " +- %.3g", *deviation);
    }
    return true;
}

void dt_result_text(const dt_stage *s, dt_str *out)
{
    const dt_result *r = NULL;
    const uint32_t n = dt_stage_get_results(s, &r);
    append_env_text(s, out);
    for (uint32_t i = 0; i < n;) {
        if (is_of_missing_model(s, &r[i])) {
            i++;
        } else if (format_row(r, n, &i, r[i].key, KEY_COLUMNS, out)) {
            dt_str_add(out, "\n");
        }
    }
}

/* ---- explained --------------------------------------------------------------------------------------------------- */

/* Rows of "dtrain.results/1" (plugin.h): what the host reports of every environment. */
static const char *const host_rows[] = {"return|||higher|sum of rewards of an episode",
                                        "length||env steps||of an episode",
                                        "costs/*|costs: sums over an episode||lower|",
                                        "metrics/*|metrics of an episode|||",
                                        "shield/interventions|shield|actions||changed by the shield",
                                        "shield/infeasible_rate|shield||lower|share of actions without a permitted one",
                                        "limits/*|limits of costs|||",
                                        NULL};

enum { ROW_KEY, ROW_GROUP, ROW_UNIT, ROW_BETTER, ROW_TEXT, ROW_FIELDS };

typedef struct row {
    char field[ROW_FIELDS][160];
} row;

static void split_row(const char *text, row *out)
{
    memset(out, 0, sizeof(*out));
    for (int f = 0; f < ROW_FIELDS; f++) {
        const size_t n = f + 1 < ROW_FIELDS ? strcspn(text, "|") : strlen(text);
        snprintf(out->field[f], sizeof(out->field[f]), "%.*s", (int)n, text);
        dt_mask_text(out->field[f], true);
        text += n + (text[n] != '\0');
    }
}

static bool find_row(const char *const *rows, const char *key, row *out)
{
    for (; rows != NULL && *rows != NULL; rows++) {
        split_row(*rows, out);
        if (dt_glob_match(out->field[ROW_KEY], key)) {
            return true;
        }
    }
    memset(out, 0, sizeof(*out));
    return false;
}

static const char *const *result_rows_of(const dt_loaded *c)
{
    return c != NULL && c->desc.extension != NULL ? c->desc.extension(DT_EXT_RESULTS) : NULL;
}

/* What a key is by the tables of the phase, the environment and the host: each field from the first that has it. */
static void find_description(const dt_stage *s, const char *key, row *out)
{
    const char *const *const tables[] = {result_rows_of(s->d.phase), result_rows_of(s->env.comp), host_rows};
    memset(out, 0, sizeof(*out));
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        row one;
        if (find_row(tables[t], key, &one)) {
            for (int f = 0; f < ROW_FIELDS; f++) {
                if (out->field[f][0] == '\0') {
                    memcpy(out->field[f], one.field[f], sizeof(one.field[f]));
                }
            }
        }
    }
}

/* "sites/0/rmse_m/mean": where the name after its folder begins. */
static const char *split_name(const char *key, const dt_result *r, const dt_result *end)
{
    const size_t what = find_deviation(r, end);
    const char *name = key;
    for (const char *c = key; *c != '\0' && (what == 0 || c < key + what); c++) {
        name = *c == '/' ? c + 1 : name;
    }
    return name;
}

/* "m, lower is better: text" */
static void append_description(const row *w, dt_str *out)
{
    const char *unit = w->field[ROW_UNIT], *better = w->field[ROW_BETTER], *text = w->field[ROW_TEXT];
    dt_str_add(out, unit);
    if (better[0] != '\0') {
        dt_str_addf(out, "%s%s is better", out->bytes > 0 ? ", " : "", better);
    }
    if (text[0] != '\0') {
        dt_str_addf(out, "%s%s", out->bytes > 0 ? ": " : "", text);
    }
}

enum { GROUP_BYTES = 160, NAME_COLUMNS = 22, TEXT_AT = 48, WIDE = 112 };

static void find_group(const dt_stage *s, const dt_result *r, const dt_result *end, row *w, char group[GROUP_BYTES])
{
    const size_t what = find_deviation(r, end), bytes = (size_t)(split_name(r->key, r, end) - r->key);
    char plain[GROUP_BYTES];
    snprintf(plain, sizeof(plain), "%.*s", what > 0 ? (int)what : INT_MAX, r->key);
    find_description(s, plain, w);
    if (w->field[ROW_GROUP][0] != '\0') {
        snprintf(group, GROUP_BYTES, "%s", w->field[ROW_GROUP]);
    } else {
        snprintf(group, GROUP_BYTES, "%.*s", bytes > 0 ? (int)bytes - 1 : 0, r->key);
    }
}

/* The description next to the numbers, or below them where they are wide. */
static void append_explained_row(const row *w, const dt_str *line, int indent, dt_str *out)
{
    dt_str text = {0};
    append_description(w, &text);
    const size_t used = line->bytes + (size_t)indent, at = used + 2 > TEXT_AT ? used + 2 : TEXT_AT;
    dt_str_addf(out, "%*s%s", indent, "", dt_str_text(line));
    if (text.bytes > 0 && at + text.bytes <= WIDE) {
        dt_str_addf(out, "%*s%s", (int)(at - used), "", dt_str_text(&text));
    } else if (text.bytes > 0) {
        dt_str_addf(out, "\n%*s%s", 2 * indent + 4, "", dt_str_text(&text));
    }
    dt_str_add(out, "\n");
    dt_str_fini(&text);
}

/* All rows of a group, wherever they are. */
static void append_explained_group(const dt_stage *s, const dt_result *r, uint32_t n, const char *group, dt_str *out)
{
    bool has_title = group[0] == '\0';
    for (uint32_t i = 0; i < n;) {
        char its[GROUP_BYTES];
        row w;
        dt_str line = {0};
        const char *name = split_name(r[i].key, &r[i], r + n);
        find_group(s, &r[i], r + n, &w, its);
        const bool is_shown = !is_of_missing_model(s, &r[i]);
        const bool is_row = format_row(r, n, &i, name, NAME_COLUMNS, &line) && is_shown && strcmp(its, group) == 0;
        if (is_row && !has_title) {
            dt_str_addf(out, "\n  %s\n", group);
            has_title = true;
        }
        if (is_row) {
            append_explained_row(&w, &line, group[0] == '\0' ? 0 : 2, out);
        }
        dt_str_fini(&line);
    }
}

void dt_result_text_grouped(const dt_stage *s, dt_str *out)
{
    const dt_result *r = NULL;
    const uint32_t n = dt_stage_get_results(s, &r);
    if (s->env.comp != NULL && model_of_role(s, "controller") != NULL) {
        dt_str_addf(out, "  %s\n", model_of_role(s, "controller"));
    }
    append_env_text(s, out);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(r[i].key, "seeds") == 0) {
            append_seeds(&r[i], out);
        }
    }
    append_explained_group(s, r, n, "", out);
    for (uint32_t i = 0; i < n; i++) {
        char group[GROUP_BYTES], other[GROUP_BYTES];
        row unused;
        find_group(s, &r[i], r + n, &unused, group);
        bool is_done = group[0] == '\0';
        for (uint32_t k = 0; k < i && !is_done; k++) {
            find_group(s, &r[k], r + n, &unused, other);
            is_done = strcmp(group, other) == 0;
        }
        if (!is_done) {
            append_explained_group(s, r, n, group, out);
        }
    }
}

static void write_result(dt_json_out *o, const char *key, const dt_result *r)
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
static size_t common_prefix(const char *path, const char *key)
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
        size_t at = common_prefix(open, r[i].key);
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
        write_result(o, r[i].key + at, &r[i]);
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
    const uint32_t n = dt_stage_get_results(s, &r);
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    if (s->env.comp != NULL) {
        write_env_json(s, &o);
    }
    write_nested(&o, r, n);
    dt_json_end(&o, '}');
}

dt_status dt_result_write_pictures(const dt_stage *s, const char *run_dir)
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain compare A B ...`: groups of runs by one metric, as text, JSON or a page.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/json.h"
#include "base/print.h"
#include "study/compare.h"
#include "study/compare_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void write_interval(dt_json_out *o, const char *key, const dt_iqm *r)
{
    dt_json_obj(o, key);
    dt_json_f64(o, "value", r->value);
    dt_json_f64(o, "low", r->low);
    dt_json_f64(o, "high", r->high);
    dt_json_end(o, '}');
}

static void write_numbers(dt_json_out *o, const char *key, const double *v)
{
    dt_json_arr(o, key);
    for (int i = 0; i < DT_COMPARE_PLACES; i++) {
        dt_json_f64(o, NULL, v[i]);
    }
    dt_json_end(o, ']');
}

static void write_intervals(dt_json_out *o, const char *key, const dt_iqm *r)
{
    double value[DT_COMPARE_PLACES], low[DT_COMPARE_PLACES], high[DT_COMPARE_PLACES];
    for (int i = 0; i < DT_COMPARE_PLACES; i++) {
        value[i] = r[i].value;
        low[i] = r[i].low;
        high[i] = r[i].high;
    }
    dt_json_obj(o, key);
    write_numbers(o, "value", value);
    write_numbers(o, "low", low);
    write_numbers(o, "high", high);
    dt_json_end(o, '}');
}

static void write_group(const dt_compare *c, const dt_compare_group *g, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_str(o, "name", g->name);
    dt_json_arr(o, "runs");
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const dt_compare_run *r = &c->run[i];
        dt_json_obj(o, NULL);
        dt_json_str(o, "run", r->path);
        dt_json_str(o, "task", c->task[r->task].name);
        dt_json_f64(o, "final", r->final);
        dt_json_f64(o, "curve_mean", r->area);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    write_interval(o, "final_iqm", &g->final);
    dt_json_f64(o, "final_mean", g->mean);
    dt_json_f64(o, "final_min", g->least);
    dt_json_f64(o, "final_max", g->most);
    write_interval(o, "curve_mean_iqm", &g->area);
    write_intervals(o, "curve_iqm", g->at);
    write_intervals(o, "profile", g->share);
    dt_json_end(o, '}');
}

static void write_json(const dt_compare *c, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_str(o, "metric", c->metric);
    dt_json_str(o, "goal", c->is_min ? "min" : "max");
    dt_json_str(o, "x", c->is_over_env_steps ? "env_steps" : "steps");
    dt_json_f64(o, "steps", c->steps);
    dt_json_bool(o, "normalised", c->n_tasks > 1);
    dt_json_arr(o, "tasks");
    for (uint32_t i = 0; i < c->n_tasks; i++) {
        dt_json_str(o, NULL, c->task[i].name);
    }
    dt_json_end(o, ']');
    write_numbers(o, "curve_x", c->place);
    write_numbers(o, "thresholds", c->threshold);
    dt_json_arr(o, "groups");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        write_group(c, &c->group[i], o);
    }
    dt_json_end(o, ']');
    dt_json_arr(o, "improvement");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        for (uint32_t k = 0; k < c->n_groups; k++) {
            if (i != k) {
                dt_json_obj(o, NULL);
                dt_json_str(o, "group", c->group[i].name);
                dt_json_str(o, "over", c->group[k].name);
                write_interval(o, "probability", &c->improvement[i * c->n_groups + k]);
                dt_json_end(o, '}');
            }
        }
    }
    dt_json_end(o, ']');
    dt_json_end(o, '}');
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_interval(const dt_iqm *r)
{
    char text[80] = "";
    if (isfinite(r->low)) {
        snprintf(text, sizeof(text), "%.5g [%.5g, %.5g]", r->value, r->low, r->high);
    } else {
        snprintf(text, sizeof(text), "%.5g", r->value);
    }
    dt_print("  %-32s", text);
}

static void print_profiles(const dt_compare *c, int width)
{
    dt_print("\n%-*s", width, "share of runs that reach");
    for (int i = 0; i < DT_COMPARE_PLACES; i += 5) {
        dt_print("  %9.4g", c->threshold[i]);
    }
    for (uint32_t g = 0; g < c->n_groups; g++) {
        dt_print("\n%-*s", width, c->group[g].name);
        for (int i = 0; i < DT_COMPARE_PLACES; i += 5) {
            dt_print("  %9.3g", c->group[g].share[i].value);
        }
    }
    dt_print("\n");
}

static void print_table(const dt_compare *c)
{
    int width = (int)strlen("share of runs that reach");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const int n = (int)strlen(c->group[i].name);
        width = n > width ? n : width;
    }
    dt_print("%s (%s is better) after %.10g %s%s\n\n", c->metric, c->is_min ? "less" : "more", c->steps,
             c->is_over_env_steps ? "environment steps" : "training steps",
             c->n_tasks > 1 ? ", scaled to [0, 1] for each environment" : "");
    dt_print("%-*s  %4s  %-32s  %-32s\n", width, "group", "runs", "final: interquartile mean", "mean of the curve");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        dt_print("%-*s  %4u", width, c->group[i].name, c->group[i].n);
        print_interval(&c->group[i].final);
        print_interval(&c->group[i].area);
        dt_print("\n");
    }
    print_profiles(c, width);
    for (uint32_t i = 0; i < c->n_groups; i++) {
        for (uint32_t k = i + 1; k < c->n_groups; k++) {
            dt_print("%s%s better than %s: probability", i == 0 && k == 1 ? "\n" : "", c->group[i].name,
                     c->group[k].name);
            print_interval(&c->improvement[i * c->n_groups + k]);
            dt_print("\n");
        }
    }
    dt_print("\n95 %% intervals of a bootstrap%s\n", c->n_tasks > 1 ? " stratified by environment" : "");
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static dt_status print_json(const dt_compare *c)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    write_json(c, &o);
    const dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        dt_print_line(dt_str_text(&text));
    }
    dt_str_fini(&text);
    return st;
}

dt_status dt_verb_compare(const dt_args *a, int *code_p)
{
    dt_compare c;
    double steps = 0;
    if (a->steps != NULL && (!dt_parse_f64(a->steps, &steps) || !(steps > 0))) {
        return DT_FAIL(DT_ECONFIG, "--steps %s: expected a number above 0", a->steps);
    }
    DT_TRY(a->out != NULL ? dt_cli_check_out(a->out) : DT_OK);
    DT_TRY(dt_compare_read(a->word, a->n_words, a->metric, steps, &c));
    dt_status st = a->out != NULL ? dt_compare_write_page(&c, a->out) : DT_OK;
    if (st == DT_OK && a->json) {
        st = print_json(&c);
    } else if (st == DT_OK) {
        print_table(&c);
    }
    dt_compare_fini(&c);
    return st;
}

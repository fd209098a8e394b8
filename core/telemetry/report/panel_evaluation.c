/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of evaluations: a line for each number, its curve, and what it was at some of them up to the last; mean and
 * deviation over seeds are one line.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/html.h"
#include "telemetry/report/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 6 };

typedef struct columns { /* records of the first run's evaluations */
    uint32_t at[MAX_COLUMNS];
    uint32_t n;
} columns;

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Deviations go with their means, seeds and horizons are no results, comparisons and ellipses have panels of their
 * own. */
static bool is_result_name(const char *name)
{
    static const char *const others[] = {"eval/seeds/",       "eval/horizon_s/", "eval/cv_",    "eval/rmse_over_cv/",
                                         "eval/reliability/", "eval/coverage_",  "eval/sites/", "eval/regions/"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return strncmp(name, "eval/", 5) == 0 && !ends_with(name, "/std");
}

/* The evaluations of the run that has results first: all, or the first, the last, and some evenly between. */
static void choose_columns(const dt_page *p, const dt_page_phase *phase, const char **name, uint32_t n, columns *c)
{
    const dt_series *longest = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const dt_series *s = is_result_name(name[i]) ? dt_page_find_series(p, phase, 0, name[i]) : NULL;
        longest = s != NULL && (longest == NULL || s->n > longest->n) ? s : longest;
    }
    c->n = 0;
    if (longest == NULL || p->n_runs > 1) {
        return;
    }
    const uint32_t most = longest->n < MAX_COLUMNS ? longest->n : MAX_COLUMNS;
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t k = most > 1 ? (uint32_t)((uint64_t)i * (longest->n - 1) / (most - 1)) : 0;
        c->at[c->n++] = longest->at[k];
    }
    c->at[c->n - 1] = phase->evaluated[0];
}

static double value_at_record(const dt_series *s, uint32_t record)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->at[i] == record) {
            return s->value[i];
        }
    }
    return NAN;
}

static void write_name(const char *name, dt_str *out)
{
    char text[192];
    snprintf(text, sizeof(text), "%s", name + strlen("eval/"));
    if (ends_with(text, "/mean")) {
        text[strlen(text) - strlen("/mean")] = '\0';
    }
    const char *slash = strrchr(text, '/');
    dt_str_add(out, "<i>");
    if (slash != NULL) {
        char prefix[192];
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(slash + 1 - text), text);
        dt_html_escape(out, prefix);
    }
    dt_str_add(out, "</i>");
    dt_html_escape(out, slash != NULL ? slash + 1 : text);
}

/* Over seeds, of the last evaluation; NAN: it has none. */
static double deviation_over_seeds(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name)
{
    char std[192];
    if (!ends_with(name, "/mean")) {
        return NAN;
    }
    snprintf(std, sizeof(std), "%.*s/std", (int)(strlen(name) - strlen("/mean")), name);
    return dt_page_last_evaluated(p, phase, run, std);
}

static void write_row(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name, bool is_first,
                      const columns *c)
{
    const dt_series *s = dt_page_find_series(p, phase, run, name);
    if (s == NULL) {
        return;
    }
    double shown[MAX_COLUMNS + 1];
    char text[DT_NUMBER_BYTES];
    double constant = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < c->n; i++) {
        shown[n++] = value_at_record(s, c->at[i]);
    }
    if (p->n_runs > 1) {
        shown[n++] = s->value[0];
    }
    shown[n++] = dt_page_last_evaluated(p, phase, run, name);
    const int decimals = dt_decimals_for(shown, n);
    dt_str_add(p->out, is_first ? "<tr class=\"first\"><th>" : "<tr><th>");
    if (is_first) {
        write_name(name, p->out);
    }
    dt_str_add(p->out, "</th><td class=\"l\">");
    dt_page_write_run_name(p, run);
    dt_str_add(p->out, "</td><td class=\"l\">");
    if (!dt_page_is_constant(p, phase, name, &constant)) {
        dt_sparkline_write(s->value, s->n, p->group[run] % DT_PAGE_COLORS, p->out);
    }
    dt_str_add(p->out, "</td>");
    for (uint32_t i = 0; i + 1 < n; i++) {
        dt_str_addf(p->out, "<td>%s</td>", dt_aligned_text(shown[i], decimals, text));
    }
    dt_str_addf(p->out, "<td><b>%s</b></td><td class=\"l soft\">", dt_aligned_text(shown[n - 1], decimals, text));
    const double deviation = deviation_over_seeds(p, phase, run, name);
    if (isfinite(deviation) && isfinite(shown[n - 1])) {
        dt_str_addf(p->out, "\xc2\xb1 %s", dt_short_text(deviation, text));
    }
    dt_str_add(p->out, "</td></tr>\n");
}

/* Where an evaluation is on the axis of the phase's curves. */
static void write_record_position(const dt_page *p, const dt_page_phase *phase, uint32_t record)
{
    const dt_series *over = phase->is_over_env_steps ? dt_page_find_series(p, phase, 0, "env_steps") : NULL;
    const uint64_t step = p->run[0].records->step[record];
    const double env_steps = over != NULL ? value_at_record(over, record) : (double)NAN;
    char text[DT_NUMBER_BYTES];
    if (isfinite(env_steps)) {
        dt_str_addf(p->out, "<th>%s env. steps</th>", dt_short_text(env_steps, text));
    } else {
        dt_str_addf(p->out, "<th>step %llu</th>", (unsigned long long)step);
    }
}

static void write_head(const dt_page *p, const dt_page_phase *phase, const columns *c)
{
    dt_str_add(p->out, "<details class=\"panel\"><summary>All numbers of the evaluations</summary>\n"
                       "<div class=\"scroll\"><table class=\"evaluation\"><thead><tr><th></th><th></th>"
                       "<th></th>");
    for (uint32_t i = 0; i + 1 < c->n; i++) {
        write_record_position(p, phase, c->at[i]);
    }
    if (p->n_runs > 1) {
        dt_str_add(p->out, "<th>first</th><th>last</th>");
    } else if (c->n > 0) {
        write_record_position(p, phase, c->at[c->n - 1]);
    }
    dt_str_add(p->out, "<th></th></tr></thead><tbody>\n");
}

/* Seeds that the last evaluation had. */
static void write_seeds(const dt_page *p, const dt_page_phase *phase)
{
    for (uint32_t i = 0, n = 0; i < p->n_runs; i++, n = 0) {
        char name[64], text[DT_NUMBER_BYTES];
        double seed = 0;
        while (snprintf(name, sizeof(name), "eval/seeds/%u", n + 1) > 0 &&
               isfinite(seed = dt_page_last_evaluated(p, phase, i, name))) {
            dt_str_add(p->out, n == 0 ? "<p class=\"note\">" : ", ");
            if (n++ == 0) {
                dt_page_write_run_name(p, i);
                dt_str_add(p->out, p->n_runs > 1 ? ": mean \xc2\xb1 deviation over seeds "
                                                 : "Mean \xc2\xb1 deviation over seeds ");
            }
            snprintf(text, sizeof(text), "%.0f", seed);
            dt_str_add(p->out, text);
        }
        dt_str_add(p->out, n > 0 ? "</p>\n" : "");
    }
}

/* The curve of a result, and as dashed lines what the baselines of the first run come to. */
static dt_status chart_with_baselines(const dt_page *p, const dt_page_phase *phase, const char *name)
{
    dt_flat f = {0};
    double first = INFINITY, last = -INFINITY;
    uint32_t n = dt_page_make_curves(p, phase, name, p->curve);
    for (uint32_t i = 0; i < n; i++) {
        const dt_curve *c = &p->curve[i];
        first = c->n > 0 ? fmin(first, c->x[0]) : first;
        last = c->n > 0 ? fmax(last, c->x[c->n - 1]) : last;
    }
    if (phase->at[0] >= 0) {
        DT_TRY(dt_logbook_read_evaluation(&p->run[0], (uint32_t)phase->at[0], ".baselines.json", &f));
    }
    const uint32_t n_others = dt_page_count_baselines(&f);
    for (uint32_t i = 0; i < n_others && n < DT_CHART_MAX_CURVES; i++) {
        const double value = dt_page_baseline_value(&f, i, name + strlen("eval/"));
        if (isfinite(value) && last > first) {
            dt_curve *c = &p->curve[n++];
            *c = (dt_curve){.is_reference = true, .label = dt_page_baseline_name(&f, i), .n = 2};
            c->x[0] = first;
            c->x[1] = last;
            c->y[0] = c->y[1] = value;
        }
    }
    const dt_chart chart = {.prefix = "eval/",
                            .name = name + strlen("eval/"),
                            .unit = dt_unit_of(name),
                            .x_name = dt_page_x_name(phase),
                            .curve = p->curve,
                            .n_curves = n};
    const dt_status st = dt_chart_write(&chart, p->out);
    dt_flat_fini(&f);
    return st;
}

/* As charts, where there are evaluations enough for one: what runs are ranked by, and the first of what the environment
 * measures itself. */
static dt_status write_course_charts(const dt_page *p, const dt_page_phase *phase, const char **name, uint32_t n)
{
    const char *chosen[2] = {NULL, NULL};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->n_runs && chosen[0] == NULL; k++) {
            const bool is_it = strcmp(p->run[k].state.best_name, name[i]) == 0;
            chosen[0] = is_it && is_result_name(name[i]) && dt_page_has_course(p, phase, name[i]) ? name[i] : NULL;
        }
        const bool is_measured = strncmp(name[i], "eval/metrics/", 13) == 0 && ends_with(name[i], "/mean");
        if (chosen[1] == NULL && is_measured && dt_page_has_course(p, phase, name[i])) {
            chosen[1] = name[i];
        }
    }
    if (chosen[0] == NULL && chosen[1] == NULL) {
        return DT_OK;
    }
    dt_str_add(p->out, "<h3>Evaluations</h3>\n<div class=\"charts\">\n");
    for (int i = 0; i < 2; i++) {
        if (chosen[i] != NULL && (i == 0 || chosen[0] == NULL || strcmp(chosen[0], chosen[1]) != 0)) {
            DT_TRY(chart_with_baselines(p, phase, chosen[i]));
        }
    }
    dt_str_add(p->out, "</div>\n");
    return DT_OK;
}

dt_status dt_panel_write_evaluation(const dt_page *p, const dt_page_phase *phase)
{
    const char **name = NULL;
    uint32_t n = 0;
    columns c;
    bool is_open = false;
    DT_TRY(dt_page_list_names(p, phase, &name, &n));
    dt_status st = DT_OK;
    choose_columns(p, phase, name, n, &c);
    for (uint32_t i = 0; i < n; i++) {
        bool is_first = true;
        if (!is_result_name(name[i]) || dt_page_is_unused(p, name[i])) {
            continue;
        }
        if (!is_open) {
            st = write_course_charts(p, phase, name, n);
            write_head(p, phase, &c);
            is_open = true;
        }
        for (uint32_t k = 0; k < p->n_runs; k++) {
            if (dt_page_find_series(p, phase, k, name[i]) != NULL) {
                write_row(p, phase, k, name[i], is_first, &c);
                is_first = false;
            }
        }
    }
    if (is_open) {
        dt_str_add(p->out, "</tbody></table></div>\n");
        write_seeds(p, phase);
        dt_str_add(p->out, "</details>\n");
    }
    dt_free(name);
    return st;
}

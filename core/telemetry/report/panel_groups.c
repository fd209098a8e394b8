/* SPDX-License-Identifier: Apache-2.0
 *
 * Final results of configurations that were trained with several seeds: of each phase the interquartile mean over runs
 * with its bootstrap interval, and the difference to the first configuration, seeds of both resampled.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "telemetry/report/group.h"
#include "telemetry/report/html.h"
#include "telemetry/report/iqm.h"
#include "telemetry/report/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_METRICS = 2, MAX_METRIC = 192, RESAMPLES = 4000 };

typedef struct metrics { /* that a phase is compared by */
    char name[MAX_METRICS][MAX_METRIC];
    uint32_t n;
} metrics;

static void add_metric(metrics *m, const char *name)
{
    if (m->n < MAX_METRICS) {
        snprintf(m->name[m->n++], MAX_METRIC, "%s", name);
    }
}

/* The environment's first metric and the return; of predictions the error at the last horizon; else what is learned. */
static void choose_metrics(const dt_records *r, uint32_t phase, metrics *m)
{
    const uint32_t evaluated = dt_records_last_evaluation(r, phase);
    const char *measured = NULL, *rmse = NULL;
    *m = (metrics){.n = 0};
    for (uint32_t i = r->phase[phase].first_series, end = dt_records_series_end(r, phase); i < end; i++) {
        const dt_series *s = &r->series[i];
        const size_t bytes = strlen(s->name);
        if (!dt_series_has_record(s, evaluated)) {
            continue;
        }
        if (measured == NULL && strncmp(s->name, "eval/metrics/", 13) == 0 && bytes > 5 &&
            strcmp(s->name + bytes - 5, "/mean") == 0) {
            measured = s->name;
        }
        rmse = strncmp(s->name, "eval/rmse_m/", 12) == 0 ? s->name : rmse; /* horizons rise */
    }
    if (measured != NULL) {
        add_metric(m, measured);
    }
    if (dt_records_find(r, phase, "eval/return/mean") != NULL) {
        add_metric(m, "eval/return/mean");
    }
    if (rmse != NULL) {
        add_metric(m, rmse);
    }
    if (m->n == 0 && dt_records_find(r, phase, "charts/episodic_return") != NULL) {
        add_metric(m, "charts/episodic_return");
    }
    if (m->n == 0) {
        add_metric(m, "loss");
    }
}

/* Final results of a group's runs; those without one are left out. */
static uint32_t list_final_results(const dt_page *p, uint32_t group, uint32_t phase, const char *id, const char *name,
                                   double out[DT_PAGE_MAX_RUNS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_records *r = p->run[i].records;
        if (p->group[i] != group || phase >= r->n_phases || strcmp(r->phase[phase].id, id) != 0) {
            continue;
        }
        const dt_series *s = dt_records_find(r, phase, name);
        const bool is_old = s == NULL || (strncmp(name, "eval/", 5) == 0 &&
                                          !dt_series_has_record(s, dt_records_last_evaluation(r, phase)));
        const double v = is_old ? (double)NAN : dt_series_last(s);
        if (isfinite(v)) {
            out[n++] = v;
        }
    }
    return n;
}

static void write_interval(const dt_page *p, const dt_iqm *r)
{
    char text[DT_NUMBER_BYTES];
    if (isfinite(r->low)) {
        dt_str_addf(p->out, " <span class=\"soft\">[%s", dt_number_text(r->low, text));
        dt_str_addf(p->out, ", %s]</span>", dt_number_text(r->high, text));
    }
}

static void write_cell(const dt_page *p, uint32_t group, uint32_t phase, const char *id, const char *name)
{
    double own[DT_PAGE_MAX_RUNS], other[DT_PAGE_MAX_RUNS];
    char text[DT_NUMBER_BYTES];
    const uint32_t n = list_final_results(p, group, phase, id, name, own);
    const dt_iqm r = dt_iqm_interval(own, n, RESAMPLES);
    dt_str_addf(p->out, "<td>%u</td><td><b>%s</b>", n, dt_number_text(r.value, text));
    write_interval(p, &r);
    const uint32_t n_other = group > 0 ? list_final_results(p, 0, phase, id, name, other) : 0;
    if (n > 0 && n_other > 0) {
        const dt_iqm d = dt_iqm_difference(own, n, other, n_other, RESAMPLES);
        dt_str_addf(p->out, "<br/><span class=\"soft\">vs. first %s%s</span>", d.value > 0 ? "+" : "",
                    dt_short_text(d.value, text));
        write_interval(p, &d);
    }
    dt_str_add(p->out, "</td>");
}

static void write_phase(const dt_page *p, uint32_t phase, const dt_records *first)
{
    const char *id = first->phase[phase].id;
    metrics m;
    choose_metrics(first, phase, &m);
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"achieved groups\"><thead><tr><th>");
    dt_html_escape(p->out, id);
    dt_str_add(p->out, "</th>");
    for (uint32_t k = 0; k < m.n; k++) {
        const char *unit = dt_unit_of(m.name[k]);
        dt_str_add(p->out, "<th>runs</th><th>");
        dt_html_escape(p->out, m.name[k]);
        dt_str_addf(p->out, "%s%s</th>", unit[0] != '\0' ? ", " : "", unit);
    }
    dt_str_add(p->out, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        char name[DT_GROUP_NAME];
        if (!dt_page_is_first_of_group(p, i)) {
            continue;
        }
        dt_group_name(p, p->group[i], name);
        dt_str_add(p->out, "<tr><th>");
        dt_page_write_dot(p, i);
        dt_html_escape(p->out, name);
        dt_str_add(p->out, "</th>");
        for (uint32_t k = 0; k < m.n; k++) {
            write_cell(p, p->group[i], phase, id, m.name[k]);
        }
        dt_str_add(p->out, "</tr>\n");
    }
    dt_str_add(p->out, "</tbody></table></div>\n");
}

dt_status dt_panel_write_groups(const dt_page *p)
{
    const dt_records *first = p->run[0].records;
    if (p->n_groups == p->n_runs) {
        return DT_OK; /* nothing was trained twice */
    }
    dt_str_add(p->out,
               "<section id=\"results\"><h2>Final results<small>interquartile mean over runs of one configuration, "
               "95 % bootstrap interval</small></h2>\n");
    for (uint32_t i = 0; i < first->n_phases; i++) {
        write_phase(p, i, first);
    }
    dt_str_addf(
        p->out,
        "<p class=\"note\">Runs that differ in nothing but the seed (or in threads, log and report) are one "
        "configuration: one line with its interval in charts. The interquartile mean leaves out a quarter of the "
        "runs at each end (none of three). Intervals are percentiles of %d resamples%s (Agarwal et al. 2021).</p>"
        "</section>\n",
        RESAMPLES, p->n_groups > 1 ? "; differences to the first configuration resample both" : "");
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/compare_page.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/html.h"
#include "telemetry/report/page.h"
#include "telemetry/report/panel.h"

#include <math.h>

static void write_interval(const dt_iqm *r, dt_str *out)
{
    char text[DT_NUMBER_BYTES];
    dt_str_addf(out, "<td><b>%s</b>", dt_number_text(r->value, text));
    if (isfinite(r->low)) {
        dt_str_addf(out, " <span class=\"soft\">[%s", dt_number_text(r->low, text));
        dt_str_addf(out, ", %s]</span>", dt_number_text(r->high, text));
    }
    dt_str_add(out, "</td>");
}

static void write_name(const dt_compare *c, uint32_t group, dt_str *out)
{
    dt_str_addf(out, "<span class=\"dot c%u\"></span>", group % DT_PAGE_COLORS);
    dt_html_escape(out, c->group[group].name);
}

static void write_results(const dt_compare *c, dt_str *out)
{
    dt_str_add(out,
               "<section id=\"results\"><h2>Results</h2>\n<div class=\"scroll\"><table class=\"achieved\"><thead>"
               "<tr><th>group</th><th>runs</th><th>final value</th><th>mean of the curve</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        dt_str_add(out, "<tr><th>");
        write_name(c, i, out);
        dt_str_addf(out, "</th><td>%u</td>", c->group[i].n);
        write_interval(&c->group[i].final, out);
        write_interval(&c->group[i].area, out);
        dt_str_add(out, "</tr>\n");
    }
    dt_str_addf(out,
                "</tbody></table></div>\n<p class=\"note\">Interquartile means with 95 %% intervals of a bootstrap%s "
                "(Agarwal et al. 2021).</p></section>\n",
                c->n_tasks > 1
                    ? " stratified by environment; scores are scaled to [0, 1] by the least and the greatest "
                      "final value in each environment"
                    : "");
}

/* One curve of each group. */
static dt_status write_chart(const dt_compare *c, dt_curve *curve, const double *x, bool is_profile, dt_str *out)
{
    const uint32_t n = c->n_groups < DT_CHART_MAX_CURVES ? c->n_groups : DT_CHART_MAX_CURVES;
    for (uint32_t g = 0; g < n; g++) {
        const dt_iqm *r = is_profile ? c->group[g].share : c->group[g].at;
        const bool has_band = isfinite(r[0].low);
        curve[g] = (dt_curve){.color = g % DT_PAGE_COLORS, .n_runs = has_band ? c->group[g].n : 0};
        for (uint32_t i = 0; i < DT_COMPARE_PLACES; i++) {
            if (i == 0 || x[i] > x[i - 1]) {
                const uint32_t k = curve[g].n++;
                curve[g].x[k] = x[i];
                curve[g].y[k] = curve[g].last = r[i].value;
                curve[g].low[k] = r[i].low;
                curve[g].high[k] = r[i].high;
            }
        }
    }
    const dt_chart chart = {.prefix = is_profile ? "" : "interquartile mean of ",
                            .name = is_profile ? "share of runs that reach it" : c->metric,
                            .unit = "",
                            .x_name = is_profile             ? c->metric
                                      : c->is_over_env_steps ? "environment step"
                                                             : "training step",
                            .curve = curve,
                            .n_curves = n};
    return dt_chart_write(&chart, out);
}

static dt_status write_charts(const dt_compare *c, dt_str *out)
{
    dt_curve *curve = dt_alloc_n(DT_CHART_MAX_CURVES, sizeof(*curve));
    if (curve == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for charts");
    }
    dt_str_add(out, "<section id=\"curves\"><h2>Curves and performance profiles</h2>\n<div class=\"charts\">\n");
    dt_status st = write_chart(c, curve, c->place, false, out);
    if (st == DT_OK) {
        st = write_chart(c, curve, c->threshold, true, out);
    }
    dt_str_add(out, "</div></section>\n");
    dt_free(curve);
    return st;
}

static void write_improvement(const dt_compare *c, dt_str *out)
{
    if (c->n_groups < 2) {
        return;
    }
    dt_str_add(out,
               "<section id=\"improvement\"><h2>Probability of improvement<small>a run of the row is better than "
               "one of the column</small></h2>\n<div class=\"scroll\"><table class=\"achieved\"><thead><tr><th></th>");
    for (uint32_t k = 0; k < c->n_groups; k++) {
        dt_str_add(out, "<th>");
        write_name(c, k, out);
        dt_str_add(out, "</th>");
    }
    dt_str_add(out, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < c->n_groups; i++) {
        dt_str_add(out, "<tr><th>");
        write_name(c, i, out);
        dt_str_add(out, "</th>");
        for (uint32_t k = 0; k < c->n_groups; k++) {
            if (i == k) {
                dt_str_add(out, "<td></td>");
            } else {
                write_interval(&c->improvement[i * c->n_groups + k], out);
            }
        }
        dt_str_add(out, "</tr>\n");
    }
    dt_str_add(out, "</tbody></table></div></section>\n");
}

static void write_runs(const dt_compare *c, dt_str *out)
{
    char text[DT_NUMBER_BYTES];
    dt_str_add(out, "<details class=\"panel\"><summary>Runs</summary>\n<div class=\"scroll\"><table><thead><tr><th>run"
                    "</th><th class=\"l\">environment or data</th><th>final value</th><th>mean of the curve</th></tr>"
                    "</thead><tbody>\n");
    for (uint32_t i = 0; i < c->n_runs; i++) {
        const dt_compare_run *r = &c->run[i];
        dt_str_addf(out, "<tr><th><span class=\"dot c%u\"></span>", r->group % DT_PAGE_COLORS);
        dt_html_escape(out, r->path);
        dt_str_add(out, "</th><td class=\"l\">");
        dt_html_escape(out, c->task[r->task].name);
        dt_str_addf(out, "</td><td>%s</td>", dt_number_text(r->final, text));
        dt_str_addf(out, "<td>%s</td></tr>\n", dt_number_text(r->area, text));
    }
    dt_str_add(out, "</tbody></table></div></details>\n");
}

static dt_status write_page(const dt_compare *c, dt_str *page)
{
    char text[DT_NUMBER_BYTES];
    dt_page_begin("comparison", c->metric, page);
    dt_str_addf(page, "<p class=\"soft\">%s is better, after %s %s</p></header>\n", c->is_min ? "less" : "more",
                dt_number_text(c->steps, text), c->is_over_env_steps ? "environment steps" : "training steps");
    write_results(c, page);
    DT_TRY(write_charts(c, page));
    write_improvement(c, page);
    write_runs(c, page);
    dt_page_end(page);
    return dt_str_status(page);
}

dt_status dt_compare_write_page(const dt_compare *c, const char *path)
{
    dt_str page = {0};
    dt_status st = write_page(c, &page);
    if (st == DT_OK) {
        st = dt_fs_write_atomic(path, dt_str_text(&page), page.bytes);
    }
    dt_str_fini(&page);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictions by horizon: the error of the last evaluation at every horizon, compared with constant velocity on the
 * same samples, as a chart, as a table and as a sentence.
 */
#include <config.h>

#include "traffic/panels/panels.h"

#include "base/err.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>

enum { MAX_HORIZONS = 32, MAX_CURVES = 33 };
#define NO_BREAK "\xc2\xa0"
/* Share of the whole horizon that a curriculum must have reached; below it, later seconds hardly counted. */
static const double WHOLE_HORIZON = 0.95;

typedef struct horizons {
    double second[MAX_HORIZONS], rmse[MAX_HORIZONS], reference[MAX_HORIZONS];
    uint32_t n;
} horizons;

static void read_horizons(const dt_panel_view *p, uint32_t run, horizons *h)
{
    for (h->n = 0; h->n < MAX_HORIZONS; h->n++) {
        const uint32_t i = h->n;
        const double rmse = dt_panel_list_value(p, run, "rmse_m", i + 1);
        if (isnan(rmse)) {
            return;
        }
        const double second = dt_panel_list_value(p, run, "horizon_s", i + 1);
        h->second[i] = isnan(second) ? i + 1 : second;
        h->rmse[i] = rmse;
        h->reference[i] = dt_panel_list_value(p, run, "cv_rmse_m", i + 1);
    }
}

/* The last horizon of a run's evaluations, in seconds; NAN: they have none. */
static double whole_horizon(const dt_panel_view *p, uint32_t run)
{
    horizons h;
    read_horizons(p, run, &h);
    return h.n > 0 ? h.second[h.n - 1] : (double)NAN;
}

static bool is_same(const horizons *a, const horizons *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++) {
        same = a->second[i] == b->second[i] && a->reference[i] == b->reference[i];
    }
    return same;
}

static dt_status write_chart(const dt_panel_view *p)
{
    horizons h[MAX_CURVES];
    dt_panel_curve curve[MAX_CURVES];
    const horizons *drawn = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_runs && n + 2 <= MAX_CURVES; i++) {
        read_horizons(p, i, &h[i]);
        if (h[i].n == 0) {
            continue;
        }
        if (drawn == NULL || !is_same(&h[i], drawn)) { /* runs on the same data share one reference */
            curve[n++] = (dt_panel_curve){
                .x = h[i].second, .y = h[i].reference, .n = h[i].n, .run = -1, .label = "constant velocity"};
            drawn = &h[i];
        }
        curve[n++] = (dt_panel_curve){
            .x = h[i].second, .y = h[i].rmse, .n = h[i].n, .run = (int32_t)i, .label = p->n_runs == 1 ? "model" : NULL};
    }
    return p->curves(p, "RMSE", "m", "horizon, s", curve, n);
}

static double last_trained(const dt_panel_view *p, uint32_t run, double *first_p)
{
    const double *value = NULL;
    const uint64_t *step = NULL;
    const uint32_t n = p->series(p, run, "charts/horizon_s", &value, &step);
    double last = NAN;
    for (uint32_t i = n; i > 0 && isnan(last); i--) {
        last = value[i - 1];
    }
    *first_p = n > 0 ? value[0] : (double)NAN;
    return last;
}

/* Seconds that are evaluated, and by which the best step is chosen, but were never trained. */
static void write_untrained(const dt_panel_view *p, dt_str *out)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        char to[DT_NUMBER_BYTES], of[DT_NUMBER_BYTES];
        double first = 0;
        const double whole = whole_horizon(p, i), last = last_trained(p, i, &first);
        if (last < WHOLE_HORIZON * whole) {
            dt_str_add(out, "<p class=\"note warn\">");
            dt_str_add(out, p->run_label(p, i));
            dt_str_addf(out,
                        "%sTraining ended with a horizon of %s s of %s s (curriculum). Later seconds are evaluated and "
                        "decide which step is best, but were never trained: train longer, or lower "
                        "<code>phase1_world_model.horizon_epochs</code>.</p>\n",
                        p->n_runs > 1 ? ": " : "", dt_short_text(last, to), dt_short_text(whole, of));
        }
    }
}

dt_status dt_panel_horizon(const dt_panel_view *p, dt_str *out)
{
    horizons h;
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        read_horizons(p, i, &h);
        if (h.n == 0) {
            continue;
        }
        if (!is_open) {
            dt_str_add(out, "<h3>Predictions by horizon</h3>\n<div class=\"beside\">\n");
            dt_panel_flush(p, out);
            DT_TRY(write_chart(p));
            dt_str_addf(out,
                        "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>Horizon</th><th>RMSE, m</th>"
                        "<th>Constant velocity</th><th>Ratio</th></tr></thead><tbody>\n",
                        p->n_runs > 1 ? "Run" : "");
            is_open = true;
        }
        for (uint32_t k = 0; k < h.n; k++) {
            dt_str_add(out, "<tr><th>");
            if (k == 0) {
                dt_str_add(out, p->run_label(p, i));
            }
            dt_str_addf(out, "</th><td>%g s</td><td><b>%.2f</b></td>", h.second[k], h.rmse[k]);
            if (isfinite(h.reference[k]) && h.reference[k] > 0) {
                dt_str_addf(out, "<td>%.2f</td><td>%.2f</td>", h.reference[k], h.rmse[k] / h.reference[k]);
            } else {
                dt_str_add(out, "<td></td><td></td>");
            }
            dt_str_add(out, "</tr>\n");
        }
    }
    dt_str_add(out, is_open ? "</tbody></table></div></div>\n" : "");
    write_untrained(p, out);
    return DT_OK;
}

dt_status dt_panel_horizon_sentence(const dt_panel_view *p, dt_str *out)
{
    horizons h;
    char text[DT_NUMBER_BYTES];
    read_horizons(p, 0, &h);
    if (h.n == 0) {
        return DT_OK;
    }
    const uint32_t last = h.n - 1;
    dt_str_addf(out, "error at the last horizon (%s" NO_BREAK "s) ", dt_number_text(h.second[last], text));
    dt_str_addf(out, "<b>%s" NO_BREAK "m</b>", dt_number_text(h.rmse[last], text));
    if (h.reference[last] > 0) {
        const double percent = round(100 * (h.rmse[last] / h.reference[last] - 1));
        dt_str_addf(out, "; constant velocity" NO_BREAK "%s" NO_BREAK "m (<b>",
                    dt_number_text(h.reference[last], text));
        dt_str_addf(out, "%s%.0f" NO_BREAK "%%", percent < 0 ? "\xe2\x88\x92" : "+", fabs(percent));
        dt_str_add(out, "</b>)");
    }
    return DT_OK;
}

void dt_panel_horizon_note(const dt_panel_view *p, char *out, size_t bytes)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        double first = 0;
        const double last = last_trained(p, i, &first), whole = whole_horizon(p, i);
        char from[DT_NUMBER_BYTES], to[DT_NUMBER_BYTES], of[DT_NUMBER_BYTES];
        dt_short_text(first, from);
        dt_short_text(last, to);
        if (last < WHOLE_HORIZON * whole) {
            snprintf(out, bytes,
                     "The horizon grew from %s s to %s s (curriculum) and never reached the %s s that evaluations use: "
                     "the later seconds were never trained.",
                     from, to, dt_short_text(whole, of));
            return;
        }
        if (last > first) {
            snprintf(out, bytes,
                     "The horizon grows from %s s to %s s (curriculum), and predictions further ahead have larger "
                     "errors: this loss may rise while the model improves. Evaluations always use the whole horizon.",
                     from, to);
            return;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictions by horizon: the error of the last evaluation at every horizon, beside constant velocity on the same
 * samples, as a picture and as a table.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>

enum { MAX_HORIZONS = 32 };

typedef struct horizons {
    double second[MAX_HORIZONS], rmse[MAX_HORIZONS], reference[MAX_HORIZONS];
    uint32_t n;
} horizons;

static double last_of(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *what, uint32_t i)
{
    char name[64];
    snprintf(name, sizeof(name), "eval/%s/%u", what, i + 1);
    return dt_page_evaluated(p, phase, run, name);
}

static void collect(const dt_page *p, const dt_page_phase *phase, uint32_t run, horizons *h)
{
    h->n = 0;
    for (uint32_t i = 0; i < MAX_HORIZONS; i++) {
        const double rmse = last_of(p, phase, run, "rmse_m", i);
        if (isnan(rmse)) {
            return;
        }
        const double second = last_of(p, phase, run, "horizon_s", i);
        h->second[i] = isnan(second) ? i + 1 : second;
        h->rmse[i] = rmse;
        h->reference[i] = last_of(p, phase, run, "cv_rmse_m", i);
        h->n++;
    }
}

static void fill(dt_curve *c, const horizons *h, const double *y)
{
    for (uint32_t i = 0; i < h->n; i++) {
        if (isfinite(y[i])) {
            c->x[c->n] = h->second[i];
            c->last = c->y[c->n++] = y[i];
        }
    }
}

static bool is_same(const horizons *a, const horizons *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++) {
        same = a->second[i] == b->second[i] && a->reference[i] == b->reference[i];
    }
    return same;
}

static dt_status write_chart(const dt_page *p, const dt_page_phase *phase)
{
    horizons h, drawn = {.n = 0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        collect(p, phase, i, &h);
        if (h.n > 0 && !is_same(&h, &drawn)) { /* runs on the same data share one reference */
            p->curve[n] = (dt_curve){.is_reference = true, .label = "constant velocity"};
            fill(&p->curve[n++], &h, h.reference);
            drawn = h;
        }
        if (h.n > 0) {
            p->curve[n] = (dt_curve){.color = p->group[i] % DT_PAGE_COLORS, .label = p->n_runs == 1 ? "model" : NULL};
            fill(&p->curve[n++], &h, h.rmse);
        }
    }
    const dt_chart c = {
        .prefix = "", .name = "RMSE", .unit = "m", .x_name = "horizon, s", .curve = p->curve, .n_curves = n};
    return dt_chart_write(&c, p->out);
}

double dt_page_horizon(const dt_page *p, const dt_page_phase *phase, uint32_t run)
{
    horizons h;
    collect(p, phase, run, &h);
    return h.n > 0 ? h.second[h.n - 1] : (double)NAN;
}

/* Seconds that are evaluated, and by which the best step is chosen, but were never trained. */
static void write_untrained(const dt_page *p, const dt_page_phase *phase)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        char to[DT_NUMBER_BYTES], of[DT_NUMBER_BYTES];
        const double whole = dt_page_horizon(p, phase, i);
        const double last = dt_series_last(dt_page_series(p, phase, i, "charts/horizon_s"));
        if (last < DT_PAGE_WHOLE_HORIZON * whole) {
            dt_str_add(p->out, "<p class=\"note warn\">");
            dt_page_run(p, i);
            dt_str_addf(p->out,
                        "%sTraining ended with a horizon of %s s of %s s (curriculum). Later seconds are evaluated and "
                        "decide which step is best, but were never trained: train longer, or lower "
                        "<code>phase1_world_model.horizon_epochs</code>.</p>\n",
                        p->n_runs > 1 ? ": " : "", dt_short_text(last, to), dt_short_text(whole, of));
        }
    }
}

dt_status dt_panel_horizon(const dt_page *p, const dt_page_phase *phase)
{
    horizons h;
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        collect(p, phase, i, &h);
        if (h.n == 0) {
            continue;
        }
        if (!is_open) {
            dt_str_add(p->out, "<h3>Predictions by horizon</h3>\n<div class=\"beside\">\n");
            DT_TRY(write_chart(p, phase));
            dt_str_addf(p->out,
                        "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>Horizon</th><th>RMSE, m</th>"
                        "<th>Constant velocity</th><th>Ratio</th></tr></thead><tbody>\n",
                        p->n_runs > 1 ? "Run" : "");
            is_open = true;
        }
        for (uint32_t k = 0; k < h.n; k++) {
            dt_str_add(p->out, "<tr><th>");
            if (k == 0) {
                dt_page_run(p, i);
            }
            dt_str_addf(p->out, "</th><td>%g s</td><td><b>%.2f</b></td>", h.second[k], h.rmse[k]);
            if (isfinite(h.reference[k]) && h.reference[k] > 0) {
                dt_str_addf(p->out, "<td>%.2f</td><td>%.2f</td>", h.reference[k], h.rmse[k] / h.reference[k]);
            } else {
                dt_str_add(p->out, "<td></td><td></td>");
            }
            dt_str_add(p->out, "</tr>\n");
        }
    }
    dt_str_add(p->out, is_open ? "</tbody></table></div></div>\n" : "");
    write_untrained(p, phase);
    return DT_OK;
}

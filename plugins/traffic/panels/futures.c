/* SPDX-License-Identifier: Apache-2.0
 *
 * How well predicted futures are calibrated: the share of recorded positions inside the regions of each level, as a
 * curve next to the diagonal of a calibrated model, and at three levels by horizon; the radii of regions that were
 * fitted; distances of the best of the most probable futures, and how many miss; and by site.
 */
#include <config.h>

#include "traffic/panels/panels.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>

enum { MAX_LEVELS = 32, MAX_HORIZONS = 32, MAX_SITES = 8, MAX_CURVES = 33, N_LEVELS = 3 };
static const char *const level_name[N_LEVELS] = {"coverage_50", "coverage_80", "coverage_95"};

static bool has_levels(const dt_panel_view *p, uint32_t run)
{
    return isfinite(dt_panel_list_value(p, run, "reliability/share", 1));
}

typedef struct levels {
    double level[MAX_LEVELS], share[MAX_LEVELS];
    uint32_t n;
} levels;

static void read_levels(const dt_panel_view *p, uint32_t run, levels *l)
{
    l->n = 0;
    for (uint32_t i = 1; i <= MAX_LEVELS; i++) {
        const double level = dt_panel_list_value(p, run, "reliability/level", i);
        const double share = dt_panel_list_value(p, run, "reliability/share", i);
        if (!isfinite(level) || !isfinite(share) || (l->n > 0 && level <= l->level[l->n - 1])) {
            return;
        }
        l->level[l->n] = level;
        l->share[l->n++] = share;
    }
}

static dt_status write_chart(const dt_panel_view *p)
{
    static const double diagonal[] = {0, 1};
    levels l[MAX_CURVES];
    dt_panel_curve curve[MAX_CURVES] = {{.x = diagonal, .y = diagonal, .n = 2, .run = -1, .label = "calibrated"}};
    uint32_t n = 1;
    for (uint32_t i = 0; i < p->n_runs && n < MAX_CURVES; i++) {
        if (has_levels(p, i)) {
            read_levels(p, i, &l[n]);
            curve[n] = (dt_panel_curve){.x = l[n].level,
                                        .y = l[n].share,
                                        .n = l[n].n,
                                        .run = (int32_t)i,
                                        .label = p->n_runs == 1 ? "model" : NULL};
            n++;
        }
    }
    return p->curves(p, "Share of recorded positions inside", "", "level of the region", curve, n);
}

static void write_cell(dt_str *out, double value, int decimals)
{
    if (isfinite(value)) {
        dt_str_addf(out, "<td>%.*f</td>", decimals, value);
    } else {
        dt_str_add(out, "<td></td>");
    }
}

/* Rows of one run: 50, 80 and 95 % at each horizon. */
static void write_coverage(const dt_panel_view *p, uint32_t run, dt_str *out)
{
    for (uint32_t i = 1; i <= MAX_HORIZONS; i++) {
        const double second = dt_panel_list_value(p, run, "horizon_s", i);
        if (!isfinite(second) || !isfinite(dt_panel_list_value(p, run, level_name[0], i))) {
            return;
        }
        dt_str_add(out, "<tr><th>");
        if (i == 1) {
            dt_str_add(out, p->run_label(p, run));
        }
        dt_str_addf(out, "</th><td>%g s</td>", second);
        for (size_t k = 0; k < N_LEVELS; k++) {
            write_cell(out, 100 * dt_panel_list_value(p, run, level_name[k], i), 0);
        }
        dt_str_add(out, "</tr>\n");
    }
}

static void write_distances(const dt_panel_view *p, dt_str *out)
{
    static const char *const row[][4] = {{"most probable future", "min_ade_1", "min_fde_1", "miss_rate_1"},
                                         {"best of the 6 most probable", "min_ade_6", "min_fde_6", "miss_rate_6"},
                                         {"constant velocity", "cv_ade", NULL, "cv_miss_rate"}};
    dt_str_add(out, "<div class=\"scroll\"><table><thead><tr><th></th><th></th><th>Mean distance, m</th>"
                    "<th>Distance at the end, m</th><th>More than 2 m off there, %</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        /* of a model with one future the best of several is that one */
        const bool has_several =
            dt_panel_list_value(p, i, "min_ade_6", 0) != dt_panel_list_value(p, i, "min_ade_1", 0) ||
            dt_panel_list_value(p, i, "min_fde_6", 0) != dt_panel_list_value(p, i, "min_fde_1", 0);
        for (size_t k = 0; k < sizeof(row) / sizeof(row[0]) && has_levels(p, i); k++) {
            if (k == 1 && !has_several) {
                continue;
            }
            dt_str_add(out, "<tr><th>");
            if (k == 0) {
                dt_str_add(out, p->run_label(p, i));
            }
            dt_str_addf(out, "</th><td class=\"l\">%s</td>", row[k][0]);
            write_cell(out, dt_panel_list_value(p, i, row[k][1], 0), 2);
            write_cell(out, row[k][2] != NULL ? dt_panel_list_value(p, i, row[k][2], 0) : (double)NAN, 2);
            write_cell(out, 100 * dt_panel_list_value(p, i, row[k][3], 0), 0);
            dt_str_add(out, "</tr>\n");
        }
    }
    dt_str_add(out, "</tbody></table></div>\n");
}

/* Rows for each run whose regions were fitted to held-out vehicles: by class of vehicle, at the last horizon. */
static void write_radii(const dt_panel_view *p, dt_str *out)
{
    static const char *const class_name[] = {"standing", "steady", "changing"};
    static const char *const said[] = {"standing", "steady speed", "speed changes"};
    static const uint32_t at[N_LEVELS] = {5, 8, 10}; /* of the levels, from 1 */
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        for (size_t k = 0; k < sizeof(said) / sizeof(said[0]); k++) {
            char name[32];
            snprintf(name, sizeof(name), "regions/%s", class_name[k]);
            if (!isfinite(dt_panel_list_value(p, i, name, at[0]))) {
                continue;
            }
            dt_str_add(out, is_open ? ""
                                    : "<div class=\"scroll\"><table><thead><tr><th></th><th>Radii of regions at the "
                                      "end, in deviations</th><th>50 %</th><th>80 %</th><th>95 %</th></tr></thead>"
                                      "<tbody>\n<tr><th></th><td class=\"l\">a Gaussian</td><td>1.18</td>"
                                      "<td>1.79</td><td>2.45</td></tr>\n");
            is_open = true;
            dt_str_add(out, "<tr><th>");
            if (k == 0) {
                dt_str_add(out, p->run_label(p, i));
            }
            dt_str_addf(out, "</th><td class=\"l\">%s</td>", said[k]);
            for (size_t l = 0; l < N_LEVELS; l++) {
                write_cell(out, dt_panel_list_value(p, i, name, at[l]), 2);
            }
            dt_str_add(out, "</tr>\n");
        }
    }
    dt_str_add(out, is_open ? "</tbody></table></div>\n" : "");
}

static double site_value(const dt_panel_view *p, uint32_t run, uint32_t site, const char *what, uint32_t i)
{
    char name[64];
    snprintf(name, sizeof(name), "sites/%u/%s", site, what);
    return dt_panel_list_value(p, run, name, i);
}

/* A row for each site where there are several, at the last horizon. */
static void write_sites(const dt_panel_view *p, dt_str *out)
{
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        for (uint32_t site = 0; site < MAX_SITES; site++) {
            const double windows = site_value(p, i, site, "samples", 0);
            uint32_t last = 0;
            while (last < MAX_HORIZONS && isfinite(site_value(p, i, site, "rmse_m", last + 1))) {
                last++;
            }
            if (!isfinite(windows) || last == 0) {
                continue;
            }
            if (!is_open) {
                dt_str_add(out, "<div class=\"scroll\"><table><thead><tr><th></th><th>Site of the store</th>"
                                "<th>Windows</th><th>RMSE at the end, m</th><th>Constant velocity</th>"
                                "<th>in 50 %</th><th>in 80 %</th><th>in 95 %</th></tr></thead><tbody>\n");
                is_open = true;
            }
            dt_str_add(out, "<tr><th>");
            dt_str_add(out, p->run_label(p, i));
            dt_str_addf(out, "</th><td>%u</td><td>%.0f</td>", site, windows);
            write_cell(out, site_value(p, i, site, "rmse_m", last), 2);
            write_cell(out, site_value(p, i, site, "cv_rmse_m", last), 2);
            for (size_t k = 0; k < N_LEVELS; k++) {
                write_cell(out, 100 * site_value(p, i, site, level_name[k], last), 0);
            }
            dt_str_add(out, "</tr>\n");
        }
    }
    dt_str_add(out, is_open ? "</tbody></table></div>\n" : "");
}

dt_status dt_panel_futures(const dt_panel_view *p, dt_str *out)
{
    bool has_any = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        has_any = has_any || has_levels(p, i);
    }
    if (!has_any) {
        return DT_OK;
    }
    dt_str_add(out, "<h3>Futures and their uncertainty</h3>\n<div class=\"beside\">\n");
    dt_panel_flush(p, out);
    DT_TRY(write_chart(p));
    dt_str_addf(out,
                "<div class=\"scroll\"><table><thead><tr><th>%s</th><th>Horizon</th><th>in 50 %%</th>"
                "<th>in 80 %%</th><th>in 95 %%</th></tr></thead><tbody>\n",
                p->n_runs > 1 ? "Run" : "");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        write_coverage(p, i, out);
    }
    dt_str_add(out, "</tbody></table></div></div>\n");
    write_radii(p, out);
    write_distances(p, out);
    write_sites(p, out);
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory compared with the plan: resident memory and arenas as they went, the plan as a dashed line, and both as a
 * table; and what the watch of memory saw, with the levels above which it warns and gives memory back.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *text, *name, *planned;
    bool has_levels;
} kinds[] = {{"resident", "mem/rss", "mem/planned", false},
             {"resident, at most so far", "mem/peak", NULL, false},
             {"in use, as it is watched", "mem/watched", NULL, true},
             {"arenas", "mem/arenas", "mem/arenas_planned", false},
             {"processes of environments", "mem/workers", "mem/workers_planned", false},
             {"allocated on the device", "gpu/mem_allocated", "gpu/mem_planned", false},
             {"held of the device by this process", "gpu/mem_reserved", NULL, false},
             {"in use on the device, by all", "gpu/mem_used", NULL, false}};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const struct {
    const char *name, *label;
} levels[] = {{"mem/warn_level", "warns above"}, {"mem/shed_level", "releases above"}};
enum { N_LEVELS = sizeof(levels) / sizeof(levels[0]) };

bool dt_page_is_memory(const char *name)
{
    for (int i = 0; i < N_LEVELS; i++) {
        if (strcmp(name, levels[i].name) == 0) {
            return true;
        }
    }
    for (int k = 0; k < N_KINDS; k++) {
        const char *planned = kinds[k].planned;
        if (strcmp(name, kinds[k].name) == 0 || (planned != NULL && strcmp(name, planned) == 0)) {
            return true;
        }
    }
    return false;
}

/* A curve of megabytes. label: of a line to compare with; NULL: what was recorded of the run. */
static void add_memory_curve(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name,
                             const char *label, uint32_t *n)
{
    const dt_series *s = dt_page_find_series(p, phase, run, name);
    if (s == NULL || *n == DT_CHART_MAX_CURVES) {
        return;
    }
    dt_curve *c = &p->curve[(*n)++];
    dt_page_make_curve(p, phase, run, s, c);
    c->is_reference = label != NULL;
    c->label = label;
    c->last /= 1e6;
    for (uint32_t i = 0; i < c->n; i++) {
        c->y[i] /= 1e6;
    }
}

static dt_status write_chart(const dt_page *p, const dt_page_phase *phase, int k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        add_memory_curve(p, phase, i, kinds[k].name, NULL, &n);
    }
    if (n > 0 && kinds[k].planned != NULL) {
        for (uint32_t i = 0; i < p->n_runs; i++) {
            add_memory_curve(p, phase, i, kinds[k].planned, "planned", &n);
        }
    }
    for (int l = 0; l < N_LEVELS && n > 0 && kinds[k].has_levels; l++) {
        for (uint32_t i = 0; i < p->n_runs; i++) {
            add_memory_curve(p, phase, i, levels[l].name, levels[l].label, &n);
        }
    }
    const dt_chart chart = {.prefix = "",
                            .name = kinds[k].text,
                            .unit = "MB",
                            .x_name = dt_page_x_name(phase),
                            .curve = p->curve,
                            .n_curves = n};
    return dt_chart_write(&chart, p->out);
}

static double greatest_value(const dt_series *s)
{
    double most = NAN;
    if (s != NULL) {
        for (uint32_t i = 0; i < s->n; i++) {
            most = fmax(most, s->value[i]);
        }
    }
    return most;
}

static void write_row(const dt_page *p, const dt_page_phase *phase, uint32_t run, int k)
{
    char text[DT_NUMBER_BYTES];
    const double most = greatest_value(dt_page_find_series(p, phase, run, kinds[k].name));
    const char *plan = kinds[k].planned;
    const double planned = plan != NULL ? greatest_value(dt_page_find_series(p, phase, run, plan)) : (double)NAN;
    if (!isfinite(most)) {
        return;
    }
    dt_str_add(p->out, "<tr><th>");
    dt_page_write_run_name(p, run);
    dt_str_addf(p->out, "</th><td class=\"l\">%s</td><td><b>%s</b></td>", kinds[k].text, dt_bytes_text(most, text));
    if (isfinite(planned) && planned > 0) {
        dt_str_addf(p->out, "<td>%s</td>", dt_bytes_text(planned, text));
        dt_str_addf(p->out, "<td>%.2f</td></tr>\n", most / planned);
    } else {
        dt_str_add(p->out, "<td></td><td></td></tr>\n");
    }
}

dt_status dt_panel_write_memory(const dt_page *p, const dt_page_phase *phase)
{
    bool has_any = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        has_any = has_any || dt_page_find_series(p, phase, i, kinds[0].name) != NULL;
    }
    if (!has_any) {
        return DT_OK;
    }
    dt_str_add(p->out, "<h3>Memory</h3>\n<div class=\"charts\">\n");
    for (int k = 0; k < N_KINDS; k++) {
        DT_TRY(write_chart(p, phase, k));
    }
    dt_str_add(p->out, "</div>\n<div class=\"scroll\"><table><thead><tr><th></th><th class=\"l\">Memory</th>"
                       "<th>At most</th><th>Planned</th><th>Ratio</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (phase->at[i] >= 0) {
            for (int k = 0; k < N_KINDS; k++) {
                write_row(p, phase, i, k);
            }
        }
    }
    dt_str_add(p->out, "</tbody></table></div>\n");
    return DT_OK;
}

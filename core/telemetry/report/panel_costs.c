/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of episodes and their limits: costs/NAME, its limit from limits/NAME as a dashed line.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/html.h"

#include <stdio.h>
#include <string.h>

static dt_status write_cost(const dt_page *p, const dt_page_phase *phase, const char *cost)
{
    char name[192];
    snprintf(name, sizeof(name), "costs/%s", cost);
    uint32_t n = dt_page_make_curves(p, phase, name, p->curve);
    snprintf(name, sizeof(name), "limits/%s", cost);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_series *limit = dt_page_is_first_of_group(p, i) ? dt_page_find_series(p, phase, i, name) : NULL;
        if (limit != NULL) {
            dt_curve *c = &p->curve[n++];
            dt_page_make_curve(p, phase, i, limit, c);
            c->is_reference = true;
            c->label = "limit";
        }
    }
    const dt_chart chart = {.prefix = "costs/",
                            .name = cost,
                            .unit = "",
                            .x_name = dt_page_x_name(phase),
                            .curve = p->curve,
                            .n_curves = n};
    return dt_chart_write(&chart, p->out);
}

dt_status dt_panel_write_costs(const dt_page *p, const dt_page_phase *phase)
{
    const char **name = NULL;
    uint32_t n = 0;
    bool is_open = false;
    DT_TRY(dt_page_list_names(p, phase, &name, &n));
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        char limit[192];
        double value = 0;
        if (strncmp(name[i], "costs/", 6) != 0) {
            continue;
        }
        snprintf(limit, sizeof(limit), "limits/%s", name[i] + 6);
        bool has_limit = false;
        for (uint32_t k = 0; k < p->n_runs; k++) {
            has_limit = has_limit || dt_page_find_series(p, phase, k, limit) != NULL;
        }
        if (!has_limit && dt_page_is_constant(p, phase, name[i], &value)) {
            continue; /* listed with constants */
        }
        if (!is_open) {
            dt_str_add(p->out, "<h3>Costs</h3>\n<div class=\"charts\">\n");
            is_open = true;
        }
        st = write_cost(p, phase, name[i] + 6);
    }
    dt_str_add(p->out, is_open ? "</div>\n" : "");
    dt_free(name);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/panels/panels.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

double dt_panel_list_value(const dt_panel_view *p, uint32_t run, const char *result, uint32_t i)
{
    char name[96];
    if (i == 0) {
        return p->evaluated(p, run, result);
    }
    snprintf(name, sizeof(name), "%s/%u", result, i);
    return p->evaluated(p, run, name);
}

void dt_panel_flush(const dt_panel_view *p, dt_str *out)
{
    p->html(p, dt_str_text(out));
    dt_str_clear(out);
}

static dt_status draw_all(const dt_panel_view *p, dt_traffic_panel *const *panel, size_t n)
{
    dt_str out = {0};
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        st = panel[i](p, &out);
    }
    if (st == DT_OK && (st = dt_str_status(&out)) == DT_OK) {
        dt_panel_flush(p, &out);
    }
    dt_str_fini(&out);
    return st;
}

static dt_status draw_panels(const dt_host *h, const dt_panel_view *p)
{
    static dt_traffic_panel *const panel[] = {dt_panel_horizon, dt_panel_futures, dt_panel_trajectories};
    return draw_all(p, panel, sizeof(panel) / sizeof(panel[0]));
}

static dt_status summarise_panels(const dt_host *h, const dt_panel_view *p)
{
    static dt_traffic_panel *const panel[] = {dt_panel_horizon_sentence};
    return draw_all(p, panel, 1);
}

static dt_status write_panel_note(const dt_host *h, const dt_panel_view *p, const char *metric, char *out,
                                  uint64_t bytes)
{
    if (strcmp(metric, "loss") == 0) {
        dt_panel_horizon_note(p, out, bytes);
    }
    return DT_OK;
}

const dt_panels_api dt_traffic_panels = {.struct_size = sizeof(dt_panels_api),
                                         .place = DT_PANEL_FIRST,
                                         .draw = draw_panels,
                                         .summarise = summarise_panels,
                                         .note = write_panel_note};

/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.jsonl of a run that came from elsewhere, with the other files of its folder: read, watched, and drawn into a
 * report. The input is metrics.jsonl, then meta.json, config.origin.json and progress.json, with lines "----" between
 * them. Series belong to records, steps rise within a phase, and what is shown is well-formed text.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/plugin_panels.h"
#include "telemetry/report/watch.h"
#include "traffic/panels/panels.h"

#include <string.h>

static dt_phase_panel *const panels[] = {dt_panel_write_evaluation, dt_panel_write_baselines, dt_panel_write_costs,
                                         dt_panel_write_curves,     dt_panel_write_time,      dt_panel_write_memory};
enum { N_PANELS = sizeof(panels) / sizeof(panels[0]), MOST_DRAWN = 4 /* phases */ };

static void check_records(const dt_records *r)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n_phases; k++) {
        fuzz_hold(r->phase[k].first == n && r->phase[k].n > 0);
        n += r->phase[k].n;
        for (uint32_t i = r->phase[k].first + 1; i < n; i++) {
            fuzz_hold(r->step[i] > r->step[i - 1]);
        }
    }
    fuzz_hold(n == r->n);
    for (uint32_t k = 0; k < r->n_series; k++) {
        const dt_series *s = &r->series[k];
        fuzz_hold(s->phase < r->n_phases && s->n > 0);
        for (uint32_t i = 0; i < s->n; i++) {
            fuzz_hold(s->at[i] >= r->phase[s->phase].first);
            fuzz_hold(s->at[i] < r->phase[s->phase].first + r->phase[s->phase].n);
            fuzz_hold(i == 0 || s->at[i] >= s->at[i - 1]);
        }
    }
}

/* Nothing of a run becomes markup or a control sequence. */
static void check_text(const dt_str *s)
{
    fuzz_hold(s->bytes == strlen(dt_str_text(s)));
    for (const char *p = dt_str_text(s); *p != '\0'; p++) {
        fuzz_hold((uint8_t)*p >= ' ' || *p == '\n' || *p == '\t');
        fuzz_hold(*p != 0x7f);
    }
}

static void draw(const dt_logbook *l)
{
    dt_str page = {0}, view = {0};
    dt_curve *curve = dt_alloc_n(DT_CHART_MAX_CURVES, sizeof(*curve));
    fuzz_hold(curve != NULL);
    const dt_page p = {.run = l, .n_runs = 1, .curve = curve, .out = &page};
    for (uint32_t k = 0; k < l->records->n_phases && k < MOST_DRAWN; k++) {
        dt_page_phase phase = {.id = l->records->phase[k].id};
        memset(phase.at, -1, sizeof(phase.at));
        phase.at[0] = (int32_t)k;
        const dt_series *over = dt_page_find_series(&p, &phase, 0, "env_steps");
        phase.has_env_steps = phase.is_over_env_steps = over != NULL && dt_curve_may_use_axis(l->records, over);
        dt_plugin_panels_draw_one(&p, &phase, &dt_traffic_panels, "traffic");
        for (size_t i = 0; i < N_PANELS; i++) {
            fuzz_hold(panels[i](&p, &phase) == DT_OK);
        }
    }
    fuzz_hold(dt_panel_write_head(&p) == DT_OK && dt_panel_write_config(&p) == DT_OK &&
              dt_panel_write_machine(&p) == DT_OK);
    check_text(&page);
    dt_watch_append_view(l, &(dt_watch_opts){.columns = 80, .rows = 24}, &view);
    check_text(&view);
    dt_str_fini(&page);
    dt_str_fini(&view);
    dt_free(curve);
}

/* One of the files next to metrics.jsonl. */
static int read_flat(const char *text, dt_flat *out)
{
    fuzz_no_files();
    fuzz_file("run/it.json", text != NULL ? text : "{}", text != NULL ? strlen(text) : 2);
    return dt_flat_read("run/it.json", out) == DT_OK;
}

DT_FUZZ(metrics)
{
    char path[] = "run", name[] = "run";
    dt_logbook l = {.path = path, .name = name};
    size_t at = 0;
    fuzz_begin();
    const char *text = fuzz_text(bytes, n, &at);
    fuzz_hold(dt_records_read_mem(text, strlen(text), "metrics.jsonl", &l.reader) == DT_OK);
    l.records = dt_records_get(l.reader);
    check_records(l.records);
    const int is_drawn = fuzz_is_chosen(bytes, n) && read_flat(fuzz_text(bytes, n, &at), &l.meta) &&
                         read_flat(fuzz_text(bytes, n, &at), &l.config) &&
                         read_flat(fuzz_text(bytes, n, &at), &l.progress);
    if (is_drawn) {
        dt_run_state_get(path, &l.meta, &l.config, &l.progress, l.records, &l.state);
        draw(&l);
        fuzz_accepted();
    }
    dt_flat_fini(&l.meta);
    dt_flat_fini(&l.config);
    dt_flat_fini(&l.progress);
    dt_records_close(l.reader);
    fuzz_end();
    return 0;
}

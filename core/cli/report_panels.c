/* SPDX-License-Identifier: Apache-2.0
 *
 * See report_panels.h.
 */
#include <config.h>

#include "cli/report_panels.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "dtrain/ext/panels.h"
#include "dtrain/helpers.h"
#include "telemetry/report/html.h"
#include "telemetry/report/panel.h"

#include <math.h>
#include <string.h>

enum { MAX_SERIES = 256 }; /* that one component asks for in one phase */

typedef struct drawing {
    dt_panel_view view; /* first: the plugin has a pointer to it */
    const dt_page *page;
    const dt_page_phase *phase;
    uint64_t *step[MAX_SERIES]; /* of series that were asked for */
    uint32_t n_step;
} drawing;

static drawing *of(const dt_panel_view *p)
{
    return p->priv;
}

static const char *run_name(const dt_panel_view *p, uint32_t run)
{
    return run < p->n_runs ? of(p)->page->run[run].name : "";
}

static uint32_t series(const dt_panel_view *p, uint32_t run, const char *metric, const double **value,
                       const uint64_t **step)
{
    drawing *d = of(p);
    const dt_series *s = run < p->n_runs ? dt_page_series(d->page, d->phase, run, metric) : NULL;
    if (s == NULL || s->n == 0 || d->n_step == MAX_SERIES) {
        return 0;
    }
    uint64_t *at = dt_alloc_n(s->n, sizeof(*at));
    if (at == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        at[i] = d->page->run[run].records->step[s->at[i]];
    }
    d->step[d->n_step++] = at;
    *value = s->value;
    *step = at;
    return s->n;
}

static double evaluated(const dt_panel_view *p, uint32_t run, const char *result)
{
    return run < p->n_runs ? dt_page_evaluated(of(p)->page, of(p)->phase, run, result) : (double)NAN;
}

static dt_status pictures(const dt_panel_view *p, uint32_t run, const char *prefix,
                          void (*each)(void *user, const char *path, double value), void *user)
{
    const drawing *d = of(p);
    dt_flat f = {0};
    if (run >= p->n_runs || d->phase->at[run] < 0) {
        return DT_OK;
    }
    DT_TRY(dt_logbook_left(&d->page->run[run], (uint32_t)d->phase->at[run], ".pictures.json", &f));
    for (uint32_t i = 0; i < f.n; i++) {
        if (strncmp(f.item[i].path, prefix, strlen(prefix)) == 0) {
            each(user, f.item[i].path, f.item[i].number);
        }
    }
    dt_flat_fini(&f);
    return DT_OK;
}

static void text(const dt_panel_view *p, const char *words)
{
    dt_html_text(of(p)->page->out, words);
}

static void html(const dt_panel_view *p, const char *elements)
{
    dt_str_add(of(p)->page->out, elements);
}

static dt_status chart(const dt_panel_view *p, const char *metric)
{
    return dt_page_chart(of(p)->page, of(p)->phase, metric);
}

static void draw(const dt_report_panels *r, const char *owner, const dt_panels_api *api, const dt_page *page,
                 const dt_page_phase *phase)
{
    dt_str own = {0};
    dt_page own_page = *page;
    own_page.out = &own;
    drawing d = {.page = &own_page, .phase = phase};
    d.view = (dt_panel_view){.struct_size = sizeof(dt_panel_view),
                             .n_runs = page->n_runs,
                             .priv = &d,
                             .phase = phase->id,
                             .run_name = run_name,
                             .series = series,
                             .evaluated = evaluated,
                             .pictures = pictures,
                             .text = text,
                             .html = html,
                             .chart = chart};
    dt_status st = api->draw(r->host, &d.view);
    if (st >= 0) {
        st = dt_str_status(&own);
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "the report has no panel of %s: %s", owner, dt_error_text());
        dt_error_clear();
    } else {
        dt_str_add(page->out, dt_str_text(&own));
    }
    dt_str_fini(&own);
    while (d.n_step > 0) {
        dt_free(d.step[--d.n_step]);
    }
}

typedef struct drawing_of {
    const dt_report_panels *panels;
    const dt_page *page;
    const dt_page_phase *phase;
} drawing_of;

static void draw_each(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    const drawing_of *d = user;
    const dt_panels_api *api = table;
    if (DT_HAS(api, draw)) {
        draw(d->panels, component != NULL ? component->desc.id : plugin->desc.name, api, d->page, d->phase);
    }
}

dt_status dt_report_panels_draw(void *user, const dt_page *p, const dt_page_phase *phase)
{
    const dt_report_panels *r = user;
    dt_loader_extensions(r->loader, DT_EXT_PANELS, draw_each, &(drawing_of){r, p, phase});
    return dt_str_status(p->out);
}

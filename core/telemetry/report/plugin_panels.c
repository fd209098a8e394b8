/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/plugin_panels.h"

#include "base/err.h"
#include "base/name.h"
#include "base/plugin_call.h"
#include "base/log.h"
#include "base/mem.h"
#include "dtrain/ext/panels.h"
#include "dtrain/helpers.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/film.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SERIES = 256 }; /* that one plugin reads in one phase */
typedef enum call { DRAW_LAST = DT_PANEL_LAST, DRAW_FIRST = DT_PANEL_FIRST, SUMMARISE, NOTE } call;

typedef struct drawing {
    dt_panel_view view; /* first: the plugin has a pointer to it */
    const dt_page *page;
    const dt_page_phase *phase;
    uint64_t *step[MAX_SERIES]; /* of series that were read */
    uint32_t n_step;
    dt_str label[DT_PAGE_MAX_RUNS];
    dt_flat picture[DT_PAGE_MAX_RUNS]; /* read once */
    bool has_read[DT_PAGE_MAX_RUNS];
} drawing;

static drawing *as_drawing(const dt_panel_view *p)
{
    return p->priv;
}

static const char *run_name(const dt_panel_view *p, uint32_t run)
{
    return run < p->n_runs ? as_drawing(p)->page->run[run].name : "";
}

static const char *run_label(const dt_panel_view *p, uint32_t run)
{
    drawing *d = as_drawing(p);
    if (run >= p->n_runs) {
        return "";
    }
    if (d->label[run].bytes == 0) {
        dt_page q = *d->page;
        q.out = &d->label[run];
        dt_page_write_run_name(&q, run);
    }
    return dt_str_text(&d->label[run]);
}

static uint8_t is_first_of_group(const dt_panel_view *p, uint32_t run)
{
    return run < p->n_runs && dt_page_is_first_of_group(as_drawing(p)->page, run);
}

static uint32_t read_series(const dt_panel_view *p, uint32_t run, const char *metric, const double **value,
                            const uint64_t **step)
{
    drawing *d = as_drawing(p);
    const dt_series *s = run < p->n_runs && metric != NULL ? dt_page_find_series(d->page, d->phase, run, metric) : NULL;
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

static double read_result(const dt_panel_view *p, uint32_t run, const char *result)
{
    char name[256];
    snprintf(name, sizeof(name), "eval/%s", result != NULL ? result : "");
    return run < p->n_runs ? dt_page_last_evaluated(as_drawing(p)->page, as_drawing(p)->phase, run, name) : (double)NAN;
}

static dt_status read_pictures(const dt_panel_view *p, uint32_t run, const char *prefix,
                               void (*each)(void *user, const char *path, double value), void *user)
{
    drawing *d = as_drawing(p);
    if (prefix == NULL || each == NULL) {
        return DT_FAIL(DT_EINVAL, "pictures is called without a %s", prefix == NULL ? "prefix" : "function");
    }
    if (run >= p->n_runs || d->phase->at[run] < 0) {
        return DT_OK;
    }
    dt_flat *f = &d->picture[run];
    if (!d->has_read[run]) {
        DT_TRY(dt_logbook_read_evaluation(&d->page->run[run], (uint32_t)d->phase->at[run], ".pictures.json", f));
        d->has_read[run] = true;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        if (strncmp(f->item[i].path, prefix, strlen(prefix)) == 0) {
            each(user, f->item[i].path, f->item[i].number);
        }
    }
    return DT_OK;
}

static void write_text(const dt_panel_view *p, const char *words)
{
    dt_html_escape(as_drawing(p)->page->out, words != NULL ? words : "");
}

static void write_html(const dt_panel_view *p, const char *elements)
{
    dt_str_add(as_drawing(p)->page->out, elements != NULL ? elements : "");
}

static dt_status write_chart(const dt_panel_view *p, const char *metric)
{
    DT_TRY(dt_name_given(metric, "chart"));
    return dt_page_write_chart(as_drawing(p)->page, as_drawing(p)->phase, metric);
}

static dt_status write_curves(const dt_panel_view *p, const char *title, const char *unit, const char *x_name,
                              const dt_panel_curve *curve, uint32_t n)
{
    const dt_page *page = as_drawing(p)->page;
    if (title == NULL || unit == NULL || x_name == NULL || (curve == NULL && n > 0)) {
        return DT_FAIL(DT_EINVAL, "a chart of %u curves has no %s; pass a text, \"\" where there is none", n,
                       title == NULL    ? "title"
                       : unit == NULL   ? "unit"
                       : x_name == NULL ? "x_name"
                                        : "list of them");
    }
    if (n > DT_CHART_MAX_CURVES) {
        return DT_FAIL(DT_EINVAL, "a chart of %u curves: at most %d", n, DT_CHART_MAX_CURVES);
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_panel_curve *from = &curve[i];
        dt_curve *to = &page->curve[i];
        *to = (dt_curve){.is_reference = from->run < 0, .label = from->label};
        to->color = from->run >= 0 && (uint32_t)from->run < p->n_runs ? page->group[from->run] % DT_PAGE_COLORS : 0;
        for (uint32_t k = 0; k < from->n && to->n < DT_CURVE_MAX_POINTS; k++) {
            if (isfinite(from->x[k]) && isfinite(from->y[k])) {
                to->x[to->n] = from->x[k];
                to->last = to->y[to->n++] = from->y[k];
            }
        }
    }
    const dt_chart c = {
        .prefix = "", .name = title, .unit = unit, .x_name = x_name, .curve = page->curve, .n_curves = n};
    return dt_chart_write(&c, page->out);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

typedef struct request {
    const dt_page *page;
    const dt_page_phase *phase;
    call call;
    const char *metric; /* of NOTE */
    char *note;
    size_t note_bytes;
} request;

static dt_status call_plugin(const request *r, const dt_panels_api *api, const dt_panel_view *view)
{
    const dt_host *h = r->page->plugins != NULL ? r->page->plugins->host : NULL;
    if (r->call == NOTE) {
        return DT_HAS(api, note) && r->note[0] == '\0' ? api->note(h, view, r->metric, r->note, r->note_bytes) : DT_OK;
    }
    if (r->call == SUMMARISE) {
        return DT_HAS(api, summarise) ? api->summarise(h, view) : DT_OK;
    }
    return DT_HAS(api, draw) && api->place == r->call ? api->draw(h, view) : DT_OK;
}

static void call_panels_of_plugin(const request *r, const dt_panels_api *api, const char *name)
{
    dt_str own = {0};
    dt_page page = *r->page;
    page.out = &own;
    drawing d = {.page = &page, .phase = r->phase};
    d.view = (dt_panel_view){.struct_size = sizeof(dt_panel_view),
                             .n_runs = page.n_runs,
                             .priv = &d,
                             .phase = r->phase->id,
                             .run_name = run_name,
                             .run_label = run_label,
                             .is_first_of_group = is_first_of_group,
                             .series = read_series,
                             .evaluated = read_result,
                             .pictures = read_pictures,
                             .text = write_text,
                             .html = write_html,
                             .chart = write_chart,
                             .curves = write_curves};
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, name, "its panel", call_plugin(r, api, &d.view));
    if (st >= 0) {
        st = dt_str_status(&own);
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "the report has no panel of %s: %s", name, dt_error_text());
        dt_error_clear();
    } else {
        dt_str_add(r->page->out, dt_str_text(&own));
    }
    dt_str_fini(&own);
    for (uint32_t i = 0; i < page.n_runs; i++) {
        dt_str_fini(&d.label[i]);
        dt_flat_fini(&d.picture[i]);
    }
    while (d.n_step > 0) {
        dt_free(d.step[--d.n_step]);
    }
}

static void call_panels_of_component(void *user, const void *table, const dt_loaded_plugin *plugin,
                                     const dt_loaded *component)
{
    call_panels_of_plugin(user, table, component != NULL ? component->desc.id : plugin->desc.name);
}

static void call_all_plugins(request *r)
{
    if (r->page->plugins != NULL) {
        dt_loader_visit_extensions(r->page->plugins->loader, DT_EXT_PANELS, call_panels_of_component, r);
    }
}

void dt_plugin_panels_draw_one(const dt_page *p, const dt_page_phase *phase, const dt_panels_api *api, const char *name)
{
    call_panels_of_plugin(&(request){.page = p, .phase = phase, .call = (call)api->place}, api, name);
}

void dt_plugin_panels_draw(const dt_page *p, const dt_page_phase *phase, uint32_t place)
{
    call_all_plugins(&(request){.page = p, .phase = phase, .call = (call)place});
}

void dt_plugin_panels_summarise(const dt_page *p, const dt_page_phase *phase)
{
    call_all_plugins(&(request){.page = p, .phase = phase, .call = SUMMARISE});
}

void dt_plugin_panels_note(const dt_page *p, const dt_page_phase *phase, const char *metric, char *out, size_t bytes)
{
    out[0] = '\0';
    call_all_plugins(
        &(request){.page = p, .phase = phase, .call = NOTE, .metric = metric, .note = out, .note_bytes = bytes});
}

const dt_scene_labels *dt_plugin_panels_labels(const dt_page *p, uint32_t run)
{
    static const char end[] = "env.id/value";
    const dt_flat *config = &p->run[run].config;
    const dt_scene_labels *labels = NULL;
    for (uint32_t i = 0; i < config->n && labels == NULL && p->plugins != NULL; i++) {
        const dt_flat_item *v = &config->item[i];
        const size_t n = strlen(v->path), m = sizeof(end) - 1;
        const dt_loaded *env = NULL;
        if (n < m || strcmp(v->path + n - m, end) != 0 ||
            dt_loader_find(p->plugins->loader, DT_KIND_ENV, v->text, &env) != DT_OK) {
            continue;
        }
        labels = env->desc.extension != NULL ? dt_film_read_labels(env->desc.extension(DT_EXT_SCENE)) : NULL;
    }
    dt_error_clear();
    return labels;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/page.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "telemetry/report/chart.h"
#include "telemetry/report/group.h"
#include "telemetry/report/html.h"
#include "telemetry/report/plugin_panels.h"
#include "dtrain/ext/panels.h"
#include "telemetry/report/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static dt_phase_panel *const phase_panels[] = {dt_panel_write_film, dt_panel_write_evaluation, dt_panel_write_training,
                                               dt_panel_write_costs, dt_panel_write_baselines};
enum { N_PHASE_PANELS = sizeof(phase_panels) / sizeof(phase_panels[0]), MAX_PHASES = 64, MAX_NOTE = 256 };

typedef struct folded { /* opened by a click */
    const char *title;
    dt_phase_panel *panel;
} folded;

static const folded folded_panels[] = {{"Curves of everything recorded", dt_panel_write_curves},
                                       {"Time", dt_panel_write_time},
                                       {"Memory", dt_panel_write_memory}};
enum { N_FOLDED_PANELS = sizeof(folded_panels) / sizeof(folded_panels[0]) };
static const char ENV_STEPS[] = "env_steps";

/* ---- what panels share ------------------------------------------------------------------------------------------- */

const dt_series *dt_page_find_series(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name)
{
    const int32_t at = phase->at[run];
    return at >= 0 ? dt_records_find(p->run[run].records, (uint32_t)at, name) : NULL;
}

double dt_page_last_evaluated(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name)
{
    const dt_series *s = dt_page_find_series(p, phase, run, name);
    return s != NULL && dt_series_has_record(s, phase->evaluated[run]) ? s->value[s->n - 1] : (double)NAN;
}

/* Series of a phase in a run, 0 where the run lacks it. */
static uint32_t count_series_of_run(const dt_page *p, const dt_page_phase *phase, uint32_t run)
{
    const dt_records *r = p->run[run].records;
    const int32_t at = phase->at[run];
    return at < 0 ? 0 : dt_records_series_end(r, (uint32_t)at) - r->phase[at].first_series;
}

dt_status dt_page_list_names(const dt_page *p, const dt_page_phase *phase, const char ***out_p, uint32_t *n_p)
{
    uint32_t most = 1, n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        most += count_series_of_run(p, phase, i);
    }
    const char **name = dt_alloc_n(most, sizeof(*name));
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u names", most);
    }
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_records *r = p->run[i].records;
        if (phase->at[i] < 0) {
            continue;
        }
        const uint32_t first = r->phase[phase->at[i]].first_series; /* series is NULL in a file without any */
        for (uint32_t k = 0; k < count_series_of_run(p, phase, i); k++) {
            const dt_series *s = &r->series[first + k];
            bool is_known = false; /* from a run before it */
            for (uint32_t j = 0; j < i && !is_known; j++) {
                is_known = dt_page_find_series(p, phase, j, s->name) != NULL;
            }
            if (!is_known) {
                name[n++] = s->name;
            }
        }
    }
    *out_p = name;
    *n_p = n;
    return DT_OK;
}

bool dt_page_is_constant(const dt_page *p, const dt_page_phase *phase, const char *name, double *value_p)
{
    *value_p = NAN;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_series *s = dt_page_find_series(p, phase, i, name);
        if (s != NULL) {
            for (uint32_t k = 0; k < s->n; k++) {
                if (isfinite(s->value[k]) && isfinite(*value_p) && s->value[k] != *value_p) {
                    return false;
                }
                *value_p = isfinite(s->value[k]) ? s->value[k] : *value_p;
            }
        }
    }
    return true;
}

bool dt_page_has_course(const dt_page *p, const dt_page_phase *phase, const char *name)
{
    double value = 0;
    bool is_long = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_series *s = dt_page_find_series(p, phase, i, name);
        is_long = is_long || (s != NULL && s->n > 2);
    }
    return is_long && !dt_page_is_constant(p, phase, name, &value);
}

const char *dt_page_x_name(const dt_page_phase *phase)
{
    return phase->is_over_env_steps ? "environment steps" : "training steps";
}

void dt_page_make_curve(const dt_page *p, const dt_page_phase *phase, uint32_t run, const dt_series *s, dt_curve *out)
{
    *out = (dt_curve){.color = p->group[run] % DT_PAGE_COLORS};
    dt_curve_make(p->run[run].records, s,
                  phase->is_over_env_steps ? dt_page_find_series(p, phase, run, ENV_STEPS) : NULL, out);
}

bool dt_page_is_first_of_group(const dt_page *p, uint32_t run)
{
    for (uint32_t i = 0; i < run; i++) {
        if (p->group[i] == p->group[run]) {
            return false;
        }
    }
    return true;
}

uint32_t dt_page_make_curves(const dt_page *p, const dt_page_phase *phase, const char *name, dt_curve *out)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < p->n_runs; i++) {
            const dt_series *s = p->group[i] == g ? dt_page_find_series(p, phase, i, name) : NULL;
            if (s != NULL) {
                dt_page_make_curve(p, phase, i, s, &p->member[members]);
                members += p->member[members].n > 0;
            }
        }
        if (dt_group_average_curve(p->member, members, &out[n])) {
            n++;
        } else {
            memcpy(&out[n], p->member, members * sizeof(*out));
            n += members;
        }
    }
    return n;
}

/* Where a curve could mislead. */
static const char *find_curve_note(const dt_page *p, const dt_page_phase *phase, const char *name, char note[MAX_NOTE])
{
    dt_plugin_panels_note(p, phase, name, note, MAX_NOTE);
    if (note[0] != '\0') {
        return note;
    }
    return strcmp(name, "loss") == 0 && phase->has_env_steps
               ? "A policy's loss does not measure how good it is: every iteration learns from new samples. The return "
                 "of its episodes does."
               : NULL;
}

dt_status dt_page_write_chart(const dt_page *p, const dt_page_phase *phase, const char *name)
{
    const char *slash = strrchr(name, '/');
    char prefix[160] = "", note[MAX_NOTE];
    const uint32_t n = dt_page_make_curves(p, phase, name, p->curve);
    if (slash != NULL) {
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(slash + 1 - name), name);
    }
    const dt_chart chart = {.prefix = prefix,
                            .name = slash != NULL ? slash + 1 : name,
                            .unit = dt_unit_of(name),
                            .x_name = dt_page_x_name(phase),
                            .note = find_curve_note(p, phase, name, note),
                            .curve = p->curve,
                            .n_curves = n,
                            .may_log = true};
    return dt_chart_write(&chart, p->out);
}

/* A run that does not record what it is made of may have one. */
static bool may_have_shield(const dt_flat *config)
{
    static const char end[] = "models.shield/value";
    bool is_recorded = false;
    for (uint32_t i = 0; i < config->n; i++) {
        const dt_flat_item *v = &config->item[i];
        const size_t n = strlen(v->path), m = sizeof(end) - 1;
        if (n >= m && strcmp(v->path + n - m, end) == 0) {
            is_recorded = true;
            if (v->text[0] != '\0') {
                return true;
            }
        }
    }
    return !is_recorded;
}

bool dt_page_is_unused(const dt_page *p, const char *name)
{
    bool is_idle = strncmp(name, "shield/", 7) == 0 || strncmp(name, "eval/shield/", 12) == 0;
    for (uint32_t i = 0; i < p->n_runs && is_idle; i++) {
        is_idle = !may_have_shield(&p->run[i].config);
    }
    return is_idle;
}

void dt_page_write_dot(const dt_page *p, uint32_t run)
{
    if (p->n_runs > 1) {
        dt_str_addf(p->out, "<span class=\"dot c%u\"></span>", p->group[run] % DT_PAGE_COLORS);
    }
}

void dt_page_write_run_name(const dt_page *p, uint32_t run)
{
    if (p->n_runs > 1) {
        dt_page_write_dot(p, run);
        dt_html_escape(p->out, p->run[run].name);
    }
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

/* Phases of all runs: those with the same id, and the same number among such, are one. */
static uint32_t find_phases(const dt_page *p, dt_page_phase phase[MAX_PHASES])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_records *r = p->run[i].records;
        for (uint32_t k = 0; k < r->n_phases; k++) {
            uint32_t j = 0;
            while (j < n && (strcmp(phase[j].id, r->phase[k].id) != 0 || phase[j].at[i] >= 0)) {
                j++;
            }
            if (j == n && n < MAX_PHASES) {
                phase[n].id = r->phase[k].id;
                memset(phase[n++].at, -1, sizeof(phase->at));
            }
            if (j < n) {
                phase[j].at[i] = (int32_t)k;
            }
        }
    }
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t i = 0; i < p->n_runs; i++) {
            const int32_t at = phase[j].at[i];
            phase[j].evaluated[i] = at >= 0 ? dt_records_last_evaluation(p->run[i].records, (uint32_t)at) : UINT32_MAX;
        }
    }
    return n;
}

/* What its curves are drawn over: environment steps where every run records how many it had. */
static void choose_axis(const dt_page *p, dt_page_phase *phase)
{
    phase->is_over_env_steps = true;
    phase->has_env_steps = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_series *s = dt_page_find_series(p, phase, i, ENV_STEPS);
        const bool has = s != NULL && dt_curve_may_use_axis(p->run[i].records, s);
        phase->has_env_steps = phase->has_env_steps || has;
        phase->is_over_env_steps = phase->is_over_env_steps && (has || phase->at[i] < 0);
    }
}

static dt_status write_folded_section(const dt_page *p, const dt_page_phase *phase, const folded *f)
{
    const size_t before = p->out->bytes;
    dt_str_addf(p->out, "<details class=\"panel\"><summary>%s</summary>\n", f->title);
    const size_t empty = p->out->bytes;
    DT_TRY(f->panel(p, phase));
    if (p->out->bytes == empty) { /* it has nothing to show */
        dt_str_cut(p->out, before);
        return DT_OK;
    }
    dt_str_add(p->out, "</details>\n");
    return DT_OK;
}

static dt_status write_phase(const dt_page *p, const dt_page_phase *phase, uint32_t number, uint32_t n)
{
    uint64_t steps = 0, records = 0;
    double env_steps = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (phase->at[i] >= 0) {
            const dt_phase_records *r = &p->run[i].records->phase[phase->at[i]];
            const uint64_t last = p->run[i].records->step[r->first + r->n - 1];
            steps = last > steps ? last : steps;
            records += r->n;
            env_steps = fmax(env_steps, dt_series_last(dt_page_find_series(p, phase, i, ENV_STEPS)));
        }
    }
    dt_str_addf(p->out, "<section id=\"phase-%u\"><h2>", number + 1);
    dt_html_escape(p->out, phase->id);
    dt_str_addf(p->out, "<small>%llu training steps, ", (unsigned long long)steps);
    if (env_steps > 0) {
        dt_str_addf(p->out, "%.0f environment steps, ", env_steps);
    }
    dt_str_addf(p->out, "%llu records", (unsigned long long)records);
    if (n > 1) {
        dt_str_addf(p->out, ", phase %u of %u", number + 1, n);
    }
    dt_str_add(p->out, "</small></h2>\n");
    if (phase->has_env_steps && !phase->is_over_env_steps) {
        dt_str_add(p->out,
                   "<p class=\"note\">Some of these runs do not record their environment steps. Curves are "
                   "over training steps, of which runs may have taken more or fewer from the same experience.</p>\n");
    }
    dt_plugin_panels_draw(p, phase, DT_PANEL_FIRST);
    for (size_t i = 0; i < N_PHASE_PANELS; i++) {
        DT_TRY(phase_panels[i](p, phase));
    }
    dt_plugin_panels_draw(p, phase, DT_PANEL_LAST);
    for (size_t i = 0; i < N_FOLDED_PANELS; i++) {
        DT_TRY(write_folded_section(p, phase, &folded_panels[i]));
    }
    dt_str_add(p->out, "</section>\n");
    return DT_OK;
}

/* top: the sections before those of the phases. */
static void write_contents(const dt_page *p, const dt_page_phase *phase, uint32_t n, const char *top)
{
    dt_str_add(p->out, "<nav><ul>");
    dt_str_add(p->out, strstr(top, "<section id=\"results\">") != NULL
                           ? "<li><a href=\"#results\">Final results</a></li>"
                           : "");
    dt_str_add(p->out, strstr(top, "<section id=\"achieved\">") != NULL
                           ? "<li><a href=\"#achieved\">What was achieved</a></li>"
                           : "");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(p->out, "<li><a href=\"#phase-%u\">", i + 1);
        dt_html_escape(p->out, phase[i].id);
        dt_str_add(p->out, "</a></li>");
    }
    bool has_config = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        has_config = has_config || p->run[i].config.n > 0;
    }
    dt_str_add(p->out, has_config ? "<li><a href=\"#configuration\">Configuration</a></li>" : "");
    dt_str_add(p->out, "<li><a href=\"#machine\">Program and machine</a></li></ul></nav>\n");
}

static dt_status write_top_sections(const dt_page *p, const dt_page_phase *phase, uint32_t n)
{
    dt_str top = {0};
    dt_page q = *p;
    q.out = &top;
    dt_status st = dt_panel_write_groups(&q);
    if (st == DT_OK) {
        st = dt_panel_write_summary(&q, phase, n);
    }
    if (st == DT_OK) {
        st = dt_str_status(&top);
    }
    if (st == DT_OK) {
        write_contents(p, phase, n, dt_str_text(&top));
        dt_str_add(p->out, dt_str_text(&top));
    }
    dt_str_fini(&top);
    return st;
}

static void begin_document(dt_str *out)
{
    dt_str_add(out, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>"
                    "<meta charset=\"utf-8\"/>"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
                    "<meta name=\"generator\" content=\"dtrain " PACKAGE_VERSION "\"/><title>");
}

static void begin_body(dt_str *out)
{
    dt_str_addf(out, "</title>\n<style>\n%s%s%s</style></head><body><main>\n", dt_page_palette, dt_page_style,
                dt_page_film_style);
}

void dt_page_begin(const char *kind, const char *name, dt_str *out)
{
    begin_document(out);
    dt_html_escape(out, name);
    begin_body(out);
    dt_str_addf(out, "<header><p class=\"kind\">%s</p><h1>", kind);
    dt_html_escape(out, name);
    dt_str_add(out, "</h1>");
}

void dt_page_end(dt_str *out)
{
    dt_str_addf(out, "</main>\n<script>\n//<![CDATA[\n%s%s//]]>\n</script></body></html>\n", dt_page_script,
                dt_page_film_script);
}

static dt_status write_page(const dt_page *p)
{
    dt_page_phase phase[MAX_PHASES];
    const uint32_t n = find_phases(p, phase);
    begin_document(p->out);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        dt_str_add(p->out, i > 0 ? ", " : "");
        dt_html_escape(p->out, p->run[i].name);
    }
    begin_body(p->out);
    DT_TRY(dt_panel_write_head(p));
    DT_TRY(write_top_sections(p, phase, n));
    for (uint32_t i = 0; i < n; i++) {
        choose_axis(p, &phase[i]);
        DT_TRY(write_phase(p, &phase[i], i, n));
    }
    DT_TRY(dt_panel_write_config(p));
    DT_TRY(dt_panel_write_machine(p));
    dt_page_end(p->out);
    return dt_str_status(p->out);
}

static dt_status open_runs(const char *const *dir, uint32_t n, dt_logbook *run, uint32_t *n_open_p)
{
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_logbook_open(dir[i], &run[i]));
        ++*n_open_p;
        if (run[i].records->n == 0) {
            return DT_FAIL(DT_EDATA, "%s has nothing to report: no step of it is in metrics.jsonl", dir[i]);
        }
        if (run[i].records->n_bad > 0) {
            dt_log(DT_LOG_WARN, "%s/metrics.jsonl: %llu lines are not records and are left out, the first is line %llu",
                   dir[i], (unsigned long long)run[i].records->n_bad, (unsigned long long)run[i].records->first_bad);
        }
    }
    return DT_OK;
}

static dt_status build_page(const char *const *dir, uint32_t n, const dt_plugin_panels *plugins, dt_str *out)
{
    uint32_t n_open = 0;
    if (n < 1 || n > DT_PAGE_MAX_RUNS) {
        return DT_FAIL(DT_EINVAL, "a report is of 1 to %d runs, not of %u", DT_PAGE_MAX_RUNS, n);
    }
    dt_logbook *run = dt_alloc_n(n, sizeof(*run));
    dt_curve *curve = dt_alloc_n(DT_CHART_MAX_CURVES, sizeof(*curve));
    dt_curve *member = dt_alloc_n(n, sizeof(*member));
    dt_page p = {.run = run, .n_runs = n, .curve = curve, .member = member, .out = out, .plugins = plugins};
    dt_status st = run != NULL && curve != NULL && member != NULL
                       ? DT_OK
                       : DT_FAIL(DT_ENOMEM, "out of memory for a report of %u runs", n);
    if (st == DT_OK) {
        st = open_runs(dir, n, run, &n_open);
    }
    if (st == DT_OK) {
        p.n_groups = dt_group_number_runs(run, n, p.group);
        st = write_page(&p);
    }
    for (uint32_t i = 0; i < n_open; i++) {
        dt_logbook_close(&run[i]);
    }
    dt_free(curve);
    dt_free(member);
    dt_free(run);
    return st;
}

dt_status dt_page_write(const char *const *dir, uint32_t n, const dt_plugin_panels *plugins, const char *path)
{
    dt_str page = {0};
    dt_status st = build_page(dir, n, plugins, &page);
    if (st == DT_OK) {
        st = dt_fs_write_atomic(path, dt_str_text(&page), page.bytes);
    }
    dt_str_fini(&page);
    return st;
}

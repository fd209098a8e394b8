/* SPDX-License-Identifier: Apache-2.0
 *
 * The top of a report: what it is of, and at one glance how far and how good.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fact {
    const char *name;
    char text[192];
    char note_text[160]; /* under it, in small */
} fact;

enum { N_FACTS = 7 };

/* The greatest of all values that a name has in any phase. */
static double greatest_value(const dt_records *r, const char *name)
{
    double most = NAN;
    for (uint32_t i = 0; i < r->n_series; i++) {
        if (strcmp(r->series[i].name, name) == 0) {
            for (uint32_t k = 0; k < r->series[i].n; k++) {
                most = fmax(most, r->series[i].value[k]);
            }
        }
    }
    return most;
}

static void collect_facts(const dt_logbook *l, fact f[N_FACTS])
{
    const dt_run_state *s = &l->state;
    char number[DT_NUMBER_BYTES], time[DT_NUMBER_BYTES];
    memset(f, 0, N_FACTS * sizeof(*f));
    f[0].name = "State";
    snprintf(f[0].text, sizeof(f[0].text), "%s", dt_run_condition_text(s->condition));
    if (s->condition == DT_RUN_FAILED) {
        snprintf(f[0].note_text, sizeof(f[0].note_text), "exit code %d", s->exit_code);
    } else if (s->condition == DT_RUN_STOPPED) {
        snprintf(f[0].note_text, sizeof(f[0].note_text), "in phase %lld of %lld", (long long)s->phase_index + 1,
                 (long long)s->n_phases);
    } else if (s->end[0] != '\0') {
        snprintf(f[0].note_text, sizeof(f[0].note_text), "%s UTC", dt_time_text(s->end, time));
    }
    f[1].name = "Steps";
    snprintf(f[1].text, sizeof(f[1].text), "%llu", (unsigned long long)s->step);
    if (s->steps > 0) {
        snprintf(f[1].note_text, sizeof(f[1].note_text), "of %llu in %s", (unsigned long long)s->steps, s->phase);
    } else {
        snprintf(f[1].note_text, sizeof(f[1].note_text), "of %s", s->phase);
    }
    f[2].name = "Best";
    snprintf(f[2].text, sizeof(f[2].text), "%s", dt_number_text(s->best, number));
    snprintf(f[2].note_text, sizeof(f[2].note_text), "%s %s, at step %llu", s->best_is_min ? "lowest" : "highest",
             s->best_name, (unsigned long long)s->best_step);
    f[3].name = "Last";
    snprintf(f[3].text, sizeof(f[3].text), "%s", dt_number_text(s->last, number));
    snprintf(f[3].note_text, sizeof(f[3].note_text), "%s", s->best_name);
    f[4].name = "Training time";
    dt_duration_text(s->wall_s, number);
    snprintf(f[4].text, sizeof(f[4].text), "%s", number);
    snprintf(f[4].note_text, sizeof(f[4].note_text), "since %s", dt_time_text(s->start, time));
    f[5].name = "Memory";
    snprintf(f[5].text, sizeof(f[5].text), "%s", dt_bytes_text(greatest_value(l->records, "mem/rss"), number));
    snprintf(f[5].note_text, sizeof(f[5].note_text), "resident, at most");
    f[6].name = "Parameters";
    if (s->parameters > 0) {
        snprintf(f[6].text, sizeof(f[6].text), "%llu", (unsigned long long)s->parameters);
        snprintf(f[6].note_text, sizeof(f[6].note_text), "%llu trained in %s", (unsigned long long)s->trained,
                 s->phase);
    } else { /* recorded by a program that did not record it */
        snprintf(f[6].text, sizeof(f[6].text), "%s", dt_number_text(NAN, number));
    }
}

static void write_tiles(const dt_page *p)
{
    fact f[N_FACTS];
    collect_facts(&p->run[0], f);
    dt_str_add(p->out, "<dl class=\"tiles\">");
    for (int i = 0; i < N_FACTS; i++) {
        dt_str_addf(p->out, "<div><dt>%s</dt><dd%s>", f[i].name, i == 0 ? " class=\"word\"" : "");
        dt_html_escape(p->out, f[i].text);
        dt_str_add(p->out, "</dd><dd class=\"note\">");
        dt_html_escape(p->out, f[i].note_text);
        dt_str_add(p->out, "</dd></div>");
    }
    dt_str_add(p->out, "</dl>\n");
}

static void write_table(const dt_page *p)
{
    fact f[N_FACTS];
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th>Run</th><th>State</th><th>Steps</th>"
                       "<th class=\"l\">Best by</th><th>Best</th><th>At step</th><th>Last</th><th>Training time</th>"
                       "<th>Memory</th><th>Parameters</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        collect_facts(&p->run[i], f);
        dt_str_add(p->out, "<tr><th>");
        dt_page_write_run_name(p, i);
        dt_str_addf(p->out, "</th><td>%s</td><td>%s</td><td class=\"l soft\">", f[0].text, f[1].text);
        dt_html_escape(p->out, p->run[i].state.best_name);
        dt_str_addf(p->out, "</td><td>%s</td><td>%llu</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                    f[2].text, (unsigned long long)p->run[i].state.best_step, f[3].text, f[4].text, f[5].text,
                    f[6].text);
    }
    dt_str_add(p->out, "</tbody></table></div>\n");
}

static void write_notes(const dt_page *p)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_records *r = p->run[i].records;
        if (r->n_bad > 0) {
            dt_str_add(p->out, "<p class=\"note\">");
            dt_html_escape(p->out, p->run[i].name);
            dt_str_addf(p->out,
                        ": %llu lines of metrics.jsonl are not records and are left out, the first is line %llu.</p>",
                        (unsigned long long)r->n_bad, (unsigned long long)r->first_bad);
        }
    }
}

dt_status dt_panel_write_head(const dt_page *p)
{
    dt_str_add(p->out, "<header><p class=\"kind\">dtrain report</p><h1>");
    if (p->n_runs == 1) {
        dt_html_escape(p->out, p->run[0].name);
    } else {
        dt_str_addf(p->out, "%u runs side by side", p->n_runs);
        if (p->n_groups < p->n_runs) {
            dt_str_addf(p->out, ", %u configuration%s", p->n_groups, p->n_groups == 1 ? "" : "s");
        }
    }
    dt_str_add(p->out, "</h1></header>\n");
    if (p->n_runs == 1) {
        write_tiles(p);
    } else {
        write_table(p);
    }
    write_notes(p);
    return DT_OK;
}

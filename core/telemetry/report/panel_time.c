/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wall time of a phase went into, by its time/ records, each under its own name: a part is the sum of what
 * the chart of that name shows. Of a phase with environments these are the time in which a round could not continue
 * without them (time/env_wait), the policy and learning; of one that learns from data waiting for data and the rest of
 * its steps. What remains is evaluations, checkpoints and whatever was not measured. time/env is none of the parts: it
 * counts seconds of all workers, while others learn or act too.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "telemetry/report/html.h"
#include "telemetry/report/ranks_text.h"

#include <math.h>
#include <string.h>

typedef struct part {
    const char *text, *record, *css;
    double seconds;
} part;

enum { MAX_PARTS = 5 };

/* Sum of a series. NAN: no such series. first_p: what of it is in the phase's first record. */
static double sum_of_series(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name,
                            double *first_p)
{
    const dt_series *s = dt_page_find_series(p, phase, run, name);
    double sum = s != NULL ? 0 : NAN;
    const dt_phase_records *r = &p->run[run].records->phase[phase->at[run]];
    if (s != NULL) {
        for (uint32_t i = 0; i < s->n; i++) {
            const double value = isfinite(s->value[i]) ? s->value[i] : 0;
            sum += value;
            if (s->at[i] == r->first) {
                *first_p += value;
            }
        }
    }
    return sum;
}

static uint32_t split_time(const dt_page *p, const dt_page_phase *phase, uint32_t run, part out[MAX_PARTS])
{
    const dt_records *r = p->run[run].records;
    const dt_phase_records *h = &r->phase[phase->at[run]];
    double first = 0, of_step = 0; /* of the first record, which began before it was written */
    const double learn = sum_of_series(p, phase, run, "time/learn", &first);
    uint32_t n = 0;
    if (isfinite(learn)) {
        out[n++] = (part){"environments", "time/env_wait", "p0", sum_of_series(p, phase, run, "time/env_wait", &first)};
        out[n++] = (part){"policy", "time/policy", "p2", sum_of_series(p, phase, run, "time/policy", &first)};
        out[n++] = (part){"learning", "time/learn", "p3", learn};
    } else {
        const double wait = sum_of_series(p, phase, run, "time/data_wait", &of_step); /* a part of the step */
        const double reduce = sum_of_series(p, phase, run, "time/reduce", &of_step);
        const double share = sum_of_series(p, phase, run, "time/share", &of_step);
        const double ranks = (isfinite(reduce) ? reduce : 0) + (isfinite(share) ? share : 0);
        const double step = sum_of_series(p, phase, run, "time/step", &first) - ranks;
        out[n++] = (part){"waiting for data", "time/data_wait", "p1", wait};
        out[n++] = (part){"waiting for other ranks", "time/reduce, time/share", "p0", ranks > 0 ? ranks : NAN};
        out[n++] = (part){"computing", "the rest of time/step", "p2", step - (isnan(wait) ? 0 : wait)};
    }
    const double wall = r->wall_s[h->first + h->n - 1] - r->wall_s[h->first] + first;
    double known = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(out[i].seconds) && out[i].seconds >= 0) {
            known += out[i].seconds;
            out[kept++] = out[i];
        }
    }
    if (kept > 0 && wall > known) {
        out[kept++] = (part){"everything else", "", "rest", wall - known};
    }
    return known > 0 ? kept : 0;
}

dt_status dt_panel_write_time(const dt_page *p, const dt_page_phase *phase)
{
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        part parts[MAX_PARTS];
        char ranks[DT_RANKS_TEXT_BYTES];
        const uint32_t n = phase->at[i] >= 0 ? split_time(p, phase, i, parts) : 0;
        double total = 0;
        for (uint32_t k = 0; k < n; k++) {
            total += parts[k].seconds;
        }
        if (n == 0) {
            continue;
        }
        dt_str_add(p->out, is_open ? "" : "<h3>Where the time went</h3>\n");
        is_open = true;
        dt_str_add(p->out, "<div class=\"split\"><p>");
        dt_page_write_run_name(p, i);
        dt_str_add(p->out, "</p><div class=\"bar\">");
        for (uint32_t k = 0; k < n; k++) {
            dt_str_addf(p->out, "<span class=\"%s\" style=\"width:%.2f%%\"></span>", parts[k].css,
                        100 * parts[k].seconds / total);
        }
        dt_str_add(p->out, "</div><ul>");
        for (uint32_t k = 0; k < n; k++) {
            char text[DT_NUMBER_BYTES];
            dt_str_addf(p->out, "<li><span class=\"dot %s\"></span>%s <b>%.1f %%</b> <i>%s</i>%s%s</li>", parts[k].css,
                        parts[k].text, 100 * parts[k].seconds / total, dt_duration_text(parts[k].seconds, text),
                        parts[k].record[0] != '\0' ? " " : "", parts[k].record);
        }
        dt_str_add(p->out, "</ul>");
        if (dt_ranks_describe_waiting(p->run[i].records, (uint32_t)phase->at[i], p->run[i].state.ranks, ranks)) {
            dt_str_add(p->out, "<p>");
            dt_html_escape(p->out, ranks);
            dt_str_add(p->out, "</p>");
        }
        dt_str_add(p->out, "</div>\n");
    }
    return DT_OK;
}

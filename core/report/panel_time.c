/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wall time of a phase went into, from its time/ records: of a phase with environments these, waiting for
 * them, the policy and learning; of one that learns from data waiting for data and computing. The rest is evaluations,
 * checkpoints and whatever nobody measured.
 */
#include <config.h>

#include "report/panel.h"

#include "report/html.h"

#include <math.h>
#include <string.h>

typedef struct part {
    const char *text, *css;
    double seconds;
} part;

enum { MAX_PARTS = 5 };

/* Sum of a series without its first record, whose beginning was not measured. NAN: no such series. */
static double sum_of(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name)
{
    const dt_series *s = dt_page_series(p, phase, run, name);
    double sum = s != NULL ? 0 : NAN;
    const dt_phase_records *r = &p->run[run].records->phase[phase->at[run]];
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        sum += s->at[i] > r->first && isfinite(s->value[i]) ? s->value[i] : 0;
    }
    return sum;
}

static uint32_t split(const dt_page *p, const dt_page_phase *phase, uint32_t run, part out[MAX_PARTS])
{
    const dt_records *r = p->run[run].records;
    const dt_phase_records *h = &r->phase[phase->at[run]];
    const double wall = r->wall_s[h->first + h->n - 1] - r->wall_s[h->first];
    const double learn = sum_of(p, phase, run, "time/learn");
    uint32_t n = 0;
    if (isfinite(learn)) {
        /* who waits steps environments meanwhile, where nobody else does */
        const double wait = sum_of(p, phase, run, "time/env_wait"), env = sum_of(p, phase, run, "time/env");
        out[n++] = (part){"environments", "p0", isfinite(env) ? fmin(env, wait) : wait};
        out[n++] = (part){"waiting for them", "p1", isfinite(env) ? fmax(0, wait - env) : (double)NAN};
        out[n++] = (part){"policy", "p2", sum_of(p, phase, run, "time/policy")};
        out[n++] = (part){"learning", "p3", learn};
    } else {
        const double wait = sum_of(p, phase, run, "time/data_wait");
        out[n++] = (part){"waiting for data", "p1", wait};
        out[n++] = (part){"computing", "p2", sum_of(p, phase, run, "time/step") - (isnan(wait) ? 0 : wait)};
    }
    double known = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(out[i].seconds) && out[i].seconds >= 0) {
            known += out[i].seconds;
            out[kept++] = out[i];
        }
    }
    if (kept > 0 && wall > known) {
        out[kept++] = (part){"everything else", "rest", wall - known};
    }
    return known > 0 ? kept : 0;
}

dt_status dt_panel_time(const dt_page *p, const dt_page_phase *phase)
{
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        part parts[MAX_PARTS];
        const uint32_t n = phase->at[i] >= 0 ? split(p, phase, i, parts) : 0;
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
        dt_page_run(p, i);
        dt_str_add(p->out, "</p><div class=\"bar\">");
        for (uint32_t k = 0; k < n; k++) {
            dt_str_addf(p->out, "<span class=\"%s\" style=\"width:%.2f%%\"></span>", parts[k].css,
                        100 * parts[k].seconds / total);
        }
        dt_str_add(p->out, "</div><ul>");
        for (uint32_t k = 0; k < n; k++) {
            char text[DT_NUMBER_BYTES];
            dt_str_addf(p->out, "<li><span class=\"dot %s\"></span>%s <b>%.1f %%</b> <i>%s</i></li>", parts[k].css,
                        parts[k].text, 100 * parts[k].seconds / total, dt_duration_text(parts[k].seconds, text));
        }
        dt_str_add(p->out, "</ul></div>\n");
    }
    return DT_OK;
}

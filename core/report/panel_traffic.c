/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluated episode from above: a few moments of it, as the last evaluation left them.
 */
#include <config.h>

#include "report/panel.h"

#include "base/err.h"
#include "report/street.h"

static const double WIDE_PX = 1088, NARROW_PX = 520; /* of a picture on a wide screen */

static void write_moments(const dt_page *p, const dt_street *s)
{
    dt_str_addf(p->out, "<div class=\"moments%s\">\n", s->is_wide ? " rows" : "");
    for (uint32_t i = 0; i < s->n_moments; i++) {
        dt_str_add(p->out, "<figure class=\"scene\"><figcaption>");
        dt_street_caption(s, i, p->out);
        dt_str_add(p->out, "</figcaption>");
        dt_street_svg(s, i, s->is_wide ? WIDE_PX : NARROW_PX, NULL, p->out);
        dt_str_add(p->out, "</figure>\n");
    }
    dt_str_add(p->out, "</div>\n");
}

dt_status dt_panel_traffic(const dt_page *p, const dt_page_phase *phase)
{
    uint32_t told = DT_STREET_BYS; /* what the legend speaks of */
    for (uint32_t i = 0; i < p->n_runs; i++) {
        dt_flat f = {0};
        dt_street s = {0};
        if (phase->at[i] < 0) {
            continue;
        }
        dt_status st = dt_logbook_left(&p->run[i], (uint32_t)phase->at[i], ".pictures.json", &f);
        if (st == DT_OK) {
            st = dt_street_read(&f, &s);
        }
        if (st == DT_OK && s.n_moments > 0 && s.road.n > 0) {
            dt_str_add(p->out, told == DT_STREET_BYS ? "<h3>Moments of an evaluated episode</h3>\n" : "");
            if (s.colours != told) {
                dt_street_legend(&s, p->out);
            }
            told = s.colours;
            dt_page_run(p, i);
            write_moments(p, &s);
        }
        dt_street_fini(&s);
        dt_flat_fini(&f);
        DT_TRY(st);
    }
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * An evaluated episode from above: an animation of a part of it, as the last evaluation recorded it.
 */
#include <config.h>

#include "telemetry/report/plugin_panels.h"

#include "base/err.h"
#include "telemetry/report/film_page.h"

#include <math.h>
#include <string.h>

static const double WIDE_PX = 1088, HIGH_PX = 400; /* of a film on a wide screen, at most */
enum { MAX_FILMS = 4 };                            /* of the first runs */

/* legend: of the film before; a film with the same has none. */
static void write_film(const dt_page *p, const dt_film *s, dt_str *legend)
{
    dt_str own = {0};
    dt_film_write_legend(s, &own);
    const bool has_legend = strcmp(dt_str_text(&own), dt_str_text(legend)) != 0;
    const double shape = (s->high[0] - s->low[0]) / (s->high[1] - s->low[1]);
    dt_film_write(s, fmin(WIDE_PX, HIGH_PX * shape), false, has_legend, p->out);
    dt_str_fini(legend);
    *legend = own;
}

dt_status dt_panel_write_film(const dt_page *p, const dt_page_phase *phase)
{
    uint32_t n = 0;
    dt_str legend = {0};
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < p->n_runs && n < MAX_FILMS && st == DT_OK; i++) {
        dt_flat f = {0};
        dt_film s = {0};
        if (phase->at[i] < 0 || !dt_page_is_first_of_group(p, i)) {
            continue;
        }
        st = dt_logbook_read_evaluation(&p->run[i], (uint32_t)phase->at[i], ".pictures.json", &f);
        if (st == DT_OK) {
            st = dt_film_read(&f, &s);
        }
        if (st == DT_OK && s.n_frames > 0 && s.line.n > 0) {
            dt_str_add(p->out, n++ == 0 ? "<h3>Part of an evaluated episode</h3>\n" : "");
            dt_page_write_run_name(p, i);
            s.labels = dt_plugin_panels_labels(p, i);
            write_film(p, &s, &legend);
        }
        dt_film_fini(&s);
        dt_flat_fini(&f);
    }
    dt_str_fini(&legend);
    return st;
}

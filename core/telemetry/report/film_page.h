/* SPDX-License-Identifier: Apache-2.0
 *
 * An episode as one HTML file that plays it (film.js), with nothing to fetch. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_FILM_PAGE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_FILM_PAGE_H

#include "telemetry/report/film.h"

typedef struct dt_film_page {
    const char *title, *note;
    const dt_film *film; /* at least one frame */
} dt_film_page;

dt_status dt_film_page_build(const dt_film_page *p, dt_str *out) DT_NODISCARD;
/* The film alone, for a page with film.js: the first frame, a player, a legend and the frames. It reacts to the wheel
 * and to keys anywhere in the page where is_page is set; otherwise it plays while it is seen, again and again.
 * has_legend: false where the film before has the same. */
void dt_film_write(const dt_film *s, double wide_px, bool is_page, bool has_legend, dt_str *out);
/* One frame as a separate SVG file, light and dark. */
void dt_film_page_write_svg(const dt_film *s, uint32_t frame, dt_str *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * An episode as one HTML file that plays it (film.js), with nothing to fetch. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_FILM_PAGE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_FILM_PAGE_H

#include "telemetry/report/street.h"

typedef struct dt_frames_page {
    const char *title, *note;
    const dt_street *street; /* at least one moment */
} dt_frames_page;

dt_status dt_frames_page_build(const dt_frames_page *p, dt_str *out) DT_NODISCARD;
/* The film alone, for a page with film.js: the first moment, a player, a legend and the moments. It reacts to the wheel
 * and to keys anywhere in the page where is_page is set; otherwise it plays while it is seen, again and again.
 * has_legend: false where the film before has the same. */
void dt_film_write(const dt_street *s, double wide_px, bool is_page, bool has_legend, dt_str *out);
/* One moment as an SVG file of its own, light and dark. */
void dt_frames_page_svg(const dt_street *s, uint32_t moment, dt_str *out);

#endif

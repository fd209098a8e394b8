/* SPDX-License-Identifier: Apache-2.0
 *
 * An episode from above, as a sequence of frames (pictures "traffic/..." of svc/metrics.h), as SVG: lines, bodies
 * coloured by their risk, marks coloured by their state, and a ring around what the shield changed. Risk is predicted
 * by perception or computed by the environment; the legend states which. The environment names what is drawn
 * (dtrain/ext/scene.h). Colours come from the page's style (film.css). Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_FILM_H
#define DTRAIN_CORE_TELEMETRY_REPORT_FILM_H

#include "base/str.h"
#include "dtrain/ext/scene.h"
#include "telemetry/report/flat.h"

enum { DT_FILM_BODY = 9, DT_FILM_MARK = 7, DT_FILM_LINE = 4 }; /* columns */

/* Source of the risk of bodies, as in picture "traffic/colours". */
enum { DT_FILM_RISK_COMPUTED, DT_FILM_RISK_PREDICTED, DT_FILM_RISK_UNTRAINED, DT_FILM_RISKS };

typedef struct dt_film_rows { /* [n, columns] */
    double *value;
    uint32_t n, cap;
} dt_film_rows;

typedef struct dt_film_frame {
    double time_s, delay_s; /* delay_s: mean of the bodies so far; NAN: not known */
    dt_film_rows body, mark;
} dt_film_frame;

typedef struct dt_film {
    const dt_scene_labels *labels; /* of the environment; NULL: general ones */
    dt_film_rows line;
    dt_film_frame *frame;
    uint32_t n_frames, cap_frames;
    double low[2], high[2]; /* of the lines with a margin */
    uint32_t risk_source;   /* DT_FILM_RISK_* */
} dt_film;

/* Labels of an environment's dt_scene_api (or NULL); NULL: it has none, or not all of them. */
const dt_scene_labels *dt_film_read_labels(const void *scene_api);
/* Empty where the file has no lines. Errors: DT_ENOMEM, DT_EDATA (more frames or rows than a page can show). */
dt_status dt_film_read(const dt_flat *f, dt_film *out) DT_NODISCARD;
/* Or table by table, [n / columns, columns] under "traffic/..." (others are left out); then finish. */
dt_status dt_film_add(dt_film *s, const char *key, const double *value, uint32_t n, uint32_t columns) DT_NODISCARD;
void dt_film_remove_invalid(dt_film *s);
void dt_film_fini(dt_film *s);
/* A frame as an <svg>; wide_px: the width it is shown with, so that bodies are large enough to see. style: of a
 * separate file; NULL: within a page. */
void dt_film_write_svg(const dt_film *s, uint32_t frame, double wide_px, const char *style, dt_str *out);
void dt_film_write_legend(const dt_film *s, dt_str *out);
/* All frames for film.js, in their real size: the player enlarges them. */
void dt_film_write_json(const dt_film *s, dt_str *out);

#endif

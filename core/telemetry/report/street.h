/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic from above ("traffic" of svc/metrics.h) as SVG: lanes, vehicles coloured by their risk, lights, and a ring
 * around whatever the shield changed. Risk is what perception predicts, or else the environment's word; the legend says
 * which. Colours come from the page's style (street.css). Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_STREET_H
#define DTRAIN_CORE_TELEMETRY_REPORT_STREET_H

#include "base/str.h"
#include "telemetry/report/flat.h"

enum { DT_STREET_VEHICLE = 9, DT_STREET_SIGNAL = 7, DT_STREET_ROAD = 4 }; /* columns */

/* Where the risk of vehicles comes from, as "traffic/colours" says. */
enum { DT_STREET_BY_TIME, DT_STREET_BY_PERCEPTION, DT_STREET_BY_TIME_UNTAUGHT, DT_STREET_BYS };

typedef struct dt_rows { /* [n, columns] */
    double *value;
    uint32_t n, cap;
} dt_rows;

typedef struct dt_moment {
    double time_s, delay_s; /* delay_s: mean delay of the vehicles so far; NAN: not known */
    dt_rows vehicle, signal;
} dt_moment;

typedef struct dt_street {
    dt_rows road;
    dt_moment *moment;
    uint32_t n_moments, cap_moments;
    double low[2], high[2]; /* of the roads with a margin */
    uint32_t colours;       /* DT_STREET_BY_* */
} dt_street;

/* Empty where the file has no roads. Errors: DT_ENOMEM, DT_EDATA (more moments or rows than a page can show). */
dt_status dt_street_read(const dt_flat *f, dt_street *out) DT_NODISCARD;
/* Or table by table, [n / columns, columns] under "traffic/..." (others are left out); then finish. */
dt_status dt_street_put(dt_street *s, const char *key, const double *value, uint32_t n, uint32_t columns) DT_NODISCARD;
void dt_street_finish(dt_street *s);
void dt_street_fini(dt_street *s);
/* A moment as a whole <svg>; wide_px: how wide it will be shown, so that vehicles are large enough to see. style: of a
 * file of its own; NULL: within a page. */
void dt_street_svg(const dt_street *s, uint32_t moment, double wide_px, const char *style, dt_str *out);
void dt_street_legend(const dt_street *s, dt_str *out);
/* All moments for film.js, everything as large as it is: how much larger it is shown, the player knows. */
void dt_street_json(const dt_street *s, dt_str *out);

#endif

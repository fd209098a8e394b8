/* SPDX-License-Identifier: Apache-2.0
 *
 * A line chart as SVG: thin lines for what was recorded, strong ones for the smoothed curve, hairlines at round
 * values. The numbers themselves are in data-x and data-y of every curve, for the pointer and for readers of the
 * page by a program. Colours come from the page's style. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_CHART_H
#define DTRAIN_CORE_TELEMETRY_REPORT_CHART_H

#include "base/str.h"
#include "telemetry/report/curve.h"

enum { DT_CHART_MAX_CURVES = 33 };

typedef struct dt_chart {
    const char *prefix, *name; /* the title, "losses/" and "nll"; prefix may be "" */
    const char *unit;          /* of the numbers: "s"; "": they have none */
    const char *x_name;        /* below the x axis, and under the pointer: "training step" */
    const char *note;          /* a sentence below the chart; NULL: none */
    const dt_curve *curve;
    uint32_t n_curves;
    bool may_log;
} dt_chart;

/* A whole <figure>; nothing where no curve has a point. */
dt_status dt_chart_write(const dt_chart *c, dt_str *out) DT_NODISCARD;
/* A word-sized line without axes, for tables. */
void dt_sparkline_write(const double *value, uint32_t n, uint32_t color, dt_str *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The points of a curve: all that a series holds where they are few, else what a picture of it can show, the least and
 * the greatest of each piece of the way, so that no spike is lost; and a smoothed line over them, where the numbers are
 * noisy by nature. Drawn over training steps, or over the steps of environments. Threads: any.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_CURVE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_CURVE_H

#include "telemetry/report/records.h"

enum { DT_CURVE_PIECES = 150, DT_CURVE_MAX_POINTS = 2 * DT_CURVE_PIECES };

typedef struct dt_curve {
    uint32_t color;    /* of its run */
    const char *label; /* shown next to its end; NULL: none */
    bool is_reference; /* dashed, without colour: what others are compared with */
    uint32_t n_runs;   /* that it is of (group.h): low and high are its interval; 0: one */
    uint32_t n, n_smooth;
    double last;                                           /* the series' last finite value, as it was recorded */
    double x[DT_CURVE_MAX_POINTS], y[DT_CURVE_MAX_POINTS]; /* finite, x rising */
    double low[DT_CURVE_MAX_POINTS], high[DT_CURVE_MAX_POINTS];
    double smooth_x[DT_CURVE_PIECES], smooth_y[DT_CURVE_PIECES]; /* none where there are few points */
} dt_curve;

/* Smoothed is an exponential mean over about 1/25 of the values, without the pull to its beginning (Kingma & Ba 2015,
 * eq. 3); not of schedules, limits and memory, which have no noise. over: the phase's "env_steps", where they may be an
 * axis; NULL: training steps. */
void dt_curve_make(const dt_records *r, const dt_series *s, const dt_series *over, dt_curve *out);
/* Are these numbers, from the phase's first record on, an axis: finite, and never falling? */
bool dt_curve_may_use_axis(const dt_records *r, const dt_series *over);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The points of a curve: all that a series holds where they are few, else what a picture of it can show, the least and
 * the greatest of each piece of the way, so that no spike is lost; and a smoothed line over them. Threads: any.
 */
#ifndef DTRAIN_CORE_REPORT_CURVE_H
#define DTRAIN_CORE_REPORT_CURVE_H

#include "report/records.h"

enum { DT_CURVE_PIECES = 150, DT_CURVE_MAX_POINTS = 2 * DT_CURVE_PIECES };

typedef struct dt_curve {
    uint32_t color;    /* of its run */
    const char *label; /* told beside its end; NULL: none */
    bool is_reference; /* dashed, without colour: what others are compared with */
    uint32_t n, n_smooth;
    double x[DT_CURVE_MAX_POINTS], y[DT_CURVE_MAX_POINTS];       /* finite, x rising */
    double smooth_x[DT_CURVE_PIECES], smooth_y[DT_CURVE_PIECES]; /* none where there are few points */
} dt_curve;

/* Exponential mean over about 1/25 of the values, without the pull to its beginning (Kingma & Ba 2015, eq. 3). */
void dt_curve_of(const dt_records *r, const dt_series *s, dt_curve *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/map/bounds.h"

#include <math.h>
#include <stdio.h>

void dt_bounds_add(dt_bounds *e, const double at[2])
{
    for (int d = 0; d < 2; d++) {
        e->least[d] = e->has_any ? fmin(e->least[d], at[d]) : at[d];
        e->most[d] = e->has_any ? fmax(e->most[d], at[d]) : at[d];
    }
    e->has_any = true;
}

void dt_bounds_add_all(dt_bounds *e, const double *xy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dt_bounds_add(e, xy + 2 * i);
    }
}

double dt_bounds_gap(const dt_bounds *a, const dt_bounds *b)
{
    double apart[2];
    if (!a->has_any || !b->has_any) {
        return 0;
    }
    for (int d = 0; d < 2; d++) {
        apart[d] = fmax(0, fmax(a->least[d] - b->most[d], b->least[d] - a->most[d]));
    }
    return hypot(apart[0], apart[1]);
}

void dt_bounds_text(const dt_bounds *e, char out[DT_BOUNDS_TEXT_BYTES])
{
    snprintf(out, DT_BOUNDS_TEXT_BYTES, "x %.9g to %.9g, y %.9g to %.9g m", e->least[0], e->most[0], e->least[1],
             e->most[1]);
}

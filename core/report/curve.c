/* SPDX-License-Identifier: Apache-2.0
 *
 * See curve.h.
 */
#include <config.h>

#include "report/curve.h"

#include <math.h>

enum { SMOOTH_FROM = 60 }; /* values; fewer are points to be seen one by one */
static const double SMOOTH_SHARE = 0.04;

static void add(dt_curve *c, double x, double y)
{
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

/* Values [first, end) of s: the least and the greatest of them, in their order. */
static void add_extremes(dt_curve *c, const dt_records *r, const dt_series *s, uint32_t first, uint32_t end)
{
    uint32_t low = end, high = end;
    for (uint32_t i = first; i < end; i++) {
        if (isfinite(s->value[i])) {
            low = low == end || s->value[i] < s->value[low] ? i : low;
            high = high == end || s->value[i] > s->value[high] ? i : high;
        }
    }
    if (low == end) {
        return;
    }
    const uint32_t one = low < high ? low : high, other = low < high ? high : low;
    add(c, (double)r->step[s->at[one]], s->value[one]);
    if (other != one) {
        add(c, (double)r->step[s->at[other]], s->value[other]);
    }
}

static void smooth(dt_curve *c, const dt_records *r, const dt_series *s)
{
    const double keep = 1 - 2 / (fmax(2, SMOOTH_SHARE * s->n) + 1);
    const uint32_t pieces = s->n < DT_CURVE_PIECES ? s->n : DT_CURVE_PIECES;
    double mean = 0, weight = 0;
    uint32_t taken = 0;
    for (uint32_t p = 0; p < pieces; p++) {
        const uint32_t end = (uint32_t)((uint64_t)(p + 1) * s->n / pieces);
        for (; taken < end; taken++) {
            if (isfinite(s->value[taken])) {
                mean = keep * mean + (1 - keep) * s->value[taken];
                weight = keep * weight + (1 - keep);
            }
        }
        if (weight > 0) {
            c->smooth_x[c->n_smooth] = (double)r->step[s->at[end - 1]];
            c->smooth_y[c->n_smooth++] = mean / weight;
        }
    }
}

void dt_curve_of(const dt_records *r, const dt_series *s, dt_curve *out)
{
    out->n = out->n_smooth = 0;
    if (s->n <= DT_CURVE_MAX_POINTS) {
        for (uint32_t i = 0; i < s->n; i++) {
            if (isfinite(s->value[i])) {
                add(out, (double)r->step[s->at[i]], s->value[i]);
            }
        }
    } else {
        for (uint32_t p = 0; p < DT_CURVE_PIECES; p++) {
            const uint32_t first = (uint32_t)((uint64_t)p * s->n / DT_CURVE_PIECES);
            add_extremes(out, r, s, first, (uint32_t)((uint64_t)(p + 1) * s->n / DT_CURVE_PIECES));
        }
    }
    if (s->n >= SMOOTH_FROM) {
        smooth(out, r, s);
    }
}

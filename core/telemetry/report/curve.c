/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/curve.h"

#include <math.h>
#include <string.h>

enum { SMOOTH_FROM = 60 }; /* values; fewer are points to be seen one by one */
static const double SMOOTH_SHARE = 0.04;

typedef struct axis {
    const dt_records *r;
    const dt_series *over; /* NULL: training steps */
    uint32_t next;         /* of over's values: the first after the records asked for so far */
} axis;

/* Records are asked for in their order. One without the number, of an evaluation made later, is where the last was. */
static double piece_of_record(axis *a, uint32_t record)
{
    if (a->over == NULL) {
        return (double)a->r->step[record];
    }
    while (a->next < a->over->n && a->over->at[a->next] <= record) {
        a->next++;
    }
    return a->over->value[a->next > 0 ? a->next - 1 : 0];
}

bool dt_curve_may_use_axis(const dt_records *r, const dt_series *over)
{
    bool is_axis = over->n > 0 && over->at[0] == r->phase[over->phase].first && isfinite(over->value[0]);
    for (uint32_t i = 1; i < over->n && is_axis; i++) {
        is_axis = isfinite(over->value[i]) && over->value[i] >= over->value[i - 1];
    }
    return is_axis;
}

/* Numbers that someone set, or that are not comparable: the mean of several would be none of them. */
static bool may_smooth_metric(const char *name)
{
    static const char *const whole[] = {"lr", "charts/horizon_s", "env_steps", "progress"};
    static const char *const begins[] = {"mem/", "gpu/mem", "amp/", "limits/", "multipliers/"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (strcmp(name, whole[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return false;
        }
    }
    return true;
}

static void add_point(dt_curve *c, double x, double y)
{
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

/* Values [first, end) of s: the least and the greatest of them, in their order. */
static void add_extremes(dt_curve *c, axis *a, const dt_series *s, uint32_t first, uint32_t end)
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
    add_point(c, piece_of_record(a, s->at[one]), s->value[one]);
    if (other != one) {
        add_point(c, piece_of_record(a, s->at[other]), s->value[other]);
    }
}

static void smooth_curve(dt_curve *c, axis *a, const dt_series *s)
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
            c->smooth_x[c->n_smooth] = piece_of_record(a, s->at[end - 1]);
            c->smooth_y[c->n_smooth++] = mean / weight;
        }
    }
}

void dt_curve_make(const dt_records *r, const dt_series *s, const dt_series *over, dt_curve *out)
{
    axis a = {.r = r, .over = over}, again = a;
    out->last = dt_series_last(s);
    out->n = out->n_smooth = 0;
    if (s->n <= DT_CURVE_MAX_POINTS) {
        for (uint32_t i = 0; i < s->n; i++) {
            if (isfinite(s->value[i])) {
                add_point(out, piece_of_record(&a, s->at[i]), s->value[i]);
            }
        }
    } else {
        for (uint32_t p = 0; p < DT_CURVE_PIECES; p++) {
            const uint32_t first = (uint32_t)((uint64_t)p * s->n / DT_CURVE_PIECES);
            add_extremes(out, &a, s, first, (uint32_t)((uint64_t)(p + 1) * s->n / DT_CURVE_PIECES));
        }
    }
    if (s->n >= SMOOTH_FROM && may_smooth_metric(s->name)) {
        smooth_curve(out, &again, s);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUS "\xe2\x88\x92" /* U+2212 */

static const double ROOM = 0.06;       /* of the range, above and below */
static const double WILD = 0.01;       /* share of the numbers, at either end, that may be left outside */
static const double WILD_FACTOR = 4;   /* and only where they make the range so many times larger */
static const double LOG_FACTOR = 100;  /* largest over smallest from which on decades show more */
static const double LARGEST = 1e150;   /* numbers are taken as no larger: a ratio of two of them is one, too */
static const double SMALLEST = 1e-150; /* and an axis is no shorter, nor begins below it where it has decades */
static const double FINEST = 1e-12;    /* of its numbers: a shorter axis has no steps that differ */
static const double FAR = 1000;        /* axes away, a place is as good as any other outside */
static const double ZERO_SHARE = 0.35; /* smallest over largest below which an axis begins at 0 */

static double limit_to_unit_range(double value)
{
    return fmin(LARGEST, fmax(-LARGEST, value));
}

double dt_scale_map(const dt_scale *s, double value)
{
    const double v = limit_to_unit_range(value);
    const double part = s->is_log ? log(v / s->low) / log(s->high / s->low) : (v - s->low) / (s->high - s->low);
    return s->from + fmin(FAR, fmax(-FAR, part)) * (s->to - s->from);
}

/* Long enough for steps. */
static void lengthen_scale(dt_scale *s)
{
    const double least = fmax(SMALLEST, FINEST * fmax(fabs(s->low), fabs(s->high)));
    if (!(s->high - s->low >= least)) {
        s->high = s->low + least;
    }
}

dt_scale dt_scale_of_range(double low, double high, double from, double to)
{
    dt_scale s = {.low = limit_to_unit_range(low),
                  .high = limit_to_unit_range(high > low ? high : low + 1),
                  .from = from,
                  .to = to};
    lengthen_scale(&s);
    return s;
}

/* ---- ticks ------------------------------------------------------------------------------------------------------- */

/* "0.25", "1.5k", "2.0e-4": with the digits that a distance of `step` needs, in the unit of `largest`. */
static void write_tick(double value, double step, double largest, char out[DT_TICK_BYTES])
{
    static const struct {
        double from, unit;
        const char *suffix;
    } units[] = {{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}};
    const double size = fabs(value);
    const char *sign = value < 0 ? MINUS : "";
    double unit = 1;
    char suffix[16] = "";
    if (size < step * 1e-6) {
        snprintf(out, DT_TICK_BYTES, "0");
        return;
    }
    if (step < 2e-4 || largest >= 1e15) {
        const int exponent = (int)floor(log10(largest * 1.0001));
        unit = pow(10, exponent);
        snprintf(suffix, sizeof(suffix), "e%s%d", exponent < 0 ? MINUS : "", abs(exponent));
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && unit == 1; i++) {
        if (largest >= units[i].from) {
            unit = units[i].unit;
            snprintf(suffix, sizeof(suffix), "%s", units[i].suffix);
        }
    }
    const int digits = (int)fmin(6, fmax(0, -floor(log10(step / unit * 1.0001))));
    snprintf(out, DT_TICK_BYTES, "%s%.*f%s", sign, digits, size / unit, suffix);
}

static double round_tick_step(double range, uint32_t most)
{
    const double least = range / most;
    const double power = pow(10, floor(log10(least)));
    const double part = least / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static uint32_t list_log_ticks(const dt_scale *s, uint32_t most, dt_tick tick[DT_SCALE_MAX_TICKS])
{
    static const double parts[] = {1, 2, 5};
    const int first = (int)floor(log10(s->low)), last = (int)floor(log10(s->high));
    const int every = (last - first) / (int)most + 1;                   /* decades between two ticks */
    const size_t n_parts = (last - first + 1) * 3 <= (int)most ? 3 : 1; /* 1, 2, 5 where there is room */
    uint32_t n = 0;
    for (int e = first; e <= last && n < DT_SCALE_MAX_TICKS; e++) {
        for (size_t i = 0; i < n_parts && n < DT_SCALE_MAX_TICKS; i++) {
            const double v = parts[i] * pow(10, e);
            if ((e - first) % every == 0 && v >= s->low * (1 - 1e-9) && v <= s->high * (1 + 1e-9)) {
                tick[n].value = v;
                write_tick(v, v, v, tick[n++].text);
            }
        }
    }
    return n;
}

uint32_t dt_scale_list_ticks(const dt_scale *s, uint32_t most, dt_tick tick[DT_SCALE_MAX_TICKS])
{
    most = most < DT_SCALE_MAX_TICKS ? most : DT_SCALE_MAX_TICKS;
    if (s->is_log) {
        return list_log_ticks(s, most, tick);
    }
    const double step = round_tick_step(s->high - s->low, most);
    const double first = ceil(s->low / step - 1e-9);
    uint32_t n = 0;
    const double largest = fmax(fabs(first * step), fabs(floor(s->high / step + 1e-9) * step));
    for (; n < DT_SCALE_MAX_TICKS && (first + n) * step <= s->high + 1e-9 * step; n++) {
        tick[n].value = (first + n) * step;
        write_tick(tick[n].value, step, largest, tick[n].text);
    }
    return n;
}

/* ---- range ------------------------------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

dt_scale dt_scale_fit(double *values, size_t n, bool may_log, size_t *n_outside_p)
{
    dt_scale s = {.low = 0, .high = 1};
    size_t finite = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            values[finite++] = values[i];
        }
    }
    *n_outside_p = 0;
    if (finite == 0) {
        return s;
    }
    for (size_t i = 0; i < finite; i++) {
        values[i] = limit_to_unit_range(values[i]);
    }
    qsort(values, finite, sizeof(*values), compare_values);
    const size_t wild = (size_t)(WILD * (double)finite);
    double low = values[0], high = values[finite - 1];
    s.is_log = may_log && low >= SMALLEST && high / low > LOG_FACTOR;
    if (s.is_log) {
        const double room = pow(high / low, ROOM);
        s.low = low / room;
        s.high = high * room;
        return s;
    }
    const double tame_low = values[wild], tame_high = values[finite - 1 - wild];
    if (tame_high > tame_low && high - low > WILD_FACTOR * (tame_high - tame_low)) {
        low = tame_low;
        high = tame_high;
        *n_outside_p = 2 * wild;
    }
    if (low == high) {
        const double room = low == 0 ? 1 : 0.5 * fabs(low);
        s.low = low - room;
        s.high = high + room;
        lengthen_scale(&s);
        return s;
    }
    const double room = ROOM * (high - low);
    s.low = low >= 0 && low <= ZERO_SHARE * high ? 0 : low - room;
    s.high = high <= 0 && high >= ZERO_SHARE * low ? 0 : high + room;
    lengthen_scale(&s);
    return s;
}

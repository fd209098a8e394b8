/* SPDX-License-Identifier: Apache-2.0
 *
 * From numbers to places on an axis: ranges that suit the numbers, linear or by decades, and round ticks (1, 2, 5 times
 * a power of ten). Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_SCALE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_SCALE_MAX_TICKS = 12, DT_TICK_BYTES = 24 };

typedef struct dt_scale {
    double low, high; /* of the numbers; low < high */
    double from, to;  /* the places they go to */
    bool is_log;      /* low > 0 then */
} dt_scale;

typedef struct dt_tick {
    double value;
    char text[DT_TICK_BYTES];
} dt_tick;

/* From low to high; a little longer where they are the same, or too near each other for steps. */
dt_scale dt_scale_of_range(double low, double high, double from, double to);
/* What is far outside is put not quite as far. */
double dt_scale_map(const dt_scale *s, double value);
/* At most `most` ticks inside the range, at least two where round numbers allow it. */
uint32_t dt_scale_list_ticks(const dt_scale *s, uint32_t most, dt_tick tick[DT_SCALE_MAX_TICKS]);
/* The range that shows n numbers: room at both ends, from 0 where that costs little, decades where the numbers span
 * more than two of them. A few wild ones that would flatten the rest are left outside and counted. What is not finite
 * is passed over; without any number it is 0 .. 1. values is sorted in place. */
dt_scale dt_scale_fit(double *values, size_t n, bool may_log, size_t *n_outside_p);

#endif

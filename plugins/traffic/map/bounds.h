/* SPDX-License-Identifier: Apache-2.0
 *
 * The box that places lie in, along x and y. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_BOUNDS_H
#define DTRAIN_PLUGINS_TRAFFIC_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_bounds { /* zeroed is of no place */
    double least[2], most[2];
    bool has_any;
} dt_bounds;

void dt_bounds_add(dt_bounds *e, const double at[2]);
void dt_bounds_add_all(dt_bounds *e, const double *xy, int64_t n); /* xy [n,2] */
/* m between two boxes; 0 where they touch, or one is of no place. */
double dt_bounds_gap(const dt_bounds *a, const dt_bounds *b);
/* "x -12.5 to 30, y 4 to 4.5 m" for messages. */
enum { DT_BOUNDS_TEXT_BYTES = 120 };
void dt_bounds_text(const dt_bounds *e, char out[DT_BOUNDS_TEXT_BYTES]);

#endif

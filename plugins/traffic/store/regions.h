/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a scene is cut by place: which region each row of it is in. Regions are rectangles along the axes that share
 * no point and leave none out. They depend on the positions alone. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_REGIONS_H
#define DTRAIN_PLUGINS_TRAFFIC_REGIONS_H

#include "dtrain/plugin.h"

enum { DT_REGIONS_MAX = 65536 }; /* of a scene */

typedef struct dt_regions {
    int32_t n;   /* every one has a row */
    int32_t *of; /* [n_rows] */
} dt_regions;

/* Squares of tile_m > 0 m, the first at the least x and y; those that have a row, by y and then x. pose [n_rows,3],
 * n_rows >= 1. DT_EDATA (too many), DT_ENOMEM. */
dt_status dt_regions_make_tiles(const double *pose, int64_t n_rows, double tile_m, dt_regions *out) DT_NODISCARD;
/* n >= 1 regions of about as many rows each: the box of all is cut across its longer side, at one of 4096 places, and
 * so are its parts. No cut leaves less than least_m on a side. DT_EDATA, DT_ENOMEM. */
dt_status dt_regions_make_halves(const double *pose, int64_t n_rows, int32_t n, double least_m, dt_regions *out)
    DT_NODISCARD;
void dt_regions_fini(dt_regions *r); /* zeroed is fine */

#endif

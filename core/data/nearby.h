/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles of one frame on a grid of square cells, sorted by cell: who lies in a cell or one of the eight around it
 * lies in three stretches of arrays. For features_graph.c. Threads: one object, one thread.
 */
#ifndef DTRAIN_CORE_DATA_NEARBY_H
#define DTRAIN_CORE_DATA_NEARBY_H

#include "dtrain/svc/features.h"

enum { DT_NEARBY_PAD = 4 }; /* values behind the last vehicle that may be read, as vectors do */

typedef struct dt_nearby_cell { /* a cell with somebody in it: its own column of cells and the two beside it */
    uint32_t begin[3], end[3];
} dt_nearby_cell;

typedef struct dt_nearby { /* room for cap vehicles, of all arrays */
    uint64_t *key;         /* [cap] cells of vehicles, as numbers in the order of the sort */
    uint32_t *order;       /* [cap] vehicles by cell, those of one cell by number */
    uint32_t *spare;       /* [cap] of the sort, then the cell of each vehicle, a number in cell[] */
    double *x, *y, *width; /* [cap + DT_NEARBY_PAD] in that order, a missing width filled in */
    dt_nearby_cell *cell;  /* [cap] */
    uint32_t cap;
} dt_nearby;

/* v [n], n in [1, cap]; cells of side_m; width_m: of a vehicle whose width is missing. Positions are
 * at most 1e7 m from the origin, and side_m is 0.1 at least. */
void dt_nearby_build(dt_nearby *g, const dt_vehicle *v, uint32_t n, double side_m, double width_m);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles of one frame on a grid of square cells, sorted by cell: the vehicles in a cell or one of the eight
 * around it are in three stretches of arrays. For features_graph.c. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_NEARBY_H
#define DTRAIN_PLUGINS_TRAFFIC_NEARBY_H

#include "dtrain/traffic/features.h"

#include <stddef.h>

/* A vehicle whose heading is unknown: one that stands is still a neighbour of others, one that moves is none. */
enum { DT_HEADING_KNOWN, DT_HEADING_STANDS, DT_HEADING_MOVES };
enum { DT_NEARBY_PAD = 8 }; /* values past the last vehicle that may be read, as vectors do */

typedef struct dt_nearby_cell { /* a cell with a vehicle in it: its own column of cells and the two adjacent ones */
    uint32_t begin[3], end[3];
    double likely_d2; /* of features_graph.c; 0 after building */
} dt_nearby_cell;

typedef struct dt_nearby { /* room for cap vehicles, of all arrays */
    uint64_t *key;         /* [cap] cells of vehicles, as numbers in the order of the sort */
    uint32_t *order;       /* [cap] vehicles by cell, those of one cell by number */
    uint32_t *spare;       /* [cap] of the sort, then the cell of each vehicle, a number in cell[] */
    uint32_t *place;       /* [cap] where each vehicle is in that order */
    double *x, *y, *width; /* [cap + DT_NEARBY_PAD] in that order, a missing width filled in */
    dt_nearby_cell *cell;  /* [cap] */
    /* of features.c and features_graph.c */
    double *sin_h, *cos_h;  /* [cap] of headings of vehicles */
    double *d2;             /* [cap + DT_NEARBY_PAD] squared distances from one vehicle, in that order */
    int32_t *ahead;         /* [cap] vehicles ahead on its path */
    const uint8_t *unknown; /* [n] DT_HEADING_* of vehicles; NULL: all headings are known */
    uint32_t cap;
    void *room; /* all of these */
} dt_nearby;

/* Bytes of the arrays for cap vehicles, and their places in a room of that size, aligned like a double. */
#define DT_NEARBY_BYTES(cap)                                                                                           \
    ((size_t)(cap) * (sizeof(uint64_t) + 6 * sizeof(double) + sizeof(dt_nearby_cell) + 4 * sizeof(int32_t)) +          \
     4 * DT_NEARBY_PAD * sizeof(double))
void dt_nearby_init(dt_nearby *g, uint32_t cap, void *room);
/* v [n], n in [1, cap]; cells of side_m; width_m: of a vehicle whose width is missing. Positions are
 * at most 1e7 m from the origin, and side_m is 0.1 at least. */
void dt_nearby_build(dt_nearby *g, const dt_vehicle *v, uint32_t n, double side_m, double width_m);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The lanes of a store cut into pieces of about 15 m, which perception sees as nodes of a graph; made once, before
 * windows are read. Pieces of a lane are equally long, follow each other in its direction, and come in the order of
 * their lanes, so that those of a map stand together. Lanes for people on foot and on bicycles have none.
 *
 * Whatever is told of a piece is told in its own frame (origin the middle between its ends, x axis from its first end
 * to its last). Speed limits are not told, and neither is whether one is known: lanes.h says why.
 * Threads: init and fini [main], reading [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_PIECES_H
#define DTRAIN_DATA_TRAJECTORY_PIECES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/store.h"
#include "lanes.h"

/* What an edge says of its source, seen from its target. */
enum { PIECES_SELF, PIECES_NEXT, PIECES_PREVIOUS, PIECES_LEFT, PIECES_RIGHT, PIECES_AHEAD, PIECES_RELATIONS };
enum {
    PIECES_COLUMNS = 14,
    PIECES_EDGE_COLUMNS = PIECES_RELATIONS + 4,
    PIECES_AHEAD_BY = 4 /* pieces on, through the successors that turn least */
};
#define PIECES_REACH_M 160.0 /* pieces that far from a vehicle are seen; some are that are a cell further */
#define PIECES_NEAR_M  12.0  /* and looked at for the nearest ones */

typedef struct piece {
    double x, y, cos_h, sin_h; /* frame */
    double from[2], to[2];     /* its ends */
    double heading, length;    /* of the frame's x axis, rad; m from end to end */
    double turn;               /* rad, how much its direction changes along it */
    double width;              /* m */
    int32_t lane;
    bool parts, meets, ends; /* ways part at its last end, meet at its first one, there is no way on */
} piece;

typedef struct pieces_edge {
    int32_t source, relation;
} pieces_edge;

/* Squares of the plane, and of each the pieces whose boxes, grown by a reach, touch it; ascending. */
typedef struct pieces_cell {
    int64_t map, x, y, first;
} pieces_cell;
typedef struct pieces_grid {
    double cell_m;
    pieces_cell *cell; /* [n + 1] owned, ascending; the last one only ends the list before it */
    int32_t *item;     /* owned */
    int64_t *of_map;   /* [n_maps + 1] owned: cells of a map */
    int64_t n;
} pieces_grid;

typedef struct pieces {
    const dt_host *h;
    const dt_store_view *v;
    piece *piece;          /* [n] owned */
    int64_t *of_lane;      /* [n_lanes + 1] owned: pieces of a lane */
    int64_t *edge_ptr;     /* [n + 1] owned */
    pieces_edge *edge;     /* owned: of each target itself, then what comes next, before, left, right and ahead */
    pieces_grid far, near; /* PIECES_REACH_M, PIECES_NEAR_M */
    int64_t n;
} pieces;

/* Of a store with roads. l: its measures, kept by the caller while this lasts. Errors: DT_EDATA (more lanes than can be
 * cut, store is the name to tell), DT_ENOMEM. */
dt_status pieces_init(pieces *p, const dt_host *h, const lanes *l, const char *store);
void pieces_fini(pieces *p); /* zeros are fine */

/* Cell of a place, -1: no piece is in its reach. */
int64_t pieces_cell_at(const pieces_grid *g, int64_t map, double x, double y);

/* flip -1: mirrored, left is right. out [PIECES_COLUMNS], [PIECES_EDGE_COLUMNS]: dtrain/shapes.h */
void pieces_tell(const pieces *p, int64_t i, double flip, float *out);
void pieces_tell_edge(const pieces *p, int64_t target, const pieces_edge *e, double flip, float *out);

#endif

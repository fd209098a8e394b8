/* SPDX-License-Identifier: Apache-2.0
 *
 * Where vehicles of a recording are on its roads: the lane of each, the way that this lane leads, and which vehicle
 * drives ahead on it and next to it. Everything is expressed in the vehicle's own frame (origin its position, x axis
 * its heading), so that it means the same for any orientation of a scene.
 *
 * A vehicle's lane is the one with the least |offset| + 3 m per rad between the headings, of those within reach that
 * point its way; lanes for people on foot and on bicycles are not looked at. Its path is the centre line from there on,
 * shifted laterally by the vehicle's offset: through successors, where there are several the one that turns least, and
 * straight on where the road ends. A vehicle without a lane has a straight path along its heading.
 * Speed limits are not included: of the recordings at hand one site has one limit nearly everywhere and the other none,
 * so that they would distinguish sites and little else.
 * Threads: init and fini [main], reading [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_LANES_H
#define DTRAIN_DATA_TRAJECTORY_LANES_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/features.h"
#include "dtrain/traffic/store.h"

#include <stdbool.h>

enum {
    LANES_PATH = 41,        /* rows of path: 160 m, 4 m each */
    LANES_PATH_COLUMNS = 4, /* dx dy of a piece, change of the normal along it */
    LANES_AHEAD = 4,        /* vehicles ahead on the own path that are reported */
    LANES_BESIDE = 2,       /* and ahead on each side */
    LANES_SLOT = 4,         /* nearness, how much faster, there, acceleration */
    LANES_OWN = 16,
    LANES_FOLLOWED_S = 5, /* seconds of what following gives */
    LANES_COLUMNS = LANES_OWN + (LANES_AHEAD + 2 * LANES_BESIDE) * LANES_SLOT + LANES_FOLLOWED_S
};
#define LANES_STEP_M 4.0 /* of a piece of the path */
#define LANES_REACH_M                                                                                                  \
    (LANES_STEP_M * LANES_PATH) /* no vehicle further away is reported; a path begins a lane's width to the side */

typedef struct lanes {
    const dt_host *h;
    const dt_store_view *v;
    double *at;      /* [n_lane_points] owned: m along the lane */
    double *box;     /* [n_lanes,4] owned: least x y, greatest x y */
    int32_t *n_into; /* [n_lanes] owned: lanes that lead into it */
    int64_t past;    /* frames before the one that is read that may be looked at */
} lanes;

/* Has the store roads? */
bool lanes_available(const dt_store_view *v);
/* Errors: DT_ENOMEM. A store without roads is fine: all paths are straight then. */
dt_status lanes_init(lanes *l, const dt_host *h, const dt_store_view *v, int64_t past);
void lanes_fini(lanes *l); /* zeros are fine */

/* Not for people on foot or on bicycles. */
bool lanes_is_driven(int32_t kind);

typedef struct lane_place {
    int64_t lane;                 /* -1: none */
    double s, side, heading, gap; /* m along it and to its left, rad its direction there, m to its nearest point */
} lane_place;

/* Where a vehicle of a map's roads is; map -1: nowhere. */
lane_place lanes_find(const lanes *l, int64_t map, const double pose[3]);

/* Of the vehicles of a frame, in its order, n = rows of the frame, node [n,9] its features:
 *   lane [n, LANES_COLUMNS], path [n, LANES_PATH, LANES_PATH_COLUMNS]: traffic/ports.h
 * flip -1: mirrored, left is right. Cost: the square of n. Errors: DT_ENOMEM. */
dt_status lanes_read(const lanes *l, int64_t scene, int64_t frame, const float *node, double flip, float *lane,
                     float *path);

#endif

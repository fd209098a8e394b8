/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "traffic.features/1" of the plugin traffic, which is part of dtrain: the one function that turns the vehicles
 * of a frame into graph features, for recordings, simulations and SUMO alike. Features and units: ports.h; geometry:
 * plugins/traffic/features/features.h.
 * Threads: [any].
 */
#ifndef DTRAIN_TRAFFIC_FEATURES_H
#define DTRAIN_TRAFFIC_FEATURES_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_FEATURES "traffic.features/1"

enum { DT_NODE_FEATURES = 9, DT_EDGE_FEATURES = 4, DT_NEIGHBOURS = 16 };

/* What brings features to order 1 for models, x and y after the mean position of the frame was taken off: (f + shift)
 * scale, the same for every source of vehicles. Lateral offsets come in lane widths. */
/* clang-format off */
#define DT_NODE_SHIFT {0, 0, 0, 0, 0, 0, -5, -200, 0} /* stop line unknown or far: 0 */
#define DT_NODE_SCALE {1 / 30.f, 1 / 30.f, 1 / 10.f, 1 / 2.f, 1, 1, 1 / 4.f, -1 / 100.f, 1}
#define DT_EDGE_SCALE {1 / 20.f, 1 / 4.f, 1 / 5.f, 1}
/* clang-format on */

typedef struct dt_vehicle {
    double x, y;          /* m, centre, relative to the scene's origin */
    double heading;       /* rad, counter-clockwise from +x; of a recording NAN where unknown, which frame rejects */
    double speed, accel;  /* m/s, m/s^2; accel NAN where missing */
    double length, width; /* m; width NAN where missing */
    double stop_distance; /* m to the stop line or lane end; NAN where unknown */
    int64_t id;
    uint32_t controlled, reserved;
} dt_vehicle;

/* Pairs of a follower and what it must not run into, as shields read them (traffic/ports.h). */
enum { DT_PAIR_COLUMNS = 7, DT_AHEAD_PAIRS = 3, DT_BESIDE_PAIRS = 4 };

typedef struct dt_pair_desc {
    double action_s, euler_s;  /* s, columns 5 and 6 */
    double brake, other_brake; /* m/s^2, > 0: the hardest that the vehicle itself, and that others can brake */
} dt_pair_desc;

typedef struct dt_features_api {
    uint32_t struct_size, reserved;
    /* node [n,9], rowptr [n+1], col and edge [rowptr[n]] and [rowptr[n],4]; room for n * k_max edges is the caller's.
     * Neighbours within radius_m, at most k_max per target, self first. Errors: DT_EINVAL, DT_ENOMEM. */
    dt_status (*frame)(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, float *node,
                       int32_t *rowptr, int32_t *col, float *edge);
    /* Of vehicle i of v [n], by geometry alone, plugins/traffic/features/pairs.h: ahead [3,7], beside [4,7]. */
    void (*pairs)(const dt_vehicle *v, uint32_t n, uint32_t i, const dt_pair_desc *d, float *ahead, float *beside);
} dt_features_api;

#ifdef __cplusplus
}
#endif
#endif

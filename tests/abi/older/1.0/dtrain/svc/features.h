/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.features/1": the one function that turns the vehicles of a frame into graph features, for
 * recordings, simulations and SUMO alike. Features and units: INTERFACES table; geometry: core/data/features.h.
 * Threads: [any].
 */
#ifndef DTRAIN_SVC_FEATURES_H
#define DTRAIN_SVC_FEATURES_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_FEATURES "dtrain.features/1"

enum { DT_NODE_FEATURES = 9, DT_EDGE_FEATURES = 4, DT_NEIGHBOURS = 16 };

typedef struct dt_vehicle {
    double x, y;          /* m, centre, relative to the scene's origin */
    double heading;       /* rad, counter-clockwise from +x */
    double speed, accel;  /* m/s, m/s^2; accel NAN where missing */
    double length, width; /* m; width NAN where missing */
    double stop_distance; /* m to the stop line or lane end; NAN where unknown */
    int64_t id;
    uint32_t controlled, reserved;
} dt_vehicle;

typedef struct dt_features_api {
    uint32_t struct_size, reserved;
    /* node [n,9], rowptr [n+1], col and edge [rowptr[n]] and [rowptr[n],4]; room for n * k_max edges is the caller's.
     * Neighbours within radius_m, at most k_max per target, self first. Errors: DT_EINVAL, DT_ENOMEM. */
    dt_status (*frame)(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, float *node,
                       int32_t *rowptr, int32_t *col, float *edge);
} dt_features_api;

#ifdef __cplusplus
}
#endif
#endif

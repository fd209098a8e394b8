/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph features of one frame of traffic: the one function for recordings, simulations and SUMO alike (service
 * "traffic.features/1" hands it to plugins). Nothing here looks at the future, except the risk label, which is one.
 *
 * Node features [n,9], unnormalised:
 *   0 x, 1 y           m      as given: relative to the scene's origin, not rotated
 *   2 speed            m/s
 *   3 acceleration     m/s^2  as given; 0 where missing (callers with a past fill it first: dt_accel_from_speed)
 *   4 sin, 5 cos       1      of the heading, counter-clockwise from +x; both 0 where it is unknown
 *   6 length           m
 *   7 stop distance    m      to the stop line or lane end, clamped to [0, 200]; 200 where unknown
 *   8 controlled       0/1
 *
 * Edge features [e,4] of source j seen from target i. Let (dx, dy) be j's centre minus i's, rotated into i's heading
 * frame (x forward, y left), L the lengths, v the speeds, a = heading_j - heading_i, side = +1 where dx >= 0, else -1:
 *   0 longitudinal gap m      side * max(0, |dx| - (L_i + L_j) / 2): bumper to bumper, negative behind, 0 where the two
 *                             overlap along the axis
 *   1 lateral offset   m      dy
 *   2 closing speed    m/s    side * (v_i - v_j cos a): how fast the gap along i's axis shrinks, negative when it opens
 *   3 inverse TTC      1/s    0 where closing <= 0; else min(10, closing / |gap|), 10 where the gap is 0
 * The edge to itself is all zeros. A vehicle whose heading is unknown (NAN) has no other edge, and its inverse TTC is
 * NAN. Nor is it a source of others unless it stands, below 0.1 m/s; then its speed counts as 0.
 *
 * Neighbours of i: i itself first, then the vehicles whose centre is within the radius (at most, inclusive), nearest
 * first, ties by lower index, at most k_max edges in all.
 *
 * Inverse TTC on the path, for the risk label: the largest edge feature 3 over ALL vehicles within the radius (not only
 * the k_max nearest) that lie ahead (dx > 0) and overlap i's straight path: |dy| < (width_i + width_j) / 2. A missing
 * width counts as 1.8 m. NAN where it is unknown: a vehicle without a heading moves there, and none is dangerous.
 *
 * Threads: any; a workspace belongs to one thread at a time.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_FEATURES_H
#define DTRAIN_PLUGINS_TRAFFIC_FEATURES_H

#include "traffic/features/nearby.h"
#include "dtrain/traffic/features.h"

#include <stdbool.h>

#define DT_RADIUS_M            50.0 /* default neighbourhood */
#define DT_STOP_DISTANCE_MAX_M 200.
#define DT_ITTC_MAX            10.0 /* 1/s */
#define DT_WIDTH_DEFAULT_M     1.8  /* a passenger car; only where the source gives none */
#define DT_LENGTH_DEFAULT_M    4.5  /* the same */
#define DT_POSITION_MAX_M      1e7  /* farther from the origin nothing can be distinguished in f32 */
#define DT_SPEED_MAX_MPS       150.0
#define DT_HEADING_MAX         1e6 /* rad */
#define DT_SIZE_MAX_M          100.0
#define DT_STANDS_MPS          0.1 /* below, a speed needs no direction */

/* Names of the features, in order. */
extern const char *const dt_node_feature_name[DT_NODE_FEATURES];
extern const char *const dt_edge_feature_name[DT_EDGE_FEATURES];

/* Scratch memory that grows to the largest frame seen and stays. Zeroed is ready; fini frees. */
typedef struct dt_features_work {
    dt_nearby grid;
} dt_features_work;

/* Features of one frame.
 *   v [n]   node [n,9] f32   rowptr [n+1] i32   col [<= n*k_max] i32 index into v   edge [<= n*k_max, 4] f32
 *   path_ittc [n] f32, 1/s, NULL when not wanted
 *   radius_m > 0, k_max >= 1; heading, width and stop_distance may be NAN
 * work: NULL allocates and frees inside, but for frames of at most 1024 vehicles. Vehicles on a grid of cells of one
 * radius: cost O(n * vehicles around).
 * DT_EINVAL (a value out of range, with the vehicle's id; more vehicles in one place than fit there), DT_ENOMEM. */
dt_status dt_features_frame(dt_features_work *work, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                            float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc) DT_NODISCARD;
/* At most so many vehicles may be in a square of such a side, or of the radius where that is smaller: one per square
 * metre, more than fit. The label of risk is a maximum over all vehicles within the radius, so that each pair is
 * compared; this bounds the pairs of a vehicle by the area around it, whatever a file contains. */
#define DT_CROWD_MOST   4096
#define DT_CROWD_SIDE_M 64.0
/* Whatever dt_features_frame refuses: frames that pass can then only lack memory. DT_EINVAL, DT_ENOMEM. */
dt_status dt_features_check(const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max) DT_NODISCARD;
void dt_features_work_fini(dt_features_work *work);
extern const dt_features_api dt_features_service; /* DT_SVC_FEATURES: the same, for plugins */

/* Acceleration where it is missing, from the past alone: (speed - speed_before) / seconds_between. */
double dt_accel_from_speed(double speed_before, double speed, double seconds_between);

/* Risk label. Dangerous now: TTC on the path under 1.5 s, or braking harder than 3 m/s^2. */
#define DT_RISK_TTC_S   1.5
#define DT_RISK_BRAKE   3.0 /* m/s^2 */
#define DT_RISK_AHEAD_S 3.0
enum {
    DT_RISK_NEGATIVE = 0,
    DT_RISK_POSITIVE = 1, /* dangerous in one of the future frames within 3 s, and not now */
    DT_RISK_NOW = 2,      /* dangerous in this very frame: nothing left to predict, AUROC leaves it out */
    DT_RISK_UNKNOWN = 3   /* no danger seen, but its next 3 s are not recorded to the end */
};
static inline bool dt_risk_is_now(double accel, double path_ittc)
{
    return accel < -DT_RISK_BRAKE ||
           (float)path_ittc > (float)(1.0 / DT_RISK_TTC_S); /* 1.5 s itself is not under 1.5 s */
}

#endif

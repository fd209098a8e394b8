/* SPDX-License-Identifier: Apache-2.0
 *
 * Poses of a vehicle as rows of a sequence of role world (traffic/ports.h), for environments that show a past: port
 * "past". Between two poses motion is taken as straight. Threads: [any].
 */
#ifndef DTRAIN_TRAFFIC_MOTION_H
#define DTRAIN_TRAFFIC_MOTION_H

#include <math.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DT_MOTION_COLUMNS = 7 }; /* motion [6] of role world, 1 where the vehicle was there */
#define DT_MOTION_STEP_TOL 1e-6 /* of a step: times closer than this are the same */

#define DT_MOTION_TURN 6.283185307179586 /* rad */

typedef struct dt_motion_pose { /* of its middle */
    double x, y, heading, v, a;
} dt_motion_pose;

/* Poses of the simulation that a sequence of T steps reaches back over, this one included. */
static inline int64_t dt_motion_frames(int64_t T, double every_s, double dt_s)
{
    return (int64_t)ceil((double)(T - 1) * every_s / dt_s - DT_MOTION_STEP_TOL) + 1;
}

/* p becomes the pose that is `share` of the way back to the older one; its acceleration stays. */
static inline void dt_motion_interpolate(dt_motion_pose *p, const dt_motion_pose *older, double share)
{
    p->x += share * (older->x - p->x);
    p->y += share * (older->y - p->y);
    p->v += share * (older->v - p->v);
    p->heading += share * remainder(older->heading - p->heading, DT_MOTION_TURN);
}

/* row [DT_MOTION_COLUMNS]: then, ago_s before now, in the frame of now. */
static inline void dt_motion_row(const dt_motion_pose *now, const dt_motion_pose *then, double ago_s, float *row)
{
    const double cos_h = cos(now->heading), sin_h = sin(now->heading);
    const double dx = then->x - now->x, dy = then->y - now->y, turned = then->heading - now->heading;
    row[0] = (float)(dx * cos_h + dy * sin_h + now->v * ago_s);
    row[1] = (float)(dy * cos_h - dx * sin_h);
    row[2] = (float)cos(turned);
    row[3] = (float)sin(turned);
    row[4] = (float)then->v;
    row[5] = (float)then->a;
    row[6] = 1;
}

#ifdef __cplusplus
}
#endif
#endif

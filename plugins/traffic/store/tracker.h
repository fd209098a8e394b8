/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles in sight while a scene streams by: what is remembered of each from frame to frame. A vehicle out of
 * sight for more than DT_TRACK_GAP_S is forgotten, so memory follows the density of traffic and not the length of the
 * recording. Open addressing with linear probing. Threads: one table, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_TRACKER_H
#define DTRAIN_PLUGINS_TRAFFIC_TRACKER_H

#include "traffic/store/smooth.h"
#include "dtrain/status.h"

#include <stdbool.h>

#define DT_TRACK_GAP_S 1.0 /* out of sight for longer: a new track */

/* About a second of one vehicle, of which units.h compares positions, speeds, headings and accelerations. */
typedef struct dt_units_window { /* zeroed: none is open */
    bool is_open, has_heading, has_accel;
    int32_t rows;
    double s;                                                  /* its length so far */
    double x, y, heading, speed;                               /* where it began */
    double last_speed, last_accel;                             /* of the row before */
    double path, change;                                       /* m, m/s: integrals of |speed| and of acceleration */
    double speed_range[2], magnitude_range[2], accel_range[2]; /* least and most */
} dt_units_window;

typedef struct dt_tracked_vehicle {
    int64_t id, frame;     /* frame it was last seen in (the caller sets it), -1 = free slot */
    double speed;          /* m/s, for missing accelerations */
    dt_past_mean accel;    /* smoothed */
    int32_t track;         /* number in the store */
    int32_t is_single;     /* seen in one frame so far */
    double last_x, last_y; /* m, where it was in that frame (the caller sets it) */
    bool has_heading;      /* one was given, or it has moved a metre since it came in sight */
    int64_t line;          /* of the table it came from */
    dt_units_window window;
    double x, y, heading; /* m, rad: where the last direction of travel was taken, and that direction */
} dt_tracked_vehicle;

typedef struct dt_tracker {
    dt_tracked_vehicle *slot;
    size_t cap, n;
    int64_t gap;   /* frames */
    uint64_t seed; /* of the hash: dt_names_seed */
} dt_tracker;

void dt_tracker_init(dt_tracker *t, double frame_rate_hz);
void dt_tracker_clear(dt_tracker *t);
void dt_tracker_fini(dt_tracker *t);
/* The vehicle's entry; a new one is zeroed but for id and frame. Valid until the next call. DT_ENOMEM. */
dt_status dt_tracker_get(dt_tracker *t, int64_t id, int64_t frame, dt_tracked_vehicle **out_p, bool *is_new_p)
    DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The vehicles in sight while a scene streams by: what is remembered of each from frame to frame. A vehicle out of
 * sight for more than DT_TRACK_GAP_S is forgotten, so memory follows the density of traffic and not the length of the
 * recording. Open addressing with linear probing. Threads: one table, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_LIVE_H
#define DTRAIN_PLUGINS_TRAFFIC_LIVE_H

#include "traffic/import/smooth.h"
#include "traffic/import/units.h"
#include "dtrain/status.h"

#include <stdbool.h>

#define DT_TRACK_GAP_S 1.0 /* out of sight for longer: a new track */

typedef struct dt_live_vehicle {
    int64_t id, frame;      /* frame it was last seen in (the caller sets it), -1 = free slot */
    double speed;           /* m/s, for missing accelerations */
    dt_past_mean accel;     /* smoothed */
    int32_t track;          /* number in the store */
    int32_t is_single;      /* seen in one frame so far */
    double last_x, last_y;  /* m, where it was in that frame (the caller sets it) */
    bool has_heading;       /* one was given, or it has moved a metre since it came in sight */
    int64_t line;           /* of the table it came from */
    dt_units_window window; /* of what is compared with each other, units.h */
    double x, y, heading;   /* m, rad: where the last direction of travel was taken, and that direction */
} dt_live_vehicle;

typedef struct dt_live {
    dt_live_vehicle *slot;
    size_t cap, n;
    int64_t gap;   /* frames */
    uint64_t seed; /* of the hash: dt_names_seed */
} dt_live;

void dt_live_init(dt_live *t, double frame_rate_hz);
void dt_live_clear(dt_live *t);
void dt_live_fini(dt_live *t);
/* The vehicle's entry; a new one is zeroed but for id and frame. Valid until the next call. DT_ENOMEM. */
dt_status dt_live_get(dt_live *t, int64_t id, int64_t frame, dt_live_vehicle **out_p, bool *is_new_p) DT_NODISCARD;

#endif

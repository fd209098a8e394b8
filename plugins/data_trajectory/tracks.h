/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a vehicle is in the list of its track's rows, and what of it may be unknown. Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_TRACKS_H
#define DTRAIN_DATA_TRAJECTORY_TRACKS_H

#include "dtrain/traffic/store.h"

#include <math.h>
#include <stdbool.h>

/* Position in track_row of row r, which belongs to this track. */
static inline int64_t tracks_place(const dt_store_view *v, int64_t track, int64_t r)
{
    int64_t lo = v->track_ptr[track], hi = v->track_ptr[track + 1];
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (v->track_row[mid] <= r) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Of an unknown heading no own frame, lane or future is made. */
static inline bool tracks_has_heading(const dt_store_view *v, int64_t r)
{
    return !isnan(v->pose[3 * r + 2]);
}

#define TRACKS_LENGTH_M 4.5f /* of a vehicle whose length is unknown, as features have it */

static inline float tracks_length(const dt_store_view *v, int64_t r)
{
    const float m = v->motion[4 * r + 2];
    return isnan(m) ? TRACKS_LENGTH_M : m;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a vehicle is in the list of its track's rows. Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_TRACKS_H
#define DTRAIN_DATA_TRAJECTORY_TRACKS_H

#include "dtrain/svc/store.h"

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

#endif

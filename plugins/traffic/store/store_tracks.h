/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of writing a store: what is known only when every frame is there. Two passes over mapped files list the rows
 * of each track in time order (track_ptr, track_row), smooth its accelerations over past and future (accel_centred) and
 * look ahead of each row for danger (risk). See store.h. Threads: as the store's writer, which calls it.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_TRACKS_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_TRACKS_H

#include "traffic/store/store.h"

/* folder: of the arrays that came with the frames, all closed. smooth_s above 0: accel_centred is written.
 * is_flushed: waits for the disk. count: of what was written; its risk is filled in. DT_EIO, DT_ENOMEM. */
dt_status dt_store_tracks_write(const char *folder, double frame_rate_hz, double smooth_s, bool is_flushed,
                                dt_store_counts *count) DT_NODISCARD;

#endif

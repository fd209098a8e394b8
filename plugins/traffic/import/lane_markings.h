/* SPDX-License-Identifier: Apache-2.0
 *
 * The roads of a recording of highD: straight lanes between the lines that its recordingMeta names, as far as vehicles
 * were seen. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_LANE_MARKINGS_H
#define DTRAIN_PLUGINS_TRAFFIC_LANE_MARKINGS_H

#include "traffic/import/recording_meta.h"
#include "traffic/map/roads.h"

/* Lanes of the upper carriageway lead to -x and those of the lower one to +x, y up. Their numbers are highD's laneId:
 * the strips of the picture from top to bottom, from 1 on, of which those next to the carriageways are no lanes. x: the
 * least and the greatest of the recording. path: of the table, in messages. *out_p is sealed, and the caller's; without
 * a lane it is empty. DT_EDATA, DT_ENOMEM. */
dt_status dt_roads_from_markings(const dt_recording_meta *meta, const double x[2], const char *path, dt_roads *out_p)
    DT_NODISCARD;

#endif

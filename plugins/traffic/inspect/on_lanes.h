/* SPDX-License-Identifier: Apache-2.0
 *
 * How many positions of a store lie on a lane of their scene's map: whether a map is the recording's. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_ON_LANES_H
#define DTRAIN_PLUGINS_TRAFFIC_ON_LANES_H

#include "dtrain/traffic/store.h"

#define DT_LANE_WIDTH_UNKNOWN_M 3.5 /* of a lane without a width */

typedef struct dt_on_lanes {
    int64_t rows; /* of scenes that have a map */
    int64_t on;   /* of them, those within half a lane's width of its centre line; paths for people on foot and on
                   * bicycles are none */
} dt_on_lanes;

/* DT_ENOMEM. Cost: a pass over positions, each against the pieces of centre lines around it. */
dt_status dt_on_lanes_count(const dt_store_view *v, dt_on_lanes *out_p) DT_NODISCARD;

#endif

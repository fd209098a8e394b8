/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/lane_markings.h"
#include "base/err.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SHORTEST_M 1.0

enum { UPPER, LOWER };

static dt_status add_lane(const dt_recording_meta *m, int which, int k, const double x[2], const char *path,
                          dt_roads *roads)
{
    const double *line = m->marking[which] + k, y = -0.5 * (line[0] + line[1]);
    const double from = which == UPPER ? x[1] : x[0], to = which == UPPER ? x[0] : x[1];
    const double xy[4] = {from, y, to, y}, width[2] = {line[1] - line[0], line[1] - line[0]};
    const int64_t id = k + 2 + (which == UPPER ? 0 : m->n_markings[UPPER]); /* strip 1 is above the first line */
    int32_t number = 0;
    char what[600];
    snprintf(what, sizeof(what), "%.500s: lane %" PRId64, path, id);
    DT_TRY(dt_roads_lane(
        roads, what,
        &(dt_road_lane){.id = id, .kind = DT_LANE_HIGHWAY, .limit = m->speed_limit, .xy = xy, .width = width, .n = 2},
        &number));
    if (k > 0) { /* from top to bottom: a vehicle that drives to -x has the next strip on the left */
        roads->left[which == UPPER ? number - 1 : number] = which == UPPER ? number : number - 1;
        roads->right[which == UPPER ? number : number - 1] = which == UPPER ? number - 1 : number;
    }
    return DT_OK;
}

dt_status dt_roads_from_markings(const dt_recording_meta *meta, const double x[2], const char *path, dt_roads *out_p)
{
    dt_roads roads = {.n_lanes = 0};
    const double seen[2] = {x[0], fmax(x[1], x[0] + SHORTEST_M)};
    dt_status st = DT_OK;
    for (int which = UPPER; which <= LOWER; which++) {
        for (int k = 0; k + 1 < meta->n_markings[which] && st == DT_OK; k++) {
            st = add_lane(meta, which, k, seen, path, &roads);
        }
    }
    if (st == DT_OK && roads.n_lanes > 0) {
        st = dt_roads_seal(&roads);
    }
    if (st != DT_OK) {
        dt_roads_fini(&roads);
        return st;
    }
    *out_p = roads;
    return DT_OK;
}

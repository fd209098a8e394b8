/* SPDX-License-Identifier: Apache-2.0
 *
 * One map of roads in memory: lanes with a centre line in driving direction, successors and neighbours. Readers of maps
 * build it (lanes, links, sides, seal), the store keeps it (store.h). It is not a road graph that anything is routed
 * on. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_ROADS_H
#define DTRAIN_PLUGINS_TRAFFIC_ROADS_H

#include "dtrain/traffic/store.h"

#include <stdbool.h>
#include <stddef.h>

#define DT_LANE_APART_M     1e-3 /* points of a centre line are that far from each other at least */
#define DT_LANE_WIDTH_MAX_M 1e3
#define DT_LANE_LIMIT_MAX   150.0 /* m/s */

typedef struct dt_roads { /* zeroed is empty */
    int64_t n_lanes, n_points, n_links;
    int64_t lanes_cap, points_cap, links_cap;
    int64_t *point;            /* [n_lanes+1] points of a lane */
    double *xy;                /* [n_points,2] m */
    float *width;              /* [n_points] m, 0: unknown */
    int32_t *kind;             /* [n_lanes] DT_LANE_* */
    float *limit;              /* [n_lanes] m/s, 0: unknown */
    int64_t *id;               /* [n_lanes] */
    int32_t *left, *right;     /* [n_lanes] lane of the same direction, -1: none */
    int64_t *next_ptr;         /* [n_lanes+1], when sealed */
    int32_t *next;             /* [n_links] lanes, ascending for each */
    struct dt_road_link *link; /* [n_links] as they came */
} dt_roads;

typedef struct dt_road_link {
    int32_t from, to;
} dt_road_link;

typedef struct dt_road_lane {
    int64_t id;
    int32_t kind;
    double limit;        /* m/s, 0: unknown */
    const double *xy;    /* [n,2] */
    const double *width; /* [n]; NULL: unknown */
    int64_t n;
} dt_road_lane;

/* A lane at the end. Points that lie on the one before them are left out. what: the lane in messages, as "a.xml:7: lane
 * 5". Errors: DT_EDATA (fewer than two points are left, a value out of range), DT_ENOMEM. */
dt_status dt_roads_lane(dt_roads *r, const char *what, const dt_road_lane *lane, int32_t *number_p) DT_NODISCARD;
/* to follows from; once or more often. */
dt_status dt_roads_link(dt_roads *r, int32_t from, int32_t to) DT_NODISCARD; /* DT_ENOMEM */
/* All lanes and links are there: next_ptr and next are made. */
dt_status dt_roads_seal(dt_roads *r) DT_NODISCARD; /* DT_ENOMEM */
/* Of everything in a sealed map. */
void dt_roads_hash(const dt_roads *r, uint64_t hash[2]);
/* Map number of an open store. */
dt_status dt_roads_of_view(const dt_store_view *v, int64_t map, dt_roads *out_p) DT_NODISCARD; /* DT_ENOMEM */
void dt_roads_fini(dt_roads *r);

const char *dt_lane_kind_name(int32_t kind);

#endif

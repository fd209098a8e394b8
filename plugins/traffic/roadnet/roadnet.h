/* SPDX-License-Identifier: Apache-2.0
 *
 * Road networks and demand of CityFlow (JSON; Zhang et al. 2019, cityflow.readthedocs.io) and of the City Brain
 * Challenge (text; KDD Cup 2021), on their way to files of SUMO, which both simulations here read. Readers fill a
 * roadnet and a demand; roadnet_write_net and roadnet_write_routes write them. Lengths in m, times in s, speeds in m/s.
 * Lanes are numbered from the leftmost one, as both formats do; traffic keeps to the right. Threads: one object, one
 * thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_ROADNET_H
#define DTRAIN_PLUGINS_TRAFFIC_ROADNET_H

#include "traffic/text/names.h"
#include "base/str.h"

/* A growing array. */
typedef struct rn_list {
    void *items;
    int32_t n, cap;
} rn_list;

typedef enum rn_turn { RN_STRAIGHT, RN_RIGHT, RN_LEFT, RN_BACK } rn_turn; /* by right of way, the highest first */

typedef struct rn_point {
    double x, y;
} rn_point;

typedef struct rn_node {
    double x, y, radius;
    int64_t line;
    int32_t is_there;
    int32_t phase, n_phases; /* a range of roadnet.phases; none: no signal */
    int32_t link, n_links;   /* a range of roadnet.links; set by roadnet_finish */
} rn_node;

typedef struct rn_lane {
    double width, limit;
    int32_t point, n_points; /* its shape, a range of roadnet.points; set by roadnet_finish */
} rn_lane;

typedef struct rn_road {
    int64_t line;
    int32_t is_there;
    int32_t from, to;        /* nodes */
    int32_t lane, n_lanes;   /* a range of roadnet.lanes */
    int32_t point, n_points; /* centre line from node to node, a range of roadnet.points */
    double length;           /* of the lanes; 0: that of the shape. Set by roadnet_finish */
} rn_road;

/* A way from a lane over a node into a lane of another road. */
typedef struct rn_link {
    int32_t node, movement;     /* movement: of its node, what phases name */
    int32_t from, to;           /* roads */
    int32_t from_lane, to_lane; /* of them */
    int32_t point, n_points;    /* its shape; none: made by roadnet_finish */
    rn_turn turn;
    double length; /* set by roadnet_finish */
} rn_link;

typedef struct rn_phase {
    double duration_s, yellow_s, red_s; /* yellow and all red follow the green */
    int32_t movement, n_movements;      /* a range of roadnet.movements: those that are green */
} rn_phase;

typedef struct roadnet { /* zeroed is empty */
    const char *path;
    dt_names node_names, road_names;
    rn_list nodes, roads; /* numbered as their names are */
    rn_list lanes, points, links, phases, movements;
    double carved_s; /* yellow that was taken from the end of greens, because the format has none; 0: it was not */
} roadnet;

typedef struct rn_flow {
    double begin_s, end_s, period_s; /* end_s: of the last vehicle at most; negative: it never ends */
    int32_t type, road, n_roads;     /* roads: a range of rn_demand.roads */
    int64_t line;
} rn_flow;

typedef struct rn_type {
    double length, width, accel, decel, emergency_decel, gap, tau, speed, sigma;
} rn_type;

typedef struct rn_demand { /* zeroed is empty */
    const char *path;
    rn_list flows, types, roads;
    dt_names type_names; /* of types: their values as text */
} rn_demand;

#define RN_AT(list, type, k) (&((type *)(list).items)[k])
#define RN_NODE(r, k)        RN_AT((r)->nodes, rn_node, k)
#define RN_ROAD(r, k)        RN_AT((r)->roads, rn_road, k)
#define RN_LINK(r, k)        RN_AT((r)->links, rn_link, k)
#define RN_LANE(r, k)        RN_AT((r)->lanes, rn_lane, k)
#define RN_POINT(r, k)       RN_AT((r)->points, rn_point, k)

/* A new zeroed item at the end. Errors: DT_ENOMEM, DT_EDATA (more than 2^26). */
dt_status rn_add(rn_list *l, size_t bytes, void *item_p) DT_NODISCARD;
/* The number of a node or road that may be defined later. Errors: DT_ENOMEM, DT_EDATA. */
dt_status rn_node_number(roadnet *r, const char *name, int32_t *number_p) DT_NODISCARD;
dt_status rn_road_number(roadnet *r, const char *name, int32_t *number_p) DT_NODISCARD;

/* A network and, where d->path is not NULL, its demand, from texts in memory, which are NUL-terminated; the format is
 * recognised by content, and messages name path and line. Errors: DT_EDATA, DT_ENOMEM. */
typedef struct rn_text {
    const char *text;
    size_t bytes;
} rn_text;
dt_status roadnet_read(roadnet *r, rn_demand *d, rn_text roads, rn_text flows) DT_NODISCARD;
/* Its readers. A demand is read before a network of the challenge, since vehicles turn back where routes say so. */
dt_status cityflow_read_roads(roadnet *r, rn_text text) DT_NODISCARD;
dt_status cityflow_read_flows(rn_demand *d, roadnet *r, rn_text text) DT_NODISCARD;
dt_status citybrain_read_roads(roadnet *r, const rn_demand *d, rn_text text) DT_NODISCARD;
dt_status citybrain_read_flows(rn_demand *d, roadnet *r, rn_text text) DT_NODISCARD;

/* Checks that all that is named is defined, orders links, and makes shapes and lengths. Errors: DT_EDATA, DT_ENOMEM. */
dt_status roadnet_finish(roadnet *r) DT_NODISCARD;
dt_status roadnet_write_net(const roadnet *r, dt_str *out) DT_NODISCARD;
/* Flows by the time of their first vehicle. Errors: DT_EDATA (a route that names a road that is not there). */
dt_status roadnet_write_routes(const roadnet *r, const rn_demand *d, dt_str *out) DT_NODISCARD;
void roadnet_fini(roadnet *r);
void rn_demand_fini(rn_demand *d);

/* Reads `roads` and, where it is not NULL, `flows` (each plain, gzip or xz; the format is recognised by content) and
 * writes PREFIX.net.xml and PREFIX.rou.xml. notes: lines for people. Errors: DT_EDATA, DT_ENOTFOUND, DT_EIO,
 * DT_ENOMEM; a write that fails may leave the net without the demand. */
dt_status roadnet_convert(const char *roads, const char *flows, const char *prefix, dt_str *notes) DT_NODISCARD;

#endif

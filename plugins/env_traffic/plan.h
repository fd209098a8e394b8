/* SPDX-License-Identifier: Apache-2.0
 *
 * Who drives where and when, from a SUMO route file (.rou.xml; SUMO's manual, "Definition of Vehicles, Vehicle Types,
 * and Routes"): vehicles, trips and flows, over edges of a network. Threads: one while it is read, any after that.
 *
 * Kept of a vType: length, maxSpeed, speedFactor and speedDev of every vehicle; accel, decel, minGap, tau, sigma and
 * carFollowModel (Krauss or IDM) of the type that most vehicles have, for all. Of a vehicle: depart, departLane,
 * departSpeed, its route, or from, to and via: then the quickest way at the limits. It leaves at the end of its route.
 */
#ifndef DTRAIN_ENV_TRAFFIC_PLAN_H
#define DTRAIN_ENV_TRAFFIC_PLAN_H

#include "net.h"
#include "route.h"
#include "xml.h"

typedef struct netfile netfile; /* netfile.h */

typedef struct plan_type {
    double length, top; /* m, m/s */
    double factor, dev; /* of the limit: wanted speed */
    double accel, decel, gap, tau, sigma;
    uint32_t model;
    int32_t is_car; /* else its vehicles are left out */
    int64_t n_vehicles;
} plan_type;

enum { PLAN_LANE_WIDEST = -1, PLAN_LANE_BEST = -2 };
#define PLAN_SPEED_MOST (-1.0)

typedef struct plan_trip {
    int32_t edge, n_edges; /* a range of plan.edges */
    int32_t type;
    int32_t lane; /* to begin on, or PLAN_LANE_* */
    double speed; /* to begin with, or PLAN_SPEED_MOST */
} plan_trip;

enum { PLAN_ONCE, PLAN_REGULAR, PLAN_POISSON, PLAN_CHANCE };
typedef struct plan_flow { /* a vehicle, or many of a kind */
    int32_t trip, kind;
    double begin_s, end_s;
    double period_s;          /* between two; PLAN_POISSON: the mean; PLAN_CHANCE: 1 / probability in a second */
    int32_t source, reserved; /* sim.source, of the edge that it begins on; scenario_net.c fills it in */
} plan_flow;

#define PLAN_PERIOD_LEAST 1e-3 /* s; so that every step of a flow moves on, whatever the hour */
#define PLAN_PERIOD_MOST  1e9
#define PLAN_MOST         2e7           /* steps of all flows up to the end of an episode */
#define PLAN_SEEK_MOST    10000000000LL /* edges and links that are looked at for ways: some minutes */

typedef struct trip_plan {
    list types, trips, flows, edges;
    double n_steps; /* of all flows: vehicles, and those that were due before the episode */
} trip_plan;

#define PLAN_TYPE(p, k) (&((const plan_type *)(p)->types.items)[k])
#define PLAN_TRIP(p, k) (&((const plan_trip *)(p)->trips.items)[k])
#define PLAN_FLOW(p, k) (&((const plan_flow *)(p)->flows.items)[k])
#define PLAN_EDGE(p, k) (((const int32_t *)(p)->edges.items)[k])

/* Times are counted from begin_s on; what is due before it, or not before end_s, is left out. Errors: what xml_read
 * says; DT_EDATA with file, line and element; DT_ECONFIG when nobody is left to drive. */
dt_status plan_read(trip_plan *p, const dt_host *h, const xml_text *text, const netfile *f, const net *n,
                    route_search *search, double begin_s, double end_s);
void plan_fini(trip_plan *p, const dt_host *h);
/* The type that most vehicles have. */
const plan_type *plan_common_type(const trip_plan *p);

#endif

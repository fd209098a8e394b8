/* SPDX-License-Identifier: Apache-2.0
 *
 * The trips of all vehicles, from a SUMO route file (.rou.xml; SUMO's manual, "Definition of Vehicles, Vehicle Types,
 * and Routes"): vehicles, trips and flows, over edges of a network. Threads: one while it is read, any after that.
 *
 * Kept of a vType: length, maxSpeed, desiredMaxSpeed, speedFactor, speedDev and scale of every vehicle; accel, decel,
 * minGap, tau, sigma and carFollowModel (Krauss or IDM) of the type that most vehicles have, for all. Of a vehicle:
 * depart, departLane, departPos, departSpeed, departEdge, arrivalEdge, its route, or from, to and via: then the
 * quickest way at the limits.
 * It leaves at the end of its route. Types and routes may be distributions: every vehicle draws its own.
 *
 * What no simulated vehicle needs is not checked: types and routes are kept as written until one uses them; vehicles
 * that are no cars, are not due in the episode, or have no time of departure are skipped.
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
    double desired;     /* m/s: with the factor, another bound of the wanted speed */
    double scale;       /* vehicles that each one of the file becomes */
    double accel, decel, gap, tau, sigma;
    uint32_t model;
    int32_t is_car;   /* else its vehicles are left out */
    int32_t is_plain; /* of the class passenger */
    int64_t n_vehicles;
} plan_type;

enum { PLAN_LANE_WIDEST = -1, PLAN_LANE_BEST = -2, PLAN_LANE_RANDOM = -3 };
enum { PLAN_POS_BASE, PLAN_POS_GIVEN, PLAN_POS_RANDOM, PLAN_POS_FREE, PLAN_POS_LAST };
enum {
    PLAN_SPEED_GIVEN,
    PLAN_SPEED_MOST,
    PLAN_SPEED_WANTED,
    PLAN_SPEED_LIMIT,
    PLAN_SPEED_RANDOM,
    PLAN_SPEED_LAST,
    PLAN_SPEED_MEAN
};

typedef struct plan_trip {
    int32_t edge, n_edges; /* a range of plan.edges */
    int32_t type;          /* NET_NONE: no car; a vehicle that draws this trip is left out */
    int32_t lane;          /* of the first edge to begin on, or PLAN_LANE_* */
    int32_t pos_kind, speed_kind;
    double pos;     /* m, of the front bumper: PLAN_POS_GIVEN, negative: before the end of the lane */
    double speed;   /* m/s: PLAN_SPEED_GIVEN */
    double factor;  /* of the limit, of the vehicle itself; 0: its type's */
    double share;   /* of its flow: vehicles that draw this trip or one before it */
    uint64_t lanes; /* of the first edge, that it may begin on; scenario_net.c fills them in */
    int32_t source; /* sim.source; scenario_net.c fills it in */
    int32_t reserved;
} plan_trip;

/* PLAN_AT_ONCE: `number` vehicles at begin_s. */
enum { PLAN_ONCE, PLAN_REGULAR, PLAN_POISSON, PLAN_CHANCE, PLAN_AT_ONCE };
typedef struct plan_flow { /* a vehicle, or many of a kind; times since the episode began */
    int32_t trip, n_trips; /* a range of plan.trips that its vehicles draw from */
    int32_t kind, number;  /* at most so many vehicles; PLAN_REGULAR and PLAN_POISSON: those before begin_s count */
    double begin_s, end_s;
    double period_s; /* between two; PLAN_POISSON: the mean; PLAN_CHANCE: 1 / probability in a second */
} plan_flow;

#define PLAN_PERIOD_LEAST 1e-3 /* s; so that every step of a flow moves on, whatever the hour */
#define PLAN_PERIOD_MOST  1e16
#define PLAN_MOST         2e7           /* steps of all flows up to the end of an episode, and their trips */
#define PLAN_SEEK_MOST    10000000000LL /* edges and links that are looked at for ways: some minutes */

typedef struct trip_plan {
    list types, trips, flows, edges;
    double n_steps; /* of all flows: vehicles, and those that were due before the episode */
} trip_plan;

#define PLAN_TYPE(p, k) (&((const plan_type *)(p)->types.items)[k])
#define PLAN_TRIP(p, k) (&((const plan_trip *)(p)->trips.items)[k])
#define PLAN_FLOW(p, k) (&((const plan_flow *)(p)->flows.items)[k])
#define PLAN_EDGE(p, k) (((const int32_t *)(p)->edges.items)[k])

/* begin, end: of the episode. Flows without an end continue to its end. Errors: those of xml_read;
 * DT_EDATA with file, line and element; DT_ECONFIG when no vehicle is left to drive. */
dt_status plan_read(trip_plan *p, const dt_host *h, const xml_text *text, const netfile *f, const net *n,
                    route_search *search, file_time begin, file_time end);
void plan_fini(trip_plan *p, const dt_host *h);
/* The type that most vehicles have. */
const plan_type *plan_common_type(const trip_plan *p);

#endif

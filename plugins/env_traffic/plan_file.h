/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that read a demand share (plan.c reads the document, the others its elements). Types and routes are
 * kept as written, because content that no simulated vehicle needs is never checked. Threads: one demand, one thread.
 */
#ifndef DTRAIN_ENV_TRAFFIC_PLAN_FILE_H
#define DTRAIN_ENV_TRAFFIC_PLAN_FILE_H

#include "netfile.h"
#include "plan.h"

/* A vType or a route, or a distribution of them, as it is written: nothing is checked until a vehicle needs it. */
typedef struct named {
    int32_t file, line;         /* planfile.files */
    int32_t text, n_attributes; /* planfile.text: name, value, ... */
    int32_t is_there, is_distribution;
    int32_t choice, n_choices; /* of a distribution, a range of planfile.choices */
    int32_t is_car, is_plain;  /* vTypes: simulated, a passenger car; distributions: one of them is */
    int32_t found, n_edges;    /* once it was needed: plan.types, or a range of plan.edges; else NET_NONE */
} named;

typedef struct choice { /* of a distribution */
    int32_t number;     /* of a name */
    double weight;      /* negative: its own probability */
} choice;

typedef struct option {  /* of the vehicle that is being read: a type, or a way */
    int32_t at, n_edges; /* plan.types or NET_NONE; a range of plan.edges */
    double weight;
} option;

/* A traffic assignment zone: edges on which its vehicles begin, and on which they end. Checked once a trip needs it. */
typedef struct zone {
    int32_t is_there;
    list sources, sinks; /* int32_t: names of planfile.edge_names */
} zone;

enum { NAMES_TYPES, NAMES_ROUTES, N_NAMES };

typedef struct planfile {
    trip_plan *p;
    const dt_host *h;
    const netfile *f;
    const net *n;
    route_search *search;
    const char *path;
    file_time begin, end;        /* of the episode */
    file_time from, to;          /* what flows have without begin or end: of the episode, or of an <interval> */
    double last_s;               /* latest begin of a vehicle or flow so far, since the episode began */
    int32_t in_interval, has_to; /* flows are in an <interval>; it has an end */
    names names[N_NAMES], way_names, files; /* files: that were read, by what includes them */
    names zone_names, edge_names;           /* edge_names: of edges of zones, as they are written */
    list zones;                             /* zone */
    int32_t zone;                           /* that is open, or NET_NONE */
    list starts, ends;                      /* edges on which the way that is looked for may begin, and end */
    list named[N_NAMES];                    /* numbered as their names are */
    list text, choices, attributes;
    list ways; /* option of every way that was looked for */
    list notes;
    list types, routes; /* option: what the vehicle that is being read may be, and where it may drive */
    plan_trip trip;     /* of it */
    plan_flow flow;
    int32_t *file_edge;    /* [n_edges] of the netfile */
    int32_t line, is_open; /* of the vehicle */
    int32_t may_seek;      /* it states origin and destination, in seeker */
    named seeker;
    int32_t depart_edge, arrival_edge; /* of its way, counted from its start; NET_NONE: the first, the last */
    int32_t has_lane;                  /* departLane is a number, as its file counts them */
    int32_t is_skipped;                /* the vehicle */
    int32_t may_leave_out;             /* it is no passenger car: others may drive where passenger cars may not */
    int32_t distribution;              /* that is open, or NET_NONE; of which_names */
    int32_t which_names;
    int32_t skip_depth; /* of an element that is skipped with all that it holds, or NET_NONE */
} planfile;

#define NAMED(r, which, k) (&((named *)(r)->named[which].items)[k])

/* As DT_TRY_H, but returns for DT_DONE, too: the vehicle is left out. */
#define TRY_DRIVE(expr)                                                                                                \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ != DT_OK) {                                                                                            \
            return st_;                                                                                                \
        }                                                                                                              \
    } while (0)
/* Where cars cannot drive: an error of a passenger car's way, a reason to leave another vehicle out. */
#define NO_WAY(r, ...) ((r)->may_leave_out ? DT_DONE : DT_FAIL_H((r)->h, DT_EDATA, __VA_ARGS__))

/* ---- plan_deferred.c: elements as they are written, checked once a vehicle needs them
 * -------------------------------- */

dt_status plan_keep(planfile *r, const xml *x, named *out);
/* The element again; valid until another one is opened or kept. */
dt_status plan_reopen(planfile *r, const named *k, const char *element, xml *out);
/* The number of a name that may not be there yet. which: NAMES_TYPES or NAMES_ROUTES. */
dt_status plan_number_of(planfile *r, int which, const char *id, int32_t *number_p);
double plan_weight_of(const char *text);                   /* NAN: the text is not a probability */
double plan_own_weight(const planfile *r, const named *k); /* the probability that a kept element names itself */
dt_status plan_open_distribution(planfile *r, const xml *x, int which);
/* To the distribution that is open; weight < 0: the element's own. */
dt_status plan_add_choice(planfile *r, int32_t number, double weight);
/* To the types or routes of the vehicle that is being read. */
dt_status plan_add_option(planfile *r, const xml *x, list *options, int32_t at, int32_t n_edges, double weight);

/* ---- plan_type.c ------------------------------------------------------------------------------------------------- */

dt_status plan_add_own_types(planfile *r); /* what SUMO knows without a definition */
dt_status plan_open_type(planfile *r, xml *x);
/* Checks a type that a vehicle needs, once. */
dt_status plan_use_type(planfile *r, named *k, int32_t *type_p);

/* ---- plan_route.c: DT_DONE where a vehicle that is no passenger car drives where cars cannot --------------------- */

dt_status plan_open_route(planfile *r, xml *x);
dt_status plan_use_route(planfile *r, named *k);
/* edges="a b c", each leading to the next */
dt_status plan_read_edges(planfile *r, const xml *x, int32_t *edge_p, int32_t *n_p);
/* from, via and to, which may be zones or junctions: the quickest way, looked for once for all that go there. */
dt_status plan_find_way(planfile *r, const xml *x);
int plan_has_way(const xml *x); /* does it have an origin? */
dt_status plan_open_zone(planfile *r, const xml *x);
dt_status plan_add_zone_edge(planfile *r, const xml *x); /* an element within the zone that is open */
void plan_fini_zones(planfile *r);

/* ---- plan_vehicle.c ---------------------------------------------------------------------------------------------- */

dt_status plan_open_vehicle(planfile *r, xml *x);
dt_status plan_open_own_route(planfile *r, xml *x); /* within the vehicle that is open */
dt_status plan_close_vehicle(planfile *r, const xml *x);

#endif

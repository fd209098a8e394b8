/* SPDX-License-Identifier: Apache-2.0
 *
 * See plan.h.
 */
#include "plan.h"
#include "follow.h"
#include "netfile.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MOST   1e9 /* s */
#define LENGTH_MOST 100 /* m */

/* What SUMO's manual gives as defaults of a vehicle class, as far as it is used here ("Vehicle Type Parameter
 * Defaults"); length 0: not simulated. */
typedef struct class_defaults {
    const char *name;
    double length, accel, decel, top_kmh, dev;
} class_defaults;

static const class_defaults classes[] = {{"passenger", 5, 2.6, 4.5, 200, 0.1},   {"private", 5, 2.6, 4.5, 200, 0.1},
                                         {"taxi", 5, 2.6, 4.5, 200, 0.1},        {"evehicle", 5, 2.6, 4.5, 200, 0.1},
                                         {"hov", 5, 2.6, 4.5, 200, 0.1},         {"emergency", 6.5, 2.6, 4.5, 200, 0.1},
                                         {"delivery", 6.5, 2.6, 4.5, 200, 0.05}, {"truck", 7.1, 1.3, 4, 130, 0.05},
                                         {"trailer", 16.5, 1, 4, 130, 0.05},     {"bus", 12, 1.2, 4, 85, 0.1},
                                         {"coach", 14, 2, 4, 100, 0.05},         {"motorcycle", 2.2, 6, 10, 200, 0.1},
                                         {"moped", 2.1, 1.1, 7, 45, 0.1},        {"authority", 5, 2.6, 4.5, 200, 0.1},
                                         {"army", 5, 2.6, 4.5, 200, 0.1},        {"vip", 5, 2.6, 4.5, 200, 0.1},
                                         {"custom1", 5, 2.6, 4.5, 200, 0.1},     {"custom2", 5, 2.6, 4.5, 200, 0.1}};

typedef struct planfile {
    trip_plan *p;
    const dt_host *h;
    const netfile *f;
    const net *n;
    route_search *search;
    double begin_s, end_s;
    names type_names, route_names, way_names;
    list routes; /* plan_trip of every named route: edge and n_edges */
    list ways;   /* the same of every way that was looked for */
    list notes;
    plan_trip trip; /* the vehicle or flow that is being read */
    plan_flow flow;
    int32_t line, is_open, has_route; /* of it */
} planfile;

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* "1.1", "norm(1,0.1)", "normc(1,0.1,0.2,2)": mean and deviation */
static dt_status read_factor(const xml *x, plan_type *t)
{
    const char *text = xml_get(x, "speedFactor");
    if (text == NULL) {
        return xml_number(x, "speedDev", t->dev, 0, 1, &t->dev);
    }
    const char *open = strchr(text, '('), *at = open != NULL ? open + 1 : text;
    char *rest;
    t->factor = strtod(at, &rest);
    if (open != NULL && *rest == ',') {
        t->dev = strtod(rest + 1, &rest);
    } else if (open == NULL) {
        t->dev = 0;
    }
    if (rest == at || !(t->factor > 0) || !(t->factor < 10) || !(t->dev >= 0 && t->dev <= 1) ||
        (open != NULL && strncmp(text, "norm", 4) != 0)) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "speedFactor \"%s\" is neither a number nor norm(mean,deviation)",
                         XML_HERE(x), text);
    }
    return xml_number(x, "speedDev", t->dev, 0, 1, &t->dev);
}

static plan_type type_of_class(const char *name)
{
    const class_defaults *c = NULL;
    for (size_t k = 0; c == NULL && k < sizeof(classes) / sizeof(classes[0]); k++) {
        c = strcmp(classes[k].name, name) == 0 ? &classes[k] : NULL;
    }
    const int is_car = c != NULL;
    c = is_car ? c : &classes[0];
    return (plan_type){.length = c->length,
                       .top = c->top_kmh / 3.6,
                       .factor = 1,
                       .dev = c->dev,
                       .accel = c->accel,
                       .decel = c->decel,
                       .gap = 2.5,
                       .tau = 1,
                       .sigma = 0.5,
                       .model = MODEL_KRAUSS,
                       .is_car = is_car};
}

static dt_status open_type(planfile *r, xml *x)
{
    const char *id, *vclass = xml_get(x, "vClass"), *model = xml_get(x, "carFollowModel");
    DT_TRY_H(xml_need(x, "id", &id));
    plan_type t = type_of_class(vclass != NULL ? vclass : "passenger"), *kept;
    if (!t.is_car) {
        DT_TRY_H(file_leave_out(&r->notes, x, "is no car: its vehicles are left out"));
    }
    DT_TRY_H(xml_number(x, "length", t.length, 0.5, LENGTH_MOST, &t.length));
    DT_TRY_H(xml_number(x, "maxSpeed", t.top, 0.1, 1000, &t.top));
    DT_TRY_H(xml_number(x, "accel", t.accel, 0.1, 20, &t.accel));
    DT_TRY_H(xml_number(x, "decel", t.decel, 0.1, 20, &t.decel));
    DT_TRY_H(xml_number(x, "minGap", t.gap, 0, 50, &t.gap));
    DT_TRY_H(xml_number(x, "tau", t.tau, 0, 20, &t.tau));
    DT_TRY_H(xml_number(x, "sigma", t.sigma, 0, 1, &t.sigma));
    DT_TRY_H(read_factor(x, &t));
    if (model != NULL && strcmp(model, "IDM") == 0) {
        t.model = MODEL_IDM;
    } else if (model != NULL && strcmp(model, "Krauss") != 0) {
        DT_TRY_H(file_leave_out(&r->notes, x, "has a car-following model that is not Krauss or IDM: Krauss drives"));
    }
    int32_t number;
    DT_TRY_H(names_add(r->h, &r->type_names, id, &number));
    if (number == r->p->types.n) {
        DT_TRY_H(list_add(r->h, &r->p->types, sizeof(*kept), &kept));
    }
    ((plan_type *)r->p->types.items)[number] = t;
    return DT_OK;
}

static dt_status find_type(planfile *r, const xml *x, int32_t *type_p)
{
    const char *id = xml_get(x, "type");
    *type_p = names_find(&r->type_names, id != NULL ? id : "DEFAULT_VEHTYPE");
    return *type_p >= 0 ? DT_OK
                        : DT_FAIL_H(r->h, DT_EDATA, XML_AT "type \"%s\" is not known: its vType comes before it",
                                    XML_HERE(x), id);
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static dt_status find_edge(planfile *r, const xml *x, const char *name, size_t n, int32_t *edge_p)
{
    char id[512];
    snprintf(id, sizeof(id), "%.*s", (int)n, name);
    const int32_t e = names_find(&r->f->edge_names, id);
    if (e < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "edge \"%s\" is not in %s", XML_HERE(x), id, r->f->path);
    }
    *edge_p = FILE_ITEM(r->f, edge, e)->edge;
    return *edge_p != NET_NONE ? DT_OK
                               : DT_FAIL_H(r->h, DT_EDATA, XML_AT "edge \"%s\" of %s has no lane for cars", XML_HERE(x),
                                           id, r->f->path);
}

static int leads_to(const net *n, int32_t from, int32_t to)
{
    const net_edge *e = &n->edge[from];
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        const net_lane *l = &n->lane[lane];
        for (int32_t k = l->link; k < l->link + l->n_links; k++) {
            if (n->link[k].edge == to) {
                return 1;
            }
        }
    }
    return 0;
}

static dt_status add_edge(planfile *r, int32_t edge)
{
    int32_t *kept;
    DT_TRY_H(list_add(r->h, &r->p->edges, sizeof(*kept), &kept));
    *kept = edge;
    return DT_OK;
}

/* edges="a b c", each leading to the next */
static dt_status read_edges(planfile *r, const xml *x, plan_trip *t)
{
    const char *text;
    DT_TRY_H(xml_need(x, "edges", &text));
    t->edge = r->p->edges.n;
    t->n_edges = 0;
    const char *at = text, *word, *before = "";
    size_t n_before = 0;
    for (size_t n; (n = xml_word(&at, &word)) > 0; t->n_edges++) {
        int32_t edge;
        DT_TRY_H(find_edge(r, x, word, n, &edge));
        if (t->n_edges > 0 && !leads_to(r->n, PLAN_EDGE(r->p, r->p->edges.n - 1), edge)) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "edge \"%.*s\" does not lead to \"%.*s\"", XML_HERE(x),
                             (int)n_before, before, (int)n, word);
        }
        before = word;
        n_before = n;
        DT_TRY_H(add_edge(r, edge));
    }
    return t->n_edges > 0 ? DT_OK : DT_FAIL_H(r->h, DT_EDATA, XML_AT "has no edges", XML_HERE(x));
}

/* Goes on from the last edge of a trip to this one. */
static dt_status go_to(planfile *r, const xml *x, plan_trip *t, const char *name, size_t n)
{
    int32_t to, at = PLAN_EDGE(r->p, r->p->edges.n - 1);
    DT_TRY_H(find_edge(r, x, name, n, &to));
    route_find(r->search, r->n, to);
    if (r->search->n_steps > PLAN_SEEK_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "more than %lld edges and links are looked at to find the ways of trips up to this "
                                "one: give them routes (duarouter)",
                         XML_HERE(x), PLAN_SEEK_MOST);
    }
    while (at != to) {
        at = r->search->after[at];
        if (at == NET_NONE) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "there is no way for cars from \"%s\" to \"%.*s\"", XML_HERE(x),
                             xml_get(x, "from"), (int)n, name);
        }
        DT_TRY_H(add_edge(r, at));
        t->n_edges++;
    }
    return DT_OK;
}

/* from, via and to: the quickest way, looked for once for all that go there. */
static dt_status find_way(planfile *r, const xml *x, plan_trip *t)
{
    const char *from = xml_get(x, "from"), *to = xml_get(x, "to"), *via = xml_get(x, "via");
    if (from == NULL || to == NULL) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "has neither a route nor edges to drive from and to (zones and junctions are not "
                                "looked up)",
                         XML_HERE(x));
    }
    char key[2048];
    const int n = snprintf(key, sizeof(key), "%s\n%s\n%s", from, via != NULL ? via : "", to);
    int32_t number = r->ways.n;
    if (n < (int)sizeof(key)) {
        DT_TRY_H(names_add(r->h, &r->way_names, key, &number));
    }
    if (number < r->ways.n) {
        const plan_trip *known = &((const plan_trip *)r->ways.items)[number];
        t->edge = known->edge;
        t->n_edges = known->n_edges;
        return DT_OK;
    }
    int32_t first;
    DT_TRY_H(find_edge(r, x, from, strlen(from), &first));
    t->edge = r->p->edges.n;
    t->n_edges = 1;
    DT_TRY_H(add_edge(r, first));
    const char *at = via != NULL ? via : "", *word;
    for (size_t n_word; (n_word = xml_word(&at, &word)) > 0;) {
        DT_TRY_H(go_to(r, x, t, word, n_word));
    }
    DT_TRY_H(go_to(r, x, t, to, strlen(to)));
    plan_trip *kept;
    if (n < (int)sizeof(key)) {
        DT_TRY_H(list_add(r->h, &r->ways, sizeof(*kept), &kept));
        *kept = *t;
    }
    return DT_OK;
}

static dt_status open_route(planfile *r, xml *x)
{
    if (r->is_open) {
        r->has_route = 1;
        return read_edges(r, x, &r->trip);
    }
    const char *id;
    int32_t number;
    plan_trip t = {0}, *kept;
    DT_TRY_H(xml_need(x, "id", &id));
    DT_TRY_H(read_edges(r, x, &t));
    DT_TRY_H(names_add(r->h, &r->route_names, id, &number));
    if (number < r->routes.n) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "\"%s\" is there twice", XML_HERE(x), id);
    }
    DT_TRY_H(list_add(r->h, &r->routes, sizeof(*kept), &kept));
    *kept = t;
    return DT_OK;
}

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

/* How it begins: departLane, departSpeed. SUMO's defaults: the rightmost lane, standing. */
static dt_status read_begin(planfile *r, xml *x)
{
    const char *lane = xml_get(x, "departLane"), *speed = xml_get(x, "departSpeed");
    plan_trip *t = &r->trip;
    t->lane = 0;
    t->speed = 0;
    if (lane != NULL && (strcmp(lane, "best") == 0 || strcmp(lane, "best_prob") == 0)) {
        t->lane = PLAN_LANE_BEST;
    } else if (lane != NULL &&
               (strcmp(lane, "free") == 0 || strcmp(lane, "random") == 0 || strcmp(lane, "allowed") == 0)) {
        t->lane = PLAN_LANE_WIDEST;
    } else if (lane != NULL && strcmp(lane, "first") != 0) {
        DT_TRY_H(xml_count(x, "departLane", 0, 0, 64, &t->lane));
    }
    if (speed != NULL &&
        (strcmp(speed, "max") == 0 || strcmp(speed, "desired") == 0 || strcmp(speed, "speedLimit") == 0 ||
         strcmp(speed, "last") == 0 || strcmp(speed, "avg") == 0 || strcmp(speed, "random") == 0)) {
        t->speed = PLAN_SPEED_MOST;
    } else {
        DT_TRY_H(xml_number(x, "departSpeed", 0, 0, 200, &t->speed));
    }
    const char *at = xml_get(x, "departPos");
    if (at != NULL && strcmp(at, "base") != 0 && strcmp(at, "0") != 0) {
        return file_leave_out(&r->notes, x, "has a departPos: vehicles begin at the start of their edge");
    }
    return DT_OK;
}

static dt_status read_flow(planfile *r, xml *x)
{
    plan_flow *w = &r->flow;
    const char *period = xml_get(x, "period"), *n_text = xml_get(x, "number");
    double per_hour, chance;
    DT_TRY_H(xml_number(x, "begin", 0, 0, TIME_MOST, &w->begin_s));
    DT_TRY_H(xml_number(x, "end", TIME_MOST, 0, TIME_MOST, &w->end_s));
    DT_TRY_H(xml_number(x, "vehsPerHour", 0, 0, 1e6, &per_hour));
    DT_TRY_H(xml_number(x, "perHour", per_hour, 0, 1e6, &per_hour));
    DT_TRY_H(xml_number(x, "probability", 0, 0, 1, &chance));
    w->kind = PLAN_REGULAR;
    if (period != NULL && strncmp(period, "exp(", 4) == 0) {
        char *rest;
        const double rate = strtod(period + 4, &rest);
        if (!(rate >= 1 / PLAN_PERIOD_MOST) || !(rate < 1 / PLAN_PERIOD_LEAST) || strcmp(rest, ")") != 0) {
            return DT_FAIL_H(r->h, DT_EDATA,
                             XML_AT "period \"%s\" is neither a number nor exp(rate), rate in %g ... %g", XML_HERE(x),
                             period, 1 / PLAN_PERIOD_MOST, 1 / PLAN_PERIOD_LEAST);
        }
        w->kind = PLAN_POISSON;
        w->period_s = 1 / rate;
    } else if (period != NULL) {
        DT_TRY_H(xml_number(x, "period", 0, PLAN_PERIOD_LEAST, PLAN_PERIOD_MOST, &w->period_s));
    } else if (per_hour > 0) {
        w->period_s = 3600 / per_hour;
    } else if (chance > 0) {
        w->kind = PLAN_CHANCE;
        w->period_s = 1 / chance;
    } else if (n_text != NULL) {
        int32_t n;
        DT_TRY_H(xml_count(x, "number", 0, 0, 100000000, &n));
        w->period_s = n > 0 ? (w->end_s - w->begin_s) / n : PLAN_PERIOD_MOST;
        w->end_s = n > 0 ? w->end_s : w->begin_s;
        n_text = NULL;
    } else {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "has no period, vehsPerHour, probability or number", XML_HERE(x));
    }
    if (w->end_s < w->begin_s) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "ends at %g s, before it begins at %g s", XML_HERE(x), w->end_s,
                         w->begin_s);
    }
    if (w->end_s == w->begin_s) {
        w->period_s = PLAN_PERIOD_MOST; /* nobody: whatever it says, 0 / 0 too */
    }
    if (!(w->period_s >= PLAN_PERIOD_LEAST && w->period_s <= PLAN_PERIOD_MOST)) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "makes a vehicle every %g s; %g to %g s can be", XML_HERE(x),
                         w->period_s, PLAN_PERIOD_LEAST, PLAN_PERIOD_MOST);
    }
    if (n_text != NULL && w->kind == PLAN_REGULAR) {
        int32_t n;
        DT_TRY_H(xml_count(x, "number", 0, 0, 100000000, &n));
        w->end_s = w->end_s < w->begin_s + n * w->period_s ? w->end_s : w->begin_s + (n - 0.5) * w->period_s;
    }
    return DT_OK;
}

static dt_status open_vehicle(planfile *r, xml *x)
{
    const char *route = xml_get(x, "route");
    r->trip = (plan_trip){0};
    r->flow = (plan_flow){0};
    r->is_open = 1;
    r->line = x->line;
    r->has_route = 0;
    DT_TRY_H(find_type(r, x, &r->trip.type));
    DT_TRY_H(read_begin(r, x));
    if (xml_is(x, "flow")) {
        DT_TRY_H(read_flow(r, x));
    } else {
        const char *depart;
        DT_TRY_H(xml_need(x, "depart", &depart));
        DT_TRY_H(xml_number(x, "depart", 0, 0, TIME_MOST, &r->flow.begin_s));
        r->flow.kind = PLAN_ONCE;
    }
    if (route != NULL) {
        const int32_t k = names_find(&r->route_names, route);
        if (k < 0) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "route \"%s\" is not known: it comes before its vehicles",
                             XML_HERE(x), route);
        }
        const plan_trip *known = &((const plan_trip *)r->routes.items)[k];
        r->trip.edge = known->edge;
        r->trip.n_edges = known->n_edges;
        r->has_route = 1;
    } else if (xml_get(x, "from") != NULL || xml_is(x, "trip")) {
        DT_TRY_H(find_way(r, x, &r->trip));
        r->has_route = 1;
    }
    return DT_OK;
}

/* The whole vehicle has been read: it drives, when it is due within the episode. */
static dt_status close_vehicle(planfile *r, const xml *x)
{
    plan_flow w = r->flow, *flow;
    r->is_open = 0;
    if (!r->has_route) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> has no route", x->path, (int)r->line, x->element);
    }
    plan_type *type = &((plan_type *)r->p->types.items)[r->trip.type];
    w.begin_s -= r->begin_s;
    w.end_s -= r->begin_s;
    const double last = r->end_s - r->begin_s;
    const int is_due = w.kind == PLAN_ONCE ? w.begin_s >= 0 && w.begin_s < last : w.begin_s < last && w.end_s > 0;
    if (!is_due || !type->is_car) {
        return DT_OK;
    }
    if (r->trip.lane >= r->n->edge[PLAN_EDGE(r->p, r->trip.edge)].n_lanes) {
        return DT_FAIL_H(r->h, DT_EDATA, "%s:%d: <%s> departLane %d is none of its edge", x->path, (int)r->line,
                         x->element, (int)r->trip.lane);
    }
    const double end = w.end_s < last ? w.end_s : last;
    const double every_s = w.kind == PLAN_CHANCE ? 1 : w.period_s;
    r->p->n_steps += w.kind == PLAN_ONCE ? 1 : 1 + (end - w.begin_s) / every_s;
    if (!(r->p->n_steps <= PLAN_MOST)) {
        return DT_FAIL_H(
            r->h, DT_EDATA,
            "%s:%d: <%s> brings the vehicles that are due until %g s to %.0f; at most %.0f are simulated: a "
            "shorter episode_s, or a longer period, makes less",
            x->path, (int)r->line, x->element, r->end_s, r->p->n_steps, PLAN_MOST);
    }
    plan_trip *trip;
    w.trip = r->p->trips.n;
    DT_TRY_H(list_add(r->h, &r->p->trips, sizeof(*trip), &trip));
    *trip = r->trip;
    DT_TRY_H(list_add(r->h, &r->p->flows, sizeof(*flow), &flow));
    *flow = w;
    const double seen = end - (w.begin_s > 0 ? w.begin_s : 0);
    type->n_vehicles += w.kind == PLAN_ONCE ? 1 : 1 + (int64_t)(seen / w.period_s); /* at most PLAN_MOST of them */
    return DT_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int is_vehicle(const xml *x)
{
    return xml_is(x, "vehicle") || xml_is(x, "trip") || xml_is(x, "flow");
}

static dt_status begin(xml *x)
{
    planfile *r = x->user;
    if (x->depth == 0) {
        return xml_is(x, "routes") || xml_is(x, "additional")
                   ? DT_OK
                   : DT_FAIL_H(r->h, DT_EDATA, XML_AT "is not the <routes> of SUMO", XML_HERE(x));
    }
    if (xml_is(x, "vType")) {
        return open_type(r, x);
    }
    if (xml_is(x, "route")) {
        return open_route(r, x);
    }
    if (is_vehicle(x)) {
        return open_vehicle(r, x);
    }
    if (xml_is(x, "routeDistribution") || xml_is(x, "vTypeDistribution")) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "is not known here: name one route or vType per vehicle", XML_HERE(x));
    }
    return xml_is(x, "param") ? DT_OK : file_leave_out(&r->notes, x, "is left out: not simulated");
}

static dt_status end(xml *x)
{
    planfile *r = x->user;
    return is_vehicle(x) && r->is_open ? close_vehicle(r, x) : DT_OK;
}

static dt_status read_all(planfile *r, const xml_text *text)
{
    static const xml_calls calls = {.begin = begin, .end = end};
    int32_t number;
    plan_type *t;
    DT_TRY_H(names_add(r->h, &r->type_names, "DEFAULT_VEHTYPE", &number));
    DT_TRY_H(list_add(r->h, &r->p->types, sizeof(*t), &t));
    *t = type_of_class("passenger");
    DT_TRY_H(xml_read(r->h, text, &calls, r));
    file_say_notes(r->h, text->path, &r->notes);
    if (r->p->flows.n == 0) {
        return DT_FAIL_H(r->h, DT_ECONFIG,
                         "%s: no vehicle is due from %g s (begin_s) to %g s (begin_s + episode_s): nobody would drive",
                         text->path, r->begin_s, r->end_s);
    }
    return DT_OK;
}

dt_status plan_read(trip_plan *p, const dt_host *h, const xml_text *text, const netfile *f, const net *n,
                    route_search *search, double begin_s, double end_s)
{
    planfile r = {.p = p, .h = h, .f = f, .n = n, .search = search, .begin_s = begin_s, .end_s = end_s};
    const dt_status st = read_all(&r, text);
    names_fini(h, &r.type_names);
    names_fini(h, &r.route_names);
    names_fini(h, &r.way_names);
    list_fini(h, &r.routes);
    list_fini(h, &r.ways);
    list_fini(h, &r.notes);
    return st;
}

void plan_fini(trip_plan *p, const dt_host *h)
{
    list_fini(h, &p->types);
    list_fini(h, &p->trips);
    list_fini(h, &p->flows);
    list_fini(h, &p->edges);
}

const plan_type *plan_common_type(const trip_plan *p)
{
    const plan_type *common = PLAN_TYPE(p, 0);
    for (int32_t k = 1; k < p->types.n; k++) {
        common = PLAN_TYPE(p, k)->n_vehicles > common->n_vehicles ? PLAN_TYPE(p, k) : common;
    }
    return common;
}

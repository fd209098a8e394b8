/* SPDX-License-Identifier: Apache-2.0
 *
 * CityFlow's roadnet and flow files: docs "Roadnet File Format" and "Flow File Format". Objects may have keys that are
 * not described there; they are skipped. What the simulation does not need is not checked: "roads" and "outline" of
 * intersections, "roadLinkIndices", "direction".
 */
#include <config.h>

#include "traffic/roadnet/roadnet.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "traffic/text/json_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 512, LANES_MOST = 64, MOVEMENTS_MOST = 1 << 12, TYPE_BYTES = 256 };
#define PLACE_MOST     1e8 /* m */
#define LENGTH_MOST    1e5 /* m, of widths and vehicles */
#define WIDTH_MOST     100 /* m, of lanes and vehicles */
#define SPEED_MOST     200 /* m/s */
#define TIME_MOST      1e9 /* s */
#define YELLOW_S       3   /* from the end of a phase that is at least twice as long */
#define YELLOW_LEAST   (2 * YELLOW_S)
#define ACCEL_MOST     100 /* m/s^2 */
#define INTERVAL_LEAST 1e-3

/* The value of a key as a number within low ... high. */
static dt_status read_number(dt_json *j, const char *what, double low, double high, double *out_p)
{
    DT_TRY(dt_expect_f64(j, what, out_p, NULL));
    return *out_p >= low && *out_p <= high ? DT_OK
                                           : dt_json_fail(j, "%s is %g, outside %g ... %g", what, *out_p, low, high);
}

static dt_status read_count(dt_json *j, const char *what, int64_t high, int32_t *out_p)
{
    int64_t v;
    DT_TRY(dt_expect_i64(j, what, &v));
    if (v < 0 || v > high) {
        return dt_json_fail(j, "%s is %lld, outside 0 ... %lld", what, (long long)v, (long long)high);
    }
    *out_p = (int32_t)v;
    return DT_OK;
}

/* {"x": .., "y": ..}, whose object has been opened */
static dt_status read_point(dt_json *j, rn_point *p)
{
    static const char *const keys[] = {"x", "y", NULL};
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_number(j, keys[which], -PLACE_MOST, PLACE_MOST, which == 0 ? &p->x : &p->y));
    }
    if (st != DT_DONE) {
        return st;
    }
    return seen == 3 ? DT_OK : dt_json_fail(j, "a point needs x and y");
}

static dt_status read_points(roadnet *r, dt_json *j, int32_t *first_p, int32_t *n_p)
{
    *first_p = r->points.n;
    dt_status st;
    DT_TRY(dt_expect_array(j, "points"));
    while ((st = dt_expect_next_object(j, "points")) == DT_OK) {
        rn_point *p, read = {0, 0};
        DT_TRY(read_point(j, &read));
        DT_TRY(rn_add(&r->points, sizeof(*p), &p));
        *p = read;
    }
    *n_p = r->points.n - *first_p;
    return st == DT_DONE ? DT_OK : st;
}

/* ---- roads ------------------------------------------------------------------------------------------------------- */

static dt_status read_lane(roadnet *r, dt_json *j)
{
    static const char *const keys[] = {"width", "maxSpeed", NULL};
    rn_lane *lane;
    uint32_t seen = 0;
    dt_status st;
    int which;
    DT_TRY(rn_add(&r->lanes, sizeof(*lane), &lane));
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_number(j, keys[which], 0.1, which == 0 ? WIDTH_MOST : SPEED_MOST,
                           which == 0 ? &lane->width : &lane->limit));
    }
    if (st != DT_DONE) {
        return st;
    }
    return seen == 3 ? DT_OK : dt_json_fail(j, "a lane needs width and maxSpeed");
}

static dt_status read_lanes(roadnet *r, dt_json *j, rn_road *road)
{
    road->lane = r->lanes.n;
    dt_status st;
    DT_TRY(dt_expect_array(j, "lanes"));
    while ((st = dt_expect_next_object(j, "lanes")) == DT_OK) {
        DT_TRY(read_lane(r, j));
    }
    road->n_lanes = r->lanes.n - road->lane;
    if (st == DT_DONE && (road->n_lanes < 1 || road->n_lanes > LANES_MOST)) {
        return dt_json_fail(j, "a road with %d lanes; it has 1 ... %d", (int)road->n_lanes, LANES_MOST);
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_end(roadnet *r, dt_json *j, const char *what, int32_t *node_p)
{
    char name[NAME_BYTES];
    DT_TRY(dt_expect_str(j, what, name, sizeof(name)));
    return rn_node_number(r, name, node_p);
}

/* A road is put into its place once its id is known, which may be the last of its keys. */
static dt_status place_road(roadnet *r, dt_json *j, const char *id, const rn_road *road)
{
    int32_t number;
    DT_TRY(rn_road_number(r, id, &number));
    if (RN_ROAD(r, number)->is_there) {
        return dt_json_fail(j, "road \"%s\" is defined twice", id);
    }
    if (road->n_points < 2) {
        return dt_json_fail(j, "road \"%s\" has %d points, at least 2 are needed", id, (int)road->n_points);
    }
    *RN_ROAD(r, number) = *road;
    RN_ROAD(r, number)->is_there = 1;
    return DT_OK;
}

static dt_status read_road(roadnet *r, dt_json *j, int64_t line)
{
    static const char *const keys[] = {"id", "points", "lanes", "startIntersection", "endIntersection", NULL};
    rn_road road = {.line = line};
    char id[NAME_BYTES] = "";
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        switch (which) {
        case 0:
            DT_TRY(dt_expect_str(j, "id", id, sizeof(id)));
            break;
        case 1:
            DT_TRY(read_points(r, j, &road.point, &road.n_points));
            break;
        case 2:
            DT_TRY(read_lanes(r, j, &road));
            break;
        default:
            DT_TRY(read_end(r, j, keys[which], which == 3 ? &road.from : &road.to));
        }
    }
    if (st != DT_DONE) {
        return st;
    }
    if (seen != 31) {
        return dt_json_fail(j, "road \"%s\" lacks id, points, lanes, startIntersection or endIntersection", id);
    }
    return place_road(r, j, id, &road);
}

/* ---- intersections ----------------------------------------------------------------------------------------------- */

static dt_status read_lane_link(roadnet *r, dt_json *j, rn_link *l)
{
    static const char *const keys[] = {"startLaneIndex", "endLaneIndex", "points", NULL};
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(which == 2 ? read_points(r, j, &l->point, &l->n_points)
                          : read_count(j, keys[which], LANES_MOST, which == 0 ? &l->from_lane : &l->to_lane));
    }
    if (st != DT_DONE) {
        return st;
    }
    return (seen & 3) == 3 ? DT_OK : dt_json_fail(j, "a laneLink needs startLaneIndex and endLaneIndex");
}

static dt_status read_lane_links(roadnet *r, dt_json *j, int32_t movement)
{
    dt_status st;
    DT_TRY(dt_expect_array(j, "laneLinks"));
    while ((st = dt_expect_next_object(j, "laneLinks")) == DT_OK) {
        rn_link *l, read = {.movement = movement};
        DT_TRY(read_lane_link(r, j, &read));
        DT_TRY(rn_add(&r->links, sizeof(*l), &l));
        *l = read;
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_turn(dt_json *j, rn_turn *turn_p)
{
    static const struct {
        const char *name;
        rn_turn turn;
    } names[] = {{"go_straight", RN_STRAIGHT}, {"turn_right", RN_RIGHT}, {"turn_left", RN_LEFT}, {"turn_u", RN_BACK}};
    char text[NAME_BYTES];
    DT_TRY(dt_expect_str(j, "type", text, sizeof(text)));
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (strcmp(text, names[k].name) == 0) {
            *turn_p = names[k].turn;
            return DT_OK;
        }
    }
    return dt_json_fail(j, "type \"%s\" of a roadLink is none of go_straight, turn_left, turn_right, turn_u", text);
}

static dt_status read_road_link(roadnet *r, dt_json *j, int32_t movement)
{
    static const char *const keys[] = {"type", "startRoad", "endRoad", "laneLinks", NULL};
    const int32_t first = r->links.n;
    char name[NAME_BYTES];
    int32_t from = 0, to = 0;
    rn_turn turn = RN_STRAIGHT;
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        if (which == 0) {
            DT_TRY(read_turn(j, &turn));
        } else if (which == 3) {
            DT_TRY(read_lane_links(r, j, movement));
        } else {
            DT_TRY(dt_expect_str(j, keys[which], name, sizeof(name)));
            DT_TRY(rn_road_number(r, name, which == 1 ? &from : &to));
        }
    }
    if (st != DT_DONE) {
        return st;
    }
    if (seen != 15) {
        return dt_json_fail(j, "a roadLink needs type, startRoad, endRoad and laneLinks");
    }
    for (int32_t k = first; k < r->links.n; k++) {
        rn_link *l = RN_LINK(r, k);
        l->from = from;
        l->to = to;
        l->turn = turn;
    }
    return DT_OK;
}

static dt_status read_phase(roadnet *r, dt_json *j)
{
    static const char *const keys[] = {"time", "availableRoadLinks", NULL};
    rn_phase *p, read = {.movement = r->movements.n};
    uint64_t named[MOVEMENTS_MOST / 64] = {0};
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        if (which == 0) {
            DT_TRY(read_number(j, "time", 0.1, TIME_MOST, &read.duration_s));
            continue;
        }
        double movement;
        DT_TRY(dt_expect_array(j, "availableRoadLinks"));
        while ((st = dt_expect_next_f64(j, "availableRoadLinks", &movement)) == DT_OK) {
            int32_t *m;
            if (!(movement >= 0 && movement < MOVEMENTS_MOST) || movement != floor(movement)) {
                return dt_json_fail(j, "availableRoadLinks has %g, not the index of a roadLink", movement);
            }
            uint64_t *word = &named[(int32_t)movement / 64];
            const uint64_t bit = UINT64_C(1) << ((int32_t)movement % 64);
            if ((*word & bit) == 0) {
                DT_TRY(rn_add(&r->movements, sizeof(*m), &m));
                *m = (int32_t)movement;
                *word |= bit;
            }
        }
        if (st != DT_DONE) {
            return st;
        }
    }
    if (st != DT_DONE) {
        return st;
    }
    if (seen != 3) {
        return dt_json_fail(j, "a light phase needs time and availableRoadLinks");
    }
    read.n_movements = r->movements.n - read.movement;
    if (read.duration_s >= YELLOW_LEAST) {
        read.yellow_s = YELLOW_S;
        read.duration_s -= YELLOW_S;
    }
    DT_TRY(rn_add(&r->phases, sizeof(*p), &p));
    *p = read;
    return DT_OK;
}

/* {"lightphases": [...]}; a fixed program of one phase is none, as in CityFlow. */
static dt_status read_signal(roadnet *r, dt_json *j, rn_node *node)
{
    static const char *const keys[] = {"lightphases", NULL};
    uint32_t seen = 0;
    dt_status st;
    int which;
    DT_TRY(dt_expect_object(j, "trafficLight"));
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        node->phase = r->phases.n;
        DT_TRY(dt_expect_array(j, "lightphases"));
        while ((st = dt_expect_next_object(j, "lightphases")) == DT_OK) {
            DT_TRY(read_phase(r, j));
        }
        if (st != DT_DONE) {
            return st;
        }
        node->n_phases = r->phases.n - node->phase;
    }
    node->n_phases = node->n_phases > 1 ? node->n_phases : 0;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status check_phases(const roadnet *r, dt_json *j, const rn_node *node, int32_t n_movements, const char *id)
{
    for (int32_t p = node->phase; p < node->phase + node->n_phases; p++) {
        const rn_phase *phase = RN_AT(r->phases, rn_phase, p);
        for (int32_t k = phase->movement; k < phase->movement + phase->n_movements; k++) {
            const int32_t m = *RN_AT(r->movements, int32_t, k);
            if (m >= n_movements) {
                return dt_json_fail(j, "phase %d of intersection \"%s\" names roadLink %d, but there are %d, from 0 on",
                                    (int)(p - node->phase), id, (int)m, (int)n_movements);
            }
        }
    }
    return DT_OK;
}

static dt_status place_node(roadnet *r, dt_json *j, const char *id, const rn_node *node, int32_t first_link)
{
    int32_t number;
    DT_TRY(rn_node_number(r, id, &number));
    if (RN_NODE(r, number)->is_there) {
        return dt_json_fail(j, "intersection \"%s\" is defined twice", id);
    }
    *RN_NODE(r, number) = *node;
    RN_NODE(r, number)->is_there = 1;
    for (int32_t k = first_link; k < r->links.n; k++) {
        RN_LINK(r, k)->node = number;
    }
    return DT_OK;
}

static dt_status read_node(roadnet *r, dt_json *j, int64_t line)
{
    static const char *const keys[] = {"id", "point", "width", "roadLinks", "trafficLight", "virtual", NULL};
    rn_node node = {.line = line};
    const int32_t first_link = r->links.n;
    char id[NAME_BYTES] = "";
    bool is_virtual = false;
    uint32_t seen = 0;
    int32_t n_movements = 0;
    rn_point at = {0, 0};
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        switch (which) {
        case 0:
            DT_TRY(dt_expect_str(j, "id", id, sizeof(id)));
            break;
        case 1:
            DT_TRY(dt_expect_object(j, "point"));
            DT_TRY(read_point(j, &at));
            break;
        case 2:
            DT_TRY(read_number(j, "width", 0, LENGTH_MOST, &node.radius));
            break;
        case 3:
            DT_TRY(dt_expect_array(j, "roadLinks"));
            while ((st = dt_expect_next_object(j, "roadLinks")) == DT_OK) {
                if (n_movements == MOVEMENTS_MOST) {
                    return dt_json_fail(j, "intersection \"%s\" has more than %d roadLinks", id, MOVEMENTS_MOST);
                }
                DT_TRY(read_road_link(r, j, n_movements++));
            }
            if (st != DT_DONE) {
                return st;
            }
            break;
        case 4:
            DT_TRY(read_signal(r, j, &node));
            break;
        default:
            DT_TRY(dt_expect_bool(j, "virtual", &is_virtual));
        }
    }
    if (st != DT_DONE) {
        return st;
    }
    if ((seen & 3) != 3) {
        return dt_json_fail(j, "intersection \"%s\" lacks id or point", id);
    }
    node.x = at.x;
    node.y = at.y;
    if (is_virtual) { /* the border: nothing there is simulated */
        node.radius = 0;
    }
    if (is_virtual || first_link == r->links.n) { /* nothing to control */
        node.n_phases = 0;
    }
    for (int32_t k = node.phase; k < node.phase + node.n_phases; k++) {
        r->carved_s = fmax(r->carved_s, RN_AT(r->phases, rn_phase, k)->yellow_s);
    }
    DT_TRY(check_phases(r, j, &node, n_movements, id));
    return place_node(r, j, id, &node, first_link);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static dt_status read_items(roadnet *r, dt_json *j, const char *what, dt_status (*read)(roadnet *, dt_json *, int64_t))
{
    DT_TRY(dt_expect_array(j, what));
    for (;;) {
        dt_json_token t;
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        if (t.kind != DT_JSON_OBJECT) {
            return dt_json_fail(j, "%s must hold objects, but has %s", what, dt_expect_kind(t.kind));
        }
        DT_TRY(read(r, j, t.line));
    }
}

static dt_status read_roadnet(roadnet *r, dt_json *j)
{
    static const char *const keys[] = {"intersections", "roads", NULL};
    uint32_t seen = 0;
    dt_status st;
    int which;
    DT_TRY(dt_expect_object(j, "a roadnet"));
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_items(r, j, keys[which], which == 0 ? read_node : read_road));
    }
    if (st != DT_DONE) {
        return st;
    }
    if (seen != 3) {
        return dt_json_fail(j,
                            "a roadnet of CityFlow needs \"intersections\" and \"roads\"; a configuration of an engine "
                            "names it as roadnetFile");
    }
    return dt_expect_end(j);
}

dt_status cityflow_read_roads(roadnet *r, rn_text text)
{
    dt_json *j;
    DT_TRY(dt_json_open_mem(text.text, text.bytes, r->path, &j));
    const dt_status st = read_roadnet(r, j);
    dt_json_close(j);
    return st;
}

/* ---- demand ------------------------------------------------------------------------------------------------------ */

static dt_status read_vehicle(dt_json *j, rn_type *type)
{
    static const char *const keys[] = {"length",      "width",  "usualPosAcc", "usualNegAcc", "maxNegAcc",
                                       "headwayTime", "minGap", "maxSpeed",    NULL};
    static const double high[] = {LENGTH_MOST, WIDTH_MOST, ACCEL_MOST,  ACCEL_MOST,
                                  ACCEL_MOST,  1e3,        LENGTH_MOST, SPEED_MOST};
    static const double low[] = {0.1, 0.1, 0.01, 0.01, 0.01, 0, 0, 0.1};
    double *const value[] = {&type->length,          &type->width, &type->accel, &type->decel,
                             &type->emergency_decel, &type->tau,   &type->gap,   &type->speed};
    uint32_t seen = 0;
    dt_status st;
    int which;
    DT_TRY(dt_expect_object(j, "vehicle"));
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_number(j, keys[which], low[which], high[which], value[which]));
    }
    if (st != DT_DONE) {
        return st;
    }
    return seen == 255
               ? DT_OK
               : dt_json_fail(j, "a vehicle needs length, width, usualPosAcc, usualNegAcc, maxNegAcc, headwayTime, "
                                 "minGap and maxSpeed");
}

static dt_status add_type(rn_demand *d, const rn_type *type, int32_t *number_p)
{
    char name[TYPE_BYTES];
    bool is_new;
    rn_type *kept;
    snprintf(name, sizeof(name), "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g", type->length, type->width,
             type->accel, type->decel, type->emergency_decel, type->gap, type->tau, type->speed);
    DT_TRY(dt_names_add(&d->type_names, name, number_p, &is_new));
    if (!is_new) {
        return DT_OK;
    }
    DT_TRY(rn_add(&d->types, sizeof(*kept), &kept));
    *kept = *type;
    return DT_OK;
}

static dt_status read_route(rn_demand *d, const roadnet *r, dt_json *j, rn_flow *flow)
{
    char name[NAME_BYTES];
    dt_status st;
    flow->road = d->roads.n;
    DT_TRY(dt_expect_array(j, "route"));
    while ((st = dt_expect_next_str(j, "route", name, sizeof(name))) == DT_OK) {
        int32_t *road;
        const int32_t number = dt_names_find(&r->road_names, name);
        if (number < 0) {
            return dt_json_fail(j, "route names road \"%s\", which is not in %s", name, r->path);
        }
        DT_TRY(rn_add(&d->roads, sizeof(*road), &road));
        *road = number;
    }
    flow->n_roads = d->roads.n - flow->road;
    if (st == DT_DONE && flow->n_roads == 0) {
        return dt_json_fail(j, "route names no road");
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_flow(rn_demand *d, const roadnet *r, dt_json *j, int64_t line)
{
    static const char *const keys[] = {"vehicle", "route", "interval", "startTime", "endTime", NULL};
    rn_type type = {0};
    rn_flow *kept, flow = {.line = line, .period_s = 1, .end_s = -1};
    uint32_t seen = 0;
    dt_status st;
    int which;
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        switch (which) {
        case 0:
            DT_TRY(read_vehicle(j, &type));
            break;
        case 1:
            DT_TRY(read_route(d, r, j, &flow));
            break;
        case 2:
            DT_TRY(read_number(j, "interval", 0, TIME_MOST, &flow.period_s));
            break;
        case 3:
            DT_TRY(read_number(j, "startTime", 0, TIME_MOST, &flow.begin_s));
            break;
        default:
            DT_TRY(read_number(j, "endTime", -1, TIME_MOST, &flow.end_s));
        }
    }
    if (st != DT_DONE) {
        return st;
    }
    if ((seen & 3) != 3) {
        return dt_json_fail(j, "a flow needs vehicle and route");
    }
    if (flow.end_s >= 0 && flow.end_s < flow.begin_s) {
        return dt_json_fail(j, "a flow ends at %g s (endTime) before it begins at %g s (startTime)", flow.end_s,
                            flow.begin_s);
    }
    if (flow.period_s < INTERVAL_LEAST && flow.end_s != flow.begin_s) {
        return dt_json_fail(j, "interval %g s of a flow is below %g s", flow.period_s, INTERVAL_LEAST);
    }
    DT_TRY(add_type(d, &type, &flow.type));
    DT_TRY(rn_add(&d->flows, sizeof(*kept), &kept));
    *kept = flow;
    return DT_OK;
}

static dt_status read_flows(rn_demand *d, const roadnet *r, dt_json *j)
{
    DT_TRY(dt_expect_array(j, "flows"));
    for (;;) {
        dt_json_token t;
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return dt_expect_end(j);
        }
        if (t.kind != DT_JSON_OBJECT) {
            return dt_json_fail(j, "flows must be objects, but one is %s", dt_expect_kind(t.kind));
        }
        DT_TRY(read_flow(d, r, j, t.line));
    }
}

dt_status cityflow_read_flows(rn_demand *d, roadnet *r, rn_text text)
{
    dt_json *j;
    DT_TRY(dt_json_open_mem(text.text, text.bytes, d->path, &j));
    const dt_status st = read_flows(d, r, j);
    dt_json_close(j);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps of lanelet2 (Poggenhans et al., "Lanelet2: A high-definition map framework", ITSC 2018; lanelet2_core/doc says
 * what its tags mean): OSM XML of nodes, ways, and relations of type lanelet with a left and a right way. Areas, lines
 * and rules other than limits of speed are not read.
 *
 * A lanelet goes in the direction in which its left way is on its left: ways are turned round for it. One follows
 * another where it begins with the nodes that the other ends with, on both sides. It lies beside one that shares a
 * border way in the same direction; of several such the first in the file is its neighbour. Nodes have x and y of their
 * own, as attributes or as tags local_x and local_y, or degrees: those become UTM, in the zone of the origin, less the
 * origin's place, as lanelet2's UtmProjector does; without an origin it is (0, 0), which the maps of INTERACTION count
 * from.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/features.h"
#include "data/lane_book.h"
#include "data/map_in.h"
#include "data/utm.h"
#include "data/xml_in.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 32, LEFT = 0, RIGHT = 1 };
enum { LATITUDE, LONGITUDE, X, Y, N_COORDINATES };

typedef struct node {
    double at[N_COORDINATES]; /* NAN: not there */
} node;

typedef struct way {
    int64_t first, n; /* into the pool of nodes of ways */
} way;

typedef struct lanelet {
    int64_t line, id;
    int32_t way[2]; /* -1: none yet */
    bool is_turned[2];
    int32_t kind;
    double limit;             /* m/s, 0: unknown */
    int64_t rule, n_rules;    /* into the references to rules */
    int32_t begin[2], end[2]; /* nodes, when it is directed */
} lanelet;

typedef struct pool { /* of int32, or of what stands beside names */
    void *data;
    int64_t n, cap;
} pool;

typedef enum part { OUTSIDE, NODE, WAY, RELATION } part;

typedef struct map {
    const char *path;
    const dt_map_origin *origin;
    part part;
    int64_t line; /* of the part that is open */
    char id[ID_BYTES];
    dt_names nodes, ways, rules, wanted_rules;
    pool node, way, lanelet; /* [names.n], [names.n], as they came */
    pool way_node;           /* int32 numbers of nodes */
    pool rule_limit;         /* double [rules.n] m/s, 0: none */
    pool rule_ref;           /* int32 numbers of wanted rules */
    node new_node;
    lanelet new_lanelet;
    char type[32], subtype[32];
    char sign[64]; /* of a rule */
    bool has_turn;
    int64_t n_unknown_limits;
    char unknown_limit[64]; /* one of them */
    dt_lane_book book;
} map;

static dt_status reserve(pool *p, size_t size)
{
    if (p->n < p->cap) {
        return DT_OK;
    }
    const int64_t cap = p->cap == 0 ? 256 : 2 * p->cap;
    void *grown = p->n > INT32_MAX / 2 ? NULL : dt_realloc(p->data, (size_t)cap * size);
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a map of %" PRId64 " pieces", cap);
    }
    p->data = grown;
    p->cap = cap;
    return DT_OK;
}

#define PUSH(p, T, value) (reserve(p, sizeof(T)) == DT_OK ? (((T *)(p)->data)[(p)->n++] = (value), DT_OK) : DT_ENOMEM)
#define AT(p, T, i)       (((T *)(p).data)[i])

static dt_status read_id(const dt_xml *x, const char *attribute, char id[ID_BYTES])
{
    const char *text = NULL;
    double number = 0;
    DT_TRY(dt_xml_need(x, attribute, &text));
    DT_TRY(dt_xml_number(x, attribute, text, -9e15, 9e15, &number));
    if (number != floor(number)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "%s is \"%.60s\", not an integer", DT_XML_HERE(x), attribute, text);
    }
    snprintf(id, ID_BYTES, "%" PRId64, (int64_t)number);
    return DT_OK;
}

/* A number of its own for what is open; nothing may be there twice. */
static dt_status number_it(const dt_xml *x, dt_names *names, const char *what, const char *id)
{
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_names_add(names, id, &number, &is_new));
    return is_new ? DT_OK : DT_FAIL(DT_EDATA, DT_XML_AT "%s %s is there twice", DT_XML_HERE(x), what, id);
}

/* ---- begins ------------------------------------------------------------------------------------------------------ */

static dt_status begin_node(map *m, const dt_xml *x)
{
    static const struct {
        const char *name;
        double most;
    } coordinate[N_COORDINATES] = {
        {"lat", DT_UTM_LATITUDE_MAX}, {"lon", 180}, {"x", DT_POSITION_MAX_M}, {"y", DT_POSITION_MAX_M}};
    for (int i = 0; i < N_COORDINATES; i++) {
        const char *text = dt_xml_get(x, coordinate[i].name);
        m->new_node.at[i] = NAN;
        if (text != NULL) {
            DT_TRY(dt_xml_number(x, coordinate[i].name, text, -coordinate[i].most, coordinate[i].most,
                                 &m->new_node.at[i]));
        }
    }
    return number_it(x, &m->nodes, "node", m->id);
}

static dt_status begin_way(map *m, const dt_xml *x)
{
    DT_TRY(number_it(x, &m->ways, "way", m->id));
    return PUSH(&m->way, way, ((way){.first = m->way_node.n}));
}

static dt_status begin_part(map *m, const dt_xml *x)
{
    const char *action = dt_xml_get(x, "action");
    m->part = dt_xml_is(x, "node") ? NODE : dt_xml_is(x, "way") ? WAY : dt_xml_is(x, "relation") ? RELATION : OUTSIDE;
    if (m->part == OUTSIDE || (action != NULL && strcmp(action, "delete") == 0)) {
        m->part = OUTSIDE; /* an editor's note of what is there no more */
        return DT_OK;
    }
    DT_TRY(read_id(x, "id", m->id));
    m->line = x->line;
    m->type[0] = m->subtype[0] = '\0';
    m->sign[0] = '\0';
    m->has_turn = false;
    m->new_lanelet = (lanelet){.line = x->line, .id = strtoll(m->id, NULL, 10), .way = {-1, -1}, .rule = m->rule_ref.n};
    return m->part == NODE ? begin_node(m, x) : m->part == WAY ? begin_way(m, x) : DT_OK;
}

static dt_status add_way_node(map *m, const dt_xml *x)
{
    char id[ID_BYTES];
    DT_TRY(read_id(x, "ref", id));
    const int32_t number = dt_names_find(&m->nodes, id);
    if (number < 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "way %s has node %s, which is not there before it", DT_XML_HERE(x), m->id,
                       id);
    }
    AT(m->way, way, m->way.n - 1).n++;
    return PUSH(&m->way_node, int32_t, number);
}

static dt_status add_bound(map *m, const dt_xml *x, int side)
{
    char id[ID_BYTES];
    DT_TRY(read_id(x, "ref", id));
    int32_t *to = &m->new_lanelet.way[side];
    if (*to != -1) {
        *to = -2; /* several; only lanelets mind */
        return DT_OK;
    }
    const int32_t number = dt_names_find(&m->ways, id);
    if (number < 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "relation %s has way %s, which is not there before it", DT_XML_HERE(x),
                       m->id, id);
    }
    *to = number;
    return DT_OK;
}

static dt_status add_member(map *m, const dt_xml *x)
{
    const char *role = dt_xml_get(x, "role"), *type = dt_xml_get(x, "type");
    if (role == NULL || type == NULL) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of relation %s has no role or no type", DT_XML_HERE(x), m->id);
    }
    const int side = strcmp(role, "left") == 0 ? LEFT : strcmp(role, "right") == 0 ? RIGHT : -1;
    if (side >= 0 && strcmp(type, "way") == 0) {
        return add_bound(m, x, side);
    }
    if (strcmp(role, "regulatory_element") == 0 && strcmp(type, "relation") == 0) {
        char id[ID_BYTES];
        int32_t number = 0;
        bool is_new = false;
        DT_TRY(read_id(x, "ref", id));
        DT_TRY(dt_names_add(&m->wanted_rules, id, &number, &is_new));
        m->new_lanelet.n_rules++;
        return PUSH(&m->rule_ref, int32_t, number);
    }
    return DT_OK;
}

/* "50", "50 km/h", "30 mph", "13.9 m/s" or "de274-50" in m/s; false: none of them. As in lanelet2, km/h is meant where
 * nothing is said. */
static bool read_speed(const char *text, double *out_p)
{
    static const struct {
        const char *unit;
        double mps;
    } units[] = {{"", 1 / 3.6},    {"km/h", 1 / 3.6}, {"kmh", 1 / 3.6}, {"kmph", 1 / 3.6},
                 {"mph", 0.44704}, {"m/s", 1},        {"mps", 1}};
    static const char sign[] = "de274-";
    char number[32];
    double value = 0;
    text = strncmp(text, sign, strlen(sign)) == 0 ? text + strlen(sign) : text;
    const size_t n = strspn(text, "0123456789.");
    if (n == 0 || n >= sizeof(number)) {
        return false;
    }
    memcpy(number, text, n);
    number[n] = '\0';
    const char *unit = text + n + strspn(text + n, " ");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) == 0 && dt_parse_f64(number, &value)) {
            *out_p = value * units[i].mps;
            return *out_p > 0 && *out_p <= DT_LANE_LIMIT_MAX;
        }
    }
    return false;
}

/* The lowest of all that is said. */
static void limit_to(map *m, const char *text, double *limit)
{
    double speed = 0;
    if (read_speed(text, &speed)) {
        *limit = *limit > 0 ? fmin(*limit, speed) : speed;
    } else if (m->n_unknown_limits++ == 0) {
        snprintf(m->unknown_limit, sizeof(m->unknown_limit), "%s", text);
    }
}

static dt_status add_tag(map *m, const dt_xml *x)
{
    const char *key = NULL, *value = NULL;
    DT_TRY(dt_xml_need(x, "k", &key));
    DT_TRY(dt_xml_need(x, "v", &value));
    if (m->part == NODE && (strcmp(key, "local_x") == 0 || strcmp(key, "local_y") == 0)) {
        return dt_xml_number(x, key, value, -DT_POSITION_MAX_M, DT_POSITION_MAX_M,
                             &m->new_node.at[strcmp(key, "local_x") == 0 ? X : Y]);
    }
    if (m->part != RELATION) {
        return DT_OK;
    }
    if (strcmp(key, "type") == 0) {
        snprintf(m->type, sizeof(m->type), "%s", value);
    } else if (strcmp(key, "subtype") == 0) {
        snprintf(m->subtype, sizeof(m->subtype), "%s", value);
    } else if (strcmp(key, "turn_direction") == 0) {
        m->has_turn = true;
    } else if (strcmp(key, "speed_limit") == 0) {
        limit_to(m, value, &m->new_lanelet.limit);
    } else if (strcmp(key, "sign_type") == 0) {
        snprintf(m->sign, sizeof(m->sign), "%s", value);
    }
    return DT_OK;
}

static dt_status begin(dt_xml *x)
{
    map *m = x->user;
    if (x->depth < 2) {
        return x->depth == 1 ? begin_part(m, x) : DT_OK;
    }
    if (m->part == OUTSIDE) {
        return DT_OK;
    }
    if (dt_xml_is(x, "tag")) {
        return add_tag(m, x);
    }
    if (m->part == WAY && dt_xml_is(x, "nd")) {
        return add_way_node(m, x);
    }
    return m->part == RELATION && dt_xml_is(x, "member") ? add_member(m, x) : DT_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static int32_t kind_of(const map *m)
{
    static const struct {
        const char *subtype;
        int32_t kind;
    } kinds[] = {{"road", DT_LANE_ROAD},       {"play_street", DT_LANE_ROAD},
                 {"highway", DT_LANE_HIGHWAY}, {"exit", DT_LANE_RAMP},
                 {"bus_lane", DT_LANE_BUS},    {"bicycle_lane", DT_LANE_BICYCLE},
                 {"walkway", DT_LANE_FOOT},    {"shared_walkway", DT_LANE_FOOT},
                 {"crosswalk", DT_LANE_FOOT},  {"stairs", DT_LANE_FOOT},
                 {"", DT_LANE_UNKNOWN}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(m->subtype, kinds[i].subtype) == 0) {
            return m->has_turn && kinds[i].kind <= DT_LANE_ROAD ? DT_LANE_JUNCTION : kinds[i].kind;
        }
    }
    return DT_LANE_OTHER;
}

static dt_status end_lanelet(map *m)
{
    lanelet *l = &m->new_lanelet;
    for (int side = 0; side < 2; side++) {
        if (l->way[side] < 0) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": lanelet %s has %s way on its %s", m->path, m->line, m->id,
                           l->way[side] == -1 ? "no" : "more than one", side == LEFT ? "left" : "right");
        }
        if (AT(m->way, way, l->way[side]).n < 2) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": lanelet %s has way %s on its %s, which has not two nodes",
                           m->path, m->line, m->id, m->ways.name[l->way[side]], side == LEFT ? "left" : "right");
        }
    }
    l->kind = kind_of(m);
    return PUSH(&m->lanelet, lanelet, *l);
}

static dt_status end(dt_xml *x)
{
    map *m = x->user;
    const part open = m->part;
    if (x->depth != 1) {
        return DT_OK;
    }
    m->part = OUTSIDE;
    if (open == NODE) {
        return PUSH(&m->node, node, m->new_node);
    }
    if (open != RELATION) {
        return DT_OK;
    }
    if (strcmp(m->type, "lanelet") == 0) {
        return end_lanelet(m);
    }
    m->rule_ref.n = m->new_lanelet.rule; /* areas have rules too */
    if (strcmp(m->type, "regulatory_element") == 0) {
        const bool is_limit = strcmp(m->subtype, "speed_limit") == 0;
        double limit = is_limit ? m->new_lanelet.limit : 0; /* what its tag speed_limit says */
        if (is_limit && m->sign[0] != '\0') {
            limit_to(m, m->sign, &limit);
        }
        DT_TRY(number_it(x, &m->rules, "regulatory element", m->id));
        return PUSH(&m->rule_limit, double, limit);
    }
    return DT_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Whether nodes have x and y of their own: all of them, or none. With an origin all have latitude and longitude. */
static dt_status are_local(const map *m, bool *out_p)
{
    int64_t local = 0;
    for (int64_t i = 0; i < m->node.n; i++) {
        const double *at = AT(m->node, node, i).at;
        const bool is_local = !isnan(at[X]) && !isnan(at[Y]);
        local += is_local;
        const bool is_global = !isnan(at[LATITUDE]) && !isnan(at[LONGITUDE]);
        if (!is_local && !is_global) {
            return DT_FAIL(DT_EDATA, "%s: node %s has neither x and y nor lat and lon", m->path, m->nodes.name[i]);
        }
        if (m->origin->is_given && !is_global) {
            return DT_FAIL(DT_EDATA, "%s: node %s has no lat and lon, which an origin needs", m->path,
                           m->nodes.name[i]);
        }
    }
    *out_p = local > 0 && !m->origin->is_given;
    return local == 0 || local == m->node.n || m->origin->is_given
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: %" PRId64 " of %" PRId64 " nodes have x and y: all must, or none", m->path,
                         local, m->node.n);
}

/* x and y of every node. */
static dt_status place(map *m)
{
    bool is_local = false;
    DT_TRY(are_local(m, &is_local));
    if (is_local || m->node.n == 0) {
        return DT_OK;
    }
    const dt_map_origin *o = m->origin;
    const double *first = AT(m->node, node, 0).at;
    const int zone = dt_utm_zone(o->is_utm ? first[LONGITUDE] : o->at[1]);
    double origin[2] = {o->at[0], o->at[1]};
    if (!o->is_utm) {
        dt_utm(o->at[0], o->at[1], zone, origin);
    } else if (first[LATITUDE] < 0) {
        origin[1] -= DT_UTM_SOUTH_M;
    }
    for (int64_t i = 0; i < m->node.n; i++) {
        double *at = AT(m->node, node, i).at;
        if (!(fabs(at[LONGITUDE] - (6 * zone - 183)) <= DT_UTM_FROM_ZONE_MAX)) {
            return DT_FAIL(
                DT_EDATA,
                "%s: node %s lies at longitude %g, too far from zone %d of the origin: import.map_origin says "
                "where positions are counted from",
                m->path, m->nodes.name[i], at[LONGITUDE], zone);
        }
        dt_utm(at[LATITUDE], at[LONGITUDE], zone, &at[X]);
        at[X] -= origin[0];
        at[Y] -= origin[1];
    }
    return DT_OK;
}

static int32_t node_at(const map *m, int32_t number, int64_t i)
{
    return AT(m->way_node, int32_t, AT(m->way, way, number).first + i);
}

static dt_status line_of(const map *m, int32_t number, dt_polyline *out)
{
    dt_polyline_clear(out);
    for (int64_t i = 0; i < AT(m->way, way, number).n; i++) {
        const double *at = AT(m->node, node, node_at(m, number, i)).at;
        DT_TRY(dt_polyline_add(out, at[X], at[Y]));
    }
    return DT_OK;
}

/* The middle node, of two the place between them. */
static void middle_of(const dt_polyline *p, double xy[2])
{
    const double *a = p->n > 2 ? p->xy + 2 * (p->n / 2) : p->xy, *b = p->n > 2 ? a : p->xy + 2;
    xy[0] = 0.5 * (a[0] + b[0]);
    xy[1] = 0.5 * (a[1] + b[1]);
}

/* Which side of a line a point is on, by the piece of it that is nearest: above 0 is left. */
static double side_of(const dt_polyline *p, const double xy[2])
{
    double nearest = INFINITY, side = 0;
    for (int64_t i = 0; i + 1 < p->n; i++) {
        const double *a = p->xy + 2 * i, dx = a[2] - a[0], dy = a[3] - a[1], px = xy[0] - a[0], py = xy[1] - a[1];
        const double square = dx * dx + dy * dy;
        const double t = square > 0 ? fmin(fmax((px * dx + py * dy) / square, 0), 1) : 0;
        const double distance = hypot(px - t * dx, py - t * dy);
        if (square > 0 && distance < nearest) {
            nearest = distance;
            side = dx * py - dy * px;
        }
    }
    return side;
}

/* Turns round the ways on whose wrong side the other one lies, as lanelet2's geometry::align does. */
static void direct(const map *m, lanelet *l, dt_polyline line[2])
{
    double middle[2][2];
    middle_of(&line[LEFT], middle[LEFT]);
    middle_of(&line[RIGHT], middle[RIGHT]);
    l->is_turned[LEFT] = side_of(&line[LEFT], middle[RIGHT]) > 0;
    l->is_turned[RIGHT] = side_of(&line[RIGHT], middle[LEFT]) < 0;
    for (int side = 0; side < 2; side++) {
        const int64_t last = AT(m->way, way, l->way[side]).n - 1;
        const bool is_turned = l->is_turned[side];
        l->begin[side] = node_at(m, l->way[side], is_turned ? last : 0);
        l->end[side] = node_at(m, l->way[side], is_turned ? 0 : last);
        if (is_turned) {
            dt_polyline_reverse(&line[side]);
        }
    }
}

static dt_status obey_rules(const map *m, lanelet *l)
{
    for (int64_t i = 0; i < l->n_rules; i++) {
        const char *id = m->wanted_rules.name[AT(m->rule_ref, int32_t, l->rule + i)];
        const int32_t rule = dt_names_find(&m->rules, id);
        if (rule < 0) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": lanelet %" PRId64 " refers to regulatory element %s, which is not "
                           "there",
                           m->path, l->line, l->id, id);
        }
        const double limit = AT(m->rule_limit, double, rule);
        l->limit = limit > 0 && (!(l->limit > 0) || limit < l->limit) ? limit : l->limit;
    }
    return DT_OK;
}

/* Room for the lines of a lanelet at a time. */
typedef struct lines {
    dt_polyline side[2], centre;
    double *width;
} lines;

static dt_status make_lane(map *m, lanelet *l, lines *r)
{
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "%" PRId64, l->id);
    DT_TRY(line_of(m, l->way[LEFT], &r->side[LEFT]));
    DT_TRY(line_of(m, l->way[RIGHT], &r->side[RIGHT]));
    direct(m, l, r->side);
    DT_TRY(dt_polyline_between(&r->side[LEFT], &r->side[RIGHT], &r->centre, &r->width));
    DT_TRY(obey_rules(m, l));
    const dt_road_lane lane = {
        .id = l->id, .kind = l->kind, .limit = l->limit, .xy = r->centre.xy, .width = r->width, .n = r->centre.n};
    return dt_book_lane(&m->book, l->line, id, &lane);
}

static dt_status make_lanes(map *m)
{
    lines r = {.width = NULL};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < m->lanelet.n && st == DT_OK; i++) {
        st = make_lane(m, &AT(m->lanelet, lanelet, i), &r);
    }
    dt_polyline_fini(&r.side[LEFT]);
    dt_polyline_fini(&r.side[RIGHT]);
    dt_polyline_fini(&r.centre);
    dt_free(r.width);
    return st;
}

/* ---- who is beside, who follows ---------------------------------------------------------------------------------- */

/* Lanelets by two keys, ascending, those of equal keys in the order of the file. */
typedef struct entry {
    int32_t key[2], lane;
} entry;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    for (int i = 0; i < 2; i++) {
        if (x->key[i] != y->key[i]) {
            return x->key[i] < y->key[i] ? -1 : 1;
        }
    }
    return (x->lane > y->lane) - (x->lane < y->lane);
}

/* The first entry of these keys, n: there is none. */
static int64_t find(const entry *list, int64_t n, int32_t first, int32_t second)
{
    const entry wanted = {.key = {first, second}, .lane = -1};
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (by_key(&list[mid], &wanted) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && list[lo].key[0] == first && list[lo].key[1] == second ? lo : n;
}

static dt_status link_lanes(map *m, entry *list)
{
    const int64_t n = m->lanelet.n;
    for (int64_t i = 0; i < n; i++) {
        const lanelet *l = &AT(m->lanelet, lanelet, i);
        list[i] = (entry){.key = {l->begin[LEFT], l->begin[RIGHT]}, .lane = (int32_t)i};
    }
    qsort(list, (size_t)n, sizeof(*list), by_key);
    for (int64_t i = 0; i < n; i++) {
        const int32_t *to = AT(m->lanelet, lanelet, i).end;
        for (int64_t k = find(list, n, to[LEFT], to[RIGHT]);
             k < n && list[k].key[0] == to[LEFT] && list[k].key[1] == to[RIGHT]; k++) {
            DT_TRY(dt_roads_link(&m->book.roads, (int32_t)i, list[k].lane));
        }
    }
    return DT_OK;
}

/* side of a lane: who has the same way on its other side, in the same direction. */
static void neighbours(map *m, entry *list, int side, int32_t *out)
{
    const int64_t n = m->lanelet.n;
    for (int64_t i = 0; i < n; i++) {
        const lanelet *l = &AT(m->lanelet, lanelet, i);
        list[i] = (entry){.key = {l->way[1 - side], l->is_turned[1 - side]}, .lane = (int32_t)i};
    }
    qsort(list, (size_t)n, sizeof(*list), by_key);
    for (int64_t i = 0; i < n; i++) {
        const lanelet *l = &AT(m->lanelet, lanelet, i);
        const int64_t k = find(list, n, l->way[side], l->is_turned[side]);
        out[i] = k < n && list[k].lane != (int32_t)i ? list[k].lane : -1;
    }
}

static dt_status connect(map *m)
{
    entry *list = dt_alloc_n((size_t)m->lanelet.n, sizeof(*list));
    if (list == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " lanelets", m->lanelet.n);
    }
    const dt_status st = link_lanes(m, list);
    neighbours(m, list, LEFT, m->book.roads.left);
    neighbours(m, list, RIGHT, m->book.roads.right);
    dt_free(list);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status finish(map *m, dt_str *notes)
{
    if (m->lanelet.n == 0) {
        return DT_FAIL(DT_EDATA, "%s has no relation of type lanelet: no map of lanelet2", m->path);
    }
    DT_TRY(place(m));
    DT_TRY(make_lanes(m));
    DT_TRY(connect(m));
    DT_TRY(dt_book_close(&m->book));
    dt_str_addf(notes, "%s: %" PRId64 " lanelets of lanelet2\n", m->path, m->lanelet.n);
    if (m->n_unknown_limits > 0) {
        dt_str_addf(notes, "%" PRId64 " limits of speed that are not understood (\"%s\"): left out\n",
                    m->n_unknown_limits, m->unknown_limit);
    }
    return DT_OK;
}

dt_status dt_map_lanelet2(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                          dt_roads *out_p)
{
    static const dt_xml_calls calls = {.begin = begin, .end = end};
    map m = {.path = path, .origin = origin, .book = {.path = path, .word = "lanelet"}};
    dt_status st = dt_xml_read(source, path, &calls, &m);
    if (st == DT_OK) {
        st = finish(&m, notes);
    }
    if (st == DT_OK) {
        *out_p = m.book.roads;
        m.book.roads = (dt_roads){.n_lanes = 0};
    }
    dt_book_fini(&m.book);
    dt_names_fini(&m.nodes);
    dt_names_fini(&m.ways);
    dt_names_fini(&m.rules);
    dt_names_fini(&m.wanted_rules);
    dt_free(m.node.data);
    dt_free(m.way.data);
    dt_free(m.lanelet.data);
    dt_free(m.way_node.data);
    dt_free(m.rule_limit.data);
    dt_free(m.rule_ref.data);
    return st;
}

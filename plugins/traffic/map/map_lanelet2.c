/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps of lanelet2 (Poggenhans et al., "Lanelet2: A high-definition map framework", ITSC 2018; see lanelet2_core/doc
 * what its tags mean): OSM XML of nodes, ways, and relations of type lanelet with a left and a right way. Areas, lines
 * and rules other than limits of speed are not read. What becomes of lanelets: lanelet2_lanes.c.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/map/lanelet2.h"
#include "traffic/map/utm.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status reserve_pool(dt_osm_pool *p, size_t size)
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

#define PUSH(p, T, value)                                                                                              \
    (reserve_pool(p, sizeof(T)) == DT_OK ? (((T *)(p)->data)[(p)->n++] = (value), DT_OK) : DT_ENOMEM)

static dt_status read_id(const dt_xml *x, const char *attribute, char id[DT_OSM_ID_BYTES])
{
    const char *text = NULL;
    DT_TRY(dt_xml_require(x, attribute, &text));
    return dt_xml_id(x, attribute, text, id, DT_OSM_ID_BYTES);
}

/* The entry of a node or way, which is new where nothing named it before. */
static dt_status add_node_id(dt_lanelet2 *m, const char *id, int32_t *number_p)
{
    bool is_new = false;
    DT_TRY(dt_names_add(&m->nodes, id, number_p, &is_new));
    return is_new ? PUSH(&m->node, dt_osm_node, ((dt_osm_node){.at = {NAN, NAN, NAN, NAN}})) : DT_OK;
}

static dt_status add_way_id(dt_lanelet2 *m, const char *id, int32_t *number_p)
{
    bool is_new = false;
    DT_TRY(dt_names_add(&m->ways, id, number_p, &is_new));
    return is_new ? PUSH(&m->way, dt_osm_way, ((dt_osm_way){.n = 0})) : DT_OK;
}

static dt_status reject_duplicate(const dt_xml *x, const char *what, const char *id)
{
    return DT_FAIL(DT_EDATA, DT_XML_AT "%s %s is defined twice", DT_XML_HERE(x), what, id);
}

/* A number of its own for what is open; nothing may be there twice. */
static dt_status number_element(const dt_xml *x, dt_names *names, const char *what, const char *id)
{
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_names_add(names, id, &number, &is_new));
    return is_new ? DT_OK : reject_duplicate(x, what, id);
}

/* ---- begins ------------------------------------------------------------------------------------------------------ */

static dt_status begin_node(dt_lanelet2 *m, const dt_xml *x)
{
    static const struct {
        const char *name;
        double most;
    } coordinate[DT_OSM_N_COORDINATES] = {
        {"lat", DT_UTM_LATITUDE_MAX}, {"lon", 180}, {"x", DT_POSITION_MAX_M}, {"y", DT_POSITION_MAX_M}};
    DT_TRY(add_node_id(m, m->id, &m->number));
    dt_osm_node *node = &DT_OSM_AT(m->node, dt_osm_node, m->number);
    if (node->is_there) {
        return reject_duplicate(x, "node", m->id);
    }
    node->is_there = true;
    for (int i = 0; i < DT_OSM_N_COORDINATES; i++) {
        const char *text = dt_xml_get(x, coordinate[i].name);
        if (text != NULL) {
            DT_TRY(dt_xml_number(x, coordinate[i].name, text, -coordinate[i].most, coordinate[i].most, &node->at[i]));
        }
    }
    return DT_OK;
}

static dt_status begin_way(dt_lanelet2 *m, const dt_xml *x)
{
    DT_TRY(add_way_id(m, m->id, &m->number));
    dt_osm_way *way = &DT_OSM_AT(m->way, dt_osm_way, m->number);
    if (way->is_there) {
        return reject_duplicate(x, "way", m->id);
    }
    *way = (dt_osm_way){.is_there = true, .first = m->way_node.n};
    return DT_OK;
}

static dt_status begin_part(dt_lanelet2 *m, const dt_xml *x)
{
    const char *action = dt_xml_get(x, "action");
    m->part = dt_xml_is(x, "node")       ? DT_OSM_NODE
              : dt_xml_is(x, "way")      ? DT_OSM_WAY
              : dt_xml_is(x, "relation") ? DT_OSM_RELATION
                                         : DT_OSM_OUTSIDE;
    if (m->part == DT_OSM_OUTSIDE || (action != NULL && strcmp(action, "delete") == 0)) {
        m->part = DT_OSM_OUTSIDE; /* an editor's note of what is there no more */
        return DT_OK;
    }
    DT_TRY(read_id(x, "id", m->id));
    m->line = x->line;
    m->type[0] = m->subtype[0] = '\0';
    m->sign[0] = '\0';
    m->has_turn = false;
    m->new_lanelet =
        (dt_lanelet){.line = x->line, .id = strtoll(m->id, NULL, 10), .way = {-1, -1}, .rule = m->rule_ref.n};
    return m->part == DT_OSM_NODE ? begin_node(m, x) : m->part == DT_OSM_WAY ? begin_way(m, x) : DT_OK;
}

static dt_status add_way_node(dt_lanelet2 *m, const dt_xml *x)
{
    char id[DT_OSM_ID_BYTES];
    int32_t number = 0;
    DT_TRY(read_id(x, "ref", id));
    DT_TRY(add_node_id(m, id, &number));
    DT_OSM_AT(m->way, dt_osm_way, m->number).n++;
    return PUSH(&m->way_node, int32_t, number);
}

static dt_status add_bound(dt_lanelet2 *m, const dt_xml *x, int side)
{
    char id[DT_OSM_ID_BYTES];
    DT_TRY(read_id(x, "ref", id));
    int32_t *to = &m->new_lanelet.way[side];
    if (*to != -1) {
        *to = -2; /* several; only lanelets mind */
        return DT_OK;
    }
    return add_way_id(m, id, to);
}

static dt_status add_member(dt_lanelet2 *m, const dt_xml *x)
{
    const char *role = dt_xml_get(x, "role"), *type = dt_xml_get(x, "type");
    if (role == NULL || type == NULL) {
        return DT_OK; /* no bound of a lanelet, which is reported where it lacks one */
    }
    const int side = strcmp(role, "left") == 0 ? DT_LEFT : strcmp(role, "right") == 0 ? DT_RIGHT : -1;
    if (side >= 0 && strcmp(type, "way") == 0) {
        return add_bound(m, x, side);
    }
    if (strcmp(role, "regulatory_element") == 0 && strcmp(type, "relation") == 0) {
        char id[DT_OSM_ID_BYTES];
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
static void limit_to(dt_lanelet2 *m, const char *text, double *limit)
{
    double speed = 0;
    if (read_speed(text, &speed)) {
        *limit = *limit > 0 ? fmin(*limit, speed) : speed;
    } else {
        dt_lane_builder_count_bad_limit(&m->book, text);
    }
}

static dt_status add_tag(dt_lanelet2 *m, const dt_xml *x)
{
    const char *key = NULL, *value = NULL;
    DT_TRY(dt_xml_require(x, "k", &key));
    DT_TRY(dt_xml_require(x, "v", &value));
    if (m->part == DT_OSM_NODE && (strcmp(key, "local_x") == 0 || strcmp(key, "local_y") == 0)) {
        return dt_xml_number(
            x, key, value, -DT_POSITION_MAX_M, DT_POSITION_MAX_M,
            &DT_OSM_AT(m->node, dt_osm_node, m->number).at[strcmp(key, "local_x") == 0 ? DT_OSM_X : DT_OSM_Y]);
    }
    if (m->part != DT_OSM_RELATION) {
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

static dt_status begin_element(dt_xml *x)
{
    dt_lanelet2 *m = x->user;
    if (x->depth < 2) {
        return x->depth == 1 ? begin_part(m, x) : DT_OK;
    }
    if (m->part == DT_OSM_OUTSIDE) {
        return DT_OK;
    }
    if (dt_xml_is(x, "tag")) {
        return add_tag(m, x);
    }
    if (m->part == DT_OSM_WAY && dt_xml_is(x, "nd")) {
        return add_way_node(m, x);
    }
    return m->part == DT_OSM_RELATION && dt_xml_is(x, "member") ? add_member(m, x) : DT_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static int32_t lanelet_kind(const dt_lanelet2 *m)
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

static dt_status end_lanelet(dt_lanelet2 *m)
{
    dt_lanelet *l = &m->new_lanelet;
    for (int side = 0; side < 2; side++) {
        if (l->way[side] < 0) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": lanelet %s has %s way on its %s", m->path, m->line, m->id,
                           l->way[side] == -1 ? "no" : "more than one", side == DT_LEFT ? "left" : "right");
        }
    }
    l->kind = lanelet_kind(m);
    return PUSH(&m->lanelet, dt_lanelet, *l);
}

static dt_status end_element(dt_xml *x)
{
    dt_lanelet2 *m = x->user;
    const dt_osm_part open = m->part;
    if (x->depth != 1) {
        return DT_OK;
    }
    m->part = DT_OSM_OUTSIDE;
    if (open != DT_OSM_RELATION) {
        return DT_OK;
    }
    if (strcmp(m->type, "lanelet") == 0) {
        return end_lanelet(m);
    }
    m->rule_ref.n = m->new_lanelet.rule; /* areas have rules too */
    if (strcmp(m->type, "regulatory_element") == 0) {
        const bool is_limit = strcmp(m->subtype, "speed_limit") == 0;
        double limit = is_limit ? m->new_lanelet.limit : 0; /* from its tag speed_limit */
        if (is_limit && m->sign[0] != '\0') {
            limit_to(m, m->sign, &limit);
        }
        DT_TRY(number_element(x, &m->rules, "regulatory element", m->id));
        return PUSH(&m->rule_limit, double, limit);
    }
    return DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status finish_map(dt_lanelet2 *m, dt_str *notes)
{
    if (m->lanelet.n == 0) {
        return DT_FAIL(DT_EDATA, "%s has no relation of type lanelet: no map of lanelet2", m->path);
    }
    DT_TRY(dt_lanelet2_build_lanes(m));
    DT_TRY(dt_lane_builder_close(&m->book));
    dt_str_addf(notes, "%s: %" PRId64 " lanelets of lanelet2\n", m->path, m->lanelet.n);
    dt_lane_builder_report(&m->book, notes);
    return DT_OK;
}

dt_status dt_map_read_lanelet2(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                               dt_roads *out_p)
{
    static const dt_xml_calls calls = {.begin = begin_element, .end = end_element};
    dt_lanelet2 m = {.path = path, .origin = origin, .book = {.path = path, .word = "lanelet"}};
    dt_status st = dt_xml_read(source, path, &calls, &m);
    if (st == DT_OK) {
        st = finish_map(&m, notes);
    }
    if (st == DT_OK) {
        *out_p = m.book.roads;
        m.book.roads = (dt_roads){.n_lanes = 0};
    }
    dt_lane_builder_fini(&m.book);
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

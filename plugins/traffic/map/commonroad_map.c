/* SPDX-License-Identifier: Apache-2.0
 *
 * See commonroad_map.h. Elements and units as in "CommonRoad: Documentation of the XML Format", versions 2018b and
 * 2020a; what a sign is called in which country as in commonroad-io, traffic_sign.py.
 */
#include <config.h>

#include "traffic/map/commonroad_map.h"
#include "traffic/features/features.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 32 };

/* A lanelet may have several types; the one with the highest rank is its kind. */
static const struct {
    const char *type;
    int32_t kind, rank;
} types[] = {
    {"sidewalk", DT_LANE_FOOT, 7},         {"crosswalk", DT_LANE_FOOT, 7},  {"bicycleLane", DT_LANE_BICYCLE, 6},
    {"intersection", DT_LANE_JUNCTION, 5}, {"accessRamp", DT_LANE_RAMP, 4}, {"exitRamp", DT_LANE_RAMP, 4},
    {"busLane", DT_LANE_BUS, 3},           {"highway", DT_LANE_HIGHWAY, 2}, {"interstate", DT_LANE_HIGHWAY, 2},
    {"mainCarriageWay", DT_LANE_ROAD, 1},  {"urban", DT_LANE_ROAD, 1},      {"country", DT_LANE_ROAD, 1},
    {"unknown", DT_LANE_UNKNOWN, 0},
};

/* Signs of a speed limit: of Germany and of countries that have none of their own there, of the USA, of Spain. */
static const char *const limit_signs[] = {"274", "R2-1", "r301"};

typedef struct sign_ref {
    int64_t line;
    int32_t lane, name;
} sign_ref;

typedef enum part { OUTSIDE, LANELET, SIGN, INTERSECTION } part;

struct dt_commonroad_map {
    dt_lane_builder book;
    bool is_2018;
    part part;    /* that is open */
    int64_t line; /* where it begins */
    char id[ID_BYTES];
    /* of a lanelet */
    dt_polyline bound[2], centre;
    double *width, x, y;
    int32_t kind, rank;
    double limit;
    int side; /* of the bound that is open; -1: none */
    /* of a sign */
    bool is_limit;
    double sign_limit;      /* of its element that is open, m/s */
    dt_names signs, wanted; /* that there are, that lanelets refer to */
    double *limits;         /* [signs.n] m/s, 0: no limit of speed */
    int32_t limits_cap;
    sign_ref *sign_ref;
    int64_t n_sign_refs, sign_refs_cap;
    /* of intersections: lanelets in them */
    dt_names crossing;
};

dt_status dt_commonroad_map_create(const char *path, bool is_2018, dt_commonroad_map **out_p)
{
    dt_commonroad_map *m = dt_alloc(sizeof(*m));
    if (m == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", path);
    }
    m->book.path = path;
    m->book.word = "lanelet";
    m->is_2018 = is_2018;
    *out_p = m;
    return DT_OK;
}

/* An id or a reference to one, as a number is written: 5 for 05. */
static dt_status read_id(const dt_xml *x, const char *attribute, char id[ID_BYTES])
{
    const char *text = NULL;
    DT_TRY(dt_xml_require(x, attribute, &text));
    return dt_xml_id(x, attribute, text, id, ID_BYTES);
}

/* A limit that is no number of m/s is as none, and counted, as of lanelet2. */
static void read_limit(dt_commonroad_map *m, const dt_xml *x, double *out_p)
{
    double limit = 0;
    if (!x->is_cut && dt_parse_f64(x->text, &limit) && limit >= 0 && limit <= DT_LANE_LIMIT_MAX) {
        *out_p = limit;
    } else {
        dt_lane_builder_count_bad_limit(&m->book, x->text);
    }
}

/* ---- begins ------------------------------------------------------------------------------------------------------ */

static dt_status begin_part(dt_commonroad_map *m, const dt_xml *x)
{
    m->part = dt_xml_is(x, "lanelet")        ? LANELET
              : dt_xml_is(x, "trafficSign")  ? SIGN
              : dt_xml_is(x, "intersection") ? INTERSECTION
                                             : OUTSIDE;
    if (m->part != LANELET && m->part != SIGN) {
        return DT_OK;
    }
    DT_TRY(read_id(x, "id", m->id));
    m->line = x->line;
    m->kind = DT_LANE_UNKNOWN;
    m->rank = -1;
    m->limit = m->sign_limit = 0;
    m->side = -1;
    m->is_limit = false;
    dt_polyline_clear(&m->bound[0]);
    dt_polyline_clear(&m->bound[1]);
    return DT_OK;
}

/* The number that the lanelet that is open will have. */
static int32_t this_lane(const dt_commonroad_map *m)
{
    return (int32_t)m->book.roads.n_lanes;
}

static dt_status refer_to_lane(dt_commonroad_map *m, const dt_xml *x, dt_lane_ref role)
{
    char id[ID_BYTES];
    DT_TRY(read_id(x, "ref", id));
    return dt_lane_builder_refer(&m->book, x->line, this_lane(m), role, id);
}

static dt_status refer_to_neighbour(dt_commonroad_map *m, const dt_xml *x, dt_lane_ref role)
{
    const char *direction = NULL;
    DT_TRY(dt_xml_require(x, "drivingDir", &direction));
    const bool is_same = strcmp(direction, "same") == 0;
    if (!is_same && strcmp(direction, "opposite") != 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "drivingDir is \"%.60s\", neither same nor opposite", DT_XML_HERE(x),
                       direction);
    }
    return refer_to_lane(m, x, is_same ? role : DT_REF_OPPOSITE);
}

static dt_status refer_to_sign(dt_commonroad_map *m, const dt_xml *x)
{
    char id[ID_BYTES];
    bool is_new = false;
    DT_TRY(read_id(x, "ref", id));
    if (m->n_sign_refs == m->sign_refs_cap) {
        const int64_t cap = m->sign_refs_cap == 0 ? 64 : 2 * m->sign_refs_cap;
        sign_ref *grown = dt_realloc(m->sign_ref, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " references to signs", cap);
        }
        m->sign_ref = grown;
        m->sign_refs_cap = cap;
    }
    sign_ref *r = &m->sign_ref[m->n_sign_refs];
    *r = (sign_ref){.line = x->line, .lane = this_lane(m)};
    DT_TRY(dt_names_add(&m->wanted, id, &r->name, &is_new));
    m->n_sign_refs++;
    return DT_OK;
}

static dt_status begin_in_lanelet(dt_commonroad_map *m, const dt_xml *x)
{
    if (dt_xml_is(x, "point")) {
        m->x = m->y = NAN;
    }
    if (x->depth != 2) {
        return DT_OK;
    }
    if (dt_xml_is(x, "leftBound") || dt_xml_is(x, "rightBound")) {
        m->side = dt_xml_is(x, "rightBound");
        return m->bound[m->side].n == 0
                   ? DT_OK
                   : DT_FAIL(DT_EDATA, DT_XML_AT "of lanelet %s is defined twice", DT_XML_HERE(x), m->id);
    }
    if (dt_xml_is(x, "predecessor")) {
        return refer_to_lane(m, x, DT_REF_BEFORE);
    }
    if (dt_xml_is(x, "successor")) {
        return refer_to_lane(m, x, DT_REF_NEXT);
    }
    if (dt_xml_is(x, "adjacentLeft")) {
        return refer_to_neighbour(m, x, DT_REF_LEFT);
    }
    if (dt_xml_is(x, "adjacentRight")) {
        return refer_to_neighbour(m, x, DT_REF_RIGHT);
    }
    return dt_xml_is(x, "trafficSignRef") ? refer_to_sign(m, x) : DT_OK;
}

static dt_status begin_in_intersection(dt_commonroad_map *m, const dt_xml *x)
{
    char id[ID_BYTES];
    int32_t number = 0;
    bool is_new = false;
    if (!dt_xml_is(x, "successorsRight") && !dt_xml_is(x, "successorsStraight") && !dt_xml_is(x, "successorsLeft")) {
        return DT_OK;
    }
    DT_TRY(read_id(x, "ref", id));
    return dt_names_add(&m->crossing, id, &number, &is_new);
}

dt_status dt_commonroad_map_begin(dt_commonroad_map *m, const dt_xml *x)
{
    if (x->depth == 1) {
        return begin_part(m, x);
    }
    if (m->part == LANELET) {
        return begin_in_lanelet(m, x);
    }
    if (m->part == SIGN && dt_xml_is(x, "trafficSignElement")) {
        m->is_limit = false;
        m->sign_limit = 0;
    }
    return m->part == INTERSECTION ? begin_in_intersection(m, x) : DT_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void add_type(dt_commonroad_map *m, const char *type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(type, types[i].type) == 0) {
            m->kind = types[i].rank > m->rank ? types[i].kind : m->kind;
            m->rank = types[i].rank > m->rank ? types[i].rank : m->rank;
            return;
        }
    }
    if (m->rank < 0) { /* drives, shoulders, borders, restricted areas */
        m->kind = DT_LANE_OTHER;
        m->rank = 0;
    }
}

static dt_status end_in_lanelet(dt_commonroad_map *m, const dt_xml *x)
{
    if (m->side >= 0 && x->depth == 4 && (dt_xml_is(x, "x") || dt_xml_is(x, "y"))) {
        return dt_xml_text_number(x, x->element, -DT_POSITION_MAX_M, DT_POSITION_MAX_M,
                                  dt_xml_is(x, "x") ? &m->x : &m->y);
    }
    if (m->side >= 0 && x->depth == 3 && dt_xml_is(x, "point")) {
        return isnan(m->x) || isnan(m->y)
                   ? DT_FAIL(DT_EDATA, DT_XML_AT "of lanelet %s has no x or no y", DT_XML_HERE(x), m->id)
                   : dt_polyline_add(&m->bound[m->side], m->x, m->y);
    }
    if (x->depth != 2) {
        return DT_OK;
    }
    m->side = -1;
    if (dt_xml_is(x, "laneletType")) {
        add_type(m, x->text);
    } else if (dt_xml_is(x, "speedLimit") && strcmp(x->text, "inf") != 0 && strcmp(x->text, "None") != 0) {
        if (m->limit > 0) {
            return DT_FAIL(DT_EDATA, DT_XML_AT "of lanelet %s is given twice", DT_XML_HERE(x), m->id);
        }
        read_limit(m, x, &m->limit);
    }
    return DT_OK;
}

static dt_status end_lanelet(dt_commonroad_map *m)
{
    const dt_polyline *left = &m->bound[0], *right = &m->bound[1];
    if (left->n < 2 || right->n < 2 || (m->is_2018 && left->n != right->n)) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": lanelet %s has a left bound of %" PRId64 " points and a right one of %" PRId64
                       ": two at least%s",
                       m->book.path, m->line, m->id, left->n, right->n,
                       m->is_2018 ? ", and as many on either side in version 2018b" : " can be");
    }
    DT_TRY(dt_polyline_between(left, right, &m->centre, &m->width));
    const dt_road_lane lane = {.id = strtoll(m->id, NULL, 10),
                               .kind = m->kind,
                               .limit = m->limit,
                               .xy = m->centre.xy,
                               .width = m->width,
                               .n = m->centre.n};
    return dt_lane_builder_add(&m->book, m->line, m->id, &lane);
}

static dt_status end_sign(dt_commonroad_map *m, const dt_xml *x)
{
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_names_add(&m->signs, m->id, &number, &is_new));
    if (!is_new) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "sign %s is defined twice", DT_XML_HERE(x), m->id);
    }
    if (number >= m->limits_cap) {
        const int32_t cap = m->limits_cap == 0 ? 64 : 2 * m->limits_cap;
        double *grown = dt_realloc(m->limits, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " signs", cap);
        }
        m->limits = grown;
        m->limits_cap = cap;
    }
    m->limits[number] = m->limit;
    return DT_OK;
}

static dt_status end_in_sign(dt_commonroad_map *m, const dt_xml *x)
{
    if (dt_xml_is(x, "trafficSignID")) {
        for (size_t i = 0; i < sizeof(limit_signs) / sizeof(limit_signs[0]); i++) {
            m->is_limit |= strcmp(x->text, limit_signs[i]) == 0;
        }
    } else if (dt_xml_is(x, "additionalValue") && m->is_limit) {
        read_limit(m, x, &m->sign_limit);
    } else if (dt_xml_is(x, "trafficSignElement") && m->sign_limit > 0) {
        m->limit = m->limit > 0 ? fmin(m->limit, m->sign_limit) : m->sign_limit;
    }
    return DT_OK;
}

dt_status dt_commonroad_map_end(dt_commonroad_map *m, const dt_xml *x)
{
    const part open = m->part;
    if (x->depth == 1) {
        m->part = OUTSIDE;
        return open == LANELET ? end_lanelet(m) : open == SIGN ? end_sign(m, x) : DT_OK;
    }
    return open == LANELET ? end_in_lanelet(m, x) : open == SIGN ? end_in_sign(m, x) : DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Of several limits the lowest holds. */
static dt_status apply_signs(dt_commonroad_map *m)
{
    for (int64_t i = 0; i < m->n_sign_refs; i++) {
        const sign_ref *r = &m->sign_ref[i];
        const int32_t sign = dt_names_find(&m->signs, m->wanted.name[r->name]);
        if (sign < 0) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": lanelet %s refers to sign %s, which does not exist", m->book.path,
                           r->line, m->book.names.name[r->lane], m->wanted.name[r->name]);
        }
        float *limit = &m->book.roads.limit[r->lane], here = (float)m->limits[sign];
        *limit = here > 0 && (*limit == 0 || here < *limit) ? here : *limit;
    }
    return DT_OK;
}

static dt_status name_crossings(dt_commonroad_map *m)
{
    for (int32_t i = 0; i < m->crossing.n; i++) {
        const int32_t lane = dt_names_find(&m->book.names, m->crossing.name[i]);
        if (lane < 0) {
            return DT_FAIL(DT_EDATA, "%s: an intersection has lanelet %s, which does not exist", m->book.path,
                           m->crossing.name[i]);
        }
        m->book.roads.kind[lane] = DT_LANE_JUNCTION;
    }
    return DT_OK;
}

void dt_commonroad_map_report(const dt_commonroad_map *m, dt_str *notes)
{
    dt_lane_builder_report(&m->book, notes);
}

dt_status dt_commonroad_map_close(dt_commonroad_map *m, const dt_roads **roads_p)
{
    *roads_p = NULL;
    if (m->book.roads.n_lanes > 0) {
        DT_TRY(apply_signs(m));
        DT_TRY(name_crossings(m));
        DT_TRY(dt_lane_builder_close(&m->book));
        *roads_p = &m->book.roads;
    }
    return DT_OK;
}

void dt_commonroad_map_destroy(dt_commonroad_map *m)
{
    if (m == NULL) {
        return;
    }
    dt_lane_builder_fini(&m->book);
    dt_polyline_fini(&m->bound[0]);
    dt_polyline_fini(&m->bound[1]);
    dt_polyline_fini(&m->centre);
    dt_names_fini(&m->signs);
    dt_names_fini(&m->wanted);
    dt_names_fini(&m->crossing);
    dt_free(m->width);
    dt_free(m->limits);
    dt_free(m->sign_ref);
    dt_free(m);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks of SUMO (https://sumo.dlr.de/docs/Networks/SUMO_Road_Networks.html), .net.xml: every lane with its own
 * shape, in the coordinates of floating-car output. A lane continues into the internal lane that a connection names,
 * or, in a network without any, into the lane after the junction. Lanes of an edge are numbered from the right, in a
 * left-hand network from the left. Walking areas, which are no lines, are left out, and lanes on foot are not used
 * neighbours. A lane that is one place, as netconvert writes inside junctions without room, is left out too: what leads
 * into it leads to what follows it.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/map/lane_builder.h"
#include "traffic/map/map_reader.h"
#include "traffic/text/values.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/mem.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH_M 3.2 /* of a lane that has none: SUMO_const_laneWidth */

enum { NAME_BYTES = 400, PLACES_MOST = 64 };

typedef enum function { NORMAL, INTERNAL, CROSSING, WALKING } function;

/* A connection into a lane that is one place. */
typedef struct into_place {
    int64_t line;
    int32_t lane, place;
} into_place;

typedef struct net {
    const char *path;
    bool is_left_hand;
    /* of the edge that is open */
    bool is_open;
    function function;
    int32_t kind;
    int32_t last;     /* lane before, -1: none, or none that is a neighbour */
    dt_names walking; /* lanes that are left out */
    dt_names places;  /* lanes that are one place */
    char **next;      /* [places_cap] the lane that follows each, NULL: none */
    int32_t places_cap;
    into_place *into; /* [n_into] */
    int64_t n_into, into_cap;
    dt_polyline shape;
    double *width;
    dt_lane_builder book;
} net;

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* By the type that netconvert takes over from OpenStreetMap, "highway.motorway_link". */
static int32_t kind_of_type(const char *type)
{
    const bool is_fast = strstr(type, "motorway") != NULL || strstr(type, "trunk") != NULL;
    return !is_fast ? DT_LANE_ROAD : strstr(type, "_link") != NULL ? DT_LANE_RAMP : DT_LANE_HIGHWAY;
}

static dt_status begin_edge(net *n, const dt_xml *x)
{
    const char *id = NULL, *what = dt_xml_get(x, "function"), *type = dt_xml_get(x, "type");
    DT_TRY(dt_xml_require(x, "id", &id));
    what = what == NULL ? "" : what;
    n->is_open = true;
    n->last = -1;
    n->function = strcmp(what, "internal") == 0      ? INTERNAL
                  : strcmp(what, "crossing") == 0    ? CROSSING
                  : strcmp(what, "walkingarea") == 0 ? WALKING
                                                     : NORMAL;
    n->kind = n->function == INTERNAL   ? DT_LANE_JUNCTION
              : n->function == CROSSING ? DT_LANE_FOOT
                                        : kind_of_type(type == NULL ? "" : type);
    return DT_OK;
}

/* Whether every class of a list is one of these. */
static bool are_all(const char *list, const char *const *classes)
{
    bool is_any = false;
    for (const char *p = list; *p != '\0';) {
        const size_t n = strcspn(p, " ");
        size_t i = 0;
        while (classes[i] != NULL && (strlen(classes[i]) != n || strncmp(p, classes[i], n) != 0)) {
            i++;
        }
        if (n > 0 && classes[i] == NULL) {
            return false;
        }
        is_any |= n > 0;
        p += n + (p[n] == ' ');
    }
    return is_any;
}

static int32_t kind_of_lane(const net *n, const char *allow)
{
    static const char *const foot[] = {"pedestrian", NULL}, *const bicycle[] = {"bicycle", "pedestrian", NULL},
                             *const bus[] = {"bus", "coach", "taxi", "bicycle", "emergency", "authority", NULL},
                             *const rail[] = {"rail",   "rail_urban", "rail_electric", "rail_fast", "tram",
                                              "subway", "ship",       "cable_car",     NULL};
    if (allow == NULL) {
        return n->kind;
    }
    return are_all(allow, foot)      ? DT_LANE_FOOT
           : are_all(allow, bicycle) ? DT_LANE_BICYCLE
           : are_all(allow, bus)     ? DT_LANE_BUS
           : are_all(allow, rail)    ? DT_LANE_OTHER
                                     : n->kind;
}

/* "x,y x,y ..." or "x,y,z x,y,z ..." */
static dt_status read_shape(net *n, const dt_xml *x, const char *text)
{
    dt_polyline_clear(&n->shape);
    for (const char *p = text; *p != '\0';) {
        const size_t bytes = strcspn(p, " \t\r\n");
        char piece[128], *comma;
        double xy[2];
        if (bytes == 0) {
            p++;
            continue;
        }
        if (bytes >= sizeof(piece)) {
            return DT_FAIL(DT_EDATA, DT_XML_AT "shape has \"%.60s\", which is not a point", DT_XML_HERE(x), p);
        }
        memcpy(piece, p, bytes);
        piece[bytes] = '\0';
        p += bytes;
        comma = strchr(piece, ',');
        if (comma == NULL) {
            return DT_FAIL(DT_EDATA, DT_XML_AT "shape has \"%.60s\", which is not a point", DT_XML_HERE(x), piece);
        }
        *comma = '\0';
        char *height = strchr(comma + 1, ',');
        if (height != NULL) {
            *height = '\0';
        }
        DT_TRY(dt_xml_number(x, "a point of the shape", piece, -DT_POSITION_MAX_M, DT_POSITION_MAX_M, &xy[0]));
        DT_TRY(dt_xml_number(x, "a point of the shape", comma + 1, -DT_POSITION_MAX_M, DT_POSITION_MAX_M, &xy[1]));
        DT_TRY(dt_polyline_add(&n->shape, xy[0], xy[1]));
    }
    return DT_OK;
}

/* Points of a shape that are all at one place. */
static bool is_place(const dt_polyline *p)
{
    for (int64_t i = 1; i < p->n; i++) {
        if (hypot(p->xy[2 * i] - p->xy[0], p->xy[2 * i + 1] - p->xy[1]) >= DT_LANE_APART_M) {
            return false;
        }
    }
    return p->n >= 2;
}

static dt_status add_place(net *n, const char *id)
{
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_names_add(&n->places, id, &number, &is_new));
    if (number >= n->places_cap) {
        const int32_t cap = n->places_cap == 0 ? 16 : 2 * n->places_cap; /* of dt_names: at most DT_NAMES_MOST */
        char **grown = dt_realloc(n->next, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " lanes that are one place", cap);
        }
        n->next = grown;
        n->places_cap = cap;
    }
    n->next[number] = is_new ? NULL : n->next[number];
    return DT_OK;
}

static dt_status add_lane(net *n, const dt_xml *x, const char *id)
{
    const char *shape = NULL, *width = dt_xml_get(x, "width");
    double limit = 0, width_m = WIDTH_M;
    DT_TRY(dt_xml_require(x, "shape", &shape));
    DT_TRY(dt_xml_require_number(x, "speed", 0, DBL_MAX, &limit));
    if (limit > DT_LANE_LIMIT_MAX) { /* as of lanes without any */
        dt_lane_builder_count_bad_limit(&n->book, dt_xml_get(x, "speed"));
        limit = 0;
    }
    DT_TRY(width != NULL ? dt_xml_number(x, "width", width, 0, DT_LANE_WIDTH_MAX_M, &width_m) : DT_OK);
    DT_TRY(read_shape(n, x, shape));
    if (is_place(&n->shape)) {
        return add_place(n, id);
    }
    double *widths = dt_realloc(n->width, ((size_t)n->shape.n + 1) * sizeof(*widths));
    if (widths == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a lane of %" PRId64 " points", n->shape.n);
    }
    n->width = widths;
    for (int64_t i = 0; i < n->shape.n; i++) {
        widths[i] = width_m;
    }
    const dt_road_lane lane = {.kind = kind_of_lane(n, dt_xml_get(x, "allow")),
                               .limit = limit,
                               .xy = n->shape.xy,
                               .width = widths,
                               .n = n->shape.n};
    return dt_lane_builder_add(&n->book, x->line, id, &lane);
}

/* The lane that came last and the one before it. */
static void set_sides(net *n)
{
    dt_roads *r = &n->book.roads;
    const int32_t here = (int32_t)r->n_lanes - 1;
    const bool is_neighbour = n->function == NORMAL && r->kind[here] != DT_LANE_FOOT;
    if (is_neighbour && n->last >= 0) {
        (n->is_left_hand ? r->right : r->left)[n->last] = here;
        (n->is_left_hand ? r->left : r->right)[here] = n->last;
    }
    n->last = is_neighbour ? here : -1;
}

static dt_status begin_lane(net *n, const dt_xml *x)
{
    const char *id = NULL;
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_xml_require(x, "id", &id));
    if (n->function == WALKING) {
        return dt_names_add(&n->walking, id, &number, &is_new);
    }
    const int64_t before = n->book.roads.n_lanes;
    DT_TRY(add_lane(n, x, id));
    if (n->book.roads.n_lanes > before) {
        set_sides(n);
    } else {
        n->last = -1;
    }
    return DT_OK;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static dt_status lane_name(const dt_xml *x, const char *edge, const char *index, char name[NAME_BYTES])
{
    const char *id = NULL, *number = NULL;
    DT_TRY(dt_xml_require(x, edge, &id));
    DT_TRY(dt_xml_require(x, index, &number));
    const int bytes = snprintf(name, NAME_BYTES, "%s_%s", id, number);
    return bytes < NAME_BYTES
               ? DT_OK
               : DT_FAIL(DT_EDATA, DT_XML_AT "%s has more than %d bytes", DT_XML_HERE(x), edge, NAME_BYTES);
}

static dt_status enter_element(net *n, const dt_xml *x, int32_t lane, int32_t place)
{
    if (n->n_into == n->into_cap) {
        const int64_t cap = n->into_cap == 0 ? 16 : 2 * n->into_cap;
        into_place *grown = dt_realloc(n->into, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " connections", cap);
        }
        n->into = grown;
        n->into_cap = cap;
    }
    n->into[n->n_into++] = (into_place){.line = x->line, .lane = lane, .place = place};
    return DT_OK;
}

/* A lane inside a junction leads to one other. */
static dt_status leave_element(net *n, int32_t place, const char *next)
{
    if (n->next[place] != NULL) {
        return DT_OK;
    }
    n->next[place] = dt_strdup(next);
    return n->next[place] != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for a connection");
}

/* Connections into places lead to the first lane after each that is a line. */
static dt_status pass_places(net *n)
{
    for (int64_t i = 0; i < n->n_into; i++) {
        const into_place *c = &n->into[i];
        const char *next = n->next[c->place];
        int hops = 0;
        for (int32_t place = 0; next != NULL && (place = dt_names_find(&n->places, next)) >= 0; hops++) {
            next = n->next[place];
            if (hops == PLACES_MOST) {
                return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": <connection> leads through more than %d lanes of one place",
                               n->path, c->line, PLACES_MOST);
            }
        }
        DT_TRY(next != NULL ? dt_lane_builder_refer(&n->book, c->line, c->lane, DT_REF_NEXT, next) : DT_OK);
    }
    return DT_OK;
}

static dt_status begin_connection(net *n, const dt_xml *x)
{
    char from[NAME_BYTES], to[NAME_BYTES];
    const char *via = dt_xml_get(x, "via");
    DT_TRY(lane_name(x, "from", "fromLane", from));
    DT_TRY(lane_name(x, "to", "toLane", to));
    if (dt_names_find(&n->walking, from) >= 0 || dt_names_find(&n->walking, to) >= 0) {
        return DT_OK;
    }
    const char *next = via != NULL ? via : to;
    const int32_t from_place = dt_names_find(&n->places, from), to_place = dt_names_find(&n->places, next);
    if (from_place >= 0) {
        return leave_element(n, from_place, next);
    }
    const int32_t number = dt_names_find(&n->book.names, from);
    if (number < 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "begins at lane %.100s, which is not defined before it", DT_XML_HERE(x),
                       from);
    }
    return to_place >= 0 ? enter_element(n, x, number, to_place)
                         : dt_lane_builder_refer(&n->book, x->line, number, DT_REF_NEXT, next);
}

static dt_status begin_element(dt_xml *x)
{
    net *n = x->user;
    if (x->depth == 0) {
        const char *left = dt_xml_get(x, "lefthand");
        return left == NULL || dt_value_parse_bool(left, &n->is_left_hand)
                   ? DT_OK
                   : DT_FAIL(DT_EDATA, DT_XML_AT "lefthand is \"%.60s\", neither true nor false", DT_XML_HERE(x), left);
    }
    if (x->depth == 1) {
        n->is_open = false;
        return dt_xml_is(x, "edge") ? begin_edge(n, x) : dt_xml_is(x, "connection") ? begin_connection(n, x) : DT_OK;
    }
    return x->depth == 2 && n->is_open && dt_xml_is(x, "lane") ? begin_lane(n, x) : DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

dt_status dt_map_read_sumo(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                           dt_roads *out_p)
{
    static const dt_xml_calls calls = {.begin = begin_element};
    net n = {.path = path, .book = {.path = path, .word = "lane"}};
    if (origin->is_given) {
        return DT_FAIL(DT_EINVAL, "%s is in metres of its own, as floating cars are: leave out import.map_origin",
                       path);
    }
    dt_status st = dt_xml_read(source, path, &calls, &n);
    if (st == DT_OK && n.book.roads.n_lanes == 0) {
        st = DT_FAIL(DT_EDATA, "%s has not one lane", path);
    }
    if (st == DT_OK) {
        st = pass_places(&n);
    }
    if (st == DT_OK) {
        st = dt_lane_builder_close(&n.book);
    }
    if (st == DT_OK) {
        dt_str_addf(notes, "%s: %" PRId64 " lanes of SUMO\n", path, n.book.roads.n_lanes);
        dt_lane_builder_report(&n.book, notes);
        if (n.places.n > 0) {
            dt_str_addf(notes, "%" PRId32 " lanes that are one place: left out\n", n.places.n);
        }
        *out_p = n.book.roads;
        n.book.roads = (dt_roads){.n_lanes = 0};
    }
    dt_lane_builder_fini(&n.book);
    for (int32_t i = 0; i < n.places.n && n.next != NULL; i++) {
        dt_free(n.next[i]);
    }
    dt_free(n.next);
    dt_free(n.into);
    dt_names_fini(&n.places);
    dt_names_fini(&n.walking);
    dt_polyline_fini(&n.shape);
    dt_free(n.width);
    return st;
}

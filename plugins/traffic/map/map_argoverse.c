/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps of Argoverse 2 (Wilson et al., "Argoverse 2: Next Generation Datasets for Self-Driving Perception and
 * Forecasting", NeurIPS 2021), log_map_archive_*.json: lane segments with two boundaries, or a centre line alone. A map
 * is cut out of a city around a scenario: what its lanes refer to may lie outside, and then they have no successor or
 * neighbour there. A neighbour that runs the other way, across the middle of a road, is none. Drivable areas and
 * crossings are not read.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/text/json_reader.h"
#include "traffic/map/lane_builder.h"
#include "traffic/map/map_reader.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 32, LEFT = 0, RIGHT = 1, CENTRE = 2 };

typedef struct archive {
    dt_json *j;
    dt_lane_builder book;
    dt_polyline line[3], middle; /* of the lane that is open: boundaries and centre line as they are given */
    double *width;
    char type[32];
    bool is_crossing;
    bool has_lanes;
} archive;

static dt_status read_point(archive *a, dt_polyline *out)
{
    static const char *const keys[] = {"x", "y", NULL};
    double xy[2] = {NAN, NAN};
    uint32_t seen = 0;
    int d = 0;
    dt_status st;
    while ((st = dt_expect_known_key(a->j, keys, &seen, &d)) == DT_OK) {
        DT_TRY(dt_expect_f64(a->j, keys[d], &xy[d], NULL));
    }
    if (st != DT_DONE) {
        return st;
    }
    if (isnan(xy[0]) || isnan(xy[1])) {
        return dt_json_fail(a->j, "a point has no x or no y");
    }
    return dt_polyline_add(out, xy[0], xy[1]);
}

static dt_status read_line(archive *a, const char *what, dt_polyline *out)
{
    dt_status st;
    DT_TRY(dt_expect_array(a->j, what));
    while ((st = dt_expect_next_object(a->j, what)) == DT_OK) {
        DT_TRY(read_point(a, out));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status refer_to_lane(archive *a, const dt_json_token *t, dt_lane_ref role)
{
    char id[ID_BYTES];
    if (t->kind != DT_JSON_NUMBER || !t->is_integer) {
        return dt_json_fail(a->j, "a lane segment is referred to by %s, not by an integer", dt_expect_kind(t->kind));
    }
    snprintf(id, sizeof(id), "%" PRId64, t->integer);
    return dt_lane_builder_refer(&a->book, t->line, (int32_t)a->book.roads.n_lanes, role, id);
}

static dt_status refer_to_all(archive *a, const char *key, dt_lane_ref role)
{
    dt_json_token t;
    DT_TRY(dt_expect_array(a->j, key));
    for (;;) {
        DT_TRY(dt_json_next(a->j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        DT_TRY(refer_to_lane(a, &t, role));
    }
}

static dt_status refer_to_neighbour(archive *a, dt_lane_ref role)
{
    dt_json_token t;
    DT_TRY(dt_json_next(a->j, &t));
    return t.kind == DT_JSON_NULL ? DT_OK : refer_to_lane(a, &t, role);
}

/* Keys of a lane segment; the first three are lines, LEFT, RIGHT and CENTRE. */
enum { CROSSING = CENTRE + 1, TYPE, NEXT, BEFORE, LEFT_LANE, RIGHT_LANE };
static const char *const lane_keys[] = {[LEFT] = "left_lane_boundary",
                                        [RIGHT] = "right_lane_boundary",
                                        [CENTRE] = "centerline",
                                        [CROSSING] = "is_intersection",
                                        [TYPE] = "lane_type",
                                        [NEXT] = "successors",
                                        [BEFORE] = "predecessors",
                                        [LEFT_LANE] = "left_neighbor_id",
                                        [RIGHT_LANE] = "right_neighbor_id",
                                        [RIGHT_LANE + 1] = NULL};

static dt_status read_member(archive *a, int which)
{
    const char *key = lane_keys[which];
    switch (which) {
    case CROSSING:
        return dt_expect_bool(a->j, key, &a->is_crossing);
    case TYPE:
        return dt_expect_str(a->j, key, a->type, sizeof(a->type));
    case NEXT:
        return refer_to_all(a, key, DT_REF_NEXT);
    case BEFORE:
        return refer_to_all(a, key, DT_REF_BEFORE);
    case LEFT_LANE:
        return refer_to_neighbour(a, DT_REF_LEFT);
    case RIGHT_LANE:
        return refer_to_neighbour(a, DT_REF_RIGHT);
    default:
        return read_line(a, key, &a->line[which]);
    }
}

static int32_t lane_kind(const archive *a)
{
    if (strcmp(a->type, "BIKE") == 0) {
        return DT_LANE_BICYCLE;
    }
    if (a->is_crossing) {
        return DT_LANE_JUNCTION;
    }
    return strcmp(a->type, "BUS") == 0       ? DT_LANE_BUS
           : strcmp(a->type, "VEHICLE") == 0 ? DT_LANE_ROAD
           : a->type[0] == '\0'              ? DT_LANE_UNKNOWN
                                             : DT_LANE_OTHER;
}

static dt_status end_lane(archive *a, const char *id, int64_t line)
{
    const bool has_bounds = a->line[LEFT].n > 0 || a->line[RIGHT].n > 0;
    if (has_bounds && (a->line[LEFT].n < 2 || a->line[RIGHT].n < 2)) {
        return dt_json_fail(a->j,
                            "lane segment %s has boundaries of %" PRId64 " and %" PRId64 " points: two at least can be",
                            id, a->line[LEFT].n, a->line[RIGHT].n);
    }
    DT_TRY(has_bounds ? dt_polyline_between(&a->line[LEFT], &a->line[RIGHT], &a->middle, &a->width) : DT_OK);
    const dt_polyline *xy = has_bounds ? &a->middle : &a->line[CENTRE];
    int64_t number = 0;
    if (!dt_parse_i64(id, &number)) {
        return dt_json_fail(a->j, "a lane segment is called \"%s\", not by an integer", id);
    }
    const dt_road_lane lane = {
        .id = number, .kind = lane_kind(a), .xy = xy->xy, .width = has_bounds ? a->width : NULL, .n = xy->n};
    return dt_lane_builder_add(&a->book, line, id, &lane);
}

static dt_status read_lane(archive *a, const char *id, int64_t line)
{
    uint32_t seen = 0;
    int which = 0;
    dt_status st;
    for (int i = 0; i < 3; i++) {
        dt_polyline_clear(&a->line[i]);
    }
    a->type[0] = '\0';
    a->is_crossing = false;
    DT_TRY(dt_expect_object(a->j, "a lane segment"));
    while ((st = dt_expect_known_key(a->j, lane_keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_member(a, which));
    }
    return st == DT_DONE ? end_lane(a, id, line) : st;
}

static dt_status read_lanes(archive *a)
{
    a->has_lanes = true;
    DT_TRY(dt_expect_object(a->j, "lane_segments"));
    for (;;) {
        dt_json_token t;
        char id[ID_BYTES];
        DT_TRY(dt_json_next(a->j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        if (t.bytes >= sizeof(id)) {
            return dt_json_fail(a->j, "a lane segment is called \"%.60s\", not by an integer", t.text);
        }
        memcpy(id, t.text, t.bytes + 1);
        DT_TRY(read_lane(a, id, t.line));
    }
}

static dt_status read_archive(archive *a)
{
    static const char *const keys[] = {"lane_segments", NULL};
    uint32_t seen = 0;
    int which = 0;
    dt_status st;
    DT_TRY(dt_expect_object(a->j, "the map"));
    while ((st = dt_expect_known_key(a->j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(read_lanes(a));
    }
    return st == DT_DONE ? dt_expect_end(a->j) : st;
}

/* From the first point of a lane to its last. */
static void chord_of_lane(const dt_roads *r, int32_t lane, double out[2])
{
    const double *first = r->xy + 2 * r->point[lane], *last = r->xy + 2 * (r->point[lane + 1] - 1);
    out[0] = last[0] - first[0];
    out[1] = last[1] - first[1];
}

/* Neighbours that run the other way are none. */
static void keep_same_direction(const dt_roads *r, int32_t *side)
{
    for (int32_t lane = 0; lane < (int32_t)r->n_lanes; lane++) {
        double here[2], there[2];
        if (side[lane] >= 0) {
            chord_of_lane(r, lane, here);
            chord_of_lane(r, side[lane], there);
            side[lane] = here[0] * there[0] + here[1] * there[1] > 0 ? side[lane] : -1;
        }
    }
}

static dt_status finish_map(archive *a, dt_str *notes)
{
    if (a->book.roads.n_lanes == 0) {
        return DT_FAIL(DT_EDATA, "%s has no %s: no map of Argoverse 2", a->book.path,
                       a->has_lanes ? "lane segment" : "lane_segments");
    }
    DT_TRY(dt_lane_builder_close(&a->book));
    keep_same_direction(&a->book.roads, a->book.roads.left);
    keep_same_direction(&a->book.roads, a->book.roads.right);
    dt_str_addf(notes, "%s: %" PRId64 " lane segments of Argoverse 2, %" PRId64 " references to lanes outside\n",
                a->book.path, a->book.roads.n_lanes, a->book.n_lacking);
    return DT_OK;
}

dt_status dt_map_read_argoverse(dt_source *source, const char *path, const dt_map_origin *origin, dt_str *notes,
                                dt_roads *out_p)
{
    archive a = {.book = {.path = path, .word = "lane segment", .may_lack = true}};
    if (origin->is_given) {
        return DT_FAIL(DT_EINVAL, "%s is in metres of its city, as the scenarios are: leave out import.map_origin",
                       path);
    }
    dt_status st = dt_json_open(dt_source_read, source, path, &a.j);
    if (st == DT_OK) {
        st = read_archive(&a);
    }
    if (st == DT_OK) {
        st = finish_map(&a, notes);
    }
    if (st == DT_OK) {
        *out_p = a.book.roads;
        a.book.roads = (dt_roads){.n_lanes = 0};
    }
    dt_json_close(a.j);
    dt_lane_builder_fini(&a.book);
    for (int i = 0; i < 3; i++) {
        dt_polyline_fini(&a.line[i]);
    }
    dt_polyline_fini(&a.middle);
    dt_free(a.width);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/store_roads.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORGET_POINTS = 1 << 20, LANES_MAX = INT32_MAX / 2 };

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Whether a map is known; if not, it is from now on. Its name, and 128 bits of what is in it. */
static dt_status find_or_add_map(dt_roads_writer *w, const char *name, const dt_roads *roads, int32_t *number_p,
                                 bool *is_new_p)
{
    uint64_t hash[2];
    dt_str key = {0};
    dt_roads_hash(roads, hash);
    dt_str_addf(&key, "%016" PRIx64 "%016" PRIx64 " %s", hash[0], hash[1], name);
    dt_status st = dt_str_status(&key);
    if (st == DT_OK) {
        st = dt_names_add(&w->known, dt_str_text(&key), number_p, is_new_p);
    }
    dt_str_fini(&key);
    return st;
}

static dt_status keep_extent(dt_roads_writer *w, int32_t number, const dt_roads *roads)
{
    if (number >= w->extents_cap) {
        const int32_t cap = w->extents_cap == 0 ? 16 : 2 * w->extents_cap; /* of dt_names: at most DT_NAMES_MOST */
        dt_bounds *grown = dt_realloc(w->extent, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " maps", cap);
        }
        w->extent = grown;
        w->extents_cap = cap;
    }
    w->extent[number] = (dt_bounds){.has_any = false};
    dt_bounds_add_all(&w->extent[number], roads->xy, roads->n_points);
    return DT_OK;
}

dt_status dt_roads_check_near(const dt_roads_writer *w, const char *scene, int32_t map, const dt_bounds *positions,
                              double near_m)
{
    char lanes[DT_BOUNDS_TEXT_BYTES], cars[DT_BOUNDS_TEXT_BYTES];
    const dt_bounds *e = &w->extent[map];
    const double gap = dt_bounds_gap(positions, e);
    if (gap <= near_m) {
        return DT_OK;
    }
    dt_bounds_text(positions, cars);
    dt_bounds_text(e, lanes);
    /* a known map is its digest of 32 letters, a blank and its name */
    return DT_FAIL(DT_EDATA,
                   "scene %s is at %s, and the lanes of map %s at %s: %.4g m apart, at most %g m are allowed. The map "
                   "is of another place, or has another origin: import.map_origin sets the origin of a map in degrees, "
                   "and import.map_offset=DX,DY shifts any map",
                   scene, cars, w->known.name[map] + 33, lanes, gap, near_m);
}

static dt_status write_points(dt_roads_writer *w, const dt_roads *r)
{
    for (int64_t i = 0; i < r->n_lanes; i++) {
        const int64_t begin = w->points + r->point[i];
        DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_POINT], &begin, 1));
    }
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_XY], r->xy, r->n_points));
    return dt_npy_append(w->array[DT_ROADS_LANE_WIDTH], r->width, r->n_points);
}

static int32_t store_wide(const dt_roads_writer *w, int32_t lane)
{
    return lane < 0 ? -1 : (int32_t)(w->lanes + lane);
}

static dt_status write_topology(dt_roads_writer *w, const dt_roads *r)
{
    for (int64_t i = 0; i < r->n_lanes; i++) {
        const int64_t begin = w->links + r->next_ptr[i];
        const int32_t left = store_wide(w, r->left[i]), right = store_wide(w, r->right[i]);
        DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_NEXT_PTR], &begin, 1));
        DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_LEFT], &left, 1));
        DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_RIGHT], &right, 1));
    }
    for (int64_t i = 0; i < r->n_links; i++) {
        const int32_t next = store_wide(w, r->next[i]);
        DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_NEXT], &next, 1));
    }
    return DT_OK;
}

dt_status dt_roads_write(dt_roads_writer *w, const char *name, const dt_roads *roads, int32_t *number_p)
{
    bool is_new = false;
    DT_TRY(find_or_add_map(w, name, roads, number_p, &is_new));
    if (!is_new) {
        return DT_OK;
    }
    if (roads->n_lanes > LANES_MAX - w->lanes) {
        return DT_FAIL(DT_EDATA, "map %s: more than %d lanes: split the recording into several stores", name,
                       LANES_MAX);
    }
    DT_TRY(keep_extent(w, *number_p, roads));
    if (*number_p == 0) {
        w->names_out = (dt_json_out){.s = &w->names};
        dt_json_arr(&w->names_out, NULL);
    }
    dt_json_str(&w->names_out, NULL, name);
    DT_TRY(dt_str_status(&w->names));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_MAP_LANE], &w->lanes, 1));
    DT_TRY(write_points(w, roads));
    DT_TRY(write_topology(w, roads));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_KIND], roads->kind, roads->n_lanes));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_LIMIT], roads->limit, roads->n_lanes));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_ID], roads->id, roads->n_lanes));
    w->lanes += roads->n_lanes;
    w->points += roads->n_points;
    w->links += roads->n_links;
    return DT_OK;
}

dt_status dt_roads_write_end(dt_roads_writer *w)
{
    dt_json_end(&w->names_out, ']');
    DT_TRY(dt_npy_append(w->array[DT_ROADS_MAP_LANE], &w->lanes, 1));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_POINT], &w->points, 1));
    DT_TRY(dt_npy_append(w->array[DT_ROADS_LANE_NEXT_PTR], &w->links, 1));
    return dt_str_status(&w->names);
}

void dt_roads_writer_fini(dt_roads_writer *w)
{
    dt_names_fini(&w->known);
    dt_free(w->extent);
    dt_str_fini(&w->names);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct view {
    const dt_store_view *view;
    const char *path; /* of the store */
    const char *end;  /* of an array's name there */
} view;

/* least: of what each has. */
static dt_status check_pointers(const view *s, const char *name, const int64_t *p, int64_t n, int64_t least,
                                int64_t end)
{
    if (p[0] != 0 || p[n] != end) {
        return DT_FAIL(DT_EDATA, "%s/%s%s runs from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64, s->path, name,
                       s->end, p[0], p[n], end);
    }
    for (int64_t i = 0; i < n; i++) {
        if (p[i + 1] < p[i] || p[i + 1] > end || p[i + 1] - p[i] < least) {
            return DT_FAIL(DT_EDATA,
                           "%s/%s%s goes from %" PRId64 " to %" PRId64 " at %" PRId64 ", at least %" PRId64
                           " more and at most %" PRId64 " can be",
                           s->path, name, s->end, p[i], p[i + 1], i, least, end);
        }
    }
    return DT_OK;
}

static dt_status check_range(const view *s, const char *name, int64_t at, double value, double lo, double hi)
{
    return value >= lo && value <= hi ? DT_OK
                                      : DT_FAIL(DT_EDATA, "%s/%s%s: %g at %" PRId64 " is outside [%g, %g]", s->path,
                                                name, s->end, value, at, lo, hi);
}

static dt_status check_line(const view *s, int64_t lane)
{
    const dt_store_view *v = s->view;
    for (int64_t i = v->lane_point[lane]; i < v->lane_point[lane + 1]; i++) {
        const double *p = v->lane_xy + 2 * i;
        DT_TRY(check_range(s, "lane_xy", i, p[0], -DT_POSITION_MAX_M, DT_POSITION_MAX_M));
        DT_TRY(check_range(s, "lane_xy", i, p[1], -DT_POSITION_MAX_M, DT_POSITION_MAX_M));
        DT_TRY(check_range(s, "lane_width", i, (double)v->lane_width[i], 0, DT_LANE_WIDTH_MAX_M));
        if (i > v->lane_point[lane] && !(hypot(p[0] - p[-2], p[1] - p[-1]) >= DT_LANE_APART_M)) {
            return DT_FAIL(DT_EDATA,
                           "%s/lane_xy%s: point %" PRId64 " of lane %" PRId64
                           " coincides with the one before it, they must be %g m apart",
                           s->path, s->end, i, lane, DT_LANE_APART_M);
        }
    }
    return DT_OK;
}

/* A lane that another refers to: one of the same map [first, end), or none where that may be. */
static dt_status check_lane(const view *s, const char *name, int64_t at, int32_t lane, int64_t first, int64_t end)
{
    return lane >= first && lane < end ? DT_OK
                                       : DT_FAIL(DT_EDATA,
                                                 "%s/%s%s: %" PRId32 " at %" PRId64
                                                 " is not a lane of the same map, [%" PRId64 ", %" PRId64 ") are",
                                                 s->path, name, s->end, lane, at, first, end);
}

static dt_status check_links(const view *s, int64_t lane, int64_t first, int64_t end)
{
    const dt_store_view *v = s->view;
    const struct {
        const char *name;
        int32_t lane;
    } side[2] = {{"lane_left", v->lane_left[lane]}, {"lane_right", v->lane_right[lane]}};
    for (int64_t k = v->lane_next_ptr[lane]; k < v->lane_next_ptr[lane + 1]; k++) {
        DT_TRY(check_lane(s, "lane_next", k, v->lane_next[k], first, end));
        if (k > v->lane_next_ptr[lane] && v->lane_next[k] <= v->lane_next[k - 1]) {
            return DT_FAIL(DT_EDATA, "%s/lane_next%s: successors of lane %" PRId64 " do not ascend at %" PRId64,
                           s->path, s->end, lane, k);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (side[i].lane == lane) {
            return DT_FAIL(DT_EDATA, "%s/%s%s: lane %" PRId64 " is its own neighbour", s->path, side[i].name, s->end,
                           lane);
        }
        if (side[i].lane != -1) {
            DT_TRY(check_lane(s, side[i].name, lane, side[i].lane, first, end));
        }
    }
    return DT_OK;
}

static dt_status check_map(const view *s, int64_t map)
{
    const dt_store_view *v = s->view;
    const int64_t first = v->map_lane[map], end = v->map_lane[map + 1];
    for (int64_t lane = first; lane < end; lane++) {
        DT_TRY(check_line(s, lane));
        DT_TRY(check_range(s, "lane_kind", lane, v->lane_kind[lane], 0, DT_N_LANE_KINDS - 1));
        DT_TRY(check_range(s, "lane_limit", lane, (double)v->lane_limit[lane], 0, DT_LANE_LIMIT_MAX));
        DT_TRY(check_links(s, lane, first, end));
    }
    return DT_OK;
}

dt_status dt_roads_check(const dt_store_view *v, const char *path, void (*forget)(const dt_store *store),
                         const dt_store *store)
{
    const view *s = &(view){.view = v, .path = path, .end = store != NULL ? ".npy" : ""};
    if (v->n_maps == 0) {
        return DT_OK;
    }
    for (int64_t i = 0; i < v->n_scenes; i++) {
        DT_TRY(check_range(s, "scene_map", i, v->scene_map[i], -1, (double)(v->n_maps - 1)));
    }
    DT_TRY(check_pointers(s, "map_lane", v->map_lane, v->n_maps, 1, v->n_lanes));
    DT_TRY(check_pointers(s, "lane_point", v->lane_point, v->n_lanes, 2, v->n_lane_points));
    DT_TRY(check_pointers(s, "lane_next_ptr", v->lane_next_ptr, v->n_lanes, 0, v->n_lane_links));
    int64_t forgotten = 0; /* points */
    for (int64_t m = 0; m < v->n_maps; m++) {
        DT_TRY(check_map(s, m));
        const int64_t points = v->lane_point[v->map_lane[m + 1]];
        if (forget != NULL && points - forgotten >= FORGET_POINTS) {
            forgotten = points;
            forget(store);
        }
    }
    return DT_OK;
}

uint64_t dt_roads_digest(const dt_store_view *v, uint64_t digest)
{
    if (v->n_maps == 0) {
        return digest;
    }
    const size_t scenes = (size_t)v->n_scenes, maps = (size_t)v->n_maps, lanes = (size_t)v->n_lanes;
    const size_t points = (size_t)v->n_lane_points;
    for (size_t m = 0; m < maps; m++) {
        digest = dt_hash64(v->map[m], strlen(v->map[m]) + 1, digest);
    }
    digest = dt_hash64(v->scene_map, scenes * sizeof(*v->scene_map), digest);
    digest = dt_hash64(v->map_lane, (maps + 1) * sizeof(*v->map_lane), digest);
    digest = dt_hash64(v->lane_point, (lanes + 1) * sizeof(*v->lane_point), digest);
    digest = dt_hash64(v->lane_xy, 2 * points * sizeof(*v->lane_xy), digest);
    digest = dt_hash64(v->lane_width, points * sizeof(*v->lane_width), digest);
    digest = dt_hash64(v->lane_kind, lanes * sizeof(*v->lane_kind), digest);
    digest = dt_hash64(v->lane_limit, lanes * sizeof(*v->lane_limit), digest);
    digest = dt_hash64(v->lane_id, lanes * sizeof(*v->lane_id), digest);
    digest = dt_hash64(v->lane_next_ptr, (lanes + 1) * sizeof(*v->lane_next_ptr), digest);
    if (v->n_lane_links > 0) {
        digest = dt_hash64(v->lane_next, (size_t)v->n_lane_links * sizeof(*v->lane_next), digest);
    }
    digest = dt_hash64(v->lane_left, lanes * sizeof(*v->lane_left), digest);
    return dt_hash64(v->lane_right, lanes * sizeof(*v->lane_right), digest);
}

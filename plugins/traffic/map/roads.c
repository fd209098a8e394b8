/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/map/roads.h"
#include "traffic/features/features.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static dt_status reserve_lane(dt_roads *r)
{
    if (r->n_lanes < r->lanes_cap) {
        return DT_OK;
    }
    if (r->n_lanes >= INT32_MAX / 2) {
        return DT_FAIL(DT_EDATA, "a map of more than %" PRId64 " lanes", r->n_lanes);
    }
    const int64_t cap = r->lanes_cap == 0 ? 64 : 2 * r->lanes_cap;
    const size_t n = (size_t)cap;
#define GROW(member, count)                                                                                            \
    {                                                                                                                  \
        void *grown = dt_realloc(r->member, (count) * sizeof(*r->member));                                             \
        if (grown == NULL) {                                                                                           \
            return DT_FAIL(DT_ENOMEM, "no memory for a map of %" PRId64 " lanes", cap);                                \
        }                                                                                                              \
        r->member = grown;                                                                                             \
    }
    GROW(point, n + 1)
    GROW(kind, n)
    GROW(limit, n)
    GROW(id, n)
    GROW(left, n)
    GROW(right, n)
    r->lanes_cap = cap;
    return DT_OK;
}

static dt_status reserve_points(dt_roads *r, int64_t n)
{
    if (n > INT64_C(1) << 40) {
        return DT_FAIL(DT_EDATA, "a map of %" PRId64 " points", n);
    }
    int64_t cap = r->points_cap == 0 ? 1024 : r->points_cap;
    while (cap < n) {
        cap *= 2;
    }
    if (cap > r->points_cap) {
        GROW(xy, 2 * (size_t)cap)
        GROW(width, (size_t)cap)
        r->points_cap = cap;
    }
    return DT_OK;
}
#undef GROW

static dt_status check_point(const char *what, const double *xy, double width)
{
    if (!(fabs(xy[0]) <= DT_POSITION_MAX_M && fabs(xy[1]) <= DT_POSITION_MAX_M)) {
        return DT_FAIL(DT_EDATA, "%s: the point (%g, %g) is more than %g m away", what, xy[0], xy[1],
                       DT_POSITION_MAX_M);
    }
    return width >= 0 && width <= DT_LANE_WIDTH_MAX_M
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: a width of %g m is outside [0, %g]", what, width, DT_LANE_WIDTH_MAX_M);
}

static dt_status add_points(dt_roads *r, const char *what, const dt_road_lane *lane)
{
    const int64_t begin = r->n_points;
    DT_TRY(reserve_points(r, begin + lane->n));
    int64_t end = begin;
    for (int64_t i = 0; i < lane->n; i++) {
        const double *p = lane->xy + 2 * i, width = lane->width == NULL ? 0 : lane->width[i];
        DT_TRY(check_point(what, p, width));
        double *before = r->xy + 2 * (end - 1);
        if (end > begin && !(hypot(p[0] - before[0], p[1] - before[1]) >= DT_LANE_APART_M)) {
            continue;
        }
        r->xy[2 * end] = p[0];
        r->xy[2 * end + 1] = p[1];
        r->width[end++] = (float)width;
    }
    if (end - begin < 2) {
        return DT_FAIL(DT_EDATA, "%s is not a line: of its %" PRId64 " points, %" PRId64 " are apart", what, lane->n,
                       end - begin);
    }
    r->n_points = end;
    return DT_OK;
}

dt_status dt_roads_lane(dt_roads *r, const char *what, const dt_road_lane *lane, int32_t *number_p)
{
    if (!(lane->limit >= 0 && lane->limit <= DT_LANE_LIMIT_MAX)) {
        return DT_FAIL(DT_EDATA, "%s: a speed limit of %g m/s is outside [0, %g]", what, lane->limit,
                       DT_LANE_LIMIT_MAX);
    }
    DT_TRY(reserve_lane(r));
    DT_TRY(add_points(r, what, lane));
    const int64_t n = r->n_lanes++;
    r->point[0] = 0;
    r->point[n + 1] = r->n_points;
    r->kind[n] = lane->kind;
    r->limit[n] = (float)lane->limit;
    r->id[n] = lane->id;
    r->left[n] = r->right[n] = -1;
    *number_p = (int32_t)n;
    return DT_OK;
}

dt_status dt_roads_link(dt_roads *r, int32_t from, int32_t to)
{
    if (r->n_links == r->links_cap) {
        const int64_t cap = r->links_cap == 0 ? 128 : 2 * r->links_cap;
        dt_road_link *grown = dt_realloc(r->link, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " links of lanes", cap);
        }
        r->link = grown;
        r->links_cap = cap;
    }
    r->link[r->n_links++] = (dt_road_link){.from = from, .to = to};
    return DT_OK;
}

/* In ascending order of the first, then of the second. */
static int by_lanes(const void *a, const void *b)
{
    const dt_road_link *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

dt_status dt_roads_seal(dt_roads *r)
{
    dt_free(r->next_ptr);
    dt_free(r->next);
    r->next_ptr = dt_alloc_n((size_t)r->n_lanes + 1, sizeof(*r->next_ptr));
    r->next = dt_alloc_n((size_t)r->n_links + 1, sizeof(*r->next));
    if (r->next_ptr == NULL || r->next == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " links of lanes", r->n_links);
    }
    if (r->n_links > 0) {
        qsort(r->link, (size_t)r->n_links, sizeof(*r->link), by_lanes);
    }
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_links; i++) {
        if (i == 0 || by_lanes(&r->link[i], &r->link[i - 1]) != 0) { /* from both of its ends it came twice */
            r->link[n] = r->link[i];
            r->next[n++] = r->link[i].to;
            r->next_ptr[r->link[i].from + 1]++;
        }
    }
    r->n_links = n;
    for (int64_t i = 0; i < r->n_lanes; i++) {
        r->next_ptr[i + 1] += r->next_ptr[i];
    }
    return DT_OK;
}

void dt_roads_hash(const dt_roads *r, uint64_t hash[2])
{
    const size_t lanes = (size_t)r->n_lanes, points = (size_t)r->n_points;
    for (uint64_t k = 0; k < 2; k++) {
        uint64_t h = dt_hash64(&r->n_lanes, sizeof(r->n_lanes), k);
        h = dt_hash64(r->point, (lanes + 1) * sizeof(*r->point), h);
        h = dt_hash64(r->xy, 2 * points * sizeof(*r->xy), h);
        h = dt_hash64(r->width, points * sizeof(*r->width), h);
        h = dt_hash64(r->kind, lanes * sizeof(*r->kind), h);
        h = dt_hash64(r->limit, lanes * sizeof(*r->limit), h);
        h = dt_hash64(r->id, lanes * sizeof(*r->id), h);
        h = dt_hash64(r->left, lanes * sizeof(*r->left), h);
        h = dt_hash64(r->right, lanes * sizeof(*r->right), h);
        h = dt_hash64(r->next_ptr, (lanes + 1) * sizeof(*r->next_ptr), h);
        hash[k] = dt_hash64(r->next, (size_t)r->n_links * sizeof(*r->next), h);
    }
}

static dt_status copy_lane(const dt_store_view *v, int64_t lane, dt_roads *r)
{
    double width[64], *room = width;
    const int64_t begin = v->lane_point[lane], n = v->lane_point[lane + 1] - begin;
    if (n > 64 && (room = dt_alloc_n((size_t)n, sizeof(*room))) == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a lane of %" PRId64 " points", n);
    }
    for (int64_t i = 0; i < n; i++) {
        room[i] = (double)v->lane_width[begin + i];
    }
    int32_t number = 0;
    const dt_status st = dt_roads_lane(r, "a lane",
                                       &(dt_road_lane){.id = v->lane_id[lane],
                                                       .kind = v->lane_kind[lane],
                                                       .limit = (double)v->lane_limit[lane],
                                                       .xy = v->lane_xy + 2 * begin,
                                                       .width = room,
                                                       .n = n},
                                       &number);
    if (room != width) {
        dt_free(room);
    }
    return st;
}

dt_status dt_roads_of_view(const dt_store_view *v, int64_t map, dt_roads *out_p)
{
    const int64_t first = v->map_lane[map], n = v->map_lane[map + 1] - first;
    dt_roads r = {.n_lanes = 0};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < n && st == DT_OK; i++) {
        const int64_t lane = first + i;
        st = copy_lane(v, lane, &r);
        for (int64_t k = v->lane_next_ptr[lane]; k < v->lane_next_ptr[lane + 1] && st == DT_OK; k++) {
            st = dt_roads_link(&r, (int32_t)i, (int32_t)(v->lane_next[k] - first));
        }
        if (st == DT_OK) {
            r.left[i] = v->lane_left[lane] < 0 ? -1 : (int32_t)(v->lane_left[lane] - first);
            r.right[i] = v->lane_right[lane] < 0 ? -1 : (int32_t)(v->lane_right[lane] - first);
        }
    }
    if (st == DT_OK) {
        st = dt_roads_seal(&r);
    }
    if (st != DT_OK) {
        dt_roads_fini(&r);
        return st;
    }
    *out_p = r;
    return DT_OK;
}

void dt_roads_fini(dt_roads *r)
{
    dt_free(r->point);
    dt_free(r->xy);
    dt_free(r->width);
    dt_free(r->kind);
    dt_free(r->limit);
    dt_free(r->id);
    dt_free(r->left);
    dt_free(r->right);
    dt_free(r->next_ptr);
    dt_free(r->next);
    dt_free(r->link);
    *r = (dt_roads){.n_lanes = 0};
}

const char *dt_lane_kind_name(int32_t kind)
{
    static const char *const name[DT_N_LANE_KINDS] = {"unknown", "road", "highway", "ramp", "junction",
                                                      "bicycle", "foot", "bus",     "other"};
    return kind >= 0 && kind < DT_N_LANE_KINDS ? name[kind] : "unknown";
}

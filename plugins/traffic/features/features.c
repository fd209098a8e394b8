/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph features of one frame of traffic. See features.h for every definition.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/features/features_graph.h"
#include "base/err.h"
#include "base/mem.h"
#include "traffic/features/pairs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const char *const dt_node_feature_name[DT_NODE_FEATURES] = {
    "x", "y", "speed", "acceleration", "sin_heading", "cos_heading", "length", "stop_distance", "controlled"};
const char *const dt_edge_feature_name[DT_EDGE_FEATURES] = {"longitudinal_gap", "lateral_offset", "closing_speed",
                                                            "inverse_ttc"};

enum { K_LIMIT = DT_NEIGHBOURS_MOST, SMALLEST = 64, ON_STACK = 1024 }; /* vehicles */

static dt_status check_range(const dt_vehicle *v, const char *what, double x, double lo, double hi)
{
    if (x >= lo && x <= hi) {
        return DT_OK;
    }
    return DT_FAIL(DT_EINVAL, "vehicle %" PRId64 ": %s %g is outside [%g, %g]", v->id, what, x, lo, hi);
}

static dt_status check_vehicle(const dt_vehicle *v)
{
    DT_TRY(check_range(v, "x", v->x, -DT_POSITION_MAX_M, DT_POSITION_MAX_M));
    DT_TRY(check_range(v, "y", v->y, -DT_POSITION_MAX_M, DT_POSITION_MAX_M));
    if (!isnan(v->heading)) {
        DT_TRY(check_range(v, "heading", v->heading, -DT_HEADING_MAX, DT_HEADING_MAX));
    }
    DT_TRY(check_range(v, "speed", v->speed, -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS));
    DT_TRY(check_range(v, "length", v->length, 0, DT_SIZE_MAX_M));
    if (!isnan(v->width)) {
        DT_TRY(check_range(v, "width", v->width, 0, DT_SIZE_MAX_M));
    }
    if (isinf(v->accel) || isinf(v->stop_distance)) {
        return DT_FAIL(DT_EINVAL, "vehicle %" PRId64 ": acceleration or stop distance is infinite", v->id);
    }
    return DT_OK;
}

static void node_features(const dt_vehicle *v, double sin_h, double cos_h, float out[DT_NODE_FEATURES])
{
    double stop = isnan(v->stop_distance) ? DT_STOP_DISTANCE_MAX_M : v->stop_distance;
    out[0] = (float)v->x;
    out[1] = (float)v->y;
    out[2] = (float)v->speed;
    out[3] = (float)(isnan(v->accel) ? 0.0 : v->accel);
    out[4] = (float)sin_h;
    out[5] = (float)cos_h;
    out[6] = (float)v->length;
    out[7] = (float)fmin(fmax(stop, 0.0), DT_STOP_DISTANCE_MAX_M);
    out[8] = v->controlled ? 1.0f : 0.0f;
}

static dt_status work_reserve(dt_features_work *w, uint32_t n)
{
    dt_nearby *g = &w->grid;
    uint32_t cap = SMALLEST;
    if (n <= g->cap) {
        return DT_OK;
    }
    while (cap < n) {
        cap *= 2;
    }
    dt_features_work_fini(w);
    void *room = dt_alloc(DT_NEARBY_BYTES(cap));
    if (room == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", n);
    }
    dt_nearby_init(g, cap, room);
    return DT_OK;
}

static bool has_unknown(const dt_vehicle *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(v[i].heading)) {
            return true;
        }
    }
    return false;
}

static void features_of_known_headings(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                       float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    for (uint32_t i = 0; i < n; i++) {
        const bool is_known = g->unknown == NULL || g->unknown[i] == DT_HEADING_KNOWN;
        g->sin_h[i] = is_known ? sin(v[i].heading) : 0;
        g->cos_h[i] = is_known ? cos(v[i].heading) : 0;
        node_features(&v[i], g->sin_h[i], g->cos_h[i], node + (size_t)i * DT_NODE_FEATURES);
    }
    dt_nearby_build(g, v, n, radius_m, DT_WIDTH_DEFAULT_M);
    dt_features_graph(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
}

/* Headings that are unknown are 0 in a copy, and speeds of what stands; g->unknown marks them. */
static dt_status frame_of_unknown(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                  float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    dt_vehicle *copy = dt_alloc_n(n, sizeof(*copy));
    uint8_t *unknown = dt_alloc_n(n, sizeof(*unknown));
    const bool has_room = copy != NULL && unknown != NULL;
    for (uint32_t i = 0; i < n && has_room; i++) {
        copy[i] = v[i];
        if (isnan(v[i].heading)) {
            unknown[i] = fabs(v[i].speed) < DT_STANDS_MPS ? DT_HEADING_STANDS : DT_HEADING_MOVES;
            copy[i].heading = copy[i].speed = 0;
        }
    }
    if (has_room) {
        g->unknown = unknown;
        features_of_known_headings(g, copy, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
        g->unknown = NULL;
    }
    for (uint32_t i = 0; i < n && has_room; i++) {
        node[(size_t)i * DT_NODE_FEATURES + 2] = (float)v[i].speed;
    }
    dt_free(copy);
    dt_free(unknown);
    return has_room ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", n);
}

static dt_status frame_features(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    if (n == 0) {
        rowptr[0] = 0;
        return DT_OK;
    }
    if (has_unknown(v, n)) {
        return frame_of_unknown(g, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
    }
    features_of_known_headings(g, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
    return DT_OK;
}

/* Callers without a work, plugins that observe every step, pay for no memory. */
static dt_status small_frame(const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, float *node,
                             int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    union {
        double aligned;
        unsigned char bytes[DT_NEARBY_BYTES(ON_STACK)];
    } room;
    dt_nearby g;
    dt_nearby_init(&g, ON_STACK, room.bytes);
    return frame_features(&g, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
}

typedef struct place {
    int64_t x, y; /* of a square */
} place;

static int by_place(const void *a, const void *b)
{
    const place *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

/* Vehicles at positions that no road has room for would be compared pair by pair. */
static dt_status check_crowds(const dt_vehicle *v, uint32_t n, double radius_m)
{
    const double side_m = fmin(radius_m, DT_CROWD_SIDE_M);
    if (n <= DT_CROWD_MOST) {
        return DT_OK;
    }
    place *places = dt_alloc_n(n, sizeof(*places));
    if (places == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        places[i] = (place){(int64_t)floor(v[i].x / side_m), (int64_t)floor(v[i].y / side_m)};
    }
    qsort(places, n, sizeof(*places), by_place);
    dt_status st = DT_OK;
    for (uint32_t i = 0, begin = 0; i < n && st == DT_OK; i++) {
        begin = by_place(&places[begin], &places[i]) == 0 ? begin : i;
        if (i - begin >= DT_CROWD_MOST) {
            st = DT_FAIL(
                DT_EINVAL,
                "more than %d of %" PRIu32
                " vehicles are in one square of %g m at (%g, %g): more than any road holds; are positions in metres?",
                DT_CROWD_MOST, n, side_m, (double)places[i].x * side_m, (double)places[i].y * side_m);
        }
    }
    dt_free(places);
    return st;
}

dt_status dt_features_check(const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max)
{
    if (!(radius_m >= 0.1) || radius_m > DT_POSITION_MAX_M) {
        return DT_FAIL(DT_EINVAL, "radius %g m is outside [0.1, %g]", radius_m, DT_POSITION_MAX_M);
    }
    if (k_max < 1 || k_max > K_LIMIT) {
        return DT_FAIL(DT_EINVAL, "%" PRIu32 " neighbours per vehicle is outside [1, %d]", k_max, K_LIMIT);
    }
    if (n > (uint32_t)(INT32_MAX / (int32_t)k_max)) {
        return DT_FAIL(DT_EINVAL, "a frame of %" PRIu32 " vehicles is above the limit of %d", n,
                       INT32_MAX / (int32_t)k_max);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(check_vehicle(&v[i]));
    }
    return check_crowds(v, n, radius_m);
}

dt_status dt_features_frame(dt_features_work *work, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                            float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    DT_TRY(dt_features_check(v, n, radius_m, k_max));
    if (work == NULL && n <= ON_STACK) {
        return small_frame(v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
    }
    dt_features_work own = {0};
    dt_features_work *w = work == NULL ? &own : work;
    DT_TRY(work_reserve(w, n));
    const dt_status st = frame_features(&w->grid, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
    dt_features_work_fini(&own);
    return st;
}

void dt_features_work_fini(dt_features_work *work)
{
    if (work == NULL) {
        return;
    }
    dt_free(work->grid.room);
    *work = (dt_features_work){0};
}

double dt_accel_from_speed(double speed_before, double speed, double seconds_between)
{
    return (speed - speed_before) / seconds_between;
}

static dt_status frame_of_service(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                  float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    for (uint32_t i = 0; i < n; i++) { /* of a simulation every heading is known */
        DT_TRY(check_range(&v[i], "heading", v[i].heading, -DT_HEADING_MAX, DT_HEADING_MAX));
    }
    return dt_features_frame(NULL, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

const dt_features_api dt_features_service = {
    .struct_size = sizeof(dt_features_api), .frame = frame_of_service, .pairs = dt_pairs_write};

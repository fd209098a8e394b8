/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph features of one frame of traffic. See features.h for every definition.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/features.h"
#include "base/err.h"
#include "base/mem.h"
#include "data/pairs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const dt_node_feature_name[DT_NODE_FEATURES] = {
    "x", "y", "speed", "acceleration", "sin_heading", "cos_heading", "length", "stop_distance", "controlled"};
const char *const dt_edge_feature_name[DT_EDGE_FEATURES] = {"longitudinal_gap", "lateral_offset", "closing_speed",
                                                            "inverse_ttc"};

enum { K_LIMIT = 256, SMALLEST = 64, ON_STACK = 1024 }; /* vehicles: a grid of SMALLEST at least; ON_STACK at most */

typedef struct near {
    double d2;
    int32_t j;
} near;

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
    DT_TRY(check_range(v, "heading", v->heading, -DT_HEADING_MAX, DT_HEADING_MAX));
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

/* Does b lie ahead on a's straight path? */
static bool is_ahead(const dt_vehicle *a, double sin_a, double cos_a, const dt_vehicle *b)
{
    const double ex = b->x - a->x, ey = b->y - a->y;
    const double wa = isnan(a->width) ? DT_WIDTH_DEFAULT_M : a->width;
    const double wb = isnan(b->width) ? DT_WIDTH_DEFAULT_M : b->width;
    return ex * cos_a + ey * sin_a > 0 && fabs(ey * cos_a - ex * sin_a) < 0.5 * (wa + wb);
}

/* Features 0..3 of source b seen from target a. */
static void edge_features(const dt_vehicle *a, double sin_a, double cos_a, const dt_vehicle *b,
                          double out[DT_EDGE_FEATURES])
{
    double ex = b->x - a->x, ey = b->y - a->y;
    double dx = ex * cos_a + ey * sin_a;
    double dy = ey * cos_a - ex * sin_a;
    double side = dx >= 0 ? 1.0 : -1.0;
    double gap = fmax(0.0, fabs(dx) - 0.5 * (a->length + b->length));
    double closing = side * (a->speed - b->speed * cos(b->heading - a->heading));
    double ittc = closing <= 0 ? 0.0 : closing >= DT_ITTC_MAX * gap ? DT_ITTC_MAX : closing / gap;
    out[0] = side * gap;
    out[1] = dy;
    out[2] = closing;
    out[3] = ittc;
}

/* ---- grid: vehicles chained by a hash of their cell -------------------------------------------------------------- */

static uint32_t bucket_of(const dt_features_work *w, int64_t cx, int64_t cy)
{
    uint64_t h = (uint64_t)cx * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)cy * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint32_t)(h >> 32) & (w->n_buckets - 1);
}

static uint32_t capacity_for(uint32_t n)
{
    uint32_t cap = SMALLEST;
    while (cap < n) {
        cap *= 2;
    }
    return cap;
}

static dt_status work_reserve(dt_features_work *w, uint32_t n)
{
    if (n <= w->n_cap) {
        return DT_OK;
    }
    dt_features_work_fini(w);
    const uint32_t cap = capacity_for(n);
    w->cell = dt_alloc_n(cap, 2 * sizeof(*w->cell));
    w->next = dt_alloc_n(cap, sizeof(*w->next));
    w->bucket = dt_alloc_n(cap, sizeof(*w->bucket));
    if (w->cell == NULL || w->next == NULL || w->bucket == NULL) {
        dt_features_work_fini(w);
        return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", n);
    }
    w->n_cap = w->n_buckets = cap;
    return DT_OK;
}

static void grid_build(dt_features_work *w, const dt_vehicle *v, uint32_t n, double radius_m)
{
    for (uint32_t b = 0; b < w->n_buckets; b++) {
        w->bucket[b] = -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        w->cell[2 * i] = (int64_t)floor(v[i].x / radius_m);
        w->cell[2 * i + 1] = (int64_t)floor(v[i].y / radius_m);
        uint32_t b = bucket_of(w, w->cell[2 * i], w->cell[2 * i + 1]);
        w->next[i] = w->bucket[b];
        w->bucket[b] = (int32_t)i;
    }
}

/* Keep the k nearest in order of (distance, index); the result does not depend on the order of the calls. */
static uint32_t keep_nearest(near *best, uint32_t n, uint32_t k, near c)
{
    uint32_t p = n < k ? n : k;
    while (p > 0 && (c.d2 < best[p - 1].d2 || (c.d2 == best[p - 1].d2 && c.j < best[p - 1].j))) {
        if (p < k) {
            best[p] = best[p - 1];
        }
        p--;
    }
    if (p < k) {
        best[p] = c;
    }
    return n < k ? n + 1 : k;
}

static uint32_t find_neighbours(const dt_features_work *w, const dt_vehicle *v, uint32_t i, double sin_h, double cos_h,
                                double radius_m, uint32_t k, near *best, double *path_ittc_p)
{
    uint32_t n = 0;
    double worst = 0;
    for (int64_t cx = w->cell[2 * i] - 1; cx <= w->cell[2 * i] + 1; cx++) {
        for (int64_t cy = w->cell[2 * i + 1] - 1; cy <= w->cell[2 * i + 1] + 1; cy++) {
            for (int32_t j = w->bucket[bucket_of(w, cx, cy)]; j >= 0; j = w->next[j]) {
                double ex = v[j].x - v[i].x, ey = v[j].y - v[i].y, d2 = ex * ex + ey * ey;
                if ((uint32_t)j == i || w->cell[2 * j] != cx || w->cell[2 * j + 1] != cy || d2 > radius_m * radius_m) {
                    continue;
                }
                n = keep_nearest(best, n, k, (near){d2, j});
                if (path_ittc_p != NULL && is_ahead(&v[i], sin_h, cos_h, &v[j])) { /* few are */
                    double e[DT_EDGE_FEATURES];
                    edge_features(&v[i], sin_h, cos_h, &v[j], e);
                    worst = e[3] > worst ? e[3] : worst;
                }
            }
        }
    }
    if (path_ittc_p != NULL) {
        *path_ittc_p = worst;
    }
    return n;
}

static void frame_features(dt_features_work *w, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                           float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    near best[K_LIMIT];
    int32_t e = 0;
    grid_build(w, v, n, radius_m);
    for (uint32_t i = 0; i < n; i++) {
        double sin_h = sin(v[i].heading), cos_h = cos(v[i].heading), worst = 0;
        node_features(&v[i], sin_h, cos_h, node + (size_t)i * DT_NODE_FEATURES);
        uint32_t m =
            find_neighbours(w, v, i, sin_h, cos_h, radius_m, k_max - 1, best, path_ittc == NULL ? NULL : &worst);
        rowptr[i] = e;
        col[e] = (int32_t)i;
        memset(edge + (size_t)e * DT_EDGE_FEATURES, 0, DT_EDGE_FEATURES * sizeof(*edge));
        e++;
        for (uint32_t p = 0; p < m; p++, e++) {
            double f[DT_EDGE_FEATURES];
            edge_features(&v[i], sin_h, cos_h, &v[best[p].j], f);
            col[e] = best[p].j;
            for (int d = 0; d < DT_EDGE_FEATURES; d++) {
                edge[(size_t)e * DT_EDGE_FEATURES + (size_t)d] = (float)f[d];
            }
        }
        if (path_ittc != NULL) {
            path_ittc[i] = (float)worst;
        }
    }
    rowptr[n] = e;
}

/* Callers without a work, plugins that observe every step, pay for no memory. */
static void small_frame(const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, float *node, int32_t *rowptr,
                        int32_t *col, float *edge, float *path_ittc)
{
    int64_t cell[2 * ON_STACK];
    int32_t next[ON_STACK], bucket[ON_STACK];
    const uint32_t cap = capacity_for(n);
    dt_features_work w = {.cell = cell, .next = next, .bucket = bucket, .n_cap = cap, .n_buckets = cap};
    frame_features(&w, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
}

dt_status dt_features_frame(dt_features_work *work, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                            float *node, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
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
    if (work == NULL && n <= ON_STACK) {
        small_frame(v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
        return DT_OK;
    }
    dt_features_work own = {0};
    dt_features_work *w = work == NULL ? &own : work;
    DT_TRY(work_reserve(w, n == 0 ? 1 : n));
    frame_features(w, v, n, radius_m, k_max, node, rowptr, col, edge, path_ittc);
    dt_features_work_fini(&own);
    return DT_OK;
}

void dt_features_work_fini(dt_features_work *work)
{
    if (work == NULL) {
        return;
    }
    dt_free(work->cell);
    dt_free(work->next);
    dt_free(work->bucket);
    *work = (dt_features_work){0};
}

double dt_accel_from_speed(double speed_before, double speed, double seconds_between)
{
    return (speed - speed_before) / seconds_between;
}

bool dt_risk_is_now(double accel, double path_ittc)
{
    return accel < -DT_RISK_BRAKE ||
           (float)path_ittc > (float)(1.0 / DT_RISK_TTC_S); /* 1.5 s itself is not under 1.5 s */
}

static dt_status frame_of_service(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                  float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    (void)h;
    return dt_features_frame(NULL, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

const dt_features_api dt_features_service = {
    .struct_size = sizeof(dt_features_api), .frame = frame_of_service, .pairs = dt_pairs_of};

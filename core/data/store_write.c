/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a store: frames stream through, then two passes over mapped files make the track lists and risk labels.
 * See store.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/live.h"
#include "data/npy.h"
#include "data/store.h"
#include "data/store_roads.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SITES_MAX = 4096, NAME_MAX_BYTES = 512, FORGET_ROWS = 1 << 18, STOP_DISTANCE = 7 };

/* arrays that are appended to while frames come; track_ptr, track_row and accel_centred are made at the end */
enum {
#define DT_ARRAY(name, dtype, width, count, plus) A_##name,
#include "data/arrays.def"
#undef DT_ARRAY
    N_ARRAYS
};

typedef struct array_spec {
    const char *name;
    uint32_t dtype;
    int64_t width;
} array_spec;

static const array_spec specs[N_ARRAYS] = {
#define DT_ARRAY(name, dtype, width, count, plus) {#name, dtype, width},
#include "data/arrays.def"
#undef DT_ARRAY
};

/* Welford's running mean and variance (Knuth, TAOCP 2, 4.2.2). */
typedef struct moments {
    double n, min, max, mean, m2;
} moments;

/* What a scene adds to, as it was when the scene began. */
typedef struct point {
    int64_t rows[N_ARRAYS]; /* of the arrays */
    dt_store_counts count;
    moments node_stat[DT_NODE_FEATURES], edge_stat[DT_EDGE_FEATURES];
} point;

struct dt_store_writer {
    char *path, *partial;
    dt_store_meta meta;
    dt_npy_writer *array[N_ARRAYS];
    dt_store_counts count;
    bool is_in_scene, is_committed;
    int64_t next_frame, scene_rows; /* in this scene */
    double scene_t0;                /* time of its frame 0 */
    int32_t scene_map;              /* -1: none */
    dt_roads_writer roads;
    dt_live live; /* the vehicles in sight */
    moments node_stat[DT_NODE_FEATURES], edge_stat[DT_EDGE_FEATURES];
    dt_packed_errors errors;
    dt_repeats repeats;
    uint64_t scene_hash;
    point begin; /* of the scene */
    int64_t n_repeats;
    dt_str scenes; /* JSON text of the list */
    dt_json_out scenes_out;
    char *site[SITES_MAX];
    int32_t n_sites;
    /* room for one frame */
    uint32_t cap;
    dt_vehicle *vehicle;
    dt_features_work work;
    float *node, *edge, *ittc;
    double *recorded; /* accelerations */
    int32_t *rowptr, *col;
};

static void moments_add(moments *m, double x)
{
    double d = x - m->mean;
    m->n += 1;
    m->mean += d / m->n;
    m->m2 += d * (x - m->mean);
    m->min = m->n == 1 || x < m->min ? x : m->min;
    m->max = m->n == 1 || x > m->max ? x : m->max;
}

static bool is_road(int a)
{
    return a >= A_scene_map && a <= A_lane_right;
}

static bool is_there(const dt_store_writer *w, int a)
{
    if (is_road(a)) {
        return w->count.maps > 0;
    }
    return (a != A_accel_centred || w->meta.smooth_s > 0) &&
           (a != A_stop_distance || w->meta.packing.features != DT_KEPT_F32);
}

static void array_path(const dt_store_writer *w, int a, dt_str *out)
{
    dt_str_clear(out);
    dt_str_addf(out, "%s/%s.npy", w->partial, specs[a].name);
}

static dt_status open_array(dt_store_writer *w, int a)
{
    dt_str path = {0};
    array_path(w, a, &path);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_npy_create(dt_str_text(&path), specs[a].dtype, specs[a].width, &w->array[a]);
    }
    dt_str_fini(&path);
    return st;
}

/* Those of roads, or the others. */
static dt_status open_arrays(dt_store_writer *w, bool of_roads)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        const bool is_later = a == A_track_ptr || a == A_track_row || a == A_accel_centred || a == A_lane_next;
        const bool is_absent = a == A_stop_distance && !is_there(w, a);
        DT_TRY(is_later || is_absent || is_road(a) != of_roads ? DT_OK : open_array(w, a));
    }
    return DT_OK;
}

dt_status dt_store_create(const char *path, const dt_store_meta *meta, dt_store_writer **out_p)
{
    if (!(meta->frame_rate_hz >= 0.1 && meta->frame_rate_hz <= 1000)) {
        return DT_FAIL(DT_EINVAL, "frame rate %g Hz is outside [0.1, 1000]", meta->frame_rate_hz);
    }
    if (!(meta->smooth_s >= 0 && meta->smooth_s <= DT_SMOOTH_MAX_S)) {
        return DT_FAIL(DT_EINVAL, "a smoothing width of %g s is outside [0, %g]", meta->smooth_s, DT_SMOOTH_MAX_S);
    }
    DT_TRY(dt_packing_check(&meta->packing));
    if (dt_fs_is_dir(path) || dt_fs_is_file(path)) {
        return DT_FAIL(DT_EINVAL, "%s exists already: remove it or choose another name", path);
    }
    dt_store_writer *w = dt_alloc(sizeof(*w));
    dt_str partial = {0};
    if (w == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to write %s", path);
    }
    w->meta = *meta;
    w->meta.radius_m = meta->radius_m > 0 ? meta->radius_m : DT_RADIUS_M;
    w->meta.k_max = meta->k_max > 0 ? meta->k_max : DT_NEIGHBOURS;
    w->meta.source = dt_strdup(meta->source == NULL ? "" : meta->source);
    w->meta.options = dt_strdup(meta->options == NULL ? "" : meta->options);
    dt_live_init(&w->live, meta->frame_rate_hz);
    w->path = dt_strdup(path);
    dt_str_addf(&partial, "%s.partial", path);
    w->partial = partial.failed ? NULL : dt_strdup(dt_str_text(&partial));
    dt_str_fini(&partial);
    w->scenes_out = (dt_json_out){.s = &w->scenes};
    dt_json_arr(&w->scenes_out, NULL);
    dt_status st = DT_OK;
    if (w->path == NULL || w->partial == NULL || w->meta.source == NULL || w->meta.options == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory to write %s", path);
        goto err_destroy;
    }
    st = dt_fs_remove_tree(w->partial);
    if (st == DT_OK) {
        st = dt_fs_mkdirs(w->partial);
    }
    if (st == DT_OK) {
        st = open_arrays(w, false);
    }
    if (st != DT_OK) {
        goto err_destroy;
    }
    *out_p = w;
    return DT_OK;
err_destroy:
    dt_store_destroy(w);
    return st;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* The number of the vehicle's running track, or of a new one. Fills a missing acceleration; *fed_p is the one that
 * models are shown. */
static dt_status track_of(dt_store_writer *w, int64_t frame, dt_vehicle *v, int32_t *track_p, double *fed_p)
{
    double fed = 0.0;
    dt_live_vehicle *l = NULL;
    bool is_new = false;
    DT_TRY(dt_live_get(&w->live, v->id, frame, &l, &is_new));
    if (!is_new && l->frame == frame) {
        return DT_FAIL(DT_EDATA, "vehicle %" PRId64 " is in the frame twice", v->id);
    }
    if (is_new) {
        if (w->count.tracks == INT32_MAX) {
            return DT_FAIL(DT_EDATA, "more than %d tracks: split the recording into several stores", INT32_MAX);
        }
        l->track = (int32_t)w->count.tracks++;
        l->is_single = 1;
        w->count.tracks_of_one_frame++;
        DT_TRY(dt_npy_append(w->array[A_track_id], &v->id, 1));
        v->accel = isnan(v->accel) ? 0.0 : v->accel;
    } else {
        w->count.tracks_of_one_frame -= l->is_single;
        l->is_single = 0;
        double dt = (double)(frame - l->frame) / w->meta.frame_rate_hz;
        v->accel = isnan(v->accel) ? dt_accel_from_speed(l->speed, v->speed, dt) : v->accel;
        fed = w->meta.smooth_s > 0 ? dt_past_mean_add(&l->accel, l->speed, v->speed, dt, w->meta.smooth_s) : 0.0;
    }
    l->frame = frame;
    l->speed = v->speed;
    *track_p = l->track;
    *fed_p = w->meta.smooth_s > 0 ? fed : v->accel;
    return DT_OK;
}

static dt_status reserve_frame(dt_store_writer *w, uint32_t n)
{
    if (n <= w->cap) {
        return DT_OK;
    }
    uint32_t cap = 64;
    while (cap < n) {
        cap *= 2;
    }
    size_t k = w->meta.k_max;
    dt_free(w->vehicle);
    dt_free(w->node);
    dt_free(w->edge);
    dt_free(w->ittc);
    dt_free(w->recorded);
    dt_free(w->rowptr);
    dt_free(w->col);
    w->cap = 0;
    w->vehicle = dt_alloc_n(cap, sizeof(*w->vehicle));
    w->node = dt_alloc_n(cap, DT_NODE_FEATURES * sizeof(float));
    w->edge = dt_alloc_n(cap * k, DT_EDGE_FEATURES * sizeof(float));
    w->ittc = dt_alloc_n(cap, sizeof(float));
    w->recorded = dt_alloc_n(cap, sizeof(*w->recorded));
    w->rowptr = dt_alloc_n((size_t)cap + 1, sizeof(int32_t));
    w->col = dt_alloc_n(cap * k, sizeof(int32_t));
    if (w->vehicle == NULL || w->node == NULL || w->edge == NULL || w->ittc == NULL || w->recorded == NULL ||
        w->rowptr == NULL || w->col == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", n);
    }
    w->cap = cap;
    return DT_OK;
}

static void note_begin(dt_store_writer *w)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        w->begin.rows[a] = w->array[a] != NULL ? dt_npy_rows(w->array[a]) : 0;
    }
    w->begin.count = w->count;
    memcpy(w->begin.node_stat, w->node_stat, sizeof(w->node_stat));
    memcpy(w->begin.edge_stat, w->edge_stat, sizeof(w->edge_stat));
}

/* As if the scene had never begun; maps stay. */
static dt_status forget_scene(dt_store_writer *w)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        DT_TRY(w->array[a] != NULL && !is_road(a) ? dt_npy_cut(w->array[a], w->begin.rows[a]) : DT_OK);
    }
    w->begin.count.maps = w->count.maps;
    w->begin.count.lanes = w->count.lanes;
    w->begin.count.lane_points = w->count.lane_points;
    w->begin.count.lane_links = w->count.lane_links;
    w->count = w->begin.count;
    memcpy(w->node_stat, w->begin.node_stat, sizeof(w->node_stat));
    memcpy(w->edge_stat, w->begin.edge_stat, sizeof(w->edge_stat));
    w->is_in_scene = false;
    return DT_OK;
}

dt_status dt_store_scene_begin(dt_store_writer *w)
{
    if (w->is_in_scene) {
        return DT_FAIL(DT_EINVAL, "a scene begins before the last one ended");
    }
    w->is_in_scene = true;
    w->next_frame = 0;
    w->scene_rows = 0;
    w->scene_map = -1;
    w->scene_hash = 0;
    dt_live_clear(&w->live);
    note_begin(w);
    return dt_npy_append(w->array[A_scene_frame], &w->count.frames, 1);
}

/* The arrays of roads; the scenes before had none. */
static dt_status begin_roads(dt_store_writer *w)
{
    static const int32_t none = -1;
    _Static_assert(A_lane_right - A_scene_map == DT_ROADS_LANE_RIGHT, "store_roads.h is in the order of arrays.def");
    DT_TRY(open_arrays(w, true));
    w->roads.array = &w->array[A_scene_map];
    for (int64_t i = 0; i < w->count.scenes; i++) {
        DT_TRY(dt_npy_append(w->array[A_scene_map], &none, 1));
    }
    return DT_OK;
}

dt_status dt_store_map(dt_store_writer *w, const char *name, const dt_roads *roads, int32_t *number_p)
{
    int32_t number = 0;
    if (w->is_committed || roads->n_lanes < 1 || roads->next_ptr == NULL || strlen(name) > NAME_MAX_BYTES) {
        return DT_FAIL(DT_EINVAL,
                       "map %.60s is not sealed, has no lane or a name above %d bytes, or the store is complete", name,
                       NAME_MAX_BYTES);
    }
    DT_TRY(w->roads.array == NULL ? begin_roads(w) : DT_OK);
    DT_TRY(roads->n_links > 0 && w->array[A_lane_next] == NULL ? open_array(w, A_lane_next) : DT_OK);
    DT_TRY(dt_roads_write(&w->roads, name, roads, &number));
    w->count.maps = w->roads.known.n;
    w->count.lanes = w->roads.lanes;
    w->count.lane_points = w->roads.points;
    w->count.lane_links = w->roads.links;
    *number_p = number;
    return DT_OK;
}

dt_status dt_store_scene_map(dt_store_writer *w, int32_t map)
{
    if (!w->is_in_scene || map < -1 || map >= w->count.maps) {
        return DT_FAIL(DT_EINVAL, "map %" PRId32 " of %" PRId64 ", or no scene is open", map, w->count.maps);
    }
    w->scene_map = map;
    return DT_OK;
}

static dt_status frame_open(dt_store_writer *w, int64_t frame, double time_s)
{
    if (w->next_frame == 0) {
        w->scene_t0 = time_s - (double)frame / w->meta.frame_rate_hz;
    }
    for (; w->next_frame <= frame; w->next_frame++) {
        double t = w->next_frame == frame ? time_s : w->scene_t0 + (double)w->next_frame / w->meta.frame_rate_hz;
        DT_TRY(dt_npy_append(w->array[A_frame_row], &w->count.rows, 1));
        DT_TRY(dt_npy_append(w->array[A_frame_time], &t, 1));
        w->count.frames++;
    }
    return DT_OK;
}

static dt_status append_row(dt_store_writer *w, const dt_vehicle *v, uint32_t i, int32_t track)
{
    double pose[3] = {v->x, v->y, v->heading};
    float motion[4] = {(float)v->speed, (float)w->recorded[i], (float)v->length,
                       (float)(isnan(v->width) ? DT_WIDTH_DEFAULT_M : v->width)};
    const double braking = w->meta.smooth_s > 0 ? 0.0 : v->accel; /* known at the end of the track, see label_braking */
    uint8_t risk = dt_risk_is_now(braking, w->ittc[i]) ? DT_RISK_NOW : DT_RISK_NEGATIVE;
    int64_t edges = w->count.edges + w->rowptr[i];
    w->scene_hash = dt_repeats_hash(w->scene_hash, w->next_frame - 1, pose, motion[0]);
    DT_TRY(dt_npy_append(w->array[A_pose], pose, 1));
    DT_TRY(dt_npy_append(w->array[A_motion], motion, 1));
    DT_TRY(dt_npy_append(w->array[A_row_track], &track, 1));
    DT_TRY(dt_npy_append(w->array[A_edge_ptr], &edges, 1));
    return dt_npy_append(w->array[A_risk], &risk, 1);
}

dt_status dt_store_frame(dt_store_writer *w, int64_t frame, double time_s, const dt_vehicle *v, uint32_t n)
{
    if (!w->is_in_scene || frame < w->next_frame) {
        return DT_FAIL(DT_EINVAL, "frame %" PRId64 " comes after frame %" PRId64 " or outside a scene", frame,
                       w->next_frame - 1);
    }
    DT_TRY(frame_open(w, frame, time_s));
    if (n == 0) {
        return DT_OK;
    }
    DT_TRY(reserve_frame(w, n));
    int32_t track = 0;
    memcpy(w->vehicle, v, n * sizeof(*v));
    for (uint32_t i = 0; i < n; i++) { /* the tracks first: they fill accelerations that the features need */
        double fed = 0.0;
        DT_TRY(track_of(w, frame, &w->vehicle[i], &track, &fed));
        w->vehicle[i].reserved = (uint32_t)track;
        w->recorded[i] = w->vehicle[i].accel;
        w->vehicle[i].accel = fed;
    }
    dt_status st = dt_features_frame(&w->work, w->vehicle, n, w->meta.radius_m, w->meta.k_max, w->node, w->rowptr,
                                     w->col, w->edge, w->ittc);
    if (st != DT_OK) {
        return st == DT_EINVAL ? DT_CONTEXT(DT_EDATA, "frame %" PRId64, frame) : st;
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(append_row(w, &w->vehicle[i], i, (int32_t)w->vehicle[i].reserved));
        for (int d = 0; d < DT_NODE_FEATURES; d++) {
            moments_add(&w->node_stat[d], w->node[(size_t)i * DT_NODE_FEATURES + (size_t)d]);
        }
        for (int32_t e = w->rowptr[i] + 1; e < w->rowptr[i + 1]; e++) { /* the first is the vehicle itself */
            for (int d = 0; d < DT_EDGE_FEATURES; d++) {
                moments_add(&w->edge_stat[d], w->edge[(size_t)e * DT_EDGE_FEATURES + (size_t)d]);
            }
        }
    }
    for (uint32_t i = 0; i < n && w->array[A_stop_distance] != NULL; i++) {
        DT_TRY(dt_npy_append(w->array[A_stop_distance], w->node + (size_t)i * DT_NODE_FEATURES + STOP_DISTANCE, 1));
    }
    DT_TRY(dt_npy_append(w->array[A_node], w->node, n));
    DT_TRY(dt_npy_append(w->array[A_edge_src], w->col, w->rowptr[n]));
    DT_TRY(dt_npy_append(w->array[A_edge], w->edge, w->rowptr[n]));
    w->count.rows += n;
    w->count.edges += w->rowptr[n];
    w->scene_rows += n;
    return DT_OK;
}

static dt_status site_number(dt_store_writer *w, const char *site, int32_t *out_p)
{
    for (int32_t i = 0; i < w->n_sites; i++) {
        if (strcmp(w->site[i], site) == 0) {
            *out_p = i;
            return DT_OK;
        }
    }
    if (w->n_sites == SITES_MAX) {
        return DT_FAIL(DT_EDATA, "more than %d sites", SITES_MAX);
    }
    w->site[w->n_sites] = dt_strdup(site);
    if (w->site[w->n_sites] == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for site %s", site);
    }
    *out_p = w->n_sites++;
    return DT_OK;
}

enum { REPEATS_TOLD = 5 };

/* *is_left_out_p: the scene is one that is there already, and is not kept. */
static dt_status check_repeat(dt_store_writer *w, const char *name, bool *is_left_out_p)
{
    const char *same = NULL;
    DT_TRY(dt_repeats_add(&w->repeats, w->scene_hash, name, &same));
    *is_left_out_p = same != NULL && w->meta.packing.repeats == DT_REPEATS_SKIP;
    if (same == NULL) {
        return DT_OK;
    }
    if (w->meta.packing.repeats == DT_REPEATS_REFUSE) {
        return DT_FAIL(DT_EDATA, "scene %s is scene %s again, row for row (store.repeats=skip leaves it out)", name,
                       same);
    }
    if (w->n_repeats++ < REPEATS_TOLD) {
        dt_log(DT_LOG_WARN, "scene %s is scene %s again, row for row: %s", name, same,
               *is_left_out_p ? "left out" : "kept (store.repeats=skip would leave it out)");
    }
    return *is_left_out_p ? forget_scene(w) : DT_OK;
}

dt_status dt_store_scene_end(dt_store_writer *w, const char *name, const char *site)
{
    int32_t number = 0;
    if (!w->is_in_scene || strlen(name) > NAME_MAX_BYTES || strlen(site) > NAME_MAX_BYTES) {
        return DT_FAIL(DT_EINVAL, "the end of a scene without its begin, or a name above %d bytes", NAME_MAX_BYTES);
    }
    if (w->scene_rows == 0) {
        return DT_FAIL(DT_EDATA, "scene %s has no vehicles", name);
    }
    bool is_left_out = false;
    DT_TRY(check_repeat(w, name, &is_left_out));
    if (is_left_out) {
        return DT_OK;
    }
    DT_TRY(site_number(w, site, &number));
    DT_TRY(dt_npy_append(w->array[A_scene_site], &number, 1));
    DT_TRY(w->count.maps > 0 ? dt_npy_append(w->array[A_scene_map], &w->scene_map, 1) : DT_OK);
    dt_json_obj(&w->scenes_out, NULL);
    dt_json_str(&w->scenes_out, "name", name);
    dt_json_i64(&w->scenes_out, "site", number);
    dt_json_i64(&w->scenes_out, "frames", w->next_frame);
    dt_json_i64(&w->scenes_out, "rows", w->scene_rows);
    dt_json_end(&w->scenes_out, '}');
    w->is_in_scene = false;
    w->count.scenes++;
    return dt_str_status(&w->scenes);
}

/* ---- the end: tracks, risk, store.json --------------------------------------------------------------------------- */

typedef struct maps {
    dt_npy frame_row, row_track, track_ptr, track_row, risk;
    dt_npy frame_time, motion, accel_centred; /* with smoothing */
} maps;

static dt_status open_maps(dt_store_writer *w, maps *m)
{
    dt_str p = {0};
    dt_status st = DT_OK;
#define OPEN(member, call)                                                                                             \
    if (st == DT_OK) {                                                                                                 \
        array_path(w, A_##member, &p);                                                                                 \
        st = dt_str_status(&p) == DT_OK ? call : DT_ENOMEM;                                                            \
    }
    OPEN(frame_row, dt_npy_map(dt_str_text(&p), DT_I64, 0, &m->frame_row))
    OPEN(row_track, dt_npy_map(dt_str_text(&p), DT_I32, 0, &m->row_track))
    OPEN(risk, dt_npy_map_rw(dt_str_text(&p), DT_U8, 0, &m->risk))
    OPEN(track_ptr, dt_npy_create_mapped(dt_str_text(&p), DT_I64, 0, w->count.tracks + 1, &m->track_ptr))
    OPEN(track_row, dt_npy_create_mapped(dt_str_text(&p), DT_I64, 0, w->count.rows, &m->track_row))
    if (is_there(w, A_accel_centred)) {
        OPEN(frame_time, dt_npy_map(dt_str_text(&p), DT_F64, 0, &m->frame_time))
        OPEN(motion, dt_npy_map(dt_str_text(&p), DT_F32, 4, &m->motion))
        OPEN(accel_centred, dt_npy_create_mapped(dt_str_text(&p), DT_F32, 0, w->count.rows, &m->accel_centred))
    }
#undef OPEN
    dt_str_fini(&p);
    return st;
}

/* After every so many rows: the passes over the whole recording leave their pages to the page cache. */
static void forget(const maps *m, int64_t row)
{
    if (row % FORGET_ROWS == FORGET_ROWS - 1) {
        dt_npy_forget(&m->frame_row);
        dt_npy_forget(&m->row_track);
        dt_npy_forget(&m->track_ptr);
        dt_npy_forget(&m->track_row);
        dt_npy_forget(&m->risk);
        dt_npy_forget(&m->motion);
        dt_npy_forget(&m->accel_centred);
    }
}

/* Counting sort of rows by track; rows come in time order, so each list is too. */
static void list_tracks(const dt_store_counts *c, const maps *m)
{
    const int32_t *row_track = m->row_track.data;
    int64_t *ptr = (int64_t *)(uintptr_t)m->track_ptr.data, *track_row = (int64_t *)(uintptr_t)m->track_row.data;
    for (int64_t r = 0; r < c->rows; r++) {
        ptr[row_track[r] + 1]++;
        forget(m, r);
    }
    for (int64_t t = 0; t < c->tracks; t++) {
        ptr[t + 1] += ptr[t];
    }
    for (int64_t r = 0; r < c->rows; r++) {
        track_row[ptr[row_track[r]]++] = r;
        forget(m, r);
    }
    for (int64_t t = c->tracks; t > 0; t--) { /* every cursor stands at its end now, which is the next one's begin */
        ptr[t] = ptr[t - 1];
    }
    ptr[0] = 0;
}

/* The last index i with a[i] <= x, in n ascending numbers, a[0] <= x. */
static int64_t last_not_above(const int64_t *a, int64_t n, int64_t x)
{
    int64_t lo = 0, hi = n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (a[mid] <= x) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Centred accelerations of a track, and DT_RISK_NOW where they are hard braking. room: of 5 numbers a frame. */
static void label_braking(const maps *m, double smooth_s, int64_t begin, int64_t end, double *room)
{
    const int64_t *row = (const int64_t *)m->track_row.data + begin, *frame_row = m->frame_row.data, n = end - begin;
    const float *motion = m->motion.data;
    float *centred = (float *)(uintptr_t)m->accel_centred.data;
    uint8_t *risk = (uint8_t *)(uintptr_t)m->risk.data;
    double *time = room, *speed = room + n, *accel = room + 2 * n;
    int64_t frame = last_not_above(frame_row, m->frame_row.rows, row[0]);
    for (int64_t i = 0; i < n; i++) {
        while (frame_row[frame + 1] <= row[i]) {
            frame++;
        }
        time[i] = ((const double *)m->frame_time.data)[frame];
        speed[i] = (double)motion[4 * row[i]];
    }
    dt_smooth_track(time, speed, n, smooth_s, room + 3 * n, accel);
    for (int64_t i = 0; i < n; i++) {
        centred[row[i]] = (float)accel[i];
        if (dt_risk_is_now(accel[i], 0.0)) {
            risk[row[i]] = DT_RISK_NOW;
        }
        forget(m, begin + i);
    }
}

static dt_status label_all_braking(const dt_store_writer *w, const maps *m)
{
    const int64_t *ptr = m->track_ptr.data;
    int64_t longest = 0;
    for (int64_t t = 0; t < w->count.tracks; t++) {
        longest = ptr[t + 1] - ptr[t] > longest ? ptr[t + 1] - ptr[t] : longest;
    }
    double *room = dt_alloc_n((size_t)longest, 5 * sizeof(*room));
    if (room == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to smooth a track of %" PRId64 " frames", longest);
    }
    for (int64_t t = 0; t < w->count.tracks; t++) {
        label_braking(m, w->meta.smooth_s, ptr[t], ptr[t + 1], room);
    }
    dt_free(room);
    return dt_npy_sync(&m->accel_centred, "accel_centred.npy");
}

/* In: DT_RISK_NOW where dangerous in the frame itself, else 0. From the last row of a track to its first: the nearest
 * danger ahead and the number of frames recorded without a hole are all that a row needs to know of its future. */
static void label_track(const maps *m, int64_t ahead, int64_t begin, int64_t end, dt_store_counts *c)
{
    const int64_t *row = m->track_row.data, *frame_row = m->frame_row.data;
    uint8_t *risk = (uint8_t *)(uintptr_t)m->risk.data;
    int64_t n_frames = m->frame_row.rows - 1;
    int64_t last = last_not_above(frame_row, n_frames + 1, row[end - 1]);
    int64_t nearest_now = INT64_MAX, frame = last, frame_after = last, run = 0;
    for (int64_t p = end - 1; p >= begin; p--) {
        while (frame_row[frame] > row[p]) {
            frame--;
        }
        /* run: frames recorded without a hole right after this one */
        run = p == end - 1 ? 0 : frame_after == frame + 1 ? run + 1 : 0;
        frame_after = frame;
        uint8_t *state = &risk[row[p]];
        if (*state == DT_RISK_NOW) {
            nearest_now = frame;
        } else if (nearest_now != INT64_MAX && nearest_now - frame <= ahead) {
            *state = DT_RISK_POSITIVE;
        } else {
            *state = run >= ahead ? DT_RISK_NEGATIVE : DT_RISK_UNKNOWN;
        }
        c->risk[*state]++;
        forget(m, p);
    }
}

static dt_status finish_tracks(dt_store_writer *w)
{
    maps m = {0};
    int64_t ahead = (int64_t)floor(DT_RISK_AHEAD_S * w->meta.frame_rate_hz + 1e-6);
    dt_status st = open_maps(w, &m);
    if (st != DT_OK) {
        goto out;
    }
    const int64_t *ptr = m.track_ptr.data;
    list_tracks(&w->count, &m);
    memset(w->count.risk, 0, sizeof(w->count.risk));
    if (is_there(w, A_accel_centred)) {
        st = label_all_braking(w, &m);
    }
    for (int64_t t = 0; t < w->count.tracks && st == DT_OK; t++) {
        label_track(&m, ahead, ptr[t], ptr[t + 1], &w->count);
    }
    if (st == DT_OK) {
        st = dt_npy_sync(&m.track_ptr, "track_ptr.npy");
    }
    if (st == DT_OK) {
        st = dt_npy_sync(&m.track_row, "track_row.npy");
    }
    if (st == DT_OK) {
        st = dt_npy_sync(&m.risk, "risk.npy");
    }
out:
    dt_npy_unmap(&m.frame_row);
    dt_npy_unmap(&m.row_track);
    dt_npy_unmap(&m.track_ptr);
    dt_npy_unmap(&m.track_row);
    dt_npy_unmap(&m.risk);
    dt_npy_unmap(&m.frame_time);
    dt_npy_unmap(&m.motion);
    dt_npy_unmap(&m.accel_centred);
    return st;
}

static void write_stats(dt_json_out *o, const char *key, const char *const *name, const moments *m, int n)
{
    dt_json_arr(o, key);
    for (int d = 0; d < n; d++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", name[d]);
        dt_json_f64(o, "min", m[d].min);
        dt_json_f64(o, "max", m[d].max);
        dt_json_f64(o, "mean", m[d].mean);
        dt_json_f64(o, "std", m[d].n > 0 ? sqrt(m[d].m2 / m[d].n) : 0.0);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

static void write_names(dt_json_out *o, const char *key, const char *const *name, int n)
{
    dt_json_arr(o, key);
    for (int i = 0; i < n; i++) {
        dt_json_str(o, NULL, name[i]);
    }
    dt_json_end(o, ']');
}

static void describe(dt_store_writer *w, dt_str *text)
{
    dt_json_out o = {.s = text};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "format", DT_STORE_FORMAT);
    dt_json_i64(&o, "version", DT_STORE_VERSION);
    dt_json_f64(&o, "frame_rate_hz", w->meta.frame_rate_hz);
    dt_json_obj(&o, "units");
    dt_json_str(&o, "length", "m");
    dt_json_str(&o, "speed", "m/s");
    dt_json_str(&o, "angle", "rad");
    dt_json_end(&o, '}');
    dt_json_str(&o, "source", w->meta.source);
    dt_json_obj(&o, "options");
    dt_json_str(&o, "import", w->meta.options);
    dt_json_f64(&o, "radius_m", w->meta.radius_m);
    dt_json_i64(&o, "neighbours", w->meta.k_max);
    dt_json_f64(&o, "smooth_s", w->meta.smooth_s);
    dt_json_end(&o, '}');
    write_names(&o, "sites", (const char *const *)w->site, w->n_sites);
    write_names(&o, "node_features", dt_node_feature_name, DT_NODE_FEATURES);
    write_names(&o, "edge_features", dt_edge_feature_name, DT_EDGE_FEATURES);
    dt_packed_describe(&o, &w->meta.packing, &w->errors);
    dt_json_obj(&o, "counts");
    dt_json_i64(&o, "scenes", w->count.scenes);
    dt_json_i64(&o, "frames", w->count.frames);
    dt_json_i64(&o, "rows", w->count.rows);
    dt_json_i64(&o, "tracks", w->count.tracks);
    dt_json_i64(&o, "edges", w->count.edges);
    dt_json_i64(&o, "tracks_of_one_frame", w->count.tracks_of_one_frame);
    dt_json_i64(&o, "maps", w->count.maps);
    dt_json_i64(&o, "lanes", w->count.lanes);
    dt_json_i64(&o, "lane_points", w->count.lane_points);
    dt_json_i64(&o, "lane_links", w->count.lane_links);
    dt_json_end(&o, '}');
    dt_json_obj(&o, "risk");
    dt_json_i64(&o, "negative", w->count.risk[DT_RISK_NEGATIVE]);
    dt_json_i64(&o, "positive", w->count.risk[DT_RISK_POSITIVE]);
    dt_json_i64(&o, "now", w->count.risk[DT_RISK_NOW]);
    dt_json_i64(&o, "unknown", w->count.risk[DT_RISK_UNKNOWN]);
    dt_json_end(&o, '}');
    dt_json_obj(&o, "statistics");
    write_stats(&o, "node", dt_node_feature_name, w->node_stat, DT_NODE_FEATURES);
    write_stats(&o, "edge", dt_edge_feature_name, w->edge_stat, DT_EDGE_FEATURES);
    dt_json_end(&o, '}');
    dt_str_addf(text, ",\"scenes\":%s", dt_str_text(&w->scenes)); /* made as the scenes came */
    if (w->count.maps > 0) {
        dt_str_addf(text, ",\"maps\":%s", dt_str_text(&w->roads.names));
    }
    dt_json_end(&o, '}');
    dt_str_add(text, "\n");
}

/* Edges of vehicles to themselves are zeros, which statistics leave out. */
static dt_status pack_arrays(dt_store_writer *w)
{
    dt_packed_range node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        node[d] = (dt_packed_range){w->node_stat[d].min, w->node_stat[d].max};
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        edge[d] = (dt_packed_range){fmin(0, w->edge_stat[d].min), fmax(0, w->edge_stat[d].max)};
    }
    return dt_packed_write(w->partial, &w->meta.packing, node, edge, &w->errors);
}

static dt_status write_description(dt_store_writer *w)
{
    dt_str text = {0}, path = {0};
    dt_json_end(&w->scenes_out, ']');
    describe(w, &text);
    dt_str_addf(&path, "%s/store.json", w->partial);
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

dt_status dt_store_commit(dt_store_writer *w)
{
    if (w->is_in_scene || w->is_committed) {
        return DT_FAIL(DT_EINVAL, "a scene is still open, or the store is complete already");
    }
    if (w->count.rows == 0) {
        return DT_FAIL(DT_EDATA, "%s holds no data: not one vehicle in one frame", w->meta.source);
    }
    DT_TRY(dt_npy_append(w->array[A_scene_frame], &w->count.frames, 1));
    DT_TRY(dt_npy_append(w->array[A_frame_row], &w->count.rows, 1));
    DT_TRY(dt_npy_append(w->array[A_edge_ptr], &w->count.edges, 1));
    DT_TRY(w->count.maps > 0 ? dt_roads_write_end(&w->roads) : DT_OK);
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_writer *array = w->array[a];
        w->array[a] = NULL;
        if (array != NULL) {
            DT_TRY(dt_npy_close(array));
        }
    }
    if (w->n_repeats > REPEATS_TOLD) {
        dt_log(DT_LOG_WARN, "%" PRId64 " scenes are others again", w->n_repeats);
    }
    DT_TRY(finish_tracks(w));
    DT_TRY(pack_arrays(w));
    DT_TRY(write_description(w));
    DT_TRY(dt_fs_sync_dir(w->partial));
    DT_TRY(dt_fs_rename(w->partial, w->path));
    w->is_committed = true;
    return DT_OK;
}

void dt_store_writer_counts(const dt_store_writer *w, dt_store_counts *out_p)
{
    *out_p = w->count;
}

void dt_store_destroy(dt_store_writer *w)
{
    if (w == NULL) {
        return;
    }
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_abandon(w->array[a]);
    }
    if (!w->is_committed && w->partial != NULL) {
        dt_error kept;
        dt_error_take(&kept, DT_OK); /* the reason for giving up, not what cleaning up may say */
        (void)!dt_fs_remove_tree(w->partial);
        (void)!dt_error_put(&kept);
    }
    for (int32_t i = 0; i < w->n_sites; i++) {
        dt_free(w->site[i]);
    }
    dt_str_fini(&w->scenes);
    dt_roads_writer_fini(&w->roads);
    dt_features_work_fini(&w->work);
    dt_repeats_fini(&w->repeats);
    dt_live_fini(&w->live);
    dt_free(w->vehicle);
    dt_free(w->node);
    dt_free(w->edge);
    dt_free(w->ittc);
    dt_free(w->recorded);
    dt_free(w->rowptr);
    dt_free(w->col);
    dt_free((char *)(uintptr_t)w->meta.source);
    dt_free((char *)(uintptr_t)w->meta.options);
    dt_free(w->path);
    dt_free(w->partial);
    dt_free(w);
}

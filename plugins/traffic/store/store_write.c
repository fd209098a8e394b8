/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a store: frames and scenes as they come, and the steps of its end. See store.h, store_writer.h.
 */
#include <config.h>

#include "traffic/store/store_tracks.h"
#include "traffic/store/store_writer.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 512, STOP_DISTANCE = 7 };

typedef struct array_spec {
    const char *name;
    uint32_t dtype;
    int64_t width;
} array_spec;

static const array_spec specs[N_ARRAYS] = {
#define DT_ARRAY(name, dtype, width, count, plus) {#name, dtype, width},
#include "traffic/store/arrays.def"
#undef DT_ARRAY
};

static bool is_road(int a)
{
    return a >= A_scene_map && a <= A_lane_right;
}

static dt_status open_array(dt_store_writer *w, int a)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s.npy", dt_staging_path(w->aside), specs[a].name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_npy_create(dt_str_text(&path), specs[a].dtype, specs[a].width, &w->array[a]);
    }
    if (st == DT_OK && w->meta.role == DT_STORE_PART) {
        dt_npy_unflushed(w->array[a]);
    }
    dt_str_fini(&path);
    return st;
}

/* Is the array made at the end, by store_tracks.c? Of a store that is joined it was, part by part. */
static bool is_later(const dt_store_writer *w, int a)
{
    if (a == A_accel_centred && w->meta.role == DT_STORE_JOINED) {
        return w->meta.smooth_s == 0;
    }
    return a == A_lane_next ||
           (w->meta.role != DT_STORE_JOINED && (a == A_track_ptr || a == A_track_row || a == A_accel_centred));
}

/* Those of roads, or the others, that are appended to while frames come. */
static dt_status open_arrays(dt_store_writer *w, bool of_roads)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        const bool is_absent = (a == A_stop_distance && w->meta.packing.features == DT_KEPT_F32) ||
                               ((a == A_core || a == A_frame_centre) && !(w->meta.halo_m > 0));
        DT_TRY(is_later(w, a) || is_absent || is_road(a) != of_roads ? DT_OK : open_array(w, a));
    }
    return DT_OK;
}

/* No folder on the way to path is a store, and neither is the one that a relative path begins in. */
static dt_status check_outside(const char *path)
{
    dt_str mark = {0};
    dt_status st = DT_OK;
    for (size_t n = strlen(path); n > 0 && st == DT_OK;) {
        const char *slash = memrchr(path, '/', n);
        n = slash == NULL ? 0 : (size_t)(slash - path);
        dt_str_clear(&mark);
        dt_str_addf(&mark, "%.*s%sstore.json", (int)n, path, slash != NULL ? "/" : "");
        st = dt_str_status(&mark);
        if (st == DT_OK && dt_fs_is_file(dt_str_text(&mark))) {
            st = DT_FAIL(DT_EINVAL, "%s would be inside another store, the one of %s: choose a place outside of it",
                         path, dt_str_text(&mark));
        }
    }
    dt_str_fini(&mark);
    return st;
}

dt_status dt_store_check_out(const char *path)
{
    DT_TRY(dt_staging_check(path, DT_STAGING_FOLDER));
    return check_outside(path);
}

static dt_status check_meta(const dt_store_meta *meta)
{
    if (!(meta->frame_rate_hz >= 0.1 && meta->frame_rate_hz <= 1000)) {
        return DT_FAIL(DT_EINVAL, "frame rate %g Hz is outside [0.1, 1000]", meta->frame_rate_hz);
    }
    if (!(meta->smooth_s >= 0 && meta->smooth_s <= DT_SMOOTH_MAX_S)) {
        return DT_FAIL(DT_EINVAL, "a smoothing width of %g s is outside [0, %g]", meta->smooth_s, DT_SMOOTH_MAX_S);
    }
    return dt_packing_check(&meta->packing);
}

static dt_status writer_begin(dt_store_writer *w, const dt_store_meta *meta, dt_staging *aside)
{
    w->aside = aside;
    w->meta = *meta;
    w->meta.radius_m = meta->radius_m > 0 ? meta->radius_m : DT_RADIUS_M;
    w->meta.k_max = meta->k_max > 0 ? meta->k_max : DT_NEIGHBOURS;
    w->meta.source = dt_strdup(meta->source == NULL ? "" : meta->source);
    w->meta.options = dt_strdup(meta->options == NULL ? "" : meta->options);
    dt_tracker_init(&w->live, meta->frame_rate_hz);
    w->scenes_out = (dt_json_out){.s = &w->scenes};
    dt_json_arr(&w->scenes_out, NULL);
    DT_TRY(check_meta(meta));
    if (w->meta.source == NULL || w->meta.options == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to write %s", dt_staging_out(aside));
    }
    DT_TRY(open_arrays(w, false));
    DT_TRY(w->meta.role == DT_STORE_PART ? dt_store_part_open(w) : DT_OK);
    return w->meta.role == DT_STORE_JOINED
               ? DT_OK
               : dt_batches_create(w->meta.radius_m, w->meta.k_max, w->meta.jobs, &w->ahead);
}

dt_status dt_store_create_in(dt_staging *aside, const dt_store_meta *meta, dt_store_writer **out_p)
{
    dt_store_writer *w = dt_alloc(sizeof(*w));
    if (w == NULL) {
        const dt_status none = DT_FAIL(DT_ENOMEM, "no memory to write %s", dt_staging_out(aside));
        dt_staging_close(aside);
        return none;
    }
    const dt_status st = writer_begin(w, meta, aside);
    if (st != DT_OK) {
        dt_store_destroy(w);
        return st;
    }
    *out_p = w;
    return DT_OK;
}

dt_status dt_store_create(const char *path, const dt_store_meta *meta, dt_store_writer **out_p)
{
    dt_staging *aside = NULL;
    DT_TRY(check_meta(meta));
    DT_TRY(dt_store_check_out(path));
    DT_TRY(dt_staging_open(path, DT_STAGING_FOLDER, &aside));
    return dt_store_create_in(aside, meta, out_p);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* The number of the vehicle's running track, or of a new one. Fills a missing acceleration; *fed_p is the one that
 * models are shown. */
static dt_status assign_track(dt_store_writer *w, int64_t frame, dt_vehicle *v, int32_t *track_p, double *fed_p)
{
    double fed = 0.0;
    dt_tracked_vehicle *l = NULL;
    bool is_new = false;
    DT_TRY(dt_tracker_get(&w->live, v->id, frame, &l, &is_new));
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
    *fed_p = w->meta.smooth_s > 0 ? fed : isnan(v->accel) ? 0.0 : v->accel;
    return DT_OK;
}

void dt_store_count_unknown(dt_store_counts *c, const double pose[3], const float motion[4])
{
    c->unknown[DT_UNKNOWN_HEADING] += isnan(pose[2]);
    c->unknown[DT_UNKNOWN_ACCEL] += isnan(motion[1]);
    c->unknown[DT_UNKNOWN_LENGTH] += isnan(motion[2]);
    c->unknown[DT_UNKNOWN_WIDTH] += isnan(motion[3]);
}

static void note_begin(dt_store_writer *w)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        w->begin.rows[a] = w->array[a] != NULL ? dt_npy_rows(w->array[a]) : 0;
    }
    w->begin.count = w->count;
}

/* As if the scene had never begun; maps stay. */
static dt_status forget_scene(dt_store_writer *w)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        DT_TRY(w->array[a] != NULL && !is_road(a) ? dt_npy_truncate(w->array[a], w->begin.rows[a]) : DT_OK);
    }
    w->begin.count.maps = w->count.maps;
    w->begin.count.lanes = w->count.lanes;
    w->begin.count.lane_points = w->count.lane_points;
    w->begin.count.lane_links = w->count.lane_links;
    w->count = w->begin.count;
    w->is_in_scene = false;
    return DT_OK;
}

dt_status dt_store_scene_begin(dt_store_writer *w)
{
    if (w->is_in_scene) {
        return DT_FAIL(DT_EINVAL, "a scene begins before the last one ended");
    }
    w->is_in_scene = true;
    w->next_frame = w->given_frame = 0;
    w->scene_rows = 0;
    w->scene_map = -1;
    w->scene_hash = 0;
    w->scene_extent = (dt_bounds){.has_any = false};
    memset(&w->scene_stat, 0, sizeof(w->scene_stat));
    dt_tracker_clear(&w->live);
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

/* Vehicle f of a batch, i of a frame whose edges begin at row_edges. */
static dt_status append_vehicle_row(dt_store_writer *w, const dt_batch *b, uint32_t f, int32_t row_edges)
{
    const dt_vehicle *v = &b->vehicle[f];
    const int32_t track = (int32_t)v->reserved;
    double pose[3] = {v->x, v->y, v->heading};
    const dt_recorded *given = &b->recorded[f];
    float motion[4] = {(float)v->speed, (float)given->accel, (float)given->length, (float)v->width};
    const double braking = w->meta.smooth_s > 0 ? 0.0 : v->accel; /* known at the end of the track, see label_braking */
    uint8_t risk = dt_risk_is_now(braking, b->ittc[f]) ? DT_RISK_NOW
                   : isnan(b->ittc[f])                 ? DT_RISK_UNKNOWN
                                                       : DT_RISK_NEGATIVE;
    int64_t edges = w->count.edges + row_edges;
    w->scene_hash = dt_repeats_hash(w->scene_hash, w->next_frame - 1, pose, motion[0]);
    dt_bounds_add(&w->scene_extent, pose);
    dt_store_count_unknown(&w->count, pose, motion);
    DT_TRY(dt_npy_append(w->array[A_pose], pose, 1));
    DT_TRY(dt_npy_append(w->array[A_motion], motion, 1));
    DT_TRY(dt_npy_append(w->array[A_row_track], &track, 1));
    DT_TRY(dt_npy_append(w->array[A_edge_ptr], &edges, 1));
    return dt_npy_append(w->array[A_risk], &risk, 1);
}

/* Frame k of a batch. */
static dt_status write_frame(dt_store_writer *w, const dt_batch *b, uint32_t k)
{
    const dt_batch_frame *f = &b->frame[k];
    const size_t first = f->first, first_edge = first * w->meta.k_max;
    const float *node = b->node + first * DT_NODE_FEATURES, *edge = b->edge + first_edge * DT_EDGE_FEATURES;
    const int32_t *rowptr = b->rowptr + first + k, n_edges = f->n > 0 ? rowptr[f->n] : 0;
    DT_TRY(frame_open(w, f->number, f->time_s));
    for (uint32_t i = 0; i < f->n; i++) {
        DT_TRY(append_vehicle_row(w, b, f->first + i, rowptr[i]));
    }
    dt_feature_stats_join(&w->scene_stat, &f->stats);
    for (uint32_t i = 0; i < f->n && w->array[A_stop_distance] != NULL; i++) {
        DT_TRY(dt_npy_append(w->array[A_stop_distance], node + (size_t)i * DT_NODE_FEATURES + STOP_DISTANCE, 1));
    }
    if (f->n > 0) {
        DT_TRY(dt_npy_append(w->array[A_node], node, f->n));
        DT_TRY(dt_npy_append(w->array[A_edge_src], b->col + first_edge, n_edges));
        DT_TRY(dt_npy_append(w->array[A_edge], edge, n_edges));
    }
    w->count.rows += f->n;
    w->count.edges += n_edges;
    w->scene_rows += f->n;
    return DT_OK;
}

/* The batches that are made: all there are, or the oldest and what happens to be ready after it. */
static dt_status write_finished_batches(dt_store_writer *w, bool is_all)
{
    dt_batch *b = NULL;
    bool waits = true;
    for (;;) {
        DT_TRY(dt_batches_take(w->ahead, waits, &b));
        if (b == NULL) {
            return DT_OK;
        }
        for (uint32_t k = 0; k < b->n_frames; k++) {
            DT_TRY(write_frame(w, b, k));
        }
        dt_batches_release(w->ahead);
        waits = is_all;
    }
}

/* What was given of the scene is written. */
static dt_status write_remaining(dt_store_writer *w)
{
    if (w->ahead == NULL) {
        return DT_OK;
    }
    dt_batches_close(w->ahead);
    return write_finished_batches(w, true);
}

dt_status dt_store_frame(dt_store_writer *w, int64_t frame, double time_s, const dt_vehicle *v, uint32_t n)
{
    if (!w->is_in_scene || frame < w->given_frame || w->ahead == NULL) {
        return DT_FAIL(DT_EINVAL, "frame %" PRId64 " comes after frame %" PRId64 " or outside a scene", frame,
                       w->given_frame - 1);
    }
    dt_batch *b = NULL;
    DT_TRY(dt_batches_reserve(w->ahead, n, &b));
    while (b == NULL) {
        DT_TRY(write_finished_batches(w, false));
        DT_TRY(dt_batches_reserve(w->ahead, n, &b));
    }
    dt_vehicle *to = b->vehicle + b->n;
    if (n > 0) {
        memcpy(to, v, n * sizeof(*v));
    }
    for (uint32_t i = 0; i < n; i++) { /* the tracks first: they fill accelerations that the features need */
        double fed = 0.0;
        int32_t track = 0;
        DT_TRY(assign_track(w, frame, &to[i], &track, &fed));
        to[i].reserved = (uint32_t)track;
        b->recorded[b->n + i] = (dt_recorded){.accel = to[i].accel, .length = to[i].length};
        to[i].accel = fed;
        to[i].length = isnan(to[i].length) ? DT_LENGTH_DEFAULT_M : to[i].length;
    }
    const dt_status st = n > 0 ? dt_features_check(to, n, w->meta.radius_m, w->meta.k_max) : DT_OK;
    if (st != DT_OK) {
        return DT_CONTEXT(st == DT_ENOMEM ? st : DT_EDATA, "frame %" PRId64, frame);
    }
    b->frame[b->n_frames++] = (dt_batch_frame){.number = frame, .time_s = time_s, .first = b->n, .n = n};
    b->n += n;
    w->given_frame = frame + 1;
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
    if (w->n_sites == DT_STORE_SITES_MAX) {
        return DT_FAIL(DT_EDATA, "more than %d sites", DT_STORE_SITES_MAX);
    }
    w->site[w->n_sites] = dt_strdup(site);
    if (w->site[w->n_sites] == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for site %s", site);
    }
    *out_p = w->n_sites++;
    return DT_OK;
}

enum { MAX_REPEATS_LISTED = 5 };

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
        return DT_FAIL(DT_EDATA, "scene %s repeats scene %s row for row (store.repeats=skip leaves it out)", name,
                       same);
    }
    if (w->n_repeats++ < MAX_REPEATS_LISTED) {
        dt_log(DT_LOG_WARN, "scene %s repeats scene %s row for row: %s", name, same,
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
    DT_TRY(write_remaining(w));
    if (dt_has_control(name) || dt_has_control(site)) { /* what opening refuses is never written */
        return DT_FAIL(DT_EDATA, "the name of scene \"%.200s\" or of its site \"%.200s\" has control characters", name,
                       site);
    }
    if (w->scene_rows == 0) {
        return DT_FAIL(DT_EDATA, "scene %s has no vehicles", name);
    }
    if (w->scene_map >= 0 && w->meta.map_near_m > 0) {
        DT_TRY(dt_roads_check_near(&w->roads, name, w->scene_map, &w->scene_extent, w->meta.map_near_m));
    }
    bool is_left_out = false;
    DT_TRY(w->meta.role == DT_STORE_PART ? dt_store_part_scene(w) : check_repeat(w, name, &is_left_out));
    if (is_left_out) {
        return DT_OK;
    }
    dt_feature_stats_join(&w->stat, &w->scene_stat);
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

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Edges of vehicles to themselves are zeros, which statistics leave out. */
static dt_status pack_arrays(dt_store_writer *w)
{
    dt_packed_range node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        node[d] = (dt_packed_range){w->stat.node[d].min, w->stat.node[d].max};
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        edge[d] = (dt_packed_range){fmin(0, w->stat.edge[d].min), fmax(0, w->stat.edge[d].max)};
    }
    return dt_packed_write(dt_staging_path(w->aside), &w->meta.packing, node, edge, &w->errors);
}

dt_status dt_store_commit(dt_store_writer *w)
{
    if (w->is_in_scene || w->is_committed) {
        return DT_FAIL(DT_EINVAL, "a scene is still open, or the store is complete already");
    }
    if (w->count.rows == 0) {
        return DT_FAIL(DT_EDATA, "%s contains no data: not one vehicle in one frame", w->meta.source);
    }
    DT_TRY(dt_npy_append(w->array[A_scene_frame], &w->count.frames, 1));
    DT_TRY(dt_npy_append(w->array[A_frame_row], &w->count.rows, 1));
    DT_TRY(dt_npy_append(w->array[A_edge_ptr], &w->count.edges, 1));
    DT_TRY(w->count.maps > 0 ? dt_roads_write_end(&w->roads) : DT_OK);
    DT_TRY(w->meta.role == DT_STORE_JOINED ? dt_npy_append(w->array[A_track_ptr], &w->count.rows, 1) : DT_OK);
    DT_TRY(w->meta.role == DT_STORE_PART ? dt_store_part_close(w) : DT_OK);
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_writer *array = w->array[a];
        w->array[a] = NULL;
        if (array != NULL) {
            DT_TRY(dt_npy_close(array));
        }
    }
    if (w->n_repeats > MAX_REPEATS_LISTED) {
        dt_log(DT_LOG_WARN, "%" PRId64 " scenes repeat others", w->n_repeats);
    }
    if (w->meta.role != DT_STORE_JOINED) {
        DT_TRY(dt_store_tracks_write(dt_staging_path(w->aside), w->meta.frame_rate_hz, w->meta.smooth_s,
                                     w->meta.role != DT_STORE_PART, &w->count));
    }
    DT_TRY(pack_arrays(w));
    DT_TRY(dt_store_json_write(w));
    DT_TRY(dt_fs_sync_dir(dt_staging_path(w->aside)));
    DT_TRY(dt_staging_commit(w->aside));
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
    dt_npy_abandon(w->part_hash);
    dt_npy_abandon(w->part_stat);
    dt_staging_close(w->aside);
    for (int32_t i = 0; i < w->n_sites; i++) {
        dt_free(w->site[i]);
    }
    dt_str_fini(&w->scenes);
    dt_roads_writer_fini(&w->roads);
    dt_batches_destroy(w->ahead);
    dt_repeats_fini(&w->repeats);
    dt_tracker_fini(&w->live);
    dt_free((char *)(uintptr_t)w->meta.source);
    dt_free((char *)(uintptr_t)w->meta.options);
    dt_free(w);
}

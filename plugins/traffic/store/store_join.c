/* SPDX-License-Identifier: Apache-2.0
 *
 * A store out of parts: scenes copied after those that are there, with every number that counts through the whole
 * store moved on. See store.h, store_writer.h.
 */
#include <config.h>

#include "traffic/store/store_writer.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
    STOP_DISTANCE = 7, /* node feature */
    PIECE = 1024,      /* numbers that are moved on at once */
    PIECE_BYTES = 1 << 20,
    FORGET_BYTES = 16 << 20
};

/* ---- joining ----------------------------------------------------------------------------------------------------- */

typedef struct part {
    dt_store *store;
    const dt_store_view *v;
    dt_npy hash, stat;
    int32_t *map; /* [n_maps] numbers in the joined store */
    size_t touched;
} part;

static dt_status map_extra(const char *folder, const char *name, uint32_t dtype, int64_t width, int64_t rows,
                           dt_npy *out)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s.npy", folder, name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_npy_map(dt_str_text(&path), dtype, width, out);
    }
    if (st == DT_OK && out->rows != rows) {
        st = DT_FAIL(DT_EDATA, "%s has %" PRId64 " rows, the part has %" PRId64 " scenes", dt_str_text(&path),
                     out->rows, rows);
    }
    dt_str_fini(&path);
    return st;
}

/* The maps of the part, in its order, before any of its scenes: as a reader of files gives them. */
static dt_status add_maps(dt_store_writer *w, part *p)
{
    const dt_store_view *v = p->v;
    p->map = dt_alloc_n((size_t)v->n_maps + 1, sizeof(*p->map));
    if (p->map == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " maps", v->n_maps);
    }
    for (int64_t i = 0; i < v->n_maps; i++) {
        dt_roads roads;
        DT_TRY(dt_roads_of_view(v, (int32_t)i, &roads));
        const dt_status st = dt_store_map(w, v->map[i], &roads, &p->map[i]);
        dt_roads_fini(&roads);
        DT_TRY(st);
    }
    return DT_OK;
}

/* So many more bytes of the part have been read: resident memory stays small however long a scene is. */
static void count_touched_bytes(part *p, size_t bytes)
{
    p->touched += bytes;
    if (p->touched >= FORGET_BYTES) {
        p->touched = 0;
        dt_store_release_pages(p->store);
    }
}

static dt_status append_rows(part *p, dt_npy_writer *to, const void *from, int64_t n, size_t row_bytes)
{
    const int64_t most = PIECE_BYTES / (int64_t)row_bytes;
    for (int64_t i = 0; i < n; i += most) {
        const int64_t m = n - i < most ? n - i : most;
        DT_TRY(dt_npy_append(to, (const char *)from + (size_t)i * row_bytes, m));
        count_touched_bytes(p, (size_t)m * row_bytes);
    }
    return DT_OK;
}

static dt_status add_moved_i64(part *p, dt_npy_writer *to, const int64_t *from, int64_t n, int64_t by)
{
    int64_t moved[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t m = n - i < PIECE ? n - i : PIECE;
        for (int64_t k = 0; k < m; k++) {
            moved[k] = from[i + k] + by;
        }
        DT_TRY(dt_npy_append(to, moved, m));
        count_touched_bytes(p, (size_t)m * sizeof(*from));
    }
    return DT_OK;
}

static dt_status add_moved_i32(part *p, dt_npy_writer *to, const int32_t *from, int64_t n, int64_t by)
{
    int32_t moved[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t m = n - i < PIECE ? n - i : PIECE;
        for (int64_t k = 0; k < m; k++) {
            moved[k] = (int32_t)(from[i + k] + by);
        }
        DT_TRY(dt_npy_append(to, moved, m));
        count_touched_bytes(p, (size_t)m * sizeof(*from));
    }
    return DT_OK;
}

static dt_status add_stop_distances(dt_store_writer *w, part *p, const float *node, int64_t n)
{
    for (int64_t i = 0; i < n && w->array[A_stop_distance] != NULL; i++) {
        DT_TRY(dt_npy_append(w->array[A_stop_distance], node + DT_NODE_FEATURES * i + STOP_DISTANCE, 1));
        count_touched_bytes(p, DT_NODE_FEATURES * sizeof(*node));
    }
    return DT_OK;
}

/* Where a scene is in the arrays of its part: [begin, end) of frames, rows, edges and tracks. */
typedef struct span {
    int64_t frame[2], row[2], edge[2], track[2];
} span;

static dt_status find_span(const part *p, int64_t scene, span *out)
{
    const dt_store_view *v = p->v;
    for (int k = 0; k < 2; k++) {
        out->frame[k] = v->scene_frame[scene + k];
        out->row[k] = v->frame_row[out->frame[k]];
        out->edge[k] = v->edge_ptr[out->row[k]];
        out->track[k] = out->row[k] < v->n_rows ? v->row_track[out->row[k]] : v->n_tracks;
    }
    /* tracks are numbered as they appear, so those of a scene follow each other */
    const bool is_whole = out->row[0] < out->row[1] && out->track[0] < out->track[1] &&
                          v->track_ptr[out->track[0]] == out->row[0] && v->track_ptr[out->track[1]] == out->row[1];
    return is_whole ? DT_OK
                    : DT_FAIL(DT_EDATA, "%s: the tracks of scene %" PRId64 " are not its own: no part of an import",
                              dt_store_path(p->store), scene);
}

static dt_status add_rows(dt_store_writer *w, part *p, const span *s)
{
    const dt_store_view *v = p->v;
    const int64_t r = s->row[0], n = s->row[1] - r, e = s->edge[0], n_edges = s->edge[1] - e;
    const float *node = v->node + DT_NODE_FEATURES * r;
    DT_TRY(append_rows(p, w->array[A_node], node, n, DT_NODE_FEATURES * sizeof(*node)));
    DT_TRY(append_rows(p, w->array[A_pose], v->pose + 3 * r, n, 3 * sizeof(*v->pose)));
    DT_TRY(append_rows(p, w->array[A_motion], v->motion + 4 * r, n, 4 * sizeof(*v->motion)));
    DT_TRY(append_rows(p, w->array[A_risk], v->risk + r, n, sizeof(*v->risk)));
    if (w->meta.smooth_s > 0) {
        DT_TRY(append_rows(p, w->array[A_accel_centred], v->accel_centred + r, n, sizeof(*v->accel_centred)));
    }
    DT_TRY(add_stop_distances(w, p, node, n));
    DT_TRY(add_moved_i32(p, w->array[A_row_track], v->row_track + r, n, w->count.tracks - s->track[0]));
    DT_TRY(add_moved_i64(p, w->array[A_edge_ptr], v->edge_ptr + r, n, w->count.edges - e));
    DT_TRY(append_rows(p, w->array[A_edge_src], v->edge_src + e, n_edges, sizeof(*v->edge_src)));
    return append_rows(p, w->array[A_edge], v->edge + DT_EDGE_FEATURES * e, n_edges,
                       DT_EDGE_FEATURES * sizeof(*v->edge));
}

static dt_status add_tracks(dt_store_writer *w, part *p, const span *s)
{
    const dt_store_view *v = p->v;
    const int64_t t = s->track[0], n = s->track[1] - t, by = w->count.rows - s->row[0];
    if (w->count.tracks > INT32_MAX - n) {
        return DT_FAIL(DT_EDATA, "more than %d tracks: split the recording into several stores", INT32_MAX);
    }
    DT_TRY(append_rows(p, w->array[A_track_id], dt_store_track_ids(p->store) + t, n, sizeof(int64_t)));
    DT_TRY(add_moved_i64(p, w->array[A_track_ptr], v->track_ptr + t, n, by));
    return add_moved_i64(p, w->array[A_track_row], v->track_row + s->row[0], s->row[1] - s->row[0], by);
}

static void count_span(dt_store_writer *w, const dt_store_view *v, const span *s)
{
    for (int64_t r = s->row[0]; r < s->row[1]; r++) {
        w->count.risk[v->risk[r]]++;
        dt_store_count_unknown(&w->count, v->pose + 3 * r, v->motion + 4 * r);
    }
    for (int64_t t = s->track[0]; t < s->track[1]; t++) {
        w->count.tracks_of_one_frame += v->track_ptr[t + 1] - v->track_ptr[t] == 1;
    }
    w->count.frames += s->frame[1] - s->frame[0];
    w->count.rows += s->row[1] - s->row[0];
    w->count.edges += s->edge[1] - s->edge[0];
    w->count.tracks += s->track[1] - s->track[0];
}

static dt_status add_scene(dt_store_writer *w, part *p, int64_t scene)
{
    const dt_store_view *v = p->v;
    span s;
    DT_TRY(find_span(p, scene, &s));
    DT_TRY(dt_store_scene_begin(w));
    DT_TRY(dt_store_scene_map(w, v->n_maps > 0 && v->scene_map[scene] >= 0 ? p->map[v->scene_map[scene]] : -1));
    const int64_t f = s.frame[0], n_frames = s.frame[1] - f;
    DT_TRY(add_moved_i64(p, w->array[A_frame_row], v->frame_row + f, n_frames, w->count.rows - s.row[0]));
    DT_TRY(append_rows(p, w->array[A_frame_time], v->frame_time + f, n_frames, sizeof(*v->frame_time)));
    DT_TRY(add_rows(w, p, &s));
    DT_TRY(add_tracks(w, p, &s));
    count_span(w, v, &s);
    w->next_frame = n_frames;
    w->scene_rows = s.row[1] - s.row[0];
    w->scene_hash = (uint64_t)((const int64_t *)p->hash.data)[scene];
    memcpy(&w->scene_stat, (const double *)p->stat.data + DT_FEATURE_STATS_WIDTH * scene, sizeof(w->scene_stat));
    return dt_store_scene_end(w, v->scene[scene], v->site[v->scene_site[scene]]);
}

static dt_status add_part(dt_store_writer *w, part *p)
{
    DT_TRY(add_maps(w, p));
    for (int64_t i = 0; i < p->v->n_scenes; i++) {
        DT_TRY(add_scene(w, p, i));
    }
    return DT_OK;
}

dt_status dt_store_append(dt_store_writer *w, const char *path)
{
    part p = {.store = NULL};
    DT_TRY(dt_store_open(path, &p.store));
    p.v = dt_store_view_of(p.store);
    dt_status st = map_extra(path, "scene_hash", DT_I64, 0, p.v->n_scenes, &p.hash);
    if (st == DT_OK) {
        st = map_extra(path, "scene_stat", DT_F64, DT_FEATURE_STATS_WIDTH, p.v->n_scenes, &p.stat);
    }
    if (st == DT_OK && (dt_store_packed(p.store)->how.features != DT_KEPT_F32 ||
                        dt_store_packed(p.store)->how.codec != DT_CODEC_NONE || p.v->core != NULL ||
                        (dt_store_smooth_s(p.store) > 0) != (w->meta.smooth_s > 0))) {
        st = DT_FAIL(DT_EDATA, "%s is stored differently from a part", path);
    }
    if (st == DT_OK) {
        st = add_part(w, &p);
    }
    dt_npy_unmap(&p.hash);
    dt_npy_unmap(&p.stat);
    dt_free(p.map);
    dt_store_close(p.store);
    return st;
}

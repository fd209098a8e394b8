/* SPDX-License-Identifier: Apache-2.0
 *
 * A scene of a store of regions: some rows of a scene of another store, copied as they are, what was derived included.
 * So a feature, a label and an average do not reveal that the scene was cut. See store.h, store_writer.h.
 */
#include <config.h>

#include "traffic/store/store_writer.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { STOP_DISTANCE = 7 /* node feature */ };

typedef struct cut {
    dt_store_writer *w;
    const dt_store *s;
    const dt_store_view *v;
    const uint8_t *role; /* of the scene's rows */
    int64_t begin, end;  /* its rows */
    int64_t n_kept, rows_before, tracks_before;
    /* of a frame */
    float *node, *edge;
    int32_t *source, *place; /* [edges of the frame]; [rows of the frame] where they are among those that are kept */
    /* of the scene */
    int32_t first_track, n_tracks; /* there */
    int32_t *track;                /* [n_tracks] its number among the new ones, -1: not seen yet */
    int32_t *row_track;            /* [n_kept] number among the new ones */
    int64_t *track_end, *list;     /* [n_tracks + 1], [n_kept] rows of each new track */
} cut;

static void cut_fini(cut *c)
{
    dt_free(c->node);
    dt_free(c->edge);
    dt_free(c->source);
    dt_free(c->place);
    dt_free(c->track);
    dt_free(c->row_track);
    dt_free(c->track_end);
    dt_free(c->list);
}

static dt_status cut_reserve(cut *c, int64_t scene)
{
    const dt_store_view *v = c->v;
    int64_t rows = 1, edges = 1;
    for (int64_t f = v->scene_frame[scene]; f < v->scene_frame[scene + 1]; f++) {
        const int64_t n = v->frame_row[f + 1] - v->frame_row[f];
        const int64_t n_edges = v->edge_ptr[v->frame_row[f + 1]] - v->edge_ptr[v->frame_row[f]];
        rows = n > rows ? n : rows;
        edges = n_edges > edges ? n_edges : edges;
    }
    int32_t first = INT32_MAX, last = -1;
    for (int64_t r = c->begin; r < c->end; r++) {
        first = v->row_track[r] < first ? v->row_track[r] : first;
        last = v->row_track[r] > last ? v->row_track[r] : last;
        c->n_kept += c->role[r - c->begin] != DT_CUT_OUT;
    }
    c->first_track = first;
    c->n_tracks = last - first + 1;
    c->node = dt_alloc_n((size_t)rows, DT_NODE_FEATURES * sizeof(*c->node));
    c->edge = dt_alloc_n((size_t)edges, DT_EDGE_FEATURES * sizeof(*c->edge));
    c->source = dt_alloc_n((size_t)edges, sizeof(*c->source));
    c->place = dt_alloc_n((size_t)rows, sizeof(*c->place));
    c->track = dt_alloc_n((size_t)c->n_tracks, sizeof(*c->track));
    c->row_track = dt_alloc_n((size_t)c->n_kept, sizeof(*c->row_track));
    c->track_end = dt_alloc_n((size_t)c->n_tracks + 1, sizeof(*c->track_end));
    c->list = dt_alloc_n((size_t)c->n_kept, sizeof(*c->list));
    if (c->node == NULL || c->edge == NULL || c->source == NULL || c->place == NULL || c->track == NULL ||
        c->row_track == NULL || c->track_end == NULL || c->list == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " rows of a region", c->n_kept);
    }
    for (int32_t t = 0; t < c->n_tracks; t++) {
        c->track[t] = -1;
    }
    return DT_OK;
}

static dt_status number_track(cut *c, int64_t r, int32_t *out_p)
{
    dt_store_writer *w = c->w;
    int32_t *number = &c->track[c->v->row_track[r] - c->first_track];
    if (*number < 0) {
        if (w->count.tracks == INT32_MAX) {
            return DT_FAIL(DT_EDATA, "more than %d tracks: larger regions have fewer", INT32_MAX);
        }
        *number = (int32_t)(w->count.tracks - c->tracks_before);
        w->count.tracks++;
        DT_TRY(dt_npy_append(w->array[A_track_id], dt_store_track_ids(c->s) + c->v->row_track[r], 1));
    }
    c->track_end[*number + 1]++;
    *out_p = *number;
    return DT_OK;
}

/* first: of the frame; from, n: its edges among those that are read. */
static dt_status add_edges(cut *c, int64_t first, int64_t r, int64_t from, int64_t n)
{
    dt_store_writer *w = c->w;
    for (int64_t e = from; e < from + n; e++) {
        const int32_t there = c->source[e], here = c->place[there];
        const float *edge = c->edge + DT_EDGE_FEATURES * e;
        if (here < 0) {
            if (c->role[r - c->begin] == DT_CUT_CORE) {
                return DT_FAIL(DT_EDATA,
                               "%s/edge_src.npy: row %" PRId64 " has an edge from row %" PRId64
                               ", which is beyond radius_m %g",
                               dt_store_path(c->s), r, first + there, dt_store_radius_m(c->s));
            }
            continue;
        }
        for (int d = 0; d < DT_EDGE_FEATURES && first + there != r; d++) {
            dt_column_stat_add(&w->scene_stat.edge[d], edge[d]);
        }
        DT_TRY(dt_npy_append(w->array[A_edge_src], &here, 1));
        DT_TRY(dt_npy_append(w->array[A_edge], edge, 1));
        w->count.edges++;
    }
    return DT_OK;
}

/* i: its place among those of the scene that are kept. */
static dt_status add_row(cut *c, int64_t r, const float *node, int64_t i)
{
    dt_store_writer *w = c->w;
    const dt_store_view *v = c->v;
    const float *exact = dt_store_stop_distance(c->s), *stop = exact != NULL ? exact + r : node + STOP_DISTANCE;
    const uint8_t is_core = c->role[r - c->begin] == DT_CUT_CORE;
    int32_t local = 0;
    DT_TRY(number_track(c, r, &local));
    const int32_t track = (int32_t)(c->tracks_before + local);
    c->row_track[i] = local;
    w->scene_hash = dt_repeats_hash(w->scene_hash, w->next_frame, v->pose + 3 * r, v->motion[4 * r]);
    w->scene_hash = dt_repeats_hash_core(w->scene_hash, is_core);
    w->count.risk[v->risk[r]]++;
    dt_store_count_unknown(&w->count, v->pose + 3 * r, v->motion + 4 * r);
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        dt_column_stat_add(&w->scene_stat.node[d], node[d]);
    }
    DT_TRY(dt_npy_append(w->array[A_node], node, 1));
    DT_TRY(dt_npy_append(w->array[A_pose], v->pose + 3 * r, 1));
    DT_TRY(dt_npy_append(w->array[A_motion], v->motion + 4 * r, 1));
    DT_TRY(dt_npy_append(w->array[A_row_track], &track, 1));
    DT_TRY(dt_npy_append(w->array[A_risk], v->risk + r, 1));
    DT_TRY(dt_npy_append(w->array[A_core], &is_core, 1));
    DT_TRY(w->array[A_accel_centred] != NULL ? dt_npy_append(w->array[A_accel_centred], v->accel_centred + r, 1)
                                             : DT_OK);
    DT_TRY(w->array[A_stop_distance] != NULL ? dt_npy_append(w->array[A_stop_distance], stop, 1) : DT_OK);
    return dt_npy_append(w->array[A_edge_ptr], &w->count.edges, 1);
}

/* As data_trajectory sums it up of a frame that is whole: the same bits. */
static void compute_centre(const dt_store_view *v, int64_t from, int64_t to, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t r = from; r < to; r++) {
        out[0] += v->pose[3 * r] / (double)(to - from);
        out[1] += v->pose[3 * r + 1] / (double)(to - from);
    }
}

static dt_status add_frame(cut *c, int64_t f)
{
    dt_store_writer *w = c->w;
    const dt_store_view *v = c->v;
    const int64_t from = v->frame_row[f], n = v->frame_row[f + 1] - from;
    const int64_t first_edge = v->edge_ptr[from], n_edges = v->edge_ptr[from + n] - first_edge;
    double centre[2];
    int32_t kept = 0;
    compute_centre(v, from, from + n, centre);
    DT_TRY(dt_npy_append(w->array[A_frame_row], &w->count.rows, 1));
    DT_TRY(dt_npy_append(w->array[A_frame_time], v->frame_time + f, 1));
    DT_TRY(dt_npy_append(w->array[A_frame_centre], centre, 1));
    for (int64_t i = 0; i < n; i++) {
        c->place[i] = c->role[from + i - c->begin] != DT_CUT_OUT ? kept++ : -1;
    }
    if (kept > 0) {
        DT_TRY(dt_store_read(c->s, DT_STORE_NODE, from, n, c->node));
        DT_TRY(dt_store_read(c->s, DT_STORE_EDGE, first_edge, n_edges, c->edge));
        DT_TRY(dt_store_read(c->s, DT_STORE_EDGE_SRC, first_edge, n_edges, c->source));
    }
    for (int64_t i = 0; i < n && kept > 0; i++) {
        const int64_t r = from + i;
        if (c->place[i] >= 0) {
            DT_TRY(add_row(c, r, c->node + DT_NODE_FEATURES * i, w->count.rows - c->rows_before));
            DT_TRY(add_edges(c, from, r, v->edge_ptr[r] - first_edge, v->edge_ptr[r + 1] - v->edge_ptr[r]));
            w->count.rows++;
        }
    }
    w->count.frames++;
    w->next_frame++;
    return DT_OK;
}

/* Counting sort of the rows by track. */
static dt_status add_tracks(cut *c)
{
    dt_store_writer *w = c->w;
    const int64_t n = w->count.tracks - c->tracks_before;
    for (int64_t t = 0; t < n; t++) {
        const int64_t at = c->rows_before + c->track_end[t];
        w->count.tracks_of_one_frame += c->track_end[t + 1] == 1;
        c->track_end[t + 1] += c->track_end[t];
        DT_TRY(dt_npy_append(w->array[A_track_ptr], &at, 1));
    }
    for (int64_t i = 0; i < c->n_kept; i++) { /* track_end: where the next row of each goes */
        c->list[c->track_end[c->row_track[i]]++] = c->rows_before + i;
    }
    return dt_npy_append(w->array[A_track_row], c->list, c->n_kept);
}

static dt_status add_scene(cut *c, int64_t scene, int32_t map, const char *name)
{
    dt_store_writer *w = c->w;
    const dt_store_view *v = c->v;
    DT_TRY(cut_reserve(c, scene));
    DT_TRY(dt_store_scene_begin(w));
    DT_TRY(dt_store_scene_map(w, map));
    for (int64_t f = v->scene_frame[scene]; f < v->scene_frame[scene + 1]; f++) {
        DT_TRY(add_frame(c, f));
    }
    DT_TRY(add_tracks(c));
    w->scene_rows = c->n_kept;
    return dt_store_scene_end(w, name, v->site[v->scene_site[scene]]);
}

dt_status dt_store_add_cut(dt_store_writer *w, const dt_store *s, int64_t scene, const uint8_t *role, int32_t map,
                           const char *name)
{
    const dt_store_view *v = dt_store_view_of(s);
    if (w->meta.role != DT_STORE_JOINED || !(w->meta.halo_m > 0)) {
        return DT_FAIL(DT_EINVAL, "a region is added to a store without regions");
    }
    cut c = {.w = w,
             .s = s,
             .v = v,
             .role = role,
             .begin = v->frame_row[v->scene_frame[scene]],
             .end = v->frame_row[v->scene_frame[scene + 1]],
             .rows_before = w->count.rows,
             .tracks_before = w->count.tracks};
    const dt_status st = add_scene(&c, scene, map, name);
    cut_fini(&c);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in an open store, for readers. See store.h.
 */
#include <config.h>

#include "traffic/store/store_opened.h"
#include "traffic/store/store_roads.h"
#include "base/err.h"
#include "base/hash.h"

#include <inttypes.h>
#include <string.h>

enum { FORGET_BYTES = 16 << 20 };

const dt_store_view *dt_store_view_of(const dt_store *s)
{
    return &s->view;
}

const int64_t *dt_store_track_ids(const dt_store *s)
{
    return s->array[A_track_id].data;
}

const dt_store *dt_store_of_view(const dt_store_view *v)
{
    return (const dt_store *)(const void *)((const char *)v - offsetof(dt_store, view));
}

int64_t dt_store_version(const dt_store *s)
{
    return s->version;
}

uint64_t dt_store_bytes(const dt_store *s)
{
    uint64_t bytes = 0;
    for (int a = 0; a < N_ARRAYS; a++) {
        bytes += s->array[a].map_bytes;
    }
    for (int a = 0; a < DT_PACKED_ARRAYS; a++) {
        bytes += s->packed.array[a].map_bytes;
    }
    return bytes;
}

const dt_packed *dt_store_packed(const dt_store *s)
{
    return &s->packed;
}

const float *dt_store_stop_distance(const dt_store *s)
{
    return s->array[A_stop_distance].data;
}

dt_status dt_store_read(const dt_store *s, uint32_t array, int64_t from, int64_t n, void *out)
{
    const struct {
        const void *plain;
        int64_t rows;
        size_t row_bytes;
    } of[DT_PACKED_ARRAYS] = {[DT_STORE_NODE] = {s->view.node, s->view.n_rows, DT_NODE_FEATURES * sizeof(float)},
                              [DT_STORE_EDGE] = {s->view.edge, s->view.n_edges, DT_EDGE_FEATURES * sizeof(float)},
                              [DT_STORE_EDGE_SRC] = {s->view.edge_src, s->view.n_edges, sizeof(int32_t)}};
    if (array >= DT_PACKED_ARRAYS || from < 0 || n < 0 || from > of[array].rows || n > of[array].rows - from) {
        return DT_FAIL(DT_EINVAL, "%s: %" PRId64 " rows from %" PRId64 " of array %" PRIu32 " do not exist", s->path, n,
                       from, array);
    }
    if (of[array].plain == NULL) {
        return dt_packed_read(&s->packed, array, from, n, out);
    }
    memcpy(out, (const unsigned char *)of[array].plain + (size_t)from * of[array].row_bytes,
           (size_t)n * of[array].row_bytes);
    return DT_OK;
}

uint64_t dt_store_digest(const dt_store *s)
{
    const dt_store_view *v = &s->view;
    const int64_t *track = dt_store_track_ids(s);
    uint64_t hash = dt_hash64(&v->frame_rate_hz, sizeof(v->frame_rate_hz), 0);
    hash = dt_hash64(v->scene_frame, (size_t)(v->n_scenes + 1) * sizeof(*v->scene_frame), hash);
    hash = dt_hash64(v->frame_row, (size_t)(v->n_frames + 1) * sizeof(*v->frame_row), hash);
    hash = dt_hash64(track, (size_t)v->n_tracks * sizeof(*track), hash);
    for (int64_t i = 0; i < v->n_scenes; i++) {
        const int64_t row = v->frame_row[v->scene_frame[i]], end = v->frame_row[v->scene_frame[i] + 1];
        hash = dt_hash64(s->scene[i], strlen(s->scene[i]), hash);
        hash = dt_hash64(v->pose + 3 * row, (size_t)(end - row) * 3 * sizeof(*v->pose), hash);
    }
    if (v->core != NULL) {
        hash = dt_hash64(v->core, (size_t)v->n_rows, hash);
    }
    return dt_roads_digest(v, hash);
}

const char *dt_store_path(const dt_store *s)
{
    return s->path;
}

const char *dt_store_source(const dt_store *s)
{
    return s->source;
}

double dt_store_radius_m(const dt_store *s)
{
    return s->radius_m;
}

uint32_t dt_store_neighbours(const dt_store *s)
{
    return (uint32_t)s->neighbours;
}

double dt_store_smooth_s(const dt_store *s)
{
    return s->smooth_s;
}

int64_t dt_store_unknown(const dt_store *s, int what)
{
    return s->count.unknown[what];
}

const dt_feature_stat *dt_store_node_stat(const dt_store *s)
{
    return s->node_stat;
}

const dt_feature_stat *dt_store_edge_stat(const dt_store *s)
{
    return s->edge_stat;
}

void dt_store_release_pages(const dt_store *s)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_release_pages(&s->array[a]);
    }
    for (int a = 0; a < DT_PACKED_ARRAYS; a++) {
        dt_blocks_release_pages(&s->packed.array[a]);
    }
}

void dt_store_advise_random(const dt_store *s)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_advise_random(&s->array[a]);
    }
    for (int a = 0; a < DT_PACKED_ARRAYS; a++) {
        dt_blocks_advise_random(&s->packed.array[a]);
    }
}

void dt_store_count_read_bytes(dt_store_look *l, size_t bytes)
{
    l->touched += bytes;
    if (l->touched < FORGET_BYTES) {
        return;
    }
    l->touched = 0;
    dt_store_release_pages(l->s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a store: its arrays mapped, by its description. See store.h, store_opened.h.
 */
#include <config.h>

#include "traffic/store/store_opened.h"
#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>

/* Is there a file of this array, as .npy? Not where there is nothing to put in it, or it is in blocks. */
static bool is_plain(const dt_store *s, int a)
{
    switch (a) {
    case A_accel_centred:
        return s->smooth_s > 0;
    case A_stop_distance:
        return s->packed.how.features != DT_KEPT_F32;
    case A_core:
    case A_frame_centre:
        return s->view.halo_m > 0;
    case A_node:
        return !dt_packing_is_in_blocks(&s->packed.how, DT_STORE_NODE);
    case A_edge:
        return !dt_packing_is_in_blocks(&s->packed.how, DT_STORE_EDGE);
    case A_edge_src:
        return !dt_packing_is_in_blocks(&s->packed.how, DT_STORE_EDGE_SRC);
    case A_lane_next:
        return s->count.lane_links > 0;
    default:
        return a < A_scene_map || a > A_lane_right || s->count.maps > 0;
    }
}

static dt_status map_arrays(dt_store *s)
{
    const struct {
        const char *name;
        uint32_t dtype;
        int64_t width, rows;
    } spec[N_ARRAYS] = {
#define DT_ARRAY(name, dtype, width, n, plus) {#name, dtype, width, s->count.n + (plus)},
#include "traffic/store/arrays.def"
#undef DT_ARRAY
    };
    dt_str path = {0};
    dt_status st = DT_OK;
    for (int a = 0; a < N_ARRAYS && st == DT_OK; a++) {
        if (!is_plain(s, a) && a != A_core) {
            continue;
        }
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/%s.npy", s->path, spec[a].name);
        st = dt_str_status(&path);
        if (st == DT_OK && !is_plain(s, a)) { /* vehicles of halos would be used twice */
            st = dt_fs_is_file(dt_str_text(&path))
                     ? DT_FAIL(DT_EDATA, "%s is there, and store.json names no regions", dt_str_text(&path))
                     : DT_OK;
            continue;
        }
        if (st == DT_OK) {
            st = dt_npy_map(dt_str_text(&path), spec[a].dtype, spec[a].width, &s->array[a]);
        }
        if (st == DT_ENOTFOUND) {
            st = DT_FAIL(DT_EDATA, "%s/%s.npy is missing from the store", s->path, spec[a].name);
        } else if (st == DT_OK && s->array[a].rows != spec[a].rows) {
            st = DT_FAIL(DT_EDATA, "%s/%s.npy has %" PRId64 " rows, store.json announces %" PRId64, s->path,
                         spec[a].name, s->array[a].rows, spec[a].rows);
        }
    }
    dt_str_fini(&path);
    return st;
}

static void fill_roads(dt_store *s)
{
    dt_store_view *v = &s->view;
    v->n_maps = s->count.maps;
    v->n_lanes = s->count.lanes;
    v->n_lane_points = s->count.lane_points;
    v->n_lane_links = s->count.lane_links;
    v->map = (const char *const *)s->map;
    v->scene_map = s->array[A_scene_map].data;
    v->map_lane = s->array[A_map_lane].data;
    v->lane_point = s->array[A_lane_point].data;
    v->lane_xy = s->array[A_lane_xy].data;
    v->lane_width = s->array[A_lane_width].data;
    v->lane_kind = s->array[A_lane_kind].data;
    v->lane_limit = s->array[A_lane_limit].data;
    v->lane_id = s->array[A_lane_id].data;
    v->lane_next_ptr = s->array[A_lane_next_ptr].data;
    v->lane_next = s->array[A_lane_next].data;
    v->lane_left = s->array[A_lane_left].data;
    v->lane_right = s->array[A_lane_right].data;
}

static void fill_view(dt_store *s)
{
    dt_store_view *v = &s->view;
    v->struct_size = sizeof(*v);
    v->n_sites = (uint32_t)s->n_sites;
    v->n_scenes = s->count.scenes;
    v->n_frames = s->count.frames;
    v->n_rows = s->count.rows;
    v->n_tracks = s->count.tracks;
    v->n_edges = s->count.edges;
    v->scene_frame = s->array[A_scene_frame].data;
    v->frame_row = s->array[A_frame_row].data;
    v->frame_time = s->array[A_frame_time].data;
    v->node = s->array[A_node].data;
    v->pose = s->array[A_pose].data;
    v->motion = s->array[A_motion].data;
    v->row_track = s->array[A_row_track].data;
    v->track_ptr = s->array[A_track_ptr].data;
    v->track_row = s->array[A_track_row].data;
    v->edge_ptr = s->array[A_edge_ptr].data;
    v->edge_src = s->array[A_edge_src].data;
    v->edge = s->array[A_edge].data;
    v->risk = s->array[A_risk].data;
    v->accel_centred = s->array[A_accel_centred].data;
    v->core = s->array[A_core].data;
    v->frame_centre = s->array[A_frame_centre].data;
    v->scene_site = s->array[A_scene_site].data;
    v->site = (const char *const *)s->site;
    v->scene = (const char *const *)s->scene;
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        s->node_mean[d] = s->node_stat[d].mean;
        s->node_std[d] = s->node_stat[d].std;
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        s->edge_mean[d] = s->edge_stat[d].mean;
        s->edge_std[d] = s->edge_stat[d].std;
    }
    v->node_mean = s->node_mean;
    v->node_std = s->node_std;
    v->edge_mean = s->edge_mean;
    v->edge_std = s->edge_std;
    fill_roads(s);
}

static dt_status open_store(const char *path, uint64_t cache_bytes, uint32_t jobs, dt_store **out_p)
{
    dt_store *s = dt_alloc(sizeof(*s));
    if (s == NULL || (s->path = dt_strdup(path)) == NULL) {
        dt_free(s);
        return DT_FAIL(DT_ENOMEM, "no memory to open %s", path);
    }
    dt_status st = dt_beneath_guard(s->path);
    if (st != DT_OK) {
        dt_free(s->path);
        dt_free(s);
        return st;
    }
    st = dt_store_json_read(s);
    if (st == DT_OK) {
        st = map_arrays(s);
    }
    if (st == DT_OK) {
        const int64_t rows[DT_PACKED_ARRAYS] = {
            [DT_STORE_NODE] = s->count.rows, [DT_STORE_EDGE] = s->count.edges, [DT_STORE_EDGE_SRC] = s->count.edges};
        st = dt_packed_open(&s->packed, s->path, rows, cache_bytes);
    }
    if (st == DT_OK) {
        fill_view(s);
        st = dt_store_check(s, jobs);
    }
    if (st != DT_OK) {
        dt_store_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

dt_status dt_store_open(const char *path, dt_store **out_p)
{
    return open_store(path, DT_STORE_CACHE_BYTES, 1, out_p);
}

dt_status dt_store_open_cached(const char *path, uint64_t cache_bytes, dt_store **out_p)
{
    return open_store(path, cache_bytes, 1, out_p);
}

dt_status dt_store_open_jobs(const char *path, uint32_t jobs, dt_store **out_p)
{
    return open_store(path, DT_STORE_CACHE_BYTES, jobs, out_p);
}

void dt_store_close(dt_store *s)
{
    if (s == NULL) {
        return;
    }
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_unmap(&s->array[a]);
    }
    dt_packed_fini(&s->packed);
    for (int64_t i = 0; i < s->n_sites; i++) {
        dt_free(s->site[i]);
    }
    for (int64_t i = 0; i < s->n_scenes; i++) {
        dt_free(s->scene[i]);
    }
    for (int64_t i = 0; i < s->n_maps; i++) {
        dt_free(s->map[i]);
    }
    dt_free(s->site);
    dt_free(s->scene);
    dt_free(s->map);
    dt_beneath_unguard(s->path);
    dt_free(s->path);
    dt_free(s);
}

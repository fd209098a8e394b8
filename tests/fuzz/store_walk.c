/* SPDX-License-Identifier: Apache-2.0
 *
 * See store.h.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/store.h"

#include "base/err.h"
#include "base/mem.h"
#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/inspect/on_lanes.h"
#include "traffic/inspect/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows [from, from + n) in a block of exactly their size. */
static void *read_rows(const dt_store *s, uint32_t array, size_t row_bytes, int64_t from, int64_t n)
{
    void *room = malloc(n > 0 ? (size_t)n * row_bytes : 1);
    fuzz_hold(room != NULL);
    fuzz_hold(dt_store_read(s, array, from, n, room) == DT_OK);
    return room;
}

static void hold_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        fuzz_hold(isfinite(x[i]));
    }
}

/* ---- scenes, frames, tracks -------------------------------------------------------------------------------------- */

static void walk_edges(const dt_store *s, int64_t row, int64_t n_vehicles)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t from = v->edge_ptr[row], n = v->edge_ptr[row + 1] - from;
    fuzz_hold(from >= 0 && n >= 0 && from + n <= v->n_edges);
    int32_t *source = read_rows(s, DT_STORE_EDGE_SRC, sizeof(*source), from, n);
    float *edge = read_rows(s, DT_STORE_EDGE, DT_EDGE_FEATURES * sizeof(*edge), from, n);
    for (int64_t e = 0; e < n; e++) {
        fuzz_hold(source[e] >= 0 && source[e] < n_vehicles);
        fuzz_hold(v->edge_src == NULL || v->edge_src[from + e] == source[e]);
    }
    hold_finite(edge, n * DT_EDGE_FEATURES);
    fuzz_hold(v->edge == NULL || n == 0 ||
              memcmp(edge, v->edge + from * DT_EDGE_FEATURES, (size_t)n * DT_EDGE_FEATURES * sizeof(*edge)) == 0);
    free(source);
    free(edge);
}

static void walk_frame(const dt_store *s, int64_t frame)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t from = v->frame_row[frame], n = v->frame_row[frame + 1] - from;
    fuzz_hold(from >= 0 && n >= 0 && from + n <= v->n_rows);
    float *node = read_rows(s, DT_STORE_NODE, DT_NODE_FEATURES * sizeof(*node), from, n);
    hold_finite(node, n * DT_NODE_FEATURES);
    for (int64_t r = from; r < from + n; r++) {
        const int32_t track = v->row_track[r];
        fuzz_hold(track >= 0 && track < v->n_tracks && v->risk[r] <= DT_RISK_UNKNOWN);
        fuzz_hold(isfinite(v->pose[3 * r]) && isfinite(v->pose[3 * r + 1]) && !isinf(v->pose[3 * r + 2]));
        hold_finite(v->motion + 4 * r, 1);
        for (int k = 1; k < 4; k++) { /* NAN: unknown */
            fuzz_hold(!isinf(v->motion[4 * r + k]));
        }
        fuzz_hold(v->accel_centred == NULL || isfinite(v->accel_centred[r]));
        fuzz_hold(dt_store_stop_distance(s) == NULL || isfinite(dt_store_stop_distance(s)[r]));
        fuzz_hold(v->core == NULL || v->core[r] <= 1);
        walk_edges(s, r, n);
    }
    free(node);
}

static void walk_scene(const dt_store *s, int64_t scene)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t from = v->scene_frame[scene], end = v->scene_frame[scene + 1];
    fuzz_hold(from >= 0 && from <= end && end <= v->n_frames);
    fuzz_hold(v->scene_site[scene] >= 0 && (uint32_t)v->scene_site[scene] < v->n_sites);
    fuzz_touch_text(v->scene[scene]);
    fuzz_touch_text(v->site[v->scene_site[scene]]);
    bool has_core = v->core == NULL;
    for (int64_t f = from; f < end; f++) {
        fuzz_hold(isfinite(v->frame_time[f]) && (f == from || v->frame_time[f] > v->frame_time[f - 1]));
        fuzz_hold(v->frame_centre == NULL ||
                  (isfinite(v->frame_centre[2 * f]) && isfinite(v->frame_centre[2 * f + 1])));
        for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
            has_core = has_core || v->core[r] == 1;
        }
        walk_frame(s, f);
    }
    fuzz_hold(has_core);
}

static void walk_tracks(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    int64_t seen = 0;
    for (int64_t t = 0; t < v->n_tracks; t++) {
        for (int64_t i = v->track_ptr[t]; i < v->track_ptr[t + 1]; i++, seen++) {
            const int64_t row = v->track_row[i];
            fuzz_hold(row >= 0 && row < v->n_rows && v->row_track[row] == t);
            fuzz_hold(i == v->track_ptr[t] || row > v->track_row[i - 1]);
        }
    }
    fuzz_hold(seen == v->n_rows);
    fuzz_touch(dt_store_track_ids(s), (size_t)v->n_tracks * sizeof(int64_t));
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void walk_roads(const dt_store_view *v)
{
    for (int64_t i = 0; i < v->n_scenes && v->n_maps > 0; i++) {
        fuzz_hold(v->scene_map[i] >= -1 && v->scene_map[i] < v->n_maps);
    }
    for (int64_t m = 0; m < v->n_maps; m++) {
        dt_roads copy;
        fuzz_touch_text(v->map[m]);
        fuzz_hold(dt_roads_of_view(v, m, &copy) == DT_OK);
        fuzz_hold(copy.n_lanes == v->map_lane[m + 1] - v->map_lane[m] && copy.n_lanes > 0);
        for (int64_t i = 0; i < copy.n_links; i++) {
            fuzz_hold(copy.next[i] >= 0 && copy.next[i] < copy.n_lanes);
        }
        dt_roads_fini(&copy);
    }
}

/* What is not there is refused, and nothing is written. */
static void ask_outside(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    const struct {
        uint32_t array;
        int64_t from, n;
    } outside[] = {{DT_STORE_NODE, v->n_rows, 1},     {DT_STORE_NODE, -1, 1},     {DT_STORE_EDGE, 0, v->n_edges + 1},
                   {DT_STORE_EDGE_SRC, 1, INT64_MAX}, {DT_STORE_EDGE_SRC, 0, -1}, {DT_STORE_EDGE_SRC + 1, 0, 1}};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        fuzz_hold(dt_store_read(s, outside[i].array, outside[i].from, outside[i].n, NULL) == DT_EINVAL);
    }
}

void store_walk(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    fuzz_hold(dt_store_of_view(v) == s && v->n_rows > 0 && v->n_scenes > 0);
    fuzz_hold(v->scene_frame[0] == 0 && v->scene_frame[v->n_scenes] == v->n_frames);
    fuzz_hold(v->frame_row[0] == 0 && v->frame_row[v->n_frames] == v->n_rows);
    fuzz_hold(v->edge_ptr[0] == 0 && v->edge_ptr[v->n_rows] == v->n_edges);
    fuzz_touch(v->node_mean, DT_NODE_FEATURES * sizeof(double));
    fuzz_touch(v->edge_std, DT_EDGE_FEATURES * sizeof(double));
    fuzz_touch_text(dt_store_source(s));
    for (int64_t scene = 0; scene < v->n_scenes; scene++) {
        walk_scene(s, scene);
    }
    walk_tracks(s);
    walk_roads(v);
    ask_outside(s);
    fuzz_hold(dt_store_digest(s) == dt_store_digest(s));
}

void store_describe(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    dt_on_lanes on;
    dt_survey survey;
    fuzz_hold(dt_on_lanes_count(v, &on) == DT_OK && on.on >= 0 && on.on <= on.rows && on.rows <= v->n_rows);
    fuzz_hold(dt_survey_make(s, &survey) == DT_OK);
    for (int is_json = 0; is_json < 2; is_json++) {
        dt_str text = {0};
        fuzz_hold(dt_data_inspect(STORE_PATH, is_json, &text) == DT_OK);
        fuzz_touch_text(dt_str_text(&text));
        dt_str_fini(&text);
    }
}

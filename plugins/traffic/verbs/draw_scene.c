/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/verbs/draw_scene.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "dtrain/traffic/labels.h"
#include "traffic/store/store.h"
#include "telemetry/report/film_page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { POINTS_MOST = 1 << 16 };
static const double PATH_M = 3.5, LANE_M = 3.5; /* width of a lane that was not measured */

typedef struct points { /* [n, DT_STREET_ROAD] */
    double *value;
    uint32_t n;
} points;

static void add_point(points *p, double lane, double x, double y, double width)
{
    if (p->n < POINTS_MOST) {
        double *to = p->value + (size_t)p->n++ * DT_FILM_LINE;
        to[0] = lane;
        to[1] = x;
        to[2] = y;
        to[3] = width;
    }
}

static void add_lanes(const dt_store_view *v, int32_t map, points *p)
{
    for (int64_t l = v->map_lane[map]; l < v->map_lane[map + 1]; l++) {
        for (int64_t i = v->lane_point[l]; i < v->lane_point[l + 1]; i++) {
            const double width = (double)v->lane_width[i];
            add_point(p, (double)l, v->lane_xy[2 * i], v->lane_xy[2 * i + 1], width > 0 ? width : LANE_M);
        }
    }
}

/* Of every vehicle of the scene a point each second, its first and its last one. */
static void add_paths(const dt_store_view *v, int64_t scene, points *p)
{
    const int64_t begin = v->frame_row[v->scene_frame[scene]], end = v->frame_row[v->scene_frame[scene + 1]];
    const int64_t every = v->frame_rate_hz < 1 ? 1 : llround(v->frame_rate_hz);
    for (int64_t t = 0; t < v->n_tracks; t++) {
        const int64_t first = v->track_ptr[t], last = v->track_ptr[t + 1] - 1;
        if (last < first || v->track_row[first] < begin || v->track_row[first] >= end) {
            continue;
        }
        for (int64_t i = first; i <= last; i += every) {
            const double *pose = v->pose + 3 * v->track_row[i];
            add_point(p, (double)t, pose[0], pose[1], PATH_M);
        }
        const double *pose = v->pose + 3 * v->track_row[last];
        add_point(p, (double)t, pose[0], pose[1], PATH_M);
    }
}

static dt_status put_roads(const dt_store_view *v, int64_t scene, dt_film *film)
{
    points p = {.value = dt_alloc_n(POINTS_MOST, DT_FILM_LINE * sizeof(double))};
    if (p.value == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to draw roads");
    }
    const int32_t map = v->n_maps > 0 ? v->scene_map[scene] : -1;
    if (map >= 0) {
        add_lanes(v, map, &p);
    } else {
        add_paths(v, scene, &p);
    }
    const dt_status st = dt_film_add(film, "traffic/road", p.value, p.n * DT_FILM_LINE, DT_FILM_LINE);
    dt_free(p.value);
    return st;
}

/* The picture has the middle of a vehicle's front, the store its centre. */
static dt_status put_vehicles(const dt_store_view *v, const int64_t *id, int64_t frame, double time_s, dt_film *film)
{
    static const double risk_of[4] = {0, 0.5, 1, NAN};
    DT_TRY(dt_film_add(film, "traffic/moment/0/time", &time_s, 1, 0));
    const int64_t first = v->frame_row[frame], n = v->frame_row[frame + 1] - first;
    double *all = dt_alloc_n((size_t)n, DT_FILM_BODY * sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to draw %" PRId64 " vehicles", n);
    }
    for (int64_t i = 0; i < n; i++) {
        const double *pose = v->pose + 3 * (first + i);
        const float *m = v->motion + 4 * (first + i);
        const bool has_heading = !isnan(pose[2]);
        const double width = isnan(m[3]) ? DT_WIDTH_DEFAULT_M : (double)m[3];
        const double length = !has_heading ? width : isnan(m[2]) ? DT_LENGTH_DEFAULT_M : (double)m[2];
        const double heading = has_heading ? pose[2] : 0, half = 0.5 * length; /* unknown: a square */
        const double row[DT_FILM_BODY] = {(double)id[v->row_track[first + i]],
                                          pose[0] + half * cos(heading),
                                          pose[1] + half * sin(heading),
                                          heading,
                                          length,
                                          width,
                                          (double)m[0],
                                          risk_of[v->risk[first + i]],
                                          0};
        memcpy(all + i * DT_FILM_BODY, row, sizeof(row));
    }
    const dt_status st = dt_film_add(film, "traffic/moment/0/vehicle", all, (uint32_t)(n * DT_FILM_BODY), DT_FILM_BODY);
    dt_free(all);
    return st;
}

static dt_status draw_moment(const dt_store *s, const char *path, dt_str *notes)
{
    const dt_store_view *v = dt_store_view_of(s);
    dt_film film = {.labels = &dt_traffic_labels};
    dt_str text = {0}, to = {0};
    int64_t frame = 0, scene = 0;
    for (int64_t f = 1; f < v->n_frames; f++) {
        const int64_t n = v->frame_row[f + 1] - v->frame_row[f];
        frame = n > v->frame_row[frame + 1] - v->frame_row[frame] ? f : frame;
    }
    while (v->scene_frame[scene + 1] <= frame) {
        scene++;
    }
    const double time_s = v->frame_time[frame] - v->frame_time[v->scene_frame[scene]];
    dt_status st = put_roads(v, scene, &film);
    if (st == DT_OK) {
        st = put_vehicles(v, dt_store_track_ids(s), frame, time_s, &film);
    }
    if (st == DT_OK) {
        dt_film_remove_invalid(&film);
        dt_film_page_write_svg(&film, 0, &text);
        dt_str_add(&to, path);
        st = dt_fs_write_text(&to, &text);
    }
    if (st == DT_OK) {
        dt_str_addf(notes, "%s: scene %s after %.1f s, %" PRId64 " vehicles\n", path, v->scene[scene], time_s,
                    v->frame_row[frame + 1] - v->frame_row[frame]);
    }
    dt_film_fini(&film);
    dt_str_fini(&text);
    dt_str_fini(&to);
    return st;
}

dt_status dt_draw_scene(const char *store, const char *path, dt_str *notes)
{
    dt_store *s = NULL;
    DT_TRY(dt_store_open(store, &s));
    const dt_status st = draw_moment(s, path, notes);
    dt_store_close(s);
    return st;
}

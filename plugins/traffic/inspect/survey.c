/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/inspect/survey.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { PIECE_ROWS = 4096 };

/* ---- distributions ----------------------------------------------------------------------------------------------- */

static void add_to_bin(uint32_t bins[DT_SURVEY_BINS], const dt_feature_stat *s, double x)
{
    const double at = s->max > s->min ? (x - s->min) / (s->max - s->min) * DT_SURVEY_BINS : 0;
    const int i = at < 0 ? 0 : at >= DT_SURVEY_BINS ? DT_SURVEY_BINS - 1 : (int)at;
    bins[i] += bins[i] < UINT32_MAX;
}

static dt_status count_nodes(const dt_store *s, float *room, dt_survey *u)
{
    const int64_t n_rows = dt_store_view_of(s)->n_rows;
    for (int64_t r = 0; r < n_rows; r += PIECE_ROWS) {
        const int64_t n = n_rows - r < PIECE_ROWS ? n_rows - r : PIECE_ROWS;
        DT_TRY(dt_store_read(s, DT_STORE_NODE, r, n, room));
        for (int64_t i = 0; i < n * DT_NODE_FEATURES; i++) {
            const int64_t d = i % DT_NODE_FEATURES;
            add_to_bin(u->node[d], &dt_store_node_stat(s)[d], (double)room[i]);
        }
        dt_store_release_pages(s);
    }
    return DT_OK;
}

/* The first edge of a row is the vehicle itself. */
static dt_status count_edges(const dt_store *s, float *room, dt_survey *u)
{
    const dt_store_view *v = dt_store_view_of(s);
    int64_t row = 0;
    for (int64_t e = 0; e < v->n_edges; e += PIECE_ROWS) {
        const int64_t n = v->n_edges - e < PIECE_ROWS ? v->n_edges - e : PIECE_ROWS;
        DT_TRY(dt_store_read(s, DT_STORE_EDGE, e, n, room));
        for (int64_t i = 0; i < n; i++) {
            while (row < v->n_rows && v->edge_ptr[row] < e + i) {
                row++;
            }
            if (row < v->n_rows && v->edge_ptr[row] == e + i) {
                continue;
            }
            for (int d = 0; d < DT_EDGE_FEATURES; d++) {
                add_to_bin(u->edge[d], &dt_store_edge_stat(s)[d], (double)room[i * DT_EDGE_FEATURES + d]);
            }
        }
        dt_store_release_pages(s);
    }
    return DT_OK;
}

/* ---- holes, repeats, units --------------------------------------------------------------------------------------- */

static int64_t find_frame(const dt_store_view *v, int64_t frame, int64_t row)
{
    while (v->frame_row[frame + 1] <= row) {
        frame++;
    }
    return frame;
}

/* A row as its recording has it; accelerations of a store may be made from speeds, which gives no information about
 * them. */
static dt_table_row read_row(const dt_store *s, int64_t row)
{
    const dt_store_view *v = dt_store_view_of(s);
    const double *pose = v->pose + 3 * row;
    const float *motion = v->motion + 4 * row;
    return (dt_table_row){.line = -1,
                          .id = dt_store_track_ids(s)[v->row_track[row]],
                          .x = pose[0],
                          .y = pose[1],
                          .heading = pose[2],
                          .speed = (double)motion[0],
                          .accel = (double)motion[1],
                          .length = (double)motion[2],
                          .width = NAN,
                          .stop_distance = NAN};
}

static void check_track(const dt_store *s, int64_t t, int64_t first_frame, dt_survey *u)
{
    const dt_store_view *v = dt_store_view_of(s);
    int64_t missing = 0, frame = first_frame;
    dt_units_window window = {.is_open = false};
    dt_table_row last = {.line = 0};
    for (int64_t i = v->track_ptr[t]; i < v->track_ptr[t + 1]; i++) {
        const int64_t row = v->track_row[i], before = frame;
        double before_s = 0;
        frame = find_frame(v, frame, row);
        if (i > v->track_ptr[t]) {
            const int64_t gap = frame - before - 1;
            missing += gap;
            u->longest_gap_s = fmax(u->longest_gap_s, (double)gap / v->frame_rate_hz);
            before_s = (double)(gap + 1) / v->frame_rate_hz;
        }
        const dt_table_row now = read_row(s, row);
        dt_units_add_row(&u->units, &window, &now, before_s, last.x, last.y);
        last = now;
    }
    u->broken_tracks += missing > 0;
    u->missing_rows += missing;
}

/* Of a frame each second. */
static void add_pairs(const dt_store_view *v, dt_survey *u)
{
    const int64_t every = v->frame_rate_hz < 1 ? 1 : llround(v->frame_rate_hz);
    for (int64_t f = 0; f < v->n_frames; f += every) {
        const int64_t from = v->frame_row[f], n = v->frame_row[f + 1] - from;
        for (int64_t i = 0; i < n && i < DT_UNITS_PAIRED; i++) {
            for (int64_t j = 0; j < i; j++) {
                dt_units_add_pair(&u->units, v->pose + 3 * (from + i), v->pose + 3 * (from + j));
            }
        }
    }
}

/* Tracks begin in the order of their numbers: each search continues where the last one began. */
static void check_tracks(const dt_store *s, dt_survey *u)
{
    const dt_store_view *v = dt_store_view_of(s);
    int64_t first = 0;
    for (int64_t t = 0; t < v->n_tracks; t++) {
        if (v->track_ptr[t] == v->track_ptr[t + 1]) {
            continue;
        }
        const int64_t row = v->track_row[v->track_ptr[t]];
        first = row < v->frame_row[first] ? 0 : first;
        first = find_frame(v, first, row);
        check_track(s, t, first, u);
    }
    add_pairs(v, u);
    for (int64_t f = 0; f < v->n_frames; f++) {
        u->empty_frames += v->frame_row[f] == v->frame_row[f + 1];
    }
}

static uint64_t hash_of_scene(const dt_store_view *v, int64_t scene)
{
    uint64_t hash = 0;
    const int64_t begin = v->scene_frame[scene];
    for (int64_t f = begin; f < v->scene_frame[scene + 1]; f++) {
        for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
            hash = dt_repeats_hash(hash, f - begin, v->pose + 3 * r, v->motion[4 * r]);
            hash = v->core != NULL ? dt_repeats_hash_core(hash, v->core[r]) : hash;
        }
    }
    return hash;
}

static dt_status find_repeats(const dt_store_view *v, dt_survey *u)
{
    dt_repeats known = {.cap = 0};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < v->n_scenes && st == DT_OK; i++) {
        const char *same = NULL;
        st = dt_repeats_add(&known, hash_of_scene(v, i), v->scene[i], &same);
        if (same == NULL) {
            continue;
        }
        if (u->n_repeats < DT_SURVEY_REPEATS) {
            int64_t first = 0;
            while (strcmp(v->scene[first], same) != 0) {
                first++;
            }
            u->repeat[u->n_repeats][0] = i;
            u->repeat[u->n_repeats][1] = first;
        }
        u->n_repeats++;
    }
    dt_repeats_fini(&known);
    return st;
}

dt_status dt_survey_make(const dt_store *s, dt_survey *out)
{
    const dt_store_view *v = dt_store_view_of(s);
    float *room = dt_alloc_n(PIECE_ROWS, DT_NODE_FEATURES * sizeof(*room));
    memset(out, 0, sizeof(*out));
    dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to examine %s", dt_store_path(s)) : DT_OK;
    if (st == DT_OK) {
        st = count_nodes(s, room, out);
    }
    if (st == DT_OK) {
        st = count_edges(s, room, out);
    }
    dt_free(room);
    if (st == DT_OK) {
        check_tracks(s, out);
        st = find_repeats(v, out);
    }
    return st;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* Shares of the fullest one, each in one of nine signs: a value that is there at all is no blank. */
static void draw_bins(dt_str *out, const char *name, const dt_feature_stat *s, const uint32_t bins[DT_SURVEY_BINS])
{
    static const char signs[] = " .:-=+*#@";
    uint32_t most = 1;
    for (int i = 0; i < DT_SURVEY_BINS; i++) {
        most = bins[i] > most ? bins[i] : most;
    }
    dt_str_addf(out, "  %-18s %12.4g |", name, s->min);
    for (int i = 0; i < DT_SURVEY_BINS; i++) {
        const double share = sqrt((double)bins[i] / (double)most);
        dt_str_add_n(out, &signs[bins[i] == 0 ? 0 : (int)fmax(1, rint(8 * share))], 1);
    }
    dt_str_addf(out, "| %.4g\n", s->max);
}

static void write_packing(const dt_store *s, dt_str *out)
{
    const dt_packed *p = dt_store_packed(s);
    dt_str_addf(out, "version %" PRId64 "; features %s, %s\n", dt_store_version(s),
                dt_packing_features[p->how.features], p->how.codec == DT_CODEC_NONE ? "not packed" : "packed by zstd");
    for (int d = 0; p->how.features != DT_KEPT_F32 && d < DT_NODE_FEATURES; d++) {
        dt_str_addf(out, "%s %s %.3g", d == 0 ? "off by at most" : ",", dt_node_feature_name[d], p->errors.node[d]);
    }
    for (int d = 0; p->how.features != DT_KEPT_F32 && d < DT_EDGE_FEATURES; d++) {
        dt_str_addf(out, ", %s %.3g%s", dt_edge_feature_name[d], p->errors.edge[d],
                    d == DT_EDGE_FEATURES - 1 ? "\n" : "");
    }
}

void dt_survey_text(const dt_survey *u, const dt_store *s, dt_str *out)
{
    const dt_store_view *v = dt_store_view_of(s);
    write_packing(s, out);
    dt_str_addf(out, "distributions, from the smallest to the largest value (signs by the root of the share)\n");
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        draw_bins(out, dt_node_feature_name[d], &dt_store_node_stat(s)[d], u->node[d]);
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        draw_bins(out, dt_edge_feature_name[d], &dt_store_edge_stat(s)[d], u->edge[d]);
    }
    dt_str_addf(out,
                "gaps: %" PRId64 " frames without vehicles, %" PRId64 " vehicles out of sight for a while, %" PRId64
                " rows in all, %.3g s at most\n",
                u->empty_frames, u->broken_tracks, u->missing_rows, u->longest_gap_s);
    dt_str_addf(out, "repeats: %" PRId64 " scenes repeat others\n", u->n_repeats);
    for (int64_t i = 0; i < u->n_repeats && i < DT_SURVEY_REPEATS; i++) {
        dt_str_addf(out, "  %s is %s\n", v->scene[u->repeat[i][0]], v->scene[u->repeat[i][1]]);
    }
    const size_t before = out->bytes;
    dt_units_report(&u->units, "units: ", NULL, out);
    dt_str_add(out, out->bytes == before ? "units: consistent with m, m/s and rad\n" : "");
    dt_units_append_shares(u->units.checked, u->units.off, dt_units_heading_offset(&u->units), out);
}

static void bins_json(dt_json_out *o, const char *key, const uint32_t bins[DT_SURVEY_BINS])
{
    dt_json_arr(o, key);
    for (int i = 0; i < DT_SURVEY_BINS; i++) {
        dt_json_i64(o, NULL, bins[i]);
    }
    dt_json_end(o, ']');
}

void dt_survey_json(const dt_survey *u, const dt_store *s, dt_json_out *o)
{
    const dt_store_view *v = dt_store_view_of(s);
    const dt_packed *p = dt_store_packed(s);
    dt_str text = {0};
    dt_json_str(o, "features", dt_packing_features[p->how.features]);
    dt_json_str(o, "compress", dt_packing_codecs[p->how.codec]);
    dt_json_obj(o, "histograms");
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        bins_json(o, dt_node_feature_name[d], u->node[d]);
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        bins_json(o, dt_edge_feature_name[d], u->edge[d]);
    }
    dt_json_end(o, '}');
    dt_json_obj(o, "gaps");
    dt_json_i64(o, "empty_frames", u->empty_frames);
    dt_json_i64(o, "vehicles", u->broken_tracks);
    dt_json_i64(o, "rows", u->missing_rows);
    dt_json_f64(o, "longest_s", u->longest_gap_s);
    dt_json_end(o, '}');
    dt_json_i64(o, "repeats", u->n_repeats);
    dt_json_arr(o, "repeated");
    for (int64_t i = 0; i < u->n_repeats && i < DT_SURVEY_REPEATS; i++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "scene", v->scene[u->repeat[i][0]]);
        dt_json_str(o, "is", v->scene[u->repeat[i][1]]);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_json_f64(o, "heading_median_deg", dt_units_heading_offset(&u->units));
    dt_json_obj(o, "inconsistent");
    for (int q = 0; q < DT_UNITS_N; q++) {
        dt_json_obj(o, dt_units_quantity[q]);
        dt_json_i64(o, "rows", u->units.checked[q]);
        dt_json_i64(o, "off", u->units.off[q]);
        dt_json_str(o, "limit", dt_units_limit[q]);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
    dt_units_report(&u->units, "", NULL, &text);
    for (size_t i = 0; i < text.bytes; i++) {
        text.text[i] = text.text[i] == '\n' ? ';' : text.text[i];
    }
    dt_json_str(o, "doubts", text.bytes == 0 ? "" : dt_str_text(&text));
    dt_str_fini(&text);
}

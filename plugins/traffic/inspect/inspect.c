/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/inspect/inspect.h"
#include "traffic/inspect/normalisation.h"
#include "traffic/inspect/on_lanes.h"
#include "traffic/inspect/survey.h"
#include "base/err.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { FORGET_ROWS = 1 << 18 };

typedef struct summary {
    dt_store_counts count;
    double seconds;     /* recorded, of all scenes */
    int64_t braking[2]; /* rows that brake hard: as recorded, as labelled */
    double prevalence;  /* of risk among rows whose label is known and that are not dangerous already */
    uint64_t bytes;
    int64_t kinds[DT_N_LANE_KINDS], scenes_with_map;
    double lanes_m; /* of all lanes together */
    int64_t core;   /* rows that are of a region, and not of its halo */
    dt_on_lanes on_lanes;
    dt_normalisation normalised; /* where survey is not NULL */
    const dt_store *store;
    const dt_survey *survey; /* NULL: not asked for */
} summary;

static void summarise_roads(const dt_store_view *v, summary *m)
{
    m->count.maps = v->n_maps;
    m->count.lanes = v->n_lanes;
    m->count.lane_points = v->n_lane_points;
    m->count.lane_links = v->n_lane_links;
    for (int64_t i = 0; i < v->n_scenes && v->n_maps > 0; i++) {
        m->scenes_with_map += v->scene_map[i] >= 0;
    }
    for (int64_t lane = 0; lane < v->n_lanes; lane++) {
        m->kinds[v->lane_kind[lane]]++;
        for (int64_t i = v->lane_point[lane] + 1; i < v->lane_point[lane + 1]; i++) {
            const double *p = v->lane_xy + 2 * i;
            m->lanes_m += hypot(p[0] - p[-2], p[1] - p[-1]);
        }
    }
}

static summary summarise_store(const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    summary m = {.count = {.scenes = v->n_scenes,
                           .frames = v->n_frames,
                           .rows = v->n_rows,
                           .tracks = v->n_tracks,
                           .edges = v->n_edges},
                 .bytes = dt_store_bytes(s),
                 .store = s};
    for (int64_t i = 0; i < v->n_scenes; i++) {
        m.seconds += (double)(v->scene_frame[i + 1] - v->scene_frame[i] - 1) / v->frame_rate_hz;
    }
    for (int64_t t = 0; t < v->n_tracks; t++) {
        m.count.tracks_of_one_frame += v->track_ptr[t + 1] - v->track_ptr[t] == 1;
    }
    for (int64_t r = 0; r < v->n_rows; r++) {
        if (r % FORGET_ROWS == 0) {
            dt_store_release_pages(s); /* resident memory stays small */
        }
        m.count.risk[v->risk[r]]++;
        m.core += v->core != NULL && v->core[r] != 0;
        const float recorded = v->motion[4 * r + 1];
        m.braking[0] += dt_risk_is_now((double)recorded, 0.0);
        m.braking[1] += dt_risk_is_now((double)(v->accel_centred != NULL ? v->accel_centred[r] : recorded), 0.0);
    }
    summarise_roads(v, &m);
    int64_t known = m.count.risk[DT_RISK_NEGATIVE] + m.count.risk[DT_RISK_POSITIVE];
    m.prevalence = known > 0 ? (double)m.count.risk[DT_RISK_POSITIVE] / (double)known : (double)NAN;
    return m;
}

/* Of no rows nothing is known; edges that lead to the vehicle itself have no features. */
static void stat_lines(dt_str *out, const char *const *name, const dt_feature_stat *s, int n, int64_t rows)
{
    for (int d = 0; d < n; d++) {
        if (rows == 0) {
            dt_str_addf(out, "  %-18s %12s %12s %12s %12s\n", name[d], "-", "-", "-", "-");
            continue;
        }
        dt_str_addf(out, "  %-18s %12.4g %12.4g %12.4g %12.4g\n", name[d], s[d].min, s[d].max, s[d].mean, s[d].std);
    }
}

#define FEW_ON_LANES 0.5

static double share_on_lanes(const summary *m)
{
    return m->on_lanes.rows > 0 ? (double)m->on_lanes.on / (double)m->on_lanes.rows : 0;
}

static void regions_as_text(const summary *m, dt_str *out)
{
    const dt_store_view *v = dt_store_view_of(m->store);
    if (v->core != NULL) {
        dt_str_addf(out,
                    "regions with a halo of %g m and %g s: %" PRId64 " rows of regions, %" PRId64
                    " of halos; vehicles within %.0f neighbourhoods are included\n",
                    v->halo_m, v->halo_s, m->core, m->count.rows - m->core,
                    floor(v->halo_m / dt_store_radius_m(m->store)));
    }
}

static void regions_as_json(const summary *m, dt_json_out *o)
{
    const dt_store_view *v = dt_store_view_of(m->store);
    if (v->core != NULL) {
        dt_json_obj(o, "regions");
        dt_json_f64(o, "halo_m", v->halo_m);
        dt_json_f64(o, "halo_s", v->halo_s);
        dt_json_i64(o, "rows", m->core);
        dt_json_i64(o, "halo_rows", m->count.rows - m->core);
        dt_json_end(o, '}');
    }
}

/* Values that the source did not have; a store without any has no line. */
static void unknown_as_text(const summary *m, dt_str *out)
{
    int n = 0;
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        if (dt_store_unknown(m->store, k) > 0) {
            dt_str_addf(out, "%s%s in %" PRId64 " rows", n++ == 0 ? "unknown: " : ", ", dt_unknown_name[k],
                        dt_store_unknown(m->store, k));
        }
    }
    dt_str_add(out, n > 0 ? "\n" : "");
}

static void roads_as_text(const summary *m, dt_str *out)
{
    if (m->count.maps == 0) {
        return;
    }
    dt_str_addf(out,
                "roads: maps %" PRId64 ", lanes %" PRId64 ", %.1f km, links %" PRId64 ", scenes with a map %" PRId64
                " of %" PRId64 "\nlanes",
                m->count.maps, m->count.lanes, m->lanes_m / 1000, m->count.lane_links, m->scenes_with_map,
                m->count.scenes);
    for (int32_t k = 0, n = 0; k < DT_N_LANE_KINDS; k++) {
        if (m->kinds[k] > 0) {
            dt_str_addf(out, "%s %s %" PRId64, n++ == 0 ? "" : ",", dt_lane_kind_name(k), m->kinds[k]);
        }
    }
    dt_str_add(out, "\n");
    if (m->on_lanes.rows > 0) {
        dt_str_addf(out, "positions on a lane: %.1f %% of %" PRId64 "%s\n", 100 * share_on_lanes(m), m->on_lanes.rows,
                    share_on_lanes(m) < FEW_ON_LANES ? ", fewer than half: a map that is turned or moved against the "
                                                       "recording (import.map_origin, import.map_offset)?"
                                                     : "");
    }
}

static void append_text_summary(const summary *m, const char *path, dt_str *out)
{
    const dt_store_view *v = dt_store_view_of(m->store);
    const dt_store_counts *c = &m->count;
    dt_str_addf(out, "%s: %s, %g Hz\n", path, dt_store_source(m->store), v->frame_rate_hz);
    dt_str_addf(out,
                "scenes %" PRId64 ", frames %" PRId64 ", vehicles %" PRId64 ", rows %" PRId64 ", edges %" PRId64
                ", %.1f s recorded, %.1f MB\n",
                c->scenes, c->frames, c->tracks, c->rows, c->edges, m->seconds, (double)m->bytes / 1e6);
    if (c->tracks_of_one_frame > 0) {
        dt_str_addf(out, "%" PRId64 " vehicles are seen in one frame alone\n", c->tracks_of_one_frame);
    }
    dt_str_add(out, "sites");
    for (uint32_t i = 0; i < v->n_sites; i++) {
        int64_t scenes = 0;
        for (int64_t s = 0; s < v->n_scenes; s++) {
            scenes += v->scene_site[s] == (int32_t)i;
        }
        dt_str_addf(out, "%s %s (%" PRId64 " scenes)", i == 0 ? "" : ",", v->site[i], scenes);
    }
    dt_str_addf(out, "\nrisk within %g s: ", DT_RISK_AHEAD_S);
    if (isnan(m->prevalence)) {
        dt_str_add(out, "known of no row");
    } else {
        dt_str_addf(out, "%.2f %% of %" PRId64 " rows", 100 * m->prevalence,
                    c->risk[DT_RISK_NEGATIVE] + c->risk[DT_RISK_POSITIVE]);
    }
    dt_str_addf(out, "; dangerous already %" PRId64 ", unknown %" PRId64 "\n", c->risk[DT_RISK_NOW],
                c->risk[DT_RISK_UNKNOWN]);
    if (dt_store_smooth_s(m->store) > 0) {
        dt_str_addf(out,
                    "accelerations averaged over %g s: %" PRId64 " rows brake harder than %g m/s^2, %" PRId64
                    " as recorded\n",
                    dt_store_smooth_s(m->store), m->braking[1], DT_RISK_BRAKE, m->braking[0]);
    } else {
        dt_str_addf(out, "accelerations as recorded: %" PRId64 " rows brake harder than %g m/s^2\n", m->braking[0],
                    DT_RISK_BRAKE);
    }
    unknown_as_text(m, out);
    roads_as_text(m, out);
    regions_as_text(m, out);
    dt_str_addf(out, "  %-18s %12s %12s %12s %12s\n", "feature", "min", "max", "mean", "std");
    stat_lines(out, dt_node_feature_name, dt_store_node_stat(m->store), DT_NODE_FEATURES, c->rows);
    stat_lines(out, dt_edge_feature_name, dt_store_edge_stat(m->store), DT_EDGE_FEATURES, c->edges - c->rows);
    if (m->survey != NULL) {
        dt_normalisation_text(&m->normalised, out);
        dt_survey_text(m->survey, m->store, out);
    }
}

static void stat_objects(dt_json_out *o, const char *key, const char *const *name, const dt_feature_stat *s, int n,
                         int64_t rows)
{
    dt_json_obj(o, key);
    for (int d = 0; d < n; d++) {
        dt_json_obj(o, name[d]);
        dt_json_f64(o, "min", rows > 0 ? s[d].min : (double)NAN);
        dt_json_f64(o, "max", rows > 0 ? s[d].max : (double)NAN);
        dt_json_f64(o, "mean", rows > 0 ? s[d].mean : (double)NAN);
        dt_json_f64(o, "std", rows > 0 ? s[d].std : (double)NAN);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
}

static void roads_as_json(const summary *m, dt_json_out *o)
{
    dt_json_obj(o, "roads");
    dt_json_i64(o, "maps", m->count.maps);
    dt_json_i64(o, "lanes", m->count.lanes);
    dt_json_i64(o, "points", m->count.lane_points);
    dt_json_i64(o, "links", m->count.lane_links);
    dt_json_f64(o, "length_m", m->lanes_m);
    dt_json_i64(o, "scenes", m->scenes_with_map);
    dt_json_i64(o, "positions", m->on_lanes.rows);
    dt_json_i64(o, "positions_on_lanes", m->on_lanes.on);
    dt_json_obj(o, "kinds");
    for (int32_t k = 0; k < DT_N_LANE_KINDS; k++) {
        dt_json_i64(o, dt_lane_kind_name(k), m->kinds[k]);
    }
    dt_json_end(o, '}');
    dt_json_end(o, '}');
}

static void write_json_summary(const summary *m, const char *path, dt_str *out)
{
    const dt_store_view *v = dt_store_view_of(m->store);
    const dt_store_counts *c = &m->count;
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "store", path);
    dt_json_str(&o, "source", dt_store_source(m->store));
    dt_json_i64(&o, "version", dt_store_version(m->store));
    dt_json_f64(&o, "frame_rate_hz", v->frame_rate_hz);
    dt_json_i64(&o, "scenes", c->scenes);
    dt_json_i64(&o, "frames", c->frames);
    dt_json_i64(&o, "vehicles", c->tracks);
    dt_json_i64(&o, "vehicles_of_one_frame", c->tracks_of_one_frame);
    dt_json_i64(&o, "rows", c->rows);
    dt_json_i64(&o, "edges", c->edges);
    dt_json_f64(&o, "seconds", m->seconds);
    dt_json_i64(&o, "bytes", (int64_t)m->bytes);
    dt_json_arr(&o, "sites");
    for (uint32_t i = 0; i < v->n_sites; i++) {
        dt_json_str(&o, NULL, v->site[i]);
    }
    dt_json_end(&o, ']');
    dt_json_obj(&o, "risk");
    dt_json_f64(&o, "prevalence", m->prevalence);
    dt_json_i64(&o, "negative", c->risk[DT_RISK_NEGATIVE]);
    dt_json_i64(&o, "positive", c->risk[DT_RISK_POSITIVE]);
    dt_json_i64(&o, "now", c->risk[DT_RISK_NOW]);
    dt_json_i64(&o, "unknown", c->risk[DT_RISK_UNKNOWN]);
    dt_json_end(&o, '}');
    dt_json_obj(&o, "acceleration");
    dt_json_f64(&o, "smooth_s", dt_store_smooth_s(m->store));
    dt_json_i64(&o, "hard_braking_recorded", m->braking[0]);
    dt_json_i64(&o, "hard_braking", m->braking[1]);
    dt_json_end(&o, '}');
    dt_json_obj(&o, "unknown");
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        dt_json_i64(&o, dt_unknown_name[k], dt_store_unknown(m->store, k));
    }
    dt_json_end(&o, '}');
    roads_as_json(m, &o);
    regions_as_json(m, &o);
    stat_objects(&o, "node", dt_node_feature_name, dt_store_node_stat(m->store), DT_NODE_FEATURES, c->rows);
    stat_objects(&o, "edge", dt_edge_feature_name, dt_store_edge_stat(m->store), DT_EDGE_FEATURES, c->edges - c->rows);
    if (m->survey != NULL) {
        dt_normalisation_json(&m->normalised, &o);
        dt_survey_json(m->survey, m->store, &o);
    }
    dt_json_end(&o, '}');
    dt_str_add(out, "\n");
}

static dt_status inspect_store(const char *store, bool json, bool closely, uint32_t jobs, dt_str *out)
{
    dt_store *s = NULL;
    dt_survey survey;
    DT_TRY(dt_store_open_jobs(store, jobs, &s));
    dt_status st = closely ? dt_survey_make(s, &survey) : DT_OK;
    if (st == DT_OK) {
        summary m = summarise_store(s);
        m.survey = closely ? &survey : NULL;
        if (closely) {
            m.normalised = dt_normalisation_measure(s);
        }
        st = dt_on_lanes_count(dt_store_view_of(s), &m.on_lanes);
        if (st == DT_OK) {
            (json ? write_json_summary : append_text_summary)(&m, store, out);
            st = dt_str_status(out);
        }
    }
    dt_store_close(s);
    return st;
}

dt_status dt_data_inspect(const char *store, bool json, dt_str *out)
{
    return inspect_store(store, json, true, 1, out);
}

dt_status dt_data_summarise(const char *store, uint32_t jobs, dt_str *out)
{
    return inspect_store(store, false, false, jobs, out);
}

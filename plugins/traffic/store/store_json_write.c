/* SPDX-License-Identifier: Apache-2.0
 *
 * store.json, as store.h shows it, of a store that is written. See store_writer.h.
 */
#include <config.h>

#include "traffic/store/store_writer.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>

const char *const dt_unknown_name[DT_N_UNKNOWN] = {"heading", "acceleration", "length", "width"};

bool dt_store_has_unknown(const dt_store_counts *c)
{
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        if (c->unknown[k] > 0) {
            return true;
        }
    }
    return false;
}

static void write_stats(dt_json_out *o, const char *key, const char *const *name, const dt_column_stat *m, int n)
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

static void write_description(dt_store_writer *w, dt_str *text)
{
    dt_json_out o = {.s = text};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "format", DT_STORE_FORMAT);
    const bool has_unknown = dt_store_has_unknown(&w->count);
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
    if (w->meta.halo_m > 0) {
        dt_json_obj(&o, "regions");
        dt_json_f64(&o, "halo_m", w->meta.halo_m);
        dt_json_f64(&o, "halo_s", w->meta.halo_s);
        dt_json_end(&o, '}');
    }
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
    if (has_unknown) {
        dt_json_obj(&o, "unknown");
        for (int k = 0; k < DT_N_UNKNOWN; k++) {
            dt_json_i64(&o, dt_unknown_name[k], w->count.unknown[k]);
        }
        dt_json_end(&o, '}');
    }
    dt_json_obj(&o, "risk");
    dt_json_i64(&o, "negative", w->count.risk[DT_RISK_NEGATIVE]);
    dt_json_i64(&o, "positive", w->count.risk[DT_RISK_POSITIVE]);
    dt_json_i64(&o, "now", w->count.risk[DT_RISK_NOW]);
    dt_json_i64(&o, "unknown", w->count.risk[DT_RISK_UNKNOWN]);
    dt_json_end(&o, '}');
    dt_json_obj(&o, "statistics");
    write_stats(&o, "node", dt_node_feature_name, w->stat.node, DT_NODE_FEATURES);
    write_stats(&o, "edge", dt_edge_feature_name, w->stat.edge, DT_EDGE_FEATURES);
    dt_json_end(&o, '}');
    dt_str_addf(text, ",\"scenes\":%s", dt_str_text(&w->scenes)); /* made as the scenes came */
    if (w->count.maps > 0) {
        dt_str_addf(text, ",\"maps\":%s", dt_str_text(&w->roads.names));
    }
    dt_json_end(&o, '}');
    dt_str_add(text, "\n");
}

dt_status dt_store_json_write(dt_store_writer *w)
{
    dt_str text = {0}, path = {0};
    dt_json_end(&w->scenes_out, ']');
    write_description(w, &text);
    dt_str_addf(&path, "%s/store.json", dt_staging_path(w->aside));
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&text);
    dt_str_fini(&path);
    return st;
}

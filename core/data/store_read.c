/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a store: description, mapping, and every check that lets readers trust an index. See store.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/json_in.h"
#include "data/names.h"
#include "data/npy.h"
#include "data/smooth.h"
#include "data/store.h"
#include "data/store_roads.h"
#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
#define DT_ARRAY(name, dtype, width, count, plus) A_##name,
#include "data/arrays.def"
#undef DT_ARRAY
    N_ARRAYS
};

static const int64_t COUNT_MAX = INT64_C(1) << 53;
enum { NAME_BYTES = 520, SOURCE_BYTES = 4096, FORGET_BYTES = 16 << 20, ROW_BYTES = 100, PIECE_ROWS = 4096 };

struct dt_store {
    dt_store_view view;
    dt_npy array[N_ARRAYS];
    dt_packed packed;
    char *path;
    dt_store_counts count;
    char **site, **scene, **map;
    int64_t n_sites, n_scenes, n_maps, sites_cap, scenes_cap, maps_cap;
    dt_feature_stat node_stat[DT_NODE_FEATURES], edge_stat[DT_EDGE_FEATURES];
    double node_mean[DT_NODE_FEATURES], node_std[DT_NODE_FEATURES];
    double edge_mean[DT_EDGE_FEATURES], edge_std[DT_EDGE_FEATURES];
    char source[SOURCE_BYTES];
    int64_t version;
    char format[64];
    double smooth_s, radius_m;
    int64_t neighbours;
    uint32_t seen;
    size_t touched; /* bytes of the arrays read since they were forgotten */
};
#define RADIUS_MOST_M 1e6
enum { NEIGHBOURS_MOST = 1 << 20 };
enum { SAW_RATE = 1, SAW_COUNTS = 2, SAW_SITES = 4, SAW_SCENES = 8, SAW_STATS = 16, SAW_ALL = 31 };

/* ---- store.json -------------------------------------------------------------------------------------------------- */

static dt_status add_name(char ***list_p, int64_t *n_p, int64_t *cap_p, const char *name)
{
    if (*n_p == *cap_p) {
        int64_t cap = *cap_p == 0 ? 64 : 2 * *cap_p;
        char **grown = dt_realloc(*list_p, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " names", cap);
        }
        *list_p = grown;
        *cap_p = cap;
    }
    (*list_p)[*n_p] = dt_strdup(name);
    if ((*list_p)[*n_p] == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the name %s", name);
    }
    (*n_p)++;
    return DT_OK;
}

static dt_status read_names(dt_json *j, const char *what, char ***list_p, int64_t *n_p, int64_t *cap_p)
{
    char name[NAME_BYTES];
    DT_TRY(dt_in_array(j, what));
    dt_status st;
    while ((st = dt_in_next_str(j, what, name, sizeof(name))) == DT_OK) {
        DT_TRY(add_name(list_p, n_p, cap_p, name));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_scenes(dt_json *j, dt_store *s)
{
    DT_TRY(dt_in_array(j, "scenes"));
    dt_status st;
    while ((st = dt_in_next_object(j, "a scene")) == DT_OK) {
        char key[DT_IN_KEY_BYTES], name[NAME_BYTES] = "";
        while ((st = dt_in_key(j, key)) == DT_OK) {
            DT_TRY(strcmp(key, "name") == 0 ? dt_in_str(j, key, name, sizeof(name)) : dt_json_skip(j));
        }
        DT_TRY(st);
        DT_TRY(add_name(&s->scene, &s->n_scenes, &s->scenes_cap, name));
    }
    s->seen |= SAW_SCENES;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_options(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, "options"));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        if (strcmp(key, "smooth_s") == 0) {
            DT_TRY(dt_in_f64(j, key, &s->smooth_s, NULL));
        } else if (strcmp(key, "radius_m") == 0) {
            DT_TRY(dt_in_f64(j, key, &s->radius_m, NULL));
        } else {
            DT_TRY(strcmp(key, "neighbours") == 0 ? dt_in_i64(j, key, &s->neighbours) : dt_json_skip(j));
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_counts(dt_json *j, dt_store *s)
{
    const struct {
        const char *name;
        int64_t *value;
    } field[] = {{"scenes", &s->count.scenes},
                 {"frames", &s->count.frames},
                 {"rows", &s->count.rows},
                 {"tracks", &s->count.tracks},
                 {"edges", &s->count.edges},
                 {"tracks_of_one_frame", &s->count.tracks_of_one_frame},
                 {"maps", &s->count.maps},
                 {"lanes", &s->count.lanes},
                 {"lane_points", &s->count.lane_points},
                 {"lane_links", &s->count.lane_links}};
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, "counts"));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        size_t i = 0;
        while (i < sizeof(field) / sizeof(field[0]) && strcmp(key, field[i].name) != 0) {
            i++;
        }
        DT_TRY(i < sizeof(field) / sizeof(field[0]) ? dt_in_i64(j, key, field[i].value) : dt_json_skip(j));
    }
    s->seen |= SAW_COUNTS;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_risk(dt_json *j, dt_store *s)
{
    static const char *const name[4] = {"negative", "positive", "now", "unknown"};
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_in_object(j, "risk"));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        int i = 0;
        while (i < 4 && strcmp(key, name[i]) != 0) {
            i++;
        }
        DT_TRY(i < 4 ? dt_in_i64(j, key, &s->count.risk[i]) : dt_json_skip(j));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_stat_list(dt_json *j, const char *what, dt_feature_stat *out, const char *const *names, int n)
{
    dt_status st;
    int i = 0;
    DT_TRY(dt_in_array(j, what));
    for (; (st = dt_in_next_object(j, what)) == DT_OK; i++) {
        char key[DT_IN_KEY_BYTES], name[NAME_BYTES] = "";
        if (i == n) {
            return dt_json_fail(j, "statistics.%s has more than %d features", what, n);
        }
        while ((st = dt_in_key(j, key)) == DT_OK) {
            double *value = strcmp(key, "min") == 0    ? &out[i].min
                            : strcmp(key, "max") == 0  ? &out[i].max
                            : strcmp(key, "mean") == 0 ? &out[i].mean
                            : strcmp(key, "std") == 0  ? &out[i].std
                                                       : NULL;
            if (value != NULL) {
                DT_TRY(dt_in_f64(j, key, value, NULL));
            } else {
                DT_TRY(strcmp(key, "name") == 0 ? dt_in_str(j, key, name, sizeof(name)) : dt_json_skip(j));
            }
        }
        DT_TRY(st);
        if (strcmp(name, names[i]) != 0) {
            return dt_json_fail(j, "feature %d of statistics.%s is \"%s\", expected \"%s\"", i, what, name, names[i]);
        }
    }
    DT_TRY(st);
    return i == n ? DT_OK : dt_json_fail(j, "statistics.%s has %d features, expected %d", what, i, n);
}

static dt_status read_statistics(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    int seen = 0;
    DT_TRY(dt_in_object(j, "statistics"));
    while ((st = dt_in_key(j, key)) == DT_OK) {
        if (strcmp(key, "node") == 0) {
            DT_TRY(read_stat_list(j, "node", s->node_stat, dt_node_feature_name, DT_NODE_FEATURES));
            seen |= 1;
        } else if (strcmp(key, "edge") == 0) {
            DT_TRY(read_stat_list(j, "edge", s->edge_stat, dt_edge_feature_name, DT_EDGE_FEATURES));
            seen |= 2;
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
    s->seen |= seen == 3 ? SAW_STATS : 0;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_member(dt_json *j, const char *key, dt_store *s)
{
    if (strcmp(key, "format") == 0) {
        return dt_in_str(j, key, s->format, sizeof(s->format));
    }
    if (strcmp(key, "version") == 0) {
        DT_TRY(dt_in_i64(j, key, &s->version));
        if (s->version < DT_STORE_OLDEST || s->version > DT_STORE_VERSION) { /* what follows may look different */
            return dt_json_fail(j, "store of version %" PRId64 ", this program reads versions %d to %d: %s", s->version,
                                DT_STORE_OLDEST, DT_STORE_VERSION,
                                s->version > DT_STORE_VERSION ? "a newer dtrain reads it" : "import it again");
        }
        return DT_OK;
    }
    if (strcmp(key, "frame_rate_hz") == 0) {
        s->seen |= SAW_RATE;
        return dt_in_f64(j, key, &s->view.frame_rate_hz, NULL);
    }
    if (strcmp(key, "source") == 0) {
        return dt_in_str(j, key, s->source, sizeof(s->source));
    }
    if (strcmp(key, "sites") == 0) {
        s->seen |= SAW_SITES;
        return read_names(j, "sites", &s->site, &s->n_sites, &s->sites_cap);
    }
    if (strcmp(key, "maps") == 0) {
        return read_names(j, "maps", &s->map, &s->n_maps, &s->maps_cap);
    }
    if (strcmp(key, "scenes") == 0) {
        return read_scenes(j, s);
    }
    if (strcmp(key, "options") == 0) {
        return read_options(j, s);
    }
    if (strcmp(key, "counts") == 0) {
        return read_counts(j, s);
    }
    if (strcmp(key, "risk") == 0) {
        return read_risk(j, s);
    }
    if (strcmp(key, "statistics") == 0) {
        return read_statistics(j, s);
    }
    bool is_packing = false;
    DT_TRY(dt_packed_member(&s->packed, j, key, &is_packing));
    return is_packing ? DT_OK : dt_json_skip(j);
}

static dt_status check_road_counts(const dt_store *s, const char *name)
{
    const dt_store_counts *c = &s->count;
    const bool has_any = c->maps > 0;
    const bool is_right = c->maps == s->n_maps && c->maps <= INT32_MAX && c->lanes <= INT32_MAX &&
                          c->lanes >= c->maps && c->lane_points >= 2 * c->lanes && c->lane_links >= 0 &&
                          (has_any || (c->maps == 0 && c->lanes == 0 && c->lane_points == 0 && c->lane_links == 0));
    return is_right ? DT_OK
                    : DT_FAIL(DT_EDATA,
                              "%s: counts of roads contradict each other (%" PRId64 " maps, %" PRId64 " named, %" PRId64
                              " lanes, %" PRId64 " points, %" PRId64 " links)",
                              name, c->maps, s->n_maps, c->lanes, c->lane_points, c->lane_links);
}

static bool has_control(const char *name)
{
    while (*name != '\0' && (unsigned char)*name >= ' ' && *name != '\x7f') {
        name++;
    }
    return *name != '\0';
}

/* Names stand for scenes and sites in splits, merges, reports and tables: each for one, on one line. */
static dt_status check_names(const char *file, const char *what, char *const *list, int64_t n)
{
    dt_names seen = {.n = 0};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < n && st == DT_OK; i++) {
        bool is_new = false;
        int32_t number = 0;
        if (has_control(list[i])) {
            st = DT_FAIL(DT_EDATA, "%s: the name of %s %" PRId64 ", \"%.200s\", has control characters", file, what, i,
                         list[i]);
            break;
        }
        st = dt_names_add(&seen, list[i], &number, &is_new);
        if (st == DT_OK && !is_new) {
            st = DT_FAIL(DT_EDATA, "%s: %s %" PRId64 " is called \"%.200s\", as %s %" PRId32 " is: names differ", file,
                         what, i, list[i], what, number);
        }
    }
    dt_names_fini(&seen);
    return st;
}

static dt_status read_description(dt_store *s, const char *text, size_t bytes, const char *name)
{
    dt_json *j = NULL;
    char key[DT_IN_KEY_BYTES];
    DT_TRY(dt_json_open_mem(text, bytes, name, &j));
    dt_status st = dt_in_object(j, "store.json");
    while (st == DT_OK && (st = dt_in_key(j, key)) == DT_OK) {
        st = read_member(j, key, s);
    }
    if (st == DT_DONE) {
        st = dt_in_end(j);
    }
    dt_json_close(j);
    DT_TRY(st);
    if (strcmp(s->format, DT_STORE_FORMAT) != 0 || s->version == 0) {
        return DT_FAIL(DT_EDATA, "%s: format is \"%s\", not a versioned \"%s\"", name, s->format, DT_STORE_FORMAT);
    }
    if (s->seen != SAW_ALL) {
        return DT_FAIL(DT_EDATA, "%s: frame_rate_hz, counts, sites, scenes or statistics is missing", name);
    }
    if (!(s->view.frame_rate_hz >= 0.1 && s->view.frame_rate_hz <= 1000)) {
        return DT_FAIL(DT_EDATA, "%s: frame_rate_hz %g is outside [0.1, 1000]", name, s->view.frame_rate_hz);
    }
    s->radius_m = s->radius_m == 0 ? DT_RADIUS_M : s->radius_m;
    s->neighbours = s->neighbours == 0 ? DT_NEIGHBOURS : s->neighbours;
    if (!(s->radius_m > 0 && s->radius_m <= RADIUS_MOST_M) ||
        !(s->neighbours >= 1 && s->neighbours <= NEIGHBOURS_MOST)) {
        return DT_FAIL(DT_EDATA,
                       "%s: options.radius_m %g or options.neighbours %" PRId64 " is outside (0, %g], [1, %d]", name,
                       s->radius_m, s->neighbours, RADIUS_MOST_M, NEIGHBOURS_MOST);
    }
    if (!(s->smooth_s >= 0 && s->smooth_s <= DT_SMOOTH_MAX_S)) {
        return DT_FAIL(DT_EDATA, "%s: options.smooth_s %g is outside [0, %g]", name, s->smooth_s, DT_SMOOTH_MAX_S);
    }
    const dt_store_counts *c = &s->count;
    const int64_t all[] = {c->scenes, c->frames, c->rows,        c->tracks,    c->edges,
                           c->maps,   c->lanes,  c->lane_points, c->lane_links};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] > COUNT_MAX) { /* what follows adds 1 and multiplies by columns */
            return DT_FAIL(DT_EDATA, "%s: a count of %" PRId64 ", at most %" PRId64 " can be", name, all[i], COUNT_MAX);
        }
    }
    if (c->rows < 1 || c->scenes < 1 || c->frames < 1 || c->tracks < 1 || c->edges < c->rows || c->tracks > INT32_MAX ||
        s->n_scenes != c->scenes || s->n_sites < 1 || s->n_sites > INT32_MAX) {
        return DT_FAIL(DT_EDATA,
                       "%s: counts contradict each other (%" PRId64 " scenes, %" PRId64 " named, %" PRId64
                       " rows, %" PRId64 " tracks, %" PRId64 " edges, %" PRId64 " sites)",
                       name, c->scenes, s->n_scenes, c->rows, c->tracks, c->edges, s->n_sites);
    }
    DT_TRY(check_names(name, "scene", s->scene, s->n_scenes));
    DT_TRY(check_names(name, "site", s->site, s->n_sites));
    return check_road_counts(s, name);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* Is there a file of this array, as .npy? Not where there is nothing to put in it, or it is in blocks. */
static bool is_plain(const dt_store *s, int a)
{
    switch (a) {
    case A_accel_centred:
        return s->smooth_s > 0;
    case A_stop_distance:
        return s->packed.how.features != DT_KEPT_F32;
    case A_node:
        return !dt_packing_has(&s->packed.how, DT_STORE_NODE);
    case A_edge:
        return !dt_packing_has(&s->packed.how, DT_STORE_EDGE);
    case A_edge_src:
        return !dt_packing_has(&s->packed.how, DT_STORE_EDGE_SRC);
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
#include "data/arrays.def"
#undef DT_ARRAY
    };
    dt_str path = {0};
    dt_status st = DT_OK;
    for (int a = 0; a < N_ARRAYS && st == DT_OK; a++) {
        if (!is_plain(s, a)) {
            continue;
        }
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/%s.npy", s->path, spec[a].name);
        st = dt_str_status(&path);
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

void dt_store_forget(const dt_store *s)
{
    for (int a = 0; a < N_ARRAYS; a++) {
        dt_npy_forget(&s->array[a]);
    }
    for (int a = 0; a < DT_PACKED_ARRAYS; a++) {
        dt_blocks_forget(&s->packed.array[a]);
    }
}

/* The checks read every byte once; resident memory stays small all the same. */
static void touch(dt_store *s, size_t bytes)
{
    s->touched += bytes;
    if (s->touched < FORGET_BYTES) {
        return;
    }
    s->touched = 0;
    dt_store_forget(s);
}

static dt_status check_offsets(dt_store *s, const char *name, const int64_t *p, int64_t n, int64_t end)
{
    if (p[0] != 0 || p[n] != end) {
        return DT_FAIL(DT_EDATA, "%s/%s.npy runs from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64, s->path,
                       name, p[0], p[n], end);
    }
    for (int64_t i = 0; i < n; i++) {
        touch(s, sizeof(*p));
        if (p[i + 1] < p[i]) {
            return DT_FAIL(DT_EDATA, "%s/%s.npy falls from %" PRId64 " to %" PRId64 " at %" PRId64, s->path, name, p[i],
                           p[i + 1], i);
        }
    }
    return DT_OK;
}

static dt_status check_i32(dt_store *s, const char *name, const int32_t *p, int64_t n, int64_t limit)
{
    for (int64_t i = 0; i < n; i++) {
        touch(s, sizeof(*p));
        if (p[i] < 0 || p[i] >= limit) {
            return DT_FAIL(DT_EDATA, "%s/%s.npy: %" PRId32 " at %" PRId64 " is outside [0, %" PRId64 ")", s->path, name,
                           p[i], i, limit);
        }
    }
    return DT_OK;
}

/* NaN and Inf have all exponent bits set, and nothing else has: a sum of flags vectorises where isfinite would not. */
static dt_status check_f32(dt_store *s, const char *name, const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += 4096) {
        int64_t end = i + 4096 < n ? i + 4096 : n;
        uint32_t bad = 0;
        touch(s, (size_t)(end - i) * sizeof(*p));
        for (int64_t k = i; k < end; k++) {
            uint32_t word;
            memcpy(&word, &p[k], sizeof(word));
            bad |= (uint32_t)((word & 0x7f800000u) == 0x7f800000u);
        }
        if (bad != 0) {
            for (int64_t k = i; k < end; k++) {
                if (!isfinite(p[k])) {
                    return DT_FAIL(DT_EDATA, "%s/%s.npy: value %" PRId64 " is %g", s->path, name, k, (double)p[k]);
                }
            }
        }
    }
    return DT_OK;
}

static dt_status check_f64(dt_store *s, const char *name, const double *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        touch(s, sizeof(*p));
        if (!isfinite(p[i])) {
            return DT_FAIL(DT_EDATA, "%s/%s.npy: value %" PRId64 " is %g", s->path, name, i, p[i]);
        }
    }
    return DT_OK;
}

/* Sources lie in their target's frame. room: of PIECE_ROWS of them, where they are packed. */
static dt_status check_sources(dt_store *s, int32_t *room)
{
    const dt_store_view *v = &s->view;
    for (int64_t f = 0; f < v->n_frames; f++) {
        const int64_t n = v->frame_row[f + 1] - v->frame_row[f], end = v->edge_ptr[v->frame_row[f + 1]];
        touch(s, (size_t)n * ROW_BYTES);
        for (int64_t e = v->edge_ptr[v->frame_row[f]]; e < end; e += PIECE_ROWS) {
            const int64_t m = end - e < PIECE_ROWS ? end - e : PIECE_ROWS;
            const int32_t *source = v->edge_src == NULL ? room : v->edge_src + e;
            if (v->edge_src == NULL) {
                DT_TRY(dt_packed_read(&s->packed, DT_STORE_EDGE_SRC, e, m, room));
            }
            for (int64_t k = 0; k < m; k++) {
                if (source[k] < 0 || source[k] >= n) {
                    return DT_FAIL(DT_EDATA,
                                   "%s/edge_src.npy: %" PRId32 " at %" PRId64 " is outside frame %" PRId64
                                   " of %" PRId64 " vehicles",
                                   s->path, source[k], e + k, f, n);
                }
            }
        }
    }
    return DT_OK;
}

static dt_status check_all_sources(dt_store *s)
{
    int32_t *room = dt_alloc_n(PIECE_ROWS, sizeof(*room));
    const dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to check %s", s->path) : check_sources(s, room);
    dt_free(room);
    return st;
}

/* Rows of a track ascend and belong to it. */
static dt_status check_tracks(dt_store *s)
{
    const dt_store_view *v = &s->view;
    for (int64_t t = 0; t < v->n_tracks; t++) {
        for (int64_t i = v->track_ptr[t], before = -1; i < v->track_ptr[t + 1]; i++) {
            int64_t r = v->track_row[i];
            touch(s, ROW_BYTES);
            if (r <= before || r >= v->n_rows || v->row_track[r] != t) {
                return DT_FAIL(DT_EDATA,
                               "%s/track_row.npy: row %" PRId64 " at %" PRId64 " does not belong to track %" PRId64
                               " in time order",
                               s->path, r, i, t);
            }
            before = r;
        }
    }
    for (int64_t r = 0; r < v->n_rows; r++) {
        touch(s, sizeof(v->risk[r]));
        if (v->risk[r] > DT_RISK_UNKNOWN) {
            return DT_FAIL(DT_EDATA, "%s/risk.npy: %d at %" PRId64 " is outside [0, %d]", s->path, v->risk[r], r,
                           DT_RISK_UNKNOWN);
        }
    }
    return DT_OK;
}

/* Edges of vehicles to themselves are zeros, which statistics leave out. */
static dt_status check_packed(const dt_store *s)
{
    dt_packed_range node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        node[d] = (dt_packed_range){s->node_stat[d].min, s->node_stat[d].max};
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        edge[d] = (dt_packed_range){fmin(0, s->edge_stat[d].min), fmax(0, s->edge_stat[d].max)};
    }
    return dt_packed_check(&s->packed, s->path, node, edge);
}

static dt_status check_arrays(dt_store *s)
{
    const dt_store_view *v = &s->view;
    DT_TRY(check_offsets(s, "scene_frame", v->scene_frame, v->n_scenes, v->n_frames));
    DT_TRY(check_offsets(s, "frame_row", v->frame_row, v->n_frames, v->n_rows));
    DT_TRY(check_offsets(s, "track_ptr", v->track_ptr, v->n_tracks, v->n_rows));
    DT_TRY(check_offsets(s, "edge_ptr", v->edge_ptr, v->n_rows, v->n_edges));
    DT_TRY(check_i32(s, "scene_site", v->scene_site, v->n_scenes, v->n_sites));
    DT_TRY(check_i32(s, "row_track", v->row_track, v->n_rows, v->n_tracks));
    DT_TRY(check_f64(s, "frame_time", v->frame_time, v->n_frames));
    DT_TRY(check_f64(s, "pose", v->pose, 3 * v->n_rows));
    if (v->node != NULL) {
        DT_TRY(check_f32(s, "node", v->node, DT_NODE_FEATURES * v->n_rows));
    }
    DT_TRY(check_f32(s, "motion", v->motion, 4 * v->n_rows));
    if (v->accel_centred != NULL) {
        DT_TRY(check_f32(s, "accel_centred", v->accel_centred, v->n_rows));
    }
    if (v->edge != NULL) {
        DT_TRY(check_f32(s, "edge", v->edge, DT_EDGE_FEATURES * v->n_edges));
    }
    if (s->array[A_stop_distance].data != NULL) {
        DT_TRY(check_f32(s, "stop_distance", s->array[A_stop_distance].data, v->n_rows));
    }
    DT_TRY(check_packed(s));
    DT_TRY(check_all_sources(s));
    DT_TRY(check_tracks(s));
    return dt_roads_check(v, s->path, dt_store_forget, s);
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

static dt_status load_description(dt_store *s)
{
    char *text = NULL;
    size_t bytes = 0;
    dt_str name = {0};
    dt_str_addf(&name, "%s/store.json", s->path);
    dt_status st = dt_str_status(&name);
    if (st == DT_OK && !dt_fs_is_file(dt_str_text(&name))) {
        st = dt_fs_is_dir(s->path)
                 ? DT_FAIL(DT_EDATA, "%s has no store.json: not a store (make one with dtrain data import)", s->path)
                 : DT_FAIL(DT_ENOTFOUND, "there is no store at %s", s->path);
    }
    if (st == DT_OK) {
        st = dt_fs_read_all(dt_str_text(&name), SIZE_MAX / 2, &text, &bytes);
    }
    if (st == DT_OK) {
        st = read_description(s, text, bytes, dt_str_text(&name));
    }
    dt_free(text);
    dt_str_fini(&name);
    return st;
}

dt_status dt_store_open(const char *path, dt_store **out_p)
{
    return dt_store_open_cached(path, DT_STORE_CACHE_BYTES, out_p);
}

dt_status dt_store_open_cached(const char *path, uint64_t cache_bytes, dt_store **out_p)
{
    dt_store *s = dt_alloc(sizeof(*s));
    if (s == NULL || (s->path = dt_strdup(path)) == NULL) {
        dt_free(s);
        return DT_FAIL(DT_ENOMEM, "no memory to open %s", path);
    }
    dt_status st = dt_beneath_begin(s->path);
    if (st != DT_OK) {
        dt_free(s->path);
        dt_free(s);
        return st;
    }
    st = load_description(s);
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
        st = check_arrays(s);
    }
    if (st != DT_OK) {
        dt_store_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
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
    dt_beneath_end(s->path);
    dt_free(s->path);
    dt_free(s);
}

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
        return DT_FAIL(DT_EINVAL, "%s: %" PRId64 " rows from %" PRId64 " of array %" PRIu32 " are not there", s->path,
                       n, from, array);
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

int64_t dt_store_risk_count(const dt_store *s, int state)
{
    return s->count.risk[state];
}

const dt_feature_stat *dt_store_node_stat(const dt_store *s)
{
    return s->node_stat;
}

const dt_feature_stat *dt_store_edge_stat(const dt_store *s)
{
    return s->edge_stat;
}

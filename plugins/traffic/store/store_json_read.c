/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads store.json and checks its content. See store_opened.h.
 */
#include <config.h>

#include "traffic/text/json_reader.h"
#include "traffic/text/names.h"
#include "traffic/store/smooth.h"
#include "traffic/store/store_opened.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static const int64_t COUNT_MAX = INT64_C(1) << 53;
#define RADIUS_MOST_M 1e6
enum { NAME_BYTES = 520, NEIGHBOURS_MOST = 1 << 20 };
enum { SAW_RATE = 1, SAW_COUNTS = 2, SAW_SITES = 4, SAW_SCENES = 8, SAW_STATS = 16, SAW_ALL = 31, SAW_REGIONS = 32 };

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
    DT_TRY(dt_expect_array(j, what));
    dt_status st;
    while ((st = dt_expect_next_str(j, what, name, sizeof(name))) == DT_OK) {
        DT_TRY(add_name(list_p, n_p, cap_p, name));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_scenes(dt_json *j, dt_store *s)
{
    DT_TRY(dt_expect_array(j, "scenes"));
    dt_status st;
    while ((st = dt_expect_next_object(j, "a scene")) == DT_OK) {
        char key[DT_IN_KEY_BYTES], name[NAME_BYTES] = "";
        while ((st = dt_expect_key(j, key)) == DT_OK) {
            DT_TRY(strcmp(key, "name") == 0 ? dt_expect_str(j, key, name, sizeof(name)) : dt_json_skip(j));
        }
        DT_TRY_DONE(st);
        DT_TRY(add_name(&s->scene, &s->n_scenes, &s->scenes_cap, name));
    }
    s->seen |= SAW_SCENES;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_options(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "options"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        if (strcmp(key, "smooth_s") == 0) {
            DT_TRY(dt_expect_f64(j, key, &s->smooth_s, NULL));
        } else if (strcmp(key, "radius_m") == 0) {
            DT_TRY(dt_expect_f64(j, key, &s->radius_m, NULL));
        } else {
            DT_TRY(strcmp(key, "neighbours") == 0 ? dt_expect_i64(j, key, &s->neighbours) : dt_json_skip(j));
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_regions(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "regions"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        double *value = strcmp(key, "halo_m") == 0   ? &s->view.halo_m
                        : strcmp(key, "halo_s") == 0 ? &s->view.halo_s
                                                     : NULL;
        DT_TRY(value != NULL ? dt_expect_f64(j, key, value, NULL) : dt_json_skip(j));
    }
    s->seen |= SAW_REGIONS;
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
    DT_TRY(dt_expect_object(j, "counts"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        size_t i = 0;
        while (i < sizeof(field) / sizeof(field[0]) && strcmp(key, field[i].name) != 0) {
            i++;
        }
        DT_TRY(i < sizeof(field) / sizeof(field[0]) ? dt_expect_i64(j, key, field[i].value) : dt_json_skip(j));
    }
    s->seen |= SAW_COUNTS;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_risk(dt_json *j, dt_store *s)
{
    static const char *const name[4] = {"negative", "positive", "now", "unknown"};
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "risk"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        int i = 0;
        while (i < 4 && strcmp(key, name[i]) != 0) {
            i++;
        }
        DT_TRY(i < 4 ? dt_expect_i64(j, key, &s->count.risk[i]) : dt_json_skip(j));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_unknown(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "unknown"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        int k = 0;
        while (k < DT_N_UNKNOWN && strcmp(key, dt_unknown_name[k]) != 0) {
            k++;
        }
        DT_TRY(k < DT_N_UNKNOWN ? dt_expect_i64(j, key, &s->count.unknown[k]) : dt_json_skip(j));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_stat_list(dt_json *j, const char *what, dt_feature_stat *out, const char *const *names, int n)
{
    dt_status st;
    int i = 0;
    DT_TRY(dt_expect_array(j, what));
    for (; (st = dt_expect_next_object(j, what)) == DT_OK; i++) {
        char key[DT_IN_KEY_BYTES], name[NAME_BYTES] = "";
        if (i == n) {
            return dt_json_fail(j, "statistics.%s has more than %d features", what, n);
        }
        while ((st = dt_expect_key(j, key)) == DT_OK) {
            double *value = strcmp(key, "min") == 0    ? &out[i].min
                            : strcmp(key, "max") == 0  ? &out[i].max
                            : strcmp(key, "mean") == 0 ? &out[i].mean
                            : strcmp(key, "std") == 0  ? &out[i].std
                                                       : NULL;
            if (value != NULL) {
                DT_TRY(dt_expect_f64(j, key, value, NULL));
            } else {
                DT_TRY(strcmp(key, "name") == 0 ? dt_expect_str(j, key, name, sizeof(name)) : dt_json_skip(j));
            }
        }
        DT_TRY_DONE(st);
        if (strcmp(name, names[i]) != 0) {
            return dt_json_fail(j, "feature %d of statistics.%s is \"%s\", expected \"%s\"", i, what, name, names[i]);
        }
    }
    DT_TRY_DONE(st);
    return i == n ? DT_OK : dt_json_fail(j, "statistics.%s has %d features, expected %d", what, i, n);
}

static dt_status read_statistics(dt_json *j, dt_store *s)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    int seen = 0;
    DT_TRY(dt_expect_object(j, "statistics"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
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
        return dt_expect_str(j, key, s->format, sizeof(s->format));
    }
    if (strcmp(key, "version") == 0) {
        DT_TRY(dt_expect_i64(j, key, &s->version));
        if (s->version != DT_STORE_VERSION) { /* what follows may look different */
            return dt_json_fail(j, "store of version %" PRId64 ", this program reads version %d: import it again",
                                s->version, DT_STORE_VERSION);
        }
        return DT_OK;
    }
    if (strcmp(key, "frame_rate_hz") == 0) {
        s->seen |= SAW_RATE;
        return dt_expect_f64(j, key, &s->view.frame_rate_hz, NULL);
    }
    if (strcmp(key, "source") == 0) {
        return dt_expect_str(j, key, s->source, sizeof(s->source));
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
    if (strcmp(key, "regions") == 0) {
        return read_regions(j, s);
    }
    if (strcmp(key, "counts") == 0) {
        return read_counts(j, s);
    }
    if (strcmp(key, "unknown") == 0) {
        return read_unknown(j, s);
    }
    if (strcmp(key, "risk") == 0) {
        return read_risk(j, s);
    }
    if (strcmp(key, "statistics") == 0) {
        return read_statistics(j, s);
    }
    bool is_packing = false;
    DT_TRY(dt_packed_read_member(&s->packed, j, key, &is_packing));
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

static dt_status check_text(const char *file, const char *what, int64_t i, const char *name)
{
    return dt_has_control(name)
               ? DT_FAIL(DT_EDATA, "%s: the name of %s %" PRId64 ", \"%.200s\", has control characters", file, what, i,
                         name)
               : DT_OK;
}

/* Names denote scenes and sites in splits, merges, reports and tables: each for one, on one line. */
static dt_status check_names(const char *file, const char *what, char *const *list, int64_t n)
{
    dt_names seen = {.n = 0};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < n && st == DT_OK; i++) {
        bool is_new = false;
        int32_t number = 0;
        st = check_text(file, what, i, list[i]);
        if (st == DT_OK) {
            st = dt_names_add(&seen, list[i], &number, &is_new);
        }
        if (st == DT_OK && !is_new) {
            st = DT_FAIL(DT_EDATA, "%s: %s %" PRId64 " is called \"%.200s\", as %s %" PRId32 " is: names must differ",
                         file, what, i, list[i], what, number);
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
    dt_status st = dt_expect_object(j, "store.json");
    while (st == DT_OK && (st = dt_expect_key(j, key)) == DT_OK) {
        st = read_member(j, key, s);
    }
    if (st == DT_DONE) {
        st = dt_expect_end(j);
    }
    dt_json_close(j);
    DT_TRY(st);
    if (strcmp(s->format, DT_STORE_FORMAT) != 0 || s->version == 0) {
        return DT_FAIL(DT_EDATA, "%s: format is \"%s\", not a versioned \"%s\"", name, s->format, DT_STORE_FORMAT);
    }
    if ((s->seen & SAW_ALL) != SAW_ALL) {
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
    const bool has_regions = (s->seen & SAW_REGIONS) != 0;
    if (has_regions && !(s->view.halo_m >= s->radius_m && s->view.halo_m <= DT_CUT_HALO_MOST_M && s->view.halo_s >= 0 &&
                         s->view.halo_s <= DT_CUT_HALO_MOST_S)) {
        return DT_FAIL(DT_EDATA, "%s: regions.halo_m %g or regions.halo_s %g is outside [radius_m %g, %g], [0, %g]",
                       name, s->view.halo_m, s->view.halo_s, s->radius_m, DT_CUT_HALO_MOST_M, DT_CUT_HALO_MOST_S);
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
    for (int64_t i = 0; i < s->n_maps; i++) { /* maps may be called the same: scenarios that were moved have each one */
        DT_TRY(check_text(name, "map", i, s->map[i]));
    }
    return check_road_counts(s, name);
}

/* A store under its temporary name is not complete. */
static dt_status fail_not_complete(const char *path)
{
    static const char *const aside[] = {".partial", ".parts"};
    for (size_t i = 0; i < sizeof(aside) / sizeof(aside[0]); i++) {
        dt_str name = {0};
        dt_str_addf(&name, "%.*s%s", (int)(strlen(path) - (path[0] != '\0' && path[strlen(path) - 1] == '/')), path,
                    aside[i]);
        const bool is_there = dt_str_status(&name) == DT_OK && dt_fs_is_dir(dt_str_text(&name));
        dt_str_fini(&name);
        if (is_there) {
            return DT_FAIL(DT_ENOTFOUND,
                           "there is no store at %s yet: %s%s is still being written, or was left by a "
                           "process that was stopped",
                           path, path, aside[i]);
        }
    }
    DT_TRY(dt_fs_check_access(path));
    return DT_FAIL(DT_ENOTFOUND, "there is no store at %s", path);
}

/* The path is no folder. */
static dt_status fail_not_a_folder(const char *path)
{
    switch (dt_fs_kind_of(path)) {
    case DT_FS_FILE:
        return DT_FAIL(DT_EDATA, "%s is a file, and a store is a folder (make one with dtrain data import)", path);
    case DT_FS_LINK:
        return DT_FAIL(DT_ENOTFOUND, "%s is a link that does not point to a folder: there is no store", path);
    case DT_FS_OTHER:
        return DT_FAIL(DT_EDATA, "%s is a device, a pipe or a socket, and a store is a folder", path);
    default:
        return fail_not_complete(path);
    }
}

dt_status dt_store_json_read(dt_store *s)
{
    char *text = NULL;
    size_t bytes = 0;
    dt_str name = {0};
    dt_str_addf(&name, "%s/store.json", s->path);
    dt_status st = dt_str_status(&name);
    if (st == DT_OK && !dt_fs_is_file(dt_str_text(&name))) {
        st = dt_fs_is_dir(s->path)
                 ? DT_FAIL(DT_EDATA, "%s has no store.json: not a store (make one with dtrain data import)", s->path)
                 : fail_not_a_folder(s->path);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/merge_split.h"
#include "traffic/store/cut.h"
#include "traffic/text/names.h"
#include "dtrain/random.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STOP = 7, CONTROLLED = 8 }; /* node features */

/* ---- copying ----------------------------------------------------------------------------------------------------- */

typedef struct copy {
    dt_store_writer *writer;
    dt_vehicle *vehicle; /* [cap] */
    float *node;         /* [cap,9] */
    int64_t cap;
    const dt_store *map_of; /* whose map was copied last, its number there and here */
    int32_t map_there, map_here;
} copy;

/* A store with the options of s. */
static dt_status copy_begin(copy *c, const dt_store *s, const char *out, const char *what, const dt_packing *packing)
{
    const dt_store_meta meta = {.frame_rate_hz = dt_store_view_of(s)->frame_rate_hz,
                                .radius_m = dt_store_radius_m(s),
                                .k_max = dt_store_neighbours(s),
                                .smooth_s = dt_store_smooth_s(s),
                                .source = dt_store_source(s),
                                .options = what,
                                .packing = packing != NULL ? *packing : (dt_packing){0}};
    return dt_store_create(out, &meta, &c->writer);
}

static void copy_fini(copy *c)
{
    dt_store_destroy(c->writer);
    dt_free(c->vehicle);
    dt_free(c->node);
    *c = (copy){.writer = NULL};
}

static dt_status copy_frame(copy *c, const dt_store *s, int64_t frame, int64_t number)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t *track_id = dt_store_track_ids(s);
    const float *stop = dt_store_stop_distance(s);
    const int64_t begin = v->frame_row[frame], n = v->frame_row[frame + 1] - begin;
    if (n > c->cap) {
        dt_free(c->vehicle);
        dt_free(c->node);
        c->vehicle = dt_alloc_n((size_t)n, sizeof(*c->vehicle));
        c->node = dt_alloc_n((size_t)n, DT_NODE_FEATURES * sizeof(*c->node));
        c->cap = n;
        if (c->vehicle == NULL || c->node == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRId64 " vehicles", n);
        }
    }
    DT_TRY(dt_store_read(s, DT_STORE_NODE, begin, n, c->node));
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = begin + i;
        const double *pose = v->pose + 3 * r;
        const float *motion = v->motion + 4 * r, *node = c->node + DT_NODE_FEATURES * i;
        c->vehicle[i] = (dt_vehicle){.x = pose[0],
                                     .y = pose[1],
                                     .heading = pose[2],
                                     .speed = (double)motion[0],
                                     .accel = (double)motion[1],
                                     .length = (double)motion[2],
                                     .width = (double)motion[3],
                                     .stop_distance = (double)(stop != NULL ? stop[r] : node[STOP]),
                                     .id = track_id[v->row_track[r]],
                                     .controlled = node[CONTROLLED] != 0};
    }
    return dt_store_frame(c->writer, number, v->frame_time[frame], c->vehicle, (uint32_t)n);
}

/* The scene's map goes with it, once. */
static dt_status copy_map(copy *c, const dt_store *s, int64_t scene)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int32_t map = v->n_maps > 0 ? v->scene_map[scene] : -1;
    if (map < 0) {
        return DT_OK;
    }
    if (c->map_of != s || c->map_there != map) { /* as it is for the first of many scenes alone */
        dt_roads roads;
        DT_TRY(dt_roads_of_view(v, map, &roads));
        const dt_status st = dt_store_map(c->writer, v->map[map], &roads, &c->map_here);
        dt_roads_fini(&roads);
        DT_TRY(st);
        c->map_of = s;
        c->map_there = map;
    }
    return dt_store_scene_map(c->writer, c->map_here);
}

/* Frames [from, to) of the store, which are of this scene; none of them may have a row: then there is nothing. */
static dt_status copy_scene(copy *c, const dt_store *s, int64_t scene, int64_t from, int64_t to)
{
    const dt_store_view *v = dt_store_view_of(s);
    if (from >= to || v->frame_row[from] == v->frame_row[to]) {
        return DT_OK;
    }
    DT_TRY(dt_store_scene_begin(c->writer));
    DT_TRY(copy_map(c, s, scene));
    for (int64_t f = from; f < to; f++) {
        DT_TRY(copy_frame(c, s, f, f - from));
    }
    return dt_store_scene_end(c->writer, v->scene[scene], v->site[v->scene_site[scene]]);
}

static dt_status copy_commit(copy *c, const char *out, dt_str *notes)
{
    dt_store_counts n;
    dt_store_writer_counts(c->writer, &n);
    if (n.rows == 0) {
        return DT_FAIL(DT_EDATA, "%s would hold no row: choose other parts", out);
    }
    DT_TRY(dt_store_commit(c->writer));
    dt_str_addf(notes, "%s: %" PRId64 " scenes, %" PRId64 " frames, %" PRId64 " rows\n", out, n.scenes, n.frames,
                n.rows);
    return DT_OK;
}

/* ---- merge ------------------------------------------------------------------------------------------------------- */

static dt_status check_same(const char *what, double first, double second, const char *const path[2])
{
    return first == second ? DT_OK
                           : DT_FAIL(DT_EDATA, "%s is %g in %s and %g in %s: a store has one; import one of them again",
                                     what, first, path[0], second, path[1]);
}

/* Scenes of the two are of different recordings. first: names of the scenes before, with the store of each. */
static dt_status add_scenes(dt_names *names, const dt_store *s)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int32_t before = names->n;
    for (int64_t i = 0; i < v->n_scenes; i++) {
        char name[1024];
        int32_t number = 0;
        bool is_new = false;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(v->scene[i], "#"), v->scene[i]);
        DT_TRY(dt_names_add(names, name, &number, &is_new));
        if (!is_new && number < before) {
            return DT_FAIL(DT_EDATA,
                           "%s: scene %s is in a store before it too: the same recording twice, or import it again "
                           "from a file of another name",
                           dt_store_path(s), name);
        }
    }
    return DT_OK;
}

static dt_status merge_one(copy *c, const dt_store *s, const char *first, const double options[4], dt_names *names)
{
    const dt_store_view *v = dt_store_view_of(s);
    const char *const path[2] = {first, dt_store_path(s)};
    DT_TRY(dt_cut_check_whole(s, "merge"));
    DT_TRY(check_same("the frame rate", options[0], v->frame_rate_hz, path));
    DT_TRY(check_same("radius_m", options[1], dt_store_radius_m(s), path));
    DT_TRY(check_same("neighbours", options[2], dt_store_neighbours(s), path));
    DT_TRY(check_same("smooth_s", options[3], dt_store_smooth_s(s), path));
    DT_TRY(add_scenes(names, s));
    for (int64_t i = 0; i < v->n_scenes; i++) {
        DT_TRY(copy_scene(c, s, i, v->scene_frame[i], v->scene_frame[i + 1]));
    }
    return DT_OK;
}

static dt_status merge_stores(copy *c, const char *const *store, uint32_t n, const char *out, const dt_packing *packing,
                              dt_names *names)
{
    double options[4] = {0};
    for (uint32_t i = 0; i < n; i++) {
        dt_store *s = NULL;
        DT_TRY(dt_store_open(store[i], &s));
        dt_status st = DT_OK;
        if (i == 0) {
            options[0] = dt_store_view_of(s)->frame_rate_hz;
            options[1] = dt_store_radius_m(s);
            options[2] = dt_store_neighbours(s);
            options[3] = dt_store_smooth_s(s);
            st = copy_begin(c, s, out, "merged", packing);
        }
        if (st == DT_OK) {
            st = merge_one(c, s, store[0], options, names);
        }
        dt_store_close(s);
        c->map_of = NULL; /* the next may lie at the same address */
        DT_TRY(st);
    }
    return DT_OK;
}

dt_status dt_data_merge(const char *const *store, uint32_t n, const char *out, const dt_packing *packing, dt_str *notes)
{
    copy c = {.writer = NULL};
    dt_names names = {.n = 0};
    DT_TRY(dt_store_check_out(out));
    dt_status st = merge_stores(&c, store, n, out, packing, &names);
    if (st == DT_OK) {
        st = copy_commit(&c, out, notes);
    }
    copy_fini(&c);
    dt_names_fini(&names);
    return st;
}

/* Below n >= 1; of more than words can express among the first of them. */
static int64_t draw_below(dt_random *random, int64_t n)
{
    return (int64_t)dt_random_below(random, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
}

/* ---- which scenes ------------------------------------------------------------------------------------------------ */

typedef struct groups {
    dt_names names; /* of recordings: scenes' names before '#' */
    int32_t *of;    /* [n_scenes] */
    int64_t *rows;  /* [names.n] */
    int32_t *order; /* [names.n] a random permutation */
} groups;

static void groups_fini(groups *g)
{
    dt_names_fini(&g->names);
    dt_free(g->of);
    dt_free(g->rows);
    dt_free(g->order);
}

static dt_status groups_find(groups *g, const dt_store *s, uint64_t seed)
{
    const dt_store_view *v = dt_store_view_of(s);
    g->of = dt_alloc_n((size_t)v->n_scenes, sizeof(*g->of));
    g->rows = dt_alloc_n((size_t)v->n_scenes, sizeof(*g->rows));
    g->order = dt_alloc_n((size_t)v->n_scenes, sizeof(*g->order));
    if (g->of == NULL || g->rows == NULL || g->order == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " scenes", v->n_scenes);
    }
    for (int64_t i = 0; i < v->n_scenes; i++) {
        char name[1024];
        bool is_new = false;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(v->scene[i], "#"), v->scene[i]);
        DT_TRY(dt_names_add(&g->names, name, &g->of[i], &is_new));
        g->rows[g->of[i]] += v->frame_row[v->scene_frame[i + 1]] - v->frame_row[v->scene_frame[i]];
    }
    dt_random random;
    dt_random_init(&random, seed, 0);
    for (int32_t i = 0; i < g->names.n; i++) { /* Fisher and Yates */
        const int32_t k = (int32_t)draw_below(&random, (int64_t)i + 1);
        g->order[i] = g->order[k];
        g->order[k] = i;
    }
    return DT_OK;
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

static dt_status scenes_of_site(copy *c, const dt_store *s, int32_t site)
{
    const dt_store_view *v = dt_store_view_of(s);
    for (int64_t i = 0; i < v->n_scenes; i++) {
        if (v->scene_site[i] == site) {
            DT_TRY(copy_scene(c, s, i, v->scene_frame[i], v->scene_frame[i + 1]));
        }
    }
    return DT_OK;
}

/* Recordings in a random order, until the first part has its share of the rows; the rest is the second. */
static dt_status scenes_by_share(copy *c, const dt_store *s, const dt_split_options *opt, int part)
{
    const dt_store_view *v = dt_store_view_of(s);
    groups g = {.of = NULL};
    dt_status st = groups_find(&g, s, opt->seed);
    if (st == DT_OK && g.names.n < 2) {
        st = DT_FAIL(DT_EDATA, "%s contains only one recording: split it by time", dt_store_path(s));
    }
    int64_t taken = 0;
    for (int32_t k = 0; k < g.names.n && st == DT_OK; k++) {
        int64_t *rows = &g.rows[g.order[k]];
        const bool is_first =
            k == 0 || (k + 1 < g.names.n && (double)taken + 0.5 * (double)*rows < opt->share * (double)v->n_rows);
        taken += *rows;
        *rows = is_first ? 0 : 1; /* the part, from here on */
    }
    for (int64_t i = 0; i < v->n_scenes && st == DT_OK; i++) {
        if (g.rows[g.of[i]] == part) {
            st = copy_scene(c, s, i, v->scene_frame[i], v->scene_frame[i + 1]);
        }
    }
    groups_fini(&g);
    return st;
}

/* Of every scene the frames before or after the same share of it. */
static dt_status scenes_by_time(copy *c, const dt_store *s, const dt_split_options *opt, int part)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t gap = (int64_t)rint(opt->gap_s * v->frame_rate_hz);
    for (int64_t i = 0; i < v->n_scenes; i++) {
        const int64_t begin = v->scene_frame[i], end = v->scene_frame[i + 1];
        const int64_t cut = begin + (int64_t)rint(opt->share * (double)(end - begin));
        const int64_t first = gap < end - cut ? cut + gap : end;
        DT_TRY(part == 0 ? copy_scene(c, s, i, begin, cut) : copy_scene(c, s, i, first, end));
    }
    return DT_OK;
}

static dt_status check_texts(const dt_str *a, const dt_str *b, const dt_str *c)
{
    DT_TRY(dt_str_status(a));
    DT_TRY(dt_str_status(b));
    return dt_str_status(c);
}

/* folder: where it is written; out: what the folder will be called. */
static dt_status write_part(const dt_store *s, const char *folder, const char *out, const dt_split_options *opt,
                            int part, dt_str *notes)
{
    dt_str name = {0}, path = {0}, later = {0};
    copy c = {.writer = NULL};
    if (opt->by == DT_SPLIT_SITE) {
        dt_fs_encode_name(dt_store_view_of(s)->site[part], &name);
    } else {
        dt_str_add(&name, part == 0 ? "first" : "second");
    }
    dt_str_addf(&path, "%s/%s", folder, dt_str_text(&name));
    dt_str_addf(&later, "%s/%s", out, dt_str_text(&name));
    dt_status st = check_texts(&name, &path, &later);
    if (st == DT_OK) {
        st = copy_begin(&c, s, dt_str_text(&path), "a part", &opt->packing);
    }
    if (st == DT_OK) {
        st = opt->by == DT_SPLIT_SITE    ? scenes_of_site(&c, s, part)
             : opt->by == DT_SPLIT_SCENE ? scenes_by_share(&c, s, opt, part)
                                         : scenes_by_time(&c, s, opt, part);
    }
    if (st == DT_OK) {
        st = copy_commit(&c, dt_str_text(&later), notes);
    }
    copy_fini(&c);
    dt_str_fini(&name);
    dt_str_fini(&path);
    dt_str_fini(&later);
    return st;
}

/* To a temporary folder, then renamed: there are all parts or none. */
static dt_status split_store(const dt_store *s, dt_staging *aside, const dt_split_options *opt, dt_str *notes)
{
    const int n = opt->by == DT_SPLIT_SITE ? (int)dt_store_view_of(s)->n_sites : 2;
    for (int part = 0; part < n; part++) {
        DT_TRY(write_part(s, dt_staging_path(aside), dt_staging_out(aside), opt, part, notes));
    }
    DT_TRY(dt_fs_sync_dir(dt_staging_path(aside)));
    return dt_staging_commit(aside);
}

dt_status dt_data_split(const char *store, const char *out, const dt_split_options *opt, dt_str *notes)
{
    dt_store *s = NULL;
    if (!(opt->share > 0 && opt->share < 1)) {
        return DT_FAIL(DT_EINVAL, "a share of %g is outside (0, 1)", opt->share);
    }
    dt_staging *aside = NULL;
    DT_TRY(dt_staging_check(out, DT_STAGING_FOLDER));
    DT_TRY(dt_store_open(store, &s));
    dt_status st = dt_cut_check_whole(s, "split");
    if (st == DT_OK) {
        st = dt_staging_open(out, DT_STAGING_FOLDER, &aside);
    }
    if (st == DT_OK) {
        st = split_store(s, aside, opt, notes);
    }
    dt_staging_close(aside);
    dt_store_close(s);
    return st;
}

/* ---- sample ------------------------------------------------------------------------------------------------------ */

static dt_status sample_scenes(copy *c, const dt_store *s, const dt_sample_options *opt, const bool *is_chosen)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t most = opt->seconds > 0 ? (int64_t)rint(opt->seconds * v->frame_rate_hz) + 1 : INT64_MAX;
    for (int64_t i = 0; i < v->n_scenes; i++) {
        dt_random random;
        const int64_t begin = v->scene_frame[i], n = v->scene_frame[i + 1] - begin;
        const int64_t length = n < most ? n : most;
        dt_random_init(&random, opt->seed, (uint64_t)i + 1); /* of the scene, whichever others are chosen */
        const int64_t from = begin + draw_below(&random, n - length + 1);
        DT_TRY(is_chosen[i] ? copy_scene(c, s, i, from, from + length) : DT_OK);
    }
    return DT_OK;
}

/* So many scenes of n, each as likely: Fisher and Yates, stopped early. */
static dt_status choose_scenes(int64_t n, const dt_sample_options *opt, bool *is_chosen)
{
    const int64_t wanted = opt->scenes > 0 && opt->scenes < n ? opt->scenes : n;
    int64_t *order = dt_alloc_n((size_t)n, sizeof(*order));
    dt_random random;
    if (order == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " scenes", n);
    }
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    dt_random_init(&random, opt->seed, 0);
    for (int64_t i = 0; i < wanted; i++) {
        const int64_t k = i + draw_below(&random, n - i), scene = order[k];
        order[k] = order[i];
        is_chosen[scene] = true;
    }
    dt_free(order);
    return DT_OK;
}

static dt_status sample_store(const dt_store *s, const char *out, const dt_sample_options *opt, dt_str *notes)
{
    const int64_t n = dt_store_view_of(s)->n_scenes;
    copy c = {.writer = NULL};
    bool *is_chosen = dt_alloc_n((size_t)n, sizeof(*is_chosen));
    dt_status st = is_chosen == NULL ? DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " scenes", n)
                                     : choose_scenes(n, opt, is_chosen);
    if (st == DT_OK) {
        st = copy_begin(&c, s, out, "a sample", &opt->packing);
    }
    if (st == DT_OK) {
        st = sample_scenes(&c, s, opt, is_chosen);
    }
    if (st == DT_OK) {
        st = copy_commit(&c, out, notes);
    }
    copy_fini(&c);
    dt_free(is_chosen);
    return st;
}

dt_status dt_data_sample(const char *store, const char *out, const dt_sample_options *opt, dt_str *notes)
{
    dt_store *s = NULL;
    if (!(opt->scenes >= 0 && opt->seconds >= 0)) {
        return DT_FAIL(DT_EINVAL, "%" PRId64 " scenes of %g s: neither may be negative", opt->scenes, opt->seconds);
    }
    DT_TRY(dt_store_check_out(out));
    DT_TRY(dt_store_open(store, &s));
    dt_status st = dt_cut_check_whole(s, "sample");
    if (st == DT_OK) {
        st = sample_store(s, out, opt, notes);
    }
    dt_store_close(s);
    return st;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/cut.h"
#include "traffic/map/bounds.h"
#include "traffic/text/names.h"
#include "traffic/store/regions.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 1024 /* along each side of a scene at most */, NAME_BYTES = 600 };

/* Why a row is there: bits until all are known. */
enum { IS_CORE = 1, IS_OWN = 2, IS_SEEN = 4, IS_BESIDE = 8, IS_PAST = 16 };

/* One scene while its regions are looked for. */
typedef struct halo {
    const dt_store_view *v;
    int64_t begin, n; /* first row of the scene, and how many */
    int64_t frame0;   /* its first frame */
    int64_t span;     /* frames of halo_s */
    double halo_m;
    uint8_t *why, *role; /* [n] */
    int32_t *frame;      /* [n] within the scene */
    int32_t first_track, n_tracks;
    int32_t *last; /* [n_tracks] frame of the track's row that was met last */
    /* a grid of one frame, of the rows that others are looked for around */
    double least[2], cell_m;
    int32_t cells[2];
    int32_t *head; /* [cells] row of the scene, -1: none */
    int32_t *next; /* [rows of the largest frame] */
} halo;

static void halo_fini(halo *h)
{
    dt_free(h->why);
    dt_free(h->role);
    dt_free(h->frame);
    dt_free(h->last);
    dt_free(h->head);
    dt_free(h->next);
}

static void halo_grid(halo *h)
{
    dt_bounds all = {.has_any = false};
    for (int64_t r = h->begin; r < h->begin + h->n; r++) {
        dt_bounds_add(&all, h->v->pose + 3 * r);
    }
    const double wide = fmax(all.most[0] - all.least[0], all.most[1] - all.least[1]);
    h->cell_m = fmax(h->halo_m, wide / CELLS);
    for (int k = 0; k < 2; k++) {
        h->least[k] = all.least[k];
        h->cells[k] = (int32_t)((all.most[k] - all.least[k]) / h->cell_m) + 1;
    }
}

static dt_status halo_init(halo *h, const dt_store *s, int64_t scene, const dt_cut_options *opt)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t frame0 = v->scene_frame[scene], end = v->scene_frame[scene + 1];
    *h = (halo){.v = v,
                .begin = v->frame_row[frame0],
                .n = v->frame_row[end] - v->frame_row[frame0],
                .frame0 = frame0,
                .span = (int64_t)ceil(opt->halo_s * v->frame_rate_hz - 1e-6),
                .halo_m = opt->halo_m};
    int64_t most = 1;
    int32_t first = INT32_MAX, last = -1;
    if (h->n > INT32_MAX || end - frame0 > INT32_MAX / 2) {
        return DT_FAIL(DT_EDATA, "scene %s has %" PRId64 " rows, more than %d: split it by time first", v->scene[scene],
                       h->n, INT32_MAX);
    }
    for (int64_t f = frame0; f < end; f++) {
        const int64_t n = v->frame_row[f + 1] - v->frame_row[f];
        most = n > most ? n : most;
    }
    for (int64_t r = h->begin; r < h->begin + h->n; r++) {
        first = v->row_track[r] < first ? v->row_track[r] : first;
        last = v->row_track[r] > last ? v->row_track[r] : last;
    }
    h->first_track = first;
    h->n_tracks = last - first + 1;
    halo_grid(h);
    const size_t cells = (size_t)h->cells[0] * (size_t)h->cells[1];
    h->why = dt_alloc_n((size_t)h->n, sizeof(*h->why));
    h->role = dt_alloc_n((size_t)h->n, sizeof(*h->role));
    h->frame = dt_alloc_n((size_t)h->n, sizeof(*h->frame));
    h->last = dt_alloc_n((size_t)h->n_tracks, sizeof(*h->last));
    h->head = dt_alloc_n(cells, sizeof(*h->head));
    h->next = dt_alloc_n((size_t)most, sizeof(*h->next));
    if (h->why == NULL || h->role == NULL || h->frame == NULL || h->last == NULL || h->head == NULL ||
        h->next == NULL) {
        halo_fini(h);
        return DT_FAIL(DT_ENOMEM, "no memory to cut %" PRId64 " rows", h->n);
    }
    for (size_t i = 0; i < cells; i++) {
        h->head[i] = -1;
    }
    for (int64_t f = frame0; f < end; f++) {
        for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
            h->frame[r - h->begin] = (int32_t)(f - frame0);
        }
    }
    return DT_OK;
}

/* ---- along the tracks -------------------------------------------------------------------------------------------- */

/* Rows of a track that lie at most span frames before one that has a bit of from get the bit to. */
static void mark_before(halo *h, int from, int to)
{
    const int32_t *track = h->v->row_track + h->begin;
    for (int32_t t = 0; t < h->n_tracks; t++) {
        h->last[t] = INT32_MAX;
    }
    for (int64_t i = h->n - 1; i >= 0; i--) {
        int32_t *last = &h->last[track[i] - h->first_track];
        if (h->why[i] & from) {
            *last = h->frame[i];
        }
        if (*last != INT32_MAX && *last - h->frame[i] <= h->span) {
            h->why[i] |= (uint8_t)to;
        }
    }
}

static void mark_after(halo *h, int from, int to)
{
    const int32_t *track = h->v->row_track + h->begin;
    for (int32_t t = 0; t < h->n_tracks; t++) {
        h->last[t] = -1;
    }
    for (int64_t i = 0; i < h->n; i++) {
        int32_t *last = &h->last[track[i] - h->first_track];
        if (h->why[i] & from) {
            *last = h->frame[i];
        }
        if (*last >= 0 && h->frame[i] - *last <= h->span) {
            h->why[i] |= (uint8_t)to;
        }
    }
}

/* ---- around the rows --------------------------------------------------------------------------------------------- */

static int32_t cell_index(const halo *h, const double *pose, int axis)
{
    return (int32_t)((pose[axis] - h->least[axis]) / h->cell_m);
}

static int32_t *cell_head(const halo *h, int32_t x, int32_t y)
{
    return &h->head[(size_t)y * (size_t)h->cells[0] + (size_t)x];
}

/* Bits of row i by the rows of the grid around it. */
static int find_neighbours(const halo *h, int64_t first, int64_t i)
{
    const double *pose = h->v->pose + 3 * (h->begin + i);
    const int32_t x = cell_index(h, pose, 0), y = cell_index(h, pose, 1);
    int bits = 0;
    for (int32_t cy = y > 0 ? y - 1 : 0; cy <= y + 1 && cy < h->cells[1]; cy++) {
        for (int32_t cx = x > 0 ? x - 1 : 0; cx <= x + 1 && cx < h->cells[0]; cx++) {
            for (int32_t k = *cell_head(h, cx, cy); k >= 0 && !(bits & IS_BESIDE); k = h->next[k - first]) {
                const double *other = h->v->pose + 3 * (h->begin + k);
                const double dx = other[0] - pose[0], dy = other[1] - pose[1];
                if (dx * dx + dy * dy <= h->halo_m * h->halo_m) {
                    bits |= h->why[k] & IS_CORE ? IS_SEEN | IS_BESIDE : IS_SEEN;
                }
            }
        }
    }
    return bits;
}

/* Rows [first, end) of the scene are of one frame. */
static void mark_frame(halo *h, int64_t first, int64_t end)
{
    bool has_any = false;
    for (int64_t i = first; i < end; i++) {
        if (h->why[i] & IS_OWN) {
            const double *pose = h->v->pose + 3 * (h->begin + i);
            int32_t *head = cell_head(h, cell_index(h, pose, 0), cell_index(h, pose, 1));
            h->next[i - first] = *head;
            *head = (int32_t)i;
            has_any = true;
        }
    }
    for (int64_t i = first; i < end && has_any; i++) {
        if (!(h->why[i] & IS_CORE)) {
            h->why[i] |= (uint8_t)find_neighbours(h, first, i);
        }
    }
    for (int64_t i = first; i < end && has_any; i++) {
        if (h->why[i] & IS_OWN) {
            const double *pose = h->v->pose + 3 * (h->begin + i);
            *cell_head(h, cell_index(h, pose, 0), cell_index(h, pose, 1)) = -1;
        }
    }
}

/* No frame is empty that was not before the cut, within the span after a core row. */
static void mark_others(halo *h)
{
    int64_t last = -1; /* frame of a core row */
    for (int64_t i = 0, end; i < h->n; i = end) {
        int why = 0;
        for (end = i; end < h->n && h->frame[end] == h->frame[i]; end++) {
            why |= h->why[end];
        }
        last = why & IS_CORE ? h->frame[i] : last;
        if (why == 0 && last >= 0 && h->frame[i] - last <= h->span) {
            h->why[i] = IS_SEEN;
        }
    }
}

/* The role of every row in region k. */
static void mark_region(halo *h, const dt_regions *r, int32_t k)
{
    for (int64_t i = 0; i < h->n; i++) {
        h->why[i] = r->of[i] == k ? IS_CORE | IS_OWN : 0;
    }
    mark_before(h, IS_CORE, IS_OWN);
    mark_after(h, IS_CORE, IS_OWN);
    for (int64_t i = 0, end; i < h->n; i = end) {
        for (end = i + 1; end < h->n && h->frame[end] == h->frame[i]; end++) {
        }
        mark_frame(h, i, end);
    }
    mark_before(h, IS_BESIDE, IS_PAST);
    mark_others(h);
    for (int64_t i = 0; i < h->n; i++) {
        h->role[i] = h->why[i] & IS_CORE ? DT_CUT_CORE : h->why[i] != 0 ? DT_CUT_HALO : DT_CUT_OUT;
    }
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

typedef struct job {
    const dt_store *s;
    const dt_cut_options *opt;
    dt_store_writer *w;
    dt_names names;
    int32_t *map; /* [n_maps] numbers in w */
    int64_t n_core;
} job;

static dt_status add_region(job *j, halo *h, int64_t scene, const dt_regions *r, int32_t k)
{
    const dt_store_view *v = dt_store_view_of(j->s);
    char name[NAME_BYTES];
    int32_t unused = 0;
    bool is_new = false;
    const int n = snprintf(name, sizeof(name), "%s%sr%" PRId32, v->scene[scene],
                           strchr(v->scene[scene], '#') != NULL ? "." : "#", k);
    if (n < 0 || (size_t)n >= sizeof(name)) {
        return DT_FAIL(DT_EDATA, "the name of scene %.60s... is too long for the names of its regions",
                       v->scene[scene]);
    }
    DT_TRY(dt_names_add(&j->names, name, &unused, &is_new));
    if (!is_new) {
        return DT_FAIL(DT_EDATA, "two regions would be called %s: rename scene %s", name, v->scene[scene]);
    }
    mark_region(h, r, k);
    const int32_t map = v->n_maps > 0 && v->scene_map[scene] >= 0 ? j->map[v->scene_map[scene]] : -1;
    return dt_store_add_cut(j->w, j->s, scene, h->role, map, name);
}

static dt_status cut_scene(job *j, int64_t scene)
{
    const dt_store_view *v = dt_store_view_of(j->s);
    halo h;
    dt_regions r = {0};
    if (v->frame_row[v->scene_frame[scene]] == v->frame_row[v->scene_frame[scene + 1]]) {
        return DT_OK; /* no vehicle is in it */
    }
    DT_TRY(halo_init(&h, j->s, scene, j->opt));
    const double *pose = v->pose + 3 * h.begin;
    dt_status st = j->opt->regions > 0 ? dt_regions_make_halves(pose, h.n, (int32_t)j->opt->regions, j->opt->halo_m, &r)
                                       : dt_regions_make_tiles(pose, h.n, j->opt->tile_m, &r);
    if (st != DT_OK) {
        st = DT_CONTEXT(st, "scene %s", v->scene[scene]);
    }
    for (int32_t k = 0; k < r.n && st == DT_OK; k++) {
        st = add_region(j, &h, scene, &r, k);
    }
    j->n_core += h.n;
    dt_regions_fini(&r);
    halo_fini(&h);
    return st;
}

/* All maps, each once, in their order. */
static dt_status copy_maps(job *j)
{
    const dt_store_view *v = dt_store_view_of(j->s);
    j->map = dt_alloc_n((size_t)v->n_maps + 1, sizeof(*j->map));
    if (j->map == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " maps", v->n_maps);
    }
    for (int64_t i = 0; i < v->n_maps; i++) {
        dt_roads roads;
        DT_TRY(dt_roads_of_view(v, i, &roads));
        const dt_status st = dt_store_map(j->w, v->map[i], &roads, &j->map[i]);
        dt_roads_fini(&roads);
        DT_TRY(st);
    }
    return DT_OK;
}

static dt_status check_options(const dt_store *s, const dt_cut_options *o)
{
    const double radius = dt_store_radius_m(s);
    DT_TRY(dt_cut_check_whole(s, "cut"));
    if ((o->regions > 0) == (o->tile_m > 0) || o->regions < 0 || !(o->tile_m >= 0)) {
        return DT_FAIL(DT_EINVAL, "regions %" PRId64 " and tile_m %g: exactly one of them must be above 0", o->regions,
                       o->tile_m);
    }
    if (o->regions > DT_REGIONS_MAX) {
        return DT_FAIL(DT_EINVAL, "%" PRId64 " regions, at most %d can be", o->regions, DT_REGIONS_MAX);
    }
    if (!(o->halo_m >= radius && o->halo_m <= DT_CUT_HALO_MOST_M)) {
        return DT_FAIL(DT_EINVAL,
                       "a halo of %g m is outside [%g, %g]: vehicles see as far as radius_m %g of the store, and again "
                       "as far through each layer of a graph network",
                       o->halo_m, radius, DT_CUT_HALO_MOST_M, radius);
    }
    if (!(o->halo_s >= 0 && o->halo_s <= DT_CUT_HALO_MOST_S)) {
        return DT_FAIL(DT_EINVAL, "a halo of %g s is outside [0, %g]", o->halo_s, DT_CUT_HALO_MOST_S);
    }
    return o->tile_m > 0 && o->tile_m < o->halo_m
               ? DT_FAIL(DT_EINVAL, "tiles of %g m are smaller than the halo of %g m: choose larger ones", o->tile_m,
                         o->halo_m)
               : DT_OK;
}

static dt_status cut_store(job *j, const char *out, dt_str *notes)
{
    const dt_store_view *v = dt_store_view_of(j->s);
    const dt_store_meta meta = {.role = DT_STORE_JOINED,
                                .frame_rate_hz = v->frame_rate_hz,
                                .radius_m = dt_store_radius_m(j->s),
                                .k_max = dt_store_neighbours(j->s),
                                .smooth_s = dt_store_smooth_s(j->s),
                                .source = dt_store_source(j->s),
                                .options = "regions",
                                .packing = j->opt->packing,
                                .halo_m = j->opt->halo_m,
                                .halo_s = j->opt->halo_s};
    dt_store_counts n;
    DT_TRY(check_options(j->s, j->opt));
    DT_TRY(dt_store_create(out, &meta, &j->w));
    DT_TRY(copy_maps(j));
    for (int64_t i = 0; i < v->n_scenes; i++) {
        DT_TRY(cut_scene(j, i));
    }
    DT_TRY(dt_store_commit(j->w));
    dt_store_writer_counts(j->w, &n);
    dt_str_addf(notes,
                "%s: %" PRId64 " regions of %" PRId64 " scenes, %" PRId64 " frames, %" PRId64
                " rows of regions and %" PRId64 " of halos\n",
                out, n.scenes, v->n_scenes, n.frames, j->n_core, n.rows - j->n_core);
    return DT_OK;
}

dt_status dt_data_cut(const char *store, const char *out, const dt_cut_options *opt, dt_str *notes)
{
    dt_store *s = NULL;
    DT_TRY(dt_store_check_out(out));
    DT_TRY(dt_store_open(store, &s));
    job j = {.s = s, .opt = opt};
    const dt_status st = cut_store(&j, out, notes);
    dt_store_destroy(j.w);
    dt_names_fini(&j.names);
    dt_free(j.map);
    dt_store_close(s);
    return st;
}

dt_status dt_cut_check_whole(const dt_store *s, const char *what)
{
    return dt_store_view_of(s)->core == NULL ? DT_OK
                                             : DT_FAIL(DT_EDATA,
                                                       "%s is a store of regions, whose halos repeat vehicles: %s the "
                                                       "store it was cut from, and cut last",
                                                       dt_store_path(s), what);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Every check of the arrays that lets readers trust an index. See store_opened.h.
 */
#include <config.h>

#include "traffic/store/store_opened.h"
#include "traffic/store/store_roads.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>

enum { ROW_BYTES = 100, PIECE_ROWS = 4096, SHARED_ROWS = 1 << 12 }; /* the last: worth a second thread */

static dt_status check_offsets(dt_store_look *l, const char *name, const int64_t *p, int64_t n, int64_t end)
{
    const dt_store *s = l->s;
    if (p[0] != 0 || p[n] != end) {
        return DT_FAIL(DT_EDATA, "%s/%s.npy runs from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64, s->path,
                       name, p[0], p[n], end);
    }
    for (int64_t i = 0; i < n; i++) {
        dt_store_count_read_bytes(l, sizeof(*p));
        if (p[i + 1] < p[i]) {
            return DT_FAIL(DT_EDATA, "%s/%s.npy falls from %" PRId64 " to %" PRId64 " at %" PRId64, s->path, name, p[i],
                           p[i + 1], i);
        }
    }
    return DT_OK;
}

static dt_status check_i32(dt_store_look *l, const char *name, const int32_t *p, int64_t n, int64_t limit)
{
    const dt_store *s = l->s;
    for (int64_t i = 0; i < n; i++) {
        dt_store_count_read_bytes(l, sizeof(*p));
        if (p[i] < 0 || p[i] >= limit) {
            return DT_FAIL(DT_EDATA, "%s/%s.npy: %" PRId32 " at %" PRId64 " is outside [0, %" PRId64 ")", s->path, name,
                           p[i], i, limit);
        }
    }
    return DT_OK;
}

/* Sources lie in their target's frame. room: of PIECE_ROWS of them, where they are packed. */
static dt_status check_sources(dt_store_look *l, int32_t *room)
{
    const dt_store *s = l->s;
    const dt_store_view *v = &s->view;
    for (int64_t f = 0; f < v->n_frames; f++) {
        const int64_t n = v->frame_row[f + 1] - v->frame_row[f], end = v->edge_ptr[v->frame_row[f + 1]];
        dt_store_count_read_bytes(l, (size_t)n * ROW_BYTES);
        for (int64_t e = v->edge_ptr[v->frame_row[f]]; e < end; e += PIECE_ROWS) {
            const int64_t m = end - e < PIECE_ROWS ? end - e : PIECE_ROWS;
            const int32_t *source = v->edge_src == NULL ? room : v->edge_src + e;
            if (v->edge_src == NULL) {
                DT_TRY(dt_packed_read(&s->packed, DT_STORE_EDGE_SRC, e, m, room));
            }
            uint32_t most = 0; /* of all, a negative one is greater than any that is right */
            for (int64_t k = 0; k < m; k++) {
                most = (uint32_t)source[k] > most ? (uint32_t)source[k] : most;
            }
            for (int64_t k = 0; k < m && (int64_t)most >= n; k++) {
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

static dt_status check_all_sources(dt_store_look *l)
{
    const dt_store *s = l->s;
    int32_t *room = dt_alloc_n(PIECE_ROWS, sizeof(*room));
    const dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to check %s", s->path) : check_sources(l, room);
    dt_free(room);
    return st;
}

/* The k with offset[k] <= x < offset[k + 1], of offsets that rise from 0 to above x; steps double from k on, for x is
 * mostly near. */
static int64_t find_from(const int64_t *offset, int64_t n, int64_t k, int64_t x)
{
    int64_t step = 1, end = 0;
    k = x < offset[k] ? 0 : k;
    while (k + step < n && offset[k + step] <= x) {
        k += step;
        step *= 2;
    }
    for (end = k + step < n ? k + step : n; end - k > 1;) {
        const int64_t middle = k + (end - k) / 2;
        k = offset[middle] <= x ? middle : k;
        end = offset[middle] <= x ? end : middle;
    }
    return k;
}

typedef struct place {
    int64_t scene, frame;
} place;

/* Rows of a track lie in frames of one scene, one in each. *at_p: where the row before was, and where this one is. */
static dt_status check_place(const dt_store *s, int64_t track, int64_t row, bool is_first, place *at_p)
{
    const dt_store_view *v = &s->view;
    place at = {.frame = find_from(v->frame_row, v->n_frames, at_p->frame, row)};
    at.scene = find_from(v->scene_frame, v->n_scenes, at_p->scene, at.frame);
    if (!is_first && at.frame <= at_p->frame) {
        return DT_FAIL(DT_EDATA, "%s/track_row.npy: track %" PRId64 " is in frame %" PRId64 " twice, in row %" PRId64,
                       s->path, track, at.frame, row);
    }
    if (!is_first && at.scene != at_p->scene) {
        return DT_FAIL(DT_EDATA,
                       "%s/track_row.npy: track %" PRId64 " is in scene %" PRId64 " and, in row %" PRId64
                       ", in scene %" PRId64,
                       s->path, track, at_p->scene, row, at.scene);
    }
    *at_p = at;
    return DT_OK;
}

/* Rows of a track ascend and belong to it. */
static dt_status check_tracks(dt_store_look *l)
{
    const dt_store *s = l->s;
    const dt_store_view *v = &s->view;
    place at = {.frame = 0};
    for (int64_t t = 0; t < v->n_tracks; t++) {
        for (int64_t i = v->track_ptr[t], before = -1; i < v->track_ptr[t + 1]; i++) {
            int64_t r = v->track_row[i];
            dt_store_count_read_bytes(l, ROW_BYTES);
            if (r <= before || r >= v->n_rows || v->row_track[r] != t) {
                return DT_FAIL(DT_EDATA,
                               "%s/track_row.npy: row %" PRId64 " at %" PRId64 " does not belong to track %" PRId64
                               " in time order",
                               s->path, r, i, t);
            }
            DT_TRY(check_place(s, t, r, before < 0, &at));
            before = r;
        }
    }
    for (int64_t r = 0; r < v->n_rows; r++) {
        dt_store_count_read_bytes(l, sizeof(v->risk[r]));
        if (v->risk[r] > DT_RISK_UNKNOWN) {
            return DT_FAIL(DT_EDATA, "%s/risk.npy: %d at %" PRId64 " is outside [0, %d]", s->path, v->risk[r], r,
                           DT_RISK_UNKNOWN);
        }
    }
    return DT_OK;
}

/* Of a store of regions: flags, and in every scene a vehicle outside the halo. */
static dt_status check_core(dt_store_look *l)
{
    const dt_store *s = l->s;
    const dt_store_view *v = &s->view;
    for (int64_t scene = 0; scene < v->n_scenes && v->core != NULL; scene++) {
        const int64_t end = v->frame_row[v->scene_frame[scene + 1]];
        bool has_any = false;
        for (int64_t r = v->frame_row[v->scene_frame[scene]]; r < end; r++) {
            dt_store_count_read_bytes(l, sizeof(v->core[r]));
            if (v->core[r] > 1) {
                return DT_FAIL(DT_EDATA, "%s/core.npy: %d at %" PRId64 " is outside [0, 1]", s->path, v->core[r], r);
            }
            has_any = has_any || v->core[r] == 1;
        }
        if (!has_any) {
            return DT_FAIL(DT_EDATA, "%s/core.npy: no vehicle of scene %" PRId64 " is of its region", s->path, scene);
        }
    }
    return DT_OK;
}

/* Edges of vehicles to themselves are zeros, which statistics leave out. */
static dt_status check_packed(dt_store_look *l)
{
    const dt_store *s = l->s;
    dt_packed_range node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        node[d] = (dt_packed_range){s->node_stat[d].min, s->node_stat[d].max};
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        edge[d] = (dt_packed_range){fmin(0, s->edge_stat[d].min), fmax(0, s->edge_stat[d].max)};
    }
    return dt_packed_check(&s->packed, s->path, node, edge);
}

static dt_status check_roads(dt_store_look *l)
{
    return dt_roads_check(&l->s->view, l->s->path, dt_store_release_pages, l->s);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* What others trust; little to read. */
static dt_status check_numbers(dt_store_look *l)
{
    const dt_store_view *v = &l->s->view;
    DT_TRY(check_offsets(l, "scene_frame", v->scene_frame, v->n_scenes, v->n_frames));
    DT_TRY(check_offsets(l, "frame_row", v->frame_row, v->n_frames, v->n_rows));
    DT_TRY(check_offsets(l, "track_ptr", v->track_ptr, v->n_tracks, v->n_rows));
    DT_TRY(check_offsets(l, "edge_ptr", v->edge_ptr, v->n_rows, v->n_edges));
    DT_TRY(check_i32(l, "scene_site", v->scene_site, v->n_scenes, v->n_sites));
    return check_i32(l, "row_track", v->row_track, v->n_rows, v->n_tracks);
}

static dt_status (*const check[])(dt_store_look *l) = {check_packed, check_all_sources, check_tracks, check_core,
                                                       check_roads};
enum { N_CHECKS = DT_STORE_RANGES + sizeof(check) / sizeof(check[0]) };

typedef struct checks {
    const dt_store *s;
    pthread_mutex_t mutex; /* of what follows */
    int next;              /* check that is not begun */
    int failed;            /* the first of those that failed; N_CHECKS: none */
    dt_status st;          /* its own */
    dt_error error;
} checks;

/* One after the other that is not begun; those after one that failed are not. */
static void *run_checks(void *user)
{
    checks *c = user;
    pthread_mutex_lock(&c->mutex);
    while (c->next < c->failed) {
        const int number = c->next++;
        dt_store_look look = {.s = c->s};
        pthread_mutex_unlock(&c->mutex);
        const dt_status st =
            number < DT_STORE_RANGES ? dt_store_check_ranges(&look, number) : check[number - DT_STORE_RANGES](&look);
        pthread_mutex_lock(&c->mutex);
        if (st != DT_OK && number < c->failed) {
            c->failed = number;
            c->st = st;
            dt_error_save(&c->error, st);
        }
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

dt_status dt_store_check(dt_store *s, uint32_t jobs)
{
    checks c = {.s = s, .failed = N_CHECKS, .st = DT_OK};
    pthread_t thread;
    DT_TRY(check_numbers(&(dt_store_look){.s = s}));
    pthread_mutex_init(&c.mutex, NULL);
    const bool is_shared =
        jobs > 1 && s->view.n_rows >= SHARED_ROWS && pthread_create(&thread, NULL, run_checks, &c) == 0;
    run_checks(&c);
    if (is_shared) {
        pthread_join(thread, NULL);
    }
    pthread_mutex_destroy(&c.mutex);
    return c.st == DT_OK ? DT_OK : dt_error_restore(&c.error);
}

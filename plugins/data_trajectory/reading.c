/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of windows: how large they are, and what they hold. See windows.h.
 */
#include "windows.h"

#include <string.h>

dt_status windows_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const windows *s = self;
    const dt_store_view *v = s->v;
    memset(size, 0, N_SYMBOLS * sizeof(*size));
    for (uint32_t i = 0; i < n; i++) {
        if (index[i] >= s->n) {
            return DT_FAIL_H(s->h, DT_EINVAL, "sample %llu is not below %llu", (unsigned long long)index[i],
                             (unsigned long long)s->n);
        }
        const windows_sample *w = &s->sample[index[i]];
        for (int64_t k = 0; k < s->T; k++) {
            int64_t f = windows_history_frame(s, w, k);
            if (f >= 0) {
                int64_t from = v->frame_row[f], to = v->frame_row[f + 1];
                size[0] += to - from;
                size[1] += v->edge_ptr[to] - v->edge_ptr[from];
            }
        }
        size[2] += v->frame_row[w->anchor + 1] - v->frame_row[w->anchor];
    }
    return DT_OK;
}

static dt_status read_danger(const windows *s, const windows_sample *w, const windows_turn *t, int64_t seq,
                             void *const *out)
{
    const danger_rows rows = {.ahead = (float *)out[AHEAD] + seq * DANGER_AHEAD,
                              .beside = (float *)out[BESIDE] + seq * DANGER_BESIDE,
                              .next_ahead = (float *)out[NEXT_AHEAD] + seq * DANGER_AHEAD,
                              .next_beside = (float *)out[NEXT_BESIDE] + seq * DANGER_BESIDE,
                              .next_present = (float *)out[NEXT_PRESENT] + seq,
                              .hazard_in = (float *)out[HAZARD_IN] + seq};
    return danger_read(&s->danger, w->scene, w->anchor, t->flip < 0, &rows);
}

/* out: lane, path */
static dt_status read_lanes(const windows *s, const windows_sample *w, const windows_turn *t, const windows_cursor *c,
                            void *const *out)
{
    const int64_t first = s->v->frame_row[w->anchor], n = s->v->frame_row[w->anchor + 1] - first;
    const float *node = NULL;
    DT_TRY_H(slices_node(&s->slices, first, n, c->node, &node));
    return lanes_read(&s->lanes, w->scene, w->anchor, node, t->flip, (float *)out[0] + c->seq * LANES_COLUMNS,
                      (float *)out[1] + c->seq * LANES_PATH * LANES_PATH_COLUMNS);
}

static dt_status read_samples(const windows *s, const uint64_t *index, const uint64_t *key, uint32_t n,
                              windows_cursor *c, void *const *out)
{
    ((int32_t *)out[ROWPTR])[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const windows_sample *w = &s->sample[index[i]];
        uint64_t use = key == NULL ? 0 : key[i];
        const windows_turn t = windows_turn_of(s, w, use);
        const uint64_t name = use == 0 ? index[i] : use;
        if (s->has_pairs) {
            DT_TRY_H(read_danger(s, w, &t, c->seq, out));
        }
        if (s->has_lanes) {
            DT_TRY_H(read_lanes(s, w, &t, c, out + s->lane_field));
        }
        DT_TRY_H(windows_read_graphs(s, w, &t, name, use, c, out));
        windows_read_vehicles(s, w, &t, name, use, i, c, out);
    }
    return DT_OK;
}

/* Room for what a packed store unpacks. */
static dt_status reserve_rows(const windows *s, int64_t rows, windows_cursor *c)
{
    if (s->most_rows == 0) {
        return DT_OK;
    }
    c->node = s->h->alloc(s->h, (uint64_t)s->most_rows * DT_NODE_FEATURES * sizeof(*c->node));
    c->edge = s->h->alloc(s->h, (uint64_t)s->most_edges * DT_EDGE_FEATURES * sizeof(*c->edge));
    c->source = s->h->alloc(s->h, (uint64_t)s->most_edges * sizeof(*c->source));
    c->accel = s->h->alloc(s->h, (uint64_t)(rows + 1) * sizeof(*c->accel));
    return c->node != NULL && c->edge != NULL && c->source != NULL && c->accel != NULL
               ? DT_OK
               : DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld rows of a packed store", (long long)rows);
}

dt_status windows_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const windows *s = self;
    int64_t size[N_SYMBOLS];
    DT_TRY_H(windows_sizes(self, index, n, size));
    for (uint32_t k = 0; k < N_SYMBOLS; k++) {
        if (size[k] > INT32_MAX) {
            return DT_FAIL_H(s->h, DT_EINVAL,
                             "%u samples have %lld rows and %lld edges, more than 32 bits can count: make the batch or "
                             "the shard smaller",
                             n, (long long)size[0], (long long)size[1]);
        }
    }
    windows_cursor c = {.S = size[2]};
    dt_status st = reserve_rows(s, size[0], &c);
    if (st == DT_OK) {
        st = read_samples(s, index, key, n, &c, out);
    }
    s->h->release(s->h, c.node);
    s->h->release(s->h, c.edge);
    s->h->release(s->h, c.source);
    s->h->release(s->h, c.accel);
    return st;
}

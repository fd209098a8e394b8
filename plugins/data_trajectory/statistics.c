/* SPDX-License-Identifier: Apache-2.0
 *
 * What features are like in the frames that a split's samples show: for models that are normalised by them. Scenes that
 * are held out are of other splits, so nothing of them is included. Of a store of regions, the halo is left out, and
 * the edges that lead to it: each vehicle counts in its region, and so regions have the statistics of the whole. See
 * windows.h.
 */
#include "windows.h"
#include "region.h"

#include <string.h>

enum { FIELD_NODES, FIELD_EDGES };

/* Sums of the differences to the first value: of values all alike they are exactly 0. */
typedef struct column {
    double n, first, sum, square, least, most;
} column;

static void add_value(column *c, double x)
{
    if (c->n == 0) {
        c->first = c->least = c->most = x;
    }
    const double d = x - c->first;
    c->n += 1;
    c->sum += d;
    c->square += d * d;
    c->least = x < c->least ? x : c->least;
    c->most = x > c->most ? x : c->most;
}

static dt_field_stat finish_statistics(const column *c)
{
    if (c->n == 0) {
        return (dt_field_stat){.n = 0};
    }
    const double mean = c->sum / c->n;
    return (dt_field_stat){.n = c->n,
                           .min = c->least,
                           .max = c->most,
                           .mean = c->first + mean,
                           .std = sqrt(fmax(0, c->square / c->n - mean * mean))};
}

/* Frames of the histories of all samples. */
static void mark_frames(const windows *s, uint8_t *is_seen)
{
    memset(is_seen, 0, (size_t)s->v->n_frames);
    for (uint64_t i = 0; i < s->n; i++) {
        for (int64_t k = 0; k < s->T; k++) {
            const int64_t f = windows_history_frame(s, &s->sample[i], k);
            if (f >= 0) {
                is_seen[f] = 1;
            }
        }
    }
}

static dt_status add_nodes(const windows *s, int64_t f, float *room, column *c)
{
    const int64_t from = s->v->frame_row[f], end = s->v->frame_row[f + 1];
    const windows_sample here = {.anchor = f};
    const windows_turn t = windows_turn_of(s, &here, 0);
    const float *node = NULL;
    DT_TRY_H(slices_node(&s->slices, from, end - from, room, &node));
    for (int64_t r = from; r < end; r++, node += DT_NODE_FEATURES) {
        float seen[DT_NODE_FEATURES];
        if (!region_has(s->v, r)) {
            continue;
        }
        windows_node_of(s, r, node, &t, seen);
        for (int d = 0; d < DT_NODE_FEATURES; d++) {
            add_value(&c[d], seen[d]);
        }
    }
    return DT_OK;
}

static dt_status add_edges(const windows *s, int64_t f, float *room, int32_t *source_room, column *c)
{
    static const float scale[DT_EDGE_FEATURES] = DT_EDGE_SCALE;
    const dt_store_view *v = s->v;
    const int64_t from = v->frame_row[f], end = v->frame_row[f + 1];
    const int64_t first = v->edge_ptr[from], n = v->edge_ptr[end] - first;
    const float *edge = NULL;
    const int32_t *source = NULL;
    DT_TRY_H(slices_edge(&s->slices, first, n, room, &edge));
    DT_TRY_H(slices_source(&s->slices, first, n, source_room, &source));
    for (int64_t r = from; r < end; r++) {
        for (int64_t e = v->edge_ptr[r] - first; e < v->edge_ptr[r + 1] - first && region_has(v, r); e++) {
            for (int d = 0; d < DT_EDGE_FEATURES && source[e] != r - from; d++) {
                add_value(&c[d], (double)(edge[e * DT_EDGE_FEATURES + d] * scale[d]));
            }
        }
    }
    return DT_OK;
}

/* What the frames need where the store is packed. */
typedef struct room {
    uint8_t *is_seen; /* [n_frames] */
    float *row;       /* of nodes, or of edges */
    int32_t *source;
} room;

static dt_status reserve_room(const windows *s, int what, room *m)
{
    const dt_host *h = s->h;
    const uint64_t row =
        what == FIELD_NODES ? (uint64_t)s->most_rows * DT_NODE_FEATURES : (uint64_t)s->most_edges * DT_EDGE_FEATURES;
    m->is_seen = h->alloc(h, (uint64_t)s->v->n_frames);
    m->row = h->alloc(h, (row + 1) * sizeof(*m->row));
    m->source = h->alloc(h, ((uint64_t)s->most_edges + 1) * sizeof(*m->source));
    return m->is_seen != NULL && m->row != NULL && m->source != NULL
               ? DT_OK
               : DT_FAIL_H(h, DT_ENOMEM, "no memory for statistics of %lld frames", (long long)s->v->n_frames);
}

dt_status windows_statistics(void *self, const char *field, dt_field_stat *out, uint32_t n)
{
    const windows *s = self;
    const int what = strcmp(field, "nodes") == 0 ? FIELD_NODES : strcmp(field, "edges") == 0 ? FIELD_EDGES : -1;
    const uint32_t n_columns = what == FIELD_NODES ? DT_NODE_FEATURES : DT_EDGE_FEATURES;
    column c[DT_NODE_FEATURES] = {{0}};
    room m = {0};
    if (what < 0) {
        return DT_FAIL_H(s->h, DT_EUNSUPPORTED, "data_trajectory keeps statistics of nodes and edges, not of %s",
                         field);
    }
    if (n != n_columns) {
        return DT_FAIL_H(s->h, DT_EINVAL, "%s has %u columns, not %u", field, n_columns, n);
    }
    dt_status st = reserve_room(s, what, &m);
    if (st == DT_OK) {
        mark_frames(s, m.is_seen);
    }
    for (int64_t f = 0; st == DT_OK && f < s->v->n_frames; f++) {
        if (m.is_seen[f]) {
            st = what == FIELD_NODES ? add_nodes(s, f, m.row, c) : add_edges(s, f, m.row, m.source, c);
        }
    }
    for (uint32_t d = 0; st == DT_OK && d < n; d++) {
        out[d] = finish_statistics(&c[d]);
    }
    s->h->release(s->h, m.is_seen);
    s->h->release(s->h, m.row);
    s->h->release(s->h, m.source);
    return st;
}

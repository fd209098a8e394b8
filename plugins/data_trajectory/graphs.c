/* SPDX-License-Identifier: Apache-2.0
 *
 * The graphs of a window: what perception sees. See windows.h.
 */
#include "windows.h"
#include "region.h"
#include "tracks.h"

#include <string.h>

/* lateral offset in lane widths, so that a small net can distinguish lanes: an eighth off the error at 5 s */
static const float node_scale[DT_NODE_FEATURES] = DT_NODE_SCALE, node_shift[DT_NODE_FEATURES] = DT_NODE_SHIFT;
static const float edge_scale[DT_EDGE_FEATURES] = DT_EDGE_SCALE;

/* node: of row r, as it is kept. */
static void read_node(const dt_store_view *v, int64_t r, const float *node, const windows_turn *t,
                      const augment_row *noise, float *out)
{
    double x = v->pose[3 * r] + noise->x - t->x, y = t->flip * (v->pose[3 * r + 1] + noise->y - t->y);
    const bool has_heading = tracks_has_heading(v, r);
    double sin_h = has_heading ? t->flip * sin(v->pose[3 * r + 2]) : 0;
    double cos_h = has_heading ? cos(v->pose[3 * r + 2]) : 0;
    if (noise->is_hidden) {
        memset(out, 0, DT_NODE_FEATURES * sizeof(*out));
        return;
    }
    memcpy(out, node, DT_NODE_FEATURES * sizeof(*out));
    out[NODE_SPEED] = windows_speed(out[NODE_SPEED], noise);
    out[0] = (float)(x * t->cos_a - y * t->sin_a);
    out[1] = (float)(x * t->sin_a + y * t->cos_a);
    out[4] = (float)(sin_h * t->cos_a + cos_h * t->sin_a);
    out[5] = (float)(cos_h * t->cos_a - sin_h * t->sin_a);
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        out[d] = (out[d] + node_shift[d]) * node_scale[d];
    }
}

void windows_node_of(const windows *s, int64_t r, const float *node, const windows_turn *t, float *out)
{
    static const augment_row nothing = {0};
    read_node(s->v, r, node, t, &nothing, out);
}

/* The edges of row r, as they are kept. One that is dropped becomes an edge of the vehicle to itself, whose features
 * are zeros: the size of a sample depends on its index alone. */
static void read_edges(const windows *s, int64_t r, const float *from, const int32_t *source, const windows_turn *t,
                       uint64_t use, int64_t base, windows_cursor *c, int32_t *col, float *edge)
{
    const int64_t first = s->v->edge_ptr[r], n = s->v->edge_ptr[r + 1] - first;
    for (int64_t e = 0; e < n; e++, c->n_edges++) {
        if (augment_drops(&s->augment, use, first + e)) {
            col[c->n_edges] = (int32_t)c->row;
            memset(edge + c->n_edges * DT_EDGE_FEATURES, 0, DT_EDGE_FEATURES * sizeof(*edge));
            continue;
        }
        col[c->n_edges] = (int32_t)(base + source[e]);
        for (int d = 0; d < DT_EDGE_FEATURES; d++) {
            edge[c->n_edges * DT_EDGE_FEATURES + d] = from[e * DT_EDGE_FEATURES + d] * edge_scale[d];
        }
        edge[c->n_edges * DT_EDGE_FEATURES + 1] *= (float)t->flip; /* lateral offset */
    }
}

/* A frame's rows and edges as they are kept. */
typedef struct frame_rows {
    const float *node, *edge;
    const int32_t *source;
} frame_rows;

static dt_status read_frame_rows(const windows *s, int64_t f, windows_cursor *c, frame_rows *out)
{
    const dt_store_view *v = s->v;
    const int64_t from = v->frame_row[f], n = v->frame_row[f + 1] - from;
    const int64_t first = v->edge_ptr[from], n_edges = v->edge_ptr[from + n] - first;
    DT_TRY_H(slices_node(&s->slices, from, n, c->node, &out->node));
    DT_TRY_H(slices_edge(&s->slices, first, n_edges, c->edge, &out->edge));
    return slices_source(&s->slices, first, n_edges, c->source, &out->source);
}

windows_turn windows_turn_of(const windows *s, const windows_sample *w, uint64_t key)
{
    const dt_store_view *v = s->v;
    int64_t from = v->frame_row[w->anchor], to = v->frame_row[w->anchor + 1];
    windows_turn t = {.cos_a = 1, .flip = 1};
    if (region_is_known(v)) { /* as if nothing had been cut */
        t.x = v->frame_centre[2 * w->anchor];
        t.y = v->frame_centre[2 * w->anchor + 1];
        from = to;
    }
    for (int64_t r = from; r < to; r++) {
        t.x += v->pose[3 * r] / (double)(to - from);
        t.y += v->pose[3 * r + 1] / (double)(to - from);
    }
    if (s->rotate && key != 0) { /* four numbers of each key, none of which another key uses */
        double a = augment_unit(augment_mix(4 * key)) * 2 * M_PI;
        t.cos_a = cos(a);
        t.sin_a = sin(a);
    }
    if (s->mirror && key != 0) {
        t.flip = augment_unit(augment_mix(4 * key + 1)) < 0.5 ? -1 : 1;
    }
    if (s->shift_m > 0 && key != 0) {
        t.x += s->shift_m * (2 * augment_unit(augment_mix(4 * key + 2)) - 1);
        t.y += s->shift_m * (2 * augment_unit(augment_mix(4 * key + 3)) - 1);
    }
    return t;
}

dt_status windows_read_graphs(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t name,
                              uint64_t use, windows_cursor *c, void *const *out)
{
    const dt_store_view *v = s->v;
    int64_t first = c->row;
    for (int64_t k = 0; k < s->T; k++) {
        int64_t f = windows_history_frame(s, w, k);
        c->base[k] = f < 0 ? -1 : c->row;
        if (f >= 0) {
            frame_rows kept;
            DT_TRY_H(read_frame_rows(s, f, c, &kept));
            for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++, c->row++) {
                const uint8_t risk = region_has(v, r) ? v->risk[r] : 3; /* of a halo nothing is to be known */
                const int64_t n_edges = v->edge_ptr[r + 1] - v->edge_ptr[r];
                const augment_row noise = augment_of_row(&s->augment, use, r);
                read_node(v, r, kept.node, t, &noise, (float *)out[NODES] + c->row * DT_NODE_FEATURES);
                read_edges(s, r, kept.edge, kept.source, t, use, c->base[k], c, out[COL], out[EDGES]);
                if (c->accel != NULL) {
                    c->accel[c->row] = kept.node[NODE_ACCELERATION];
                }
                kept.node += DT_NODE_FEATURES;
                kept.edge += n_edges * DT_EDGE_FEATURES;
                kept.source += n_edges;
                ((int32_t *)out[ROWPTR])[c->row + 1] = (int32_t)c->n_edges;
                ((int64_t *)out[ROW_KEY])[c->row] = (int64_t)(name << 20 | (uint64_t)(c->row - first));
                ((float *)out[RISK_LABEL])[c->row] = risk == 1 || risk == 2 ? 1.f : 0.f;
                ((float *)out[RISK_WEIGHT])[c->row] = risk == 3 ? 0.f : 1.f;
                ((uint8_t *)out[RISK_STATE])[c->row] = risk;
                ((int32_t *)out[STEP_OF_ROW])[c->row] = (int32_t)k;
            }
        }
    }
    return DT_OK;
}

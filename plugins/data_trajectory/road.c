/* SPDX-License-Identifier: Apache-2.0
 *
 * See road.h.
 */
#include "road.h"

#include <string.h>

#define PER_RAD_M   3.0 /* as the lane of a vehicle is found, lanes.h */
#define ON_LANE_RAD (M_PI / 3)
#define BEYOND_M    1.0 /* over a piece's ends: so far, and it is still on it */

/* ---- which pieces are seen --------------------------------------------------------------------------------------- */

typedef struct seen { /* of a scene's map, map -1: there is none */
    int32_t *node;    /* [n_of_map] owned: number of a piece's node, -1: it is not seen */
    int64_t map, first, n_of_map, n;
} seen;

static void release(const windows *s, seen *x)
{
    s->h->release(s->h, x->node);
    x->node = NULL;
}

/* Marks what is in reach of the vehicles of a frame. Neighbours in the list of rows often share a cell. */
static void look_about(const windows *s, int64_t frame, seen *x, uint8_t *is_done)
{
    const dt_store_view *v = s->v;
    const pieces_grid *g = &s->pieces.far;
    for (int64_t r = v->frame_row[frame]; r < v->frame_row[frame + 1]; r++) {
        const int64_t cell = pieces_cell_at(g, x->map, v->pose[3 * r], v->pose[3 * r + 1]);
        if (cell < 0 || is_done[cell - g->of_map[x->map]]) {
            continue;
        }
        is_done[cell - g->of_map[x->map]] = 1;
        for (int64_t k = g->cell[cell].first; k < g->cell[cell + 1].first; k++) {
            x->node[g->item[k] - x->first] = 0;
        }
    }
}

static dt_status look(const windows *s, const windows_sample *w, seen *x)
{
    const pieces *p = &s->pieces;
    const dt_store_view *v = s->v;
    *x = (seen){.map = v->scene_map[w->scene]};
    if (x->map < 0) {
        return DT_OK;
    }
    x->first = p->of_lane[v->map_lane[x->map]];
    x->n_of_map = p->of_lane[v->map_lane[x->map + 1]] - x->first;
    const int64_t n_cells = p->far.of_map[x->map + 1] - p->far.of_map[x->map];
    uint8_t *is_done = s->h->alloc(s->h, (uint64_t)n_cells + 1);
    x->node = s->h->alloc(s->h, ((uint64_t)x->n_of_map + 1) * sizeof(*x->node));
    if (is_done == NULL || x->node == NULL) {
        s->h->release(s->h, is_done);
        release(s, x);
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory to look at %lld pieces of lanes", (long long)x->n_of_map);
    }
    memset(x->node, 0xff, (size_t)x->n_of_map * sizeof(*x->node));
    for (int64_t k = 0; k < s->T; k++) {
        const int64_t f = windows_history_frame(s, w, k);
        if (f >= 0) {
            look_about(s, f, x, is_done);
        }
    }
    for (int64_t i = 0; i < x->n_of_map; i++) {
        x->node[i] = x->node[i] < 0 ? -1 : (int32_t)x->n++;
    }
    s->h->release(s->h, is_done);
    return DT_OK;
}

static int64_t node_of(const seen *x, int64_t i)
{
    return x->node[i - x->first];
}

/* ---- vehicles beside pieces -------------------------------------------------------------------------------------- */

typedef struct place { /* of a vehicle beside a piece */
    int64_t piece;
    double gap, along, side, turned; /* m; m from its first end and to the left of it; rad, the vehicle's from its */
} place;

static place place_of(const piece *p, int64_t i, const double pose[3])
{
    const double dx = pose[0] - p->x, dy = pose[1] - p->y;
    place out = {.piece = i,
                 .along = dx * p->cos_h + dy * p->sin_h + p->length / 2,
                 .side = dy * p->cos_h - dx * p->sin_h,
                 .turned = remainder(pose[2] - p->heading, 2 * M_PI)};
    const double over = fmax(fmax(-out.along, out.along - p->length), 0);
    out.gap = hypot(over, out.side);
    return out;
}

static double cost_of(const place *at)
{
    return at->gap + PER_RAD_M * fabs(at->turned);
}

/* What is listed for the cell of a row's vehicle, where it was recorded: all that is near it, and more. */
static int64_t listed(const windows *s, int64_t map, int64_t r, const int32_t **out_p)
{
    const pieces_grid *g = &s->pieces.near;
    const int64_t cell = map < 0 ? -1 : pieces_cell_at(g, map, s->v->pose[3 * r], s->v->pose[3 * r + 1]);
    *out_p = cell < 0 ? NULL : g->item + g->cell[cell].first;
    return cell < 0 ? 0 : g->cell[cell + 1].first - g->cell[cell].first;
}

/* Is piece i near where the vehicle of row r was recorded? So nothing hangs on where cells begin. */
static bool is_near(const windows *s, int64_t i, int64_t r)
{
    return place_of(&s->pieces.piece[i], i, s->v->pose + 3 * r).gap <= PIECES_NEAR_M;
}

/* Edges of row r. */
static int64_t count_near(const windows *s, int64_t map, int64_t r)
{
    const int32_t *of = NULL;
    const int64_t n = listed(s, map, r, &of);
    int64_t found = 0;
    for (int64_t k = 0; k < n && found < ROAD_NEAR; k++) {
        found += is_near(s, of[k], r);
    }
    return found;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

dt_status road_sizes(const windows *s, const windows_sample *w, int64_t size[3])
{
    const pieces *p = &s->pieces;
    seen x;
    DT_TRY_H(look(s, w, &x));
    for (int64_t i = x.first; i < x.first + x.n_of_map; i++) {
        for (int64_t k = p->edge_ptr[i]; node_of(&x, i) >= 0 && k < p->edge_ptr[i + 1]; k++) {
            size[1] += node_of(&x, p->edge[k].source) >= 0;
        }
    }
    size[0] += x.n;
    for (int64_t k = 0; k < s->T && x.map >= 0; k++) {
        const int64_t f = windows_history_frame(s, w, k);
        for (int64_t r = f < 0 ? 0 : s->v->frame_row[f]; f >= 0 && r < s->v->frame_row[f + 1]; r++) {
            size[2] += count_near(s, x.map, r);
        }
    }
    release(s, &x);
    return DT_OK;
}

/* ---- nodes and the edges between them ---------------------------------------------------------------------------- */

enum { ROAD_NODES, ROAD_ROWPTR, ROAD_COL, ROAD_EDGES, ROAD_NEAR_ROWPTR, ROAD_NEAR_COL, ROAD_NEAR_EDGES };

static void write_pieces(const windows *s, const seen *x, double flip, windows_cursor *c, void *const *out)
{
    const pieces *p = &s->pieces;
    const int64_t base = c->n_pieces;
    for (int64_t i = x->first; i < x->first + x->n_of_map; i++) {
        if (node_of(x, i) < 0) {
            continue;
        }
        pieces_tell(p, i, flip, (float *)out[ROAD_NODES] + c->n_pieces * PIECES_COLUMNS);
        for (int64_t k = p->edge_ptr[i]; k < p->edge_ptr[i + 1]; k++) {
            const int64_t source = node_of(x, p->edge[k].source);
            if (source >= 0) {
                ((int32_t *)out[ROAD_COL])[c->n_links] = (int32_t)(base + source);
                pieces_tell_edge(p, i, &p->edge[k], flip,
                                 (float *)out[ROAD_EDGES] + c->n_links++ * PIECES_EDGE_COLUMNS);
            }
        }
        ((int32_t *)out[ROAD_ROWPTR])[++c->n_pieces] = (int32_t)c->n_links;
    }
}

/* ---- vehicles on them -------------------------------------------------------------------------------------------- */

/* Of row r, seen at pose: as many as count_near says. */
static int64_t nearest(const windows *s, int64_t map, int64_t r, const double pose[3], place best[ROAD_NEAR])
{
    const int32_t *of = NULL;
    const int64_t n = listed(s, map, r, &of);
    int64_t found = 0;
    for (int64_t k = 0; k < n; k++) {
        if (!is_near(s, of[k], r)) {
            continue;
        }
        const place at = place_of(&s->pieces.piece[of[k]], of[k], pose);
        int64_t i = found < ROAD_NEAR ? found++ : ROAD_NEAR;
        for (; i > 0 && cost_of(&at) < cost_of(&best[i - 1]); i--) {
            if (i < ROAD_NEAR) {
                best[i] = best[i - 1];
            }
        }
        if (i < ROAD_NEAR) {
            best[i] = at;
        }
    }
    return found;
}

static float within(double x, double most)
{
    return (float)fmax(-most, fmin(x, most));
}

static void write_place(const piece *p, const place *at, const double pose[3], double flip, float *out)
{
    const double dx = p->x - pose[0], dy = p->y - pose[1], cos_h = cos(pose[2]), sin_h = sin(pose[2]);
    const bool is_beside = at->along > -BEYOND_M && at->along < p->length + BEYOND_M;
    out[0] = within(p->length > 0 ? at->along / p->length - 0.5 : 0, 2);
    out[1] = within(flip * at->side / 4, 3);
    out[2] = (float)(flip * sin(at->turned));
    out[3] = (float)cos(at->turned);
    out[4] = within((dx * cos_h + dy * sin_h) / 20, 3);
    out[5] = within(flip * (dy * cos_h - dx * sin_h) / 8, 3);
    out[6] = is_beside && fabs(at->side) <= p->width / 2 && fabs(at->turned) < ON_LANE_RAD ? 1.f : 0.f;
    out[7] = 1.f;
}

static void write_near(const windows *s, const seen *x, int64_t base, int64_t r, const augment_row *noise, double flip,
                       windows_cursor *c, void *const *out)
{
    const double *at = s->v->pose + 3 * r, pose[3] = {at[0] + noise->x, at[1] + noise->y, at[2]};
    place best[ROAD_NEAR];
    const int64_t found = nearest(s, x->map, r, pose, best);
    for (int64_t k = 0; k < found; k++, c->n_near++) {
        float *told = (float *)out[ROAD_NEAR_EDGES] + c->n_near * ROAD_NEAR_COLUMNS;
        ((int32_t *)out[ROAD_NEAR_COL])[c->n_near] = (int32_t)(base + node_of(x, best[k].piece));
        if (noise->is_hidden) {
            memset(told, 0, ROAD_NEAR_COLUMNS * sizeof(*told));
        } else {
            write_place(&s->pieces.piece[best[k].piece], &best[k], pose, flip, told);
        }
    }
}

dt_status road_read(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t use, windows_cursor *c,
                    void *const *out)
{
    const int64_t base = c->n_pieces;
    int64_t row = c->row;
    seen x;
    DT_TRY_H(look(s, w, &x));
    write_pieces(s, &x, t->flip, c, out);
    for (int64_t k = 0; k < s->T; k++) {
        const int64_t f = windows_history_frame(s, w, k);
        for (int64_t r = f < 0 ? 0 : s->v->frame_row[f]; f >= 0 && r < s->v->frame_row[f + 1]; r++) {
            const augment_row noise = augment_of_row(&s->augment, use, r);
            write_near(s, &x, base, r, &noise, t->flip, c, out);
            ((int32_t *)out[ROAD_NEAR_ROWPTR])[++row] = (int32_t)c->n_near;
        }
    }
    release(s, &x);
    return DT_OK;
}

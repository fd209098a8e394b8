/* SPDX-License-Identifier: Apache-2.0
 *
 * See pieces.h.
 */
#include "pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 8 /* pieces */ };
enum { MOST = 1 << 20 }; /* pieces: some 15,000 km of lanes, whose cells take about a GB */
#define LENGTH_M 15.0
#define FAR_M    80.0 /* side of a cell */
#define CLOSE_M  32.0
#define LANE_M   3.5  /* where no width is known */
#define INSIDE_M 1e-3 /* an end is looked at so far inside, whichever side of a point of the lane rounding puts it */
#define CELLS    1e9  /* further from the origin than so many cells all is one */

static double wrap(double a)
{
    return remainder(a, 2 * M_PI);
}

static dt_status no_memory(const dt_host *h, const char *what)
{
    return DT_FAIL_H(h, DT_ENOMEM, "no memory for the %s of lane nodes", what);
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

/* Pieces of each lane: of_lane. */
static dt_status count(pieces *p, const lanes *l, const char *store)
{
    const dt_store_view *v = p->v;
    double total = 0;
    for (int64_t i = 0; i < v->n_lanes; i++) {
        const double length = lanes_length(l, i);
        const double n = lanes_is_driven(v->lane_kind[i]) ? fmax(1, rint(length / LENGTH_M)) : 0;
        total += n;
        if (!(total <= MOST)) {
            return DT_FAIL_H(p->h, DT_EDATA,
                             "data_trajectory.lane_nodes: the lanes of %s, up to number %lld, make more than %d pieces "
                             "of %g m; give a store with fewer roads, or say lane_nodes = false",
                             store, (long long)i, MOST, LENGTH_M);
        }
        p->of_lane[i] = p->n;
        p->n += (int64_t)n;
    }
    p->of_lane[v->n_lanes] = p->n;
    return DT_OK;
}

/* Direction of a lane at s m. */
static double heading_at(const lanes *l, int64_t lane, double s)
{
    const dt_store_view *v = l->v;
    const int64_t lo = lanes_line_at(l, lane, s);
    return atan2(v->lane_xy[2 * lo + 3] - v->lane_xy[2 * lo + 1], v->lane_xy[2 * lo + 2] - v->lane_xy[2 * lo]);
}

static void cut(pieces *p, const lanes *l, int64_t lane)
{
    const dt_store_view *v = p->v;
    const int64_t first = p->of_lane[lane], n = p->of_lane[lane + 1] - first;
    const double length = lanes_length(l, lane), w = (double)v->lane_width[v->lane_point[lane]];
    for (int64_t k = 0; k < n; k++) {
        piece *x = &p->piece[first + k];
        const double s0 = length * (double)k / (double)n,
                     s1 = k + 1 < n ? length * (double)(k + 1) / (double)n : length;
        const double h0 = heading_at(l, lane, s0 + INSIDE_M), h1 = heading_at(l, lane, s1 - INSIDE_M);
        lanes_point_at(l, lane, s0, x->from);
        lanes_point_at(l, lane, s1, x->to);
        const double dx = x->to[0] - x->from[0], dy = x->to[1] - x->from[1];
        x->length = hypot(dx, dy);
        x->heading = x->length > 0 ? atan2(dy, dx) : h0; /* a lane that comes back to where it was */
        x->cos_h = cos(x->heading);
        x->sin_h = sin(x->heading);
        x->x = (x->from[0] + x->to[0]) / 2;
        x->y = (x->from[1] + x->to[1]) / 2;
        x->turn = wrap(h1 - h0);
        x->width = w > 0 ? w : LANE_M;
        x->lane = (int32_t)lane;
    }
}

/* ---- what leads where -------------------------------------------------------------------------------------------- */

typedef struct links { /* lanes that lead into a lane */
    int64_t *ptr;
    int32_t *lane;
} links;

static bool has_pieces(const pieces *p, int64_t lane)
{
    return lane >= 0 && p->of_lane[lane + 1] > p->of_lane[lane];
}

static dt_status turn_round(const pieces *p, links *out)
{
    const dt_store_view *v = p->v;
    out->ptr = p->h->alloc(p->h, ((uint64_t)v->n_lanes + 2) * sizeof(*out->ptr));
    out->lane = p->h->alloc(p->h, ((uint64_t)v->n_lane_links + 1) * sizeof(*out->lane));
    if (out->ptr == NULL || out->lane == NULL) {
        return no_memory(p->h, "links");
    }
    int64_t *at = out->ptr + 1; /* filled as a cursor, it ends where the next one begins */
    for (int64_t k = 0; k < v->n_lane_links; k++) {
        at[v->lane_next[k] + 1]++;
    }
    for (int64_t i = 0; i < v->n_lanes; i++) {
        at[i + 1] += at[i];
    }
    for (int64_t i = 0; i < v->n_lanes; i++) {
        for (int64_t k = v->lane_next_ptr[i]; k < v->lane_next_ptr[i + 1]; k++) {
            out->lane[at[v->lane_next[k]]++] = (int32_t)i;
        }
    }
    return DT_OK;
}

/* The piece of a lane beside that is nearest, -1: there is none. Lanes run along each other: last, the answer for the
 * piece before, is where it is looked for; -1: anywhere. */
static int64_t beside(const pieces *p, int64_t i, int64_t lane, int64_t last)
{
    if (!has_pieces(p, lane)) {
        return -1;
    }
    const int64_t first = p->of_lane[lane], end = p->of_lane[lane + 1];
    const int64_t from = last - AROUND > first ? last - AROUND : first;
    const int64_t to = last >= 0 && last + AROUND < end ? last + AROUND : end;
    double least = INFINITY;
    int64_t best = -1;
    for (int64_t k = from; k < to; k++) {
        const double far = hypot(p->piece[k].x - p->piece[i].x, p->piece[k].y - p->piece[i].y);
        if (far < least) {
            least = far;
            best = k;
        }
    }
    return best;
}

static int64_t ahead(const pieces *p, int64_t i)
{
    for (int k = 0; k < PIECES_AHEAD_BY && i >= 0; k++) {
        const int64_t lane = p->piece[i].lane;
        if (i + 1 < p->of_lane[lane + 1]) {
            i++;
            continue;
        }
        const int64_t next = lanes_successor(p->v, lane);
        i = has_pieces(p, next) ? p->of_lane[next] : -1;
    }
    return i;
}

typedef struct writer { /* the first pass counts, edge is NULL then */
    pieces_edge *edge;
    int64_t n, beside[2]; /* what was found for the piece before */
} writer;

static void add(writer *w, int64_t source, int32_t relation)
{
    if (source < 0) {
        return;
    }
    if (w->edge != NULL) {
        w->edge[w->n] = (pieces_edge){(int32_t)source, relation};
    }
    w->n++;
}

static void link_piece(pieces *p, const links *into, int64_t i, writer *w)
{
    const dt_store_view *v = p->v;
    piece *x = &p->piece[i];
    const int64_t lane = x->lane, first = p->of_lane[lane], last = p->of_lane[lane + 1] - 1;
    add(w, i, PIECES_SELF);
    int64_t before = w->n;
    if (i < last) {
        add(w, i + 1, PIECES_NEXT);
    }
    for (int64_t k = v->lane_next_ptr[lane]; i == last && k < v->lane_next_ptr[lane + 1]; k++) {
        add(w, has_pieces(p, v->lane_next[k]) ? p->of_lane[v->lane_next[k]] : -1, PIECES_NEXT);
    }
    x->ends = w->n == before;
    x->parts = w->n > before + 1;
    before = w->n;
    if (i > first) {
        add(w, i - 1, PIECES_PREVIOUS);
    }
    for (int64_t k = into->ptr[lane]; i == first && k < into->ptr[lane + 1]; k++) {
        add(w, has_pieces(p, into->lane[k]) ? p->of_lane[into->lane[k] + 1] - 1 : -1, PIECES_PREVIOUS);
    }
    x->meets = w->n > before + 1;
    const int32_t aside[2] = {v->lane_left[lane], v->lane_right[lane]};
    for (int32_t k = 0; k < 2; k++) {
        w->beside[k] = beside(p, i, aside[k], i > first ? w->beside[k] : -1);
        add(w, w->beside[k], k == 0 ? PIECES_LEFT : PIECES_RIGHT);
    }
    add(w, ahead(p, i), PIECES_AHEAD);
}

static dt_status link_all(pieces *p)
{
    links into = {0};
    dt_status st = turn_round(p, &into);
    writer w = {0};
    for (int pass = 0; st == DT_OK && pass < 2; pass++) {
        if (pass == 1) {
            w.edge = p->edge = p->h->alloc(p->h, ((uint64_t)w.n + 1) * sizeof(*p->edge));
            st = p->edge != NULL ? DT_OK : no_memory(p->h, "edges");
            w.n = 0;
        }
        for (int64_t i = 0; st == DT_OK && i < p->n; i++) {
            p->edge_ptr[i] = w.n;
            link_piece(p, &into, i, &w);
        }
    }
    p->edge_ptr[p->n] = w.n;
    p->h->release(p->h, into.ptr);
    p->h->release(p->h, into.lane);
    return st;
}

/* ---- where they are ---------------------------------------------------------------------------------------------- */

typedef struct entry {
    int64_t map, x, y;
    int32_t piece;
} entry;

static int compare(const void *a, const void *b)
{
    const entry *p = a, *q = b;
    const int64_t d = p->map != q->map ? p->map - q->map
                      : p->x != q->x   ? p->x - q->x
                      : p->y != q->y   ? p->y - q->y
                                       : p->piece - q->piece;
    return (d > 0) - (d < 0);
}

static int64_t cell_of(double m, double cell_m)
{
    return (int64_t)fmax(-CELLS, fmin(floor(m / cell_m), CELLS));
}

/* Entries of all pieces: how many; all NULL: they are counted. */
static int64_t list(const pieces *p, double cell_m, double reach_m, entry *all)
{
    const dt_store_view *v = p->v;
    int64_t n = 0;
    for (int64_t map = 0; map < v->n_maps; map++) {
        for (int64_t i = p->of_lane[v->map_lane[map]]; i < p->of_lane[v->map_lane[map + 1]]; i++) {
            const piece *q = &p->piece[i];
            int64_t low[2], high[2];
            for (int d = 0; d < 2; d++) {
                low[d] = cell_of(fmin(q->from[d], q->to[d]) - reach_m, cell_m);
                high[d] = cell_of(fmax(q->from[d], q->to[d]) + reach_m, cell_m);
            }
            for (int64_t x = low[0]; x <= high[0]; x++) {
                for (int64_t y = low[1]; y <= high[1]; y++, n++) {
                    if (all != NULL) {
                        all[n] = (entry){map, x, y, (int32_t)i};
                    }
                }
            }
        }
    }
    return n;
}

/* Does a cell begin here? */
static bool is_first(const entry *all, int64_t k)
{
    return k == 0 || all[k].map != all[k - 1].map || all[k].x != all[k - 1].x || all[k].y != all[k - 1].y;
}

static dt_status make_grid(const pieces *p, double cell_m, double reach_m, pieces_grid *g)
{
    const dt_host *h = p->h;
    const int64_t n = list(p, cell_m, reach_m, NULL);
    entry *all = h->alloc(h, ((uint64_t)n + 1) * sizeof(*all));
    g->cell_m = cell_m;
    if (all != NULL) {
        (void)list(p, cell_m, reach_m, all);
        qsort(all, (size_t)n, sizeof(*all), compare);
    }
    for (int64_t k = 0; all != NULL && k < n; k++) {
        g->n += is_first(all, k);
    }
    g->item = h->alloc(h, ((uint64_t)n + 1) * sizeof(*g->item));
    g->cell = h->alloc(h, ((uint64_t)g->n + 1) * sizeof(*g->cell));
    g->of_map = h->alloc(h, ((uint64_t)p->v->n_maps + 1) * sizeof(*g->of_map));
    if (all == NULL || g->item == NULL || g->cell == NULL || g->of_map == NULL) {
        h->release(h, all);
        return no_memory(h, "places");
    }
    for (int64_t k = 0, at = 0; k < n; k++) {
        if (is_first(all, k)) {
            g->cell[at++] = (pieces_cell){all[k].map, all[k].x, all[k].y, k};
        }
        g->item[k] = all[k].piece;
    }
    g->cell[g->n].first = n;
    for (int64_t k = 0, map = 0; map <= p->v->n_maps; map++) {
        while (k < g->n && g->cell[k].map < map) {
            k++;
        }
        g->of_map[map] = k;
    }
    h->release(h, all);
    return DT_OK;
}

int64_t pieces_cell_at(const pieces_grid *g, int64_t map, double x, double y)
{
    const int64_t cx = cell_of(x, g->cell_m), cy = cell_of(y, g->cell_m);
    int64_t lo = 0, hi = g->n;
    while (lo < hi) { /* the first that is not before it */
        const int64_t mid = lo + (hi - lo) / 2;
        const pieces_cell *c = &g->cell[mid];
        const bool is_before = c->map != map ? c->map < map : c->x != cx ? c->x < cx : c->y < cy;
        lo = is_before ? mid + 1 : lo;
        hi = is_before ? hi : mid;
    }
    const pieces_cell *c = &g->cell[lo];
    return lo < g->n && c->map == map && c->x == cx && c->y == cy ? lo : -1;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

dt_status pieces_init(pieces *p, const dt_host *h, const lanes *l, const char *store)
{
    *p = (pieces){.h = h, .v = l->v};
    p->of_lane = h->alloc(h, ((uint64_t)l->v->n_lanes + 1) * sizeof(*p->of_lane));
    if (p->of_lane == NULL) {
        return no_memory(h, "pieces");
    }
    DT_TRY_H(count(p, l, store));
    p->piece = h->alloc(h, ((uint64_t)p->n + 1) * sizeof(*p->piece));
    p->edge_ptr = h->alloc(h, ((uint64_t)p->n + 1) * sizeof(*p->edge_ptr));
    if (p->piece == NULL || p->edge_ptr == NULL) {
        return no_memory(h, "pieces");
    }
    for (int64_t lane = 0; lane < l->v->n_lanes; lane++) {
        cut(p, l, lane);
    }
    DT_TRY_H(link_all(p));
    DT_TRY_H(make_grid(p, FAR_M, PIECES_REACH_M, &p->far));
    return make_grid(p, CLOSE_M, PIECES_NEAR_M, &p->near);
}

void pieces_fini(pieces *p)
{
    if (p->h == NULL) {
        return;
    }
    void *const owned[] = {p->piece,    p->of_lane,    p->edge_ptr,  p->edge,      p->far.cell,
                           p->far.item, p->far.of_map, p->near.cell, p->near.item, p->near.of_map};
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        p->h->release(p->h, owned[i]);
    }
    *p = (pieces){0};
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

void pieces_tell(const pieces *p, int64_t i, double flip, float *out)
{
    static const int32_t told[] = {DT_LANE_ROAD,     DT_LANE_HIGHWAY, DT_LANE_RAMP,
                                   DT_LANE_JUNCTION, DT_LANE_BUS,     DT_LANE_OTHER};
    const piece *x = &p->piece[i];
    const bool left = p->v->lane_left[x->lane] >= 0, right = p->v->lane_right[x->lane] >= 0;
    out[0] = (float)(x->length / 20);
    out[1] = (float)(flip * x->turn * 2);
    out[2] = (float)(2 * (x->width / LANE_M - 1));
    out[3] = flip > 0 ? left : right;
    out[4] = flip > 0 ? right : left;
    out[5] = x->parts;
    out[6] = x->meets;
    out[7] = x->ends;
    for (size_t k = 0; k < sizeof(told) / sizeof(told[0]); k++) {
        out[8 + k] = p->v->lane_kind[x->lane] == told[k] ? 1.f : 0.f;
    }
}

void pieces_tell_edge(const pieces *p, int64_t target, const pieces_edge *e, double flip, float *out)
{
    const piece *a = &p->piece[target], *b = &p->piece[e->source];
    const double dx = b->x - a->x, dy = b->y - a->y;
    int32_t relation = e->relation;
    if (flip < 0 && (relation == PIECES_LEFT || relation == PIECES_RIGHT)) {
        relation = PIECES_LEFT + PIECES_RIGHT - relation;
    }
    memset(out, 0, PIECES_EDGE_COLUMNS * sizeof(*out));
    out[relation] = 1.f;
    out[PIECES_RELATIONS] = (float)((dx * a->cos_h + dy * a->sin_h) / 20);
    out[PIECES_RELATIONS + 1] = (float)(flip * (dy * a->cos_h - dx * a->sin_h) / 8);
    out[PIECES_RELATIONS + 2] = (float)(flip * (b->sin_h * a->cos_h - b->cos_h * a->sin_h));
    out[PIECES_RELATIONS + 3] = (float)(b->cos_h * a->cos_h + b->sin_h * a->sin_h);
}

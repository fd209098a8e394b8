/* SPDX-License-Identifier: Apache-2.0
 *
 * See features_graph.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/features_graph.h"
#include "data/features.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Of four doubles, of their truths (all bits or none), of eight floats; of any array. */
typedef double vd __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t vl __attribute__((vector_size(32), aligned(8), may_alias));
typedef float vf __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(32), aligned(4), may_alias));
#define ALL_D(x) ((vd){(x), (x), (x), (x)})
#define ALL_F(x) ((vf){(x), (x), (x), (x), (x), (x), (x), (x)})
enum { D = 4, F = 8 };

enum {
    BLOCK = 64,   /* candidates whose distances are made at once */
    LISTED = 64,  /* neighbours that are ranked by counting; more are inserted one by one */
    RANKED_K = 32 /* likewise */
};

typedef struct near {
    double d2;
    int32_t j;
} near;

typedef struct target {
    const dt_vehicle *v; /* of all */
    int32_t i;
    double x, y, sin_h, cos_h, width, r2;
    uint32_t k;
    bool wants_ittc;
    /* found so far: listed, where there are few; else the k nearest of them, in order */
    near best[DT_NEIGHBOURS_MOST];
    uint32_t n_best;
    bool is_inserting;
    double d2[LISTED];
    float key[LISTED + F];
    int32_t j[LISTED];
    uint32_t n_listed;
    double worst; /* inverse TTC on the path */
} target;

/* ---- features of one edge, and of many --------------------------------------------------------------------------- */

/* Feature 3 of source b seen from target a, b ahead of it. */
static double inverse_ttc(const dt_vehicle *a, double sin_a, double cos_a, const dt_vehicle *b)
{
    const double ex = b->x - a->x, ey = b->y - a->y, dx = ex * cos_a + ey * sin_a, side = dx >= 0 ? 1.0 : -1.0;
    const double gap = fmax(0.0, fabs(dx) - 0.5 * (a->length + b->length));
    const double closing = side * (a->speed - b->speed * cos(b->heading - a->heading));
    return closing <= 0 ? 0.0 : closing >= DT_ITTC_MAX * gap ? DT_ITTC_MAX : closing / gap;
}

/* As numbers: yes where is is all bits, else no. */
#define CHOOSE(is, yes, no) ((vd)(((is) & (vl)(yes)) | (~(is) & (vl)(no))))

/* Features 0..3 of sources best[0..n) seen from the target. */
static ALWAYS_INLINE void write_edges(const target *t, const near *best, uint32_t n, int32_t *col, float *edge)
{
    const dt_vehicle *a = &t->v[t->i];
    const vd zero = ALL_D(0.0), one = ALL_D(1.0), half = ALL_D(0.5), most = ALL_D(DT_ITTC_MAX);
    const vd sin_a = ALL_D(t->sin_h), cos_a = ALL_D(t->cos_h), length_a = ALL_D(a->length), speed_a = ALL_D(a->speed);
    for (uint32_t p = 0; p < n; p += D) {
        const uint32_t m = n - p < D ? n - p : D;
        vd ex = zero, ey = zero, length = zero, speed = zero, along = one;
        for (uint32_t q = 0; q < m; q++) {
            const dt_vehicle *b = &t->v[best[p + q].j];
            ex[q] = b->x - a->x;
            ey[q] = b->y - a->y;
            length[q] = b->length;
            speed[q] = b->speed;
            along[q] = cos(b->heading - a->heading);
            col[p + q] = best[p + q].j;
        }
        const vd dx = ex * cos_a + ey * sin_a, dy = ey * cos_a - ex * sin_a;
        const vd side = CHOOSE(dx >= zero, one, -one), apart = CHOOSE(dx >= zero, dx, -dx);
        const vd free_m = apart - half * (length_a + length), gap = CHOOSE(free_m > zero, free_m, zero);
        const vd closing = side * (speed_a - speed * along), quotient = closing / gap;
        const vd ittc = CHOOSE(closing <= zero, zero, CHOOSE(closing >= most * gap, most, quotient)), far = side * gap;
        for (uint32_t q = 0; q < m; q++) {
            float *to = edge + (size_t)(p + q) * DT_EDGE_FEATURES;
            to[0] = (float)far[q];
            to[1] = (float)dy[q];
            to[2] = (float)closing[q];
            to[3] = (float)ittc[q];
        }
    }
}

/* ---- the nearest ------------------------------------------------------------------------------------------------- */

/* Keep the k nearest in order of (distance, index); the result does not depend on the order of the calls. */
static uint32_t keep_nearest(near *best, uint32_t n, uint32_t k, near c)
{
    uint32_t p = n < k ? n : k;
    while (p > 0 && (c.d2 < best[p - 1].d2 || (c.d2 == best[p - 1].d2 && c.j < best[p - 1].j))) {
        if (p < k) {
            best[p] = best[p - 1];
        }
        p--;
    }
    if (p < k) {
        best[p] = c;
    }
    return n < k ? n + 1 : k;
}

static void insert_listed(target *t)
{
    for (uint32_t p = 0; p < t->n_listed; p++) {
        t->n_best = keep_nearest(t->best, t->n_best, t->k, (near){t->d2[p], t->j[p]});
    }
    t->n_listed = 0;
    t->is_inserting = true;
}

/* The rank of a listed neighbour is how many are nearer, by distances rounded to floats, which keeps their order unless
 * two become one. False: two are. */
static ALWAYS_INLINE bool rank_listed(target *t)
{
    const uint32_t n = t->n_listed, kept = n < t->k ? n : t->k;
    uint64_t is_taken = 0;
    uint32_t n_taken = 0;
    for (uint32_t p = n; p < n + F; p++) {
        t->key[p] = INFINITY;
    }
    for (uint32_t a = 0; a < n; a += F) {
        const vf key = *(const vf *)(t->key + a);
        vi rank = {0};
        for (uint32_t b = 0; b < n; b++) {
            rank -= (vi)(ALL_F(t->key[b]) < key);
        }
        for (uint32_t q = 0; q < F && a + q < n; q++) {
            const uint32_t at = (uint32_t)rank[q];
            if (at < kept) {
                t->best[at] = (near){t->d2[a + q], t->j[a + q]};
                is_taken |= UINT64_C(1) << at;
                n_taken++;
            }
        }
    }
    t->n_best = kept;
    return n_taken == kept && is_taken == (UINT64_C(1) << kept) - 1; /* kept <= RANKED_K */
}

static ALWAYS_INLINE void choose_nearest(target *t)
{
    if (t->is_inserting || t->k > RANKED_K || !rank_listed(t)) {
        t->n_best = t->is_inserting ? t->n_best : 0;
        insert_listed(t);
    }
}

/* Up to BLOCK candidates of the grid, from one on. */
static ALWAYS_INLINE void look_at(target *t, const dt_nearby *g, uint32_t from, uint32_t n)
{
    double d2[BLOCK];
    int64_t is_near[BLOCK], is_ahead[BLOCK];
    const vd zero = ALL_D(0.0), half = ALL_D(0.5), x = ALL_D(t->x), y = ALL_D(t->y), r2 = ALL_D(t->r2);
    const vd sin_a = ALL_D(t->sin_h), cos_a = ALL_D(t->cos_h), width = ALL_D(t->width);
    int64_t any_ahead = 0;
    vl ahead = {0};
    for (uint32_t p = 0; p < n; p += D) {
        const vd ex = *(const vd *)(g->x + from + p) - x, ey = *(const vd *)(g->y + from + p) - y;
        const vd distance = ex * ex + ey * ey, aside = ey * cos_a - ex * sin_a;
        const vd reach = half * (width + *(const vd *)(g->width + from + p));
        const vl here = distance <= r2;
        const vl on_path = here & (ex * cos_a + ey * sin_a > zero) & (aside < reach) & (-aside < reach);
        *(vd *)(d2 + p) = distance;
        *(vl *)(is_near + p) = here;
        *(vl *)(is_ahead + p) = on_path;
        ahead |= on_path;
    }
    for (int q = 0; q < D; q++) {
        any_ahead |= ahead[q];
    }
    for (uint32_t p = 0; p < n; p++) {
        const int32_t j = (int32_t)g->order[from + p];
        t->d2[t->n_listed] = d2[p];
        t->key[t->n_listed] = (float)d2[p];
        t->j[t->n_listed] = j;
        t->n_listed += is_near[p] != 0 && j != t->i;
        if (t->n_listed == LISTED) {
            insert_listed(t);
        }
    }
    for (uint32_t p = 0; p < n && any_ahead != 0 && t->wants_ittc; p++) {
        const int32_t j = (int32_t)g->order[from + p];
        if (is_ahead[p] != 0 && j != t->i) { /* few are */
            const double ittc = inverse_ttc(&t->v[t->i], t->sin_h, t->cos_h, &t->v[j]);
            t->worst = ittc > t->worst ? ittc : t->worst;
        }
    }
}

/* ---- a frame ----------------------------------------------------------------------------------------------------- */

static ALWAYS_INLINE void make_graph(const dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m,
                                     uint32_t k_max, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    target t;
    int32_t e = 0;
    t.v = v;
    t.k = k_max - 1;
    t.r2 = radius_m * radius_m;
    t.wants_ittc = path_ittc != NULL;
    for (uint32_t i = 0; i < n; i++) {
        const dt_nearby_cell *c = &g->cell[g->spare[i]];
        t.i = (int32_t)i;
        t.x = v[i].x;
        t.y = v[i].y;
        t.sin_h = sin(v[i].heading);
        t.cos_h = cos(v[i].heading);
        t.width = isnan(v[i].width) ? DT_WIDTH_DEFAULT_M : v[i].width;
        t.worst = 0;
        t.n_best = t.n_listed = 0;
        t.is_inserting = false;
        for (int side = 0; side < 3; side++) {
            for (uint32_t p = c->begin[side]; p < c->end[side]; p += BLOCK) {
                look_at(&t, g, p, c->end[side] - p < BLOCK ? c->end[side] - p : BLOCK);
            }
        }
        choose_nearest(&t);
        rowptr[i] = e;
        col[e] = t.i; /* the vehicle itself comes first */
        memset(edge + (size_t)e * DT_EDGE_FEATURES, 0, DT_EDGE_FEATURES * sizeof(*edge));
        e++;
        write_edges(&t, t.best, t.n_best, col + e, edge + (size_t)e * DT_EDGE_FEATURES);
        e += (int32_t)t.n_best;
        if (path_ittc != NULL) {
            path_ittc[i] = (float)t.worst;
        }
    }
    rowptr[n] = e;
}

static void make_graph_plain(const dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                             int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
    make_graph(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void make_graph_avx2(const dt_nearby *g, const dt_vehicle *v, uint32_t n,
                                                            double radius_m, uint32_t k_max, int32_t *rowptr,
                                                            int32_t *col, float *edge, float *path_ittc)
{
    make_graph(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
}
#endif

void dt_features_graph(const dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                       int32_t *rowptr, int32_t *col, float *edge, float *path_ittc)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        make_graph_avx2(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
        return;
    }
#endif
    make_graph_plain(g, v, n, radius_m, k_max, rowptr, col, edge, path_ittc);
}

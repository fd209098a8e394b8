/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/inspect/on_lanes.h"
#include "traffic/map/bounds.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>

/* Cells of a grid: of CELL_M first, and larger until all of them together name no piece more than NAMED times. */
#define CELL_M 16.0
enum { NAMED = 16, SIDE_MOST = 1 << 12 };

/* Pieces of the centre lines of a map, by the cells that they are wide enough to reach. */
typedef struct grid {
    const dt_store_view *v;
    dt_bounds extent; /* of all that the pieces reach */
    double cell_m;
    int64_t side[2];     /* cells */
    int64_t n_pieces;    /* that vehicles drive on */
    int64_t *cell_piece; /* [cells + 1] */
    int64_t *piece;      /* points of the store: each begins a piece */
} grid;

static void grid_fini(grid *g)
{
    dt_free(g->cell_piece);
    dt_free(g->piece);
    g->cell_piece = g->piece = NULL;
}

static bool is_driven(int32_t kind)
{
    return kind != DT_LANE_FOOT && kind != DT_LANE_BICYCLE;
}

static double half_width(float width)
{
    return 0.5 * (width > 0 ? (double)width : DT_LANE_WIDTH_UNKNOWN_M);
}

/* What the piece from point i to the next one reaches. */
static dt_bounds reach_of_piece(const dt_store_view *v, int64_t i)
{
    dt_bounds e = {.has_any = false};
    const double wide = fmax(half_width(v->lane_width[i]), half_width(v->lane_width[i + 1]));
    dt_bounds_add_all(&e, v->lane_xy + 2 * i, 2);
    for (int d = 0; d < 2; d++) {
        e.least[d] -= wide;
        e.most[d] += wide;
    }
    return e;
}

static int64_t cell_index(const grid *g, int d, double x)
{
    const double at = floor((x - g->extent.least[d]) / g->cell_m);
    return at < 0 ? 0 : at < (double)g->side[d] ? (int64_t)at : g->side[d] - 1;
}

typedef struct visit {
    int64_t named;  /* pieces in cells */
    int64_t *count; /* [cells + 1]: how many there are in each; NULL: not needed */
    int64_t *place; /* [cells + 1]: where the next one of each goes; NULL: not needed */
} visit;

static void visit_piece(const grid *g, int64_t i, visit *to)
{
    const dt_bounds e = reach_of_piece(g->v, i);
    const int64_t x0 = cell_index(g, 0, e.least[0]), x1 = cell_index(g, 0, e.most[0]);
    const int64_t y0 = cell_index(g, 1, e.least[1]), y1 = cell_index(g, 1, e.most[1]);
    to->named += (x1 - x0 + 1) * (y1 - y0 + 1);
    if (to->count == NULL && to->place == NULL) {
        return;
    }
    for (int64_t y = y0; y <= y1; y++) {
        for (int64_t x = x0; x <= x1; x++) {
            const int64_t cell = y * g->side[0] + x;
            if (to->count != NULL) {
                to->count[cell]++;
            } else {
                g->piece[to->place[cell]++] = i;
            }
        }
    }
}

static void visit_all(const grid *g, int64_t map, visit *to)
{
    const dt_store_view *v = g->v;
    for (int64_t lane = v->map_lane[map]; lane < v->map_lane[map + 1]; lane++) {
        for (int64_t i = v->lane_point[lane]; is_driven(v->lane_kind[lane]) && i + 1 < v->lane_point[lane + 1]; i++) {
            visit_piece(g, i, to);
        }
    }
}

static void find_extent(grid *g, int64_t map)
{
    const dt_store_view *v = g->v;
    for (int64_t lane = v->map_lane[map]; lane < v->map_lane[map + 1]; lane++) {
        for (int64_t i = v->lane_point[lane]; is_driven(v->lane_kind[lane]) && i + 1 < v->lane_point[lane + 1]; i++) {
            const dt_bounds e = reach_of_piece(v, i);
            dt_bounds_add(&g->extent, e.least);
            dt_bounds_add(&g->extent, e.most);
            g->n_pieces++;
        }
    }
}

/* Cells so large that the grid is small, for any orientation of a map; how many pieces they name in all. */
static int64_t find_cells(grid *g, int64_t map)
{
    for (g->cell_m = CELL_M;; g->cell_m *= 2) {
        visit all = {.named = 0};
        for (int d = 0; d < 2; d++) {
            const double cells = ceil((g->extent.most[d] - g->extent.least[d]) / g->cell_m);
            g->side[d] = cells < 1 ? 1 : cells <= SIDE_MOST ? (int64_t)cells : SIDE_MOST + 1;
        }
        const bool is_small = g->side[0] <= SIDE_MOST && g->side[1] <= SIDE_MOST &&
                              g->side[0] * g->side[1] <= NAMED * g->n_pieces + NAMED;
        if (is_small) {
            visit_all(g, map, &all);
        }
        if (is_small && all.named <= NAMED * g->n_pieces) {
            return all.named;
        }
    }
}

static dt_status grid_make(grid *g, const dt_store_view *v, int64_t map)
{
    *g = (grid){.v = v};
    find_extent(g, map);
    if (g->n_pieces == 0) {
        return DT_OK;
    }
    const int64_t named = find_cells(g, map);
    const int64_t cells = g->side[0] * g->side[1];
    g->cell_piece = dt_alloc_n((size_t)cells + 1, sizeof(*g->cell_piece));
    int64_t *place = dt_alloc_n((size_t)cells + 1, sizeof(*place));
    g->piece = dt_alloc_n((size_t)named, sizeof(*g->piece));
    if (g->cell_piece == NULL || place == NULL || g->piece == NULL) {
        dt_free(place);
        grid_fini(g);
        return DT_FAIL(DT_ENOMEM, "no memory for a map of %" PRId64 " pieces of lanes", g->n_pieces);
    }
    visit_all(g, map, &(visit){.count = place});
    for (int64_t i = 0; i < cells; i++) {
        g->cell_piece[i + 1] = g->cell_piece[i] + place[i];
        place[i] = g->cell_piece[i];
    }
    visit_all(g, map, &(visit){.place = place});
    dt_free(place);
    return DT_OK;
}

static bool is_on_piece(const dt_store_view *v, int64_t i, const double at[2])
{
    const double *a = v->lane_xy + 2 * i, *b = a + 2;
    const double dx = b[0] - a[0], dy = b[1] - a[1], length2 = dx * dx + dy * dy;
    const double share = fmin(1, fmax(0, ((at[0] - a[0]) * dx + (at[1] - a[1]) * dy) / length2));
    const double wide = (1 - share) * half_width(v->lane_width[i]) + share * half_width(v->lane_width[i + 1]);
    return hypot(at[0] - a[0] - share * dx, at[1] - a[1] - share * dy) <= wide;
}

static bool is_on_lane(const grid *g, const double at[2])
{
    if (g->n_pieces == 0 || !(at[0] >= g->extent.least[0] && at[0] <= g->extent.most[0] &&
                              at[1] >= g->extent.least[1] && at[1] <= g->extent.most[1])) {
        return false;
    }
    const int64_t cell = cell_index(g, 1, at[1]) * g->side[0] + cell_index(g, 0, at[0]);
    for (int64_t k = g->cell_piece[cell]; k < g->cell_piece[cell + 1]; k++) {
        if (is_on_piece(g->v, g->piece[k], at)) {
            return true;
        }
    }
    return false;
}

dt_status dt_on_lanes_count(const dt_store_view *v, dt_on_lanes *out_p)
{
    dt_on_lanes n = {.rows = 0};
    grid g = {.v = v};
    int32_t of = -1;
    for (int64_t scene = 0; scene < v->n_scenes && v->n_maps > 0; scene++) {
        const int32_t map = v->scene_map[scene];
        if (map < 0) {
            continue;
        }
        if (map != of) {
            grid_fini(&g);
            DT_TRY(grid_make(&g, v, map));
            of = map;
        }
        const int64_t end = v->frame_row[v->scene_frame[scene + 1]];
        for (int64_t r = v->frame_row[v->scene_frame[scene]]; r < end; r++) {
            n.rows++;
            n.on += is_on_lane(&g, v->pose + 3 * r);
        }
    }
    grid_fini(&g);
    *out_p = n;
    return DT_OK;
}

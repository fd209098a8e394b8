/* SPDX-License-Identifier: Apache-2.0
 *
 * Junctions with four arms, one or a grid of them. Arm k leads in with heading k * 90 degrees: 0 from west, 1 from
 * south, 2 from east, 3 from north. Edges of `length_m` join them; those at the rim begin or end outside.
 *
 * With one lane every lane turns everywhere, and a phase is a street: left turns yield. With more the leftmost lane
 * turns left and nothing else, and left turns have a phase of their own, so that no green ever yields.
 */
#include "sim.h"

#include <string.h>

#define CORNER_M      4.0 /* from the outermost lane to the line: room to turn right */
#define QUARTER_RAD   1.5707963267948966
#define RANK_STRAIGHT 2
#define RANK_RIGHT    1
#define RANK_LEFT     0
#define RANK_MAJOR    10 /* without signals streets from west to east go first */

enum { ARMS = 4 };

typedef struct grid {
    net *n;
    const traffic_config *c;
    int32_t rows, cols, lanes;
    double half; /* line to centre */
} grid;

static int is_inside(const grid *g, int32_t row, int32_t col)
{
    return row >= 0 && row < g->rows && col >= 0 && col < g->cols;
}

/* The junction where traffic of heading k goes to, or came from where back is set; NET_NONE outside. */
static int32_t neighbour_junction(const grid *g, int32_t junction, int k, int back)
{
    static const int step[ARMS][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}};
    const int sign = back ? -1 : 1;
    const int32_t row = junction / g->cols + sign * step[k][0], col = junction % g->cols + sign * step[k][1];
    return is_inside(g, row, col) ? row * g->cols + col : NET_NONE;
}

/* Edges are numbered in order: the arms of all junctions, then the ways out. */
static int32_t incoming_edge(int32_t junction, int k)
{
    return junction * ARMS + k;
}

/* from: distance of the edge's start to the centre of the junction, along heading k. */
static int32_t add_street(const grid *g, int32_t junction, int k, double from)
{
    const double apart = g->c->length_m + 2 * g->half, right = (g->lanes - 0.5) * NET_LANE_M;
    const double dx = k == 0 ? 1 : k == 2 ? -1 : 0, dy = k == 1 ? 1 : k == 3 ? -1 : 0;
    const double x = apart * (junction % g->cols) + from * dx + right * dy;
    const double y = apart * (junction / g->cols) + from * dy - right * dx;
    return net_add_edge(g->n, g->lanes, g->c->length_m, g->c->limit_mps, x, y, k == 3 ? -QUARTER_RAD : k * QUARTER_RAD,
                        0);
}

/* Links of one lane of arm k; straight, left, right where its lane allows them. Adds to the masks of the phases. */
static void link_lane(const grid *g, int32_t junction, int k, int32_t i, const int32_t out[ARMS])
{
    net *n = g->n;
    net_junction *j = &n->junction[junction];
    const int32_t last = g->lanes - 1, from = n->edge[incoming_edge(junction, k)].lane + i;
    const int major = k % 2 == 0 && !g->c->signals ? RANK_MAJOR : 0;
    const int straight = g->lanes == 1 || i < last, left = i == last, right = i == 0;
    const int street = k % 2, phase = g->lanes == 1 ? street : 2 * street;
    if (straight) {
        net_include(&j->phase[phase].green, j->n_links);
        net_add_turn(n, junction, from, n->edge[out[k]].lane + i, g->c->limit_mps, RANK_STRAIGHT + major);
    }
    if (right) {
        net_include(&j->phase[phase].green, j->n_links);
        net_add_turn(n, junction, from, n->edge[out[(k + 3) % ARMS]].lane, g->c->limit_mps, RANK_RIGHT + major);
    }
    if (left) {
        net_include(&j->phase[g->lanes == 1 ? phase : phase + 1].green, j->n_links);
        net_add_turn(n, junction, from, n->edge[out[(k + 1) % ARMS]].lane + last, g->c->limit_mps, RANK_LEFT + major);
    }
}

static void add_junction(const grid *g, int32_t junction, const int32_t out[ARMS])
{
    net *n = g->n;
    net_add_junction(n);
    net_junction *j = &n->junction[junction];
    j->n_arms = ARMS;
    for (int k = 0; k < ARMS; k++) {
        const int32_t e = j->arm[k] = incoming_edge(junction, k);
        j->slot[k] = k * SCENARIO_MAX_LANES;
        j->neighbour[k] = neighbour_junction(g, junction, k, 1);
        net_add_way(n, e, out[k], 1 - g->c->left_share - g->c->right_share);
        net_add_way(n, e, out[(k + 1) % ARMS], g->c->left_share);
        net_add_way(n, e, out[(k + 3) % ARMS], g->c->right_share);
        for (int32_t i = 0; i < g->lanes; i++) {
            link_lane(g, junction, k, i, out);
        }
    }
    j->n_phases = g->c->signals ? n->most_phases : 0;
    for (int32_t p = 0; p < j->n_phases; p++) {
        j->green_s[p] = g->lanes > 1 && p % 2 == 1 ? g->c->left_green_s : g->c->green_s;
    }
    if (junction == 0) {
        net_find_conflicts(n, junction);
    } else { /* all have the same shape */
        memcpy(j->crosses, n->junction[0].crosses, (size_t)j->n_links * sizeof(*j->crosses));
        memcpy(j->yields, n->junction[0].yields, (size_t)j->n_links * sizeof(*j->yields));
        j->area = n->junction[0].area;
    }
}

dt_status scenario_build_grid(sim *s, int32_t rows, int32_t cols)
{
    const traffic_config *c = s->c;
    const int32_t n = rows * cols, rim = 2 * (rows + cols), lanes = (int32_t)c->lanes;
    const grid g = {
        .n = &s->net, .c = c, .rows = rows, .cols = cols, .lanes = lanes, .half = lanes * NET_LANE_M + CORNER_M};
    const int32_t links = n * ARMS * (lanes + 2);
    DT_TRY_H(net_init(&s->net, s->h,
                      (net_size){.lanes = (n * ARMS + rim) * lanes + links,
                                 .edges = n * ARMS + rim,
                                 .links = links,
                                 .junctions = n,
                                 .areas = links / n * links / n}));
    s->net.n_signals = c->signals ? n : 0;
    s->net.most_phases = lanes == 1 ? 2 : 4;
    s->net.most_slots = ARMS * SCENARIO_MAX_LANES;
    s->source = s->h->alloc(s->h, (uint64_t)rim * sizeof(*s->source));
    if (s->source == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %d sources", (int)rim);
    }
    for (int32_t j = 0; j < n; j++) {
        for (int k = 0; k < ARMS; k++) {
            const int32_t e = add_street(&g, j, k, -g.half - c->length_m);
            if (neighbour_junction(&g, j, k, 1) == NET_NONE) {
                s->source[s->n_sources++] = (source){.edge = e, .rate = c->flow_vph / 3600};
            }
        }
    }
    int32_t exits = n * ARMS;
    for (int32_t j = 0; j < n; j++) {
        for (int k = 0; k < ARMS; k++) {
            if (neighbour_junction(&g, j, k, 0) == NET_NONE) {
                add_street(&g, j, k, g.half);
            }
        }
    }
    for (int32_t j = 0; j < n; j++) {
        int32_t out[ARMS];
        for (int k = 0; k < ARMS; k++) {
            const int32_t next = neighbour_junction(&g, j, k, 0);
            out[k] = next == NET_NONE ? exits++ : incoming_edge(next, k);
        }
        add_junction(&g, j, out);
    }
    return DT_OK;
}

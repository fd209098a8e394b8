/* SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

#define EVERY_S     1.0   /* between two decisions of a driver */
#define REST_S      3.0   /* between two changes of a driver that could stay */
#define UNKNOWN_M   20.0  /* after a junction no vehicle changes: those that follow on the other lane is not seen */
#define COOPERATE_M 150.0 /* before the end of a lane */

/* What a vehicle would have around it in another lane. */
typedef struct gap {
    int32_t q;                       /* the slot it would get */
    int32_t follower, follower_lane; /* slot, NET_NONE: none */
    double ahead, ahead_v, behind;
} gap;

/* The vehicle that comes to the start of a lane over a junction, in a network from a file: the nearest one. x: of a
 * rear on it. */
static void find_follower_upstream(const sim *s, int32_t to, double x, gap *g)
{
    const int32_t edge = s->net.lane[to].edge;
    for (int32_t i = s->search.first[edge]; i < s->search.first[edge + 1]; i++) {
        const net_link *l = &s->net.link[s->search.into[i]];
        if (l->to != to) {
            continue;
        }
        const int32_t way[2] = {l->via, l->from};
        double between = x;
        for (int k = 0; k < 2; k++) {
            const lane_state *a = &s->lane[way[k]];
            const double end = s->net.lane[way[k]].length;
            if (a->n > 0 && (k == 0 || s->vehicle[s->who[slot_front(a)]].next == l->via) &&
                between + end - s->x[slot_front(a)] < g->behind) {
                g->follower = slot_front(a);
                g->follower_lane = way[k];
                g->behind = between + end - s->x[g->follower];
            }
            between += end;
        }
    }
}

/* j: vehicles of lane `to` that are ahead of x. 0 when what is behind cannot be seen. */
static int find_adjacent_gap(const sim *s, const vehicle *w, int32_t to, int32_t j, double x, double length, gap *g)
{
    const lane_state *l = &s->lane[to];
    const double rest = s->net.lane[to].length - x;
    g->q = slot_front(l) + j;
    if (j > 0) {
        g->ahead = s->x[g->q - 1] - s->length[g->q - 1] - x;
        g->ahead_v = s->v[g->q - 1];
    } else {
        const int32_t way = place_next_lane(s, w, to, 0);
        g->ahead = move_find_leader(s, w, to, way, rest, &g->ahead_v);
        if (way == NET_NONE && rest < g->ahead) {
            g->ahead = rest;
            g->ahead_v = 0;
        }
    }
    g->follower = NET_NONE;
    g->behind = FREE_GAP;
    if (j < l->n) {
        g->follower = g->q;
        g->follower_lane = to;
        g->behind = x - length - s->x[g->q];
        return 1;
    }
    const int32_t before = s->net.lane[to].before;
    if (before == NET_NONE && s->search.first != NULL) {
        find_follower_upstream(s, to, x - length, g);
        return 1;
    }
    if (before == NET_NONE) {
        return x > UNKNOWN_M;
    }
    if (s->lane[before].n > 0) {
        g->follower = slot_front(&s->lane[before]);
        g->follower_lane = before;
        g->behind = x - length + s->net.lane[before].length - s->x[g->follower];
    }
    return 1;
}

static double follow_slot(const sim *s, int32_t p, double gap_m, double leader)
{
    return follow(&s->driver, s->v[p], s->want[p], gap_m, leader);
}

static int has_room(const sim *s, const gap *g)
{
    return g->ahead >= 0.5 * s->driver.s0 && g->behind >= 0.5 * s->driver.s0;
}

/* Is it safe, and is it worth it or needed? */
static int is_change_wanted(const sim *s, int32_t lane, int32_t p, const gap *g, int must)
{
    const double safe = -s->c->safe_decel_mps2;
    if (!has_room(s, g)) {
        return 0;
    }
    const double a_new = follow_slot(s, p, g->ahead, g->ahead_v);
    const double n_new = g->follower == NET_NONE ? 0 : follow_slot(s, g->follower, g->behind, s->v[p]);
    if (a_new < safe || n_new < safe) {
        return 0;
    }
    if (must) {
        return 1;
    }
    double ahead_v;
    const double ahead = sim_gap_ahead(s, lane, p, &ahead_v), a_old = follow_slot(s, p, ahead, ahead_v);
    double others = 0;
    if (g->follower != NET_NONE) {
        const double whole = g->behind + s->length[p] + g->ahead;
        others += n_new - follow_slot(s, g->follower, whole, g->ahead_v);
    }
    if (p < slot_back(&s->lane[lane])) {
        const double own = s->x[p] - s->length[p] - s->x[p + 1];
        others += follow_slot(s, p + 1, own + s->length[p] + ahead, ahead_v) - follow_slot(s, p + 1, own, s->v[p]);
    }
    return a_new - a_old + s->c->politeness * others > s->c->change_threshold;
}

/* Does its agent decide, and not MOBIL? */
static int is_steered(const sim *s, const vehicle *w)
{
    return s->c->lane_actions && !s->c->baseline && w->place != NET_NONE && s->place[w->place].state == PLACE_ACTING;
}

/* The vehicle in slot p looks at one adjacent lane; 1 when it is there now. j_p: vehicles of that lane ahead of it. */
static int try_change_to_side(sim *s, int32_t lane, int32_t p, int32_t to, int32_t *j_p)
{
    const lane_state *l = &s->lane[to];
    const vehicle *w = &s->vehicle[s->who[p]];
    while (*j_p < l->n && s->x[slot_front(l) + *j_p] > s->x[p]) {
        ++*j_p;
    }
    const int32_t side = to - lane;
    const int must = w->need * side > 0;
    const double rested = s->elapsed_s - w->last;
    if (is_steered(s, w)) {
        return 0;
    }
    if ((!must && (w->need != 0 || rested < REST_S || place_next_lane(s, w, to, 0) == NET_NONE)) || rested < EVERY_S) {
        return 0;
    }
    gap g;
    if (!find_adjacent_gap(s, w, to, *j_p, s->x[p], s->length[p], &g) || !is_change_wanted(s, lane, p, &g, must)) {
        return 0;
    }
    const int32_t vid = s->who[p];
    if (!place_shift(s, lane, p, to, g.q)) {
        return 0;
    }
    s->vehicle[vid].last = s->elapsed_s;
    ++*j_p;
    return 1;
}

static void change_lane(sim *s, int32_t lane)
{
    const net_lane *n = &s->net.lane[lane];
    int32_t left = 0, right = 0;
    for (int32_t i = 0; i < s->lane[lane].n;) {
        const int32_t p = slot_front(&s->lane[lane]) + i;
        if (n->left != NET_NONE && try_change_to_side(s, lane, p, n->left, &left)) {
            continue;
        }
        if (n->right != NET_NONE && try_change_to_side(s, lane, p, n->right, &right)) {
            continue;
        }
        i++;
    }
}

void change_step(sim *s)
{
    const uint64_t every = (uint64_t)most(1, round(EVERY_S / s->c->dt_s));
    for (int32_t e = 0; e < s->net.n_edges; e++) {
        const net_edge *edge = &s->net.edge[e];
        if (edge->n_lanes == 1 || (s->step + (uint64_t)e) % every != 0) {
            continue;
        }
        for (int32_t lane = edge->lane; lane < edge->lane + edge->n_lanes; lane++) {
            change_lane(s, lane);
        }
    }
}

/* The gap next to a vehicle, 0 where there is no lane or no room. to_p: the lane. */
static int find_gap(const sim *s, int32_t vid, int side, int32_t *to_p, gap *g)
{
    const vehicle *w = &s->vehicle[vid];
    const int32_t p = sim_slot_of(s, vid), to = side > 0 ? s->net.lane[w->lane].left : s->net.lane[w->lane].right;
    if (to == NET_NONE) {
        return 0;
    }
    const lane_state *l = &s->lane[to];
    int32_t j = 0;
    while (j < l->n && s->x[slot_front(l) + j] > s->x[p]) {
        j++;
    }
    *to_p = to;
    return find_adjacent_gap(s, w, to, j, s->x[p], s->length[p], g) && has_room(s, g);
}

int change_is_possible(const sim *s, int32_t vid, int side)
{
    gap g;
    int32_t to;
    return find_gap(s, vid, side, &to, &g);
}

int change_evaluate(const sim *s, int32_t vid, int side, change_view *out)
{
    gap g;
    int32_t to;
    if (!find_gap(s, vid, side, &to, &g)) {
        return 0;
    }
    *out = (change_view){g.ahead, g.ahead_v, g.behind, g.follower == NET_NONE ? 0 : s->v[g.follower]};
    return 1;
}

/* Did a vehicle enter the gap since it was checked? */
static int is_gap_taken(const sim *s, int32_t vid, int32_t to, const gap *g)
{
    double rest = s->net.lane[to].length - s->x[sim_slot_of(s, vid)];
    const int is_first = g->q == slot_front(&s->lane[to]);
    const vehicle *w = &s->vehicle[vid];
    const int32_t ahead = is_first ? move_find_vehicle_ahead(s, w, place_next_lane(s, w, to, 0), &rest) : g->q - 1;
    return (ahead != NET_NONE && s->vehicle[s->who[ahead]].last == s->elapsed_s) ||
           (g->follower != NET_NONE && s->vehicle[s->who[g->follower]].last == s->elapsed_s);
}

int change_lane_to(sim *s, int32_t vid, int side)
{
    gap g;
    int32_t to;
    if (!find_gap(s, vid, side, &to, &g) || is_gap_taken(s, vid, to, &g) ||
        !place_shift(s, s->vehicle[vid].lane, sim_slot_of(s, vid), to, g.q)) {
        return 0;
    }
    s->vehicle[vid].last = s->elapsed_s;
    return 1;
}

static void yield_to_change(sim *s, int32_t p, double gap_m, double leader)
{
    s->a[p] = least(s->a[p], most(follow_slot(s, p, gap_m, leader), -s->driver.b));
}

void change_cooperate(sim *s)
{
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        const lane_state *l = &s->lane[lane];
        if (l->n == 0 || s->net.lane[lane].edge == NET_NONE) {
            continue;
        }
        const int32_t p = slot_front(l);
        const vehicle *w = &s->vehicle[s->who[p]];
        if (!w->is_pressed || s->net.lane[lane].length - s->x[p] > COOPERATE_M) {
            continue;
        }
        const int32_t to = w->need > 0 ? s->net.lane[lane].left : s->net.lane[lane].right;
        const lane_state *aside = &s->lane[to];
        int32_t j = 0;
        while (j < aside->n && s->x[slot_front(aside) + j] > s->x[p]) {
            j++;
        }
        gap g;
        if (!find_adjacent_gap(s, w, to, j, s->x[p], s->length[p], &g)) {
            continue;
        }
        if (j > 0 && g.ahead > -s->length[p]) {
            yield_to_change(s, p, g.ahead, g.ahead_v);
        }
        /* not one that stands so close that it is in the way */
        if (g.follower != NET_NONE && g.follower_lane == to && g.behind > 0 &&
            (g.behind >= 0.5 * s->driver.s0 || s->v[g.follower] > HALTING_MPS)) {
            yield_to_change(s, g.follower, g.behind, s->v[p]);
        }
    }
}

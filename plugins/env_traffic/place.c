/* SPDX-License-Identifier: Apache-2.0
 *
 * Vehicles come to lanes, move from lane to lane and leave. See sim.h for how lanes keep them.
 */
#include "sim.h"

#include <string.h>

#define FACTOR_LEAST 0.5 /* of the limit; no driver chooses slower or faster than this */
#define FACTOR_MOST  1.5
#define SWAP_S       5.0 /* the same, next to one that has to change places */
#define SWAP_GAP_M   0.5
#define GIVE_UP_S    15.0  /* standing at the end of a lane that leads elsewhere: then elsewhere it is */
#define DETOUR_S     120.0 /* the same for a vehicle with a trip: a cycle of a signal may bring the gap */
#define SHORT_M      60.0  /* an edge on which there is hardly time to change lanes */
#define PRICE_SHORT  4.0   /* of a change on a short edge, in changes on another one */
#define LONG_M       150.0 /* an edge on which all can be put right */
#define DEEP         4     /* edges that drivers look ahead for their lane */
#define HOPS_MAX     1024  /* edges of one trip that have random numbers of their own */

static void move_slots(sim *s, int32_t to, int32_t from, int32_t n)
{
    const size_t bytes = (size_t)n * sizeof(double);
    memmove(s->x + to, s->x + from, bytes);
    memmove(s->v + to, s->v + from, bytes);
    memmove(s->a + to, s->a + from, bytes);
    memmove(s->length + to, s->length + from, bytes);
    memmove(s->want + to, s->want + from, bytes);
    memmove(s->who + to, s->who + from, (size_t)n * sizeof(*s->who));
}

/* A free slot behind the last vehicle of a lane; 0 when the lane is full. */
static int make_room(sim *s, lane_state *l)
{
    if (l->head + l->n < l->cap) {
        return 1;
    }
    if (l->head == 0) {
        return 0;
    }
    move_slots(s, l->base, slot_front(l), l->n);
    l->head = 0;
    return 1;
}

typedef struct mover {
    double x, v, a, length, want;
    int32_t who;
} mover;

static mover copy_slot(const sim *s, int32_t p)
{
    return (mover){s->x[p], s->v[p], s->a[p], s->length[p], s->want[p], s->who[p]};
}

static void put_slot(sim *s, int32_t p, const mover *m)
{
    s->x[p] = m->x;
    s->v[p] = m->v;
    s->a[p] = m->a;
    s->length[p] = m->length;
    s->want[p] = m->want;
    s->who[p] = m->who;
}

/* Appends; two that come from different lanes in one step are put in the order of their positions. */
static int append_vehicle(sim *s, int32_t lane, const mover *m)
{
    lane_state *l = &s->lane[lane];
    if (!make_room(s, l)) {
        return 0;
    }
    int32_t p = slot_front(l) + l->n++;
    for (; p > slot_front(l) && s->x[p - 1] < m->x; p--) {
        move_slots(s, p, p - 1, 1);
    }
    put_slot(s, p, m);
    s->vehicle[m->who].lane = lane;
    return 1;
}

/* The desired speed of a vehicle on a lane. */
static double desired_speed(const sim *s, int32_t vid, int32_t lane)
{
    const vehicle *w = &s->vehicle[vid];
    return least(s->net.lane[lane].limit * w->factor, w->top);
}

int place_shift(sim *s, int32_t from, int32_t p, int32_t to, int32_t q)
{
    lane_state *lf = &s->lane[from], *lt = &s->lane[to];
    const int32_t at = q - slot_front(lt);
    mover m = copy_slot(s, p);
    if (!make_room(s, lt)) {
        return 0;
    }
    m.want = desired_speed(s, m.who, to);
    q = slot_front(lt) + at;
    move_slots(s, q + 1, q, lt->n - at);
    put_slot(s, q, &m);
    lt->n++;
    move_slots(s, p, p + 1, slot_back(lf) - p);
    lf->n--;
    s->vehicle[m.who].lane = to;
    place_choose_way(s, m.who);
    return 1;
}

int32_t place_target(const sim *s, const vehicle *w, int32_t k)
{
    if (k == 0 || w->target == NET_EXIT) {
        return w->target;
    }
    if (w->trip == NET_NONE || w->is_lost) {
        return NET_NONE;
    }
    const plan_trip *t = PLAN_TRIP(&s->plan, w->trip);
    const int32_t at = (int32_t)w->hop + k;
    return at < t->n_edges ? PLAN_EDGE(&s->plan, t->edge + at) : NET_EXIT;
}

static double price_of_change(const net_lane *l)
{
    return l->length < SHORT_M ? PRICE_SHORT : 1;
}

/* Edges to look at from this lane on: on a long one all can be put right. */
static int32_t lookahead_edges(const sim *s, int32_t lane, int32_t deep)
{
    return deep > 1 && s->net.lane[lane].length >= LONG_M ? 1 : deep;
}

/* What changing lanes costs w from this lane of its k-th edge from now on: changes here, and on the edges after it,
 * `deep` of them with this one. */
static double cost_of_lane(const sim *s, const vehicle *w, int32_t lane, int32_t k, int32_t deep)
{
    const int32_t target = place_target(s, w, k);
    if (target < 0 || deep == 0) {
        return 0;
    }
    const net_edge *e = &s->net.edge[s->net.lane[lane].edge];
    const double price = price_of_change(&s->net.lane[lane]);
    double least_cost = price * e->n_lanes;
    for (int32_t side = e->lane; side < e->lane + e->n_lanes; side++) {
        const net_lane *l = &s->net.lane[side];
        const double here = price * (side < lane ? lane - side : side - lane);
        for (int32_t i = l->link; i < l->link + l->n_links && here < least_cost; i++) {
            if (s->net.link[i].edge == target) {
                const int32_t to = s->net.link[i].to;
                least_cost = least(least_cost, here + cost_of_lane(s, w, to, k + 1, lookahead_edges(s, to, deep - 1)));
            }
        }
    }
    return least_cost;
}

static double cost_of_link(const sim *s, const vehicle *w, int32_t link, int32_t k)
{
    const int32_t to = s->net.link[link].to;
    return cost_of_lane(s, w, to, k, lookahead_edges(s, to, DEEP));
}

/* The link of a lane that w takes, the k-th edge from now, NET_NONE where it leads elsewhere: of several the one that
 * costs least after it. */
static int32_t best_link(const sim *s, const vehicle *w, int32_t lane, int32_t k)
{
    const net_lane *l = &s->net.lane[lane];
    const int32_t target = place_target(s, w, k);
    int32_t best = NET_NONE;
    double least_cost = -1; /* of the best, where that is known */
    for (int32_t i = l->link; i < l->link + l->n_links; i++) {
        if (s->net.link[i].edge != target) {
            continue;
        }
        if (best == NET_NONE) {
            best = i;
            continue;
        }
        least_cost = least_cost < 0 ? cost_of_link(s, w, best, k + 1) : least_cost;
        const double cost = cost_of_link(s, w, i, k + 1);
        if (cost < least_cost) {
            best = i;
            least_cost = cost;
        }
    }
    return best;
}

int32_t place_next_lane(const sim *s, const vehicle *w, int32_t lane, int32_t k)
{
    if (s->net.lane[lane].via_of != NET_NONE) {
        return s->net.link[s->net.lane[lane].via_of].to;
    }
    if (place_target(s, w, k) == NET_EXIT) {
        return NET_EXIT;
    }
    const int32_t link = best_link(s, w, lane, k);
    return link == NET_NONE                    ? NET_NONE
           : s->net.link[link].via == NET_NONE ? s->net.link[link].to
                                               : s->net.link[link].via;
}

/* The lane from which it costs least to get where w goes; of equal ones the one with the least to do later. */
void place_choose_way(sim *s, int32_t vid)
{
    vehicle *w = &s->vehicle[vid];
    const net_lane *l = &s->net.lane[w->lane];
    w->need = w->is_pressed = 0;
    w->next = place_next_lane(s, w, w->lane, 0);
    if (l->via_of != NET_NONE || w->target == NET_EXIT) {
        return;
    }
    const net_edge *e = &s->net.edge[l->edge];
    const double price = price_of_change(l);
    double least_all = INFINITY, least_after = INFINITY, own_after = INFINITY;
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        const int32_t link = best_link(s, w, lane, 0), away = lane - w->lane;
        if (link == NET_NONE) {
            continue;
        }
        const double after = cost_of_link(s, w, link, 1);
        const double all = price * (away < 0 ? -away : away) + after;
        own_after = away == 0 ? after : own_after;
        if (all < least_all || (all == least_all && after < least_after)) {
            least_all = all;
            least_after = after;
            w->need = away;
        }
    }
    w->is_pressed = w->need != 0 && own_after - least_after >= PRICE_SHORT;
}

static int32_t last_edge(const sim *s, const plan_trip *t)
{
    return PLAN_EDGE(&s->plan, t->edge + t->n_edges - 1);
}

/* The next edge of a trip; a vehicle off its route takes the quickest way to the last one. */
static void follow_trip(sim *s, vehicle *w, int32_t edge)
{
    const plan_trip *t = PLAN_TRIP(&s->plan, w->trip);
    if (!w->is_lost) {
        w->target = (int32_t)w->hop < t->n_edges ? PLAN_EDGE(&s->plan, t->edge + (int32_t)w->hop) : NET_EXIT;
        return;
    }
    route_find(&s->search, &s->net, last_edge(s, t));
    w->target = s->search.after[edge] == NET_NONE ? NET_EXIT : s->search.after[edge];
}

/* On a new edge: where to go after it. */
static void enter_edge(sim *s, int32_t vid, int32_t edge)
{
    vehicle *w = &s->vehicle[vid];
    const net_edge *e = &s->net.edge[edge];
    w->hop++;
    if (w->trip != NET_NONE) {
        follow_trip(s, w, edge);
        return;
    }
    w->target = NET_EXIT;
    if (e->n_out == 1) {
        w->target = e->out[0];
    } else if (e->n_out > 1) {
        double u = draw(s, DRAW_ROUTE, w->key * HOPS_MAX + (w->hop - 1) % HOPS_MAX);
        int32_t k = 0;
        for (; k + 1 < e->n_out && u >= e->share[k]; k++) {
            u -= e->share[k];
        }
        w->target = e->out[k];
    }
}

static void set_lane(sim *s, mover *m, int32_t lane)
{
    vehicle *w = &s->vehicle[m->who];
    const net_lane *l = &s->net.lane[lane];
    m->want = desired_speed(s, m->who, lane);
    w->came = w->lane != lane ? w->lane : NET_NONE; /* equal: it is inserted */
    w->lane = lane;
    if (l->edge != NET_NONE) {
        enter_edge(s, m->who, l->edge);
    }
    place_choose_way(s, m->who);
}

static double speed_factor(const sim *s, uint64_t key, const plan_type *t)
{
    const double mean = t != NULL ? t->factor : 1, dev = t != NULL ? t->dev : s->c->speed_dev;
    if (dev == 0) {
        return mean;
    }
    const double u = 1 - draw(s, DRAW_FACTOR, 2 * key), w = draw(s, DRAW_FACTOR, 2 * key + 1);
    const double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * w); /* Box & Muller 1958 */
    return most(FACTOR_LEAST, least(FACTOR_MOST, mean + dev * normal));
}

static void find_place(sim *s, int32_t vid)
{
    for (int32_t k = 0; k < s->n_places; k++) {
        if (s->place[k].state == PLACE_FREE) {
            s->place[k] = (place){.vehicle = vid, .state = PLACE_NEW};
            s->vehicle[vid].place = k;
            return;
        }
    }
}

int32_t place_insert(sim *s, int32_t lane, double x, double v, double due, int32_t trip)
{
    if (s->n_spare == 0 || !make_room(s, &s->lane[lane])) {
        return NET_NONE;
    }
    const int32_t vid = s->spare[--s->n_spare];
    const uint64_t key = s->next_key++;
    const plan_trip *t = trip == NET_NONE ? NULL : PLAN_TRIP(&s->plan, trip);
    const plan_type *type = t == NULL ? NULL : PLAN_TYPE(&s->plan, t->type);
    double factor = t != NULL && t->factor > 0 ? t->factor : speed_factor(s, key, type);
    if (t != NULL &&
        t->speed_kind == PLAN_SPEED_GIVEN) { /* SUMO: a vehicle that begins faster than that stays so fast */
        factor = most(factor, t->speed / s->net.lane[lane].limit);
    }
    s->vehicle[vid] = (vehicle){.key = key,
                                .lane = lane,
                                .place = NET_NONE,
                                .trip = trip,
                                .factor = factor,
                                .top = type != NULL ? least(type->top, type->desired * factor) : INFINITY,
                                .due = due,
                                .born = s->elapsed_s,
                                .last = s->elapsed_s};
    mover m = {.x = x, .v = v, .length = type != NULL ? type->length : s->c->vehicle_m, .who = vid};
    set_lane(s, &m, lane);
    m.v = least(v, m.want);
    append_vehicle(s, lane, &m);
    s->n_vehicles++;
    s->sum.inserted++;
    s->sum.loss_s += s->elapsed_s - due;
    s->sum.late_s += s->elapsed_s - due;
    /* on the ring every k-th vehicle is an agent, elsewhere it is drawn */
    const double p = s->c->penetration, i = (double)key;
    const int is_agent = s->c->scenario == SCENARIO_RING ? floor((i + 1) * p + 1e-9) > floor(i * p + 1e-9)
                                                         : draw(s, DRAW_CONTROL, key) < p;
    if (s->c->control != CONTROL_SIGNALS && is_agent) {
        find_place(s, vid);
    }
    return vid;
}

/* The vehicle of a lane's first slot has left the network. */
static void remove_vehicle(sim *s, int32_t lane, const mover *m)
{
    vehicle *w = &s->vehicle[m->who];
    if (w->place != NET_NONE) {
        place *k = &s->place[w->place];
        k->state = k->state == PLACE_ACTING ? PLACE_ENDED : PLACE_FREE;
        k->vehicle = NET_NONE;
        net_point(&s->net.lane[lane], m->x - 0.5 * m->length, &k->x, &k->y, &k->heading);
        k->speed = m->v;
        k->done_accel = m->a;
    }
    s->sum.trip_s += s->elapsed_s + s->c->dt_s - w->born;
    s->sum.finished++;
    s->n_vehicles--;
    w->lane = NET_NONE;
    s->spare[s->n_spare++] = m->who;
}

/* A new target that lane k leads to: of a trip the one from where its last edge is nearest, if it is reached at all. */
static void turn_elsewhere(sim *s, int32_t k, int32_t vid)
{
    vehicle *w = &s->vehicle[vid];
    const net_lane *l = &s->net.lane[k];
    if (w->trip == NET_NONE) {
        w->target = s->net.link[l->link].edge;
        return;
    }
    route_find(&s->search, &s->net, last_edge(s, PLAN_TRIP(&s->plan, w->trip)));
    double least_s = INFINITY;
    for (int32_t i = l->link; i < l->link + l->n_links; i++) {
        const int32_t edge = s->net.link[i].edge;
        if (s->search.cost[edge] < least_s) {
            least_s = s->search.cost[edge];
            w->target = edge;
            w->is_lost = 1;
        }
    }
}

/* Does a vehicle of another length fit where slot p is? */
static int fits_gap(const sim *s, int32_t lane, int32_t p, double length)
{
    return length <= s->length[p] || p == slot_back(&s->lane[lane]) || s->x[p] - length >= s->x[p + 1] + SWAP_GAP_M;
}

/* Two that stand first on adjacent lanes, each on the other's, would stand there for ever: they take each
 * other's place. */
static void swap_stuck(sim *s, int32_t lane)
{
    const int32_t left = s->net.lane[lane].left;
    if (left == NET_NONE || s->lane[lane].stood_s < SWAP_S || s->lane[left].stood_s < SWAP_S || s->lane[left].n == 0) {
        return;
    }
    const int32_t p = slot_front(&s->lane[lane]), q = slot_front(&s->lane[left]);
    vehicle *a = &s->vehicle[s->who[p]], *b = &s->vehicle[s->who[q]];
    if (a->next != NET_NONE || b->next != NET_NONE || a->need <= 0 || b->need >= 0 ||
        !fits_gap(s, lane, p, s->length[q]) || !fits_gap(s, left, q, s->length[p])) {
        return;
    }
    mover m = copy_slot(s, p), n = copy_slot(s, q);
    const double x = m.x;
    m.x = n.x;
    n.x = x;
    m.want = desired_speed(s, m.who, left);
    n.want = desired_speed(s, n.who, lane);
    put_slot(s, p, &n);
    put_slot(s, q, &m);
    a->lane = left;
    b->lane = lane;
    place_choose_way(s, m.who);
    place_choose_way(s, n.who);
}

void place_reroute(sim *s)
{
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        const lane_state *l = &s->lane[k];
        if (l->n == 0 || l->stood_s < SWAP_S) {
            continue;
        }
        swap_stuck(s, k);
        const int32_t vid = s->who[slot_front(l)];
        const double patience = s->vehicle[vid].trip == NET_NONE ? GIVE_UP_S : DETOUR_S;
        if (l->stood_s >= patience && s->net.lane[k].n_links > 0 && s->vehicle[vid].next == NET_NONE) {
            turn_elsewhere(s, k, vid);
            place_choose_way(s, vid);
        }
    }
}

void place_enter_next_lanes(sim *s)
{
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        lane_state *l = &s->lane[lane];
        const double end = s->net.lane[lane].length;
        while (l->n > 0 && s->x[slot_front(l)] >= end) {
            const int32_t p = slot_front(l), next = s->vehicle[s->who[p]].next;
            mover m = copy_slot(s, p);
            const lane_state *to = next >= 0 ? &s->lane[next] : NULL;
            if (next == NET_NONE || (to != NULL && to->n == to->cap && next != lane)) {
                s->x[p] = end; /* no way on from here */
                s->v[p] = 0;
                break;
            }
            l->head++;
            l->n--;
            if (next == NET_EXIT) {
                remove_vehicle(s, lane, &m);
                continue;
            }
            m.x -= end;
            set_lane(s, &m, next);
            append_vehicle(s, next, &m);
        }
    }
}

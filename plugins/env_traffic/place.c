/* SPDX-License-Identifier: Apache-2.0
 *
 * Vehicles come to lanes, move from lane to lane and leave. See sim.h for how lanes keep them.
 */
#include "sim.h"

#include <string.h>

#define FACTOR_LEAST 0.5 /* of the limit; nobody wants to drive slower or faster than this */
#define FACTOR_MOST  1.5
#define GIVE_UP_S    15.0 /* standing at the end of a lane that leads elsewhere: then elsewhere it is */
#define HOPS_MAX     1024 /* edges of one trip that have random numbers of their own */

static void slots_move(sim *s, int32_t to, int32_t from, int32_t n)
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
    slots_move(s, l->base, slot_front(l), l->n);
    l->head = 0;
    return 1;
}

typedef struct mover {
    double x, v, a, length, want;
    int32_t who;
} mover;

static mover take_slot(const sim *s, int32_t p)
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
static int append(sim *s, int32_t lane, const mover *m)
{
    lane_state *l = &s->lane[lane];
    if (!make_room(s, l)) {
        return 0;
    }
    int32_t p = slot_front(l) + l->n++;
    for (; p > slot_front(l) && s->x[p - 1] < m->x; p--) {
        slots_move(s, p, p - 1, 1);
    }
    put_slot(s, p, m);
    s->vehicle[m->who].lane = lane;
    return 1;
}

int place_shift(sim *s, int32_t from, int32_t p, int32_t to, int32_t q)
{
    lane_state *lf = &s->lane[from], *lt = &s->lane[to];
    const int32_t at = q - slot_front(lt);
    mover m = take_slot(s, p);
    if (!make_room(s, lt)) {
        return 0;
    }
    m.want = m.want / s->net.lane[from].limit * s->net.lane[to].limit;
    q = slot_front(lt) + at;
    slots_move(s, q + 1, q, lt->n - at);
    put_slot(s, q, &m);
    lt->n++;
    slots_move(s, p, p + 1, slot_back(lf) - p);
    lf->n--;
    s->vehicle[m.who].lane = to;
    place_choose_way(s, m.who);
    return 1;
}

void place_choose_way(sim *s, int32_t vid)
{
    vehicle *w = &s->vehicle[vid];
    const net_lane *l = &s->net.lane[w->lane];
    w->need = 0;
    if (l->via_of != NET_NONE) {
        w->next = s->net.link[l->via_of].to;
        return;
    }
    if (w->target == NET_EXIT) {
        w->next = NET_EXIT;
        return;
    }
    w->next = NET_NONE;
    const net_edge *e = &s->net.edge[l->edge];
    int32_t nearest = INT32_MAX;
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        const net_lane *side = &s->net.lane[lane];
        for (int32_t k = side->link; k < side->link + side->n_links; k++) {
            const net_link *link = &s->net.link[k];
            const int32_t away = lane - w->lane, far = away < 0 ? -away : away;
            if (link->edge != w->target || far >= nearest) {
                continue;
            }
            nearest = far;
            w->need = away;
            if (away == 0) {
                w->next = link->via == NET_NONE ? link->to : link->via;
            }
        }
    }
}

/* On a new edge: where to go after it. */
static void enter_edge(sim *s, int32_t vid, int32_t edge)
{
    vehicle *w = &s->vehicle[vid];
    const net_edge *e = &s->net.edge[edge];
    w->target = NET_EXIT;
    if (e->n_out == 1) {
        w->target = e->out[0];
    } else if (e->n_out > 1) {
        double u = draw(s, DRAW_ROUTE, w->key * HOPS_MAX + w->hop % HOPS_MAX);
        int32_t k = 0;
        for (; k + 1 < e->n_out && u >= e->share[k]; k++) {
            u -= e->share[k];
        }
        w->target = e->out[k];
    }
    w->hop++;
}

static void set_lane(sim *s, mover *m, int32_t lane)
{
    vehicle *w = &s->vehicle[m->who];
    const net_lane *l = &s->net.lane[lane];
    m->want = l->limit * w->factor;
    w->lane = lane;
    if (l->edge != NET_NONE) {
        enter_edge(s, m->who, l->edge);
    }
    place_choose_way(s, m->who);
}

static double speed_factor(const sim *s, uint64_t key)
{
    if (s->c->speed_dev == 0) {
        return 1;
    }
    const double u = 1 - draw(s, DRAW_FACTOR, 2 * key), w = draw(s, DRAW_FACTOR, 2 * key + 1);
    const double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * w); /* Box & Muller 1958 */
    return most(FACTOR_LEAST, least(FACTOR_MOST, 1 + s->c->speed_dev * normal));
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

int32_t place_insert(sim *s, int32_t lane, double x, double v, double due)
{
    if (s->n_spare == 0 || !make_room(s, &s->lane[lane])) {
        return NET_NONE;
    }
    const int32_t vid = s->spare[--s->n_spare];
    const uint64_t key = s->next_key++;
    s->vehicle[vid] = (vehicle){.key = key,
                                .lane = lane,
                                .place = NET_NONE,
                                .factor = speed_factor(s, key),
                                .due = due,
                                .born = s->time,
                                .last = s->time};
    mover m = {.x = x, .v = v, .length = s->c->vehicle_m, .who = vid};
    set_lane(s, &m, lane);
    m.v = least(v, m.want);
    append(s, lane, &m);
    s->n_vehicles++;
    s->sum.inserted++;
    s->sum.loss_s += s->time - due;
    /* on the ring every k-th vehicle is an agent, elsewhere it is drawn */
    const double p = s->c->penetration, i = (double)key;
    const int is_agent = s->c->scenario == SCENARIO_RING ? floor((i + 1) * p + 1e-9) > floor(i * p + 1e-9)
                                                         : draw(s, DRAW_CONTROL, key) < p;
    if (s->c->control == CONTROL_VEHICLES && is_agent) {
        find_place(s, vid);
    }
    return vid;
}

/* The vehicle of a lane's first slot has left the network. */
static void leave(sim *s, int32_t lane, const mover *m)
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
    s->sum.trip_s += s->time + s->c->dt_s - w->born;
    s->sum.finished++;
    s->n_vehicles--;
    w->lane = NET_NONE;
    s->spare[s->n_spare++] = m->who;
}

void place_give_up(sim *s)
{
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        const lane_state *l = &s->lane[k];
        if (l->n == 0 || l->stood_s < GIVE_UP_S || s->net.lane[k].n_links == 0) {
            continue;
        }
        const int32_t vid = s->who[slot_front(l)];
        if (s->vehicle[vid].next == NET_NONE) {
            s->vehicle[vid].target = s->net.link[s->net.lane[k].link].edge;
            place_choose_way(s, vid);
        }
    }
}

void place_move_on(sim *s)
{
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        lane_state *l = &s->lane[lane];
        const double end = s->net.lane[lane].length;
        while (l->n > 0 && s->x[slot_front(l)] >= end) {
            const int32_t p = slot_front(l), next = s->vehicle[s->who[p]].next;
            mover m = take_slot(s, p);
            const lane_state *to = next >= 0 ? &s->lane[next] : NULL;
            if (next == NET_NONE || (to != NULL && to->n == to->cap && next != lane)) {
                s->x[p] = end; /* no way on from here */
                s->v[p] = 0;
                break;
            }
            l->head++;
            l->n--;
            if (next == NET_EXIT) {
                leave(s, lane, &m);
                continue;
            }
            m.x -= end;
            set_lane(s, &m, next);
            append(s, next, &m);
        }
    }
}

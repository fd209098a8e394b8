/* SPDX-License-Identifier: Apache-2.0
 *
 * See demand.h.
 */
#include "demand.h"
#include "dtrain/checked.h"

#include <stdlib.h>

#define SPREAD      8.0 /* deviations of a Poisson number that there is room for: more comes once in 1e15 episodes */
#define ROOM_LEAST  16
#define SAFE_BRAKE  1.5 /* m/s^2, what who enters may have to brake at once; comfortable for every driver */
#define STREAM_BITS 40  /* arrivals of a source, or a flow, have this many bits of random number to themselves */
#define SEE_S       8.0 /* who reaches the start of a lane within this time is looked at by who enters there */

/* Vehicles of one flow of a plan that there is room for. */
static double room_of(const plan_flow *w, double episode_s)
{
    const double span = most(0, least(w->end_s, episode_s) - most(w->begin_s, 0)), n = span / w->period_s;
    return w->kind == PLAN_ONCE ? 1 : w->kind == PLAN_REGULAR ? n + 2 : n + SPREAD * sqrt(n) + ROOM_LEAST;
}

static dt_status add_room(const sim *s, source *q, double n)
{
    int32_t more;
    return dt_i32_of_f64(ceil(n), &more) && dt_add_i32(q->cap, more, &q->cap)
               ? DT_OK
               : DT_FAIL_H(
                     s->h, DT_ECONFIG,
                     "env_traffic: %.0f vehicles and more are due at one edge within %g s; at most %d are simulated", n,
                     s->c->episode_s, INT32_MAX);
}

dt_status demand_create(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        const double n = q->rate * s->c->episode_s;
        DT_TRY_H(add_room(s, q, n + SPREAD * sqrt(n) + ROOM_LEAST));
    }
    for (int32_t k = 0; k < s->plan.flows.n; k++) {
        const plan_flow *w = PLAN_FLOW(&s->plan, k);
        DT_TRY_H(add_room(s, &s->source[w->source], room_of(w, s->c->episode_s)));
    }
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        q->due = s->h->alloc(s->h, (uint64_t)q->cap * sizeof(*q->due));
        if (q->due == NULL) {
            return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for a demand of %d vehicles", (int)q->cap);
        }
    }
    return DT_OK;
}

void demand_destroy(sim *s)
{
    if (s->source != NULL) {
        for (int32_t k = 0; k < s->n_sources; k++) {
            s->h->release(s->h, s->source[k].due);
            s->source[k].due = NULL;
        }
    }
}

static void add_due(source *q, double due, int32_t trip)
{
    if (q->n < q->cap) {
        q->due[q->n] = (arrival){.due = due, .trip = trip, .number = q->n};
        q->n++;
    }
}

/* A flow of the plan, in order. */
static void draw_flow(sim *s, int32_t k)
{
    const plan_flow *w = PLAN_FLOW(&s->plan, k);
    source *q = &s->source[w->source];
    const double end = least(w->end_s, s->c->episode_s);
    double t = w->begin_s;
    if (w->kind == PLAN_ONCE) {
        add_due(q, t, w->trip);
        return;
    }
    for (uint64_t i = 0; t < end; i++) {
        const double u = w->kind == PLAN_REGULAR ? 0 : draw(s, DRAW_DEMAND, (uint64_t)k << STREAM_BITS | i);
        if (w->kind == PLAN_POISSON) {
            t += -log(1 - u) * w->period_s;
        }
        if (t >= 0 && t < end && (w->kind != PLAN_CHANCE || u * w->period_s < 1)) {
            add_due(q, t, w->trip);
        }
        if (w->kind == PLAN_REGULAR) {
            t += w->period_s;
        } else if (w->kind == PLAN_CHANCE) {
            t++;
        }
    }
}

static int by_due(const void *x, const void *y)
{
    const arrival *a = x, *b = y;
    return a->due != b->due ? (a->due < b->due ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

void demand_reset(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        double t = 0;
        q->n = q->arrived = q->taken = 0;
        for (uint64_t i = 0; q->rate > 0 && q->n < q->cap; i++) {
            const double u = draw(s, DRAW_DEMAND, (uint64_t)k << STREAM_BITS | i);
            if (s->c->arrivals == ARRIVALS_POISSON) {
                t += -log(1 - u) / q->rate;
            } else {
                t += (i == 0 ? u : 1) / q->rate;
            }
            if (t >= s->c->episode_s) {
                break;
            }
            add_due(q, t, NET_NONE);
        }
    }
    for (int32_t k = 0; k < s->plan.flows.n; k++) {
        draw_flow(s, k);
    }
    if (s->plan.flows.n > 0) {
        for (int32_t k = 0; k < s->n_sources; k++) {
            qsort(s->source[k].due, (size_t)s->source[k].n, sizeof(arrival), by_due);
        }
    }
}

/* May somebody enter at the start of a lane at speed v, as far as those go that come over a junction? */
static int is_clear_upstream(const sim *s, const source *q, int32_t lane, double v)
{
    if (s->search.first == NULL) {
        return 1; /* roads into scenarios built by code begin outside */
    }
    for (int32_t k = s->search.first[q->edge]; k < s->search.first[q->edge + 1]; k++) {
        const net_link *l = &s->net.link[s->search.into[k]];
        if (l->to != lane) {
            continue;
        }
        const int32_t way[2] = {l->via, l->from};
        double between = 0;
        for (int i = 0; i < 2; i++) {
            const int32_t from = way[i];
            const lane_state *a = &s->lane[from];
            const int32_t p = a->n > 0 ? slot_front(a) : NET_NONE;
            const int comes = p != NET_NONE && (i == 0 || s->vehicle[s->who[p]].next == l->via);
            const double gap = p == NET_NONE ? FREE_GAP : between + s->net.lane[from].length - s->x[p];
            if (comes && gap < SEE_S * s->v[p] + s->driver.s0 &&
                (gap < s->driver.s0 || follow(&s->driver, s->v[p], s->want[p], gap, v) < -SAFE_BRAKE)) {
                return 0;
            }
            between += s->net.lane[from].length;
        }
    }
    return 1;
}

/* The speed at which a vehicle may enter behind the last one of a lane, negative when it may not. wish: the speed it
 * would like to enter at. */
static double speed_of_entry(const sim *s, int32_t lane, double length, double wish, double *gap_p)
{
    const lane_state *l = &s->lane[lane];
    const double limit = least(wish, s->net.lane[lane].limit);
    *gap_p = FREE_GAP;
    if (l->n == 0) {
        return limit;
    }
    const int32_t p = slot_back(l);
    const double gap = *gap_p = s->x[p] - s->length[p] - length;
    if (gap < s->driver.s0) {
        return -1;
    }
    const double slow = least(limit, s->v[p]);
    if (follow(&s->driver, limit, most(limit, GAP_LEAST), gap, s->v[p]) >= -SAFE_BRAKE) {
        return limit;
    }
    return follow(&s->driver, slow, most(limit, GAP_LEAST), gap, s->v[p]) >= -SAFE_BRAKE ? slow : -1;
}

/* May a trip begin on this lane of its first edge? */
static int is_lane_of(const sim *s, const plan_trip *t, int32_t lane)
{
    const net_lane *l = &s->net.lane[lane];
    if (t->lane != PLAN_LANE_BEST || t->n_edges == 1) {
        return t->lane < 0 || lane == s->net.edge[l->edge].lane + t->lane;
    }
    for (int32_t k = l->link; k < l->link + l->n_links; k++) {
        if (s->net.link[k].edge == PLAN_EDGE(&s->plan, t->edge + 1)) {
            return 1;
        }
    }
    return 0;
}

/* The first in the queue of a source enters, where the gap is widest. */
static int enter(sim *s, source *q)
{
    const net_edge *e = &s->net.edge[q->edge];
    const arrival *a = &q->due[q->taken];
    const plan_trip *t = a->trip == NET_NONE ? NULL : PLAN_TRIP(&s->plan, a->trip);
    const double length = t != NULL ? PLAN_TYPE(&s->plan, t->type)->length : s->c->vehicle_m;
    const double wish = t != NULL && t->speed >= 0 ? t->speed : INFINITY;
    int32_t best = NET_NONE;
    double widest = -1, speed = 0;
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        double gap;
        const double v = t == NULL || is_lane_of(s, t, lane) ? speed_of_entry(s, lane, length, wish, &gap) : -1;
        if (v >= 0 && gap > widest && is_clear_upstream(s, q, lane, v)) {
            widest = gap;
            best = lane;
            speed = v;
        }
    }
    return best != NET_NONE && place_insert(s, best, length, speed, a->due, a->trip) != NET_NONE;
}

void demand_step(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        while (q->arrived < q->n && q->due[q->arrived].due <= s->elapsed_s) {
            q->arrived++;
        }
        while (q->taken < q->arrived && enter(s, q)) {
            q->taken++;
        }
    }
}

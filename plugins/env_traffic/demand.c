/* SPDX-License-Identifier: Apache-2.0 */
#include "demand.h"
#include "junction.h"
#include "dtrain/checked.h"

#include <stdlib.h>

#define SPREAD      8.0 /* deviations of a Poisson number that there is room for: more comes once in 1e15 episodes */
#define ROOM_LEAST  16
#define LAST_TRIES  40
#define SAFE_BRAKE  1.5  /* m/s^2, what an entering vehicle may have to brake at once; comfortable for every driver */
#define STREAM_BITS 40   /* arrivals of a source, or a flow, have this many bits of random number to themselves */
#define LAST_STEP_M 5.0  /* departPos "last": as close to the last one as this */
#define DUE_TOL     1e-6 /* s, sums of periods against the end of a flow */
#define SEE_S       8.0  /* entering vehicles consider those that reach the start of a lane within this time */

/* Vehicles of one flow of a plan that a source needs room for, where it gets this share of them. */
static double flow_capacity(const plan_flow *w, double episode_s, double share)
{
    const double span = most(0, least(w->end_s, episode_s) - most(w->begin_s, 0)), n = share * span / w->period_s;
    if (w->kind == PLAN_ONCE || w->kind == PLAN_AT_ONCE) {
        return w->number;
    }
    const double room = w->kind == PLAN_REGULAR && share == 1 ? n + 2 : n + SPREAD * sqrt(n) + ROOM_LEAST;
    return least(room, w->number);
}

static dt_status add_source_capacity(const sim *s, source *q, double n)
{
    int32_t more;
    return dt_i32_of_f64(ceil(n), &more) && dt_add_i32(q->cap, more, &q->cap)
               ? DT_OK
               : DT_FAIL_H(
                     s->h, DT_ECONFIG,
                     "env_traffic: %.0f vehicles and more are due at one edge within %g s; at most %d are simulated", n,
                     s->c->episode_s, INT32_MAX);
}

/* `scale` of the type of a trip. */
static double trip_scale(const sim *s, int32_t trip)
{
    const int32_t type = PLAN_TRIP(&s->plan, trip)->type;
    return type == NET_NONE ? 1 : PLAN_TYPE(&s->plan, type)->scale;
}

dt_status demand_create(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        const double n = q->rate * s->c->episode_s;
        DT_TRY_H(add_source_capacity(s, q, n + SPREAD * sqrt(n) + ROOM_LEAST));
    }
    for (int32_t k = 0; k < s->plan.flows.n; k++) {
        const plan_flow *w = PLAN_FLOW(&s->plan, k);
        double before = 0, scale = 0;
        for (int32_t i = w->trip; i < w->trip + w->n_trips; i++) {
            scale = most(scale, ceil(trip_scale(s, i)));
        }
        for (int32_t i = w->trip; i < w->trip + w->n_trips; i++) {
            const plan_trip *t = PLAN_TRIP(&s->plan, i);
            if (t->source != NET_NONE) {
                const double n = flow_capacity(w, s->c->episode_s, t->share - before);
                DT_TRY_H(add_source_capacity(s, &s->source[t->source], ceil(n) * scale));
            }
            before = t->share;
        }
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

/* The trip that vehicle i of flow k draws. */
static int32_t draw_trip(const sim *s, int32_t k, uint64_t i)
{
    const plan_flow *w = PLAN_FLOW(&s->plan, k);
    if (w->n_trips == 1) {
        return w->trip;
    }
    const double u = draw(s, DRAW_CHOICE, (uint64_t)k << STREAM_BITS | i);
    int32_t first = w->trip, last = w->trip + w->n_trips - 1; /* the first one whose share is above u */
    while (first < last) {
        const int32_t half = first + (last - first) / 2;
        if (PLAN_TRIP(&s->plan, half)->share > u) {
            last = half;
        } else {
            first = half + 1;
        }
    }
    return first;
}

/* Vehicles that the i-th one becomes by the scale of its type: SUMO's quota, exact over a thousand of them. */
static int32_t scaled_count(double scale, uint64_t i)
{
    const uint64_t part = (uint64_t)((scale - floor(scale)) * 1000 + 0.5);
    return (int32_t)floor(scale) + (i % 1000 * part % 1000 < part);
}

static void add_vehicles(sim *s, int32_t trip, int32_t n, double due)
{
    const plan_trip *t = PLAN_TRIP(&s->plan, trip);
    for (; t->source != NET_NONE && n > 0; n--) {
        add_due(&s->source[t->source], due, trip);
    }
}

/* Has a flow all of its vehicles, of which the scale leaves one at least? As in SUMO, the scale is that of the vehicle
 * that comes next: where a flow draws from several types, the first one of a small scale beyond its share ends it. */
static int has_all(uint64_t i, double number, double scale)
{
    return number < INT32_MAX && (double)i >= (scale > 0 ? most(1, floor(number * scale + 0.5)) : 0);
}

static int has_scale(const sim *s, const plan_flow *w)
{
    int has = 0;
    for (int32_t i = w->trip; i < w->trip + w->n_trips; i++) {
        has |= trip_scale(s, i) > 0;
    }
    return has;
}

/* One every period, divided by the scale of the type. Those before the episode are counted, not drawn. */
static void draw_regular(sim *s, int32_t k, const plan_flow *w, double end)
{
    const double first = w->begin_s < 0 ? ceil(-w->begin_s / w->period_s - DUE_TOL) : 0;
    const double number = least(w->number, ceil((w->end_s - w->begin_s - DUE_TOL) / w->period_s));
    double n_periods = first;
    for (uint64_t i = (uint64_t)first;; i++) {
        const int32_t trip = draw_trip(s, k, i);
        const double t = w->begin_s + n_periods * w->period_s, scale = trip_scale(s, trip);
        if (t >= end - DUE_TOL || has_all(i, number, scale)) {
            break;
        }
        add_vehicles(s, trip, 1, most(t, 0));
        n_periods += 1 / scale;
    }
}

static void draw_poisson(sim *s, int32_t k, const plan_flow *w, double end)
{
    double t = has_scale(s, w) ? w->begin_s : end;
    for (uint64_t i = 0; t < end; i++) {
        const int32_t trip = draw_trip(s, k, i);
        const double scale = trip_scale(s, trip), u = draw(s, DRAW_DEMAND, (uint64_t)k << STREAM_BITS | i);
        if (has_all(i, w->number, scale)) {
            break;
        }
        if (scale <= 0) { /* none comes, and the next one is not later for it */
            continue;
        }
        t += -log(1 - u) * w->period_s / scale;
        if (t >= 0 && t < end) {
            add_vehicles(s, trip, 1, t);
        }
    }
}

/* By chance in each second; one that comes becomes more, or none that still counts. */
static void draw_chance(sim *s, int32_t k, const plan_flow *w, double end)
{
    double t = w->begin_s;
    int64_t n = 0, n_drawn = 0;
    for (uint64_t i = 0; t < end; i++, t++) {
        if (t < 0 || draw(s, DRAW_DEMAND, (uint64_t)k << STREAM_BITS | i) * w->period_s >= 1) {
            continue;
        }
        const int32_t trip = draw_trip(s, k, i);
        const double scale = trip_scale(s, trip);
        if (w->number < INT32_MAX && (double)n >= w->number * scale) {
            break;
        }
        const int32_t count = scaled_count(scale, (uint64_t)n_drawn++);
        add_vehicles(s, trip, count, t);
        n += count > 0 ? count : 1;
    }
}

/* A flow of the plan, in order. What `scale` of a type does to each kind is found by experiments with SUMO 1.15
 * (tests/fixtures/sumo/flows.txt); `number` is multiplied, too, and counts the vehicles of the flow. */
static void draw_flow(sim *s, int32_t k)
{
    const plan_flow *w = PLAN_FLOW(&s->plan, k);
    const double end = least(w->end_s, s->c->episode_s);
    int32_t trip = draw_trip(s, k, 0);
    switch (w->kind) {
    case PLAN_ONCE:
        add_vehicles(s, trip, scaled_count(trip_scale(s, trip), (uint64_t)k), w->begin_s);
        break;
    case PLAN_AT_ONCE:
        for (uint64_t i = 0; (double)i < w->number * trip_scale(s, trip); trip = draw_trip(s, k, ++i)) {
            add_vehicles(s, trip, 1, w->begin_s);
        }
        break;
    case PLAN_REGULAR:
        draw_regular(s, k, w, end);
        break;
    case PLAN_POISSON:
        draw_poisson(s, k, w, end);
        break;
    default:
        draw_chance(s, k, w, end);
        break;
    }
}

static int compare_due(const void *x, const void *y)
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
            qsort(s->source[k].due, (size_t)s->source[k].n, sizeof(arrival), compare_due);
        }
    }
}

/* Where and how one may begin on a lane. */
typedef struct entry {
    double x, v, gap; /* of the front bumper; to the one ahead */
} entry;

/* May a vehicle enter a lane at `at`, as far as those go that come over a junction? */
static int is_clear_upstream(const sim *s, int32_t edge, int32_t lane, double length, const entry *at)
{
    if (s->search.first == NULL) {
        return 1; /* roads into scenarios built by code begin outside */
    }
    for (int32_t k = s->search.first[edge]; k < s->search.first[edge + 1]; k++) {
        const net_link *l = &s->net.link[s->search.into[k]];
        if (l->to != lane) {
            continue;
        }
        const int32_t way[2] = {l->via, l->from};
        double between = at->x - length;
        for (int i = 0; i < 2; i++) {
            const int32_t from = way[i];
            const lane_state *a = &s->lane[from];
            const int32_t p = a->n > 0 ? slot_front(a) : NET_NONE;
            const int comes = p != NET_NONE && (i == 0 || s->vehicle[s->who[p]].next == l->via);
            const double gap = p == NET_NONE ? FREE_GAP : between + s->net.lane[from].length - s->x[p];
            if (comes && gap < SEE_S * s->v[p] + s->driver.s0 &&
                (gap < s->driver.s0 || follow(&s->driver, s->v[p], s->want[p], gap, at->v) < -SAFE_BRAKE)) {
                return 0;
            }
            between += s->net.lane[from].length;
        }
    }
    return 1;
}

typedef struct newcomer {
    int32_t edge, number;  /* trip of the plan */
    const plan_trip *trip; /* NULL: of a scenario built by code */
    double length;         /* m */
    double u, w;           /* drawn */
} newcomer;

/* The speed at which it would like to begin on a lane. */
static double desired_entry_speed(const sim *s, const newcomer *c, int32_t lane)
{
    const lane_state *l = &s->lane[lane];
    const double limit = s->net.lane[lane].limit;
    double sum = 0;
    switch (c->trip != NULL ? c->trip->speed_kind : PLAN_SPEED_MOST) {
    case PLAN_SPEED_GIVEN:
        return c->trip->speed; /* possible, as plan_vehicle.c has checked */
    case PLAN_SPEED_RANDOM:
        return c->w * limit;
    case PLAN_SPEED_LAST:
        return l->n > 0 ? least(limit, s->v[slot_back(l)]) : limit;
    case PLAN_SPEED_MEAN:
        for (int32_t p = slot_front(l); l->n > 0 && p <= slot_back(l); p++) {
            sum += s->v[p];
        }
        return l->n > 0 ? least(limit, sum / l->n) : limit;
    default:
        return limit;
    }
}

/* A speed that is given must be possible; others become as slow as those ahead. */
static int has_exact_speed(const newcomer *c)
{
    const int32_t kind = c->trip != NULL ? c->trip->speed_kind : PLAN_SPEED_MOST;
    return kind == PLAN_SPEED_LIMIT || kind == PLAN_SPEED_WANTED || (kind == PLAN_SPEED_GIVEN && c->trip->speed > 0);
}

/* The vehicle that it would be. */
static vehicle make_vehicle(const sim *s, const newcomer *c, int32_t lane)
{
    const plan_trip *t = c->trip;
    const int32_t target = t->n_edges > 1 ? PLAN_EDGE(&s->plan, t->edge + 1) : NET_EXIT;
    return (vehicle){.lane = lane, .target = target, .trip = c->number, .hop = 1};
}

/* Can it stop at a line ahead that it must not pass? Becomes as slow as needed where its speed is not exact. */
static int can_stop_at_line(const sim *s, const newcomer *c, int32_t lane, entry *out)
{
    if (c->trip == NULL) {
        return 1; /* scenarios built by code begin far from junctions */
    }
    const vehicle w = make_vehicle(s, c, lane);
    const net_lane *l = &s->net.lane[lane];
    const comer by = {.rest = l->length - out->x, .v = out->v, .want = most(l->limit, out->v), .length = c->length};
    const double v = move_entry_speed(s, &w, &by);
    const int is_slower = v < out->v;
    out->v = v;
    return !is_slower || !has_exact_speed(c);
}

/* Gap to the vehicle ahead of it, FREE_GAP; on the lane that is the one before slot `behind`, else past its end. */
static double gap_ahead(const sim *s, const newcomer *c, int32_t lane, int32_t behind, double x, double *speed_p)
{
    if (behind > slot_front(&s->lane[lane])) {
        *speed_p = s->v[behind - 1];
        return s->x[behind - 1] - s->length[behind - 1] - x;
    }
    if (c->trip == NULL) {
        return FREE_GAP;
    }
    const vehicle w = make_vehicle(s, c, lane);
    return move_find_leader(s, &w, lane, place_next_lane(s, &w, lane, 0), s->net.lane[lane].length - x, speed_p);
}

/* May it begin with its front bumper at out->x? Fills in the rest. */
static int can_enter(const sim *s, const newcomer *c, int32_t lane, entry *out)
{
    const lane_state *l = &s->lane[lane];
    const double wanted_v = desired_entry_speed(s, c, lane);
    int32_t behind = slot_front(l); /* slot of the first one behind it */
    while (behind <= slot_back(l) && s->x[behind] >= out->x - c->length) {
        behind++;
    }
    double leader = 0;
    const double ahead = gap_ahead(s, c, lane, behind, out->x, &leader);
    out->gap = behind > slot_front(l) ? ahead : FREE_GAP;
    out->v = wanted_v;
    if (ahead < FREE_GAP) {
        const double slow = least(wanted_v, leader);
        if (ahead < s->driver.s0) {
            return 0;
        }
        if (follow(&s->driver, wanted_v, most(wanted_v, GAP_LEAST), ahead, leader) < -SAFE_BRAKE) {
            if (has_exact_speed(c) ||
                follow(&s->driver, slow, most(wanted_v, GAP_LEAST), ahead, leader) < -SAFE_BRAKE) {
                return 0;
            }
            out->v = slow;
        }
    }
    if (!can_stop_at_line(s, c, lane, out)) {
        return 0;
    }
    if (behind <= slot_back(l)) {
        const double gap = out->x - c->length - s->x[behind];
        return gap >= s->driver.s0 && follow(&s->driver, s->v[behind], s->want[behind], gap, out->v) >= -SAFE_BRAKE;
    }
    return is_clear_upstream(s, c->edge, lane, c->length, out);
}

/* A free place: as far ahead as there is one. */
static int find_free(const sim *s, const newcomer *c, int32_t lane, entry *out)
{
    const lane_state *l = &s->lane[lane];
    double to = s->net.lane[lane].length - GAP_LEAST; /* the front bumper between this, */
    for (int32_t p = slot_front(l); p <= slot_back(l) + 1; p++) {
        const int is_last = p > slot_back(l);
        const double from = is_last ? c->length : s->x[p] + s->driver.s0 + c->length; /* and this */
        if (to >= from) {
            out->x = 0.5 * (from + to);
            if (can_enter(s, c, lane, out)) {
                return 1;
            }
        }
        to = is_last ? to : s->x[p] - s->length[p] - s->driver.s0;
    }
    return 0;
}

/* Where it may begin on a lane. */
static int find_entry(const sim *s, const newcomer *c, int32_t lane, entry *out)
{
    const lane_state *l = &s->lane[lane];
    const double length = s->net.lane[lane].length - GAP_LEAST; /* at the end it would be past the line already */
    const plan_trip *t = c->trip;
    out->x = c->length;
    switch (t != NULL ? t->pos_kind : PLAN_POS_BASE) {
    case PLAN_POS_GIVEN:
        out->x = most(c->length, least(length, t->pos < 0 ? length + t->pos : t->pos));
        break;
    case PLAN_POS_RANDOM:
        out->x = most(c->length, c->u * s->net.lane[lane].length);
        break;
    case PLAN_POS_FREE:
        return find_free(s, c, lane, out);
    case PLAN_POS_LAST:
        out->x = l->n > 0 ? s->x[slot_back(l)] - s->length[slot_back(l)] - s->driver.s0 : length;
        for (int i = 0; i < LAST_TRIES && out->x > c->length && !can_enter(s, c, lane, out); i++) {
            out->x -= LAST_STEP_M;
        }
        out->x = most(c->length, out->x);
        break;
    default:
        break;
    }
    return can_enter(s, c, lane, out);
}

/* The first in the queue of a source enters, where the gap is widest. */
static int enter_first(sim *s, source *q)
{
    const net_edge *e = &s->net.edge[q->edge];
    const arrival *a = &q->due[q->taken];
    const plan_trip *t = a->trip == NET_NONE ? NULL : PLAN_TRIP(&s->plan, a->trip);
    const uint64_t draw_of =
        (uint64_t)(q - s->source) << STREAM_BITS | ((uint64_t)q->taken << 16 & 0xffffff0000) | (s->step & 0xffff);
    newcomer c = {.edge = q->edge,
                  .number = a->trip,
                  .trip = t,
                  .length = t != NULL ? PLAN_TYPE(&s->plan, t->type)->length : s->c->vehicle_m};
    if (t != NULL &&
        (t->lane == PLAN_LANE_RANDOM || t->pos_kind == PLAN_POS_RANDOM || t->speed_kind == PLAN_SPEED_RANDOM)) {
        c.u = draw(s, DRAW_ENTRY, 3 * draw_of);
        c.w = draw(s, DRAW_ENTRY, 3 * draw_of + 1);
    }
    int32_t best = NET_NONE;
    entry widest = {.gap = -1};
    const int32_t only = t != NULL && t->lane == PLAN_LANE_RANDOM
                             ? e->lane + (int32_t)(draw(s, DRAW_ENTRY, 3 * draw_of + 2) * e->n_lanes)
                             : NET_NONE;
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        entry at;
        if ((q->lanes == 0 || (q->lanes >> (lane - e->lane) & 1) != 0) && (only == NET_NONE || lane == only) &&
            find_entry(s, &c, lane, &at) && at.gap > widest.gap) {
            widest = at;
            best = lane;
        }
    }
    return best != NET_NONE && place_insert(s, best, widest.x, widest.v, a->due, a->trip) != NET_NONE;
}

/* Of the queues of an edge, the one whose first vehicle has been due for longest and may enter still; NET_NONE. */
static int32_t next_source(const sim *s, int32_t first)
{
    int32_t next = NET_NONE;
    for (int32_t k = first; k != NET_NONE; k = s->source[k].sibling - 1) {
        const source *q = &s->source[k], *best = next != NET_NONE ? &s->source[next] : NULL;
        if (q->is_shut || q->taken == q->arrived) {
            continue;
        }
        const arrival *a = &q->due[q->taken], *b = best != NULL ? &best->due[best->taken] : NULL;
        if (b == NULL || a->due < b->due || (a->due == b->due && a->trip < b->trip)) {
            next = k;
        }
    }
    return next;
}

void demand_step(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        while (q->arrived < q->n && q->due[q->arrived].due <= s->elapsed_s) {
            q->arrived++;
        }
        q->is_shut = 0;
    }
    for (int32_t k = 0; k < s->n_sources; k++) {
        for (int32_t i; !s->source[k].is_sibling && (i = next_source(s, k)) != NET_NONE;) {
            source *q = &s->source[i];
            q->is_shut = !enter_first(s, q);
            q->taken += !q->is_shut;
        }
    }
}

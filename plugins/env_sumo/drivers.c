/* SPDX-License-Identifier: Apache-2.0 */
#include "drivers.h"
#include "scene.h"

#include "dtrain/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR_M        200.0  /* of ego */
#define NOTHING_M    1000.0 /* of ahead and adjacent */
#define STANDING_MPS 0.1
#define STUCK_S      300

enum { KEEP, LEFT, RIGHT, N_SIDES };
enum { COST_COLLISIONS, COST_TTC, COST_HARD_BRAKING, COST_GREENS, COST_STARVED, N_DRIVER_COSTS };
enum { EGO_FEATURES = 9, AHEAD_ROWS = 3, BESIDE_ROWS = 4, PAIR_FEATURES = 7 };
/* SUMO's lane change mode: changes that the route needs, unless the agent requests otherwise; adjacent vehicles are
 * respected */
enum { LANE_MODE = 769 };

enum { PORT_NODES, PORT_ROWPTR, PORT_COL, PORT_EDGES, PORT_AGENT_NODE, PORT_EGO, PORT_AHEAD, PORT_BESIDE, N_PORTS };

static const dt_port ports[N_PORTS] = {{"nodes", "N 9", DT_F32, 0},
                                       {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)},
                                       {"col", "E", DT_I32, DT_PORT_INDEX(1)},
                                       {"edges", "E 4", DT_F32, 0},
                                       {"agent_node", "A", DT_I32, DT_PORT_INDEX(1)},
                                       {"ego", "A 9", DT_F32, 0},
                                       {"ahead", "A 3 7", DT_F32, 0},
                                       {"beside", "A 4 7", DT_F32, 0}}; /* with lane_actions */

static void add_port(state *s, const char *name, const char *dims, uint32_t dtype, uint32_t flags)
{
    s->port[s->n_ports++] = (dt_port){name, dims, dtype, flags};
}

/* What world models read. */
static dt_status create_past(state *s)
{
    drivers *d = &s->drivers;
    const int64_t T = llround(s->config.history_s * s->config.history_hz);
    DT_TRY_H(sumo_history_init(&d->history, s->h, T, 1 / s->config.history_hz, s->net->step_s));
    if (T == 0) {
        return DT_OK;
    }
    DT_TRY_H(env_reserve(s, &d->shown, (uint64_t)TRAIL_WHO * d->n, sizeof(*d->shown)));
    snprintf(s->dims[0], sizeof(s->dims[0]), "S %lld %d", (long long)T, DT_MOTION_COLUMNS);
    s->symbol[2] = (dt_dim){"S", TRAIL_WHO * (int64_t)d->n};
    d->past_port = s->n_ports;
    add_port(s, "past", s->dims[0], DT_F32, DT_PORT_STEPS);
    add_port(s, "seq_node", "S", DT_I32, DT_PORT_INDEX(1));
    add_port(s, "agent_seq", "A 2", DT_I32, DT_PORT_INDEX(3));
    return DT_OK;
}

dt_status drivers_create(state *s)
{
    const config *c = &s->config;
    drivers *d = &s->drivers;
    d->n = (uint32_t)c->agents;
    d->low = (float)c->low_mps2;
    d->high = (float)c->high_mps2;
    DT_TRY_H(env_reserve(s, &d->place, d->n, sizeof(*d->place)));
    DT_TRY_H(env_reserve(s, &s->pending, s->net->n_signals + 1, sizeof(*s->pending)));
    const int64_t rows = c->max_vehicles + d->n;
    memcpy(s->port, ports, sizeof(ports));
    s->n_ports = c->lane_actions ? N_PORTS : PORT_BESIDE;
    s->symbol[0] = (dt_dim){"N", rows};
    s->symbol[1] = (dt_dim){"E", rows * DT_NEIGHBOURS};
    d->centre_port = s->n_ports;
    add_port(s, "centre", "N 2", DT_F32, 0);
    DT_TRY_H(create_past(s));
    s->n_columns = signal_describe_ports(s->port, s->n_ports, s->column);
    return DT_OK;
}

void drivers_spec(state *s, dt_env_spec *out)
{
    static const int32_t sides = N_SIDES;
    static const char *const costs[N_DRIVER_COSTS] = {[COST_COLLISIONS] = "collisions",
                                                      [COST_TTC] = "time_to_collision",
                                                      [COST_HARD_BRAKING] = "hard_braking",
                                                      [COST_GREENS] = "conflicting_greens",
                                                      [COST_STARVED] = "starvation"};
    out->n_agents = s->drivers.n;
    out->n_symbols = s->drivers.history.T > 0 ? 3 : 2;
    out->choices = &sides;
    out->n_heads = s->config.lane_actions;
    out->low = &s->drivers.low;
    out->high = &s->drivers.high;
    out->n_continuous = 1;
    out->costs = costs;
    out->n_costs = N_DRIVER_COSTS;
    out->columns = s->column;
    out->n_columns = s->n_columns;
}

void drivers_destroy(state *s)
{
    s->h->release(s->h, s->drivers.place);
    s->h->release(s->h, s->drivers.place_of);
    s->h->release(s->h, s->drivers.shown);
    s->h->release(s->h, s->drivers.node_of);
    sumo_history_fini(&s->drivers.history);
    s->drivers = (drivers){0};
}

/* ---- presence of agents
 * ------------------------------------------------------------------------------------------------ */

/* *list has room for n; what it held stays. */
static dt_status grow_list(const state *s, void *list_p, int64_t *cap, int64_t n, uint64_t bytes)
{
    if (n <= *cap) {
        return DT_OK;
    }
    void **list = list_p, *larger = NULL;
    DT_TRY_H(env_reserve(s, &larger, (uint64_t)(2 * n), bytes));
    if (*list != NULL) {
        memcpy(larger, *list, (size_t)*cap * bytes);
    }
    s->h->release(s->h, *list);
    *list = larger;
    *cap = 2 * n;
    return DT_OK;
}

/* A number in [0,1) that depends on the episode's seed and the vehicle alone. */
static double draw_unit(const state *s, int64_t number)
{
    const uint64_t seed = s->drivers.seed, i = (uint64_t)number;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    uint32_t out[4];
    dt_random_philox(key, counter, out);
    return dt_random_unit(out[0], out[1]);
}

static bool is_chosen(const state *s, const sumo_vehicle *v)
{
    const config *c = &s->config;
    return (c->agent_type[0] == '\0' || strcmp(c->agent_type, v->type) == 0) &&
           (c->agent_route[0] == '\0' || strcmp(c->agent_route, v->route) == 0) &&
           draw_unit(s, v->number) < c->penetration;
}

/* One that has just come: an agent, where there is a place for it. */
static dt_status add_newcomer(state *s, const sumo_vehicle *v)
{
    drivers *d = &s->drivers;
    DT_TRY_H(grow_list(s, &d->place_of, &d->place_of_cap, v->number + 1, sizeof(*d->place_of)));
    d->place_of[v->number] = 0;
    uint32_t k = 0;
    while (k < d->n && d->place[k].state != PLACE_FREE) {
        k++;
    }
    if (k == d->n || !is_chosen(s, v)) {
        return DT_OK;
    }
    d->place[k] = (place){.state = PLACE_NEW};
    d->place_of[v->number] = k + 1;
    if (!s->config.baseline &&
        s->api->take(v->number, (int32_t)s->config.speed_mode, s->config.lane_actions ? LANE_MODE : -1) != 0) {
        return env_fail(s, DT_EIO, "a vehicle was not taken over");
    }
    return DT_OK;
}

/* Finds the agents among the vehicles that are on the road now; numbers count departures, so new ones are larger. */
static dt_status find_agents(state *s)
{
    drivers *d = &s->drivers;
    if (s->api->vehicles(&s->vehicle, &s->n_vehicles) != 0 || s->api->pending(s->pending) != 0) {
        return env_fail(s, DT_EIO, "the vehicles were not read");
    }
    for (uint32_t k = 0; k < d->n; k++) {
        d->place[k].is_here = false;
    }
    int64_t next = d->next;
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        const sumo_vehicle *v = &s->vehicle[i];
        if (v->number >= d->next) {
            DT_TRY_H(add_newcomer(s, v));
            next = v->number >= next ? v->number + 1 : next;
        }
        const uint32_t p = d->place_of[v->number];
        if (p > 0 && d->place[p - 1].state != PLACE_ENDED) { /* one that SUMO moved elsewhere is no agent any more */
            d->place[p - 1].last = *v;
            d->place[p - 1].is_here = true;
        }
    }
    d->next = next;
    for (uint32_t k = 0; k < d->n; k++) {
        place *w = &d->place[k];
        if (!w->is_here && (w->state == PLACE_NEW || w->state == PLACE_ACTING)) {
            w->state = PLACE_ENDED;
        }
        if (w->is_here && s->api->driver(w->last.number, NOTHING_M, &w->seen) != 0) {
            return env_fail(s, DT_EIO, "a vehicle was not read");
        }
    }
    return DT_OK;
}

/* ---- what they see ----------------------------------------------------------------------------------------------- */

static int compare_use(const void *a, const void *b) /* agents, then those next to a line */
{
    const dt_vehicle *v = a, *w = b;
    if (v->controlled != w->controlled) {
        return v->controlled > w->controlled ? -1 : 1;
    }
    if (v->stop_distance != w->stop_distance) {
        return v->stop_distance < w->stop_distance ? -1 : 1;
    }
    return (v->id > w->id) - (v->id < w->id);
}

static dt_vehicle vehicle_node(const state *s, const sumo_vehicle *v, bool is_agent)
{
    return (dt_vehicle){.x = v->x - s->net->x - 0.5 * v->length * cos(v->heading),
                        .y = v->y - s->net->y - 0.5 * v->length * sin(v->heading),
                        .heading = v->heading,
                        .speed = v->speed,
                        .accel = v->accel,
                        .length = v->length,
                        .width = v->width,
                        .stop_distance = v->stop_distance,
                        .id = v->number,
                        .controlled = is_agent};
}

static history_state make_history_state(const state *s, const sumo_vehicle *v)
{
    const dt_vehicle n = vehicle_node(s, v, false);
    return (history_state){.number = v->number,
                           .pose = {.x = n.x, .y = n.y, .heading = n.heading, .v = n.speed, .a = n.accel}};
}

/* Keeps the position of all vehicles; of one that has just left, where it was seen last. */
static dt_status record_history(state *s)
{
    drivers *d = &s->drivers;
    history_state *frame = NULL;
    int64_t n = s->n_vehicles;
    if (d->history.T == 0) {
        return DT_OK;
    }
    for (uint32_t k = 0; k < d->n; k++) {
        n += d->place[k].state == PLACE_ENDED;
    }
    DT_TRY_H(history_begin_step(&d->history, n, &frame));
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        *frame++ = make_history_state(s, &s->vehicle[i]);
    }
    for (uint32_t k = 0; k < d->n; k++) {
        if (d->place[k].state == PLACE_ENDED) {
            *frame++ = make_history_state(s, &d->place[k].last);
        }
    }
    history_end_step(&d->history);
    return DT_OK;
}

static void write_centre(const state *s, uint32_t n, float *centre)
{
    double x = 0, y = 0;
    for (uint32_t i = 0; i < n; i++) {
        x += s->frame[i].x / n;
        y += s->frame[i].y / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        *centre++ = (float)x;
        *centre++ = (float)y;
    }
}

/* Node of a vehicle among the n in the graph, -1: none. */
static int32_t find_node(const state *s, int64_t number, uint32_t n)
{
    const drivers *d = &s->drivers;
    const int32_t i = number >= 0 && number < d->node_of_cap ? d->node_of[number] : -1;
    return i >= 0 && i < (int32_t)n && s->frame[i].id == number ? i : -1;
}

/* The sequence of a vehicle with a node, shown once however many ask; n_p: how many there are. */
static int32_t write_sequence(state *s, const dt_env_io *io, int64_t number, uint32_t n_nodes, int64_t *n_p)
{
    drivers *d = &s->drivers;
    float *row = io->obs[d->past_port];
    int32_t *node = io->obs[d->past_port + 1];
    const int32_t at = find_node(s, number, n_nodes);
    for (int64_t i = 0; i < *n_p; i++) {
        if (d->shown[i] == number) {
            return (int32_t)i;
        }
    }
    if (at < 0) {
        return -1;
    }
    d->shown[*n_p] = number;
    node[*n_p] = at;
    sumo_history_write(&d->history, number, row + *n_p * d->history.T * DT_MOTION_COLUMNS);
    return (int32_t)(*n_p)++;
}

/* After the graph, of n nodes. */
static dt_status write_past(state *s, const dt_env_io *io, uint32_t n)
{
    drivers *d = &s->drivers;
    int64_t n_shown = 0;
    if (d->history.T == 0) {
        return DT_OK;
    }
    int32_t *who = io->obs[d->past_port + 2];
    DT_TRY_H(grow_list(s, &d->node_of, &d->node_of_cap, d->next, sizeof(*d->node_of)));
    for (uint32_t i = 0; i < n; i++) {
        d->node_of[s->frame[i].id] = (int32_t)i;
    }
    for (uint32_t k = 0; k < d->n; k++, who += TRAIL_WHO) {
        const place *w = &d->place[k];
        const bool is_seen = w->state != PLACE_FREE;
        who[TRAIL_OWN] = is_seen ? write_sequence(s, io, w->last.number, n, &n_shown) : -1;
        who[TRAIL_AHEAD] = is_seen && w->is_here ? write_sequence(s, io, w->seen.ahead.number, n, &n_shown) : -1;
    }
    io->size[2] = n_shown;
    return DT_OK;
}

static dt_status write_graph(state *s, const dt_env_io *io)
{
    drivers *d = &s->drivers;
    int32_t *agent_node = io->obs[PORT_AGENT_NODE], *rowptr = io->obs[PORT_ROWPTR];
    uint32_t n = 0;
    DT_TRY_H(grow_list(s, &s->frame, &d->frame_cap, (int64_t)s->n_vehicles + d->n, sizeof(*s->frame)));
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        const uint32_t p = d->place_of[s->vehicle[i].number];
        s->frame[n++] = vehicle_node(s, &s->vehicle[i], p > 0 && d->place[p - 1].is_here);
    }
    for (uint32_t k = 0; k < d->n; k++) {
        agent_node[k] = -1;
        if (d->place[k].state == PLACE_ENDED) { /* a last time */
            s->frame[n++] = vehicle_node(s, &d->place[k].last, true);
        }
    }
    if (n > s->config.max_vehicles) {
        qsort(s->frame, n, sizeof(*s->frame), compare_use);
        n = (uint32_t)s->config.max_vehicles;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (s->frame[i].controlled) {
            agent_node[d->place_of[s->frame[i].id] - 1] = (int32_t)i;
        }
    }
    DT_TRY_H(s->features->frame(s->h, s->frame, n, s->config.radius_m, DT_NEIGHBOURS, io->obs[PORT_NODES], rowptr,
                                io->obs[PORT_COL], io->obs[PORT_EDGES]));
    io->size[0] = s->n_frame = n;
    io->size[1] = rowptr[n];
    write_centre(s, n, io->obs[d->centre_port]);
    return write_past(s, io, n);
}

static void write_ego(const place *w, float *ego)
{
    const sumo_vehicle *v = &w->last;
    const sumo_near *a = &w->seen.ahead, *b = &w->seen.behind;
    const bool has_ahead = w->is_here && isfinite(a->gap), has_behind = w->is_here && isfinite(b->gap);
    const double seen[EGO_FEATURES] = {v->speed,
                                       has_ahead ? fmin(a->gap, FAR_M) : FAR_M,
                                       has_ahead ? a->speed : v->speed,
                                       has_behind ? fmin(b->gap, FAR_M) : FAR_M,
                                       has_behind ? b->speed : v->speed,
                                       v->wanted,
                                       w->is_here ? fmin(v->stop_distance, FAR_M) : FAR_M,
                                       v->accel,
                                       w->is_here ? w->seen.model_accel : v->accel};
    for (int i = 0; i < EGO_FEATURES; i++) {
        ego[i] = (float)seen[i];
    }
}

/* A follower and what it must not run into. */
static void write_pair(const state *s, double gap, double speed, double brake, double follower, double follower_brake,
                       float *out)
{
    const double seen[PAIR_FEATURES] = {fmin(gap, NOTHING_M),
                                        speed,
                                        brake,
                                        follower,
                                        follower_brake,
                                        s->config.decision_s,
                                        s->net->is_ballistic ? 0 : s->net->step_s};
    for (int i = 0; i < PAIR_FEATURES; i++) {
        out[i] = (float)seen[i];
    }
}

static void write_ahead(const state *s, const place *w, float *out)
{
    const double v = w->last.speed, own = -s->config.low_mps2;
    const double gap = w->is_here ? w->seen.ahead.gap : NOTHING_M, stop = w->is_here ? w->seen.stop_gap : NOTHING_M;
    write_pair(s, gap, w->seen.ahead.speed, w->seen.ahead.brake, v, own, out);
    write_pair(s, stop, 0, 0, v, own, out + PAIR_FEATURES);
    write_pair(s, NOTHING_M, 0, 0, v, own, out + (size_t)2 * PAIR_FEATURES);
}

static void write_neighbours(const state *s, const place *w, float *out)
{
    const double v = w->last.speed, own = -s->config.low_mps2;
    for (int i = 0; i < 2; i++, out += (size_t)2 * PAIR_FEATURES) {
        const bool is_there = w->is_here && w->seen.side[i].exists != 0; /* where no lane is there is no gap */
        const sumo_near a = w->seen.side[i].ahead, b = w->seen.side[i].behind;
        write_pair(s, is_there ? a.gap : 0, a.speed, a.brake, v, own, out);
        write_pair(s, is_there ? b.gap : 0, v, own, b.speed, b.brake, out + PAIR_FEATURES);
    }
}

static dt_status observe_drivers(state *s, const dt_env_io *io)
{
    const drivers *d = &s->drivers;
    float *ego = io->obs[PORT_EGO], *ahead = io->obs[PORT_AHEAD];
    float *beside = s->config.lane_actions ? io->obs[PORT_BESIDE] : NULL;
    for (uint32_t k = 0; k < d->n; k++) {
        const place *w = &d->place[k];
        io->alive[k] = w->state == PLACE_NEW || w->state == PLACE_ACTING;
        if (w->state == PLACE_FREE) {
            continue;
        }
        write_ego(w, ego + (size_t)k * EGO_FEATURES);
        write_ahead(s, w, ahead + (size_t)k * AHEAD_ROWS * PAIR_FEATURES);
        if (beside != NULL) {
            write_neighbours(s, w, beside + (size_t)k * BESIDE_ROWS * PAIR_FEATURES);
            for (int i = 0; i < 2; i++) {
                const bool is_free = w->seen.side[i].ahead.gap > 0 && w->seen.side[i].behind.gap > 0;
                io->mask[k * N_SIDES + LEFT + i] = w->seen.side[i].exists != 0 && is_free;
            }
        }
    }
    return write_graph(s, io);
}

/* ---- episodes ---------------------------------------------------------------------------------------------------- */

dt_status drivers_reset(state *s, const dt_env_io *io, uint64_t seed)
{
    drivers *d = &s->drivers;
    memset(d->place, 0, d->n * sizeof(*d->place));
    if (d->place_of != NULL) {
        memset(d->place_of, 0, (size_t)d->place_of_cap * sizeof(*d->place_of));
    }
    d->seed = seed;
    d->next = 0;
    s->totals.conflict_s = s->totals.longest_s = NAN; /* of signals that are agents */
    sumo_history_reset(&d->history);
    DT_TRY_H(find_agents(s));
    DT_TRY_H(record_history(s));
    return observe_drivers(s, io);
}

static dt_status apply_actions(state *s, const int32_t *side, const float *accel, bool is_first)
{
    for (uint32_t k = 0; k < s->drivers.n; k++) {
        const place *w = &s->drivers.place[k];
        if (w->state != PLACE_ACTING || s->config.baseline) {
            continue;
        }
        const int32_t want = s->config.lane_actions && is_first ? side[k] : KEEP;
        const double speed = fmax(0, w->last.speed + (double)accel[k] * s->net->step_s);
        if (s->api->drive(w->last.number, speed, want == LEFT ? 1 : want == RIGHT ? -1 : 0) != 0) {
            return env_fail(s, DT_EIO, "a vehicle was not driven");
        }
    }
    return DT_OK;
}

/* Speed over wanted speed. */
static double pace_of_vehicle(const sumo_vehicle *v)
{
    return v->wanted > 0 ? fmin(1, v->speed / v->wanted) : 1;
}

/* The mean over all vehicles, those that wait to enter included. */
static double mean_relative_speed(state *s)
{
    double sum = 0, n = s->n_vehicles, standing = 0, stuck = 0;
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        const sumo_vehicle *v = &s->vehicle[i];
        sum += pace_of_vehicle(v);
        standing += v->speed < STANDING_MPS;
        stuck += v->waiting_s > STUCK_S;
    }
    for (uint32_t i = 0; i <= s->net->n_signals; i++) {
        n += s->pending[i];
    }
    s->totals.queue += standing * s->net->step_s / s->config.decision_s;
    s->totals.stuck = fmax(s->totals.stuck, stuck);
    s->totals.most_vehicles = fmax(s->totals.most_vehicles, s->n_vehicles);
    return n > 0 ? sum / n : 1;
}

/* Danger of those that act, in one step of the simulation. */
static void add_danger(const state *s, double share, float *cost)
{
    for (uint32_t k = 0; k < s->drivers.n; k++) {
        const place *w = &s->drivers.place[k];
        if (w->state == PLACE_ACTING) {
            const sumo_near *a = &w->seen.ahead;
            float *row = cost + (size_t)k * N_DRIVER_COSTS;
            if (a->gap < s->config.ttc_s * (w->last.speed - a->speed)) {
                row[COST_TTC] += (float)share;
            }
            if (w->last.accel < -s->config.hard_mps2) {
                row[COST_HARD_BRAKING] += (float)share;
            }
        }
    }
}

/* The agents that were in a collision in this step. */
static dt_status record_collisions(state *s)
{
    const drivers *d = &s->drivers;
    sumo_events e;
    DT_TRY_H(env_events(s, &e));
    for (uint32_t i = 0; i < e.n_collided; i++) {
        const uint32_t p = e.collided[i] < d->next ? d->place_of[e.collided[i]] : 0;
        if (p > 0 && d->place[p - 1].state == PLACE_ACTING) {
            d->place[p - 1].collided++;
        }
    }
    return DT_OK;
}

dt_status drivers_step(state *s, const dt_env_io *io, double step_s)
{
    drivers *d = &s->drivers;
    const int64_t n_steps = llround(step_s / s->net->step_s);
    const double shared = s->config.reward_shared;
    double all = 0, n_done = 0;
    bool has_crashed = false;
    for (uint32_t k = 0; k < d->n; k++) {
        place *w = &d->place[k];
        if (w->state == PLACE_ENDED) {
            d->place_of[w->last.number] = 0;
            *w = (place){.state = PLACE_FREE};
        }
        w->state = w->state == PLACE_NEW ? PLACE_ACTING : w->state;
        w->collided = 0;
        w->pace = 0;
    }
    for (int64_t i = 0; i < n_steps && !(has_crashed && s->config.end_at_collision); i++) {
        DT_TRY_H(apply_actions(s, io->act_i, io->act_f, i == 0));
        if (s->api->step(&s->time_s) != 0) {
            return env_fail(s, DT_EIO, "SUMO stopped");
        }
        DT_TRY_H(record_collisions(s));
        DT_TRY_H(find_agents(s));
        scene_show_step(s);
        DT_TRY_H(record_history(s));
        all += mean_relative_speed(s);
        n_done++;
        add_danger(s, 1.0 / (double)n_steps, io->cost);
        for (uint32_t k = 0; k < d->n; k++) {
            has_crashed |= d->place[k].collided > 0;
            d->place[k].pace += pace_of_vehicle(&d->place[k].last);
        }
    }
    const bool is_over = env_is_over(s) || (has_crashed && s->config.end_at_collision);
    DT_TRY_H(observe_drivers(s, io));
    for (uint32_t k = 0; k < d->n; k++) {
        const place *w = &d->place[k];
        io->alive[k] = io->alive[k] && !is_over;
        if (w->state != PLACE_ACTING && w->state != PLACE_ENDED) {
            continue; /* none, or one that comes: it acts from the next step on */
        }
        io->reward[k] = (float)(((1 - shared) * w->pace + shared * all) / n_done);
        io->cost[(size_t)k * N_DRIVER_COSTS + COST_COLLISIONS] = (float)w->collided;
        io->terminated[k] = w->collided > 0 && (w->state == PLACE_ENDED || s->config.end_at_collision);
        io->truncated[k] = !io->terminated[k] && (is_over || w->state == PLACE_ENDED);
    }
    return is_over ? DT_DONE : DT_OK;
}

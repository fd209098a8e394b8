/* SPDX-License-Identifier: Apache-2.0 */
#include "observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOE_MERGES = 1, FOE_CROSSES = 2 };

#define STUCK_S 300 /* SUMO's own limit: then it would move a vehicle on, if teleport_s let it */

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* What is kept of vehicles has room for all of this frame. */
static dt_status grow_past(state *s)
{
    int64_t most = -1;
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        most = s->vehicle[i].number > most ? s->vehicle[i].number : most;
    }
    if (most < s->past_cap) {
        return DT_OK;
    }
    const int64_t cap = 2 * (most + 512);
    past *larger = s->h->alloc(s->h, (uint64_t)cap * sizeof(*larger));
    if (larger == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld vehicles", (long long)cap);
    }
    if (s->past != NULL) {
        memcpy(larger, s->past, (size_t)s->past_cap * sizeof(*larger));
        s->h->release(s->h, s->past);
    }
    for (int64_t i = s->past_cap; i < cap; i++) {
        larger[i] = (past){.agent = SUMO_NONE};
    }
    s->past = larger;
    s->past_cap = cap;
    return DT_OK;
}

static void record_vehicle(const state *s, const sumo_vehicle *v, signal_link *link, signal_lane *lane,
                           lane_first *first)
{
    if (lane != NULL) {
        if (lane->n == 0 || v->stop_distance < lane->first_m) {
            first->number = v->number;
            first->link = v->link;
        }
        first->longest_s = fmax(first->longest_s, v->waiting_s);
    }
    signal_detect(lane, link, v->stop_distance, v->speed, v->waiting_s, s->config.near_m, s->config.decision_s);
}

static void record_for_formulas(const sumo_vehicle *v, signal_view *view)
{
    view->n++;
    view->waiting_s += v->waiting_s;
    view->longest_s = fmax(view->longest_s, v->waiting_s);
    view->speed += v->speed;
    if (v->wanted > 0) {
        view->relative += v->speed / v->wanted;
    }
}

/* How long the first vehicle at its line has gone without the green of this link; 0: none. */
static double red_duration(const state *s, const agent *a, uint32_t link)
{
    return isfinite(a->red_since_s[link]) ? s->time_s - a->red_since_s[link] : 0;
}

/* The same of all links of a lane. */
static double red_of_lane(const state *s, const agent *a, uint32_t lane)
{
    double longest = 0;
    for (uint32_t i = 0; i < a->n_links; i++) {
        longest = a->lane_of_link[i] == lane ? fmax(longest, red_duration(s, a, i)) : longest;
    }
    return longest;
}

/* Time lost since the decision before counts for the agent that the vehicle was heading for then. */
static void record_time_loss(state *s, const sumo_vehicle *v, uint32_t heading_for)
{
    past *p = &s->past[v->number];
    const uint32_t blamed = p->agent != SUMO_NONE ? p->agent : heading_for;
    if (blamed != SUMO_NONE) {
        s->lost_s[blamed] += v->time_loss_s - p->loss_s;
    }
    p->loss_s = v->time_loss_s;
    p->agent = heading_for;
}

static signal_link *agent_links(const state *s, const agent *a)
{
    size_t before = 0;
    for (const agent *b = s->agent; b < a; b++) {
        before += b->n_links;
    }
    return s->link + before;
}

static size_t agent_lane(const state *s, const agent *a)
{
    return (size_t)(a - s->agent) * s->most_lanes;
}

/* The vehicle that stands first at its line waits for the best that a phase gives its link: a turn that has an arrow of
 * its own waits for that also while it may go if there is a gap, until a vehicle finds one. Once it counts it counts
 * on, also while the queue moves up, until there is none, or its green. */
static void count_red(state *s, agent *a)
{
    const signal_lane *lane = s->lane + agent_lane(s, a);
    const lane_first *first = s->first + agent_lane(s, a);
    for (uint32_t i = 0; i < a->n_links; i++) {
        const uint32_t k = a->lane_of_link[i];
        const int letter = signal_parse_letter(a->shown[i]);
        if (a->best[i] == SIGNAL_RED || letter >= a->best[i] || lane[k].n == 0 || first[k].link != i ||
            (letter > SIGNAL_RED && first[k].number != a->first[k])) {
            a->red_since_s[i] = NAN;
        } else if (!isfinite(a->red_since_s[i]) && lane[k].stood_s > 0) {
            a->red_since_s[i] = fmax(a->green_s[i], s->time_s - lane[k].stood_s);
        }
        s->totals.longest_s = fmax(s->totals.longest_s, red_duration(s, a, i));
    }
    for (uint32_t k = 0; k < a->n_lanes; k++) {
        a->first[k] = lane[k].n > 0 ? first[k].number : -1;
    }
}

dt_status read_traffic(state *s)
{
    if (s->api->vehicles(&s->vehicle, &s->n_vehicles) != 0 || s->api->pending(s->pending) != 0) {
        return DT_FAIL_H(s->h, DT_EIO, "SUMO: %s", s->api->error());
    }
    for (uint32_t i = 0; i < s->net->n_lanes; i++) {
        if (s->api->halting(i, &s->halting[i]) != 0) {
            return DT_FAIL_H(s->h, DT_EIO, "SUMO: %s", s->api->error());
        }
    }
    DT_TRY_H(grow_past(s));
    size_t n_links = 0;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        n_links += s->agent[k].n_links;
        s->lost_s[k] = s->in[k] = s->away[k] = 0;
    }
    memset(s->view, 0, s->n_agents * sizeof(*s->view));
    memset(s->link, 0, n_links * sizeof(*s->link));
    memset(s->lane, 0, (size_t)s->n_agents * s->most_lanes * sizeof(*s->lane));
    memset(s->first, 0, (size_t)s->n_agents * s->most_lanes * sizeof(*s->first));
    uint32_t n_stuck = 0;
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        const sumo_vehicle *v = &s->vehicle[i];
        n_stuck += v->waiting_s > STUCK_S;
        const uint32_t k = v->signal != SUMO_NONE ? s->agent_of_signal[v->signal] : SUMO_NONE;
        if (k != SUMO_NONE) {
            s->view[k].heading++;
            s->view[k].stayed += s->past[v->number].agent == k;
        }
        record_time_loss(s, v, k);
        if (k != SUMO_NONE && v->stop_distance <= s->config.detection_m && v->link < s->agent[k].n_links) {
            const agent *a = &s->agent[k];
            const uint32_t lane = a->lane_of_link[v->link];
            const size_t at = agent_lane(s, a) + (lane != SUMO_NONE ? lane : 0);
            record_for_formulas(v, &s->view[k]);
            record_vehicle(s, v, agent_links(s, a) + v->link, lane != SUMO_NONE ? &s->lane[at] : NULL, &s->first[at]);
        }
    }
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        for (uint32_t i = 0; i < a->n_lanes; i++) {
            a->halting_before[i] = s->halting[a->lane[i]];
            s->in[k] += s->halting[a->lane[i]];
            s->totals.queue += s->halting[a->lane[i]];
        }
        count_red(s, a);
        for (uint32_t i = 0; i < a->n_out; i++) {
            a->halting_after[i] = s->halting[a->out[i]];
            s->away[k] += s->halting[a->out[i]];
        }
    }
    s->totals.most_vehicles = fmax(s->totals.most_vehicles, s->n_vehicles);
    s->totals.stuck = fmax(s->totals.stuck, n_stuck);
    return DT_OK;
}

void reward_agents(state *s, double step_s, float *reward)
{
    double mean = 0;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        switch (s->reward) {
        case REWARD_QUEUE:
            s->lost_s[k] = s->in[k] * step_s;
            break;
        case REWARD_PRESSURE:
            s->lost_s[k] = (s->in[k] - s->away[k]) * step_s;
            break;
        default:
            s->lost_s[k] += s->pending[s->agent[k].signal] * step_s;
        }
        mean += s->lost_s[k] / s->n_agents;
    }
    const double shared = s->config.reward_shared;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        reward[k] = (float)(-s->config.reward_scale * ((1 - shared) * s->lost_s[k] + shared * mean));
    }
}

void measure_signals(state *s, double step_s, const float *cost)
{
    for (uint32_t k = 0; k < s->n_agents && s->reward_formula.n + s->row.n > 0; k++) {
        agent *a = &s->agent[k];
        const signal_view *v = &s->view[k];
        const double n = v->n > 0 ? v->n : 1;
        double *q = s->values[k].signal;
        memset(q, 0, sizeof(s->values[k].signal));
        q[SIGNAL_WAITING] = v->waiting_s;
        q[SIGNAL_QUEUE] = s->in[k];
        q[SIGNAL_EXIT_QUEUE] = s->away[k];
        q[SIGNAL_PRESSURE] = s->in[k] - s->away[k];
        q[SIGNAL_VEHICLES] = v->n;
        q[SIGNAL_SPEED] = v->speed / n;
        q[SIGNAL_RELATIVE_SPEED] = v->n > 0 ? v->relative / n : 1;
        q[SIGNAL_LONGEST] = v->longest_s;
        q[SIGNAL_PENDING] = s->pending[a->signal];
        q[SIGNAL_SHOWN] = s->time_s - a->since_s;
        if (cost != NULL) { /* of a step */
            const float *row = cost + (size_t)k * N_COSTS;
            q[SIGNAL_DELAY] = s->lost_s[k] + s->pending[a->signal] * step_s;
            q[SIGNAL_DIFF_WAITING] = a->waiting_before_s - v->waiting_s;
            q[SIGNAL_THROUGHPUT] = a->heading_before - v->stayed;
            q[SIGNAL_CHANGED_PHASE] = a->phase != a->phase_before;
            q[SIGNAL_COLLISIONS] = (double)row[COST_COLLISION];
            q[SIGNAL_EMERGENCY_BRAKES] = (double)row[COST_BRAKING];
            q[SIGNAL_CONFLICTS] = (double)row[COST_CONFLICT];
            q[SIGNAL_STARVATION] = (double)row[COST_STARVATION];
        }
        a->waiting_before_s = v->waiting_s;
        a->heading_before = v->heading;
        a->phase_before = a->phase;
    }
}

dt_status reward_by_formula(const state *s, float *reward)
{
    const double shared = s->config.reward_shared, scale = s->config.reward_scale;
    double mean = 0;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        mean += formula_value(&s->reward_formula, 0, &s->values[k], 0) / s->n_agents;
    }
    for (uint32_t k = 0; k < s->n_agents; k++) {
        const double own = formula_value(&s->reward_formula, 0, &s->values[k], 0);
        reward[k] = (float)(scale * ((1 - shared) * own + shared * mean));
        if (!isfinite(reward[k])) {
            return DT_FAIL_H(s->h, DT_EDATA, "env_sumo.reward = \"%s\" is %g for signal %s at %g s; limit its terms",
                             s->config.reward, own, s->net->signal[s->agent[k].signal].id, s->time_s);
        }
    }
    return DT_OK;
}

uint32_t starving_lanes(state *s, const agent *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_lanes; i++) {
        n += red_of_lane(s, a, i) > s->config.starve_s;
    }
    return n;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { LANE_NEAR, LANE_VEHICLES, LANE_STANDING, LANE_SPEED, LANE_LONGEST, LANE_FIRST, LANE_GREEN, LANE_RED };

/* The row `signal` without formulas: columns of each lane, which follow those of the signal. */
static const formula_name lane_columns[LANE_FEATURES] = {
    [LANE_NEAR] = {"lane.near", "count", "vehicles within near_m of the stop line", 0, INFINITY},
    [LANE_VEHICLES] = {"lane.vehicles", "count", "vehicles within detection_m of the stop line", 0, INFINITY},
    [LANE_STANDING] = {"lane.standing", "count", "standing vehicles among these", 0, INFINITY},
    [LANE_SPEED] = {"lane.speed_mps", "m/s", "their mean speed; 0 without vehicles", 0, INFINITY},
    [LANE_LONGEST] = {"lane.longest_wait_s", "s", "longest time that one has been standing without a break", 0,
                      INFINITY},
    [LANE_FIRST] = {"lane.first_m", "m", "distance of the first vehicle to the line; detection_m without vehicles", 0,
                    INFINITY},
    [LANE_GREEN] = {"lane.green", "0 or 1", "1 if the lane has green", 0, 1},
    [LANE_RED] = {"lane.red_s", "s", "longest time that a first vehicle has waited for the green of its link", 0,
                  INFINITY}};

static uint32_t describe_row(const state *s, dt_column *out)
{
    static const formula_name phase = {"phase", "0 or 1", "the phase shown, or shown before the yellow now, one-hot", 0,
                                       1};
    static const formula_name shown = {"shown_s", "s", "time since that phase is shown", -INFINITY, INFINITY};
    static const formula_name since = {"since_green_s", "s",
                                       "time since each phase was last green, or since the episode began", 0, INFINITY};
    const uint32_t P = s->n_phases;
    uint32_t n = 0;
    out[n++] = signal_column("signal", &phase, 0, P, 1);
    out[n++] = signal_column("signal", &shown, P, 1, 1);
    out[n++] = signal_column("signal", &since, P + 1, P, 1);
    for (uint32_t i = 0; i < LANE_FEATURES && s->n_lanes > 0; i++) {
        out[n++] = signal_column("signal", &lane_columns[i], 2 * P + 1 + i, s->n_lanes, LANE_FEATURES);
    }
    return n;
}

uint32_t describe_columns(const state *s, dt_column *out)
{
    uint32_t n = s->row.n > 0 ? formulas_describe(&s->row, "signal", s->n_phases, out) : describe_row(s, out);
    n += signal_describe_phases(out + n);
    return n + signal_describe_ports(s->port, s->n_ports, out + n);
}

static void write_row(const state *s, const agent *a, float *row)
{
    const signal_lane *lane = s->lane + agent_lane(s, a);
    const lane_first *first = s->first + agent_lane(s, a);
    float *since = row + s->n_phases + 1;
    row[a->phase] = 1;
    row[s->n_phases] = (float)(s->time_s - a->since_s);
    for (uint32_t p = 0; p < a->n_phases; p++) {
        since[p] = p == a->phase ? 0.0F : (float)(s->time_s - a->phase_end_s[p]);
    }
    float *out = since + s->n_phases;
    for (uint32_t i = 0; i < s->n_lanes && i < a->n_lanes; i++, out += LANE_FEATURES) {
        const signal_lane *l = &lane[i];
        out[LANE_NEAR] = (float)l->near;
        out[LANE_VEHICLES] = (float)l->n;
        out[LANE_STANDING] = (float)l->standing;
        out[LANE_SPEED] = l->n > 0 ? (float)(l->speed / l->n) : 0.0F;
        out[LANE_LONGEST] = (float)first[i].longest_s;
        out[LANE_FIRST] = (float)(l->n > 0 ? l->first_m : s->config.detection_m);
        out[LANE_GREEN] = a->green_lane[a->phase * a->n_lanes + i];
        out[LANE_RED] = (float)red_of_lane(s, a, i);
    }
}

/* Is the phase shown, and not the yellow after it? */
static bool is_green(const state *s, const agent *a, uint32_t phase)
{
    return phase == a->phase && strcmp(a->shown, s->net->signal[a->signal].state[a->state_of_phase[phase]]) == 0;
}

/* Does the phase let the link do the most that any phase does? */
static bool serves_link(const agent *a, uint32_t phase, uint32_t link)
{
    return a->best[link] != SIGNAL_RED && a->letter[phase * a->n_links + link] == a->best[link];
}

static void write_service(const state *s, const agent *a, float *out)
{
    const config *c = &s->config;
    const double least_s = c->decision_s * ceil((c->yellow_s + c->min_green_s) / c->decision_s - 1e-9);
    for (uint32_t p = 0; p < s->n_phases; p++, out += SERVICE_FEATURES) {
        out[2] = (float)c->yellow_s;
        out[3] = (float)least_s;
        for (uint32_t i = 0; i < a->n_links && p < a->n_phases; i++) {
            const float red_s = serves_link(a, p, i) ? (float)red_duration(s, a, i) : 0;
            out[4] = fmaxf(out[4], red_s);
            if (a->is_lonely[i] && serves_link(a, p, i)) {
                out[0] = 1;
                out[1] = fmaxf(out[1], red_s);
            }
        }
    }
}

static void write_right_of_way(const state *s, const agent *a, float *greens, float *foes)
{
    static const float shown[] = {[SIGNAL_RED] = 0, [SIGNAL_STOP] = 0.25F, [SIGNAL_YIELD] = 0.5F, [SIGNAL_GO] = 1};
    const sumo_signal *g = &s->net->signal[a->signal];
    for (size_t i = 0; i < a->n_links; i++) {
        for (size_t p = 0; p < a->n_phases; p++) {
            greens[p * s->L + i] = shown[a->letter[p * a->n_links + i]];
        }
        for (size_t j = 0; j < a->n_links; j++) {
            if (g->foe[i * a->n_links + j] != 0) {
                const float meet = signal_merge(g, (uint32_t)i, (uint32_t)j) ? FOE_MERGES : FOE_CROSSES;
                foes[i * s->L + j] = g->responds[i * a->n_links + j] != 0 ? -meet : meet;
            }
        }
    }
}

static void write_phases(const state *s, const agent *a, const uint8_t *mask, float *out)
{
    const signal_shape shape = {.n_links = a->n_links,
                                .n_phases = a->n_phases,
                                .n_lanes = a->n_lanes,
                                .n_out = a->n_out,
                                .letter = a->letter,
                                .best = a->best,
                                .green_lane = a->green_lane,
                                .out_lane = a->out_lane,
                                .conflicts = a->conflicts};
    for (uint32_t i = 0; i < a->n_links; i++) {
        a->red_s[i] = red_duration(s, a, i);
        a->shown_letter[i] = (uint8_t)signal_parse_letter(a->shown[i]);
    }
    const signal_now now = {
        .lane = s->lane + agent_lane(s, a),
        .link = agent_links(s, a),
        .halting_before = a->halting_before,
        .halting_after = a->halting_after,
        .red_s = a->red_s,
        .shown = a->shown_letter,
        .allowed = mask,
        .phase = a->phase,
        .program = s->config.control == CONTROL_PROGRAM
                       ? a->phase
                       : signal_program_phase(&s->net->signal[a->signal], a->phase_of_state, s->time_s - s->begin_s),
        .green_s = is_green(s, a, a->phase) ? s->time_s - a->since_s : -1,
        .detection_m = s->config.detection_m};
    signal_write_phases(&shape, &now, s->n_phases, out);
}

static int by_distance(const void *a, const void *b, void *vehicles)
{
    const sumo_vehicle *v = vehicles;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const double d = v[i].stop_distance - v[j].stop_distance;
    return d != 0 ? (d > 0) - (d < 0) : (i > j) - (i < j);
}

/* The vehicles that have room, in the order of the frame. */
static uint32_t choose_vehicles(state *s, uint32_t *chosen)
{
    const uint32_t room = (uint32_t)s->config.max_vehicles;
    for (uint32_t i = 0; i < s->n_vehicles; i++) {
        chosen[i] = i;
    }
    if (s->n_vehicles <= room) {
        return s->n_vehicles;
    }
    qsort_r(chosen, s->n_vehicles, sizeof(*chosen), by_distance, (void *)(uintptr_t)s->vehicle);
    return room;
}

static dt_status write_graph(state *s, const dt_env_io *io, uint32_t port)
{
    uint32_t n = 0;
    for (; n < s->n_agents; n++) {
        const sumo_signal *g = &s->net->signal[s->agent[n].signal];
        s->frame[n] = (dt_vehicle){.x = g->x - s->net->x,
                                   .y = g->y - s->net->y,
                                   .width = NAN,
                                   .stop_distance = 0,
                                   .id = -1 - (int64_t)n,
                                   .controlled = 1};
        ((int32_t *)io->obs[port + 4])[n] = (int32_t)n;
    }
    uint32_t *chosen = s->h->alloc(s->h, ((uint64_t)s->n_vehicles + 1) * sizeof(*chosen));
    if (chosen == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %u vehicles", s->n_vehicles);
    }
    const uint32_t n_chosen = choose_vehicles(s, chosen);
    for (uint32_t i = 0; i < n_chosen; i++, n++) {
        const sumo_vehicle *v = &s->vehicle[chosen[i]];
        s->frame[n] = (dt_vehicle){.x = v->x - s->net->x - 0.5 * v->length * cos(v->heading),
                                   .y = v->y - s->net->y - 0.5 * v->length * sin(v->heading),
                                   .heading = v->heading,
                                   .speed = v->speed,
                                   .accel = v->accel,
                                   .length = v->length,
                                   .width = v->width,
                                   .stop_distance = v->stop_distance,
                                   .id = v->number};
    }
    s->h->release(s->h, chosen);
    int32_t *rowptr = io->obs[port + 1];
    DT_TRY_H(s->features->frame(s->h, s->frame, n, s->config.radius_m, DT_NEIGHBOURS, io->obs[port], rowptr,
                                io->obs[port + 2], io->obs[port + 3]));
    io->size[0] = s->n_frame = n;
    io->size[1] = rowptr[n];
    return DT_OK;
}

/* Row k of port signal, by the user's formulas where there are some. */
static dt_status write_own(state *s, uint32_t k, const float *table, float *row)
{
    const agent *a = &s->agent[k];
    uint32_t bad = 0;
    s->values[k].phases = table;
    s->values[k].n_phases = a->n_phases;
    if (s->row.n == 0) {
        write_row(s, a, row);
    } else if (!formulas_row(&s->row, &s->values[k], s->n_phases, row, &bad)) {
        return DT_FAIL_H(s->h, DT_EDATA, "env_sumo.observation: \"%s\" is not finite for signal %s at %g s; limit it",
                         s->row.item[bad].text, s->net->signal[a->signal].id, s->time_s);
    }
    return DT_OK;
}

dt_status observe(state *s, const dt_env_io *io)
{
    float *row = io->obs[0], *phases = io->obs[1];
    int32_t *neighbour = io->obs[2];
    for (uint32_t k = 0; k < s->n_agents; k++) {
        const agent *a = &s->agent[k];
        float *table = phases + (size_t)k * s->n_phases * PHASE_FEATURES;
        write_phases(s, a, io->mask + (size_t)k * s->n_phases, table);
        DT_TRY_H(write_own(s, k, table, row + (size_t)k * s->n_row));
        memcpy(neighbour + (size_t)k * N_NEIGHBOURS, a->neighbour, sizeof(a->neighbour));
        const size_t P = s->n_phases, L = s->L;
        void *const *more = io->obs + s->service_port;
        write_service(s, a, (float *)more[0] + k * P * SERVICE_FEATURES);
        if (s->config.right_of_way) {
            write_right_of_way(s, a, (float *)more[1] + k * P * L, (float *)more[2] + k * L * L);
        }
    }
    return s->config.features == FEATURES_GRAPH ? write_graph(s, io, 3) : DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, episodes and the order of a step. See sim.h.
 */
#include "sim.h"
#include "change.h"
#include "demand.h"
#include "junction.h"
#include "signal.h"
#include "dtrain/checked.h"

#include <string.h>

#define SLACK_SLOTS 8         /* of a lane, above what stands on it bumper to bumper */
#define SLOTS_MOST  (1 << 24) /* of all lanes: 700 MB */

static void *allocate_array(sim *s, int64_t n, size_t bytes)
{
    return s->h->alloc(s->h, (uint64_t)(n < 1 ? 1 : n) * bytes);
}

/* Twice the vehicles that fit, so that a lane is moved to its start once for as many vehicles as it has room for; and
 * on a long lane no more than there can be. */
static dt_status lay_out_memory(sim *s)
{
    const int64_t most = s->c->max_vehicles;
    int64_t base = 0;
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        const int64_t fit = dt_i64_within(ceil(s->net.lane[k].length / s->least_m), 0, most) + SLACK_SLOTS;
        if (base + 2 * fit > SLOTS_MOST) {
            return DT_FAIL_H(
                s->h, DT_ECONFIG,
                "env_traffic: %d lanes have room for more than %d vehicles of %g m bumper to bumper, %lld of them on "
                "one lane at most (env_traffic.max_vehicles): cut the network to the part in use",
                (int)s->net.n_lanes, SLOTS_MOST / 2, s->least_m, (long long)most);
        }
        s->lane[k] =
            (lane_state){.base = (int32_t)base, .cap = (int32_t)(2 * fit), .front = NET_NONE, .halted = NET_NONE};
        base += 2 * fit;
    }
    s->n_slots = (int32_t)base;
    return DT_OK;
}

dt_status sim_create(sim *s, const dt_host *h, const traffic_config *c)
{
    s->h = h;
    s->c = c;
    s->driver = (driver){.T = c->headway_s,
                         .a = c->accel_mps2,
                         .b = c->decel_mps2,
                         .s0 = c->gap_m,
                         .over_2_ab = 0.5 / sqrt(c->accel_mps2 * c->decel_mps2),
                         .dt = c->dt_s,
                         .model = c->model};
    s->sigma = c->sigma;
    s->least_m = c->vehicle_m;
    DT_TRY_H(scenario_build(s));
    net_finish_signals(&s->net);
    s->lane = allocate_array(s, s->net.n_lanes, sizeof(*s->lane));
    if (s->lane == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for %d lanes", (int)s->net.n_lanes);
    }
    DT_TRY_H(lay_out_memory(s));
    s->max_vehicles = (int32_t)(c->max_vehicles < s->n_slots ? c->max_vehicles : s->n_slots);
    s->n_places = c->control != CONTROL_SIGNALS ? (int32_t)c->agents : 0;
    s->x = allocate_array(s, s->n_slots, sizeof(*s->x));
    s->v = allocate_array(s, s->n_slots, sizeof(*s->v));
    s->a = allocate_array(s, s->n_slots, sizeof(*s->a));
    s->length = allocate_array(s, s->n_slots, sizeof(*s->length));
    s->want = allocate_array(s, s->n_slots, sizeof(*s->want));
    s->who = allocate_array(s, s->n_slots, sizeof(*s->who));
    s->vehicle = allocate_array(s, s->max_vehicles, sizeof(*s->vehicle));
    s->spare = allocate_array(s, s->max_vehicles, sizeof(*s->spare));
    s->place = allocate_array(s, s->n_places, sizeof(*s->place));
    s->signal = allocate_array(s, s->net.n_signals, sizeof(*s->signal));
    s->meets = allocate_array(s, s->net.n_links, sizeof(*s->meets));
    s->red_s = allocate_array(s, s->net.n_links, sizeof(*s->red_s));
    s->waits = allocate_array(s, s->net.n_junctions, sizeof(*s->waits));
    s->starts = allocate_array(s, s->net.n_junctions, sizeof(*s->starts));
    if (s->x == NULL || s->v == NULL || s->a == NULL || s->length == NULL || s->want == NULL || s->who == NULL ||
        s->vehicle == NULL || s->spare == NULL || s->place == NULL || s->signal == NULL || s->meets == NULL ||
        s->red_s == NULL || s->waits == NULL || s->starts == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for %d vehicles on %d lanes", (int)s->max_vehicles,
                         (int)s->net.n_lanes);
    }
    return demand_create(s);
}

void sim_destroy(sim *s)
{
    const dt_host *h = s->h;
    if (h == NULL) {
        return;
    }
    demand_destroy(s);
    void *const owned[] = {s->lane,  s->x,     s->v,      s->a,      s->length, s->want,  s->who,   s->vehicle,
                           s->spare, s->place, s->source, s->signal, s->meets,  s->red_s, s->waits, s->starts};
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]); k++) {
        h->release(h, owned[k]);
    }
    plan_fini(&s->plan, h);
    route_fini(&s->search, h);
    net_fini(&s->net, h);
    memset(s, 0, sizeof(*s));
}

void sim_reset(sim *s, uint64_t seed)
{
    s->seed = seed;
    s->step = s->next_key = 0;
    s->elapsed_s = s->speed_ratio = 0;
    s->speed_ratio_n = 0;
    s->n_vehicles = 0;
    s->sum = (tally){0};
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        s->lane[k] =
            (lane_state){.base = s->lane[k].base, .cap = s->lane[k].cap, .front = NET_NONE, .halted = NET_NONE};
    }
    for (int32_t k = 0; k < s->max_vehicles; k++) {
        s->vehicle[k] = (vehicle){.lane = NET_NONE, .place = NET_NONE};
        s->spare[k] = s->max_vehicles - 1 - k;
    }
    s->n_spare = s->max_vehicles;
    for (int32_t k = 0; k < s->n_places; k++) {
        s->place[k] = (place){.vehicle = NET_NONE};
    }
    memset(s->meets, 0, (size_t)s->net.n_links * sizeof(*s->meets));
    memset(s->red_s, 0, (size_t)s->net.n_links * sizeof(*s->red_s));
    memset(s->waits, 0, (size_t)s->net.n_junctions * sizeof(*s->waits));
    memset(s->starts, 0, (size_t)s->net.n_junctions * sizeof(*s->starts));
    signal_reset(s);
    demand_reset(s);
    scenario_populate(s);
}

void sim_step(sim *s)
{
    demand_step(s);
    change_step(s);
    place_reroute(s);
    move_accelerate(s);
    move_advance(s);
    place_enter_next_lanes(s);
    junction_check(s);
    s->step++;
    s->elapsed_s = (double)s->step * s->c->dt_s;
    signal_step(s);
}

int32_t sim_slot_of(const sim *s, int32_t vid)
{
    const lane_state *l = &s->lane[s->vehicle[vid].lane];
    int32_t p = slot_front(l);
    while (s->who[p] != vid) {
        p++;
    }
    return p;
}

/* Of a source, how many were due before now. Those of the step that ends now were not asked to enter yet. */
static int32_t due_before_now(const sim *s, const source *q)
{
    int32_t n = q->arrived;
    while (n < q->n && q->due[n].due < s->elapsed_s) {
        n++;
    }
    return n;
}

int64_t sim_waiting(const sim *s)
{
    int64_t n = 0;
    for (int32_t k = 0; k < s->n_sources; k++) {
        n += due_before_now(s, &s->source[k]) - s->source[k].taken;
    }
    return n;
}

/* The wait up to now of vehicles that never entered. */
static double wait_outside(const sim *s)
{
    double sum = 0;
    for (int32_t k = 0; k < s->n_sources; k++) {
        const source *q = &s->source[k];
        const int32_t end = due_before_now(s, q);
        for (int32_t i = q->taken; i < end; i++) {
            sum += s->elapsed_s - q->due[i].due;
        }
    }
    return sum;
}

double sim_delay(const sim *s)
{
    return s->sum.loss_s + wait_outside(s);
}

double sim_travel(const sim *s)
{
    return s->sum.late_s + s->sum.present_s + wait_outside(s);
}

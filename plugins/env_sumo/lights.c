/* SPDX-License-Identifier: Apache-2.0 */
#include "lights.h"
#include "observe.h"
#include "scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- create ------------------------------------------------------------------------------------------------------ */

/* index of x in a list that it joins when it is not there */
static uint32_t index_or_append(uint32_t *list, uint32_t *n, uint32_t x)
{
    uint32_t i = 0;
    while (i < *n && list[i] != x) {
        i++;
    }
    if (i == *n) {
        list[(*n)++] = x;
    }
    return i;
}

/* What the phases show each link. */
static void read_letters(const state *s, agent *a)
{
    const sumo_signal *g = &s->net->signal[a->signal];
    const uint32_t n = a->n_links;
    for (uint32_t i = 0; i < n; i++) {
        bool is_green = false, is_sound = false;
        for (uint32_t p = 0; p < a->n_phases; p++) {
            const char c = g->state[a->state_of_phase[p]][i];
            const uint8_t letter = a->lane_of_link[i] != SUMO_NONE ? (uint8_t)signal_parse_letter(c) : SIGNAL_RED;
            a->letter[p * n + i] = letter;
            a->best[i] = letter > a->best[i] ? letter : a->best[i];
            is_green |= letter >= SIGNAL_YIELD;
            is_sound |= letter >= SIGNAL_YIELD && a->conflicts[p] == 0;
        }
        a->is_lonely[i] = is_green && !is_sound;
    }
}

static dt_status make_agent(state *s, agent *a, uint32_t signal)
{
    const sumo_signal *g = &s->net->signal[signal];
    const uint32_t n = g->n_links;
    a->signal = signal;
    a->n_links = n;
    DT_TRY_H(env_reserve(s, &a->lane, n, sizeof(*a->lane)));
    DT_TRY_H(env_reserve(s, &a->lane_of_link, n, sizeof(*a->lane_of_link)));
    DT_TRY_H(env_reserve(s, &a->out, n, sizeof(*a->out)));
    for (uint32_t i = 0; i < n; i++) {
        a->lane_of_link[i] = g->from[i] != SUMO_NONE ? index_or_append(a->lane, &a->n_lanes, g->from[i]) : SUMO_NONE;
        if (g->to[i] != SUMO_NONE) {
            (void)index_or_append(a->out, &a->n_out, g->to[i]);
        }
    }
    DT_TRY_H(env_reserve(s, &a->green_lane, (uint64_t)a->n_phases * a->n_lanes, 1));
    DT_TRY_H(env_reserve(s, &a->out_lane, (uint64_t)a->n_phases * a->n_out, 1));
    DT_TRY_H(env_reserve(s, &a->conflicts, a->n_phases, sizeof(*a->conflicts)));
    DT_TRY_H(env_reserve(s, &a->phase_end_s, a->n_phases, sizeof(*a->phase_end_s)));
    DT_TRY_H(env_reserve(s, &a->letter, (uint64_t)a->n_phases * n, 1));
    DT_TRY_H(env_reserve(s, &a->best, n, 1));
    DT_TRY_H(env_reserve(s, &a->is_lonely, n, 1));
    DT_TRY_H(env_reserve(s, &a->green_s, n, sizeof(*a->green_s)));
    DT_TRY_H(env_reserve(s, &a->red_since_s, n, sizeof(*a->red_since_s)));
    DT_TRY_H(env_reserve(s, &a->red_s, n, sizeof(*a->red_s)));
    DT_TRY_H(env_reserve(s, &a->halting_before, a->n_lanes, sizeof(*a->halting_before)));
    DT_TRY_H(env_reserve(s, &a->halting_after, a->n_out, sizeof(*a->halting_after)));
    DT_TRY_H(env_reserve(s, &a->first, a->n_lanes, sizeof(*a->first)));
    DT_TRY_H(env_reserve(s, &a->shown, n + 1, 1));
    DT_TRY_H(env_reserve(s, &a->wanted, n + 1, 1));
    DT_TRY_H(env_reserve(s, &a->shown_letter, n, 1));
    for (uint32_t p = 0; p < a->n_phases; p++) {
        const char *letters = g->state[a->state_of_phase[p]];
        a->conflicts[p] = signal_conflicts(g, letters);
        for (uint32_t i = 0; i < n; i++) {
            if (signal_is_green(letters[i]) && a->lane_of_link[i] != SUMO_NONE) {
                uint32_t n_out = a->n_out;
                a->green_lane[p * a->n_lanes + a->lane_of_link[i]] = 1;
                a->out_lane[p * a->n_out + index_or_append(a->out, &n_out, g->to[i])] = 1;
            }
        }
    }
    read_letters(s, a);
    return DT_OK;
}

/* does traffic of one signal come to another next? */
static bool leads_traffic_to(const state *s, const agent *from, const agent *to)
{
    for (uint32_t i = 0; i < from->n_out; i++) {
        if (s->net->lane[from->out[i]].next == to->signal) {
            return true;
        }
    }
    return false;
}

static void find_neighbours(state *s, uint32_t k)
{
    agent *a = &s->agent[k];
    const sumo_signal *here = &s->net->signal[a->signal];
    double far[N_NEIGHBOURS];
    for (int i = 0; i < N_NEIGHBOURS; i++) {
        a->neighbour[i] = (int32_t)k;
        far[i] = INFINITY;
    }
    for (uint32_t j = 0; j < s->n_agents; j++) {
        const sumo_signal *there = &s->net->signal[s->agent[j].signal];
        if (j == k || !leads_traffic_to(s, &s->agent[j], a)) {
            continue;
        }
        double d = hypot(there->x - here->x, there->y - here->y);
        int32_t who = (int32_t)j;
        for (int i = 0; i < N_NEIGHBOURS; i++) { /* the list stays sorted */
            if (d < far[i]) {
                const double d_then = far[i];
                const int32_t then = a->neighbour[i];
                far[i] = d;
                a->neighbour[i] = who;
                d = d_then;
                who = then;
            }
        }
    }
}

/* Signals that keep their program, in one line for all that have fewer than two green phases. */
enum { KEPT_NAMES = 8 };

typedef struct kept {
    char names[160];
    uint32_t n, n_named;
} kept;

static void store_program(const state *s, const sumo_signal *g, const agent *a, const char *wrong, kept *k)
{
    if (wrong != NULL || g->foe == NULL) {
        dt_logf(s->h, 2, "signal %s has %u green phases, %s, and keeps its program", g->id, a->n_phases,
                wrong != NULL ? "states of fewer letters than links" : "too many links");
        return;
    }
    const size_t used = strlen(k->names);
    if (k->n_named < KEPT_NAMES && used + strlen(g->id) + 3 < sizeof(k->names)) {
        snprintf(k->names + used, sizeof(k->names) - used, "%s%s", used > 0 ? ", " : "", g->id);
        k->n_named++;
    }
    k->n++;
}

static dt_status check_shared_sizes(const state *s)
{
    const struct {
        const char *option;
        int64_t shared, own;
    } size[] = {{"max_signals", s->config.max_signals, s->n_agents}, {"max_links", s->config.max_links, s->most_links}};
    for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        if (size[i].shared > 0 && size[i].shared < size[i].own) {
            return DT_FAIL_H(s->h, DT_ECONFIG, "env_sumo.%s = %lld: %s needs %lld", size[i].option,
                             (long long)size[i].shared, s->config.sumocfg, (long long)size[i].own);
        }
    }
    return DT_OK;
}

static dt_status find_agents(state *s)
{
    const sumo_net *net = s->net;
    kept others = {.n = 0};
    DT_TRY_H(env_reserve(s, &s->agent, net->n_signals, sizeof(*s->agent)));
    DT_TRY_H(env_reserve(s, &s->agent_of_signal, net->n_signals, sizeof(*s->agent_of_signal)));
    for (uint32_t i = 0; i < net->n_signals; i++) {
        agent *a = &s->agent[s->n_agents];
        const sumo_signal *g = &net->signal[i];
        s->agent_of_signal[i] = SUMO_NONE;
        DT_TRY_H(env_reserve(s, &a->state_of_phase, g->n_states, sizeof(*a->state_of_phase)));
        DT_TRY_H(env_reserve(s, &a->phase_of_state, g->n_states, sizeof(*a->phase_of_state)));
        a->n_phases = signal_phases(g, a->state_of_phase, a->phase_of_state);
        const char *wrong = signal_find_wrong_state(g);
        if (a->n_phases < 2 || g->foe == NULL || wrong != NULL) { /* SUMO runs it by itself */
            store_program(s, g, a, wrong, &others);
            s->h->release(s->h, a->state_of_phase);
            s->h->release(s->h, a->phase_of_state);
            memset(a, 0, sizeof(*a));
            continue;
        }
        s->agent_of_signal[i] = s->n_agents++;
        DT_TRY_H(make_agent(s, a, i));
        s->n_phases = a->n_phases > s->n_phases ? a->n_phases : s->n_phases;
        s->most_lanes = a->n_lanes > s->most_lanes ? a->n_lanes : s->most_lanes;
        s->most_links = a->n_links > s->most_links ? a->n_links : s->most_links;
        if (s->config.max_phases > 0 && a->n_phases > s->config.max_phases) {
            return DT_FAIL_H(s->h, DT_ECONFIG, "signal %s has %u green phases, above max_phases = %lld", g->id,
                             a->n_phases, (long long)s->config.max_phases);
        }
    }
    if (others.n > 0) {
        dt_logf(s->h, 2, "%u of %u signals have fewer than two green phases and keep their program: %s%s", others.n,
                net->n_signals, others.names, others.n > others.n_named ? ", ..." : "");
    }
    if (s->n_agents == 0) {
        return DT_FAIL_H(s->h, DT_ECONFIG,
                         "%s: none of the %u traffic signals of the net has two green phases, so there is nothing to "
                         "control",
                         s->config.sumocfg, net->n_signals);
    }
    DT_TRY_H(check_shared_sizes(s));
    s->n_places = s->config.max_signals > s->n_places ? (uint32_t)s->config.max_signals : s->n_places;
    s->L = s->config.max_links > s->L ? (uint32_t)s->config.max_links : s->L;
    s->n_phases = s->config.max_phases > 0 ? (uint32_t)s->config.max_phases : s->n_phases;
    s->n_lanes = s->config.max_lanes > 0 ? (uint32_t)s->config.max_lanes : s->most_lanes;
    s->L = s->most_links > s->L ? s->most_links : s->L;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        find_neighbours(s, k);
    }
    return DT_OK;
}

static dt_status make_room(state *s)
{
    const uint32_t n = s->n_agents;
    size_t n_links = 0;
    for (uint32_t k = 0; k < n; k++) {
        n_links += s->agent[k].n_links;
    }
    DT_TRY_H(env_reserve(s, &s->link, n_links, sizeof(*s->link)));
    DT_TRY_H(env_reserve(s, &s->lane, (uint64_t)n * s->most_lanes, sizeof(*s->lane)));
    DT_TRY_H(env_reserve(s, &s->first, (uint64_t)n * s->most_lanes, sizeof(*s->first)));
    DT_TRY_H(env_reserve(s, &s->view, n, sizeof(*s->view)));
    DT_TRY_H(env_reserve(s, &s->values, n, sizeof(*s->values)));
    DT_TRY_H(env_reserve(s, &s->halting, s->net->n_lanes, sizeof(*s->halting)));
    DT_TRY_H(env_reserve(s, &s->pending, s->net->n_signals + 1, sizeof(*s->pending)));
    DT_TRY_H(env_reserve(s, &s->lost_s, n, sizeof(*s->lost_s)));
    DT_TRY_H(env_reserve(s, &s->in, n, sizeof(*s->in)));
    DT_TRY_H(env_reserve(s, &s->away, n, sizeof(*s->away)));
    if (s->config.features == FEATURES_GRAPH) {
        DT_TRY_H(env_reserve(s, &s->frame, (uint64_t)s->config.max_vehicles + n, sizeof(*s->frame)));
    }
    return DT_OK;
}

/* for agents, in this scenario and the others */
static uint32_t count_places(const state *s)
{
    return s->n_places > s->n_agents ? s->n_places : s->n_agents;
}

static void make_ports(state *s)
{
    s->n_row = s->row.n > 0 ? formulas_width(&s->row, s->n_phases) : 2 * s->n_phases + 1 + LANE_FEATURES * s->n_lanes;
    snprintf(s->dims[0], sizeof(s->dims[0]), "A %u", s->n_row);
    snprintf(s->dims[1], sizeof(s->dims[1]), "A %u %d", s->n_phases, PHASE_FEATURES);
    snprintf(s->dims[2], sizeof(s->dims[2]), "A %d", N_NEIGHBOURS);
    s->port[s->n_ports++] = (dt_port){"signal", s->dims[0], DT_F32, 0};
    s->port[s->n_ports++] = (dt_port){"phases", s->dims[1], DT_F32, 0};
    s->port[s->n_ports++] = (dt_port){"neighbour", s->dims[2], DT_I32, DT_PORT_INDEX(0)};
    if (s->config.features == FEATURES_GRAPH) {
        s->port[s->n_ports++] = (dt_port){"nodes", "N 9", DT_F32, 0};
        s->port[s->n_ports++] = (dt_port){"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)};
        s->port[s->n_ports++] = (dt_port){"col", "E", DT_I32, DT_PORT_INDEX(1)};
        s->port[s->n_ports++] = (dt_port){"edges", "E 4", DT_F32, 0};
        s->port[s->n_ports++] = (dt_port){"agent_node", "A", DT_I32, DT_PORT_INDEX(1)};
        const int64_t n = s->config.max_vehicles + count_places(s);
        s->symbol[0] = (dt_dim){"N", n};
        s->symbol[1] = (dt_dim){"E", n * DT_NEIGHBOURS};
    }
    s->service_port = s->n_ports;
    snprintf(s->dims[3], sizeof(s->dims[3]), "A %u %d", s->n_phases, SERVICE_FEATURES);
    s->port[s->n_ports++] = (dt_port){"service", s->dims[3], DT_F32, 0};
    if (s->config.right_of_way) {
        snprintf(s->dims[4], sizeof(s->dims[4]), "A %u %u", s->n_phases, s->L);
        snprintf(s->dims[5], sizeof(s->dims[5]), "A %u %u", s->L, s->L);
        s->port[s->n_ports++] = (dt_port){"greens", s->dims[4], DT_F32, 0};
        s->port[s->n_ports++] = (dt_port){"foes", s->dims[5], DT_F32, 0};
    }
}

/* Which signal of the file each agent is, and what its phases show. */
static dt_status name_places(state *s)
{
    const size_t P = s->n_phases, A = count_places(s);
    DT_TRY_H(env_reserve(s, &s->place_name, A, sizeof(*s->place_name)));
    for (size_t k = 0; k < A; k++) {
        s->place_name[k] = k < s->n_agents ? s->net->signal[s->agent[k].signal].id : "";
    }
    if (A * P > DT_ENV_MAX_CHOICES_SHOWN) {
        return DT_OK;
    }
    DT_TRY_H(env_reserve(s, &s->shown, A * P, sizeof(*s->shown)));
    for (size_t k = 0; k < A; k++) {
        const agent *a = &s->agent[k < s->n_agents ? k : 0];
        for (uint32_t p = 0; p < P; p++) {
            s->shown[k * P + p] =
                k < s->n_agents && p < a->n_phases ? s->net->signal[a->signal].state[a->state_of_phase[p]] : "";
        }
    }
    return DT_OK;
}

dt_status lights_create(state *s)
{
    DT_TRY_H(find_agents(s));
    DT_TRY_H(make_room(s));
    make_ports(s);
    s->n_columns = describe_columns(s, s->column);
    return s->n_scenarios == 1 ? name_places(s) : DT_OK;
}

void lights_spec(state *s, dt_env_spec *out)
{
    static const char *const costs[] = {"conflicting_greens", "starvation", "collisions", "emergency_braking"};
    s->choices = (int32_t)s->n_phases;
    out->n_agents = count_places(s);
    out->n_symbols = s->config.features == FEATURES_GRAPH ? 2 : 0;
    out->choices = &s->choices;
    out->n_heads = 1;
    out->costs = costs;
    out->n_costs = N_COSTS;
    out->columns = s->column;
    out->n_columns = s->n_columns;
    out->places = s->place_name;
    out->choices_shown = s->shown;
}

void lights_destroy(state *s)
{
    if (s->agent != NULL && s->net != NULL) {
        for (uint32_t k = 0; k < s->net->n_signals; k++) {
            agent *a = &s->agent[k];
            void *const parts[] = {a->state_of_phase, a->phase_of_state, a->lane,    a->lane_of_link, a->shown_letter,
                                   a->green_lane,     a->out_lane,       a->out,     a->conflicts,    a->phase_end_s,
                                   a->letter,         a->best,           a->green_s, a->is_lonely,    a->red_since_s,
                                   a->first,          a->shown,          a->wanted,  a->red_s,        a->halting_before,
                                   a->halting_after};
            for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
                s->h->release(s->h, parts[i]);
            }
        }
    }
    void *const parts[] = {s->agent,
                           s->agent_of_signal,
                           s->link,
                           s->lane,
                           s->first,
                           s->halting,
                           s->lost_s,
                           s->in,
                           s->away,
                           s->past,
                           s->view,
                           s->values,
                           (void *)s->place_name,
                           (void *)s->shown};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        s->h->release(s->h, parts[i]);
    }
    s->agent = NULL;
    s->agent_of_signal = s->halting = NULL;
    s->link = NULL;
    s->lane = NULL;
    s->first = NULL;
    s->lost_s = s->in = s->away = NULL;
    s->past = NULL;
    s->view = NULL;
    s->values = NULL;
    s->place_name = s->shown = NULL;
    s->past_cap = 0;
    s->n_agents = s->n_phases = s->n_lanes = s->most_lanes = s->most_links = 0;
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

static const char *phase_letters(const state *s, const agent *a, uint32_t phase)
{
    return s->net->signal[a->signal].state[a->state_of_phase[phase]];
}

static dt_status send_letters(state *s, agent *a, const char *letters)
{
    if (letters != a->shown) {
        memcpy(a->shown, letters, a->n_links + 1);
    }
    if (s->api->set_state(a->signal, a->shown) != 0) {
        return env_fail(s, DT_EIO, "a signal was not set");
    }
    return DT_OK;
}

/* After a stretch of time: which were served, and did everything stay as it was shown? */
static dt_status check_after_stretch(state *s, double stretch_s)
{
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        const sumo_signal *g = &s->net->signal[a->signal];
        if (s->api->get_state(a->signal, a->wanted) != 0) {
            return env_fail(s, DT_EIO, "a signal was not read");
        }
        if (s->config.control == CONTROL_PROGRAM) {
            memcpy(a->shown, a->wanted, a->n_links + 1);
        } else if (strcmp(a->wanted, a->shown) != 0) {
            return DT_FAIL_H(s->h, DT_EPLUGIN, "signal %s shows %s at %g s, but was set to %s", g->id, a->wanted,
                             s->time_s, a->shown);
        }
        if (signal_conflicts(g, a->shown) > 0) {
            a->conflict_s += stretch_s;
        }
        for (uint32_t i = 0; i < a->n_links; i++) {
            if (a->best[i] != SIGNAL_RED && signal_parse_letter(a->shown[i]) >= a->best[i]) {
                if (isfinite(a->red_since_s[i])) { /* the wait ended when this began */
                    s->totals.longest_s = fmax(s->totals.longest_s, s->time_s - stretch_s - a->red_since_s[i]);
                }
                a->red_since_s[i] = NAN;
                a->green_s[i] = s->time_s;
            }
        }
    }
    return DT_OK;
}

/* In the program's own time phases begin at any second. */
static void follow_program(state *s)
{
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        for (uint32_t p = 0; p < a->n_phases; p++) {
            if (strcmp(a->shown, phase_letters(s, a, p)) == 0) {
                a->since_s = p != a->phase ? s->time_s : a->since_s;
                a->phase = p;
                a->phase_end_s[p] = s->time_s;
            }
        }
    }
}

static dt_status advance_simulation(state *s, double stretch_s)
{
    const double from_s = s->time_s, step_s = s->net->step_s;
    const int64_t n = llround(stretch_s / step_s);
    for (int64_t i = 0; i < n; i++) {
        if (s->api->step(&s->time_s) != 0) {
            return env_fail(s, DT_EIO, "SUMO stopped");
        }
        scene_show_step(s);
        if (s->config.control == CONTROL_PROGRAM) {
            DT_TRY_H(check_after_stretch(s, step_s));
            follow_program(s);
        }
    }
    return s->config.control == CONTROL_PROGRAM ? DT_OK : check_after_stretch(s, s->time_s - from_s);
}

/* May the phase be left? The one that an episode begins with may at once. */
static bool may_leave(const state *s, const agent *a)
{
    return s->config.control == CONTROL_SIGNALS &&
           (s->time_s <= s->begin_s || s->time_s - a->since_s >= s->config.min_green_s - 1e-6);
}

static void write_masks(const state *s, const dt_env_io *io)
{
    for (uint32_t k = 0; k < s->n_agents; k++) {
        const agent *a = &s->agent[k];
        const bool is_free = may_leave(s, a);
        uint8_t *mask = io->mask + (size_t)k * s->n_phases;
        for (uint32_t p = 0; p < s->n_phases; p++) {
            mask[p] = p < a->n_phases && (is_free || p == a->phase);
        }
    }
}

static dt_status check_action(const state *s, uint32_t k, int32_t action)
{
    const agent *a = &s->agent[k];
    const char *id = s->net->signal[a->signal].id;
    if (action < 0 || (uint32_t)action >= a->n_phases) {
        return DT_FAIL_H(s->h, DT_EINVAL, "agent %u (signal %s): phase %d, expected 0 to %u", k, id, action,
                         a->n_phases - 1);
    }
    if ((uint32_t)action != a->phase && !may_leave(s, a)) {
        return DT_FAIL_H(s->h, DT_EINVAL, "agent %u (signal %s): phase %d after %g s of phase %u, min_green_s is %g", k,
                         id, action, s->time_s - a->since_s, a->phase, s->config.min_green_s);
    }
    return DT_OK;
}

/* Shows what was asked for, with yellow where a green ends; every agent's step takes the same time. */
static dt_status control_signals(state *s, const int32_t *action, double step_s)
{
    bool has_yellow = false;
    for (uint32_t k = 0; k < s->n_agents; k++) {
        DT_TRY_H(check_action(s, k, action[k]));
    }
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        const uint32_t next = (uint32_t)action[k];
        if (next == a->phase) {
            continue;
        }
        a->phase_end_s[a->phase] = s->time_s;
        const bool ends = s->config.yellow_s > 0 && signal_yellow(a->shown, phase_letters(s, a, next), a->wanted);
        DT_TRY_H(send_letters(s, a, ends ? a->wanted : phase_letters(s, a, next)));
        a->since_s = ends ? s->time_s + s->config.yellow_s : s->time_s;
        a->phase = next;
        has_yellow |= ends;
    }
    if (!has_yellow || step_s <= s->config.yellow_s) {
        return advance_simulation(s, step_s);
    }
    DT_TRY_H(advance_simulation(s, s->config.yellow_s));
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        if (strcmp(a->shown, phase_letters(s, a, a->phase)) != 0) {
            DT_TRY_H(send_letters(s, a, phase_letters(s, a, a->phase)));
        }
    }
    return advance_simulation(s, step_s - s->config.yellow_s);
}

/* ---- episodes ---------------------------------------------------------------------------------------------------- */

dt_status lights_reset(state *s, const dt_env_io *io)
{
    for (int64_t i = 0; i < s->past_cap; i++) {
        s->past[i] = (past){.agent = SUMO_NONE};
    }
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        a->phase = a->phase_of_state[s->net->signal[a->signal].first_state];
        a->since_s = s->begin_s;
        a->conflict_s = 0;
        for (uint32_t p = 0; p < a->n_phases; p++) {
            a->phase_end_s[p] = s->begin_s;
        }
        for (uint32_t i = 0; i < a->n_links; i++) {
            a->green_s[i] = s->begin_s;
            a->red_since_s[i] = NAN;
        }
        for (uint32_t i = 0; i < a->n_lanes; i++) {
            a->first[i] = -1;
        }
        if (s->config.control == CONTROL_SIGNALS) {
            DT_TRY_H(send_letters(s, a, phase_letters(s, a, a->phase)));
        }
        io->alive[k] = 1;
    }
    for (uint32_t k = s->n_agents; k < count_places(s); k++) {
        io->alive[k] = 0;
    }
    DT_TRY_H(read_traffic(s));
    measure_signals(s, 0, NULL);
    write_masks(s, io);
    return observe(s, io);
}

static dt_status write_costs(state *s, const dt_env_io *io)
{
    sumo_events e;
    DT_TRY_H(env_events(s, &e));
    const double share = 1.0 / s->n_agents;
    double collisions = 0, braking = 0; /* where no agent is */
    for (uint32_t i = 0; i <= s->net->n_signals; i++) {
        if (i == s->net->n_signals || s->agent_of_signal[i] == SUMO_NONE) {
            collisions += e.collision[i];
            braking += e.braking[i];
        }
    }
    for (uint32_t k = 0; k < s->n_agents; k++) {
        agent *a = &s->agent[k];
        float *cost = io->cost + (size_t)k * N_COSTS;
        cost[COST_CONFLICT] = (float)a->conflict_s;
        cost[COST_STARVATION] = (float)starving_lanes(s, a);
        cost[COST_COLLISION] = (float)(e.collision[a->signal] + share * collisions);
        cost[COST_BRAKING] = (float)(e.braking[a->signal] + share * braking);
        s->totals.conflict_s += a->conflict_s;
        a->conflict_s = 0;
    }
    return DT_OK;
}

dt_status lights_step(state *s, const dt_env_io *io, double step_s)
{
    DT_TRY_H(s->config.control == CONTROL_PROGRAM ? advance_simulation(s, step_s)
                                                  : control_signals(s, io->act_i, step_s));
    DT_TRY_H(read_traffic(s));
    if (s->reward != REWARD_FORMULA) {
        reward_agents(s, step_s, io->reward);
    }
    DT_TRY_H(write_costs(s, io));
    measure_signals(s, step_s, io->cost);
    write_masks(s, io);
    DT_TRY_H(observe(s, io));
    if (s->reward == REWARD_FORMULA) {
        DT_TRY_H(reward_by_formula(s, io->reward));
    }
    const bool is_over = env_is_over(s);
    for (uint32_t k = 0; k < s->n_agents; k++) {
        io->alive[k] = !is_over;
        io->truncated[k] = is_over;
    }
    return is_over ? DT_DONE : DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * env_traffic: a microscopic traffic simulation as an environment. Vehicles follow each other, change lanes, obey
 * signals and right of way; agents are vehicles (acceleration, with lane_actions lanes too), the signals of junctions
 * (next green phase), or both. The simulation is in sim.h, what agents see in observe.h; here are the options, the
 * agents' step, and the sums.
 *
 * scenario = net: roads, limits, signals, drivers and demand are those of the files (scenario_net.c, plan.h); options
 * for them, from lanes and flow_vph to headway_s, model and sigma, are not used.
 *
 * control = both: signals first, then places of vehicles. All have the same heads: the phase, the acceleration as one
 * of `levels` from low_mps2 to high_mps2, with lane_actions the lane. What an agent has not is masked but for choice 0,
 * so that it has the probability 1 and no part in anything that is learned (a continuous acceleration would have one).
 *
 * Reward, control = vehicles: mean over all vehicles, those that wait to enter included, of speed over wanted speed, in
 * [0,1] and the same for every agent. Control = signals: -reward_scale * vehicles lost, that is the mean over the step
 * of sum (1 - speed / wanted speed) over the vehicles on the lanes that lead to the junction, and those that wait to
 * enter them; summed over agents and time it is proportional to the delay of all. Or a formula of the user (formula.h).
 *
 * Costs, of an agent in a step: collisions (it was in), time_to_collision (simulation steps, as a share of the step, in
 * which it was below ttc_s), hard_braking (the same, braking harder than hard_mps2), conflicting_greens (pairs shown at
 * once, times steps), starvation (lanes whose first vehicle has been standing longer than starvation_s). A signal's
 * agent gets the sums over the vehicles on the lanes of its junction.
 *
 * An episode lasts episode_s and is then truncated. An agent's vehicle that leaves the network is truncated too; one
 * that collides is terminated, and the episode ends unless end_at_collision is off.
 */
#include "scene.h"
#include "observe.h"
#include "change.h"
#include "measure.h"
#include "history.h"
#include "options.h"
#include "signal.h"

#include "dtrain/traffic/labels.h"

#include <string.h>

typedef traffic_config config;

enum {
    PORT_NODES,
    PORT_ROWPTR,
    PORT_COL,
    PORT_EDGES,
    PORT_AGENT_NODE,
    PORT_EGO,
    PORT_AHEAD,
    PORT_BESIDE,
    N_VEHICLE_PORTS
};

static const dt_port vehicle_ports[N_VEHICLE_PORTS] = {{"nodes", "N 9", DT_F32, 0},
                                                       {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)},
                                                       {"col", "E", DT_I32, DT_PORT_INDEX(1)},
                                                       {"edges", "E 4", DT_F32, 0},
                                                       {"agent_node", "A", DT_I32, DT_PORT_INDEX(1)},
                                                       {"ego", "A 9", DT_F32, 0},
                                                       {"ahead", "A 3 7", DT_F32, 0},
                                                       {"beside", "A 4 7", DT_F32, 0}}; /* with lane_actions */

enum { PORT_PAST, PORT_SEQ_NODE, PORT_AGENT_SEQ, N_PAST_PORTS }; /* with history_s */
enum {
    PORT_SIGNAL,
    PORT_PHASES,
    PORT_NEIGHBOUR,
    N_SIGNAL_PORTS,
    PORT_SERVICE = N_SIGNAL_PORTS,
    PORT_GREENS,
    PORT_FOES
};
enum { N_SERVICE_PORTS = PORT_FOES + 1 - N_SIGNAL_PORTS }; /* without vehicles; the last two with right_of_way */
enum { HEAD_PHASE, HEAD_LEVEL, HEAD_SIDE, N_HEADS };
enum { DIMS_BYTES = 16 };

static const char *const cost_names[SIM_COSTS] = {[COST_COLLISIONS] = "collisions",
                                                  [COST_TTC] = "time_to_collision",
                                                  [COST_HARD_BRAKING] = "hard_braking",
                                                  [COST_CONFLICTING_GREENS] = "conflicting_greens",
                                                  [COST_STARVATION] = "starvation"};

enum {
    METRIC_STRICT_DELAY,
    METRIC_TRIP_TIME,
    METRIC_WAITING,
    METRIC_QUEUE,
    METRIC_SPEED,
    METRIC_FLOW,
    METRIC_DEMAND,
    METRIC_FINISHED,
    METRIC_NEVER_INSERTED,
    METRIC_COLLISIONS,
    METRIC_EMERGENCY_BRAKES,
    METRIC_CONFLICTING_GREENS,
    METRIC_LONGEST_RED,
    METRIC_STUCK,
    METRIC_TRAVEL_TIME,
    N_METRICS
};
static const char *const metric_names[N_METRICS] = {[METRIC_STRICT_DELAY] = "strict_delay_s",
                                                    [METRIC_TRIP_TIME] = "trip_time_s",
                                                    [METRIC_WAITING] = "waiting_s",
                                                    [METRIC_QUEUE] = "queue",
                                                    [METRIC_SPEED] = "mean_speed_mps",
                                                    [METRIC_FLOW] = "flow_vph",
                                                    [METRIC_DEMAND] = "demand",
                                                    [METRIC_FINISHED] = "finished",
                                                    [METRIC_NEVER_INSERTED] = "never_inserted",
                                                    [METRIC_COLLISIONS] = "collisions",
                                                    [METRIC_EMERGENCY_BRAKES] = "emergency_brakes",
                                                    [METRIC_CONFLICTING_GREENS] = "conflicting_greens",
                                                    [METRIC_LONGEST_RED] = "longest_red_s",
                                                    [METRIC_STUCK] = "stuck",
                                                    [METRIC_TRAVEL_TIME] = "travel_time_s"};

typedef struct state {
    const dt_host *h;
    config config; /* resolved */
    const dt_features_api *features;
    sim sim;
    dt_vehicle *frame; /* [max_vehicles + n_places] */
    uint32_t n_frame;  /* in the last observation */
    history history;   /* with history_s */
    int32_t *node_of;  /* [max_vehicles], with history_s */
    dt_dim symbol[3];
    uint32_t n_symbols;
    /* of vehicles, centre, past, then of signals */
    dt_port port[N_VEHICLE_PORTS + 1 + N_PAST_PORTS + N_SIGNAL_PORTS + N_SERVICE_PORTS];
    uint32_t n_ports, centre_port, past_port, signal_port; /* the first ones of each */
    formulas reward, row;                                  /* n 0: built in */
    detectors detectors;                                   /* where signals are agents */
    measure measure;                                       /* where there are formulas */
    dt_column column[MAX_COLUMNS];
    uint32_t n_columns;
    char past_dims[DIMS_BYTES], signal_dims[DIMS_BYTES], phases_dims[DIMS_BYTES], neighbour_dims[DIMS_BYTES];
    char service_dims[DIMS_BYTES], greens_dims[DIMS_BYTES], foes_dims[DIMS_BYTES];
    int32_t choices[N_HEADS], n_choices; /* of the heads there are, and their sum */
    int32_t head[N_HEADS], at[N_HEADS];  /* number of a head and its place in a mask, NET_NONE: not there */
    float low, high;
    int64_t episodes, stuck_episodes, stuck; /* finished; with vehicles that were stuck; these */
    void (*each)(void *user);                /* called after each step; NULL: nothing is */
    void *each_user;
    /* agents are n_signals signals, then places of vehicles, then those where none ever is (max_signals) */
    uint32_t n_heads, n_agents, n_signals, substeps;
} state;

enum { KEEP, LEFT, RIGHT, N_SIDES };

static int has_signals(const state *s)
{
    return s->config.control != CONTROL_VEHICLES;
}

static int has_vehicles(const state *s)
{
    return s->config.control != CONTROL_SIGNALS;
}

static void add_head(state *s, int which, int32_t choices)
{
    s->head[which] = (int32_t)s->n_heads;
    s->at[which] = s->n_choices;
    s->choices[s->n_heads++] = choices;
    s->n_choices += choices;
}

/* What world models read. */
static dt_status create_past(state *s)
{
    const int64_t T = lround(s->config.history_s * s->config.history_hz);
    const int64_t most = PAST_WHO * (int64_t)s->sim.n_places;
    DT_TRY_H(history_init(&s->history, &s->sim, T, 1 / s->config.history_hz));
    s->node_of = s->h->alloc(s->h, (uint64_t)s->sim.max_vehicles * sizeof(*s->node_of));
    if (s->node_of == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory to find %d vehicles", (int)s->sim.max_vehicles);
    }
    snprintf(s->past_dims, sizeof(s->past_dims), "S %lld %d", (long long)T, DT_MOTION_COLUMNS);
    s->symbol[s->n_symbols++] = (dt_dim){"S", most};
    s->past_port = s->n_ports;
    dt_port *port = s->port + s->n_ports;
    port[PORT_PAST] = (dt_port){"past", s->past_dims, DT_F32, DT_PORT_STEPS};
    port[PORT_SEQ_NODE] = (dt_port){"seq_node", "S", DT_I32, DT_PORT_INDEX(1)};
    port[PORT_AGENT_SEQ] = (dt_port){"agent_seq", "A 2", DT_I32, DT_PORT_INDEX(3)};
    s->n_ports += N_PAST_PORTS;
    return DT_OK;
}

/* Rooms and ports of agents that are vehicles. */
static dt_status create_for_vehicles(state *s)
{
    const dt_host *h = s->h;
    const uint32_t n = s->config.lane_actions ? N_VEHICLE_PORTS : PORT_BESIDE;
    s->low = (float)s->config.low_mps2;
    s->high = (float)s->config.high_mps2;
    s->n_agents += (uint32_t)s->sim.n_places;
    s->features = h->service(h, DT_SVC_FEATURES);
    if (!DT_HAS(s->features, frame)) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "env_traffic: this host lacks the service " DT_SVC_FEATURES);
    }
    const uint64_t rows = (uint64_t)s->sim.max_vehicles + (uint64_t)s->sim.n_places;
    s->frame = h->alloc(h, rows * sizeof(*s->frame));
    if (s->frame == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory to examine %llu vehicles", (unsigned long long)rows);
    }
    s->symbol[0] = (dt_dim){"N", (int64_t)rows};
    s->symbol[1] = (dt_dim){"E", (int64_t)rows * DT_NEIGHBOURS};
    s->n_symbols = 2;
    memcpy(s->port, vehicle_ports, n * sizeof(*s->port));
    s->centre_port = n;
    s->port[n] = (dt_port){"centre", "N 2", DT_F32, 0};
    s->n_ports = n + 1;
    return s->config.history_s > 0 ? create_past(s) : DT_OK;
}

/* Sizes that nets share, in place of one of this net. */
static dt_status raise_size(const state *s, const char *option, int64_t shared, int32_t *own)
{
    if (shared > 0 && shared < *own) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic.%s = %lld: %s needs %d", option, (long long)shared,
                         s->config.scenario == SCENARIO_NET ? s->config.net_file : "the scenario", (int)*own);
    }
    *own = shared > 0 ? (int32_t)shared : *own;
    return DT_OK;
}

static dt_status create_for_signals(state *s)
{
    net *n = &s->sim.net;
    const config *c = &s->config;
    int32_t places = n->n_signals;
    if (n->n_signals == 0) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic: %s has no signals for control = \"%s\"", s->config.net_file,
                         traffic_controls[s->config.control]);
    }
    s->n_signals = (uint32_t)n->n_signals;
    DT_TRY_H(raise_size(s, "max_signals", c->max_signals, &places));
    DT_TRY_H(raise_size(s, "max_phases", c->max_phases, &n->most_phases));
    DT_TRY_H(raise_size(s, "max_lanes", c->max_lanes, &n->most_slots));
    DT_TRY_H(raise_size(s, "max_links", c->max_links, &n->most_numbers));
    s->n_agents += (uint32_t)places;
    snprintf(s->phases_dims, sizeof(s->phases_dims), "A %d %d", (int)n->most_phases, N_SIGNAL_COLUMNS);
    DT_TRY_H(formulas_read(s->h, "env_traffic", traffic_reward_text(&s->config), s->config.observation, &s->reward,
                           &s->row));
    DT_TRY_H(detect_init(&s->detectors, &s->sim));
    if (s->reward.n + s->row.n > 0) {
        DT_TRY_H(measure_init(&s->measure, &s->sim));
    }
    snprintf(s->signal_dims, sizeof(s->signal_dims), "A %d",
             s->row.n > 0 ? (int)formulas_width(&s->row, (uint32_t)n->most_phases) : (int)observe_signal_width(n));
    snprintf(s->neighbour_dims, sizeof(s->neighbour_dims), "A %d", N_NEIGHBOURS);
    s->signal_port = s->n_ports;
    dt_port *port = s->port + s->n_ports;
    port[PORT_SIGNAL] = (dt_port){"signal", s->signal_dims, DT_F32, 0};
    port[PORT_PHASES] = (dt_port){"phases", s->phases_dims, DT_F32, 0};
    port[PORT_NEIGHBOUR] = (dt_port){"neighbour", s->neighbour_dims, DT_I32, DT_PORT_INDEX(0)};
    s->n_ports += N_SIGNAL_PORTS;
    s->n_columns += observe_describe_signals(n, &s->row, s->column + s->n_columns);
    if (has_vehicles(s)) {
        return DT_OK;
    }
    snprintf(s->service_dims, sizeof(s->service_dims), "A %d %d", (int)n->most_phases, SERVICE_FEATURES);
    snprintf(s->greens_dims, sizeof(s->greens_dims), "A %d %d", (int)n->most_phases, (int)n->most_numbers);
    snprintf(s->foes_dims, sizeof(s->foes_dims), "A %d %d", (int)n->most_numbers, (int)n->most_numbers);
    port[PORT_SERVICE] = (dt_port){"service", s->service_dims, DT_F32, 0};
    port[PORT_GREENS] = (dt_port){"greens", s->greens_dims, DT_F32, 0};
    port[PORT_FOES] = (dt_port){"foes", s->foes_dims, DT_F32, 0};
    s->n_ports += s->config.right_of_way ? N_SERVICE_PORTS : 1;
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = scenario_resolve(cfg);
    DT_TRY_H(traffic_check_options(h, cfg));
    DT_TRY_H(sim_create(&s->sim, h, &s->config));
    s->substeps = (uint32_t)lround(s->config.action_s / s->config.dt_s);
    for (int k = 0; k < N_HEADS; k++) {
        s->head[k] = s->at[k] = NET_NONE;
    }
    if (has_vehicles(s)) {
        DT_TRY_H(create_for_vehicles(s));
    }
    if (has_signals(s)) {
        DT_TRY_H(create_for_signals(s));
        add_head(s, HEAD_PHASE, s->sim.net.most_phases);
    }
    if (has_signals(s) && has_vehicles(s)) {
        add_head(s, HEAD_LEVEL, (int32_t)s->config.levels);
    }
    if (has_vehicles(s) && s->config.lane_actions) {
        add_head(s, HEAD_SIDE, N_SIDES);
    }
    s->n_columns += signal_describe_ports(s->port, s->n_ports, s->column + s->n_columns);
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    const state *s = self;
    const config *c = &s->config;
    *out = (dt_env_spec){.struct_size = sizeof(*out),
                         .n_agents = s->n_agents,
                         .obs = s->port,
                         .n_obs = s->n_ports,
                         .choices = s->choices,
                         .n_heads = s->n_heads,
                         .costs = cost_names,
                         .n_costs = SIM_COSTS,
                         .metrics = metric_names,
                         .n_metrics = N_METRICS,
                         .max_steps = (uint32_t)ceil(c->episode_s / c->action_s - STEPS_TOL),
                         .step_s = c->action_s,
                         .columns = s->column,
                         .n_columns = s->n_columns};
    if (has_vehicles(s)) {
        out->symbols = s->symbol;
        out->n_symbols = s->n_symbols;
    }
    if (!has_signals(s)) {
        out->low = &s->low;
        out->high = &s->high;
        out->n_continuous = 1;
    }
    return DT_OK;
}

/* Of a head that an agent has not, choice 0 alone is allowed. */
static void mask_head(const state *s, uint8_t *mask, int head)
{
    if (s->head[head] != NET_NONE) {
        memset(mask + s->at[head] + 1, 0, (size_t)s->choices[s->head[head]] - 1);
    }
}

/* What the user's formulas make of the quantities and of the phases. */
static dt_status apply_formulas(state *s, const dt_env_io *io, bool is_step)
{
    const size_t P = (size_t)s->sim.net.most_phases, D = formulas_width(&s->row, (uint32_t)P);
    void *const *obs = io->obs + s->signal_port;
    for (uint32_t k = 0; k < s->n_signals && s->measure.signal != NULL; k++) {
        formula_values *v = &s->measure.signal[k].now;
        uint32_t bad = 0;
        v->phases = (const float *)obs[PORT_PHASES] + k * P * N_SIGNAL_COLUMNS;
        v->n_phases = (uint32_t)s->sim.net.junction[k].n_phases;
        if (!formulas_row(&s->row, v, (uint32_t)P, (float *)obs[PORT_SIGNAL] + k * D, &bad)) {
            return DT_FAIL_H(s->h, DT_EDATA, "env_traffic.observation: \"%s\" is not finite for signal %u; limit it",
                             s->row.item[bad].text, k);
        }
        if (is_step && s->reward.n > 0) {
            const double x = formula_value(&s->reward, 0, v, 0);
            io->reward[k] = (float)(s->config.reward_scale * x);
            if (!isfinite(io->reward[k])) {
                return DT_FAIL_H(s->h, DT_EDATA, "env_traffic.reward = \"%s\" is %g for signal %u; limit its terms",
                                 s->config.reward, x, k);
            }
        }
    }
    return DT_OK;
}

static void observe_junctions(state *s, const dt_env_io *io)
{
    const sim *m = &s->sim;
    void *const *obs = io->obs + s->signal_port;
    detect_read(&s->detectors, m);
    observe_signals(m, &s->detectors, s->row.n > 0 ? NULL : obs[PORT_SIGNAL], obs[PORT_PHASES], obs[PORT_NEIGHBOUR]);
    if (!has_vehicles(s)) {
        observe_service(m, obs[PORT_SERVICE]);
    }
    if (s->config.right_of_way) {
        observe_right_of_way(m, obs[PORT_GREENS], obs[PORT_FOES]);
    }
    for (int32_t k = 0; k < m->net.n_signals; k++) {
        uint8_t *mask = io->mask + (ptrdiff_t)k * s->n_choices;
        io->alive[k] = 1;
        for (int32_t p = 0; p < m->net.most_phases; p++) {
            mask[s->at[HEAD_PHASE] + p] = (uint8_t)signal_is_legal(m, k, p);
        }
        mask_head(s, mask, HEAD_LEVEL);
        mask_head(s, mask, HEAD_SIDE);
    }
    int32_t *neighbour = obs[PORT_NEIGHBOUR];
    for (uint32_t k = s->n_signals; k < s->n_agents; k++) { /* a vehicle is no signal's neighbour */
        for (int32_t a = 0; a < N_NEIGHBOURS; a++) {
            neighbour[(ptrdiff_t)k * N_NEIGHBOURS + a] = (int32_t)k;
        }
    }
}

static void observe_past(state *s, const dt_env_io *io)
{
    void *const *obs = io->obs + s->past_port;
    int32_t *who = obs[PORT_AGENT_SEQ];
    for (size_t k = 0; k < PAST_WHO * (size_t)s->n_agents; k++) {
        who[k] = NET_NONE;
    }
    const history_view view = {
        .row = obs[PORT_PAST], .node = obs[PORT_SEQ_NODE], .who = who + PAST_WHO * (size_t)s->n_signals};
    io->size[2] = history_write(&s->history, &s->sim, s->node_of, &view);
}

/* Rows of vehicles begin after those of signals. */
static dt_status observe_places(state *s, const dt_env_io *io)
{
    sim *m = &s->sim;
    const size_t first = s->n_signals;
    int32_t *agent_node = io->obs[PORT_AGENT_NODE];
    const graph_view view = {.node = io->obs[PORT_NODES],
                             .edge = io->obs[PORT_EDGES],
                             .centre = io->obs[s->centre_port],
                             .node_of = s->node_of,
                             .rowptr = io->obs[PORT_ROWPTR],
                             .col = io->obs[PORT_COL],
                             .agent_node = agent_node + first,
                             .size = io->size};
    for (size_t k = 0; k < s->n_agents; k++) { /* those of vehicles follow */
        agent_node[k] = NET_NONE;
    }
    DT_TRY_H(observe_graph(m, s->features, s->frame, &view));
    s->n_frame = (uint32_t)io->size[0];
    if (s->config.history_s > 0) {
        observe_past(s, io);
    }
    observe_ego(m, (float *)io->obs[PORT_EGO] + first * EGO_FEATURES);
    observe_ahead(m, (float *)io->obs[PORT_AHEAD] + first * AHEAD_ROWS * PAIR_FEATURES);
    if (m->c->lane_actions) {
        observe_neighbours(m, (float *)io->obs[PORT_BESIDE] + first * BESIDE_ROWS * PAIR_FEATURES);
    }
    for (int32_t k = 0; k < m->n_places; k++) {
        const place *w = &m->place[k];
        uint8_t *mask = io->mask + ((ptrdiff_t)first + k) * s->n_choices;
        io->alive[first + (size_t)k] = w->state == PLACE_NEW || w->state == PLACE_ACTING;
        if (!io->alive[first + (size_t)k]) {
            continue;
        }
        mask_head(s, mask, HEAD_PHASE);
        if (m->c->lane_actions) {
            mask[s->at[HEAD_SIDE] + LEFT] = (uint8_t)change_is_possible(m, w->vehicle, 1);
            mask[s->at[HEAD_SIDE] + RIGHT] = (uint8_t)change_is_possible(m, w->vehicle, -1);
        }
    }
    return DT_OK;
}

/* The agents that act next, and what all observe. */
static dt_status observe(state *s, const dt_env_io *io, bool is_step)
{
    if (has_signals(s)) {
        observe_junctions(s, io);
        DT_TRY_H(apply_formulas(s, io, is_step));
    }
    return has_vehicles(s) ? observe_places(s, io) : DT_OK;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    sim_reset(&s->sim, seed);
    if (s->config.history_s > 0) {
        history_reset(&s->history);
        history_record(&s->history, &s->sim);
    }
    if (s->measure.signal != NULL) {
        measure_decide(&s->measure, &s->sim, NULL);
    }
    return observe(s, io, false);
}

/* The acceleration that the agent of place k requests. */
static double action_value(const state *s, const dt_env_io *io, int32_t k)
{
    if (!has_signals(s)) {
        return io->act_f[k];
    }
    const int32_t level = io->act_i[(s->n_signals + (size_t)k) * s->n_heads + (size_t)s->head[HEAD_LEVEL]];
    return s->config.low_mps2 + level * (s->config.high_mps2 - s->config.low_mps2) / (double)(s->config.levels - 1);
}

/* Places that ended are free again, those that came act from now on. */
static void take_actions(state *s, const dt_env_io *io)
{
    sim *m = &s->sim;
    for (int32_t k = 0; k < m->n_places; k++) {
        place *w = &m->place[k];
        if (w->state == PLACE_ENDED) {
            *w = (place){.vehicle = NET_NONE, .state = PLACE_FREE};
        }
        if (w->state == PLACE_NEW) {
            w->state = PLACE_ACTING;
        }
        w->accel = action_value(s, io, k);
        w->collided = 0;
        if (w->state != PLACE_ACTING || !m->c->lane_actions || m->c->baseline) {
            continue;
        }
        const int32_t side = io->act_i[(s->n_signals + (size_t)k) * s->n_heads + (size_t)s->head[HEAD_SIDE]];
        if (side != KEEP) {
            (void)change_lane_to(m, w->vehicle, side == LEFT ? 1 : -1); /* not where another was quicker */
        }
    }
    if (!m->c->baseline) {
        for (uint32_t k = 0; k < s->n_signals; k++) {
            const int32_t phase = io->act_i[(size_t)k * s->n_heads + (size_t)s->head[HEAD_PHASE]];
            (void)signal_request(m, (int32_t)k, phase); /* what the mask forbids changes nothing */
        }
    }
}

/* Danger of the vehicles that act, in one step of the simulation, before they move. */
static void add_danger(const sim *m, double share, float *cost)
{
    for (int32_t k = 0; k < m->n_places; k++) {
        const place *w = &m->place[k];
        if (w->state != PLACE_ACTING) {
            continue;
        }
        const int32_t lane = m->vehicle[w->vehicle].lane, p = sim_slot_of(m, w->vehicle);
        double ahead;
        const double gap = sim_gap_ahead(m, lane, p, &ahead);
        float *row = cost + (size_t)k * SIM_COSTS;
        if (gap < m->c->ttc_s * (m->v[p] - ahead)) {
            row[COST_TTC] += (float)share;
        }
        if (m->a[p] < -m->c->hard_mps2) {
            row[COST_HARD_BRAKING] += (float)share;
        }
    }
}

static void write_metrics(const sim *m, double *out)
{
    const tally *t = &m->sum;
    const double waiting = (double)sim_waiting(m), due = (double)t->inserted + waiting;
    out[METRIC_STRICT_DELAY] = due > 0 ? sim_delay(m) / due : NAN;
    out[METRIC_TRIP_TIME] = t->finished > 0 ? t->trip_s / (double)t->finished : NAN;
    out[METRIC_WAITING] = t->inserted > 0 ? t->waiting_s / (double)t->inserted : NAN;
    out[METRIC_QUEUE] = t->waiting_s / m->elapsed_s;
    out[METRIC_SPEED] = t->present_s > 0 ? t->speed_s / t->present_s : NAN;
    out[METRIC_FLOW] = 3600 * (double)t->finished / m->elapsed_s;
    out[METRIC_DEMAND] = due;
    out[METRIC_FINISHED] = (double)t->finished;
    out[METRIC_NEVER_INSERTED] = waiting;
    out[METRIC_COLLISIONS] = (double)t->collisions;
    out[METRIC_EMERGENCY_BRAKES] = (double)t->emergencies;
    out[METRIC_CONFLICTING_GREENS] = (double)t->conflicting;
    out[METRIC_LONGEST_RED] = t->red_s;
    out[METRIC_STUCK] = (double)t->stuck;
    out[METRIC_TRAVEL_TIME] = due > 0 ? sim_travel(m) / due : NAN;
}

/* Reward and costs of the lane of a junction in one step of the simulation. */
static void add_lane(const sim *m, int32_t lane, double share, float *reward, float *cost)
{
    const lane_state *l = &m->lane[lane];
    *reward += (float)(-m->c->reward_scale * share * l->lost);
    cost[COST_COLLISIONS] += (float)l->n_collisions;
    cost[COST_TTC] += (float)(share * l->n_close);
    cost[COST_HARD_BRAKING] += (float)(share * l->n_hard);
}

static void add_junction(const sim *m, int32_t k, double share, float *reward, float *cost)
{
    const net_junction *j = &m->net.junction[k];
    for (int32_t i = 0; i < j->n_links; i++) {
        add_lane(m, m->net.link[j->link + i].via, share, reward, cost);
    }
    for (int a = 0; a < j->n_arms; a++) {
        const net_edge *e = &m->net.edge[j->arm[a]];
        for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
            add_lane(m, lane, share, reward, cost);
        }
        for (int32_t i = 0; i < m->n_sources; i++) {
            const source *q = &m->source[i];
            if (q->edge == j->arm[a]) {
                *reward += (float)(-m->c->reward_scale * share * (q->arrived - q->taken));
            }
        }
    }
    cost[COST_CONFLICTING_GREENS] += (float)m->signal[k].n_conflicts;
}

static float count_starved(const sim *m, int32_t k)
{
    const net_junction *j = &m->net.junction[k];
    float n = 0;
    for (int a = 0; a < j->n_arms; a++) {
        const net_edge *e = &m->net.edge[j->arm[a]];
        for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
            if (m->lane[lane].stood_s > m->c->starvation_s) {
                n++;
            }
        }
    }
    return n;
}

/* What one action of the agents brought; 1 when the episode is over. */
static int end_step(const state *s, const dt_env_io *io, double reward)
{
    const sim *m = &s->sim;
    int crashed = 0;
    for (int32_t k = 0; k < m->n_places; k++) {
        crashed |= m->place[k].collided > 0;
    }
    const int over = (crashed && m->c->end_at_collision) || m->elapsed_s >= m->c->episode_s - STEPS_TOL;
    for (uint32_t k = 0; k < s->n_signals; k++) {
        io->cost[(size_t)k * SIM_COSTS + COST_STARVATION] = count_starved(m, (int32_t)k);
        io->truncated[k] = (uint8_t)over;
    }
    for (int32_t k = 0; k < m->n_places; k++) {
        const place *w = &m->place[k];
        const size_t row = s->n_signals + (size_t)k;
        if (w->state != PLACE_ACTING && w->state != PLACE_ENDED) {
            continue; /* none, or one that comes: it acts from the next step on */
        }
        io->reward[row] = (float)reward;
        io->cost[row * SIM_COSTS + COST_COLLISIONS] = (float)w->collided;
        io->terminated[row] = w->collided > 0 && m->c->end_at_collision;
        io->truncated[row] = !io->terminated[row] && (over || w->state == PLACE_ENDED);
    }
    return over;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    sim *m = &s->sim;
    const double share = 1.0 / s->substeps;
    double reward = 0;
    take_actions(s, io);
    for (uint32_t i = 0; i < s->substeps; i++) {
        sim_step(m);
        if (s->config.history_s > 0) {
            history_record(&s->history, m);
        }
        if (s->measure.signal != NULL) {
            measure_advance(&s->measure, m);
        }
        reward += share * (m->speed_ratio_n > 0 ? m->speed_ratio / (double)m->speed_ratio_n : 1);
        add_danger(m, share, io->cost + (size_t)s->n_signals * SIM_COSTS);
        for (uint32_t k = 0; k < s->n_signals; k++) {
            add_junction(m, (int32_t)k, share, &io->reward[k], io->cost + (size_t)k * SIM_COSTS);
        }
        if (s->each != NULL) {
            s->each(s->each_user);
        }
    }
    const int over = end_step(s, io, reward);
    if (s->measure.signal != NULL) {
        measure_decide(&s->measure, m, io->cost);
    }
    DT_TRY_H(observe(s, io, true));
    if (!over) {
        return DT_OK;
    }
    memset(io->alive, 0, s->n_agents);
    write_metrics(m, io->metric);
    s->episodes++;
    s->stuck_episodes += m->sum.stuck > 0;
    s->stuck += m->sum.stuck;
    return DT_DONE;
}

static void destroy(void *self)
{
    state *s = self;
    if (s->h != NULL) {
        if (s->stuck > 0) {
            dt_logf(
                s->h, 1,
                "env_traffic: %lld vehicles stood first in their lane for %g s and more without a red light, in %lld "
                "of %lld episodes (metric stuck): a deadlock, or a demand that the network cannot carry",
                (long long)s->stuck, STUCK_S, (long long)s->stuck_episodes, (long long)s->episodes);
        }
        s->h->release(s->h, s->frame);
        s->h->release(s->h, s->node_of);
        history_fini(&s->history);
        detect_fini(&s->detectors);
        measure_fini(&s->measure);
        formulas_fini(&s->reward);
        formulas_fini(&s->row);
        sim_destroy(&s->sim);
    }
}

static void draw_roads(const void *self, dt_scene_roads *out)
{
    scene_roads(&((const state *)self)->sim, out);
}

static void draw_scene(const void *self, dt_scene *out)
{
    const state *s = self;
    scene_now(&s->sim, (int32_t)s->n_signals, s->frame, s->n_frame, out);
}

static void set_watcher(void *self, void (*each)(void *user), void *user)
{
    state *s = self;
    s->each = each;
    s->each_user = user;
}

static const dt_scene_api scene = {.struct_size = sizeof(dt_scene_api),
                                   .roads = draw_roads,
                                   .capture = draw_scene,
                                   .set_observer = set_watcher,
                                   .labels = &dt_traffic_labels};

static const char *const results[] = {
    "metrics/strict_delay_s||s|lower|time lost per vehicle, with those not inserted",
    "metrics/trip_time_s||s|lower|of vehicles that arrived",
    "metrics/waiting_s||s|lower|standing, per vehicle",
    "metrics/queue||vehicles|lower|standing, mean over steps",
    "metrics/mean_speed_mps||m/s|higher|",
    "metrics/flow_vph||vehicles/h|higher|that arrived",
    "metrics/demand||vehicles||that were due",
    "metrics/finished||vehicles|higher|that arrived",
    "metrics/never_inserted||vehicles|lower|due, without room to enter",
    "metrics/collisions||collisions|lower|",
    "metrics/emergency_brakes||events|lower|",
    "metrics/conflicting_greens||events|lower|greens of links that cross",
    "metrics/longest_red_s||s|lower|that a waiting lane had no green",
    "metrics/stuck||vehicles|lower|most that stood over 300 s; gridlock",
    "metrics/travel_time_s||s|lower|of all that were due, to the end at most: CityFlow's average travel time",
    "costs/collisions||collisions||that an agent was in",
    "costs/time_to_collision||steps||with a time to collision below ttc_s",
    "costs/hard_braking||steps||braking harder than hard_mps2",
    "costs/conflicting_greens||pairs||shown simultaneously, times steps",
    "costs/starvation||lanes||waiting over starvation_s, times steps",
    NULL};

static const void *extension(const char *id)
{
    static const char *const baselines[] = {"controller_fixed", "controller_greedy", "controller_max_pressure",
                                            "controller_idm", NULL};
    static const char *const program[] = {"baseline=true", NULL};
    if (strcmp(id, DT_EXT_SCENE) == 0) {
        return &scene;
    }
    if (strcmp(id, DT_EXT_PROGRAM) == 0) {
        return program;
    }
    if (strcmp(id, DT_EXT_RESULTS) == 0) {
        return results;
    }
    if (strcmp(id, DT_EXT_COLUMNS) == 0) {
        return signal_columns_all;
    }
    return strcmp(id, DT_EXT_BASELINES) == 0 ? baselines : NULL;
}

DT_ENV_DEFINE(component, "env_traffic", "microscopic traffic: vehicles, signals or both as agents",
              "Treiber & Kesting 2013, Traffic Flow Dynamics", config, state, traffic_options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = destroy),
              .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = traffic_check_options,
              .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_traffic", "1.0", "dtrain", "Apache-2.0");

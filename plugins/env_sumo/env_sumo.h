/* SPDX-License-Identifier: Apache-2.0
 *
 * One instance of env_sumo: configuration, what is known of the net, what is kept over an episode.
 */
#ifndef DTRAIN_ENV_SUMO_ENV_SUMO_H
#define DTRAIN_ENV_SUMO_ENV_SUMO_H

#include "dtrain/ext/scene.h"
#include "dtrain/helpers.h"
#include "dtrain/traffic/features.h"
#include "formula.h"
#include "signal.h"
#include "table.h"
#include "sumo.h"
#include "history.h"

#include <stdbool.h>

enum { CONTROL_SIGNALS, CONTROL_PROGRAM, CONTROL_VEHICLES };
enum { FEATURES_SIGNALS, FEATURES_GRAPH };
enum { REWARD_DELAY, REWARD_QUEUE, REWARD_PRESSURE, REWARD_FORMULA };
enum { COST_CONFLICT, COST_STARVATION, COST_COLLISION, COST_BRAKING, N_COSTS };
enum {
    N_NEIGHBOURS = 4,
    PHASE_FEATURES = N_SIGNAL_COLUMNS,
    SERVICE_FEATURES = 5,
    LANE_FEATURES = 8,
    MAX_SCENARIOS = 32,
    MAX_COLUMNS = 192
};

typedef struct config {
    const char *sumocfg, *also, *sumo_options, *module, *agent_type, *agent_route, *reward, *observation;
    uint32_t control, features;
    double reward_scale, reward_shared;
    double decision_s, yellow_s, min_green_s, begin_s, end_s, step_s, teleport_s;
    double detection_m, near_m, starve_s, radius_m;
    double penetration, low_mps2, high_mps2, ttc_s, hard_mps2, history_s, history_hz;
    int64_t max_signals, max_phases, max_lanes, max_links, max_vehicles, agents, speed_mode;
    uint8_t lane_actions, baseline, end_at_collision, right_of_way, outputs;
} config;

typedef struct agent { /* a signal with at least two phases */
    uint32_t signal, n_links, n_phases, n_lanes;
    uint32_t *state_of_phase, *phase_of_state; /* signal.h */
    uint32_t *lane;                            /* [n_lanes] numbers of the lanes it controls */
    uint32_t *lane_of_link;                    /* [n_links] index into lane, SUMO_NONE */
    uint8_t *green_lane;                       /* [n_phases, n_lanes] */
    uint8_t *out_lane;                         /* [n_phases, n_out] */
    uint32_t *conflicts;                       /* [n_phases] pairs of greens */
    uint32_t *out, n_out;                      /* lanes that lead away */
    uint32_t *halting_before, *halting_after;  /* [n_lanes], [n_out] standing on these lanes */
    uint32_t phase;                            /* shown, or shown last */
    double since_s;                            /* simulated time at which it was shown whole */
    double *phase_end_s;                       /* [n_phases] when each was green last, NAN: not yet */
    uint8_t *letter;                           /* [n_phases, n_links] signal_parse_letter */
    uint8_t *best;                             /* [n_links] the most of these */
    uint8_t *is_lonely;                        /* [n_links] green in phases, but in none without conflicts */
    double *green_s;                           /* [n_links] when it had its best last */
    double *red_s;                             /* [n_links] how long since red_since_s, for the observation */
    double *red_since_s;                       /* [n_links] the first vehicle at the line goes without it since, NAN */
    int64_t *first;                            /* [n_lanes] the vehicle that was first at the decision before, -1 */
    char *shown, *wanted;                      /* [n_links + 1] states */
    uint8_t *shown_letter;                     /* [n_links] signal_parse_letter of shown */
    int32_t neighbour[N_NEIGHBOURS];
    double conflict_s; /* in this step */
    /* at the decision before */
    uint32_t phase_before, heading_before;
    double waiting_before_s;
} agent;

typedef struct signal_view {                      /* vehicles of an agent, for formulas */
    double waiting_s, longest_s, speed, relative; /* sums over n but for longest_s */
    uint32_t n, heading, stayed; /* within detection range; all; of all, those that were heading for it before */
    uint32_t reserved;
} signal_view;

typedef struct lane_first { /* more of a signal_lane */
    int64_t number;         /* of the first vehicle */
    uint32_t link;          /* that it takes */
    uint32_t reserved;
    double longest_s; /* that a vehicle of the lane has been standing */
} lane_first;

typedef struct past { /* of a vehicle, at the decision before */
    double loss_s;
    uint32_t agent, reserved;
} past;

enum { PLACE_FREE, PLACE_NEW, PLACE_ACTING, PLACE_ENDED };

typedef struct place { /* of an agent that is a vehicle */
    uint32_t state, collided;
    bool is_here;      /* on the road now */
    sumo_vehicle last; /* as it is, or was when it was seen last */
    sumo_driver seen;
    double pace; /* its own, sum over the steps of SUMO of a decision */
} place;

typedef struct drivers { /* agents that are vehicles */
    place *place;        /* [n] */
    uint32_t n;
    float low, high;
    uint64_t seed;                         /* of the episode */
    uint32_t *place_of;                    /* [place_of_cap] by number of a vehicle: its place + 1, 0: none */
    int64_t place_of_cap, frame_cap, next; /* next: number of the next vehicle to come */
    history history;                       /* where history_s is set: what follows, too */
    int64_t *shown;                        /* [2 n] numbers of the sequences shown */
    int32_t *node_of;                      /* [node_of_cap] by number: node, where frame has it there */
    int64_t node_of_cap;
    uint32_t centre_port, past_port;
} drivers;

typedef struct picture { /* for viewers (scene.h); nothing is queried from SUMO without one */
    bool is_drawn;       /* this episode has a viewer */
    void (*each)(void *user);
    void *user;
    dt_scene last; /* the end of the episode, once SUMO is closed */
    char *letters; /* room for a signal's state */
} picture;

typedef struct totals { /* of an episode */
    double queue, conflict_s, collisions, braking, emergency_stops, teleported, longest_s, most_vehicles, stuck;
    uint32_t steps, reserved;
} totals;

typedef struct state {
    const dt_host *h;
    config config; /* sumocfg: of the scenario that is loaded */
    const sumo_api *api;
    const dt_features_api *features;
    const char *scenario[MAX_SCENARIOS];
    uint32_t n_scenarios, now;     /* now: the one loaded */
    uint32_t n_places, most_steps; /* for agents; the most of all scenarios */
    char *names;                   /* a copy of also, cut at its commas */
    const sumo_net *net;
    agent *agent;
    uint32_t *agent_of_signal;
    uint32_t n_agents, n_phases, n_lanes, n_row; /* widths: choices, lanes of a row, numbers of a row */
    uint32_t most_lanes;                         /* that a signal has */
    uint32_t most_links, L;                      /* the same; and of all scenarios */
    bool has_episode, has_logged;                /* has_logged: what scenarios leave out was logged */
    double begin_s, end_s, time_s;               /* simulated */
    const sumo_vehicle *vehicle;
    uint32_t n_vehicles;
    signal_link *link;      /* of all agents, one after another */
    signal_lane *lane;      /* [n_agents, most_lanes] */
    lane_first *first;      /* the same */
    signal_view *view;      /* [n_agents] */
    formula_values *values; /* [n_agents], where there are formulas */
    uint32_t reward;        /* REWARD_* */
    formulas reward_formula, row;
    uint32_t *halting;          /* [n_lanes of the net] */
    uint32_t *pending;          /* [n_signals + 1] */
    double *lost_s, *in, *away; /* [n_agents] this step: time lost; now: standing before, after */
    past *past;                 /* [past_cap] by number */
    int64_t past_cap;
    dt_vehicle *frame; /* [max_vehicles + n_agents]; of drivers [frame_cap] */
    uint32_t n_frame;  /* vehicles in the last observation */
    drivers drivers;
    totals totals;
    picture picture;
    int32_t choices;
    char dims[6][32];
    dt_port port[12];
    dt_dim symbol[3];
    dt_column column[MAX_COLUMNS]; /* what those ports hold */
    uint32_t n_columns;
    const char **place_name, **shown; /* [n_agents]; [n_agents, n_phases]: ids of signals, letters of phases; NULL */
    uint32_t n_ports, service_port;   /* the first one after those of the graph */
    char begin_text[32], end_text[32], step_text[32], teleport_text[32]; /* arguments */
    char *extra;                                                         /* a copy of sumo_options, cut into words */
    const char *arg[128];
    sumo_scenario file; /* the one that is loaded; its options are in arg */
} state;

/* Memory, kept in *out_p. DT_ENOMEM. */
dt_status env_reserve(const state *s, void *out_p, uint64_t n, uint64_t bytes);
/* Records SUMO's error; returns st. */
dt_status env_fail(const state *s, dt_status st, const char *what);
/* What happened since the last call, added to the totals too. */
dt_status env_events(state *s, sumo_events *e);
bool env_is_over(const state *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "formula.h"
#include "observe.h"

#include <math.h>
#include <string.h>

#define AGENTS_MAX 4096

static const char *const scenarios[] = {"ring", "merge", "bottleneck", "intersection", "grid", "net", NULL};
const char *const traffic_controls[] = {"vehicles", "signals", "both", NULL};
static const char *const models[] = {"idm", "krauss", NULL};
static const char *const arrivals[] = {"poisson", "uniform", NULL};

typedef traffic_config config;

const dt_option traffic_options[] = {
    DT_OPTION(config, scenario, DT_OPT_ENUM, "ring", "", 0, 0, scenarios, "the network and its demand"),
    DT_OPTION(config, control, DT_OPT_ENUM, "vehicles", "", 0, 0, traffic_controls, "what the agents control"),
    DT_OPTION(config, model, DT_OPT_ENUM, "idm", "", 0, 0, models, "car following: Treiber 2000 or Krauss 1998"),
    DT_OPTION(config, arrivals, DT_OPT_ENUM, "poisson", "", 0, 0, arrivals, "times at which vehicles are due"),
    DT_OPTION(config, net_file, DT_OPT_PATH, "", "", 0, 0, NULL, "net: the network, a .net.xml of SUMO, plain or gzip"),
    DT_OPTION(config, routes_file, DT_OPT_PATH, "", "", 0, 0, NULL,
              "net: the demand, a .rou.xml of SUMO, plain or gzip"),
    DT_OPTION(
        config, begin_s, DT_OPT_F64, "0", "s", 0, 1e9, NULL,
        "net: time on the clock of the files at which episodes begin: demand and programs of signals start there"),
    DT_OPTION(config, vehicles, DT_OPT_I64, "22", "1", 1, 10000, NULL, "on the ring"),
    DT_OPTION(config, length_m, DT_OPT_F64, "0", "m", 0, 1e5, NULL,
              "length of the ring or of each road; 0: 230 ring, 400 merge and bottleneck, 200 junctions"),
    DT_OPTION(config, ramp_m, DT_OPT_F64, "250", "m", 50, 5000, NULL, "merge: stretch for changing from the ramp"),
    DT_OPTION(config, lanes, DT_OPT_I64, "0", "1", 0, SCENARIO_MAX_LANES, NULL,
              "lanes of each road; 0: 1 ring, 3 bottleneck, 2 elsewhere"),
    DT_OPTION(config, flow_vph, DT_OPT_F64, "0", "1/h", 0, 20000, NULL,
              "vehicles due on each road into the network; 0: 2400 merge, 3600 bottleneck, 400 intersection, 300 grid"),
    DT_OPTION(config, ramp_vph, DT_OPT_F64, "600", "1/h", 0, 5000, NULL, "merge: vehicles due on the ramp"),
    DT_OPTION(config, limit_mps, DT_OPT_F64, "13.89", "m/s", 1, 60, NULL, "speed limit"),
    DT_OPTION(config, rows, DT_OPT_I64, "2", "1", 1, 16, NULL, "grid: junctions from south to north"),
    DT_OPTION(config, cols, DT_OPT_I64, "2", "1", 1, 16, NULL, "grid: junctions from west to east"),
    DT_OPTION(config, left_share, DT_OPT_F64, "0.2", "1", 0, 1, NULL, "share of traffic at a junction that turns left"),
    DT_OPTION(config, right_share, DT_OPT_F64, "0.2", "1", 0, 1, NULL,
              "share of traffic at a junction that turns right"),
    DT_OPTION(config, signals, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "junctions have signals; without them streets from west to east go first"),
    DT_OPTION(config, green_s, DT_OPT_F64, "25", "s", 1, 600, NULL, "fixed program: green of a street"),
    DT_OPTION(config, left_green_s, DT_OPT_F64, "10", "s", 1, 600, NULL, "fixed program: green of left turns"),
    DT_OPTION(config, yellow_s, DT_OPT_F64, "3", "s", 0, 10, NULL, "yellow time of links that lose green"),
    DT_OPTION(config, all_red_s, DT_OPT_F64, "1", "s", 0, 10, NULL, "time between yellow and the next green, all red"),
    DT_OPTION(config, min_green_s, DT_OPT_F64, "5", "s", 0, 120, NULL, "minimum green time of a phase"),
    DT_OPTION(config, max_green_s, DT_OPT_F64, "0", "s", 0, 600, NULL, "maximum green time of a phase; 0: no limit"),
    DT_OPTION(config, right_of_way, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "control signals: agents also see the state of each link in each phase, and the links that conflict"),
    DT_OPTION(config, detector_m, DT_OPT_F64, "200", "m", 5, 500, NULL, "how far signals see vehicles"),
    DT_OPTION(config, near_m, DT_OPT_F64, "50", "m", 5, 500, NULL,
              "distance to a stop line that is near, for column 5 of phases"),
    DT_OPTION(config, jitter_m, DT_OPT_F64, "1", "m", 0, 100, NULL, "spread of the first positions on the ring"),
    DT_OPTION(config, max_signals, DT_OPT_I64, "0", "1", 0, 10000, NULL,
              "places for signals, to share a policy between nets (env.mix); 0: as many as this net has"),
    DT_OPTION(config, max_phases, DT_OPT_I64, "0", "1", 0, NET_MAX_PHASES, NULL,
              "choices of every signal, to share a policy between nets; 0: the maximum of this net's signals"),
    DT_OPTION(config, max_lanes, DT_OPT_I64, "0", "1", 0, 1024, NULL,
              "lanes in a row of `signal`, to share a policy between nets; 0: the maximum of this net's signals"),
    DT_OPTION(config, max_links, DT_OPT_I64, "0", "1", 0, NET_MAX_LINKS, NULL,
              "links in `greens` and `foes` (right_of_way), to share a policy between nets; 0: the maximum of this "
              "net's signals"),
    DT_OPTION(config, max_vehicles, DT_OPT_I64, "1000", "1", 1, 100000, NULL,
              "maximum number of vehicles on the roads; more wait outside"),
    DT_OPTION(config, agents, DT_OPT_I64, "1", "1", 1, AGENTS_MAX, NULL,
              "maximum number of vehicles that are agents simultaneously"),
    DT_OPTION(config, penetration, DT_OPT_F64, "0.05", "1", 0, 1, NULL, "share of vehicles that are agents"),
    DT_OPTION(config, low_mps2, DT_OPT_F64, "-3", "m/s^2", -9, 0, NULL, "minimum acceleration an agent may choose"),
    DT_OPTION(config, high_mps2, DT_OPT_F64, "1.5", "m/s^2", 0, 5, NULL, "maximum acceleration an agent may choose"),
    DT_OPTION(config, levels, DT_OPT_I64, "7", "1", 2, 63, NULL,
              "control both: accelerations that an agent chooses from"),
    DT_OPTION(config, lane_actions, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "agents also choose lanes (0 keep, 1 left, 2 right); else MOBIL does"),
    DT_OPTION(config, baseline, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "actions are ignored: the car-following model drives and signals run their fixed program"),
    DT_OPTION(config, end_at_collision, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "a collision of an agent ends the episode"),
    DT_OPTION(config, dt_s, DT_OPT_F64, "0.5", "s", 0.01, 2, NULL, "step of the simulation"),
    DT_OPTION(config, action_s, DT_OPT_F64, "0", "s", 0, 60, NULL,
              "time between actions, a multiple of dt_s; 0: one step, signals 10"),
    DT_OPTION(config, reward, DT_OPT_STR, "delay", "1", 0, 0, NULL,
              "of signals: minus vehicles lost (delay), standing (queue), or the difference of those standing before "
              "and after the junction (pressure); or a formula to maximise, as \"diff_waiting_s - 0.1*queue\" "
              "(docs/reference/signals.md)"),
    DT_OPTION(config, reward_scale, DT_OPT_F64, "0.1", "1", 0, 1e6, NULL, "factor of the reward of signals"),
    DT_OPTION(config, observation, DT_OPT_STR, "", "1", 0, 0, NULL,
              "what the row `signal` holds, formulas separated by commas, as \"queue, phase.near\" "
              "(docs/reference/signals.md); "
              "empty: phase, times and four numbers per lane"),
    DT_OPTION(config, episode_s, DT_OPT_F64, "500", "s", 1, 1e6, NULL, "length of an episode"),
    DT_OPTION(config, headway_s, DT_OPT_F64, "1", "s", 0, 10, NULL,
              "time gap T (Krauss: reaction time, a step at least)"),
    DT_OPTION(config, accel_mps2, DT_OPT_F64, "0", "m/s^2", 0, 9, NULL,
              "acceleration a; 0: 1, at junctions 2.6 (slow starts make a ring unstable and a queue long)"),
    DT_OPTION(config, decel_mps2, DT_OPT_F64, "1.5", "m/s^2", 0.1, 9, NULL, "comfortable deceleration b"),
    DT_OPTION(config, gap_m, DT_OPT_F64, "2", "m", 0, 20, NULL, "gap between standing vehicles s0"),
    DT_OPTION(config, vehicle_m, DT_OPT_F64, "5", "m", 1, 30, NULL, "length of vehicles"),
    DT_OPTION(config, speed_dev, DT_OPT_F64, "0", "1", 0, 0.5, NULL, "deviation of desired speed over the limit"),
    DT_OPTION(config, sigma, DT_OPT_F64, "0.5", "1", 0, 1, NULL, "Krauss: imperfection of drivers"),
    DT_OPTION(config, politeness, DT_OPT_F64, "0.2", "1", 0, 1, NULL,
              "MOBIL: weight of other drivers' accelerations (politeness)"),
    DT_OPTION(config, change_threshold, DT_OPT_F64, "0.1", "m/s^2", 0, 5, NULL,
              "MOBIL: minimum gain in acceleration for a lane change"),
    DT_OPTION(config, safe_decel_mps2, DT_OPT_F64, "4", "m/s^2", 0.1, 9, NULL,
              "MOBIL: hardest braking that a lane change may cause to others"),
    DT_OPTION(config, ttc_s, DT_OPT_F64, "1.5", "s", 0, 10, NULL, "a time to collision below this is a cost"),
    DT_OPTION(config, hard_mps2, DT_OPT_F64, "3", "m/s^2", 0, 9, NULL, "braking harder than this is a cost"),
    DT_OPTION(config, starvation_s, DT_OPT_F64, "120", "s", 1, 3600, NULL,
              "standing first at a stop line for longer than this is a cost"),
    DT_OPTION(config, radius_m, DT_OPT_F64, "50", "m", 1, 1000, NULL,
              "radius of a vehicle's neighbourhood in the graph"),
    DT_OPTION(config, history_s, DT_OPT_F64, "0", "s", 0, 60, NULL,
              "history of agents and the vehicles ahead of them, for a world model; phases set it; 0: none"),
    DT_OPTION(config, history_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL, "rate of that history"),
    DT_OPTION_END};

const char *traffic_reward_text(const config *c)
{
    const char *text = c->reward;
    text = strcmp(text, "queue") == 0 ? "-queue" : strcmp(text, "pressure") == 0 ? "-pressure" : text;
    return strcmp(text, "delay") == 0 ? NULL : text;
}

dt_status traffic_check_options(const dt_host *h, const void *cfg)
{
    const config resolved = scenario_resolve(cfg), *c = &resolved;
    if (c->length_m < 20) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.length_m = %g m is shorter than 20 m", c->length_m);
    }
    const double ratio = c->action_s / c->dt_s;
    if (ratio < 1 - STEPS_TOL || fabs(ratio - round(ratio)) > STEPS_TOL) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.action_s = %g s is not a multiple of dt_s = %g s", c->action_s,
                         c->dt_s);
    }
    if (c->left_share + c->right_share > 1) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic: left_share %g and right_share %g are more than all traffic",
                         c->left_share, c->right_share);
    }
    if (c->control != CONTROL_VEHICLES && (c->scenario < SCENARIO_INTERSECTION || !c->signals)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "env_traffic.control = \"%s\" needs signals: scenario \"intersection\", \"grid\" or "
                         "\"net\", and signals = true",
                         traffic_controls[c->control]);
    }
    if (c->scenario == SCENARIO_NET && (c->net_file[0] == '\0' || c->routes_file[0] == '\0')) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.%s: scenario \"net\" needs one, a file of SUMO",
                         c->net_file[0] == '\0' ? "net_file" : "routes_file");
    }
    if (c->max_green_s > 0 && c->max_green_s < c->min_green_s) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.max_green_s = %g s is below min_green_s = %g s", c->max_green_s,
                         c->min_green_s);
    }
    const double T = c->history_s * c->history_hz;
    if (c->history_s > 0 && (T < 1 - STEPS_TOL || fabs(T - round(T)) > STEPS_TOL)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "env_traffic.history_s = %g s at history_hz = %g is %g steps; a whole number is needed",
                         c->history_s, c->history_hz, T);
    }
    if (c->right_of_way && c->control != CONTROL_SIGNALS) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.right_of_way is for control = \"signals\", not \"%s\"",
                         traffic_controls[c->control]);
    }
    if (c->history_s > 0 && c->control == CONTROL_SIGNALS) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "env_traffic.history_s = %g s: with control = \"signals\" no vehicle is an agent, so there is "
                         "no history to provide; set control = \"vehicles\" or \"both\"",
                         c->history_s);
    }
    DT_TRY_H(formulas_check(h, "env_traffic", traffic_reward_text(c), c->observation, c->control != CONTROL_VEHICLES));
    if (c->episode_s < c->action_s) {
        return DT_FAIL_H(h, DT_ECONFIG, "env_traffic.episode_s = %g s is shorter than one action of %g s", c->episode_s,
                         c->action_s);
    }
    return DT_OK;
}

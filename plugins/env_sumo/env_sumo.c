/* SPDX-License-Identifier: Apache-2.0
 *
 * env_sumo: any scenario of SUMO (Alvarez Lopez et al. 2018), its traffic signals or some of its vehicles as agents.
 *
 * control = signals (lights.h)
 *   agent    a signal whose program has at least two green phases; the others keep their program
 *   action   the green phase to show next, signal.h. SUMO's own timer is held off. Where a green ends, yellow comes
 *            between, yellow_s within the step; the mask forbids phases that the signal lacks and, before min_green_s,
 *            leaving the one shown
 *   obs      observe.h
 *   reward   reward_scale times minus the vehicle-seconds that traffic heading for the agent lost in the step:
 *            delay     time lost on the road since the step before, and vehicles due but not let in yet: their sum over
 *                      an episode is what strict_delay_s averages, but for what is lost past the last signal
 *            queue     vehicles standing on its lanes at the end of the step (times its length)
 *            pressure  the same, less the vehicles standing on the lanes that lead away (Varaiya 2013)
 *            a formula  of the user over quantities of the signal (formula.h), times reward_scale
 *            reward_shared of it is the mean of all agents
 *   cost     conflicting_greens: s of the step with two links of G whose ways meet; starvation: lanes where a vehicle
 *   has
 *            waited in without green for longer than starve_s; collisions and emergency_braking: how many, where they
 *            happened (elsewhere: an equal share for every agent)
 *   end      truncated at end_s, never terminated
 *
 * Several scenarios (also) take turns, so that one policy learns all of them; choices and rows are as wide as the
 * widest needs, and places that a scenario has no signal for are empty.
 *
 * control = program lets the file's programs run and ignores actions: the baseline, as controller_fixed has it.
 *
 * control = vehicles (drivers.h)
 *   agent    a vehicle of agent_type and agent_route, drawn with probability penetration as it departs, when one of
 *            `agents` places is free
 *   action   acceleration, m/s^2, held over the step; with lane_actions also the lane: 0 keep, 1 left, 2 right. What
 *            SUMO lets come of it is a matter of speed_mode
 *   reward   speed over wanted speed, in [0,1]: reward_shared of it is the mean over all vehicles, those that wait to
 *            enter included, the rest the agent's own. With many agents the mean shows little of what one of them did
 *   cost     collisions it was in; time_to_collision and hard_braking: share of the step below ttc_s, and braking
 *            harder than hard_mps2; conflicting_greens and starvation: 0, as in env_traffic
 *   end      an agent that leaves the road is truncated; one that collides, which is touching another, is taken off the
 *   road and
 *            terminated, and the episode ends unless end_at_collision is off
 *
 * metrics    measure.h, and queue: vehicles standing per signal (vehicles: in all), mean over steps;
 *            conflicting_greens, s, and longest_red_s, the longest that a lane with a standing vehicle had no green
 *            (vehicles: neither); most_vehicles on the road at once; stuck: the most that had been standing for more
 *            than 300 s at once; mean_speed_mps on the road; flow_vph: vehicles that finished
 *
 * An episode with many stuck is a gridlock. SUMO has two that no signal ends while teleporting is off: vehicles inside
 * a junction that block each other's way (sumo_options = "--ignore-junction-blocker 30" ends these), and two
 * side by side at the end of a short edge that each need the other's lane (teleport_s ends them).
 *
 * SUMO's seed is the seed of reset (below 2^31 as it is). libsumo has one simulation per process, and so is there one
 * instance. SUMO's saved states (1.15) do not continue as the simulation did that was saved, so nothing is built on
 * them: an episode begins by loading.
 */
#include "env_sumo.h"
#include "doctor.h"
#include "drivers.h"
#include "lights.h"
#include "measure.h"
#include "module.h"
#include "options.h"
#include "scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNALS_DECISION_S 10.0
#define RIGHT_OF_WAY       8 /* of speed_mode: agents yield at junctions */

static const char *const controls[] = {"signals", "program", "vehicles", NULL};
static const char *const features[] = {"signals", "graph", NULL};
static const char *const rewards[] = {"delay", "queue", "pressure", NULL}; /* by REWARD_*; else a formula */

static const dt_option options[] = {
    DT_OPTION_WITH(config, sumocfg, DT_OPT_PATH, NULL, "1", 0, 0, NULL,
                   "SUMO's configuration of the scenario: net, routes, begin, end", DT_OPT_REQUIRED, NULL),
    DT_OPTION(config, also, DT_OPT_STR, "", "1", 0, 0, NULL,
              "more scenarios, separated by commas: an episode uses scenario number seed modulo their number"),
    DT_OPTION(config, control, DT_OPT_ENUM, "signals", "1", 0, 0, controls,
              "signals: actions choose the green phases; program: the file's own programs run, actions do nothing; "
              "vehicles: actions drive some vehicles, the file's programs run"),
    DT_OPTION(config, features, DT_OPT_ENUM, "signals", "1", 0, 0, features,
              "signals: numbers per signal, phase and lane; graph: the graph of signals and vehicles too"),
    DT_OPTION(config, reward, DT_OPT_STR, "delay", "1", 0, 0, NULL,
              "signals: minus vehicle-seconds lost by one of the names delay (time lost and waiting outside), queue "
              "(standing), pressure; or a formula to maximise, as \"diff_waiting_s - 0.1*queue\" "
              "(docs/reference/signals.md)"),
    DT_OPTION(config, observation, DT_OPT_STR, "", "1", 0, 0, NULL,
              "signals: what the row `signal` holds, formulas separated by commas, as \"queue, phase.near\" "
              "(docs/reference/signals.md); empty: phase, times and eight numbers per lane"),
    DT_OPTION(config, reward_scale, DT_OPT_F64, "0.01", "1", 0, 1e6, NULL, "factor of the reward"),
    DT_OPTION(config, reward_shared, DT_OPT_F64, "-1", "1", -1, 1, NULL,
              "share of the mean over all agents in the reward; 0: each agent its own, which often trains faster; 1: "
              "shared by all; -1: signals 0, vehicles 1"),
    DT_OPTION(config, decision_s, DT_OPT_F64, "0", "s", 0, 3600, NULL,
              "simulated time of a step; 0: signals 10 (RESCO), vehicles one step of SUMO"),
    DT_OPTION(config, yellow_s, DT_OPT_F64, "3", "s", 0, 60, NULL, "yellow after a green (RESCO: 3)"),
    DT_OPTION(config, min_green_s, DT_OPT_F64, "5", "s", 0, 3600, NULL, "a phase is shown for at least this long"),
    DT_OPTION(config, right_of_way, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "signals also see the state of each link in each phase, and the links that conflict"),
    DT_OPTION(config, begin_s, DT_OPT_F64, "-1", "s", -1, 1e9, NULL, "begin of the episode; -1: that of sumocfg"),
    DT_OPTION(config, end_s, DT_OPT_F64, "-1", "s", -1, 1e9, NULL, "end of the episode; -1: that of sumocfg"),
    DT_OPTION(config, step_s, DT_OPT_F64, "0", "s", 0, 10, NULL, "SUMO's time step; 0: that of sumocfg, or 1"),
    DT_OPTION_WITH(
        config, teleport_s, DT_OPT_F64, "-1", "s", -1, 1e9, NULL,
        "SUMO teleports vehicles that are stuck for this long; -1: never. Training only: evaluations use -1, unless "
        "evaluation.env sets it",
        DT_OPT_TRAINING, NULL),
    DT_OPTION(config, detection_m, DT_OPT_F64, "200", "m", 1, 1e4, NULL, "how far signals see vehicles (RESCO: 200)"),
    DT_OPTION(config, near_m, DT_OPT_F64, "50", "m", 1, 1e4, NULL, "range of the counts of near vehicles"),
    DT_OPTION(config, starve_s, DT_OPT_F64, "180", "s", 1, 1e6, NULL, "longest wait for green that costs nothing"),
    DT_OPTION(config, radius_m, DT_OPT_F64, "50", "m", 0.1, 1e4, NULL,
              "radius of a vehicle's neighbourhood in the graph"),
    DT_OPTION(config, max_signals, DT_OPT_I64, "0", "1", 0, 10000, NULL,
              "places for signals, to share a policy between nets (env.mix); 0: as many as this net has"),
    DT_OPTION(config, max_links, DT_OPT_I64, "0", "1", 0, 256, NULL,
              "links in `greens` and `foes` (right_of_way), to share a policy between nets; 0: the maximum of this "
              "net's signals"),
    DT_OPTION(config, max_phases, DT_OPT_I64, "0", "1", 0, 256, NULL,
              "choices of every agent, to share a model between nets; 0: the maximum of this net's signals"),
    DT_OPTION(config, max_lanes, DT_OPT_I64, "0", "1", 0, 256, NULL,
              "lanes in a row of `signal`, more are left out; 0: the maximum of this net's signals"),
    DT_OPTION(config, max_vehicles, DT_OPT_I64, "1000", "1", 1, 100000, NULL,
              "maximum number of vehicles in the graph; of more, those nearest to their stop lines are seen"),
    DT_OPTION(config, agents, DT_OPT_I64, "1", "1", 1, 4096, NULL,
              "maximum number of vehicles that are agents simultaneously"),
    DT_OPTION(config, penetration, DT_OPT_F64, "0.05", "1", 0, 1, NULL, "share of vehicles that are agents"),
    DT_OPTION(config, agent_type, DT_OPT_STR, "", "1", 0, 0, NULL,
              "agents are of this vType only, penetration is a share of them; empty: of any"),
    DT_OPTION(config, agent_route, DT_OPT_STR, "", "1", 0, 0, NULL,
              "agents are on the route of this id only, penetration is a share of them; empty: on any"),
    DT_OPTION(config, low_mps2, DT_OPT_F64, "-3", "m/s^2", -9, 0, NULL, "minimum acceleration an agent may choose"),
    DT_OPTION(config, high_mps2, DT_OPT_F64, "1.5", "m/s^2", 0, 5, NULL, "maximum acceleration an agent may choose"),
    DT_OPTION(config, speed_mode, DT_OPT_I64, "31", "1", 0, 127, NULL,
              "SUMO's speed mode of agents (manual, TraCI): 31 all its safety checks, 0 none, red lights and right of "
              "way included; collisions inside junctions are checked if agents need not yield (bit 8 off)"),
    DT_OPTION(config, lane_actions, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "agents also choose lanes (0 keep, 1 left, 2 right), SUMO changes lanes if the route requires it; false: "
              "SUMO always does"),
    DT_OPTION(config, baseline, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "actions are ignored: SUMO drives, signals run the file's programs (as control = program)"),
    DT_OPTION(config, end_at_collision, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "a collision of an agent ends the episode"),
    DT_OPTION(config, ttc_s, DT_OPT_F64, "1.5", "s", 0, 10, NULL, "a time to collision below this is a cost"),
    DT_OPTION(config, hard_mps2, DT_OPT_F64, "3", "m/s^2", 0, 9, NULL, "braking harder than this is a cost"),
    DT_OPTION(
        config, history_s, DT_OPT_F64, "0", "s", 0, 60, NULL,
        "vehicles: history of agents and of the vehicles ahead of them, for world models; 0: none; the phase sets it"),
    DT_OPTION(config, history_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL, "rate of that history"),
    DT_OPTION_WITH(
        config, sumo_options, DT_OPT_STR, "", "1", 0, 0, NULL,
        "more options for SUMO, separated by spaces, e.g. \"--scale 1.2\"; files that they name for output are written",
        DT_OPT_CODE, NULL),
    DT_OPTION_WITH(config, outputs, DT_OPT_BOOL, "false", "", 0, 0, NULL,
                   "SUMO writes the files that sumocfg, its additional files and its demand name for output, one "
                   "instance at a time; "
                   "false: they are left out",
                   DT_OPT_CODE, NULL),
    DT_OPTION_WITH(config, module, DT_OPT_STR, "", "1", 0, 0, NULL, "file of the SUMO module; empty: the installed one",
                   DT_OPT_CODE, NULL),
    DT_OPTION_END};

dt_status env_fail(const state *s, dt_status st, const char *what)
{
    return DT_FAIL_H(s->h, st, "%s: %s: %s", s->config.sumocfg, what, s->api->error());
}

/* Options that dtrain sets itself, and those that no scenario can have. */
static dt_status check_sumo_options(const dt_host *h, const config *c)
{
    static const char *const ours[] = {"seed", "random", "begin", "b", "end", "e", "step-length"};
    static const char *const of_vehicles[] = {"collision.action", "collision.check-junctions",
                                              "collision.mingap-factor"};
    const char *word = c->sumo_options + strspn(c->sumo_options, " \t");
    for (size_t n = 0; *word != '\0'; word += n + strspn(word + n, " \t")) {
        char name[64];
        n = strcspn(word, " \t");
        const size_t dashes = word[0] != '-' ? 0 : word[1] == '-' ? 2 : 1, bytes = strcspn(word, " \t=") - dashes;
        if (dashes == 0 || bytes == 0 || bytes >= sizeof(name) || (word[dashes] >= '0' && word[dashes] <= '9')) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)bytes, word + dashes);
        bool is_ours = false;
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
            is_ours |= strcmp(name, ours[i]) == 0;
        }
        for (size_t i = 0; i < sizeof(of_vehicles) / sizeof(of_vehicles[0]) && c->control == CONTROL_VEHICLES; i++) {
            is_ours |= strcmp(name, of_vehicles[i]) == 0;
        }
        const sumo_option_row row = sumo_option_find(name);
        if (is_ours) {
            return DT_FAIL_H(h, DT_ECONFIG, "sumo_options: %.*s is set by dtrain itself", (int)(bytes + dashes), word);
        }
        if (row.what == SUMO_OPTION_IGNORED || row.what == SUMO_OPTION_REFUSED) {
            return DT_FAIL_H(h, DT_ECONFIG, "sumo_options: %.*s is not supported: %s", (int)(bytes + dashes), word,
                             row.reason);
        }
    }
    return DT_OK;
}

/* REWARD_* */
static uint32_t find_reward(const config *c)
{
    uint32_t k = 0;
    while (rewards[k] != NULL && strcmp(rewards[k], c->reward) != 0) {
        k++;
    }
    return k;
}

/* NULL: a built-in reward */
static const char *reward_text(const config *c)
{
    return find_reward(c) == REWARD_FORMULA ? c->reward : NULL;
}

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    const double decision_s = c->decision_s > 0 ? c->decision_s : SIGNALS_DECISION_S;
    if (c->control != CONTROL_VEHICLES && c->yellow_s >= decision_s) {
        return DT_FAIL_H(h, DT_ECONFIG, "yellow_s %g leaves no green in decision_s %g", c->yellow_s, decision_s);
    }
    if (c->control == CONTROL_VEHICLES && c->max_vehicles < c->agents) {
        return DT_FAIL_H(h, DT_ECONFIG, "max_vehicles %lld has no room for %lld agents", (long long)c->max_vehicles,
                         (long long)c->agents);
    }
    const double T = c->history_s * c->history_hz;
    if (c->history_s > 0 && (T < 1 - DT_MOTION_STEP_TOL || fabs(T - round(T)) > DT_MOTION_STEP_TOL)) {
        return DT_FAIL_H(h, DT_ECONFIG, "history_s %g at history_hz %g is %g steps; a whole number is needed",
                         c->history_s, c->history_hz, T);
    }
    if (c->history_s > 0 && c->control != CONTROL_VEHICLES) {
        return DT_FAIL_H(
            h, DT_ECONFIG,
            "history_s %g: with control = \"%s\" no vehicle is an agent, so there is no history to provide",
            c->history_s, controls[c->control]);
    }
    if (c->end_s >= 0 && c->begin_s >= 0 && c->end_s <= c->begin_s) {
        return DT_FAIL_H(h, DT_ECONFIG, "end_s %g is not after begin_s %g", c->end_s, c->begin_s);
    }
    if (c->near_m > c->detection_m) {
        return DT_FAIL_H(h, DT_ECONFIG, "near_m %g is beyond detection_m %g", c->near_m, c->detection_m);
    }
    DT_TRY_H(formulas_check(h, "env_sumo", reward_text(c), c->observation, c->control != CONTROL_VEHICLES));
    return check_sumo_options(h, c);
}

/* ---- create ------------------------------------------------------------------------------------------------------ */

dt_status env_reserve(const state *s, void *out_p, uint64_t n, uint64_t bytes)
{
    void *p = s->h->alloc(s->h, (n > 0 ? n : 1) * bytes);
    if (p == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %llu items of a scenario", (unsigned long long)n);
    }
    *(void **)out_p = p;
    return DT_OK;
}

static void add_argument(state *s, const char *name, const char *value)
{
    s->arg[s->file.n_args++] = name;
    s->arg[s->file.n_args++] = value;
}

static dt_status make_arguments(state *s)
{
    const config *c = &s->config;
    add_argument(s, "--xml-validation", "never"); /* without SUMO_HOME the schemas would come from the web */
    add_argument(s, "--xml-validation.net", "never");
    add_argument(s, "--xml-validation.routes", "never");
    add_argument(s, "--random", "false");
    add_argument(s, "--no-step-log", "true");
    add_argument(s, "--duration-log.disable", "true");
    add_argument(s, "--time-to-teleport", s->teleport_text);
    snprintf(s->teleport_text, sizeof(s->teleport_text), "%.17g", c->teleport_s);
    if (c->control == CONTROL_VEHICLES) {
        add_argument(s, "--collision.action", "remove"); /* else SUMO would lift a vehicle to a place further on */
        add_argument(s, "--collision.mingap-factor",
                     "0"); /* else all that is nearer than a standing queue would count */
        /* inside large junctions SUMO's own drivers overlap now and then: only for agents that need not yield */
        add_argument(s, "--collision.check-junctions", (c->speed_mode & RIGHT_OF_WAY) != 0 ? "false" : "true");
    }
    if (c->begin_s >= 0) {
        snprintf(s->begin_text, sizeof(s->begin_text), "%.17g", c->begin_s);
        add_argument(s, "--begin", s->begin_text);
    }
    if (c->end_s >= 0) {
        snprintf(s->end_text, sizeof(s->end_text), "%.17g", c->end_s);
        add_argument(s, "--end", s->end_text);
    }
    if (c->step_s > 0) {
        snprintf(s->step_text, sizeof(s->step_text), "%.17g", c->step_s);
        add_argument(s, "--step-length", s->step_text);
    }
    const size_t n = strlen(c->sumo_options) + 1, room = sizeof(s->arg) / sizeof(s->arg[0]);
    DT_TRY_H(env_reserve(s, &s->extra, n, 1));
    memcpy(s->extra, c->sumo_options, n);
    char *rest = NULL;
    s->file.arg = s->arg;
    s->file.more = s->arg + s->file.n_args;
    s->file.outputs = c->outputs;
    for (char *word = strtok_r(s->extra, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        if (s->file.n_args + s->file.n_more == room) {
            return DT_FAIL_H(s->h, DT_ECONFIG, "sumo_options has more than %zu words", room - s->file.n_args);
        }
        s->arg[s->file.n_args + s->file.n_more++] = word;
    }
    return DT_OK;
}

/* sumocfg, then those of also */
static dt_status name_scenarios(state *s)
{
    const size_t n = strlen(s->config.also) + 1;
    s->scenario[s->n_scenarios++] = s->config.sumocfg;
    DT_TRY_H(env_reserve(s, &s->names, n, 1));
    memcpy(s->names, s->config.also, n);
    char *rest = NULL;
    for (char *name = strtok_r(s->names, ", \t", &rest); name != NULL; name = strtok_r(NULL, ", \t", &rest)) {
        if (s->n_scenarios == MAX_SCENARIOS) {
            return DT_FAIL_H(s->h, DT_ECONFIG, "also names more than %d scenarios", MAX_SCENARIOS - 1);
        }
        s->scenario[s->n_scenarios++] = name;
    }
    return DT_OK;
}

static dt_status check_times(state *s)
{
    config *c = &s->config;
    const sumo_net *net = s->net;
    const bool is_vehicles = c->control == CONTROL_VEHICLES;
    if (c->decision_s == 0) {
        c->decision_s = is_vehicles ? net->step_s : SIGNALS_DECISION_S;
    }
    if (c->reward_shared < 0) {
        c->reward_shared = is_vehicles ? 1 : 0;
    }
    s->begin_s = net->begin_s;
    s->end_s = net->end_s;
    if (s->end_s < 0) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "%s names no end of the simulation; set end_s", c->sumocfg);
    }
    if (s->end_s <= s->begin_s) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "%s: the end, %g s, is not after the begin, %g s", c->sumocfg, s->end_s,
                         s->begin_s);
    }
    const double n_steps = (s->end_s - s->begin_s) / c->decision_s;
    if (!(n_steps < INT32_MAX)) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "%s: from %g s to %g s are %.0f decisions, at most %d fit; set end_s",
                         c->sumocfg, s->begin_s, s->end_s, n_steps, INT32_MAX);
    }
    const double times[] = {c->decision_s, is_vehicles ? 0 : c->yellow_s};
    for (int i = 0; i < 2; i++) {
        const double steps = times[i] / net->step_s;
        if (fabs(steps - round(steps)) > 1e-6) {
            return DT_FAIL_H(s->h, DT_ECONFIG, "%s %g s is not a whole number of SUMO's steps of %g s",
                             i == 0 ? "decision_s" : "yellow_s", times[i], net->step_s);
        }
    }
    return DT_OK;
}

/* The scenario takes the place of none. */
static dt_status load_scenario(state *s, uint32_t k, uint32_t seed)
{
    s->now = k;
    s->config.sumocfg = s->file.path = s->scenario[k];
    if (s->api->open(&s->file, seed, &s->net) != 0) {
        return env_fail(s, DT_EDATA, "SUMO cannot load it");
    }
    if (s->api->left_out()[0] != '\0' && !s->has_logged) {
        dt_logf(s->h, 2, "%s: left out, as a scenario writes no files and connects nowhere: %s", s->config.sumocfg,
                s->api->left_out());
    }
    DT_TRY_H(check_times(s));
    return s->config.control == CONTROL_VEHICLES ? drivers_create(s) : lights_create(s);
}

static void unload_scenario(state *s)
{
    lights_destroy(s);
    drivers_destroy(s);
    scene_forget(s);
    s->h->release(s->h, s->pending);
    s->h->release(s->h, s->frame);
    s->pending = NULL;
    s->frame = NULL;
    s->n_frame = 0;
    s->n_ports = 0;
}

static uint32_t count_decisions(const state *s)
{
    return (uint32_t)ceil((s->end_s - s->begin_s) / s->config.decision_s - 1e-9);
}

/* Sizes that all scenarios have in common. */
static dt_status make_room_for_all(state *s)
{
    uint32_t most_phases = 0, most_lanes = 0;
    if (s->n_scenarios > 1) {
        for (uint32_t k = 0; k < s->n_scenarios; k++) {
            DT_TRY_H(load_scenario(s, k, 1));
            most_phases = s->n_phases > most_phases ? s->n_phases : most_phases;
            most_lanes = s->n_lanes > most_lanes ? s->n_lanes : most_lanes; /* L grows by itself */
            s->n_places = s->n_agents > s->n_places ? s->n_agents : s->n_places;
            s->most_steps = count_decisions(s) > s->most_steps ? count_decisions(s) : s->most_steps;
            unload_scenario(s);
        }
    }
    s->config.max_phases = s->n_scenarios > 1 ? most_phases : s->config.max_phases;
    s->config.max_lanes = s->n_scenarios > 1 ? most_lanes : s->config.max_lanes;
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    if (s->config.baseline && s->config.control == CONTROL_SIGNALS) {
        s->config.control = CONTROL_PROGRAM;
    }
    const bool is_vehicles = s->config.control == CONTROL_VEHICLES;
    if (is_vehicles || s->config.features == FEATURES_GRAPH) {
        s->features = h->service(h, DT_SVC_FEATURES);
        if (s->features == NULL) {
            return DT_FAIL_H(h, DT_ENOTFOUND, "the host has no service " DT_SVC_FEATURES);
        }
    }
    const sumo_api *api = NULL;
    DT_TRY_H(module_open(h, s->config.module, &api));
    if (api->acquire() != 0) {
        return DT_FAIL_H(
            h, DT_EUNSUPPORTED,
            "%s: libsumo has one simulation per process; give every instance of env_sumo a process of its own "
            "(env.isolation = \"processes\")",
            api->error());
    }
    s->api = api;
    s->reward = find_reward(&s->config);
    DT_TRY_H(formulas_read(h, "env_sumo", reward_text(&s->config), s->config.observation, &s->reward_formula, &s->row));
    DT_TRY_H(make_arguments(s));
    DT_TRY_H(name_scenarios(s));
    DT_TRY_H(make_room_for_all(s));
    DT_TRY_H(load_scenario(s, 0, 1));
    s->has_logged = true;
    s->api->close(); /* an instance that is only asked for its spec needs no memory */
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const char *const metrics[] = {"strict_delay_s",  "resco_delay_s", "trip_time_s",
                                          "waiting_s",       "time_loss_s",   "depart_delay_s",
                                          "queue",           "demand",        "finished",
                                          "never_inserted",  "collisions",    "emergency_braking",
                                          "emergency_stops", "teleported",    "conflicting_greens",
                                          "longest_red_s",   "most_vehicles", "stuck",
                                          "mean_speed_mps",  "flow_vph",      "travel_time_s"};
    state *s = (state *)(uintptr_t)self;
    out->obs = s->port;
    out->n_obs = s->n_ports;
    out->symbols = s->symbol;
    out->metrics = metrics;
    out->n_metrics = sizeof(metrics) / sizeof(metrics[0]);
    out->max_steps = s->most_steps > 0 ? s->most_steps : count_decisions(s);
    out->step_s = s->config.decision_s;
    if (s->config.control == CONTROL_VEHICLES) {
        drivers_spec(s, out);
    } else {
        lights_spec(s, out);
    }
    return DT_OK;
}

/* ---- episodes ---------------------------------------------------------------------------------------------------- */

/* SUMO takes 31 bits; larger seeds are mixed down (the finaliser of Steele et al. 2014, SplitMix). */
static uint32_t sumo_seed(uint64_t seed)
{
    if (seed >> 31 != 0) {
        seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
        seed = (seed ^ (seed >> 31)) >> 33;
    }
    return (uint32_t)seed;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    const uint32_t next = (uint32_t)(seed % s->n_scenarios);
    if (next != s->now) {
        unload_scenario(s);
        DT_TRY_H(load_scenario(s, next, sumo_seed(seed)));
    } else if (s->api->open(&s->file, sumo_seed(seed), &s->net) != 0) {
        return env_fail(s, DT_EDATA, "SUMO cannot load it");
    }
    dt_logf(s->h, 3, "%s from %g s with --seed %u", s->config.sumocfg, s->net->begin_s, sumo_seed(seed));
    s->time_s = s->begin_s;
    s->has_episode = true;
    s->totals = (totals){0};
    s->picture.is_drawn = false;
    return s->config.control == CONTROL_VEHICLES ? drivers_reset(s, io, seed) : lights_reset(s, io);
}

dt_status env_events(state *s, sumo_events *e)
{
    if (s->api->events(e) != 0) {
        return env_fail(s, DT_EIO, "SUMO's events were not read");
    }
    if (e->warnings[0] != '\0') {
        dt_logf(s->h, 3, "SUMO at %g s: %s", s->time_s, e->warnings);
    }
    for (uint32_t i = 0; i <= s->net->n_signals; i++) {
        s->totals.collisions += e->collision[i];
        s->totals.braking += e->braking[i];
    }
    s->totals.emergency_stops += e->emergency_stops;
    s->totals.teleported += e->teleported;
    return DT_OK;
}

bool env_is_over(const state *s)
{
    return s->time_s >= s->end_s - 1e-6;
}

static dt_status write_metrics(state *s, const dt_env_io *io)
{
    sumo_result r;
    measures m;
    DT_TRY_H(scene_record(s));
    s->has_episode = false;
    if (s->api->finish(&r) != 0) {
        return env_fail(s, DT_EIO, "the results were not read");
    }
    measure(&r, s->time_s, &m);
    if (m.demand == 0) {
        return DT_FAIL_H(s->h, DT_EDATA,
                         "%s: no vehicle was due from %g s to %g s; check begin, end and the route files",
                         s->config.sumocfg, s->begin_s, s->time_s);
    }
    const totals *t = &s->totals;
    const double all[] = {m.strict_delay_s,
                          m.resco_delay_s,
                          m.trip_time_s,
                          m.waiting_s,
                          m.time_loss_s,
                          m.depart_delay_s,
                          t->queue / t->steps / (s->n_agents > 0 ? s->n_agents : 1),
                          m.demand,
                          m.finished,
                          m.never_inserted,
                          t->collisions,
                          t->braking,
                          t->emergency_stops,
                          t->teleported,
                          t->conflict_s,
                          t->longest_s,
                          t->most_vehicles,
                          t->stuck,
                          m.speed_mps,
                          3600 * m.finished / (s->time_s - s->begin_s),
                          m.travel_time_s};
    memcpy(io->metric, all, sizeof(all));
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    if (!s->has_episode) {
        return DT_FAIL_H(s->h, DT_EINVAL, "step without an episode; reset first");
    }
    const double step_s = fmin(s->config.decision_s, s->end_s - s->time_s);
    s->totals.steps++;
    const dt_status st =
        s->config.control == CONTROL_VEHICLES ? drivers_step(s, io, step_s) : lights_step(s, io, step_s);
    if (st != DT_DONE) {
        return st;
    }
    DT_TRY_H(write_metrics(s, io));
    return DT_DONE;
}

static void destroy(void *self)
{
    state *s = self;
    if (s->h == NULL) {
        return;
    }
    unload_scenario(s);
    s->h->release(s->h, s->extra);
    s->h->release(s->h, s->names);
    formulas_fini(&s->reward_formula);
    formulas_fini(&s->row);
    if (s->api != NULL) {
        s->api->release();
    }
}

static const char *const results[] = {
    "metrics/strict_delay_s||s|lower|time lost per vehicle due, delay of departure included",
    "metrics/resco_delay_s||s|lower|the same as RESCO's scripts compute it, most vehicles not inserted left out",
    "metrics/trip_time_s||s|lower|per inserted vehicle",
    "metrics/waiting_s||s|lower|standing, per inserted vehicle",
    "metrics/time_loss_s||s|lower|below the desired speed, per inserted vehicle",
    "metrics/depart_delay_s||s|lower|before entering, per inserted vehicle",
    "metrics/queue||vehicles|lower|standing per signal, mean over steps",
    "metrics/demand||vehicles||that were due",
    "metrics/finished||vehicles|higher|that arrived",
    "metrics/never_inserted||vehicles|lower|due, without room to enter",
    "metrics/collisions||collisions|lower|",
    "metrics/emergency_*||events|lower|",
    "metrics/teleported||vehicles|lower|teleported by SUMO (teleport_s)",
    "metrics/conflicting_greens||s|lower|with two conflicting links at major green",
    "metrics/longest_red_s||s|lower|that a waiting lane had no green",
    "metrics/most_vehicles||vehicles||maximum on the roads simultaneously",
    "metrics/stuck||vehicles|lower|most that stood over 300 s; gridlock",
    "metrics/travel_time_s||s|lower|of all that were due, to the end at most: CityFlow's average travel time",
    "metrics/mean_speed_mps||m/s|higher|",
    "metrics/flow_vph||vehicles/h|higher|that arrived",
    "costs/conflicting_greens||s||with two conflicting links at major green",
    "costs/starvation||||lanes that wait longer than starve_s",
    NULL};

static const void *extension(const char *id)
{
    static const char *const baselines[] = {"controller_fixed", "controller_greedy", "controller_max_pressure",
                                            "controller_idm", NULL};
    static const char *const program[] = {"baseline=true", NULL};
    if (strcmp(id, DT_EXT_SCENE) == 0) {
        return &scene_api;
    }
    if (strcmp(id, DT_EXT_DOCTOR) == 0) {
        return &sumo_doctor;
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

DT_ENV_DEFINE(component, "env_sumo", "a SUMO scenario: signals choose phases, or vehicles are driven",
              "Alvarez Lopez et al. 2018 (SUMO); Ault & Sharon 2021 (RESCO)", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = destroy),
              .flags = DT_COMP_DETERMINISTIC | DT_COMP_PROCESS, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_sumo", "1.0", "dtrain", "Apache-2.0");

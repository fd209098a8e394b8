/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulation: vehicles on the lanes of a network, moved in steps of fixed length. It knows nothing of agents'
 * observations or of dtrain's environments (env_traffic.c does), except that some vehicles and all signals may be
 * steered from outside.
 *
 * State is a structure of arrays: a lane owns a range of slots, its vehicles lie there sorted from front to back, so
 * that the leader of slot p is slot p - 1 and car following is one loop without branches. A vehicle that leaves a lane
 * moves the lane's head, one that comes is appended. What the loops do not touch is in a table by vehicle.
 *
 * A step (sim_step): arrivals, lane changes, accelerations, motion, collisions, moves from lane to lane, signals. All
 * in the order of lanes and slots, so that equal seeds give equal bits. All memory comes from sim_create; a step
 * allocates nothing. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_SIM_H
#define DTRAIN_ENV_TRAFFIC_SIM_H

#include "follow.h"
#include "plan.h"
#include "route.h"
#include "dtrain/random.h"

#define HALTING_MPS     0.1 /* slower is standing; SUMO's waitingTime uses the same */
#define EMERGENCY_MPS2  4.5 /* braking harder than this, and than EMERGENCY_SHARE times b, is an emergency */
#define EMERGENCY_SHARE 1.5
#define STUCK_S         300.0 /* standing first in its lane for so long, not at a red light; SUMO teleports it then */
#define SIGHT_M         200.0 /* how far drivers look ahead */

enum { SCENARIO_RING, SCENARIO_MERGE, SCENARIO_BOTTLENECK, SCENARIO_INTERSECTION, SCENARIO_GRID, SCENARIO_NET };
enum { CONTROL_VEHICLES, CONTROL_SIGNALS, CONTROL_BOTH };
enum { ARRIVALS_POISSON, ARRIVALS_UNIFORM };
enum { SIM_COSTS = 5 };
enum { COST_COLLISIONS, COST_TTC, COST_HARD_BRAKING, COST_CONFLICTING_GREENS, COST_STARVATION };

/* The configuration of the component; options and their units are listed in env_traffic.c. */
typedef struct traffic_config {
    uint32_t scenario, control, model, arrivals;
    int64_t vehicles, lanes, rows, cols, max_vehicles, agents, levels;
    int64_t max_signals, max_phases, max_lanes, max_links; /* 0: those of the net */
    double length_m, ramp_m, limit_mps;
    double flow_vph, ramp_vph, left_share, right_share;
    double jitter_m;
    double dt_s, action_s, episode_s;
    double headway_s, accel_mps2, decel_mps2, gap_m, vehicle_m, speed_dev, sigma;
    double politeness, change_threshold, safe_decel_mps2;
    double green_s, left_green_s, yellow_s, all_red_s, min_green_s, max_green_s, detector_m, near_m;
    double penetration, low_mps2, high_mps2;
    double ttc_s, hard_mps2, starvation_s, radius_m;
    double begin_s;
    double history_s, history_hz;
    double reward_scale;
    const char *net_file, *routes_file, *reward, *observation;
    uint8_t signals, baseline, end_at_collision, lane_actions, right_of_way;
} traffic_config;

/* Slots of a lane. */
typedef struct lane_state {
    int32_t base, cap;                     /* its range */
    int32_t head, n;                       /* slots base + head ... + n hold vehicles, from front to back */
    int32_t front;                         /* vehicle that stood first in the last step, NET_NONE */
    int32_t n_hard, n_close, n_collisions; /* in this step: hard braking, time to collision below the limit */
    double stood_s;                        /* how long the front one has been standing */
    int32_t is_stuck;                      /* it has been counted as stuck */
    int32_t halted;                        /* vehicle that has stood first, NET_NONE */
    double lost;                           /* in the last step: sum of 1 - speed / wanted speed */
} lane_state;

typedef struct vehicle {
    uint64_t key;           /* its number in the demand: names its random numbers */
    int32_t lane;           /* NET_NONE: this entry is free */
    int32_t target;         /* edge after this one, or NET_EXIT */
    int32_t next;           /* lane after this one, NET_NONE where the lane does not lead to target, NET_EXIT */
    int32_t need;           /* lanes to move to the left (positive) until one leads there */
    int32_t place;          /* of the agent that steers it, NET_NONE */
    uint32_t hop;           /* edges driven */
    int32_t trip;           /* of the plan, or NET_NONE: it turns by chance */
    int32_t is_pressed;     /* it must change here: its lane does not lead to target, or there is no time to later */
    int32_t is_lost;        /* it left its route and looks for a way to its last edge */
    int32_t came;           /* lane before this one, on which its rear may be; NET_NONE */
    double top;             /* m/s, what it can */
    double factor;          /* of the limit: its desired speed */
    double due, born, last; /* s: scheduled departure, insertion, last lane change */
} vehicle;

/* Places of vehicles' agents. A place that ended shows its true last state until the next action. */
enum { PLACE_FREE, PLACE_NEW, PLACE_ACTING, PLACE_ENDED };
typedef struct place {
    int32_t vehicle, state;
    double accel;      /* the action, m/s^2 */
    uint32_t collided; /* in this action step */
    uint32_t reserved;
    double x, y, heading, speed, done_accel; /* where it left the network */
} place;

enum { STAGE_GREEN, STAGE_YELLOW, STAGE_ALL_RED };
typedef struct signal_state {
    int32_t phase, next;             /* shown, or shown before; what follows a transition */
    int32_t stage, n_conflicts;      /* pairs of greens that conflict now */
    double stage_s;                  /* since the stage began */
    double served_s[NET_MAX_PHASES]; /* since it last was green, 0 while it is */
    net_show show;
    net_links counted; /* for which n_conflicts is known */
} signal_state;

typedef struct arrival {
    double due;           /* s */
    int32_t trip, number; /* of the plan, or NET_NONE; in the order of the file */
} arrival;

/* A queue of vehicles that wait for the same lanes of an edge: one that waits for a full lane holds up no others. */
typedef struct source {
    int32_t edge;
    int32_t sibling;    /* the next one of its edge, + 1; 0: it is the last */
    int32_t is_sibling; /* another one comes before it */
    int32_t is_shut;    /* the first of it cannot enter in this step */
    uint64_t lanes;     /* bit k: lane k of the edge; 0: all */
    double rate;        /* 1/s */
    arrival *due;       /* [n], sorted */
    int32_t n, cap;
    int32_t arrived, taken; /* due[0..arrived) are past, due[0..taken) were inserted */
} source;

/* Sums of an episode. */
typedef struct tally {
    double loss_s;    /* of vehicles that entered: before they did, and on the road */
    double late_s;    /* of those that entered, before they did */
    double waiting_s; /* standing on the road */
    double trip_s;    /* of those that finished */
    double speed_s;   /* sum of speed * dt */
    double present_s; /* vehicle seconds on the road */
    double red_s;     /* the longest that the first vehicle at a line went without the green of its link */
    int64_t updates, inserted, finished, collisions, emergencies, conflicting, stuck;
} tally;

typedef struct sim {
    const dt_host *h;
    const traffic_config *c;
    driver driver;
    double sigma;   /* Krauss: imperfection */
    double least_m; /* length of the shortest vehicle */
    net net;
    lane_state *lane;      /* [n_lanes] */
    double *x, *v, *a;     /* by slot: front bumper along the lane, speed, acceleration of the last step */
    double *length, *want; /* by slot */
    int32_t *who;          /* by slot: vehicle */
    vehicle *vehicle;      /* [max_vehicles] */
    int32_t *spare;        /* free entries of vehicle, a stack */
    int32_t n_spare, n_slots, max_vehicles, n_vehicles;
    place *place;
    int32_t n_places, n_sources;
    source *source;
    trip_plan plan;
    route_search search;
    signal_state *signal; /* [n_signals] */
    net_links *meets;     /* [n_links] links of its junction on which vehicles overlap with those of this one */
    double *red_s; /* [n_links] how long the first vehicle at the line has gone without the link's green (signal.h) */
    net_links *waits,
        *starts; /* [n_junctions] without lights: links whose first vehicle stands at the line; may start */
    uint64_t seed, step, next_key;
    double elapsed_s;   /* since the episode began */
    double speed_ratio; /* sum over vehicles, waiting ones included, of speed over wanted speed, in the last step */
    int64_t speed_ratio_n;
    tally sum;
} sim;

/* Two clocks. Files of SUMO count departures, flows and programs of signals from a zero of their own: such times are a
 * file_time (net.h). All other times are seconds since the episode began, which is at begin_s on the clock of the
 * files. sim_since_begin converts; nothing else adds or subtracts begin_s. */
static inline double sim_since_begin(const sim *s, file_time t)
{
    return t.s - s->c->begin_s;
}

/* Streams of random numbers of an episode. */
enum {
    DRAW_DEMAND,
    DRAW_FACTOR,
    DRAW_ROUTE,
    DRAW_CONTROL,
    DRAW_JITTER,
    DRAW_DAWDLE,
    DRAW_CHOICE,
    DRAW_ENTRY,
    DRAW_STREAMS
};

/* A number in [0,1) that depends on its arguments alone. */
static inline double draw(const sim *s, uint32_t stream, uint64_t i)
{
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), stream, 0};
    uint32_t out[4];
    dt_random_philox(key, counter, out);
    return dt_random_unit(out[0], out[1]);
}

static inline int32_t slot_front(const lane_state *l)
{
    return l->base + l->head;
}

static inline int32_t slot_back(const lane_state *l)
{
    return l->base + l->head + l->n - 1;
}

/* sim.c: the whole. create builds the network of the resolved configuration, which must live on; the caller calls
 * destroy after any result. Errors of create: DT_ECONFIG (named), DT_ENOMEM. */
dt_status sim_create(sim *s, const dt_host *h, const traffic_config *c);
void sim_destroy(sim *s);
void sim_reset(sim *s, uint64_t seed);
void sim_step(sim *s);
int32_t sim_slot_of(const sim *s, int32_t vehicle);
/* Gap and speed of what is ahead of slot p on its way, FREE_GAP where nothing is in sight. */
double sim_gap_ahead(const sim *s, int32_t lane, int32_t p, double *speed_p);
double sim_gap_behind(const sim *s, int32_t lane, int32_t p, double *speed_p);
int64_t sim_waiting(const sim *s); /* vehicles that are due and could not be inserted */
/* Delay of the whole demand up to now, s: time loss, depart delay, and the wait of vehicles that never entered. */
double sim_delay(const sim *s);
/* Time since they were due of all that are due, up to now or their arrival, s. */
double sim_travel(const sim *s);

/* place.c: vehicles come to lanes and leave them */
/* trip: of the plan, or NET_NONE. The front bumper is at x. NET_NONE: no room. */
int32_t place_insert(sim *s, int32_t lane, double x, double v, double due, int32_t trip);
void place_choose_way(sim *s, int32_t vehicle); /* next and need, from its lane and target */
/* The edge that w goes to k edges after this one: 0 is its target; NET_EXIT, NET_NONE where that is not known yet. */
int32_t place_target(const sim *s, const vehicle *w, int32_t k);
/* Where w gets from a lane, of the edge that it is on (k 0) or of the k-th after it: as vehicle.next. */
int32_t place_next_lane(const sim *s, const vehicle *w, int32_t lane, int32_t k);
void place_reroute(sim *s);          /* vehicles that cannot get to its lane turns elsewhere */
void place_enter_next_lanes(sim *s); /* vehicles that passed the end of a lane */
/* Takes slot p out of a lane, puts a vehicle into another one before slot q; keeps the order. */
int place_shift(sim *s, int32_t from, int32_t p, int32_t to, int32_t q);

/* move.c: car following and motion */
void move_accelerate(sim *s);
void move_advance(sim *s);
/* Slot of the nearest vehicle on the way of w that begins with lane `next`, NET_NONE where none is in sight; *rest_p,
 * the way to the start of that lane, grows to that of its lane. */
int32_t move_find_vehicle_ahead(const sim *s, const vehicle *w, int32_t next, double *rest_p);
/* Nearest vehicle after lane `from` on the way `next` of w, rest m before its end. */
double move_find_leader(const sim *s, const vehicle *w, int32_t from, int32_t next, double rest, double *speed_p);
/* The speed, by->v at most, at which a vehicle w that is about to be inserted can still stop at the line ahead where it
 * must; w needs its lane, target, trip and hop. */
struct comer;
double move_entry_speed(const sim *s, const vehicle *w, const struct comer *by);
/* The acceleration of the model alone in slot p, without its agent. */
double move_model_acceleration(const sim *s, int32_t lane, int32_t p);

/* scenario.c */
enum { SCENARIO_MAX_LANES = 3 }; /* of an edge of the scenarios built by code */
/* The configuration with what was left to the scenario (0) filled in. */
traffic_config scenario_resolve(const traffic_config *given);
dt_status scenario_build(sim *s);
dt_status scenario_build_grid(sim *s, int32_t rows, int32_t cols); /* scenario_grid.c */
dt_status scenario_build_net(sim *s);                              /* scenario_net.c: from the configuration's files, */
dt_status scenario_build_from(sim *s, const xml_text *roads, const xml_text *routes); /* or from these texts */
void scenario_populate(sim *s); /* vehicles on the road at the start of an episode */

#endif

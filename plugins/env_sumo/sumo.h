/* SPDX-License-Identifier: Apache-2.0
 *
 * The C face of SUMO: what the module env_sumo_shim.so gives to the environment. The module alone is linked with
 * libsumocpp, so that dtrain runs where SUMO is missing. libsumo keeps one simulation per process: so does this face,
 * and it has no handles. Nothing throws, prints or keeps a pointer of the caller's; what is handed out stays until the
 * next open with other arguments. SUMO's standard error is caught and is the text of errors.
 *
 * Functions that can fail return 0, or -1 and then error() has the reason. Lanes and signals are numbered from 0 by
 * open, the same way every time. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_SUMO_SUMO_H
#define DTRAIN_ENV_SUMO_SUMO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUMO_NONE UINT32_MAX

typedef struct sumo_lane { /* one that a signal controls, or that leads away from one */
    const char *id;
    double length;   /* m */
    uint32_t signal; /* the one that controls its end, SUMO_NONE */
    uint32_t next;   /* the first signal that traffic on it meets */
} sumo_lane;

typedef struct sumo_signal {
    const char *id;
    uint32_t n_links, n_states;
    const char *const *state;       /* [n_states] the file's program, a letter per link */
    const double *duration_s;       /* [n_states] */
    uint32_t first_state, reserved; /* shown when the simulation begins */
    double first_s;                 /* and for so long from then on */
    const uint32_t *from, *to;      /* [n_links] lanes; SUMO_NONE where the link is not used */
    const uint8_t *foe;      /* [n_links, n_links] 1: their ways across the junction meet; NULL: too many to compare */
    const uint8_t *responds; /* [n_links, n_links] 1: and the first one yields */
    double x, y;             /* m, middle of its stop lines */
} sumo_signal;

typedef struct sumo_net {
    const sumo_signal *signal;
    const sumo_lane *lane;
    uint32_t n_signals, n_lanes;
    double begin_s, end_s, step_s; /* end_s < 0: the scenario names no end */
    double x, y;                   /* m, middle of the net */
    uint32_t is_ballistic;         /* motion is that of constant acceleration, not Euler's rule */
    uint32_t reserved;
} sumo_net;

typedef struct sumo_vehicle {
    int64_t number;      /* counted in the order of departures, from 0 */
    double x, y;         /* m, its front */
    double heading;      /* rad, counter-clockwise from east */
    double speed, accel; /* m/s, m/s^2 */
    double length, width;
    double time_loss_s;       /* since it departed */
    double waiting_s;         /* standing without a break */
    double stop_distance;     /* m to the next stop line, or else to the end of its lane */
    double wanted;            /* m/s, what it would drive on this lane */
    uint32_t signal, link;    /* the next it meets, SUMO_NONE */
    const char *type, *route; /* ids, until it has left */
} sumo_vehicle;

typedef struct sumo_near { /* another vehicle */
    double gap;            /* m between bumpers, INFINITY: none */
    double speed, brake;   /* m/s; m/s^2, the hardest it can brake */
    int64_t number;        /* of sumo_vehicle, -1: none */
} sumo_near;

typedef struct sumo_driver { /* what one vehicle has around it */
    sumo_near ahead, behind; /* on its way, also across a junction; a vehicle that crosses its way there is ahead too */
    struct {
        uint32_t exists, reserved; /* is there a lane on this side that it may drive on? */
        sumo_near ahead, behind;
    } side[2];          /* left, right */
    double stop_gap;    /* m to a red light or the end of a lane that does not lead on, INFINITY: drive on */
    double model_accel; /* what SUMO's car following would choose now, perfectly; rules of right of way ignored */
} sumo_driver;

typedef struct sumo_point { /* of a lane's centre line; those of one lane are adjacent, in its direction */
    double x, y, width;     /* m */
    uint32_t lane;          /* counted over the lanes that are drawn, which are more than those of sumo_net */
    uint32_t reserved;
} sumo_point;

typedef struct sumo_line { /* at the end of a lane, for vehicles that come along heading */
    double x, y, heading;
    double width; /* 0: no vehicle drives there */
} sumo_line;

typedef struct sumo_roads { /* how the net looks: lanes that vehicles use, those inside junctions included */
    const sumo_point *point;
    const sumo_line *line; /* [n_lanes] as sumo_net numbers them */
    uint32_t n_points, reserved;
} sumo_roads;

typedef struct sumo_events {             /* since the last call of events */
    const uint32_t *collision, *braking; /* [n_signals + 1] by the signal where it happened; the last: elsewhere */
    uint32_t departed, arrived, teleported, emergency_stops;
    const char *warnings;    /* what SUMO printed, shortened; "" */
    const int64_t *collided; /* [n_collided] numbers of vehicles, one each time */
    uint32_t n_collided, reserved;
} sumo_events;

typedef struct sumo_late { /* due before the end, never let in */
    double depart_s;       /* when it should have been */
    uint32_t is_vehicle;   /* a <vehicle> element of a route file: RESCO's rule sees no other */
    uint32_t reserved;
} sumo_late;

typedef struct sumo_result { /* of the whole simulation */
    const char *tripinfo;    /* SUMO's XML, unfinished vehicles included */
    const sumo_late *late;
    uint32_t n_late, reserved;
} sumo_result;

typedef struct sumo_scenario {
    const char *path;        /* .sumocfg; options.def lists which of its options reach SUMO */
    const char *const *arg;  /* options of dtrain, as of the program sumo, stronger than those of the file */
    const char *const *more; /* options of the user; files that these name for output are written */
    uint32_t n_args, n_more;
    uint32_t outputs, reserved; /* outputs 1: SUMO writes every file that the scenario names for output */
} sumo_scenario;

#define SUMO_FACE_VERSION 5 /* one more with every change of a struct: module and environment are of one build */

typedef struct sumo_api {
    uint32_t struct_size, face;
    const char *(*error)(void);
    const char *(*version)(void); /* "SUMO 1.15.0" */
    int (*acquire)(void);         /* the one simulation of this process, for its one user; -1: another has it */
    void (*release)(void);
    /* An open simulation is closed first. The net of an equal scenario is read once. */
    int (*open)(const sumo_scenario *scenario, uint32_t seed, const sumo_net **out);
    void (*close)(void);
    int (*step)(double *time_s);
    int (*set_state)(uint32_t signal, const char *state); /* held until the next one, whatever the program shows */
    int (*get_state)(uint32_t signal, char *state);       /* [n_links + 1] */
    int (*halting)(uint32_t lane, uint32_t *n);           /* vehicles slower than 0.1 m/s */
    int (*vehicles)(const sumo_vehicle **out, uint32_t *n);
    /* Looks sight_m far. */
    int (*driver)(int64_t number, double sight_m, sumo_driver *out);
    /* From now on the caller drives it; SUMO's speed mode and lane change mode (TraCI), lane_mode -1: its own */
    int (*take)(int64_t number, int32_t speed_mode, int32_t lane_mode);
    /* In the next step: the speed, m/s, and a change of lane, 1 to the left, -1 to the right, 0 none */
    int (*drive)(int64_t number, double speed, int32_t change);
    int (*pending)(uint32_t *n); /* [n_signals + 1] due and not let in, by the first signal of their way */
    int (*events)(sumo_events *out);
    int (*finish)(sumo_result *out); /* closes the simulation */
    /* For pictures alone, while the simulation is open. roads is read when it is first asked for */
    int (*roads)(sumo_roads *out);
    int (*ahead)(int64_t number, double sight_m, sumo_near *out); /* as of driver */
    /* Of the scenario opened last: options that SUMO did not get, files that it did not write; "" for none */
    const char *(*left_out)(void);
} sumo_api;

#define SUMO_SHIM_ENTRY "dt_sumo_shim"
typedef const sumo_api *(*sumo_shim_entry)(void);

#ifdef __cplusplus
}
#endif
#endif

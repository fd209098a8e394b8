/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.scene/1" of an environment: geometry of the current state, for reports and `dtrain render`.
 *
 * Lengths in m, x to the east and y to the north, angles in rad counter-clockwise from +x. Arrays belong to the host:
 * the environment writes at most cap elements and sets n to the total; the host calls again with larger arrays. These
 * functions must not change the simulation. Threads: [worker], one instance never in two at once.
 */
#ifndef DTRAIN_EXT_SCENE_H
#define DTRAIN_EXT_SCENE_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_SCENE "dtrain.scene/1"

typedef struct dt_scene_point { /* of a lane's centre line; neighbours with the same lane are joined */
    float x, y, width;
    uint32_t lane;
} dt_scene_point;

typedef struct dt_scene_vehicle {
    float x, y, heading;        /* middle of its front */
    float length, width, speed; /* m, m, m/s */
    float risk;                 /* 0 to 1, such as dt_scene_risk; NAN: unknown */
    int32_t id;                 /* unique within the episode */
    int32_t agent;              /* place that controls it, -1: none */
    uint32_t node;              /* 1 + its row of symbol N in the last observation, 0: not observed */
} dt_scene_vehicle;

enum { DT_SCENE_RED, DT_SCENE_YELLOW, DT_SCENE_GREEN, DT_SCENE_YIELD /* green that gives way to others */ };

typedef struct dt_scene_signal { /* at the end of a lane, for vehicles that approach along `heading` */
    float x, y, heading, width;
    uint32_t state; /* DT_SCENE_* */
    int32_t agent;  /* place that controls it, -1: none */
} dt_scene_signal;

typedef struct dt_scene_roads {
    uint32_t struct_size, cap, n, reserved;
    dt_scene_point *point; /* [cap] */
} dt_scene_roads;

typedef struct dt_scene { /* a moment */
    uint32_t struct_size, cap_vehicles, n_vehicles, cap_signals, n_signals, reserved;
    double time_s; /* since the episode began */
    dt_scene_vehicle *vehicle;
    dt_scene_signal *signal;
    double delay_s; /* mean delay of the vehicles so far; NAN, as the host sets it
                       before each look: not known */
} dt_scene;

typedef struct dt_scene_labels { /* of legends, plain text */
    uint32_t struct_size, reserved;
    const char *scene;    /* "traffic" */
    const char *bodies;   /* what its vehicles are, in the plural: "segments" */
    const char *risk[4];  /* up to 0.05, 0.35, 0.7, and above */
    const char *state[4]; /* of signals, by DT_SCENE_* */
} dt_scene_labels;

typedef struct dt_scene_api {
    uint32_t struct_size, reserved;
    void (*roads)(const void *self, dt_scene_roads *out); /* after create */
    void (*capture)(const void *self, dt_scene *out);     /* after reset and step, and within each */
    /* Optional: call each after every simulated time step within a step from now on; NULL: stop calling. */
    void (*set_observer)(void *self, void (*each)(void *user), void *user);
    const dt_scene_labels *labels; /* optional */
} dt_scene_api;

/* The smaller of two risks. By the time to collision, gap over closing speed: 1 up to 1 s, 0 from 3 s on and where
 * nothing closes in. By the deceleration that avoids it, closing speed squared over twice the gap (DRAC; Cooper &
 * Ferguson 1976): 0 up to 3 m/s^2, 1 from 6 m/s^2 on. The time alone is short whenever a vehicle stops at a red light
 * or a queue, however gently. */
static inline float dt_scene_risk(double gap_m, double closing_mps)
{
    const double none_s = 3, certain_s = 1, gentle_mps2 = 3, hardest_mps2 = 6;
    if (!(closing_mps > 0)) {
        return 0;
    }
    const double by_time = (none_s - gap_m / closing_mps) / (none_s - certain_s);
    const double needed = gap_m > 0 ? closing_mps * closing_mps / (2 * gap_m) : hardest_mps2;
    const double by_braking = (needed - gentle_mps2) / (hardest_mps2 - gentle_mps2);
    const double risk = by_time < by_braking ? by_time : by_braking;
    return risk < 0 ? 0 : risk > 1 ? 1 : (float)risk;
}

#ifdef __cplusplus
}
#endif
#endif

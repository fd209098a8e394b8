/* SPDX-License-Identifier: Apache-2.0
 *
 * What vehicles did in the last seconds, as world models see it: the sequences of role world (traffic/ports.h), of the
 * agents and of the vehicle ahead of each. Poses are kept at every step of SUMO and written out at the rate that the
 * model was trained at. Nothing is kept where nobody asks for a past. Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_TRAIL_H
#define DTRAIN_ENV_SUMO_TRAIL_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/motion.h"

enum { TRAIL_OWN, TRAIL_AHEAD, TRAIL_WHO };

typedef struct trail_state { /* of one vehicle at one step */
    int64_t number;
    dt_motion_pose pose;
} trail_state;

typedef struct trail {
    const dt_host *h;
    trail_state *state;   /* [frames, cap] each frame in the order of numbers */
    int64_t *n;           /* [frames] */
    int64_t T, frames;    /* steps of a sequence; steps of SUMO that are kept */
    int64_t cap, now;     /* of a frame; how many have been kept, this episode */
    double every_s, dt_s; /* between steps of a sequence, of SUMO */
} trail;

/* T 0: nobody asks. Errors: DT_ENOMEM. fini takes what init left, done or not. */
dt_status trail_init(trail *t, const dt_host *h, int64_t T, double every_s, double dt_s);
void trail_fini(trail *t);
void trail_reset(trail *t); /* a new episode */
/* A new step of n vehicles: *frame_p has room for them, to be filled in any order before trail_close. Errors:
 * DT_ENOMEM. */
dt_status trail_open(trail *t, int64_t n, trail_state **frame_p);
void trail_close(trail *t);
/* row [T, DT_MOTION_COLUMNS] of a vehicle up to the step closed last, zeros where it was absent. */
void trail_show(const trail *t, int64_t number, float *row);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What vehicles did in the last seconds, as world models see it: the sequences of role world (traffic/ports.h), of the
 * agents and of the vehicle ahead of each. Poses are kept at every step of SUMO and written out at the rate that the
 * model was trained at. Nothing is kept where no past is needed. Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_HISTORY_H
#define DTRAIN_ENV_SUMO_HISTORY_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/motion.h"

enum { TRAIL_OWN, TRAIL_AHEAD, TRAIL_WHO };

typedef struct history_state { /* of one vehicle at one step */
    int64_t number;
    dt_motion_pose pose;
} history_state;

typedef struct history {
    const dt_host *h;
    history_state *state; /* [frames, cap] each frame in the order of numbers */
    int64_t *n;           /* [frames] */
    int64_t T, frames;    /* steps of a sequence; steps of SUMO that are kept */
    int64_t cap, now;     /* of a frame; how many have been kept, this episode */
    double every_s, dt_s; /* between steps of a sequence, of SUMO */
} history;

/* T 0: not needed. Errors: DT_ENOMEM. fini takes what init left, done or not. */
dt_status sumo_history_init(history *t, const dt_host *h, int64_t T, double every_s, double dt_s);
void sumo_history_fini(history *t);
void sumo_history_reset(history *t); /* a new episode */
/* A new step of n vehicles: *frame_p has room for them, to be filled in any order before history_end_step. Errors:
 * DT_ENOMEM. */
dt_status history_begin_step(history *t, int64_t n, history_state **frame_p);
void history_end_step(history *t);
/* row [T, DT_MOTION_COLUMNS] of a vehicle up to the step closed last, zeros where it was absent. */
void sumo_history_write(const history *t, int64_t number, float *row);

#endif

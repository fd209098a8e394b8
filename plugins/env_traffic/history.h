/* SPDX-License-Identifier: Apache-2.0
 *
 * What vehicles did in the last seconds, as world models see it: the sequences of role world (traffic/ports.h), of the
 * agents and of the vehicle ahead of each. States are kept at every step of the simulation and written out at the rate
 * that the model was trained at; between two steps of the simulation motion is taken as straight. Memory comes from
 * init; nothing is kept where the environment shows no past. Threads: as the simulation.
 */
#ifndef DTRAIN_ENV_TRAFFIC_HISTORY_H
#define DTRAIN_ENV_TRAFFIC_HISTORY_H

#include "dtrain/traffic/motion.h"
#include "sim.h"

enum { PAST_OWN, PAST_AHEAD, PAST_WHO };

typedef struct history_state { /* of a vehicle at a step */
    uint64_t step, key;        /* both right: it was there */
    double x, v, a;
    int32_t lane, reserved;
} history_state;

typedef struct history {
    const dt_host *h;
    history_state *state; /* [frames, max_vehicles] */
    int32_t *sequence;    /* [max_vehicles] of the step being shown, NET_NONE */
    int64_t T, frames, n; /* steps of a sequence; states kept of a vehicle; n of a frame */
    double every_s, dt_s; /* between steps of a sequence, of the simulation */
    uint64_t now, first;  /* step being shown; first one of the episode */
} history;

typedef struct history_view { /* where sequences go */
    float *row;               /* [S, T, DT_MOTION_COLUMNS] */
    int32_t *node;            /* [S] node of each */
    int32_t *who;             /* [places, PAST_WHO] sequence of the agent and of the vehicle ahead of it, -1: none */
} history_view;

/* Errors: DT_ENOMEM. fini takes what init left, done or not. */
dt_status history_init(history *p, const sim *s, int64_t T, double every_s);
void history_fini(history *p);
/* A new episode, before its first step is kept. */
void history_reset(history *p);
/* Keeps the state of all vehicles. Cost O(vehicles). */
void history_record(history *p, const sim *s);
/* Sequences up to the step kept last; node_of [max_vehicles]. Returns how many, at most PAST_WHO for each place. */
int64_t history_write(history *p, const sim *s, const int32_t *node_of, const history_view *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a barrier learns from a recording, for the vehicles of an anchor frame: the pairs that shields read, now and an
 * action later (traffic/features.h, pairs), and how long it takes until something dangerous happens to the vehicle:
 *
 *   time to collision below ttc_s    the gap to a vehicle ahead on its lane is less than ttc_s times the closing speed
 *   hard braking                     harder than brake_mps2
 *   collision                        it overlaps another one
 *
 * as far as the recording shows: the others are those of the store's edges, the nearest 16 within 50 m. Steps are those
 * of actions; the one with the anchor is number 0. Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_DANGER_H
#define DTRAIN_DATA_TRAJECTORY_DANGER_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/features.h"
#include "dtrain/traffic/store.h"
#include "slices.h"

#include <stdbool.h>

typedef struct danger_config {
    double action_s, brake_mps2; /* of an agent, brake_mps2 > 0 its hardest braking */
    double hazard_ttc_s, hazard_mps2;
    bool hazard_collisions;
    int64_t hazard_steps; /* so many are looked at, at least 1 */
} danger_config;

typedef struct danger {
    const dt_host *h;
    const dt_features_api *features;
    const dt_store_view *v;
    slices slices;
    danger_config config;
    int64_t every; /* frames of an action */
} danger;

enum { NODE_SPEED = 2, NODE_ACCELERATION = 3 }; /* of the node features; the acceleration is what models may see */
#define DANGER_REACH_M 101.0                    /* pairs look no further: 100 m ahead, and to adjacent lanes */
enum { DANGER_AHEAD = DT_AHEAD_PAIRS * DT_PAIR_COLUMNS, DANGER_BESIDE = DT_BESIDE_PAIRS * DT_PAIR_COLUMNS };

/* Errors: DT_ECONFIG where an action is no whole number of frames; DT_EUNSUPPORTED. */
dt_status danger_init(danger *d, const slices *s, const danger_config *c);

typedef struct danger_rows { /* of the vehicles of a frame, in its order */
    float *ahead, *beside, *next_ahead,
        *next_beside;    /* [n, DANGER_AHEAD], [n, DANGER_BESIDE]; zeros where it is gone */
    float *next_present; /* [n] 1 where it is still there */
    float *hazard_in; /* [n] steps until it is in danger, -k where k steps without are all that is known or looked at */
} danger_rows;

/* is_flipped: left is right. Errors: DT_ENOMEM, DT_EDATA (of a packed store). */
dt_status danger_read(const danger *d, int64_t scene, int64_t frame, bool is_flipped, const danger_rows *out);

#endif

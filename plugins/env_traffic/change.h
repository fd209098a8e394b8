/* SPDX-License-Identifier: Apache-2.0
 *
 * Lane changes: MOBIL (Kesting, Treiber & Helbing 2007, "General lane-changing model MOBIL for car-following models"),
 * symmetric, eqs. 3 and 5: a change needs
 *   safety      the new follower brakes by at most b_safe, and so does the changing vehicle
 *   incentive   a_c' - a_c + p (a_n' - a_n + a_o' - a_o) > threshold
 * (c the changing vehicle, n its new and o its old follower, primes after the change). Where a lane does not lead to
 * where the vehicle goes, safety alone decides, and no vehicle changes away from lanes that do. Vehicles decide about
 * once a second.
 *
 * A vehicle that must leave its lane and comes near its end looks for a gap: it follows the leader of the adjacent lane
 * as well, and the first behind the gap brakes a little for it, both by b at most. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_CHANGE_H
#define DTRAIN_ENV_TRAFFIC_CHANGE_H

#include "sim.h"

void change_step(sim *s);
/* May a vehicle be put one lane to the left (side 1) or right (-1) now: there is one, with half of s0 free before and
 * behind. What happens then is up to the caller. */
int change_is_possible(const sim *s, int32_t vehicle, int side);
/* What it would have around it then, FREE_GAP where there is none; 0 where it is not possible. */
typedef struct change_view {
    double ahead, ahead_v, behind, behind_v;
} change_view;
int change_evaluate(const sim *s, int32_t vehicle, int side, change_view *out);
/* Does it; 0 where it is not possible, or where another one came next to it in this step. Not while lanes are walked.
 * */
int change_lane_to(sim *s, int32_t vehicle, int side);
/* After the accelerations of the models: gaps are made. */
void change_cooperate(sim *s);

#endif

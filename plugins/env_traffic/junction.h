/* SPDX-License-Identifier: Apache-2.0
 *
 * Right of way: may the first vehicle of a lane enter the junction now? It may when its light allows it, when no other
 * vehicle is or will be in a place where their paths meet, when vehicles with priority come late enough (gap acceptance
 * by time), and when there is room after the junction. A vehicle that can no longer stop enters.
 *
 * Without a light, a vehicle that yields sees the other roads from net_link.visible before its line on (SUMO's
 * `visibility`), and approaches as if it had to stop there; at a stop sign it stops first. A turn off a priority road,
 * or at a green light that yields, enters the junction and waits inside, where its path meets the others
 * (net_link.hold). Vehicles that stand at their lines start in an order (junction_arbitrate): those that yield to none
 * of the others first; where all wait for each other (right before left, stop signs all around) the one that has stood
 * longest. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_JUNCTION_H
#define DTRAIN_ENV_TRAFFIC_JUNCTION_H

#include "sim.h"

/* A vehicle before a link: rest m to its line. */
typedef struct comer {
    double rest, v, want, length;
    int32_t is_first; /* of the lane that leads to the link */
} comer;
/* Which vehicles start at junctions without lights, before the accelerations of a step. */
void junction_arbitrate(sim *s);

#define STOP_MARGIN_M  1.0 /* from a waiting vehicle to its line at a light; s0 is kept from vehicles, not from lines */
#define YIELD_MARGIN_M 0.1 /* the same where it yields */

/* Distance to where the vehicle must stop, margin included: at its line, or inside the junction (net_link.hold);
 * FREE_GAP if it need not. A vehicle that is on the path of the link has a negative rest. */
double junction_stop(const sim *s, const net_link *link, const comer *by);
/* 1 also for a link over no junction. */
int junction_may_pass(const sim *s, const net_link *link, const comer *by);
/* The same for the vehicle in slot p of a lane, and its way. */
int junction_lets_pass(const sim *s, int32_t lane, int32_t p);
/* Way of the first vehicle of a lane to the next place, within SIGHT_M, where another one is on a path that crosses its
 * own; FREE_GAP where there is none. Places that it has reached itself do not count. */
double junction_stop_distance(const sim *s, int32_t lane, int32_t p);
/* Vehicles whose paths cross and that overlap: counts each meeting once, as a collision. */
void junction_check(sim *s);

#endif

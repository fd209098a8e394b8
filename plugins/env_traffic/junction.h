/* SPDX-License-Identifier: Apache-2.0
 *
 * Right of way: may the first vehicle of a lane enter the junction now? It may when its light allows it, when nobody is
 * or will be in a place where its path meets another one, when those who go first come late enough (gap acceptance by
 * time: it must be through GAP_S before they arrive), and when there is room behind the junction. Who can no longer
 * stop goes on.
 *
 * Without a light, who must yield sees the other roads from VISIBLE_M before its line on (the documented default of
 * SUMO's attribute `visibility`), and approaches so that it can still stop from there on. Vehicles that stand at their
 * lines start in an order (junction_arbitrate): those that yield to none of the others first; where all wait for each
 * other (right before left, stop signs all around) the one that has been standing longest. Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_JUNCTION_H
#define DTRAIN_ENV_TRAFFIC_JUNCTION_H

#include "sim.h"

/* A vehicle before a link: rest m to its line. */
typedef struct comer {
    double rest, v, want, length;
    int32_t is_first; /* of the lane that leads to the link */
} comer;
/* Who starts at junctions without lights, before the accelerations of a step. */
void junction_arbitrate(sim *s);

/* Without a light, is a vehicle that must yield to a main road still too far from its line to see the others? Where
 * roads are equal drivers approach more carefully. */
int junction_is_unseen(const sim *s, const net_link *link, const comer *by);
/* 1 also for a link over no junction. */
int junction_may_pass(const sim *s, const net_link *link, const comer *by);
/* The same for the vehicle in slot p of a lane, and its way. */
int junction_lets_pass(const sim *s, int32_t lane, int32_t p);
/* Way of the first vehicle of a lane to the next place, within SIGHT_M, where another one is on a path that crosses its
 * own; FREE_GAP where there is none. Places that it has reached itself do not count. */
double junction_held(const sim *s, int32_t lane, int32_t p);
/* Vehicles whose paths cross and that overlap: counts each meeting once, as a collision. */
void junction_check(sim *s);

#endif

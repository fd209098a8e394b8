/* SPDX-License-Identifier: Apache-2.0
 *
 * What agents see, in SI units, not normalised. P: the most phases a signal has (max_phases), L: lanes (max_lanes).
 *
 *   signal     "A D"   f32  P numbers: the phase shown, one-hot; 1: s since it is shown; P: s since each was green
 *                           (since the episode began, where it was not yet); then for each of L lanes, in the order of
 *                           the signal's links: 0 vehicles within near_m of the line, 1 within detection_m, 2 of these
 *                           standing, 3 their mean speed, 4 s that the one standing longest stands, 5 distance of the
 *                           first (detection_m where there is none), 6 1 where the lane has green, 7 s that a vehicle
 *                           first there has gone without the green of its link. D = 2 P + 1 + 8 L
 *                           Or what the option observation selects instead (formula.h)
 *   phases     "A P 17" f32 for each phase: the columns of columns.def
 *   service    "A P 5" f32, and with right_of_way
 *   greens     "A P L" f32
 *   foes       "A L L" f32  traffic/ports.h; links as SUMO counts those of the signal
 *   neighbour  "A 4"   i32  the nearest agents whose traffic comes here next, the agent itself where there are fewer
 *
 * A vehicle counts for the link that it takes at the next signal and for the lane of that link, on whatever lane it is
 * now; standing is slower than 0.1 m/s. With features = graph also the graph of traffic/ports.h, perception: nodes
 * "N 9", rowptr, col, edges, where the first nodes are the agents (speed and length 0, controlled), the others the
 * vehicles on the road; x and y count from the middle of the net; agent_node "A" is the node of each agent. Of more
 * than max_vehicles vehicles the ones nearest to their stop lines are kept.
 */
#ifndef DTRAIN_ENV_SUMO_OBSERVE_H
#define DTRAIN_ENV_SUMO_OBSERVE_H

#include "env_sumo.h"

/* Looks at the simulation; what it finds stays in s until the next look. Errors: DT_EIO (SUMO), DT_ENOMEM. */
dt_status read_traffic(state *s);
/* What each agent's traffic has suffered in the step that ends here, in vehicle-seconds, as rewards. */
void reward_agents(state *s, double step_s, float *reward);
/* Quantities of each agent for the user's formulas, after look and costs. cost: of the step; NULL after reset, when
 * nothing has happened yet. */
void measure_signals(state *s, double step_s, const float *cost);
/* After observe. DT_EDATA: it is not finite. */
dt_status reward_by_formula(const state *s, float *reward);
/* What the ports hold, into out [MAX_COLUMNS]; returns how many. */
uint32_t describe_columns(const state *s, dt_column *out);
/* Lanes whose traffic waits for green for longer than starve_s. */
uint32_t starving_lanes(state *s, const agent *a);
/* Writes all ports; io->mask is written already. Errors: DT_ENOMEM, those of traffic.features/1. */
dt_status observe(state *s, const dt_env_io *io);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What agents see. Ports, in SI units, not normalised:
 *
 * control = vehicles (an agent is a vehicle; symbols N vehicles, E edges between them)
 *   nodes, rowptr, col, edges   the graph of all vehicles, traffic/ports.h, perception: "N 9", "N+1", "E", "E 4"
 *   agent_node  "A"    i32  the node that the agent is, -1 where there is none
 *   centre      "N 2"  f32  mean position of all nodes, the same in every row: where positions of perception begin
 *   ego         "A 9"  f32  0 speed, 1 gap ahead, 2 speed ahead, 3 gap behind, 4 speed behind, 5 desired speed,
 *                           6 way to the stop line or lane end, 7 acceleration of the last step, 8 acceleration that
 *                           the car-following model would choose now. Gaps and ways are at most 200, and 200 where
 *                           there is none or nothing is known; the speed of a missing one is the agent's own.
 *
 *   with history_s > 0 (symbol S sequences: the agents' and those of the vehicles ahead of them)
 *   past        "S T 7" f32 motion of role world (traffic/ports.h) at the last T = history_s * history_hz steps, and 1
 *                           where the vehicle was there
 *   seq_node    "S"    i32  its node
 *   agent_seq   "A 2"  i32  the agent's own sequence, and that of the vehicle ahead; -1: none
 *
 *   ahead       "A 3 7" f32  what the agent must not run into, and with lane_actions
 *   beside      "A 4 7" f32  vehicles it must not hit after a change of lane, and vehicles that must not hit it:
 *   traffic/ports.h
 *
 * control = signals (an agent is a junction with signals)
 *   signal      "A D"  f32  Q columns: green phase, one-hot (in a transition: the one before); 1 in a transition; s
 *                           since this stage began; Q columns: s since each phase was green; yellow + all red, s; for
 *                           every lane that leads in 4 columns: vehicles within detector_m of the line, those that
 *                           stand, distance of the first to the line (detector_m where there is none), s that the
 *                           first has been standing. Q is the most phases of a signal, at least 4. Lanes arm by arm,
 *                           from the right; intersection and grid have 3 for each of 4 arms (from west, south, east,
 *                           north), so that D is 59
 *                           Or what the option observation selects instead (formula.h)
 *   phases      "A P 17" f32 for every phase: columns.def (where a signal has less phases: zeros, green_s -1)
 *   service     "A P 5" f32, control = signals alone, and with right_of_way
 *   greens      "A P L" f32
 *   foes        "A L L" f32  traffic/ports.h; links as the file of the net counts them, else in the order of lanes
 *   neighbour   "A K"  i32  the signal at the other end of each arm, the agent itself where there is none or there
 *                           are fewer; K is 4
 *
 * control = both: all of these. Rows of signals come first; of what an agent has not its row holds zeros, agent_node -1
 * and neighbour the agent itself.
 */
#ifndef DTRAIN_ENV_TRAFFIC_OBSERVE_H
#define DTRAIN_ENV_TRAFFIC_OBSERVE_H

#include "detect.h"
#include "dtrain/traffic/features.h"

enum { EGO_FEATURES = 9, N_NEIGHBOURS = 4 };
enum { SERVICE_FEATURES = 5, FOE_MERGES = 1, FOE_CROSSES = 2 };
enum { MAX_COLUMNS = 192 }; /* that are described */
enum { AHEAD_ROWS = 3, BESIDE_ROWS = 4, PAIR_FEATURES = 7 };

typedef struct graph_view { /* where the graph goes; size: live N and E */
    float *node, *edge;
    float *centre;
    int32_t *rowptr, *col, *agent_node;
    int64_t *size;
    int32_t *node_of; /* [max_vehicles] node of each vehicle, or NULL */
} graph_view;

/* frame [max_vehicles + n_places]: scratch. Errors: those of traffic.features/1. */
dt_status observe_graph(const sim *s, const dt_features_api *f, dt_vehicle *frame, const graph_view *out);
void observe_ego(const sim *s, float *ego);
void observe_ahead(const sim *s, float *ahead);
void observe_neighbours(const sim *s, float *beside);
int32_t observe_signal_width(const net *n); /* D */
/* After detect_read. signal NULL: the row is made by formulas */
void observe_signals(const sim *s, const detectors *d, float *signal, float *phases, int32_t *neighbour);
/* What the ports of vehicles and of signals hold, but for service; return how many. */
uint32_t observe_describe_signals(const net *n, const formulas *row, dt_column *out);
void observe_service(const sim *s, float *service);
void observe_right_of_way(const sim *s, float *greens, float *foes);

#endif

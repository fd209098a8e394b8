/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents that are vehicles: which vehicles become one, how it is driven, what it sees and earns. Names and meanings are
 * those of env_traffic, so that a controller goes from one to the other. Ports, in SI units, not normalised:
 *
 *   nodes, rowptr, col, edges   the graph of all vehicles, traffic/ports.h, perception: "N 9", "N+1", "E", "E 4"; of
 *                       more than max_vehicles the agents and those nearest to their stop lines are kept; x and y count
 *                       from the middle of the net
 *   centre      "N 2"  f32  mean position of the nodes
 *   agent_node  "A"    i32  the node that the agent is, -1 where there is none
 *   ego         "A 9"  f32  0 speed, 1 gap ahead, 2 speed ahead, 3 gap behind, 4 speed behind, 5 desired speed, 6 way
 *                       to the next signal or lane end, 7 acceleration of the last step, 8 acceleration that SUMO's car
 *                       following would choose now without its driver's imperfection. Gaps and ways are at most 200,
 *                       and 200 where there is none; the speed of a missing one is the agent's own
 *   ahead       "A 3 7" f32 what the agent must not run into, and with lane_actions
 *   beside      "A 4 7" f32 vehicles it must not hit after a change of lane, and vehicles that must not hit it:
 *   traffic/ports.h.
 *                       SUMO counts a vehicle that crosses the agent's way as the one ahead: row 2 of ahead is empty
 *   with history_s > 0 (symbol S sequences: the agents' and those of the vehicles ahead of them)
 *   past        "S T 7" f32 motion of role world (traffic/ports.h) at the last T = history_s * history_hz steps, and 1
 *                       where the vehicle was there
 *   seq_node    "S"    i32  its node
 *   agent_seq   "A 2"  i32  the agent's own sequence, and that of the vehicle ahead; -1: none
 *
 * A vehicle that leaves is seen a last time where it was. Errors: DT_EIO (SUMO), DT_ENOMEM, what traffic.features/1
 * reports. Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_DRIVERS_H
#define DTRAIN_ENV_SUMO_DRIVERS_H

#include "env_sumo.h"

dt_status drivers_create(state *s);
void drivers_spec(state *s, dt_env_spec *out);
dt_status drivers_reset(state *s, const dt_env_io *io, uint64_t seed);
/* DT_DONE: the episode is over */
dt_status drivers_step(state *s, const dt_env_io *io, double step_s);
void drivers_destroy(state *s);

#endif

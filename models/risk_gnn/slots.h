/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour slots: which vehicle leads, follows and is next to a vehicle, as numbers per edge and per vehicle. Nothing
 * here is learned. Soft thresholds on gap and lateral offset determine to which slot of its target an edge belongs;
 * within a slot the nearest counts:
 *
 *   logit_ek = member_k(e) (6 + 12 near(e)) + 4 self(e)      near = 1 - |gap| / 50 m, at least 0
 *   nearest_ik = sum_e softmax_e(logit_ek) [near, closing speed](e), zeros where slot k of vehicle i is empty
 *
 * An empty slot falls to the vehicle itself. Attention heads start from these logits (head k from slot k), so that
 * layer 1 reads the leader, layer 2 the leader's leader and so on along a platoon; training moves them from there. The
 * slots are the six neighbours of lane change models (Deo & Trivedi 2018), all that is ahead, and all of them.
 */
#ifndef DTRAIN_RISK_GNN_SLOTS_H
#define DTRAIN_RISK_GNN_SLOTS_H

#include "dtrain/svc/graph.h"

enum {
    SLOT_LEADER,
    SLOT_FOLLOWER,
    SLOT_LEFT_AHEAD,
    SLOT_RIGHT_AHEAD,
    SLOT_LEFT_BEHIND,
    SLOT_RIGHT_BEHIND,
    SLOT_AHEAD,
    SLOT_ALL,
    N_SLOTS
};
enum { SLOT_VALUES = 2, SLOT_FEATURES = 7 * SLOT_VALUES }; /* of every slot but SLOT_ALL */

/* edges [E,4] as traffic/ports.h scales them -> [E, N_SLOTS] */
dt_tensor *slot_logits(dt_graph *g, dt_tensor *edges);
/* -> [N, SLOT_FEATURES]; logits: what slot_logits gave */
dt_tensor *slot_nearest(dt_graph *g, dt_tensor *edges, dt_tensor *logits, dt_tensor *rowptr);

#endif

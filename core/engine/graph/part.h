/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded graph cut down before it is compiled: to some of its losses, or to some of its parameters; or cut into
 * groups, each of losses and the parameters that they move.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_PART_H
#define DTRAIN_CORE_ENGINE_GRAPH_PART_H

#include "engine/graph/graph.h"

/* Keeps the losses named, in this order, and nothing else to compute: no output. Errors: DT_EINVAL names one that was
 * not recorded, or was named twice. */
dt_status dt_graph_pick(dt_graph *g, const char *const *loss, uint32_t n) DT_NODISCARD;
/* Leaves out loss i, and with it what it alone needs. */
void dt_graph_drop(dt_graph *g, uint32_t i);
/* n groups: loss i belongs to loss[i], parameter i of the desc's table to param[i]. From now on a loss moves the
 * parameters of its own group alone: gradients flow through those of others. n: 1 to 32. */
void dt_graph_group(dt_graph *g, uint32_t n, const uint32_t *loss, const uint32_t *param);
/* Which trained parameters, of its own group, a loss depends on. param_p: [parameters of the table], of this graph's
 * desc. Errors: DT_EINVAL (no such loss), DT_ENOMEM. */
dt_status dt_graph_reach(const dt_graph *g, const char *loss, bool *param_p) DT_NODISCARD;
/* In what is compiled of this graph those with param[i] get no gradient, as if they were frozen. */
void dt_graph_hold(dt_graph *g, const bool *param);

#endif

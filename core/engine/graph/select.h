/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded graph cut down before it is compiled: to some of its losses, or to some of its parameters; or cut into
 * groups, each of losses and the parameters that they update.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_SELECT_H
#define DTRAIN_CORE_ENGINE_GRAPH_SELECT_H

#include "engine/graph/graph.h"

/* Keeps the losses named, in this order, and nothing else to compute: no output. Errors: DT_EINVAL names one that was
 * not recorded, or was named twice. */
dt_status dt_graph_select_losses(dt_graph *g, const char *const *loss, uint32_t n) DT_NODISCARD;
/* Removes loss i. */
void dt_graph_remove_loss(dt_graph *g, uint32_t i);
/* n groups: loss i belongs to loss[i], parameter i of the desc's table to param[i]. From now on a loss updates the
 * parameters of its own group only: gradients flow through those of others. n: 1 to 32. */
void dt_graph_set_groups(dt_graph *g, uint32_t n, const uint32_t *loss, const uint32_t *param);
/* Which trained parameters, of its own group, a loss depends on. param_p: [parameters of the table], of this graph's
 * desc. Errors: DT_EINVAL (no such loss), DT_ENOMEM. */
dt_status dt_graph_params_of_loss(const dt_graph *g, const char *loss, bool *param_p) DT_NODISCARD;
/* Which parameters, trained or not, any output depends on but for those named in except, which ends with NULL.
 * Errors: DT_ENOMEM. */
dt_status dt_graph_params_of_outputs(const dt_graph *g, const char *const *except, bool *param_p) DT_NODISCARD;
/* Parameters with param[i] get no gradient in plans compiled from this graph. */
void dt_graph_freeze_params(dt_graph *g, const bool *param);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How long until a cost: for every row of a rollout the steps from here to the first one of the same agent that costs.
 * Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_BUFFER_TIME_TO_COST_H
#define DTRAIN_CORE_RL_BUFFER_TIME_TO_COST_H

#include "dtrain/svc/rollout.h"
#include "rl/buffer/gae.h"

/* cost  [steps, places] of each step      flag  [steps, places] DT_STEP_*
 * out   [steps, places], written whole: 0 where the step itself costs, n where the n-th step after it is the first that
 *       does, DT_ROLLOUT_NEVER where the agent was terminated before one did, -n where n steps without cost were seen
 *       and then the rollout ended or the agent was truncated; 0 where no agent acted. */
void dt_compute_steps_to_cost(const float *cost, const uint8_t *flag, size_t steps, size_t places, float *out);

#endif

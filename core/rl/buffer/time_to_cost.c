/* SPDX-License-Identifier: Apache-2.0
 *
 * See time_to_cost.h: one pass, backwards in time.
 */
#include <config.h>

#include "rl/buffer/time_to_cost.h"

#include <stdbool.h>

void dt_compute_steps_to_cost(const float *cost, const uint8_t *flag, size_t steps, size_t places, float *out)
{
    for (size_t at = steps * places; at-- > 0;) {
        const bool goes_on = (flag[at] & (DT_STEP_TERMINATED | DT_STEP_TRUNCATED)) == 0;
        if ((flag[at] & DT_STEP_ACTED) == 0 || cost[at] > 0) {
            out[at] = 0;
        } else if (goes_on && at + places < steps * places) {
            const float next = out[at + places];
            out[at] = next < 0 ? next - 1 : next < DT_ROLLOUT_NEVER ? next + 1 : next;
        } else {
            out[at] = (flag[at] & DT_STEP_TERMINATED) != 0 ? DT_ROLLOUT_NEVER : -1;
        }
    }
}

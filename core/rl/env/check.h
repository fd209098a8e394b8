/* SPDX-License-Identifier: Apache-2.0
 *
 * What an environment wrote is looked at before anything uses it. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ENV_CHECK_H
#define DTRAIN_CORE_RL_ENV_CHECK_H

#include "rl/env/layout.h"

/* acted: [n_agents] who acted in the step just made, NULL after a reset. is_over: step returned DT_DONE.
 * Errors: DT_EPLUGIN names port or array, row and value. */
dt_status dt_check_record(const dt_layout *l, const char *record, const uint8_t *acted, bool is_over) DT_NODISCARD;

#endif

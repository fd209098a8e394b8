/* SPDX-License-Identifier: Apache-2.0
 *
 * What an environment wrote is looked at before anything uses it. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ENV_CHECK_H
#define DTRAIN_CORE_RL_ENV_CHECK_H

#include "rl/env/layout.h"

/* acted: [n_agents] agents that acted in the step just made, NULL after a reset. is_over: step returned DT_DONE.
 * Errors: DT_EPLUGIN names port or array, row and value. */
dt_status dt_check_record(const dt_layout *l, const char *record, const uint8_t *acted, bool is_over) DT_NODISCARD;

/* The record of an episode that is lost in its step: the observations of kept, the record before, stay; its agents are
 * truncated, rewards are 0 and metrics unknown. */
void dt_truncate_record(const dt_layout *l, const char *kept, char *record);
/* The name of an array that counts and differs, as bits, between two records without DT_DONE; NULL: none. */
const char *dt_compare_records(const dt_layout *l, const char *a, const char *b);

#endif

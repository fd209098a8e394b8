/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store holds, for people or as JSON: the verb `dtrain data inspect`, and the end of an import. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_INSPECT_H
#define DTRAIN_PLUGINS_TRAFFIC_INSPECT_H

#include "base/str.h"
#include "dtrain/status.h"

#include <stdbool.h>

/* Everything, with the survey of survey.h. Errors: as dt_store_open. */
dt_status dt_data_inspect(const char *store, bool json, dt_str *out) DT_NODISCARD;
/* Counts and statistics as text. Opening it checks every value; jobs: threads that do. Errors: as dt_store_open. */
dt_status dt_data_summarise(const char *store, uint32_t jobs, dt_str *out) DT_NODISCARD;

#endif

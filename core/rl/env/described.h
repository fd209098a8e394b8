/* SPDX-License-Identifier: Apache-2.0
 *
 * What an environment declares about its observations, places and choices (dt_env_spec: columns, places, choices_shown)
 * as JSON, for `dtrain show` and for exported policies. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ENV_DESCRIBED_H
#define DTRAIN_CORE_RL_ENV_DESCRIBED_H

#include "base/json.h"
#include "dtrain/plugin.h"

/* Member "columns": [ {"port", "first", "n", "stride", "name", "unit", "low", "high", "meaning"}, ... ] of a port;
 * NULL: of all. Bounds that are open are null. */
void dt_describe_columns(const dt_column *c, uint32_t n, const char *port, dt_json_out *out);
/* Member "places": [ {"name", "choices": [...]}, ... ], where the spec has them. */
void dt_describe_places(const dt_env_spec *s, dt_json_out *out);
uint32_t dt_count_choices(const dt_env_spec *s); /* of all heads */

#endif

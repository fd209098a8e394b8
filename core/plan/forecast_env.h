/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment in a plan: which one, the options that were set, how long its episodes are in steps and simulated
 * seconds, and how many of them the rounds hold. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_FORECAST_ENV_H
#define DTRAIN_CORE_PLAN_FORECAST_ENV_H

#include "plan/forecast.h"

/* Nothing for a phase without an environment. prefix stands before each line. */
void dt_forecast_env_text(const dt_stage *s, const dt_forecast *f, const char *prefix, dt_str *out);
void dt_forecast_env_json(const dt_stage *s, const dt_forecast *f, dt_json_out *o);

#endif

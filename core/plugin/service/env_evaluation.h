/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a bound environment that hold in its evaluations alone; config/evaluation_env.h. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_ENV_EVALUATION_H
#define DTRAIN_CORE_PLUGIN_SERVICE_ENV_EVALUATION_H

#include "plugin/service/stage.h"

/* set [n]: what the phase sets, the first n_phase, then what its controller makes of it; both hold in evaluations as
 * well. out [n + DT_EVALUATION_OPTIONS_MAX]: what evaluations set, the last one of a key counts; *n_out_p = 0 where
 * that is nothing but training's. Fills e's differing options. Errors: DT_ECONFIG, also where evaluation.env sets what
 * the phase sets. */
dt_status dt_env_set_evaluation_options(dt_env *e, const dt_setting *set, uint32_t n_phase, uint32_t n, dt_setting *out,
                                        uint32_t *n_out_p) DT_NODISCARD;

#endif

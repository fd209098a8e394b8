/* SPDX-License-Identifier: Apache-2.0
 *
 * Several environments in one phase (env.mix, config/mix.h): instance i of training is of entry i modulo their number.
 * All have one layout, and one isolation. Evaluations are in env.id. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_ENV_MIX_H
#define DTRAIN_CORE_PLUGIN_SERVICE_ENV_MIX_H

#include "config/mix.h"
#include "plugin/service/stage.h"

/* Reads the list into mix and n_mix of e; an evaluation apart from training has none. Errors: DT_ECONFIG,
 * DT_ENOTFOUND. */
dt_status dt_env_mix_read(dt_env *e) DT_NODISCARD;
void dt_env_mix_fini(dt_env *e);
/* Options of entry i into out [DT_MIX_OPTIONS]; set [n]: what the phase sets, which an entry cannot. */
dt_status dt_env_mix_options(const dt_env *e, uint32_t i, const dt_setting *set, uint32_t n, dt_setting *out,
                             uint32_t *n_p) DT_NODISCARD;
/* Is this spec of instance `number` the one of the first entry? Errors: DT_ECONFIG names both, and what differs. */
dt_status dt_env_mix_compare(const dt_env *e, uint32_t number, const dt_env_spec *spec) DT_NODISCARD;
/* The same of env.id, which evaluations are in. */
dt_status dt_env_mix_compare_evaluation(const dt_env *e, const dt_env_spec *spec) DT_NODISCARD;

#endif

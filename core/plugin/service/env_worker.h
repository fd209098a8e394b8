/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker process's environment: what it has to be sent, and making it there. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_ENV_WORKER_H
#define DTRAIN_CORE_PLUGIN_SERVICE_ENV_WORKER_H

#include "plugin/service/stage.h"

/* Plugin, id, seed, phase and every option of an environment in c, with overrides, the last one of a key. phase: -1 is
 * outside of phases, with the random numbers of the first. */
dt_status dt_env_write_request(const dt_config *c, uint64_t seed, int64_t phase, const dt_loaded *comp,
                               const dt_setting *overrides, uint32_t n, dt_str *out) DT_NODISCARD;
/* The program as a worker, from the first line of main: its exit code. extra: plugins that are linked in, or NULL. */
int dt_env_run_worker(const dt_plugin *extra);

#endif

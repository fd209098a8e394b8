/* SPDX-License-Identifier: Apache-2.0
 *
 * How an instance in a process of its own looks (dtrain/ext/scene.h): the host queries its worker. Of a worker that is
 * lost there is nothing to see; the step that follows reports the reason. Threads: one at a time.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_SCENE_H
#define DTRAIN_CORE_RL_ENV_PROCESS_SCENE_H

#include "dtrain/ext/scene.h"
#include "rl/env/process.h"

extern const dt_scene_api dt_process_scene; /* self: a dt_process_instance; no watch */

/* The worker's side: what the environment's own extension shows, as bytes. */
void dt_process_scene_write(const dt_scene_api *api, const void *self, uint32_t what, dt_str *out);

#endif

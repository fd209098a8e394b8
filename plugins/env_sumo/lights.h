/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents that are signals: which there are, what is shown, and the step. How they look at the traffic: observe.h.
 * Errors: DT_ECONFIG (nothing to control), DT_EINVAL (an action that is not allowed), DT_EPLUGIN (a signal changed by
 * itself), DT_EIO (SUMO), DT_ENOMEM. Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_LIGHTS_H
#define DTRAIN_ENV_SUMO_LIGHTS_H

#include "env_sumo.h"

dt_status lights_create(state *s);
void lights_spec(state *s, dt_env_spec *out);
dt_status lights_reset(state *s, const dt_env_io *io);
/* DT_DONE: the episode is over */
dt_status lights_step(state *s, const dt_env_io *io, double step_s);
void lights_destroy(state *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of env_traffic, and which of them exclude each other. Threads: any.
 */
#ifndef DTRAIN_ENV_TRAFFIC_OPTIONS_H
#define DTRAIN_ENV_TRAFFIC_OPTIONS_H

#include "sim.h"

#define STEPS_TOL 1e-6 /* action_s as a multiple of dt_s */

extern const dt_option traffic_options[];
extern const char *const traffic_controls[]; /* values of option control */
/* cfg: traffic_config. Errors: DT_ECONFIG. */
dt_status traffic_check_options(const dt_host *h, const void *cfg);
/* The formula of option reward; NULL: the delay, which is built in. */
const char *traffic_reward_text(const traffic_config *c);

#endif

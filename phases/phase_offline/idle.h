/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of phase_offline without effect. Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFLINE_IDLE_H
#define DTRAIN_PHASES_OFFLINE_IDLE_H

#include "offline.h"

/* table: the phase's options, which say what defaults are. Errors: DT_ECONFIG naming one that is not its default where
 * the others leave it nothing to say. */
dt_status offline_check_idle(const dt_host *h, const dt_option *table, const offline_config *c);

#endif

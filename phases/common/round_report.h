/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of a round that several phases make alike. Threads: [main].
 */
#ifndef DTRAIN_PHASES_COMMON_ROUND_REPORT_H
#define DTRAIN_PHASES_COMMON_ROUND_REPORT_H

#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rollout.h"

/* Seconds of a monotonic clock. */
double report_seconds_now(void);
/* charts/episodes, and means over the episodes that ended in r, if any did: charts/episodic_*, costs/NAME, env/NAME. */
void report_episodes(const dt_host *h, const dt_metrics_api *m, const dt_env_spec *e, const dt_rollout_report *r);

#endif

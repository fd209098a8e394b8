/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of costs, as users write them: "collisions:0.1, starvation:2". Threads: [main].
 */
#ifndef DTRAIN_PHASES_PHASE3_LIMITS_H
#define DTRAIN_PHASES_PHASE3_LIMITS_H

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/wiring.h"

typedef struct limits { /* of the environment's costs, in its order */
    uint8_t has[DT_ENV_MAX_COSTS];
    double at[DT_ENV_MAX_COSTS]; /* of the mean over episodes */
} limits;

/* l: zeroed before; phase: its id, for messages. Errors: DT_ECONFIG (a cost that the environment does not have, a limit
 * that is none, nothing is limited). */
dt_status limits_read(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *text);
/* As results of an evaluation, limits/<cost>, which the host compares with costs/<cost>. */
void limits_report(const limits *l, const dt_host *h, const dt_metrics_api *m, const dt_wiring *w);
/* DT_ECONFIG: the phase is over, and no episode told what cost k is. */
dt_status limits_unjudged(const dt_host *h, const char *phase, const dt_wiring *w, uint32_t k, double limit);

#endif

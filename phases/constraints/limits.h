/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of costs: "collisions:0.1, starvation:2". Threads: [main].
 */
#ifndef DTRAIN_PHASES_CONSTRAINTS_LIMITS_H
#define DTRAIN_PHASES_CONSTRAINTS_LIMITS_H

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/wiring.h"

typedef struct limits { /* of the environment's costs, in its order */
    uint8_t has[DT_ENV_MAX_COSTS];
    double at[DT_ENV_MAX_COSTS]; /* of the mean over episodes */
} limits;

/* l: zeroed before; phase: its id, for messages. Errors: DT_ECONFIG: an unknown cost, an invalid limit, no limit. */
dt_status limits_parse(limits *l, const dt_host *h, const char *phase, const dt_wiring *w, const char *text);
/* Results limits/<cost> of an evaluation, which the host compares with costs/<cost>. */
void limits_report(const limits *l, const dt_host *h, const dt_metrics_api *m, const dt_wiring *w);
/* DT_ECONFIG: the phase has ended, and cost k was never evaluated. */
dt_status limits_fail_unevaluated(const dt_host *h, const char *phase, const dt_wiring *w, uint32_t k, double limit);

/* Rounds in a row in which a cost was above its limit, this one included; rounds: those before it. */
uint64_t limits_count_rounds(uint64_t rounds, double cost, double limit);
/* excess_p [n]: (cost - aim limit) / rows of an episode; NAN: no limit, or no episode has ended (rows = 0). Returns the
 * cost with the largest excess as a share of the larger of cost and limit, the first of equals; -1: none has a limit,
 * or no episode has ended. aim: in (0,1]. */
int64_t limits_worst_excess(const limits *l, uint32_t n, double aim, const double *cost, double rows, double *excess_p);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How several ranks shared the work of a phase, in a line for people: from the records ranks/... of metrics.jsonl.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_RANKS_TEXT_H
#define DTRAIN_CORE_TELEMETRY_REPORT_RANKS_TEXT_H

#include "telemetry/report/records.h"

enum { DT_RANKS_TEXT_BYTES = 256 };

/* "3 ranks: busy 0.12 s an iteration, waiting 8.1 % of the time for each other; the slowest is 12.0 % above the mean,
 * rank 1 in 62 % of the iterations; each sends 1.2 MB": means of the phase's records. n_ranks: of the run. false:
 * nothing is recorded of them, and out is "". */
bool dt_ranks_describe_waiting(const dt_records *r, uint32_t phase, uint32_t n_ranks, char out[DT_RANKS_TEXT_BYTES]);

#endif

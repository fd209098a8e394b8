/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of one configuration: equal values of all options but the seed and those that do not change results (log,
 * report, metrics, memory, threads, workers). Their curves become one, the interquartile mean with its interval, and
 * their results one row of a table. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_GROUP_H
#define DTRAIN_CORE_TELEMETRY_REPORT_GROUP_H

#include "telemetry/report/panel.h"

enum { DT_GROUP_NAME = 96 };

/* The number of each run's group, from 0 in order of appearance, and how many there are. A run without a configuration
 * is a group of its own. */
uint32_t dt_group_number_runs(const dt_logbook *run, uint32_t n, uint32_t group[DT_PAGE_MAX_RUNS]);
/* What a group is called: its run, or what the names of its runs begin with. */
void dt_group_name(const dt_page *p, uint32_t group, char out[DT_GROUP_NAME]);
/* The one curve of n runs; false: they have no stretch in common, or only one is given. */
bool dt_group_average_curve(const dt_curve *member, uint32_t n, dt_curve *out);

#endif

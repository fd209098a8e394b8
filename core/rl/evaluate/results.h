/* SPDX-License-Identifier: Apache-2.0
 *
 * What an evaluation of a policy in its environment reports: for every number its mean and standard deviation over
 * seeds, under the names that scripts read (return, length, costs, metrics, shield). Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_EVALUATE_RESULTS_H
#define DTRAIN_CORE_RL_EVALUATE_RESULTS_H

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rollout.h"

/* One of r per seed; what is NAN in one of them is left out of its mean. */
void dt_evaluation_report_results(const dt_host *h, const dt_metrics_api *m, const dt_env_spec *spec,
                                  const uint64_t *seed, const dt_rollout_report *r, uint32_t n);
/* Returns of places, [n_seeds, n_places], means over the episodes of a seed. */
void dt_evaluation_report_places(const dt_host *h, const dt_metrics_api *m, const double *of_place, uint32_t n_seeds,
                                 uint32_t n_places);

#endif

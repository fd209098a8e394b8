/* SPDX-License-Identifier: Apache-2.0
 *
 * Aggregates of results over trainings with different seeds, as Agarwal et al. 2021 (Deep reinforcement learning at the
 * edge of the statistical precipice) recommend: the interquartile mean, and percentile bootstrap intervals. Resamples
 * come from a counter-based generator with a fixed key: the same results have the same interval. Threads: any (no
 * state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_IQM_H
#define DTRAIN_CORE_TELEMETRY_REPORT_IQM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_iqm {
    double value;     /* NAN: no result */
    double low, high; /* of its 95 % interval, NAN: fewer than two results */
} dt_iqm;

/* Results of several tasks: those of task k are value[end[k - 1]] to value[end[k] - 1], from 0 for the first. */
typedef struct dt_strata {
    const double *value;
    const uint32_t *end;
    uint32_t n; /* tasks */
} dt_strata;

/* Mean of the middle half: floor(n / 4) results are left out at each end. NAN also where memory is missing. */
double dt_iqm_compute(const double *v, uint32_t n);
/* With the interval of `resamples` bootstrap samples. */
dt_iqm dt_iqm_interval(const double *v, uint32_t n, uint32_t resamples);
/* Of all results of all tasks, each task resampled by itself (stratified bootstrap). */
dt_iqm dt_iqm_stratified(const dt_strata *s, uint32_t resamples);
/* Of a minus of b; each is resampled by itself (two strata). */
dt_iqm dt_iqm_difference(const double *a, uint32_t n_a, const double *b, uint32_t n_b, uint32_t resamples);
/* Probability that a result of a is better than one of b, 1/2 where they are equal (Agarwal et al. 2021, eq. 2): the
 * mean over tasks. Both have the same tasks, each at least one result. */
dt_iqm dt_iqm_improvement(const dt_strata *a, const dt_strata *b, bool is_min, uint32_t resamples);
/* Share of results that are tau or better: the performance profile at tau, the mean over tasks. */
dt_iqm dt_iqm_share(const dt_strata *s, double tau, bool is_min, uint32_t resamples);

#endif

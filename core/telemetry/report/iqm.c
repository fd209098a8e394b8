/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/iqm.h"

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const double TAIL = 0.025; /* of a 95 % interval, at each side */

static void sort_numbers(double *v, uint32_t n) /* few, nearly always */
{
    for (uint32_t i = 1; i < n; i++) {
        const double x = v[i];
        uint32_t k = i;
        for (; k > 0 && v[k - 1] > x; k--) {
            v[k] = v[k - 1];
        }
        v[k] = x;
    }
}

double dt_iqm_compute(const double *v, uint32_t n)
{
    double sorted[DT_IQM_MAX], sum = 0;
    const uint32_t count = n < DT_IQM_MAX ? n : DT_IQM_MAX, out = count / 4;
    memcpy(sorted, v, count * sizeof(*v));
    sort_numbers(sorted, count);
    for (uint32_t i = out; i < count - out; i++) {
        sum += sorted[i];
    }
    return count > 0 ? sum / (count - 2 * out) : (double)NAN;
}

/* IQM of resample `number` of v, n > 0. */
static double iqm_of_resample(const double *v, uint32_t n, uint32_t number, uint32_t stratum)
{
    const dt_rng_key key = {.seed = 95, .step = number, .sample = stratum};
    double drawn[DT_IQM_MAX];
    for (uint32_t i = 0; i < n; i++) {
        drawn[i] = v[(uint32_t)(dt_rng_uniform(&key, i) * n)];
    }
    return dt_iqm_compute(drawn, n);
}

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between neighbours, linear. */
static double quantile(const double *sorted, uint32_t n, double share)
{
    const double at = share * (n - 1);
    const uint32_t i = (uint32_t)at;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static dt_iqm bootstrap_interval(const double *a, uint32_t n_a, const double *b, uint32_t n_b, uint32_t resamples)
{
    const bool has_b = b != NULL;
    dt_iqm r = {dt_iqm_compute(a, n_a) - (has_b ? dt_iqm_compute(b, n_b) : 0), NAN, NAN};
    n_a = n_a < DT_IQM_MAX ? n_a : DT_IQM_MAX;
    n_b = n_b < DT_IQM_MAX ? n_b : DT_IQM_MAX;
    double *all = n_a > 1 && (!has_b || n_b > 1) && resamples > 0 ? dt_alloc_n(resamples, sizeof(*all)) : NULL;
    if (all == NULL) {
        return r;
    }
    for (uint32_t i = 0; i < resamples; i++) {
        all[i] = iqm_of_resample(a, n_a, i, 0) - (has_b ? iqm_of_resample(b, n_b, i, 1) : 0);
    }
    qsort(all, resamples, sizeof(*all), compare_values);
    r.low = quantile(all, resamples, TAIL);
    r.high = quantile(all, resamples, 1 - TAIL);
    dt_free(all);
    return r;
}

dt_iqm dt_iqm_interval(const double *v, uint32_t n, uint32_t resamples)
{
    return bootstrap_interval(v, n, NULL, 0, resamples);
}

dt_iqm dt_iqm_difference(const double *a, uint32_t n_a, const double *b, uint32_t n_b, uint32_t resamples)
{
    return bootstrap_interval(a, n_a, b, n_b, resamples);
}

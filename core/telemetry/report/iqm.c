/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/iqm.h"

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 64 }; /* results that need no memory of the heap */

static const double TAIL = 0.025; /* of a 95 % interval, at each side */

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_numbers(double *v, uint32_t n)
{
    if (n > FEW) {
        qsort(v, n, sizeof(*v), compare_values);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const double x = v[i];
        uint32_t k = i;
        for (; k > 0 && v[k - 1] > x; k--) {
            v[k] = v[k - 1];
        }
        v[k] = x;
    }
}

/* v is sorted by it. */
static double iqm_in_place(double *v, uint32_t n)
{
    const uint32_t out = n / 4;
    double sum = 0;
    sort_numbers(v, n);
    for (uint32_t i = out; i < n - out; i++) {
        sum += v[i];
    }
    return n > 0 ? sum / (n - 2 * out) : (double)NAN;
}

double dt_iqm_compute(const double *v, uint32_t n)
{
    double few[FEW], *copy = n <= FEW ? few : dt_alloc_n(n, sizeof(*copy));
    if (copy == NULL) {
        return NAN;
    }
    memcpy(copy, v, n * sizeof(*v));
    const double r = iqm_in_place(copy, n);
    if (copy != few) {
        dt_free(copy);
    }
    return r;
}

/* Between neighbours, linear. */
static double quantile(const double *sorted, uint32_t n, double share)
{
    const double at = share * (n - 1);
    const uint32_t i = (uint32_t)at;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* ---- the bootstrap ----------------------------------------------------------------------------------------------- */

/* Resample `number` of one stratum of n > 0 results. */
static void draw_resample(const double *v, uint32_t n, uint32_t number, uint32_t stratum, double *out)
{
    const dt_rng_key key = {.seed = 95, .step = number, .sample = stratum};
    for (uint32_t i = 0; i < n; i++) {
        out[i] = v[(uint32_t)(dt_rng_uniform(&key, i) * n)];
    }
}

static uint32_t count_values(const dt_strata *s)
{
    return s->n > 0 ? s->end[s->n - 1] : 0;
}

static void draw_strata(const dt_strata *s, uint32_t number, uint32_t first_stratum, double *out)
{
    for (uint32_t k = 0, begin = 0; k < s->n; begin = s->end[k++]) {
        draw_resample(s->value + begin, s->end[k] - begin, number, first_stratum + k, out + begin);
    }
}

/* A number of one or two sets of results; it may sort them. */
typedef double statistic(void *user, double *a, double *b);

/* b: none (n 0), or the second set. */
static dt_iqm bootstrap(const dt_strata *a, const dt_strata *b, statistic *fn, void *user, uint32_t resamples)
{
    const uint32_t n_a = count_values(a), n_b = count_values(b);
    double *all = dt_alloc_n(resamples, sizeof(*all)), *x = dt_alloc_n((size_t)n_a + n_b, sizeof(*x)), *y = NULL;
    dt_iqm r = {NAN, NAN, NAN};
    if (all != NULL && x != NULL) {
        y = x + n_a;
        memcpy(x, a->value, n_a * sizeof(*x));
        if (n_b > 0) {
            memcpy(y, b->value, n_b * sizeof(*y));
        }
        r.value = fn(user, x, y);
    }
    const bool is_one = n_a <= a->n || (b->n > 0 && n_b <= b->n); /* resamples would all be the same */
    for (uint32_t i = 0; i < resamples && y != NULL && !is_one; i++) {
        draw_strata(a, i, 0, x);
        draw_strata(b, i, a->n, y);
        all[i] = fn(user, x, y);
    }
    if (y != NULL && !is_one && resamples > 0) {
        qsort(all, resamples, sizeof(*all), compare_values);
        r.low = quantile(all, resamples, TAIL);
        r.high = quantile(all, resamples, 1 - TAIL);
    }
    dt_free(all);
    dt_free(x);
    return r;
}

static const dt_strata nothing = {NULL, NULL, 0};

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static double iqm_statistic(void *user, double *a, double *b)
{
    const uint32_t *n = user;
    return iqm_in_place(a, n[0]) - (n[1] > 0 ? iqm_in_place(b, n[1]) : 0);
}

dt_iqm dt_iqm_stratified(const dt_strata *s, uint32_t resamples)
{
    uint32_t n[2] = {count_values(s), 0};
    return n[0] > 0 ? bootstrap(s, &nothing, iqm_statistic, n, resamples) : (dt_iqm){NAN, NAN, NAN};
}

dt_iqm dt_iqm_interval(const double *v, uint32_t n, uint32_t resamples)
{
    const dt_strata one = {v, &n, 1};
    return dt_iqm_stratified(&one, resamples);
}

dt_iqm dt_iqm_difference(const double *a, uint32_t n_a, const double *b, uint32_t n_b, uint32_t resamples)
{
    const dt_strata x = {a, &n_a, 1}, y = {b, &n_b, 1};
    uint32_t n[2] = {n_a, n_b};
    if (n_a == 0 || n_b == 0) {
        return (dt_iqm){NAN, NAN, NAN};
    }
    return bootstrap(&x, &y, iqm_statistic, n, resamples);
}

typedef struct pair { /* of sets of results, for statistics of tasks */
    const dt_strata *a, *b;
    double tau;
    bool is_min;
} pair;

static double win_share(const double *a, uint32_t n_a, const double *b, uint32_t n_b, bool is_min)
{
    double sum = 0;
    for (uint32_t i = 0; i < n_a; i++) {
        for (uint32_t k = 0; k < n_b; k++) {
            const bool is_better = is_min ? a[i] < b[k] : a[i] > b[k];
            if (is_better || a[i] == b[k]) {
                sum += is_better ? 1 : 0.5;
            }
        }
    }
    return sum / n_a / n_b;
}

static double improvement_statistic(void *user, double *a, double *b)
{
    const pair *p = user;
    double sum = 0;
    for (uint32_t t = 0, i = 0, k = 0; t < p->a->n; i = p->a->end[t], k = p->b->end[t], t++) {
        sum += win_share(a + i, p->a->end[t] - i, b + k, p->b->end[t] - k, p->is_min);
    }
    return sum / p->a->n;
}

static double share_statistic(void *user, double *a, double *b)
{
    const pair *p = user;
    double sum = 0;
    for (uint32_t t = 0, i = 0; t < p->a->n; i = p->a->end[t++]) {
        uint32_t n = 0;
        for (uint32_t k = i; k < p->a->end[t]; k++) {
            n += p->is_min ? a[k] <= p->tau : a[k] >= p->tau;
        }
        sum += (double)n / (p->a->end[t] - i);
    }
    return sum / p->a->n;
}

dt_iqm dt_iqm_improvement(const dt_strata *a, const dt_strata *b, bool is_min, uint32_t resamples)
{
    pair p = {.a = a, .b = b, .is_min = is_min};
    return bootstrap(a, b, improvement_statistic, &p, resamples);
}

dt_iqm dt_iqm_share(const dt_strata *s, double tau, bool is_min, uint32_t resamples)
{
    pair p = {.a = s, .tau = tau, .is_min = is_min};
    return bootstrap(s, &nothing, share_statistic, &p, resamples);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of predicted futures: sums over complete windows, and their means. Constant velocity, the recorded speed
 * along the recorded heading, is the baseline on the same windows.
 *
 *   rmse(t)         = sqrt(mean |p_t - q_t|^2)        p predicted, q recorded position
 *   displacement(t) = mean |p_t - q_t|
 *   nll             = mean over windows and future steps of -log N(q; p, diag(sigma^2)), in nats
 *   coverage(t)     = share of windows with q in the region of a probability level of the prediction: an ellipse for
 *                     one future, the highest density region of a mixture (region.h), or a region with radii fitted to
 *                     held-out vehicles (radii.h)
 *   min_ade(k)      = mean over windows of the least, over the k most probable futures, mean distance over all steps
 *   min_fde(k)      = the same of the distance at the last step
 *   miss_rate(k)    = share of windows with a least last distance above 2 m
 *                     (the last three: Chang et al. 2019, Argoverse; there min_ade is of the future with the least
 *                     last distance, here each has its own least)
 * A model without several futures has one, its prediction. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_FIGURES_H
#define DTRAIN_PHASES_SCENES_FIGURES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"
#include "radii.h"
#include "region.h"

enum { METRICS_MAX_S = RADII_SECONDS, METRICS_MAX_FUTURES = 64, METRICS_LEVELS = RADII_LEVELS, METRICS_KS = 2 };
#define METRICS_MISS_M 2.0

typedef struct metrics_horizons {
    int64_t F; /* future steps */
    double step_s;
    uint32_t n_horizons;
    uint32_t step[METRICS_MAX_S]; /* future step of horizon i */
    double seconds[METRICS_MAX_S];
    const float *radii; /* [RADII_SIZE] of the regions; NULL: a Gaussian's */
} metrics_horizons;

typedef struct metrics_window {                   /* of one vehicle */
    const float *target, *future, *spread;        /* [F,2] */
    const float *futures, *spreads, *probability; /* [K,F,2] [K,F,2] [K]; NULL: future is the only one */
    int64_t K;
    double speed, acceleration; /* m/s, m/s^2, at the last step of history */
} metrics_window;

typedef struct metrics_sums { /* sums */
    double square[METRICS_MAX_S], distance[METRICS_MAX_S], cv_square[METRICS_MAX_S], cv_distance[METRICS_MAX_S];
    double ade[METRICS_KS], fde[METRICS_KS], cv_ade, nll;
    uint64_t inside[METRICS_MAX_S][METRICS_LEVELS], missed[METRICS_KS], cv_missed, n_windows;
} metrics_sums;

void metrics_horizons_init(metrics_horizons *s, int64_t F, double rate_hz);
/* The predicted distribution of a step's position, a mixture of its futures: g [METRICS_MAX_FUTURES]; returns their
 * number. */
int64_t metrics_mixture_at(const metrics_horizons *s, const metrics_window *w, int64_t step, region_gaussian *g);
/* w->K is 1 to METRICS_MAX_FUTURES if there are several futures. */
void metrics_add(metrics_sums *f, const metrics_horizons *s, const metrics_window *w);
/* Reports errors at the horizons. Errors: DT_EDIVERGED: they are not finite. */
dt_status metrics_report_errors(const metrics_sums *f, const metrics_horizons *s, const dt_host *h,
                                const dt_metrics_api *m, const char *prefix);
/* ratio [n_horizons]: rmse over constant velocity's. */
void metrics_rmse_ratio(const metrics_sums *f, const metrics_horizons *s, double *ratio);
/* Reports coverage and metrics of several futures. */
void metrics_report_futures(const metrics_sums *f, const metrics_horizons *s, const dt_host *h, const dt_metrics_api *m,
                            const char *prefix);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of predicted futures: sums over complete windows, and what they come to. Constant velocity, recorded speed
 * along the recorded heading, is held against the same windows.
 *
 *   rmse(t)         = sqrt(mean |p_t - q_t|^2)        p predicted, q recorded position
 *   displacement(t) = mean |p_t - q_t|
 *   nll             = mean over windows and future steps of -log N(q; p, diag(sigma^2)), in nats
 *   coverage(t)     = share of windows whose q lies in the region that the told distribution fills to a level: of one
 *                     future an ellipse, of several what their mixture fills (region.h); where radii were fitted
 *                     to held-out vehicles, the region that reaches as far as these (radii.h)
 *   min_ade(k)      = mean over windows of the least, over the k most probable futures, mean distance over all steps
 *   min_fde(k)      = the same of the distance at the last step
 *   miss_rate(k)    = share of windows with a least last distance above 2 m
 *                     (the last three: Chang et al. 2019, Argoverse; there min_ade is of the future with the least
 *                     last distance, here each has its own least)
 * A model without futures of its own has one, its prediction. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_FIGURES_H
#define DTRAIN_PHASES_SCENES_FIGURES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"
#include "radii.h"
#include "region.h"

enum { FIGURES_MAX_S = RADII_SECONDS, FIGURES_MAX_FUTURES = 64, FIGURES_LEVELS = RADII_LEVELS, FIGURES_KS = 2 };
#define FIGURES_MISS_M 2.0

typedef struct figures_shape {
    int64_t F; /* future steps */
    double step_s;
    uint32_t n_horizons;
    uint32_t step[FIGURES_MAX_S]; /* future step of horizon i */
    double seconds[FIGURES_MAX_S];
    const float *radii; /* [RADII_SIZE] of the regions; NULL: a Gaussian's */
} figures_shape;

typedef struct figures_window {                   /* of one vehicle */
    const float *target, *future, *spread;        /* [F,2] */
    const float *futures, *spreads, *probability; /* [K,F,2] [K,F,2] [K]; NULL: future is the only one */
    int64_t K;
    double speed, acceleration; /* m/s, m/s^2, at the last step of history */
} figures_window;

typedef struct figures { /* sums */
    double square[FIGURES_MAX_S], distance[FIGURES_MAX_S], cv_square[FIGURES_MAX_S], cv_distance[FIGURES_MAX_S];
    double ade[FIGURES_KS], fde[FIGURES_KS], cv_ade, nll;
    uint64_t inside[FIGURES_MAX_S][FIGURES_LEVELS], missed[FIGURES_KS], cv_missed, n_windows;
} figures;

void figures_shape_init(figures_shape *s, int64_t F, double rate_hz);
/* The told distribution of a step's position, of several futures their mixture: g [FIGURES_MAX_FUTURES], how many. */
int64_t figures_told(const figures_shape *s, const figures_window *w, int64_t step, region_gaussian *g);
/* w->K is 1 to FIGURES_MAX_FUTURES where there are futures. */
void figures_add(figures *f, const figures_shape *s, const figures_window *w);
/* Part of an evaluation's result: errors at the horizons. Errors: DT_EDIVERGED: they are not finite. */
dt_status figures_tell_errors(const figures *f, const figures_shape *s, const dt_host *h, const dt_metrics_api *m,
                              const char *prefix);
/* ratio [n_horizons]: rmse over constant velocity's. */
void figures_ratio(const figures *f, const figures_shape *s, double *ratio);
/* And what several futures and their ellipses come to. */
void figures_tell_futures(const figures *f, const figures_shape *s, const dt_host *h, const dt_metrics_api *m,
                          const char *prefix);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How well recorded scenes are predicted: an evaluation over a split, which counts complete windows (whole history,
 * whole future); constant velocity is computed on the same windows: recorded speed along the recorded heading.
 * Definitions and names: INTERFACES.
 *
 *   rmse(t)         = sqrt(mean |p_t - q_t|^2)        p predicted, q recorded position
 *   displacement(t) = mean |p_t - q_t|
 *   nll             = mean over windows and future steps of -log N(q; p, diag(sigma^2)), in nats
 *   auroc           = P(score of a positive > score of a negative), ties count half (Mann & Whitney 1947), at anchor
 *                     frames, without vehicles that are positive already; only where there is perception
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_ACCURACY_H
#define DTRAIN_PHASES_SCENES_ACCURACY_H

#include "pictures.h"
#include "prediction.h"

#include <stdbool.h>

enum { ACCURACY_MAX_S = 5 };

typedef struct accuracy_risk {
    float value;
    uint32_t is_positive;
} accuracy_risk;

typedef struct accuracy {
    const dt_host *h;
    const prediction *prediction; /* whose windows and models; outlives this */
    const dt_train_api *train;
    const dt_metrics_api *metrics;
    int64_t T, F;
    /* sums of an evaluation */
    uint32_t n_horizons;
    uint32_t step[ACCURACY_MAX_S]; /* future step of horizon i */
    double seconds[ACCURACY_MAX_S];
    double square[ACCURACY_MAX_S], distance[ACCURACY_MAX_S], cv_square[ACCURACY_MAX_S], cv_distance[ACCURACY_MAX_S];
    double nll;
    uint64_t n_windows;
    accuracy_risk *risk; /* owned, n_risk of cap_risk */
    uint64_t n_risk, cap_risk;
    bool has_pictures;
    pictures pictures;
} accuracy;

void accuracy_init(accuracy *a, const prediction *p, const dt_train_api *train, const dt_metrics_api *metrics);
void accuracy_fini(accuracy *a);
/* Runs the trainer's graph over data, whose part for it is prediction_record, and reports all of the above, and
 * pictures where the data says where vehicles are. Step inputs must be set. Errors: DT_EDIVERGED (what is predicted is
 * not finite), DT_ENOMEM, those of the trainer. */
dt_status accuracy_run(accuracy *a, dt_train *t, dt_data *data);

#endif

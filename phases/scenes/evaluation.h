/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation of predictions over a split, of complete windows (whole history and future). Definitions and names:
 * docs/explanation/predictions.md.
 *
 *   metrics of predictions (metrics.h), of all windows, and of each site if there are several
 *   auroc           = P(score of a positive > score of a negative), ties count half (Mann & Whitney 1947), at anchor
 *                     frames, without vehicles that are positive already; only where there is perception
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_ACCURACY_H
#define DTRAIN_PHASES_SCENES_ACCURACY_H

#include "metrics.h"
#include "pictures.h"
#include "prediction.h"

#include <stdbool.h>

enum { EVALUATION_SITES = 8 }; /* with metrics of their own */

typedef struct evaluation_risk {
    float value;
    uint32_t is_positive;
} evaluation_risk;

typedef struct evaluation {
    const dt_host *h;
    const prediction *prediction; /* whose windows and models; outlives this */
    const dt_train_api *train;
    const dt_metrics_api *metrics;
    int64_t T, F;
    metrics_horizons shape;
    /* sums of an evaluation */
    metrics_sums all, site[EVALUATION_SITES];
    evaluation_risk *risk; /* owned, n_risk of cap_risk */
    uint64_t n_risk, cap_risk;
    bool has_pictures;
    pictures pictures;
} evaluation;

void evaluation_init(evaluation *a, const prediction *p, const dt_train_api *train, const dt_metrics_api *metrics);
void evaluation_fini(evaluation *a);
/* Runs the trainer's graph (prediction_record) over data and reports all of the above, and pictures if the data has
 * poses. Step inputs must be set. Errors: DT_EDIVERGED: predictions are not finite; DT_ENOMEM, those of the trainer. */
dt_status evaluation_run(evaluation *a, dt_train *t, dt_data *data);

#endif

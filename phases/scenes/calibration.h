/* SPDX-License-Identifier: Apache-2.0
 *
 * Temperature of predicted deviations: the factor that maximises the likelihood of held-out data (after Guo et al.
 * 2017, which scales logits). One factor for all steps, as one per horizon would overfit the few held-out scenes. It is
 * part of the model (port temperature).
 *
 *   c = argmin over -1.2, -1.15, ... 0.8 of the sum over windows and horizons of -log p(q; sigma e^c)
 *
 * It uses at most CALIBRATION_SAMPLES samples, spaced evenly over the data.
 *
 * If the model has a port regions, the radii of its regions (radii.h) are then fitted to all complete windows of the
 * data. Both are one vector, the temperature first. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_CALIBRATION_H
#define DTRAIN_PHASES_SCENES_CALIBRATION_H

#include "metrics.h"
#include "prediction.h"

enum { CALIBRATION_SAMPLES = 64, CALIBRATION_FACTORS = 41 };

typedef struct calibration_found {
    double temperature; /* its mean, the logarithm of a factor */
    const float *radii; /* [RADII_SIZE] until the next call, or NULL */
} calibration_found;

typedef struct calibration {
    const dt_host *h;
    const prediction *prediction;
    const dt_train_api *train;
    dt_data *data;
    metrics_horizons shape;
    uint64_t n_samples, n_windows;
    uint64_t n_fitted; /* windows of the last fit of the radii */
    double nll[CALIBRATION_FACTORS];
    radii_counts counts;
    float *vector; /* owned: temperature [F,2], then radii [RADII_SIZE] where the model has them */
} calibration;

/* The data that is held out, folds of which training leaves one out. Errors: DT_ECONFIG (the world model has no
 * temperature), DT_ENOMEM, those of prediction_bind_data. */
dt_status calibration_init(calibration *c, prediction *p, const dt_train_api *train, int64_t folds);
void calibration_fini(calibration *c);
/* The values of the model. t as below. Errors: those of the trainer, DT_EPLUGIN (the vector has another size). */
dt_status calibration_get(calibration *c, dt_train *t, calibration_found *found);
/* Fits and sets temperature and radii. t was created with the loss "temperature" apart. Errors: those of the trainer.
 * */
dt_status calibration_run(calibration *c, dt_train *t);

#endif

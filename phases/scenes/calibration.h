/* SPDX-License-Identifier: Apache-2.0
 *
 * Temperature of predicted deviations: the factor that makes held-out data most likely (after Guo et al. 2017, who
 * scale logits). It is one for all steps: what is left out of training is a few scenes, and one by one the horizons
 * would be fitted to these. It is part of the model (port temperature), so that whoever uses the model has it.
 *
 *   c = the one of -1.2, -1.15, ... 0.8 with the least sum over windows and horizons of -log p(q; sigma e^c)
 *
 * At most CALIBRATION_SAMPLES samples are looked at for it, spread evenly over the data.
 *
 * Where the model has a port regions, the radii of its regions are fitted as well (radii.h), with the temperature that
 * was found, to all complete windows of the data. Both are one vector, the temperature first. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_CALIBRATION_H
#define DTRAIN_PHASES_SCENES_CALIBRATION_H

#include "metrics.h"
#include "prediction.h"

enum { CALIBRATION_SAMPLES = 64, CALIBRATION_FACTORS = 41 };

typedef struct calibration_found {
    double temperature; /* its mean, the logarithm of a factor: fitting moves all of it alike */
    const float *radii; /* [RADII_SIZE] until the next call, or NULL */
} calibration_found;

typedef struct calibration {
    const dt_host *h;
    const prediction *prediction;
    const dt_train_api *train;
    dt_data *data;
    metrics_horizons shape;
    uint64_t n_samples, n_windows;
    uint64_t n_fitted; /* windows that the radii are of, of the last fit */
    double nll[CALIBRATION_FACTORS];
    radii_counts counts;
    float *vector; /* owned: temperature [F,2], then radii [RADII_SIZE] where the model has them */
} calibration;

/* The data that is held out, folds of which training leaves one out. Errors: DT_ECONFIG (the world model has no
 * temperature), DT_ENOMEM, those of prediction_bind_data. */
dt_status calibration_init(calibration *c, prediction *p, const dt_train_api *train, int64_t folds);
void calibration_fini(calibration *c);
/* What the model has. t as below. Errors: those of the trainer, DT_EPLUGIN (the vector has another size). */
dt_status calibration_get(calibration *c, dt_train *t, calibration_found *found);
/* Fits and sets it. t was made with the loss "temperature" apart. Errors: those of the trainer. */
dt_status calibration_run(calibration *c, dt_train *t);

#endif

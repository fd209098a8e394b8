/* SPDX-License-Identifier: Apache-2.0
 *
 * Temperature of predicted deviations: the factor by which they would have to be multiplied, so that the regions of
 * the told distribution hold what they should of held-out data (after Guo et al. 2017, who scale logits). It is one for
 * all steps: what is left out of training is a few scenes, and one by one the horizons would be fitted to these. It is
 * part of the model (port temperature), so that whoever uses the model has it.
 *
 *   c = the one of -1.2, -1.15, ... 0.8 with the least sum over levels and horizons of (share inside - level)^2
 *
 * At most CALIBRATION_SAMPLES samples are looked at, spread evenly over the data. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_CALIBRATION_H
#define DTRAIN_PHASES_SCENES_CALIBRATION_H

#include "figures.h"
#include "prediction.h"

enum { CALIBRATION_SAMPLES = 64, CALIBRATION_FACTORS = 41, CALIBRATION_LEVELS = 4 };

typedef struct calibration {
    const dt_host *h;
    const prediction *prediction;
    const dt_train_api *train;
    dt_data *data;
    figures_shape shape;
    uint64_t n_samples, n_windows;
    uint64_t inside[FIGURES_MAX_S][CALIBRATION_FACTORS][CALIBRATION_LEVELS];
    float *temperature; /* [F,2] owned */
} calibration;

/* The data that is held out, folds of which training leaves one out. Errors: DT_ECONFIG (the world model has no
 * temperature), DT_ENOMEM, those of prediction_bind_data. */
dt_status calibration_init(calibration *c, prediction *p, const dt_train_api *train, int64_t folds);
void calibration_fini(calibration *c);
/* Its mean, the logarithm of a factor: fitting moves all of it alike. t as below. Errors: those of the trainer,
 * DT_EPLUGIN (it has another size). */
dt_status calibration_told(calibration *c, dt_train *t, double *mean_p);
/* Fits and sets it. t was made with the loss "temperature" apart. Errors: those of the trainer. */
dt_status calibration_run(calibration *c, dt_train *t);

#endif

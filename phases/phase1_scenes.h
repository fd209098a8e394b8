/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes of an evaluation of phase1_world_model, kept for pictures: of at most SCENES_KEPT samples, spread evenly over
 * the held-out data, what was recorded and what was predicted; of those the ones at fixed places in the order of their
 * error go to svc/metrics.h, picture(). So which scenes are shown depends on the data and on the model, not on chance.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_PHASE1_SCENES_H
#define DTRAIN_PHASES_PHASE1_SCENES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"

enum { SCENES_KEPT = 48, SCENES_SHOWN = 4, SCENES_VEHICLES = 64 /* of a scene, at most */ };

typedef struct scenes_slice { /* values of a slice; shapes: dtrain/shapes.h, [S,F,2] future, spread in log m */
    const float *motion, *target, *future, *spread, *pose;
    const int32_t *sample_of_seq;
    const uint8_t *complete;
    const uint64_t *sample; /* [n_samples] */
    int64_t S;
    uint32_t n_samples;
} scenes_slice;

typedef struct scenes {
    const dt_host *h;
    int64_t T, F;
    double step_s;
    uint64_t n_samples; /* of the held-out data */
    uint32_t n_scenes, n_vehicles, cap_vehicles;
    uint64_t last;              /* sample of the newest scene */
    double square[SCENES_KEPT]; /* of the error at the last step, summed over vehicles */
    uint32_t n[SCENES_KEPT];    /* vehicles */
    uint32_t *scene;            /* [n_vehicles] owned */
    float *
        number; /* [n_vehicles, ...] owned: pose 4, history T 2, future F 2, predicted F 2, spread F 2, speed 1, each */
} scenes;

/* Begins an evaluation. */
void scenes_begin(scenes *s, const dt_host *h, int64_t T, int64_t F, double step_s, uint64_t n_samples);
/* Takes what is to be kept of a slice; slices come in the order of samples. Errors: DT_ENOMEM. */
dt_status scenes_take(scenes *s, const scenes_slice *z);
/* step [n]: steps of the horizons that are marked. */
void scenes_tell(scenes *s, const dt_metrics_api *m, const uint32_t *step, uint32_t n);
void scenes_free(scenes *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes of an evaluation for pictures: recorded and predicted positions of at most PICTURES_KEPT samples, spaced
 * evenly over the held-out data. Those at fixed quantiles of the error are reported (svc/metrics.h, picture()), so the
 * choice of scenes is deterministic.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_PICTURES_H
#define DTRAIN_PHASES_SCENES_PICTURES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"

enum { PICTURES_KEPT = 48, PICTURES_SHOWN = 4, PICTURES_VEHICLES = 64 /* of a scene, at most */ };

typedef struct pictures_batch { /* values of a micro-batch; shapes: traffic/ports.h, [S,F,2] future, spread in log m */
    const float *motion, *target, *future, *spread, *pose;
    const int32_t *sample_of_seq;
    const uint8_t *complete;
    const uint64_t *sample;             /* [n_samples] */
    const float *futures, *probability; /* [S,K,F,2] [S,K], or NULL: there is one */
    const float *path;                  /* [S,P,4], or NULL: no roads are known */
    int64_t S, K, P;
    uint32_t n_samples;
} pictures_batch;

typedef struct pictures {
    const dt_host *h;
    int64_t T, F, K, P; /* K, P: of the first micro-batch; 0: none */
    double step_s;
    uint64_t n_samples; /* of the held-out data */
    uint32_t n_scenes, n_vehicles, cap_vehicles;
    uint64_t last;                /* sample of the newest scene */
    double square[PICTURES_KEPT]; /* of the error at the last step, summed over vehicles */
    uint32_t n[PICTURES_KEPT];    /* vehicles */
    uint32_t *scene;              /* [n_vehicles] owned */
    float *number;                /* [n_vehicles, ...] owned, of each: pose 4, history T 2, future F 2, predicted F 2,
                                   * spread F 2, futures K F 2, probability K, path P 2, speed 1 */
} pictures;

/* Begins an evaluation. */
void pictures_begin(pictures *s, const dt_host *h, int64_t T, int64_t F, double step_s, uint64_t n_samples);
/* Stores scenes of a micro-batch; these come in the order of samples. Errors: DT_ENOMEM. */
dt_status pictures_add(pictures *s, const pictures_batch *z);
/* step [n]: steps of the horizons that are marked. */
void pictures_report(pictures *s, const dt_metrics_api *m, const uint32_t *step, uint32_t n);
void pictures_free(pictures *s);

#endif

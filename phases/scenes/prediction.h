/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of perception and world model on recorded scenes: data, graph and losses.
 *
 * A sample is a scene at an anchor frame. Perception reads every frame of the history, its embeddings are gathered into
 * one sequence per vehicle, and the world model predicts each vehicle's future. Losses per vehicle and recorded future
 * step: "nll", the negative log-likelihood of the recorded position, "position", its squared distance to the
 * prediction, and "distance", the distance itself, which hard braking does not dominate; per vehicle and frame "risk",
 * the cross-entropy of the risk label. Unrecorded steps have weight 0, others that of step input horizon_weight [F].
 * Without perception the world model reads motion alone, and there is no risk.
 *
 * With several futures "nll" is that of their mixture, each future taken as a whole, and "position" that of their mean
 * (Bishop 1994; Chai et al. 2019):
 *
 *   nll_j = sum_f w_f -log N(q_f; m_jf, diag(sigma_jf^2))        w: weights of the steps, they sum to 1
 *   nll   = -1/n log sum_j p_j exp(-n nll_j)                     n: steps that count as independent of each other
 *
 * Training does not change the model's temperature and the radii of its regions: "nll" is of deviations without them.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_PREDICTION_H
#define DTRAIN_PHASES_SCENES_PREDICTION_H

#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/train.h"

#include <stdbool.h>

enum { PREDICTION_MORE = 8 /* data options of the caller */, PREDICTION_MAX_FUTURES = 8 };

typedef struct prediction_config {
    double history_s, horizon_s, rate_hz;
    double nll_weight, position_weight, risk_weight, distance_weight;
} prediction_config;

typedef struct prediction {
    const dt_host *h;
    const dt_bind_api *bind;
    const char *phase; /* its id, for messages */
    prediction_config config;
    int64_t T, F; /* steps of history and future */
    int64_t R, P; /* columns of lane, rows of path; 0: the data has no roads */
    dt_model *perception, *world;
    bool has_roads;      /* the world model reads them */
    int64_t K;           /* futures with probabilities; 0: one future */
    int has_temperature; /* of its deviations */
    int has_regions;     /* and radii of their regions, radii.h */
    int calibrates;      /* by the caller: records loss "temperature", its mean and 0 times the radii, of weight 0 */
    float *weight;       /* [F] owned: of the future's steps */
} prediction;

/* Errors: DT_ECONFIG: windows without a step, or of steps that are no whole ms; no loss. */
dt_status prediction_check(const dt_host *h, const char *phase, const prediction_config *c);
/* Models are NULL until the caller binds or sets them. Errors: DT_ENOMEM. */
dt_status prediction_init(prediction *p, const dt_host *h, const dt_bind_api *bind, const char *phase,
                          const prediction_config *c);
void prediction_fini(prediction *p);
/* The data of one split, cut into these windows, more [n] options of it set. Errors: those of bind, DT_ESHAPE,
 * DT_EDATA. */
dt_status prediction_bind_data(prediction *p, const char *split, const dt_setting *more, uint32_t n, dt_data **out_p);
/* The models that the configuration names. flags: DT_MODEL_* of the world model. Errors: those of bind. */
dt_status prediction_bind_perception(prediction *p);
dt_status prediction_bind_world(prediction *p, uint32_t flags);
/* Errors: those of the models. */
dt_status prediction_record(const prediction *p, dt_graph *g);
/* Trains on this many seconds of the future, at least one step, the last one by its fraction. The weights sum to one,
 * so the loss is a mean per step and does not jump when the horizon grows. *seconds_p: the horizon set; may be NULL. */
dt_status prediction_set_horizon(prediction *p, const dt_train_api *train, dt_train *t, double seconds,
                                 double *seconds_p);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * phase1_world_model: trains perception and world on recorded trajectories (phases/scenes says what they learn, and how
 * they are evaluated). Progressive horizon: only the first seconds of the future count at the beginning.
 */
#include "accuracy.h"
#include "prediction.h"

#include <string.h>

typedef struct config {
    prediction_config prediction; /* first */
    double horizon_start_s, horizon_epochs;
} config;

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    config config;
    prediction prediction;
    accuracy accuracy;
    dt_data *train_data, *eval_data;
    dt_train *trainer;
} state;

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    return prediction_check(h, "phase1_world_model", &((const config *)cfg)->prediction);
}

static dt_status need_service(const dt_host *h, const char *id, const void **out_p)
{
    *out_p = h->service(h, id);
    if (*out_p == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which phase1_world_model needs", id);
    }
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    prediction *p = &s->prediction;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_TRY_H(need_service(h, DT_SVC_BIND, (const void **)&s->bind));
    DT_TRY_H(need_service(h, DT_SVC_TRAIN, (const void **)&s->train));
    DT_TRY_H(need_service(h, DT_SVC_METRICS, (const void **)&s->metrics));
    DT_TRY_H(prediction_init(p, h, s->bind, "phase1_world_model", &s->config.prediction));
    accuracy_init(&s->accuracy, p, s->train, s->metrics);
    DT_TRY_H(prediction_bind_data(p, "train", NULL, 0, &s->train_data));
    DT_TRY_H(prediction_bind_data(p, "eval", NULL, 0, &s->eval_data));
    DT_TRY_H(prediction_bind_perception(p));
    return prediction_bind_world(p, 0);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static dt_status record(void *self, dt_graph *g)
{
    return prediction_record(&((const state *)self)->prediction, g);
}

static dt_status start(void *self)
{
    state *s = self;
    dt_model *const models[] = {s->prediction.perception, s->prediction.world};
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = 2,
                                .user = s,
                                .record = record,
                                .data = s->train_data,
                                .models = models};
    return s->train->create(s->h, &desc, &s->trainer);
}

/* Linear in epochs from horizon_start_s to all of it. */
static double horizon_at(const config *c, double epoch)
{
    const double all = c->prediction.horizon_s;
    return epoch < c->horizon_epochs && c->horizon_start_s < all
               ? c->horizon_start_s + (all - c->horizon_start_s) * epoch / c->horizon_epochs
               : all;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, steps_per_epoch = 0;
    double seconds = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &steps_per_epoch));
    const double epoch = steps_per_epoch > 0 ? (double)step / (double)steps_per_epoch : 0.0;
    DT_TRY_H(prediction_set_horizon(&s->prediction, s->train, s->trainer, horizon_at(&s->config, epoch), &seconds));

    dt_step_report r = {.struct_size = sizeof(r)};
    const dt_status st = s->train->step(s->trainer, &r);
    if (st < 0) {
        return st;
    }
    out->step = r.step;
    out->steps = r.steps;
    out->epoch = r.epoch;
    out->epochs = r.epochs;
    out->samples = r.samples;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = r.epoch_end;
    s->metrics->scalar(s->h, "charts/horizon_s", seconds);
    return st;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    /* the graph reads it, the figures do not depend on it */
    DT_TRY_H(prediction_set_horizon(&s->prediction, s->train, s->trainer, s->config.prediction.horizon_s, NULL));
    DT_TRY_H(accuracy_run(&s->accuracy, s->trainer, s->eval_data));
    out->evaluated = 1;
    return DT_OK;
}

static void stop(void *self)
{
    state *s = self;
    if (s->trainer != NULL) {
        s->train->destroy(s->trainer);
        s->trainer = NULL;
    }
}

static void destroy(void *self)
{
    state *s = self;
    if (s->h == NULL) {
        return; /* create did not begin */
    }
    stop(s);
    accuracy_fini(&s->accuracy);
    prediction_fini(&s->prediction);
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static const dt_option options[] = {
    DT_OPTION(prediction_config, history_s, DT_OPT_F64, "3", "s", 0.05, 60, NULL,
              "history that a vehicle's future is told from"),
    DT_OPTION(prediction_config, horizon_s, DT_OPT_F64, "5", "s", 0.05, 60, NULL, "future that is predicted"),
    DT_OPTION(prediction_config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL,
              "steps per second of history and future"),
    DT_OPTION(config, horizon_start_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "part of the future that counts at the start"),
    DT_OPTION(config, horizon_epochs, DT_OPT_F64, "10", "epochs", 0, 1e6, NULL,
              "epochs until all of the future counts, growing linearly; 0 = from the start"),
    DT_OPTION(prediction_config, nll_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL,
              "weight of the likelihood of the recorded positions"),
    DT_OPTION(prediction_config, position_weight, DT_OPT_F64, "1", "1/m^2", 0, 1e6, NULL,
              "weight of the squared distance to the recorded positions: the likelihood alone listens to vehicles that "
              "stand, whose sigma is small, and hardly to the others"),
    DT_OPTION(prediction_config, risk_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL,
              "weight of the cross-entropy of the risk label"),
    DT_OPTION_END};

static const void *extension(const char *id)
{
    /* the original guide's phase 1 */
    static const char *const defaults[] = {"models.perception=risk_gnn",  "models.world=world_lstm",
                                           "data.source=data_trajectory", "data.batch=64",
                                           "training.epochs=50",          "training.optimizer=adamw",
                                           "training.learning_rate=1e-3", "training.weight_decay=1e-4",
                                           "training.gradient_clip=1.0",  "training.warmup_epochs=5",
                                           "training.scheduler=cosine",   "training.t_max=0",
                                           "training.eta_min=1e-6",       "training.eval_interval=10",
                                           "training.save_interval=5",    NULL};
    return strcmp(id, "dtrain.defaults/1") == 0 ? (const void *)defaults : NULL;
}

static const dt_phase_ops ops = {.struct_size = sizeof(dt_phase_ops),
                                 .create = create,
                                 .start = start,
                                 .iterate = iterate,
                                 .evaluate = evaluate,
                                 .stop = stop,
                                 .destroy = destroy};

static const dt_component component = {.struct_size = sizeof(dt_component),
                                       .kind = DT_KIND_PHASE,
                                       .id = "phase1_world_model",
                                       .summary =
                                           "learns to predict vehicles and their risk from recorded trajectories",
                                       .reference = "Deo & Trivedi 2018 (protocol: 3 s history, 5 s future, 5 Hz)",
                                       .flags = DT_COMP_DETERMINISTIC,
                                       .config_size = sizeof(config),
                                       .state_size = sizeof(state),
                                       .options = options,
                                       .check = check,
                                       .ops = &ops,
                                       .extension = extension};

DT_PLUGIN_DEFINE_ONE(component, "phase1_world_model", "1.0", "dtrain", "Apache-2.0");

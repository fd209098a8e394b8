/* SPDX-License-Identifier: Apache-2.0
 *
 * phase1_world_model: trains perception and world model on recorded trajectories; losses and evaluation are in scenes/.
 * Progressive horizon (curriculum): at the start only the first seconds of the future are trained on.
 */
#include "scenes/evaluation.h"
#include "scenes/calibration.h"
#include "scenes/normalise.h"
#include "scenes/prediction.h"

#include "dtrain/svc/comm.h"

#include <stdio.h>
#include <string.h>

typedef struct config {
    prediction_config prediction; /* first */
    double horizon_start_s, horizon_epochs;
    int64_t calibration_folds;
    uint8_t refit_normalisation, reserved[7];
} config;

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    config config;
    prediction prediction;
    evaluation evaluation;
    calibration calibration;
    dt_data *train_data, *eval_data;
    dt_train *trainer;
    bool is_growth_logged, is_uncalibrated_logged, is_normalised;
} state;

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    return prediction_check(h, "phase1_world_model", &c->prediction);
}

static dt_status bind_calibration(state *s)
{
    prediction *p = &s->prediction;
    if (!p->has_temperature) {
        return DT_FAIL_H(s->h, DT_ECONFIG,
                         "phase1_world_model.calibration_folds is %lld, but the world model has no temperature to fit; "
                         "set its option calibrated, as world_lstm and world_gru have it, or calibration_folds to 0",
                         (long long)s->config.calibration_folds);
    }
    p->calibrates = 1;
    return calibration_init(&s->calibration, p, s->train, s->config.calibration_folds);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    prediction *p = &s->prediction;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, "phase1_world_model");
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, "phase1_world_model");
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, "phase1_world_model");
    DT_TRY_H(prediction_init(p, h, s->bind, "phase1_world_model", &s->config.prediction));
    evaluation_init(&s->evaluation, p, s->train, s->metrics);
    char folds[24];
    snprintf(folds, sizeof(folds), "%lld", (long long)s->config.calibration_folds);
    const dt_setting left_out = {"calibration_folds", folds};
    DT_TRY_H(prediction_bind_data(p, "train", &left_out, s->config.calibration_folds > 0, &s->train_data));
    DT_TRY_H(prediction_bind_data(p, "eval", NULL, 0, &s->eval_data));
    DT_TRY_H(prediction_bind_perception(p));
    DT_TRY_H(prediction_bind_world(p, 0));
    return s->config.calibration_folds > 0 ? bind_calibration(s) : DT_OK;
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
                                .manual_loss = s->prediction.calibrates ? "temperature" : NULL,
                                .models = models};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    return prediction_set_horizon(&s->prediction, s->train, s->trainer, s->config.prediction.horizon_s, NULL);
}

/* Linear in epochs from horizon_start_s to horizon_s. */
static double horizon_at(const config *c, double epoch)
{
    const double all = c->prediction.horizon_s;
    return epoch < c->horizon_epochs && c->horizon_start_s < all
               ? c->horizon_start_s + (all - c->horizon_start_s) * epoch / c->horizon_epochs
               : all;
}

/* A final horizon below this share is reported: evaluations include seconds that were hardly trained on. The report has
 * the same limit. */
static const double WHOLE_HORIZON_SHARE = 0.95;

/* Once, by one rank: a growing horizon makes the loss of the first epochs rise. The report explains it at its curve. */
static void log_horizon_growth(state *s, double epoch, double epochs)
{
    const dt_comm_api *comm = s->h->service(s->h, DT_SVC_COMM);
    const double all = s->config.prediction.horizon_s;
    if (s->is_growth_logged || horizon_at(&s->config, epoch) >= all || (comm != NULL && comm->rank(s->h) != 0)) {
        return;
    }
    dt_logf(s->h, 2,
            "the horizon grows from %g s to %g s in %g epochs (curriculum), and predictions further ahead have larger "
            "errors: the loss may rise while the model improves; evaluations always use the whole horizon",
            s->config.horizon_start_s, all, s->config.horizon_epochs);
    if (epochs > 0 && horizon_at(&s->config, epochs) < WHOLE_HORIZON_SHARE * all) {
        dt_logf(s->h, 1,
                "training ends after %.4g epochs with a horizon of %.4g s of %g s (horizon_epochs = %g): later seconds "
                "are evaluated but never trained; set phase1_world_model.horizon_epochs to at most %.4g, or train "
                "longer",
                epochs, horizon_at(&s->config, epochs), all, s->config.horizon_epochs, epochs);
    }
    s->is_growth_logged = true;
}

/* Once, by one rank: the temperature of the model is not fitted. */
static void warn_uncalibrated(state *s)
{
    const dt_comm_api *comm = s->h->service(s->h, DT_SVC_COMM);
    if (s->is_uncalibrated_logged || !s->prediction.has_temperature || s->prediction.calibrates ||
        (comm != NULL && comm->rank(s->h) != 0)) {
        return;
    }
    dt_logf(s->h, 1,
            "the world model's option calibrated is set, but phase1_world_model.calibration_folds is 0: its "
            "temperature stays unchanged; set calibration_folds to fit it, or calibrated to false");
    s->is_uncalibrated_logged = true;
}

static dt_status calibrate(state *s)
{
    calibration_found found;
    DT_TRY_H(calibration_run(&s->calibration, s->trainer));
    DT_TRY_H(calibration_get(&s->calibration, s->trainer, &found));
    s->metrics->scalar(s->h, "calibration/temperature", found.temperature);
    s->metrics->scalar(s->h, "calibration/windows", (double)s->calibration.n_fitted);
    return DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, steps_per_epoch = 0;
    double seconds = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &steps_per_epoch));
    if (step == 0 && !s->is_normalised) { /* weights of other runs are loaded */
        DT_TRY_H(normalise_fit(&s->prediction, s->train, s->trainer, s->train_data, s->config.refit_normalisation));
        s->is_normalised = true;
    }
    const double epoch = steps_per_epoch > 0 ? (double)step / (double)steps_per_epoch : 0.0;
    DT_TRY_H(prediction_set_horizon(&s->prediction, s->train, s->trainer, horizon_at(&s->config, epoch), &seconds));
    log_horizon_growth(s, epoch, steps_per_epoch > 0 ? (double)steps / (double)steps_per_epoch : 0.0);
    warn_uncalibrated(s);
    const dt_status st = dt_train_iterate(s->train, s->trainer, out);
    if (st >= 0) {
        s->metrics->scalar(s->h, "charts/horizon_s", seconds);
    }
    if (st >= 0 && s->prediction.calibrates && (out->epoch_end || st == DT_DONE)) {
        DT_TRY_H(calibrate(s));
    }
    return st;
}

/* Radii at the last second, of each class of vehicles. */
static void report_radii(const state *s, const float *radii)
{
    const uint32_t n = s->evaluation.shape.n_horizons;
    for (uint32_t k = 0; k < RADII_CLASSES && n > 0; k++) {
        char key[32];
        double radius[RADII_LEVELS];
        for (uint32_t l = 0; l < RADII_LEVELS; l++) {
            radius[l] = radii_get(radii, k, n - 1, l);
        }
        snprintf(key, sizeof(key), "regions/%s", radii_class_name[k]);
        s->metrics->report(s->h, key, radius, RADII_LEVELS);
    }
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    calibration_found found = {0};
    /* the graph reads it; metrics do not depend on it */
    DT_TRY_H(prediction_set_horizon(&s->prediction, s->train, s->trainer, s->config.prediction.horizon_s, NULL));
    if (s->prediction.calibrates) {
        DT_TRY_H(calibration_get(&s->calibration, s->trainer, &found));
    }
    s->evaluation.shape.radii = found.radii;
    DT_TRY_H(evaluation_run(&s->evaluation, s->trainer, s->eval_data));
    if (s->prediction.calibrates) {
        s->metrics->report(s->h, "temperature", &found.temperature, 0);
    }
    if (found.radii != NULL) {
        report_radii(s, found.radii);
    }
    out->evaluated = 1;
    return DT_OK;
}

DT_STOP_DEFINE(stop, state);

static void destroy(void *self)
{
    state *s = self;
    if (s->h == NULL) {
        return; /* create did not begin */
    }
    stop(s);
    evaluation_fini(&s->evaluation);
    calibration_fini(&s->calibration);
    prediction_fini(&s->prediction);
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static const dt_option options[] = {
    DT_OPTION(prediction_config, history_s, DT_OPT_F64, "3", "s", 0.05, 60, NULL,
              "history from which a vehicle's future is predicted"),
    DT_OPTION(prediction_config, horizon_s, DT_OPT_F64, "5", "s", 0.05, 60, NULL, "future that is predicted"),
    DT_OPTION(prediction_config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL,
              "steps per second of history and future"),
    DT_OPTION(config, horizon_start_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "part of the future in the loss at the start"),
    DT_OPTION(config, horizon_epochs, DT_OPT_F64, "10", "epochs", 0, 1e6, NULL,
              "epochs until the loss covers all of the future, growing linearly; 0 = from the start"),
    DT_OPTION(
        config, calibration_folds, DT_OPT_I64, "0", "1", 0, 1000, NULL,
        "after every epoch fit temperature and regions of a calibrated world model to one of this many folds, which "
        "training leaves out; 1: to the training scenes, which suffices without overfitting; 0: do not fit"),
    DT_OPTION(config, refit_normalisation, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "refit a loaded perception with normalise = \"store\" to these recordings before the first step; false: "
              "keep its normalisation"),
    DT_OPTION(prediction_config, nll_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL,
              "weight of the likelihood of the recorded positions"),
    DT_OPTION(prediction_config, position_weight, DT_OPT_F64, "1", "1/m^2", 0, 1e6, NULL,
              "weight of the squared distance to the recorded positions: the likelihood alone is dominated by standing "
              "vehicles, whose sigma is small"),
    DT_OPTION(prediction_config, distance_weight, DT_OPT_F64, "0", "1/m", 0, 1e6, NULL,
              "weight of the distance to the recorded positions; use it instead of position_weight for unseen roads: "
              "squares are dominated by hard braking, which differs between roads"),
    DT_OPTION(prediction_config, risk_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL,
              "weight of the cross-entropy of the risk label"),
    DT_OPTION_END};

/* the original guide's phase 1 */
DT_DEFAULTS_DEFINE(defaults, "models.perception=risk_gnn", "models.world=world_lstm", "data.source=data_trajectory",
                   "data.batch=64", "training.epochs=50", "training.optimizer=adamw", "training.learning_rate=1e-3",
                   "training.weight_decay=1e-4", "training.gradient_clip=1.0", "training.warmup_epochs=5",
                   "training.scheduler=cosine", "training.t_max=0", "training.eta_min=1e-6",
                   "training.eval_interval=10", "training.save_interval=5");

/* A site has the same results; their text is not repeated. */
#define SITES(KEY, GROUP, UNIT, BETTER, TEXT)                                                                          \
    "sites/*/" KEY "||" UNIT "|" BETTER "|", KEY "|" GROUP "|" UNIT "|" BETTER "|" TEXT
static const char *const results[] = {
    SITES("samples", "predicted positions", "windows", "", "that were evaluated"),
    SITES("horizon_s", "predicted positions", "s", "", "ahead: columns of the rows below"),
    SITES("rmse_m", "predicted positions", "m", "lower", "root mean square error"),
    SITES("displacement_m", "predicted positions", "m", "lower", "mean distance to the recorded position"),
    "rmse_over_cv|predicted positions||lower|rmse_m divided by cv_rmse_m",
    SITES("cv_rmse_m", "predicted positions", "m", "", "rmse_m at constant velocity"),
    SITES("cv_displacement_m", "predicted positions", "m", "", "displacement_m at constant velocity"),
    SITES("nll", "predicted positions", "nats", "lower", "negative log-likelihood"),
    SITES("coverage_*", "uncertainty", "share", "", "of recorded positions in the region of this percentage"),
    SITES("reliability/level", "uncertainty: reliability", "", "", "probability of a region"),
    SITES("reliability/share", "uncertainty: reliability", "", "", "of recorded positions in it; best at the level"),
    SITES("min_ade_*", "most probable futures", "m", "lower", "mean distance of the best of this many"),
    SITES("min_fde_*", "most probable futures", "m", "lower", "the same at the last moment"),
    SITES("miss_rate_*", "most probable futures", "share", "lower", "of windows in which none ends within 2 m"),
    SITES("cv_ade", "most probable futures", "m", "", "mean distance at constant velocity"),
    SITES("cv_miss_rate", "most probable futures", "share", "", "of windows missed at constant velocity"),
    "risk_auroc|risk label||higher|area under the ROC curve; 0.5 is chance",
    "risk_prevalence|risk label|share||of vehicles with the label",
    "risk_samples|risk label|vehicles||",
    "temperature|calibration|||factor on deviations, found on a part of the held-out recordings",
    "regions/*|calibration|||radii in deviations at the last second, by level",
    NULL};

static const void *extension(const char *id)
{
    return strcmp(id, DT_EXT_RESULTS) == 0 ? (const void *)results : defaults(id);
}

DT_PHASE_DEFINE(component, "phase1_world_model", "learns to predict vehicles and their risk from recorded trajectories",
                "Deo & Trivedi 2018 (protocol: 3 s history, 5 s future, 5 Hz)", config, state, options,
                DT_OPS(.create = create, .start = start, .iterate = iterate, .evaluate = evaluate, .stop = stop,
                       .destroy = destroy),
                .flags = DT_COMP_DETERMINISTIC, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase1_world_model", "1.0", "dtrain", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * phase1_world_model: trains perception and world on recorded trajectories.
 *
 * A sample is a scene at an anchor frame. Perception sees every frame of the history, its embeddings are gathered into
 * one sequence per vehicle, the world model gives each vehicle's future. Loss per vehicle and recorded future step: the
 * negative log-likelihood of the recorded position and its squared distance to the prediction (progressive: only the
 * first seconds count at the beginning), and
 * per vehicle and frame the cross-entropy of the risk label. What was not recorded has weight 0.
 *
 * Evaluation runs over the eval split and counts complete windows (whole history, whole future); constant velocity is
 * computed on the same windows: recorded speed along the recorded heading. Definitions and names: INTERFACES.
 *
 *   rmse(t)         = sqrt(mean |p_t - q_t|^2)        p predicted, q recorded position
 *   displacement(t) = mean |p_t - q_t|
 *   nll             = mean over windows and future steps of -log N(q; p, diag(sigma^2)), in nats
 *   auroc           = P(score of a positive > score of a negative), ties count half (Mann & Whitney 1947), at anchor
 *                     frames, without vehicles that are positive already
 */
#include "phase1_scenes.h"

#include "dtrain/svc/bind.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/train.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOTION = 6, MOTION_SPEED = 4, AXES = 2, MAX_HORIZON_S = 5, TEXT = 48 };
enum { RISK_NEGATIVE, RISK_POSITIVE, RISK_ALREADY, RISK_UNKNOWN }; /* values of risk_state */
#define HALF_LOG_2PI 0.91893853320467274178

typedef struct config {
    double history_s, horizon_s, rate_hz;
    double horizon_start_s, horizon_epochs;
    double nll_weight, position_weight, risk_weight;
} config;

typedef struct score {
    float value;
    uint32_t is_positive;
} score;

/* Sums of an evaluation. */
typedef struct tally {
    uint32_t n_horizons;
    uint32_t step[MAX_HORIZON_S]; /* future step of horizon i */
    double seconds[MAX_HORIZON_S];
    double square[MAX_HORIZON_S], distance[MAX_HORIZON_S], cv_square[MAX_HORIZON_S], cv_distance[MAX_HORIZON_S];
    double nll;
    uint64_t n_windows;
    score *risk; /* owned, n_risk of cap_risk */
    uint64_t n_risk, cap_risk;
} tally;

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    config config;
    int64_t T, F; /* steps of history and future */
    dt_data *train_data, *eval_data;
    dt_model *model[2]; /* perception, world */
    dt_train *trainer;
    float *horizon_weight; /* [F], owned */
    tally tally;
    bool has_scenes;
    scenes scenes;
} state;

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static int64_t steps_of(double seconds, double rate_hz)
{
    return llround(seconds * rate_hz);
}

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    const double dt_ms = 1000.0 / c->rate_hz;
    if (fabs(dt_ms - round(dt_ms)) > 1e-6) {
        return DT_FAIL_H(h, DT_ECONFIG, "phase1_world_model.rate_hz %g: a step of %g ms is not a whole number of ms",
                         c->rate_hz, dt_ms);
    }
    if (steps_of(c->history_s, c->rate_hz) < 1 || steps_of(c->horizon_s, c->rate_hz) < 1) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "phase1_world_model: history_s %g and horizon_s %g must each hold a step at rate_hz %g",
                         c->history_s, c->horizon_s, c->rate_hz);
    }
    if (c->nll_weight <= 0 && c->position_weight <= 0 && c->risk_weight <= 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "phase1_world_model: nll_weight, position_weight and risk_weight are all 0: nothing to train");
    }
    return DT_OK;
}

/* The data of one split, cut into this phase's windows. Errors: those of bind, DT_ESHAPE, DT_EDATA. */
static dt_status bind_data(state *s, const char *split, dt_data **out_p)
{
    char number[3][TEXT];
    snprintf(number[0], TEXT, "%.9g", s->config.history_s);
    snprintf(number[1], TEXT, "%.9g", s->config.horizon_s);
    snprintf(number[2], TEXT, "%.9g", s->config.rate_hz);
    const dt_setting set[] = {
        {"split", split}, {"history_s", number[0]}, {"horizon_s", number[1]}, {"rate_hz", number[2]}};
    dt_data *d = NULL;
    DT_TRY_H(s->bind->data(s->h, set, 4, &d));

    static const char *const names[] = {"nodes",       "rowptr",        "col",      "edges",   "risk_label",
                                        "risk_weight", "risk_state",    "seq_row",  "present", "motion",
                                        "target",      "target_weight", "complete", "row_key", "seq_key"};
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (s->bind->data_field(d, names[i]) == NULL) {
            return DT_FAIL_H(s->h, DT_ESHAPE,
                             "the data has no field %s, which phase1_world_model reads: set data.source to a component "
                             "that gives trajectory windows, such as data_trajectory",
                             names[i]);
        }
    }
    const int64_t T = s->bind->port_dim(s->bind->data_field(d, "seq_row"), 0);
    const int64_t F = s->bind->port_dim(s->bind->data_field(d, "target"), 1);
    if (T != s->T || F != s->F) {
        return DT_FAIL_H(s->h, DT_ESHAPE,
                         "split %s has windows of %lld + %lld steps, phase1_world_model asked for %lld + %lld "
                         "(history_s %g, horizon_s %g, rate_hz %g)",
                         split, (long long)T, (long long)F, (long long)s->T, (long long)s->F, s->config.history_s,
                         s->config.horizon_s, s->config.rate_hz);
    }
    if (s->bind->data_count(d) == 0) {
        return DT_FAIL_H(s->h, DT_EDATA,
                         "split %s of the data has no samples: give the store more scenes or change the split", split);
    }
    *out_p = d;
    return DT_OK;
}

static dt_status bind_perception(state *s)
{
    static const dt_port offers[] = {{"nodes", "N 9", DT_F32, 0},
                                     {"rowptr", "N+1", DT_I32, 0},
                                     {"col", "E", DT_I32, 0},
                                     {"edges", "E 4", DT_F32, 0},
                                     {"row_key", "N", DT_I64, 0}};
    static const dt_port needs[] = {{"embedding", "N H", DT_F32, 0}, {"risk", "N", DT_F32, 0}};
    const dt_model_want want = {.struct_size = sizeof(want),
                                .role = "perception",
                                .offers = offers,
                                .n_offers = 5,
                                .needs = needs,
                                .n_needs = 2};
    return s->bind->model(s->h, &want, &s->model[0]);
}

static dt_status bind_world(state *s)
{
    const int64_t H = s->bind->port_dim(s->bind->model_output(s->model[0], "embedding"), 1);
    const dt_dim dims[] = {{"H", H}, {"T", s->T}, {"F", s->F}, {"dt_ms", llround(1000.0 / s->config.rate_hz)}};
    char text[5][TEXT];
    snprintf(text[0], TEXT, "%lld S %lld", (long long)s->T, (long long)H);
    snprintf(text[1], TEXT, "%lld S %d", (long long)s->T, MOTION);
    snprintf(text[2], TEXT, "%lld S", (long long)s->T);
    snprintf(text[3], TEXT, "S %lld %d", (long long)s->F, AXES);
    snprintf(text[4], TEXT, "S %lld", (long long)H);
    const dt_port offers[] = {{"history", text[0], DT_F32, 0},
                              {"latest", text[4], DT_F32, 0},
                              {"motion", text[1], DT_F32, 0},
                              {"present", text[2], DT_F32, 0},
                              {"seq_key", "S", DT_I64, 0}};
    const dt_port needs[] = {{"future", text[3], DT_F32, 0}, {"spread", text[3], DT_F32, 0}};
    const dt_model_want want = {.struct_size = sizeof(want),
                                .n_dims = 4,
                                .role = "world",
                                .dims = dims,
                                .offers = offers,
                                .needs = needs,
                                .n_offers = 5,
                                .n_needs = 2};
    return s->bind->model(s->h, &want, &s->model[1]);
}

static dt_status need_service(const dt_host *h, const char *id, const void **out_p)
{
    *out_p = h->service(h, id);
    if (*out_p == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which phase1_world_model needs", id);
    }
    return DT_OK;
}

/* Horizons of 1, 2, ... seconds that fall on a step. */
static void tally_init(tally *t, const config *c, int64_t F)
{
    for (int second = 1; second <= MAX_HORIZON_S; second++) {
        const double steps = second * c->rate_hz;
        if (fabs(steps - round(steps)) < 1e-6 && llround(steps) <= F) {
            t->step[t->n_horizons] = (uint32_t)llround(steps) - 1;
            t->seconds[t->n_horizons++] = second;
        }
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_TRY_H(need_service(h, DT_SVC_BIND, (const void **)&s->bind));
    DT_TRY_H(need_service(h, DT_SVC_TRAIN, (const void **)&s->train));
    DT_TRY_H(need_service(h, DT_SVC_METRICS, (const void **)&s->metrics));
    s->T = steps_of(s->config.history_s, s->config.rate_hz);
    s->F = steps_of(s->config.horizon_s, s->config.rate_hz);
    s->horizon_weight = s->h->alloc(s->h, (uint64_t)s->F * sizeof(*s->horizon_weight));
    if (s->horizon_weight == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for the weights of %lld future steps", (long long)s->F);
    }
    tally_init(&s->tally, &s->config, s->F);
    DT_TRY_H(bind_data(s, "train", &s->train_data));
    DT_TRY_H(bind_data(s, "eval", &s->eval_data));
    DT_TRY_H(bind_perception(s));
    return bind_world(s);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static dt_status record(void *self, dt_graph *g)
{
    state *s = self;
    const dt_graph_api *api = g->api;
    const dt_named seen[] = {{"nodes", api->input(g, "nodes")},
                             {"rowptr", api->input(g, "rowptr")},
                             {"col", api->input(g, "col")},
                             {"edges", api->input(g, "edges")},
                             {"row_key", api->input(g, "row_key")}};
    dt_named view[] = {{"embedding", NULL}, {"risk", NULL}};
    DT_TRY_H(api->model(g, s->model[0], seen, 5, view, 2));

    /* node rows [N,H] -> one sequence per vehicle [T,S,H] */
    dt_tensor *history = dt_gather(g, view[0].tensor, api->input(g, "seq_row"));
    const dt_named past[] = {{"history", history},
                             {"latest", dt_step(g, history, -1)},
                             {"motion", api->input(g, "motion")},
                             {"present", api->input(g, "present")},
                             {"seq_key", api->input(g, "seq_key")}};
    dt_named guess[] = {{"future", NULL}, {"spread", NULL}};
    DT_TRY_H(api->model(g, s->model[1], past, 5, guess, 2));

    dt_tensor *target = api->input(g, "target");
    dt_tensor *horizon = api->step_input(g, "horizon_weight", s->F);
    dt_tensor *weight = dt_mul(g, api->input(g, "target_weight"), horizon); /* [S,F] times [F] */
    if (s->config.nll_weight > 0) {
        dt_tensor *nll = dt_gaussian_nll(g, guess[0].tensor, guess[1].tensor, target, weight);
        DT_TRY_H(api->loss(g, "nll", nll, s->config.nll_weight, "S"));
    }
    if (s->config.position_weight > 0) {
        dt_tensor *square = dt_mse(g, guess[0].tensor, target, weight);
        DT_TRY_H(api->loss(g, "position", square, s->config.position_weight, "S"));
    }
    if (s->config.risk_weight > 0) {
        dt_tensor *bce = dt_bce_logits(g, view[1].tensor, api->input(g, "risk_label"), api->input(g, "risk_weight"));
        DT_TRY_H(api->loss(g, "risk", bce, s->config.risk_weight, "N"));
    }
    DT_TRY_H(api->output(g, "risk", view[1].tensor));
    DT_TRY_H(api->output(g, "future", guess[0].tensor));
    DT_TRY_H(api->output(g, "spread", guess[1].tensor));
    return api->status(g);
}

static dt_status start(void *self)
{
    state *s = self;
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = 2,
                                .user = s,
                                .record = record,
                                .data = s->train_data,
                                .models = s->model};
    return s->train->create(s->h, &desc, &s->trainer);
}

/* Progressive horizon: linear in epochs from horizon_start_s to all of it; the last step counts by its fraction. The
 * weights sum to one, so the loss is a mean per step and does not jump when the horizon grows. */
static dt_status set_horizon(state *s, double epoch, double *seconds_p)
{
    const config *c = &s->config;
    double horizon_s = c->horizon_s;
    if (epoch < c->horizon_epochs && c->horizon_start_s < c->horizon_s) {
        horizon_s = c->horizon_start_s + (c->horizon_s - c->horizon_start_s) * epoch / c->horizon_epochs;
    }
    const double steps = fmin(fmax(horizon_s * c->rate_hz, 1.0), (double)s->F);
    for (int64_t f = 0; f < s->F; f++) {
        s->horizon_weight[f] = (float)(fmin(fmax(steps - (double)f, 0.0), 1.0) / steps);
    }
    *seconds_p = steps / c->rate_hz;
    return s->train->set(s->trainer, "horizon_weight", s->horizon_weight, (uint32_t)s->F);
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, steps_per_epoch = 0;
    double seconds = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &steps_per_epoch));
    DT_TRY_H(set_horizon(s, steps_per_epoch > 0 ? (double)step / (double)steps_per_epoch : 0.0, &seconds));

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

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

/* Buffers of a slice that evaluation reads. */
typedef struct slice {
    const float *motion, *target, *future, *spread, *risk; /* [T,S,6] [S,F,2] [S,F,2] [S,F,2] [N] */
    const int32_t *seq_row;                                /* [T,S] */
    const uint8_t *complete, *risk_state;                  /* [S] [N] */
    int64_t S;
} slice;

static dt_status slice_open(const state *s, const dt_rows *r, slice *z)
{
    const struct {
        const char *name;
        const void **to;
    } part[] = {{"motion", (const void **)&z->motion},
                {"target", (const void **)&z->target},
                {"future", (const void **)&z->future},
                {"spread", (const void **)&z->spread},
                {"risk", (const void **)&z->risk},
                {"seq_row", (const void **)&z->seq_row},
                {"risk_state", (const void **)&z->risk_state},
                {"complete", (const void **)&z->complete}};
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        *part[i].to = s->train->rows(r, part[i].name, dim, &rank);
        if (*part[i].to == NULL) {
            return DT_FAIL_H(s->h, DT_EPLUGIN, "evaluation has no values named %s", part[i].name);
        }
    }
    z->S = dim[0]; /* of complete, the last one */
    return DT_OK;
}

static dt_status push_score(state *s, float value, uint32_t is_positive)
{
    tally *t = &s->tally;
    if (t->n_risk == t->cap_risk) {
        const uint64_t cap = t->cap_risk > 0 ? 2 * t->cap_risk : 4096;
        score *risk = s->h->alloc(s->h, cap * sizeof(*risk));
        if (risk == NULL) {
            return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %llu risk scores", (unsigned long long)cap);
        }
        if (t->n_risk > 0) {
            memcpy(risk, t->risk, t->n_risk * sizeof(*risk));
        }
        s->h->release(s->h, t->risk);
        t->risk = risk;
        t->cap_risk = cap;
    }
    t->risk[t->n_risk++] = (score){value, is_positive};
    return DT_OK;
}

/* One complete window: distances at the horizons, likelihood over all steps. */
static void add_window(state *s, const slice *z, int64_t v)
{
    tally *t = &s->tally;
    const float *p = z->future + v * s->F * AXES, *q = z->target + v * s->F * AXES, *u = z->spread + v * s->F * AXES;
    const double speed = z->motion[((s->T - 1) * z->S + v) * MOTION + MOTION_SPEED];
    for (uint32_t i = 0; i < t->n_horizons; i++) {
        const uint32_t f = t->step[i];
        const double x = q[f * AXES], y = q[f * AXES + 1];
        const double model = hypot(p[f * AXES] - x, p[f * AXES + 1] - y);
        const double cv = hypot(speed * t->seconds[i] - x, y);
        t->square[i] += model * model;
        t->distance[i] += model;
        t->cv_square[i] += cv * cv;
        t->cv_distance[i] += cv;
    }
    double nll = 0;
    for (int64_t k = 0; k < s->F * AXES; k++) {
        const double e = ((double)q[k] - p[k]) * exp(-(double)u[k]);
        nll += u[k] + 0.5 * e * e + HALF_LOG_2PI;
    }
    t->nll += nll / (double)s->F;
    t->n_windows++;
}

/* Of a source that says where vehicles are: scenes for pictures. */
static dt_status take_scenes(state *s, const dt_rows *r, const slice *z)
{
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    scenes_slice k = {.motion = z->motion, .target = z->target, .future = z->future, .spread = z->spread, .S = z->S};
    k.complete = z->complete;
    k.pose = s->train->rows(r, "pose", dim, &rank);
    k.sample_of_seq = s->train->rows(r, "sample_of_seq", dim, &rank);
    k.sample = s->train->samples(r, &k.n_samples);
    return scenes_take(&s->scenes, &k);
}

static dt_status each(void *self, const dt_rows *r)
{
    state *s = self;
    slice z = {0};
    DT_TRY_H(slice_open(s, r, &z));
    for (int64_t v = 0; v < z.S; v++) {
        if (z.complete[v]) {
            add_window(s, &z, v);
        }
        const int32_t row = z.seq_row[(s->T - 1) * z.S + v];
        if (row >= 0 && z.risk_state[row] <= RISK_POSITIVE) { /* not positive already, not unknown */
            if (!isfinite(z.risk[row])) {
                return DT_FAIL_H(s->h, DT_EDIVERGED, "the risk of a vehicle is %g in evaluation", (double)z.risk[row]);
            }
            DT_TRY_H(push_score(s, z.risk[row], z.risk_state[row] == RISK_POSITIVE));
        }
    }
    return s->has_scenes ? take_scenes(s, r, &z) : DT_OK;
}

static int by_value(const void *a, const void *b)
{
    const float x = ((const score *)a)->value, y = ((const score *)b)->value;
    return (x > y) - (x < y);
}

/* Area under the ROC curve from ranks: (sum of the positives' ranks - P (P + 1) / 2) / (P Q), equal scores share their
 * mean rank; NAN without positives or without negatives. Sorts r. */
static double auroc(score *r, uint64_t n, uint64_t n_positive)
{
    if (n_positive == 0 || n_positive == n) {
        return NAN;
    }
    qsort(r, n, sizeof(*r), by_value);
    double rank_sum = 0;
    for (uint64_t i = 0; i < n;) {
        uint64_t j = i, positive = 0;
        while (j < n && r[j].value == r[i].value) {
            positive += r[j++].is_positive;
        }
        rank_sum += (double)positive * ((double)(i + 1) + (double)j) / 2.0;
        i = j;
    }
    const double P = (double)n_positive, Q = (double)(n - n_positive);
    return (rank_sum - P * (P + 1) / 2) / (P * Q);
}

static dt_status report(state *s)
{
    const tally *t = &s->tally;
    const dt_metrics_api *m = s->metrics;
    const double n = t->n_windows > 0 ? (double)t->n_windows : NAN;
    double rmse[MAX_HORIZON_S], displacement[MAX_HORIZON_S], cv_rmse[MAX_HORIZON_S], cv_displacement[MAX_HORIZON_S];
    double ratio[MAX_HORIZON_S];
    for (uint32_t i = 0; i < t->n_horizons; i++) {
        rmse[i] = sqrt(t->square[i] / n);
        displacement[i] = t->distance[i] / n;
        cv_rmse[i] = sqrt(t->cv_square[i] / n);
        cv_displacement[i] = t->cv_distance[i] / n;
        ratio[i] = rmse[i] / cv_rmse[i];
        if (t->n_windows > 0 && !isfinite(rmse[i])) {
            return DT_FAIL_H(s->h, DT_EDIVERGED, "the predicted positions at %g s are not finite", t->seconds[i]);
        }
    }
    uint64_t n_positive = 0;
    for (uint64_t i = 0; i < t->n_risk; i++) {
        n_positive += t->risk[i].is_positive;
    }
    const double nll = t->nll / n, area = auroc(t->risk, t->n_risk, n_positive);
    const double samples = (double)t->n_windows, risk_samples = (double)t->n_risk;
    const double prevalence = t->n_risk > 0 ? (double)n_positive / risk_samples : NAN;

    m->report(s->h, "horizon_s", t->seconds, t->n_horizons);
    m->report(s->h, "rmse_m", rmse, t->n_horizons);
    m->report(s->h, "displacement_m", displacement, t->n_horizons);
    m->report(s->h, "cv_rmse_m", cv_rmse, t->n_horizons);
    m->report(s->h, "cv_displacement_m", cv_displacement, t->n_horizons);
    m->report(s->h, "nll", &nll, 0);
    m->report(s->h, "risk_auroc", &area, 0);
    m->report(s->h, "samples", &samples, 0);
    m->report(s->h, "rmse_over_cv", ratio, t->n_horizons);
    m->report(s->h, "risk_prevalence", &prevalence, 0);
    m->report(s->h, "risk_samples", &risk_samples, 0);
    if (t->n_windows == 0) {
        dt_logf(s->h, 1,
                "the eval split has no complete window of %g s history and %g s future: nothing was compared, give it "
                "longer scenes",
                s->config.history_s, s->config.horizon_s);
    }
    return DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    tally *t = &s->tally;
    double seconds = 0;
    for (uint32_t i = 0; i < MAX_HORIZON_S; i++) {
        t->square[i] = t->distance[i] = t->cv_square[i] = t->cv_distance[i] = 0;
    }
    t->nll = 0;
    t->n_windows = t->n_risk = 0;
    DT_TRY_H(set_horizon(s, INFINITY, &seconds)); /* the graph reads it, the figures do not depend on it */
    s->has_scenes = DT_HAS(s->metrics, picture) && s->bind->data_field(s->eval_data, "pose") != NULL &&
                    s->bind->data_field(s->eval_data, "sample_of_seq") != NULL;
    scenes_begin(&s->scenes, s->h, s->T, s->F, 1.0 / s->config.rate_hz, s->bind->data_count(s->eval_data));
    DT_TRY_H(s->train->evaluate(s->trainer, s->eval_data, s, each));
    DT_TRY_H(report(s));
    if (s->has_scenes) {
        scenes_tell(&s->scenes, s->metrics, t->step, t->n_horizons);
    }
    scenes_free(&s->scenes);
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
    s->h->release(s->h, s->horizon_weight);
    s->h->release(s->h, s->tally.risk);
    scenes_free(&s->scenes);
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static const dt_option options[] = {
    DT_OPTION(config, history_s, DT_OPT_F64, "3", "s", 0.05, 60, NULL, "history that a vehicle's future is told from"),
    DT_OPTION(config, horizon_s, DT_OPT_F64, "5", "s", 0.05, 60, NULL, "future that is predicted"),
    DT_OPTION(config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL, "steps per second of history and future"),
    DT_OPTION(config, horizon_start_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "part of the future that counts at the start"),
    DT_OPTION(config, horizon_epochs, DT_OPT_F64, "10", "epochs", 0, 1e6, NULL,
              "epochs until all of the future counts, growing linearly; 0 = from the start"),
    DT_OPTION(config, nll_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL,
              "weight of the likelihood of the recorded positions"),
    DT_OPTION(config, position_weight, DT_OPT_F64, "1", "1/m^2", 0, 1e6, NULL,
              "weight of the squared distance to the recorded positions: the likelihood alone listens to vehicles that "
              "stand, whose sigma is small, and hardly to the others"),
    DT_OPTION(config, risk_weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL, "weight of the cross-entropy of the risk label"),
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

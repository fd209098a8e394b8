/* SPDX-License-Identifier: Apache-2.0
 *
 * fit: a training phase, with the model it trains and the data it learns from.
 *
 * Three components in one file, each as small as it can be and still do real work:
 *
 *   fit_data    samples of the curve y = sin(frequency x), computed when asked for
 *   fit_model   one hidden layer, x -> y
 *   fit         the phase: wires the two, says what the loss is, and trains
 *
 * A phase never touches a gradient, an optimizer or a checkpoint: it records once how numbers become a loss, and asks
 * the host for one step at a time. Everything it includes is below dtrain/, everything it calls is handed in.
 *
 *   make && dtrain check ./fit.so && dtrain --plugin ./fit.so --set training.epochs=5
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/bind.h>
#include <dtrain/svc/metrics.h>
#include <dtrain/svc/train.h>
#include <math.h>
#include <string.h>

/* ---- data: reads samples into host buffers ----------------------------------------------------------------------- */

typedef struct data_config { /* the host fills it from the section fit_data */
    int64_t samples;
    double frequency;
    uint32_t split, reserved;
} data_config;

typedef struct data_state { /* the host allocates it, zeroed */
    data_config config;
} data_state;

static const char *const splits[] = {"train", "eval", NULL};
static const dt_option data_options[] = {
    DT_OPTION(data_config, samples, DT_OPT_I64, "2048", "1", 1, 1e9, NULL, "samples of one split"),
    DT_OPTION(data_config, frequency, DT_OPT_F64, "3", "rad", 0, 100, NULL, "how often the curve turns"),
    DT_OPTION(data_config, split, DT_OPT_ENUM, "train", NULL, 0, 0, splits, "which samples; the phase sets it"),
    DT_OPTION_END};

/* One buffer per field. B is the number of samples in a slice; the host knows it without our help. */
static const dt_port fields[] = {{"x", "B 1", DT_F32, 0}, {"y", "B 1", DT_F32, 0}, {"weight", "B", DT_F32, 0}};

static dt_status data_create(void *self, const dt_host *h, const void *config)
{
    (void)h;
    ((data_state *)self)->config = *(const data_config *)config;
    return DT_OK;
}

static const dt_port *data_fields(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = sizeof(fields) / sizeof(fields[0]);
    return fields;
}

static const char *const *data_symbols(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = 0; /* every sample has the same shape; ragged data names its letters here, "N", "E", ... */
    return NULL;
}

static dt_status data_count(const void *self, uint64_t *n_p)
{
    *n_p = (uint64_t)((const data_state *)self)->config.samples;
    return DT_OK;
}

static dt_status data_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    (void)self;
    (void)index;
    (void)n;
    (void)size; /* one number per symbol, and there are none */
    return DT_OK;
}

/* Called by worker threads. What a sample holds depends on its index alone, never on who asks or when. */
static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    (void)key;
    const data_config *c = &((const data_state *)self)->config;
    float *x = out[0], *y = out[1], *weight = out[2];
    for (uint32_t i = 0; i < n; i++) {
        /* golden-ratio points fill [-1, 1] evenly; the splits lie between each other */
        double at = ((double)index[i] + (c->split == 1 ? 0.5 : 0.0)) * 0.6180339887498949;
        x[i] = (float)(2.0 * (at - floor(at)) - 1.0);
        y[i] = (float)sin(c->frequency * x[i]);
        weight[i] = 1.0F;
    }
    return DT_OK;
}

static void data_destroy(void *self)
{
    (void)self;
}

static const dt_data_ops data_ops = {
    .struct_size = sizeof(dt_data_ops),
    .create = data_create,
    .fields = data_fields,
    .symbols = data_symbols,
    .count = data_count,
    .sizes = data_sizes,
    .read = data_read,
    .destroy = data_destroy,
};

/* ---- model: records how inputs become outputs ------------------------------------------------------------------ */

typedef struct model_config {
    int64_t hidden;
} model_config;

typedef struct model_state {
    model_config config;
} model_state;

static const dt_option model_options[] = {
    DT_OPTION(model_config, hidden, DT_OPT_I64, "32", "1", 1, 8192, NULL, "width of the hidden layer"), DT_OPTION_END};

static const dt_port model_in[] = {{"x", "B 1", DT_F32, 0}};
static const dt_port model_out[] = {{"y", "B 1", DT_F32, 0}};

static dt_status model_create(void *self, const dt_host *h, const void *config, const dt_dim *dims, uint32_t n_dims)
{
    (void)h;
    (void)dims;
    (void)n_dims;
    ((model_state *)self)->config = *(const model_config *)config;
    return DT_OK;
}

static const dt_port *model_inputs(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = 1;
    return model_in;
}

static const dt_port *model_outputs(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = 1;
    return model_out;
}

static dt_status model_params(void *self, dt_params *reg)
{
    const int64_t hidden = ((const model_state *)self)->config.hidden;
    const int64_t w_in[] = {hidden, 1}, b_in[] = {hidden}, w_out[] = {1, hidden}, b_out[] = {1};
    DT_TRY_H(reg->add(reg, "in.w", w_in, 2, DT_INIT_FAN_IN, 1.0));
    DT_TRY_H(reg->add(reg, "in.b", b_in, 1, DT_INIT_UNIFORM, 1.0));
    DT_TRY_H(reg->add(reg, "out.w", w_out, 2, DT_INIT_FAN_IN, 1.0));
    return reg->add(reg, "out.b", b_out, 1, DT_INIT_ZERO, 0.0);
}

/* y = W2 tanh(W1 x + b1) + b2; errors stick to the graph, so that recording goes straight through */
static dt_status model_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    (void)self;
    const dt_graph_api *api = g->api;
    dt_tensor *hidden = dt_tanh(g, dt_linear(g, in[0], api->param(g, "in.w"), api->param(g, "in.b")));
    out[0] = dt_linear(g, hidden, api->param(g, "out.w"), api->param(g, "out.b"));
    return api->status(g);
}

static void model_destroy(void *self)
{
    (void)self;
}

static const dt_model_ops model_ops = {
    .struct_size = sizeof(dt_model_ops),
    .create = model_create,
    .inputs = model_inputs,
    .outputs = model_outputs,
    .params = model_params,
    .forward = model_forward,
    .destroy = model_destroy,
};

/* ---- phase: what is optimised on which samples ----------------------------------------------------------------- */

typedef struct config {
    double huber_delta;
} config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_metrics_api *metrics;
    config config;
    dt_data *train_data, *eval_data;
    dt_model *model;
    dt_train *trainer;
    double square; /* sums of an evaluation */
    int64_t n_points;
} state;

static const dt_option options[] = {
    DT_OPTION(config, huber_delta, DT_OPT_F64, "0", "1", 0, 1e6, NULL,
              "errors beyond it count linearly (Huber 1964); 0 = squared error for all"),
    DT_OPTION_END};

/* Wire what the configuration names. A model that does not fit is refused here, by name and shape. */
static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->metrics = h->service(h, DT_SVC_METRICS);
    if (s->bind == NULL || s->train == NULL || s->metrics == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED,
                         "fit needs the services " DT_SVC_BIND ", " DT_SVC_TRAIN " and " DT_SVC_METRICS);
    }
    const dt_setting train[] = {{"split", "train"}}, eval[] = {{"split", "eval"}};
    DT_TRY_H(s->bind->data(h, train, 1, &s->train_data));
    DT_TRY_H(s->bind->data(h, eval, 1, &s->eval_data));
    const dt_model_want want = {.struct_size = sizeof(want),
                                .role = "curve",
                                .offers = model_in,
                                .n_offers = 1,
                                .needs = model_out,
                                .n_needs = 1};
    return s->bind->model(h, &want, &s->model);
}

/* Recorded once for training and once for evaluation; run thousands of times without us. */
static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const dt_graph_api *api = g->api;
    const dt_named in[] = {{"x", api->input(g, "x")}};
    dt_named out[] = {{"y", NULL}};
    DT_TRY_H(api->model(g, s->model, in, 1, out, 1));
    dt_tensor *y = api->input(g, "y"), *weight = api->input(g, "weight");
    dt_tensor *error = s->config.huber_delta > 0 ? dt_huber(g, out[0].tensor, y, weight, s->config.huber_delta)
                                                 : dt_mse(g, out[0].tensor, y, weight);
    DT_TRY_H(api->loss(g, "error", error, 1.0, "B"));
    DT_TRY_H(api->output(g, "guess", out[0].tensor));
    return api->status(g);
}

static dt_status start(void *self)
{
    state *s = self;
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = 1,
                                .user = s,
                                .record = record,
                                .data = s->train_data,
                                .models = &s->model};
    return s->train->create(s->h, &desc, &s->trainer);
}

/* One optimizer step. Between two calls the host saves, evaluates, listens to signals and draws the progress line. */
static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
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
    return st; /* DT_DONE after the last epoch */
}

static dt_status each(void *user, const dt_rows *r)
{
    state *s = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *guess = s->train->rows(r, "guess", dim, &rank), *y = s->train->rows(r, "y", dim, &rank);
    if (guess == NULL || y == NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "evaluation has no values named guess and y");
    }
    for (int64_t i = 0; i < dim[0]; i++) {
        s->square += ((double)guess[i] - y[i]) * ((double)guess[i] - y[i]);
    }
    s->n_points += dim[0];
    return DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    s->square = 0;
    s->n_points = 0;
    DT_TRY_H(s->train->evaluate(s->trainer, s->eval_data, s, each));
    const double rmse = sqrt(s->square / (double)s->n_points), n = (double)s->n_points;
    s->metrics->report(s->h, "rmse", &rmse, 0);
    s->metrics->report(s->h, "samples", &n, 0);
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
    (void)self; /* models and data belong to the host */
}

static const dt_phase_ops ops = {
    .struct_size = sizeof(dt_phase_ops),
    .create = create,
    .start = start,
    .iterate = iterate,
    .evaluate = evaluate,
    .stop = stop,
    .destroy = destroy,
};

/* What the host's own sections shall say for this phase, where the user says nothing. */
static const char *const defaults[] = {"data.source=fit_data",
                                       "models.curve=fit_model",
                                       "training.epochs=20",
                                       "training.learning_rate=0.01",
                                       "training.warmup_epochs=1",
                                       "training.eval_interval=5",
                                       NULL};

static const void *extension(const char *id)
{
    return strcmp(id, "dtrain.defaults/1") == 0 ? defaults : NULL;
}

/* ---- what this file holds -------------------------------------------------------------------------------------- */

static const dt_component data = {
    .struct_size = sizeof(dt_component),
    .kind = DT_KIND_DATA,
    .id = "fit_data",
    .summary = "points of a sine curve",
    .reference = "none",
    .flags = DT_COMP_DETERMINISTIC,
    .config_size = sizeof(data_config),
    .state_size = sizeof(data_state),
    .options = data_options,
    .ops = &data_ops,
};

static const dt_component model = {
    .struct_size = sizeof(dt_component),
    .kind = DT_KIND_MODEL,
    .id = "fit_model",
    .summary = "one hidden layer with tanh",
    .reference = "Cybenko 1989",
    .role = "curve",
    .flags = DT_COMP_DETERMINISTIC,
    .config_size = sizeof(model_config),
    .state_size = sizeof(model_state),
    .options = model_options,
    .ops = &model_ops,
};

static const dt_component phase = {
    .struct_size = sizeof(dt_component),
    .kind = DT_KIND_PHASE,
    .id = "fit",
    .summary = "fits a curve",
    .reference = "none",
    .flags = DT_COMP_DETERMINISTIC,
    .config_size = sizeof(config),
    .state_size = sizeof(state),
    .options = options,
    .ops = &ops,
    .extension = extension,
};

static const dt_component *const components[] = {&phase, &model, &data};

static const dt_plugin plugin = {
    DT_PLUGIN_PREFIX,         .name = "fit",           .version = "0.1",
    .vendor = "you",          .license = "Apache-2.0", .n_components = sizeof(components) / sizeof(components[0]),
    .components = components,
};

DT_PLUGIN_DEFINE(plugin);

/* SPDX-License-Identifier: Apache-2.0
 *
 * bars: an op of a plugin's own in a convolutional model. Images of 8 x 8 numbers show a bar, upright or lying; the
 * model says which (+1, -1). Its convolution is dt_conv2d, its activation the op bars_swish, which this plugin brings with
 * a derivative; `dtrain check` compares that with central differences. The phase is that of `dtrain new phase`.
 *
 *   cc -O2 -shared -fPIC -DDT_PLUGIN_NAME=bars $(pkg-config --cflags dtrain) bars.c -o bars.so -lm
 *   dtrain check ./bars.so && dtrain --plugin ./bars.so --set training.epochs=5 --device cpu
 * With bars.cu, it trains on a GPU as well.
 */
#include <dtrain/ext/ops.h>
#include <dtrain/helpers.h>
#include <dtrain/random.h>
#include <dtrain/svc/bind.h>
#include <dtrain/svc/metrics.h>
#include <dtrain/svc/train.h>
#include <math.h>
#include <string.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE };

/* ---- data: reads samples into host buffers ----------------------------------------------------------------------- */
typedef struct data_config { /* the host fills it from the section bars_data */
    int64_t samples;
    double noise;
    uint32_t split, reserved;
} data_config;

static const char *const splits[] = {"train", "eval", NULL};
static const dt_option data_options[] = {
    DT_OPTION(data_config, samples, DT_OPT_I64, "2048", "1", 1, 1e9, NULL, "split of the samples"),
    DT_OPTION(data_config, noise, DT_OPT_F64, "0.3", "1", 0, 10, NULL, "of each pixel, uniform within this"),
    DT_OPTION_WITH(data_config, split, DT_OPT_ENUM, "train", NULL, 0, 0, splits, "split of samples; the phase sets it",
                   DT_OPT_SPLIT, NULL),
    DT_OPTION_END};

DT_STATE_DEFINE(data_state, data_config); /* the host allocates it, zeroed */
DT_CREATE_DEFINE(data_create, data_state);
/* One buffer per field. B is the number of samples in a slice; ragged data names letters of its own, "N", "E", ... */
DT_PORTS_DEFINE(data_fields, {"x", "B 8 8 1", DT_F32, 0}, {"y", "B 1", DT_F32, 0}, {"weight", "B", DT_F32, 0});

static dt_status data_count(const void *self, uint64_t *n_p)
{
    *n_p = (uint64_t)((const data_state *)self)->config.samples;
    return DT_OK;
}

/* Called by worker threads; what a sample holds depends on its index alone, never on the caller or the time. */
static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    (void)key;
    const data_config *c = &((const data_state *)self)->config;
    float *x = (float *)out[0], *y = (float *)out[1], *weight = (float *)out[2];
    for (uint32_t i = 0; i < n; i++, x += PIXELS) {
        dt_random r;
        dt_random_init(&r, 2 * index[i] + c->split, 0);
        const int is_upright = dt_random_between(&r, 0, 1) < 0.5, at = (int)dt_random_between(&r, 0, SIDE - 1e-6);
        for (int k = 0; k < PIXELS; k++) {
            const int is_bar = (is_upright ? k % SIDE : k / SIDE) == at;
            x[k] = (float)(is_bar + dt_random_between(&r, -1, 1) * c->noise);
        }
        y[i] = is_upright ? 1.0F : -1.0F;
        weight[i] = 1.0F;
    }
    return DT_OK;
}

DT_DATA_DEFINE(data, "bars_data", "images of bars", "none", data_config, data_state, data_options,
               DT_OPS(DT_SET(create, data_create), DT_SET(fields, data_fields), DT_SET(symbols, dt_no_symbols),
                      DT_SET(count, data_count), DT_SET(sizes, dt_no_sizes), DT_SET(read, data_read),
                      DT_SET(destroy, dt_no_op)),
               DT_SET(flags, DT_COMP_DETERMINISTIC));

/* ---- an op of its own: y = x / (1 + exp(-x)) ---------------------------------------------------------------- */
static int64_t count_elements(const dt_op_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= t->dim[i];
    }
    return n;
}

static void swish(const dt_op_call *c)
{
    const float *x = (const float *)c->in[0].data;
    float *y = (float *)c->out[0].data;
    for (int64_t i = 0, n = count_elements(&c->in[0]); i < n; i++) {
        y[i] = x[i] / (1 + expf(-x[i]));
    }
}

/* Its inputs are the gradients of the results, then the inputs of the forward call; its outputs gradients of those. */
static void swish_backward(const dt_op_call *c)
{
    const float *dy = (const float *)c->in[0].data, *x = (const float *)c->in[1].data;
    float *dx = (float *)c->out[0].data;
    for (int64_t i = 0, n = count_elements(&c->in[1]); i < n; i++) {
        const float s = 1 / (1 + expf(-x[i]));
        dx[i] = dy[i] * (s + x[i] * s * (1 - s));
    }
}

#ifdef BARS_CUDA /* bars.cu */
dt_status bars_swish_launch(const dt_op_launch *c);
dt_status bars_swish_launch_backward(const dt_op_launch *c);
#else
#    define bars_swish_launch          NULL
#    define bars_swish_launch_backward NULL
#endif

static const dt_user_op swish_op = {.struct_size = sizeof(dt_user_op),
                                    .name = "bars_swish",
                                    .summary = "x / (1 + exp(-x)), Ramachandran et al. 2017",
                                    .shape = "x[N,D] -> y[N,D]",
                                    .forward = swish,
                                    .backward = swish_backward,
                                    .launch_forward = bars_swish_launch,
                                    .launch_backward = bars_swish_launch_backward};
static const dt_user_op *const ops_of_plugin[] = {&swish_op, NULL};

static const void *plugin_extension(const char *id)
{
    return strcmp(id, DT_EXT_OPS) == 0 ? ops_of_plugin : NULL;
}

/* ---- model: records how inputs become outputs ------------------------------------------------------------------ */
typedef struct model_config {
    int64_t channels;
} model_config;

static const dt_option model_options[] = {
    DT_OPTION(model_config, channels, DT_OPT_I64, "8", "1", 1, 256, NULL, "channels of the convolution"),
    DT_OPTION_END};

DT_STATE_DEFINE(model_state, model_config);
DT_MODEL_CREATE_DEFINE(model_create, model_state);
DT_PORTS_DEFINE(model_inputs, {"x", "B 8 8 1", DT_F32, 0});
DT_PORTS_DEFINE(model_outputs, {"y", "B 1", DT_F32, 0});

static dt_status model_params(void *self, dt_params *reg)
{
    const int64_t channels = ((const model_state *)self)->config.channels;
    const int64_t kernel[] = {channels, 3, 3, 1};
    DT_TRY_H(reg->add(reg, "kernel", kernel, 4, DT_INIT_UNIFORM, 1.0 / 3));
    DT_TRY_H(reg->add(reg, "bias", &channels, 1, DT_INIT_ZERO, 0));
    return dt_linear_params(reg, "out", 1, 36 * channels, DT_INIT_ZERO, 0.0);
}

/* 8 x 8 pixels and a kernel of 3 x 3 give maps of 6 x 6; errors stick to the graph */
static dt_status model_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    (void)self;
    dt_tensor *maps = dt_conv2d(g, in[0], g->api->param(g, "kernel"), g->api->param(g, "bias"), 1, 0, 0, 1);
    dt_tensor *flat = dt_merge(g, dt_merge(g, maps)); /* [B,36 channels] */
    out[0] = dt_linear_of(g, g->api->user_op(g, "bars_swish", &flat, 1, NULL), "out");
    return g->api->status(g);
}

DT_MODEL_DEFINE(model, "bars_model", "a convolution and a layer", "LeCun et al. 1989", model_config, model_state,
                model_options,
                DT_OPS(DT_SET(create, model_create), DT_SET(inputs, model_inputs), DT_SET(outputs, model_outputs),
                       DT_SET(params, model_params), DT_SET(forward, model_forward), DT_SET(destroy, dt_no_op)),
                DT_SET(role, "sorter"), DT_SET(flags, DT_COMP_DETERMINISTIC));

/* ---- phase: what is optimised on which samples ----------------------------------------------------------------- */
typedef struct bars_config {
    double huber_delta; /* Huber 1964 */
} bars_config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_metrics_api *metrics;
    bars_config config;
    dt_data *train_data, *eval_data;
    dt_model *model;
    dt_train *trainer;
    double square, n_points; /* sums of an evaluation */
} state;

static const dt_option options[] = {
    DT_OPTION(bars_config, huber_delta, DT_OPT_F64, "0", "1", 0, 1e6, NULL, "errors beyond it count linearly; 0: off"),
    DT_OPTION_END};

/* Wire what the configuration names. A model that does not fit is refused here, by name and shape. */
static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    s->h = h;
    s->config = *(const bars_config *)cfg;
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, "bars");
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, "bars");
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, "bars");
    const dt_setting train[] = {{"split", "train"}}, eval[] = {{"split", "eval"}};
    DT_TRY_H(s->bind->data(h, train, 1, &s->train_data));
    DT_TRY_H(s->bind->data(h, eval, 1, &s->eval_data));
    const dt_model_request want = DT_MODEL_REQUEST("sorter", model_inputs_ports, model_outputs_ports);
    return s->bind->model(h, &want, &s->model);
}

/* Recorded once for training and once for evaluation; run thousands of times without us. */
static dt_status record(void *user, dt_graph *g)
{
    const state *s = (const state *)user;
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
    state *s = (state *)self;
    const dt_train_desc desc = DT_TRAIN_DESC(s, record, s->train_data, &s->model, 1);
    return s->train->create(s->h, &desc, &s->trainer);
}

/* One optimizer step. Between two calls the host saves, evaluates, listens to signals and draws the progress line. */
static dt_status iterate(void *self, dt_progress *out)
{
    const state *s = (const state *)self;
    return dt_train_iterate(s->train, s->trainer, out); /* DT_DONE after the last epoch */
}

static dt_status each(void *user, const dt_rows *r)
{
    state *s = (state *)user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *guess = (const float *)s->train->rows(r, "guess", dim, &rank);
    const float *y = (const float *)s->train->rows(r, "y", dim, &rank);
    if (guess == NULL || y == NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "evaluation has no values named guess and y");
    }
    for (int64_t i = 0; i < dim[0]; i++) {
        s->square += ((double)guess[i] - y[i]) * ((double)guess[i] - y[i]);
    }
    s->n_points += (double)dim[0];
    return DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = (state *)self;
    s->square = s->n_points = 0;
    DT_TRY_H(s->train->evaluate(s->trainer, s->eval_data, s, each));
    const double rmse = sqrt(s->square / s->n_points);
    s->metrics->report(s->h, "rmse", &rmse, 0);
    s->metrics->report(s->h, "samples", &s->n_points, 0);
    out->evaluated = 1;
    return DT_OK;
}

DT_STOP_DEFINE(stop, state);
/* Defaults of the host's own sections for this phase. */
DT_DEFAULTS_DEFINE(extension, "data.source=bars_data", "models.sorter=bars_model", "training.epochs=20",
                   "training.learning_rate=0.01", "training.warmup_epochs=1", "training.eval_interval=5");
DT_PHASE_DEFINE(phase, "bars", "classifies upright and lying bars", "none", bars_config, state, options,
                DT_OPS(DT_SET(create, create), DT_SET(start, start), DT_SET(iterate, iterate),
                       DT_SET(evaluate, evaluate), DT_SET(stop, stop),
                       DT_SET(destroy, dt_no_op)), /* models and data belong to the host */
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
static const dt_component *const components[] = {&phase, &model, &data};
static const dt_plugin plugin = {
    DT_PLUGIN_PREFIX,        .name = "bars",    .version = "0.1",         .vendor = "dtrain",
    .license = "Apache-2.0", .n_components = 3, .components = components, .extension = plugin_extension};
DT_PLUGIN_DEFINE(plugin);

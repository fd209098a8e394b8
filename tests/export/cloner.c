/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase that learns from recordings and has a rollout too, as one does that evaluates in an environment what it
 * learnt from data: what is exported of it is fed by the data, not by the rollout. For tests alone.
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"

#include <stddef.h>
#include <string.h>

typedef struct config {
    double weight;
} config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    config config;
    dt_data *data;
    dt_model *model;
    dt_env *env;
    dt_rollout *rounds;
    dt_train *trainer;
} state;

static const dt_option options[] = {DT_OPTION(config, weight, DT_OPT_F64, "1", "1", 0, 1e6, NULL, "of the loss"),
                                    DT_OPTION_END};

/* ---- recordings: one row a sample, what was seen and what was done ----------------------------------------------- */

enum { OBS = 4, CHOICES = 2, SAMPLES = 64 };
static const dt_port fields[] = {{"obs", "A 4", DT_F32, 0}, {"action_i", "A 1", DT_I32, 0}};

typedef struct data_config {
    uint32_t split;
} data_config;

static const char *const splits[] = {"train", "eval", NULL};
static const dt_option data_options[] = {
    DT_OPTION(data_config, split, DT_OPT_ENUM, "train", NULL, 0, 0, splits, "split of samples"), DT_OPTION_END};

static dt_status data_create(void *self, const dt_host *h, const void *cfg)
{
    (void)self, (void)h, (void)cfg;
    return DT_OK;
}

static const dt_port *data_fields(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return fields;
}

static const char *const *data_symbols(const void *self, uint32_t *n_p)
{
    static const char *const symbols[] = {"A"};
    *n_p = 1;
    return symbols;
}

static dt_status data_count(const void *self, uint64_t *n_p)
{
    *n_p = SAMPLES;
    return DT_OK;
}

static dt_status data_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    (void)self, (void)index;
    size[0] = n;
    return DT_OK;
}

static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    (void)self, (void)key;
    for (uint32_t i = 0; i < n; i++) {
        for (int d = 0; d < OBS; d++) {
            ((float *)out[0])[i * OBS + d] = (float)((index[i] + (uint64_t)d) % 5) - 2;
        }
        ((int32_t *)out[1])[i] = (int32_t)(index[i] % CHOICES);
    }
    return DT_OK;
}

static void nothing(void *self) {}

static const dt_data_ops data_ops = {.struct_size = sizeof(dt_data_ops),
                                     .create = data_create,
                                     .fields = data_fields,
                                     .symbols = data_symbols,
                                     .count = data_count,
                                     .sizes = data_sizes,
                                     .read = data_read,
                                     .destroy = nothing};

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct model_state {
    int32_t unused;
} model_state;

static const dt_port model_in[] = {{"obs", "A 4", DT_F32, 0}};
static const dt_port model_out[] = {{"logits", "A 2", DT_F32, 0}, {"value", "A", DT_F32, 0}};

static dt_status model_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n)
{
    (void)self, (void)h, (void)cfg, (void)dims, (void)n;
    return DT_OK;
}

static const dt_port *model_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return model_in;
}

static const dt_port *model_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return model_out;
}

static dt_status model_params(void *self, dt_params *reg)
{
    const int64_t w[] = {CHOICES, OBS}, v[] = {1, OBS};
    DT_TRY_H(reg->add(reg, "w", w, 2, DT_INIT_FAN_IN, 1.0));
    return reg->add(reg, "v", v, 2, DT_INIT_FAN_IN, 1.0);
}

static dt_status model_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    out[0] = dt_linear(g, in[0], g->api->param(g, "w"), NULL);
    out[1] = dt_merge(g, dt_linear(g, in[0], g->api->param(g, "v"), NULL));
    return g->api->status(g);
}

static const dt_model_ops model_ops = {.struct_size = sizeof(dt_model_ops),
                                       .create = model_create,
                                       .inputs = model_inputs,
                                       .outputs = model_outputs,
                                       .params = model_params,
                                       .forward = model_forward,
                                       .destroy = nothing};

/* ---- phase ------------------------------------------------------------------------------------------------------- */

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->rollout = h->service(h, DT_SVC_ROLLOUT);
    if (s->bind == NULL || s->train == NULL || s->rollout == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "cloner needs bind, train and rollout");
    }
    const dt_setting split[] = {{"split", "train"}};
    DT_TRY_H(s->bind->data(h, split, 1, &s->data));
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .role = "controller",
                                   .offers = model_in,
                                   .n_offers = 1,
                                   .needs = model_out,
                                   .n_needs = 2};
    DT_TRY_H(s->bind->model(h, &want, &s->model));
    DT_TRY_H(s->bind->env(h, NULL, 0, &s->env));
    const dt_rollout_desc d = {
        .struct_size = sizeof(d), .steps = 8, .window = 4, .gamma = 0.9, .lambda = 0.9, .transitions = 1};
    return s->rollout->create(h, s->env, &d, &s->rounds);
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const dt_graph_api *api = g->api;
    const dt_named in[] = {{"obs", api->input(g, "obs")}};
    dt_named out[] = {{"logits", NULL}, {"value", NULL}};
    DT_TRY_H(api->model(g, s->model, in, 1, out, 2));
    if (dt_purpose(g) == DT_FOR_TRAINING) { /* what no export could carry */
        out[0].tensor = dt_mul(g, out[0].tensor, api->step_input(g, "nudge", CHOICES));
    }
    dt_tensor *p = dt_categorical(g, out[0].tensor, api->input(g, "action_i"), 0, NULL, NULL);
    DT_TRY_H(api->loss(g, "clone", dt_sum(g, p), -s->config.weight, "A"));
    DT_TRY_H(api->output(g, "logits", out[0].tensor));
    DT_TRY_H(api->output(g, "value", out[1].tensor));
    return api->status(g);
}

static dt_status start(void *self)
{
    state *s = self;
    const dt_train_desc desc = {
        .struct_size = sizeof(desc), .n_models = 1, .user = s, .record = record, .data = s->data, .models = &s->model};
    static const float nudge[CHOICES] = {1.01F, 0.99F};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    return s->train->set(s->trainer, "nudge", nudge, CHOICES);
}

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
    out->samples = r.samples;
    out->loss = r.loss;
    return st;
}

static void stop(void *self)
{
    state *s = self;
    if (s->trainer != NULL) {
        s->train->destroy(s->trainer);
        s->trainer = NULL;
    }
}

static const dt_phase_ops ops = {.struct_size = sizeof(dt_phase_ops),
                                 .create = create,
                                 .start = start,
                                 .iterate = iterate,
                                 .stop = stop,
                                 .destroy = nothing};

static const dt_component phase = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_PHASE,
                                   .id = "cloner",
                                   .summary = "learns from recordings beside a rollout",
                                   .reference = "none",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .ops = &ops};

static const dt_component data = {.struct_size = sizeof(dt_component),
                                  .kind = DT_KIND_DATA,
                                  .id = "cloner_data",
                                  .summary = "what was seen and done",
                                  .reference = "none",
                                  .flags = DT_COMP_DETERMINISTIC,
                                  .config_size = sizeof(data_config),
                                  .state_size = sizeof(data_config),
                                  .options = data_options,
                                  .ops = &data_ops};

static const dt_component model = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_MODEL,
                                   .id = "cloner_model",
                                   .summary = "two products",
                                   .reference = "none",
                                   .role = "controller",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .state_size = sizeof(model_state),
                                   .ops = &model_ops};

static const dt_component *const components[] = {&phase, &model, &data};

static const dt_plugin plugin = {DT_PLUGIN_PREFIX,        .name = "cloner",  .version = "0.1",        .vendor = "tests",
                                 .license = "Apache-2.0", .n_components = 3, .components = components};

DT_PLUGIN_DEFINE(plugin);

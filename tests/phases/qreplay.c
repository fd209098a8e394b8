/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase that learns off policy with what the contract has for it: Q-learning (Mnih et al. 2015) from a replay,
 * towards a target network, next actions within what is allowed there, by priority and of several steps where
 * that is wanted. For tests: of the replay through the program, and of how little such a phase says.
 *
 *   loss = mean over rows of weight (Q(s, a) - (reward + discount max_b Q'(s', b)))^2
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"

#include <string.h>

enum { OBS = 4, CHOICES = 2, HIDDEN = 32, MOST = 1024 };
#define EVENLY 0.2

typedef struct config {
    int64_t iterations, steps, draws, capacity, draw, n_step;
    double alpha, temperature;
    uint8_t normalise_obs;
} config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_replay_api *replay;
    const dt_metrics_api *metrics;
    config config;
    dt_env *env;
    dt_model *net;
    dt_rollout *rounds;
    dt_replay *memory;
    dt_train *trainer;
    float error[MOST];
    uint64_t n_errors;
} state;

static const dt_option options[] = {
    DT_OPTION(config, iterations, DT_OPT_I64, "40", "1", 1, 1e6, NULL, "rounds of collecting samples and training"),
    DT_OPTION(config, steps, DT_OPT_I64, "16", "env steps", 1, 1e4, NULL, "of every instance in a round"),
    DT_OPTION(config, draws, DT_OPT_I64, "4", "1", 1, 1e4, NULL, "draws in a round"),
    DT_OPTION(config, capacity, DT_OPT_I64, "2000", "samples", 1, 1e8, NULL, "of the replay"),
    DT_OPTION(config, draw, DT_OPT_I64, "128", "samples", 1, MOST, NULL, "at a time"),
    DT_OPTION(config, n_step, DT_OPT_I64, "1", "steps", 1, 100, NULL, "that a row adds up"),
    DT_OPTION(config, alpha, DT_OPT_F64, "0", "1", 0, 16, NULL, "of priorities; 0: uniform"),
    DT_OPTION(config, temperature, DT_OPT_F64, "1", "units of reward", 1e-3, 1e6, NULL,
              "actions are drawn by exp(Q / it)"),
    DT_OPTION(config, normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION_END};

static void nothing(void *self) {}

/* ---- the network ------------------------------------------------------------------------------------------------- */

typedef struct net_state {
    int32_t unused;
} net_state;

static const dt_port net_in[] = {{"obs", "A 4", DT_F32, 0}}, net_out[] = {{"q", "A 2", DT_F32, 0}};

static dt_status net_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n)
{
    (void)self, (void)h, (void)cfg, (void)dims, (void)n;
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return net_in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return net_out;
}

static dt_status net_params(void *self, dt_params *reg)
{
    const int64_t w[] = {HIDDEN, OBS}, b[] = {HIDDEN}, v[] = {CHOICES, HIDDEN}, c[] = {CHOICES};
    DT_TRY_H(reg->add(reg, "in.w", w, 2, DT_INIT_FAN_IN, 1.0));
    DT_TRY_H(reg->add(reg, "in.b", b, 1, DT_INIT_ZERO, 0));
    DT_TRY_H(reg->add(reg, "out.w", v, 2, DT_INIT_FAN_IN, 1.0));
    return reg->add(reg, "out.b", c, 1, DT_INIT_ZERO, 0);
}

static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    out[0] = dt_linear_of(g, dt_relu(g, dt_linear_of(g, in[0], "in")), "out");
    return g->api->status(g);
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = nothing};

/* ---- the phase --------------------------------------------------------------------------------------------------- */

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, "qreplay");
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, "qreplay");
    DT_SERVICE_H(h, s->rollout, DT_SVC_ROLLOUT, "qreplay");
    DT_SERVICE_H(h, s->replay, DT_SVC_REPLAY, "qreplay");
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, "qreplay");
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .role = "controller",
                                   .offers = net_in,
                                   .n_offers = 1,
                                   .needs = net_out,
                                   .n_needs = 1};
    DT_TRY_H(s->bind->env(h, NULL, 0, &s->env));
    DT_TRY_H(s->bind->model(h, &want, &s->net));
    const config *c = &s->config;
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = (uint32_t)c->steps,
                               .gamma = 0.98,
                               .normalise_obs = c->normalise_obs,
                               .clip_obs = 10,
                               .transitions = 2};
    const dt_replay_desc m = {.struct_size = sizeof(m),
                              .n_step = (uint32_t)c->n_step,
                              .capacity = (uint64_t)c->capacity,
                              .draw = (uint64_t)c->draw,
                              .gamma = 0.98,
                              .alpha = c->alpha,
                              .beta = 0.5};
    DT_TRY_H(s->rollout->create(h, s->env, &d, &s->rounds));
    return s->replay->create(h, s->rounds, &m, &s->memory);
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const dt_graph_api *api = g->api;
    const dt_named now[] = {{"obs", api->input(g, "obs")}}, next[] = {{"obs", api->input(g, "next_obs")}};
    dt_named q[] = {{"q", NULL}}, old[] = {{"q", NULL}};
    DT_TRY_H(api->model(g, s->net, now, 1, q, 1));
    DT_TRY_H(api->model_as(g, s->net, "old", next, 1, old, 1));
    /* a share of actions is drawn evenly: what is never tried is never corrected */
    dt_tensor *greedy = dt_softmax(g, dt_affine(g, q[0].tensor, 1 / s->config.temperature, 0));
    dt_tensor *drawn = dt_affine(g, greedy, 1 - EVENLY, EVENLY / CHOICES);
    DT_TRY_H(api->output(g, "logits", dt_unary(g, DT_FN_LOG, drawn, 0)));
    dt_tensor *allowed = dt_add(g, old[0].tensor, dt_affine(g, api->input(g, "next_mask"), 1e6, -1e6));
    dt_tensor *best = dt_reduce_columns(g, DT_REDUCE_MAX, allowed);
    dt_tensor *later = dt_mul(g, best, dt_split(g, api->input(g, "discount"), 0));
    dt_tensor *target = dt_stop(g, dt_add(g, dt_split(g, api->input(g, "reward"), 0), later));
    dt_tensor *chosen = dt_pick(g, q[0].tensor, api->input(g, "action_i"), 0);
    DT_TRY_H(api->output(g, "error", dt_merge(g, dt_sub(g, target, chosen))));
    DT_TRY_H(api->loss(g, "td", dt_mse(g, chosen, target, api->input(g, "weight")), 1.0, "A"));
    return api->status(g);
}

static dt_status start(void *self)
{
    state *s = self;
    const dt_train_target old = {.struct_size = sizeof(old), .name = "old", .model = s->net, .tau = 1, .every = 20};
    const dt_train_desc d = {.struct_size = sizeof(d),
                             .n_models = 1,
                             .user = s,
                             .record = record,
                             .data = s->replay->data(s->memory),
                             .models = &s->net,
                             .epochs = (uint64_t)(s->config.iterations * s->config.draws),
                             .target = &old,
                             .n_targets = 1};
    return s->train->create(s->h, &d, &s->trainer);
}

static dt_status keep_errors(void *user, const dt_rows *r)
{
    state *s = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *error = s->train->rows(r, "error", dim, &rank);
    if (error == NULL || s->n_errors + (uint64_t)dim[0] > MOST) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "an evaluation of what was drawn lacks errors, or has too many");
    }
    memcpy(s->error + s->n_errors, error, (size_t)dim[0] * sizeof(*error));
    s->n_errors += (uint64_t)dim[0];
    return DT_OK;
}

/* A draw, a pass over it, and how wrong it is now. */
static dt_status learn(state *s, uint64_t steps, dt_step_report *r)
{
    DT_TRY_H(s->replay->draw(s->memory));
    for (uint64_t i = 0; i < steps; i++) {
        DT_TRY_H(s->train->step(s->trainer, r));
    }
    if (s->config.alpha <= 0) {
        return DT_OK;
    }
    s->n_errors = 0;
    DT_TRY_H(s->train->evaluate(s->trainer, s->replay->data(s->memory), s, keep_errors));
    return s->replay->priority(s->memory, s->error, s->n_errors);
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, per_draw = 0;
    dt_rollout_report collected = {.struct_size = sizeof(collected)};
    dt_step_report r = {.struct_size = sizeof(r)};
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &per_draw));
    if (step >= steps) {
        return DT_DONE;
    }
    DT_TRY_H(s->rollout->collect(s->rounds, s->trainer, &collected));
    DT_TRY_H(s->replay->add(s->memory));
    for (int64_t i = 0; i < s->config.draws; i++) {
        DT_TRY_H(learn(s, per_draw, &r));
    }
    s->metrics->scalar(s->h, "charts/episodic_return", collected.episode_return);
    out->step = r.step;
    out->steps = steps;
    out->samples = collected.env_steps;
    out->loss = r.loss;
    out->epoch = step / (per_draw * (uint64_t)s->config.draws);
    out->epochs = (uint64_t)s->config.iterations;
    out->iterations = out->epoch + 1;
    out->epoch_end = 1;
    return r.step >= steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    const state *s = self;
    DT_TRY_H(s->rollout->report(s->rounds, s->trainer));
    out->evaluated = 1;
    return DT_OK;
}

DT_STOP_DEFINE(stop, state);

static const dt_phase_ops ops = {.struct_size = sizeof(dt_phase_ops),
                                 .create = create,
                                 .start = start,
                                 .iterate = iterate,
                                 .evaluate = evaluate,
                                 .stop = stop,
                                 .destroy = nothing};
static const dt_component phase = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_PHASE,
                                   .id = "qreplay",
                                   .summary = "Q-learning from a replay",
                                   .reference = "Mnih et al. (2015), doi:10.1038/nature14236",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .ops = &ops};
static const dt_component net = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_MODEL,
                                 .id = "qreplay_net",
                                 .summary = "Q values of each choice",
                                 .reference = "none",
                                 .role = "controller",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .state_size = sizeof(net_state),
                                 .ops = &net_ops};
static const dt_component *const components[] = {&phase, &net};
static const dt_plugin plugin = {DT_PLUGIN_PREFIX,        .name = "qreplay", .version = "0.1",        .vendor = "tests",
                                 .license = "Apache-2.0", .n_components = 2, .components = components};
DT_PLUGIN_DEFINE(plugin);

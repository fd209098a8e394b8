/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor and a critic that learn from samples, the critic towards target networks of both, each by a loss of its own.
 * For tests alone: the option wrong names what the phase does wrong.
 *
 *   losses  critic  (Q(x, y) - (r + 0.5 Q'(x, a'(x))))^2     Q', a': by target networks
 *           actor   -Q(x, a(x))
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/train.h"

#include <stdbool.h>
#include <string.h>

enum { OBS = 4, ACTS = 2, SAMPLES = 96 };

typedef struct config {
    double tau;
    int64_t every, past, delay;
    const char *wrong;
} config;

static const dt_option options[] = {
    DT_OPTION(config, tau, DT_OPT_F64, "0.1", "1", 0, 1, NULL, "of both targets"),
    DT_OPTION(config, every, DT_OPT_I64, "1", "steps", 0, 1000, NULL, "how often they move"),
    DT_OPTION(config, past, DT_OPT_I64, "3", "steps", 1, 1000, NULL, "how often the past of the actor is set"),
    DT_OPTION(config, delay, DT_OPT_I64, "0", "steps", 0, 1000, NULL,
              "groups, and the actor learns in every so many steps; 0: all learn from both losses"),
    DT_OPTION(config, wrong, DT_OPT_STR, "", NULL, 0, 0, NULL, "what is done wrong"),
    DT_OPTION_END};

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_metrics_api *metrics;
    config config;
    dt_data *data;
    dt_model *model[2];
    dt_train *trainer;
    uint64_t steps;
    double differ; /* of what the actor does and did */
} state;

static void nothing(void *self) {}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

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
    static const dt_port fields[] = {{"x", "A 4", DT_F32, 0}, {"y", "A 2", DT_F32, 0}, {"r", "A 1", DT_F32, 0}};
    *n_p = 3;
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
    float *x = out[0], *y = out[1], *r = out[2];
    (void)self, (void)key;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t s = index[i];
        for (uint64_t d = 0; d < OBS; d++) {
            x[i * OBS + d] = (float)((s * (d + 3) + d) % 17) / 8 - 1;
        }
        y[i * ACTS] = (float)(s * 5 % 13) / 6 - 1;
        y[i * ACTS + 1] = (float)(s * 7 % 11) / 5 - 1;
        r[i] = x[i * OBS] * y[i * ACTS] - y[i * ACTS + 1] * y[i * ACTS + 1];
    }
    return DT_OK;
}

static const dt_data_ops data_ops = {.struct_size = sizeof(dt_data_ops),
                                     .create = data_create,
                                     .fields = data_fields,
                                     .symbols = data_symbols,
                                     .count = data_count,
                                     .sizes = data_sizes,
                                     .read = data_read,
                                     .destroy = nothing};

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct model_state {
    int32_t unused;
} model_state;

static const dt_port actor_in[] = {{"x", "A 4", DT_F32, 0}}, actor_out[] = {{"a", "A 2", DT_F32, 0}};
static const dt_port critic_in[] = {{"x", "A 4", DT_F32, 0}, {"a", "A 2", DT_F32, 0}};
static const dt_port critic_out[] = {{"q", "A 1", DT_F32, 0}};

static dt_status model_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n)
{
    (void)self, (void)h, (void)cfg, (void)dims, (void)n;
    return DT_OK;
}

static const dt_port *actor_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return actor_in;
}

static const dt_port *actor_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return actor_out;
}

static dt_status actor_params(void *self, dt_params *reg)
{
    return dt_linear_params(reg, "out", ACTS, OBS, DT_INIT_ZERO, 0);
}

static dt_status actor_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    out[0] = dt_tanh(g, dt_linear_of(g, in[0], "out"));
    return g->api->status(g);
}

static const dt_port *critic_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return critic_in;
}

static const dt_port *critic_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return critic_out;
}

static dt_status critic_params(void *self, dt_params *reg)
{
    DT_TRY_H(dt_linear_params(reg, "in", 16, OBS + ACTS, DT_INIT_ZERO, 0));
    return dt_linear_params(reg, "out", 1, 16, DT_INIT_ZERO, 0);
}

static dt_status critic_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    out[0] = dt_linear_of(g, dt_tanh(g, dt_linear_of(g, dt_concat(g, in, 2), "in")), "out");
    return g->api->status(g);
}

static const dt_model_ops actor_ops = {.struct_size = sizeof(dt_model_ops),
                                       .create = model_create,
                                       .inputs = actor_inputs,
                                       .outputs = actor_outputs,
                                       .params = actor_params,
                                       .forward = actor_forward,
                                       .destroy = nothing};
static const dt_model_ops critic_ops = {.struct_size = sizeof(dt_model_ops),
                                        .create = model_create,
                                        .inputs = critic_inputs,
                                        .outputs = critic_outputs,
                                        .params = critic_params,
                                        .forward = critic_forward,
                                        .destroy = nothing};

/* ---- the phase --------------------------------------------------------------------------------------------------- */

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    const dt_bind_api *bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->metrics = h->service(h, DT_SVC_METRICS);
    if (bind == NULL || s->train == NULL || s->metrics == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "duel needs bind, train and metrics");
    }
    const dt_setting split[] = {{"split", "train"}};
    const dt_model_request actor = DT_MODEL_REQUEST("actor", actor_in, actor_out);
    const dt_model_request critic = DT_MODEL_REQUEST("critic", critic_in, critic_out);
    DT_TRY_H(bind->data(h, split, 1, &s->data));
    DT_TRY_H(bind->model(h, &actor, &s->model[0]));
    return bind->model(h, &critic, &s->model[1]);
}

static bool is_wrong(const state *s, const char *how)
{
    return strcmp(s->config.wrong, how) == 0;
}

static dt_tensor *act(const state *s, dt_graph *g, const char *target)
{
    const dt_named in = {"x", g->api->input(g, "x")};
    dt_named out = {"a", NULL};
    (void)g->api->model_as(g, s->model[0], target, &in, 1, &out, 1);
    return out.tensor;
}

static dt_tensor *value_of(const state *s, dt_graph *g, const char *target, dt_tensor *a)
{
    const dt_named in[] = {{"x", g->api->input(g, "x")}, {"a", a}};
    dt_named out = {"q", NULL};
    (void)g->api->model_as(g, s->model[1], target, in, 2, &out, 1);
    return out.tensor;
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const dt_graph_api *api = g->api;
    dt_tensor *r = api->input(g, "r"), *a = act(s, g, NULL);
    dt_tensor *after = value_of(s, g, is_wrong(s, "unknown target") ? "ghost" : "target", act(s, g, "target"));
    dt_tensor *goal = dt_add(g, r, dt_affine(g, after, 0.5, 0));
    dt_tensor *weight = dt_merge(g, dt_fill(g, r, 1));
    DT_TRY_H(api->loss(g, "critic", dt_mse(g, value_of(s, g, NULL, api->input(g, "y")), goal, weight), 1, "A"));
    DT_TRY_H(api->loss(g, "actor", dt_sum(g, value_of(s, g, NULL, a)), -1, "A"));
    DT_TRY_H(api->output(g, "a", a));
    DT_TRY_H(api->output(g, "past", act(s, g, "past")));
    return api->status(g);
}

enum { MOST = DT_TRAIN_MAX_GROUPS + 1 };

static const char *const names[] = {"critic", "actor", "ghost"};
static const char *const others[] = {"actor", "critic"};

static void set_groups(const state *s, dt_train_group *group, dt_train_desc *desc)
{
    for (uint32_t i = 0; i < MOST; i++) {
        group[i] = (dt_train_group){.struct_size = sizeof(group[0]),
                                    .n_roles = 1,
                                    .n_losses = 1,
                                    .name = names[i % 2],
                                    .role = &names[i % 2],
                                    .loss = &names[i % 2]};
    }
    group[0].struct_size = is_wrong(s, "no group size") ? 8 : group[0].struct_size;
    group[0].gradient_clip = is_wrong(s, "bad clip") ? 0.0 / (double)group[0].reserved : 0.5;
    group[1].learning_rate = is_wrong(s, "bad rate") ? -1 : 2e-3;
    group[1].name = is_wrong(s, "bad group name") ? "Actor" : is_wrong(s, "two groups") ? "critic" : "actor";
    group[1].n_losses = is_wrong(s, "no losses") ? 0 : is_wrong(s, "unknown loss") ? 2 : 1;
    group[1].role = is_wrong(s, "role in two groups") ? &names[0] : is_wrong(s, "unknown role") ? &names[2] : &names[1];
    group[0].loss = is_wrong(s, "loss in two groups") ? others : group[0].loss;
    group[0].n_losses = is_wrong(s, "loss in two groups") ? 2 : 1;
    group[1].loss = is_wrong(s, "unknown loss") ? &names[1] : group[1].loss;
    desc->group = is_wrong(s, "no group list") ? NULL : group;
    desc->n_groups = is_wrong(s, "many groups") ? MOST : is_wrong(s, "loss in none") ? 1 : 2;
}

static dt_status start(void *self)
{
    state *s = self;
    dt_train_group group[MOST];
    dt_train_target target[DT_TRAIN_MAX_TARGETS + 1];
    for (uint32_t i = 0; i < DT_TRAIN_MAX_TARGETS + 1; i++) {
        target[i] = (dt_train_target){.struct_size = sizeof(target[0]),
                                      .name = i < 2 ? "target" : "past",
                                      .model = s->model[i % 2],
                                      .tau = i < 2 ? s->config.tau : 1,
                                      .every = i < 2 ? (uint64_t)s->config.every : 0};
    }
    dt_train_desc desc = DT_TRAIN_DESC(s, record, s->data, s->model, 2);
    if (s->config.delay > 0) {
        set_groups(s, group, &desc);
    }
    desc.manual_loss = is_wrong(s, "apart") ? "actor" : NULL;
    desc.n_targets = is_wrong(s, "many target networks") ? DT_TRAIN_MAX_TARGETS + 1
                     : is_wrong(s, "two of a name")      ? 5
                                                         : 3;
    desc.target = is_wrong(s, "no list") ? NULL : target;
    desc.n_models = is_wrong(s, "foreign model") ? 1 : 2;
    target[0].struct_size = is_wrong(s, "no size") ? 0 : target[0].struct_size;
    target[2].name = is_wrong(s, "no name") ? NULL : is_wrong(s, "bad name") ? "the past" : target[2].name;
    target[2].tau = is_wrong(s, "bad tau") ? 1.5 : target[2].tau;
    return s->train->create(s->h, &desc, &s->trainer);
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, per_epoch = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    (void)s->train->position(s->trainer, &step, &steps, &per_epoch);
    const uint64_t delay = (uint64_t)s->config.delay;
    const uint32_t groups = is_wrong(s, "no such group") ? 4 : delay > 0 && (step + 1) % delay != 0 ? 1 : 3;
    const dt_status st = delay > 0 ? s->train->step_groups(s->trainer, groups, &r) : s->train->step(s->trainer, &r);
    out->step = r.step;
    out->steps = r.steps;
    out->epoch = r.epoch;
    out->epochs = r.epochs;
    out->samples = r.samples;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = r.epoch_end;
    if (st >= 0 && out->step % (uint64_t)s->config.past == 0) {
        DT_TRY_H(s->train->target_copy(s->trainer, is_wrong(s, "unknown copy") ? "ghost" : "past"));
    }
    return st;
}

static dt_status compare(void *user, const dt_rows *r)
{
    state *s = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *a = s->train->rows(r, "a", dim, &rank), *past = s->train->rows(r, "past", dim, &rank);
    for (int64_t i = 0; i < dim[0] * ACTS; i++) {
        s->differ += (double)(a[i] - past[i]) * (double)(a[i] - past[i]);
    }
    return DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    s->differ = 0;
    DT_TRY_H(s->train->evaluate(s->trainer, s->data, s, compare));
    s->metrics->report(s->h, "differ", &s->differ, 0);
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
                                   .id = "duel",
                                   .summary = "an actor and a critic",
                                   .reference = "none",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .ops = &ops};

static const dt_component data = {.struct_size = sizeof(dt_component),
                                  .kind = DT_KIND_DATA,
                                  .id = "duel_data",
                                  .summary = "what was done, and its reward",
                                  .reference = "none",
                                  .flags = DT_COMP_DETERMINISTIC,
                                  .config_size = sizeof(data_config),
                                  .state_size = sizeof(data_config),
                                  .options = data_options,
                                  .ops = &data_ops};

static const dt_component actor = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_MODEL,
                                   .id = "duel_actor",
                                   .summary = "one layer",
                                   .reference = "none",
                                   .role = "actor",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .state_size = sizeof(model_state),
                                   .ops = &actor_ops};

static const dt_component critic = {.struct_size = sizeof(dt_component),
                                    .kind = DT_KIND_MODEL,
                                    .id = "duel_critic",
                                    .summary = "two layers",
                                    .reference = "none",
                                    .role = "critic",
                                    .flags = DT_COMP_DETERMINISTIC,
                                    .state_size = sizeof(model_state),
                                    .ops = &critic_ops};

static const dt_component *const components[] = {&phase, &actor, &critic, &data};

static const dt_plugin plugin = {DT_PLUGIN_PREFIX,        .name = "duel",    .version = "0.1",        .vendor = "tests",
                                 .license = "Apache-2.0", .n_components = 4, .components = components};

DT_PLUGIN_DEFINE(plugin);

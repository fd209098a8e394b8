/* SPDX-License-Identifier: Apache-2.0
 *
 * dreamer: a policy of one discrete action that learns in the imagination of a recurrent world model, after Hafner et
 * al. 2021 and 2023 (arXiv 2010.02193, 2301.04104), written against installed headers only. State h, z; choice a:
 *
 *   gates     h = GRU(h, z, a)    prior    z ~ p(z | h)
 *   encoder   z ~ q(z | h, o): one-hot, drawn by Gumbel noise, with straight-through gradients
 *   decoder   o, r and a logit of going on from h, z, which controller and critic read, too
 *
 * Acting carries h and z from step to step (svc/rollout.h: desc.carried). The world model learns from windows of steps
 * out of a replay buffer, controller and critic from lambda returns of `horizon` steps imagined after each of them.
 *
 *   cc -shared -fPIC $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=dreamer -o dreamer.so dreamer.c
 *   dtrain check ./dreamer.so && dtrain --plugin ./dreamer.so
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/replay.h>

#define ID "dreamer"
enum { MAX_HORIZON = 64, TEXT = 32 };

/* Networks of one form, for each role. */
typedef struct net_config {
    int64_t hidden;
} net_config;
typedef struct net {
    int64_t hidden, size[2]; /* of x, y */
    char text[2][TEXT];
    dt_port port[2];
} net;
static const dt_option net_options[] = {
    DT_OPTION(net_config, hidden, DT_OPT_I64, "32", "1", 1, 8192, NULL, "hidden units"), DT_OPTION_END};

static dt_status net_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    net *s = (net *)self;
    (void)h;
    s->hidden = ((const net_config *)cfg)->hidden;
    for (uint32_t i = 0; i < 2; i++) {
        s->size[i] = i < n_dims ? dims[i].size : 1; /* of what the phase sets the first two */
        (void)snprintf(s->text[i], TEXT, "A %lld", (long long)s->size[i]);
        s->port[i] = (dt_port){i == 0 ? "x" : "y", s->text[i], DT_F32, 0};
    }
    return DT_OK;
}
#define PORT(FN, I)                                                                                                    \
    static const dt_port *FN(const void *self, uint32_t *n_p)                                                          \
    {                                                                                                                  \
        *n_p = 1;                                                                                                      \
        return &((const net *)self)->port[I];                                                                          \
    }
PORT(net_inputs, 0)
PORT(net_outputs, 1)
static dt_status net_params(void *self, dt_params *reg)
{
    const net *s = (const net *)self;
    const int64_t w1[] = {s->hidden, s->size[0]}, w2[] = {s->size[1], s->hidden};
    DT_TRY_H(reg->add(reg, "w1", w1, 2, DT_INIT_FAN_IN, 1));
    DT_TRY_H(reg->add(reg, "b1", w1, 1, DT_INIT_ZERO, 0));
    DT_TRY_H(reg->add(reg, "w2", w2, 2, DT_INIT_FAN_IN, 1));
    return reg->add(reg, "b2", w2, 1, DT_INIT_ZERO, 0);
}
static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    dt_tensor *x = dt_linear(g, in[0], g->api->param(g, "w1"), g->api->param(g, "b1"));
    (void)self;
    out[0] = dt_linear(g, dt_unary(g, DT_FN_ELU, x, 1), g->api->param(g, "w2"), g->api->param(g, "b2"));
    return g->api->status(g);
}
#define NET(NAME, ROLE)                                                                                                \
    DT_MODEL_DEFINE(NAME, "dreamer_" ROLE, "fully connected layers in the role of the " ROLE, "Hafner et al. 2023",    \
                    net_config, net, net_options,                                                                      \
                    DT_OPS(DT_SET(create, net_create), DT_SET(inputs, net_inputs), DT_SET(outputs, net_outputs),       \
                           DT_SET(params, net_params), DT_SET(forward, net_forward), DT_SET(destroy, dt_no_op)),       \
                    DT_SET(role, ROLE), DT_SET(flags, DT_COMP_DETERMINISTIC))
NET(gates, "gates");
NET(encoder, "encoder");
NET(prior, "prior");
NET(decoder, "decoder");
NET(actor, "controller");
NET(critic, "critic");

enum { GATES, ENCODER, PRIOR, DECODER, ACTOR, CRITIC, ROLES };
static const char *const role[ROLES] = {"gates", "encoder", "prior", "decoder", "controller", "critic"};
typedef struct config {
    int64_t rounds, steps, capacity, updates, window, horizon, deterministic, groups, classes;
    double gamma, lambda, entropy, free_nats, world_rate;
} config;
typedef struct state {
    const dt_host *h;
    config config;
    dt_model *model[ROLES];
    int64_t columns, choices; /* of the observation, of the action */
    dt_replay_loop loop;
} state;
typedef struct latent {
    dt_tensor *h, *z;
} latent;

#define OPTION(member, type, dfl, unit, min, max, help) DT_OPTION(config, member, type, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    OPTION(rounds, DT_OPT_I64, "150", "1", 1, 1e9, "rounds of collecting and learning"),
    OPTION(steps, DT_OPT_I64, "16", "steps", 1, 1e6, "of every instance in a round"),
    OPTION(capacity, DT_OPT_I64, "50000", "samples", 1, 1e12, "steps that are kept"),
    OPTION(updates, DT_OPT_I64, "16", "1", 1, 1e6, "updates of a round"),
    OPTION(window, DT_OPT_I64, "6", "steps", 2, 256, "that the world model learns from at a time"),
    OPTION(horizon, DT_OPT_I64, "12", "steps", 1, MAX_HORIZON, "that are imagined"),
    OPTION(deterministic, DT_OPT_I64, "32", "1", 1, 4096, "numbers of h"),
    OPTION(groups, DT_OPT_I64, "4", "1", 1, 256, "categoricals of z"),
    OPTION(classes, DT_OPT_I64, "8", "1", 2, 256, "of each categorical"),
    OPTION(gamma, DT_OPT_F64, "0.98", "1", 0, 1, "discount"),
    OPTION(lambda, DT_OPT_F64, "0.95", "1", 0, 1, "of the lambda returns"),
    OPTION(entropy, DT_OPT_F64, "0.02", "1", 0, 1e6, "weight of the policy's entropy"),
    OPTION(free_nats, DT_OPT_F64, "0.3", "nats", 0, 1e6, "KL below this is not reduced"),
    OPTION(world_rate, DT_OPT_F64, "3e-3", "1", 0, 10, "learning rate of the world model"),
    DT_OPTION_END};

static dt_tensor *record_net(const state *s, dt_graph *g, int of, const char *target, dt_tensor *x)
{
    const dt_named in = {"x", x};
    dt_named out = {"y", NULL};
    const dt_status st = target != NULL ? g->api->model_as(g, s->model[of], target, &in, 1, &out, 1)
                                        : g->api->model(g, s->model[of], &in, 1, &out, 1);
    return st < 0 ? NULL : out.tensor;
}
static dt_tensor *join(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    dt_tensor *both[] = {a, b};
    return dt_concat(g, both, 2);
}
/* Probabilities [A,groups,classes] by a network of x: 1 % is even. */
static dt_tensor *record_probability(const state *s, dt_graph *g, int of, dt_tensor *x, int64_t groups, int64_t classes)
{
    dt_tensor *logits = dt_split(g, record_net(s, g, of, NULL, x), groups);
    return dt_affine(g, dt_softmax(g, logits), 0.99, 0.01 / (double)classes);
}
/* One-hot draws with the gradient of p; the most likely ones where the graph only acts. */
static dt_tensor *record_draw(dt_graph *g, dt_tensor *p, int64_t groups, int64_t classes)
{
    dt_tensor *score = dt_unary(g, DT_FN_LOG, p, 0);
    if (dt_purpose(g) == DT_FOR_TRAINING) {
        dt_tensor *noise = dt_gumbel_noise(g, g->api->input(g, "row_key"), groups * classes, 0);
        score = dt_add(g, score, dt_split(g, noise, groups));
    }
    return dt_merge(g, dt_add(g, dt_stop(g, dt_sub(g, dt_one_hot(g, dt_argmax(g, score), 0, classes), p)), p));
}
static dt_tensor *record_cell(const state *s, dt_graph *g, latent x, dt_tensor *action)
{
    const int64_t n = s->config.deterministic;
    dt_tensor *all = record_net(s, g, GATES, NULL, join(g, join(g, x.h, x.z), action));
    dt_tensor *reset = dt_sigmoid(g, dt_slice(g, all, 0, n));
    dt_tensor *fresh = dt_tanh(g, dt_mul(g, reset, dt_slice(g, all, n, n)));
    dt_tensor *update = dt_sigmoid(g, dt_affine(g, dt_slice(g, all, 2 * n, n), 1, -1));
    return dt_add(g, x.h, dt_mul(g, update, dt_sub(g, fresh, x.h)));
}
/* KL(p || q) of each row, [A,1]. */
static dt_tensor *record_kl(dt_graph *g, dt_tensor *p, dt_tensor *q, double free_nats)
{
    dt_tensor *ratio = dt_sub(g, dt_unary(g, DT_FN_LOG, p, 0), dt_unary(g, DT_FN_LOG, q, 0));
    dt_tensor *kl = dt_reduce_columns(g, DT_REDUCE_SUM, dt_merge(g, dt_mul(g, p, ratio)));
    return dt_max(g, kl, dt_fill(g, kl, free_nats));
}
static dt_tensor *record_square(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    dt_tensor *d = dt_sub(g, a, b);
    return dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, d, d));
}

/* The state after an action and an observation; losses of rows [A,1] onto those of before (NULL: none). */
static latent record_step(const state *s, dt_graph *g, latent x, dt_tensor *action, dt_tensor *obs, dt_tensor *weight,
                          dt_tensor **error_p, dt_tensor **kl_p)
{
    const config *c = &s->config;
    x.h = record_cell(s, g, x, action);
    dt_tensor *p = record_probability(s, g, ENCODER, join(g, x.h, obs), c->groups, c->classes);
    x.z = record_draw(g, p, c->groups, c->classes);
    if (error_p == NULL) {
        return x;
    }
    dt_tensor *q = record_probability(s, g, PRIOR, x.h, c->groups, c->classes);
    dt_tensor *seen = dt_slice(g, record_net(s, g, DECODER, NULL, join(g, x.h, x.z)), 0, s->columns);
    dt_tensor *kl = dt_add(g, dt_affine(g, record_kl(g, dt_stop(g, p), q, c->free_nats), 0.5, 0),
                           dt_affine(g, record_kl(g, p, dt_stop(g, q), c->free_nats), 0.1, 0));
    *error_p = dt_add(g, *error_p, dt_mul(g, record_square(g, seen, obs), weight));
    *kl_p = dt_add(g, *kl_p, dt_mul(g, kl, weight));
    return (latent){dt_mul(g, x.h, weight), dt_mul(g, x.z, weight)};
}

/* Losses of the world model over the window and the step after it; *x_p: the state of the row itself. */
static dt_status record_world(const state *s, dt_graph *g, latent *x_p)
{
    const dt_graph_api *api = g->api;
    dt_tensor *ones = dt_fill(g, dt_split(g, api->input(g, "reward"), 0), 1); /* [A,1] */
    dt_tensor *error = dt_fill(g, ones, 0), *kl = error;
    latent x = {dt_fill(g, api->input(g, "h"), 0), dt_fill(g, api->input(g, "z"), 0)};
    for (int64_t w = 0; w < s->config.window; w++) {
        dt_tensor *weight = dt_split(g, dt_step(g, api->input(g, "present"), w), 0);
        x = record_step(s, g, x, dt_step(g, api->input(g, "last_action_history"), w),
                        dt_step(g, api->input(g, "obs_history"), w), weight, &error, &kl);
    }
    *x_p = x;
    dt_tensor *action = dt_one_hot(g, api->input(g, "action_i"), 0, s->choices), *reward = api->input(g, "reward");
    x = record_step(s, g, x, action, api->input(g, "next_obs"), ones, &error, &kl);
    dt_tensor *last = record_net(s, g, DECODER, NULL, join(g, x.h, x.z)), *weight = dt_fill(g, reward, 1);
    dt_tensor *logit = dt_merge(g, dt_slice(g, last, s->columns + 1, 1));
    dt_tensor *goes_on = dt_affine(g, api->input(g, "terminated"), -1, 1);
    DT_TRY_H(api->loss(g, "observation", dt_sum(g, error), 1.0 / (double)s->config.window, "A"));
    DT_TRY_H(api->loss(g, "kl", dt_sum(g, kl), 1.0 / (double)s->config.window, "A"));
    reward = dt_mse(g, dt_slice(g, last, s->columns, 1), dt_split(g, reward, 0), weight);
    DT_TRY_H(api->loss(g, "reward", reward, 1, "A"));
    return api->loss(g, "continue", dt_bce_logits(g, logit, goes_on, weight), 1, "A");
}

/* Losses of controller and critic over imagined steps. */
static dt_status record_imagination(const state *s, dt_graph *g, latent x)
{
    enum { POLICY, ENTROPY, VALUE, LOSSES };
    const config *c = &s->config;
    const double each = 1.0 / (double)c->horizon;
    dt_tensor *value[MAX_HORIZON], *old[MAX_HORIZON + 1], *log_p[MAX_HORIZON], *entropy[MAX_HORIZON];
    dt_tensor *reward[MAX_HORIZON], *discount[MAX_HORIZON], *weight[MAX_HORIZON + 1], *sum[LOSSES];
    x = (latent){dt_stop(g, x.h), dt_stop(g, x.z)};
    for (int64_t t = 0; t < c->horizon; t++) {
        dt_tensor *both = join(g, x.h, x.z), *p = record_probability(s, g, ACTOR, both, 1, s->choices);
        dt_tensor *action = dt_stop(g, record_draw(g, p, 1, s->choices)), *log_all = dt_unary(g, DT_FN_LOG, p, 0);
        log_p[t] = dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, dt_merge(g, log_all), action));
        entropy[t] = dt_reduce_columns(g, DT_REDUCE_SUM, dt_merge(g, dt_mul(g, p, log_all)));
        value[t] = record_net(s, g, CRITIC, NULL, both);
        old[t] = record_net(s, g, CRITIC, "target", both);
        weight[t] = t > 0 ? dt_mul(g, weight[t - 1], discount[t - 1]) : dt_fill(g, value[t], 1);
        x.h = dt_stop(g, record_cell(s, g, x, action));
        p = record_probability(s, g, PRIOR, x.h, c->groups, c->classes);
        x.z = dt_stop(g, record_draw(g, p, c->groups, c->classes));
        dt_tensor *seen = dt_stop(g, record_net(s, g, DECODER, NULL, join(g, x.h, x.z)));
        reward[t] = dt_slice(g, seen, s->columns, 1);
        discount[t] = dt_affine(g, dt_sigmoid(g, dt_slice(g, seen, s->columns + 1, 1)), c->gamma, 0);
    }
    dt_tensor *returns = old[c->horizon] = record_net(s, g, CRITIC, "target", join(g, x.h, x.z));
    sum[POLICY] = sum[ENTROPY] = sum[VALUE] = dt_fill(g, returns, 0);
    for (int64_t t = c->horizon; t-- > 0;) {
        dt_tensor *next = dt_add(g, dt_affine(g, old[t + 1], 1 - c->lambda, 0), dt_affine(g, returns, c->lambda, 0));
        returns = dt_stop(g, dt_add(g, reward[t], dt_mul(g, discount[t], next)));
        dt_tensor *gain = dt_mul(g, log_p[t], dt_stop(g, dt_sub(g, returns, value[t])));
        dt_tensor *now[LOSSES] = {gain, entropy[t], record_square(g, value[t], returns)};
        for (int i = 0; i < LOSSES; i++) {
            sum[i] = dt_add(g, sum[i], dt_mul(g, now[i], weight[t]));
        }
    }
    DT_TRY_H(g->api->loss(g, "policy", dt_sum(g, sum[POLICY]), -each, "A"));
    DT_TRY_H(g->api->loss(g, "entropy", dt_sum(g, sum[ENTROPY]), c->entropy * each, "A"));
    return g->api->loss(g, "value", dt_sum(g, sum[VALUE]), each, "A");
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    latent start, x = {api->input(g, "h"), api->input(g, "z")};
    x = record_step(s, g, x, api->input(g, "last_action"), api->input(g, "obs"), NULL, NULL, NULL);
    dt_tensor *p = record_probability(s, g, ACTOR, join(g, x.h, x.z), 1, s->choices);
    DT_TRY_H(api->output(g, "carry/h", x.h));
    DT_TRY_H(api->output(g, "carry/z", x.z));
    DT_TRY_H(api->output(g, "logits", dt_unary(g, DT_FN_LOG, dt_merge(g, p), 0)));
    DT_TRY_H(record_world(s, g, &start));
    return record_imagination(s, g, start);
}

static dt_status bind_nets(state *s, const dt_bind_api *bind)
{
    const int64_t n = s->config.deterministic, z = s->config.groups * s->config.classes, o = s->columns;
    const int64_t size[ROLES][2] = {{n + z + s->choices, 3 * n}, {n + o, z}, {n, z}, {n + z, o + 2},
                                    {n + z, s->choices},         {n + z, 1}};
    for (int i = 0; i < ROLES; i++) {
        char x[TEXT];
        (void)snprintf(x, sizeof(x), "A %lld", (long long)size[i][0]);
        const dt_port offers[] = {{"x", x, DT_F32, 0}}, needs[] = {{"y", "A Y", DT_F32, 0}};
        const dt_dim dims[] = {{"x", size[i][0]}, {"y", size[i][1]}};
        dt_model_request want = DT_MODEL_REQUEST(role[i], offers, needs);
        want.dims = dims;
        want.n_dims = 2;
        DT_TRY_H(bind->model(s->h, &want, &s->model[i]));
    }
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const config *c = &s->config;
    const dt_bind_api *bind = NULL;
    dt_env *env = NULL;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_SERVICE_H(h, bind, DT_SVC_BIND, ID);
    DT_TRY_H(bind->env(h, NULL, 0, &env));
    const dt_env_spec *e = bind->env_spec(env);
    if (e->n_heads != 1 || e->n_continuous != 0 || strcmp(e->obs[0].name, "obs") != 0) {
        return DT_FAIL_H(h, DT_ESHAPE, ID ": %s has more than one discrete action, or no port obs", bind->env_id(env));
    }
    s->columns = bind->port_dim(&e->obs[0], 1);
    s->choices = e->choices[0];
    DT_TRY_H(bind_nets(s, bind));
    char text[2][TEXT];
    (void)snprintf(text[0], TEXT, "A %lld", (long long)c->deterministic);
    (void)snprintf(text[1], TEXT, "A %lld", (long long)(c->groups * c->classes));
    const dt_port carried[] = {{"h", text[0], DT_F32, 0}, {"z", text[1], DT_F32, 0}};
    const dt_rollout_desc r =
        DT_DESC_(dt_rollout_desc, DT_OPS(DT_SET(steps, (uint32_t)c->steps), DT_SET(window, (uint32_t)c->window),
                                         DT_SET(transitions, 2), DT_SET(normalise_obs, 1), DT_SET(clip_obs, 10),
                                         DT_SET(gamma, c->gamma), DT_SET(lambda, c->lambda), DT_SET(has_last_action, 1),
                                         DT_SET(carried, carried), DT_SET(n_carried, 2)));
    s->loop.rounds = (uint64_t)c->rounds;
    s->loop.updates = (uint64_t)c->updates;
    return dt_replay_loop_create(&s->loop, h, env, &r, (uint64_t)c->capacity);
}

static dt_status start(void *self)
{
    static const char *const world_loss[] = {"observation", "kl", "reward", "continue"};
    static const char *const actor_loss[] = {"policy", "entropy"}, *const critic_loss[] = {"value"};
    state *s = (state *)self;
    const config *c = &s->config;
    enum { BYTES = sizeof(dt_train_group) };
    const dt_train_group group[] = {{BYTES, 4, 4, 0, "world", &role[GATES], world_loss, c->world_rate, 0},
                                    {BYTES, 1, 2, 0, "actor", &role[ACTOR], actor_loss, 0, 0},
                                    {BYTES, 1, 1, 0, "critic", &role[CRITIC], critic_loss, 0, 0}};
    const dt_train_target target = {(uint32_t)sizeof(target), 0, "target", s->model[CRITIC], 0.02, 1};
    dt_train_desc d = DT_TRAIN_DESC(s, record, NULL, s->model, ROLES);
    d.target = &target;
    d.n_targets = 1;
    d.group = group;
    d.n_groups = 3;
    return dt_replay_loop_start(&s->loop, &d);
}

DT_REPLAY_OPS_DEFINE(loop, state, loop);
DT_DEFAULTS_DEFINE(extension, "models.gates=dreamer_gates", "models.encoder=dreamer_encoder",
                   "models.prior=dreamer_prior", "models.decoder=dreamer_decoder",
                   "models.controller=dreamer_controller", "models.critic=dreamer_critic", "env.id=cartpole",
                   "env.instances=8", "data.batch=32", "data.shards=4", "training.optimizer=adam",
                   "training.learning_rate=1e-3", "training.weight_decay=0", "training.gradient_clip=10",
                   "training.scheduler=constant", "training.warmup_epochs=0", "training.eval_interval=25",
                   "training.save_interval=25", "checkpoint.best_by=return/mean");
DT_PHASE_DEFINE(phase, ID, "a policy that learns in the imagination of a recurrent world model",
                "Hafner et al. 2021, arXiv 2010.02193; 2023, arXiv 2301.04104", config, state, options,
                DT_OPS(DT_SET(create, create), DT_SET(start, start), DT_SET(iterate, loop_iterate),
                       DT_SET(evaluate, loop_evaluate), DT_SET(stop, loop_stop), DT_SET(destroy, dt_no_op)),
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
DT_PLUGIN_DEFINE_OF(ID, "0.1", "dtrain", "Apache-2.0", &phase, &gates, &encoder, &prior, &decoder, &actor, &critic);

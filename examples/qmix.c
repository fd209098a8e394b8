/* SPDX-License-Identifier: Apache-2.0
 *
 * qmix: Q-learning of a team (Rashid et al. 2018, arXiv 1803.11485), written against installed headers only: a phase
 * and its mixing network. It learns the two-step game of the paper's section 5 by default.
 *
 *   Q_a(o, .)   the controller's logits, shared by all agents
 *   Q_total     hidden w2(s) + v(s), hidden = elu(q w1(s) + b1(s)): q has the Q of each agent's choice, w1 and w2 are
 *               absolute values of linear functions of the state s, so that Q_total rises with every Q_a
 *   td_loss     (Q_total - y)^2, y = r + gamma Q'_total(s', q'): r is what the team earns, q' has for each agent the
 *               target network's Q of the choice that is best by the controller (double Q-learning)
 *
 * s is what all agents observe. Field team_rows (svc/rollout.h) says which rows are of one team; each row computes the
 * loss of its team. mixing = "sum" is Q_total = sum q (VDN, Sunehag et al. 2018), "none" Q-learning of each agent alone.
 * Actions are epsilon-greedy while collecting, greedy in evaluations and exports.
 *
 *   cc -shared -fPIC $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=qmix -o qmix.so qmix.c -lm
 *   dtrain check ./qmix.so && dtrain --plugin ./qmix.so
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/metrics.h>
#include <dtrain/svc/replay.h>
#include <dtrain/svc/wiring.h>

#include <math.h>

#define ID        "qmix"
#define FORBIDDEN (-1e9) /* Q of a choice that the mask forbids */

/* ---- the mixing network ------------------------------------------------------------------------------------------ */

typedef struct mixer_config {
    int64_t width;
} mixer_config;

typedef struct mixer {
    mixer_config config;
    int64_t agents, state; /* columns of its inputs */
    char text[2][24];
    dt_port in[2];
} mixer;

static const dt_option mixer_options[] = {
    DT_OPTION(mixer_config, width, DT_OPT_I64, "8", "1", 1, 1024, NULL, "hidden units"), DT_OPTION_END};

static dt_status mixer_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    mixer *s = (mixer *)self;
    (void)h;
    s->config = *(const mixer_config *)cfg;
    s->agents = s->state = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        s->agents = strcmp(dims[i].name, "agents") == 0 ? dims[i].size : s->agents;
        s->state = strcmp(dims[i].name, "team_state") == 0 ? dims[i].size : s->state;
    }
    (void)snprintf(s->text[0], sizeof(s->text[0]), "A %lld", (long long)s->agents);
    (void)snprintf(s->text[1], sizeof(s->text[1]), "A %lld", (long long)s->state);
    s->in[0] = (dt_port){"team_q", s->text[0], DT_F32, 0};
    s->in[1] = (dt_port){"team_state", s->text[1], DT_F32, 0};
    return DT_OK;
}

static const dt_port *mixer_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return ((const mixer *)self)->in;
}

DT_PORTS_DEFINE(mixer_outputs, {"total", "A 1", DT_F32, 0});

static dt_status add_layer(dt_params *reg, const char *name, int64_t out, int64_t in)
{
    const int64_t dim[] = {out, in};
    char text[32];
    (void)snprintf(text, sizeof(text), "%s.w", name);
    DT_TRY_H(reg->add(reg, text, dim, 2, DT_INIT_FAN_IN, 1));
    (void)snprintf(text, sizeof(text), "%s.b", name);
    return reg->add(reg, text, dim, 1, DT_INIT_ZERO, 0);
}

static dt_tensor *record_layer(dt_graph *g, dt_tensor *x, const char *name)
{
    char w[32], b[32];
    (void)snprintf(w, sizeof(w), "%s.w", name);
    (void)snprintf(b, sizeof(b), "%s.b", name);
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}

static dt_status mixer_params(void *self, dt_params *reg)
{
    const mixer *s = (const mixer *)self;
    const int64_t n = s->config.width;
    DT_TRY_H(add_layer(reg, "w1", s->agents * n, s->state));
    DT_TRY_H(add_layer(reg, "b1", n, s->state));
    DT_TRY_H(add_layer(reg, "w2", n, s->state));
    DT_TRY_H(add_layer(reg, "v1", n, s->state));
    return add_layer(reg, "v2", 1, n);
}

static dt_status mixer_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const mixer *s = (const mixer *)self;
    dt_tensor *q = dt_split(g, in[0], 1);                                            /* [A,1,agents] */
    dt_tensor *w1 = dt_split(g, dt_abs(g, record_layer(g, in[1], "w1")), s->agents); /* [A,agents,width] */
    dt_tensor *x = dt_add(g, dt_merge(g, dt_matmul(g, q, w1, 0, 0)), record_layer(g, in[1], "b1"));
    dt_tensor *hidden = dt_mul(g, dt_unary(g, DT_FN_ELU, x, 1), dt_abs(g, record_layer(g, in[1], "w2")));
    dt_tensor *v = record_layer(g, dt_relu(g, record_layer(g, in[1], "v1")), "v2");
    out[0] = dt_add(g, dt_reduce_columns(g, DT_REDUCE_SUM, hidden), v);
    return g->api->status(g);
}

DT_MODEL_DEFINE(mixing, "qmix_mixer", "a value of a team that rises with that of each agent", "Rashid et al. 2018",
                mixer_config, mixer, mixer_options,
                DT_OPS(DT_SET(create, mixer_create), DT_SET(inputs, mixer_inputs), DT_SET(outputs, mixer_outputs),
                       DT_SET(params, mixer_params), DT_SET(forward, mixer_forward), DT_SET(destroy, dt_no_op)),
                DT_SET(role, "mixer"), DT_SET(flags, DT_COMP_DETERMINISTIC));

/* ---- the phase --------------------------------------------------------------------------------------------------- */

enum { MONOTONIC, SUM, NONE };
static const char *const mixings[] = {"monotonic", "sum", "none", NULL};

typedef struct qmix_config {
    dt_wiring_config wiring;
    int64_t rounds, steps, capacity, updates, sync;
    double gamma, epsilon, epsilon_end;
    uint32_t mixing, reserved;
} qmix_config;

typedef struct state {
    const dt_host *h;
    qmix_config config;
    dt_replay_loop loop;
    const dt_metrics_api *metrics;
    dt_wiring *wiring;
    dt_model *mixer;
} state;

/* clang-format off */
static const dt_option options[] = {
    DT_WIRING_OPTIONS(qmix_config, wiring),
    DT_OPTION(qmix_config, rounds, DT_OPT_I64, "100", "1", 1, 1e9, NULL, "rounds of collecting and learning"),
    DT_OPTION(qmix_config, steps, DT_OPT_I64, "16", "steps", 1, 1e6, NULL, "of every instance in a round"),
    DT_OPTION(qmix_config, capacity, DT_OPT_I64, "20000", "samples", 1, 1e12, NULL, "steps of a team that are kept"),
    DT_OPTION(qmix_config, updates, DT_OPT_I64, "32", "1", 1, 1e6, NULL, "updates of a round"),
    DT_OPTION(qmix_config, sync, DT_OPT_I64, "100", "updates", 1, 1e9, NULL, "between copies to the target networks"),
    DT_OPTION(qmix_config, gamma, DT_OPT_F64, "0.99", "1", 0, 1, NULL, "discount"),
    DT_OPTION(qmix_config, epsilon, DT_OPT_F64, "1", "1", 0, 1, NULL, "share of random actions in the first round"),
    DT_OPTION(qmix_config, epsilon_end, DT_OPT_F64, "1", "1", 0, 1, NULL, "the same from half of the rounds on"),
    DT_OPTION(qmix_config, mixing, DT_OPT_ENUM, "monotonic", NULL, 0, 0, mixings,
              "what the value of a team is made of: a mixing network, a sum, or none: each agent learns alone"),
    DT_OPTION_END};
/* clang-format on */

/* What each row's team has of x [A,D]: [A,agents,D]. */
static dt_tensor *gather_team(dt_graph *g, dt_tensor *x)
{
    return dt_gather(g, x, g->api->input(g, "team_rows"));
}

/* Q_total [A,1] of each row's team, where q [A,1] is what each agent's choice is worth; prefix: of the state. */
static dt_status record_total(const state *s, dt_graph *g, const char *prefix, const char *target, dt_tensor **q_p)
{
    char obs[64];
    (void)snprintf(obs, sizeof(obs), "%s%s", prefix, s->wiring->own->name);
    if (s->config.mixing == NONE) {
        return g->api->status(g);
    }
    dt_tensor *q = gather_team(g, *q_p); /* [A,agents,1] */
    if (s->config.mixing == SUM) {
        *q_p = dt_reduce(g, DT_REDUCE_SUM, q);
        return g->api->status(g);
    }
    const dt_wiring_view view = {(uint32_t)sizeof(view), 0, prefix, target};
    const dt_named more[] = {{"team_q", dt_merge(g, q)},
                             {"team_state", dt_merge(g, gather_team(g, g->api->input(g, obs)))}};
    dt_named total = {"total", NULL};
    DT_TRY_H(s->wiring->api->record_model(s->wiring, g, &view, s->mixer, more, 2, &total, 1));
    *q_p = total.tensor;
    return DT_OK;
}

/* One-hot rows of the best choices that a mask allows. */
static dt_tensor *record_best(const state *s, dt_graph *g, dt_tensor *q, const char *mask)
{
    dt_tensor *allowed = dt_select(g, g->api->input(g, mask), q, dt_fill(g, q, FORBIDDEN));
    return dt_one_hot(g, dt_argmax(g, allowed), 0, s->wiring->n_choices);
}

/* y [A,1]. What agents get for themselves adds up to the reward of their team. */
static dt_status record_td_target(const state *s, dt_graph *g, dt_tensor **y_p)
{
    const dt_wiring_view online = {(uint32_t)sizeof(online), 0, "next_", NULL};
    const dt_wiring_view old = {(uint32_t)sizeof(old), 0, "next_", "target"};
    dt_policy_tensors now = {.struct_size = (uint32_t)sizeof(now)}, then = now;
    DT_TRY_H(s->wiring->api->record(s->wiring, g, &online, &now));
    DT_TRY_H(s->wiring->api->record(s->wiring, g, &old, &then));
    dt_tensor *best = record_best(s, g, now.logits, "next_mask");
    dt_tensor *stays = dt_affine(g, dt_split(g, g->api->input(g, "terminated"), 0), -1, 1);
    dt_tensor *q = dt_mul(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, then.logits, best)), stays);
    dt_tensor *reward = dt_split(g, g->api->input(g, "reward"), 0);
    dt_tensor *discount = dt_split(g, g->api->input(g, "discount"), 0);
    DT_TRY_H(record_total(s, g, "next_", "target", &q));
    if (s->config.mixing != NONE) {
        reward = dt_reduce(g, DT_REDUCE_SUM, gather_team(g, reward));
        discount = dt_reduce(g, DT_REDUCE_MAX, gather_team(g, discount));
    }
    *y_p = dt_stop(g, dt_add(g, reward, dt_mul(g, q, discount)));
    return g->api->status(g);
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    dt_policy_tensors now = {.struct_size = (uint32_t)sizeof(now)};
    dt_tensor *y = NULL;
    DT_TRY_H(s->wiring->api->record(s->wiring, g, NULL, &now));
    dt_tensor *best = record_best(s, g, now.logits, "mask"), *epsilon = api->step_input(g, "epsilon", 1);
    dt_tensor *even = dt_affine(g, dt_mul(g, dt_fill(g, best, 1), epsilon), 1.0 / s->wiring->n_choices, 1e-9);
    dt_tensor *greedy = dt_mul(g, best, dt_affine(g, epsilon, -1, 1));
    DT_TRY_H(api->output(g, "logits", dt_unary(g, DT_FN_LOG, dt_add(g, greedy, even), 0)));
    dt_tensor *q = dt_pick(g, now.logits, api->input(g, "action_i"), 0);
    DT_TRY_H(record_total(s, g, "", NULL, &q));
    DT_TRY_H(record_td_target(s, g, &y));
    DT_TRY_H(api->loss(g, "q", dt_sum(g, q), 0, "A"));
    return api->loss(g, "td_loss", dt_mse(g, q, y, api->input(g, "weight")), 1, "A");
}

static dt_status bind_mixer(state *s, const dt_bind_api *bind)
{
    const int64_t agents = s->wiring->spec->n_agents, columns = bind->port_dim(s->wiring->own, 1);
    char q[24], x[24];
    (void)snprintf(q, sizeof(q), "A %lld", (long long)agents);
    (void)snprintf(x, sizeof(x), "A %lld", (long long)(agents * columns));
    const dt_port offers[] = {{"team_q", q, DT_F32, 0}, {"team_state", x, DT_F32, 0}};
    const dt_port needs[] = {{"total", "A 1", DT_F32, 0}};
    const dt_dim dims[] = {{"agents", agents}, {"team_state", agents * columns}};
    dt_model_request want = DT_MODEL_REQUEST("mixer", offers, needs);
    want.dims = dims;
    want.n_dims = 2;
    return s->wiring->api->bind(s->wiring, &want, &s->mixer);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const dt_wiring_api *wiring = NULL;
    const dt_bind_api *bind = NULL;
    s->h = h;
    s->config = *(const qmix_config *)cfg;
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    DT_SERVICE_H(h, bind, DT_SVC_BIND, ID);
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, ID);
    dt_wiring_desc w = DT_WIRING_DESC(ID, &s->config.wiring);
    w.flags = DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | DT_WIRING_AGENT_ROWS;
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    const dt_env_spec *e = s->wiring->spec;
    if (e->n_heads != 1 || e->n_continuous != 0) {
        return DT_FAIL_H(h, DT_ESHAPE, ID " requires one discrete action; %s has %u, and %u continuous ones",
                         s->wiring->env_id, e->n_heads, e->n_continuous);
    }
    DT_TRY_H(s->config.mixing == MONOTONIC ? bind_mixer(s, bind) : DT_OK);
    const dt_rollout_desc r =
        DT_DESC_(dt_rollout_desc, DT_OPS(DT_SET(steps, (uint32_t)s->config.steps), DT_SET(transitions, 2),
                                         DT_SET(gamma, s->config.gamma), DT_SET(lambda, 1)));
    s->loop.rounds = (uint64_t)s->config.rounds;
    s->loop.updates = (uint64_t)s->config.updates;
    return dt_replay_loop_create(&s->loop, h, s->wiring->env, &r, (uint64_t)s->config.capacity);
}

static dt_status start(void *self)
{
    state *s = (state *)self;
    const qmix_config *c = &s->config;
    const float none = 0, epsilon = (float)c->epsilon;
    dt_model *models[DT_WIRING_MAX_MODELS];
    const uint32_t n = s->wiring->api->models(s->wiring, models, DT_WIRING_MAX_MODELS);
    dt_train_target target[2];
    for (int i = 0; i < 2; i++) {
        target[i] = (dt_train_target){.struct_size = (uint32_t)sizeof(target[i]), .name = "target", .tau = 1};
        target[i].model = i == 0 ? s->wiring->controller : s->mixer;
        target[i].every = (uint64_t)c->sync;
    }
    dt_train_desc d = DT_TRAIN_DESC(s, record, NULL, models, n);
    d.target = target;
    d.n_targets = s->mixer != NULL ? 2 : 1;
    DT_TRY_H(dt_replay_loop_start(&s->loop, &d));
    DT_TRY_H(s->loop.train->set_acting(s->loop.trainer, "epsilon", &none, 1));
    return s->loop.train->set(s->loop.trainer, "epsilon", &epsilon, 1);
}

DT_REPLAY_OPS_DEFINE(replay, state, loop);

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = (state *)self;
    const qmix_config *c = &s->config;
    const uint64_t round = s->loop.replay->draws(s->loop.memory) / s->loop.updates;
    const double share = fmin(1, 2 * (double)round / (double)c->rounds);
    const float epsilon = (float)(c->epsilon + share * (c->epsilon_end - c->epsilon));
    DT_TRY_H(s->loop.train->set(s->loop.trainer, "epsilon", &epsilon, 1));
    const dt_status st = replay_iterate(self, out);
    s->metrics->scalar(s->h, "charts/episodic_return", s->loop.report.episode_return);
    s->metrics->scalar(s->h, "charts/epsilon", (double)epsilon);
    return st;
}

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.mixer=qmix_mixer",
                   "controller_mlp.policy_gain=1", "env.id=env_matrix", "env_matrix.game=two_step",
                   "env_matrix.repeats=1", "env.instances=8", "data.batch=32", "data.shards=4",
                   "training.optimizer=adam", "training.learning_rate=3e-3", "training.weight_decay=0",
                   "training.gradient_clip=10", "training.scheduler=constant", "training.warmup_epochs=0",
                   "training.eval_interval=20", "training.save_interval=20", "checkpoint.best_by=return/mean");
DT_PHASE_DEFINE(phase, ID, "Q-learning of a team whose value rises with that of each agent",
                "Rashid et al. 2018, arXiv 1803.11485", qmix_config, state, options,
                DT_OPS(DT_SET(create, create), DT_SET(start, start), DT_SET(iterate, iterate),
                       DT_SET(evaluate, replay_evaluate), DT_SET(stop, replay_stop), DT_SET(destroy, dt_no_op)),
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
DT_PLUGIN_DEFINE_OF(ID, "0.1", "dtrain", "Apache-2.0", &phase, &mixing);

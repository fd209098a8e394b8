/* SPDX-License-Identifier: Apache-2.0
 *
 * dqn: a phase that learns off policy, with the data and the models it wants. Q-learning by a network, from a memory of
 * transitions, towards a network that stands still for a while (Mnih et al. 2015):
 *
 *   loss = mean huber(Q(s, a) - (r + gamma max_b Q'(s', b)))        Q' is Q as it was up to target_every steps ago
 *
 * Actions are drawn by exp(Q / temperature) (Sutton and Barto 2018, section 2.8 and 13.1), the temperature falls.
 *
 *   dqn          the phase: collects a few steps of every instance, keeps them, learns from what is kept
 *   dqn_memory   data: the ring of transitions, read by the host's trainer (dqn_memory.h)
 *   dqn_net      the network of Q, role controller; dqn_target: the same in the role target
 *
 *   DTRAIN_PLUGIN_PATH=. dtrain --plugin dqn --set env.id=cartpole
 *
 * Where the contract had to be gone round, a comment begins with "Round".
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/bind.h>
#include <dtrain/svc/metrics.h>
#include <dtrain/svc/rollout.h>
#include <dtrain/svc/train.h>

#include "dqn_memory.h"
#include "misbehave.h"

#include <math.h>
#include <string.h>

enum { MOST_CHOICES = 64 };

/* ---- the network ----------------------------------------------------------------------------------------------- */

typedef struct net_config {
    int64_t hidden;
} net_config;

typedef struct net_state {
    net_config config;
    int64_t D, choices;
    char text[2][TEXT];
    dt_port in[1], out[1];
} net_state;

static const dt_option net_options[] = {
    DT_OPTION(net_config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of both hidden layers"), DT_OPTION_END};

static dt_status net_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    net_state *s = self;
    s->config = *(const net_config *)cfg;
    for (uint32_t i = 0; i < n_dims; i++) {
        s->D = strcmp(dims[i].name, "D") == 0 ? dims[i].size : s->D;
        s->choices = strcmp(dims[i].name, "choices") == 0 ? dims[i].size : s->choices;
    }
    if (s->D < 1 || s->choices < 1) {
        return DT_FAIL_H(h, DT_ESHAPE, "dqn_net needs D and choices of at least 1, got %lld and %lld", (long long)s->D,
                         (long long)s->choices);
    }
    snprintf(s->text[0], TEXT, "A %lld", (long long)s->D);
    snprintf(s->text[1], TEXT, "A %lld", (long long)s->choices);
    s->in[0] = (dt_port){"obs", s->text[0], DT_F32, 0};
    s->out[0] = (dt_port){"logits", s->text[1], DT_F32, 0};
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const net_state *)self)->in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const net_state *)self)->out;
}

static dt_status net_params(void *self, dt_params *reg)
{
    static const char *const name[][2] = {{"in.w", "in.b"}, {"mid.w", "mid.b"}, {"out.w", "out.b"}};
    const net_state *s = self;
    const int64_t width[] = {s->D, s->config.hidden, s->config.hidden, s->choices};
    for (int i = 0; i < 3; i++) {
        const int64_t w[] = {width[i + 1], width[i]};
        DT_TRY_H(reg->add(reg, name[i][0], w, 2, DT_INIT_FAN_IN, 1.0));
        DT_TRY_H(reg->add(reg, name[i][1], w, 1, DT_INIT_ZERO, 0.0));
    }
    return DT_OK;
}

static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const dt_graph_api *api = g->api;
    (void)self;
    dt_tensor *h = dt_relu(g, dt_linear(g, in[0], api->param(g, "in.w"), api->param(g, "in.b")));
    h = dt_relu(g, dt_linear(g, h, api->param(g, "mid.w"), api->param(g, "mid.b")));
    out[0] = dt_linear(g, h, api->param(g, "out.w"), api->param(g, "out.b"));
    return api->status(g);
}

static void net_destroy(void *self)
{
    (void)self;
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = net_destroy};

/* ---- the phase --------------------------------------------------------------------------------------------------- */

typedef struct config {
    int64_t iterations, collect_steps, updates, capacity, learning_starts, target_every, cooling;
    double gamma, temperature, temperature_end;
} config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_metrics_api *metrics;
    config config;
    dt_env *env;
    dt_rollout *experience;
    dt_data *kept;
    dt_model *models[2]; /* Q, Q' */
    dt_train *trainer;
    memory memory;
    int64_t choices;
    float *vector; /* the parameters of both */
    uint64_t size;
    char obs[TEXT];
} state;

static const dt_option options[] = {
    DT_OPTION(config, iterations, DT_OPT_I64, "400", "1", 1, 1e9, NULL, "rounds of collecting samples and training"),
    DT_OPTION(config, collect_steps, DT_OPT_I64, "8", "env steps", 1, 1e6, NULL, "of every instance in a round"),
    DT_OPTION(config, updates, DT_OPT_I64, "16", "1", 1, 1e6, NULL, "optimizer steps in a round"),
    DT_OPTION(config, capacity, DT_OPT_I64, "20000", "agent steps", 1, 1e8, NULL, "transitions kept"),
    DT_OPTION(config, learning_starts, DT_OPT_I64, "1000", "agent steps", 1, 1e8, NULL,
              "samples collected before training starts"),
    DT_OPTION(config, target_every, DT_OPT_I64, "200", "1", 1, 1e9, NULL, "optimizer steps that Q' stands still"),
    DT_OPTION(config, cooling, DT_OPT_I64, "200", "1", 1, 1e9, NULL, "rounds until temperature_end"),
    DT_OPTION(config, gamma, DT_OPT_F64, "0.99", "1", 0, 1, NULL, "what the next step is worth now"),
    DT_OPTION(config, temperature, DT_OPT_F64, "2", "units of reward", 1e-3, 1e6, NULL, "of exploration, at first"),
    DT_OPTION(config, temperature_end, DT_OPT_F64, "0.1", "units of reward", 1e-3, 1e6, NULL, "and at last"),
    DT_OPTION_END};

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    return c->learning_starts <= c->capacity
               ? DT_OK
               : DT_FAIL_H(h, DT_ECONFIG, "dqn.learning_starts = %lld is more than dqn.capacity = %lld keeps",
                           (long long)c->learning_starts, (long long)c->capacity);
}

/* What the network sees, and how many choices there are. */
static dt_status look(state *s)
{
    const dt_env_spec *e = s->bind->env_spec(s->env);
    const dt_port *obs = NULL;
    for (uint32_t i = 0; i < e->n_obs; i++) {
        obs = strcmp(e->obs[i].name, "obs") == 0 ? &e->obs[i] : obs;
    }
    s->memory.D = obs != NULL ? s->bind->port_dim(obs, 1) : -1;
    if (s->memory.D < 1 || e->n_heads != 1 || e->n_continuous != 0 || e->choices[0] > MOST_CHOICES) {
        return DT_FAIL_H(s->h, DT_ESHAPE,
                         "dqn wants an observation \"obs\" [A D] and one discrete action of at most %d choices, which "
                         "%s does not have",
                         MOST_CHOICES, s->bind->env_id(s->env));
    }
    s->choices = e->choices[0];
    snprintf(s->obs, TEXT, "A %lld", (long long)s->memory.D);
    return DT_OK;
}

static dt_status bind_net(const state *s, const char *role, dt_model **out)
{
    char q[TEXT];
    snprintf(q, TEXT, "A %lld", (long long)s->choices);
    const dt_dim dims[] = {{"D", s->memory.D}, {"choices", s->choices}};
    const dt_port offers[] = {{"obs", s->obs, DT_F32, 0}}, needs[] = {{"logits", q, DT_F32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .n_dims = 2,
                                   .role = role,
                                   .dims = dims,
                                   .offers = offers,
                                   .needs = needs,
                                   .n_offers = 1,
                                   .n_needs = 1};
    return s->bind->model(s->h, &want, out);
}

/* Belongs to the phase until destroy, as what the data reads must. */
static dt_status create_memory(state *s)
{
    memory *m = &s->memory;
    m->capacity = s->config.capacity;
    m->row = s->h->alloc(s->h, bytes_of(m, m->capacity));
    if (m->row == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for dqn.capacity = %lld transitions", (long long)m->capacity);
    }
    char address[TEXT];
    snprintf(address, TEXT, "%llu", (unsigned long long)(uintptr_t)m);
    const dt_setting set[] = {{"memory", address}};
    return s->bind->data(s->h, set, 1, &s->kept);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->rollout = h->service(h, DT_SVC_ROLLOUT);
    s->metrics = h->service(h, DT_SVC_METRICS);
    if (s->bind == NULL || s->train == NULL || s->rollout == NULL || s->metrics == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host lacks a service that dqn needs");
    }
    DT_TRY_H(s->bind->env(h, NULL, 0, &s->env));
    DT_TRY_H(look(s));
    DT_TRY_H(bind_net(s, "controller", &s->models[0]));
    DT_TRY_H(bind_net(s, "target", &s->models[1]));
    DT_TRY_H(create_memory(s));
    /* Round: a rollout reports no rewards. Its target is r + gamma V(s'), which is r with gamma 0 and without a value.
     * */
    const dt_rollout_desc d = {
        .struct_size = sizeof(d), .steps = (uint32_t)s->config.collect_steps, .gamma = 0, .transitions = 1};
    return s->rollout->create(h, s->env, &d, &s->experience);
}

/* The greatest of each row: there is no such op, but there is the greater of two. */
static dt_tensor *greatest(dt_graph *g, dt_tensor *q, int64_t choices)
{
    dt_tensor *most = dt_slice(g, q, 0, 1);
    for (int64_t i = 1; i < choices; i++) {
        most = dt_binary(g, DT_BIN_MAX, most, dt_slice(g, q, i, 1));
    }
    return most;
}

/* Recorded over the memory to learn, and over the rollout's fields to act; both have the same names.
 * Round: which choices are allowed in s' is not reported (the rollout has the mask of s alone), so all of them count.
 * And what depends on a step input cannot be taken out by `dtrain export`, so a temperature that falls costs that. */
static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const dt_graph_api *api = g->api;
    const dt_named now[] = {{"obs", api->input(g, "obs")}}, after[] = {{"obs", api->input(g, "next_obs")}};
    dt_named q[] = {{"logits", NULL}}, q_after[] = {{"logits", NULL}};
    DT_TRY_H(api->model(g, s->models[0], now, 1, q, 1));
    DT_TRY_H(api->model(g, s->models[1], after, 1, q_after, 1));
    DT_TRY_H(api->output(g, "logits", dt_mul(g, q[0].tensor, api->step_input(g, "coldness", s->choices))));

    /* Round: no op makes a 1 at an index; rows of an identity matrix that is set from outside do. */
    dt_tensor *eye = dt_split(g, api->step_input(g, "eye", s->choices * s->choices), s->choices);
    dt_tensor *chosen = dt_merge(g, dt_gather(g, eye, api->input(g, "action_i"))); /* [A, choices] */
    dt_tensor *goes_on = api->input(g, "next_present");
    dt_tensor *best = dt_mul(g, greatest(g, q_after[0].tensor, s->choices), dt_split(g, goes_on, 0));
    dt_tensor *worth = dt_add(g, dt_split(g, api->input(g, "target"), 0), dt_affine(g, best, s->config.gamma, 0));
    dt_tensor *ones = dt_affine(g, goes_on, 0, 1);
    dt_tensor *error = dt_huber(g, dt_mul(g, chosen, q[0].tensor), dt_mul(g, chosen, worth), ones, 1.0);
    DT_TRY_H(api->loss(g, "td_error", error, 1.0, "A"));
    return api->status(g);
}

/* Q' = Q. The vector has the parameters of all models that are trained, in the order of desc.models. No gradient ever
 * reaches Q', for it is behind a target. */
static dt_status move_target(state *s)
{
    DT_TRY_H(s->train->vector_get(s->trainer, s->vector));
    memcpy(s->vector + s->size / 2, s->vector, s->size / 2 * sizeof(float));
    return s->train->vector_set(s->trainer, s->vector);
}

static dt_status set_temperature(const state *s, uint64_t iteration)
{
    const config *c = &s->config;
    const double x = fmin(1, (double)iteration / (double)c->cooling);
    const double t = c->temperature * pow(c->temperature_end / c->temperature, x);
    float coldness[MOST_CHOICES];
    for (int64_t i = 0; i < s->choices; i++) {
        coldness[i] = (float)(1 / t);
    }
    s->metrics->scalar(s->h, "charts/temperature", t);
    return s->train->set(s->trainer, "coldness", coldness, (uint32_t)s->choices);
}

static dt_status start(void *self)
{
    state *s = self;
    float eye[MOST_CHOICES * MOST_CHOICES] = {0};
    /* Round: the host counts epochs over the data, and we count steps; enough epochs for all of them. An epoch has at
     * least one step. */
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = 2,
                                .user = s,
                                .record = record,
                                .data = s->kept,
                                .models = s->models,
                                .epochs = (uint64_t)(s->config.iterations * s->config.updates)};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    for (int64_t i = 0; i < s->choices; i++) {
        eye[i * s->choices + i] = 1;
    }
    DT_TRY_H(s->train->set(s->trainer, "eye", eye, (uint32_t)(s->choices * s->choices)));
    DT_TRY_H(set_temperature(s, 0));
    s->size = s->train->vector_size(s->trainer);
    s->vector = s->h->alloc(s->h, s->size * sizeof(float));
    if (s->vector == NULL || s->size % 2 != 0) {
        return DT_FAIL_H(s->h, s->vector == NULL ? DT_ENOMEM : DT_ESHAPE,
                         "dqn trains %llu parameters, of two networks alike; freeze neither of them",
                         (unsigned long long)s->size);
    }
    return DT_OK;
}

/* Rows of a rollout into the ring, in their order. */
static dt_status keep(void *user, const dt_rows *r)
{
    state *s = user;
    memory *m = &s->memory;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *obs = s->train->rows(r, "obs", dim, &rank), *next_obs = s->train->rows(r, "next_obs", dim, &rank);
    const int32_t *action = s->train->rows(r, "action_i", dim, &rank);
    const float *goes_on = s->train->rows(r, "next_present", dim, &rank);
    const float *reward = s->train->rows(r, "target", dim, &rank);
    if (obs == NULL || next_obs == NULL || action == NULL || goes_on == NULL || reward == NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "a rollout with transitions lacks a field that dqn keeps");
    }
    const size_t D = (size_t)m->D;
    for (int64_t i = 0; i < dim[0]; i++) {
        float *row = row_at(m, m->next);
        memcpy(row, obs + (size_t)i * D, D * sizeof(float));
        memcpy(row + D, next_obs + (size_t)i * D, D * sizeof(float));
        row[2 * D + ACTION] = (float)action[i];
        row[2 * D + REWARD] = reward[i];
        row[2 * D + GOES_ON] = goes_on[i]; /* Round: 0 for who was truncated, too; what comes then would have a worth */
        m->next = (m->next + 1) % m->capacity;
        m->n += m->n < m->capacity;
    }
    return DT_OK;
}

/* Experience into the memory. Round: a rollout's rows are only handed out by an evaluation, which runs the networks
 * over them for nothing. The host stopped reading ahead when it collected and begins again with the next step, so that
 * nobody reads what is being written. */
static dt_status collect(state *s, uint64_t *env_steps_p)
{
    dt_rollout_report r = {.struct_size = sizeof(r)};
    DT_TRY_H(s->rollout->collect(s->experience, s->trainer, &r));
    DT_TRY_H(s->train->evaluate(s->trainer, s->rollout->data(s->experience), s, keep));
    *env_steps_p += r.env_steps;
    if (r.episodes > 0) {
        s->metrics->scalar(s->h, "charts/episodic_return", r.episode_return);
        s->metrics->scalar(s->h, "charts/episodic_length", r.episode_length);
    }
    return DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    const config *c = &s->config;
    uint64_t step = 0, steps = 0, per_epoch = 0, env_steps = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    misbehave(self, sizeof(state));
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &per_epoch));
    const uint64_t iteration = step / (uint64_t)c->updates;
    if (iteration >= (uint64_t)c->iterations) {
        return DT_DONE;
    }
    DT_TRY_H(set_temperature(s, iteration));
    do {
        DT_TRY_H(collect(s, &env_steps));
    } while (s->memory.n < c->learning_starts);
    for (int64_t i = 0; i < c->updates; i++, step++) {
        if (step % (uint64_t)c->target_every == 0) {
            DT_TRY_H(move_target(s));
        }
        DT_TRY_H(s->train->step(s->trainer, &r));
    }
    out->step = r.step;
    out->steps = (uint64_t)(c->iterations * c->updates);
    out->epoch = iteration;
    out->epochs = (uint64_t)c->iterations;
    out->iterations = iteration + 1;
    out->samples = env_steps;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return out->step >= out->steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    DT_TRY_H(s->rollout->report(s->experience, s->trainer));
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
    s->h->release(s->h, s->memory.row);
    s->h->release(s->h, s->vector);
}

/* The parameters, the optimizer and the episodes being played are the host's to keep; the memory is ours. */
static dt_status save(void *self, dt_writer *w)
{
    const memory *m = &((const state *)self)->memory;
    const int64_t head[] = {m->capacity, m->D, m->n, m->next};
    DT_TRY_H(w->write(w, head, sizeof(head)));
    return w->write(w, m->row, bytes_of(m, m->n));
}

static dt_status load(void *self, dt_reader *r, uint32_t version)
{
    state *s = self;
    memory *m = &s->memory;
    int64_t head[4];
    (void)version;
    DT_TRY_H(r->read(r, head, sizeof(head)));
    const int is_ours = head[0] == m->capacity && head[1] == m->D && head[2] >= 0 && head[2] <= m->capacity &&
                        head[3] >= 0 && head[3] < m->capacity;
    if (!is_ours) {
        return DT_FAIL_H(s->h, DT_EDATA,
                         "the checkpoint kept %lld transitions of %lld numbers, dqn.capacity = %lld of %lld are wanted",
                         (long long)head[0], (long long)head[1], (long long)m->capacity, (long long)m->D);
    }
    DT_TRY_H(r->read(r, m->row, bytes_of(m, head[2])));
    for (int64_t i = 0; i < head[2]; i++) {
        const float action = row_at(m, i)[2 * m->D + ACTION];
        if (!(action >= 0 && action < (float)s->choices)) { /* it will index */
            return DT_FAIL_H(s->h, DT_EDATA, "the checkpoint's memory holds action %g of %lld", (double)action,
                             (long long)s->choices);
        }
    }
    m->n = head[2];
    m->next = head[3];
    return DT_OK;
}

static const dt_phase_ops phase_ops = {.struct_size = sizeof(dt_phase_ops),
                                       .create = create,
                                       .start = start,
                                       .iterate = iterate,
                                       .evaluate = evaluate,
                                       .stop = stop,
                                       .destroy = destroy,
                                       .save = save,
                                       .load = load};

static const char *const defaults[] = {"env.id=cartpole",
                                       "data.source=dqn_memory",
                                       "data.batch=64",
                                       "models.controller=dqn_net",
                                       "models.target=dqn_target",
                                       "training.optimizer=adam",
                                       "training.learning_rate=1e-3",
                                       "training.weight_decay=0",
                                       "training.scheduler=constant",
                                       "training.warmup_epochs=0",
                                       "training.eval_interval=50",
                                       "checkpoint.best_by=return/mean",
                                       NULL};

static const void *extension(const char *id)
{
    return strcmp(id, DT_EXT_DEFAULTS) == 0 ? defaults : NULL;
}

/* ---- what this file holds ---------------------------------------------------------------------------------------- */

static const dt_component phase = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_PHASE,
                                   .id = "dqn",
                                   .summary = "Q-learning from a memory of transitions",
                                   .reference = "Mnih et al. (2015), doi:10.1038/nature14236",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .state_version = 1,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .check = check,
                                   .ops = &phase_ops,
                                   .extension = extension};
/* Round: a component has one role, so the same network is there twice. */
#define DQN_NET(ID, SUMMARY, ROLE)                                                                                     \
    {                                                                                                                  \
        .struct_size = sizeof(dt_component), .kind = DT_KIND_MODEL, .id = ID, .summary = SUMMARY,                      \
        .reference = "Mnih et al. (2015), doi:10.1038/nature14236", .role = ROLE, .flags = DT_COMP_DETERMINISTIC,      \
        .config_size = sizeof(net_config), .state_size = sizeof(net_state), .options = net_options, .ops = &net_ops    \
    }
static const dt_component net = DQN_NET("dqn_net", "Q values of each choice", "controller");
static const dt_component target = DQN_NET("dqn_target", "what it was worth a while ago", "target");
static const dt_component *const components[] = {&phase, &memory_component, &net, &target};
static const dt_plugin plugin = {
    DT_PLUGIN_PREFIX,         .name = "dqn",           .version = "0.1",
    .vendor = "a stranger",   .license = "Apache-2.0", .n_components = sizeof(components) / sizeof(components[0]),
    .components = components,
};
DT_PLUGIN_DEFINE(plugin);

/* SPDX-License-Identifier: Apache-2.0
 *
 * mbpo: model-based policy optimisation (Janner et al. 2019, arXiv 1906.08253), written against installed headers only:
 * a phase with two trainers. One of them trains an ensemble of models (mbpo_ensemble.h). In every round:
 *
 *   collect   steps of the environment with the policy, into the replay buffer
 *   model     trains the ensemble on transitions drawn from it
 *   imagine   branches of `horizon` steps from drawn observations, into a bounded buffer: the policy acts, a random
 *             member of the ensemble answers
 *   policy    trains soft actor-critic (Haarnoja et al. 2018) on imagined transitions and a share of real ones
 *
 * Unlike in the paper, members share batches and differ by their first weights alone, all are used, and temperature is
 * constant. Imagined episodes never end: it fits tasks that only time ends, as pendulum. horizon = 0: none are.
 *
 *   cc -shared -fPIC $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=mbpo -o mbpo.so mbpo.c
 *   dtrain check ./mbpo.so && dtrain --plugin ./mbpo.so --set env.id=pendulum
 */
#include "mbpo_ensemble.h"

#include <dtrain/row_buffer.h>
#include <dtrain/svc/replay.h>
#include <dtrain/svc/rng.h>
#include <dtrain/svc/wiring.h>

#define ID "mbpo"
enum { CAPACITY = 100000 }; /* transitions of the replay buffer */

typedef struct mbpo_config {
    int64_t iterations, collect_steps, learning_starts, members, hidden, model_updates, model_batch;
    int64_t horizon, branches, imagined_size, updates, batch;
    double real_share, gamma, tau, temperature;
} mbpo_config;

enum { OBS, ACTION, NEXT, REWARD, DISCOUNT, FIELDS }; /* of a transition; the action before its tanh */

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_replay_api *replay;
    const dt_rng_api *rng;
    mbpo_config config;
    dt_wiring *wiring;
    dt_model *critic, *dynamics;
    dt_rollout *experience;
    dt_replay *memory;
    dt_train *policy, *model;
    const char *name[FIELDS];
    int64_t D, C;                                /* columns of observation and action */
    dt_row_buffer real, branch, imagined, batch; /* drawn, under way, kept, and what the policy learns from */
    dt_data *branch_data, *batch_data;
} state;

/* clang-format off */
#define OPTION(member, type, dfl, unit, min, max, help)                                                                \
    DT_OPTION(mbpo_config, member, type, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    OPTION(iterations, DT_OPT_I64, "30", "1", 1, 1e9, "rounds"),
    OPTION(collect_steps, DT_OPT_I64, "10", "env steps", 1, 1e6, "steps of every instance in a round"),
    OPTION(learning_starts, DT_OPT_I64, "200", "samples", 1, 1e5, "samples collected before training starts"),
    OPTION(members, DT_OPT_I64, "3", "1", 1, MAX_MEMBERS, "networks of the ensemble"),
    OPTION(hidden, DT_OPT_I64, "64", "1", 1, 8192, "width of their two hidden layers"),
    OPTION(model_updates, DT_OPT_I64, "300", "1", 1, 1e4, "steps of the ensemble in a round"),
    OPTION(model_batch, DT_OPT_I64, "256", "samples", 1, 1e4, "real transitions of such a step"),
    OPTION(horizon, DT_OPT_I64, "8", "steps", 0, 1000, "imagined steps of a branch; 0: nothing is imagined"),
    OPTION(branches, DT_OPT_I64, "400", "1", 1, 1e6, "branches imagined in a round"),
    OPTION(imagined_size, DT_OPT_I64, "20000", "samples", 1, 1e7, "capacity of the buffer of imagined transitions"),
    OPTION(updates, DT_OPT_I64, "300", "1", 1, 1e4, "steps of the policy and its critics in a round"),
    OPTION(batch, DT_OPT_I64, "128", "samples", 1, 1e4, "transitions of such a step"),
    OPTION(real_share, DT_OPT_F64, "0.1", "1", 0, 1, "share of real transitions in them"),
    OPTION(gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of the reward"),
    OPTION(tau, DT_OPT_F64, "0.01", "1", 1e-9, 1, "soft-update rate of the target network"),
    OPTION(temperature, DT_OPT_F64, "0.5", "reward / nat", 0, 1e6, "weight of the policy's entropy"),
    DT_OPTION_END};
/* clang-format on */

static dt_status record_model(void *user, dt_graph *g)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    dt_tensor *obs = api->input(g, s->name[OBS]), *reward = dt_split(g, api->input(g, "reward"), 0);
    const dt_named in[] = {{"obs", obs}, {"action", dt_tanh(g, api->input(g, "action_f"))}};
    dt_named out = {"prediction", NULL};
    DT_TRY_H(api->model(g, s->dynamics, in, 2, &out, 1));
    dt_tensor *part[] = {dt_sub(g, api->input(g, s->name[NEXT]), obs), reward}, *target = dt_concat(g, part, 2);
    dt_tensor *ones = dt_affine(g, api->input(g, "discount"), 0, 1), *drawn = NULL, *log_std = NULL;
    dt_tensor *u = dt_noise_of(g, api->input(g, "row_key"), 1, DT_NOISE_UNIFORM, 1);
    for (int64_t m = 0; m < s->config.members; m++) { /* member m answers where u is at least m / members */
        dt_tensor *mean = record_member(g, out.tensor, s->D + 1, m, &log_std);
        dt_tensor *from = dt_fill(g, u, (double)m / (double)s->config.members);
        DT_TRY_H(api->loss(g, ensemble_loss[m], dt_gaussian_nll(g, mean, log_std, target, ones), 1, "A"));
        drawn =
            dt_select(g, dt_compare(g, DT_BIN_GREATER_EQUAL, u, from), record_draw(g, mean, log_std, s->D + 1), drawn);
    }
    dt_tensor *answer[] = {dt_add(g, obs, dt_slice(g, drawn, 0, s->D)), dt_slice(g, drawn, s->D, 1)};
    return api->output(g, "answer", dt_concat(g, answer, 2));
}

/* The least Q(s, action) of both critics [A,1]; target: of the target network. q_p: of both. */
static dt_tensor *record_q(const state *s, dt_graph *g, const char *prefix, const char *target, dt_tensor *action,
                           dt_tensor **q_p)
{
    const dt_wiring_view view = {sizeof(view), 0, prefix, target};
    const dt_named more = {"action", action};
    dt_named q = {"q", NULL};
    const dt_status st = s->wiring->api->record_model(s->wiring, g, &view, s->critic, &more, 1, &q, 1);
    *q_p = q.tensor;
    return st < 0 ? NULL : dt_min(g, dt_slice(g, q.tensor, 0, 1), dt_slice(g, q.tensor, 1, 1));
}

/* An action of the policy in -1 to 1, and its log probability [A,1] times the temperature. */
static dt_tensor *record_action(const state *s, dt_graph *g, const char *prefix, dt_policy_tensors *p,
                                dt_tensor **entropy_p)
{
    const dt_wiring_view view = {sizeof(view), 0, prefix, NULL};
    memset(p, 0, sizeof(*p));
    p->struct_size = sizeof(*p);
    (void)s->wiring->api->record(s->wiring, g, &view, p); /* its error is the graph's */
    p->log_std = dt_clamp(g, p->log_std, -20, 2);
    dt_tensor *noise = dt_noise(g, g->api->input(g, "row_key"), s->C);
    dt_tensor *action = dt_squashed_gaussian(g, p->mean, p->log_std, noise, entropy_p);
    *entropy_p = dt_affine(g, *entropy_p, s->config.temperature, 0);
    return action;
}

static dt_status record_policy(void *user, dt_graph *g)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    dt_policy_tensors now, next;
    dt_tensor *entropy = NULL, *next_entropy = NULL, *q = NULL;
    dt_tensor *action = record_action(s, g, "", &now, &entropy);
    dt_tensor *next_action = record_action(s, g, "next_", &next, &next_entropy);
    dt_tensor *actor = dt_sub(g, entropy, record_q(s, g, "", NULL, action, &q));
    dt_tensor *value = dt_sub(g, record_q(s, g, "next_", "target", next_action, &q), next_entropy);
    value = dt_mul(g, value, dt_split(g, api->input(g, "discount"), 0));
    value = dt_stop(g, dt_add(g, value, dt_split(g, api->input(g, "reward"), 0)));
    (void)record_q(s, g, "", NULL, dt_tanh(g, api->input(g, "action_f")), &q);
    dt_tensor *error = dt_sub(g, q, value);
    DT_TRY_H(api->output(g, "draw", record_draw(g, now.mean, now.log_std, s->C))); /* of branches */
    DT_TRY_H(api->output(g, "mean", now.mean));
    DT_TRY_H(api->output(g, "log_std", now.log_std));
    DT_TRY_H(api->loss(g, "actor_loss", dt_sum(g, actor), 1.0, "A"));
    return api->loss(g, "critic_loss", dt_sum(g, dt_mul(g, error, error)), 1.0, "A");
}

static dt_status imagine(state *s, uint64_t round)
{
    static const char *const draw = "draw", *const answer = "answer";
    const uint64_t steps = (uint64_t)s->config.horizon;
    double u = 0;
    for (uint64_t step = 0; step < steps; step++) {
        dt_row_buffer_renew(&s->branch, round * steps + step);
        for (uint64_t i = 0; i < s->branch.capacity; i++) {
            float *row = dt_row_buffer_at(&s->branch, i);
            s->rng->uniform(s->h, OBS, round, i, &u, 1);
            const float *from = step == 0 ? dt_row_buffer_choose(&s->real, u) : row;
            memmove(row, step == 0 ? from : from + s->branch.field[NEXT].at, (size_t)s->D * sizeof(float));
            row[s->branch.field[DISCOUNT].at] = (float)s->config.gamma;
        }
        DT_TRY_H(dt_row_buffer_evaluate(&s->branch, s->train, s->policy, s->branch_data, &draw, 1, ACTION));
        DT_TRY_H(dt_row_buffer_evaluate(&s->branch, s->train, s->model, s->branch_data, &answer, 1, NEXT));
        for (uint64_t i = 0; i < s->branch.capacity; i++) {
            dt_row_buffer_add(&s->imagined, dt_row_buffer_at(&s->branch, i));
        }
    }
    return DT_OK;
}

/* What the policy learns from in this round, by the number of the one before. */
static dt_status mix(void *user)
{
    state *s = (state *)user;
    double u[2];
    for (uint64_t i = 0; i < s->batch.capacity; i++) {
        s->rng->uniform(s->h, DISCOUNT, s->batch.renewed, i, u, 2);
        const int is_real = u[0] < s->config.real_share || s->config.horizon == 0;
        dt_row_buffer_add(&s->batch, dt_row_buffer_choose(is_real ? &s->real : &s->imagined, u[1]));
    }
    return DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = (state *)self;
    uint64_t step = 0, steps = 0, each = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    dt_rollout_report acted = {.struct_size = sizeof(acted)};
    DT_TRY_H(s->train->position(s->policy, &step, &steps, &each));
    for (int is_first = 1; is_first || s->replay->count(s->memory) < (uint64_t)s->config.learning_starts;
         is_first = 0) {
        DT_TRY_H(s->rollout->collect(s->experience, s->policy, &acted));
        DT_TRY_H(s->replay->add(s->memory));
        out->samples += acted.env_steps;
    }
    DT_TRY_H(s->replay->draw(s->memory));
    for (int64_t i = 0; i < s->config.model_updates; i++) {
        DT_TRY_H(s->train->step(s->model, &r));
    }
    DT_TRY_H(dt_row_buffer_evaluate(&s->real, s->train, s->model, s->replay->data(s->memory), s->name, FIELDS, 0));
    DT_TRY_H(imagine(s, step / each));
    dt_row_buffer_renew(&s->batch, step / each);
    DT_TRY_H(s->train->refill(s->policy, mix, s));
    for (uint64_t i = 0; i < each; i++) {
        DT_TRY_H(dt_train_iterate(s->train, s->policy, out));
    }
    out->iterations = step / each + 1;
    return out->step >= steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    const state *s = (const state *)self;
    out->evaluated = 1;
    return s->rollout->report(s->experience, s->policy);
}

DT_ROW_BUFFER_STATE_DEFINE(kept, state, imagined);

static dt_status bind_models(state *s)
{
    const dt_env_spec *e = s->wiring->spec;
    const dt_dim sizes[] = {{"D", s->D}, {"P", s->C}, {"M", s->config.members}, {"H", s->config.hidden}};
    const dt_port predicted[] = {{"prediction", "A Y", DT_F32, 0}}, q[] = {{"q", "A 2", DT_F32, 0}};
    const dt_dim critic[] = {{"P", s->C}, {"Q", 2}};
    char columns[TEXT], numbers[TEXT];
    if (e->n_agents != 1 || e->n_heads != 0 || s->D < 1) {
        return DT_FAIL_H(s->h, DT_ESHAPE,
                         ID " requires one agent with continuous actions and an observation of numbers; "
                            "%s has %u agents and %u discrete actions",
                         s->wiring->env_id, e->n_agents, e->n_heads);
    }
    (void)snprintf(columns, TEXT, "A %lld", (long long)s->C);
    (void)snprintf(numbers, TEXT, "A %lld", (long long)s->D);
    const dt_port acted[] = {{"action", columns, DT_F32, 0}}, seen[] = {{"obs", numbers, DT_F32, 0}, acted[0]};
    dt_model_request of_critic = DT_MODEL_REQUEST("critic", acted, q),
                     of_model = DT_MODEL_REQUEST("dynamics", seen, predicted);
    of_critic.dims = critic;
    of_critic.n_dims = 2;
    of_model.dims = sizes;
    of_model.n_dims = SIZES;
    DT_TRY_H(s->wiring->api->bind(s->wiring, &of_critic, &s->critic));
    return s->bind->model(s->h, &of_model, &s->dynamics);
}

static dt_status create_buffers(state *s)
{
    const mbpo_config *c = &s->config;
    const uint32_t D = (uint32_t)s->D, C = (uint32_t)s->C;
    char next[TEXT];
    (void)snprintf(next, TEXT, "next_%s", s->wiring->own->name);
    const dt_row_field field[FIELDS] = {
        {s->wiring->own->name, D, 0}, {"action_f", C, 0}, {next, D, 0}, {"reward", 0, 0}, {"discount", 0, 0}};
    dt_row_buffer *buffer[] = {&s->real, &s->branch, &s->imagined, &s->batch};
    const int64_t size[] = {c->model_updates * c->model_batch, c->branches, c->imagined_size, c->updates * c->batch};
    for (int i = 0; i < 4; i++) {
        DT_TRY_H(dt_row_buffer_init(buffer[i], s->h, field, FIELDS, (uint64_t)size[i]));
    }
    for (int f = 0; f < FIELDS; f++) {
        s->name[f] = s->real.field[f].name;
    }
    DT_TRY_H(dt_row_buffer_data(&s->branch, s->bind, &s->branch_data));
    return dt_row_buffer_data(&s->batch, s->bind, &s->batch_data);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const dt_wiring_api *wiring = NULL;
    const mbpo_config *c = &s->config;
    s->h = h;
    s->config = *(const mbpo_config *)cfg;
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, ID);
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, ID);
    DT_SERVICE_H(h, s->rollout, DT_SVC_ROLLOUT, ID);
    DT_SERVICE_H(h, s->replay, DT_SVC_REPLAY, ID);
    DT_SERVICE_H(h, s->rng, DT_SVC_RNG, ID);
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    dt_wiring_desc w = DT_WIRING_DESC(ID, NULL);
    w.flags = DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | DT_WIRING_STATE_LOG_STD | DT_WIRING_AGENT_ROWS;
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    s->D = s->bind->port_dim(s->wiring->own, 1);
    s->C = s->wiring->spec->n_continuous;
    DT_TRY_H(bind_models(s));
    DT_TRY_H(create_buffers(s));
    const dt_rollout_desc r = {.struct_size = sizeof(r),
                               .steps = (uint32_t)c->collect_steps,
                               .gamma = c->gamma,
                               .transitions = 2,
                               .squash = 1};
    DT_TRY_H(s->rollout->create(h, s->wiring->env, &r, &s->experience));
    const dt_replay_desc p = {.struct_size = sizeof(p),
                              .capacity = CAPACITY,
                              .gamma = c->gamma,
                              .draw = s->real.capacity,
                              .field = s->name,
                              .n_fields = FIELDS - 1};
    return s->replay->create(h, s->experience, &p, &s->memory);
}

static dt_status start(void *self)
{
    static const char *const role[] = {"controller", "critic"}, *const loss[] = {"actor_loss", "critic_loss"};
    state *s = (state *)self;
    const mbpo_config *c = &s->config;
    dt_model *models[DT_WIRING_MAX_MODELS];
    const uint32_t bytes = sizeof(dt_train_group);
    const dt_train_group group[] = {{bytes, 1, 1, 0, "actor", &role[0], &loss[0], 0, 0},
                                    {bytes, 1, 1, 0, "critic", &role[1], &loss[1], 0, 0}};
    const dt_train_target target = {sizeof(target), 0, "target", s->critic, c->tau, 1};
    const uint32_t n = s->wiring->api->models(s->wiring, models, DT_WIRING_MAX_MODELS);
    dt_train_desc policy = DT_TRAIN_DESC(s, record_policy, s->batch_data, models, n);
    dt_train_desc model = DT_TRAIN_DESC(s, record_model, s->replay->data(s->memory), &s->dynamics, 1);
    policy.epochs = model.epochs = (uint64_t)c->iterations;
    policy.batch = (uint64_t)c->batch;
    policy.group = group;
    policy.n_groups = policy.n_models;
    policy.target = &target;
    policy.n_targets = 1;
    model.name = "model";
    model.batch = (uint64_t)c->model_batch;
    model.schedule = DT_TRAIN_SCHEDULE_CONSTANT;
    DT_TRY_H(s->train->create(s->h, &policy, &s->policy));
    return s->train->create(s->h, &model, &s->model);
}

static void destroy(void *self)
{
    state *s = (state *)self;
    dt_row_buffer *buffer[] = {&s->real, &s->branch, &s->imagined, &s->batch};
    for (int i = 0; i < 4; i++) {
        dt_row_buffer_fini(buffer[i]);
    }
}

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "models.dynamics=" ID "_ensemble", "env.id=pendulum", "env.instances=1", "data.batch=64",
                   "data.shards=4", "training.optimizer=adam", "training.learning_rate=1e-3", "training.weight_decay=0",
                   "training.gradient_clip=0", "training.scheduler=constant", "training.warmup_epochs=0",
                   "training.eval_interval=5", "training.save_interval=5", "checkpoint.best_by=return/mean");
DT_PHASE_DEFINE(phase, ID, "a policy that learns from what a learned model of its environment imagines",
                "Janner et al. 2019, arXiv 1906.08253", mbpo_config, state, options,
                DT_OPS(DT_SET(create, create), DT_SET(start, start), DT_SET(iterate, iterate),
                       DT_SET(evaluate, evaluate), DT_SET(stop, dt_no_op), DT_SET(destroy, destroy),
                       DT_SET(save, kept_save), DT_SET(load, kept_load)),
                DT_SET(flags, DT_COMP_DETERMINISTIC | DT_COMP_OWN_BATCH), DT_SET(state_version, 1),
                DT_SET(extension, extension));
DT_PLUGIN_DEFINE_OF(ID, "0.1", "dtrain", "Apache-2.0", &phase, &ensemble_model);

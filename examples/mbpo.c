/* SPDX-License-Identifier: Apache-2.0
 *
 * mbpo: model-based policy optimisation (Janner et al. 2019, arXiv 1906.08253), written against installed headers only:
 * a phase with two trainers. One trains an ensemble of networks that predict the change of an observation and the
 * reward as independent Gaussians (Lakshminarayanan et al. 2017, arXiv 1612.01474). In every round:
 *
 *   collect   steps of the environment with the policy, into the replay buffer
 *   model     trains the ensemble on transitions drawn from it, normalised by what the buffer holds
 *   imagine   branches of `horizon` steps from drawn observations, into a bounded buffer: the policy acts, a random
 *             member of the ensemble answers, within the bounds of what the buffer holds
 *   policy    trains soft actor-critic (Haarnoja et al. 2018) on imagined transitions and a share of real ones
 *
 * Unlike in the paper, members share batches and differ by their first weights alone, all are used, and temperature is
 * constant. Imagined episodes never end: it fits tasks that only time ends, as pendulum. horizon = 0: none are.
 *
 *   cc -shared -fPIC $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=mbpo -o mbpo.so mbpo.c
 *   dtrain check ./mbpo.so && dtrain --plugin ./mbpo.so --set env.id=pendulum
 */
#include <dtrain/net.h>
#include <dtrain/row_buffer.h>
#include <dtrain/svc/replay.h>
#include <dtrain/svc/rng.h>
#include <dtrain/svc/wiring.h>

#define ID "mbpo"
/* Transitions of the replay buffer, steps of the ensemble with a draw of it, columns of a transition. */
enum { CAPACITY = 100000, EACH_DRAW = 16, MAX_COLUMNS = 256 };

typedef struct mbpo_config {
    int64_t iterations, collect_steps, learning_starts, members, model_updates, model_batch;
    int64_t horizon, branches, imagined_size, updates, batch;
    double real_share, gamma, tau, temperature;
} mbpo_config;

enum { OBS, ACTION, NEXT, REWARD, DISCOUNT, FIELDS }; /* of a transition; the action before its tanh */
enum { REAL, BRANCH, IMAGINED, BATCH, BUFFERS };      /* drawn, under way, kept, and what the policy learns from */

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_rng_api *rng;
    mbpo_config config;
    dt_wiring *wiring;
    dt_model *critic, *dynamics;
    dt_replay_loop loop; /* the services, the replay buffer; its trainer is the policy's */
    dt_train *model;
    int64_t D, C; /* columns of observation and action */
    dt_row_buffer rows[BUFFERS];
    const char *name[FIELDS];
    dt_data *branch_data, *batch_data;
} state;

/* clang-format off */
#define OPTION(member, type, dfl, unit, min, max, help)                                                                \
    DT_OPTION(mbpo_config, member, type, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    OPTION(iterations, DT_OPT_I64, "40", "1", 1, 1e9, "rounds"),
    OPTION(collect_steps, DT_OPT_I64, "1", "env steps", 1, 1e6, "steps of every instance in a round"),
    OPTION(learning_starts, DT_OPT_I64, "200", "samples", 1, 1e5, "samples collected before training starts"),
    OPTION(members, DT_OPT_I64, "3", "1", 1, DT_NET_MAX_COPIES, "networks of the ensemble"),
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

/* By what the ensemble normalises, and bounds of what it answers: of all columns of drawn transitions. */
static dt_status set_scales(state *s)
{
    static const char *const name[] = {"mean", "deviation", "low", "high"};
    const dt_row_buffer *b = &s->rows[REAL];
    float v[4][MAX_COLUMNS];
    dt_row_buffer_scales(b, 0, b->width, v[0], v[1], v[2], v[3]);
    for (int i = 0; i < 4; i++) {
        DT_TRY_H(s->loop.train->set(s->model, name[i], v[i], b->width));
    }
    return DT_OK;
}
static dt_status read_real(state *s)
{
    dt_data *drawn = s->loop.replay->data(s->loop.memory);
    DT_TRY_H(dt_row_buffer_evaluate(&s->rows[REAL], s->loop.train, s->model, drawn, s->name, FIELDS, 0));
    return set_scales(s);
}
static dt_tensor *record_scale(const state *s, dt_graph *g, const char *name, int field, int64_t n)
{
    const dt_row_buffer *b = &s->rows[REAL];
    return dt_slice(g, g->api->step_input(g, name, b->width), b->field[field].at, n);
}
static dt_tensor *join(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    dt_tensor *both[] = {a, b};
    return dt_concat(g, both, 2);
}

/* mean + deviation * noise, [A,n]: differs while evaluating, too. */
static dt_tensor *record_draw(dt_graph *g, dt_tensor *mean, dt_tensor *log_std, int64_t n)
{
    dt_tensor *noise = dt_noise_of(g, g->api->input(g, "row_key"), n, DT_NOISE_NORMAL, 1);
    return dt_add(g, mean, dt_mul(g, noise, dt_unary(g, DT_FN_EXP, log_std, 0)));
}

static dt_status record_model(void *user, dt_graph *g)
{
    static const char *const name[] = {"nll_0", "nll_1", "nll_2", "nll_3", "nll_4", "nll_5", "nll_6", "nll_7"};
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    const int64_t D = s->D, P = D + 1; /* columns of what is predicted: the change of the observation, the reward */
    dt_tensor *obs = api->input(g, s->name[OBS]), *reward = dt_split(g, api->input(g, "reward"), 0), *drawn = NULL;
    dt_tensor *spread = record_scale(s, g, "deviation", OBS, D);
    dt_tensor *x = dt_div(g, dt_sub(g, obs, record_scale(s, g, "mean", OBS, D)), spread);
    dt_tensor *all = dt_net_record(g, s->dynamics, NULL, join(g, x, dt_tanh(g, api->input(g, "action_f"))));
    dt_tensor *from = join(g, obs, dt_add(g, dt_fill(g, reward, 0), record_scale(s, g, "mean", REWARD, 1)));
    dt_tensor *scale = join(g, spread, record_scale(s, g, "deviation", REWARD, 1));
    dt_tensor *target = dt_div(g, dt_sub(g, join(g, api->input(g, s->name[NEXT]), reward), from), scale);
    dt_tensor *ones = dt_affine(g, api->input(g, "discount"), 0, 1);
    dt_tensor *u = dt_noise_of(g, api->input(g, "row_key"), 1, DT_NOISE_UNIFORM, 1);
    for (int64_t m = 0; m < s->config.members; m++) { /* member m answers where u is at least m / members */
        dt_tensor *mean = dt_slice(g, all, 2 * m * P, P), *log_std = dt_slice(g, all, (2 * m + 1) * P, P);
        log_std = dt_affine(g, dt_tanh(g, dt_affine(g, log_std, 0.3, 0)), 3, -3); /* -6 to 0 */
        dt_tensor *is_it = dt_compare(g, DT_BIN_GREATER_EQUAL, u, dt_fill(g, u, (double)m / (double)s->config.members));
        DT_TRY_H(api->loss(g, name[m], dt_gaussian_nll(g, mean, log_std, target, ones), 1, "A"));
        drawn = dt_select(g, is_it, record_draw(g, mean, log_std, P), drawn);
    }
    drawn = dt_add(g, from, dt_mul(g, drawn, scale));
    drawn = dt_max(g, drawn, record_scale(s, g, "low", NEXT, P)); /* the reward is the column after NEXT */
    return api->output(g, "answer", dt_min(g, drawn, record_scale(s, g, "high", NEXT, P)));
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
    dt_tensor *entropy = NULL, *next_entropy = NULL;
    dt_tensor *action = record_action(s, g, "", &now, &entropy);
    dt_tensor *next_action = record_action(s, g, "next_", &next, &next_entropy);
    dt_tensor *q = dt_wiring_record_q(s->wiring, g, "", s->critic, NULL, action);
    dt_tensor *actor = dt_sub(g, entropy, dt_reduce_columns(g, DT_REDUCE_MIN, q));
    q = dt_wiring_record_q(s->wiring, g, "next_", s->critic, "target", next_action);
    dt_tensor *value = dt_sub(g, dt_reduce_columns(g, DT_REDUCE_MIN, q), next_entropy);
    value = dt_mul(g, value, dt_split(g, api->input(g, "discount"), 0));
    value = dt_stop(g, dt_add(g, value, dt_split(g, api->input(g, "reward"), 0)));
    q = dt_wiring_record_q(s->wiring, g, "", s->critic, NULL, dt_tanh(g, api->input(g, "action_f")));
    dt_tensor *error = dt_sub(g, q, value);
    if (dt_purpose(g) != DT_FOR_ACTING) { /* of branches; who acts or is exported draws nothing */
        DT_TRY_H(api->output(g, "draw", record_draw(g, now.mean, now.log_std, s->C)));
    }
    DT_TRY_H(api->output(g, "mean", now.mean));
    DT_TRY_H(api->output(g, "log_std", now.log_std));
    DT_TRY_H(api->loss(g, "actor_loss", dt_sum(g, actor), 1.0, "A"));
    return api->loss(g, "critic_loss", dt_sum(g, dt_mul(g, error, error)), 1.0, "A");
}

static dt_status imagine(state *s, uint64_t round)
{
    static const char *const draw = "draw", *const answer = "answer";
    const uint64_t steps = (uint64_t)s->config.horizon;
    dt_row_buffer *b = &s->rows[BRANCH];
    double u = 0;
    for (uint64_t step = 0; step < steps; step++) {
        dt_row_buffer_renew(b, round * steps + step);
        for (uint64_t i = 0; i < b->capacity; i++) {
            float *row = dt_row_buffer_at(b, i);
            s->rng->uniform(s->h, OBS, round, i, &u, 1);
            const float *from = step == 0 ? dt_row_buffer_choose(&s->rows[REAL], u) : row + b->field[NEXT].at;
            memmove(row, from, (size_t)s->D * sizeof(float));
            row[b->field[DISCOUNT].at] = (float)s->config.gamma;
        }
        DT_TRY_H(dt_row_buffer_evaluate(b, s->loop.train, s->loop.trainer, s->branch_data, &draw, 1, ACTION));
        DT_TRY_H(dt_row_buffer_evaluate(b, s->loop.train, s->model, s->branch_data, &answer, 1, NEXT));
        for (uint64_t i = 0; i < b->capacity; i++) {
            dt_row_buffer_add(&s->rows[IMAGINED], dt_row_buffer_at(b, i));
        }
    }
    return DT_OK;
}

/* What the policy learns from in this round, by the number of the one before. */
static dt_status mix(void *user)
{
    state *s = (state *)user;
    dt_row_buffer *b = &s->rows[BATCH];
    double u[2];
    for (uint64_t i = 0; i < b->capacity; i++) {
        s->rng->uniform(s->h, DISCOUNT, b->renewed, i, u, 2);
        const int is_real = u[0] < s->config.real_share || s->config.horizon == 0;
        dt_row_buffer_add(b, dt_row_buffer_choose(&s->rows[is_real ? REAL : IMAGINED], u[1]));
    }
    return DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = (state *)self;
    dt_replay_loop *x = &s->loop;
    uint64_t step = 0, steps = 0, each = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    DT_TRY_H(x->train->position(x->trainer, &step, &steps, &each));
    x->report.struct_size = sizeof(x->report);
    do {
        DT_TRY_H(x->rollout->collect(x->experience, x->trainer, &x->report));
        DT_TRY_H(x->replay->add(x->memory));
        out->samples += x->report.env_steps;
    } while (x->replay->count(x->memory) < (uint64_t)s->config.learning_starts);
    for (int64_t i = 0; i < s->config.model_updates; i++) {
        DT_TRY_H(i % EACH_DRAW == 0 ? x->replay->draw(x->memory) : DT_OK);
        DT_TRY_H(i == 0 ? read_real(s) : DT_OK);
        DT_TRY_H(x->train->step(s->model, &r));
    }
    DT_TRY_H(imagine(s, step / each));
    dt_row_buffer_renew(&s->rows[BATCH], step / each);
    DT_TRY_H(x->train->refill(x->trainer, mix, s));
    for (uint64_t i = 0; i < each; i++) {
        DT_TRY_H(dt_train_iterate(x->train, x->trainer, out));
    }
    out->iterations = step / each + 1;
    return out->step >= steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    const state *s = (const state *)self;
    out->evaluated = 1;
    return s->loop.rollout->report(s->loop.experience, s->loop.trainer);
}

DT_ROW_BUFFER_STATE_DEFINE(kept, state, rows[IMAGINED]);

static dt_status create_buffers(state *s)
{
    const mbpo_config *c = &s->config;
    const uint32_t D = (uint32_t)s->D, C = (uint32_t)s->C;
    const int64_t size[BUFFERS] = {(int64_t)s->loop.draw, c->branches, c->imagined_size, c->updates * c->batch};
    char next[DT_ROW_TEXT];
    (void)snprintf(next, sizeof(next), "next_%s", s->wiring->own->name);
    const dt_row_field field[FIELDS] = {
        {s->wiring->own->name, D, 0}, {"action_f", C, 0}, {next, D, 0}, {"reward", 0, 0}, {"discount", 0, 0}};
    for (int i = 0; i < BUFFERS; i++) {
        DT_TRY_H(dt_row_buffer_init(&s->rows[i], s->h, field, FIELDS, (uint64_t)size[i]));
    }
    for (int f = 0; f < FIELDS; f++) {
        s->name[f] = s->rows[REAL].field[f].name;
    }
    DT_TRY_H(dt_row_buffer_data(&s->rows[BRANCH], s->bind, &s->branch_data));
    return dt_row_buffer_data(&s->rows[BATCH], s->bind, &s->batch_data);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const dt_wiring_api *wiring = NULL;
    s->h = h;
    s->config = *(const mbpo_config *)cfg;
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, ID);
    DT_SERVICE_H(h, s->rng, DT_SVC_RNG, ID);
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    dt_wiring_desc w = DT_WIRING_DESC(ID, NULL);
    w.flags = DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | DT_WIRING_STATE_LOG_STD | DT_WIRING_AGENT_ROWS;
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    s->D = s->bind->port_dim(s->wiring->own, 1);
    s->C = s->wiring->spec->n_continuous;
    s->loop.draw = EACH_DRAW * (uint64_t)s->config.model_batch;
    const dt_env_spec *e = s->wiring->spec;
    if (e->n_agents != 1 || e->n_heads != 0 || s->D < 1 || 2 * s->D + s->C + 2 > MAX_COLUMNS) {
        return DT_FAIL_H(h, DT_ESHAPE, "%s: " ID " requires one agent, continuous actions, 1 to %d observed numbers",
                         s->wiring->env_id, MAX_COLUMNS / 2 - 2);
    }
    DT_TRY_H(dt_wiring_bind_critic(s->wiring, 2, &s->critic));
    DT_TRY_H(dt_net_bind(h, s->bind, "dynamics", s->D + s->C, 2 * s->D + 2, s->config.members, &s->dynamics));
    DT_TRY_H(create_buffers(s));
    const dt_rollout_desc r =
        DT_DESC_(dt_rollout_desc, DT_OPS(DT_SET(steps, (uint32_t)s->config.collect_steps), DT_SET(transitions, 2),
                                         DT_SET(gamma, s->config.gamma), DT_SET(squash, 1)));
    return dt_replay_loop_create(&s->loop, h, s->wiring->env, &r, CAPACITY);
}

static dt_status start(void *self)
{
    static const char *const role[] = {"controller", "critic"}, *const loss[] = {"actor_loss", "critic_loss"};
    state *s = (state *)self;
    const dt_train_api *train = s->loop.train;
    dt_model *models[DT_WIRING_MAX_MODELS];
    enum { BYTES = sizeof(dt_train_group) };
    const dt_train_group group[] = {{BYTES, 1, 1, 0, "actor", &role[0], &loss[0], 0, 0},
                                    {BYTES, 1, 1, 0, "critic", &role[1], &loss[1], 0, 0}};
    const dt_train_target target = {sizeof(target), 0, "target", s->critic, s->config.tau, 1};
    const uint32_t n = s->wiring->api->models(s->wiring, models, DT_WIRING_MAX_MODELS);
    dt_train_desc policy = DT_TRAIN_DESC(s, record_policy, s->batch_data, models, n);
    dt_train_desc model = DT_TRAIN_DESC(s, record_model, s->loop.replay->data(s->loop.memory), &s->dynamics, 1);
    policy.epochs = (uint64_t)s->config.iterations;
    policy.batch = (uint64_t)s->config.batch;
    policy.group = group;
    policy.n_groups = policy.n_models;
    policy.target = &target;
    policy.n_targets = 1;
    model.name = "model";
    model.epochs = policy.epochs * (uint64_t)(s->config.model_updates / EACH_DRAW + 1);
    model.batch = (uint64_t)s->config.model_batch;
    model.schedule = DT_TRAIN_SCHEDULE_CONSTANT;
    DT_TRY_H(train->create(s->h, &policy, &s->loop.trainer));
    DT_TRY_H(train->create(s->h, &model, &s->model));
    return set_scales(s);
}

static void destroy(void *self)
{
    for (int i = 0; i < BUFFERS; i++) {
        dt_row_buffer_fini(&((state *)self)->rows[i]);
    }
}

DT_NET_DEFINE(ensemble, ID "_ensemble", "dynamics", "Lakshminarayanan et al. 2017, arXiv 1612.01474");
DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "models.dynamics=" ID "_ensemble", "env.id=pendulum", "env.instances=10", "data.batch=64",
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
DT_PLUGIN_DEFINE_OF(ID, "0.1", "dtrain", "Apache-2.0", &phase, &ensemble);

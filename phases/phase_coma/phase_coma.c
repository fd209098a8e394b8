/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_coma: counterfactual multi-agent policy gradients (Foerster et al. 2018, arXiv 1705.08926). All agents share
 * one controller, which reads one agent's observations. A critic, used for training alone, estimates the value of each
 * choice of an agent given the others' choices.
 *
 * A round is one update: batch_number minibatches are collected and passed over data_passes times. Its targets of the
 * critic are
 *
 *   y_t = r_t + gamma ((1 - lambda) Q'(u_t+1, o_t+1) + lambda y_t+1)      TD(lambda)
 *
 * with the target critic Q' of the executed choices; y = r where an agent terminated. Where the round's end or a
 * truncation cuts a trajectory the last y is Q' itself, so that its error is 0. With baseline "value" Q' is V'. Losses:
 * coma_loss.h. Policy and gradient include a share epsilon of uniformly random choices, which decays linearly over
 * epsilon_updates rounds; evaluations use epsilon = 0.
 *
 * batch counts transitions of single agents, as the paper does; data.batch counts samples, which contain all agents of
 * an instance at one step: data.batch = batch / agents. Agents of opponents' teams have no transitions. With episodes
 * of `steps` steps
 *
 *   updates = episodes steps agents / (batch batch_number)
 *
 * An iteration depends on parameters, seed and configuration alone.
 */
#include "coma_loss.h"
#include "common/round_report.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"
#include "dtrain/svc/wiring.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define UPDATES "1500" /* by default */

typedef struct config {
    int64_t batch, batch_number, data_passes, updates, episodes, target_interval, epsilon_updates;
    double gamma, lambda, epsilon, epsilon_end, critic_learning_rate, target_tau, clip, entropy_coef;
    uint32_t baseline;
    uint8_t critic_first, others, reserved[2];
} config;

typedef struct state {
    const dt_host *h;
    const dt_bind_api *bind;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_metrics_api *metrics;
    config config;
    uint64_t updates; /* rounds */
    uint32_t agents;  /* that learn */
    dt_wiring *wiring;
    dt_model *critic;
    dt_rollout *experience;
    dt_train *trainer;
    uint64_t most, n;                                 /* rows of a round: capacity, and those of this one */
    float *reward, *value, *next_value, *td, *chance; /* [most], chance [choices] */
    uint64_t n_empty;                                 /* rounds of this process in which no agent acted */
} state;

#define TARGET "target" /* name of the target network */
enum { TEXT = 32 };
static const char *const baselines[] = {"counterfactual", "value", "none", NULL};

#define OPTION(member, type, dfl, unit, min, max, help) DT_OPTION(config, member, type, dfl, unit, min, max, NULL, help)
/* clang-format off */
static const dt_option options[] = {
    OPTION(updates, DT_OPT_I64, UPDATES, "1", 1, 1e9, "rounds of collecting samples and training"),
    OPTION(episodes, DT_OPT_I64, "0", "1", 0, 1e12,
        "train for this many episodes instead of `updates` rounds; 0: use updates. For environments whose episodes "
        "have a known length"),
    OPTION(batch, DT_OPT_I64, "128", "transitions", 1, 1e9,
        "transitions of single agents in a minibatch; data.batch is this divided by the number of learning agents"),
    OPTION(batch_number, DT_OPT_I64, "5", "1", 1, 1e6, "minibatches of a round"),
    OPTION(data_passes, DT_OPT_I64, "5", "1", 1, 1000, "passes over the samples of a round"),
    OPTION(critic_first, DT_OPT_BOOL, "false", NULL, 0, 0,
        "all passes of the critic, then as many of the policy; false: a step of both for each minibatch"),
    OPTION(gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount"),
    OPTION(lambda, DT_OPT_F64, "0.8", "1", 0, 1, "lambda of TD(lambda), the target of the critic"),
    OPTION(target_interval, DT_OPT_I64, "10", "rounds", 1, 1e9, "rounds between updates of the target critic"),
    OPTION(target_tau, DT_OPT_F64, "1", "1", 1e-6, 1, "soft-update rate of the target critic; 1: copy"),
    OPTION(critic_learning_rate, DT_OPT_F64, "1e-4", "1", 0, 1e3,
        "of the critic; training.learning_rate is the controller's; 0: the same"),
    OPTION(epsilon, DT_OPT_F64, "0.5", "1", 0, 0.999, "share of random choices in the first round"),
    OPTION(epsilon_end, DT_OPT_F64, "0.02", "1", 0, 0.999, "share of random choices from round epsilon_steps on"),
    OPTION(epsilon_updates, DT_OPT_I64, "1000", "rounds", 1, 1e9, "rounds until epsilon_end"),
    OPTION(clip, DT_OPT_F64, "0", "1", 0, 1,
        "clipping of the probability ratio to the policy that acted (Schulman et al. 2017); 0: the plain gradient"),
    OPTION(entropy_coef, DT_OPT_F64, "0", "1", 0, 1e6, "weight of the entropy"),
    DT_OPTION(config, baseline, DT_OPT_ENUM, "counterfactual", NULL, 0, 0, baselines,
        "advantage: counterfactual: Q of the chosen action minus its mean over the agent's own choices; for "
        "comparison, the return minus a value, or Q alone"),
    OPTION(others, DT_OPT_BOOL, "true", NULL, 0, 0,
        "the critic sees the actions of the others; false, with critic_others.state = false: it sees only the "
        "agents' observations"),
    DT_OPTION_END};
/* clang-format on */

/* ---- create ------------------------------------------------------------------------------------------------------ */

static uint64_t divide_rounding_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

/* The number of rounds, and of steps of every instance in one. */
static dt_status plan_rounds(state *s, uint32_t *steps_p)
{
    const config *c = &s->config;
    const dt_env_spec *e = s->wiring->spec;
    const uint64_t transitions = (uint64_t)c->batch * (uint64_t)c->batch_number,
                   episode = (uint64_t)e->max_steps * s->agents;
    const uint64_t steps =
        divide_rounding_up(divide_rounding_up(transitions, s->agents), s->bind->env_instances(s->wiring->env));
    if (c->episodes > 0 && episode == 0) {
        return DT_FAIL_H(s->h, DT_ECONFIG,
                         "phase_coma.episodes = %lld: the number of rounds is unknown, because episodes of %s have no "
                         "maximum length; set phase_coma.updates instead",
                         (long long)c->episodes, s->wiring->env_id);
    }
    if (c->episodes > 0 && c->updates != strtoll(UPDATES, NULL, 10)) {
        dt_logf(s->h, 1, "phase_coma.updates = %lld has no effect: episodes = %lld sets the number of rounds",
                (long long)c->updates, (long long)c->episodes);
    }
    if (steps > UINT32_MAX) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "phase_coma.batch %lld times batch_number %lld are too many for a round",
                         (long long)c->batch, (long long)c->batch_number);
    }
    s->updates =
        c->episodes > 0 ? divide_rounding_up((uint64_t)c->episodes * episode, transitions) : (uint64_t)c->updates;
    if (episode > 0) {
        dt_logf(s->h, 2, "%llu updates of %llu transitions: %.0f episodes of %u steps and %u agents",
                (unsigned long long)s->updates, (unsigned long long)transitions,
                (double)s->updates * (double)transitions / (double)episode, e->max_steps, s->agents);
    }
    *steps_p = (uint32_t)steps;
    return DT_OK;
}

static dt_status create_rollout(state *s)
{
    static const dt_port annotation = {"td_target", "A 1", DT_F32, 0};
    uint32_t steps = 0;
    DT_TRY_H(plan_rounds(s, &steps));
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = steps,
                               .gamma = s->config.gamma,
                               .lambda = s->config.lambda,
                               .transitions = 2,
                               .annotation = &annotation,
                               .n_annotations = 1};
    s->most = (uint64_t)steps * s->bind->env_instances(s->wiring->env) * s->agents;
    return s->rollout->create(s->h, s->wiring->env, &d, &s->experience);
}

static dt_status allocate_rows(state *s)
{
    float **const room[] = {&s->reward, &s->value, &s->next_value, &s->td};
    s->chance = s->h->alloc(s->h, s->wiring->n_choices * sizeof(float));
    bool is_there = s->chance != NULL;
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
        *room[i] = s->h->alloc(s->h, s->most * sizeof(float));
        is_there = is_there && *room[i] != NULL;
    }
    return is_there ? DT_OK
                    : DT_FAIL_H(s->h, DT_ENOMEM, "out of memory for the targets of %llu transitions",
                                (unsigned long long)s->most);
}

static dt_status check_environment(const state *s)
{
    const dt_wiring *w = s->wiring;
    if (w->spec->n_heads != 1 || w->spec->n_continuous != 0 || w->spec->n_agents < 2) {
        return DT_FAIL_H(s->h, DT_ESHAPE,
                         "phase_coma compares the choices of one of several agents: environment %s has %u agents, %u "
                         "discrete and %u continuous actions of each; it takes at least 2, 1 and 0",
                         w->env_id, w->spec->n_agents, w->spec->n_heads, w->spec->n_continuous);
    }
    if (w->perception != NULL || w->shield != NULL) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "phase_coma trains only a controller and a critic: unset models.%s",
                         w->perception != NULL ? "perception" : "shield");
    }
    return DT_OK;
}

static dt_status bind_critic(state *s)
{
    const dt_wiring *w = s->wiring;
    char others[TEXT], q[TEXT];
    snprintf(others, TEXT, "A %u", w->n_choices * w->spec->n_agents);
    snprintf(q, TEXT, "A %u", w->n_choices);
    const dt_port offer = {"others", others, DT_F32, 0}, need = {"q", q, DT_F32, 0};
    const dt_dim dim = {"others", (int64_t)w->n_choices * w->spec->n_agents};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .n_dims = 1,
                                   .role = "critic",
                                   .dims = &dim,
                                   .offers = &offer,
                                   .needs = &need,
                                   .n_offers = 1,
                                   .n_needs = 1};
    return w->api->bind(s->wiring, &want, &s->critic);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    const dt_wiring_api *wiring = NULL;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, "phase_coma");
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, "phase_coma");
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, "phase_coma");
    DT_SERVICE_H(h, s->rollout, DT_SVC_ROLLOUT, "phase_coma");
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, "phase_coma");
    dt_wiring_desc d = DT_WIRING_DESC("phase_coma", NULL);
    d.flags = DT_WIRING_NO_VALUE;
    DT_TRY_H(wiring->create(h, &d, &s->wiring));
    DT_TRY_H(check_environment(s));
    const uint32_t learners = s->bind->env_learners(s->wiring->env);
    s->agents = learners > 0 ? learners : 1; /* the rollout rejects a missing team */
    DT_TRY_H(bind_critic(s));
    DT_TRY_H(create_rollout(s));
    return allocate_rows(s);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static dt_status record_critic(const state *s, dt_graph *g, const dt_wiring_view *view, dt_tensor **q_p)
{
    dt_tensor *chosen = g->api->input(g, "others");
    const dt_named others = {"others", s->config.others ? chosen : dt_affine(g, chosen, 0, 0)};
    dt_named q = {"q", NULL};
    DT_TRY_H(s->wiring->api->record_model(s->wiring, g, view, s->critic, &others, 1, &q, 1));
    *q_p = q.tensor;
    return DT_OK;
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    const config *c = &s->config;
    const coma_loss_config loss = {.clip = c->clip, .entropy_coef = c->entropy_coef, .baseline = c->baseline};
    const dt_wiring_view late = {.struct_size = sizeof(late), .has_all = 1, .prefix = "", .target = TARGET};
    dt_named logits = {"logits", NULL};
    dt_tensor *q = NULL, *target = NULL;
    DT_TRY_H(s->wiring->api->record_model(s->wiring, g, NULL, s->wiring->controller, NULL, 0, &logits, 1));
    DT_TRY_H(record_critic(s, g, NULL, &q));
    DT_TRY_H(record_critic(s, g, &late, &target));
    const coma_policy p = coma_record_policy(g, logits.tensor, s->wiring->n_choices);
    DT_TRY_H(g->api->output(g, "logits", p.log_p));
    DT_TRY_H(g->api->output(g, "target_q", coma_record_estimate(&loss, g, target)));
    return coma_record_losses(&loss, g, &p, q);
}

static dt_status set_epsilon(const state *s, bool is_acting, double epsilon)
{
    for (uint32_t i = 0; i < s->wiring->n_choices; i++) {
        s->chance[i] = (float)epsilon;
    }
    return (is_acting ? s->train->set_acting : s->train->set)(s->trainer, "epsilon", s->chance, s->wiring->n_choices);
}

static uint64_t passes_per_round(const config *c) /* over the samples of a round */
{
    return (uint64_t)c->data_passes * (c->critic_first ? 2 : 1);
}

/* The host divides a round into minibatches of data.batch. */
static dt_status warn_minibatches(const state *s)
{
    const config *c = &s->config;
    const uint32_t n = s->agents;
    uint64_t step = 0, steps = 0, of_pass = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &of_pass));
    if (of_pass != (uint64_t)c->batch_number) {
        dt_logf(
            s->h, 1,
            "a round has %llu minibatches, not phase_coma.batch_number = %lld: batch = %lld transitions of %u agents "
            "are data.batch = %llu samples, and env.instances = %u make rounds of %llu",
            (unsigned long long)of_pass, (long long)c->batch_number, (long long)c->batch, n,
            (unsigned long long)divide_rounding_up((uint64_t)c->batch, n), s->bind->env_instances(s->wiring->env),
            (unsigned long long)(s->most / n));
    }
    return DT_OK;
}

enum { ACTOR, CRITIC, GROUPS };

static dt_status start(void *self)
{
    state *s = self;
    static const char *const actor[] = {"controller"}, *const critic[] = {"critic"};
    static const char *const actor_loss[] = {"policy_loss", "approx_kl", "entropy"};
    static const char *const critic_loss[] = {"critic_loss"};
    const config *c = &s->config;
    const dt_train_group group[GROUPS] = {{.struct_size = sizeof(group[0]),
                                           .n_roles = 1,
                                           .n_losses = 3,
                                           .name = "actor",
                                           .role = actor,
                                           .loss = actor_loss},
                                          {.struct_size = sizeof(group[0]),
                                           .n_roles = 1,
                                           .n_losses = 1,
                                           .name = "critic",
                                           .role = critic,
                                           .loss = critic_loss,
                                           .learning_rate = c->critic_learning_rate}};
    const dt_train_target target = {.struct_size = sizeof(target),
                                    .name = TARGET,
                                    .model = s->critic,
                                    .tau = c->target_tau,
                                    .every = (uint64_t)(c->target_interval * c->batch_number * c->data_passes)};
    dt_model *models[DT_WIRING_MAX_MODELS];
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = s->wiring->api->models(s->wiring, models, DT_WIRING_MAX_MODELS),
                                .user = s,
                                .record = record,
                                .data = s->rollout->data(s->experience),
                                .models = models,
                                .epochs = s->updates * passes_per_round(c),
                                .group = group,
                                .n_groups = GROUPS,
                                .n_targets = 1,
                                .target = &target};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    DT_TRY_H(set_epsilon(s, true, 0)); /* evaluations and exports do not explore */
    DT_TRY_H(set_epsilon(s, false, 0));
    return warn_minibatches(s);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Rows of evaluate, in the order of samples. */
static dt_status collect_rows(void *user, const dt_rows *r)
{
    state *s = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *reward = s->train->rows(r, "reward", dim, &rank), *value = s->train->rows(r, "target_q", dim, &rank);
    if (reward == NULL || value == NULL || dim[0] < 0 || (uint64_t)dim[0] > s->most - s->n) {
        return DT_FAIL_H(s->h, DT_EUNSUPPORTED, "this host's rollout lacks what phase_coma trains on");
    }
    memcpy(s->reward + s->n, reward, (size_t)dim[0] * sizeof(*reward));
    memcpy(s->value + s->n, value, (size_t)dim[0] * sizeof(*value));
    s->n += (uint64_t)dim[0];
    return DT_OK;
}

/* y of every row; next_value is such that r + gamma next_value = Q' where a trajectory is cut. */
static dt_status compute_targets(state *s)
{
    const config *c = &s->config;
    s->n = 0;
    DT_TRY_H(s->train->evaluate(s->trainer, s->rollout->data(s->experience), s, collect_rows));
    for (uint64_t i = 0; i < s->n; i++) {
        const double next = c->gamma > 0 ? ((double)s->value[i] - (double)s->reward[i]) / c->gamma : 0;
        s->next_value[i] = (float)next;
    }
    DT_TRY_H(s->rollout->returns(s->experience, s->value, s->next_value, c->gamma, c->lambda, s->td, s->n));
    return s->rollout->annotate(s->experience, "td_target", s->td, s->n);
}

/* of_pass: minibatches of a pass */
static dt_status train_round(state *s, uint64_t of_pass, dt_step_report *r, uint64_t *samples_p)
{
    enum { BOTH = 1 << ACTOR | 1 << CRITIC };
    const config *c = &s->config;
    for (uint64_t pass = 0; pass < passes_per_round(c); pass++) {
        const bool is_critics = pass < (uint64_t)c->data_passes;
        const uint32_t mask = !c->critic_first ? BOTH : is_critics ? 1 << CRITIC : 1 << ACTOR;
        for (uint64_t i = 0; i < of_pass; i++) {
            dt_step_report now = {.struct_size = sizeof(now)};
            DT_TRY_H(s->train->step_groups(s->trainer, mask, &now));
            *samples_p += now.samples;
            *r = now.samples > 0 ? now : *r;
        }
    }
    return DT_OK;
}

/* Without a sample the steps of the round are skipped. */
static dt_status skip_round(state *s, uint64_t round, uint64_t of_pass)
{
    s->metrics->scalar(s->h, "charts/rounds_without_samples", (double)++s->n_empty);
    s->n = 0;
    if (s->n_empty == 1) {
        dt_logf(s->h, 1,
                "phase_coma: no agent acted in round %llu, and nothing is learned from it; from now on such rounds are "
                "counted in charts/rounds_without_samples",
                (unsigned long long)round + 1);
    }
    return s->train->seek(s->trainer, (round + 1) * of_pass * passes_per_round(&s->config));
}

/* 1 - var(y - Q') / var(y); NAN where y does not vary. */
static double explained_variance(const state *s)
{
    double sum = 0, squares = 0, left = 0, left_squares = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double y = (double)s->td[i], e = y - (double)s->value[i];
        sum += y;
        squares += y * y;
        left += e;
        left_squares += e * e;
    }
    const double n = s->n > 0 ? (double)s->n : 1, var = squares / n - sum / n * (sum / n);
    return var > 0 ? 1 - (left_squares / n - left / n * (left / n)) / var : NAN;
}

static void report_round(const state *s, const dt_rollout_report *r, double epsilon, uint64_t samples, double learn_s)
{
    const dt_metrics_api *m = s->metrics;
    report_episodes(s->h, m, s->wiring->spec, r);
    m->scalar(s->h, "charts/epsilon", epsilon);
    m->scalar(s->h, "losses/explained_variance", explained_variance(s));
    m->scalar(s->h, "time/env", r->env_s);
    m->scalar(s->h, "time/policy", r->policy_s);
    m->scalar(s->h, "time/env_wait", r->wait_s);
    m->scalar(s->h, "time/learn", learn_s);
    m->scalar(s->h, "charts/learn_samples_per_s", learn_s > 0 && samples > 0 ? (double)samples / learn_s : (double)NAN);
    m->scalar(s->h, "charts/env_steps_per_s", r->total_s > 0 ? (double)r->env_steps / r->total_s : (double)NAN);
}

static double epsilon_at(const config *c, uint64_t round)
{
    const double x = (double)round / (double)c->epsilon_updates;
    return c->epsilon + (c->epsilon_end - c->epsilon) * (x < 1 ? x : 1);
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, of_pass = 0, samples = 0;
    dt_rollout_report collected = {.struct_size = sizeof(collected)};
    dt_step_report r = {.struct_size = sizeof(r), .loss = NAN, .grad_norm = NAN, .learning_rate = NAN};
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &of_pass));
    if (step >= steps) {
        return DT_DONE;
    }
    const uint64_t round = step / (of_pass * passes_per_round(&s->config));
    const double epsilon = epsilon_at(&s->config, round);
    DT_TRY_H(set_epsilon(s, false, epsilon));
    DT_TRY_H(s->rollout->collect(s->experience, s->trainer, &collected));
    const double begin = report_seconds_now();
    if (collected.agent_steps > 0) {
        DT_TRY_H(compute_targets(s));
        DT_TRY_H(train_round(s, of_pass, &r, &samples));
    } else {
        DT_TRY_H(skip_round(s, round, of_pass));
    }
    report_round(s, &collected, epsilon, samples, report_seconds_now() - begin);
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &of_pass));
    out->step = step;
    out->steps = steps;
    out->epoch = round;
    out->epochs = s->updates;
    out->iterations = round + 1;
    out->samples = collected.env_steps;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return step >= steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    const state *s = self;
    DT_TRY_H(s->rollout->report(s->experience, s->trainer));
    out->evaluated = 1;
    return DT_OK;
}

static void destroy(void *self)
{
    state *s = self;
    float *const room[] = {s->reward, s->value, s->next_value, s->td, s->chance};
    if (s->h == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
        s->h->release(s->h, room[i]);
    }
    if (s->trainer != NULL) {
        s->train->destroy(s->trainer);
    }
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_others",
                   "env.id=ipp", "env_ipp.state=true", "env.instances=8", "data.batch=32", "data.shards=4",
                   "training.learning_rate=1e-5", "training.weight_decay=0", "training.optimizer=adam",
                   "training.eps=1e-5", "training.gradient_clip=10", "training.scheduler=constant",
                   "training.warmup_epochs=0", "training.eval_interval=50", "training.save_interval=50",
                   "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, "phase_coma", "counterfactual policy gradients for several agents",
                "Foerster et al. 2018, arXiv 1705.08926", config, state, options,
                DT_OPS(.create = create, .start = start, .iterate = iterate, .evaluate = evaluate, .stop = dt_no_op,
                       .destroy = destroy),
                .flags = DT_COMP_DETERMINISTIC | DT_COMP_OWN_BATCH, .state_version = 1, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase_coma", "1.0", "dtrain", "Apache-2.0");

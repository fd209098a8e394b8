/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_offline: offline reinforcement learning from stored rollouts (rollouts.keep); only evaluations step the
 * environment.
 *
 *   clone      behaviour cloning: actor_loss = -log pi(a|s)
 *   advantage  advantage-weighted regression (Peng et al. 2019, arXiv 1910.00177; Wang et al. 2020, arXiv 2006.15134,
 *              "exp") with values of actions in the data alone (as Kostrikov et al. 2021, arXiv 2110.06169; Xiao et al.
 *              2023, arXiv 2302.14372)
 *
 * With Q_0 of the reward, the minimum over `critics` estimates, Q_k of each cost with a limit, and target networks Q',
 * means over the agents of a minibatch:
 *
 *   A_h          Q'_h(s, a) - V_h(s)
 *   w            exp(min((A_0 - sum_k lambda_k A_k) / (beta (sigma_0 + sum_k lambda_k sigma_k)), log weight_max))
 *   actor_loss   -w log pi(a|s)
 *   value_loss   sum_h min(rho, ratio_max) (V_h(s) - Q'_h(s, a))^2,   rho = pi(a|s) / log_prob's probability
 *   critic_loss  sum_h (Q_h(s, a) - (r_h + gamma V_h(s')))^2
 *
 * V, the controller's value and cost_value, is the value of the policy by importance sampling over actions of the data
 * (Precup et al. 2000, "Eligibility traces for off-policy policy evaluation"). Weights w in place of rho would estimate
 * costs far too low: A contains V's error at a state, and w prefers states that went better than V, whereas the mean of
 * rho is 1 at every state. Dividing by sigma_h, the deviation of A_h, makes beta independent of units: the policy
 * departs from the behaviour by at most about 1 / (2 beta^2) nats. In the first `clone_rounds` w and rho are 1, and
 * values are those of the behaviour.
 *
 * A PID controller (Stooke et al. 2020, arXiv 2007.03964; constraints/multiplier.h) updates lambda_k from the upper end
 * of the 95 % interval of a doubly robust estimate of an episode's cost (costs.c). The estimate is over states of the
 * data: only an evaluation measures the policy's cost, and margin lowers the limits for that. At the end the phase logs
 * which limits the estimates support.
 *
 * A critic corrects an error of its mean slowest, by a factor of gamma per update of its target network. The mean of
 * the behaviour is known: mean r_h / (1 - gamma (1 - p)). Q and V are therefore outputs of networks plus an offset, set
 * after each of the clone_rounds but the last so that V has this mean, and constant from then on.
 *
 * Rewards and costs are divided by their root mean square and multiplied by 10 (1 - gamma), which gives values of about
 * 10 in any units. Models read rows of agents alone (with clone: all observations).
 */
#include "offline.h"

#include "dtrain/svc/comm.h"

#include <math.h>
#include <string.h>

#define ID                "phase_offline"
#define TARGET_VALUE_SIZE 10.0 /* of values in training */
#define ESTIMATE_EMA      0.9  /* smoothing of estimates over minibatches */

enum { ACTOR, CRITIC, GROUPS };

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status read_limits(offline_state *s)
{
    const dt_env_spec *e = s->models.spec;
    DT_TRY_H(s->config.limits[0] != '\0' ? limits_parse(&s->limits, s->h, ID, s->models.wiring, s->config.limits)
                                         : DT_OK);
    s->n_heads = 1;
    for (uint32_t k = 0; k < e->n_costs; k++) {
        if (s->limits.has[k]) {
            s->cost_of[s->n_heads++] = k;
        }
    }
    return DT_OK;
}

/* The outputs of the critic depend on limits, and these on the environment. */
static dt_status bind_models(offline_state *s)
{
    const dt_wiring_api *wiring = NULL;
    actor_critic *r = &s->models;
    DT_SERVICE_H(s->h, wiring, DT_SVC_WIRING, ID);
    *r = (actor_critic){.h = s->h, .bind = s->bind, .phase = ID};
    DT_TRY_H(actor_critic_bind(r, wiring, offline_is_clone(s) ? DT_WIRING_NO_VALUE : DT_WIRING_AGENT_ROWS));
    DT_TRY_H(read_limits(s));
    r->n_critics = s->config.critics + s->n_heads - 1;
    return offline_is_clone(s) ? DT_OK : dt_wiring_bind_critic(r->wiring, r->n_critics, &r->critic);
}

static dt_status open_rollouts(offline_state *s)
{
    const offline_config *c = &s->config;
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = 1,
                               .gamma = c->gamma,
                               .transitions = 2,
                               .normalise_obs = c->normalise_obs,
                               .clip_obs = c->clip_obs};
    const dt_replay_desc memory = {.struct_size = sizeof(memory), .stored = c->rollouts};
    s->stats.struct_size = sizeof(s->stats);
    DT_TRY_H(s->rollout->create(s->h, s->models.wiring->env, &d, &s->experience));
    DT_TRY_H(s->replay->create(s->h, s->experience, &memory, &s->memory));
    return s->replay->stats(s->memory, &s->stats);
}

static double scale_from_squares(const offline_state *s, double squares)
{
    const double size = s->stats.rows > 0 ? sqrt(squares / (double)s->stats.rows) : 0;
    return size > 0 ? TARGET_VALUE_SIZE * (1 - s->config.gamma) / size : 1;
}

static void set_scales(offline_state *s)
{
    s->scale[0] = scale_from_squares(s, s->stats.reward_squares);
    for (uint32_t i = 1; i < s->n_heads; i++) {
        s->scale[i] = scale_from_squares(s, s->stats.cost_squares[s->cost_of[i]]);
    }
    for (uint32_t i = 0; i < s->n_heads && s->stats.rows > 0; i++) {
        const double sum = i == 0 ? s->stats.reward : s->stats.cost[s->cost_of[i]];
        s->known[i] = s->scale[i] * sum / (double)s->stats.rows / offline_rate(s);
        s->kept.offset[i] = s->known[i];
    }
}

/* Evaluations have no rollouts. */
static dt_status check_rollouts(const offline_state *s)
{
    if (s->stats.samples > 0 && s->stats.rows == 0) {
        return DT_FAIL_H(s->h, DT_EDATA,
                         ID
                         ".rollouts: no agent acted in any of the %llu samples of %s; there is nothing to learn from",
                         (unsigned long long)s->stats.samples, s->config.rollouts);
    }
    if (s->stats.samples > 0 && s->stats.episodes == 0 && s->n_heads > 1) {
        return DT_FAIL_H(s->h, DT_ECONFIG,
                         ID ".limits = \"%s\" are of episodes, and none ended in the %llu samples of %s; keep more "
                            "rounds (rollouts.keep), or set no limits",
                         s->config.limits, (unsigned long long)s->stats.samples, s->config.rollouts);
    }
    return DT_OK;
}

/* An error of a value shrinks by gamma in 1 / tau updates. Once in a run, by one rank. */
static void warn_few_updates(const offline_state *s)
{
    const dt_comm_api *comm = s->h->service(s->h, DT_SVC_COMM);
    const offline_config *c = &s->config;
    const double wanted = 2 / (c->tau * (1 - c->gamma)), has = (double)c->iterations * (double)c->updates;
    if (s->n_heads > 1 && has < wanted && (comm == NULL || comm->rank(s->h) == 0)) {
        dt_logf(s->h, 1,
                ID ": %.0f updates are too few for values with gamma = %g and tau = %g, which need %.0f; estimates of "
                   "costs are unreliable: raise iterations or tau, or lower gamma",
                has, c->gamma, c->tau, wanted);
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    offline_state *s = self;
    const offline_config *c = cfg;
    s->h = h;
    s->config = *c;
    if (c->rollouts[0] == '\0') {
        return DT_FAIL_H(h, DT_ECONFIG,
                         ID ".rollouts is not set; name a folder RUN/rollouts/PHASE of a run with rollouts.keep");
    }
    s->rule = multiplier_rule_from_config(&c->multiplier, MULTIPLIER_PID);
    for (uint32_t i = 0; i < OFFLINE_MAX_HEADS; i++) {
        multiplier_init(&s->kept.multiplier[i]);
    }
    DT_SERVICE_H(h, s->bind, DT_SVC_BIND, ID);
    DT_SERVICE_H(h, s->train, DT_SVC_TRAIN, ID);
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, ID);
    DT_SERVICE_H(h, s->rollout, DT_SVC_ROLLOUT, ID);
    DT_SERVICE_H(h, s->replay, DT_SVC_REPLAY, ID);
    DT_TRY_H(bind_models(s));
    DT_TRY_H(open_rollouts(s));
    set_scales(s);
    return check_rollouts(s);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A multiplier in the units of scaled advantages. */
static double scaled_multiplier(const offline_state *s, uint32_t i)
{
    return s->kept.multiplier[i].value * s->scale[0] / s->scale[i];
}

static dt_status set_weights(const offline_state *s, uint64_t round)
{
    float mix[OFFLINE_MAX_HEADS] = {0}, offset[OFFLINE_MAX_HEADS];
    double size = s->kept.deviation[0];
    for (uint32_t i = 1; i < s->n_heads; i++) {
        size += scaled_multiplier(s, i) * s->kept.deviation[i];
    }
    const bool weighs = round >= (uint64_t)s->config.clone_rounds && size > 0;
    for (uint32_t i = 0; i < s->n_heads && weighs; i++) {
        mix[i] = (float)((i == 0 ? 1 : -scaled_multiplier(s, i)) / (s->config.beta * size));
    }
    for (uint32_t i = 0; i < s->n_heads; i++) {
        offset[i] = (float)s->kept.offset[i];
    }
    const float follows = round >= (uint64_t)s->config.clone_rounds ? 1 : 0;
    DT_TRY_H(s->train->set(s->trainer, "follows", &follows, 1));
    DT_TRY_H(s->train->set(s->trainer, "offset", offset, s->n_heads));
    return s->train->set(s->trainer, "mix", mix, s->n_heads);
}

static dt_status add_advantages(void *user, const dt_rows *r)
{
    offline_state *s = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *advantage = s->train->rows(r, "advantages", dim, &rank);
    const float *value = s->train->rows(r, "values", dim, &rank);
    const float *weight = s->train->rows(r, "weights", dim, &rank);
    if (advantage == NULL || value == NULL || weight == NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, ID ": drawn samples have no recorded advantages");
    }
    for (int64_t row = 0; row < dim[0]; row++) {
        for (uint32_t i = 0; i < s->n_heads; i++) {
            const double a = (double)advantage[row * s->n_heads + i];
            s->sum[i] += a;
            s->squares[i] += a * a;
            s->of_value[i] += (double)value[row * s->n_heads + i];
        }
        s->weight += (double)weight[row];
    }
    s->rows += (uint64_t)dim[0];
    return DT_OK;
}

/* From the last minibatch. */
static dt_status update_estimates(offline_state *s, uint64_t round)
{
    s->rows = 0;
    s->weight = 0;
    memset(s->sum, 0, sizeof(s->sum));
    memset(s->squares, 0, sizeof(s->squares));
    memset(s->of_value, 0, sizeof(s->of_value));
    DT_TRY_H(s->train->evaluate(s->trainer, s->replay->data(s->memory), s, add_advantages));
    const bool is_known = round + 1 < (uint64_t)s->config.clone_rounds; /* V is the value of the behaviour */
    const double n = s->rows > 0 ? (double)s->rows : 1, kept = s->kept.estimates > 0 ? ESTIMATE_EMA : 0;
    for (uint32_t i = 0; i < s->n_heads; i++) {
        const double mean = s->sum[i] / n, deviation = sqrt(fmax(0, s->squares[i] / n - mean * mean));
        s->kept.offset[i] = is_known ? s->known[i] - s->of_value[i] / n : s->kept.offset[i];
        s->kept.deviation[i] = kept * s->kept.deviation[i] + (1 - kept) * deviation;
    }
    s->kept.estimates++;
    s->metrics->scalar(s->h, "charts/weight", s->weight / n);
    return DT_OK;
}

/* Reports <group>/<cost of head i>. */
static void offline_report(const offline_state *s, const char *group, uint32_t i, double value)
{
    char name[96];
    snprintf(name, sizeof(name), "%s/%s", group, s->models.spec->costs[s->cost_of[i]]);
    s->metrics->scalar(s->h, name, value);
}

/* From the upper end of the estimated interval. */
static dt_status update_multipliers(offline_state *s, bool is_last)
{
    const double reward = s->kept.deviation[0] / s->scale[0];
    offline_costs cost = {.share = 0};
    DT_TRY_H(offline_estimate_costs(s, &cost));
    for (uint32_t i = 1; i < s->n_heads; i++) {
        multiplier *m = &s->kept.multiplier[i];
        const double deviation = s->kept.deviation[i] / s->scale[i];
        const double limit = s->limits.at[s->cost_of[i]] * (1 - s->config.margin);
        if (isfinite(cost.mean[i] + cost.off[i])) {
            multiplier_update(m, &s->rule, cost.mean[i] + cost.off[i], limit, deviation > 0 ? reward / deviation : 0,
                              1);
        }
        offline_report(s, "estimated_costs", i, cost.mean[i]);
        offline_report(s, "estimated_costs_off", i, cost.off[i]);
        if (m->rounds > 0) {
            offline_report(s, "multipliers", i, m->value);
        }
    }
    if (is_last) {
        offline_log_limits(s, &cost);
    }
    return DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status start(void *self)
{
    static const char *const role[GROUPS][2] = {{"controller", "perception"}, {"critic", NULL}};
    static const char *const loss[GROUPS][2] = {{"actor_loss", "value_loss"}, {"critic_loss", NULL}};
    static const char *const name[GROUPS] = {"actor", "critic"};
    offline_state *s = self;
    const offline_config *c = &s->config;
    const dt_wiring *w = s->models.wiring;
    const double rate[GROUPS] = {c->actor_learning_rate, c->critic_learning_rate};
    const double clip[GROUPS] = {c->actor_clip, c->critic_clip};
    const dt_train_target target = {
        .struct_size = sizeof(target), .name = "target", .model = s->models.critic, .tau = c->tau, .every = 1};
    dt_train_group group[GROUPS];
    dt_model *models[2 * DT_WIRING_MAX_MODELS];
    for (int i = 0; i < GROUPS; i++) {
        group[i] = (dt_train_group){.struct_size = sizeof(group[i]),
                                    .n_roles = i == ACTOR && w->perception != NULL ? 2 : 1,
                                    .n_losses = i == ACTOR && !offline_is_clone(s) ? 2 : 1,
                                    .name = name[i],
                                    .role = role[i],
                                    .loss = loss[i],
                                    .learning_rate = rate[i],
                                    .gradient_clip = clip[i]};
    }
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = w->api->models(w, models, 2 * DT_WIRING_MAX_MODELS),
                                .user = s,
                                .record = offline_record,
                                .data = s->replay->data(s->memory),
                                .models = models,
                                .epochs = (uint64_t)(c->iterations * c->updates),
                                .group = group,
                                .n_groups = offline_is_clone(s) ? 1 : GROUPS,
                                .target = &target,
                                .n_targets = offline_is_clone(s) ? 0 : 1};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    if (offline_is_clone(s)) {
        return DT_OK;
    }
    DT_TRY_H(actor_critic_set_identity(&s->models, s->train, s->trainer));
    return set_weights(s, 0);
}

static dt_status train_round(const offline_state *s, dt_step_report *r, double *loss_p)
{
    *loss_p = 0;
    for (int64_t i = 0; i < s->config.updates; i++) {
        DT_TRY_H(s->replay->draw(s->memory));
        DT_TRY_H(s->train->step(s->trainer, r));
        *loss_p += r->loss / (double)s->config.updates;
    }
    return DT_OK;
}

/* Once in a run. */
static void report_rollouts(const offline_state *s)
{
    const double episodes = (double)s->stats.episodes;
    s->metrics->scalar(s->h, "rollouts/samples", (double)s->stats.samples);
    s->metrics->scalar(s->h, "rollouts/episodes", episodes);
    if (s->stats.episodes == 0) {
        return; /* their return and costs are unknown */
    }
    s->metrics->scalar(s->h, "rollouts/return", s->stats.reward / episodes);
    for (uint32_t i = 1; i < s->n_heads; i++) {
        offline_report(s, "rollouts", i, s->stats.cost[s->cost_of[i]] / episodes);
    }
}

static dt_status iterate(void *self, dt_progress *out)
{
    offline_state *s = self;
    uint64_t step = 0, steps = 0, per_epoch = 0;
    double loss = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &per_epoch));
    if (step >= steps) {
        return DT_DONE;
    }
    const uint64_t round = step / (uint64_t)s->config.updates;
    if (round == 0) {
        report_rollouts(s);
        warn_few_updates(s);
    }
    DT_TRY_H(offline_is_clone(s) ? DT_OK : set_weights(s, round));
    DT_TRY_H(train_round(s, &r, &loss));
    if (!offline_is_clone(s)) {
        DT_TRY_H(update_estimates(s, round));
    }
    if (s->n_heads > 1 && round + 1 >= (uint64_t)s->config.clone_rounds) { /* before, it is the behaviour */
        DT_TRY_H(update_multipliers(s, r.step >= steps));
    }
    out->step = r.step;
    out->steps = steps;
    out->epoch = round;
    out->epochs = (uint64_t)s->config.iterations;
    out->iterations = round + 1;
    out->samples = (uint64_t)s->config.updates * r.samples;
    out->loss = loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return r.step >= steps ? DT_DONE : DT_OK;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    offline_state *s = self;
    DT_TRY_H(s->rollout->report(s->experience, s->trainer));
    limits_report(&s->limits, s->h, s->metrics, s->models.wiring);
    out->evaluated = 1;
    return DT_OK;
}

static dt_status finish(void *self)
{
    const offline_state *s = self;
    for (uint32_t i = 1; i < s->n_heads; i++) {
        if (s->kept.multiplier[i].rounds == 0) {
            return DT_FAIL_H(
                s->h, DT_ECONFIG,
                ID ".limits: the limit %g of cost %s was never evaluated, because the phase was over before "
                   "it had cloned the behaviour, " ID
                   ".clone_rounds = %lld rounds: the limit had no effect; train for more rounds, or lower clone_rounds",
                s->limits.at[s->cost_of[i]], s->models.spec->costs[s->cost_of[i]], (long long)s->config.clone_rounds);
        }
    }
    return DT_OK;
}

static void destroy(void *self)
{
    const offline_state *s = self;
    if (s->trainer != NULL) {
        s->train->destroy(s->trainer);
    }
}

static dt_status save(void *self, dt_writer *w)
{
    const offline_state *s = self;
    return w->write(w, &s->kept, sizeof(s->kept));
}

static dt_status load(void *self, dt_reader *r, uint32_t version)
{
    offline_state *s = self;
    if (version < 2) {
        return DT_FAIL_H(
            s->h, DT_EDATA,
            "the checkpoint's values are not those of the policy, and this version cannot continue from such; "
            "start a new run with --init-from");
    }
    return r->read(r, &s->kept, sizeof(s->kept));
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static const char *const algorithms[] = {"advantage", "clone", NULL};

/* clang-format off */
#define ROW(member, type, dfl, unit, min, max, help)                                                                   \
    DT_OPTION(offline_config, member, type, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    DT_OPTION_WITH(offline_config, rollouts, DT_OPT_PATH, "", NULL, 0, 0, NULL,
                   "folder of stored rollouts, RUN/rollouts/PHASE of a run with rollouts.keep, or a file of it",
                   DT_OPT_ROLLOUTS, NULL),
    DT_OPTION(offline_config, algorithm, DT_OPT_ENUM, "advantage", NULL, 0, 0, algorithms,
        "clone: imitate the recorded behaviour; advantage: weight it by advantage, and by cost under limits"),
    ROW(iterations, DT_OPT_I64, "100", "1", 1, 1e9, "rounds"),
    ROW(updates, DT_OPT_I64, "100", "1", 1, 1e6, "updates per round, each of data.batch samples"),
    ROW(clone_rounds, DT_OPT_I64, "10", "rounds", 1, 1e9,
        "advantage: first rounds, in which the behaviour is cloned and its values are learned"),
    ROW(gamma, DT_OPT_F64, "0.95", "1", 0, 0.999999, "discount of reward and costs"),
    ROW(beta, DT_OPT_F64, "0.5", "1", 1e-3, 1e3,
        "advantage: standard deviations of advantages by which an action is e times likelier; the policy departs "
        "from the "
        "behaviour by about 1 / (2 beta^2) nats"),
    ROW(weight_max, DT_OPT_F64, "20", "1", 1, 1e9, "advantage: maximum weight of an action"),
    ROW(ratio_max, DT_OPT_F64, "20", "1", 1, 1e9,
        "advantage: maximum importance weight of an action in values"),
    ROW(critics, DT_OPT_I64, "2", "1", 1, ACTOR_CRITIC_MAX_CRITICS, "number of critics of the reward; the minimum of "
        "their estimates is used"),
    ROW(tau, DT_OPT_F64, "0.05", "1", 1e-9, 1,
        "soft-update rate of the critic's target network; values need at least 1 / (tau (1 - gamma)) updates"),
    ROW(value_coef, DT_OPT_F64, "0.5", "1", 1e-9, 1e6, "weight of value_loss, of the controller's values"),
    ROW(actor_learning_rate, DT_OPT_F64, "0", "1", 0, 10, "0: training.learning_rate"),
    ROW(critic_learning_rate, DT_OPT_F64, "0", "1", 0, 10, "0: training.learning_rate"),
    ROW(actor_clip, DT_OPT_F64, "0", "1", -1, 1e9,
        "maximum norm of the actor's gradient; 0: training.gradient_clip, below 0: none"),
    ROW(critic_clip, DT_OPT_F64, "0", "1", -1, 1e9, "the same for the critic"),
    DT_OPTION(offline_config, normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
        "normalise observations by the mean and deviation of all rollouts"),
    ROW(clip_obs, DT_OPT_F64, "10", "1", 0, 1e9, "bound of normalised observations; 0: none"),
    ROW(limits, DT_OPT_STR, "", NULL, 0, 0,
        "advantage: limits as cost:limit,... on the mean over episodes, all agents together; empty: none"),
    ROW(margin, DT_OPT_F64, "0.1", "1", 0, 1, "safety margin: share by which every limit is lowered, as costs are "
                                              "estimates"),
    MULTIPLIER_OPTIONS(offline_config, multiplier, "", ""),
    DT_OPTION_END};
/* clang-format on */

static dt_status check(const dt_host *h, const void *cfg)
{
    DT_TRY_H(offline_check(h, cfg));
    return offline_check_idle(h, options, cfg);
}

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "env.id=env_traffic", "data.batch=256", "data.shards=4", "training.learning_rate=3e-4",
                   "training.weight_decay=0", "training.optimizer=adam", "training.eps=1e-8",
                   "training.gradient_clip=0", "training.scheduler=constant", "training.warmup_epochs=0",
                   "training.eval_interval=20", "training.save_interval=10", "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, ID, "a policy learned from stored rollouts, its costs under limits",
                "Peng et al. 2019, arXiv 1910.00177; Wang et al. 2020, arXiv 2006.15134", offline_config, offline_state,
                options,
                DT_OPS(.create = create, .start = start, .iterate = iterate, .evaluate = evaluate, .stop = dt_no_op,
                       .destroy = destroy, .save = save, .load = load, .finish = finish),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 2, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase_offline", "1.0", "dtrain", "Apache-2.0");

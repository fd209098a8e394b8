/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_sac: soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905) for continuous actions with bounds.
 *
 * Collection, replay buffer and updates: offpolicy/learner.h. With a ~ pi(.|s) a squashed Gaussian, Q the minimum over
 * critics and Q' over their target networks, means over the agents of a minibatch:
 *
 *   critic_loss        sum over critics of (Q_k(s, a) - y)^2,  y = r + gamma (Q'(s', a') - alpha log pi(a'|s'))
 *   actor_loss         alpha log pi(a|s) - Q(s, a)
 *   temperature_loss   -log alpha (log pi(a|s) + target entropy)
 *
 * alpha is the model of the role temperature if `temperature` is 0, else that number. Also reported: q, entropy (-log
 * pi) and alpha. log pi and the target entropy are of actions scaled to -1..1.
 */
#include "offpolicy/learner.h"

#include <string.h>

/* Bounds of log_std before the tanh (Haarnoja et al. 2018). */
#define LOG_STD_MIN (-20.0)
#define LOG_STD_MAX 2.0

enum { ACTOR, CRITIC, TEMPERATURE, GROUPS };

typedef struct config {
    offpolicy_config learn;
    double temperature, target_entropy, temperature_learning_rate;
} config;

typedef struct state {
    offpolicy_learner learner;
    config config;
    dt_model *temperature; /* NULL: a constant */
} state;

static dt_status check(const dt_host *h, const void *cfg)
{
    return offpolicy_check(h, "phase_sac", cfg);
}

static dt_status bind_temperature(state *s)
{
    const dt_port needs[] = {{"log_alpha", "1", DT_F32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want), .role = "temperature", .needs = needs, .n_needs = 1};
    dt_wiring *w = s->learner.models.wiring;
    return w->api->bind(w, &want, &s->temperature);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(offpolicy_create(&s->learner, h, "phase_sac", &s->config.learn, true));
    const dt_env_spec *e = s->learner.models.spec;
    if (e->n_heads > 0 || e->n_continuous == 0) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "environment %s has %u discrete and %u continuous actions; phase_sac supports only continuous "
                         "ones: use phase_ddpg or phase2_ppo there",
                         s->learner.models.wiring->env_id, e->n_heads, e->n_continuous);
    }
    return s->config.temperature > 0 ? DT_OK : bind_temperature(s);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* *log_alpha_p [1]: NULL for a constant temperature. */
static dt_status record_alpha(const state *s, dt_graph *g, dt_tensor **log_alpha_p)
{
    dt_named out = {"log_alpha", NULL};
    *log_alpha_p = NULL;
    if (s->temperature != NULL) {
        DT_TRY_H(g->api->model(g, s->temperature, NULL, 0, &out, 1));
        *log_alpha_p = out.tensor;
    }
    return DT_OK;
}

/* alpha x, x [A,1], without a gradient to alpha. */
static dt_tensor *scale_by_alpha(const state *s, dt_graph *g, dt_tensor *log_alpha, dt_tensor *x)
{
    return log_alpha == NULL ? dt_affine(g, x, s->config.temperature, 0)
                             : dt_mul(g, x, dt_stop(g, dt_unary(g, DT_FN_EXP, log_alpha, 0)));
}

/* An action sampled from policy p (reparameterised), as it would be executed, and its log probability [A,1]. */
static dt_status record_sample(const state *s, dt_graph *g, const char *prefix, dt_policy_tensors *p,
                               dt_tensor **action_p, dt_tensor **log_prob_p)
{
    const actor_critic *r = &s->learner.models;
    p->log_std = dt_clamp(g, p->log_std, LOG_STD_MIN, LOG_STD_MAX);
    dt_tensor *noise = dt_noise(g, g->api->input(g, "row_key"), r->n_actions);
    *action_p = dt_squashed_gaussian(g, p->mean, p->log_std, noise, log_prob_p);
    return actor_critic_apply_shield(r, g, prefix, p, action_p);
}

static dt_status record_target(const state *s, dt_graph *g, const dt_policy_tensors *now, dt_tensor *log_alpha)
{
    dt_policy_tensors next;
    dt_tensor *action = NULL, *log_prob = NULL, *q = NULL;
    DT_TRY_H(actor_critic_record_next_policy(&s->learner.models, g, now, NULL, &next));
    DT_TRY_H(record_sample(s, g, "next_", &next, &action, &log_prob));
    DT_TRY_H(actor_critic_record_q(&s->learner.models, g, "next_", "target", &next, action, &q));
    dt_tensor *value =
        dt_sub(g, actor_critic_min_q(&s->learner.models, g, q), scale_by_alpha(s, g, log_alpha, log_prob));
    return offpolicy_record_critic_loss(&s->learner, g, now, offpolicy_td_target(&s->learner, g, value));
}

static dt_status record_temperature(const state *s, dt_graph *g, dt_tensor *log_alpha, dt_tensor *log_prob)
{
    const dt_graph_api *api = g->api;
    const double wanted =
        s->config.target_entropy != 0 ? s->config.target_entropy : -(double)s->learner.models.n_actions;
    dt_tensor *missing = dt_stop(g, dt_affine(g, log_prob, 1, wanted));
    dt_tensor *alpha = dt_mul(g, dt_fill(g, log_prob, 1), dt_unary(g, DT_FN_EXP, log_alpha, 0));
    DT_TRY_H(api->loss(g, "temperature_loss", dt_sum(g, dt_mul(g, missing, log_alpha)), -1.0, "A"));
    return api->loss(g, "alpha", dt_sum(g, alpha), 0.0, "A");
}

static dt_status record(void *self, dt_graph *g)
{
    const state *s = self;
    const dt_graph_api *api = g->api;
    dt_policy_tensors policy;
    dt_tensor *log_alpha = NULL, *action = NULL, *log_prob = NULL, *q = NULL;
    DT_TRY_H(record_alpha(s, g, &log_alpha));
    DT_TRY_H(actor_critic_record_policy(&s->learner.models, g, &policy));
    DT_TRY_H(record_sample(s, g, "", &policy, &action, &log_prob));
    DT_TRY_H(api->output(g, "mean", policy.mean));
    DT_TRY_H(api->output(g, "log_std", policy.log_std));
    DT_TRY_H(actor_critic_record_q(&s->learner.models, g, "", NULL, &policy, action, &q));
    dt_tensor *loss =
        dt_sub(g, scale_by_alpha(s, g, log_alpha, log_prob), actor_critic_min_q(&s->learner.models, g, q));
    DT_TRY_H(api->loss(g, "actor_loss", dt_sum(g, loss), 1.0, "A"));
    DT_TRY_H(api->loss(g, "entropy", dt_sum(g, dt_affine(g, log_prob, -1, 0)), 0.0, "A"));
    DT_TRY_H(record_target(s, g, &policy, log_alpha));
    return log_alpha != NULL ? record_temperature(s, g, log_alpha, log_prob) : api->status(g);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status start(void *self)
{
    static const char *const role[GROUPS][2] = {{"controller", "perception"}, {"critic", NULL}, {"temperature", NULL}};
    static const char *const loss[GROUPS][2] = {
        {"actor_loss", "entropy"}, {"critic_loss", "q"}, {"temperature_loss", "alpha"}};
    static const char *const name[GROUPS] = {"actor", "critic", "temperature"};
    state *s = self;
    const offpolicy_config *c = &s->config.learn;
    const double rate[GROUPS] = {c->actor_learning_rate, c->critic_learning_rate, s->config.temperature_learning_rate};
    const double clip[GROUPS] = {c->actor_clip, c->critic_clip, -1};
    const dt_train_target target = {
        .struct_size = sizeof(target), .name = "target", .model = s->learner.models.critic, .tau = c->tau, .every = 1};
    dt_train_group group[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        group[i] = (dt_train_group){.struct_size = sizeof(group[i]),
                                    .n_roles = i == ACTOR && s->learner.models.wiring->perception != NULL ? 2 : 1,
                                    .n_losses = 2,
                                    .name = name[i],
                                    .role = role[i],
                                    .loss = loss[i],
                                    .learning_rate = rate[i],
                                    .gradient_clip = clip[i]};
    }
    s->learner.critic = 1u << CRITIC;
    return offpolicy_start(&s->learner, record, group, s->temperature != NULL ? GROUPS : GROUPS - 1, &target, 1);
}

/* clang-format off */
#define OPTION(member, dfl, unit, min, max, help)                                                                      \
    DT_OPTION(config, member, DT_OPT_F64, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    OFFPOLICY_OPTIONS("256", "0.005", "3e-4", "2", "1"),
    OPTION(temperature, "0", "reward / nat", 0, 1e6, "weight of the entropy; 0: learned by models.temperature"),
    OPTION(target_entropy, "0", "nats", -1e3, 1e3,
        "target entropy of the learned temperature; 0: minus the number of actions"),
    OPTION(temperature_learning_rate, "3e-4", "1", 0, 10, "0: training.learning_rate"),
    DT_OPTION_END};
/* clang-format on */

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "models.temperature=temperature", "env.id=pendulum", "env.instances=8", "data.batch=256",
                   "data.shards=4", "training.learning_rate=3e-4", "training.weight_decay=0", "training.optimizer=adam",
                   "training.eps=1e-8", "training.gradient_clip=0", "training.scheduler=constant",
                   "training.warmup_epochs=0", "training.eval_interval=50", "training.save_interval=50",
                   "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, "phase_sac", "soft actor-critic of a controller in an environment",
                "Haarnoja et al. 2018, arXiv 1812.05905", config, state, options,
                DT_OPS(.create = create, .start = start, .iterate = offpolicy_iterate, .evaluate = offpolicy_evaluate,
                       .stop = dt_no_op, .destroy = offpolicy_destroy),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase_sac", "1.0", "dtrain", "Apache-2.0");

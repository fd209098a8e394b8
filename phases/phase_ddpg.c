/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_ddpg: deep deterministic policy gradient (Silver et al. 2014; Lillicrap et al. 2016, arXiv 1509.02971). With
 * critics = 2, policy_delay = 2 and target_noise = 0.2 it is TD3 (Fujimoto et al. 2018, arXiv 1802.09477).
 *
 * Collection, replay buffer and updates: offpolicy/learner.h. mu is the actor, mu' and Q' are target networks of actor
 * and critics, Q' the minimum over critics. Means over the agents of a minibatch:
 *
 *   critic_loss   sum over critics of (Q_k(s, a) - y)^2,  y = r + gamma Q'(s', mu'(s') + e)
 *   actor_loss    -Q_1(s, mu(s)) + logit_penalty |logits|^2
 *
 * Continuous actions with bounds are mu = tanh(mean), -1 at the low and 1 at the high bound; without bounds, the mean.
 * Exploration adds Gaussian noise, clipped to the bounds. e is the noise of target policy smoothing, clipped; mu' + e
 * stays within the bounds.
 *
 * Discrete actions are relaxed: mu is the masked softmax of the logits, and the critic reads it in place of the one-hot
 * action. Exploration draws from (1 - epsilon) mu + epsilon uniform. logit_penalty keeps the softmax from saturating
 * (Lowe et al. 2017).
 *
 * Noise and epsilon decay as first value times speed^round, down to their end values.
 */
#include "offpolicy/learner.h"

#include <math.h>
#include <string.h>

#define MIN_PROBABILITY 1e-30 /* before a logarithm */
#define MIN_NOISE       1e-9

enum { ACTOR, CRITIC, GROUPS };

typedef struct config {
    offpolicy_config learn;
    double noise, noise_end, noise_speed, epsilon, epsilon_end, epsilon_speed;
    double target_noise, target_noise_clip, logit_penalty;
} config;

typedef struct state {
    offpolicy_learner learner;
    config config;
} state;

static bool is_continuous(const state *s)
{
    return s->learner.models.spec->n_continuous > 0;
}

static bool is_discrete(const state *s)
{
    return s->learner.models.n_choices > 0;
}

/* ---- exploration ------------------------------------------------------------------------------------------------- */

static double decayed_value(double first, double last, double speed, uint64_t round)
{
    return fmax(last, first * pow(speed, (double)round));
}

/* Deviation of each action's noise, in the environment's units. */
static dt_status set_noise(const offpolicy_learner *l, bool is_acting, double noise)
{
    const actor_critic *r = &l->models;
    float log_noise[ACTOR_CRITIC_MAX_ACTIONS];
    for (uint32_t i = 0; i < r->spec->n_continuous; i++) {
        log_noise[i] = (float)log(fmax(noise, MIN_NOISE) * actor_critic_action_scale(r, i));
    }
    return (is_acting ? l->train->set_acting : l->train->set)(l->trainer, "log_noise", log_noise,
                                                              r->spec->n_continuous);
}

static dt_status set_epsilon(const offpolicy_learner *l, bool is_acting, double epsilon)
{
    float each[ACTOR_CRITIC_MAX_COLUMNS];
    for (int64_t i = 0; i < l->models.n_choices; i++) {
        each[i] = (float)epsilon;
    }
    return (is_acting ? l->train->set_acting : l->train->set)(l->trainer, "epsilon", each,
                                                              (uint32_t)l->models.n_choices);
}

static dt_status set_exploration(const offpolicy_learner *l, bool is_acting, double noise, double epsilon)
{
    const state *s = (const state *)l; /* its first member */
    DT_TRY_H(is_continuous(s) ? set_noise(l, is_acting, noise) : DT_OK);
    return is_discrete(s) ? set_epsilon(l, is_acting, epsilon) : DT_OK;
}

static dt_status update_exploration(offpolicy_learner *l, uint64_t round)
{
    const state *s = (const state *)l;
    const config *c = &s->config;
    const double noise = decayed_value(c->noise, c->noise_end, c->noise_speed, round);
    const double epsilon = decayed_value(c->epsilon, c->epsilon_end, c->epsilon_speed, round);
    l->metrics->scalar(l->h, is_discrete(s) ? "charts/epsilon" : "charts/noise", is_discrete(s) ? epsilon : noise);
    return set_exploration(l, false, noise, epsilon);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

typedef struct actor_output {
    dt_policy_tensors policy;
    dt_tensor *probability; /* [A,choices], or NULL */
    dt_tensor *continuous;  /* [A,continuous], or NULL */
} actor_output;

/* The action mu from the outputs of the actor and the field of its mask. */
static dt_status record_actor(const state *s, dt_graph *g, const char *mask, actor_output *out)
{
    const actor_critic *r = &s->learner.models;
    if (is_discrete(s)) {
        out->probability = actor_critic_masked_softmax(r, g, out->policy.logits, g->api->input(g, mask));
    }
    if (is_continuous(s)) {
        out->continuous = r->is_bounded ? dt_tanh(g, out->policy.mean) : out->policy.mean;
    }
    return g->api->status(g);
}

static dt_tensor *join_action(dt_graph *g, const actor_output *d)
{
    dt_tensor *both[2] = {d->probability, d->continuous};
    if (d->probability != NULL && d->continuous != NULL) {
        return dt_concat(g, both, 2);
    }
    return d->continuous != NULL ? d->continuous : d->probability;
}

/* Target policy smoothing: mu' + e, before a shield. */
static dt_tensor *add_target_noise(const state *s, dt_graph *g, dt_tensor *move)
{
    const config *c = &s->config;
    if (!(c->target_noise > 0)) {
        return move;
    }
    dt_tensor *noise = dt_noise(g, g->api->input(g, "row_key"), s->learner.models.spec->n_continuous);
    noise = dt_clamp(g, dt_affine(g, noise, c->target_noise, 0), -c->target_noise_clip, c->target_noise_clip);
    dt_tensor *moved = dt_add(g, move, noise);
    return s->learner.models.is_bounded ? dt_clamp(g, moved, -1, 1) : moved;
}

static dt_status record_target(const state *s, dt_graph *g, const dt_policy_tensors *now)
{
    actor_output next = {.continuous = NULL};
    dt_tensor *q = NULL;
    DT_TRY_H(actor_critic_record_next_policy(&s->learner.models, g, now, "target", &next.policy));
    DT_TRY_H(record_actor(s, g, "next_mask", &next));
    next.continuous = next.continuous != NULL ? add_target_noise(s, g, next.continuous) : NULL;
    DT_TRY_H(actor_critic_apply_shield(&s->learner.models, g, "next_", &next.policy, &next.continuous));
    DT_TRY_H(actor_critic_record_q(&s->learner.models, g, "next_", "target", &next.policy, join_action(g, &next), &q));
    dt_tensor *value = actor_critic_min_q(&s->learner.models, g, q);
    return offpolicy_record_critic_loss(&s->learner, g, now, offpolicy_td_target(&s->learner, g, value));
}

/* The distribution that the host samples; step inputs log_noise and epsilon, one number per column. */
static dt_status record_exploration(const state *s, dt_graph *g, const actor_output *now)
{
    const dt_graph_api *api = g->api;
    const actor_critic *r = &s->learner.models;
    if (now->continuous != NULL) {
        dt_tensor *noise = api->step_input(g, "log_noise", r->spec->n_continuous);
        DT_TRY_H(api->output(g, "mean", actor_critic_denormalise_action(r, g, now->continuous)));
        DT_TRY_H(api->output(g, "log_std", dt_add(g, dt_fill(g, now->continuous, 0), noise)));
    }
    if (now->probability != NULL) {
        dt_tensor *p = now->probability, *epsilon = api->step_input(g, "epsilon", r->n_choices);
        dt_tensor *even = actor_critic_masked_softmax(r, g, dt_fill(g, p, 0), api->input(g, "mask"));
        dt_tensor *mixed = dt_add(g, p, dt_mul(g, dt_sub(g, even, p), epsilon));
        mixed = dt_clamp(g, mixed, MIN_PROBABILITY, 1);
        DT_TRY_H(api->output(g, "logits", dt_unary(g, DT_FN_LOG, mixed, 0)));
    }
    return api->status(g);
}

static dt_status record(void *self, dt_graph *g)
{
    const state *s = self;
    const dt_graph_api *api = g->api;
    actor_output now = {.continuous = NULL};
    dt_tensor *q = NULL;
    DT_TRY_H(actor_critic_record_policy(&s->learner.models, g, &now.policy));
    DT_TRY_H(record_actor(s, g, "mask", &now));
    DT_TRY_H(record_exploration(s, g, &now));
    DT_TRY_H(actor_critic_apply_shield(&s->learner.models, g, "", &now.policy, &now.continuous));
    DT_TRY_H(actor_critic_record_q(&s->learner.models, g, "", NULL, &now.policy, join_action(g, &now), &q));
    dt_tensor *loss = dt_affine(g, dt_slice(g, q, 0, 1), -1, 0);
    if (now.probability != NULL && s->config.logit_penalty > 0) {
        dt_tensor *squares = dt_mul(g, now.policy.logits, now.policy.logits);
        loss = dt_add(g, loss, dt_affine(g, dt_reduce_columns(g, DT_REDUCE_SUM, squares), s->config.logit_penalty, 0));
    }
    DT_TRY_H(api->loss(g, "actor_loss", dt_sum(g, loss), 1.0, "A"));
    return record_target(s, g, &now.policy);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    return offpolicy_check(h, "phase_ddpg", cfg);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->config = *(const config *)cfg;
    s->learner.explore = update_exploration;
    return offpolicy_create(&s->learner, h, "phase_ddpg", &s->config.learn, false);
}

static dt_status start(void *self)
{
    static const char *const role[GROUPS][2] = {{"controller", "perception"}, {"critic", NULL}};
    static const char *const loss[GROUPS][2] = {{"actor_loss", NULL}, {"critic_loss", "q"}};
    static const char *const name[GROUPS] = {"actor", "critic"};
    state *s = self;
    const offpolicy_config *c = &s->config.learn;
    const actor_critic *r = &s->learner.models;
    const double rate[GROUPS] = {c->actor_learning_rate, c->critic_learning_rate};
    const double clip[GROUPS] = {c->actor_clip, c->critic_clip};
    dt_model *const model[GROUPS] = {r->wiring->controller, r->critic};
    const uint64_t every[GROUPS] = {1, (uint64_t)c->policy_delay}; /* both with the actor (TD3) */
    dt_train_group group[GROUPS];
    dt_train_target target[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        group[i] = (dt_train_group){.struct_size = sizeof(group[i]),
                                    .n_roles = i == ACTOR && r->wiring->perception != NULL ? 2 : 1,
                                    .n_losses = i == CRITIC ? 2 : 1,
                                    .name = name[i],
                                    .role = role[i],
                                    .loss = loss[i],
                                    .learning_rate = rate[i],
                                    .gradient_clip = clip[i]};
        target[i] = (dt_train_target){
            .struct_size = sizeof(target[i]), .name = "target", .model = model[i], .tau = c->tau, .every = every[i]};
    }
    s->learner.critic = 1u << CRITIC;
    DT_TRY_H(offpolicy_start(&s->learner, record, group, GROUPS, target, GROUPS));
    DT_TRY_H(set_exploration(&s->learner, true, 0, 0)); /* evaluations and exports do not explore */
    return set_exploration(&s->learner, false, 0, 0);
}

/* clang-format off */
#define OPTION(member, dfl, unit, min, max, help)                                                                      \
    DT_OPTION(config, member, DT_OPT_F64, dfl, unit, min, max, NULL, help)
static const dt_option options[] = {
    OFFPOLICY_OPTIONS("128", "0.01", "3e-4", "1", "1"),
    OPTION(noise, "0.1", "half range", 0, 1e3,
        "deviation of continuous actions while acting in the first round; of actions without bounds in their own unit"),
    OPTION(noise_end, "0.1", "half range", 0, 1e3, "lower bound of the decay"),
    OPTION(noise_speed, "1", "1", 0, 1, "decay factor per round"),
    OPTION(epsilon, "0.5", "1", 0, 1, "share of discrete actions drawn evenly while acting in the first round"),
    OPTION(epsilon_end, "0.05", "1", 0, 1, "lower bound of the decay"),
    OPTION(epsilon_speed, "0.9995", "1", 0, 1, "decay factor per round"),
    OPTION(target_noise, "0", "half range", 0, 1e3,
        "deviation of the noise on continuous actions of the target (Fujimoto et al. 2018: 0.2)"),
    OPTION(target_noise_clip, "0.5", "half range", 0, 1e3, "bound of the noise"),
    OPTION(logit_penalty, "1e-3", "1", 0, 1e3, "weight of the squares of the logits in the actor's loss"),
    DT_OPTION_END};
/* clang-format on */

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "env.id=pendulum", "env.instances=8", "data.batch=128", "data.shards=4",
                   "training.learning_rate=3e-4", "training.weight_decay=0", "training.optimizer=adam",
                   "training.eps=1e-8", "training.gradient_clip=0", "training.scheduler=constant",
                   "training.warmup_epochs=0", "training.eval_interval=50", "training.save_interval=1000",
                   "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, "phase_ddpg", "deterministic policy gradients of a controller in an environment",
                "Lillicrap et al. 2016, arXiv 1509.02971; Fujimoto et al. 2018, arXiv 1802.09477", config, state,
                options,
                DT_OPS(.create = create, .start = start, .iterate = offpolicy_iterate, .evaluate = offpolicy_evaluate,
                       .stop = dt_no_op, .destroy = offpolicy_destroy),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "phase_ddpg", "1.0", "dtrain", "Apache-2.0");

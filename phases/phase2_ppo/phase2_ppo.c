/* SPDX-License-Identifier: Apache-2.0
 *
 * phase2_ppo: proximal policy optimisation (Schulman et al. 2017) of a controller in an environment.
 *
 * One iteration collects train_batch samples (svc/rollout.h) and makes sgd_epochs passes of minibatches (data.batch)
 * over them. Loss, means over the agents of a minibatch:
 *
 *   policy_loss   -min(r A, clip(r, 1 - clip, 1 + clip) A),  r = p(a|s) / p_old(a|s)
 *   value_loss    value_coef times the squared error of the value, clipped as value_clip_mode says; the same for the
 *                 value of every cost
 *   entropy       minus entropy_coef (moving linearly to entropy_coef_end) times the entropy of the policy
 *   kl            kl_coef times KL(old || new), estimated by (r - 1) - log r; kl_coef is doubled and halved to keep the
 *                 KL of an iteration near kl_target (section 4 of the paper), 0 without one
 *
 * target_kl ends the passes of an iteration early, after the pass whose mean KL is above 1.5 times of it.
 * What the shield permits (outputs low, high, allow of its model) is part of the environment for continuous actions,
 * of the policy for discrete ones: see svc/rollout.h. An iteration depends on parameters, seed and configuration alone.
 */
#include "loss.h"
#include "wiring.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

typedef struct config {
    int64_t iterations, train_batch, fragment, sgd_epochs, window;
    double gamma, lambda, cost_gamma, cost_lambda;
    double clip, value_clip, value_coef, cost_value_coef;
    double entropy_coef, entropy_coef_end;
    double kl_target, kl_coef, target_kl;
    double clip_obs, clip_reward;
    uint32_t value_clip_mode;
    uint8_t normalise_advantage, normalise_obs, normalise_reward;
} config;

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    const dt_rollout_api *rollout;
    config config;
    dt_env *env;
    ppo_wiring wiring;
    dt_rollout *experience;
    dt_train *trainer;
    double kl_coef;
} state;

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    if (c->fragment > c->train_batch) {
        return DT_FAIL_H(h, DT_ECONFIG, "phase2_ppo.fragment %lld is above train_batch = %lld", (long long)c->fragment,
                         (long long)c->train_batch);
    }
    return DT_OK;
}

static dt_status need_service(const dt_host *h, const char *id, const void **out_p)
{
    *out_p = h->service(h, id);
    if (*out_p == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which phase2_ppo needs", id);
    }
    return DT_OK;
}

/* Steps of every instance per iteration: train_batch over all instances, in whole fragments. */
static dt_status create_experience(state *s)
{
    const config *c = &s->config;
    const int64_t instances = (int64_t)s->bind->env_instances(s->env);
    const int64_t round = instances * c->fragment;
    const int64_t steps = (c->train_batch + round - 1) / round * c->fragment;
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = (uint32_t)steps,
                               .window = (uint32_t)c->window,
                               .normalise_advantage = c->normalise_advantage,
                               .normalise_obs = c->normalise_obs,
                               .normalise_reward = c->normalise_reward,
                               .gamma = c->gamma,
                               .lambda = c->lambda,
                               .cost_gamma = c->cost_gamma,
                               .cost_lambda = c->cost_lambda,
                               .clip_obs = c->clip_obs,
                               .clip_reward = c->clip_reward};
    return s->rollout->create(s->h, s->env, &d, &s->experience);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->kl_coef = s->config.kl_target > 0 ? s->config.kl_coef : 0;
    DT_TRY_H(need_service(h, DT_SVC_BIND, (const void **)&s->bind));
    DT_TRY_H(need_service(h, DT_SVC_TRAIN, (const void **)&s->train));
    DT_TRY_H(need_service(h, DT_SVC_METRICS, (const void **)&s->metrics));
    DT_TRY_H(need_service(h, DT_SVC_ROLLOUT, (const void **)&s->rollout));
    DT_TRY_H(s->bind->env(h, NULL, 0, &s->env));
    DT_TRY_H(ppo_wire(&s->wiring, h, s->bind, s->env, s->config.window));
    return create_experience(s);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static bool has_entropy_bonus(const config *c)
{
    return c->entropy_coef > 0 || c->entropy_coef_end > 0;
}

static dt_status record(void *self, dt_graph *g)
{
    const state *s = self;
    const config *c = &s->config;
    const ppo_loss_config loss = {.clip = c->clip,
                                  .value_clip = c->value_clip,
                                  .value_coef = c->value_coef,
                                  .cost_value_coef = c->cost_value_coef,
                                  .value_clip_mode = c->value_clip_mode,
                                  .has_entropy = has_entropy_bonus(c),
                                  .has_kl = c->kl_target > 0};
    ppo_policy policy;
    DT_TRY_H(ppo_record_policy(&s->wiring, g, &policy));
    return ppo_record_losses(&s->wiring, &loss, g, &policy);
}

static dt_status set_coefficients(state *s, uint64_t iteration)
{
    const config *c = &s->config;
    const double x = c->iterations > 1 ? (double)iteration / (double)(c->iterations - 1) : 0;
    if (has_entropy_bonus(c)) {
        const float entropy = (float)(c->entropy_coef + (c->entropy_coef_end - c->entropy_coef) * x);
        DT_TRY_H(s->train->set(s->trainer, "entropy_coef", &entropy, 1));
    }
    if (c->kl_target > 0) {
        const float kl = (float)s->kl_coef;
        DT_TRY_H(s->train->set(s->trainer, "kl_coef", &kl, 1));
    }
    return DT_OK;
}

static dt_status start(void *self)
{
    state *s = self;
    dt_model *models[PPO_ROLES];
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = ppo_models(&s->wiring, models),
                                .user = s,
                                .record = record,
                                .data = s->rollout->data(s->experience),
                                .models = models,
                                .epochs = (uint64_t)(s->config.iterations * s->config.sgd_epochs)};
    DT_TRY_H(s->train->create(s->h, &desc, &s->trainer));
    return set_coefficients(s, 0); /* evaluation alone wants them too */
}

/* ---- an iteration ------------------------------------------------------------------------------------------------ */

static double loss_of(const dt_step_report *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_losses; i++) {
        if (strcmp(r->loss_name[i], name) == 0) {
            return r->loss_value[i];
        }
    }
    return 0;
}

/* One pass over the collected samples; kl_p: the mean of its minibatches. */
static dt_status learn_once(state *s, uint64_t steps, dt_step_report *r, double *kl_p)
{
    double sum = 0;
    for (uint64_t i = 0; i < steps; i++) {
        DT_TRY_H(s->train->step(s->trainer, r));
        sum += loss_of(r, "approx_kl");
    }
    *kl_p = sum / (double)steps;
    return DT_OK;
}

/* passes_p: how many there were. */
static dt_status learn(state *s, uint64_t iteration, uint64_t steps_per_epoch, dt_step_report *r, uint64_t *passes_p)
{
    const config *c = &s->config;
    double kl = 0;
    for (int64_t e = 0; e < c->sgd_epochs; e++) {
        DT_TRY_H(learn_once(s, steps_per_epoch, r, &kl));
        *passes_p = (uint64_t)e + 1;
        if (c->target_kl > 0 && kl > 1.5 * c->target_kl) {
            DT_TRY_H(s->train->seek(s->trainer, (iteration + 1) * (uint64_t)c->sgd_epochs * steps_per_epoch));
            break;
        }
    }
    if (c->kl_target > 0) { /* section 4 of the paper */
        s->kl_coef *= kl > 1.5 * c->kl_target ? 2.0 : kl < c->kl_target / 1.5 ? 0.5 : 1.0;
        s->kl_coef = fmin(fmax(s->kl_coef, 1e-6), 1e6);
    }
    return DT_OK;
}

static void report_collect(const state *s, const dt_rollout_report *r, uint64_t passes, double learn_s)
{
    const dt_metrics_api *m = s->metrics;
    if (r->episodes > 0) {
        m->scalar(s->h, "charts/episodic_return", r->episode_return);
        m->scalar(s->h, "charts/episodic_length", r->episode_length);
        for (uint32_t i = 0; i < s->wiring.spec->n_costs; i++) {
            char name[96];
            snprintf(name, sizeof(name), "costs/%s", s->wiring.spec->costs[i]);
            m->scalar(s->h, name, r->episode_cost[i]);
        }
        for (uint32_t i = 0; i < s->wiring.spec->n_metrics; i++) {
            char name[96];
            snprintf(name, sizeof(name), "env/%s", s->wiring.spec->metrics[i]);
            m->scalar(s->h, name, r->metric[i]);
        }
    }
    m->scalar(s->h, "charts/episodes", (double)r->episodes);
    m->scalar(s->h, "losses/explained_variance", r->explained_variance);
    m->scalar(s->h, "shield/interventions", r->interventions);
    m->scalar(s->h, "shield/infeasible", r->infeasible);
    m->scalar(s->h, "time/env", r->env_s);
    m->scalar(s->h, "time/policy", r->policy_s);
    m->scalar(s->h, "time/env_wait", r->wait_s);
    m->scalar(s->h, "time/learn", learn_s);
    m->scalar(s->h, "charts/learn_samples_per_s", learn_s > 0 ? (double)(r->env_steps * passes) / learn_s : 0);
    m->scalar(s->h, "charts/env_steps_per_s", r->total_s > 0 ? (double)r->env_steps / r->total_s : 0);
}

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    uint64_t step = 0, steps = 0, steps_per_epoch = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &steps_per_epoch));
    if (step >= steps) {
        return DT_DONE;
    }
    const uint64_t iteration = step / (steps_per_epoch * (uint64_t)s->config.sgd_epochs);
    dt_rollout_report collected = {.struct_size = sizeof(collected)};
    DT_TRY_H(set_coefficients(s, iteration));
    DT_TRY_H(s->rollout->collect(s->experience, s->trainer, &collected));

    dt_step_report r = {.struct_size = sizeof(r)};
    const double begin = seconds();
    uint64_t passes = 0;
    DT_TRY_H(learn(s, iteration, steps_per_epoch, &r, &passes));
    report_collect(s, &collected, passes, seconds() - begin);
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &steps_per_epoch));
    out->step = step;
    out->steps = steps;
    out->epoch = iteration;
    out->epochs = (uint64_t)s->config.iterations;
    out->iterations = iteration + 1;
    out->samples = collected.env_steps;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return step >= steps ? DT_DONE : DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    DT_TRY_H(s->rollout->report(s->experience, s->trainer));
    out->evaluated = 1;
    return DT_OK;
}

static void stop(void *self)
{
    (void)self;
}

static void destroy(void *self)
{
    state *s = self;
    if (s->trainer != NULL) {
        s->train->destroy(s->trainer);
    }
}

static dt_status save(void *self, dt_writer *w)
{
    const state *s = self;
    return w->write(w, &s->kl_coef, sizeof(s->kl_coef));
}

static dt_status load(void *self, dt_reader *r, uint32_t version)
{
    state *s = self;
    (void)version;
    return r->read(r, &s->kl_coef, sizeof(s->kl_coef));
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

#define ROW(member, type, dfl, unit, min, max, help) DT_OPTION(config, member, type, dfl, unit, min, max, NULL, help)

static const char *const clip_modes[] = {"none", "step", "error", NULL}; /* DT_VALUE_* */

static const dt_option options[] = {
    ROW(iterations, DT_OPT_I64, "200", "1", 1, 1e9, "rounds of collecting and learning"),
    ROW(train_batch, DT_OPT_I64, "4000", "samples", 1, 1e9,
        "samples of a round, of all instances together; rounded up to whole fragments"),
    ROW(fragment, DT_OPT_I64, "200", "steps", 1, 1e6, "steps of an instance are a multiple of this"),
    ROW(sgd_epochs, DT_OPT_I64, "10", "1", 1, 1000, "passes over the samples of a round; minibatches are data.batch"),
    ROW(window, DT_OPT_I64, "1", "steps", 1, 1024, "observations a controller with memory sees, this one included"),
    ROW(gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of the reward"),
    ROW(lambda, DT_OPT_F64, "0.95", "1", 0, 1, "of the generalised advantage (Schulman et al. 2016)"),
    ROW(cost_gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of costs"),
    ROW(cost_lambda, DT_OPT_F64, "0.95", "1", 0, 1, "the same for costs"),
    ROW(clip, DT_OPT_F64, "0.2", "1", 0, 1, "clipping of the probability ratio"),
    DT_OPTION(config, value_clip_mode, DT_OPT_ENUM, "none", NULL, 0, 0, clip_modes,
              "none; step: the larger of the errors of the value and of the old one moved by at most the clip (PPO2); "
              "error: the squared error itself, at most the clip (RLlib; errors above it teach nothing)"),
    ROW(value_clip, DT_OPT_F64, "10.0", "1", 0, 1e9, "bound of value_clip_mode"),
    ROW(value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, "weight of the value loss"),
    ROW(cost_value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, "weight of the loss of the values of costs"),
    ROW(entropy_coef, DT_OPT_F64, "0.01", "1", 0, 1e6, "weight of the entropy in the first round"),
    ROW(entropy_coef_end, DT_OPT_F64, "0.01", "1", 0, 1e6, "weight of the entropy in the last round"),
    ROW(kl_target, DT_OPT_F64, "0", "nats", 0, 1e6, "aim of the adaptive KL penalty; 0: no penalty"),
    ROW(kl_coef, DT_OPT_F64, "0.2", "1", 1e-6, 1e6, "first weight of the KL penalty"),
    ROW(target_kl, DT_OPT_F64, "0", "nats", 0, 1e6,
        "a pass whose mean KL is above 1.5 times of it is the last; 0: none"),
    ROW(normalise_advantage, DT_OPT_BOOL, "true", NULL, 0, 0, "advantages of a round to mean 0 and deviation 1"),
    ROW(normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, "observations by their running mean and deviation"),
    ROW(normalise_reward, DT_OPT_BOOL, "false", NULL, 0, 0,
        "rewards by the running deviation of the discounted return"),
    ROW(clip_obs, DT_OPT_F64, "10", "1", 0, 1e9, "bound of normalised observations; 0: none"),
    ROW(clip_reward, DT_OPT_F64, "10", "1", 0, 1e9, "bound of normalised rewards; 0: none"),
    DT_OPTION_END};

static const char *const defaults[] = {"models.perception=",
                                       "models.controller=controller_mlp",
                                       "env.id=cartpole",
                                       "data.batch=128",
                                       "data.shards=4",
                                       "training.learning_rate=3e-4",
                                       "training.weight_decay=0",
                                       "training.freeze_loaded=perception,shield",
                                       "training.optimizer=adam",
                                       "training.eps=1e-5",
                                       "training.gradient_clip=0.5",
                                       "training.scheduler=constant",
                                       "training.warmup_epochs=0",
                                       "training.eval_interval=10",
                                       "training.save_interval=10",
                                       "checkpoint.best_by=return/mean",
                                       NULL};

static const void *extension(const char *id)
{
    return strcmp(id, "dtrain.defaults/1") == 0 ? defaults : NULL;
}

static const dt_phase_ops ops = {.struct_size = sizeof(dt_phase_ops),
                                 .create = create,
                                 .start = start,
                                 .iterate = iterate,
                                 .evaluate = evaluate,
                                 .stop = stop,
                                 .destroy = destroy,
                                 .save = save,
                                 .load = load};

static const dt_component component = {.struct_size = sizeof(dt_component),
                                       .kind = DT_KIND_PHASE,
                                       .id = "phase2_ppo",
                                       .summary = "proximal policy optimisation of a controller in an environment",
                                       .reference = "Schulman et al. 2017, arXiv 1707.06347",
                                       .flags = DT_COMP_DETERMINISTIC,
                                       .state_version = 1,
                                       .config_size = sizeof(config),
                                       .state_size = sizeof(state),
                                       .options = options,
                                       .check = check,
                                       .ops = &ops,
                                       .extension = extension};

DT_PLUGIN_DEFINE_ONE(component, "phase2_ppo", "1.0", "dtrain", "Apache-2.0");

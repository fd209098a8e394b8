/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of the clipped objective; see learner.h.
 */
#include "learner.h"

#include <math.h>
#include <string.h>
#include <time.h>

const char *const ppo_clip_modes[] = {"none", "step", "error", NULL};

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static foresight_config foresight_of(const ppo_config *c)
{
    return (foresight_config){.history_s = c->history_s,
                              .horizon_s = c->horizon_s,
                              .rate_hz = c->rate_hz,
                              .on = c->foresight,
                              .imagines = c->imagine_weight > 0};
}

static imagine_config imagine_of(const ppo_config *c)
{
    return (imagine_config){
        .weight = c->imagine_weight, .gamma = c->gamma, .steps = c->imagine_steps, .is_scaled = c->normalise_obs};
}

dt_status ppo_check(const dt_host *h, const char *phase, const ppo_config *c)
{
    if (c->fragment > c->train_batch) {
        return DT_FAIL_H(
            h, DT_ECONFIG,
            "%s.fragment = %lld, steps of an instance, is above %s.train_batch = %lld, all steps of a round; "
            "lower the first or raise the second",
            phase, (long long)c->fragment, phase, (long long)c->train_batch);
    }
    const foresight_config see = foresight_of(c);
    return foresight_check(h, phase, &see);
}

/* Steps of every instance per iteration: train_batch over all instances, in whole fragments. */
static dt_status create_experience(ppo_learner *l, uint8_t normalise)
{
    const ppo_config *c = &l->config;
    const int64_t instances = (int64_t)l->bind->env_instances(l->env);
    const int64_t round = instances * c->fragment;
    const int64_t steps = (c->train_batch + round - 1) / round * c->fragment;
    const foresight *f = &l->wiring.foresight;
    const dt_port kept[] = {{"foresight", f->dims, DT_F32, 0}, {"foreseen", f->foreseen_dims, DT_F32, 0}};
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = (uint32_t)steps,
                               .window = (uint32_t)c->window,
                               .normalise_advantage = c->normalise_advantage ? normalise : DT_NORMALISE_NONE,
                               .normalise_obs = c->normalise_obs,
                               .normalise_reward = c->normalise_reward,
                               .centre = c->centre,
                               .gamma = c->gamma,
                               .lambda = c->lambda,
                               .cost_gamma = c->cost_gamma,
                               .cost_lambda = c->cost_lambda,
                               .clip_obs = c->clip_obs,
                               .clip_reward = c->clip_reward,
                               .transitions = l->has_barrier,
                               .n_kept = l->wiring.has_foresight && c->keep_foresight ? 2 : 0,
                               .kept = kept,
                               .has_ahead = c->overlap != 0};
    return l->rollout->create(l->h, l->env, &d, &l->experience);
}

dt_status ppo_create(ppo_learner *l, const dt_host *h, const char *phase, const ppo_config *c, uint8_t normalise)
{
    l->h = h;
    l->phase = phase;
    l->config = *c;
    l->kl_coef = c->kl_target > 0 ? c->kl_coef : 0;
    DT_SERVICE_H(h, l->bind, DT_SVC_BIND, phase);
    DT_SERVICE_H(h, l->train, DT_SVC_TRAIN, phase);
    DT_SERVICE_H(h, l->metrics, DT_SVC_METRICS, phase);
    DT_SERVICE_H(h, l->rollout, DT_SVC_ROLLOUT, phase);
    if (c->overlap != 0 && !DT_HAS(l->rollout, ahead)) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "%s.overlap = 1 needs a host that collects ahead; set it to 0", phase);
    }
    const foresight_config see = foresight_of(c);
    char text[2][FORESIGHT_TEXT];
    dt_setting set[2];
    foresight_settings(&see, text, set);
    const dt_status st = l->bind->env(h, set, see.on ? 2 : 0, &l->env);
    if (st < 0 && see.on) {
        dt_logf(h, 1, "%s.foresight asks the environment for the past of its vehicles; turn it off where there is none",
                phase);
    }
    DT_TRY_H(st);
    DT_TRY_H(ppo_wire(&l->wiring, h, l->bind, l->env, c->window, &see));
    const imagine_config imagine = imagine_of(c);
    DT_TRY_H(imagine_check(&imagine, &l->wiring, phase));
    l->has_barrier = l->wants_barrier && ppo_has_barrier(&l->wiring);
    return create_experience(l, normalise);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static bool has_entropy_bonus(const ppo_learner *l)
{
    return !l->is_apart && (l->config.entropy_coef > 0 || l->config.entropy_coef_end > 0);
}

static dt_status record(void *self, dt_graph *g)
{
    const ppo_learner *l = self;
    const ppo_config *c = &l->config;
    const ppo_loss_config loss = {.clip = c->clip,
                                  .value_clip = c->value_clip,
                                  .value_coef = c->value_coef,
                                  .cost_value_coef = c->cost_value_coef,
                                  .value_clip_mode = c->value_clip_mode,
                                  .has_entropy = has_entropy_bonus(l),
                                  .has_kl = c->kl_target > 0,
                                  .imagine = imagine_of(c),
                                  .has_more = l->record_more != NULL,
                                  .is_apart = l->is_apart,
                                  .has_mix = l->has_mix};
    ppo_policy policy;
    DT_TRY_H(ppo_record_policy(&l->wiring, g, &policy));
    DT_TRY_H(ppo_record_losses(&l->wiring, &loss, g, &policy));
    return l->record_more != NULL ? l->record_more(l, g, &policy) : DT_OK;
}

static dt_status record_stored(void *self, dt_graph *g)
{
    return ((const ppo_learner *)self)->record_stored(self, g);
}

static dt_status set_coefficients(ppo_learner *l, uint64_t iteration)
{
    const ppo_config *c = &l->config;
    const double x = c->iterations > 1 ? (double)iteration / (double)(c->iterations - 1) : 0;
    if (has_entropy_bonus(l)) {
        const float entropy = (float)(c->entropy_coef + (c->entropy_coef_end - c->entropy_coef) * x);
        DT_TRY_H(l->train->set(l->trainer, "entropy_coef", &entropy, 1));
    }
    if (c->kl_target > 0) {
        const float kl = (float)l->kl_coef;
        DT_TRY_H(l->train->set(l->trainer, "kl_coef", &kl, 1));
    }
    return DT_OK;
}

/* What one unit of the advantages learnt from is worth in units of the values. */
static dt_status set_unit(ppo_learner *l, double deviation)
{
    const bool is_one = !l->config.normalise_advantage || !(deviation > 0);
    const float unit = is_one ? 1 : (float)(1 / deviation);
    return l->config.imagine_weight > 0 ? l->train->set(l->trainer, "advantage_unit", &unit, 1) : DT_OK;
}

dt_status ppo_start(void *self)
{
    ppo_learner *l = self;
    dt_model *models[PPO_ROLES];
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = ppo_models(&l->wiring, models),
                                .user = l,
                                .record = record,
                                .data = l->rollout->data(l->experience),
                                .models = models,
                                .epochs = (uint64_t)(l->config.iterations * l->config.sgd_epochs),
                                .apart = l->is_apart ? "policy_loss" : NULL,
                                .stored = l->stored,
                                .record_stored = l->stored != NULL ? record_stored : NULL,
                                .n_stored = l->n_stored};
    DT_TRY_H(l->train->create(l->h, &desc, &l->trainer));
    DT_TRY_H(set_unit(l, 1));
    return set_coefficients(l, 0); /* evaluation alone wants them too */
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

/* One pass over the collected samples; kl_p: the mean of its minibatches. What it learns from is added to *samples_p: a
 * pass leaves out what is less than a minibatch. */
static dt_status learn_once(ppo_learner *l, uint64_t steps, dt_step_report *r, double *kl_p, uint64_t *samples_p)
{
    double sum = 0;
    for (uint64_t i = 0; i < steps; i++) {
        DT_TRY_H(l->train->step(l->trainer, r));
        sum += loss_of(r, "approx_kl");
        *samples_p += r->samples;
    }
    *kl_p = sum / (double)steps;
    return DT_OK;
}

/* samples_p: how many were learnt from, in all passes together. */
static dt_status learn(ppo_learner *l, uint64_t iteration, uint64_t steps_per_epoch, dt_step_report *r,
                       uint64_t *samples_p)
{
    const ppo_config *c = &l->config;
    double kl = 0;
    for (int64_t e = 0; e < c->sgd_epochs; e++) {
        if (l->before_pass != NULL) {
            DT_TRY_H(l->before_pass(l, (uint64_t)e));
        }
        DT_TRY_H(learn_once(l, steps_per_epoch, r, &kl, samples_p));
        if (c->target_kl > 0 && kl > 1.5 * c->target_kl) {
            DT_TRY_H(l->train->seek(l->trainer, (iteration + 1) * (uint64_t)c->sgd_epochs * steps_per_epoch));
            break;
        }
    }
    if (c->kl_target > 0) { /* section 4 of the paper */
        l->kl_coef *= kl > 1.5 * c->kl_target ? 2.0 : kl < c->kl_target / 1.5 ? 0.5 : 1.0;
        l->kl_coef = fmin(fmax(l->kl_coef, 1e-6), 1e6);
    }
    return DT_OK;
}

static void report_collect(const ppo_learner *l, const dt_rollout_report *r, uint64_t samples, double learn_s)
{
    const dt_metrics_api *m = l->metrics;
    if (r->episodes > 0) {
        m->scalar(l->h, "charts/episodic_return", r->episode_return);
        m->scalar(l->h, "charts/episodic_length", r->episode_length);
        for (uint32_t i = 0; i < l->wiring.spec->n_costs; i++) {
            char name[96];
            snprintf(name, sizeof(name), "costs/%s", l->wiring.spec->costs[i]);
            m->scalar(l->h, name, r->episode_cost[i]);
        }
        for (uint32_t i = 0; i < l->wiring.spec->n_metrics; i++) {
            char name[96];
            snprintf(name, sizeof(name), "env/%s", l->wiring.spec->metrics[i]);
            m->scalar(l->h, name, r->metric[i]);
        }
    }
    m->scalar(l->h, "charts/episodes", (double)r->episodes);
    m->scalar(l->h, "losses/explained_variance", r->explained_variance);
    m->scalar(l->h, "shield/interventions", r->interventions);
    m->scalar(l->h, "shield/infeasible", r->infeasible);
    m->scalar(l->h, "time/env", r->env_s);
    m->scalar(l->h, "time/policy", r->policy_s);
    m->scalar(l->h, "time/env_wait", r->wait_s);
    m->scalar(l->h, "time/learn", learn_s);
    m->scalar(l->h, "charts/learn_samples_per_s", learn_s > 0 ? (double)samples / learn_s : 0);
    m->scalar(l->h, "charts/env_steps_per_s", r->total_s > 0 ? (double)r->env_steps / r->total_s : 0);
}

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

dt_status ppo_collect(ppo_learner *l, uint64_t *iteration_p, dt_rollout_report *out)
{
    uint64_t step = 0, steps = 0, steps_per_epoch = 0;
    DT_TRY_H(l->train->position(l->trainer, &step, &steps, &steps_per_epoch));
    if (step >= steps) {
        return DT_DONE;
    }
    *iteration_p = step / (steps_per_epoch * (uint64_t)l->config.sgd_epochs);
    *out = (dt_rollout_report){.struct_size = sizeof(*out)};
    DT_TRY_H(set_coefficients(l, *iteration_p));
    return l->rollout->collect(l->experience, l->trainer, out);
}

dt_status ppo_ahead(ppo_learner *l, uint64_t iteration)
{
    const bool follows = l->config.overlap != 0 && iteration + 1 < (uint64_t)l->config.iterations;
    return follows ? l->rollout->ahead(l->experience, l->trainer) : DT_OK;
}

dt_status ppo_learn(ppo_learner *l, uint64_t iteration, const dt_rollout_report *collected, dt_progress *out)
{
    uint64_t step = 0, steps = 0, steps_per_epoch = 0, samples = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    const double begin = seconds();
    DT_TRY_H(set_unit(l, collected->advantage_std));
    DT_TRY_H(l->train->position(l->trainer, &step, &steps, &steps_per_epoch));
    DT_TRY_H(learn(l, iteration, steps_per_epoch, &r, &samples));
    report_collect(l, collected, samples, seconds() - begin);
    DT_TRY_H(l->train->position(l->trainer, &step, &steps, &steps_per_epoch));
    out->step = step;
    out->steps = steps;
    out->epoch = iteration;
    out->epochs = (uint64_t)l->config.iterations;
    out->iterations = iteration + 1;
    out->samples = collected->env_steps;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return step >= steps ? DT_DONE : DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

dt_status ppo_evaluate(void *self, dt_progress *out)
{
    const ppo_learner *l = self;
    DT_TRY_H(l->rollout->report(l->experience, l->trainer));
    out->evaluated = 1;
    return DT_OK;
}

void ppo_destroy(void *self)
{
    const ppo_learner *l = self;
    if (l->trainer != NULL) {
        l->train->destroy(l->trainer);
    }
}

dt_status ppo_save(void *self, dt_writer *w)
{
    const ppo_learner *l = self;
    return w->write(w, &l->kl_coef, sizeof(l->kl_coef));
}

dt_status ppo_load(void *self, dt_reader *r, uint32_t version)
{
    ppo_learner *l = self;
    (void)version; /* it is the phase's, and this part has not changed */
    return r->read(r, &l->kl_coef, sizeof(l->kl_coef));
}

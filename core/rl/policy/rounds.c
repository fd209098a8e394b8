/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of collecting experience and learning from it; see wiring.h. The position of training is kept by the trainer:
 * a round is sgd_epochs passes of it.
 */
#include <config.h>

#include "rl/policy/wiring.h"
#include "base/activity.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/plugin_call.h"
#include "base/log.h"
#include "base/mem.h"
#include "dtrain/svc/metrics.h"
#include "plugin/service/stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 96 };

typedef struct rounds { /* a dt_rounds, as the host has it */
    dt_rounds face;     /* first */
    const dt_host *h;
    const dt_metrics_api *metrics;
    dt_rounds_config config;
    dt_rounds_desc d;
    uint64_t n_empty; /* rounds of this process in which no agent acted */
} rounds;

static rounds *as_rounds(dt_rounds *r)
{
    return (rounds *)(void *)r;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static dt_status check_config(const rounds *r)
{
    const dt_rounds_config *c = &r->config;
    if (c->fragment < 1 || c->train_batch < 1 || c->iterations < 1 || c->sgd_epochs < 1) {
        return DT_FAIL(DT_EINVAL,
                       "%s has %lld rounds of %lld samples in fragments of %lld and %lld passes; each must be at "
                       "least 1",
                       r->d.phase, (long long)c->iterations, (long long)c->train_batch, (long long)c->fragment,
                       (long long)c->sgd_epochs);
    }
    if (c->fragment > c->train_batch) {
        return DT_FAIL(
            DT_ECONFIG,
            "%s.fragment = %lld, steps of an instance, is above %s.train_batch = %lld, all steps of a round; "
            "lower the first or raise the second",
            r->d.phase, (long long)c->fragment, r->d.phase, (long long)c->train_batch);
    }
    return DT_OK;
}

static uint8_t normalisation_flags(const rounds *r)
{
    return !r->config.normalise_advantage ? DT_NORMALISE_NONE
           : r->d.normalise != 0          ? r->d.normalise
                                          : DT_NORMALISE_EACH;
}

/* Steps of every instance per round: train_batch over all instances, in whole fragments. */
static dt_status create_experience(rounds *r)
{
    const dt_rounds_config *c = &r->config;
    const dt_wired *w = dt_wired_of(r->d.wiring);
    const int64_t instances = (int64_t)dt_bind_service.env_instances(w->face.env);
    const int64_t round = instances * c->fragment;
    const int64_t steps = (c->train_batch + round - 1) / round * c->fragment;
    const dt_port kept[] = {{"foresight", w->foresight.dims, DT_F32, 0},
                            {"foreseen", w->foresight.foreseen_dims, DT_F32, 0}};
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = (uint32_t)steps,
                               .window = (uint32_t)w->face.window,
                               .normalise_advantage = normalisation_flags(r),
                               .normalise_obs = c->normalise_obs,
                               .normalise_reward = c->normalise_reward,
                               .centre = c->centre,
                               .gamma = c->gamma,
                               .lambda = c->lambda,
                               .cost_gamma = c->cost_gamma,
                               .cost_lambda = c->cost_lambda,
                               .clip_obs = c->clip_obs,
                               .clip_reward = c->clip_reward,
                               .transitions = r->d.transitions,
                               .n_kept = w->face.F > 0 && w->config.keep_foresight ? 2 : 0,
                               .kept = kept,
                               .has_ahead = c->overlap != 0};
    return r->face.rollout->create(r->h, w->face.env, &d, &r->face.experience);
}

/* Its trainer reads what the experience has, and goes before it. */
static void destroy_rounds(void *p)
{
    rounds *r = p;
    if (r->face.trainer != NULL) {
        r->face.train->destroy(r->face.trainer);
    }
    dt_free(r);
}

static dt_status bind_services(rounds *r)
{
    r->face.rollout = r->h->service(r->h, DT_SVC_ROLLOUT);
    r->metrics = r->h->service(r->h, DT_SVC_METRICS);
    if (r->face.rollout == NULL || r->metrics == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s has no environments to act in here", r->d.phase);
    }
    DT_TRY(check_config(r));
    return create_experience(r);
}

/* What was compiled with an older header is shorter. */
static dt_status read_desc(const dt_host *h, const dt_rounds_desc *d, dt_rounds_desc *out)
{
    if (d == NULL) {
        return DT_FAIL(DT_EINVAL, "%s creates rounds without a description", dt_stage_of(h)->d.phase->desc.id);
    }
    memcpy(out, d, d->struct_size < sizeof(*out) ? d->struct_size : sizeof(*out));
    if (out->phase == NULL) {
        out->phase = dt_stage_of(h)->d.phase->desc.id;
    }
    const char *lacks = out->config == NULL   ? "a configuration"
                        : out->wiring == NULL ? "a wiring"
                        : out->record == NULL ? "a loss to record"
                                              : NULL;
    return lacks == NULL ? DT_OK : DT_FAIL(DT_EINVAL, "%s describes its rounds without %s", out->phase, lacks);
}

static dt_status rounds_create(const dt_host *h, const dt_rounds_desc *d, dt_rounds **out_p)
{
    rounds *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the rounds of %s", dt_stage_of(h)->d.phase->desc.id);
    }
    dt_status st = read_desc(h, d, &r->d);
    if (st < 0) {
        dt_free(r);
        return st;
    }
    memcpy(&r->config, r->d.config, r->d.config_size < sizeof(r->config) ? r->d.config_size : sizeof(r->config));
    r->h = h;
    r->face = (dt_rounds){.api = &dt_rounds_service,
                          .struct_size = sizeof(r->face),
                          .wiring = r->d.wiring,
                          .train = &dt_train_service,
                          .n_rounds = (uint64_t)r->config.iterations};
    st = dt_stage_take_ownership(dt_stage_of(h), r, destroy_rounds); /* also when it fails half-way */
    if (st < 0) {
        dt_free(r);
        return st;
    }
    st = bind_services(r);
    if (st == DT_OK) {
        *out_p = &r->face;
    }
    return st;
}

static dt_status record_round_losses(void *user, dt_graph *g)
{
    const rounds *r = user;
    dt_policy_tensors p = {.struct_size = sizeof(p)};
    DT_TRY(dt_wiring_record(r->d.wiring, g, NULL, &p));
    return r->d.record(r->d.user, g, &p);
}

static dt_status record_stored_losses(void *user, dt_graph *g)
{
    const rounds *r = user;
    return r->d.record_stored(r->d.user, g);
}

static dt_status begin_round(const rounds *r, uint64_t round)
{
    dt_status st = DT_OK;
    if (r->d.begin != NULL) {
        DT_CALL_PLUGIN(st, r->d.phase, "begin", r->d.begin(r->d.user, round));
    }
    return st;
}

static dt_status rounds_start(dt_rounds *face)
{
    rounds *r = as_rounds(face);
    dt_model *models[2 * DT_WIRING_MAX_MODELS];
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = dt_wiring_service.models(face->wiring, models, 2 * DT_WIRING_MAX_MODELS),
                                .user = r,
                                .record = record_round_losses,
                                .data = face->rollout->data(face->experience),
                                .models = models,
                                .epochs = (uint64_t)(r->config.iterations * r->config.sgd_epochs),
                                .manual_loss = r->d.manual_loss,
                                .stored = r->d.stored,
                                .record_stored = r->d.stored != NULL ? record_stored_losses : NULL,
                                .n_stored = r->d.n_stored,
                                .target = r->d.target,
                                .n_targets = r->d.n_targets,
                                .group = r->d.group,
                                .n_groups = r->d.n_groups};
    DT_TRY(face->train->create(r->h, &desc, &face->trainer));
    return begin_round(r, 0); /* evaluation alone needs its step inputs too */
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

typedef struct pass_means { /* of every loss over minibatches that have a row */
    const char *name[DT_STEP_MAX_LOSSES];
    double sum[DT_STEP_MAX_LOSSES];
    uint32_t n;
    uint64_t steps;
} pass_means;

static void add_losses(pass_means *m, const dt_step_report *r)
{
    if (r->samples == 0) {
        return;
    }
    m->steps++;
    m->n = r->n_losses;
    for (uint32_t i = 0; i < r->n_losses; i++) {
        m->name[i] = r->loss_name[i];
        m->sum[i] += r->loss_value[i];
    }
}

/* One pass over the collected samples. What it learns from is added to *samples_p: a pass leaves out what is less than
 * a minibatch. DT_DONE: the phase needs no more. */
static dt_status run_learning_pass(rounds *r, uint64_t number, uint64_t steps, dt_step_report *last,
                                   uint64_t *samples_p)
{
    pass_means m = {.n = 0};
    dt_status st = DT_OK;
    if (r->d.before_pass != NULL) {
        DT_CALL_PLUGIN(st, r->d.phase, "before_pass", r->d.before_pass(r->d.user, number));
    }
    DT_TRY(st);
    for (uint64_t i = 0; i < steps; i++) {
        dt_step_report now = {.struct_size = sizeof(now)};
        DT_TRY(r->face.train->step(r->face.trainer, &now));
        add_losses(&m, &now);
        *samples_p += now.samples;
        *last = now.samples > 0 ? now : *last;
    }
    for (uint32_t i = 0; i < m.n; i++) {
        m.sum[i] /= (double)m.steps;
    }
    const dt_pass_report report = {.struct_size = sizeof(report),
                                   .n_losses = m.n,
                                   .pass = number,
                                   .passes = (uint64_t)r->config.sgd_epochs,
                                   .steps = m.steps,
                                   .loss_name = m.name,
                                   .loss_value = m.sum};
    if (r->d.after_pass != NULL && m.steps > 0) {
        DT_CALL_PLUGIN(st, r->d.phase, "after_pass", r->d.after_pass(r->d.user, &report));
    }
    return st;
}

/* samples_p: how many were used, in all passes together. */
static dt_status learn_from_round(rounds *r, uint64_t round, uint64_t steps_per_epoch, dt_step_report *last,
                                  uint64_t *samples_p)
{
    const uint64_t passes = (uint64_t)r->config.sgd_epochs;
    for (uint64_t e = 0; e < passes; e++) {
        dt_activity_set(DT_ACTIVITY_LEARN, e, passes);
        const dt_status st = run_learning_pass(r, e, steps_per_epoch, last, samples_p);
        DT_TRY_DONE(st);
        if (st == DT_DONE) {
            DT_TRY(r->face.train->seek(r->face.trainer, (round + 1) * passes * steps_per_epoch));
            break;
        }
    }
    return DT_OK;
}

/* A round in which no agent acted: no update is made, and the phase is not called. */
static dt_status skip_empty_round(rounds *r, uint64_t round, uint64_t steps_per_epoch)
{
    r->metrics->scalar(r->h, "charts/rounds_without_samples", (double)++r->n_empty);
    if (r->n_empty == 1 && dt_stage_of(r->h)->d.metrics != NULL) { /* rank 0's */
        dt_log(DT_LOG_WARN,
               "%s: no agent acted in round %llu, and nothing is learned from it; from now on such rounds are counted "
               "in charts/rounds_without_samples",
               r->d.phase, (unsigned long long)round + 1);
    }
    return r->face.train->seek(r->face.trainer, (round + 1) * (uint64_t)r->config.sgd_epochs * steps_per_epoch);
}

static void report_scalar(const rounds *r, const char *group, const char *name, double value)
{
    char text[TEXT];
    snprintf(text, sizeof(text), "%s/%s", group, name);
    r->metrics->scalar(r->h, text, value);
}

static void report_round(const rounds *r, const dt_rollout_report *c, uint64_t samples, double learn_s)
{
    const dt_metrics_api *m = r->metrics;
    const dt_env_spec *spec = r->face.wiring->spec;
    const bool is_known = !isnan(c->episode_length); /* also where no agent acted, unlike return and costs */
    if (c->episodes > 0) {
        m->scalar(r->h, "charts/episodic_return", c->episode_return);
    }
    if (is_known) {
        m->scalar(r->h, "charts/episodic_length", c->episode_length);
    }
    for (uint32_t i = 0; i < spec->n_costs && c->episodes > 0; i++) {
        report_scalar(r, "costs", spec->costs[i], c->episode_cost[i]);
    }
    for (uint32_t i = 0; i < spec->n_metrics && is_known; i++) {
        report_scalar(r, "env", spec->metrics[i], c->metric[i]);
    }
    m->scalar(r->h, "charts/episodes", (double)c->episodes);
    m->scalar(r->h, "losses/explained_variance", c->explained_variance);
    m->scalar(r->h, "shield/interventions", c->interventions);
    m->scalar(r->h, "shield/infeasible", c->infeasible);
    m->scalar(r->h, "time/env", c->env_s);
    m->scalar(r->h, "time/policy", c->policy_s);
    m->scalar(r->h, "time/env_wait", c->wait_s);
    m->scalar(r->h, "time/learn", learn_s);
    m->scalar(r->h, "charts/learn_samples_per_s", learn_s > 0 && samples > 0 ? (double)samples / learn_s : (double)NAN);
    m->scalar(r->h, "charts/env_steps_per_s", c->total_s > 0 ? (double)c->env_steps / c->total_s : (double)NAN);
}

/* What was collected, and, where required and one more round follows, the next one in parallel. */
static dt_status collect_round(rounds *r, uint64_t round, dt_rollout_report *out)
{
    dt_rounds *face = &r->face;
    DT_TRY(begin_round(r, round));
    DT_TRY(face->rollout->collect(face->experience, face->trainer, out));
    const bool has_samples = out->agent_steps > 0;
    dt_status st = DT_OK;
    if (r->d.collected != NULL && has_samples) {
        DT_CALL_PLUGIN(st, r->d.phase, "collected", r->d.collected(r->d.user, round, out));
    }
    DT_TRY(st);
    const bool follows = r->config.overlap != 0 && round + 1 < face->n_rounds;
    return follows ? face->rollout->collect_ahead(face->experience, face->trainer) : DT_OK;
}

static dt_status rounds_iterate(dt_rounds *face, dt_progress *out)
{
    rounds *r = as_rounds(face);
    uint64_t step = 0, steps = 0, steps_per_epoch = 0, samples = 0;
    dt_rollout_report collected = {.struct_size = sizeof(collected)};
    dt_step_report last = {.struct_size = sizeof(last), .loss = NAN, .grad_norm = NAN, .learning_rate = NAN};
    DT_TRY(face->train->position(face->trainer, &step, &steps, &steps_per_epoch));
    if (step >= steps) {
        return DT_DONE;
    }
    const uint64_t round = step / (steps_per_epoch * (uint64_t)r->config.sgd_epochs);
    DT_TRY(collect_round(r, round, &collected));
    const double begun = dt_clock_s();
    DT_TRY(face->train->position(face->trainer, &step, &steps, &steps_per_epoch));
    if (collected.agent_steps > 0) {
        DT_TRY(learn_from_round(r, round, steps_per_epoch, &last, &samples));
    } else {
        DT_TRY(skip_empty_round(r, round, steps_per_epoch));
    }
    report_round(r, &collected, samples, dt_clock_s() - begun);
    DT_TRY(face->train->position(face->trainer, &step, &steps, &steps_per_epoch));
    out->step = step;
    out->steps = steps;
    out->epoch = round;
    out->epochs = face->n_rounds;
    out->iterations = round + 1;
    out->samples = collected.env_steps;
    out->loss = last.loss;
    out->grad_norm = last.grad_norm;
    out->learning_rate = last.learning_rate;
    out->epoch_end = 1;
    return step >= steps ? DT_DONE : DT_OK;
}

static dt_status rounds_evaluate(dt_rounds *face, dt_progress *out)
{
    DT_TRY(face->rollout->report(face->experience, face->trainer));
    out->evaluated = 1;
    return DT_OK;
}

const dt_rounds_api dt_rounds_service = {.struct_size = sizeof(dt_rounds_api),
                                         .create = rounds_create,
                                         .start = rounds_start,
                                         .iterate = rounds_iterate,
                                         .evaluate = rounds_evaluate};

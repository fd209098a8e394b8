/* SPDX-License-Identifier: Apache-2.0 */
#include "learner.h"
#include "common/round_report.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS_WITHOUT_AGENTS = 100000 };

/* ---- binding ----------------------------------------------------------------------------------------------------- */

dt_status offpolicy_check(const dt_host *h, const char *phase, const offpolicy_config *c)
{
    if (c->learning_starts > c->buffer_size) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.learning_starts = %lld, samples collected before training starts, is above "
                         "%s.buffer_size = %lld, the capacity of the buffer; lower the first or raise the second",
                         phase, (long long)c->learning_starts, phase, (long long)c->buffer_size);
    }
    return DT_OK;
}

static int64_t samples_per_round(const offpolicy_learner *l)
{
    return (int64_t)l->bind->env_instances(l->models.wiring->env) * l->config.collect_steps;
}

static dt_status allocate_td_errors(offpolicy_learner *l)
{
    l->most_errors = l->replay->draw_size(l->memory) * l->models.spec->n_agents;
    l->error =
        l->most_errors <= SIZE_MAX / sizeof(*l->error) ? l->h->alloc(l->h, l->most_errors * sizeof(*l->error)) : NULL;
    return l->error != NULL ? DT_OK
                            : DT_FAIL_H(l->h, DT_ENOMEM, "no memory for the errors of %llu rows; lower data.batch",
                                        (unsigned long long)l->most_errors);
}

static dt_status create_replay(offpolicy_learner *l)
{
    const offpolicy_config *c = &l->config;
    const uint64_t samples = (uint64_t)samples_per_round(l) * (uint64_t)c->intensity;
    if (samples_per_round(l) > c->buffer_size) {
        return DT_FAIL_H(l->h, DT_ECONFIG,
                         "%s.buffer_size = %lld is less than a round, env.instances * %s.collect_steps = %lld "
                         "samples; raise it, or take fewer steps",
                         l->phase, (long long)c->buffer_size, l->phase, (long long)samples_per_round(l));
    }
    const dt_replay_desc d = {.struct_size = sizeof(d),
                              .n_step = (uint32_t)c->n_step,
                              .capacity = (uint64_t)c->buffer_size,
                              .draw = c->priority > 0 ? 0 : samples,
                              .gamma = c->gamma,
                              .alpha = c->priority,
                              .beta = c->priority_correction};
    DT_TRY_H(l->replay->create(l->h, l->experience, &d, &l->memory));
    if (!(c->priority > 0)) {
        return DT_OK;
    }
    const uint64_t batch = l->replay->draw_size(l->memory);
    l->updates = (samples + batch - 1) / batch;
    return allocate_td_errors(l);
}

/* The buffer has the graph of the next step alone, so n-step targets cannot use graphs. */
static dt_status bind_models(offpolicy_learner *l, const dt_wiring_api *wiring, uint32_t head)
{
    const offpolicy_config *c = &l->config;
    DT_TRY_H(actor_critic_bind(&l->models, wiring, DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | head));
    if (c->n_step > 1 && l->models.wiring->has_graph) {
        return DT_FAIL_H(l->h, DT_ECONFIG,
                         "%s.n_step = %lld adds up steps, and a model of this phase reads a graph, which is available "
                         "for one step only; set %s.n_step = 1, or choose models that read rows of agents "
                         "(models.controller, models.critic, models.perception, models.shield)",
                         l->phase, (long long)c->n_step, l->phase);
    }
    return DT_OK;
}

dt_status offpolicy_create(offpolicy_learner *l, const dt_host *h, const char *phase, const offpolicy_config *c,
                           bool squash)
{
    const dt_wiring_api *wiring = NULL;
    l->h = h;
    l->phase = phase;
    l->config = *c;
    DT_SERVICE_H(h, l->bind, DT_SVC_BIND, phase);
    DT_SERVICE_H(h, l->train, DT_SVC_TRAIN, phase);
    DT_SERVICE_H(h, l->metrics, DT_SVC_METRICS, phase);
    DT_SERVICE_H(h, l->rollout, DT_SVC_ROLLOUT, phase);
    DT_SERVICE_H(h, l->replay, DT_SVC_REPLAY, phase);
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, phase);
    l->models = (actor_critic){.h = h, .bind = l->bind, .phase = phase, .n_critics = c->critics};
    const uint32_t head = squash ? DT_WIRING_STATE_LOG_STD : DT_WIRING_NO_LOG_STD | DT_WIRING_SQUASHED;
    DT_TRY_H(bind_models(l, wiring, head));
    const dt_rollout_desc d = {.struct_size = sizeof(d),
                               .steps = (uint32_t)c->collect_steps,
                               .gamma = c->gamma,
                               .transitions = l->models.wiring->has_graph ? 3 : 2,
                               .squash = squash};
    DT_TRY_H(l->rollout->create(h, l->models.wiring->env, &d, &l->experience));
    return create_replay(l);
}

dt_status offpolicy_start(offpolicy_learner *l, dt_status (*record)(void *learner, dt_graph *g),
                          const dt_train_group *group, uint32_t n_groups, const dt_train_target *target,
                          uint32_t n_targets)
{
    const dt_wiring *w = l->models.wiring;
    dt_model *models[2 * DT_WIRING_MAX_MODELS];
    const dt_train_desc desc = {.struct_size = sizeof(desc),
                                .n_models = w->api->models(w, models, 2 * DT_WIRING_MAX_MODELS),
                                .user = l,
                                .record = record,
                                .data = l->replay->data(l->memory),
                                .models = models,
                                .epochs = (uint64_t)l->config.iterations * (l->updates > 0 ? l->updates : 1),
                                .group = group,
                                .n_groups = n_groups,
                                .target = target,
                                .n_targets = n_targets};
    l->groups = (1u << n_groups) - 1;
    DT_TRY_H(l->train->create(l->h, &desc, &l->trainer));
    return actor_critic_set_identity(&l->models, l->train, l->trainer);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

dt_tensor *offpolicy_td_target(const offpolicy_learner *l, dt_graph *g, dt_tensor *next)
{
    const dt_graph_api *api = g->api;
    dt_tensor *reward = dt_affine(g, dt_split(g, api->input(g, "reward"), 0), l->config.reward_scale, 0);
    return dt_stop(g, dt_add(g, reward, dt_mul(g, next, dt_split(g, api->input(g, "discount"), 0))));
}

/* |q - y| of each row, the mean over its critics: the priority of Schaul et al. 2016. */
static dt_status record_td_error(const offpolicy_learner *l, dt_graph *g, dt_tensor *difference)
{
    dt_tensor *size = dt_max(g, difference, dt_affine(g, difference, -1, 0));
    dt_tensor *mean = l->config.critics == 1 ? size : dt_reduce_columns(g, DT_REDUCE_MEAN, size);
    return g->api->output(g, "td_error", dt_merge(g, mean));
}

dt_status offpolicy_record_critic_loss(const offpolicy_learner *l, dt_graph *g, const dt_policy_tensors *p,
                                       dt_tensor *y)
{
    const dt_graph_api *api = g->api;
    dt_tensor *q = NULL;
    DT_TRY_H(actor_critic_record_q(&l->models, g, "", NULL, p, actor_critic_executed_action(&l->models, g), &q));
    dt_tensor *difference = dt_sub(g, q, y); /* y for each estimate */
    dt_tensor *zero = dt_fill(g, difference, 0);
    dt_tensor *loss = dt_mse(g, difference, zero, api->input(g, "weight"));
    DT_TRY_H(api->loss(g, "critic_loss", loss, 1.0, "A"));
    DT_TRY_H(api->loss(g, "q", dt_sum(g, q), 0.0, "A"));
    return l->config.priority > 0 ? record_td_error(l, g, difference) : api->status(g);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Without this limit a phase whose agents never act would collect for ever. */
static dt_status check_agents_act(const offpolicy_learner *l, int64_t steps)
{
    return steps < MAX_STEPS_WITHOUT_AGENTS
               ? DT_OK
               : DT_FAIL_H(l->h, DT_ECONFIG,
                           "%s: no agent that learns has acted in %lld steps of each instance of %s, so that "
                           "%s.learning_starts = %lld samples never arrive; with several teams check that "
                           "opponents.learner is one that plays, else that the environment's options admit agents",
                           l->phase, (long long)steps, l->bind->env_id(l->models.wiring->env), l->phase,
                           (long long)l->config.learning_starts);
}

/* Collects until the buffer has learning_starts samples; reports the episodes of the last collection. */
static dt_status collect_until_ready(offpolicy_learner *l, uint64_t *env_steps_p)
{
    dt_rollout_report r;
    int64_t deserted = 0; /* steps of each instance since an agent acted */
    do {
        DT_TRY_H(check_agents_act(l, deserted));
        r = (dt_rollout_report){.struct_size = sizeof(r)};
        DT_TRY_H(l->rollout->collect(l->experience, l->trainer, &r));
        DT_TRY_H(l->replay->add(l->memory));
        *env_steps_p += r.env_steps;
        l->n_empty += r.agent_steps == 0;
        deserted = r.agent_steps > 0 ? 0 : deserted + l->config.collect_steps;
    } while (l->replay->count(l->memory) < (uint64_t)l->config.learning_starts);
    report_episodes(l->h, l->metrics, l->models.spec, &r);
    if (l->n_empty > 0) {
        l->metrics->scalar(l->h, "charts/rounds_without_samples", (double)l->n_empty);
    }
    l->metrics->scalar(l->h, "time/env", r.env_s);
    l->metrics->scalar(l->h, "time/policy", r.policy_s);
    return DT_OK;
}

static dt_status collect_td_errors(void *user, const dt_rows *r)
{
    offpolicy_learner *l = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *error = l->train->rows(r, "td_error", dim, &rank);
    if (error == NULL || rank != 1 || (uint64_t)dim[0] > l->most_errors - l->n_errors) {
        return DT_FAIL_H(l->h, DT_EPLUGIN, "%s: drawn samples have no recorded TD error", l->phase);
    }
    memcpy(l->error + l->n_errors, error, (size_t)dim[0] * sizeof(*error));
    l->n_errors += (uint64_t)dim[0];
    return DT_OK;
}

/* Priorities of the last batch from its TD errors after the update. */
static dt_status update_priorities(offpolicy_learner *l)
{
    l->n_errors = 0;
    DT_TRY_H(l->train->evaluate(l->trainer, l->replay->data(l->memory), l, collect_td_errors));
    return l->replay->priority(l->memory, l->error, l->n_errors);
}

/* Every update trains the critics, every policy_delay-th all models (TD3). */
static dt_status update_networks(const offpolicy_learner *l, uint64_t step, dt_step_report *r)
{
    const bool is_whole = (step + 1) % (uint64_t)l->config.policy_delay == 0;
    return l->train->step_groups(l->trainer, is_whole ? l->groups : l->critic, r);
}

/* n updates; `step`: updates of the phase so far. */
static dt_status train_round(offpolicy_learner *l, uint64_t step, uint64_t n, dt_step_report *r, uint64_t *samples_p)
{
    const bool is_prioritised = l->config.priority > 0;
    DT_TRY_H(is_prioritised ? DT_OK : l->replay->draw(l->memory));
    for (uint64_t i = 0; i < n; i++) {
        DT_TRY_H(is_prioritised ? l->replay->draw(l->memory) : DT_OK);
        DT_TRY_H(update_networks(l, step + i, r));
        DT_TRY_H(is_prioritised ? update_priorities(l) : DT_OK);
        *samples_p += r->samples;
    }
    return DT_OK;
}

dt_status offpolicy_iterate(void *self, dt_progress *out)
{
    offpolicy_learner *l = self;
    uint64_t step = 0, steps = 0, per_round = 0, env_steps = 0, samples = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    DT_TRY_H(l->train->position(l->trainer, &step, &steps, &per_round));
    if (step >= steps) {
        return DT_DONE;
    }
    per_round = l->updates > 0 ? l->updates : per_round;
    const uint64_t round = step / per_round;
    const double begin = report_seconds_now();
    DT_TRY_H(l->explore != NULL ? l->explore(l, round) : DT_OK);
    DT_TRY_H(collect_until_ready(l, &env_steps));
    const double acted = report_seconds_now();
    DT_TRY_H(train_round(l, step, per_round, &r, &samples));
    const double learnt = report_seconds_now();
    l->metrics->scalar(l->h, "charts/replay", (double)l->replay->count(l->memory));
    l->metrics->scalar(l->h, "time/learn", learnt - acted);
    l->metrics->scalar(l->h, "charts/learn_samples_per_s",
                       samples > 0 ? (double)samples / fmax(learnt - acted, 1e-9) : (double)NAN);
    l->metrics->scalar(l->h, "charts/env_steps_per_s", (double)env_steps / fmax(learnt - begin, 1e-9));
    out->step = r.step;
    out->steps = steps;
    out->epoch = round;
    out->epochs = (uint64_t)l->config.iterations;
    out->iterations = round + 1;
    out->samples = env_steps;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = 1;
    return r.step >= steps ? DT_DONE : DT_OK;
}

dt_status offpolicy_evaluate(void *self, dt_progress *out)
{
    offpolicy_learner *l = self;
    DT_TRY_H(l->rollout->report(l->experience, l->trainer));
    out->evaluated = 1;
    return DT_OK;
}

void offpolicy_destroy(void *self)
{
    const offpolicy_learner *l = self;
    if (l->trainer != NULL) {
        l->train->destroy(l->trainer);
    }
    if (l->h != NULL) { /* create has run */
        l->h->release(l->h, l->error);
    }
}

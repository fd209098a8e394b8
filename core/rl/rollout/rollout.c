/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1": core/rl/buffer wired to the stage's environment and trainer.
 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "rl/buffer/time_to_cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- create ------------------------------------------------------------------------------------------------------ */

/* What is squashed lies between bounds. */
static dt_status check_bounds(const dt_env_spec *s)
{
    for (uint32_t i = 0; i < s->n_continuous; i++) {
        if (!isfinite(s->low[i]) || !isfinite(s->high[i])) {
            return DT_FAIL(DT_ECONFIG,
                           "actions are squashed into the bounds of the environment, and action %u has %g to %g; it "
                           "needs finite ones",
                           i, (double)s->low[i], (double)s->high[i]);
        }
    }
    return DT_OK;
}

static dt_status check_desc(const dt_rollout *r)
{
    const dt_rollout_desc *d = &r->d;
    const struct {
        const char *name;
        double value;
    } share[] = {
        {"gamma", d->gamma}, {"lambda", d->lambda}, {"cost_gamma", d->cost_gamma}, {"cost_lambda", d->cost_lambda}};
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        if (!(share[i].value >= 0 && share[i].value <= 1)) {
            return DT_FAIL(DT_ECONFIG, "a rollout's %s is %g; expected 0 to 1", share[i].name, share[i].value);
        }
    }
    if (d->steps < 1 || d->window > 4096) {
        return DT_FAIL(DT_ECONFIG,
                       "a rollout of %u steps with a window of %u; expected at least 1 step, at most 4096 of "
                       "history",
                       d->steps, d->window);
    }
    if (d->transitions > 3) {
        return DT_FAIL(DT_ECONFIG, "a rollout's transitions is %u; expected 0 to 3", d->transitions);
    }
    DT_TRY(d->squash ? check_bounds(&r->env->layout.spec) : DT_OK);
    if (d->n_kept > DT_ROLLOUT_MAX_KEPT) {
        return DT_FAIL(DT_EPLUGIN, "a rollout keeps %u values; at most %d are possible", d->n_kept,
                       DT_ROLLOUT_MAX_KEPT);
    }
    if (d->n_annotations > DT_ROLLOUT_MAX_ANNOTATIONS) {
        return DT_FAIL(DT_EPLUGIN, "a rollout has %u annotations; at most %d are possible", d->n_annotations,
                       DT_ROLLOUT_MAX_ANNOTATIONS);
    }
    return DT_OK;
}

static void copy_ports(const dt_port *from, uint32_t n, dt_kept_text *text, dt_port *to)
{
    for (uint32_t k = 0; k < n; k++) {
        dt_kept_text *t = &text[k];
        snprintf(t->name, sizeof(t->name), "%s", from[k].name);
        snprintf(t->dims, sizeof(t->dims), "%s", from[k].dims);
        to[k] = (dt_port){t->name, t->dims, from[k].dtype, 0};
    }
}

/* The buffer as the trainer sees it. */
static dt_status open_data(dt_rollout *r)
{
    dt_engine_opts engine;
    int64_t largest[1 + DT_ENV_MAX_SYMBOLS];
    DT_TRY(dt_config_engine(r->stage->d.config, r->stage->d.index, &engine));
    for (int32_t k = 0; k <= (int32_t)r->env->layout.spec.n_symbols; k++) {
        largest[k] = dt_buffer_most(&r->buffer, k);
    }
    r->data.self = r;
    DT_TRY(dt_samples_open_live(&r->data.source, &dt_rollout_data_ops, r, largest,
                                engine.slice_rows > 0 ? engine.slice_rows : 512, "row_key"));
    r->data.source.bring = dt_comm_size(r->stage->d.comm) > 1 ? dt_rollout_bring : NULL;
    return DT_OK;
}

/* A rank has instances next to each other, all ranks about as many. */
static dt_status share(dt_rollout *r)
{
    const uint64_t ranks = dt_comm_size(r->stage->d.comm), rank = dt_comm_rank(r->stage->d.comm);
    if (r->instances < ranks) {
        return DT_FAIL(DT_ECONFIG, "env.instances = %u is less than the %u ranks; every rank needs at least one",
                       r->instances, (unsigned)ranks);
    }
    r->first = dt_rollout_first(r, (uint32_t)rank);
    r->last = dt_rollout_first(r, (uint32_t)rank + 1);
    return DT_OK;
}

static dt_status build(dt_rollout *r)
{
    const dt_layout *l = &r->env->layout;
    dt_buffer_desc bd = {.layout = l,
                         .steps = r->d.steps,
                         .instances = r->last - r->first,
                         .first = r->first,
                         .all = r->instances,
                         .window = r->d.window > 1 ? r->d.window : 1,
                         .transitions = r->d.transitions,
                         .gamma = r->d.gamma,
                         .n_kept = r->d.n_kept,
                         .kept = r->kept,
                         .n_annotations = r->d.n_annotations,
                         .annotation = r->annotation};
    DT_TRY(dt_opponents_create(r, &r->opponents));
    bd.is_opponent = r->opponents != NULL ? r->opponents->is_opponent : NULL;
    DT_TRY(dt_buffer_init(&r->buffer, &bd));
    DT_TRY(r->d.has_ahead ? dt_buffer_init(&r->next, &bd) : DT_OK);
    r->all = &r->buffer;
    if (bd.instances < r->instances) {
        bd.instances = r->instances;
        bd.first = 0;
        bd.is_narrow = true;
        DT_TRY(dt_buffer_init(&r->rows, &bd));
        r->all = &r->rows;
    }
    DT_TRY(open_data(r));
    const size_t places = (size_t)r->instances * l->spec.n_agents;
    r->self = dt_alloc_n(r->last - r->first, sizeof(*r->self));
    r->carry = dt_alloc_n(places, 2 * sizeof(*r->carry));
    r->ret = dt_alloc_n(places, sizeof(*r->ret));
    r->log = dt_alloc_n(r->instances, sizeof(*r->log));
    r->action_bytes = l->spec.n_agents * (l->spec.n_heads * sizeof(int32_t) + l->spec.n_continuous * sizeof(float));
    if (r->self == NULL || r->carry == NULL || r->ret == NULL || r->log == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->instances);
    }
    if (r->d.normalise_obs) {
        for (uint32_t i = 0; i < l->spec.n_obs; i++) {
            if (l->obs[i].is_plain) {
                DT_TRY(dt_moments_init(&r->obs[i], (size_t)l->obs[i].row_items));
                r->held[i] = dt_alloc_n(4 * (size_t)l->obs[i].row_items, sizeof(float));
                if (r->held[i] == NULL) {
                    return DT_FAIL(DT_ENOMEM, "out of memory for the statistics of %s", l->obs[i].port->name);
                }
            }
        }
    }
    return dt_moments_init(&r->returns, 1);
}

void dt_rollout_destroy(dt_rollout *r)
{
    if (r == NULL) {
        return;
    }
    if (r->listener.self != NULL) {
        r->listener.destroy(r->listener.self);
    }
    if (r->replay != NULL) {
        r->destroy_replay(r->replay);
    }
    dt_rollout_ahead_fini(r);
    dt_vector_destroy(r->vector);
    if (r->self != NULL) { /* the first one is the environment's */
        dt_env_drop(r->env, &r->env->training, r->first + 1, r->last - r->first - 1, r->self + 1);
    }
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_fini(&r->obs[i]);
        dt_free(r->held[i]);
    }
    if (r->log != NULL) {
        for (uint32_t i = 0; i < r->instances; i++) {
            dt_free(r->log[i].action);
        }
    }
    dt_moments_fini(&r->returns);
    dt_rollout_drop_policy(r);
    dt_opponents_destroy(r->opponents);
    dt_rollout_share_fini(r);
    dt_buffer_fini(&r->rows);
    dt_buffer_fini(&r->next);
    dt_buffer_fini(&r->buffer);
    dt_free(r->self);
    dt_free(r->carry);
    dt_free(r->ret);
    dt_free(r->log);
    dt_free(r);
}

/* One thread asks a device, and the others step environments meanwhile; several places are at work at a time. */
static dt_status plan_asking(dt_rollout *r)
{
    dt_engine_opts engine;
    DT_TRY(dt_config_engine(r->stage->d.config, r->stage->d.index, &engine));
    r->in_flight = (uint32_t)engine.in_flight;
    if (r->workers == 0 && r->stage->d.threads > 1 && r->instances > 1) {
        const uint32_t others = r->stage->d.threads - 1;
        r->workers = others < r->instances ? others : r->instances - 1;
    }
    return DT_OK;
}

/* A round that is kept has what each step was, whatever the phase learns from. */
static dt_status tell_steps(dt_rollout *r)
{
    dt_rollouts_opts rollouts;
    DT_TRY(dt_config_rollouts(r->stage->d.config, r->stage->d.index, &rollouts));
    r->d.transitions = rollouts.keep > 0 && r->d.transitions < 2 ? 2 : r->d.transitions;
    return DT_OK;
}

dt_status dt_rollout_create(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out)
{
    dt_stage *s = dt_stage_of(h);
    if (s->rollout != NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a second rollout; one per phase is possible", s->d.phase->desc.id);
    }
    dt_rollout *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout");
    }
    r->stage = s;
    r->env = env;
    memcpy(&r->d, d, d->struct_size < sizeof(*d) ? d->struct_size : sizeof(*d));
    r->is_squashed = r->d.squash != 0 && s->d.controller == NULL; /* of a controller that learnt nothing mean is it */
    r->instances = (uint32_t)env->opts.instances;
    r->workers = (uint32_t)env->opts.workers;
    if (r->workers == 0 && env->in_process) { /* as many processes at work as there are cores */
        r->workers = s->d.threads < r->instances ? s->d.threads : r->instances - 1;
    }
    dt_evaluation_opts evaluation = {0};
    dt_status st = tell_steps(r);
    if (st == DT_OK) {
        st = check_desc(r);
    }
    if (st == DT_OK && s->d.device_ops != NULL) {
        st = plan_asking(r);
    }
    if (st == DT_OK) {
        st = dt_config_evaluation(s->d.config, s->d.index, &evaluation);
    }
    r->evaluation_steps = (uint32_t)evaluation.max_steps;
    if (st == DT_OK) {
        copy_ports(r->d.kept, r->d.n_kept, r->kept_text, r->kept);
        copy_ports(r->d.annotation, r->d.n_annotations, r->annotation_text, r->annotation);
        r->d.kept = r->kept;
        r->d.annotation = r->annotation;
        st = share(r);
    }
    if (st == DT_OK) {
        st = build(r);
    }
    if (st < 0) {
        dt_rollout_destroy(r);
        return st;
    }
    s->rollout = r;
    *out = r;
    return DT_OK;
}

dt_data *dt_rollout_data(dt_rollout *r)
{
    return &r->data;
}

/* ---- collect ----------------------------------------------------------------------------------------------------- */

/* Rewards divided by the deviation of what they add up to, discounted, since the agent came. */
static void normalise_rewards(dt_rollout *r)
{
    const dt_buffer *b = r->all;
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents, n = places * b->d.steps;
    const size_t first = dt_buffer_slot(b, 0, 0) * b->l->spec.n_agents;
    float *reward = b->reward + first, *sum = b->advantage + first; /* not needed yet */
    const uint8_t *flag = b->flag + first;
    for (size_t i = 0; i < n; i++) {
        double *ret = &r->ret[i % places];
        *ret = (flag[i] & DT_STEP_ACTED) != 0 ? *ret * r->d.gamma + (double)reward[i] : 0;
        sum[i] = (float)*ret;
        *ret = (flag[i] & (DT_STEP_TERMINATED | DT_STEP_TRUNCATED)) != 0 ? 0 : *ret;
    }
    dt_moments_add(&r->returns, sum, flag, n);
    dt_moments_apply(&r->returns);
    const float clip = r->d.clip_reward > 0 ? (float)r->d.clip_reward : INFINITY;
    for (size_t i = 0; i < n; i++) {
        const float x = reward[i] * r->returns.scale[0];
        reward[i] = x < -clip ? -clip : x > clip ? clip : x;
    }
}

/* The last step of those who go on: what comes behind it is of the next round. */
static void mark_open(const dt_rollout *r)
{
    dt_buffer *b = r->all;
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents;
    const size_t end = (dt_buffer_slot(b, 0, 0) + (size_t)b->d.steps * b->d.instances) * b->l->spec.n_agents;
    for (size_t i = end - places; i < end; i++) {
        b->report[i] |= DT_REPORT_OPEN;
    }
}

static void estimate(dt_rollout *r)
{
    DT_TRACE("rollout", "advantages");
    dt_buffer *b = r->all;
    const size_t first = dt_buffer_slot(b, 0, 0) * b->l->spec.n_agents;
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents, n = places * b->d.steps;
    double scale = 0; /* of the reward's advantages */
    if (b->cost_in != NULL) {
        for (uint32_t k = 0; k < b->l->spec.n_costs; k++) { /* before costs are centred */
            const size_t plane = k * b->n_places + first;
            dt_steps_to_cost(b->cost + plane, b->flag + first, b->d.steps, places, b->cost_in + plane);
        }
    }
    for (uint32_t k = 0; k <= b->l->spec.n_costs; k++) { /* the reward, then the costs */
        const size_t plane = k > 0 ? (k - 1) * b->n_places + first : first;
        const dt_gae g = {.reward = (k > 0 ? b->cost : b->reward) + plane,
                          .value = (k > 0 ? b->cost_value : b->value) + plane,
                          .flag = b->flag + first,
                          .gamma = k > 0 ? r->d.cost_gamma : r->d.gamma,
                          .lambda = k > 0 ? r->d.cost_lambda : r->d.lambda,
                          .steps = b->d.steps,
                          .places = places};
        float *advantage = (k > 0 ? b->cost_advantage : b->advantage) + plane;
        float *target = (k > 0 ? b->cost_target : b->target) + plane;
        if (r->d.centre) {
            dt_gae_centre(g.flag, n, (k > 0 ? b->cost : b->reward) + plane);
        }
        dt_gae_run(&g, r->carry, advantage);
        for (size_t i = 0; i < n; i++) {
            target[i] = advantage[i] + g.value[i];
        }
        double mean = 0;
        r->deviation[k] = dt_gae_deviation(g.flag, n, advantage, &mean);
        if (r->d.normalise_advantage != DT_NORMALISE_NONE) {
            const bool is_alike = k > 0 && r->d.normalise_advantage == DT_NORMALISE_ALIKE;
            const double given = r->d.normalise_advantage == DT_NORMALISE_MEAN ? 1 : is_alike ? scale : 0;
            const double used = dt_gae_normalise(g.flag, n, given, advantage);
            scale = k > 0 ? scale : used;
        }
    }
}

/* Mean and deviation over finished episodes of one of their numbers; NAN ones do not count. */
static void mean_of(const dt_buffer *b, uint32_t item, double *mean, double *std)
{
    const size_t first = dt_buffer_slot(b, 0, 0), end = first + (size_t)b->d.steps * b->d.instances;
    double n = 0, sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = first; i < end; i++) {
            const double x = b->episode[i * b->episode_items + item];
            if (!dt_rollout_is_counted(b->done[i]) || isnan(x)) {
                continue;
            }
            if (pass == 0) {
                n++;
                sum += x;
            } else {
                squares += (x - sum / n) * (x - sum / n);
            }
        }
    }
    *mean = n > 0 ? sum / n : NAN;
    *std = n > 1 ? sqrt(squares / (n - 1)) : (double)NAN;
}

/* Resets, and steps in which nobody acted, are none. */
static uint64_t count_env_steps(const dt_buffer *b)
{
    const size_t first = dt_buffer_slot(b, 0, 0), end = first + (size_t)b->d.steps * b->d.instances;
    uint64_t n = 0;
    for (size_t i = first; i < end; i++) {
        n += b->n_acts[i] > 0;
    }
    return n;
}

static void summarise(const dt_rollout *r, dt_rollout_report *out)
{
    const dt_buffer *b = r->all;
    const dt_env_spec *s = &b->l->spec;
    const size_t first = dt_buffer_slot(b, 0, 0), slots = (size_t)b->d.steps * b->d.instances;
    const size_t at = first * s->n_agents, n = slots * s->n_agents;
    double unused = 0, changed = 0, infeasible = 0;
    dt_rollout_report all = {.struct_size = out->struct_size, .n_costs = s->n_costs, .n_metrics = s->n_metrics};
    all.env_steps = count_env_steps(b);
    for (size_t i = first; i < first + slots; i++) {
        all.agent_steps += (uint64_t)b->n_acts[i];
    }
    all.episodes = dt_rollout_episodes(r);
    for (size_t i = at; i < at + n; i++) {
        const bool acted = (b->flag[i] & DT_STEP_ACTED) != 0;
        changed += acted && (b->report[i] & DT_REPORT_CHANGED) != 0;
        infeasible += acted && (b->report[i] & DT_REPORT_INFEASIBLE) != 0;
    }
    const double rows = all.agent_steps > 0 ? (double)all.agent_steps : (double)NAN;
    all.interventions = changed / rows;
    all.infeasible = infeasible / rows;
    mean_of(b, 0, &all.episode_return, &all.episode_return_std);
    mean_of(b, 1, &all.episode_length, &unused);
    for (uint32_t k = 0; k < s->n_costs; k++) {
        mean_of(b, 2 + k, &all.episode_cost[k], &all.episode_cost_std[k]);
        all.cost_advantage_std[k] = r->deviation[1 + k];
    }
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        mean_of(b, 2 + s->n_costs + m, &all.metric[m], &all.metric_std[m]);
    }
    all.advantage_std = r->deviation[0];
    all.explained_variance = dt_gae_explained(b->flag + at, n, b->target + at, b->value + at);
    const uint32_t bytes = out->struct_size < sizeof(all) ? out->struct_size : sizeof(all);
    memcpy(out, &all, bytes);
}

/* Episodes of all ranks that ended so: cut, they would have gone on behind the environment's own max_steps. */
static uint32_t count_done(const dt_buffer *b, uint8_t how)
{
    const size_t first = dt_buffer_slot(b, 0, 0), end = first + (size_t)b->d.steps * b->d.instances;
    uint32_t n = 0;
    for (size_t i = first; i < end; i++) {
        n += (b->done[i] & how) != 0;
    }
    return n;
}

/* Once in a run: why there are fewer episodes than games. */
static void tell_unplayed(dt_rollout *r)
{
    const uint32_t n = count_done(r->all, DT_DONE_UNPLAYED);
    if (n == 0) {
        return;
    }
    dt_metrics_scalar(r->stage->d.metrics, "opponents/unplayed_episodes", n);
    if (!r->told_unplayed && dt_comm_rank(r->stage->d.comm) == 0) {
        dt_log(DT_LOG_WARN,
               "opponents.learner: in %u of the episodes that ended in this round no agent of the learning team was "
               "alive; such episodes have no return and are not counted, now and later (opponents/unplayed_episodes)",
               n);
    }
    r->told_unplayed = true;
}

dt_status dt_rollout_prepare(dt_rollout *r, dt_trainer *t)
{
    if (r->policy != NULL) {
        return DT_OK;
    }
    DT_TRY(dt_rollout_make_policy(r, t));
    return r->d.has_ahead ? dt_rollout_ahead_prepare(r) : DT_OK;
}

dt_status dt_rollout_policy(dt_rollout *r, dt_trainer *t)
{
    DT_TRY(dt_rollout_prepare(r, t));
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_apply(&r->obs[i]);
    }
    return dt_policy_begin(r->policy);
}

void dt_rollout_settle(dt_rollout *r)
{
    dt_rollout_ahead_drop(r);
    dt_rollout_drop_policy(r);
}

static dt_status act(dt_rollout *r, dt_trainer *t)
{
    DT_TRY(dt_rollout_policy(r, t));
    return dt_rollout_act(r, t);
}

static dt_status collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    dt_trainer *trainer = ((dt_stage *)(void *)t)->trainer;
    const double from = dt_clock_s();
    DT_TRACE_N("rollout", "collect", "round", r->collects + 1);
    const bool is_ahead = r->ahead.is_begun;
    dt_trainer_refill(trainer); /* nobody reads while we write */
    r->share.has_last = false;
    const dt_status acted = is_ahead ? dt_rollout_ahead_wait(r) : act(r, trainer);
    DT_TRY(dt_comm_agree(r->stage->d.comm, acted));
    dt_rollout_ahead_take(r);
    r->collects++;
    DT_TRY(dt_rollout_gather(r));
    if (r->env_steps != DT_ENV_STEPS_UNKNOWN) {
        r->env_steps += count_env_steps(r->all);
    }
    DT_TRY(dt_rollout_log(r));
    mark_open(r);
    DT_TRY(r->listener.self != NULL ? r->listener.collected(r->listener.self) : DT_OK);
    DT_TRY(dt_rollout_learn_observations(r));
    if (r->d.normalise_reward) {
        normalise_rewards(r);
    }
    estimate(r);
    dt_rollout_clear_annotations(r);
    summarise(r, out);
    for (uint32_t i = 0; i < r->n_tracks; i++) { /* side by side */
        out->policy_s += r->track[i].collector.policy_s / r->n_tracks;
        out->wait_s += r->track[i].collector.wait_s / r->n_tracks;
    }
    for (uint32_t i = 0; i < r->last - r->first; i++) {
        out->env_s += dt_vector_at(r->vector, i)->env_s;
        dt_vector_at(r->vector, i)->env_s = 0;
    }
    out->total_s = dt_clock_s() - from + (is_ahead ? r->ahead.beside_s : 0);
    if (r->opponents != NULL) {
        dt_metrics_scalar(r->stage->d.metrics, "opponents/snapshots", dt_opponents_snapshots(r->opponents));
        tell_unplayed(r);
    }
    const uint32_t n_cut = count_done(r->all, DT_DONE_CUT);
    if (n_cut > 0) {
        dt_metrics_scalar(r->stage->d.metrics, "env/cut_episodes", n_cut);
    }
    if (r->env->in_process) {
        dt_metrics_scalar(r->stage->d.metrics, "env/restarts", atomic_load(&r->env->n_restarts));
    }
    return DT_OK;
}

dt_status dt_rollout_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    const dt_status mine = collect(r, t, out);
    return dt_comm_agree(r->stage->d.comm, mine);
}

uint64_t dt_rollout_env_steps(const dt_rollout *r)
{
    return r->env_steps;
}

void dt_rollout_env_steps_set(dt_rollout *r, uint64_t steps)
{
    r->env_steps = steps;
}

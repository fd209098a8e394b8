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

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- create ------------------------------------------------------------------------------------------------------ */

/* What is squashed has bounds. */
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
    if (d->n_carried > DT_ROLLOUT_MAX_CARRIED) {
        return DT_FAIL(DT_EPLUGIN, "a rollout carries %u values; at most %d are possible", d->n_carried,
                       DT_ROLLOUT_MAX_CARRIED);
    }
    if (d->n_annotations > DT_ROLLOUT_MAX_ANNOTATIONS) {
        return DT_FAIL(DT_EPLUGIN, "a rollout has %u annotations; at most %d are possible", d->n_annotations,
                       DT_ROLLOUT_MAX_ANNOTATIONS);
    }
    DT_TRY(dt_stage_check_ports(r->stage, "kept value", d->kept, d->n_kept));
    DT_TRY(dt_stage_check_ports(r->stage, "annotation", d->annotation, d->n_annotations));
    return dt_stage_check_ports(r->stage, "carried value", d->carried, d->n_carried);
}

static void copy_ports(const dt_port *from, uint32_t n, dt_port_text *text, dt_port *to)
{
    for (uint32_t k = 0; k < n; k++) {
        dt_port_text *t = &text[k];
        snprintf(t->name, sizeof(t->name), "%s", from[k].name);
        snprintf(t->dims, sizeof(t->dims), "%s", from[k].dims);
        to[k] = (dt_port){t->name, t->dims, from[k].dtype, 0};
    }
}

static void list_outputs(dt_rollout *r)
{
    uint32_t n = 0;
    for (; n < DT_ROLLOUT_OUTPUTS; n++) {
        r->ports.output[n] = dt_rollout_output[n];
    }
    for (uint32_t k = 0; k < r->d.n_carried; k++) {
        snprintf(r->ports.carried_output[k], sizeof(r->ports.carried_output[k]), DT_POLICY_CARRIED "%s",
                 r->ports.carried[k].name);
        r->ports.output[n++] = r->ports.carried_output[k];
    }
    r->ports.output[n] = NULL;
}

/* The buffer as the trainer sees it. */
static dt_status open_buffer_data(dt_rollout *r)
{
    const int64_t slice_rows = r->stage->opts.engine.slice_rows;
    int64_t largest[1 + DT_ENV_MAX_SYMBOLS];
    for (int32_t k = 0; k <= (int32_t)r->env->layout.spec.n_symbols; k++) {
        largest[k] = dt_buffer_max_rows(&r->buffer, k);
    }
    r->data.self = &r->exchange;
    DT_TRY(dt_samples_open_live(&r->data.source, &dt_exchange_data_ops, &r->exchange, largest,
                                slice_rows > 0 ? slice_rows : 512, "row_key"));
    r->data.source.bring = dt_comm_size(r->stage->d.comm) > 1 ? dt_exchange_fetch_samples : NULL;
    return DT_OK;
}

static dt_status init_parts(dt_rollout *r)
{
    const dt_layout *l = &r->env->layout;
    dt_buffer_desc bd = {.layout = l,
                         .steps = r->d.steps,
                         .instances = r->split.last - r->split.first,
                         .first = r->split.first,
                         .all = r->split.instances,
                         .window = r->d.window > 1 ? r->d.window : 1,
                         .transitions = r->d.transitions,
                         .gamma = r->d.gamma,
                         .n_kept = r->d.n_kept,
                         .kept = r->ports.kept,
                         .n_annotations = r->d.n_annotations,
                         .annotation = r->ports.annotation,
                         .n_carried = r->d.n_carried,
                         .has_last_action = r->d.has_last_action != 0,
                         .carried = r->ports.carried};
    DT_TRY(dt_opponents_create(r, &r->opponents));
    if (r->opponents != NULL && r->d.n_carried > 0) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "%s carries state from step to step, which opponents cannot; unset opponents.learner",
                       r->stage->d.phase->desc.id);
    }
    bd.is_opponent = r->opponents != NULL ? r->opponents->is_opponent : NULL;
    DT_TRY(dt_buffer_init(&r->buffer, &bd));
    DT_TRY(r->d.has_ahead ? dt_buffer_init(&r->next, &bd) : DT_OK);
    r->all = &r->buffer;
    if (bd.instances < r->split.instances) {
        bd.instances = r->split.instances;
        bd.first = 0;
        bd.is_narrow = true;
        DT_TRY(dt_buffer_init(&r->rows, &bd));
        r->all = &r->rows;
    }
    r->exchange = (dt_exchange){.split = &r->split, .own = &r->buffer, .rows = r->all};
    DT_TRY(open_buffer_data(r));
    r->acting.self = dt_alloc_n(dt_partition_count_own(&r->split), sizeof(*r->acting.self));
    if (r->acting.self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->split.instances);
    }
    DT_TRY(dt_episode_logs_init(&r->episodes, &l->spec, r->split.instances));
    DT_TRY(dt_carried_allocate(r));
    DT_TRY(dt_obs_stats_init(&r->stats, l, r->d.normalise_obs != 0, (float)r->d.clip_obs));
    return dt_returns_init(&r->returns, (size_t)r->split.instances * l->spec.n_agents);
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
    dt_round_ahead_fini(r);
    dt_vector_destroy(r->acting.vector);
    if (r->acting.self != NULL) { /* the first one is the environment's */
        dt_env_destroy_instances(r->env, &r->env->training, r->split.first + 1, dt_partition_count_own(&r->split) - 1,
                                 r->acting.self + 1);
    }
    dt_acting_destroy_policy(r);
    dt_opponents_destroy(r->opponents);
    dt_obs_stats_fini(&r->stats);
    dt_returns_fini(&r->returns);
    dt_episode_logs_fini(&r->episodes);
    dt_free(r->carried);
    dt_exchange_fini(&r->exchange);
    dt_buffer_fini(&r->rows);
    dt_buffer_fini(&r->next);
    dt_buffer_fini(&r->buffer);
    dt_free(r->acting.self);
    dt_free(r);
}

/* One thread uses a device, and the others step environments meanwhile; several places are active at a time. */
static void plan_threads_of_device(dt_rollout *r)
{
    r->acting.in_flight = (uint32_t)r->stage->opts.engine.in_flight;
    if (r->acting.workers == 0 && !r->env->in_process && r->stage->d.threads > 1 && r->split.instances > 1) {
        const uint32_t others = r->stage->d.threads - 1;
        r->acting.workers = others < r->split.instances ? others : r->split.instances - 1;
    }
}

dt_status dt_rollout_create(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out)
{
    dt_stage *s = dt_stage_of(h);
    if (env == NULL || d == NULL || out == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a rollout without %s", s->d.phase->desc.id,
                       env == NULL ? "an environment (bind->env)"
                       : d == NULL ? "a description"
                                   : "a place for its handle");
    }
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
    r->acting.is_squashed = r->d.squash != 0 && s->d.controller == NULL; /* of a rule-based controller mean is it */
    r->split.instances = (uint32_t)env->opts.instances;
    r->acting.workers = env->in_process ? 0 : (uint32_t)env->opts.workers; /* processes need no threads */
    if (s->opts.rollouts.keep > 0 && r->d.transitions < 2) { /* a round that is kept has what each step was */
        r->d.transitions = 2;
    }
    dt_status st = check_desc(r);
    if (st == DT_OK && s->d.device_ops != NULL) {
        plan_threads_of_device(r);
    }
    r->evaluation_steps = (uint32_t)s->opts.evaluation.max_steps;
    if (st == DT_OK) {
        copy_ports(r->d.kept, r->d.n_kept, r->ports.kept_text, r->ports.kept);
        copy_ports(r->d.annotation, r->d.n_annotations, r->ports.annotation_text, r->ports.annotation);
        copy_ports(r->d.carried, r->d.n_carried, r->ports.carried_text, r->ports.carried);
        r->d.kept = r->ports.kept;
        r->d.carried = r->ports.carried;
        list_outputs(r);
        r->d.annotation = r->ports.annotation;
        st = dt_partition_init(&r->split, s->d.comm, (uint32_t)env->opts.instances);
    }
    if (st == DT_OK) {
        st = init_parts(r);
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

/* Once in a run: why there are fewer episodes than games. */
static void report_unplayed_games(dt_rollout *r)
{
    const uint32_t n = dt_round_count_ends(r->all, DT_DONE_UNPLAYED);
    const char *key = r->opponents != NULL ? "opponents/unplayed_episodes" : "charts/unplayed_episodes";
    if (n == 0) {
        return;
    }
    dt_metrics_add_scalar(r->stage->d.metrics, key, n);
    if (!r->has_warned_unplayed && dt_comm_rank(r->stage->d.comm) == 0) {
        dt_log(DT_LOG_WARN,
               "%sin %u of the episodes that ended in this round no agent%s acted; such episodes have neither a return "
               "nor costs and count for neither, now and later (%s)",
               r->opponents != NULL ? "opponents.learner: " : "", n,
               r->opponents != NULL ? " of the learning team" : "", key);
    }
    r->has_warned_unplayed = true;
}

dt_status dt_rollout_prepare(dt_rollout *r, dt_trainer *t)
{
    if (r->acting.policy != NULL) {
        return DT_OK;
    }
    DT_TRY(dt_acting_create_policy(r, t));
    return r->d.has_ahead ? dt_round_ahead_prepare(r) : DT_OK;
}

dt_status dt_rollout_begin_policy(dt_rollout *r, dt_trainer *t)
{
    DT_TRY(dt_rollout_prepare(r, t));
    dt_obs_stats_apply(&r->stats);
    return dt_policy_use_current_params(r->acting.policy);
}

void dt_rollout_release_trainer(dt_rollout *r)
{
    dt_round_ahead_cancel(r);
    dt_acting_destroy_policy(r);
}

static dt_status collect_in_foreground(dt_rollout *r, dt_trainer *t)
{
    DT_TRY(dt_rollout_begin_policy(r, t));
    return dt_acting_collect(r, t);
}

static void report_times(dt_rollout *r, dt_rollout_report *out)
{
    const dt_acting *x = &r->acting;
    for (uint32_t i = 0; i < x->n_tracks; i++) { /* which act in parallel */
        out->policy_s += x->track[i].collector.policy_s / x->n_tracks;
        out->wait_s += x->track[i].collector.wait_s / x->n_tracks;
    }
    for (uint32_t i = 0; i < dt_partition_count_own(&r->split); i++) {
        out->env_s += dt_vector_instance(x->vector, i)->env_s;
        dt_vector_instance(x->vector, i)->env_s = 0;
    }
}

static void report_metrics(dt_rollout *r)
{
    dt_metrics *m = r->stage->d.metrics;
    const uint32_t n_cut = dt_round_count_ends(r->all, DT_DONE_CUT);
    if (r->opponents != NULL) {
        dt_metrics_add_scalar(m, "opponents/snapshots", dt_opponents_count_snapshots(r->opponents));
    }
    report_unplayed_games(r);
    if (n_cut > 0) {
        dt_metrics_add_scalar(m, "env/cut_episodes", n_cut);
    }
    if (r->env->can_restart) {
        dt_metrics_add_scalar(m, "env/restarts", atomic_load(&r->env->n_restarts));
    }
}

/* Numbers of a mix by its entries, and of several agents by their places: the first ones of many, for each is a metric
 * more. Rewards are those of the environment still. */
static void report_parts(dt_rollout *r)
{
    dt_metrics *m = r->stage->d.metrics;
    const dt_env_spec *s = &r->env->layout.spec;
    char name[48];
    for (uint32_t k = 0; k < r->env->n_kinds && k < DT_ROUND_MOST_PARTS && r->env->n_kinds > 1; k++) {
        const dt_round_part part = dt_round_summarise_part(r->all, k, r->env->n_kinds);
        snprintf(name, sizeof(name), "mix/%u/episodes", k);
        dt_metrics_add_scalar(m, name, (double)part.episodes);
        snprintf(name, sizeof(name), "mix/%u/return", k);
        if (part.episodes > 0) {
            dt_metrics_add_scalar(m, name, part.episode_return);
        }
        snprintf(name, sizeof(name), "mix/%u/length", k);
        if (!isnan(part.episode_length)) {
            dt_metrics_add_scalar(m, name, part.episode_length);
        }
    }
    for (uint32_t a = 0; a < s->n_agents && a < DT_ROUND_MOST_PARTS && s->n_agents > 1; a++) {
        const double reward = dt_round_mean_reward(r->all, a);
        snprintf(name, sizeof(name), "places/%u/reward", a);
        if (!isnan(reward)) {
            dt_metrics_add_scalar(m, name, reward);
        }
    }
}

/* The path of a round: acted, gathered from all ranks, logged, handed to its listener, added to statistics, and
 * completed with returns. */
static dt_status collect_round(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    dt_trainer *trainer = t->trainer;
    const double from = dt_clock_s();
    DT_TRACE_N("rollout", "collect", "round", r->collects + 1);
    const bool is_ahead = r->ahead.is_begun;
    dt_stage_discard_prefetched(r->stage); /* nothing reads while we write */
    dt_exchange_invalidate(&r->exchange);
    const dt_status acted = is_ahead ? dt_round_ahead_wait(r) : collect_in_foreground(r, trainer);
    DT_TRY(dt_comm_agree(r->split.comm, acted));
    dt_round_ahead_swap(r);
    r->collects++;
    DT_TRY(r->all == &r->rows ? dt_gather_rows_of_ranks(&r->split, &r->buffer, &r->rows) : DT_OK);
    if (r->env_steps != DT_ENV_STEPS_UNKNOWN) {
        r->env_steps += dt_round_count_env_steps(r->all);
    }
    DT_TRY(dt_episode_logs_add_round(&r->episodes, r->all));
    DT_TRY(dt_carried_gather(r));
    dt_round_mark_unfinished(r->all);
    DT_TRY(r->listener.self != NULL ? r->listener.collected(r->listener.self) : DT_OK);
    DT_TRY(dt_obs_stats_add_round(&r->stats, &r->split, &r->buffer));
    report_parts(r);
    if (r->d.normalise_reward) {
        dt_returns_normalise_rewards(&r->returns, &r->d, r->all);
    }
    dt_returns_estimate(&r->returns, &r->d, r->all);
    dt_rollout_clear_annotations(r);
    dt_round_summarise(r->all, &r->returns, out);
    report_times(r, out);
    out->total_s = dt_clock_s() - from + (is_ahead ? r->ahead.hidden_s : 0);
    report_metrics(r);
    return DT_OK;
}

dt_status dt_rollout_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    dt_stage_restore_fp_mode(r->stage);
    const dt_status mine = collect_round(r, t, out);
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

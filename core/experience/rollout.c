/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1": core/rollout wired to the stage's environment and trainer.
 */
#include <config.h>

#include "experience/rollout.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "experience/evaluation.h"
#include "rollout/time_to_cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OUT_LOGITS, OUT_MEAN, OUT_LOG_STD, OUT_VALUE, OUT_COST_VALUE, OUT_LOW, OUT_HIGH, OUT_ALLOW };
static const char *const output_name[] = {
    [OUT_LOGITS] = "logits",         [OUT_MEAN] = "mean", [OUT_LOG_STD] = "log_std", [OUT_VALUE] = "value",
    [OUT_COST_VALUE] = "cost_value", [OUT_LOW] = "low",   [OUT_HIGH] = "high",       [OUT_ALLOW] = "allow",
};

/* ---- create ------------------------------------------------------------------------------------------------------ */

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
    if (d->has_ahead && r->stage->d.device_ops != NULL) {
        return DT_FAIL(DT_ECONFIG, "a round is collected ahead on the CPU alone, and learning is on a device; set "
                                   "the phase's overlap = 0, or engine.device = cpu");
    }
    if (d->n_kept > DT_ROLLOUT_MAX_KEPT) {
        return DT_FAIL(DT_EPLUGIN, "a rollout is asked to keep %u values; at most %d are possible", d->n_kept,
                       DT_ROLLOUT_MAX_KEPT);
    }
    return DT_OK;
}

static void copy_kept(dt_rollout *r, const dt_port *kept)
{
    for (uint32_t k = 0; k < r->d.n_kept; k++) {
        dt_kept_text *t = &r->kept_text[k];
        snprintf(t->name, sizeof(t->name), "%s", kept[k].name);
        snprintf(t->dims, sizeof(t->dims), "%s", kept[k].dims);
        r->kept[k] = (dt_port){t->name, t->dims, kept[k].dtype, 0};
    }
    r->d.kept = r->kept;
}

/* The buffer as the trainer sees it. */
static dt_status open_data(dt_rollout *r)
{
    dt_engine_opts engine;
    int64_t largest[1 + DT_ENV_MAX_SYMBOLS];
    DT_TRY(dt_config_engine(r->stage->d.config, r->stage->d.index, &engine));
    for (int32_t k = 0; k <= (int32_t)r->env->layout.spec.n_symbols; k++) {
        largest[k] = dt_layout_cap(&r->env->layout, k);
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
                         .has_next = r->d.transitions != 0,
                         .n_kept = r->d.n_kept,
                         .kept = r->kept};
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
    r->carry = dt_alloc_n(places, sizeof(*r->carry));
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
    dt_rollout_ahead_fini(r);
    dt_vector_destroy(r->vector);
    if (r->self != NULL) { /* the first one is the environment's */
        dt_env_drop(r->env, r->last - r->first - 1, r->self + 1);
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
    dt_policy_destroy(r->policy);
    for (uint32_t i = 0; i < r->n_tracks; i++) {
        dt_arena_unmap(r->track[i].arena, r->arena_bytes);
        dt_free(r->track[i].index);
    }
    dt_free(r->track);
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
    r->instances = (uint32_t)env->opts.instances;
    r->workers = (uint32_t)env->opts.workers;
    if (r->workers == 0 && env->in_process) { /* as many processes at work as there are cores */
        r->workers = s->d.threads < r->instances ? s->d.threads : r->instances - 1;
    }
    dt_evaluation_opts evaluation = {0};
    dt_status st = check_desc(r);
    if (st == DT_OK) {
        st = dt_config_evaluation(s->d.config, s->d.index, &evaluation);
    }
    r->evaluation_steps = (uint32_t)evaluation.max_steps;
    if (st == DT_OK) {
        copy_kept(r, d->kept);
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

/* ---- the policy -------------------------------------------------------------------------------------------------- */

static dt_status check_output(const dt_rollout *r, uint32_t o, uint32_t items, bool needed)
{
    const dt_view *v = r->track[0].view[o];
    if (v == NULL) {
        return needed ? DT_FAIL(DT_EPLUGIN, "the phase records no output \"%s\", which acting in %s needs",
                                output_name[o], r->env->comp->desc.id)
                      : DT_OK;
    }
    const bool is_per_row = o == OUT_VALUE ? v->rank == 1 : v->rank == 2 && v->dim[1] == items;
    const bool is_shared = o == OUT_LOG_STD && v->rank == 1 && v->dim[0] == items;
    if (v->dtype != DT_F32 || (!is_per_row && !is_shared)) {
        return DT_FAIL(DT_ESHAPE, "the phase's output \"%s\" has %d dimensions, the last of %lld; expected [A%s%u] f32",
                       output_name[o], v->rank, v->rank > 0 ? (long long)v->dim[v->rank - 1] : 0,
                       o == OUT_VALUE ? "] or 1 of " : " ", items);
    }
    return DT_OK;
}

static dt_status check_outputs(dt_rollout *r)
{
    const dt_layout *l = &r->env->layout;
    const uint32_t C = l->spec.n_continuous, M = l->n_choices;
    DT_TRY(check_output(r, OUT_LOGITS, M, M > 0));
    DT_TRY(check_output(r, OUT_MEAN, C, C > 0));
    DT_TRY(check_output(r, OUT_LOG_STD, C, C > 0));
    DT_TRY(check_output(r, OUT_VALUE, 1, false));
    DT_TRY(check_output(r, OUT_COST_VALUE, l->spec.n_costs, false));
    DT_TRY(check_output(r, OUT_LOW, C, false));
    DT_TRY(check_output(r, OUT_HIGH, C, false));
    return check_output(r, OUT_ALLOW, M, false);
}

/* What is known only after acting cannot decide how to act. */
static dt_status check_fields(const dt_rollout *r, uint32_t *want_p)
{
    static const char *const later[] = {"action_i", "action_f",       "log_prob",   "value",      "advantage",
                                        "target",   "cost_advantage", "cost_value", "cost_target"};
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        if (dt_policy_reads(r->policy, later[i])) {
            return DT_FAIL(DT_EPLUGIN,
                           "an output of the phase that acting needs is computed from the field %s, which is "
                           "not known yet when an action is chosen",
                           later[i]);
        }
    }
    for (uint32_t f = 0; f < r->buffer.n_fields; f++) {
        *want_p |= dt_policy_reads(r->policy, r->buffer.field[f].name) ? 1u << f : 0;
    }
    return DT_OK;
}

static const float *data_of(const dt_view *v)
{
    return v != NULL ? v->data : NULL;
}

static dt_status run_policy(void *user, const int64_t *size, void *const *field)
{
    dt_track *t = user;
    dt_actor *a = &t->actor;
    DT_TRY(dt_policy_run(t->r->policy, t->number, size, field));
    a->logits = data_of(t->view[OUT_LOGITS]);
    a->mean = data_of(t->view[OUT_MEAN]);
    a->log_std = data_of(t->view[OUT_LOG_STD]);
    a->value = data_of(t->view[OUT_VALUE]);
    a->cost_value = data_of(t->view[OUT_COST_VALUE]);
    a->low = data_of(t->view[OUT_LOW]);
    a->high = data_of(t->view[OUT_HIGH]);
    a->allow = data_of(t->view[OUT_ALLOW]);
    for (uint32_t k = 0; k < t->r->d.n_kept; k++) {
        a->kept[k] = data_of(t->kept[k]);
    }
    return DT_OK;
}

/* Room for what the policy reads of all of this rank's instances at once. */
static dt_status map_fields(const dt_rollout *r, const int64_t *cap, dt_track *t, size_t *bytes_p)
{
    const dt_samples *s = &r->data.source;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (uint32_t f = 0; f < s->n_fields; f++) {
            const bool is_read = (t->actor.want >> f & 1) != 0;
            t->field[f] = is_read && t->arena != NULL ? (char *)t->arena + at : NULL;
            if (is_read) {
                at += (dt_samples_field_bytes(s, f, cap) + 63) / 64 * 64;
            }
        }
        if (pass == 0) {
            *bytes_p = at;
            DT_TRY(dt_arena_map(at, &t->arena));
        }
    }
    return DT_OK;
}

/* What learning reads of the fields of kept values is kept; where a trained parameter is behind them it reads none. */
static dt_status choose_kept(dt_rollout *r, const dt_trainer *t)
{
    char text[DT_ROLLOUT_MAX_KEPT * sizeof(r->kept_text->name)] = "";
    size_t bytes = 0, at = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->d.n_kept; k++) {
        if (dt_graph_reads(dt_trainer_graph(t), r->kept[k].name)) {
            DT_TRY(dt_buffer_keep(&r->buffer, k));
            DT_TRY(r->d.has_ahead ? dt_buffer_keep(&r->next, k) : DT_OK);
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", n > 0 ? ", " : "", r->kept[k].name);
            bytes += r->buffer.n_places * r->buffer.kept_columns[k] * sizeof(float);
            r->keep[n++] = r->kept[k].name;
        }
    }
    if (n > 0 && dt_comm_rank(r->stage->d.comm) == 0) {
        dt_log(DT_LOG_INFO, "kept with the samples: %s (%.1f MB); frozen models are not asked again", text,
               (double)bytes / 1e6);
    }
    return DT_OK;
}

/* Where acting finds what is kept. */
static dt_status find_kept(const dt_rollout *r, dt_track *t)
{
    for (uint32_t k = 0; k < r->d.n_kept; k++) {
        const dt_view *v = dt_policy_output(r->policy, t->number, r->kept[k].name);
        t->kept[k] = r->buffer.kept[k] != NULL ? v : NULL;
        if (r->buffer.kept[k] != NULL &&
            (v == NULL || v->dtype != DT_F32 || v->rank != 2 || v->dim[1] != (int64_t)r->buffer.kept_columns[k])) {
            return DT_FAIL(DT_ESHAPE, "what the phase records as kept \"%s\" is not [%s] f32", r->kept[k].name,
                           r->kept[k].dims);
        }
    }
    return DT_OK;
}

static dt_status make_track(dt_rollout *r, const int64_t *cap, uint32_t want, uint32_t number)
{
    dt_track *t = &r->track[number];
    t->r = r;
    t->number = number;
    DT_TRY(find_kept(r, t));
    t->index = dt_alloc_n(r->last - r->first, sizeof(*t->index));
    if (t->index == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->instances);
    }
    t->actor = (dt_actor){.user = t, .run = run_policy, .field = t->field, .want = want};
    const dt_view *log_std = t->view[OUT_LOG_STD];
    t->actor.log_std_row = log_std != NULL && log_std->rank == 2 ? r->env->layout.spec.n_continuous : 0;
    return map_fields(r, cap, t, &r->arena_bytes);
}

/* Threads that act, each with its own instances from the first step to the last: no step waits for another thread.
 * Where that cannot be - one place for the rows of all instances, processes or threads of their own for environments -
 * one thread acts for all. */
static uint32_t tracks_of(const dt_rollout *r)
{
    const uint32_t own = r->last - r->first, threads = r->stage->d.threads;
    const bool is_apart = r->env->layout.spec.n_symbols == 0 && r->workers == 0 && !r->env->in_process;
    return !is_apart || threads < 1 ? 1 : threads < own ? threads : own;
}

static dt_status make_policy(dt_rollout *r, dt_trainer *t)
{
    int64_t cap[2 + DT_ENV_MAX_SYMBOLS];
    dt_samples acting = r->data.source;
    acting.n_fields -= r->d.n_kept; /* the last ones: what acting is about to compute */
    uint32_t want = 0;
    const int32_t n = (int32_t)r->env->layout.spec.n_symbols;
    const uint32_t own = r->last - r->first;
    for (int32_t k = 0; k <= n; k++) {
        cap[k] = dt_layout_cap(&r->env->layout, k) * own;
    }
    cap[n + 1] = own;
    DT_TRY(choose_kept(r, t));
    DT_TRY(dt_rollout_share_prepare(r, t));
    DT_TRY(dt_policy_create(t, &acting, cap, tracks_of(r), r->keep, false, &r->policy));
    r->track = dt_alloc_n(dt_policy_places(r->policy), sizeof(*r->track));
    if (r->track == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a rollout of %u instances", r->instances);
    }
    r->n_tracks = dt_policy_places(r->policy);
    for (uint32_t i = 0; i < r->n_tracks; i++) {
        for (uint32_t o = 0; o < DT_ROLLOUT_OUTPUTS; o++) {
            r->track[i].view[o] = dt_policy_output(r->policy, i, output_name[o]);
        }
    }
    DT_TRY(check_outputs(r));
    DT_TRY(check_fields(r, &want));
    for (uint32_t i = 0; i < r->n_tracks; i++) {
        DT_TRY(make_track(r, cap, want, i));
    }
    return r->d.has_ahead ? dt_rollout_ahead_prepare(r) : DT_OK;
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
            if (b->done[i] == 0 || isnan(x)) {
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
    *std = n > 1 ? sqrt(squares / (n - 1)) : n > 0 ? 0 : NAN;
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
        all.episodes += b->done[i] != 0;
    }
    for (size_t i = at; i < at + n; i++) {
        const bool acted = (b->flag[i] & DT_STEP_ACTED) != 0;
        changed += acted && (b->report[i] & DT_REPORT_CHANGED) != 0;
        infeasible += acted && (b->report[i] & DT_REPORT_INFEASIBLE) != 0;
    }
    const double rows = all.agent_steps > 0 ? (double)all.agent_steps : 1;
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

/* Episodes of all ranks that would have gone on behind the environment's own max_steps. */
static uint32_t count_cut(const dt_buffer *b)
{
    const size_t first = dt_buffer_slot(b, 0, 0), end = first + (size_t)b->d.steps * b->d.instances;
    uint32_t n = 0;
    for (size_t i = first; i < end; i++) {
        n += b->done[i] == DT_DONE_CUT;
    }
    return n;
}

dt_status dt_rollout_prepare(dt_rollout *r, dt_trainer *t)
{
    return r->policy == NULL ? make_policy(r, t) : DT_OK;
}

dt_status dt_rollout_policy(dt_rollout *r, dt_trainer *t)
{
    DT_TRY(dt_rollout_prepare(r, t));
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_apply(&r->obs[i]);
    }
    return dt_policy_begin(r->policy);
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
    DT_TRY(dt_rollout_learn_observations(r));
    if (r->d.normalise_reward) {
        normalise_rewards(r);
    }
    estimate(r);
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
    const uint32_t n_cut = count_cut(r->all);
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

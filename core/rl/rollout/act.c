/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", acting: a round of all instances of this rank, in turn with learning, or ahead: by
 * threads of its own (on a device: by turns between the steps of learning), with parameters that stay as they were when
 * it began, into a buffer of its own. Nothing that a
 * checkpoint keeps changes before a collect takes the round, so that a run that ends in between acts it once more.
 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_RESET = 0x72657374, STREAM_ACT = 0x61637431 }; /* "rest", "act1": names of random numbers */

/* ---- instances --------------------------------------------------------------------------------------------------- */

uint64_t dt_rollout_seed(void *user, uint32_t number, uint64_t episode)
{
    const dt_rollout *r = user;
    const dt_rng_key key = {.seed = r->stage->d.seed,
                            .phase = (uint32_t)r->stage->d.index,
                            .op = STREAM_RESET,
                            .step = episode,
                            .sample = number};
    uint32_t w[4];
    dt_philox(&key, 0, w);
    return (uint64_t)w[0] << 32 | w[1];
}

static dt_status make_instances(dt_rollout *r)
{
    if (r->env->n_mix > 0 && r->first % r->env->n_mix != r->env->number) {
        DT_TRY(dt_env_remake(r->env, &r->env->training, r->first));
    }
    r->self[0] = r->env->self;
    DT_TRY(dt_env_make(r->env, &r->env->training, r->first + 1, r->last - r->first - 1, r->self + 1));
    const dt_vector_desc d = {.kind = r->env->kind,
                              .n_kinds = r->env->n_kinds,
                              .layout = &r->env->layout,
                              .self = r->self,
                              .n = r->last - r->first,
                              .first = r->first,
                              .workers = r->workers,
                              .groups = dt_rollout_groups(r, r->last - r->first),
                              .max_steps_from = "its own spec (max_steps)",
                              .n_cut = &r->env->n_cut,
                              .user = r,
                              .seed = dt_rollout_seed,
                              .is_opponent = r->buffer.d.is_opponent,
                              .tells_episodes = true};
    DT_TRY(dt_vector_create(&d, &r->vector));
    return r->is_restored ? dt_rollout_replay(r) : dt_vector_step(r->vector);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

void dt_rollout_scale(dt_rollout *r, dt_buffer *b)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments *m = &r->obs[i];
        if (m->n > 0) {
            b->scale[i] = (dt_buffer_scale){.mean = m->shift, .scale = m->scale, .clip = (float)r->d.clip_obs};
        }
    }
}

/* What holds for a round is kept apart: evaluations look at newer statistics while the round is still learnt from, and
 * so does a round ahead of it. */
static void hold_scale(dt_rollout *r, dt_buffer *b)
{
    dt_rollout_scale(r, b);
    r->side = 1 - r->side;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_buffer_scale *s = &b->scale[i];
        const size_t D = r->obs[i].columns;
        if (s->mean != NULL) {
            float *const held = r->held[i] + 2 * D * r->side;
            memcpy(held, s->mean, D * sizeof(float));
            memcpy(held + D, s->scale, D * sizeof(float));
            s->mean = held;
            s->scale = held + D;
        }
    }
}

/* The policy and the instances are ready; b: where it goes. */
static void make_ready(dt_rollout *r, dt_buffer *b, bool (*stops)(void *user), void *stops_user)
{
    hold_scale(r, b);
    for (uint32_t i = 0; i < r->n_tracks; i++) {
        dt_track *k = &r->track[i];
        dt_collector *c = &k->collector;
        *c = (dt_collector){.vector = r->vector, .buffer = b, .actor = &k->own.actor, .index = k->index};
        c->key = (dt_rng_key){.seed = r->stage->d.seed, .phase = (uint32_t)r->stage->d.index, .op = STREAM_ACT};
        c->bootstraps = true;
        c->is_squashed = r->is_squashed;
        c->opponents = r->opponents != NULL ? &k->opponents : NULL;
        c->stops = stops;
        c->stops_user = stops_user;
    }
    dt_buffer_begin(b, &r->buffer);
}

static dt_status track_job(void *user, uint32_t worker)
{
    dt_rollout *r = user;
    if (worker < r->n_tracks) {
        dt_track *t = &r->track[worker];
        dt_error_take(&t->error, dt_collect_groups(&t->collector, r->collects * r->d.steps, worker, worker + 1));
    }
    return DT_OK;
}

/* Of several failures the one of the earliest step is told, as one track would. */
static dt_status end_tracks(dt_rollout *r)
{
    dt_track *failed = NULL;
    for (uint32_t i = 0; i < r->n_tracks; i++) {
        dt_track *k = &r->track[i];
        if (k->error.status < 0 && (failed == NULL || k->collector.step < failed->collector.step)) {
            failed = k;
        }
    }
    if (failed != NULL) {
        return dt_error_put(&failed->error);
    }
    r->track[0].collector.buffer->is_filled = true;
    return DT_OK;
}

/* One track has all groups. */
static dt_status run_track(dt_rollout *r)
{
    dt_collector *c = &r->track[0].collector;
    DT_TRY(dt_collect_groups(c, r->collects * r->d.steps, 0, dt_vector_groups(r->vector)));
    c->buffer->is_filled = true;
    return DT_OK;
}

/* The parameters that acted when a checkpoint was made, where a round was ahead then. */
static void restore_policy(dt_rollout *r)
{
    if (r->ahead.restored != NULL && dt_policy_load(r->policy, r->ahead.restored, r->ahead.restored_bytes) < 0) {
        dt_log(DT_LOG_WARN, "the next round uses the current parameters: %s", dt_error_text());
        dt_error_clear();
    }
}

dt_status dt_rollout_act(dt_rollout *r, dt_trainer *t)
{
    restore_policy(r);
    if (r->vector == NULL) {
        DT_TRY(make_instances(r));
    }
    DT_TRY(r->opponents != NULL ? dt_opponents_begin(r->opponents) : DT_OK);
    make_ready(r, &r->buffer, r->stage->d.stops, r->stage->d.stops_user);
    r->track[0].collector.reports_activity = true; /* the main thread's */
    if (r->n_tracks == 1) {
        return run_track(r);
    }
    DT_TRY(dt_trainer_share(t, track_job, r));
    return end_tracks(r);
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

dt_status dt_rollout_ahead_prepare(dt_rollout *r)
{
    DT_TRY(dt_policy_make_room(r->policy));
    return r->n_tracks > 1 ? dt_pool_start(r->n_tracks, &r->ahead.pool) : DT_OK;
}

static bool stops_ahead(void *user)
{
    const dt_rollout *r = user;
    const dt_stage_desc *d = &r->stage->d;
    return atomic_load(&r->ahead.is_dropped) || (d->stops != NULL && d->stops(d->stops_user));
}

static dt_status run_ahead(dt_rollout *r)
{
    if (r->ahead.pool == NULL) {
        return run_track(r);
    }
    DT_TRY(dt_pool_run(r->ahead.pool, track_job, r));
    return end_tracks(r);
}

static void *ahead_main(void *arg)
{
    dt_rollout *r = arg;
    const uint32_t rank = dt_comm_rank(r->stage->d.comm);
    const double from = dt_clock_s();
    char prefix[32] = "";
    dt_trace_thread("collector", rank);
    if (dt_comm_in_process(r->stage->d.comm) > 1) {
        snprintf(prefix, sizeof(prefix), "rank %u", rank);
        dt_log_prefix_set(prefix);
    }
    DT_TRACE_N("rollout", "act ahead", "round", r->collects + 1);
    dt_error_take(&r->ahead.error, run_ahead(r));
    r->ahead.beside_s = dt_clock_s() - from;
    return NULL;
}

/* A device is asked by the thread that learns, between steps; others step environments. */
static bool is_in_turns(const dt_rollout *r)
{
    return dt_policy_is_asked(r->policy);
}

static void take_turns(dt_rollout *r, uint64_t n)
{
    dt_collector *c = &r->track[0].collector;
    const double from = dt_clock_s();
    DT_TRACE_N("rollout", "act ahead", "round", r->collects + 1);
    const dt_status st = dt_collect_turns(c, n);
    r->ahead.beside_s += dt_clock_s() - from;
    if (st == DT_OK) {
        return; /* there are more */
    }
    dt_error_take(&r->ahead.error, st < 0 ? st : DT_OK);
    c->buffer->is_filled = st == DT_DONE;
    r->ahead.is_running = false;
}

/* As many as make a round in an epoch of learning. */
void dt_rollout_ahead_beside(dt_rollout *r)
{
    if (r->ahead.is_running && is_in_turns(r)) {
        const dt_collector *c = &r->track[0].collector;
        const uint64_t steps = dt_trainer_steps_per_epoch(r->stage->trainer);
        take_turns(r, c->turns / (steps > 0 ? steps : 1) + 1);
    }
}

static dt_status begin_ahead(dt_rollout *r)
{
    if (!r->d.has_ahead) {
        return DT_FAIL(DT_EPLUGIN, "a round is started ahead in a rollout that was created without has_ahead");
    }
    if (r->vector == NULL || r->ahead.is_begun) {
        return DT_FAIL(DT_EPLUGIN, "a round is started ahead %s",
                       r->ahead.is_begun ? "while one is in progress; collect it first" : "before the first collect");
    }
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        dt_moments_apply(&r->obs[i]);
    }
    DT_TRY(dt_policy_hold(r->policy));
    DT_TRY(r->opponents != NULL ? dt_opponents_begin(r->opponents) : DT_OK);
    make_ready(r, &r->next, stops_ahead, r);
    if (is_in_turns(r)) {
        dt_collect_open(&r->track[0].collector, r->collects * r->d.steps, 0, dt_vector_groups(r->vector));
        r->ahead.beside_s = 0;
        r->ahead.is_begun = r->ahead.is_running = true;
        return DT_OK;
    }
    if (pthread_create(&r->ahead.thread, NULL, ahead_main, r) != 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "the system refused to start the thread that collects during learning");
    }
    r->ahead.is_begun = r->ahead.is_running = true;
    return DT_OK;
}

dt_status dt_rollout_ahead_begin(dt_rollout *r, dt_train *t)
{
    (void)t; /* the policy has it */
    return dt_comm_agree(r->stage->d.comm, begin_ahead(r));
}

void dt_rollout_ahead_rest(dt_rollout *r)
{
    if (r->ahead.is_running && is_in_turns(r)) {
        const double beside = r->ahead.beside_s;
        take_turns(r, UINT64_MAX);
        r->ahead.beside_s = beside; /* the rest is waited for */
    } else if (r->ahead.is_running) {
        const double from = dt_clock_s();
        DT_TRACE("rollout", "wait for the round ahead");
        pthread_join(r->ahead.thread, NULL);
        r->ahead.is_running = false;
        r->ahead.beside_s -= dt_clock_s() - from;
    }
}

dt_status dt_rollout_ahead_wait(dt_rollout *r)
{
    dt_rollout_ahead_rest(r);
    return r->ahead.is_begun ? dt_error_put(&r->ahead.error) : DT_OK;
}

void dt_rollout_ahead_take(dt_rollout *r)
{
    if (r->ahead.is_begun) {
        const dt_buffer taken = r->next;
        r->next = r->buffer;
        r->buffer = taken;
    }
    r->ahead.is_begun = false;
    dt_free(r->ahead.restored);
    r->ahead.restored = NULL;
}

void dt_rollout_ahead_drop(dt_rollout *r)
{
    atomic_store(&r->ahead.is_dropped, true);
    dt_rollout_ahead_rest(r);
}

void dt_rollout_ahead_fini(dt_rollout *r)
{
    dt_rollout_ahead_drop(r);
    dt_pool_stop(r->ahead.pool);
    dt_free(r->ahead.restored);
}

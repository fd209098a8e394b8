/* SPDX-License-Identifier: Apache-2.0
 *
 * A round ahead, acted while the one before is used for learning: by threads of its own (on a device: in turns between
 * the steps of learning), with the parameters of when it began, into a buffer of its own. Nothing that a checkpoint
 * keeps changes before a collect takes the round: a run that ends in between acts it again. See rollout.h.
 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#include <stdio.h>

dt_status dt_round_ahead_prepare(dt_rollout *r)
{
    DT_TRY(dt_policy_allocate_frozen(r->acting.policy));
    return r->acting.n_tracks > 1 ? dt_pool_start(r->acting.n_tracks, &r->ahead.pool) : DT_OK;
}

static bool is_run_stopped(void *user)
{
    const dt_rollout *r = user;
    const dt_stage_desc *d = &r->stage->d;
    return atomic_load(&r->ahead.is_dropped) || (d->stops != NULL && d->stops(d->stops_user));
}

static void *ahead_main(void *arg)
{
    dt_rollout *r = arg;
    const uint32_t rank = dt_comm_rank(r->stage->d.comm);
    const double from = dt_clock_s();
    char prefix[32] = "";
    dt_trace_thread("collector", rank);
    if (dt_comm_process_size(r->stage->d.comm) > 1) {
        snprintf(prefix, sizeof(prefix), "rank %u", rank);
        dt_log_prefix_set(prefix);
    }
    DT_TRACE_N("rollout", "act ahead", "round", r->collects + 1);
    dt_error_save(&r->ahead.error, dt_acting_run_round(r, NULL, r->ahead.pool));
    r->ahead.hidden_s = dt_clock_s() - from;
    return NULL;
}

/* A device is asked by the thread that learns, between steps; others step environments. */
static bool is_run_in_turns(const dt_rollout *r)
{
    return dt_policy_is_async(r->acting.policy);
}

static void run_turns(dt_rollout *r, uint64_t n)
{
    dt_collector *c = &r->acting.track[0].collector;
    const double from = dt_clock_s();
    DT_TRACE_N("rollout", "act ahead", "round", r->collects + 1);
    const dt_status st = dt_collect_run_turns(c, n);
    r->ahead.hidden_s += dt_clock_s() - from;
    if (st == DT_OK) {
        return; /* there are more */
    }
    dt_error_save(&r->ahead.error, st < 0 ? st : DT_OK);
    c->buffer->is_filled = st == DT_DONE;
    r->ahead.is_running = false;
}

/* As many as make a round in an epoch of learning. */
void dt_round_ahead_continue(dt_rollout *r)
{
    if (r->ahead.is_running && is_run_in_turns(r)) {
        const dt_collector *c = &r->acting.track[0].collector;
        const uint64_t steps = dt_trainer_steps_per_epoch(r->stage->trainer);
        run_turns(r, c->turns / (steps > 0 ? steps : 1) + 1);
    }
}

static dt_status begin_ahead(dt_rollout *r)
{
    if (!r->d.has_ahead) {
        return DT_FAIL(DT_EPLUGIN, "a round is started ahead in a rollout that was created without has_ahead");
    }
    if (r->acting.vector == NULL || r->ahead.is_begun) {
        return DT_FAIL(DT_EPLUGIN, "a round is started ahead %s",
                       r->ahead.is_begun ? "while one is in progress; collect it first" : "before the first collect");
    }
    dt_obs_stats_apply(&r->stats);
    DT_TRY(dt_policy_freeze_params(r->acting.policy));
    DT_TRY(r->opponents != NULL ? dt_opponents_begin_round(r->opponents) : DT_OK);
    dt_acting_begin_round(r, &r->next, is_run_stopped, r);
    if (is_run_in_turns(r)) {
        dt_collect_begin(&r->acting.track[0].collector, r->collects * r->d.steps, 0,
                         dt_vector_count_groups(r->acting.vector));
        r->ahead.hidden_s = 0;
        r->ahead.is_begun = r->ahead.is_running = true;
        return DT_OK;
    }
    if (pthread_create(&r->ahead.thread, NULL, ahead_main, r) != 0) {
        return DT_FAIL(DT_EUNSUPPORTED, "the system refused to start the thread that collects during learning");
    }
    r->ahead.is_begun = r->ahead.is_running = true;
    return DT_OK;
}

dt_status dt_round_ahead_begin(dt_rollout *r, dt_train *t)
{
    (void)t; /* the policy has it */
    return dt_comm_agree(r->stage->d.comm, begin_ahead(r));
}

void dt_round_ahead_finish(dt_rollout *r)
{
    if (r->ahead.is_running && is_run_in_turns(r)) {
        const double hidden = r->ahead.hidden_s;
        run_turns(r, UINT64_MAX);
        r->ahead.hidden_s = hidden; /* the rest is waited for */
    } else if (r->ahead.is_running) {
        const double from = dt_clock_s();
        DT_TRACE("rollout", "wait for the round ahead");
        pthread_join(r->ahead.thread, NULL);
        r->ahead.is_running = false;
        r->ahead.hidden_s -= dt_clock_s() - from;
    }
}

dt_status dt_round_ahead_wait(dt_rollout *r)
{
    dt_round_ahead_finish(r);
    return r->ahead.is_begun ? dt_error_restore(&r->ahead.error) : DT_OK;
}

void dt_round_ahead_swap(dt_rollout *r)
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

void dt_round_ahead_cancel(dt_rollout *r)
{
    atomic_store(&r->ahead.is_dropped, true);
    dt_round_ahead_finish(r);
}

void dt_round_ahead_fini(dt_rollout *r)
{
    dt_round_ahead_cancel(r);
    dt_pool_stop(r->ahead.pool);
    dt_free(r->ahead.restored);
}

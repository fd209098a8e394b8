/* SPDX-License-Identifier: Apache-2.0
 *
 * A round of all instances of this rank; see rollout.h.
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

static uint64_t seed_of_episode(void *user, uint32_t number, uint64_t episode)
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
    if (r->env->n_mix > 0 && r->split.first % r->env->n_mix != r->env->number) {
        DT_TRY(dt_env_recreate_first(r->env, &r->env->training, r->split.first));
    }
    r->acting.self[0] = r->env->self;
    DT_TRY(dt_env_create_others(r->env, r->split.first + 1, r->split.last - r->split.first - 1, r->acting.self + 1));
    const dt_vector_desc d = {.kind = r->env->kind,
                              .n_kinds = r->env->n_kinds,
                              .layout = &r->env->layout,
                              .self = r->acting.self,
                              .n = r->split.last - r->split.first,
                              .first = r->split.first,
                              .workers = r->acting.workers,
                              .groups = dt_acting_groups(r, r->split.last - r->split.first),
                              .max_steps_from = "its own spec (max_steps)",
                              .n_cut = &r->env->n_cut,
                              .user = r,
                              .seed = seed_of_episode,
                              .is_opponent = r->buffer.d.is_opponent,
                              .passes_episode = true};
    DT_TRY(dt_vector_create(&d, &r->acting.vector));
    if (!r->acting.is_restored) {
        return dt_vector_step(r->acting.vector);
    }
    DT_TRY(dt_episode_logs_play(&r->episodes, r->acting.vector, &r->buffer, r->env->comp->desc.id));
    dt_carried_restore(r);
    r->acting.is_restored = false;
    return DT_OK;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

void dt_acting_begin_round(dt_rollout *r, dt_buffer *b, bool (*stops)(void *user), void *stops_user)
{
    dt_obs_stats_fix_scale(&r->stats, b);
    for (uint32_t i = 0; i < r->acting.n_tracks; i++) {
        dt_track *k = &r->acting.track[i];
        dt_collector *c = &k->collector;
        *c = (dt_collector){.vector = r->acting.vector, .buffer = b, .actor = &k->own, .index = k->index};
        c->key = (dt_rng_key){.seed = r->stage->d.seed, .phase = (uint32_t)r->stage->d.index, .op = STREAM_ACT};
        c->bootstraps = true;
        c->is_squashed = r->acting.is_squashed;
        c->opponents = r->opponents != NULL ? &k->opponents : NULL;
        c->stops = stops;
        c->stops_user = stops_user;
    }
    dt_buffer_begin_round(b, &r->buffer);
}

static dt_status run_track_job(void *user, uint32_t worker)
{
    dt_rollout *r = user;
    if (worker < r->acting.n_tracks) {
        dt_track *t = &r->acting.track[worker];
        dt_error_save(&t->error, dt_collect_groups(&t->collector, r->collects * r->d.steps, worker, worker + 1));
    }
    return DT_OK;
}

dt_status dt_acting_run_round(dt_rollout *r, dt_trainer *t, dt_pool *pool)
{
    dt_acting *x = &r->acting;
    dt_buffer *b = x->track[0].collector.buffer;
    const dt_track *failed = NULL;
    if (x->n_tracks == 1) { /* which has all groups */
        DT_TRY(
            dt_collect_groups(&x->track[0].collector, r->collects * r->d.steps, 0, dt_vector_count_groups(x->vector)));
        b->is_filled = true;
        return DT_OK;
    }
    DT_TRY(pool != NULL ? dt_pool_run(pool, run_track_job, r) : dt_trainer_run_on_workers(t, run_track_job, r));
    for (uint32_t i = 0; i < x->n_tracks; i++) {
        const dt_track *k = &x->track[i];
        if (k->error.status < 0 && (failed == NULL || k->collector.step < failed->collector.step)) {
            failed = k;
        }
    }
    DT_TRY(failed != NULL ? dt_error_restore(&failed->error) : DT_OK);
    b->is_filled = true;
    return DT_OK;
}

/* The parameters that acted when a checkpoint was made, where a round was ahead then. */
static void restore_acting_policy(dt_rollout *r)
{
    if (r->ahead.restored != NULL && dt_policy_load(r->acting.policy, r->ahead.restored, r->ahead.restored_bytes) < 0) {
        dt_log(DT_LOG_WARN, "the next round uses the current parameters: %s", dt_error_text());
        dt_error_clear();
    }
}

dt_status dt_acting_collect(dt_rollout *r, dt_trainer *t)
{
    restore_acting_policy(r);
    DT_TRY(r->acting.vector == NULL ? make_instances(r) : DT_OK);
    DT_TRY(r->opponents != NULL ? dt_opponents_begin_round(r->opponents) : DT_OK);
    dt_acting_begin_round(r, &r->buffer, r->stage->d.stops, r->stage->d.stops_user);
    r->acting.track[0].collector.reports_activity = true; /* the main thread's */
    return dt_acting_run_round(r, t, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * One optimizer step, by whichever backend: the feed of shards, their distribution to workers, and what a step reports.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <math.h>

/* ---- shards to workers ------------------------------------------------------------------------------------------- */

typedef struct shard_loop {
    dt_trainer *t;
    uint32_t workers;
    dt_status (*run)(void *user, uint32_t worker, uint32_t i);
    void *user;
} shard_loop;

static dt_status shard_loop_job(void *user, uint32_t worker)
{
    const shard_loop *l = user;
    dt_trainer *t = l->t;
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    t->workers.waited[worker] = 0;
    while (worker < l->workers) {
        const uint32_t i = atomic_fetch_add(&t->scratch.next_shard, 1);
        if (i >= own || atomic_load(&t->scratch.failed)) {
            break;
        }
        const dt_status st = l->run(l->user, worker, i);
        if (st < 0) {
            atomic_store(&t->scratch.failed, true);
            return st;
        }
    }
    return DT_OK;
}

dt_status dt_run_shards(dt_trainer *t, uint32_t workers, dt_status (*run)(void *user, uint32_t worker, uint32_t i),
                        void *user)
{
    shard_loop l = {.t = t, .workers = workers, .run = run, .user = user};
    atomic_store(&t->scratch.next_shard, 0);
    atomic_store(&t->scratch.failed, false);
    return dt_pool_run(t->workers.pool, shard_loop_job, &l);
}

/* ---- the feed ---------------------------------------------------------------------------------------------------- */

uint64_t dt_feed_number(const dt_trainer *t, uint32_t i)
{
    return (t->state.step - t->workers.feed_first) * (t->workers.shard_end - t->workers.shard_begin) + i;
}

/* Nothing is read ahead beyond a window of a stream. */
static uint64_t last_readable_step(const dt_trainer *t)
{
    const uint64_t all = dt_trainer_steps(t), window = (t->workers.window + 1) * t->state.steps_per_epoch;
    return t->workers.has_window && window < all ? window : all;
}

static dt_feed_desc make_feed_desc(const dt_trainer *t)
{
    return (dt_feed_desc){.source = t->backend->feed_source(t),
                          .seed = t->c.seed,
                          .first_step = t->state.step,
                          .sampler = &t->state.sampler,
                          .last_step = last_readable_step(t),
                          .phase = t->c.phase,
                          .shards = t->c.shards,
                          .shard_begin = t->workers.shard_begin,
                          .shard_end = t->workers.shard_end,
                          .slots = t->backend->feed_slots(t),
                          .threads = t->c.readers > 0 ? t->c.readers : 1,
                          .augment = 1};
}

dt_status dt_create_readers(dt_trainer *t)
{
    dt_feed_desc d = make_feed_desc(t);
    t->workers.live = *t->d.source;
    dt_mark_unread_fields(&t->workers.live, t->train.plan);
    d.source = &t->workers.live;
    d.augment = t->workers.live.n_whole > 0 ||
                (t->workers.live.keyed >= 0 && (t->workers.live.skipped >> t->workers.live.keyed & 1) == 0);
    t->workers.reader = dt_alloc_n(t->workers.active, sizeof(dt_feed_reader *));
    if (t->workers.reader == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u readers", t->workers.active);
    }
    for (uint32_t i = 0; i < t->workers.active; i++) {
        DT_TRY(dt_feed_reader_create(&d, &t->workers.reader[i]));
    }
    return DT_OK;
}

static dt_status start_or_resume_feed(dt_trainer *t)
{
    if (t->workers.reader != NULL || (t->workers.feed != NULL && !t->workers.feed_is_paused)) {
        return DT_OK;
    }
    /* a device is fed ahead of steps, with whichever samples come */
    DT_TRY(t->backend->is_fed_ahead ? dt_fetch_range(t, t->d.source, 0, t->d.source->count) : DT_OK);
    t->workers.feed_first = t->state.step;
    t->workers.feed_is_paused = false;
    if (t->workers.feed != NULL) {
        dt_feed_resume(t->workers.feed, t->state.step, last_readable_step(t));
        return DT_OK;
    }
    const dt_feed_desc d = make_feed_desc(t);
    return dt_feed_start(&d, &t->workers.feed);
}

void dt_trainer_discard_prefetched(dt_trainer *t)
{
    if (t->workers.feed != NULL && !t->workers.feed_is_paused) {
        dt_feed_pause(t->workers.feed);
        t->workers.feed_is_paused = true;
    }
    if (t->mixed != NULL) {
        dt_mixed_draw_stored(t->mixed, t->c.seed, t->c.phase, t->state.step / t->state.steps_per_epoch);
    }
}

/* [collective] The window of a stream that the step is in can be read. DT_DONE: the stream has ended. */
static dt_status advance_window(dt_trainer *t)
{
    const dt_samples *s = t->d.source;
    const uint64_t window = t->state.step / t->state.steps_per_epoch;
    if (s->turn == NULL || (t->workers.has_window && t->workers.window == window)) {
        return DT_OK;
    }
    dt_trainer_discard_prefetched(t);
    t->workers.has_window = false;
    const dt_status st = s->turn(s->self, window);
    t->workers.has_window = st == DT_OK;
    t->workers.window = window;
    return st;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

void dt_report_losses(dt_trainer *t, uint32_t groups, const double *total, const double *norm, dt_step_report *out)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    out->n_losses = 0;
    out->loss = 0;
    t->scratch.reported = groups;
    for (uint32_t i = 0; i < n; i++) {
        if ((groups >> loss[i].group & 1) == 0) {
            continue; /* what was last reported stays */
        }
        t->scratch.step_loss[i] = total[i] / norm[i];
        out->loss += loss[i].weight * t->scratch.step_loss[i];
        if (out->n_losses < DT_STEP_MAX_LOSSES) {
            out->loss_name[out->n_losses] = loss[i].name;
            out->loss_value[out->n_losses++] = t->scratch.step_loss[i];
        }
    }
}

static dt_status skip_to_step(dt_trainer *t, uint64_t step)
{
    DT_TRY(dt_trainer_synchronize(t)); /* the device forgets which of its buffers held which step */
    dt_trainer_discard_prefetched(t);
    t->state.bypassed += step - t->state.step;
    t->state.step = step;
    return DT_OK;
}

static void report_position(const dt_trainer *t, dt_step_report *out)
{
    out->step = t->state.step;
    out->steps = dt_trainer_steps(t);
    out->epoch = (t->state.step - 1) / t->state.steps_per_epoch;
    out->epochs = t->c.epochs;
    out->epoch_end = t->state.step % t->state.steps_per_epoch == 0;
}

/* Without a row there is no update: moments and weight decay would move the parameters all the same. */
static dt_status bypass_empty_step(dt_trainer *t, dt_step_report *out)
{
    DT_TRY(skip_to_step(t, t->state.step + 1));
    t->state.empty_steps++;
    report_position(t, out);
    out->samples = 0;
    out->n_losses = 0;
    out->loss = out->grad_norm = out->learning_rate = (double)NAN;
    return DT_OK;
}

static dt_status run_and_reduce(dt_trainer *t)
{
    return t->backend->reduce(t, t->backend->run_shards(t));
}

static dt_status compute_step(dt_trainer *t, dt_step_report *out)
{
    DT_TRY(t->backend->begin(t));
    dt_status st = run_and_reduce(t);
    if (dt_trainer_shrink_on_enomem(t, st)) { /* all ranks do, or none */
        DT_TRY(start_or_resume_feed(t));
        st = run_and_reduce(t);
    }
    DT_TRY(dt_trainer_explain_memory(t, st));
    DT_TRY(t->backend->update(t, out));
    t->state.step++;
    return t->backend->read_result(t, out);
}

dt_status dt_trainer_step(dt_trainer *t, dt_step_report *out)
{
    return dt_trainer_step_groups(t, UINT32_MAX >> (32 - t->state.n_groups), out);
}

dt_status dt_trainer_step_groups(dt_trainer *t, uint32_t groups, dt_step_report *out)
{
    const double begin = dt_clock_s();
    DT_TRACE_N("step", "training step", "step", t->state.step + 1);
    DT_TRY(dt_groups_select(t, groups));
    if (t->state.step >= dt_trainer_steps(t)) {
        return DT_DONE;
    }
    const dt_status turned = advance_window(t);
    if (turned != DT_OK) {
        return turned;
    }
    t->state.params_version++; /* they may have been set since */
    DT_TRY(dt_bind_step_inputs(t, &t->train));
    bool is_empty = false;
    DT_TRY(dt_prepare_batch(t, &is_empty));
    if (is_empty) {
        return bypass_empty_step(t, out);
    }
    dt_status st = start_or_resume_feed(t);
    st = dt_trainer_shrink_on_enomem(t, st) ? start_or_resume_feed(t) : st;
    DT_TRY(dt_trainer_explain_memory(t, st));
    DT_TRY(compute_step(t, out));
    t->state.params_version++;
    report_position(t, out);
    out->samples = dt_sampler_batch(&t->state.sampler, t->state.step - 1);
    t->times.data_wait = 0;
    for (uint32_t i = 0; i < t->c.threads; i++) {
        t->times.data_wait += t->workers.waited[i] / t->c.threads;
    }
    t->times.step = dt_clock_s() - begin;
    return DT_OK;
}

dt_status dt_trainer_bypass_step(dt_trainer *t)
{
    return skip_to_step(t, t->state.step + 1);
}

dt_status dt_trainer_seek(dt_trainer *t, uint64_t step)
{
    if (step < t->state.step || step > dt_trainer_steps(t)) {
        return DT_FAIL(DT_EINVAL, "cannot continue at step %llu: it is outside %llu (now) .. %llu (the last one)",
                       (unsigned long long)step, (unsigned long long)t->state.step,
                       (unsigned long long)dt_trainer_steps(t));
    }
    return step > t->state.step ? skip_to_step(t, step) : DT_OK;
}

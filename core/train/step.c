/* SPDX-License-Identifier: Apache-2.0
 *
 * One optimizer step; see trainer.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/device/device.h"
#include "train/device/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* The last slice of a leaf: what backward ends with is summed while it goes on. */
typedef struct shard_progress {
    dt_trainer *t;
    uint32_t worker, leaf;
    dt_grad *grad;
    uint32_t n_summed; /* buckets, in their order */
} shard_progress;

static void after_call(void *user, uint32_t call)
{
    shard_progress *e = user;
    e->n_summed = dt_grad_reduce_after_call(e->t, e->leaf, e->grad, e->n_summed, call);
    if (e->worker == 0) {
        dt_reduce_progress(e->t);
    }
}

static dt_status run_shard(dt_trainer *t, uint32_t worker, uint32_t leaf, const dt_feed_shard *in, dt_grad *grad)
{
    const dt_kernel_run run = {.seed = t->c.seed, .step = t->state.step, .phase = t->c.phase, .training = 1};
    const bool is_alone = dt_comm_size(t->d.comm) == 1; /* nothing to send meanwhile */
    double *loss = t->scratch.shard_loss[leaf - t->workers.shard_begin];
    shard_progress end = {.t = t, .worker = worker, .leaf = leaf, .grad = grad};
    DT_TRACE_N("step", "leaf", "leaf", leaf);
    memset(loss, 0, sizeof(t->scratch.shard_loss[0]));
    memset(grad->data, 0, t->state.grad_bytes);
    for (uint32_t i = 0; i < in->n_slices; i++) {
        const dt_exec_feed feed = {.size = in->slice[i].size,
                                   .field = in->slice[i].field,
                                   .step_input = t->train.step_input,
                                   .params = t->state.params,
                                   .grads = grad->data,
                                   .loss_seed = t->scratch.loss_seed,
                                   .loss = loss,
                                   .run = &run,
                                   .after = !is_alone && i + 1 == in->n_slices ? after_call : NULL,
                                   .after_user = &end,
                                   .groups = t->scratch.groups,
                                   .params_version = t->state.params_version};
        DT_TRY(dt_exec_run(t->train.exec[worker], &feed));
    }
    dt_grad_reduce(t, leaf, grad, end.n_summed);
    return DT_OK;
}

static dt_status acquire_shard(dt_trainer *t, uint32_t worker, uint32_t i, uint64_t number, const dt_feed_shard **out_p)
{
    DT_TRACE_N("data", t->workers.reader != NULL ? "read shard" : "data wait", "leaf", t->workers.shard_begin + i);
    return t->workers.reader != NULL ? dt_feed_read(t->workers.reader[worker], t->state.step,
                                                    t->workers.shard_begin + i, t->scratch.batch_index, out_p)
                                     : dt_feed_wait(t->workers.feed, number, out_p, &t->workers.waited[worker]);
}

static dt_status shards_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    t->workers.waited[worker] = 0;
    if (worker >= t->workers.active) {
        return DT_OK;
    }
    for (;;) {
        const uint32_t i = atomic_fetch_add(&t->scratch.next_shard, 1);
        if (i >= own || atomic_load(&t->scratch.failed)) {
            return DT_OK;
        }
        dt_grad *grad = dt_grad_acquire(t); /* grads_needed made enough of them for every schedule */
        const uint64_t number = (t->state.step - t->workers.feed_first) * own + i;
        const dt_feed_shard *in = NULL;
        dt_status st = acquire_shard(t, worker, i, number, &in);
        if (st == DT_OK) {
            st = run_shard(t, worker, t->workers.shard_begin + i, in, grad);
        }
        if (t->workers.reader == NULL) {
            dt_feed_release(t->workers.feed, number);
        }
        if (st < 0) {
            atomic_store(&t->scratch.failed, true);
            return st;
        }
    }
}

/* Nothing is read ahead beyond a window of a stream. */
static uint64_t last_step(const dt_trainer *t)
{
    const uint64_t all = dt_trainer_steps(t), window = (t->workers.window + 1) * t->state.steps_per_epoch;
    return t->workers.has_window && window < all ? window : all;
}

static dt_feed_desc make_feed_desc(const dt_trainer *t)
{
    return (dt_feed_desc){.source = t->device != NULL ? &t->device->source : t->d.source,
                          .seed = t->c.seed,
                          .first_step = t->state.step,
                          .sampler = &t->state.sampler,
                          .last_step = last_step(t),
                          .phase = t->c.phase,
                          .leaves = t->c.leaves,
                          .shard_begin = t->workers.shard_begin,
                          .shard_end = t->workers.shard_end,
                          .slots = dt_trainer_feed_slots(t),
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

dt_status dt_feed_start_or_resume(dt_trainer *t)
{
    if (t->workers.reader != NULL || (t->workers.feed != NULL && !t->workers.feed_is_paused)) {
        return DT_OK;
    }
    /* a device is fed ahead of steps, with whichever samples come */
    DT_TRY(t->device != NULL ? dt_fetch_range(t, t->d.source, 0, t->d.source->count) : DT_OK);
    t->workers.feed_first = t->state.step;
    t->workers.feed_is_paused = false;
    if (t->workers.feed != NULL) {
        dt_feed_resume(t->workers.feed, t->state.step, last_step(t));
        return DT_OK;
    }
    const dt_feed_desc d = make_feed_desc(t);
    return dt_feed_start(&d, &t->workers.feed);
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static dt_status run_shards(dt_trainer *t)
{
    DT_TRACE("step", "leaves");
    DT_TRY(dt_grads_reset(t, true, t->c.half, t->scratch.groups));
    return dt_pool_run(t->workers.pool, shards_job, t);
}

void dt_report_losses(dt_trainer *t, uint32_t groups, const double *total, const double *norm, dt_step_report *out)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    out->n_losses = 0;
    out->loss = 0;
    t->scratch.reported = groups;
    for (uint32_t i = 0; i < n; i++) {
        if ((groups >> loss[i].group & 1) == 0) {
            continue; /* what was told of it last stays */
        }
        t->scratch.step_loss[i] = total[i] / norm[i];
        out->loss += loss[i].weight * t->scratch.step_loss[i];
        if (out->n_losses < DT_STEP_MAX_LOSSES) {
            out->loss_name[out->n_losses] = loss[i].name;
            out->loss_value[out->n_losses++] = t->scratch.step_loss[i];
        }
    }
}

/* A rank that failed takes part in the sums that others may have begun, and says so before anything is made of them. */
static dt_status run_and_reduce_shards(dt_trainer *t)
{
    dt_error why;
    const dt_status mine = run_shards(t);
    const double begin = dt_clock_s();
    dt_error_take(&why, mine);
    t->times.buckets = t->reduce.n_due;
    t->times.early = t->reduce.n_begun;
    const dt_status st = dt_reduce_gradient(t, mine < 0);
    t->times.reduce = dt_clock_s() - begin;
    if (st < 0) {
        return mine < 0 ? dt_error_put(&why) : st;
    }
    return dt_comm_agree(t->d.comm, dt_error_put(&why));
}

static dt_status reduce_losses(dt_trainer *t, const double *norm, dt_step_report *out)
{
    double total[DT_GRAPH_MAX_LOSSES];
    const dt_graph_loss *loss = NULL;
    DT_TRY(dt_reduce_losses(t, dt_graph_losses(t->train.graph, &loss), total));
    dt_report_losses(t, t->scratch.groups, total, norm, out);
    return DT_OK;
}

dt_status dt_cpu_step(dt_trainer *t, dt_step_report *out)
{
    DT_TRY(t->workers.reader != NULL ? dt_fetch_batch(t, &t->workers.live) : DT_OK);
    for (uint32_t i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        t->scratch.loss_seed[i] *= t->state.scaler.scale;
    }
    dt_status st = run_and_reduce_shards(t);
    if (dt_trainer_shrink_on_enomem(t, st)) { /* all ranks do, or none */
        DT_TRY(dt_feed_start_or_resume(t));
        st = run_and_reduce_shards(t);
    }
    DT_TRY(dt_trainer_explain_memory(t, st));
    DT_TRY(reduce_losses(t, t->scratch.norm, out));
    DT_TRY(dt_apply_update(t, out));
    t->state.step++;
    return DT_OK;
}

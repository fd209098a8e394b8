/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on the CPU (backend.h): workers run shards, each forward and backward, into gradient buffers that are summed in
 * the fixed tree; update.c ends the step.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Fewer shards at a time until what is likely to be touched keeps to the budget. */
static void reduce_shards_to_budget(dt_trainer *t)
{
    const uint32_t before = dt_trainer_concurrent_shards(t);
    uint64_t wanted = 0;
    while (t->c.budget > 0) {
        dt_trainer_memory unused, m;
        dt_trainer_arenas_get(t, NULL, &unused, &m);
        wanted = m.params + m.grads + m.moments + m.activations + m.feed;
        if (wanted <= t->c.budget || dt_trainer_concurrent_shards(t) < 2) {
            break;
        }
        dt_trainer_limit_workers(t, dt_trainer_concurrent_shards(t) / 2);
    }
    if (dt_comm_rank(t->d.comm) == 0 && dt_trainer_concurrent_shards(t) < before) {
        dt_log(DT_LOG_INFO, "micro-batch: %u of %u shards at a time, for memory.target_gb; the result is the same",
               dt_trainer_concurrent_shards(t), t->workers.shard_end - t->workers.shard_begin);
    }
    if (dt_comm_rank(t->d.comm) == 0 && wanted > t->c.budget) {
        dt_log(DT_LOG_WARN,
               "training is likely to take %.1f MB and memory.target_gb leaves %.1f MB for it; set engine.recompute = "
               "true, raise data.shards, or take smaller models",
               (double)wanted / 1e6, (double)t->c.budget / 1e6);
    }
}

static dt_status allocate_cpu(dt_trainer *t)
{
    DT_TRY(dt_trainer_create_arenas(t));
    DT_TRY(dt_grads_create(t));
    DT_TRY(dt_compile_source(t, t->d.source, true, &t->train));
    dt_reduce_order_buckets(t);
    return t->d.source->is_live ? dt_create_readers(t) : DT_OK;
}

/* Out of memory: retried once with a smaller micro-batch. */
static dt_status cpu_create(dt_trainer *t)
{
    if (t->c.micro_shards > 0 && t->c.micro_shards < t->workers.active) {
        t->workers.active = t->c.micro_shards;
    }
    dt_status st = allocate_cpu(t);
    const uint32_t before = dt_trainer_concurrent_shards(t);
    if (st == DT_ENOMEM && before > 1) {
        dt_trainer_destroy_arenas(t);
        t->workers.ran_out = true;
        t->workers.active = before / 2;
        t->c.prefetch = 0;
        dt_trainer_log_smaller_batch(t, before);
        st = allocate_cpu(t);
    }
    DT_TRY(dt_trainer_explain_memory(t, st));
    reduce_shards_to_budget(t);
    return DT_OK;
}

static dt_status cpu_check(const dt_trainer *t)
{
    return DT_OK;
}

/* The arenas are the trainer's. */
static void cpu_destroy(dt_trainer *t) {}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The last micro-batch of a shard: gradients are summed while its backward pass continues. */
typedef struct shard_progress {
    dt_trainer *t;
    uint32_t worker, shard;
    dt_grad *grad;
    uint32_t n_summed; /* buckets, in their order */
} shard_progress;

static void reduce_after_call(void *user, uint32_t call)
{
    shard_progress *e = user;
    e->n_summed = dt_grad_reduce_after_call(e->t, e->shard, e->grad, e->n_summed, call);
    if (e->worker == 0) {
        dt_reduce_progress(e->t);
    }
}

static dt_status run_shard(dt_trainer *t, uint32_t worker, uint32_t shard, const dt_feed_shard *in, dt_grad *grad)
{
    dt_kernel_run run = {.seed = t->c.seed, .step = t->state.step, .phase = t->c.phase, .training = 1};
    const uint32_t B = t->d.source->n_symbols;
    const bool is_alone = dt_comm_size(t->d.comm) == 1; /* nothing to send meanwhile */
    double *loss = t->scratch.shard_loss[shard - t->workers.shard_begin];
    shard_progress end = {.t = t, .worker = worker, .shard = shard, .grad = grad};
    DT_TRACE_N("step", "leaf", "leaf", shard);
    memset(loss, 0, sizeof(t->scratch.shard_loss[0]));
    memset(grad->data, 0, t->state.grad_bytes);
    int64_t samples = 0;
    for (uint32_t i = 0; i < in->n_micro_batches; i++) {
        samples += in->micro_batch[i].size[B];
    }
    for (uint32_t i = 0; i < in->n_micro_batches; i++) {
        run.share = dt_shard_share(t) * (double)in->micro_batch[i].size[B] / (double)samples;
        const dt_exec_feed feed = {.size = in->micro_batch[i].size,
                                   .field = in->micro_batch[i].field,
                                   .step_input = t->train.step_input,
                                   .params = t->state.params,
                                   .grads = grad->data,
                                   .loss_seed = t->scratch.loss_seed,
                                   .loss = loss,
                                   .run = &run,
                                   .after = !is_alone && i + 1 == in->n_micro_batches ? reduce_after_call : NULL,
                                   .after_user = &end,
                                   .groups = t->scratch.groups,
                                   .params_version = t->state.params_version};
        DT_TRY(dt_exec_run(t->train.exec[worker], &feed));
    }
    dt_grad_reduce(t, shard, grad, end.n_summed);
    return DT_OK;
}

static dt_status acquire_shard(dt_trainer *t, uint32_t worker, uint32_t i, uint64_t number, const dt_feed_shard **out_p)
{
    DT_TRACE_N("data", t->workers.reader != NULL ? "read shard" : "data wait", "leaf", t->workers.shard_begin + i);
    return t->workers.reader != NULL ? dt_feed_read(t->workers.reader[worker], t->state.step,
                                                    t->workers.shard_begin + i, t->scratch.batch_index, out_p)
                                     : dt_feed_wait(t->workers.feed, number, out_p, &t->workers.waited[worker]);
}

static dt_status read_and_run_shard(void *user, uint32_t worker, uint32_t i)
{
    dt_trainer *t = user;
    dt_grad *grad = dt_grad_acquire(t); /* count_live_grads made enough of them for every schedule */
    const uint64_t number = dt_feed_number(t, i);
    const dt_feed_shard *in = NULL;
    dt_status st = acquire_shard(t, worker, i, number, &in);
    if (st == DT_OK) {
        st = run_shard(t, worker, t->workers.shard_begin + i, in, grad);
    }
    if (t->workers.reader == NULL) {
        dt_feed_release(t->workers.feed, number);
    }
    return st;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static dt_status cpu_begin(dt_trainer *t)
{
    for (uint32_t i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        t->scratch.loss_seed[i] *= t->state.scaler.scale;
    }
    return t->workers.reader != NULL ? dt_fetch_batch(t, &t->workers.live) : DT_OK;
}

static dt_status cpu_run_shards(dt_trainer *t)
{
    DT_TRACE("step", "leaves");
    DT_TRY(dt_grads_reset(t, true, t->c.half, t->scratch.groups));
    return dt_run_shards(t, t->workers.active, read_and_run_shard, t);
}

static dt_status cpu_update(dt_trainer *t, dt_step_report *out)
{
    double total[DT_GRAPH_MAX_LOSSES];
    const dt_graph_loss *loss = NULL;
    DT_TRY(dt_reduce_losses(t, dt_graph_losses(t->train.graph, &loss), total));
    dt_report_losses(t, t->scratch.groups, total, t->scratch.norm, out);
    return dt_apply_update(t, out);
}

/* update has reported it. */
static dt_status cpu_read_result(dt_trainer *t, dt_step_report *out)
{
    return DT_OK;
}

/* ---- the host's arenas are the state ----------------------------------------------------------------------------- */

static dt_status cpu_synchronize(dt_trainer *t)
{
    return DT_OK;
}

static void cpu_invalidate(dt_trainer *t) {}

static const dt_samples *cpu_feed_source(const dt_trainer *t)
{
    return t->d.source;
}

static uint32_t cpu_feed_slots(const dt_trainer *t)
{
    return t->d.source->is_live ? t->workers.active : t->workers.active + t->c.prefetch;
}

static uint32_t cpu_concurrent_shards(const dt_trainer *t)
{
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    return t->workers.active < own ? t->workers.active : own;
}

static void cpu_memory_get(const dt_trainer *t, dt_trainer_memory *out)
{
    dt_trainer_memory resident;
    dt_trainer_arenas_get(t, NULL, out, &resident);
}

static uint64_t cpu_reduction_bytes(const dt_trainer *t)
{
    return 0;
}

const dt_train_backend dt_cpu_backend = {.can_shrink = true,
                                         .check = cpu_check,
                                         .create = cpu_create,
                                         .destroy = cpu_destroy,
                                         .begin = cpu_begin,
                                         .run_shards = cpu_run_shards,
                                         .reduce = dt_reduce_over_ranks,
                                         .update = cpu_update,
                                         .read_result = cpu_read_result,
                                         .synchronize = cpu_synchronize,
                                         .invalidate = cpu_invalidate,
                                         .feed_source = cpu_feed_source,
                                         .feed_slots = cpu_feed_slots,
                                         .concurrent_shards = cpu_concurrent_shards,
                                         .memory_get = cpu_memory_get,
                                         .reduction_bytes = cpu_reduction_bytes};

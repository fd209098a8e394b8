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
#include "train/on_device/device.h"
#include "train/on_device/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- gradient buffers -------------------------------------------------------------------------------------------- */

float *dt_grad_take(dt_trainer *t)
{
    pthread_mutex_lock(&t->lanes.lock);
    float *g = t->lanes.n_grad_free > 0 ? t->lanes.grad_free[--t->lanes.n_grad_free] : NULL;
    pthread_mutex_unlock(&t->lanes.lock);
    return g;
}

static void give_grad(dt_trainer *t, float *g)
{
    pthread_mutex_lock(&t->lanes.lock);
    t->lanes.grad_free[t->lanes.n_grad_free++] = g;
    pthread_mutex_unlock(&t->lanes.lock);
}

dt_status dt_grads_begin(dt_trainer *t, bool has_gradient)
{
    if (has_gradient) {
        DT_TRY(dt_grads_make(t));
    }
    t->lanes.n_grad_free = 0;
    for (uint32_t i = 0; i < t->lanes.n_grads; i++) {
        t->lanes.grad_free[t->lanes.n_grad_free++] = t->lanes.grad[i];
    }
    dt_tree_reset(t->tree);
    atomic_store(&t->scratch.next_leaf, 0);
    atomic_store(&t->scratch.failed, false);
    return DT_OK;
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static dt_status run_leaf(dt_trainer *t, uint32_t worker, uint32_t leaf, const dt_feed_leaf *in, float *grad)
{
    const dt_kernel_run run = {.seed = t->c.seed, .step = t->state.step, .phase = t->c.phase, .training = 1};
    double *loss = t->scratch.leaf_loss[leaf - t->lanes.leaf_begin];
    DT_TRACE_N("step", "leaf", "leaf", leaf);
    memset(loss, 0, sizeof(t->scratch.leaf_loss[0]));
    memset(grad, 0, t->state.arena_bytes);
    for (uint32_t i = 0; i < in->n_slices; i++) {
        const dt_exec_feed feed = {.size = in->slice[i].size,
                                   .field = in->slice[i].field,
                                   .step_input = t->train.step_input,
                                   .params = t->state.params,
                                   .grads = grad,
                                   .loss_seed = t->scratch.loss_seed,
                                   .loss = loss,
                                   .run = &run,
                                   .params_version = t->state.params_version};
        DT_TRY(dt_exec_run(t->train.exec[worker], &feed));
    }
    return DT_OK;
}

void dt_grad_sum(dt_trainer *t, uint32_t leaf, float *grad)
{
    dt_tree_node node = {.height = 0, .index = leaf, .value = grad};
    dt_tree_merge m;
    DT_TRACE("step", "sum gradients");
    while (dt_tree_offer(t->tree, &node, &m)) {
        dt_optim_add(m.left, m.right, 0, t->d.params->total);
        give_grad(t, m.right);
        node = m.parent;
    }
}

static dt_status get_leaf(dt_trainer *t, uint32_t worker, uint32_t i, uint64_t number, const dt_feed_leaf **out_p)
{
    DT_TRACE_N("data", t->lanes.reader != NULL ? "read leaf" : "data wait", "leaf", t->lanes.leaf_begin + i);
    return t->lanes.reader != NULL ? dt_feed_read(t->lanes.reader[worker], t->state.step, t->lanes.leaf_begin + i,
                                                  t->scratch.batch_index, out_p)
                                   : dt_feed_wait(t->lanes.feed, number, out_p, &t->lanes.waited[worker]);
}

static dt_status leaves_job(void *user, uint32_t worker)
{
    dt_trainer *t = user;
    const uint32_t own = t->lanes.leaf_end - t->lanes.leaf_begin;
    t->lanes.waited[worker] = 0;
    if (worker >= t->lanes.active) {
        return DT_OK;
    }
    for (;;) {
        const uint32_t i = atomic_fetch_add(&t->scratch.next_leaf, 1);
        if (i >= own || atomic_load(&t->scratch.failed)) {
            return DT_OK;
        }
        float *grad = dt_grad_take(t); /* grads_needed made enough of them for every schedule */
        const uint64_t number = (t->state.step - t->lanes.feed_first) * own + i;
        const dt_feed_leaf *in = NULL;
        dt_status st = get_leaf(t, worker, i, number, &in);
        if (st == DT_OK) {
            st = run_leaf(t, worker, t->lanes.leaf_begin + i, in, grad);
        }
        if (t->lanes.reader == NULL) {
            dt_feed_release(t->lanes.feed, number);
        }
        if (st < 0) {
            atomic_store(&t->scratch.failed, true);
            give_grad(t, grad);
            return st;
        }
        dt_grad_sum(t, t->lanes.leaf_begin + i, grad);
    }
}

static dt_feed_desc feed_desc(const dt_trainer *t)
{
    return (dt_feed_desc){.source = t->device != NULL ? &t->device->source : t->d.source,
                          .seed = t->c.seed,
                          .first_step = t->state.step,
                          .steps_per_epoch = t->state.steps_per_epoch,
                          .last_step = dt_trainer_steps(t),
                          .batch = t->c.batch,
                          .phase = t->c.phase,
                          .leaves = t->c.leaves,
                          .leaf_begin = t->lanes.leaf_begin,
                          .leaf_end = t->lanes.leaf_end,
                          .slots = dt_trainer_slots(t),
                          .augment = 1};
}

dt_status dt_make_readers(dt_trainer *t)
{
    dt_feed_desc d = feed_desc(t);
    t->lanes.live = *t->d.source;
    dt_skip_unread(&t->lanes.live, t->train.plan);
    d.source = &t->lanes.live;
    d.augment = t->lanes.live.n_whole > 0 ||
                (t->lanes.live.keyed >= 0 && (t->lanes.live.skipped >> t->lanes.live.keyed & 1) == 0);
    t->lanes.reader = dt_alloc_n(t->lanes.active, sizeof(dt_feed_reader *));
    if (t->lanes.reader == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u readers", t->lanes.active);
    }
    for (uint32_t i = 0; i < t->lanes.active; i++) {
        DT_TRY(dt_feed_reader_create(&d, &t->lanes.reader[i]));
    }
    return DT_OK;
}

dt_status dt_start_feed(dt_trainer *t)
{
    if (t->lanes.reader != NULL || (t->lanes.feed != NULL && !t->lanes.feed_is_paused)) {
        return DT_OK;
    }
    t->lanes.feed_first = t->state.step;
    t->lanes.feed_is_paused = false;
    if (t->lanes.feed != NULL) {
        dt_feed_resume(t->lanes.feed, t->state.step);
        return DT_OK;
    }
    const dt_feed_desc d = feed_desc(t);
    return dt_feed_start(&d, &t->lanes.feed);
}

/* ---- norm and update --------------------------------------------------------------------------------------------- */

static int64_t block_end(const dt_trainer *t, int64_t block)
{
    const int64_t end = (block + 1) * DT_OPTIM_BLOCK;
    return end < t->d.params->total ? end : t->d.params->total;
}

static dt_status norm_job(void *user, uint32_t worker)
{
    (void)worker;
    dt_trainer *t = user;
    DT_TRACE("step", "norm");
    for (;;) {
        const int64_t b = atomic_fetch_add(&t->scratch.next_block, 1);
        if (b >= t->scratch.n_blocks) {
            return DT_OK;
        }
        t->scratch.block_sum[b] = dt_optim_sum_squares(t->scratch.gradient, b * DT_OPTIM_BLOCK, block_end(t, b));
    }
}

/* Frozen tensors are left alone: their ranges are skipped. */
static dt_status update_job(void *user, uint32_t worker)
{
    (void)worker;
    dt_trainer *t = user;
    const dt_param_table *table = t->d.params;
    DT_TRACE("step", "update");
    for (;;) {
        const int64_t b = atomic_fetch_add(&t->scratch.next_block, 1);
        if (b >= t->scratch.n_blocks) {
            return DT_OK;
        }
        const int64_t begin = b * DT_OPTIM_BLOCK;
        const int64_t end = block_end(t, b);
        for (uint32_t i = 0; i < table->n; i++) {
            const dt_param *p = &table->param[i];
            const int64_t from = p->offset > begin ? p->offset : begin;
            const int64_t to = p->offset + p->count < end ? p->offset + p->count : end;
            if (!p->frozen && !dt_is_held(t, i) && from < to) {
                dt_optim_update(&t->scratch.update, t->state.params, t->scratch.gradient, t->state.moment[0],
                                t->state.moment[1], from, to);
            }
        }
    }
}

static dt_status run_blocks(dt_trainer *t, dt_pool_job *job)
{
    atomic_store(&t->scratch.next_block, 0);
    return t->scratch.n_blocks > 1 ? dt_pool_run(t->lanes.pool, job, t) : job(t, 0);
}

/* Names the first parameter whose gradient is not finite; bad: its element of the arena, -1: none. */
static dt_status diverged(const dt_trainer *t, uint64_t step, const dt_step_report *r, int64_t bad)
{
    char when[128];
    snprintf(when, sizeof(when), "training diverged at step %llu", (unsigned long long)step);
    if (t->c.scaling.kind != DT_SCALING_NONE) {
        snprintf(when, sizeof(when),
                 "training diverged: %llu steps in a row were skipped up to step %llu, the loss scale is %g",
                 (unsigned long long)t->state.scaler.skips, (unsigned long long)step, t->state.scaler.scale);
    }
    const dt_param_table *table = t->d.params;
    for (uint32_t i = 0; i < table->n && bad >= 0; i++) {
        const dt_param *p = &table->param[i];
        if (bad >= p->offset && bad < p->offset + p->count) {
            return DT_FAIL(DT_EDIVERGED,
                           "%s (loss %g): the gradient of %s is not finite, element %lld; lower "
                           "training.learning_rate or training.gradient_clip, and check the data",
                           when, r->loss, p->name, (long long)(bad - p->offset));
        }
    }
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(t->scratch.step_loss[i])) {
            return DT_FAIL(DT_EDIVERGED, "%s: loss %s is %g while all gradients are finite", when, loss[i].name,
                           t->scratch.step_loss[i]);
        }
    }
    return DT_FAIL(DT_EDIVERGED, "%s: the gradient norm overflows", when);
}

dt_status dt_trainer_judge(dt_trainer *t, uint64_t step, bool is_finite, const dt_step_report *r, int64_t bad)
{
    char text[512];
    const dt_scaler_config *c = &t->c.scaling;
    if (dt_trainer_is_half(t) &&
        dt_amp_monitor_step(&t->state.monitor, c, t->state.scaler.scale, is_finite, r->grad_norm, text, sizeof(text)) &&
        dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "mixed precision: %s", text);
    }
    return dt_scaler_gives_up(&t->state.scaler, c) ? diverged(t, step, r, bad) : DT_OK;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

double dt_trainer_rate(const dt_trainer *t, uint64_t update)
{
    return dt_schedule_rate(&t->c.schedule, (double)(update + t->state.passed) / (double)t->state.steps_per_epoch);
}

static dt_status run_leaves(dt_trainer *t)
{
    DT_TRACE("step", "leaves");
    DT_TRY(dt_grads_begin(t, true));
    return dt_pool_run(t->lanes.pool, leaves_job, t);
}

void dt_tell_losses(dt_trainer *t, const double *total, const double *norm, dt_step_report *out)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    out->n_losses = n < DT_STEP_MAX_LOSSES ? n : DT_STEP_MAX_LOSSES;
    out->loss = 0;
    for (uint32_t i = 0; i < n; i++) {
        t->scratch.step_loss[i] = total[i] / norm[i];
        out->loss += loss[i].weight * t->scratch.step_loss[i];
    }
    for (uint32_t i = 0; i < out->n_losses; i++) {
        out->loss_name[i] = loss[i].name;
        out->loss_value[i] = t->scratch.step_loss[i];
    }
}

static dt_status reduce(dt_trainer *t, const double *norm, dt_step_report *out)
{
    const dt_graph_loss *loss = NULL;
    DT_TRACE("step", "reduce");
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    double packed[DT_TREE_MAX_LEAVES * DT_GRAPH_MAX_LOSSES];
    double total[DT_GRAPH_MAX_LOSSES];
    for (uint32_t i = 0; i < t->lanes.leaf_end - t->lanes.leaf_begin; i++) {
        memcpy(&packed[i * n], t->scratch.leaf_loss[i], n * sizeof(double));
    }
    DT_TRY(dt_tree_reduce_f64(t->tree, t->d.comm, packed, n, total));
    DT_TRY(dt_tree_reduce(t->tree, t->d.comm, t->d.params->total, t->lanes.grad[DT_TREE_MAX_LEAVES],
                          &t->scratch.gradient));
    dt_tell_losses(t, total, norm, out);
    return DT_OK;
}

static int64_t first_not_finite(const dt_trainer *t)
{
    for (int64_t i = 0; i < t->d.params->total; i++) {
        if (!isfinite(t->scratch.gradient[i])) {
            return i;
        }
    }
    return -1;
}

/* Every rank has the same sums, so all of them skip or none. */
static dt_status clip_and_update(dt_trainer *t, dt_step_report *out)
{
    DT_TRACE("step", "optimizer");
    DT_TRY(run_blocks(t, norm_job));
    double sum = 0;
    for (int64_t b = 0; b < t->scratch.n_blocks; b++) {
        sum += t->scratch.block_sum[b];
    }
    const double scale = t->state.scaler.scale;
    const bool is_finite = isfinite(sum) && isfinite(out->loss);
    out->grad_norm = sqrt(sum) / scale;
    out->learning_rate = dt_trainer_rate(t, t->state.updates + 1);
    dt_scaler_update(&t->state.scaler, &t->c.scaling, is_finite);
    DT_TRY(dt_trainer_judge(t, t->state.step + 1, is_finite, out, is_finite ? -1 : first_not_finite(t)));
    if (!is_finite) {
        return DT_OK; /* skipped */
    }
    t->state.updates++;
    t->scratch.update = t->c.optim;
    t->scratch.update.lr = out->learning_rate;
    t->scratch.update.step = t->state.updates;
    t->scratch.update.grad_scale = 1.0 / scale;
    if (t->c.gradient_clip > 0 && out->grad_norm > t->c.gradient_clip) {
        t->scratch.update.grad_scale *= t->c.gradient_clip / (out->grad_norm + 1e-6); /* PyTorch's clip_grad_norm_ */
    }
    return run_blocks(t, update_job);
}

/* A rank that failed must say so before the others wait for its sums. */
static dt_status run_leaves_of_all(dt_trainer *t)
{
    const dt_status mine = run_leaves(t);
    return dt_comm_agree(t->d.comm, mine);
}

dt_status dt_step_on_cpu(dt_trainer *t, dt_step_report *out)
{
    double norm[DT_GRAPH_MAX_LOSSES];
    int64_t largest[DT_SAMPLES_MAX_SYMBOLS + 1];
    DT_TRY(dt_batch_sizes(t, t->state.step, norm, largest));
    for (uint32_t i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        t->scratch.loss_seed[i] *= t->state.scaler.scale;
    }
    dt_status st = run_leaves_of_all(t);
    if (dt_trainer_shrink_after(t, st)) { /* all ranks do, or none */
        DT_TRY(dt_start_feed(t));
        st = run_leaves_of_all(t);
    }
    DT_TRY(dt_trainer_explain_memory(t, st));
    DT_TRY(reduce(t, norm, out));
    DT_TRY(clip_and_update(t, out));
    t->state.step++;
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The device path's life: the layout of the device, and shape classes. See device.h; the step is step.c.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/device/memory.h"

#include <math.h>
#include <string.h>

enum { ROUND = 16 };

/* ---- shape classes ----------------------------------------------------------------------------------------------- */

/* Class c of a symbol that never exceeds `top`: a power of 2^(1/4) below it, rounded up to ROUND. */
static int64_t compute_capacity(int64_t top, int c)
{
    const double exact = (double)top * pow(2.0, (c - (DT_DEVICE_CLASSES - 1)) / 4.0);
    const int64_t cap = ((int64_t)ceil(exact) + ROUND - 1) / ROUND * ROUND;
    return cap > ROUND ? cap : ROUND;
}

static void set_classes(dt_train_device *d, uint64_t shard_samples)
{
    dt_samples *s = &d->source;
    for (int c = 0; c < DT_DEVICE_CLASSES; c++) {
        for (uint32_t k = 0; k < s->n_symbols; k++) {
            d->class[c].cap[k] = compute_capacity(s->sample_max[k] * (int64_t)shard_samples, c);
        }
        d->class[c].cap[s->n_symbols] = (int64_t)shard_samples;
    }
    memcpy(s->slice_cap, d->class[DT_DEVICE_CLASSES - 1].cap, sizeof(s->slice_cap));
}

size_t dt_device_find_class(const dt_train_device *d, const int64_t *size)
{
    for (size_t c = 0; c < DT_DEVICE_CLASSES; c++) {
        bool fits = true;
        for (uint32_t k = 0; k <= d->source.n_symbols; k++) {
            fits = fits && size[k] <= d->class[c].cap[k];
        }
        if (fits) {
            return c;
        }
    }
    return DT_DEVICE_CLASSES;
}

/* Of samples that have not come: how large a shard is likely to be at most, where they are like those that its source
 * has seen, times the room that it has for larger ones. What is larger still makes memory grow. */
static size_t estimate_class(const dt_trainer *t, const dt_train_device *d)
{
    enum { DEVIATIONS = 4 }; /* of the sum of a shard's samples: one shard of 30000 is larger, if sizes are normal */
    const dt_samples *s = &d->source;
    const double n = (double)((t->c.batch + t->c.shards - 1) / t->c.shards);
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const double sum = s->room * (n * s->sample_mean[k] + DEVIATIONS * sqrt(n) * s->sample_std[k]);
        const double most = n * (double)s->sample_max[k];
        size[k] = (int64_t)(sum < most ? sum : most);
    }
    size[s->n_symbols] = (int64_t)n;
    return dt_device_find_class(d, size);
}

/* The class of the largest batch of the first epoch, so that its memory can be reported before the run. */
static dt_status find_largest_class(dt_trainer *t, const dt_train_device *d, size_t *out_p)
{
    size_t largest = 0;
    if (d->source.turn != NULL) {
        *out_p = estimate_class(t, d);
        return DT_OK;
    }
    for (uint64_t step = 0; step < t->state.steps_per_epoch && step < dt_trainer_steps(t); step++) {
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1], unused[DT_SAMPLES_MAX_SYMBOLS + 1];
        DT_TRY(dt_compute_batch_sizes(t, step, size, unused));
        const size_t c = dt_device_find_class(d, size);
        largest = c > largest ? c : largest;
    }
    *out_p = largest;
    return DT_OK;
}

dt_status dt_device_layout_input(const dt_plan *p, const dt_samples *s, const int64_t *cap, uint32_t shards,
                                 dt_device_input *out_p)
{
    dt_device_input in = {.live = dt_device_align(sizeof(dt_device_control))};
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(p, &name, &count);
    if (n > DT_TRAIN_MAX_STEP_INPUTS) {
        return DT_FAIL(DT_EPLUGIN, "the phase records %u step inputs, at most %d are possible", n,
                       DT_TRAIN_MAX_STEP_INPUTS);
    }
    size_t at = in.live + dt_device_align((size_t)shards * (s->n_symbols + 1) * sizeof(int32_t));
    for (uint32_t i = 0; i < n; i++) {
        in.step[i] = at;
        at += dt_device_align((size_t)count[i] * sizeof(float));
    }
    for (uint32_t f = 0; f < s->n_fields; f++) {
        in.field[f] = at;
        in.field_bytes[f] = dt_plan_field(p, s->field[f].name) >= 0 ? dt_samples_field_bytes(s, f, cap) : 0;
        at += dt_device_align(in.field_bytes[f] * shards);
    }
    in.bytes = at;
    *out_p = in;
    return DT_OK;
}

dt_status dt_device_compile_plan(const dt_trainer *t, const dt_graph *g, const dt_plan_desc *d, dt_plan **out_p)
{
    dt_plan_desc pd = *d;
    pd.kernels = DT_KERNELS_DEVICE;
    pd.reuse = t->c.reuse;
    pd.fuse = t->c.fuse;
    pd.half = dt_device_storage_type(t);
    return dt_plan_compile(g, &pd, out_p);
}

dt_status dt_device_create_exec(const dt_trainer *t, const dt_train_device *d, const dt_plan *p, uint32_t shards,
                                bool is_step, dt_device_exec **out_p)
{
    const dt_device_exec_desc ed = {.plan = p,
                                    .ops = d->ops,
                                    .device = d->device,
                                    .leaves = shards,
                                    .math = t->c.math,
                                    .synchronous = t->c.synchronous && !t->c.graphs, /* no waiting while capturing */
                                    .due = is_step ? d->due : NULL,
                                    .n_due = is_step ? d->n_due : 0};
    return dt_device_exec_create(&ed, out_p);
}

static dt_status compile_class(dt_trainer *t, dt_train_device *d, dt_device_class *k)
{
    const dt_plan_desc pd = {.training = true, .recompute = t->c.recompute, .cap = k->cap};
    DT_TRY(dt_device_compile_plan(t, t->train.graph, &pd, &k->plan));
    return dt_device_layout_input(k->plan, &d->source, k->cap, d->shards, &k->input);
}

dt_status dt_device_end_capture(const dt_train_device *d, dt_status st, const char *what, dt_device_graph **out_p)
{
    dt_device_graph *g = NULL;
    dt_error reason;
    dt_error_save(&reason, st);
    const dt_status end = d->ops->capture_end(d->device, d->compute, &g);
    if (st < 0) {
        d->ops->graph_destroy(d->device, g);
        return dt_error_restore(&reason);
    }
    if (end < 0) {
        return DT_CONTEXT(end, "capturing %s; --no-graphs avoids it", what);
    }
    *out_p = g;
    return DT_OK;
}

/* ---- memory that follows the class ------------------------------------------------------------------------------- */

static void destroy_graphs(dt_train_device *d)
{
    for (int c = 0; c < DT_DEVICE_CLASSES; c++) {
        for (uint32_t r = 0; r < d->class[c].n_replays; r++) {
            for (int b = 0; b < DT_DEVICE_BUFFERS; b++) {
                d->ops->graph_destroy(d->device, d->class[c].replay[r].graph[b]);
                d->class[c].replay[r].graph[b] = NULL;
            }
        }
    }
}

static void destroy_buffers(dt_train_device *d)
{
    for (int b = 0; b < DT_DEVICE_BUFFERS; b++) {
        dt_device_free(d->ops, d->device, d->buffer[b].device);
        d->ops->unpin(d->device, d->buffer[b].pinned);
        d->buffer[b].device = d->buffer[b].pinned = NULL;
    }
    d->buffer_bytes = 0;
}

dt_status dt_device_synchronize(dt_train_device *d)
{
    DT_TRY(d->ops->stream_sync(d->device, d->copy));
    return d->ops->stream_sync(d->device, d->compute);
}

/* Captured graphs know addresses: they go when memory moves. */
static dt_status grow_memory(dt_train_device *d, size_t arena_bytes, size_t buffer_bytes)
{
    DT_TRY(dt_device_synchronize(d));
    destroy_graphs(d);
    if (arena_bytes > d->arena_bytes) {
        dt_device_free(d->ops, d->device, d->arena);
        d->arena = NULL;
        d->arena_bytes = 0;
        DT_TRY(dt_device_allocate(d->ops, d->device, arena_bytes, &d->arena));
        d->arena_bytes = arena_bytes;
    }
    if (buffer_bytes > d->buffer_bytes) {
        destroy_buffers(d);
        for (int b = 0; b < DT_DEVICE_BUFFERS; b++) {
            DT_TRY(dt_device_allocate(d->ops, d->device, buffer_bytes, &d->buffer[b].device));
            DT_TRY(dt_device_pin(d->ops, d->device, buffer_bytes, &d->buffer[b].pinned));
        }
        d->buffer_bytes = buffer_bytes;
    }
    return DT_OK;
}

dt_status dt_device_prepare_class(dt_trainer *t, dt_train_device *d, size_t c)
{
    dt_device_class *k = &d->class[c];
    if (k->plan == NULL) {
        DT_TRY(compile_class(t, d, k));
    }
    if (k->exec == NULL) {
        DT_TRY(dt_device_create_exec(t, d, k->plan, d->launch_shards, true, &k->exec));
    }
    const size_t bytes = dt_device_exec_bytes(k->exec);
    return bytes > d->arena_bytes || k->input.bytes > d->buffer_bytes ? grow_memory(d, bytes, k->input.bytes) : DT_OK;
}

/* ---- memory that stays ------------------------------------------------------------------------------------------- */

static dt_status allocate_device_memory(const dt_train_device *d, size_t bytes, void *out_p)
{
    return dt_device_allocate(d->ops, d->device, bytes, out_p);
}

/* From the host, once. */
static dt_status allocate_and_upload(dt_train_device *d, const uint8_t *from, size_t n, uint8_t **out_p)
{
    DT_TRY(allocate_device_memory(d, n, out_p));
    DT_TRY(dt_device_copy_in(d, *out_p, from, n));
    return d->ops->stream_sync(d->device, d->compute);
}

/* A block of the arena is one group's: its sum of squares counts there. */
static dt_status mark_blocks(const dt_trainer *t, dt_train_device *d)
{
    enum { NO_GROUP = UINT8_MAX };
    const size_t n = (size_t)(d->total / DT_DEVICE_BLOCK) + 1;
    uint8_t *mark = dt_alloc(n);
    dt_status st = mark != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    if (st == DT_OK) {
        memset(mark, NO_GROUP, n);
    }
    for (uint32_t i = 0; i < t->d.params->n && st == DT_OK; i++) {
        const dt_param *p = &t->d.params->param[i];
        const uint8_t group = t->state.group_of[i];
        for (int64_t b = p->offset / DT_DEVICE_BLOCK; b <= (p->offset + p->count - 1) / DT_DEVICE_BLOCK; b++) {
            if (group < t->state.n_groups && mark[b] != NO_GROUP && mark[b] != group) {
                st = DT_FAIL(DT_EINVAL, "parameter %s is in a block of the arena with those of another group", p->name);
            } else if (group < t->state.n_groups) {
                mark[b] = group;
            }
        }
    }
    if (st == DT_OK) {
        st = allocate_and_upload(d, mark, n, &d->block_group);
    }
    dt_free(mark);
    return st;
}

/* 1 + group for every granule that belongs to a parameter that is not frozen, and whether it is a statistic. Gaps after
 * a tensor are zeros and stay so. */
static dt_status mark_trained(const dt_trainer *t, dt_train_device *d)
{
    const size_t n = (size_t)(d->total / DT_DEVICE_GRANULE);
    uint8_t *mark = dt_alloc(n);
    if (mark == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        const dt_param *p = &t->d.params->param[i];
        if (t->state.group_of[i] < t->state.n_groups) {
            for (int64_t at = p->offset; at < p->offset + p->count; at += DT_DEVICE_GRANULE) {
                mark[at / DT_DEVICE_GRANULE] =
                    (uint8_t)((t->state.group_of[i] + 1) | (p->is_statistic ? DT_DEVICE_STATISTIC : 0));
            }
        }
    }
    dt_status st = allocate_and_upload(d, mark, n, &d->trained);
    dt_free(mark);
    return st == DT_OK && t->state.n_groups > 1 ? mark_blocks(t, d) : st;
}

static dt_status create_streams(dt_train_device *d)
{
    DT_TRY(d->ops->stream_create(d->device, &d->compute));
    DT_TRY(d->ops->stream_create(d->device, &d->copy));
    for (int b = 0; b < DT_DEVICE_BUFFERS; b++) {
        DT_TRY(d->ops->event_create(d->device, 0, &d->buffer[b].copied));
        DT_TRY(d->ops->event_create(d->device, 0, &d->buffer[b].done));
        DT_TRY(dt_device_pin(d->ops, d->device, sizeof(dt_device_result), &d->buffer[b].result));
    }
    return DT_OK;
}

static size_t arena_bytes(const dt_train_device *d)
{
    return (size_t)d->total * sizeof(float);
}

static size_t params_bytes(const dt_train_device *d)
{
    return (size_t)d->all * sizeof(float);
}

static size_t half_params_bytes(const dt_train_device *d)
{
    return params_bytes(d) / 2;
}

static dt_status create_arenas(dt_trainer *t, dt_train_device *d)
{
    const size_t bytes = arena_bytes(d);
    DT_TRY(allocate_device_memory(d, params_bytes(d), &d->params));
    if (dt_device_storage_type(t) != 0) {
        if (d->ops->narrow == NULL) {
            return DT_FAIL(DT_EUNSUPPORTED, "device %s computes only in fp32; set amp.enabled=false", d->ops->name);
        }
        DT_TRY(allocate_device_memory(d, half_params_bytes(d), &d->params_half));
    }
    d->moment_bytes = t->shape.ranks > 1 ? t->state.moment_bytes : bytes; /* as the host keeps them */
    DT_TRY(allocate_device_memory(d, d->moment_bytes, &d->moment[0]));
    if (t->state.moment[1] != NULL) {
        DT_TRY(allocate_device_memory(d, d->moment_bytes, &d->moment[1]));
    }
    DT_TRY(mark_trained(t, d));
    DT_TRY(allocate_device_memory(d, ((size_t)(d->total / DT_DEVICE_BLOCK) + 1) * sizeof(double), &d->block_sum));
    DT_TRY(allocate_device_memory(d, DT_DEVICE_MAX_LOSSES * sizeof(double), &d->seed));
    for (int i = 0; i < DT_DEVICE_MAX_LOSSES; i++) {
        DT_TRY(allocate_device_memory(d, d->shards * sizeof(double), &d->loss[i]));
    }
    DT_TRY(allocate_device_memory(d, sizeof(dt_device_state), &d->state));
    return allocate_device_memory(d, sizeof(dt_device_result), &d->result);
}

/* ---- how many shards at once ------------------------------------------------------------------------------------- */

/* That depends on the group. */
static size_t planned_bytes(const dt_trainer *t, const dt_train_device *d, const dt_device_class *k)
{
    return dt_device_exec_bytes(k->exec) + DT_DEVICE_BUFFERS * k->input.bytes +
           arena_bytes(d) * dt_device_count_slots(t, d->shards, d->launch_shards);
}

/* The largest group of at most so many shards by which this rank's can be divided. */
static uint32_t divide_shards(const dt_train_device *d, uint32_t most)
{
    uint32_t n = most < d->shards ? most : d->shards;
    while (n > 1 && d->shards % n != 0) {
        n--;
    }
    return n;
}

/* Makes the group smaller until the planned memory fits; the result does not depend on it. */
static dt_status choose_launch_shards(dt_trainer *t, dt_train_device *d, size_t c)
{
    dt_device_class *k = &d->class[c];
    uint64_t left = 0, total = 0;
    DT_TRY(d->ops->memory(d->device, &left, &total));
    uint64_t usable = left - left / 20; /* the driver needs some for captured graphs and libraries */
    usable = t->c.device_budget > 0 && t->c.device_budget < usable ? t->c.device_budget : usable;
    d->launch_shards = divide_shards(d, t->c.micro_shards > 0 ? t->c.micro_shards : d->shards);
    for (;;) {
        DT_TRY(dt_device_create_exec(t, d, k->plan, d->launch_shards, true, &k->exec));
        if (planned_bytes(t, d, k) <= usable) {
            break;
        }
        if (d->launch_shards == 1) {
            return DT_FAIL(DT_ENOMEM,
                           "one shard of a batch needs %.1f MiB for activations, gradients and inputs, %.1f MiB of the "
                           "device may be used%s; raise data.shards, lower data.batch, or set engine.recompute",
                           (double)planned_bytes(t, d, k) / 1048576.0, (double)usable / 1048576.0,
                           usable == t->c.device_budget ? " (memory.vram_gb)" : "");
        }
        dt_device_exec_destroy(k->exec);
        k->exec = NULL;
        d->launch_shards = divide_shards(d, d->launch_shards / 2);
    }
    if (d->launch_shards < d->shards) {
        dt_log(DT_LOG_INFO, "micro-batch: %u of %u shards at a time; the result is the same", d->launch_shards,
               d->shards);
    }
    return DT_OK;
}

/* What is not written to stays zero: the gradients of what is frozen, and gaps after a tensor. */
static dt_status create_slots(const dt_trainer *t, dt_train_device *d)
{
    dt_device_free(d->ops, d->device, d->grad);
    d->grad = NULL;
    d->slots = dt_device_count_slots(t, d->shards, d->launch_shards);
    return allocate_device_memory(d, arena_bytes(d) * d->slots, &d->grad);
}

static dt_status allocate_group(dt_trainer *t, dt_train_device *d, size_t c)
{
    DT_TRY(create_slots(t, d));
    return dt_device_prepare_class(t, d, c);
}

/* The plan was wrong about what is free: once the smaller group, then a clear stop. */
static dt_status allocate_class(dt_trainer *t, dt_train_device *d, size_t c)
{
    dt_status st = allocate_group(t, d, c);
    if (st != DT_ENOMEM || d->launch_shards == 1) {
        return st;
    }
    const uint32_t less = divide_shards(d, d->launch_shards / 2);
    dt_log(DT_LOG_WARN, "%s; trying %u shards at a time instead of %u", dt_error_text(), less, d->launch_shards);
    destroy_buffers(d);
    dt_device_exec_destroy(d->class[c].exec);
    d->class[c].exec = NULL;
    d->launch_shards = less;
    return allocate_group(t, d, c);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Which shards this rank sums, and which elements of the sum it owns. */
static dt_status assign_slices(const dt_trainer *t, dt_train_device *d)
{
    const dt_reduction *r = &t->reduce;
    const uint32_t ranks = t->shape.ranks;
    d->n_nodes = dt_tree_list_cover(&t->shape, t->shape.rank, d->cover);
    d->n_slices = ranks > 1 ? r->n_buckets : 1;
    d->slice = dt_alloc_n(d->n_slices + (size_t)1, sizeof(*d->slice));
    if (d->slice == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for shards of gradients");
    }
    d->slice[0] = (dt_device_slice){.begin = 0, .end = d->total};
    int64_t moment = 0;
    for (uint32_t b = 0; b < r->n_buckets && ranks > 1; b++) {
        const dt_range own = dt_rank_slice(r->bucket[b], ranks, t->shape.rank);
        d->slice[b] = (dt_device_slice){.begin = own.begin, .end = own.end, .moment = moment};
        moment += own.end - own.begin;
    }
    return DT_OK;
}

/* The order in which backward ends with buckets, which is that of every class; where they may go to other ranks at
 * once, their gradients are summed at once. */
static dt_status order_buckets(dt_trainer *t, dt_train_device *d)
{
    const dt_reduction *r = &t->reduce;
    dt_reduce_order_buckets(t);
    if (t->shape.ranks == 1 || t->c.nccl == DT_TRAIN_NCCL_NEVER) {
        return DT_OK;
    }
    d->due = dt_alloc_n(r->n_buckets + (size_t)1, sizeof(*d->due));
    if (d->due == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for buckets of gradients");
    }
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        if (r->last[b] >= 0) {
            d->due[d->n_due++] = (uint32_t)r->last[b];
        }
    }
    return DT_OK;
}

void dt_train_device_memory_get(const dt_train_device *d, dt_trainer_memory *out)
{
    out->params = params_bytes(d) + (d->params_half != NULL ? half_params_bytes(d) : 0);
    out->grads = arena_bytes(d) * d->slots;
    out->moments = d->moment_bytes * (d->moment[1] != NULL ? 2 : 1);
    out->activations = d->arena_bytes;
    out->feed = DT_DEVICE_BUFFERS * d->buffer_bytes;
}

static dt_status create_parts(dt_trainer *t, dt_train_device *d)
{
    const uint64_t shard_samples = (t->c.batch + t->c.shards - 1) / t->c.shards;
    size_t c = 0;
    uint64_t before = 0, after = 0, total = 0;
    dt_trainer_memory m;
    DT_TRY(d->ops->memory(d->device, &before, &total));
    d->shards = t->workers.shard_end - t->workers.shard_begin;
    d->total = (t->d.params->base_total + DT_DEVICE_GRANULE - 1) / DT_DEVICE_GRANULE * DT_DEVICE_GRANULE;
    d->all = (t->d.params->total + DT_DEVICE_GRANULE - 1) / DT_DEVICE_GRANULE * DT_DEVICE_GRANULE;
    DT_TRY(assign_slices(t, d));
    set_classes(d, shard_samples);
    DT_TRY(create_streams(d));
    DT_TRY(create_arenas(t, d));
    DT_TRY(t->shape.ranks > 1 ? dt_device_ranks_create(t, d) : DT_OK);
    DT_TRY(find_largest_class(t, d, &c));
    DT_TRY(compile_class(t, d, &d->class[c]));
    t->train.plan = d->class[c].plan;
    DT_TRY(order_buckets(t, d));
    DT_TRY(choose_launch_shards(t, d, c));
    DT_TRY(allocate_class(t, d, c));
    DT_TRY(d->ops->memory(d->device, &after, &total));
    dt_train_device_memory_get(d, &m);
    dt_log(DT_LOG_INFO, "device memory: %.1f MB planned, %.1f MB less are free now, %.1f MB are left",
           (double)(m.params + m.grads + m.moments + m.activations + m.feed) / 1e6, (double)(before - after) / 1e6,
           (double)after / 1e6);
    return DT_OK;
}

static dt_device_state make_device_state(const dt_trainer *t)
{
    dt_device_state s = {.updates = t->state.updates,
                         .loss_scale = t->state.scaler.scale,
                         .good_steps = t->state.scaler.good,
                         .tolerance = t->state.scaler.tolerance,
                         .skipped = t->state.scaler.skips};
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        s.group_updates[g] = t->state.group[g].updates;
    }
    return s;
}

static void destroy_class(dt_device_class *k)
{
    dt_free(k->replay);
    dt_device_exec_destroy(k->exec);
    dt_plan_destroy(k->plan);
}

void dt_train_device_destroy(dt_trainer *t, dt_train_device *d)
{
    if (d == NULL) {
        return;
    }
    dt_device_ranks_disconnect(t, d);
    if (d->compute != NULL && d->copy != NULL) {
        (void)dt_device_synchronize(d);
    }
    destroy_graphs(d);
    for (int c = 0; c < DT_DEVICE_CLASSES; c++) {
        destroy_class(&d->class[c]);
    }
    destroy_buffers(d);
    dt_device_ranks_destroy(d);
    dt_free(d->slice);
    dt_free(d->due);
    for (int b = 0; b < DT_DEVICE_BUFFERS; b++) {
        d->ops->event_destroy(d->device, d->buffer[b].copied);
        d->ops->event_destroy(d->device, d->buffer[b].done);
        d->ops->unpin(d->device, d->buffer[b].result);
    }
    void *const memory[] = {d->arena,   d->params,    d->params_half, d->moment[0], d->moment[1], d->grad,
                            d->trained, d->block_sum, d->seed,        d->state,     d->result,    d->block_group};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        dt_device_free(d->ops, d->device, memory[i]);
    }
    for (int i = 0; i < DT_DEVICE_MAX_LOSSES; i++) {
        dt_device_free(d->ops, d->device, d->loss[i]);
    }
    d->ops->stream_destroy(d->device, d->copy);
    d->ops->stream_destroy(d->device, d->compute);
    dt_free(d);
}

dt_status dt_train_device_create(dt_trainer *t, dt_train_device **out_p)
{
    dt_train_device *d = dt_alloc(sizeof(*d));
    if (d == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    d->ops = t->d.device_ops;
    d->device = t->d.device;
    d->source = *t->d.source;
    d->is_on_host = true;
    d->host_state = make_device_state(t);
    const dt_status st = create_parts(t, d);
    if (st < 0) {
        t->train.plan = NULL;
        dt_train_device_destroy(t, d);
        return st;
    }
    *out_p = d;
    return DT_OK;
}

size_t dt_device_shared_bytes(const dt_trainer *t, int arena)
{
    const bool is_cut = arena > 0 && t->shape.ranks > 1;
    return (size_t)(is_cut      ? t->reduce.n_own
                    : arena > 0 ? t->d.params->base_total
                                : t->d.params->total) *
           sizeof(float);
}

dt_status dt_train_device_upload(dt_trainer *t)
{
    dt_train_device *d = t->device;
    float *const from[] = {t->state.params, t->state.moment[0], t->state.moment[1]};
    float *const to[] = {d->params, d->moment[0], d->moment[1]};
    if (!d->is_on_host) {
        return DT_OK;
    }
    for (int i = 0; i < 3; i++) {
        DT_TRY(to[i] != NULL ? dt_device_copy_in(d, to[i], from[i], dt_device_shared_bytes(t, i)) : DT_OK);
    }
    DT_TRY(dt_device_copy_in(d, d->state, &d->host_state, sizeof(d->host_state)));
    DT_TRY(dt_device_narrow_params(t, d->params_half, d->params, d->all));
    DT_TRY(dt_device_synchronize(d));
    memcpy(d->updates, d->host_state.group_updates, sizeof(d->updates));
    d->read = 0;
    for (int i = 0; i < DT_DEVICE_BUFFERS; i++) {
        d->buffer[i].step = 0;
    }
    d->is_on_host = false;
    return DT_OK;
}

void dt_train_device_invalidate(dt_trainer *t)
{
    dt_train_device *d = t->device;
    d->host_state = make_device_state(t);
    d->is_on_host = true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * See trainer.h: life, memory, state. Graphs are made in compile.c, the step is in step.c, inference in infer.c.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/on_device/device.h"
#include "train/on_device/infer.h"

#include <math.h>
#include <string.h>

/* ---- step inputs ------------------------------------------------------------------------------------------------- */

static const dt_step_value *find_value(const dt_trainer *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_values; i++) {
        if (strcmp(t->value[i].name, name) == 0) {
            return &t->value[i];
        }
    }
    return NULL;
}

dt_status dt_bind_step_inputs(dt_trainer *t, dt_compiled *c)
{
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(c->plan, &name, &count);
    if (n > DT_TRAIN_MAX_STEP_INPUTS) {
        return DT_FAIL(DT_EPLUGIN, "the phase records %u step inputs, at most %d are possible", n,
                       DT_TRAIN_MAX_STEP_INPUTS);
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_step_value *v = find_value(t, name[i]);
        if (v == NULL) {
            return DT_FAIL(DT_EPLUGIN, "the phase records step input %s but never set it", name[i]);
        }
        if ((int64_t)v->n != count[i]) {
            return DT_FAIL(DT_ESHAPE, "step input %s was recorded with %lld values and set with %u", name[i],
                           (long long)count[i], v->n);
        }
        c->step_input[i] = v->value;
    }
    return DT_OK;
}

dt_status dt_trainer_set(dt_trainer *t, const char *name, const float *value, uint32_t n)
{
    dt_step_value *v = (dt_step_value *)find_value(t, name);
    if (v == NULL) {
        dt_step_value *grown = dt_realloc(t->value, (t->n_values + 1) * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for step input %s", name);
        }
        t->value = grown;
        v = &t->value[t->n_values];
        memset(v, 0, sizeof(*v));
        v->name = dt_strdup(name);
        v->value = dt_alloc_n(n, sizeof(float));
        v->n = n;
        if (v->name == NULL || v->value == NULL) {
            dt_free(v->name);
            dt_free(v->value);
            return DT_FAIL(DT_ENOMEM, "out of memory for step input %s", name);
        }
        t->n_values++;
    }
    if (v->n != n) {
        return DT_FAIL(DT_ESHAPE, "step input %s has %u values, not %u", name, v->n, n);
    }
    memcpy(v->value, value, n * sizeof(float));
    return DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status map_arena(const dt_trainer *t, float **out)
{
    void *p = NULL;
    DT_TRY(dt_arena_map(t->arena_bytes, &p));
    *out = p;
    return DT_OK;
}

/* As many gradient buffers as can be alive at once: one per worker in work, and pending nodes, which are siblings of
 * nodes on the path of an unfinished leaf: those in work and the next one. */
static uint32_t grads_needed(const dt_trainer *t)
{
    const uint32_t own = t->leaf_end - t->leaf_begin;
    uint32_t levels = 0;
    while ((1u << levels) < own) {
        levels++;
    }
    const uint32_t n = t->active + (t->active + 1) * levels;
    return n < own ? n : own;
}

dt_status dt_grads_make(dt_trainer *t)
{
    if (t->n_grads > 0) {
        return DT_OK;
    }
    const uint32_t n = grads_needed(t);
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(map_arena(t, &t->grad[i]));
    }
    DT_TRY(map_arena(t, &t->grad[DT_TREE_MAX_LEAVES]));
    t->n_grads = n;
    return DT_OK;
}

static dt_status make_arenas(dt_trainer *t)
{
    t->arena_bytes = (size_t)(t->d.params->total > 0 ? t->d.params->total : 1) * sizeof(float);
    DT_TRY(map_arena(t, &t->params));
    DT_TRY(map_arena(t, &t->moment[0]));
    if (t->c.optim.kind != DT_OPTIM_SGD) {
        DT_TRY(map_arena(t, &t->moment[1]));
    }
    if (t->d.device_ops == NULL) { /* a device keeps its own */
        DT_TRY(dt_grads_make(t));
    }
    DT_TRY(dt_param_table_init(t->d.params, t->c.seed, t->params));
    t->n_blocks = (t->d.params->total + DT_OPTIM_BLOCK - 1) / DT_OPTIM_BLOCK;
    t->block_sum = dt_alloc_n((size_t)t->n_blocks + 1, sizeof(double));
    t->waited = dt_alloc_n(t->c.threads, sizeof(double));
    t->batch_index = dt_alloc_n(t->c.batch, sizeof(uint64_t));
    if (t->block_sum == NULL || t->waited == NULL || t->batch_index == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    return DT_OK;
}

static dt_status check(const dt_trainer *t)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    if (t->d.source->count < t->c.batch) {
        return DT_FAIL(DT_ECONFIG,
                       "one step takes %llu samples (data.batch times training.accumulation) but the training data has "
                       "%llu; lower data.batch or import more scenes",
                       (unsigned long long)t->c.batch, (unsigned long long)t->d.source->count);
    }
    if (ranks > t->c.leaves) {
        return DT_FAIL(DT_ECONFIG, "%u ranks share data.shards = %u leaves; every rank needs at least one", ranks,
                       t->c.leaves);
    }
    return DT_OK;
}

/* ---- the micro-batch --------------------------------------------------------------------------------------------- */

uint32_t dt_trainer_micro(const dt_trainer *t)
{
    const uint32_t own = t->leaf_end - t->leaf_begin;
    return t->device != NULL ? dt_train_device_group(t->device) : t->active < own ? t->active : own;
}

static void drop_execs(dt_compiled *c, uint32_t from)
{
    for (uint32_t i = from; i < c->n_exec; i++) {
        dt_exec_destroy(c->exec[i]);
    }
    c->n_exec = c->n_exec < from ? c->n_exec : from;
}

/* Workers from n on run no leaves any more, and what they held goes. Between steps; what the feed read ahead is
 * forgotten. */
static void narrow(dt_trainer *t, uint32_t n)
{
    dt_feed_stop(t->feed);
    t->feed = NULL;
    t->feed_is_paused = false;
    drop_execs(&t->train, n);
    for (uint32_t i = 0; i < t->n_infer; i++) {
        drop_execs(&t->infer[i], n);
    }
    for (uint32_t i = n; t->reader != NULL && i < t->active; i++) {
        dt_feed_reader_destroy(t->reader[i]);
        t->reader[i] = NULL;
    }
    t->active = n;
    const uint32_t needed = grads_needed(t);
    for (uint32_t i = needed; i < t->n_grads; i++) {
        dt_arena_unmap(t->grad[i], t->arena_bytes);
        t->grad[i] = NULL;
    }
    t->n_grads = t->n_grads < needed ? t->n_grads : needed;
    t->gradient = NULL;
}

bool dt_trainer_shrink(dt_trainer *t)
{
    if (t->device != NULL) {
        return false; /* the host holds what is on its way, no more */
    }
    if (t->c.prefetch > 0 && t->reader == NULL) {
        t->c.prefetch = 0;
        narrow(t, t->active);
        return true;
    }
    if (dt_trainer_micro(t) < 2) {
        return false;
    }
    narrow(t, dt_trainer_micro(t) / 2);
    return true;
}

static void say_smaller(const dt_trainer *t, uint32_t before)
{
    if (dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "%s; trying %u shard%s at a time instead of %u, nothing ahead; the result is the same",
               dt_error_text(), t->active, t->active == 1 ? "" : "s", before);
    }
    dt_error_clear();
}

bool dt_trainer_shrink_after(dt_trainer *t, dt_status st)
{
    if (st != DT_ENOMEM || t->was_short || t->device != NULL) {
        return false;
    }
    const uint32_t before = dt_trainer_micro(t);
    t->was_short = true;
    t->c.prefetch = 0;
    narrow(t, before > 1 ? before / 2 : 1);
    say_smaller(t, before);
    return true;
}

dt_status dt_trainer_explain_memory(const dt_trainer *t, dt_status st)
{
    return st != DT_ENOMEM || t->device != NULL
               ? st
               : DT_CONTEXT(st,
                            "out of memory with %u shard%s of a batch at a time; raise data.shards, set "
                            "engine.recompute = true, or take smaller models",
                            dt_trainer_micro(t), dt_trainer_micro(t) == 1 ? "" : "s");
}

/* Fewer leaves at once until what is likely to be touched keeps to the budget. */
static void keep_to_budget(dt_trainer *t)
{
    const uint32_t before = dt_trainer_micro(t);
    uint64_t wanted = 0;
    while (t->c.budget > 0) {
        dt_trainer_memory unused, m;
        dt_trainer_arenas_get(t, NULL, &unused, &m);
        wanted = m.params + m.grads + m.moments + m.activations + m.feed;
        if (wanted <= t->c.budget || dt_trainer_micro(t) < 2) {
            break;
        }
        narrow(t, dt_trainer_micro(t) / 2);
    }
    if (dt_comm_rank(t->d.comm) == 0 && dt_trainer_micro(t) < before) {
        dt_log(DT_LOG_INFO, "micro-batch: %u of %u shards at a time, for memory.target_gb; the result is the same",
               dt_trainer_micro(t), t->leaf_end - t->leaf_begin);
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
    DT_TRY(make_arenas(t));
    DT_TRY(dt_compile(t, t->d.source, true, &t->train));
    return t->d.source->is_live ? dt_make_readers(t) : DT_OK;
}

static void drop_memory(dt_trainer *t)
{
    for (uint32_t i = 0; t->reader != NULL && i < t->active; i++) {
        dt_feed_reader_destroy(t->reader[i]);
    }
    dt_free(t->reader);
    t->reader = NULL;
    dt_compiled_fini(&t->train);
    float **const arena[] = {&t->params, &t->moment[0], &t->moment[1]};
    for (size_t i = 0; i < sizeof(arena) / sizeof(arena[0]); i++) {
        dt_arena_unmap(*arena[i], t->arena_bytes);
        *arena[i] = NULL;
    }
    for (uint32_t i = 0; i <= DT_TREE_MAX_LEAVES; i++) {
        dt_arena_unmap(t->grad[i], t->arena_bytes);
        t->grad[i] = NULL;
    }
    t->n_grads = 0;
    dt_free(t->block_sum);
    dt_free(t->waited);
    dt_free(t->batch_index);
    t->block_sum = t->waited = NULL;
    t->batch_index = NULL;
}

/* Out of memory is answered by the smaller micro-batch, once. */
static dt_status build_cpu(dt_trainer *t)
{
    dt_status st = allocate_cpu(t);
    const uint32_t before = dt_trainer_micro(t);
    if (st == DT_ENOMEM && before > 1) {
        drop_memory(t);
        t->was_short = true;
        t->active = before / 2;
        t->c.prefetch = 0;
        say_smaller(t, before);
        st = allocate_cpu(t);
    }
    DT_TRY(dt_trainer_explain_memory(t, st));
    keep_to_budget(t);
    return DT_OK;
}

static dt_status build(dt_trainer *t)
{
    DT_TRY(check(t));
    const uint32_t ranks = dt_comm_size(t->d.comm);
    const uint32_t rank = dt_comm_rank(t->d.comm);
    t->steps_per_epoch = t->d.source->count / t->c.batch;
    t->leaf_begin = dt_tree_leaf_begin(t->c.leaves, ranks, rank);
    t->leaf_end = dt_tree_leaf_begin(t->c.leaves, ranks, rank + 1);
    t->active = t->c.threads;
    if (t->d.device_ops == NULL && t->c.micro_leaves > 0 && t->c.micro_leaves < t->active) {
        t->active = t->c.micro_leaves;
    }
    DT_TRY(dt_tree_create(t->c.leaves, ranks, rank, &t->tree));
    if (t->d.device_ops != NULL) {
        DT_TRY(make_arenas(t));
        DT_TRY(dt_record_training(t, t->d.source, &t->train));
        DT_TRY(dt_train_device_create(t, &t->device));
    } else {
        DT_TRY(build_cpu(t));
    }
    return dt_pool_start(t->c.threads, &t->pool);
}

dt_status dt_trainer_create(const dt_trainer_desc *d, dt_trainer **out_p)
{
    dt_trainer *t = dt_alloc(sizeof(*t));
    if (t == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    t->d = *d;
    t->c = *d->config;
    dt_scaler_init(&t->scaler, &t->c.scaling);
    pthread_mutex_init(&t->lock, NULL);
    dt_status st = DT_OK;
    if (d->stored != NULL) {
        st = dt_mixed_create(d->source, d->stored, d->n_stored, &t->mixed);
        t->d.source = st == DT_OK ? dt_mixed_samples(t->mixed) : d->source;
    }
    if (st == DT_OK) {
        st = build(t);
    }
    if (st < 0) {
        dt_trainer_destroy(t);
        return st;
    }
    *out_p = t;
    return DT_OK;
}

void dt_trainer_destroy(dt_trainer *t)
{
    if (t == NULL) {
        return;
    }
    dt_feed_stop(t->feed);
    dt_pool_stop(t->pool);
    for (uint32_t i = 0; i < t->n_infer; i++) {
        dt_compiled_fini(&t->infer[i]);
    }
    dt_free(t->infer);
    dt_passes_destroy(t->passes);
    dt_mixed_destroy(t->mixed);
    dt_free(t->held);
    if (t->device != NULL) {
        t->train.plan = NULL; /* one of the device's */
        dt_train_device_destroy(t->device);
    }
    dt_tree_destroy(t->tree);
    drop_memory(t);
    for (uint32_t i = 0; i < t->n_values; i++) {
        dt_free(t->value[i].name);
        dt_free(t->value[i].value);
    }
    dt_free(t->value);
    pthread_mutex_destroy(&t->lock);
    dt_free(t);
}

dt_status dt_trainer_share(dt_trainer *t, dt_status (*job)(void *user, uint32_t worker), void *user)
{
    return dt_pool_run(t->pool, job, user);
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

dt_status dt_trainer_hold(dt_trainer *t)
{
    return t->device != NULL ? dt_train_device_pull(t) : DT_OK;
}

float *dt_trainer_params(dt_trainer *t)
{
    return t->params;
}

const float *dt_trainer_last_gradient(const dt_trainer *t)
{
    return t->device == NULL ? t->gradient : NULL;
}

float *dt_trainer_moment(dt_trainer *t, uint32_t which)
{
    return which < 2 ? t->moment[which] : NULL;
}

uint64_t dt_trainer_step_number(const dt_trainer *t)
{
    return t->step;
}

void dt_trainer_step_set(dt_trainer *t, uint64_t step)
{
    dt_feed_stop(t->feed); /* it may have read ahead of the old place */
    t->feed = NULL;
    t->feed_is_paused = false;
    t->step = t->updates = step;
    t->passed = 0;
    dt_scaler_init(&t->scaler, &t->c.scaling);
    if (t->device != NULL) {
        dt_train_device_restart(t);
    }
}

void dt_trainer_refill(dt_trainer *t)
{
    if (t->feed != NULL && !t->feed_is_paused) {
        dt_feed_pause(t->feed);
        t->feed_is_paused = true;
    }
    if (t->mixed != NULL) {
        dt_mixed_draw(t->mixed, t->c.seed, t->c.phase, t->step / t->steps_per_epoch);
    }
}

static dt_status pass_to(dt_trainer *t, uint64_t step)
{
    DT_TRY(dt_trainer_hold(t)); /* the device forgets which of its buffers held which step */
    dt_trainer_refill(t);
    t->passed += step - t->step;
    t->step = step;
    return DT_OK;
}

uint64_t dt_trainer_moves(const dt_trainer *t)
{
    return t->moves;
}

dt_status dt_trainer_pass(dt_trainer *t)
{
    return pass_to(t, t->step + 1);
}

dt_status dt_trainer_seek(dt_trainer *t, uint64_t step)
{
    if (step < t->step || step > dt_trainer_steps(t)) {
        return DT_FAIL(DT_EINVAL, "cannot go on at step %llu: it lies outside %llu (now) .. %llu (the last one)",
                       (unsigned long long)step, (unsigned long long)t->step, (unsigned long long)dt_trainer_steps(t));
    }
    return step > t->step ? pass_to(t, step) : DT_OK;
}

uint64_t dt_trainer_updates(const dt_trainer *t)
{
    return t->updates;
}

uint64_t dt_trainer_passed(const dt_trainer *t)
{
    return t->passed;
}

void dt_trainer_passed_set(dt_trainer *t, uint64_t n)
{
    t->passed = n;
}

const dt_scaler *dt_trainer_scaler(const dt_trainer *t)
{
    return &t->scaler;
}

/* Static scaling and none keep to what is configured now. */
void dt_trainer_scaler_set(dt_trainer *t, uint64_t updates, const dt_scaler *s)
{
    const double scale = t->c.scaling.kind == DT_SCALING_DYNAMIC ? s->scale : t->scaler.scale;
    t->updates = updates;
    t->scaler = *s;
    t->scaler.scale = scale;
    if (t->device != NULL) {
        dt_train_device_restart(t);
    }
}

uint64_t dt_trainer_steps(const dt_trainer *t)
{
    return t->c.epochs * t->steps_per_epoch;
}

uint64_t dt_trainer_samples(const dt_trainer *t)
{
    return t->d.source->count;
}

uint64_t dt_trainer_batch(const dt_trainer *t)
{
    return t->c.batch;
}

uint64_t dt_trainer_steps_per_epoch(const dt_trainer *t)
{
    return t->steps_per_epoch;
}

const dt_samples *dt_trainer_source(const dt_trainer *t)
{
    return t->d.source;
}

const dt_samples *dt_trainer_live(const dt_trainer *t)
{
    return t->mixed != NULL ? dt_mixed_live(t->mixed) : t->d.source;
}

bool dt_trainer_learns_from(const dt_trainer *t, const dt_samples *s)
{
    return s == t->d.source || s == t->d.stored;
}

const double *dt_trainer_step_losses(const dt_trainer *t)
{
    return t->step_loss;
}

const dt_param_table *dt_trainer_table(const dt_trainer *t)
{
    return t->d.params;
}

void dt_trainer_memory_get(const dt_trainer *t, dt_trainer_memory *out)
{
    if (t->device != NULL) {
        dt_train_device_memory(t->device, out);
        return;
    }
    dt_trainer_memory resident;
    dt_trainer_arenas_get(t, NULL, out, &resident);
}

void dt_trainer_slice(const dt_samples *s, const double *mean, uint64_t most, int64_t *size)
{
    double n = (double)most < (double)s->slice_cap[s->n_symbols] ? (double)most : (double)s->slice_cap[s->n_symbols];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        n = mean[k] * n > (double)s->slice_cap[k] ? (double)s->slice_cap[k] / mean[k] : n;
    }
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (int64_t)ceil(mean[k] * n);
    }
    size[s->n_symbols] = (int64_t)n;
}

uint64_t dt_input_bytes(const dt_samples *s, const double *mean, uint64_t n)
{
    uint64_t bytes = 0;
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (int64_t)(mean[k] * (double)n);
    }
    size[s->n_symbols] = (int64_t)n;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        bytes += (s->skipped >> f & 1) != 0 ? 0 : dt_samples_field_bytes(s, f, size);
    }
    return bytes;
}

void dt_activations_of(const dt_compiled *c, const double *mean, uint64_t most, uint64_t *mapped, uint64_t *resident)
{
    const dt_plan_info *info = dt_plan_info_get(c->plan);
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    dt_trainer_slice(c->source, mean, most, size);
    *mapped = dt_arena_bytes(info->arena_bytes) + dt_arena_bytes(info->kept_bytes);
    *resident = dt_plan_touched_bytes(c->plan, size);
}

/* A sample's share of the largest of many leaves of n samples: three deviations of the leaves above the mean. */
static void large_share(const dt_samples *s, const double *mean, uint64_t n, double *share)
{
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const double high = mean[k] + 3 * s->sample_std[k] / sqrt((double)(n > 0 ? n : 1));
        share[k] = fmin(high, (double)s->sample_max[k]);
    }
}

void dt_trainer_arenas_get(const dt_trainer *t, const double *mean, dt_trainer_memory *mapped,
                           dt_trainer_memory *resident)
{
    const dt_samples *s = t->reader != NULL ? &t->live : t->d.source;
    const uint32_t own = t->leaf_end - t->leaf_begin;
    const uint64_t leaf = (t->c.batch + t->c.leaves - 1) / t->c.leaves, arena = dt_arena_bytes(t->arena_bytes);
    uint64_t most = 0, likely = 0;
    double all[DT_SAMPLES_MAX_SYMBOLS];
    memcpy(all, s->sample_mean, sizeof(all));
    if (mean != NULL) { /* of what is mixed in nobody knows better */
        memcpy(all, mean, (t->mixed != NULL ? dt_mixed_live(t->mixed) : s)->n_symbols * sizeof(*all));
    }
    mean = all;
    memset(mapped, 0, sizeof(*mapped));
    memset(resident, 0, sizeof(*resident));
    mapped->params = resident->params = arena;
    mapped->moments = resident->moments = arena * (t->moment[1] != NULL ? 2 : 1);
    if (t->n_grads > 0) {
        /* buffers are taken again in the order in which they come back, so the last ones are rarely needed */
        uint32_t levels = 0;
        while ((1u << levels) < own) {
            levels++;
        }
        const uint32_t used = t->active + levels;
        mapped->grads = arena * (t->n_grads + 1);
        resident->grads = arena * ((used < t->n_grads ? used : t->n_grads) + (dt_comm_size(t->d.comm) > 1));
    }
    if (t->device == NULL) {
        const uint32_t workers = t->active < own ? t->active : own;
        dt_activations_of(&t->train, mean, leaf, &most, &likely);
        mapped->activations = most * t->active;
        resident->activations = likely * workers;
    }
    const uint32_t slots = dt_trainer_slots(t);
    const size_t slot = dt_feed_arena_bytes(s, leaf);
    double share[DT_SAMPLES_MAX_SYMBOLS];
    large_share(s, mean, leaf, share);
    mapped->feed = dt_arena_bytes(slot) * slots;
    resident->feed = dt_arena_touched(slot, dt_input_bytes(s, share, leaf)) * slots;
    for (uint32_t i = 0; i < t->n_infer; i++) {
        const dt_compiled *c = &t->infer[i];
        const uint64_t cap = (uint64_t)c->source->slice_cap[c->source->n_symbols];
        const uint32_t n = c->device != NULL ? dt_device_infer_slices(c->device) : t->active;
        const uint64_t most_inputs = dt_samples_bytes_max(c->source, cap), bytes = dt_arena_bytes(most_inputs) * n;
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
        dt_trainer_slice(c->source, c->source->sample_mean, c->source->count, size);
        mapped->inputs = bytes > mapped->inputs ? bytes : mapped->inputs; /* one after another */
        const uint64_t samples = (uint64_t)size[c->source->n_symbols];
        resident->inputs =
            dt_arena_touched(most_inputs, dt_input_bytes(c->source, c->source->sample_mean, samples)) * n;
        if (c->device == NULL) {
            dt_activations_of(c, c->source->sample_mean, c->source->count, &most, &likely);
            mapped->evaluation += most * t->active;
            resident->evaluation += likely * t->active;
        }
    }
    dt_passes_arenas_get(t, mean, mapped, resident);
}

dt_plan_cost dt_trainer_cost(const dt_trainer *t)
{
    const dt_samples *s = t->d.source;
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (int64_t)(s->sample_mean[k] * t->c.batch + 0.5);
    }
    size[s->n_symbols] = t->c.batch;
    return dt_plan_cost_get(t->train.plan, size);
}

bool dt_trainer_is_half(const dt_trainer *t)
{
    return t->c.math >= DT_DEVICE_MATH_BF16 || t->c.scaling.kind != DT_SCALING_NONE;
}

double dt_trainer_overflow_rate(const dt_trainer *t)
{
    return t->monitor.overflow_rate;
}

dt_trainer_times dt_trainer_times_get(const dt_trainer *t)
{
    return t->times;
}

const dt_plan *dt_trainer_plan(const dt_trainer *t)
{
    return t->train.plan;
}

const dt_graph *dt_trainer_graph(const dt_trainer *t)
{
    return t->train.graph;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * See trainer.h: the life of a trainer, its state and its memory. state.c holds what training is, compile.c makes
 * graphs, step.c makes steps by a backend (backend.h), infer.c runs inference.
 */
#include <config.h>

#include "train/trainer_internal.h"
#include "train/record_again.h"
#include "engine/graph/fingerprint.h"
#include "engine/graph/select.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/device/infer.h"

#include <math.h>
#include <string.h>

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Less than a batch is what is left of an epoch, too: all of it is one. */
static void shrink_batch_to_data(dt_trainer *t)
{
    const uint64_t count = t->d.source->count;
    if (t->d.source->is_live || t->d.source->turn != NULL || !t->c.keep_last || count == 0 || count >= t->c.batch) {
        return;
    }
    if (dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_INFO,
               "the training data has %llu samples, fewer than the %llu of a batch: each step takes all of them",
               (unsigned long long)count, (unsigned long long)t->c.batch);
    }
    t->c.batch = count;
}

static dt_status check_desc(const dt_trainer *t)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    if (t->d.source->count < t->c.batch) {
        return DT_FAIL(DT_ECONFIG,
                       "one step takes %llu samples (data.batch times training.accumulation) but the training data has "
                       "%llu; lower data.batch, or %s",
                       (unsigned long long)t->c.batch, (unsigned long long)t->d.source->count,
                       t->d.source->turn != NULL ? "raise data.window"
                       : t->d.source->is_live    ? "collect more in an iteration (train_batch of the phase)"
                       : t->d.source->count == 0
                           ? "import more scenes"
                           : "import more scenes, or set data.drop_last = false, which trains on what is there");
    }
    if (ranks > t->c.shards) {
        return DT_FAIL(DT_ECONFIG, "%u ranks share data.shards = %u shards; every rank needs at least one", ranks,
                       t->c.shards);
    }
    DT_TRY(t->backend->check(t));
    if (t->d.apart != NULL && t->d.n_groups > 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "loss %s is in no group, but groups are used; a role that is in no group is never updated",
                       t->d.apart);
    }
    return DT_OK;
}

static dt_status partition_shards(dt_trainer *t)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    const uint32_t *weight = t->c.shard_weights;
    t->c.shard_weights = NULL; /* the caller's */
    t->shape = (dt_tree_shape){.leaves = t->c.shards, .ranks = ranks, .rank = dt_comm_rank(t->d.comm)};
    if (weight == NULL) {
        return DT_OK;
    }
    t->first_shard = dt_alloc_n(ranks + (size_t)1, sizeof(*t->first_shard));
    if (t->first_shard == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the shards of %u ranks", ranks);
    }
    t->shape.begin = t->first_shard;
    return dt_tree_partition(t->c.shards, ranks, weight, t->first_shard);
}

/* A source that changes is drawn in rounds of whole batches. */
static dt_status create_sampler(dt_trainer *t)
{
    const bool is_live = t->d.source->is_live;
    DT_TRY(dt_sampler_init(&t->state.sampler, t->d.source, t->c.batch, is_live ? DT_SAMPLING_SHUFFLED : t->c.sampling,
                           is_live || !t->c.keep_last));
    t->state.steps_per_epoch = dt_sampler_steps(&t->state.sampler);
    return DT_OK;
}

static dt_status create_parts(dt_trainer *t)
{
    shrink_batch_to_data(t);
    DT_TRY(check_desc(t));
    DT_TRY(dt_groups_create(t));
    DT_TRY(partition_shards(t));
    const uint32_t rank = t->shape.rank;
    DT_TRY(create_sampler(t));
    t->workers.shard_begin = dt_tree_leaf_begin(&t->shape, rank);
    t->workers.shard_end = dt_tree_leaf_begin(&t->shape, rank + 1);
    t->workers.active = t->c.threads;
    DT_TRY(t->backend->create(t));
    return dt_pool_start(t->c.threads, &t->workers.pool);
}

dt_status dt_trainer_create(const dt_trainer_desc *d, dt_trainer **out_p)
{
    dt_trainer *t = dt_alloc(sizeof(*t));
    if (t == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    t->d = *d;
    t->c = *d->config;
    t->backend = d->device_ops != NULL ? &dt_device_backend : &dt_cpu_backend;
    if (d->target != NULL) {
        memcpy(t->state.target, d->target, d->params->n_targets * sizeof(*d->target));
    }
    t->d.target = NULL; /* the caller's */
    dt_scaler_init(&t->state.scaler, &t->c.scaling);
    pthread_mutex_init(&t->workers.lock, NULL);
    dt_status st = DT_OK;
    if (d->stored != NULL) {
        st = dt_mixed_create(d->source, d->stored, d->n_stored, &t->mixed);
        t->d.source = st == DT_OK ? dt_mixed_samples(t->mixed) : d->source;
    }
    if (st == DT_OK) {
        st = create_parts(t);
    }
    t->d.group = NULL; /* the caller's */
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
    dt_feed_stop(t->workers.feed);
    dt_pool_stop(t->workers.pool);
    for (uint32_t i = 0; i < t->n_infer; i++) {
        dt_compiled_fini(&t->infer[i]);
    }
    dt_free(t->infer);
    dt_compiled_fini(&t->acting);
    dt_passes_destroy(t->passes);
    dt_mixed_destroy(t->mixed);
    dt_groups_destroy(t);
    dt_sampler_fini(&t->state.sampler);
    dt_free(t->state.external);
    dt_free(t->first_shard);
    t->backend->destroy(t);
    dt_trainer_destroy_arenas(t);
    for (uint32_t i = 0; i < t->state.n_values; i++) {
        dt_step_value_fini(&t->state.value[i]);
    }
    dt_free(t->state.value);
    pthread_mutex_destroy(&t->workers.lock);
    dt_free(t);
}

dt_status dt_trainer_run_on_workers(dt_trainer *t, dt_status (*job)(void *user, uint32_t worker), void *user)
{
    return dt_pool_run(t->workers.pool, job, user);
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

float *dt_trainer_params(dt_trainer *t)
{
    return t->state.params;
}

uint64_t dt_trainer_step_number(const dt_trainer *t)
{
    return t->state.step;
}

void dt_trainer_step_number_set(dt_trainer *t, uint64_t step)
{
    dt_feed_stop(t->workers.feed); /* it may have read ahead of the old place */
    t->workers.feed = NULL;
    t->workers.feed_is_paused = false;
    t->workers.has_window = false;
    t->state.step = step;
    dt_groups_set_updates(t, step);
    t->state.bypassed = 0;
    dt_scaler_init(&t->state.scaler, &t->c.scaling);
    t->backend->invalidate(t);
}

uint64_t dt_trainer_vector_updates(const dt_trainer *t)
{
    return t->state.vector_updates;
}

uint64_t dt_trainer_updates(const dt_trainer *t)
{
    return t->state.updates;
}

uint64_t dt_trainer_bypassed_steps(const dt_trainer *t)
{
    return t->state.bypassed;
}

uint64_t dt_trainer_empty_steps(const dt_trainer *t)
{
    return t->state.empty_steps;
}

void dt_trainer_bypassed_steps_set(dt_trainer *t, uint64_t n)
{
    t->state.bypassed = n;
}

const dt_scaler *dt_trainer_scaler(const dt_trainer *t)
{
    return &t->state.scaler;
}

/* Static scaling and none keep to what is configured now. */
void dt_trainer_scaler_set(dt_trainer *t, uint64_t updates, const dt_scaler *s)
{
    const double scale = t->c.scaling.kind == DT_SCALING_DYNAMIC ? s->scale : t->state.scaler.scale;
    dt_groups_set_updates(t, updates);
    t->state.scaler = *s;
    t->state.scaler.scale = scale;
    t->backend->invalidate(t);
}

void dt_trainer_group_updates_set(dt_trainer *t, uint32_t group, uint64_t updates)
{
    t->state.group[group].updates = updates;
    t->backend->invalidate(t);
}

uint64_t dt_trainer_samples(const dt_trainer *t)
{
    return t->d.source->count;
}

uint64_t dt_trainer_batch(const dt_trainer *t)
{
    return t->c.batch;
}

dt_sampling dt_trainer_sampling(const dt_trainer *t)
{
    return t->state.sampler.kind;
}

uint64_t dt_trainer_steps_per_epoch(const dt_trainer *t)
{
    return t->state.steps_per_epoch;
}

const dt_samples *dt_trainer_source(const dt_trainer *t)
{
    return t->d.source;
}

const dt_samples *dt_trainer_live_samples(const dt_trainer *t)
{
    return t->mixed != NULL ? dt_mixed_live_samples(t->mixed) : t->d.source;
}

bool dt_trainer_trains_on(const dt_trainer *t, const dt_samples *s)
{
    return s == t->d.source || s == t->d.stored;
}

const double *dt_trainer_step_losses(const dt_trainer *t)
{
    return t->scratch.step_loss;
}

void dt_trainer_memory_get(const dt_trainer *t, dt_trainer_memory *out)
{
    t->backend->memory_get(t, out);
}

static void compute_mean_batch(const dt_trainer *t, int64_t *size)
{
    const dt_samples *s = t->d.source;
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (int64_t)(s->sample_mean[k] * t->c.batch + 0.5);
    }
    size[s->n_symbols] = t->c.batch;
}

dt_plan_cost dt_trainer_step_cost(const dt_trainer *t)
{
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    compute_mean_batch(t, size);
    return dt_plan_cost_get(t->train.plan, size);
}

uint64_t dt_trainer_reduction_bytes(const dt_trainer *t)
{
    return t->backend->reduction_bytes(t);
}

dt_status dt_trainer_list_device_calls(const dt_trainer *t, uint32_t half, void *user,
                                       void (*each)(void *user, const dt_call_cost *c))
{
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    dt_plan *p = NULL;
    const dt_plan_desc pd = {.kernels = DT_KERNELS_DEVICE,
                             .training = true,
                             .reuse = t->c.reuse,
                             .fuse = t->c.fuse,
                             .recompute = t->c.recompute,
                             .cap = t->d.source->slice_cap,
                             .half = half};
    DT_TRY(dt_plan_compile(t->train.graph, &pd, &p));
    compute_mean_batch(t, size);
    for (uint32_t i = 0; i < dt_plan_info_get(p)->n_calls; i++) {
        const dt_call_cost c = dt_plan_call_cost(p, i, size);
        each(user, &c);
    }
    dt_plan_destroy(p);
    return DT_OK;
}

double dt_trainer_overflow_rate(const dt_trainer *t)
{
    return t->state.monitor.overflow_rate;
}

dt_trainer_times dt_trainer_times_get(const dt_trainer *t)
{
    return t->times;
}

const dt_plan *dt_trainer_plan(const dt_trainer *t)
{
    return t->train.plan;
}

dt_status dt_trainer_record_again(dt_trainer *t, dt_str *out)
{
    dt_compiled c;
    dt_status st = dt_record_graph(t, t->d.source, DT_FOR_TRAINING, NULL, &c);
    if (st >= 0) {
        dt_graph_fingerprint(c.graph, out);
        st = dt_str_status(out);
    }
    dt_compiled_fini(&c);
    return st;
}

dt_status dt_trainer_acting_graph(dt_trainer *t, const dt_graph **out_p)
{
    if (t->acting.graph == NULL) {
        const dt_status st = dt_record_graph(t, t->d.source, DT_FOR_ACTING, NULL, &t->acting);
        if (st < 0) {
            dt_compiled_fini(&t->acting);
            return st;
        }
    }
    *out_p = t->acting.graph;
    return DT_OK;
}

dt_status dt_trainer_params_of_acting(dt_trainer *t, const char *const *except, bool *param_p)
{
    const dt_graph *g = NULL;
    DT_TRY(dt_trainer_acting_graph(t, &g));
    return dt_graph_params_of_outputs(g, except, param_p);
}

const dt_graph *dt_trainer_graph(const dt_trainer *t)
{
    return t->train.graph;
}

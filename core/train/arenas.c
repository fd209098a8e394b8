/* SPDX-License-Identifier: Apache-2.0
 *
 * What every backend allocates for a trainer, and how many bytes that takes. See trainer_internal.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "train/device/infer.h"

#include <math.h>
#include <string.h>

static dt_status create_moments(dt_trainer *t)
{
    const int64_t n = dt_comm_size(t->d.comm) == 1 ? t->d.params->base_total : t->reduce.n_own;
    t->state.moment_bytes = (size_t)(n > 0 ? n : 1) * sizeof(float);
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        void *p = NULL;
        DT_TRY(dt_arena_map(t->state.moment_bytes, &p));
        t->state.moment[i] = p;
    }
    return DT_OK;
}

static void release_whole_moments(dt_trainer *t)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (t->state.is_whole_mapped[i]) {
            dt_arena_unmap(t->state.whole[i], t->state.grad_bytes);
        }
        t->state.whole[i] = NULL;
        t->state.is_whole_mapped[i] = false;
    }
}

static void destroy_moments(dt_trainer *t)
{
    release_whole_moments(t);
    for (uint32_t i = 0; i < 2; i++) {
        dt_arena_unmap(t->state.moment[i], t->state.moment_bytes);
        t->state.moment[i] = NULL;
    }
}

dt_status dt_trainer_create_arenas(dt_trainer *t)
{
    const dt_param_table *p = t->d.params;
    t->state.arena_bytes = (size_t)(p->total > 0 ? p->total : 1) * sizeof(float);
    t->state.grad_bytes = (size_t)(p->base_total > 0 ? p->base_total : 1) * sizeof(float);
    DT_TRY(dt_map_float_arena(t->state.arena_bytes, &t->state.params));
    DT_TRY(dt_reduce_create(t));
    DT_TRY(create_moments(t));
    DT_TRY(dt_param_table_init(t->d.params, t->c.seed, t->state.params));
    t->scratch.shard_loss = dt_alloc_n(t->workers.shard_end - t->workers.shard_begin, sizeof(*t->scratch.shard_loss));
    t->workers.waited = dt_alloc_n(t->c.threads, sizeof(double));
    t->scratch.batch_index = dt_alloc_n(t->c.batch, sizeof(uint64_t));
    t->scratch.part = dt_alloc_n(dt_comm_size(t->d.comm), sizeof(*t->scratch.part));
    if (t->scratch.shard_loss == NULL || t->workers.waited == NULL || t->scratch.batch_index == NULL ||
        t->scratch.part == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    return DT_OK;
}

void dt_trainer_destroy_arenas(dt_trainer *t)
{
    if (t->workers.reader != NULL) {
        for (uint32_t i = 0; i < t->workers.active; i++) {
            dt_feed_reader_destroy(t->workers.reader[i]);
        }
    }
    dt_free(t->workers.reader);
    t->workers.reader = NULL;
    dt_compiled_fini(&t->train);
    dt_arena_unmap(t->state.params, t->state.arena_bytes);
    t->state.params = NULL;
    destroy_moments(t);
    dt_grads_destroy(t, 0);
    dt_reduce_destroy(t);
    dt_free(t->scratch.shard_loss);
    dt_free(t->workers.waited);
    dt_free(t->scratch.batch_index);
    dt_free(t->scratch.part);
    t->scratch.part = NULL;
    t->workers.waited = NULL;
    t->scratch.shard_loss = NULL;
    t->scratch.batch_index = NULL;
}

/* A sample's share of the largest of many shards of n samples: three deviations of the shards above the mean. */
static void estimate_large_sample(const dt_samples *s, const double *mean, uint64_t n, double *share)
{
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        const double high = mean[k] + 3 * s->sample_std[k] / sqrt((double)(n > 0 ? n : 1));
        share[k] = fmin(high, (double)s->sample_max[k]);
    }
}

void dt_trainer_arenas_get(const dt_trainer *t, const double *mean, dt_trainer_memory *mapped,
                           dt_trainer_memory *resident)
{
    const dt_samples *s = t->workers.reader != NULL ? &t->workers.live : t->d.source;
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    const uint64_t shard = (t->c.batch + t->c.shards - 1) / t->c.shards, grad = dt_arena_bytes(t->state.grad_bytes);
    uint64_t most = 0, likely = 0;
    double all[DT_SAMPLES_MAX_SYMBOLS];
    memcpy(all, s->sample_mean, sizeof(all));
    if (mean != NULL) { /* of what is mixed in nothing better is known */
        memcpy(all, mean, (t->mixed != NULL ? dt_mixed_live_samples(t->mixed) : s)->n_symbols * sizeof(*all));
    }
    mean = all;
    memset(mapped, 0, sizeof(*mapped));
    memset(resident, 0, sizeof(*resident));
    mapped->params = resident->params = dt_arena_bytes(t->state.arena_bytes);
    mapped->moments = resident->moments = dt_arena_bytes(t->state.moment_bytes) * dt_trainer_n_moments(t);
    if (t->workers.n_grads > 0) {
        /* buffers are taken again in the order in which they come back, so the last ones are rarely needed */
        uint32_t levels = 0;
        while ((1u << levels) < own) {
            levels++;
        }
        const uint32_t used = t->workers.active + levels;
        mapped->grads = grad * t->workers.n_grads + dt_reduce_bytes(t);
        resident->grads = grad * (used < t->workers.n_grads ? used : t->workers.n_grads) + dt_reduce_bytes(t);
    }
    if (t->train.n_exec > 0) {
        const uint32_t workers = t->workers.active < own ? t->workers.active : own;
        dt_compute_activation_bytes(&t->train, mean, shard, &most, &likely);
        mapped->activations = most * t->workers.active;
        resident->activations = likely * workers;
    }
    const uint32_t slots = t->backend->feed_slots(t);
    const size_t slot = dt_feed_arena_bytes(s, shard);
    double share[DT_SAMPLES_MAX_SYMBOLS];
    estimate_large_sample(s, mean, shard, share);
    mapped->feed = dt_arena_bytes(slot) * slots;
    resident->feed = dt_arena_touched(slot, dt_compute_input_bytes(s, share, shard)) * slots;
    for (uint32_t i = 0; i < t->n_infer; i++) {
        const dt_compiled *c = &t->infer[i];
        const uint64_t cap = (uint64_t)c->source->slice_cap[c->source->n_symbols];
        const uint32_t n = c->device != NULL
                               ? dt_device_infer_max_micro_batches(c->device) * dt_device_infer_n_places(c->device)
                               : t->workers.active;
        const uint64_t most_inputs = dt_samples_bytes_max(c->source, cap), bytes = dt_arena_bytes(most_inputs) * n;
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
        dt_trainer_typical_sizes(c->source, c->source->sample_mean, c->source->count, size);
        mapped->inputs = bytes > mapped->inputs ? bytes : mapped->inputs; /* one after another */
        const uint64_t samples = (uint64_t)size[c->source->n_symbols];
        resident->inputs =
            dt_arena_touched(most_inputs, dt_compute_input_bytes(c->source, c->source->sample_mean, samples)) * n;
        if (c->device == NULL) {
            dt_compute_activation_bytes(c, c->source->sample_mean, c->source->count, &most, &likely);
            mapped->evaluation += most * t->workers.active;
            resident->evaluation += likely * t->workers.active;
        }
    }
    dt_passes_arenas_get(t, mean, mapped, resident);
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

/* One rank has the optimizer's moments with the table's offsets, as the parameters, up to the target networks, which
 * have none. One of several ranks has its slices alone, one after the other; to be saved or loaded they are opened:
 * whole, in buffers of gradients, which hold nothing between steps. */

uint32_t dt_trainer_n_moments(const dt_trainer *t)
{
    return dt_optim_n_moments(t->c.optim.kind);
}

float *dt_trainer_moment(dt_trainer *t, uint32_t which)
{
    if (which >= 2 || t->state.moment[which] == NULL) {
        return NULL;
    }
    return dt_comm_size(t->d.comm) == 1 ? t->state.moment[which] : t->state.whole[which];
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static dt_status allocate_whole(dt_trainer *t)
{
    DT_TRY(dt_trainer_synchronize(t));
    release_whole_moments(t);
    t->scratch.gradient = NULL; /* its buffer is used */
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        if (i < t->workers.n_grads) {
            t->state.whole[i] = t->workers.grad[i].data;
            continue;
        }
        DT_TRY(dt_map_float_arena(t->state.grad_bytes, &t->state.whole[i]));
        t->state.is_whole_mapped[i] = true;
    }
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        memset(t->state.whole[i], 0, t->state.grad_bytes);
    }
    return DT_OK;
}

/* This rank's slices, from one into the other. */
static void copy_own_slices(dt_trainer *t, uint32_t which, bool to_whole)
{
    for (uint32_t i = 0; i < t->reduce.n_pieces; i++) {
        const dt_piece *p = &t->reduce.piece[i];
        float *whole = t->state.whole[which] + p->at.begin, *own = t->state.moment[which] + p->moment;
        memcpy(to_whole ? whole : own, to_whole ? own : whole, (size_t)(p->at.end - p->at.begin) * sizeof(float));
    }
}

dt_status dt_trainer_open_moments(dt_trainer *t, bool is_gathered)
{
    if (dt_comm_size(t->d.comm) == 1) {
        return DT_OK;
    }
    const dt_status st = allocate_whole(t);
    if (!is_gathered) {
        return st;
    }
    DT_TRY(dt_comm_agree(t->d.comm, st));
    for (uint32_t i = 0; i < dt_trainer_n_moments(t); i++) {
        copy_own_slices(t, i, true);
        DT_TRY(dt_reduce_all_gather(t, t->state.whole[i], true));
    }
    return DT_OK;
}

void dt_trainer_close_moments(dt_trainer *t, bool is_changed)
{
    if (dt_comm_size(t->d.comm) == 1 || t->state.whole[0] == NULL) {
        return;
    }
    for (uint32_t i = 0; i < dt_trainer_n_moments(t) && is_changed; i++) {
        copy_own_slices(t, i, false);
    }
    release_whole_moments(t);
}

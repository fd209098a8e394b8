/* SPDX-License-Identifier: Apache-2.0
 *
 * How large a global batch is, and what its losses are divided by; see trainer_internal.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/trace.h"

#include <string.h>

void dt_compute_loss_divisors(const dt_samples *s, const dt_compiled *c, const int64_t *size, double *norm)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(c->graph, &loss);
    for (uint32_t i = 0; i < n; i++) {
        norm[i] = 1.0;
        for (uint32_t k = 0; k <= s->n_symbols; k++) {
            if (strcmp(loss[i].symbol, c->symbol[k]) == 0) {
                norm[i] = size[k] > 0 ? (double)size[k] : 1.0;
            }
        }
    }
}

/* loss = sum_i weight_i * sum / (live size of its symbol in the whole global batch) */
static void set_normalisers(dt_trainer *t)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    dt_compute_loss_divisors(t->d.source, &t->train, t->scratch.size, t->scratch.norm);
    for (uint32_t i = 0; i < n; i++) {
        t->scratch.loss_seed[i] = loss[i].weight / t->scratch.norm[i];
    }
}

/* A loss of weight 0 is reported alone, and its rows do not affect training. */
static bool is_batch_empty(const dt_trainer *t)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(t->train.graph, &loss);
    bool learns = false;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_moved = (t->scratch.groups >> loss[i].group & 1) != 0 && loss[i].weight != 0;
        bool is_counted = false;
        learns = learns || is_moved;
        for (uint32_t k = 0; k <= t->d.source->n_symbols && is_moved; k++) {
            if (strcmp(loss[i].symbol, t->train.symbol[k]) == 0) {
                is_counted = true;
                if (t->scratch.size[k] > 0) {
                    return false;
                }
            }
        }
        if (is_moved && !is_counted) {
            return false;
        }
    }
    return learns;
}

dt_status dt_compute_batch_sizes(dt_trainer *t, uint64_t step, int64_t *largest, int64_t *total)
{
    const dt_samples *s = t->d.source;
    DT_TRACE("data", "batch sizes");
    const uint64_t epoch = step / t->state.steps_per_epoch;
    const uint64_t base = step % t->state.steps_per_epoch * t->c.batch;
    const uint64_t batch = dt_sampler_batch(&t->state.sampler, step);
    memset(largest, 0, (s->n_symbols + 1) * sizeof(*largest));
    memset(total, 0, (s->n_symbols + 1) * sizeof(*total));
    dt_sampler_epoch order;
    dt_sampler_begin_epoch(&order, &t->state.sampler, t->c.seed, t->c.phase, epoch);
    for (uint32_t shard = 0; shard < t->c.shards; shard++) {
        const uint64_t begin = dt_shard_begin(batch, t->c.shards, shard);
        const uint64_t end = dt_shard_begin(batch, t->c.shards, shard + 1);
        int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
        dt_sampler_list_samples(&order, base + begin, end - begin, t->scratch.batch_index + begin);
        DT_TRY(s->ops->sizes(s->self, t->scratch.batch_index + begin, (uint32_t)(end - begin), size));
        size[s->n_symbols] = (int64_t)(end - begin);
        for (uint32_t k = 0; k <= s->n_symbols; k++) {
            total[k] += size[k];
            largest[k] = size[k] > largest[k] ? size[k] : largest[k];
        }
    }
    return DT_OK;
}

dt_status dt_prepare_batch(dt_trainer *t, bool *is_empty_p)
{
    DT_TRY(dt_compute_batch_sizes(t, t->state.step, t->scratch.largest, t->scratch.size));
    set_normalisers(t);
    *is_empty_p = is_batch_empty(t);
    return DT_OK;
}

double dt_shard_share(const dt_trainer *t)
{
    const uint64_t samples = dt_sampler_batch(&t->state.sampler, t->state.step);
    return 1.0 / (double)(samples < t->c.shards ? samples : t->c.shards);
}

/* ---- what a live source brings to ranks -------------------------------------------------------------------------- */

/* A device is fed ahead of steps: there every rank has all samples, whatever it reads of them. */
static dt_status fetch_parts(dt_trainer *t, const dt_samples *s)
{
    dt_samples all = *s;
    if (!t->backend->is_fed_ahead || s->bring == NULL) {
        return dt_samples_fetch_parts(s, t->scratch.part);
    }
    all.skipped = 0;
    for (uint32_t k = 0; k < dt_comm_size(t->d.comm); k++) {
        t->scratch.part[k] = (dt_samples_part){.n = s->count};
    }
    return dt_samples_fetch_parts(&all, t->scratch.part);
}

/* The first of so many samples in the shards of a rank. */
static uint64_t first_sample_of_rank(const dt_trainer *t, uint64_t samples, uint32_t rank)
{
    return dt_shard_begin(samples, t->c.shards, dt_tree_leaf_begin(&t->shape, rank));
}

/* The shards of each rank, cut out of so many samples. */
static void list_shard_parts(dt_trainer *t, uint64_t samples, const uint64_t *index)
{
    for (uint32_t k = 0; k < t->shape.ranks; k++) {
        const uint64_t begin = first_sample_of_rank(t, samples, k), end = first_sample_of_rank(t, samples, k + 1);
        t->scratch.part[k] = (dt_samples_part){.index = index != NULL ? index + begin : NULL, .first = begin};
        t->scratch.part[k].n = end - begin;
    }
}

dt_status dt_fetch_batch(dt_trainer *t, const dt_samples *s)
{
    list_shard_parts(t, t->c.batch, t->scratch.batch_index);
    return fetch_parts(t, s);
}

dt_status dt_fetch_shards(dt_trainer *t, const dt_samples *s)
{
    list_shard_parts(t, s->count, NULL);
    return fetch_parts(t, s);
}

dt_status dt_fetch_range(dt_trainer *t, const dt_samples *s, uint64_t first, uint64_t n)
{
    for (uint32_t k = 0; k < dt_comm_size(t->d.comm); k++) {
        t->scratch.part[k] = (dt_samples_part){.first = first, .n = n};
    }
    return fetch_parts(t, s);
}

/* A round of an evaluation over the samples shows all ranks the micro-batches of all. */
static uint64_t max_fetched_by_evaluation(const dt_trainer *t)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < t->n_infer; i++) {
        const dt_samples *d = t->infer[i].source;
        const uint64_t micro_batches = (uint64_t)t->workers.active * dt_comm_size(t->d.comm);
        const uint64_t n = d->bring != NULL ? micro_batches * (uint64_t)d->slice_cap[d->n_symbols] : 0;
        most = n > most ? n : most;
    }
    return most < t->d.source->count ? most : t->d.source->count;
}

uint64_t dt_trainer_max_fetched(const dt_trainer *t)
{
    const uint64_t samples = t->passes != NULL ? t->d.source->count : t->c.batch;
    uint64_t most = max_fetched_by_evaluation(t);
    if (t->backend->is_fed_ahead) {
        return t->d.source->count;
    }
    for (uint32_t k = 0; k < t->shape.ranks; k++) {
        const uint64_t n = first_sample_of_rank(t, samples, k + 1) - first_sample_of_rank(t, samples, k);
        most = n > most ? n : most;
    }
    return most;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What training is between two steps: arenas, counts, and how large things are. All other files of the
 * room stand on this one; see trainer.h and trainer_internal.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/log.h"

#include <math.h>
#include <string.h>

dt_status dt_map_float_arena(size_t bytes, float **out)
{
    void *p = NULL;
    DT_TRY(dt_arena_map(bytes, &p));
    *out = p;
    return DT_OK;
}

/* As many gradient buffers as can be alive at once: one per worker in work, and pending nodes, which are siblings of
 * nodes on the path of an unfinished shard: those in work and the next one. */
static uint32_t count_live_grads(const dt_trainer *t)
{
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    uint32_t levels = 0;
    while ((1u << levels) < own) {
        levels++;
    }
    const uint32_t n = t->workers.active + (t->workers.active + 1) * levels;
    return n < own ? n : own;
}

dt_status dt_grads_create(dt_trainer *t)
{
    if (t->workers.n_grads > 0) {
        return DT_OK;
    }
    const uint32_t n = count_live_grads(t);
    t->workers.grad = dt_alloc_n(n, sizeof(*t->workers.grad));
    t->workers.grad_free = dt_alloc_n(n, sizeof(*t->workers.grad_free));
    if (t->workers.grad == NULL || t->workers.grad_free == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a list of %u buffers of gradients", n);
    }
    for (t->workers.n_grads = 0; t->workers.n_grads < n; t->workers.n_grads++) {
        DT_TRY(dt_map_float_arena(t->state.grad_bytes, &t->workers.grad[t->workers.n_grads].data));
    }
    return DT_OK;
}

void dt_grads_destroy(dt_trainer *t, uint32_t from)
{
    for (uint32_t i = from; i < t->workers.n_grads; i++) {
        dt_arena_unmap(t->workers.grad[i].data, t->state.grad_bytes);
        t->workers.grad[i].data = NULL;
    }
    t->workers.n_grads = t->workers.n_grads < from ? t->workers.n_grads : from;
    if (from == 0) {
        dt_free(t->workers.grad);
        dt_free(t->workers.grad_free);
        t->workers.grad = NULL;
        t->workers.grad_free = NULL;
    }
}

uint64_t dt_trainer_steps(const dt_trainer *t)
{
    return t->c.epochs * t->state.steps_per_epoch;
}

void dt_trainer_typical_sizes(const dt_samples *s, const double *mean, uint64_t most, int64_t *size)
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

uint64_t dt_compute_input_bytes(const dt_samples *s, const double *mean, uint64_t n)
{
    uint64_t bytes = 0;
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        size[k] = (int64_t)(mean[k] * (double)n);
    }
    size[s->n_symbols] = (int64_t)n;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if ((s->skipped >> f & 1) == 0) {
            bytes += dt_samples_field_bytes(s, f, size);
        }
    }
    return bytes;
}

void dt_compute_activation_bytes(const dt_compiled *c, const double *mean, uint64_t most, uint64_t *mapped,
                                 uint64_t *resident)
{
    const dt_plan_info *info = dt_plan_info_get(c->plan);
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    dt_trainer_typical_sizes(c->source, mean, most, size);
    *mapped = dt_arena_bytes(info->arena_bytes) + dt_arena_bytes(info->kept_bytes);
    *resident = dt_plan_touched_bytes(c->plan, size);
}

bool dt_trainer_is_mixed_precision(const dt_trainer *t)
{
    return t->c.math >= DT_DEVICE_MATH_BF16 || t->c.scaling.kind != DT_SCALING_NONE;
}

uint32_t dt_trainer_shards(const dt_trainer *t, uint32_t rank)
{
    return dt_tree_leaf_begin(&t->shape, rank + 1) - dt_tree_leaf_begin(&t->shape, rank);
}

uint32_t dt_trainer_wire_type(const dt_trainer *t)
{
    return t->c.half;
}

bool dt_trainer_has_fast_sums(const dt_trainer *t)
{
    return t->c.fast_sums;
}

void dt_mark_unread_fields(dt_samples *s, const dt_plan *p)
{
    bool is_whole = false; /* is any of the last ones read? */
    for (uint32_t f = 0; f < s->n_fields; f++) {
        const bool is_read = dt_plan_field(p, s->field[f].name) >= 0;
        s->skipped |= is_read ? 0 : UINT64_C(1) << f;
        is_whole = is_whole || (is_read && f >= s->n_fields - s->n_whole);
    }
    for (uint32_t f = s->n_fields - s->n_whole; f < s->n_fields && is_whole; f++) {
        s->skipped &= ~(UINT64_C(1) << f);
    }
}

/* ---- the micro-batch --------------------------------------------------------------------------------------------- */

/* How many shards are computed at once, and fewer of them when memory runs short; see trainer.h. */

uint32_t dt_trainer_concurrent_shards(const dt_trainer *t)
{
    return t->backend->concurrent_shards(t);
}

static void destroy_execs(dt_compiled *c, uint32_t from)
{
    for (uint32_t i = from; i < c->n_exec; i++) {
        dt_exec_destroy(c->exec[i]);
    }
    c->n_exec = c->n_exec < from ? c->n_exec : from;
}

/* Workers from n on run no shards any more, and what they held goes. Between steps; what the feed read ahead is
 * forgotten. */
void dt_trainer_limit_workers(dt_trainer *t, uint32_t n)
{
    dt_feed_stop(t->workers.feed);
    t->workers.feed = NULL;
    t->workers.feed_is_paused = false;
    destroy_execs(&t->train, n);
    for (uint32_t i = 0; i < t->n_infer; i++) {
        destroy_execs(&t->infer[i], n);
    }
    if (t->workers.reader != NULL) {
        for (uint32_t i = n; i < t->workers.active; i++) {
            dt_feed_reader_destroy(t->workers.reader[i]);
            t->workers.reader[i] = NULL;
        }
    }
    t->workers.active = n;
    if (t->workers.n_grads > 0) {
        dt_grads_destroy(t, count_live_grads(t));
    }
    t->scratch.gradient = NULL;
}

bool dt_trainer_release_memory(dt_trainer *t)
{
    if (!t->backend->can_shrink) {
        return false; /* the host holds what is on its way, no more */
    }
    if (t->c.prefetch > 0 && t->workers.reader == NULL) {
        t->c.prefetch = 0;
        dt_trainer_limit_workers(t, t->workers.active);
        return true;
    }
    if (dt_trainer_concurrent_shards(t) < 2) {
        return false;
    }
    dt_trainer_limit_workers(t, dt_trainer_concurrent_shards(t) / 2);
    return true;
}

void dt_trainer_log_smaller_batch(const dt_trainer *t, uint32_t before)
{
    if (dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "%s; trying %u shard%s at a time instead of %u, nothing ahead; the result is the same",
               dt_error_text(), t->workers.active, t->workers.active == 1 ? "" : "s", before);
    }
    dt_error_clear();
}

bool dt_trainer_shrink_on_enomem(dt_trainer *t, dt_status st)
{
    if (st != DT_ENOMEM || t->workers.ran_out || !t->backend->can_shrink) {
        return false;
    }
    const uint32_t before = dt_trainer_concurrent_shards(t);
    t->workers.ran_out = true;
    t->c.prefetch = 0;
    dt_trainer_limit_workers(t, before > 1 ? before / 2 : 1);
    dt_trainer_log_smaller_batch(t, before);
    return true;
}

dt_status dt_trainer_explain_memory(const dt_trainer *t, dt_status st)
{
    return st != DT_ENOMEM || !t->backend->can_shrink
               ? st
               : DT_CONTEXT(st,
                            "out of memory with %u shard%s of a batch at a time; raise data.shards, set "
                            "engine.recompute = true, or take smaller models",
                            dt_trainer_concurrent_shards(t), dt_trainer_concurrent_shards(t) == 1 ? "" : "s");
}

dt_status dt_trainer_synchronize(dt_trainer *t)
{
    return t->backend->synchronize(t);
}

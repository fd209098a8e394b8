/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference over a data set: micro-batches of consecutive samples, one per worker at a time (on a device: a few per
 * launch), handed out in order. Of several ranks each runs as many micro-batches of a round and sends what came out to
 * the others (exchange.c), so that every rank hands out all of them, in order.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/exchange.h"
#include "train/device/infer.h"

#include <string.h>

typedef struct infer_round { /* what one round of workers does */
    dt_trainer *t;
    dt_compiled *c;
    dt_micro_batch *micro_batch; /* [slots] of this rank */
    uint64_t **index;            /* [slots][capacity] */
    uint64_t *key;               /* zeros: nothing is augmented */
    char **arena;                /* [slots] */
    size_t arena_bytes;
    uint32_t n;                   /* micro-batches in this round, of this rank */
    uint32_t place;               /* on a device */
    struct dt_exchange *exchange; /* NULL: one rank */
} infer_round;

static dt_status read_micro_batch(const infer_round *r, uint32_t i)
{
    dt_micro_batch *s = &r->micro_batch[i];
    const uint32_t n = (uint32_t)s->size[r->c->source->n_symbols];
    size_t used = 0;
    return dt_samples_read(r->c->source, s->index, r->key, n, s->size, r->arena[i], r->arena_bytes, s->field, &used);
}

static dt_status read_inputs_job(void *user, uint32_t worker)
{
    const infer_round *r = user;
    for (uint32_t i = worker; i < r->n; i += r->t->c.threads) {
        DT_TRY(read_micro_batch(r, i));
        DT_TRY(dt_device_infer_write_input(r->c->device, r->place, i, r->n, &r->micro_batch[i]));
    }
    return DT_OK;
}

static dt_status run_infer_job(void *user, uint32_t worker)
{
    infer_round *r = user;
    if (worker >= r->n) {
        return DT_OK;
    }
    const dt_micro_batch *s = &r->micro_batch[worker];
    DT_TRY(read_micro_batch(r, worker));
    const dt_kernel_run run = {.seed = r->t->c.seed, .step = r->t->state.step, .phase = r->t->c.phase, .training = 0};
    double seed[DT_GRAPH_MAX_LOSSES] = {0};
    double loss[DT_GRAPH_MAX_LOSSES] = {0};
    const dt_exec_feed feed = {.size = s->size,
                               .field = s->field,
                               .step_input = r->c->step_input,
                               .params = r->t->state.params,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &run,
                               .params_version = r->t->state.params_version};
    return dt_exec_run(r->c->exec[worker], &feed);
}

static dt_status find_compiled(dt_trainer *t, const dt_samples *d, dt_compiled **out)
{
    for (uint32_t i = 0; i < t->n_infer; i++) {
        if (t->infer[i].source == d) {
            *out = &t->infer[i];
            return DT_OK;
        }
    }
    dt_compiled *grown = dt_realloc(t->infer, (t->n_infer + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for an evaluation plan");
    }
    t->infer = grown;
    dt_compiled *c = &t->infer[t->n_infer];
    dt_status st = dt_compile_source(t, d, false, c);
    if (st < 0) {
        dt_compiled_fini(c);
        return st;
    }
    t->n_infer++;
    *out = c;
    return DT_OK;
}

/* A device is still at it when this returns. */
static dt_status start_round(infer_round *r)
{
    DT_TRACE("evaluation", "samples");
    if (r->c->device == NULL) {
        return dt_pool_run(r->t->workers.pool, run_infer_job, r);
    }
    DT_TRY(dt_pool_run(r->t->workers.pool, read_inputs_job, r));
    return dt_device_infer_start(r->c->device, r->place, r->n, r->t->state.step, r->c->step_input);
}

static dt_status wait_round(const infer_round *r)
{
    return r->c->device != NULL ? dt_device_infer_wait(r->c->device, r->place) : DT_OK;
}

/* The next micro-batch of the data, from sample *next_p on. */
static dt_status cut_micro_batch(const infer_round *r, uint32_t cap, uint64_t *next_p, uint64_t *index,
                                 dt_micro_batch *s)
{
    const dt_samples *d = r->c->source;
    const uint64_t left = d->count - *next_p;
    const uint32_t most = left < cap ? (uint32_t)left : cap;
    uint32_t take = 0;
    for (uint32_t i = 0; i < most; i++) {
        index[i] = *next_p + i;
    }
    s->index = index;
    DT_TRY(dt_samples_cut_micro_batch(d, index, most, &take, s->size));
    *next_p += take;
    return DT_OK;
}

typedef struct consumer { /* the reader */
    void *user;
    dt_status (*each)(void *user, const dt_rows *rows);
} consumer;

/* Micro-batches of this rank, in order. */
static dt_status deliver_own_micro_batches(infer_round *r, const consumer *e)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const dt_rows rows = {.t = r->t,
                              .c = r->c,
                              .micro_batch = &r->micro_batch[i],
                              .exec = r->c->device == NULL ? r->c->exec[i] : NULL,
                              .at = i,
                              .place = r->place};
        DT_TRY(e->each(e->user, &rows));
    }
    return DT_OK;
}

/* Micro-batches of a rank, in order: another one's are read here again, one at a time, and come with what it found.
 * */
static dt_status deliver_micro_batches_of_rank(infer_round *r, uint32_t rank, uint32_t slots, uint32_t cap,
                                               uint64_t *next_p, const consumer *e)
{
    const dt_samples *d = r->c->source;
    if (rank == dt_comm_rank(r->t->d.comm)) {
        for (uint32_t i = 0; i < r->n; i++) {
            *next_p += (uint64_t)r->micro_batch[i].size[d->n_symbols];
        }
        return deliver_own_micro_batches(r, e);
    }
    for (uint32_t i = 0; i < slots && *next_p < d->count; i++) {
        dt_micro_batch s;
        size_t used = 0;
        DT_TRY(cut_micro_batch(r, cap, next_p, r->index[slots], &s));
        DT_TRY(dt_samples_read(d, s.index, r->key, (uint32_t)s.size[d->n_symbols], s.size, r->arena[slots],
                               r->arena_bytes, s.field, &used));
        dt_rows rows = {.t = r->t, .c = r->c, .micro_batch = &s, .theirs = r->exchange};
        DT_TRY(dt_exchange_next_micro_batch(r->exchange, rank));
        DT_TRY(e->each(e->user, &rows));
    }
    return DT_OK;
}

/* A round of all ranks: each cuts the same micro-batches, and runs those that are its own. */
static dt_status start_own_micro_batches(infer_round *r, uint32_t slots, uint32_t cap, uint64_t next)
{
    const uint32_t ranks = dt_comm_size(r->t->d.comm), me = dt_comm_rank(r->t->d.comm);
    r->n = 0;
    for (uint32_t k = 0; k < slots * ranks && next < r->c->source->count; k++) {
        const bool is_own = k / slots == me;
        dt_micro_batch passed;
        DT_TRY(
            cut_micro_batch(r, cap, &next, r->index[is_own ? r->n : slots], is_own ? &r->micro_batch[r->n] : &passed));
        r->n += is_own;
    }
    return r->n > 0 ? start_round(r) : DT_OK;
}

/* All ranks show all micro-batches of a round. */
static dt_status fetch_round(const infer_round *r, uint32_t slots, uint32_t cap, uint64_t next)
{
    const dt_samples *d = r->c->source;
    const uint64_t first = next;
    if (d->bring == NULL) {
        return DT_OK;
    }
    for (uint32_t k = 0; k < slots * dt_comm_size(r->t->d.comm) && next < d->count; k++) {
        dt_micro_batch passed;
        DT_TRY(cut_micro_batch(r, cap, &next, r->index[slots], &passed));
    }
    return dt_fetch_range(r->t, d, first, next - first);
}

static const dt_view *output_of_exec(const void *self, uint32_t i, uint32_t k, const char **name_p)
{
    return dt_exec_output_at(((const dt_compiled *)self)->exec[i], k, name_p);
}

static const dt_view *output_of_device(const void *self, uint32_t i, uint32_t k, const char **name_p)
{
    return dt_device_infer_output_at(((const dt_compiled *)self)->device, 0, i, k, name_p);
}

static dt_status run_rounds(infer_round *r, uint32_t slots, uint32_t cap, const consumer *e)
{
    const uint32_t ranks = dt_comm_size(r->t->d.comm);
    const dt_exchange_from from = {r->c, r->c->device == NULL ? output_of_exec : output_of_device};
    uint64_t next = 0;
    while (next < r->c->source->count) {
        DT_TRY(fetch_round(r, slots, cap, next));
        dt_status mine = start_own_micro_batches(r, slots, cap, next);
        mine = mine == DT_OK ? wait_round(r) : mine;
        DT_TRY(ranks > 1 ? dt_exchange_run(r->exchange, &from, r->n, mine) : mine);
        dt_status st = DT_OK;
        for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
            st = deliver_micro_batches_of_rank(r, k, slots, cap, &next, e);
        }
        DT_TRY(ranks > 1 ? dt_comm_agree(r->t->d.comm, st) : st);
    }
    return DT_OK;
}

/* On a device, of one rank: a round is read and packed while the one before is computed, and looked at while the next
 * one is. */
static dt_status run_pipelined(infer_round *round, uint32_t slots, uint32_t cap, const consumer *e)
{
    const uint64_t count = round->c->source->count;
    uint64_t next = 0;
    for (uint32_t k = 0; next < count || round[(k + 1) % 2].n > 0; k++) {
        infer_round *now = &round[k % 2], *before = &round[(k + 1) % 2];
        DT_TRY(start_own_micro_batches(now, slots, cap, next));
        for (uint32_t i = 0; i < now->n; i++) {
            next += (uint64_t)now->micro_batch[i].size[now->c->source->n_symbols];
        }
        DT_TRY(wait_round(before));
        DT_TRY(deliver_own_micro_batches(before, e));
        before->n = 0;
    }
    return DT_OK;
}

/* As many micro-batches of a round as the rank with the fewest workers has. */
static dt_status agree_on_slots(const dt_trainer *t, uint32_t *n_p)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    uint32_t *all = dt_alloc_n(ranks, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
    }
    const dt_status st = dt_comm_all_gather(t->d.comm, n_p, sizeof(*n_p), all);
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        *n_p = all[k] < *n_p ? all[k] : *n_p;
    }
    dt_free(all);
    return st;
}

dt_status dt_trainer_compile_evaluation(dt_trainer *t, const dt_samples *d)
{
    dt_compiled *c = NULL;
    return find_compiled(t, d, &c);
}

/* Room of a round: for each slot of this rank, and one more for micro-batches of others. */
static dt_status create_buffers(infer_round *r, uint32_t n, uint32_t cap)
{
    r->micro_batch = dt_alloc_n(n, sizeof(*r->micro_batch));
    r->index = dt_alloc_n(n + (size_t)1, sizeof(*r->index));
    r->arena = dt_alloc_n(n + (size_t)1, sizeof(*r->arena));
    r->key = dt_alloc_n(cap, sizeof(*r->key));
    if (r->micro_batch == NULL || r->index == NULL || r->arena == NULL || r->key == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
    }
    const uint32_t ranks = dt_comm_size(r->t->d.comm);
    for (uint32_t i = 0; i < n + (ranks > 1); i++) {
        void *arena = NULL;
        r->index[i] = dt_alloc_n(cap, sizeof(uint64_t));
        if (r->index[i] == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
        }
        DT_TRY(dt_arena_map(r->arena_bytes, &arena));
        r->arena[i] = arena;
    }
    return ranks > 1 ? dt_exchange_create(r->t->d.comm, &r->exchange) : DT_OK;
}

static void destroy_buffers(infer_round *r, uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++) {
        dt_arena_unmap(r->arena != NULL ? r->arena[i] : NULL, r->arena_bytes);
        dt_free(r->index != NULL ? r->index[i] : NULL);
    }
    dt_exchange_destroy(r->exchange);
    dt_free(r->micro_batch);
    dt_free(r->index);
    dt_free(r->arena);
    dt_free(r->key);
}

static dt_status prepare_inference(dt_trainer *t, const dt_samples *d, dt_compiled **out)
{
    DT_TRY(find_compiled(t, d, out));
    return dt_bind_step_inputs(t, *out);
}

/* Rounds side by side: on a device of one rank two. */
static dt_status run_evaluation(infer_round *round, uint32_t n_rounds, uint32_t slots, uint32_t cap, const consumer *e)
{
    const uint32_t ranks = dt_comm_size(round->t->d.comm);
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n_rounds && st == DT_OK; i++) {
        st = create_buffers(&round[i], slots, cap);
    }
    st = ranks > 1 ? dt_comm_agree(round->t->d.comm, st) : st;
    if (st == DT_OK) {
        st = n_rounds > 1 ? run_pipelined(round, slots, cap, e) : run_rounds(round, slots, cap, e);
    }
    dt_error reason;
    dt_error_save(&reason, st);
    for (uint32_t i = 0; i < n_rounds; i++) { /* nothing is under way when we leave */
        if (wait_round(&round[i]) < 0) {
            dt_error_clear();
        }
        destroy_buffers(&round[i], slots);
    }
    return st < 0 ? dt_error_restore(&reason) : st;
}

dt_status dt_trainer_evaluate(dt_trainer *t, const dt_samples *d, void *user,
                              dt_status (*each)(void *user, const dt_rows *r))
{
    dt_compiled *c = NULL;
    const consumer e = {.user = user, .each = each};
    const uint32_t ranks = dt_comm_size(t->d.comm);
    t->state.params_version++;
    dt_status st = prepare_inference(t, d, &c);
    DT_TRY(ranks > 1 ? dt_comm_agree(t->d.comm, st) : st);
    uint32_t n = c->device != NULL ? dt_device_infer_max_micro_batches(c->device) : t->workers.active;
    DT_TRY(ranks > 1 ? agree_on_slots(t, &n) : DT_OK);
    const uint32_t cap = (uint32_t)d->slice_cap[d->n_symbols];
    const infer_round one = {.t = t, .c = c, .arena_bytes = dt_samples_bytes_max(d, cap)};
    infer_round round[2] = {one, one};
    round[1].place = 1;
    return run_evaluation(round, c->device != NULL && ranks == 1 ? 2 : 1, n, cap, &e);
}

const void *dt_rows_get_output(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    const dt_samples *s = r->c->source;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (strcmp(s->field[f].name, name) == 0) {
            dt_samples_field_dims(s, f, r->micro_batch->size, dim);
            *rank = s->shape[f].rank;
            return r->micro_batch->field[f];
        }
    }
    const dt_view *v = r->theirs != NULL ? dt_exchange_output(r->theirs, name)
                       : r->exec != NULL ? dt_exec_output(r->exec, name)
                                         : dt_device_infer_output(r->c->device, r->place, r->at, name);
    if (v == NULL) {
        return NULL;
    }
    memcpy(dim, v->dim, sizeof(v->dim));
    *rank = (uint32_t)v->rank;
    return v->data;
}

const uint64_t *dt_rows_samples(const dt_rows *r, uint32_t *n)
{
    *n = (uint32_t)r->micro_batch->size[r->c->source->n_symbols];
    return r->micro_batch->index;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", ranks: each steps its own instances; then all of them have all rows, so that the order of
 * samples, and every sum over them, are the same on any number of ranks.
 */
#include <config.h>

#include "experience/rollout.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

typedef struct exchange {
    dt_rollout *r;
    uint32_t ranks, most; /* instances of a rank at most */
    char *mine, *all;     /* [bytes], [ranks, bytes] */
    size_t bytes;
} exchange;

static uint32_t first_of(const exchange *x, uint32_t rank)
{
    return (uint32_t)((uint64_t)x->r->instances * rank / x->ranks);
}

static dt_status reserve(exchange *x, size_t bytes)
{
    if (bytes <= x->bytes) {
        return DT_OK;
    }
    dt_free(x->mine);
    dt_free(x->all);
    x->bytes = bytes;
    x->mine = dt_alloc(bytes);
    x->all = dt_alloc_n(x->ranks, bytes);
    return x->mine != NULL && x->all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for what ranks exchange");
}

/* [rows, instances] of an array with one item per slot. */
static dt_status gather_array(exchange *x, const dt_buffer_array *a)
{
    const dt_rollout *r = x->r;
    const size_t rows = r->buffer.d.steps + r->buffer.d.window, own = r->last - r->first, item = a->slot_bytes;
    const size_t bytes = rows * x->most * item;
    if (item == 0) {
        return DT_OK;
    }
    DT_TRY(reserve(x, bytes));
    for (size_t row = 0; row < rows; row++) {
        memcpy(x->mine + row * own * item, (char *)a->data + (row * r->instances + r->first) * item, own * item);
    }
    DT_TRY(dt_comm_all_gather(r->stage->d.comm, x->mine, bytes, x->all));
    for (uint32_t k = 0; k < x->ranks; k++) {
        const size_t first = first_of(x, k), n = first_of(x, k + 1) - first;
        const char *from = x->all + k * bytes;
        for (size_t row = 0; row < rows; row++) {
            memcpy((char *)a->data + (row * r->instances + first) * item, from + row * n * item, n * item);
        }
    }
    return DT_OK;
}

static size_t ragged_rows(const dt_buffer *b, const dt_obs_port *o, size_t slot)
{
    const size_t size = (size_t)b->size[slot * b->l->spec.n_symbols + (uint32_t)o->symbol - 1];
    return b->n_seen[slot] > 0 ? size + (size_t)o->plus : 0;
}

/* Rows of a ragged port, slot after slot; sizes of all slots are known by now. */
static dt_status gather_ragged(exchange *x, uint32_t port)
{
    dt_rollout *r = x->r;
    dt_buffer *b = &r->buffer;
    const dt_obs_port *o = &b->l->obs[port];
    const size_t M = r->instances, begin = dt_buffer_slot(b, 0, 0), item = o->row_bytes;
    size_t most = 0, at = 0;
    for (uint32_t k = 0; k < x->ranks; k++) {
        size_t rows = 0;
        for (size_t slot = begin; slot < b->n_slots; slot++) {
            const uint32_t i = (uint32_t)(slot % M);
            if (i >= first_of(x, k) && i < first_of(x, k + 1)) {
                rows += ragged_rows(b, o, slot);
            }
        }
        most = rows > most ? rows : most;
    }
    DT_TRY(reserve(x, most * item + 1));
    for (size_t slot = begin; slot < b->n_slots; slot++) {
        const size_t i = slot % M, bytes = ragged_rows(b, o, slot) * item;
        if (i >= r->first && i < r->last) {
            memcpy(x->mine + at, b->obs[port] + (size_t)b->at[port][slot] * item, bytes);
            at += bytes;
        }
    }
    DT_TRY(dt_comm_all_gather(r->stage->d.comm, x->mine, most * item + 1, x->all));
    b->used[port] = 0;
    for (uint32_t k = 0; k < x->ranks; k++) {
        const char *from = x->all + k * (most * item + 1);
        for (size_t slot = begin; slot < b->n_slots; slot++) {
            const uint32_t i = (uint32_t)(slot % M);
            const size_t rows = ragged_rows(b, o, slot);
            if (i < first_of(x, k) || i >= first_of(x, k + 1)) {
                continue;
            }
            b->at[port][slot] = b->used[port];
            memcpy(b->obs[port] + (size_t)b->used[port] * item, from, rows * item);
            b->used[port] += (int64_t)rows;
            from += rows * item;
        }
    }
    return DT_OK;
}

dt_status dt_rollout_gather(dt_rollout *r)
{
    exchange x = {.r = r, .ranks = dt_comm_size(r->stage->d.comm)};
    dt_buffer_array array[DT_BUFFER_MAX_ARRAYS];
    if (x.ranks == 1) {
        return DT_OK;
    }
    const uint32_t n = dt_buffer_arrays(&r->buffer, array);
    dt_status st = DT_OK;
    for (uint32_t k = 0; k < x.ranks; k++) {
        const uint32_t own = first_of(&x, k + 1) - first_of(&x, k);
        x.most = own > x.most ? own : x.most;
    }
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        st = gather_array(&x, &array[i]);
    }
    for (uint32_t i = 0; i < r->env->layout.spec.n_obs && st == DT_OK; i++) {
        st = r->env->layout.obs[i].symbol > 0 ? gather_ragged(&x, i) : DT_OK;
    }
    dt_free(x.mine);
    dt_free(x.all);
    return st;
}

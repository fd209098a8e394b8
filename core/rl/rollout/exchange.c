/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/exchange.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

enum { NOWHERE = UINT32_MAX };

static uint64_t sample_of_part(const dt_samples_part *p, uint64_t j)
{
    return p->index != NULL ? p->index[j] : p->first + j;
}

static uint32_t rank_of_sample(const dt_exchange *x, uint64_t sample)
{
    return dt_partition_owner(x->split, sample % x->split->instances);
}

/* ---- a sample as bytes ------------------------------------------------------------------------------------------- */

typedef struct layout { /* what is sent of each */
    dt_buffer_wide own[DT_BUFFER_MAX_WIDE], batch[DT_BUFFER_MAX_WIDE];
    uint32_t n;
} layout;

/* Arrays that are not read are left out. */
static void choose_arrays(const dt_exchange *x, uint64_t skipped, layout *l)
{
    dt_buffer_wide own[DT_BUFFER_MAX_WIDE], batch[DT_BUFFER_MAX_WIDE];
    const uint32_t n = dt_buffer_list_wide_arrays(x->own, own);
    const uint64_t read = ~skipped;
    dt_buffer_list_wide_arrays(&x->batch, batch);
    l->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        own[i].fields &= read;
        own[i].before &= read;
        own[i].after &= read;
        if ((own[i].fields | own[i].after) != 0 && own[i].row_bytes > 0) {
            l->own[l->n] = own[i];
            l->batch[l->n++] = batch[i];
        }
    }
}

/* Slots of an array in addition to the sample's own. */
static size_t slots_of_array(const dt_exchange *x, const dt_buffer_wide *w)
{
    return (w->fields != 0) + (w->before != 0 ? x->own->d.window - (size_t)1 : 0) + (w->after != 0);
}

static size_t ragged_bytes(const dt_exchange *x, const dt_buffer_wide *w, size_t slot)
{
    const int32_t *size = x->rows->size + slot * x->rows->l->spec.n_symbols;
    return x->rows->n_acts[slot] > 0 ? (size_t)size[w->symbol - 1] * w->row_bytes : 0;
}

/* Of the step after the sample's slot, where samples have both (transitions = 3). */
static size_t ragged_bytes_after(const dt_exchange *x, const dt_buffer_wide *w, size_t slot)
{
    const size_t after = slot + x->rows->d.instances;
    const int32_t *size = x->rows->size + after * x->rows->l->spec.n_symbols;
    const bool is_there = dt_buffer_is_joined(x->rows) && x->rows->n_acts[slot] > 0 && x->rows->n_seen[after] > 0;
    return is_there ? (size_t)size[w->symbol - 1] * w->row_bytes : 0;
}

static size_t bytes_of_sample(const dt_exchange *x, const layout *l, uint64_t sample)
{
    const size_t slot = dt_buffer_slot(x->rows, 0, 0) + sample;
    size_t bytes = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const dt_buffer_wide *w = &l->own[i];
        bytes += w->symbol > 0 ? ragged_bytes(x, w, slot) + ragged_bytes_after(x, w, slot)
                               : (size_t)x->rows->n_acts[slot] * slots_of_array(x, w) * w->row_bytes;
    }
    return bytes;
}

/* Rows of the places that act at the sample's slot, of the slot `at`. */
static char *copy_rows(const dt_exchange *x, const dt_buffer_wide *w, size_t sample_slot, size_t at, char *bytes,
                       bool is_out)
{
    const size_t A = x->rows->l->spec.n_agents;
    for (size_t a = 0; a < A; a++) {
        if ((x->rows->row[sample_slot * A + a] & DT_ROW_ACTS) != 0) {
            char *row = w->data + (at * A + a) * w->row_bytes;
            memcpy(is_out ? bytes : row, is_out ? row : bytes, w->row_bytes);
            bytes += w->row_bytes;
        }
    }
    return bytes;
}

/* Between a buffer's slot at step 0 of `instance`, or of the sample's step, and bytes. */
static char *copy_places(const dt_exchange *x, const dt_buffer *b, const dt_buffer_wide *w, const dt_buffer_wide *read,
                         size_t sample_slot, size_t at, char *bytes, bool is_out)
{
    const size_t M = b->d.instances;
    for (size_t back = b->d.window - (size_t)1; back > 0 && read->before != 0; back--) {
        bytes = copy_rows(x, w, sample_slot, at - back * M, bytes, is_out);
    }
    bytes = read->fields != 0 ? copy_rows(x, w, sample_slot, at, bytes, is_out) : bytes;
    return read->after != 0 ? copy_rows(x, w, sample_slot, at + M, bytes, is_out) : bytes;
}

static char *pack_ragged(const dt_buffer_wide *w, size_t slot, size_t bytes, char *out)
{
    if (bytes > 0) {
        memcpy(out, w->data + (size_t)w->at[slot] * w->row_bytes, bytes);
    }
    return out + bytes;
}

static char *pack_sample(const dt_exchange *x, const layout *l, uint64_t sample, char *out)
{
    const size_t slot = dt_buffer_slot(x->rows, 0, 0) + sample;
    const uint32_t t = (uint32_t)(sample / x->split->instances), i = (uint32_t)(sample % x->split->instances);
    const size_t at = dt_buffer_slot(x->own, t, i - x->split->first);
    for (uint32_t k = 0; k < l->n; k++) {
        const dt_buffer_wide *w = &l->own[k];
        if (w->symbol == 0) {
            out = copy_places(x, x->own, w, w, slot, at, out, true);
        } else {
            const size_t own = ragged_bytes(x, w, slot), after = ragged_bytes_after(x, w, slot);
            out = pack_ragged(w, at, own, out);
            out = pack_ragged(w, at + x->own->d.instances, after, out);
        }
    }
    return out;
}

/* Bytes of a slot's rows to where the array has `used` of them so far. */
static char *unpack_ragged(const dt_buffer_wide *w, size_t slot, size_t bytes, int64_t *used, char *in)
{
    w->at[slot] = *used;
    if (bytes > 0) {
        memcpy(w->data + (size_t)*used * w->row_bytes, in, bytes);
        *used += (int64_t)(bytes / w->row_bytes);
    }
    return in + bytes;
}

static char *unpack_sample(const dt_exchange *x, const layout *l, uint64_t sample, uint32_t place, int64_t *used,
                           char *in)
{
    const size_t slot = dt_buffer_slot(x->rows, 0, 0) + sample, at = dt_buffer_slot(&x->batch, 0, place);
    for (uint32_t k = 0; k < l->n; k++) {
        const dt_buffer_wide *w = &l->batch[k];
        if (w->symbol == 0) {
            in = copy_places(x, &x->batch, w, &l->own[k], slot, at, in, false);
        } else {
            in = unpack_ragged(w, at, ragged_bytes(x, w, slot), &used[k], in);
            if (dt_buffer_is_joined(&x->batch)) {
                in = unpack_ragged(w, at + x->batch.d.instances, ragged_bytes_after(x, w, slot), &used[k], in);
            }
        }
    }
    return in;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Bytes of a sample at most. */
static size_t max_sample_bytes(const dt_exchange *x)
{
    dt_buffer_wide w[DT_BUFFER_MAX_WIDE];
    const uint32_t n = dt_buffer_list_wide_arrays(x->own, w);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t rows = w[i].symbol > 0 ? (size_t)dt_buffer_max_rows(x->own, w[i].symbol)
                                            : slots_of_array(x, &w[i]) * x->own->l->spec.n_agents;
        bytes += rows * w[i].row_bytes;
    }
    return bytes;
}

static dt_status map_exchange_memory(dt_exchange *x, size_t bytes, uint64_t in, uint64_t out)
{
    dt_arena_unmap(x->in, x->in_bytes);
    dt_arena_unmap(x->out, x->out_bytes);
    x->in = x->out = NULL;
    x->in_bytes = x->out_bytes = 0;
    size_t in_bytes = 0, out_bytes = 0;
    if (!dt_mul_size((size_t)in, bytes, &in_bytes) || !dt_mul_size((size_t)out, bytes, &out_bytes)) {
        return DT_FAIL(DT_ENOMEM, "what ranks exchange of a round does not fit in memory");
    }
    void *p = NULL;
    DT_TRY(dt_arena_map(in_bytes > 0 ? in_bytes : 1, &p));
    x->in = p;
    x->in_bytes = in_bytes > 0 ? in_bytes : 1;
    DT_TRY(dt_arena_map(out_bytes > 0 ? out_bytes : 1, &p));
    x->out = p;
    x->out_bytes = out_bytes > 0 ? out_bytes : 1;
    return DT_OK;
}

static dt_status make_lists(dt_exchange *x)
{
    const uint32_t ranks = dt_comm_size(x->split->comm);
    const size_t samples = (size_t)x->own->d.steps * x->split->instances;
    if (x->place != NULL) {
        return DT_OK;
    }
    x->place = dt_alloc_n(samples, sizeof(*x->place));
    x->to = dt_alloc_n(ranks, sizeof(*x->to));
    x->from = dt_alloc_n(ranks, sizeof(*x->from));
    x->last = dt_alloc_n(ranks, sizeof(*x->last));
    if (x->place == NULL || x->to == NULL || x->from == NULL || x->last == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the samples of %u ranks", ranks);
    }
    memset(x->place, 0xff, samples * sizeof(*x->place)); /* NOWHERE */
    return DT_OK;
}

/* Room for n samples that come, and for `sent` that go. */
static dt_status allocate_batch(dt_exchange *x, uint64_t n, uint64_t sent)
{
    const dt_buffer_desc *d = &x->own->d;
    const dt_buffer_desc bd = {.layout = d->layout,
                               .steps = d->transitions > 0,
                               .instances = (uint32_t)n,
                               .all = x->split->instances,
                               .window = d->window,
                               .transitions = d->transitions,
                               .gamma = d->gamma,
                               .n_kept = d->n_kept,
                               .kept = d->kept,
                               .n_annotations = d->n_annotations,
                               .annotation = d->annotation,
                               .is_opponent = d->is_opponent,
                               .n_carried = d->n_carried,
                               .has_last_action = d->has_last_action,
                               .carried = d->carried};
    x->room = x->sent = 0;
    dt_buffer_fini(&x->batch);
    DT_TRY(make_lists(x));
    DT_TRY(dt_buffer_init(&x->batch, &bd));
    for (uint32_t k = 0; k < d->n_kept; k++) {
        DT_TRY(x->own->kept[k] != NULL ? dt_buffer_allocate_kept(&x->batch, k) : DT_OK);
    }
    x->batch.place = x->place;
    DT_TRY(map_exchange_memory(x, max_sample_bytes(x), n, sent));
    x->room = n;
    x->sent = sent;
    return DT_OK;
}

/* Of samples that are sent, each once, no more can be than a rank has. */
static uint64_t max_sent(const dt_exchange *x, uint64_t n)
{
    const uint64_t own = (uint64_t)dt_partition_largest(x->split) * x->own->d.steps;
    return n < own ? n : own;
}

dt_status dt_exchange_prepare(dt_exchange *x, const dt_trainer *t)
{
    const uint64_t n = dt_trainer_max_fetched(t), ranks = dt_comm_size(x->split->comm);
    x->agreed = x->agreed_sent = 0;
    return ranks > 1 ? allocate_batch(x, n, max_sent(x, n * ranks)) : DT_OK;
}

void dt_exchange_fini(dt_exchange *x)
{
    dt_buffer_fini(&x->batch);
    dt_arena_unmap(x->in, x->in_bytes);
    dt_arena_unmap(x->out, x->out_bytes);
    dt_free(x->place);
    dt_free(x->to);
    dt_free(x->from);
    dt_free(x->last);
    memset(x, 0, sizeof(*x));
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

static bool is_same_part(const dt_samples_part *a, const dt_samples_part *b)
{
    return a->index == b->index && a->first == b->first && a->n == b->n;
}

/* Parts that go through the samples in order may be asked for again and again. */
static bool is_current(const dt_exchange *x, uint64_t skipped, const dt_samples_part *part)
{
    bool is = x->has_last && x->last_skipped == skipped;
    for (uint32_t k = 0; k < dt_comm_size(x->split->comm) && is; k++) {
        is = part[k].index == NULL && is_same_part(&x->last[k], &part[k]);
    }
    return is;
}

/* As much as any rank needs, so that all of them make room together or none does. A rank that plans ahead, as the first
 * does before a run, may have more of it than others: what all have is what they have agreed on. */
static dt_status reserve_exchange(dt_exchange *x, const dt_samples_part *part)
{
    const uint32_t ranks = dt_comm_size(x->split->comm);
    uint64_t n = 1, sum = 0;
    for (uint32_t k = 0; k < ranks; k++) {
        n = part[k].n > n ? part[k].n : n;
        sum += part[k].n;
    }
    const uint64_t sent = max_sent(x, sum);
    if (n <= x->agreed && sent <= x->agreed_sent) {
        return DT_OK;
    }
    const bool fits = n <= x->room && sent <= x->sent;
    const uint64_t room = n > x->room ? n : x->room;
    DT_TRY(dt_comm_agree(x->split->comm, fits ? DT_OK : allocate_batch(x, room, sent > x->sent ? sent : x->sent)));
    x->agreed = n > x->agreed ? n : x->agreed;
    x->agreed_sent = sent > x->agreed_sent ? sent : x->agreed_sent;
    return DT_OK;
}

/* What this rank has of each part; equal parts are packed once. */
static void pack_parts(dt_exchange *x, const layout *l, const dt_samples_part *part)
{
    const uint32_t me = dt_comm_rank(x->split->comm);
    char *at = x->out;
    for (uint32_t k = 0; k < dt_comm_size(x->split->comm); k++) {
        char *const begin = at;
        if (k > 0 && is_same_part(&part[k], &part[k - 1])) {
            x->to[k] = x->to[k - 1];
            continue;
        }
        for (uint64_t j = 0; j < part[k].n; j++) {
            const uint64_t sample = sample_of_part(&part[k], j);
            at = rank_of_sample(x, sample) == me ? pack_sample(x, l, sample, at) : at;
        }
        x->to[k] = (dt_comm_out){.data = begin, .bytes = (size_t)(at - begin)};
    }
}

/* Where what comes for this rank's part lands. What it has itself is read where it was packed. */
static void lay_out_parts(dt_exchange *x, const layout *l, const dt_samples_part *mine)
{
    const uint32_t me = dt_comm_rank(x->split->comm), ranks = dt_comm_size(x->split->comm);
    char *at = x->in;
    memset(x->from, 0, ranks * sizeof(*x->from));
    for (uint64_t j = 0; j < mine->n; j++) {
        const uint64_t sample = sample_of_part(mine, j);
        x->from[rank_of_sample(x, sample)].bytes += bytes_of_sample(x, l, sample);
    }
    for (uint32_t k = 0; k < ranks; k++) {
        if (k == me) {
            x->from[k].data = (void *)(uintptr_t)x->to[k].data;
        } else {
            x->from[k].data = at;
            at += x->from[k].bytes;
        }
    }
}

/* What all ranks have of every row. */
static void copy_narrow(dt_exchange *x, const dt_samples_part *mine)
{
    dt_buffer_array from[DT_BUFFER_MAX_ARRAYS + DT_BUFFER_MAX_DERIVED],
        to[DT_BUFFER_MAX_ARRAYS + DT_BUFFER_MAX_DERIVED];
    uint32_t n = dt_buffer_list_arrays(x->rows, from);
    dt_buffer_list_arrays(&x->batch, to);
    dt_buffer_list_derived_arrays(&x->batch, to + n);
    n += dt_buffer_list_derived_arrays(x->rows, from + n);
    const size_t first = dt_buffer_slot(x->rows, 0, 0), at = dt_buffer_slot(&x->batch, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = from[i].slot_bytes;
        for (uint64_t j = 0; j < mine->n && bytes > 0; j++) {
            memcpy((char *)to[i].data + (at + j) * bytes,
                   (const char *)from[i].data + (first + sample_of_part(mine, j)) * bytes, bytes);
        }
    }
}

/* How large the step after a sample is, where samples have both. */
static void copy_next_sizes(dt_exchange *x, const dt_samples_part *mine)
{
    const size_t S = x->rows->l->spec.n_symbols, A = x->rows->l->spec.n_agents, first = dt_buffer_slot(x->rows, 1, 0);
    const size_t at = dt_buffer_slot(&x->batch, 1, 0);
    for (uint64_t j = 0; j < mine->n && S > 0; j++) {
        const size_t from = first + sample_of_part(mine, j);
        x->batch.n_seen[at + j] = x->rows->n_seen[from];
        memcpy(x->batch.size + (at + j) * S, x->rows->size + from * S, S * sizeof(*x->rows->size));
        for (size_t k = 1; k <= S; k++) {
            if (x->rows->length[k] != NULL) {
                memcpy(x->batch.length[k] + (at + j) * A, x->rows->length[k] + from * A, A * sizeof(int32_t));
            }
        }
    }
}

/* Samples [0, n) of the current part are nowhere, or those of the part are there. */
static void set_sample_places(dt_exchange *x, const dt_samples_part *mine)
{
    memset(x->place, 0xff, (size_t)x->own->d.steps * x->split->instances * sizeof(*x->place));
    for (uint64_t j = 0; j < mine->n; j++) {
        x->place[sample_of_part(mine, j)] = (uint32_t)j;
    }
}

static void unpack_part(dt_exchange *x, const layout *l, const dt_samples_part *mine)
{
    int64_t used[DT_BUFFER_MAX_WIDE] = {0};
    for (uint64_t j = 0; j < mine->n; j++) {
        const uint64_t sample = sample_of_part(mine, j);
        dt_comm_in *from = &x->from[rank_of_sample(x, sample)];
        from->data = unpack_sample(x, l, sample, (uint32_t)j, used, from->data);
    }
}

dt_status dt_exchange_fetch_samples(void *self, uint64_t skipped, const dt_samples_part *part)
{
    dt_exchange *x = self;
    const uint32_t ranks = dt_comm_size(x->split->comm);
    const dt_samples_part *mine = &part[dt_comm_rank(x->split->comm)];
    layout l;
    if (is_current(x, skipped, part)) {
        return DT_OK;
    }
    DT_TRACE_N("rollout", "bring samples", "samples", mine->n);
    x->has_last = false;
    DT_TRY(reserve_exchange(x, part));
    choose_arrays(x, skipped, &l);
    pack_parts(x, &l, part);
    lay_out_parts(x, &l, mine);
    DT_TRY(dt_comm_all_to_all(x->split->comm, x->to, x->from));
    memcpy(x->batch.scale, x->own->scale, sizeof(x->batch.scale));
    x->batch.key_base = x->own->key_base;
    x->batch.is_filled = true;
    copy_narrow(x, mine);
    if (dt_buffer_is_joined(&x->batch)) {
        copy_next_sizes(x, mine);
    }
    set_sample_places(x, mine);
    unpack_part(x, &l, mine);
    memcpy(x->last, part, ranks * sizeof(*part));
    x->last_skipped = skipped;
    x->has_last = true;
    return DT_OK;
}

void dt_exchange_begin_raw(dt_exchange *x, dt_buffer_scale *saved)
{
    memcpy(saved, x->own->scale, sizeof(x->own->scale));
    memset(x->own->scale, 0, sizeof(x->own->scale));
}

void dt_exchange_end_raw(dt_exchange *x, const dt_buffer_scale *saved)
{
    memcpy(x->own->scale, saved, sizeof(x->own->scale));
    dt_exchange_invalidate(x);
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

static const dt_port *data_fields(const void *self, uint32_t *n_p)
{
    return dt_buffer_data.fields(((const dt_exchange *)self)->rows, n_p);
}

static const char *const *data_symbols(const void *self, uint32_t *n_p)
{
    return dt_buffer_data.symbols(((const dt_exchange *)self)->rows, n_p);
}

static dt_status data_count(const void *self, uint64_t *n_p)
{
    return dt_buffer_data.count(((const dt_exchange *)self)->rows, n_p);
}

static dt_status data_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    return dt_buffer_data.sizes(((const dt_exchange *)self)->rows, index, n, size);
}

static dt_status data_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    dt_exchange *x = self;
    if (dt_comm_size(x->split->comm) == 1) {
        return dt_buffer_data.read(x->own, index, key, n, out);
    }
    for (uint32_t j = 0; j < n && x->place != NULL; j++) {
        if (x->place[index[j]] == NOWHERE) {
            return DT_FAIL(DT_EPLUGIN, "sample %llu of the rollout is read on a rank that does not have it",
                           (unsigned long long)index[j]);
        }
    }
    return dt_buffer_data.read(&x->batch, index, key, n, out);
}

const dt_data_ops dt_exchange_data_ops = {.struct_size = sizeof(dt_data_ops),
                                          .fields = data_fields,
                                          .symbols = data_symbols,
                                          .count = data_count,
                                          .sizes = data_sizes,
                                          .read = data_read};

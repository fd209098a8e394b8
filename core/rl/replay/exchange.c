/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1", several ranks: samples of a round go to the ranks that hold them, and what was drawn
 * to the ranks that learn from it. A message does not identify itself: every
 * rank knows which samples the others need, which rank has them, and how large they are.
 */
#include <config.h>

#include "rl/replay/replay.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static uint64_t request_sample(dt_replay *p, uint32_t rank, uint64_t sample, uint64_t *list, uint64_t n)
{
    if (p->mark[sample] == rank + 1) {
        return n;
    }
    p->mark[sample] = rank + 1;
    list[n] = sample;
    return n + 1;
}

/* A sample and those in which its agents' steps end. */
static uint64_t request_steps(dt_replay *p, uint32_t rank, uint64_t sample, uint64_t *list, uint64_t n)
{
    const dt_buffer *b = p->r->all;
    const size_t A = b->l->spec.n_agents, slot = dt_buffer_slot(b, 0, 0) + sample;
    n = request_sample(p, rank, sample, list, n);
    for (size_t a = 0; a < A && p->d.n_step > 1; a++) {
        if ((b->row[slot * A + a] & DT_ROW_ACTS) != 0) {
            n = request_sample(p, rank, sample + (dt_replay_count_steps(p, slot, a) - 1) * (uint64_t)b->d.instances,
                               list, n);
        }
    }
    return n;
}

dt_status dt_replay_exchange_round(dt_replay *p, uint64_t number, const uint64_t *sample, uint64_t n)
{
    const size_t samples = (size_t)p->r->d.steps * p->r->split.instances;
    memset(p->mark, 0, samples * sizeof(*p->mark));
    for (uint32_t k = 0; k < p->ranks; k++) {
        uint64_t *const list = p->wanted + k * samples;
        uint64_t some = 0;
        for (uint64_t i = 0; i < n; i++) {
            if (dt_replay_slot_owner(p, (number + i) % p->d.capacity) == k) {
                some = request_steps(p, k, sample[i], list, some);
            }
        }
        p->part[k] = (dt_samples_part){.index = list, .n = some};
    }
    return dt_exchange_fetch_samples(&p->r->exchange, p->unread, p->part);
}

/* ---- what was drawn ---------------------------------------------------------------------------------------------- */

void dt_replay_find_records(dt_replay *p)
{
    for (uint64_t i = 0; i < p->d.draw; i++) {
        const bool is_own = dt_replay_slot_owner(p, p->slot[i]) == p->rank;
        p->record[i] = is_own ? dt_replay_slot_at(p, p->slot[i]) : NULL;
        if (is_own) {
            __builtin_prefetch(p->record[i]);
        }
    }
}

dt_status dt_replay_exchange_sizes(dt_replay *p)
{
    const size_t n = (size_t)p->d.draw * p->n_sizes;
    DT_TRY(dt_comm_all_gather(p->r->stage->d.comm, p->size, n * sizeof(*p->size), p->sizes_of_ranks));
    for (uint64_t i = 0; i < p->d.draw; i++) {
        const size_t at = i * p->n_sizes;
        memcpy(p->size + at, p->sizes_of_ranks + dt_replay_slot_owner(p, p->slot[i]) * n + at,
               p->n_sizes * sizeof(*p->size));
    }
    return DT_OK;
}

static uint64_t sample_of_part(const dt_samples_part *part, uint64_t j)
{
    return part->index != NULL ? part->index[j] : part->first + j;
}

static size_t record_bytes_of(const dt_replay *p, uint64_t sample)
{
    return dt_replay_record_bytes(p, p->size + sample * p->n_sizes, NULL);
}

static dt_status reserve_bytes(char **p, size_t *has, size_t bytes)
{
    void *room = NULL;
    if (bytes <= *has) {
        return DT_OK;
    }
    dt_arena_unmap(*p, *has);
    *p = NULL;
    *has = 0;
    DT_TRY(dt_arena_map(bytes, &room));
    *p = room;
    *has = bytes;
    return DT_OK;
}

static dt_status reserve_buffers(dt_replay *p, size_t in, size_t out)
{
    DT_TRY(reserve_bytes(&p->out, &p->out_bytes, out));
    return reserve_bytes(&p->in, &p->in_bytes, in);
}

/* Bytes that go out for all parts, and that come in for this rank's. */
static void count_bytes(const dt_replay *p, const dt_samples_part *part, size_t *out_p, size_t *in_p)
{
    for (uint32_t k = 0; k < p->ranks; k++) {
        for (uint64_t j = 0; j < part[k].n && k != p->rank; j++) {
            const uint64_t sample = sample_of_part(&part[k], j);
            if (dt_replay_slot_owner(p, p->slot[sample]) == p->rank) {
                *out_p += record_bytes_of(p, sample);
            }
        }
    }
    for (uint64_t j = 0; j < part[p->rank].n; j++) {
        const uint64_t sample = sample_of_part(&part[p->rank], j);
        if (dt_replay_slot_owner(p, p->slot[sample]) != p->rank) {
            *in_p += record_bytes_of(p, sample);
        }
    }
}

static void pack_records(dt_replay *p, const dt_samples_part *part)
{
    char *at = p->out;
    for (uint32_t k = 0; k < p->ranks; k++) {
        p->to[k] = (dt_comm_out){.data = at};
        for (uint64_t j = 0; j < part[k].n && k != p->rank; j++) {
            const uint64_t sample = sample_of_part(&part[k], j);
            if (dt_replay_slot_owner(p, p->slot[sample]) == p->rank) {
                memcpy(at, dt_replay_slot_at(p, p->slot[sample]), record_bytes_of(p, sample));
                at += record_bytes_of(p, sample);
            }
        }
        p->to[k].bytes = (size_t)(at - (const char *)p->to[k].data);
    }
}

/* Where each of this rank's samples lands. */
static void lay_out_received(dt_replay *p, const dt_samples_part *mine)
{
    char *at = p->in;
    dt_replay_find_records(p);
    for (uint32_t k = 0; k < p->ranks; k++) {
        p->from[k] = (dt_comm_in){.data = at};
        for (uint64_t j = 0; j < mine->n && k != p->rank; j++) {
            const uint64_t sample = sample_of_part(mine, j);
            if (dt_replay_slot_owner(p, p->slot[sample]) == k) {
                p->record[sample] = at;
                at += record_bytes_of(p, sample);
            }
        }
        p->from[k].bytes = (size_t)(at - (const char *)p->from[k].data);
    }
}

static dt_status exchange_samples(void *self, uint64_t skipped, const dt_samples_part *part)
{
    dt_replay *p = self;
    dt_comm *comm = p->r->stage->d.comm;
    size_t out = 1, in = 1;
    (void)skipped; /* a record goes whole */
    if (!p->is_drawn) {
        return DT_FAIL(DT_EPLUGIN, "the replay's data is read before anything was drawn, or after something was added");
    }
    DT_TRACE_N("rollout", "bring samples", "samples", part[p->rank].n);
    count_bytes(p, part, &out, &in);
    DT_TRY(dt_comm_agree(comm, reserve_buffers(p, in, out)));
    pack_records(p, part);
    lay_out_received(p, &part[p->rank]);
    return dt_comm_all_to_all(comm, p->to, p->from);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

dt_status dt_replay_exchange_init(dt_replay *p)
{
    if (p->ranks == 1) {
        return DT_OK;
    }
    const size_t samples = (size_t)p->r->d.steps * p->r->split.instances;
    p->data.source.bring = exchange_samples;
    p->wanted = dt_alloc_n(samples * p->ranks, sizeof(*p->wanted));
    p->mark = dt_alloc_n(samples, sizeof(*p->mark));
    p->to = dt_alloc_n(p->ranks, sizeof(*p->to));
    p->from = dt_alloc_n(p->ranks, sizeof(*p->from));
    p->part = dt_alloc_n(p->ranks, sizeof(*p->part));
    return p->wanted != NULL && p->mark != NULL && p->to != NULL && p->from != NULL && p->part != NULL
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for the replay of %u ranks", p->ranks);
}

void dt_replay_exchange_fini(dt_replay *p)
{
    dt_arena_unmap(p->in, p->in_bytes);
    dt_arena_unmap(p->out, p->out_bytes);
    dt_free(p->wanted);
    dt_free(p->mark);
    dt_free(p->to);
    dt_free(p->from);
    dt_free(p->part);
}

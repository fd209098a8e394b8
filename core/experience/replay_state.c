/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1", what a checkpoint keeps of it. Two blobs, the same on any number of ranks:
 *
 *   replay          how many samples, rounds and draws there were; what was drawn last, and the statistics that it is
 *                   read with; priorities
 *   replay-records  the records of all samples by slot, each as long as it is
 *
 * What is loaded is foreign: every record is checked before one is taken over.
 */
#include <config.h>

#include "experience/replay.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#include <math.h>
#include <string.h>

typedef struct head {          /* of the first blob */
    uint64_t capacity, layout; /* of a replay that this one can go on from */
    uint64_t added, rounds, draws;
    uint64_t draw, is_drawn, n_leaves, is_held;
    double most;
} head;

/* What a record's bytes mean: fields, dims, and how many steps they add up. */
static uint64_t layout_of(const dt_replay *p)
{
    uint64_t h = dt_hash64(&p->d.n_step, sizeof(p->d.n_step), 0);
    h = dt_hash64(&p->d.gamma, sizeof(p->d.gamma), h);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        h = dt_hash64(p->port[i].name, strlen(p->port[i].name) + 1, h);
        h = dt_hash64(p->port[i].dims, strlen(p->port[i].dims) + 1, h);
    }
    return h;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* Of `held` slots those of a rank. */
static uint64_t slots_of(const dt_replay *p, uint64_t held, uint32_t rank)
{
    return held > rank ? (held - rank + p->ranks - 1) / p->ranks : 0;
}

static const int32_t *sizes_of(const char *record)
{
    return (const int32_t *)(const void *)record;
}

static size_t own_bytes(const dt_replay *p)
{
    const uint64_t n = slots_of(p, dt_replay_held(p), p->rank);
    size_t bytes = 0;
    for (uint64_t i = 0; i < n; i++) {
        bytes += dt_replay_bytes(p, sizes_of(p->ring + i * p->stride), NULL);
    }
    return bytes;
}

static void pack_own(const dt_replay *p, char *to)
{
    const uint64_t n = slots_of(p, dt_replay_held(p), p->rank);
    for (uint64_t i = 0; i < n; i++) {
        const char *record = p->ring + i * p->stride;
        const size_t bytes = dt_replay_bytes(p, sizes_of(record), NULL);
        memcpy(to, record, bytes);
        to += bytes;
    }
}

/* Streams of all ranks, each by slot, into one. */
static void merge(const dt_replay *p, const char **at, char *to)
{
    const uint64_t held = dt_replay_held(p);
    for (uint64_t slot = 0; slot < held; slot++) {
        const char **from = &at[dt_replay_owner(p, slot)];
        const size_t bytes = dt_replay_bytes(p, sizes_of(*from), NULL);
        memcpy(to, *from, bytes);
        to += bytes;
        *from += bytes;
    }
}

typedef struct collected { /* streams of all ranks, at rank 0 */
    uint64_t *bytes;       /* [ranks] */
    const char **at;       /* [ranks] */
    char *own, *all;
    size_t own_bytes, all_bytes;
} collected;

static dt_status map_bytes(size_t bytes, char **out)
{
    void *p = NULL;
    DT_TRY(dt_arena_map(bytes + 1, &p));
    *out = p;
    return DT_OK;
}

static dt_status make_room(dt_replay *p, collected *c)
{
    c->own_bytes = own_bytes(p);
    c->bytes = dt_alloc_n(p->ranks, sizeof(*c->bytes));
    c->at = dt_alloc_n(p->ranks, sizeof(*c->at));
    if (c->bytes == NULL || c->at == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the replay of %u ranks", p->ranks);
    }
    return map_bytes(c->own_bytes, &c->own);
}

static dt_status make_room_for_all(dt_replay *p, collected *c)
{
    for (uint32_t k = 0; k < p->ranks; k++) {
        if (!dt_add_size(c->all_bytes, (size_t)c->bytes[k], &c->all_bytes)) {
            return DT_FAIL(DT_ENOMEM, "the replay of %u ranks does not fit in the memory of one", p->ranks);
        }
    }
    if (p->rank != 0) {
        c->all_bytes = 0;
        return DT_OK;
    }
    p->gathered_bytes = c->all_bytes;
    p->gathered_room = c->all_bytes + 1;
    DT_TRY(map_bytes(c->all_bytes, &p->gathered));
    return map_bytes(c->all_bytes, &c->all);
}

static dt_status send_all(dt_replay *p, collected *c)
{
    dt_comm *comm = p->r->stage->d.comm;
    const uint64_t mine = c->own_bytes;
    DT_TRY(dt_comm_all_gather(comm, &mine, sizeof(mine), c->bytes));
    DT_TRY(dt_comm_agree(comm, make_room_for_all(p, c)));
    pack_own(p, c->own);
    memset(p->to, 0, p->ranks * sizeof(*p->to));
    memset(p->from, 0, p->ranks * sizeof(*p->from));
    p->to[0] = (dt_comm_out){.data = c->own, .bytes = c->own_bytes};
    char *at = c->all;
    for (uint32_t k = 0; k < p->ranks && p->rank == 0; k++) {
        p->from[k] = (dt_comm_in){.data = at, .bytes = (size_t)c->bytes[k]};
        c->at[k] = at;
        at += c->bytes[k];
    }
    DT_TRY(dt_comm_all_to_all(comm, p->to, p->from));
    if (p->rank == 0) {
        merge(p, c->at, p->gathered);
    }
    return DT_OK;
}

dt_status dt_replay_gather(dt_replay *p)
{
    collected c = {.bytes = NULL};
    DT_TRACE("rollout", "the replay for a checkpoint");
    dt_replay_ungather(p);
    if (p->ranks == 1) {
        p->gathered_bytes = own_bytes(p);
        p->gathered_room = p->gathered_bytes + 1;
        DT_TRY(map_bytes(p->gathered_bytes, &p->gathered));
        pack_own(p, p->gathered);
        return DT_OK;
    }
    dt_status st = dt_comm_agree(p->r->stage->d.comm, make_room(p, &c));
    if (st == DT_OK) {
        st = send_all(p, &c);
    }
    dt_arena_unmap(c.own, c.own_bytes + 1);
    dt_arena_unmap(c.all, c.all_bytes + 1);
    dt_free(c.bytes);
    dt_free(c.at);
    return st;
}

void dt_replay_ungather(dt_replay *p)
{
    dt_arena_unmap(p->gathered, p->gathered_room);
    p->gathered = NULL;
    p->gathered_bytes = p->gathered_room = 0;
}

static void put(dt_str *out, const void *data, size_t bytes)
{
    dt_str_add_n(out, data, bytes);
}

dt_status dt_replay_save(const dt_replay *p, dt_str *out)
{
    const head h = {.capacity = p->d.capacity,
                    .layout = layout_of(p),
                    .added = p->added,
                    .rounds = p->rounds,
                    .draws = p->draws,
                    .draw = p->d.draw,
                    .is_drawn = p->is_drawn,
                    .n_leaves = p->d.alpha > 0 ? dt_replay_held(p) : 0,
                    .is_held = p->is_held,
                    .most = p->most};
    put(out, &h, sizeof(h));
    if (p->is_drawn) {
        put(out, p->slot, (size_t)p->d.draw * sizeof(*p->slot));
        put(out, p->weight, (size_t)p->d.draw * sizeof(*p->weight));
    }
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        put(out, p->held[i], 2 * p->r->obs[i].columns * sizeof(float));
    }
    for (uint64_t i = 0; i < h.n_leaves; i++) {
        const double leaf = dt_sum_tree_get(&p->tree, i);
        put(out, &leaf, sizeof(leaf));
    }
    return dt_str_status(out);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static dt_status take(cursor *c, void *to, size_t bytes)
{
    if (bytes > c->left) {
        return DT_FAIL(DT_EDATA, "the checkpoint's state of the replay ends %zu bytes early", bytes - c->left);
    }
    if (bytes > 0) {
        memcpy(to, c->at, bytes);
        c->at += bytes;
        c->left -= bytes;
    }
    return DT_OK;
}

static dt_status check_head(const head *h, uint64_t held)
{
    const bool is_right = h->is_drawn <= 1 && h->is_held <= 1 && (h->n_leaves == 0 || h->n_leaves == held) &&
                          (!h->is_drawn || held > 0) && isfinite(h->most) && h->most > 0 && h->added <= INT64_MAX &&
                          h->draw >= 1;
    return is_right ? DT_OK : DT_FAIL(DT_EDATA, "the checkpoint's state of the replay contradicts itself");
}

/* What was drawn; of a run that draws another number there is nothing to go on with but the samples. */
static dt_status load_drawn(dt_replay *p, const head *h, uint64_t held, cursor *c)
{
    size_t bytes = 0;
    if (!h->is_drawn) {
        return DT_OK;
    }
    if (h->draw != p->d.draw) {
        if (!dt_mul_size((size_t)h->draw, sizeof(*p->slot) + sizeof(*p->weight), &bytes) || bytes > c->left) {
            return DT_FAIL(DT_EDATA, "the checkpoint's state of the replay lacks what was drawn");
        }
        c->at += bytes;
        c->left -= bytes;
        return DT_OK;
    }
    DT_TRY(take(c, p->slot, (size_t)p->d.draw * sizeof(*p->slot)));
    DT_TRY(take(c, p->weight, (size_t)p->d.draw * sizeof(*p->weight)));
    for (uint64_t i = 0; i < p->d.draw; i++) {
        if (p->slot[i] >= held || !(p->weight[i] >= 0 && p->weight[i] <= 1)) {
            return DT_FAIL(DT_EDATA, "the checkpoint's replay drew slot %llu of %llu with weight %g",
                           (unsigned long long)p->slot[i], (unsigned long long)held, (double)p->weight[i]);
        }
    }
    return DT_OK;
}

static dt_status load_scale(dt_replay *p, const head *h, cursor *c)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        const size_t n = 2 * p->r->obs[i].columns;
        DT_TRY(take(c, p->held[i], n * sizeof(float)));
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(p->held[i][k])) {
                return DT_FAIL(DT_EDATA, "the checkpoint's replay has statistics that are not finite");
            }
        }
    }
    p->is_held = h->is_held != 0;
    return DT_OK;
}

/* Where this run has priorities and the checkpoint has none, all samples are new. */
static dt_status load_leaves(dt_replay *p, const head *h, uint64_t held, cursor *c)
{
    for (uint64_t i = 0; i < held && p->d.alpha > 0; i++) {
        double leaf = h->most;
        DT_TRY(h->n_leaves > 0 ? take(c, &leaf, sizeof(leaf)) : DT_OK);
        if (!(leaf > 0) || isinf(leaf)) {
            return DT_FAIL(DT_EDATA, "the checkpoint's replay has the priority %g in slot %llu", leaf,
                           (unsigned long long)i);
        }
        dt_sum_tree_set(&p->tree, i, leaf);
    }
    p->most = h->most;
    return DT_OK;
}

/* Of all ranks' slots: where each record begins. */
static dt_status find_records(const dt_replay *p, uint64_t held, cursor *c, const char **record)
{
    for (uint64_t slot = 0; slot < held; slot++) {
        int32_t size[DT_REPLAY_MAX_SIZES];
        record[slot] = c->at;
        if (p->n_sizes * sizeof(*size) > c->left) {
            return DT_FAIL(DT_EDATA, "the checkpoint's replay ends at slot %llu of %llu", (unsigned long long)slot,
                           (unsigned long long)held);
        }
        memcpy(size, c->at, p->n_sizes * sizeof(*size));
        DT_TRY(dt_replay_check_sizes(p, slot, size));
        const size_t bytes = dt_replay_bytes(p, size, NULL);
        if (bytes > c->left) {
            return DT_FAIL(DT_EDATA, "the checkpoint's replay ends at slot %llu of %llu", (unsigned long long)slot,
                           (unsigned long long)held);
        }
        DT_TRY(dt_replay_check(p, slot, c->at));
        c->at += bytes;
        c->left -= bytes;
    }
    return c->left == 0
               ? DT_OK
               : DT_FAIL(DT_EDATA, "the checkpoint's replay goes on for %zu bytes behind its last record", c->left);
}

static void take_records(dt_replay *p, uint64_t held, const char *const *record, const head *h)
{
    for (uint64_t slot = 0; slot < held; slot++) {
        int32_t size[DT_REPLAY_MAX_SIZES];
        memcpy(size, record[slot], p->n_sizes * sizeof(*size));
        if (dt_replay_owner(p, slot) == p->rank) {
            memcpy(dt_replay_at(p, slot), record[slot], dt_replay_bytes(p, size, NULL));
        }
    }
    p->is_drawn = h->is_drawn != 0 && h->draw == p->d.draw;
    for (uint64_t i = 0; i < p->d.draw && p->is_drawn; i++) {
        memcpy(p->size + i * p->n_sizes, record[p->slot[i]], p->n_sizes * sizeof(*p->size));
    }
    dt_replay_find(p);
    p->added = h->added;
    p->rounds = h->rounds;
    p->draws = h->draws;
}

static dt_status load(dt_replay *p, const head *h, cursor *state, cursor *records)
{
    const uint64_t held = h->added < h->capacity ? h->added : h->capacity;
    DT_TRY(check_head(h, held));
    if (held > records->left) { /* a record has more than a byte */
        return DT_FAIL(DT_EDATA, "the checkpoint's replay says it has %llu samples, in %zu bytes",
                       (unsigned long long)held, records->left);
    }
    DT_TRY(load_drawn(p, h, held, state));
    DT_TRY(load_scale(p, h, state));
    DT_TRY(load_leaves(p, h, held, state));
    const char **record = dt_alloc_n((size_t)held + 1, sizeof(*record));
    if (record == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the records of %llu samples", (unsigned long long)held);
    }
    const dt_status st = find_records(p, held, records, record);
    if (st == DT_OK) {
        take_records(p, held, record, h);
    }
    dt_free(record);
    return st;
}

dt_status dt_replay_load(dt_replay *p, const char *state, size_t bytes, const char *records, size_t n_records)
{
    cursor c = {.at = state, .left = bytes}, r = {.at = records, .left = n_records};
    head h;
    DT_TRY(take(&c, &h, sizeof(h)));
    if (h.capacity != p->d.capacity || h.layout != layout_of(p)) {
        dt_log(DT_LOG_WARN,
               "the checkpoint's replay is of %llu samples with other fields or steps than this run's, or of another "
               "number than %llu: it begins empty",
               (unsigned long long)h.capacity, (unsigned long long)p->d.capacity);
        return DT_OK;
    }
    return load(p, &h, &c, &r);
}

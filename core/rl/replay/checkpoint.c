/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1", what a checkpoint keeps of it:
 *
 *   replay          how many samples, rounds and draws there were; what was drawn last, and the statistics that it is
 *                   read with; priorities; a digest of all records. The same on any number of ranks
 *   replay-records  the records of samples by slot, each as long as it is: a part of each of n ranks, whose slots are
 *                   rank, rank + n, ... Any number of ranks takes its own out of any number of parts
 *
 * What is loaded is foreign: every record is checked before one is taken over.
 */
#include <config.h>

#include "rl/replay/replay.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"

#include <math.h>
#include <string.h>

typedef struct head {          /* of the first blob */
    uint64_t capacity, layout; /* of a replay that this one can continue from */
    uint64_t added, rounds, draws;
    uint64_t draw, is_drawn, n_leaves, is_held;
    double most;
    uint64_t digest; /* of all records */
} head;

/* What a record's bytes mean: fields, dims, and how many steps they add up. */
static uint64_t hash_record_layout(const dt_replay *p)
{
    uint64_t h = dt_hash64(&p->d.n_step, sizeof(p->d.n_step), 0);
    h = dt_hash64(&p->d.gamma, sizeof(p->d.gamma), h);
    for (uint32_t i = 0; i < p->n_fields; i++) {
        if (p->field[i].kind == DT_REPLAY_TEAM_ROWS) {
            continue; /* no bytes of records */
        }
        h = dt_hash64(p->port[i].name, strlen(p->port[i].name) + 1, h);
        h = dt_hash64(p->port[i].dims, strlen(p->port[i].dims) + 1, h);
    }
    return h;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* Of `held` slots those of a rank. */
static uint64_t count_slots_of_rank(const dt_replay *p, uint64_t held, uint32_t rank)
{
    return held > rank ? (held - rank + p->ranks - 1) / p->ranks : 0;
}

static const int32_t *sizes_in_record(const char *record)
{
    return (const int32_t *)(const void *)record;
}

/* Those that a checkpoint has; stored ones are where they were. */
static uint64_t count_own_slots(const dt_replay *p)
{
    return p->is_stored ? 0 : count_slots_of_rank(p, dt_replay_size(p), p->rank);
}

uint64_t dt_replay_own_bytes(const dt_replay *p)
{
    const uint64_t n = count_own_slots(p);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < n; i++) {
        bytes += dt_replay_record_bytes(p, sizes_in_record(p->ring + i * p->stride), NULL);
    }
    return bytes;
}

dt_status dt_replay_write_own(const dt_replay *p, dt_status (*put)(void *to, const void *bytes, size_t n), void *to)
{
    const uint64_t n = count_own_slots(p);
    for (uint64_t i = 0; i < n; i++) {
        const char *record = p->ring + i * p->stride;
        DT_TRY(put(to, record, dt_replay_record_bytes(p, sizes_in_record(record), NULL)));
    }
    return DT_OK;
}

/* A sum, so that every rank adds up its own: the hashes of all records, each begun with its slot. */
uint64_t dt_replay_digest_record(uint64_t slot, const char *record, size_t bytes)
{
    return dt_hash64(record, bytes, slot);
}

static uint64_t digest_own_records(const dt_replay *p)
{
    const uint64_t n = count_slots_of_rank(p, dt_replay_size(p), p->rank);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        const char *record = p->ring + i * p->stride;
        sum += dt_replay_digest_record(i * p->ranks + p->rank, record,
                                       dt_replay_record_bytes(p, sizes_in_record(record), NULL));
    }
    return sum;
}

static dt_status check_own_records(const dt_replay *p)
{
    const uint64_t n = count_slots_of_rank(p, dt_replay_size(p), p->rank);
    for (uint64_t i = 0; i < n; i++) {
        DT_TRY(dt_replay_check_seal(p, i * p->ranks + p->rank));
    }
    return DT_OK;
}

dt_status dt_replay_prepare_checkpoint(dt_replay *p)
{
    if (p->is_stored) { /* known since they were read */
        return DT_OK;
    }
    DT_TRACE("rollout", "the replay for a checkpoint");
    const dt_status whole = check_own_records(p);
    DT_TRY(p->ranks > 1 ? dt_comm_agree(p->r->stage->d.comm, whole) : whole);
    const uint64_t mine = digest_own_records(p);
    uint64_t *all = dt_alloc_n(p->ranks, sizeof(*all));
    dt_status st = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the digests of %u ranks", p->ranks);
    if (p->ranks > 1) {
        st = dt_comm_agree(p->r->stage->d.comm, st);
    }
    if (st == DT_OK && p->ranks > 1) {
        st = dt_comm_all_gather(p->r->stage->d.comm, &mine, sizeof(mine), all);
    }
    if (st == DT_OK) {
        all[p->rank] = mine;
        p->digest = 0;
    }
    for (uint32_t k = 0; k < p->ranks && st == DT_OK; k++) {
        p->digest += all[k];
    }
    dt_free(all);
    return st;
}

static void write_bytes(dt_str *out, const void *data, size_t bytes)
{
    dt_str_add_n(out, data, bytes);
}

dt_status dt_replay_save(const dt_replay *p, dt_str *out)
{
    const head h = {.capacity = p->d.capacity,
                    .layout = hash_record_layout(p),
                    .added = p->added,
                    .rounds = p->rounds,
                    .draws = p->draws,
                    .draw = p->d.draw,
                    .is_drawn = p->is_drawn,
                    .n_leaves = p->d.alpha > 0 ? dt_replay_size(p) : 0,
                    .is_held = p->is_held,
                    .most = p->most,
                    .digest = p->digest};
    write_bytes(out, &h, sizeof(h));
    if (p->is_drawn) {
        write_bytes(out, p->slot, (size_t)p->d.draw * sizeof(*p->slot));
        write_bytes(out, p->weight, (size_t)p->d.draw * sizeof(*p->weight));
    }
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        write_bytes(out, p->held[i], 2 * p->r->stats.port[i].columns * sizeof(float));
    }
    for (uint64_t i = 0; i < h.n_leaves; i++) {
        const double leaf = dt_sum_tree_get(&p->tree, i);
        write_bytes(out, &leaf, sizeof(leaf));
    }
    return dt_str_status(out);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static dt_status read_bytes(cursor *c, void *to, size_t bytes)
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

/* What was drawn; of a run that draws another number there is nothing to continue with but the samples. */
static dt_status load_drawn_samples(dt_replay *p, const head *h, uint64_t held, cursor *c)
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
    DT_TRY(read_bytes(c, p->slot, (size_t)p->d.draw * sizeof(*p->slot)));
    DT_TRY(read_bytes(c, p->weight, (size_t)p->d.draw * sizeof(*p->weight)));
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
        const size_t n = 2 * p->r->stats.port[i].columns;
        DT_TRY(read_bytes(c, p->held[i], n * sizeof(float)));
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
static dt_status load_priorities(dt_replay *p, const head *h, uint64_t held, cursor *c)
{
    for (uint64_t i = 0; i < held && p->d.alpha > 0; i++) {
        double leaf = h->most;
        DT_TRY(h->n_leaves > 0 ? read_bytes(c, &leaf, sizeof(leaf)) : DT_OK);
        if (!(leaf > 0) || isinf(leaf)) {
            return DT_FAIL(DT_EDATA, "the checkpoint's replay has the priority %g in slot %llu", leaf,
                           (unsigned long long)i);
        }
        dt_sum_tree_set(&p->tree, i, leaf);
    }
    p->most = h->most;
    return DT_OK;
}

static size_t remaining_bytes(const cursor *part, uint32_t n)
{
    size_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        left += part[i].left;
    }
    return left;
}

static dt_status fail_truncated(uint64_t slot, uint64_t held)
{
    return DT_FAIL(DT_EDATA, "the checkpoint's replay ends at slot %llu of %llu", (unsigned long long)slot,
                   (unsigned long long)held);
}

/* Of all slots, which n parts have in turn: where each record begins. */
static dt_status find_records(const dt_replay *p, uint64_t held, cursor *part, uint32_t n, const char **record,
                              uint64_t *digest_p)
{
    *digest_p = 0;
    for (uint64_t slot = 0; slot < held; slot++) {
        int32_t size[DT_REPLAY_MAX_SIZES];
        cursor *c = &part[slot % n];
        record[slot] = c->at;
        if (p->n_sizes * sizeof(*size) > c->left) {
            return fail_truncated(slot, held);
        }
        memcpy(size, c->at, p->n_sizes * sizeof(*size));
        DT_TRY(dt_replay_check_sizes(p, slot, size));
        const size_t bytes = dt_replay_record_bytes(p, size, NULL);
        if (bytes > c->left) {
            return fail_truncated(slot, held);
        }
        DT_TRY(dt_replay_check_record(p, slot, c->at));
        *digest_p += dt_replay_digest_record(slot, c->at, bytes);
        c->at += bytes;
        c->left -= bytes;
    }
    const size_t left = remaining_bytes(part, n);
    return left == 0 ? DT_OK : DT_FAIL(DT_EDATA, "the checkpoint's replay has %zu bytes after its last record", left);
}

static dt_status check_digest(const head *h, uint64_t digest)
{
    return h->digest == digest
               ? DT_OK
               : DT_FAIL(DT_EDATA, "the checkpoint's replay has other records than its state was saved with");
}

static void copy_records(dt_replay *p, uint64_t held, const char *const *record, const head *h)
{
    for (uint64_t slot = 0; slot < held; slot++) {
        int32_t size[DT_REPLAY_MAX_SIZES];
        memcpy(size, record[slot], p->n_sizes * sizeof(*size));
        if (dt_replay_slot_owner(p, slot) == p->rank) {
            memcpy(dt_replay_slot_at(p, slot), record[slot], dt_replay_record_bytes(p, size, NULL));
            dt_replay_seal_slot(p, slot);
        }
    }
    p->is_drawn = h->is_drawn != 0 && h->draw == p->d.draw;
    for (uint64_t i = 0; i < p->d.draw && p->is_drawn; i++) {
        memcpy(p->size + i * p->n_sizes, record[p->slot[i]], p->n_sizes * sizeof(*p->size));
    }
    p->added = h->added;
    p->rounds = h->rounds;
    p->draws = h->draws;
    dt_replay_find_records(p);
}

static dt_status load_records(dt_replay *p, const head *h, cursor *state, cursor *part, uint32_t n)
{
    const uint64_t held = h->added < h->capacity ? h->added : h->capacity;
    uint64_t digest = 0;
    DT_TRY(check_head(h, held));
    if (held > remaining_bytes(part, n)) { /* a record has more than a byte */
        return DT_FAIL(DT_EDATA, "the checkpoint's replay is recorded to have %llu samples, in %zu bytes",
                       (unsigned long long)held, remaining_bytes(part, n));
    }
    DT_TRY(load_drawn_samples(p, h, held, state));
    DT_TRY(load_scale(p, h, state));
    DT_TRY(load_priorities(p, h, held, state));
    const char **record = dt_alloc_n((size_t)held + 1, sizeof(*record));
    if (record == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the records of %llu samples", (unsigned long long)held);
    }
    dt_status st = find_records(p, held, part, n, record, &digest);
    if (st == DT_OK) {
        st = check_digest(h, digest);
    }
    if (st == DT_OK) {
        copy_records(p, held, record, h);
    }
    dt_free(record);
    return st;
}

/* What was drawn of the files that this run has read. */
static dt_status load_stored(dt_replay *p, const head *h, cursor *state)
{
    const uint64_t held = dt_replay_size(p);
    if (h->capacity != p->d.capacity || h->layout != hash_record_layout(p) || h->digest != p->digest ||
        h->added != p->added) {
        return DT_FAIL(DT_EDATA,
                       "the checkpoint was trained on other stored rollouts, %llu samples, than these of %llu; "
                       "continue with the same files, or start a new run with --init-from",
                       (unsigned long long)h->added, (unsigned long long)held);
    }
    DT_TRY(check_head(h, held));
    DT_TRY(load_drawn_samples(p, h, held, state));
    DT_TRY(load_scale(p, h, state));
    DT_TRY(load_priorities(p, h, held, state));
    p->is_drawn = h->is_drawn != 0 && h->draw == p->d.draw;
    p->draws = h->draws;
    for (uint64_t i = 0; i < p->d.draw && p->is_drawn; i++) {
        memcpy(p->size + i * p->n_sizes, p->stored_size + p->slot[i] * p->n_sizes, p->n_sizes * sizeof(*p->size));
    }
    dt_replay_find_records(p);
    return DT_OK;
}

static dt_status load_parts(dt_replay *p, const head *h, cursor *state, const dt_rollout_bytes *records, uint32_t n)
{
    cursor *part = dt_alloc_n(n, sizeof(*part));
    if (part == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u parts of a replay", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        part[i] = (cursor){.at = records[i].data, .left = records[i].bytes};
    }
    const dt_status st = load_records(p, h, state, part, n);
    dt_free(part);
    return st;
}

dt_status dt_replay_load(dt_replay *p, uint32_t version, const dt_rollout_bytes *state, const dt_rollout_bytes *records,
                         uint32_t n_records)
{
    cursor c = {.at = state->data, .left = state->bytes};
    head h = {.digest = 0};
    if (version != DT_ROLLOUT_REPLAY_VERSION || n_records < 1) {
        return DT_FAIL(
            DT_EDATA,
            "the checkpoint's replay has version %u and %u parts, this dtrain reads version %d; start a new run "
            "from its weights with --init-from",
            version, n_records, DT_ROLLOUT_REPLAY_VERSION);
    }
    DT_TRY(read_bytes(&c, &h, sizeof(h)));
    if (p->is_stored) {
        return load_stored(p, &h, &c);
    }
    if (h.capacity != p->d.capacity || h.layout != hash_record_layout(p)) {
        dt_log(DT_LOG_WARN,
               "the checkpoint's replay is of %llu samples with other fields or steps than this run's, or of another "
               "number than %llu: it starts empty",
               (unsigned long long)h.capacity, (unsigned long long)p->d.capacity);
        return DT_OK;
    }
    return load_parts(p, &h, &c, records, n_records);
}

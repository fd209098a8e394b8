/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of shards, and their sums: over the shards of this rank, then over ranks. What is trained is cut into
 * buckets, ranges of the arenas that are summed one by one; of each bucket every rank ends with a slice of the sum,
 * and it is that slice that it updates (ZeRO stage 1, Rajbhandari et al. 2020): a rank keeps moments of its slices
 * alone, and each step ends with all ranks sharing parameters instead of gradients. Frozen tensors stay outside.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

enum {
    GAP = 4096,    /* elements of frozen tensors that do not end a bucket: they are zero and cost less than a message */
    PIECE = 65536, /* elements that a worker takes at once */
    SUMS = 4,      /* buckets on their way at a time: their memory, against time on a slow link */
    OTHERS = 4     /* collectives next to them at most */
};

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

dt_grad *dt_grad_acquire(dt_trainer *t)
{
    pthread_mutex_lock(&t->workers.lock);
    dt_grad *g = t->workers.n_grad_free > 0 ? t->workers.grad_free[--t->workers.n_grad_free] : NULL;
    pthread_mutex_unlock(&t->workers.lock);
    if (g != NULL) {
        atomic_store(&g->n_alive, t->reduce.n_due);
    }
    return g;
}

static void release_grad(dt_trainer *t, dt_grad *g)
{
    pthread_mutex_lock(&t->workers.lock);
    t->workers.grad_free[t->workers.n_grad_free++] = g;
    pthread_mutex_unlock(&t->workers.lock);
}

static void select_buckets(dt_reduction *r, uint32_t groups)
{
    r->n_due = 0;
    for (uint32_t n = 0; n < r->n_buckets; n++) {
        if ((groups >> r->group[r->order[n]] & 1) != 0) {
            r->due[r->n_due++] = r->order[n];
        }
    }
}

dt_status dt_grads_reset(dt_trainer *t, bool has_gradient, uint32_t half, uint32_t groups)
{
    if (has_gradient) {
        DT_TRY(dt_grads_create(t));
    }
    t->workers.n_grad_free = 0;
    for (uint32_t i = 0; i < t->workers.n_grads; i++) {
        t->workers.grad_free[t->workers.n_grad_free++] = &t->workers.grad[i];
    }
    dt_tree_reset(t->tree);
    select_buckets(&t->reduce, groups);
    t->reduce.n_begun = t->reduce.n_ended = 0;
    t->reduce.failed = DT_OK;
    t->reduce.half = half;
    for (uint32_t i = 0; i < t->reduce.n_sums; i++) {
        dt_tree_sum_half_set(t->reduce.sum[i], half);
    }
    return DT_OK;
}

/* ---- this rank's shards ------------------------------------------------------------------------------------------ */

static void reduce_bucket(dt_trainer *t, uint32_t shard, dt_grad *g, uint32_t bucket)
{
    const dt_range at = t->reduce.bucket[bucket];
    dt_tree_node node = {.height = 0, .index = shard, .value = g};
    dt_tree_merge m;
    dt_tree_round_leaf(&t->shape, t->reduce.half, g->data, at);
    while (dt_tree_insert(t->tree, bucket, &node, &m)) {
        dt_grad *right = m.right;
        dt_tree_add_siblings(&t->shape, t->reduce.half, m.parent.height, ((dt_grad *)m.left)->data, right->data, at);
        if (atomic_fetch_sub(&right->n_alive, 1) == 1) {
            release_grad(t, right);
        }
        node = m.parent;
    }
}

void dt_grad_reduce(dt_trainer *t, uint32_t shard, dt_grad *g, uint32_t n)
{
    DT_TRACE("step", "sum gradients");
    if (t->reduce.n_due == 0) {
        release_grad(t, g);
    }
    for (; n < t->reduce.n_due; n++) {
        reduce_bucket(t, shard, g, t->reduce.due[n]);
    }
}

uint32_t dt_grad_reduce_after_call(dt_trainer *t, uint32_t shard, dt_grad *g, uint32_t n, int64_t call)
{
    for (; n < t->reduce.n_due && t->reduce.last[t->reduce.due[n]] <= call; n++) {
        reduce_bucket(t, shard, g, t->reduce.due[n]);
    }
    return n;
}

/* ---- across ranks ------------------------------------------------------------------------------------------------ */

static dt_tree_sum *find_sum(const dt_reduction *r, uint32_t n)
{
    return r->sum[n % r->n_sums];
}

/* Bucket number n of those that are due. */
static dt_status start_bucket(dt_trainer *t, uint32_t n, bool is_failed)
{
    dt_tree_node node[DT_TREE_MAX_NODES];
    const uint32_t bucket = t->reduce.due[n];
    if (is_failed) {
        return dt_tree_sum_participate(find_sum(&t->reduce, n), t->d.comm, t->state.params, t->reduce.bucket[bucket]);
    }
    const uint32_t n_nodes = dt_tree_list_nodes(t->tree, bucket, node);
    for (uint32_t i = 0; i < n_nodes; i++) {
        node[i].value = ((dt_grad *)node[i].value)->data;
    }
    return dt_tree_sum_start(find_sum(&t->reduce, n), t->d.comm, node, n_nodes, t->reduce.bucket[bucket]);
}

static void record_failure(dt_reduction *r, dt_status st)
{
    if (st < 0 && r->failed == DT_OK) {
        r->failed = st;
        dt_error_save(&r->error, st);
    }
}

static void finish_arrived_sums(dt_reduction *r)
{
    bool is_done = true;
    while (r->n_ended < r->n_begun && is_done && r->failed == DT_OK) {
        dt_status st = dt_tree_sum_test(find_sum(r, r->n_ended), &is_done);
        if (st == DT_OK && is_done) {
            st = dt_tree_sum_finish(find_sum(r, r->n_ended++));
        }
        record_failure(r, st);
    }
}

void dt_reduce_progress(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    if (r->n_begun > r->n_ended) {
        finish_arrived_sums(r);
    }
    while (r->n_begun < r->n_due && r->n_begun - r->n_ended < r->n_sums && r->failed == DT_OK &&
           dt_tree_is_complete(t->tree, r->due[r->n_begun])) {
        record_failure(r, start_bucket(t, r->n_begun++, false));
    }
}

static dt_status finish_oldest_sum(dt_reduction *r, bool is_failed)
{
    dt_tree_sum *s = find_sum(r, r->n_ended++);
    return is_failed ? dt_tree_sum_discard(s) : dt_tree_sum_finish(s);
}

dt_status dt_reduce_gradient(dt_trainer *t, bool is_failed)
{
    dt_reduction *r = &t->reduce;
    dt_tree_node node[DT_TREE_MAX_NODES];
    DT_TRACE("step", "reduce");
    if (r->failed != DT_OK) {
        return dt_error_restore(&r->error);
    }
    while (r->n_ended < r->n_due) {
        const bool is_full = r->n_begun == r->n_due || r->n_begun - r->n_ended == r->n_sums;
        DT_TRY(is_full ? finish_oldest_sum(r, is_failed) : start_bucket(t, r->n_begun++, is_failed));
    }
    const bool is_there = r->n_due > 0 && !is_failed && dt_tree_list_nodes(t->tree, r->due[0], node) > 0;
    t->scratch.gradient = is_there                 ? ((dt_grad *)node[0].value)->data
                          : t->workers.n_grads > 0 ? t->workers.grad[0].data
                                                   : NULL;
    t->scratch.has_whole = dt_comm_size(t->d.comm) == 1;
    return DT_OK;
}

/* A rank that failed takes part in the sums that others may have begun, and reports it before anything is made of them.
 * */
dt_status dt_reduce_over_ranks(dt_trainer *t, dt_status mine)
{
    dt_error why;
    const double begin = dt_clock_s();
    dt_error_save(&why, mine);
    t->times.buckets = t->reduce.n_due;
    t->times.early = t->reduce.n_begun;
    const dt_status st = dt_reduce_gradient(t, mine < 0);
    t->times.reduce = dt_clock_s() - begin;
    if (st < 0) {
        return mine < 0 ? dt_error_restore(&why) : st;
    }
    return dt_comm_agree(t->d.comm, dt_error_restore(&why));
}

dt_status dt_reduce_all_gather(dt_trainer *t, float *vector, bool is_all)
{
    dt_reduction *r = &t->reduce;
    const uint32_t *bucket = is_all ? r->order : r->due, n = is_all ? r->n_buckets : r->n_due;
    DT_TRACE("step", "share slices");
    for (uint32_t i = 0; i < n + r->n_sums; i++) {
        if (i >= r->n_sums) {
            DT_TRY(dt_tree_sum_discard(find_sum(r, i)));
        }
        if (i < n) {
            DT_TRY(dt_tree_sum_all_gather(find_sum(r, i), t->d.comm, vector, r->bucket[bucket[i]]));
        }
    }
    return DT_OK;
}

/* A rank that released memory has lost its slices: then no rank gets the whole. */
dt_status dt_trainer_gather_gradient(dt_trainer *t)
{
    const uint32_t ranks = dt_comm_size(t->d.comm);
    uint8_t is_there = t->scratch.gradient != NULL;
    if (ranks == 1 || t->scratch.has_whole) {
        return DT_OK;
    }
    uint8_t *all = dt_alloc(ranks);
    dt_status st = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the gradient of %u ranks", ranks);
    st = dt_comm_agree(t->d.comm, st);
    if (st == DT_OK) {
        st = dt_comm_all_gather(t->d.comm, &is_there, sizeof(is_there), all);
    }
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        is_there &= all[k];
    }
    dt_free(all);
    if (st < 0 || !is_there) {
        return st;
    }
    t->scratch.has_whole = true;
    return dt_reduce_all_gather(t, t->scratch.gradient, true);
}

const float *dt_trainer_last_gradient(const dt_trainer *t)
{
    return t->device == NULL && t->scratch.has_whole ? t->scratch.gradient : NULL;
}

dt_status dt_reduce_losses(dt_trainer *t, uint32_t n, double *total)
{
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    for (uint32_t i = 0; i < own; i++) {
        memcpy(&t->reduce.packed[(size_t)i * n], t->scratch.shard_loss[i], n * sizeof(double));
    }
    return dt_tree_sum_f64(t->d.comm, &t->shape, t->reduce.packed, n, t->reduce.room, total);
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static uint32_t count_range_units(dt_range r)
{
    const int64_t first = r.begin / DT_SLICE_UNIT;
    return r.end > r.begin ? (uint32_t)((r.end + DT_SLICE_UNIT - 1) / DT_SLICE_UNIT - first) : 0;
}

static dt_status add_bucket(dt_reduction *r, dt_range at, uint8_t group)
{
    dt_range *grown = dt_realloc(r->bucket, (r->n_buckets + 1) * sizeof(*grown));
    r->bucket = grown != NULL ? grown : r->bucket;
    uint8_t *of = grown != NULL ? dt_realloc(r->group, (r->n_buckets + 1) * sizeof(*of)) : NULL;
    if (of == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for buckets of gradients");
    }
    r->group = of;
    r->group[r->n_buckets] = group;
    r->bucket[r->n_buckets++] = at;
    return DT_OK;
}

/* A run of a group's tensors, in buckets of at most so many elements, cut where slices are. */
static dt_status split_run_into_buckets(dt_reduction *r, dt_range run, uint8_t group, int64_t most)
{
    const int64_t units = most / DT_SLICE_UNIT > 0 ? most / DT_SLICE_UNIT : 1;
    while (run.begin < run.end) {
        const int64_t cut = (run.begin / DT_SLICE_UNIT + units) * DT_SLICE_UNIT;
        DT_TRY(add_bucket(r, (dt_range){.begin = run.begin, .end = cut < run.end ? cut : run.end}, group));
        run.begin = cut;
    }
    return DT_OK;
}

static dt_status create_buckets(dt_trainer *t)
{
    const dt_param_table *table = t->d.params;
    const int64_t most = (int64_t)(t->c.bucket_bytes / sizeof(float));
    const bool has_groups = t->state.group[0].name != NULL;
    dt_range run = {0};
    uint8_t group = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        const dt_param *p = &table->param[i];
        const uint8_t own = has_groups ? t->state.group_of[i] : 0; /* what is set apart has its place */
        if (p->frozen || own >= t->state.n_groups) {
            continue;
        }
        if ((p->offset - run.end > GAP || own != group) && run.end > run.begin) {
            DT_TRY(split_run_into_buckets(&t->reduce, run, group, most));
            run.begin = run.end;
        }
        group = own;
        run.begin = run.end == run.begin ? p->offset : run.begin;
        run.end = p->offset + p->count;
    }
    return split_run_into_buckets(&t->reduce, run, group, most);
}

/* The slices of a rank in pieces for workers: with place, they are written down; returns how many elements. */
static int64_t list_pieces(const dt_reduction *r, uint32_t ranks, uint32_t rank, bool is_packed, dt_piece *place,
                           uint32_t *n_p)
{
    int64_t packed = 0;
    *n_p = 0;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const dt_range bucket = r->bucket[b], slice = dt_rank_slice(bucket, ranks, rank);
        for (int64_t at = slice.begin; at < slice.end;) {
            const int64_t cut = (at / PIECE + 1) * PIECE, end = cut < slice.end ? cut : slice.end;
            if (place != NULL) {
                place[*n_p] = (dt_piece){.at = {at, end},
                                         .unit = r->unit[b] + at / DT_SLICE_UNIT - bucket.begin / DT_SLICE_UNIT,
                                         .moment = is_packed ? packed : at};
            }
            (*n_p)++;
            packed += end - at;
            at = end;
        }
    }
    return packed;
}

static dt_status count_bucket_units(dt_reduction *r)
{
    r->unit = dt_alloc_n(r->n_buckets + (size_t)1, sizeof(*r->unit));
    if (r->unit == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for buckets of gradients");
    }
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        r->unit[b + 1] = r->unit[b] + count_range_units(r->bucket[b]);
    }
    r->n_units = r->unit[r->n_buckets];
    return DT_OK;
}

static dt_status create_pieces(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    const uint32_t ranks = dt_comm_size(t->d.comm), rank = dt_comm_rank(t->d.comm);
    r->n_own = list_pieces(r, ranks, rank, ranks > 1, NULL, &r->n_pieces);
    r->piece = dt_alloc_n(r->n_pieces, sizeof(*r->piece));
    r->unit_sum = dt_alloc_n(r->n_units, sizeof(*r->unit_sum));
    r->unit_packed = dt_alloc_n(r->n_units, sizeof(*r->unit_packed));
    if (r->piece == NULL || r->unit_sum == NULL || r->unit_packed == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for shards of gradients");
    }
    list_pieces(r, ranks, rank, ranks > 1, r->piece, &r->n_pieces);
    return DT_OK;
}

static dt_status create_sums(dt_trainer *t, int64_t longest)
{
    dt_reduction *r = &t->reduce;
    const uint32_t possible = (DT_COMM_IN_FLIGHT - OTHERS) / dt_tree_max_nodes(&t->shape); /* a call for each node */
    const uint32_t most = possible < SUMS ? possible : SUMS;
    const uint32_t n = r->n_buckets < 1 ? 1 : r->n_buckets < most ? r->n_buckets : most;
    const dt_tree_sum_desc d = {.shape = t->shape, .most = longest, .is_fast = t->c.fast_sums, .half = t->c.half};
    r->order = dt_alloc_n(r->n_buckets, sizeof(*r->order));
    r->due = dt_alloc_n(r->n_buckets, sizeof(*r->due));
    r->last = dt_alloc_n(r->n_buckets, sizeof(*r->last));
    r->sum = dt_alloc_n(n, sizeof(dt_tree_sum *));
    if (r->order == NULL || r->due == NULL || r->last == NULL || r->sum == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for buckets of gradients");
    }
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        r->order[b] = b;
    }
    for (; r->n_sums < n; r->n_sums++) {
        DT_TRY(dt_tree_sum_create(&d, &r->sum[r->n_sums]));
    }
    return DT_OK;
}

/* Few buckets: an insertion sort. Of those that end together the last one of the arena is first, as on the way back. */
void dt_reduce_order_buckets(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        uint32_t at = b;
        r->last[b] = dt_plan_last_write(t->train.plan, r->bucket[b].begin, r->bucket[b].end);
        for (; at > 0 && r->last[r->order[at - 1]] >= r->last[b]; at--) {
            r->order[at] = r->order[at - 1];
        }
        r->order[at] = b;
    }
}

dt_status dt_reduce_create(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    const uint32_t ranks = t->shape.ranks;
    const uint32_t own = t->workers.shard_end - t->workers.shard_begin;
    int64_t longest = 0;
    DT_TRY(create_buckets(t));
    DT_TRY(count_bucket_units(r));
    DT_TRY(create_pieces(t));
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const int64_t n = r->bucket[b].end - r->bucket[b].begin;
        longest = n > longest ? n : longest;
    }
    DT_TRY(create_sums(t, longest));
    r->packed = dt_alloc_n((size_t)own * DT_GRAPH_MAX_LOSSES, sizeof(double));
    r->room = dt_alloc_n(dt_tree_sum_f64_workspace(&t->shape, DT_GRAPH_MAX_LOSSES), sizeof(double));
    r->out = dt_alloc_n(ranks, sizeof(*r->out));
    r->in = dt_alloc_n(ranks, sizeof(*r->in));
    if (r->packed == NULL || r->room == NULL || r->out == NULL || r->in == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for losses of %u shards", t->c.shards);
    }
    return dt_tree_create(&t->shape, r->n_buckets > 0 ? r->n_buckets : 1, &t->tree);
}

void dt_reduce_destroy(dt_trainer *t)
{
    dt_reduction *r = &t->reduce;
    dt_tree_destroy(t->tree);
    t->tree = NULL;
    for (uint32_t i = 0; i < r->n_sums; i++) {
        dt_tree_sum_destroy(r->sum[i]);
    }
    dt_free(r->sum);
    dt_free(r->order);
    dt_free(r->due);
    dt_free(r->last);
    dt_free(r->bucket);
    dt_free(r->group);
    dt_free(r->unit);
    dt_free(r->piece);
    dt_free(r->unit_sum);
    dt_free(r->unit_packed);
    dt_free(r->packed);
    dt_free(r->room);
    dt_free(r->out);
    dt_free(r->in);
    *r = (dt_reduction){0};
}

uint64_t dt_trainer_sent_bytes(const dt_trainer *t)
{
    const dt_reduction *r = &t->reduce;
    uint64_t sent = 0;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        sent +=
            dt_tree_sum_sent_bytes(r->sum[0], r->bucket[b]) + dt_tree_all_gather_sent_bytes(r->sum[0], r->bucket[b]);
    }
    return sent;
}

uint64_t dt_reduce_bytes(const dt_trainer *t)
{
    return t->reduce.n_sums > 0 ? dt_tree_sum_buffer_bytes(t->reduce.sum[0]) * t->reduce.n_sums : 0;
}

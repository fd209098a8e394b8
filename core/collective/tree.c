/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed reduction tree. See tree.h.
 *
 * Nodes live in a heap layout: node (height, index) of S leaves is slot (S >> height) + index, so that slot 1 is the
 * root, and the sibling of slot k is k ^ 1.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "collective/tree.h"
#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

enum { CHUNK = 16384 /* floats of a node that travel at a time where ranks are no power of two */ };

typedef struct slot {
    void *value;
    bool is_here;
} slot;

struct dt_tree {
    uint32_t leaves, ranks, rank;
    pthread_mutex_t lock;
    slot slot[2 * DT_TREE_MAX_LEAVES];
    void *room; /* of the exchanges between ranks, kept so that a steady step allocates nothing */
    size_t room_bytes;
};

/* ---- geometry ---- */

/* The canonical nodes of the leaves [begin, end): the fewest nodes that cover them, left to right. */
static uint32_t cover(uint32_t begin, uint32_t end, dt_tree_node out[DT_TREE_MAX_LEAVES])
{
    uint32_t n = 0;
    while (begin < end) {
        uint32_t height = 0;
        while ((begin & (((uint32_t)2 << height) - 1)) == 0 && begin + ((uint32_t)2 << height) <= end) {
            height++;
        }
        out[n++] = (dt_tree_node){.height = height, .index = begin >> height};
        begin += (uint32_t)1 << height;
    }
    return n;
}

static uint32_t cover_of_rank(const dt_tree *t, uint32_t rank, dt_tree_node out[DT_TREE_MAX_LEAVES])
{
    return cover(dt_tree_leaf_begin(t->leaves, t->ranks, rank), dt_tree_leaf_begin(t->leaves, t->ranks, rank + 1), out);
}

static slot *slot_of(dt_tree *t, uint32_t height, uint32_t index)
{
    return &t->slot[(t->leaves >> height) + index];
}

static bool is_power_of_two(uint32_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

/* ---- life ---- */

dt_status dt_tree_create(uint32_t leaves, uint32_t ranks, uint32_t rank, dt_tree **out_p)
{
    if (!is_power_of_two(leaves) || leaves > DT_TREE_MAX_LEAVES) {
        return DT_FAIL(DT_EINVAL, "%u leaves (shards): want a power of two from 1 to %d", leaves, DT_TREE_MAX_LEAVES);
    }
    if (ranks == 0 || ranks > leaves || rank >= ranks) {
        return DT_FAIL(DT_EINVAL, "rank %u of %u ranks over %u leaves (shards): want at most one rank a leaf", rank,
                       ranks, leaves);
    }
    dt_tree *t = dt_alloc(sizeof(*t));
    if (t == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a reduction tree of %u leaves", leaves);
    }
    t->leaves = leaves;
    t->ranks = ranks;
    t->rank = rank;
    pthread_mutex_init(&t->lock, NULL);
    *out_p = t;
    return DT_OK;
}

void dt_tree_destroy(dt_tree *t)
{
    if (t == NULL) {
        return;
    }
    pthread_mutex_destroy(&t->lock);
    dt_free(t->room);
    dt_free(t);
}

void dt_tree_reset(dt_tree *t)
{
    memset(t->slot, 0, sizeof(t->slot));
}

static dt_status want_room(dt_tree *t, size_t bytes)
{
    if (bytes <= t->room_bytes) {
        return DT_OK;
    }
    dt_free(t->room);
    t->room_bytes = 0;
    t->room = dt_alloc(bytes);
    if (t->room == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %zu bytes of a reduction over %u ranks", bytes, t->ranks);
    }
    t->room_bytes = bytes;
    return DT_OK;
}

/* ---- the part of one rank ---- */

bool dt_tree_offer(dt_tree *t, const dt_tree_node *node, dt_tree_merge *merge_p)
{
    pthread_mutex_lock(&t->lock);
    slot *own = slot_of(t, node->height, node->index), *sibling = slot_of(t, node->height, node->index ^ 1);
    bool is_root = (t->leaves >> node->height) == 1;
    bool is_pair = !is_root && sibling->is_here;
    if (is_pair) {
        bool is_left = (node->index & 1) == 0;
        merge_p->left = is_left ? node->value : sibling->value;
        merge_p->right = is_left ? sibling->value : node->value;
        merge_p->parent = (dt_tree_node){node->height + 1, node->index / 2, merge_p->left};
        *sibling = (slot){0};
    } else {
        *own = (slot){.value = node->value, .is_here = true};
    }
    pthread_mutex_unlock(&t->lock);
    return is_pair;
}

uint32_t dt_tree_nodes(dt_tree *t, dt_tree_node out[DT_TREE_MAX_LEAVES])
{
    dt_tree_node want[DT_TREE_MAX_LEAVES];
    const uint32_t n_want = cover_of_rank(t, t->rank, want);
    uint32_t n = 0;
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < n_want; i++) {
        const slot *s = slot_of(t, want[i].height, want[i].index);
        if (s->is_here) {
            want[i].value = s->value;
            out[n++] = want[i];
        }
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* ---- across ranks ---- */

static dt_status check_comm(const dt_tree *t, const dt_comm *c)
{
    if (dt_comm_size(c) != t->ranks || dt_comm_rank(c) != t->rank) {
        return DT_FAIL(DT_EINVAL, "a tree of rank %u of %u met a communicator of rank %u of %u", t->rank, t->ranks,
                       dt_comm_rank(c), dt_comm_size(c));
    }
    return DT_OK;
}

/* dst += src. a + b and b + a are the same bits, so that each side of an exchange may add in its place. */
static void add(float *restrict dst, const float *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}

/* Ranks are a power of two: one node each, neighbours add first. */
static dt_status reduce_pairs(const dt_tree *t, dt_comm *c, size_t n, float *sum, float *theirs)
{
    for (uint32_t bit = 1; bit < t->ranks; bit *= 2) {
        DT_TRY(dt_comm_exchange(c, t->rank ^ bit, sum, theirs, n * sizeof(*sum)));
        add(sum, theirs, n);
    }
    return DT_OK;
}

/* A node on the way up, its numbers in place. */
typedef struct part {
    uint32_t height, index;
    float *value;
} part;

/* Nodes left to right that cover all leaves, each of n floats: add siblings as they meet; the root is in part[0]. */
static void reduce_parts(part *parts, uint32_t n_parts, size_t n)
{
    uint32_t top = 0; /* parts[0..top) are done and wait for their right sibling */
    for (uint32_t k = 0; k < n_parts; k++) {
        parts[top++] = parts[k];
        while (top > 1 && parts[top - 2].height == parts[top - 1].height && (parts[top - 2].index & 1) == 0) {
            add(parts[top - 2].value, parts[top - 1].value, n);
            top--;
            parts[top - 1].height++;
            parts[top - 1].index /= 2;
        }
    }
}

/* Any number of ranks: everybody gets everybody's nodes, a chunk at a time, and finishes the tree. */
static dt_status reduce_gathered(dt_tree *t, dt_comm *c, size_t count, const dt_tree_node *mine, uint32_t n_mine,
                                 float *out)
{
    dt_tree_node nodes[DT_TREE_MAX_LEAVES];
    uint32_t n_most = 0;
    for (uint32_t r = 0; r < t->ranks; r++) {
        uint32_t n = cover_of_rank(t, r, nodes);
        n_most = n > n_most ? n : n_most;
    }
    const size_t per_rank = (size_t)n_most * CHUNK;
    DT_TRY(want_room(t, (t->ranks + (size_t)1) * per_rank * sizeof(float)));
    float *sent = t->room, *all = sent + per_rank;
    part parts[DT_TREE_MAX_LEAVES];

    for (size_t begin = 0; begin < count; begin += CHUNK) {
        const size_t n = count - begin < CHUNK ? count - begin : CHUNK;
        for (uint32_t k = 0; k < n_mine; k++) {
            memcpy(sent + k * n, (const float *)mine[k].value + begin, n * sizeof(float));
        }
        DT_TRY(dt_comm_all_gather(c, sent, n_most * n * sizeof(float), all));
        uint32_t n_parts = 0;
        for (uint32_t r = 0; r < t->ranks; r++) {
            const uint32_t n_theirs = cover_of_rank(t, r, nodes);
            for (uint32_t k = 0; k < n_theirs; k++) {
                parts[n_parts++] = (part){nodes[k].height, nodes[k].index, all + (r * (size_t)n_most + k) * n};
            }
        }
        reduce_parts(parts, n_parts, n);
        memcpy(out + begin, parts[0].value, n * sizeof(float));
    }
    return DT_OK;
}

dt_status dt_tree_reduce(dt_tree *t, dt_comm *c, int64_t count, float *scratch, float **out_p)
{
    DT_TRY(check_comm(t, c));
    if (count < 0) {
        return DT_FAIL(DT_EINVAL, "reduction of %lld numbers", (long long)count);
    }
    dt_tree_node mine[DT_TREE_MAX_LEAVES], want[DT_TREE_MAX_LEAVES];
    const uint32_t n_mine = dt_tree_nodes(t, mine), n_want = cover_of_rank(t, t->rank, want);
    if (n_mine != n_want) {
        return DT_FAIL(DT_EINVAL, "reduction before all leaves are in: %u of %u sums of rank %u", n_mine, n_want,
                       t->rank);
    }
    float *sum = mine[0].value;
    if (t->ranks > 1 && is_power_of_two(t->ranks)) {
        DT_TRY(reduce_pairs(t, c, (size_t)count, sum, scratch));
    } else if (t->ranks > 1) {
        DT_TRY(reduce_gathered(t, c, (size_t)count, mine, n_mine, sum));
    }
    *out_p = sum;
    return DT_OK;
}

dt_status dt_tree_reduce_f64(dt_tree *t, dt_comm *c, const double *mine, uint32_t n, double *out)
{
    DT_TRY(check_comm(t, c));
    if (n == 0) {
        return DT_OK;
    }
    /* leaves are few and so are their numbers: everybody gets all of them and adds level by level */
    const uint32_t n_mine =
        dt_tree_leaf_begin(t->leaves, t->ranks, t->rank + 1) - dt_tree_leaf_begin(t->leaves, t->ranks, t->rank);
    const size_t n_most = (t->leaves + t->ranks - 1) / t->ranks, per_rank = n_most * n;
    DT_TRY(want_room(t, ((t->ranks + (size_t)1) * per_rank + (size_t)t->leaves * n) * sizeof(double)));
    double *sent = t->room, *all = sent + per_rank, *sum = all + t->ranks * per_rank;
    memcpy(sent, mine, (size_t)n_mine * n * sizeof(double));
    DT_TRY(dt_comm_all_gather(c, sent, per_rank * sizeof(double), all));
    for (uint32_t r = 0; r < t->ranks; r++) {
        const uint32_t begin = dt_tree_leaf_begin(t->leaves, t->ranks, r),
                       end = dt_tree_leaf_begin(t->leaves, t->ranks, r + 1);
        memcpy(sum + (size_t)begin * n, all + r * per_rank, (size_t)(end - begin) * n * sizeof(double));
    }
    for (uint32_t width = t->leaves / 2; width > 0; width /= 2) {
        for (size_t i = 0; i < width; i++) {
            for (size_t k = 0; k < n; k++) {
                sum[i * n + k] = sum[2 * i * n + k] + sum[(2 * i + 1) * n + k];
            }
        }
    }
    memcpy(out, sum, n * sizeof(double));
    return DT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed reduction tree. See tree.h.
 *
 * Nodes of a part live in a heap layout: node (height, index) of S leaves is slot (S >> height) + index, so that slot 1
 * is the root, and the sibling of slot k is k ^ 1. A slot holds the node's value, NULL: not here.
 */
#include <config.h>

#include "comm/tree.h"
#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct dt_tree {
    uint32_t leaves, parts;
    uint32_t n_nodes;
    dt_tree_node node[DT_TREE_MAX_NODES]; /* canonical ones of this rank */
    pthread_mutex_t lock;
    void **slot; /* [parts, 2 leaves] */
};

/* ---- geometry ---- */

uint32_t dt_tree_list_cover(const dt_tree_shape *s, uint32_t rank, dt_tree_node out[DT_TREE_MAX_NODES])
{
    uint32_t n = 0, begin = dt_tree_leaf_begin(s, rank);
    const uint32_t end = dt_tree_leaf_begin(s, rank + 1);
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

uint32_t dt_tree_max_nodes(const dt_tree_shape *s)
{
    dt_tree_node node[DT_TREE_MAX_NODES];
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->ranks; r++) {
        const uint32_t n = dt_tree_list_cover(s, r, node);
        most = n > most ? n : most;
    }
    return most;
}

/* ---- weights ---- */

static dt_status check_weights(uint32_t leaves, uint32_t ranks, const uint32_t *weight, uint64_t *sum_p)
{
    *sum_p = 0;
    if (leaves > DT_TREE_MAX_LEAVES || ranks == 0) {
        return DT_FAIL(DT_EINVAL, "%u shards for %u ranks; at most %d shards, and at least one rank", leaves, ranks,
                       DT_TREE_MAX_LEAVES);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        if (weight[r] == 0 || weight[r] > DT_TREE_MAX_WEIGHT) {
            return DT_FAIL(DT_EINVAL, "rank %u has the weight %u; must be 1 to %d", r, weight[r], DT_TREE_MAX_WEIGHT);
        }
        *sum_p += weight[r];
    }
    return DT_OK;
}

/* The rank with the largest remainder among those that got no leaf for their remainder. count [ranks]. */
static uint32_t rank_with_largest_remainder(uint32_t leaves, uint32_t ranks, const uint32_t *weight, uint64_t sum,
                                            const uint32_t *count)
{
    uint32_t best = 0;
    uint64_t largest = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint64_t share = (uint64_t)leaves * weight[r];
        if (count[r] == share / sum && share % sum > largest) {
            best = r;
            largest = share % sum;
        }
    }
    return best;
}

dt_status dt_tree_partition(uint32_t leaves, uint32_t ranks, const uint32_t *weight, uint32_t *begin)
{
    uint32_t *count = begin + 1, left = leaves;
    uint64_t sum = 0;
    DT_TRY(check_weights(leaves, ranks, weight, &sum));
    for (uint32_t r = 0; r < ranks; r++) {
        count[r] = (uint32_t)((uint64_t)leaves * weight[r] / sum);
        left -= count[r];
    }
    for (; left > 0; left--) {
        count[rank_with_largest_remainder(leaves, ranks, weight, sum, count)]++;
    }
    begin[0] = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        if (count[r] == 0) {
            return DT_FAIL(DT_EINVAL,
                           "rank %u with the weight %u of %llu gets none of %u shards, and every rank needs one: raise "
                           "its weight or the number of shards",
                           r, weight[r], (unsigned long long)sum, leaves);
        }
        begin[r + 1] = begin[r] + count[r]; /* count[r] itself */
    }
    return DT_OK;
}

static void **find_slot(const dt_tree *t, uint32_t part, uint32_t height, uint32_t index)
{
    return &t->slot[(size_t)part * 2 * t->leaves + (t->leaves >> height) + index];
}

static bool is_power_of_two(uint32_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

/* ---- life ---- */

dt_status dt_tree_create(const dt_tree_shape *s, uint32_t parts, dt_tree **out_p)
{
    if (!is_power_of_two(s->leaves) || s->leaves > DT_TREE_MAX_LEAVES) {
        return DT_FAIL(DT_EINVAL, "%u shards: must be a power of two from 1 to %d", s->leaves, DT_TREE_MAX_LEAVES);
    }
    if (s->ranks == 0 || s->ranks > s->leaves || s->rank >= s->ranks) {
        return DT_FAIL(DT_EINVAL, "rank %u of %u ranks over %u shards: at most one rank per shard is possible", s->rank,
                       s->ranks, s->leaves);
    }
    dt_tree *t = dt_alloc(sizeof(*t));
    if (t == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a reduction tree of %u shards", s->leaves);
    }
    t->leaves = s->leaves;
    t->parts = parts;
    t->n_nodes = dt_tree_list_cover(s, s->rank, t->node);
    t->slot = dt_alloc_n((size_t)parts * 2 * s->leaves, sizeof(*t->slot));
    if (t->slot == NULL) {
        dt_free(t);
        return DT_FAIL(DT_ENOMEM, "out of memory for a reduction tree of %u shards in %u parts", s->leaves, parts);
    }
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
    dt_free(t->slot);
    dt_free(t);
}

void dt_tree_reset(dt_tree *t)
{
    memset(t->slot, 0, (size_t)t->parts * 2 * t->leaves * sizeof(*t->slot));
}

/* ---- nodes ---- */

bool dt_tree_insert(dt_tree *t, uint32_t part, const dt_tree_node *node, dt_tree_merge *merge_p)
{
    pthread_mutex_lock(&t->lock);
    const bool is_root = (t->leaves >> node->height) == 1;
    void **own = find_slot(t, part, node->height, node->index), **sibling = own;
    if (!is_root) {
        sibling = find_slot(t, part, node->height, node->index ^ 1);
    }
    const bool is_pair = !is_root && *sibling != NULL;
    if (is_pair) {
        const bool is_left = (node->index & 1) == 0;
        merge_p->left = is_left ? node->value : *sibling;
        merge_p->right = is_left ? *sibling : node->value;
        merge_p->parent = (dt_tree_node){node->height + 1, node->index / 2, merge_p->left};
        *sibling = NULL;
    } else {
        *own = node->value;
    }
    pthread_mutex_unlock(&t->lock);
    return is_pair;
}

uint32_t dt_tree_list_nodes(dt_tree *t, uint32_t part, dt_tree_node out[DT_TREE_MAX_NODES])
{
    uint32_t n = 0;
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        void *value = *find_slot(t, part, t->node[i].height, t->node[i].index);
        if (value != NULL) {
            out[n] = t->node[i];
            out[n++].value = value;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool dt_tree_is_complete(dt_tree *t, uint32_t part)
{
    dt_tree_node node[DT_TREE_MAX_NODES];
    return dt_tree_list_nodes(t, part, node) == t->n_nodes;
}

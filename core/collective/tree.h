/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed reduction tree (DISTRIBUTED 3.2): S leaves, S a power of two, summed pairwise left + right, level by level,
 * whatever the order in which leaves finish and however many ranks hold them. Rank r of R owns the leaves
 * [r*S/R, (r+1)*S/R). A node is (height, index): index i at height h covers leaves [i*2^h, (i+1)*2^h).
 *
 * Local part: workers offer finished nodes; the tree says which two to add. The addition itself runs outside the lock.
 * Threads: offer from any worker; the rest [main].
 */
#ifndef DTRAIN_CORE_COLLECTIVE_TREE_H
#define DTRAIN_CORE_COLLECTIVE_TREE_H

#include "collective/comm.h"
#include <stdbool.h>

enum { DT_TREE_MAX_LEAVES = 64 };

typedef struct dt_tree dt_tree;

typedef struct dt_tree_node {
    uint32_t height, index;
    void *value;
} dt_tree_node;

typedef struct dt_tree_merge {
    void *left, *right;  /* left += right, then right is free */
    dt_tree_node parent; /* offer this next: value is left */
} dt_tree_merge;

static inline uint32_t dt_tree_leaf_begin(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
    return (uint32_t)((uint64_t)leaves * rank / ranks);
}

/* Errors: DT_EINVAL (leaves not a power of two in [1, 64], more ranks than leaves), DT_ENOMEM. */
dt_status dt_tree_create(uint32_t leaves, uint32_t ranks, uint32_t rank, dt_tree **out_p) DT_NODISCARD;
void dt_tree_destroy(dt_tree *t);
void dt_tree_reset(dt_tree *t); /* before a new sum */
/* Offer a finished node of this rank. True: its sibling is here too, merge_p says what to add and what to offer next.
 * False: the tree keeps it. */
bool dt_tree_offer(dt_tree *t, const dt_tree_node *node, dt_tree_merge *merge_p);
/* After all leaves of this rank were offered: the canonical nodes that remain, left to right; returns how many. */
uint32_t dt_tree_nodes(dt_tree *t, dt_tree_node out[DT_TREE_MAX_LEAVES]);

/* Sum over all ranks: the root's value, the same bits on every rank, left in the buffer of out_p (one of this rank's
 * nodes' buffers or scratch). Buffers hold count floats; scratch holds count floats and is used when there are several
 * ranks; for rank counts that are no power of two more scratch is allocated for the time of the call. */
dt_status dt_tree_reduce(dt_tree *t, dt_comm *c, int64_t count, float *scratch, float **out_p) DT_NODISCARD;
/* The same for n doubles per leaf: mine [owned leaves, n] in leaf order, out [n]. */
dt_status dt_tree_reduce_f64(dt_tree *t, dt_comm *c, const double *mine, uint32_t n, double *out) DT_NODISCARD;

#endif

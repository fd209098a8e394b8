/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed reduction tree (docs/explanation/ranks.md): S leaves, S a power of two, summed pairwise left + right, level
 * by level, whatever the order in which leaves finish and however many ranks hold them. Rank r of R owns the leaves
 * [r*S/R, (r+1)*S/R), or as many as its weight gives it, which changes no sum. A node is (height, index): index i at
 * height h covers leaves [i*2^h, (i+1)*2^h).
 *
 * This is the part of one rank: workers offer finished nodes; the tree decides which two to add. The addition itself
 * runs outside the lock. A tree has parts, each of them a sum of its own over the same leaves: ranges of one vector,
 * for example, that are finished one after the other. Across ranks the nodes that remain are summed by tree_sum.h.
 * Threads: offer from any worker; the rest [main].
 */
#ifndef DTRAIN_CORE_COMM_TREE_H
#define DTRAIN_CORE_COMM_TREE_H

#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    DT_TREE_MAX_LEAVES = 4096,
    DT_TREE_MAX_NODES = 24 /* canonical nodes of a rank: at most two of each height */
};

typedef struct dt_tree dt_tree;

typedef struct dt_tree_shape { /* the leaves, and one of the ranks that hold them */
    uint32_t leaves, ranks, rank;
    const uint32_t
        *begin; /* [ranks + 1] as dt_tree_partition computes it; NULL: evenly; outlives what is made of the shape */
} dt_tree_shape;

/* Leaves by weights: each rank gets leaves * weight / all weights, rounded down, and of those that are left over one
 * each goes to the ranks with the largest remainders, of equal ones to the lower rank (Hamilton's method). weight
 * [ranks], up to DT_TREE_MAX_WEIGHT; begin [ranks + 1]: the first leaf of each, and after the last one. Errors:
 * DT_EINVAL (a weight of 0 or above the limit, a rank that gets no leaf, too many leaves). */
enum { DT_TREE_MAX_WEIGHT = 1000000 };
dt_status dt_tree_partition(uint32_t leaves, uint32_t ranks, const uint32_t *weight, uint32_t *begin) DT_NODISCARD;

typedef struct dt_tree_node {
    uint32_t height, index;
    void *value;
} dt_tree_node;

typedef struct dt_tree_merge {
    void *left, *right;  /* left += right, then right is free */
    dt_tree_node parent; /* offer this next: value is left */
} dt_tree_merge;

/* A rank's first leaf; that of the rank after the last one is the number of leaves. */
static inline uint32_t dt_tree_leaf_begin(const dt_tree_shape *s, uint32_t rank)
{
    return s->begin != NULL ? s->begin[rank] : (uint32_t)((uint64_t)s->leaves * rank / s->ranks);
}
/* The canonical nodes of a rank's leaves: the fewest that cover them, left to right, without values; how many. */
uint32_t dt_tree_list_cover(const dt_tree_shape *s, uint32_t rank, dt_tree_node out[DT_TREE_MAX_NODES]);
uint32_t dt_tree_max_nodes(const dt_tree_shape *s); /* of any rank */

/* Errors: DT_EINVAL (leaves not a power of two in [1, 4096], more ranks than leaves), DT_ENOMEM. */
dt_status dt_tree_create(const dt_tree_shape *s, uint32_t parts, dt_tree **out_p) DT_NODISCARD;
void dt_tree_destroy(dt_tree *t);
void dt_tree_reset(dt_tree *t); /* before a new sum */
/* Offer a finished node of this rank. True: its sibling is here too, merge_p holds what to add and what to offer next.
 * False: the tree keeps it. */
bool dt_tree_insert(dt_tree *t, uint32_t part, const dt_tree_node *node, dt_tree_merge *merge_p);
/* The canonical nodes of a part that are here, left to right; returns how many. Once all leaves of this rank were
 * offered, all of them are. */
uint32_t dt_tree_list_nodes(dt_tree *t, uint32_t part, dt_tree_node out[DT_TREE_MAX_NODES]);
bool dt_tree_is_complete(dt_tree *t, uint32_t part); /* all of them are here */

#endif

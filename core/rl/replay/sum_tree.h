/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing in proportion to priorities: a binary tree whose nodes are the sums of their two children, so that setting a
 * priority and finding the leaf at a part of the whole are log2(n) steps (Schaul et al. 2016, appendix B.2.1). A node
 * is always the sum of what is below it now, in one order: the same priorities are the same bits, whatever they were
 * before. Threads: find [any] while no one sets.
 */
#ifndef DTRAIN_CORE_RL_REPLAY_SUM_TREE_H
#define DTRAIN_CORE_RL_REPLAY_SUM_TREE_H

#include "dtrain/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dt_sum_tree {
    uint64_t n, width; /* leaves; the same, up to a power of two */
    double *node;      /* [2 * width] node i has the children 2 i and 2 i + 1; 1: the root; leaf i is width + i */
    size_t bytes;
} dt_sum_tree;

/* All priorities 0. n at least 1. Errors: DT_ENOMEM. */
dt_status dt_sum_tree_init(dt_sum_tree *t, uint64_t n) DT_NODISCARD;
void dt_sum_tree_fini(dt_sum_tree *t);
/* p: finite, at least 0. */
void dt_sum_tree_set(dt_sum_tree *t, uint64_t i, double p);
static inline double dt_sum_tree_get(const dt_sum_tree *t, uint64_t i)
{
    return t->node[t->width + i];
}
static inline double dt_sum_tree_total(const dt_sum_tree *t)
{
    return t->node[1];
}
/* The leaves where the sum of those up to it is first above at[i], which is in [0, all); of a priority above 0, where
 * there is one. at is written over. The ways are gone step by step together, so that they wait for memory together. */
void dt_sum_tree_find(const dt_sum_tree *t, double *at, uint64_t n, uint64_t *leaf);

#endif

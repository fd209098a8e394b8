/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/replay/sum_tree.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>

dt_status dt_sum_tree_init(dt_sum_tree *t, uint64_t n)
{
    void *node = NULL;
    *t = (dt_sum_tree){.n = n, .width = 1};
    while (t->width < n && t->width < (UINT64_C(1) << 62)) {
        t->width *= 2;
    }
    if (t->width < n || !dt_mul_size((size_t)t->width, 2 * sizeof(*t->node), &t->bytes)) {
        return DT_FAIL(DT_ENOMEM, "priorities of %llu samples do not fit in memory", (unsigned long long)n);
    }
    DT_TRY(dt_arena_map(t->bytes, &node));
    t->node = node;
    return DT_OK;
}

void dt_sum_tree_fini(dt_sum_tree *t)
{
    dt_arena_unmap(t->node, t->bytes);
    *t = (dt_sum_tree){.n = 0};
}

void dt_sum_tree_set(dt_sum_tree *t, uint64_t i, double p)
{
    uint64_t at = t->width + i;
    t->node[at] = p;
    for (at /= 2; at > 0; at /= 2) {
        t->node[at] = t->node[2 * at] + t->node[2 * at + 1];
    }
}

/* Rounding may lead to the right where nothing is: then the search continues to the left. */
void dt_sum_tree_find(const dt_sum_tree *t, double *at, uint64_t n, uint64_t *leaf)
{
    for (uint64_t i = 0; i < n; i++) {
        leaf[i] = 1;
    }
    for (uint64_t level = 1; level < t->width; level *= 2) {
        for (uint64_t i = 0; i < n; i++) {
            const double *child = &t->node[2 * leaf[i]];
            const bool goes_left = at[i] < child[0] || !(child[1] > 0);
            at[i] = goes_left ? at[i] : at[i] - child[0];
            leaf[i] = 2 * leaf[i] + !goes_left;
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        leaf[i] -= t->width;
    }
}

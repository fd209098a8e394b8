/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sums of gradients wait for which on a device; see internal.h. The order of sums is that of the fixed tree
 * (comm/tree.h), whatever a launch holds.
 */
#include <config.h>

#include "train/device/internal.h"

typedef struct stack { /* of nodes that wait: no two of them are siblings */
    uint32_t height[DT_TREE_MAX_NODES];
    uint32_t n, most;
} stack;

/* Shards [shard, shard + 2^height) of all. Returns how many it met. */
static uint32_t push_node(stack *s, uint32_t shard, uint32_t height)
{
    uint32_t index = shard >> height, n_met = 0;
    while (s->n > 0 && s->height[s->n - 1] == height && index % 2 == 1) {
        index /= 2;
        height++;
        s->n--;
        n_met++;
    }
    s->height[s->n++] = height;
    s->most = s->n > s->most ? s->n : s->most;
    return n_met;
}

/* The largest node that begins with this shard, has at most n of them, and fits one sum. */
static uint32_t node_height(uint32_t shard, uint32_t n)
{
    uint32_t height = 0;
    while ((2u << height) <= n && (2u << height) <= DT_DEVICE_NODE_LEAVES && shard % (2u << height) == 0) {
        height++;
    }
    return height;
}

/* Shards [first, first + n) of this rank's after what s has. */
static uint32_t push_launch(const dt_trainer *t, stack *s, uint32_t first, uint32_t n, dt_device_node *out)
{
    uint32_t n_nodes = 0;
    for (uint32_t at = 0; at < n;) {
        const uint32_t shard = t->workers.shard_begin + first + at, height = node_height(shard, n - at);
        const uint32_t n_before = push_node(s, shard, height);
        if (out != NULL) {
            out[n_nodes] = (dt_device_node){.first = at, .n = 1u << height, .slot = s->n - 1, .n_before = n_before};
        }
        n_nodes++;
        at += 1u << height;
    }
    return n_nodes;
}

uint32_t dt_device_list_nodes(const dt_trainer *t, uint32_t first, uint32_t n, dt_device_node out[DT_DEVICE_MAX_NODES])
{
    stack s = {0};
    (void)push_launch(t, &s, 0, first, NULL);
    return push_launch(t, &s, first, n, out);
}

uint32_t dt_device_count_slots(const dt_trainer *t, uint32_t shards, uint32_t group)
{
    stack s = {0};
    for (uint32_t first = 0; first < shards; first += group) {
        (void)push_launch(t, &s, first, group, NULL);
    }
    return s.most;
}

uint64_t dt_train_device_sum_bytes(const dt_trainer *t)
{
    const dt_train_device *d = t->device;
    dt_device_node node[DT_DEVICE_MAX_NODES];
    uint64_t elements = 0, passes = 0;
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        if (t->state.group_of[i] < t->state.n_groups) {
            elements += (uint64_t)t->d.params->param[i].count;
        }
    }
    for (uint32_t first = 0; first < d->shards; first += d->launch_shards) {
        const uint32_t n = dt_device_list_nodes(t, first, d->launch_shards, node);
        for (uint32_t k = 0; k < n; k++) {
            passes += 2 * node[k].n + node[k].n_before + 1; /* shards are written and read, what waits is read */
        }
    }
    return passes * elements * sizeof(float);
}

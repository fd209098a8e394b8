/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums across ranks over the fixed tree (tree.h). A vector, or a range of it, is cut into slices, one a rank. Every
 * rank sends each other rank that one's slice of all its nodes, and finishes the tree over its own slice: it then owns
 * a slice of the sum. What it does with it (a norm, an update) is its caller's; dt_tree_sum_all_gather hands slices to
 * all ranks. Bit-identical for any number of ranks. A rank with k canonical nodes (one, where ranks are a power of two)
 * sends 4 count (R - 1) / R bytes k times for a sum, and once to share slices.
 *
 * Nodes may be sent as halves (bf16, fp16), which takes half of the bytes. Since any node but the root is sent on some
 * number of ranks, all of them are rounded as soon as they are made, on one rank as on many: leaves, and sums, which
 * are taken in fp32. The root is not, and slices of it are shared in fp32. Again the same bits on any number of ranks.
 *
 * Where a sum is fast, a rank adds its nodes up first, left to right, and the communicator's library sums those of all
 * ranks (dt_comm_start_reduce_scatter), in an order of its own: 4 count (R - 1) / R bytes at least, whatever R is, and
 * bits that depend on R and on the library. On one rank both are the same.
 * Threads: [main][collective].
 */
#ifndef DTRAIN_CORE_COMM_TREE_SUM_H
#define DTRAIN_CORE_COMM_TREE_SUM_H

#include "comm/comm.h"
#include "comm/tree.h"
#include "engine/optim/optim.h"

enum { DT_SLICE_UNIT = 1024 }; /* elements: slices begin and end at multiples of it, or where their range does */

typedef struct dt_range { /* elements [begin, end) of a vector */
    int64_t begin, end;
} dt_range;

/* The slice of a rank: whole units, all ranks as many or one less; it may be empty. */
dt_range dt_rank_slice(dt_range whole, uint32_t ranks, uint32_t rank);

/* One sum in flight, or one range that is shared. */
typedef struct dt_tree_sum dt_tree_sum;

typedef struct dt_tree_sum_desc {
    dt_tree_shape shape;
    int64_t most; /* elements of a range at most */
    bool is_fast;
    uint32_t half; /* DT_HALF_*: how nodes are sent; fast sums are of fp32 */
} dt_tree_sum_desc;

/* Errors: DT_EINVAL (more ranks than leaves, fast and halves), DT_ENOMEM. */
dt_status dt_tree_sum_create(const dt_tree_sum_desc *d, dt_tree_sum **out_p) DT_NODISCARD;
void dt_tree_sum_destroy(dt_tree_sum *s);
uint64_t dt_tree_sum_buffer_bytes(const dt_tree_sum *s); /* of nodes that come in, and of halves */
/* From the next sum on: DT_HALF_NONE, or what the sum was made for. */
void dt_tree_sum_half_set(dt_tree_sum *s, uint32_t half);
/* A leaf's numbers are complete; left += right makes a node of that height. Rounded to half where it may be sent. */
void dt_tree_round_leaf(const dt_tree_shape *s, uint32_t half, float *value, dt_range at);
void dt_tree_add_siblings(const dt_tree_shape *s, uint32_t half, uint32_t height, float *left, const float *right,
                          dt_range at);
/* mine: the canonical nodes of this rank, left to right (dt_tree_list_nodes), made as above; values are float vectors,
 * of which the range counts, and which must not be touched until finish. It leaves this rank's slice of the sum in the
 * first one.
 * Errors: DT_EINVAL (nodes are missing, a range that is too long, another communicator), those of communicators. */
dt_status dt_tree_sum_start(dt_tree_sum *s, dt_comm *c, const dt_tree_node *mine, uint32_t n_mine, dt_range range)
    DT_NODISCARD;
/* Instead, on a rank that has no nodes since it failed: it sends any numbers, so that no rank waits for it until the
 * time limit. To be dropped; on the others the sum is of no use. any: a float vector, of which the range is read.
 * Errors: as start. */
dt_status dt_tree_sum_participate(dt_tree_sum *s, dt_comm *c, const float *any, dt_range range) DT_NODISCARD;
dt_status dt_tree_sum_test(dt_tree_sum *s, bool *done_p) DT_NODISCARD; /* would finish return at once? */
dt_status dt_tree_sum_finish(dt_tree_sum *s) DT_NODISCARD;
dt_status dt_tree_sum_discard(dt_tree_sum *s) DT_NODISCARD; /* instead: waits, and writes nothing into nodes */

/* What this rank sends for a sum over a range, and what for sharing it afterwards; as dt_comm_sent_bytes counts. */
uint64_t dt_tree_sum_sent_bytes(const dt_tree_sum *s, dt_range range);
uint64_t dt_tree_all_gather_sent_bytes(const dt_tree_sum *s, dt_range range);

/* Every rank's slices of a range to all ranks; drop waits for it. While no sum is in flight here. */
dt_status dt_tree_sum_all_gather(dt_tree_sum *s, dt_comm *c, float *vector, dt_range range) DT_NODISCARD;

/* The tree over n doubles a leaf: mine [leaves of this rank, n] in leaf order, out [n], on all ranks. room: used when
 * there are several, dt_tree_sum_f64_workspace doubles. */
size_t dt_tree_sum_f64_workspace(const dt_tree_shape *s, uint32_t n);
dt_status dt_tree_sum_f64(dt_comm *c, const dt_tree_shape *s, const double *mine, uint32_t n, double *room, double *out)
    DT_NODISCARD;

#endif

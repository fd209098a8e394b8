/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory plan: the place of each value of a finished graph in the activation arena, at capacity.
 *
 * Time is the index of a node. A block lives from its producer to its last reader; greedy by size (Pisarchyk & Lee
 * 2020, "Efficient memory management for deep neural net inference", algorithm 3): largest block first, into the
 * smallest gap that is free over its whole life. A view shares the block of what it views; an op that may overwrite an
 * input (op table) takes over that input's block when this is its last use. Offsets are multiples of 256 bytes.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_MEMORY_PLAN_H
#define DTRAIN_CORE_ENGINE_GRAPH_MEMORY_PLAN_H

#include "engine/graph/ir.h"

typedef struct dt_memory_block {
    int32_t first, last; /* nodes; last = n_nodes: kept to the end of the run (losses, outputs) */
    size_t bytes, offset;
} dt_memory_block;

typedef struct dt_memory {
    int32_t *block; /* per value, -1: not in the arena, or unused */
    dt_memory_block *at;
    int32_t n_blocks;
    size_t bytes;             /* of the arena */
    size_t lower_bound_bytes; /* largest sum of blocks that live at once */
} dt_memory;

typedef struct dt_memory_desc {
    const int64_t *cap; /* largest live size per symbol */
    size_t f32_bytes;   /* 8 with kernel set ref64 */
    bool reuse;         /* false: every block has its own place, nothing is overwritten */
} dt_memory_desc;

/* Requires dt_ir_index. Errors: DT_EINVAL (a value does not fit in the address space), DT_ENOMEM. */
dt_status dt_memory_plan(const dt_ir *ir, const dt_memory_desc *d, dt_memory *out_p) DT_NODISCARD;
void dt_memory_fini(dt_memory *m);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed precision on a device: which values of a plan are stored in half (bf16 or fp16). The CPU stores all in f32.
 *
 * Activations and gradients between ops are stored in half. f32 are parameters, their gradients, and what the caller
 * supplies; losses, statistics, sums and other values by the storage of their op (op.h); values computed from data
 * without a parameter; and values between the last product of matrices and a loss or an output, through ops that only
 * move or combine elements. Products read parameters from a copy of them in half. Every kernel computes in f32 and
 * rounds once, when it writes. See engine/device/device.h. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_STORAGE_H
#define DTRAIN_CORE_ENGINE_GRAPH_STORAGE_H

#include "engine/graph/ir.h"

/* Marks the values of ir that dtype (DT_BF16, DT_F16) stores. Requires dt_ir_index. Errors: DT_ENOMEM. */
dt_status dt_pass_assign_storage(dt_ir *ir, uint32_t dtype) DT_NODISCARD;

/* How value v is stored, and how input k of a node reads it. */
uint32_t dt_storage_dtype(const dt_ir *ir, int32_t v);
uint32_t dt_storage_dtype_read(const dt_ir *ir, const dt_node *n, uint32_t k);

#endif

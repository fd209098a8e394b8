/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed precision on a device: which values of a plan are stored in half (bf16 or fp16). The CPU stores all in f32.
 *
 * Stored in half are activations and gradients between ops. f32 stay parameters, their gradients, and what the caller
 * supplies; losses, statistics and sums, and what else the table of store.c says; what is made of data alone, without a
 * parameter; and what leads from the last product of matrices to a loss or an output through ops that only move or
 * combine elements. Products read parameters from a copy of them in half. Every kernel computes in f32 and rounds once,
 * when it writes. See engine/device/device.h. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_STORE_H
#define DTRAIN_CORE_ENGINE_GRAPH_STORE_H

#include "engine/graph/ir.h"

/* Marks the values of ir that dtype (DT_BF16, DT_F16) stores. Wants dt_ir_index. Errors: DT_ENOMEM. */
dt_status dt_pass_store(dt_ir *ir, uint32_t dtype) DT_NODISCARD;

/* How value v is stored, and how input k of a node reads it. */
uint32_t dt_store_dtype(const dt_ir *ir, int32_t v);
uint32_t dt_store_dtype_read(const dt_ir *ir, const dt_node *n, uint32_t k);

#endif

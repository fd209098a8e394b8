/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes that rewrite a graph between derivative (derive.h) and memory plan (memory_plan.h). Each keeps the
 * meaning; each requires and leaves a graph on which dt_ir_index was run.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_PASSES_H
#define DTRAIN_CORE_ENGINE_GRAPH_PASSES_H

#include "engine/graph/ir.h"

/* Drop nodes that no loss, output or parameter gradient depends on. Errors: DT_ENOMEM. */
dt_status dt_pass_drop_dead(dt_ir *ir) DT_NODISCARD;
/* The same, but keeps nodes of which only the shape is used: recording the graph again requires them. DT_ENOMEM. */
dt_status dt_pass_drop_dead_keep_shapes(dt_ir *ir) DT_NODISCARD;

/* LINEAR followed by a UNARY whose derivative is known from y -> one LINEAR; a sum that only LAYERNORM reads -> its r
 * input. n_p: how many nodes this saved. */
void dt_pass_fuse(dt_ir *ir, uint32_t *n_p);

/* Inside the regions marked for it, values that only the backward pass needs are computed again before their first
 * backward use instead of being kept. Same ops, inputs and dropout streams: bit-identical. n_p: nodes cloned.
 * Errors: DT_ENOMEM. */
dt_status dt_pass_recompute(dt_ir *ir, uint32_t *n_p) DT_NODISCARD;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of plugins in the graph: registration, shape rules and derivatives. Contract: dtrain/ext/ops.h; kernels:
 * engine/backend/user.h. Threads: registration by any, each of which registers all ops before it looks at them.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_OP_USER_H
#define DTRAIN_CORE_ENGINE_GRAPH_OP_USER_H

#include "dtrain/ext/ops.h"
#include "engine/graph/op.h"

/* Checks a descriptor and adds its op; the same descriptor again changes nothing. plugin: for messages, copied.
 * Errors: DT_EPLUGIN (a member is wrong, the name is taken), DT_ENOMEM. */
dt_status dt_user_op_register(const dt_user_op *op, const char *plugin) DT_NODISCARD;
/* 0: no plugin registered an op of this name. */
uint32_t dt_user_op_find(const char *name);
/* Names of all of them, "a, b". */
void dt_user_op_names(dt_str *out);
/* Inputs of small sizes that fit its shape rule; returns how many. */
uint32_t dt_user_op_example(uint32_t op, dt_shape in[DT_USER_OP_MAX_IN]);
/* Runs it on such inputs: it must write every element of its outputs and nothing else, twice the same, and its
 * derivative must be that of central differences. Errors: DT_EPLUGIN with the one that does not hold, DT_ENOMEM. */
dt_status dt_user_op_verify(uint32_t op) DT_NODISCARD;
/* NULL: op is of no plugin. */
const dt_op_info *dt_user_op_info(uint32_t op);

#endif

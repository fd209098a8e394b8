/* SPDX-License-Identifier: Apache-2.0
 *
 * Reverse mode over the recorded graph. Each op's derivative records nodes (op_<family>.c); this pass walks the nodes
 * backwards, sums the gradients of several consumers in the fixed order of that walk, and writes those of trained
 * parameters to the gradient arena: added there by the op itself where it can (out.accum), else by an explicit add.
 * Values that depend on no trained parameter get no derivative. Groups are derived one after another, each with
 * gradients of values of its own: where two groups' losses meet in a value, nothing of one reaches the other.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_DERIVE_H
#define DTRAIN_CORE_ENGINE_GRAPH_DERIVE_H

#include "engine/graph/ir.h"

/* Errors: DT_EINVAL (no loss), DT_EUNSUPPORTED (an op without a derivative), DT_ENOMEM. */
dt_status dt_derive_run(dt_ir *ir) DT_NODISCARD;

/* After dead nodes are dropped: does every batch norm that uses statistics of the micro-batch move its running ones?
 * Errors: DT_ECONFIG. */
dt_status dt_derive_check_statistics(const dt_ir *ir) DT_NODISCARD;

/* For derivatives. */
typedef struct dt_derive dt_derive;
bool dt_derive_needs_grad(const dt_derive *d, const dt_node *n, uint32_t k);     /* is a gradient of input k needed? */
int32_t dt_derive_output_grad(const dt_derive *d, const dt_node *n, uint32_t k); /* of output k; -1: none reached it */
void dt_derive_add_grad(dt_derive *d, const dt_node *n, uint32_t k, int32_t grad); /* a summand of input k's gradient */
/* Is input k a statistic that updates of this group move? What they subtract goes to dt_derive_add_grad. */
bool dt_derive_moves_statistic(const dt_derive *d, const dt_node *n, uint32_t k);
/* Record one op; returns its node, see dt_derive_output. attr may be NULL. Sticky errors. */
int32_t dt_derive_emit(dt_derive *d, uint32_t op, const int32_t *in, uint32_t n_in, const dt_attr *attr);
int32_t dt_derive_output(const dt_derive *d, int32_t node, uint32_t k);
const dt_shape *dt_derive_shape(const dt_derive *d, int32_t value);

/* DT_EMIT(d, op, attr, input values...) */
#define DT_EMIT(d, op, attr, ...)                                                                                      \
    dt_derive_emit(d, op, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t),    \
                   attr)
/* The same, its first output. */
#define DT_EMIT1(d, op, attr, ...) dt_derive_output(d, DT_EMIT(d, op, attr, __VA_ARGS__), 0)
/* Record the gradient of input k, if it is needed. */
#define DT_ADD_GRAD(d, n, k, grad)                                                                                     \
    do {                                                                                                               \
        if (dt_derive_needs_grad(d, n, k)) {                                                                           \
            dt_derive_add_grad(d, n, k, grad);                                                                         \
        }                                                                                                              \
    } while (0)

#endif

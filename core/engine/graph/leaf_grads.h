/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the gradients of leaves lie while a plan of kernel set DEVICE runs. The calls that make them know every leaf
 * alone; what is kept is their sum. So a parameter's gradient, of all leaves of a launch, has a place from the first
 * call that writes it until it is summed, soon after the last one; then others lie there. Many small ones are summed
 * together. Threads: one owner.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_LEAF_GRADS_H
#define DTRAIN_CORE_ENGINE_GRAPH_LEAF_GRADS_H

#include "engine/graph/plan.h"

typedef struct dt_leaf_grad { /* of a parameter */
    int64_t at, count;        /* elements of the arena of parameters */
    int64_t stride;           /* elements from leaf to leaf */
    size_t room;              /* bytes before its place, for one leaf */
    uint32_t first, last;     /* calls that write it */
    uint32_t summed;          /* call after which it is summed */
    bool is_read_first;       /* before anything is written there: it must be zero */
} dt_leaf_grad;

typedef struct dt_leaf_grads {
    dt_leaf_grad *grad; /* in the order in which they are summed */
    uint32_t n;
    size_t bytes; /* for one leaf */
} dt_leaf_grads;

typedef struct dt_leaf_grads_desc {
    uint32_t leaves;     /* of a launch */
    const uint32_t *due; /* [n_due] calls after which all that is complete is summed */
    uint32_t n_due;
} dt_leaf_grads_desc;

/* Errors: DT_ENOMEM. A plan that writes no gradients has none. */
dt_status dt_leaf_grads_plan(const dt_plan *p, const dt_leaf_grads_desc *d, dt_leaf_grads *out_p) DT_NODISCARD;
void dt_leaf_grads_fini(dt_leaf_grads *g);
/* The one of the parameter that begins at this element; NULL: it has no gradient. */
const dt_leaf_grad *dt_leaf_grads_find(const dt_leaf_grads *g, int64_t at);

#endif

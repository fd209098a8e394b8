/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks send each other of an evaluation: the outputs of the micro-batches that each of them ran. A message holds,
 * micro-batch after micro-batch and in the order of the graph's outputs, a view and its data; names and dtypes are the
 * plan's, which is the same on all ranks. Threads: [main].
 */
#ifndef DTRAIN_CORE_TRAIN_EXCHANGE_H
#define DTRAIN_CORE_TRAIN_EXCHANGE_H

#include "comm/comm.h"
#include "engine/graph/plan.h"

typedef struct dt_exchange dt_exchange;

dt_status dt_exchange_create(dt_comm *c, dt_exchange **out_p) DT_NODISCARD;
void dt_exchange_destroy(dt_exchange *x);
/* What a rank ran: output k of micro-batch i, and its name; NULL: there is none. Those of
 * micro-batch 0 are named before any run. */
typedef struct dt_exchange_from {
    const void *self;
    const dt_view *(*output)(const void *self, uint32_t i, uint32_t k, const char **name_p);
} dt_exchange_from;

/* [collective] Outputs of micro-batches [0, n) of the last run to all ranks; from stays as it is while they are shown.
 * mine: how this rank's micro-batches went; the worst of all ranks comes back on all of them. Errors: DT_ENOMEM,
 * DT_EDATA (more than fits in memory), those of communicators. */
dt_status dt_exchange_run(dt_exchange *x, const dt_exchange_from *from, uint32_t n, dt_status mine) DT_NODISCARD;
/* The next micro-batch of a rank: its outputs are found from now on. Errors: DT_ECOMM (it sent less, or no views). */
dt_status dt_exchange_next_micro_batch(dt_exchange *x, uint32_t rank) DT_NODISCARD;
const dt_view *dt_exchange_output(const dt_exchange *x,
                                  const char *name); /* of that micro-batch; NULL: there is none */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances of a run, divided over its ranks: each rank steps a contiguous range, all ranges about equally long.
 * Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_PARTITION_H
#define DTRAIN_CORE_RL_ROLLOUT_PARTITION_H

#include "comm/comm.h"

typedef struct dt_partition {
    dt_comm *comm;
    uint32_t instances;   /* of all ranks */
    uint32_t first, last; /* of this rank: [first, last) */
} dt_partition;

/* Errors: DT_ECONFIG (fewer instances than ranks). */
dt_status dt_partition_init(dt_partition *p, dt_comm *comm, uint32_t instances) DT_NODISCARD;
/* Instances [first(rank), first(rank + 1)) are a rank's. */
uint32_t dt_partition_first_of(const dt_partition *p, uint32_t rank);
uint32_t dt_partition_largest(const dt_partition *p); /* instances of the rank that has the most */

static inline uint32_t dt_partition_count_own(const dt_partition *p) /* instances of this rank */
{
    return p->last - p->first;
}

static inline uint32_t dt_partition_owner(const dt_partition *p, uint64_t instance) /* its rank */
{
    return (uint32_t)(((instance + 1) * dt_comm_size(p->comm) - 1) / p->instances);
}

#endif

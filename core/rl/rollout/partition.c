/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/partition.h"

#include "base/err.h"

dt_status dt_partition_init(dt_partition *p, dt_comm *comm, uint32_t instances)
{
    *p = (dt_partition){.comm = comm, .instances = instances};
    if (instances < dt_comm_size(comm)) {
        return DT_FAIL(DT_ECONFIG,
                       "env.instances = %u is less than the %u ranks; every rank needs at least one: raise "
                       "env.instances, or use fewer ranks",
                       instances, dt_comm_size(comm));
    }
    p->first = dt_partition_first_of(p, dt_comm_rank(comm));
    p->last = dt_partition_first_of(p, dt_comm_rank(comm) + 1);
    return DT_OK;
}

uint32_t dt_partition_first_of(const dt_partition *p, uint32_t rank)
{
    return (uint32_t)((uint64_t)p->instances * rank / dt_comm_size(p->comm));
}

uint32_t dt_partition_largest(const dt_partition *p)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < dt_comm_size(p->comm); k++) {
        const uint32_t n = dt_partition_first_of(p, k + 1) - dt_partition_first_of(p, k);
        most = n > most ? n : most;
    }
    return most;
}

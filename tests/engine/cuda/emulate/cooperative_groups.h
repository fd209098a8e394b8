/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters of blocks on a CPU. Only dynamic shared memory belongs to its block there. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_COOPERATIVE_GROUPS_H
#define DTRAIN_TESTS_CUDA_EMULATE_COOPERATIVE_GROUPS_H

#include "cuda_runtime.h"

namespace cooperative_groups
{

struct cluster_group {
    void sync() const;
    unsigned block_rank() const;
    unsigned num_blocks() const;
    char *address(const void *p, unsigned rank) const;
    template <typename T> T *map_shared_rank(T *p, int rank) const
    {
        return (T *)address(p, (unsigned)rank);
    }
};

static inline cluster_group this_cluster()
{
    return {};
}

} // namespace cooperative_groups

#endif

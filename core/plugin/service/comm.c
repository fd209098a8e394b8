/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.comm/1": rank, number of ranks, and collectives of a phase.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/mem.h"
#include "dtrain/svc/comm.h"

#include <math.h>
#include <string.h>

static uint32_t comm_rank(const dt_host *h)
{
    return dt_comm_rank(dt_stage_of(h)->d.comm);
}

static uint32_t comm_size(const dt_host *h)
{
    return dt_comm_size(dt_stage_of(h)->d.comm);
}

static dt_status comm_all_gather(const dt_host *h, const void *mine, uint64_t bytes, void *all)
{
    return dt_comm_all_gather(dt_stage_of(h)->d.comm, mine, bytes, all);
}

static dt_status comm_barrier(const dt_host *h)
{
    return dt_comm_barrier(dt_stage_of(h)->d.comm);
}

static dt_status comm_agree(const dt_host *h, dt_status mine)
{
    return dt_comm_agree(dt_stage_of(h)->d.comm, mine);
}

static dt_status comm_broadcast(const dt_host *h, uint32_t root, void *data, uint64_t bytes)
{
    dt_comm *c = dt_stage_of(h)->d.comm;
    if (root >= dt_comm_size(c)) {
        return DT_FAIL(DT_EINVAL, "broadcast from rank %u; there are %u, from 0 on", root, dt_comm_size(c));
    }
    return dt_comm_broadcast(c, root, data, bytes);
}

static void reduce_rank(uint32_t how, const double *of_rank, double *value, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        switch (how) {
        case DT_RANKS_SUM:
            value[i] += of_rank[i];
            break;
        case DT_RANKS_MIN:
            value[i] = fmin(value[i], of_rank[i]);
            break;
        default:
            value[i] = fmax(value[i], of_rank[i]);
            break;
        }
    }
}

/* Few numbers, so that gathering them costs less than a tree of their own would. */
static dt_status comm_reduce(const dt_host *h, uint32_t how, double *value, uint64_t n)
{
    dt_comm *c = dt_stage_of(h)->d.comm;
    const uint32_t ranks = dt_comm_size(c);
    size_t bytes = 0, total = 0;
    if (how < DT_RANKS_SUM || how > DT_RANKS_MAX) {
        return DT_FAIL(DT_EINVAL, "reduce by %u; expected DT_RANKS_SUM, DT_RANKS_MIN or DT_RANKS_MAX", how);
    }
    if (!dt_mul_size(n, sizeof(*value), &bytes) || !dt_mul_size(bytes, ranks, &total)) {
        return DT_FAIL(DT_EINVAL, "reduce of %llu numbers on %u ranks: more than fits in memory", (unsigned long long)n,
                       ranks);
    }
    double *all = dt_alloc_n(ranks, bytes > 0 ? bytes : 1);
    dt_status st =
        dt_comm_agree(c, all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for %zu bytes of all ranks", total));
    if (st == DT_OK) {
        st = dt_comm_all_gather(c, value, bytes, all);
    }
    if (st == DT_OK) {
        memcpy(value, all, bytes);
        for (uint32_t r = 1; r < ranks; r++) {
            reduce_rank(how, all + r * n, value, n);
        }
    }
    dt_free(all);
    return st;
}

const dt_comm_api dt_comm_service = {.struct_size = sizeof(dt_comm_api),
                                     .rank = comm_rank,
                                     .size = comm_size,
                                     .all_gather = comm_all_gather,
                                     .barrier = comm_barrier,
                                     .agree = comm_agree,
                                     .broadcast = comm_broadcast,
                                     .reduce = comm_reduce};

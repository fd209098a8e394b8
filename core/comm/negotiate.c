/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all ranks have a transport between devices, before any of them uses it; see transport.h.
 */
#include <config.h>

#include "comm/transport.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

typedef struct rank_library { /* what a rank has */
    uint32_t version;         /* 0: none */
    char reason[300];
} rank_library;

static dt_status gather_versions(const dt_device_transport_ops *ops, dt_comm *c, rank_library *mine, rank_library *all)
{
    if (ops->query_version(&mine->version) < 0) {
        snprintf(mine->reason, sizeof(mine->reason), "%s", dt_error_text());
        dt_error_clear();
    }
    return dt_comm_all_gather(c, mine, sizeof(*mine), all);
}

/* All ranks have it, in one version, or none uses it. */
static dt_status compare_versions(const dt_device_transport_ops *ops, dt_comm *c, bool is_required, rank_library *all,
                                  bool *is_available_p)
{
    *is_available_p = false;
    for (uint32_t r = 0; r < dt_comm_size(c); r++) {
        all[r].reason[sizeof(all[r].reason) - 1] = '\0';
        if (all[r].version == 0 && is_required) {
            return DT_FAIL(DT_EUNSUPPORTED, "comm.backend = \"nccl\", and rank %u has none: %s", r, all[r].reason);
        }
        if (all[r].version == 0) {
            if (dt_comm_rank(c) == 0) {
                dt_log(DT_LOG_WARN,
                       "gradients go through the hosts, which is slower; results are unchanged: rank %u: %s", r,
                       all[r].reason);
            }
            return DT_OK;
        }
        if (all[r].version != all[0].version) {
            return DT_FAIL(DT_ECONFIG,
                           "rank %u has %s %u, rank 0 %u: install one version on all machines, or set comm.backend = "
                           "\"mpi\"",
                           r, ops->name, all[r].version, all[0].version);
        }
    }
    *is_available_p = true;
    return DT_OK;
}

dt_status dt_device_transport_negotiate(const dt_device_transport_ops *ops, dt_comm *c, bool is_required,
                                        bool *is_available_p, uint32_t *version_p)
{
    const uint32_t ranks = dt_comm_size(c);
    rank_library *all = dt_alloc_n(ranks + (size_t)1, sizeof(*all));
    dt_status st = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", ranks);
    st = dt_comm_agree(c, st);
    if (st == DT_OK) {
        st = gather_versions(ops, c, all + ranks, all);
    }
    if (st == DT_OK) {
        st = compare_versions(ops, c, is_required, all, is_available_p);
        *version_p = all[0].version;
    }
    dt_free(all);
    return st;
}

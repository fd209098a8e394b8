/* SPDX-License-Identifier: Apache-2.0
 *
 * What acting carries from step to step, between two rounds: each rank has that of its own instances in the last slot
 * of its buffer, all ranks have all of it, as a checkpoint is written by one.
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

dt_status dt_carried_allocate(dt_rollout *r)
{
    for (uint32_t k = 0; k < r->buffer.n_carried; k++) {
        r->carried_items += r->env->layout.spec.n_agents * r->buffer.carried_columns[k];
    }
    if (r->carried_items == 0) {
        return DT_OK;
    }
    r->carried = dt_alloc_n(r->split.instances, r->carried_items * sizeof(float));
    return r->carried != NULL ? DT_OK
                              : DT_FAIL(DT_ENOMEM, "out of memory for what %u instances carry", r->split.instances);
}

/* The values of own instances between the buffer and x, instance by instance. An agent that is not there has none. */
static void copy_own_values(dt_rollout *r, float *x, bool is_saved)
{
    dt_buffer *b = &r->buffer;
    const size_t A = r->env->layout.spec.n_agents;
    for (uint32_t i = 0; i < b->d.instances; i++) {
        const size_t slot = dt_buffer_slot(b, b->d.steps, i);
        for (uint32_t k = 0; k < b->n_carried; k++) {
            const size_t columns = b->carried_columns[k];
            float *const at = b->carried[k] + slot * A * columns;
            for (size_t a = 0; a < A; a++, x += columns) {
                if (!is_saved) {
                    memcpy(at + a * columns, x, columns * sizeof(*x));
                } else if ((b->row[slot * A + a] & DT_ROW_SEEN) != 0 && b->age[slot * A + a] > 0) {
                    memcpy(x, at + a * columns, columns * sizeof(*x));
                } else {
                    memset(x, 0, columns * sizeof(*x));
                }
            }
        }
    }
}

dt_status dt_carried_gather(dt_rollout *r)
{
    const uint32_t ranks = dt_comm_size(r->split.comm), me = dt_comm_rank(r->split.comm);
    const size_t bytes = r->carried_items * sizeof(float), most = dt_partition_largest(&r->split) * bytes;
    if (bytes == 0 || ranks == 1) {
        if (bytes > 0) {
            copy_own_values(r, r->carried, true);
        }
        return DT_OK;
    }
    char *const all = dt_alloc_n(ranks, most);
    dt_status st = all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for what ranks carry");
    st = dt_comm_agree(r->split.comm, st);
    if (st == DT_OK) {
        copy_own_values(r, (float *)(void *)(all + me * most), true);
        st = dt_comm_all_gather(r->split.comm, all + me * most, most, all);
    }
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        const size_t first = dt_partition_first_of(&r->split, k), own = dt_partition_first_of(&r->split, k + 1) - first;
        memcpy((char *)r->carried + first * bytes, all + k * most, own * bytes);
    }
    dt_free(all);
    return st;
}

void dt_carried_restore(dt_rollout *r)
{
    if (r->carried_items > 0) {
        copy_own_values(r, r->carried + r->split.first * r->carried_items, false);
    }
}

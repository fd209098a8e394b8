/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of all ranks: each steps its own instances and keeps what they observed. The narrow arrays of all rows go to all
 * ranks, so that the order of samples, and every sum over them, is the same on any number of ranks. How a rank gets the
 * observations that it learns from is in exchange.c.
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

/* Arrays of this rank, one after another. */
static void pack_own_arrays(const dt_buffer_array *a, uint32_t n, size_t slots, char *to)
{
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = slots * a[i].slot_bytes;
        if (bytes > 0) {
            memcpy(to, a[i].data, bytes);
            to += bytes;
        }
    }
}

/* Those of rank k into its columns of all. */
static void unpack_rank_arrays(const dt_partition *split, const dt_buffer *b, const dt_buffer_array *a, uint32_t n,
                               uint32_t k, const char *from)
{
    const size_t first = dt_partition_first_of(split, k), own = dt_partition_first_of(split, k + 1) - first;
    const size_t rows = b->d.steps + b->d.window;
    for (uint32_t i = 0; i < n; i++) {
        const size_t item = a[i].slot_bytes;
        for (size_t row = 0; row < rows && item > 0; row++) {
            memcpy((char *)a[i].data + (row * split->instances + first) * item, from, own * item);
            from += own * item;
        }
    }
}

dt_status dt_gather_rows_of_ranks(const dt_partition *split, const dt_buffer *b, dt_buffer *rows)
{
    const uint32_t ranks = dt_comm_size(split->comm);
    dt_buffer_array own[DT_BUFFER_MAX_ARRAYS], all[DT_BUFFER_MAX_ARRAYS];
    size_t slot_bytes = 0;
    if (ranks == 1) {
        return DT_OK;
    }
    DT_TRACE("rollout", "rows of all ranks");
    const uint32_t n = dt_buffer_list_arrays(b, own);
    dt_buffer_list_arrays(rows, all);
    for (uint32_t i = 0; i < n; i++) {
        slot_bytes += own[i].slot_bytes;
    }
    const size_t bytes = (size_t)dt_partition_largest(split) * (b->d.steps + b->d.window) * slot_bytes;
    char *const got = dt_alloc_n(ranks, bytes);
    dt_status st = got != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for what ranks exchange");
    st = dt_comm_agree(split->comm, st);
    if (st == DT_OK) {
        char *const mine = got + dt_comm_rank(split->comm) * bytes;
        pack_own_arrays(own, n, b->n_slots, mine);
        st = dt_comm_all_gather(split->comm, mine, bytes, got);
    }
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        unpack_rank_arrays(split, rows, all, n, k, got + k * bytes);
    }
    dt_free(got);
    rows->key_base = b->key_base;
    rows->is_filled = st == DT_OK;
    return st;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", ranks: each steps its own instances and keeps what it saw. What is small of all rows,
 * and all that is summed up, goes to all of them, so that the order of samples, and every sum over them, are the same
 * on any number of ranks. How a rank gets the observations that it learns from is in share.c.
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <string.h>

uint32_t dt_rollout_first(const dt_rollout *r, uint32_t rank)
{
    return (uint32_t)((uint64_t)r->instances * rank / dt_comm_size(r->stage->d.comm));
}

uint32_t dt_rollout_most(const dt_rollout *r)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < dt_comm_size(r->stage->d.comm); k++) {
        const uint32_t n = dt_rollout_first(r, k + 1) - dt_rollout_first(r, k);
        most = n > most ? n : most;
    }
    return most;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Arrays of this rank, one after another. */
static void pack(const dt_buffer_array *a, uint32_t n, size_t slots, char *to)
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
static void unpack(const dt_rollout *r, const dt_buffer_array *a, uint32_t n, uint32_t k, const char *from)
{
    const size_t first = dt_rollout_first(r, k), own = dt_rollout_first(r, k + 1) - first;
    const size_t rows = r->d.steps + r->rows.d.window;
    for (uint32_t i = 0; i < n; i++) {
        const size_t item = a[i].slot_bytes;
        for (size_t row = 0; row < rows && item > 0; row++) {
            memcpy((char *)a[i].data + (row * r->instances + first) * item, from, own * item);
            from += own * item;
        }
    }
}

dt_status dt_rollout_gather(dt_rollout *r)
{
    const uint32_t ranks = dt_comm_size(r->stage->d.comm);
    dt_buffer_array own[DT_BUFFER_MAX_ARRAYS], all[DT_BUFFER_MAX_ARRAYS];
    size_t slot_bytes = 0;
    if (ranks == 1) {
        return DT_OK;
    }
    DT_TRACE("rollout", "rows of all ranks");
    const uint32_t n = dt_buffer_arrays(&r->buffer, own);
    dt_buffer_arrays(&r->rows, all);
    for (uint32_t i = 0; i < n; i++) {
        slot_bytes += own[i].slot_bytes;
    }
    const size_t bytes = (size_t)dt_rollout_most(r) * (r->d.steps + r->rows.d.window) * slot_bytes;
    char *const got = dt_alloc_n(ranks, bytes);
    dt_status st = got != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for what ranks exchange");
    st = dt_comm_agree(r->stage->d.comm, st);
    if (st == DT_OK) {
        char *const mine = got + dt_comm_rank(r->stage->d.comm) * bytes;
        pack(own, n, r->buffer.n_slots, mine);
        st = dt_comm_all_gather(r->stage->d.comm, mine, bytes, got);
    }
    for (uint32_t k = 0; k < ranks && st == DT_OK; k++) {
        unpack(r, all, n, k, got + k * bytes);
    }
    dt_free(got);
    r->rows.key_base = r->buffer.key_base;
    r->rows.is_filled = st == DT_OK;
    return st;
}

/* ---- statistics of observations ---------------------------------------------------------------------------------- */

/* Of one port: every instance by itself, all of them joined in order. part: [ranks, most, 1 + 2 columns] */
static dt_status learn_port(dt_rollout *r, uint32_t port, double *part)
{
    const dt_buffer *b = &r->buffer;
    dt_moments *m = &r->obs[port];
    const uint32_t ranks = dt_comm_size(r->stage->d.comm), most = dt_rollout_most(r);
    const size_t A = b->l->spec.n_agents, items = 1 + 2 * m->columns;
    double *const mine = part + dt_comm_rank(r->stage->d.comm) * (most * items);
    for (uint32_t i = 0; i < r->last - r->first; i++) {
        const size_t at = dt_buffer_slot(b, 0, i) * A;
        const dt_moments_rows rows = {.x = (const float *)(const void *)b->obs[port] + at * m->columns,
                                      .flag = b->row + at,
                                      .n = A,
                                      .blocks = b->d.steps,
                                      .stride = b->d.instances * A};
        dt_moments_sum(&rows, m->columns, mine + i * items);
    }
    if (ranks > 1) {
        DT_TRY(dt_comm_all_gather(r->stage->d.comm, mine, most * items * sizeof(*part), part));
    }
    for (uint32_t k = 0; k < ranks; k++) {
        for (uint32_t i = 0; i < dt_rollout_first(r, k + 1) - dt_rollout_first(r, k); i++) {
            dt_moments_join(m, part + (k * (size_t)most + i) * items);
        }
    }
    return DT_OK;
}

dt_status dt_rollout_learn_observations(dt_rollout *r)
{
    size_t columns = 0;
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        columns = r->obs[i].columns > columns ? r->obs[i].columns : columns;
    }
    if (columns == 0) {
        return DT_OK;
    }
    const size_t ranks = dt_comm_size(r->stage->d.comm);
    double *part = dt_alloc_n(ranks * dt_rollout_most(r), (1 + 2 * columns) * sizeof(*part));
    dt_status st = part != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the statistics of observations");
    st = dt_comm_agree(r->stage->d.comm, st);
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS && st == DT_OK; i++) {
        st = r->obs[i].columns > 0 ? learn_port(r, i, part) : DT_OK;
    }
    dt_free(part);
    return st;
}

uint64_t dt_rollout_list_acted(const dt_rollout *r, uint64_t *sample)
{
    const dt_buffer *b = r->all;
    const uint64_t samples = (uint64_t)b->d.steps * b->d.instances;
    const size_t first = dt_buffer_slot(b, 0, 0);
    uint64_t n = 0;
    for (uint64_t i = 0; i < samples; i++) {
        if (b->n_acts[first + i] > 0) {
            sample[n++] = i;
        }
    }
    return n;
}

uint64_t dt_rollout_episodes(const dt_rollout *r)
{
    const dt_buffer *b = r->all;
    const size_t first = dt_buffer_slot(b, 0, 0), end = first + (size_t)b->d.steps * b->d.instances;
    uint64_t n = 0;
    for (size_t i = first; i < end; i++) {
        n += dt_rollout_is_counted(b->done[i]);
    }
    return n;
}

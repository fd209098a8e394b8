/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/batch.h"

#include "base/err.h"
#include "base/plugin_call.h"

#include <string.h>

enum { ALIGN = 64, N_ACTIONS = 2 }; /* the last arrays: act_i, act_f */

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void add_array(dt_batch *b, const char *name, size_t at, size_t bytes)
{
    b->array[b->n_arrays++] = (dt_batch_array){.name = name, .at = at, .bytes = bytes};
}

static void list_arrays(dt_batch *b, const dt_layout *l)
{
    const dt_env_spec *s = &l->spec;
    const size_t A = s->n_agents;
    b->n_arrays = 0;
    for (uint32_t i = 0; i < s->n_obs; i++) {
        add_array(b, s->obs[i].name, l->obs[i].offset, (size_t)l->obs[i].cap * l->obs[i].row_bytes);
    }
    add_array(b, "size", l->size, s->n_symbols * sizeof(int64_t));
    add_array(b, "alive", l->alive, A);
    add_array(b, "reward", l->reward, A * sizeof(float));
    add_array(b, "cost", l->cost, A * s->n_costs * sizeof(float));
    add_array(b, "terminated", l->terminated, A);
    add_array(b, "truncated", l->truncated, A);
    add_array(b, "metric", l->metric, s->n_metrics * sizeof(double));
    add_array(b, "mask", l->mask, A * l->n_choices);
    add_array(b, "act_i", l->act_i, A * s->n_heads * sizeof(int32_t));
    add_array(b, "act_f", l->act_f, A * s->n_continuous * sizeof(float));
}

size_t dt_batch_bytes(const dt_layout *l, uint32_t n, size_t gap)
{
    dt_batch b;
    size_t bytes = gap;
    list_arrays(&b, l);
    for (uint32_t k = 0; k < b.n_arrays; k++) {
        bytes += round_up(n * b.array[k].bytes) + gap;
    }
    return bytes;
}

void dt_batch_init(dt_batch *b, const dt_layout *l, uint32_t n, size_t gap, char *memory)
{
    const uint32_t n_obs = l->spec.n_obs;
    list_arrays(b, l);
    b->n = n;
    memory += gap;
    for (uint32_t k = 0; k < b->n_arrays; k++) {
        b->array[k].begin = memory;
        memory += round_up(n * b->array[k].bytes) + gap;
    }
    for (uint32_t k = 0; k < n_obs; k++) {
        b->obs[k] = b->array[k].begin;
    }
    const dt_batch_array *f = b->array + n_obs;
    b->io = (dt_env_io){.struct_size = sizeof(b->io),
                        .n_obs = n_obs,
                        .obs = b->obs,
                        .size = (void *)f[0].begin,
                        .alive = (void *)f[1].begin,
                        .reward = (void *)f[2].begin,
                        .cost = (void *)f[3].begin,
                        .terminated = (void *)f[4].begin,
                        .truncated = (void *)f[5].begin,
                        .metric = (void *)f[6].begin,
                        .mask = (void *)f[7].begin,
                        .act_i = (void *)f[8].begin,
                        .act_f = (void *)f[9].begin};
}

void dt_batch_clear(const dt_batch *b)
{
    const uint32_t mask = b->n_arrays - N_ACTIONS - 1;
    for (uint32_t k = 0; k <= mask; k++) {
        memset(b->array[k].begin, k == mask, b->n * b->array[k].bytes);
    }
}

void dt_batch_put_actions(const dt_batch *b, uint32_t i, const char *record)
{
    for (uint32_t k = b->n_arrays - N_ACTIONS; k < b->n_arrays; k++) {
        const dt_batch_array *a = &b->array[k];
        memcpy(a->begin + i * a->bytes, record + a->at, a->bytes);
    }
}

void dt_batch_take_outputs(const dt_batch *b, uint32_t i, char *record)
{
    for (uint32_t k = 0; k < b->n_arrays - N_ACTIONS; k++) {
        const dt_batch_array *a = &b->array[k];
        memcpy(record + a->at, a->begin + i * a->bytes, a->bytes);
    }
}

/* The same for all instances, array by array: copies of few bytes cost next to nothing then. */
#define COPY_ALL(BYTES, TO, FROM)                                                                                      \
    for (uint32_t i = 0; i < n; i++) {                                                                                 \
        memcpy((TO), (FROM), (BYTES));                                                                                 \
    }
static void scatter(const dt_batch_array *a, uint32_t n, char *const *record)
{
    switch (a->bytes) {
    case 0:
        break;
    case 1:
        COPY_ALL(1, record[i] + a->at, a->begin + i)
        break;
    case 2:
        COPY_ALL(2, record[i] + a->at, a->begin + 2 * (size_t)i)
        break;
    case 4:
        COPY_ALL(4, record[i] + a->at, a->begin + 4 * (size_t)i)
        break;
    case 8:
        COPY_ALL(8, record[i] + a->at, a->begin + 8 * (size_t)i)
        break;
    case 16:
        COPY_ALL(16, record[i] + a->at, a->begin + 16 * (size_t)i)
        break;
    default:
        COPY_ALL(a->bytes, record[i] + a->at, a->begin + i * a->bytes)
        break;
    }
}

static void gather(const dt_batch_array *a, uint32_t n, char *const *record)
{
    if (a->bytes == 4) {
        COPY_ALL(4, a->begin + 4 * (size_t)i, record[i] + a->at)
    } else if (a->bytes > 0) {
        COPY_ALL(a->bytes, a->begin + i * a->bytes, record[i] + a->at)
    }
}

void dt_batch_step(const char *id, const dt_layout *l, const dt_env_ops *ops, uint32_t n, void *const *self,
                   char *const *record, char *memory, dt_status *status)
{
    dt_batch b;
    dt_batch_init(&b, l, n, 0, memory);
    dt_batch_clear(&b);
    for (uint32_t k = b.n_arrays - N_ACTIONS; k < b.n_arrays; k++) {
        gather(&b.array[k], n, record);
    }
    memset(status, 0, n * sizeof(*status));
    dt_status st = DT_OK;
    const uint64_t n_records = dt_error_count();
    DT_CALL_PLUGIN(st, id, "step_many", ops->step_many(self, n, &b.io, status));
    if (st > 0) {
        st = DT_FAIL(DT_EPLUGIN, "step_many returned %d", (int)st);
    }
    for (uint32_t i = 0; i < n; i++) {
        status[i] = st < 0 ? st : dt_error_require_reason(status[i], n_records, id, "step_many");
    }
    for (uint32_t k = 0; k < b.n_arrays - N_ACTIONS; k++) {
        scatter(&b.array[k], n, record);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * dqn_memory, data: the transitions that the phase dqn (dqn.c) keeps, as the host's trainer reads them. The fields have
 * the names that a rollout with transitions has, so that one recording fits both.
 *
 * Where the contract had to be gone round, a comment begins with "Round".
 */
#ifndef THIRD_PARTY_DQN_MEMORY_H
#define THIRD_PARTY_DQN_MEMORY_H

#include <dtrain/helpers.h>

#include <string.h>

enum { TEXT = 32 };

/* A ring of transitions of single agents: rows of the observation before, that after, and what is between them. */
enum { ACTION, REWARD, GOES_ON, BETWEEN };
typedef struct memory {
    int64_t capacity, D, n, next; /* n: kept so far; next: place to be written */
    float *row;                   /* [capacity, 2 D + BETWEEN] */
} memory;

static float *row_at(const memory *m, int64_t i)
{
    return m->row + i * (2 * m->D + BETWEEN);
}

static uint64_t bytes_of(const memory *m, int64_t rows)
{
    return (uint64_t)(rows * (2 * m->D + BETWEEN)) * sizeof(float);
}

/* Round: a phase binds data by name and has no way to hand it anything but options, as text. So the phase's memory goes
 * to the data as the number of its address, set by the phase alone. */
typedef struct memory_config {
    int64_t memory;
} memory_config;

typedef struct memory_state {
    const memory *m; /* NULL: nobody learns from it, as in `dtrain check` */
    char obs[TEXT];
    dt_port field[5];
} memory_state;

static const dt_option memory_options[] = {
    DT_OPTION(memory_config, memory, DT_OPT_I64, "0", NULL, 0, 9e15, NULL, "the phase's own, set by it alone"),
    DT_OPTION_END};

static dt_status memory_create(void *self, const dt_host *h, const void *cfg)
{
    memory_state *s = self;
    (void)h;
    s->m = (const memory *)(uintptr_t)((const memory_config *)cfg)->memory;
    snprintf(s->obs, TEXT, "A %lld", s->m != NULL ? (long long)s->m->D : 1);
    /* Named as the fields of a rollout, so that one recording fits both: see record. */
    s->field[0] = (dt_port){"obs", s->obs, DT_F32, 0};
    s->field[1] = (dt_port){"action_i", "A 1", DT_I32, 0};
    s->field[2] = (dt_port){"target", "A", DT_F32, 0};
    s->field[3] = (dt_port){"next_obs", s->obs, DT_F32, 0};
    s->field[4] = (dt_port){"next_present", "A", DT_F32, 0};
    return DT_OK;
}

static const dt_port *memory_fields(const void *self, uint32_t *n_p)
{
    *n_p = 5;
    return ((const memory_state *)self)->field;
}

static const char *const *memory_symbols(const void *self, uint32_t *n_p)
{
    static const char *const symbols[] = {"A"};
    (void)self;
    *n_p = 1;
    return symbols;
}

/* Round: samples are counted once, before there are any; until the ring is full what is there counts several times. */
static dt_status memory_count(const void *self, uint64_t *n_p)
{
    const memory *m = ((const memory_state *)self)->m;
    *n_p = m != NULL ? (uint64_t)m->capacity : 1;
    return DT_OK;
}

static dt_status memory_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    (void)self;
    (void)index;
    size[0] = n;
    return DT_OK;
}

static dt_status memory_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const memory *m = ((const memory_state *)self)->m;
    const float zeros[2 + BETWEEN] = {0};
    const size_t D = m != NULL ? (size_t)m->D : 1;
    float *obs = out[0], *reward = out[2], *next_obs = out[3], *goes_on = out[4];
    int32_t *action = out[1];
    (void)key;
    for (uint32_t i = 0; i < n; i++) {
        const float *row = m == NULL ? zeros : row_at(m, (int64_t)(index[i] % (uint64_t)(m->n > 0 ? m->n : 1)));
        memcpy(obs + i * D, row, D * sizeof(float));
        memcpy(next_obs + i * D, row + D, D * sizeof(float));
        action[i] = (int32_t)row[2 * D + ACTION];
        reward[i] = row[2 * D + REWARD];
        goes_on[i] = row[2 * D + GOES_ON];
    }
    return DT_OK;
}

static void memory_destroy(void *self)
{
    (void)self; /* the phase's */
}

static const dt_data_ops memory_ops = {.struct_size = sizeof(dt_data_ops),
                                       .create = memory_create,
                                       .fields = memory_fields,
                                       .symbols = memory_symbols,
                                       .count = memory_count,
                                       .sizes = memory_sizes,
                                       .read = memory_read,
                                       .destroy = memory_destroy};

static const dt_component memory_component = {.struct_size = sizeof(dt_component),
                                              .kind = DT_KIND_DATA,
                                              .id = "dqn_memory",
                                              .summary = "the transitions that dqn keeps",
                                              .reference = "Lin (1992), doi:10.1007/BF00992699",
                                              .flags = DT_COMP_DETERMINISTIC,
                                              .config_size = sizeof(memory_config),
                                              .state_size = sizeof(memory_state),
                                              .options = memory_options,
                                              .ops = &memory_ops};

#endif

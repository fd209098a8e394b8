/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of several instances in one call, by step_many of an environment that has it: actions go from records into
 * contiguous arrays, and outputs back. Threads: [any], with memory of its own each.
 */
#ifndef DTRAIN_CORE_RL_ENV_BATCH_H
#define DTRAIN_CORE_RL_ENV_BATCH_H

#include "rl/env/layout.h"

enum { DT_BATCH_ARRAYS = DT_ENV_MAX_OBS + 10 };

typedef struct dt_batch_array {
    const char *name; /* of the port, or the member of dt_env_io */
    size_t at, bytes; /* in a record; of an instance */
    char *begin;      /* of the first instance */
} dt_batch_array;

/* The arrays of n instances: observations, size, alive, reward, cost, terminated, truncated, metric, mask, actions.
 * gap bytes come before each and after the last; memory has room for dt_batch_bytes. */
typedef struct dt_batch {
    dt_batch_array array[DT_BATCH_ARRAYS];
    uint32_t n_arrays, n;
    void *obs[DT_ENV_MAX_OBS];
    dt_env_io io;
} dt_batch;
size_t dt_batch_bytes(const dt_layout *l, uint32_t n, size_t gap);
void dt_batch_init(dt_batch *b, const dt_layout *l, uint32_t n, size_t gap, char *memory);
void dt_batch_clear(const dt_batch *b); /* outputs as they are before a call */
/* Actions of a record into place i; outputs of place i into a record. */
void dt_batch_put_actions(const dt_batch *b, uint32_t i, const char *record);
void dt_batch_take_outputs(const dt_batch *b, uint32_t i, char *record);

/* All of it: record and self [n], status out [n]. memory: n * record_bytes. id: of the environment, for messages. */
void dt_batch_step(const char *id, const dt_layout *l, const dt_env_ops *ops, uint32_t n, void *const *self,
                   char *const *record, char *memory, dt_status *status);

#endif

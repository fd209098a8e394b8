/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of samples: a keyed permutation per epoch (dt_permute), so the whole state is (epoch, position), resuming
 * is exact, and neither ranks nor workers enter: whoever needs position p of epoch e computes it. Positions count in
 * the global batch. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_DATA_SAMPLER_H
#define DTRAIN_CORE_DATA_SAMPLER_H

#include "dtrain/status.h"

#include <stdbool.h>

typedef enum dt_tail {
    DT_TAIL_DROP, /* an epoch has floor(n / batch) batches; which samples are left out changes with the epoch */
    DT_TAIL_PAD,  /* ceil(n / batch) batches; the last is filled from the epoch's own begin */
    DT_TAIL_SHORT /* ceil(n / batch) batches, the last one smaller: evaluation */
} dt_tail;

typedef struct dt_sampler {
    uint64_t n, batch; /* samples, global batch; both at least 1 */
    uint64_t seed;
    uint32_t phase;
    dt_tail tail;
    bool is_ordered; /* 0, 1, 2, ... instead of shuffled */
} dt_sampler;

dt_status dt_sampler_check(const dt_sampler *s) DT_NODISCARD; /* DT_EINVAL: no samples, or drop with n < batch */
uint64_t dt_sampler_batches(const dt_sampler *s);             /* of an epoch */
uint64_t dt_sampler_positions(const dt_sampler *s);           /* of an epoch */
uint64_t dt_sampler_index(const dt_sampler *s, uint64_t epoch, uint64_t position); /* position < positions */
/* Key of a use of a sample for augmentation and dropout: depends on epoch and position alone, never 0. */
uint64_t dt_sampler_key(const dt_sampler *s, uint64_t epoch, uint64_t position);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "train/order.h"

#ifndef DT_ISA
#    define DT_ISA base
#endif
#define PASTE(a, b) a##b
#define RUN_OF(isa) PASTE(dt_order_run_, isa)

enum { BATCH = 32, CHUNK = 128 };

/* A round of the cipher waits for the one before it, but numbers do not for each other: so they go through it
 * together. */
static void encrypt_positions(const dt_permutation *p, uint64_t x[BATCH])
{
    const uint32_t mask = (uint32_t)(((uint64_t)1 << p->half) - 1);
    uint32_t left[BATCH], right[BATCH];
    for (int k = 0; k < BATCH; k++) {
        left[k] = (uint32_t)(x[k] >> p->half) & mask;
        right[k] = (uint32_t)x[k] & mask;
    }
    for (int round = 0; round < DT_PERMUTATION_ROUNDS; round++) {
        const uint32_t key = p->keys[round];
        for (int k = 0; k < BATCH; k++) {
            const uint32_t next = left[k] ^ (dt_permutation_mix(right[k], key) & mask);
            left[k] = right[k];
            right[k] = next;
        }
    }
    for (int k = 0; k < BATCH; k++) {
        x[k] = ((uint64_t)left[k] << p->half) | right[k];
    }
}

/* At most AT_ONCE positions: each until it falls below n. */
static void permute_chunk(const dt_permutation *p, uint64_t first, uint32_t n, uint64_t *index)
{
    uint64_t x[CHUNK + BATCH] = {0};
    uint32_t of[CHUNK], left = n; /* numbers under way, and their positions */
    for (uint32_t i = 0; i < n; i++) {
        x[i] = first + i;
        of[i] = i;
    }
    while (left > 0) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < left; i += BATCH) {
            encrypt_positions(p, x + i);
        }
        for (uint32_t i = 0; i < left; i++) {
            index[of[i]] = x[i];
            x[kept] = x[i];
            of[kept] = of[i];
            kept += x[i] >= p->n;
        }
        left = kept;
    }
}

static void permute_range(const dt_permutation *p, uint64_t first, uint64_t n, uint64_t *index)
{
    if (p->n <= 1) {
        for (uint64_t i = 0; i < n; i++) {
            index[i] = 0;
        }
        return;
    }
    for (uint64_t i = 0; i < n; i += CHUNK) {
        permute_chunk(p, first + i, (uint32_t)(n - i < CHUNK ? n - i : CHUNK), index + i);
    }
}

dt_order_run *const RUN_OF(DT_ISA) = permute_range;

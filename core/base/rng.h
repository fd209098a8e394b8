/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3").
 * A number depends on its key and counter alone: (seed, phase, step, sample or environment, op), never on a rank,
 * a worker or how many were drawn before. CUDA kernels give the same bits. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_BASE_RNG_H
#define DTRAIN_CORE_BASE_RNG_H

#include <stdint.h>

typedef struct dt_rng_key {
    uint64_t seed;  /* the run's seed */
    uint32_t phase; /* index of the phase in the run */
    uint32_t op;    /* stream: op id in a graph, or a stream number of the caller */
    uint64_t step;
    uint64_t sample; /* global sample or environment number */
} dt_rng_key;

/* 128 random bits: block i of the stream named by key.
 *   k = philox(key = seed, counter = (phase, op, step low, step high))
 *   block i = philox(key = (k0, k1), counter = (i low, i high, k2 ^ sample low, k3 ^ sample high)) */
void dt_philox(const dt_rng_key *key, uint64_t i, uint32_t out[4]);

/* The same in two parts, for kernels: the first line above once per step, the second once per block. */
typedef struct dt_rng_stream {
    uint32_t k[4];
} dt_rng_stream;
void dt_rng_stream_init(dt_rng_stream *s, const dt_rng_key *key); /* key->sample is not used */
void dt_rng_stream_block(const dt_rng_stream *s, uint64_t sample, uint64_t i, uint32_t out[4]);

double dt_rng_uniform(const dt_rng_key *key, uint64_t i); /* [0,1), 53 bits */
double dt_rng_normal(const dt_rng_key *key, uint64_t i);  /* mean 0, deviation 1: Box-Muller on block i */
double dt_rng_stream_normal(const dt_rng_stream *s, uint64_t sample, uint64_t i); /* the same in two parts */

/* Keyed permutation of 0..n-1 (Feistel with cycle walking) without a table: its keys once, then position -> index
 * (train/order.h: many at once); position < n <= 2^62. */
enum { DT_PERMUTATION_ROUNDS = 8 };
typedef struct dt_permutation {
    uint64_t n;
    uint32_t keys[DT_PERMUTATION_ROUNDS];
    int half; /* bits */
} dt_permutation;
void dt_permutation_init(dt_permutation *p, uint64_t n, const dt_rng_key *key);
uint64_t dt_permutation_at(const dt_permutation *p, uint64_t position);
/* What its rounds mix with: the finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output
 * bit. */
static inline uint32_t dt_permutation_mix(uint32_t x, uint32_t key)
{
    x ^= key;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

#endif

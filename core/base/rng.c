/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of streams and blocks over Philox4x32-10. See rng.h; the rounds are in dtrain/random.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "base/rng.h"
#include "dtrain/random.h"

#include <math.h>

static uint32_t low(uint64_t v)
{
    return (uint32_t)v;
}

static uint32_t high(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

void dt_rng_stream_init(dt_rng_stream *s, const dt_rng_key *key)
{
    const uint32_t seed[2] = {low(key->seed), high(key->seed)};
    const uint32_t name[4] = {key->phase, key->op, low(key->step), high(key->step)};
    dt_random_philox(seed, name, s->k);
}

void dt_rng_stream_block(const dt_rng_stream *s, uint64_t sample, uint64_t i, uint32_t out[4])
{
    const uint32_t counter[4] = {low(i), high(i), s->k[2] ^ low(sample), s->k[3] ^ high(sample)};
    dt_random_philox(s->k, counter, out);
}

void dt_philox(const dt_rng_key *key, uint64_t i, uint32_t out[4])
{
    dt_rng_stream s;
    dt_rng_stream_init(&s, key);
    dt_rng_stream_block(&s, key->sample, i, out);
}

double dt_rng_uniform(const dt_rng_key *key, uint64_t i)
{
    uint32_t r[4];
    dt_philox(key, i, r);
    return dt_random_unit(r[0], r[1]);
}

double dt_rng_stream_normal(const dt_rng_stream *s, uint64_t sample, uint64_t i)
{
    /* sqrt(-2 ln u) cos(2 pi v), u in (0,1] */
    static const double two_pi = 6.283185307179586;
    uint32_t r[4];
    dt_rng_stream_block(s, sample, i, r);
    double u = 1.0 - dt_random_unit(r[0], r[1]), v = dt_random_unit(r[2], r[3]);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

double dt_rng_normal(const dt_rng_key *key, uint64_t i)
{
    dt_rng_stream s;
    dt_rng_stream_init(&s, key);
    return dt_rng_stream_normal(&s, key->sample, i);
}

enum { FEISTEL_ROUNDS = 8, TOGETHER = 8, AT_ONCE = 64 };

/* Finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit. */
static uint32_t mix(uint32_t x, uint32_t key)
{
    x ^= key;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

void dt_permutation_init(dt_permutation *p, uint64_t n, const dt_rng_key *key)
{
    p->n = n;
    dt_philox(key, 0, p->keys);
    dt_philox(key, 1, p->keys + 4);
    p->half = 1; /* bits of each half: the smallest even width that holds n - 1 */
    while (n > 1 && ((n - 1) >> (2 * p->half)) != 0) {
        p->half++;
    }
}

/* The cipher permutes 0..4^half-1; walking its cycle until it falls below n permutes 0..n-1. A round waits for the one
 * before it, but the numbers do not for each other: so they go through it together. */
static void encrypt(const dt_permutation *p, uint64_t x[TOGETHER])
{
    const uint32_t mask = (uint32_t)(((uint64_t)1 << p->half) - 1);
    uint32_t left[TOGETHER], right[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) {
        left[k] = (uint32_t)(x[k] >> p->half) & mask;
        right[k] = (uint32_t)x[k] & mask;
    }
    for (int round = 0; round < FEISTEL_ROUNDS; round++) {
        for (int k = 0; k < TOGETHER; k++) {
            const uint32_t next = left[k] ^ (mix(right[k], p->keys[round]) & mask);
            left[k] = right[k];
            right[k] = next;
        }
    }
    for (int k = 0; k < TOGETHER; k++) {
        x[k] = ((uint64_t)left[k] << p->half) | right[k];
    }
}

/* At most AT_ONCE positions: each until it falls below n. */
static void walk(const dt_permutation *p, uint64_t first, uint32_t n, uint64_t *index)
{
    uint64_t x[AT_ONCE + TOGETHER] = {0};
    uint32_t of[AT_ONCE], left = n; /* numbers under way, and their positions */
    for (uint32_t i = 0; i < n; i++) {
        x[i] = first + i;
        of[i] = i;
    }
    while (left > 0) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < left; i += TOGETHER) {
            encrypt(p, x + i);
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

void dt_permutation_run(const dt_permutation *p, uint64_t first, uint64_t n, uint64_t *index)
{
    if (p->n <= 1) {
        for (uint64_t i = 0; i < n; i++) {
            index[i] = 0;
        }
        return;
    }
    for (uint64_t i = 0; i < n; i += AT_ONCE) {
        walk(p, first + i, (uint32_t)(n - i < AT_ONCE ? n - i : AT_ONCE), index + i);
    }
}

uint64_t dt_permutation_at(const dt_permutation *p, uint64_t position)
{
    if (p->n <= 1) {
        return 0;
    }
    const uint32_t mask = (uint32_t)(((uint64_t)1 << p->half) - 1);
    uint64_t x = position;
    do {
        uint32_t left = (uint32_t)(x >> p->half) & mask, right = (uint32_t)x & mask;
        for (int round = 0; round < FEISTEL_ROUNDS; round++) {
            uint32_t next = left ^ (mix(right, p->keys[round]) & mask);
            left = right;
            right = next;
        }
        x = ((uint64_t)left << p->half) | right;
    } while (x >= p->n);
    return x;
}

uint64_t dt_permute(uint64_t position, uint64_t n, const dt_rng_key *key)
{
    dt_permutation p;
    dt_permutation_init(&p, n, key);
    return dt_permutation_at(&p, position);
}

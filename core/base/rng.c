/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of streams and blocks over Philox4x32-10. See rng.h; the rounds are in dtrain/random.h.
 */
#include <config.h>

#include "base/rng.h"
#include "dtrain/random.h"

#include <math.h>

static uint32_t low_word(uint64_t v)
{
    return (uint32_t)v;
}

static uint32_t high_word(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

void dt_rng_stream_init(dt_rng_stream *s, const dt_rng_key *key)
{
    const uint32_t seed[2] = {low_word(key->seed), high_word(key->seed)};
    const uint32_t name[4] = {key->phase, key->op, low_word(key->step), high_word(key->step)};
    dt_random_philox(seed, name, s->k);
}

void dt_rng_stream_block(const dt_rng_stream *s, uint64_t sample, uint64_t i, uint32_t out[4])
{
    const uint32_t counter[4] = {low_word(i), high_word(i), s->k[2] ^ low_word(sample), s->k[3] ^ high_word(sample)};
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

/* The cipher permutes 0..4^half-1; walking its cycle until it falls below n permutes 0..n-1. */
uint64_t dt_permutation_at(const dt_permutation *p, uint64_t position)
{
    if (p->n <= 1) {
        return 0;
    }
    const uint32_t mask = (uint32_t)(((uint64_t)1 << p->half) - 1);
    uint64_t x = position;
    do {
        uint32_t left = (uint32_t)(x >> p->half) & mask, right = (uint32_t)x & mask;
        for (int round = 0; round < DT_PERMUTATION_ROUNDS; round++) {
            uint32_t next = left ^ (dt_permutation_mix(right, p->keys[round]) & mask);
            left = right;
            right = next;
        }
        x = ((uint64_t)left << p->half) | right;
    } while (x >= p->n);
    return x;
}

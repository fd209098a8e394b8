/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers for environments and other plugins: a stream of Philox4x32-10 (Salmon et al., SC'11, "Parallel random
 * numbers: as easy as 1, 2, 3"), all of it in this header. Word w of a stream is word w mod 4 of block w / 4, and
 *
 *   block i = philox(key = seed, counter = (i low, i high, stream low, stream high))
 *
 * so that what is drawn depends on the seed, the stream and how many words were taken from it, on nothing else. An
 * environment starts one in reset with the episode's seed, and gives every kind of chance its own stream number:
 *
 *   dt_random_init(&s->arrivals, seed, 0);
 *   dt_random_init(&s->drivers, seed, 1);
 *
 * Words and uniforms are the same bits on every machine; normals go through the C library's log and cos. Not for
 * secrets. Threads: [any]; one stream never in two threads at once.
 */
#ifndef DTRAIN_RANDOM_H
#define DTRAIN_RANDOM_H

#include <math.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ten rounds: 128 bits from a key and a counter. Constants: Salmon et al. 2011, table 2 and section 4.3. */
static inline void dt_random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * c0, p1 = (uint64_t)UINT32_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9); /* golden ratio */
        k1 += UINT32_C(0xBB67AE85); /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* [0,1) from the upper 53 of 64 bits */
static inline double dt_random_unit(uint32_t high, uint32_t low)
{
    return (double)((((uint64_t)high << 32) | low) >> 11) / 9007199254740992.0;
}

typedef struct dt_random {
    uint64_t seed, stream;
    uint64_t next;    /* block to come */
    uint32_t word[4]; /* of the block before it */
    uint32_t n_left;  /* of them not given out */
    uint32_t reserved;
} dt_random;

static inline void dt_random_init(dt_random *r, uint64_t seed, uint64_t stream)
{
    r->seed = seed;
    r->stream = stream;
    r->next = 0;
    r->word[0] = r->word[1] = r->word[2] = r->word[3] = 0;
    r->n_left = r->reserved = 0;
}

/* 32 random bits: one word */
static inline uint32_t dt_random_word(dt_random *r)
{
    if (r->n_left == 0) {
        const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
        const uint32_t counter[4] = {(uint32_t)r->next, (uint32_t)(r->next >> 32), (uint32_t)r->stream,
                                     (uint32_t)(r->stream >> 32)};
        dt_random_philox(key, counter, r->word);
        r->next++;
        r->n_left = 4;
    }
    return r->word[4 - r->n_left--];
}

/* Uniform in [0,1), 53 bits: two words */
static inline double dt_random_uniform(dt_random *r)
{
    const uint32_t high = dt_random_word(r);
    return dt_random_unit(high, dt_random_word(r));
}

/* Uniform in [low, high); low <= high, both finite */
static inline double dt_random_between(dt_random *r, double low, double high)
{
    return low + (high - low) * dt_random_uniform(r);
}

/* Mean 0, deviation 1 (Box & Muller 1958): sqrt(-2 ln u) cos(2 pi v), u in (0,1]. Four words. */
static inline double dt_random_normal(dt_random *r)
{
    const double u = 1.0 - dt_random_uniform(r), v = dt_random_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Integer in 0..n-1, every one equally likely (Lemire 2019); n >= 1. One word, seldom more. */
static inline uint32_t dt_random_below(dt_random *r, uint32_t n)
{
    uint64_t product = (uint64_t)dt_random_word(r) * n;
    if ((uint32_t)product < n) {
        const uint32_t biased = (0u - n) % n; /* 2^32 mod n words would favour some numbers */
        while ((uint32_t)product < biased) {
            product = (uint64_t)dt_random_word(r) * n;
        }
    }
    return (uint32_t)(product >> 32);
}

#ifdef __cplusplus
}
#endif
#endif

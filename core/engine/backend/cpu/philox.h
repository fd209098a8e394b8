/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of random bits side by side, one in each lane: the rounds of dtrain/random.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_PHILOX_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_PHILOX_H

#include "engine/backend/cpu/simd.h"
#include "base/rng.h"

/* c: counters, then the four words of each block (dt_rng_stream_block); s->k[2] and [3] are in the counters */
static ALWAYS_INLINE void draw_blocks(const dt_rng_stream *s, vu c[4])
{
    uint32_t k0 = s->k[0], k1 = s->k[1];
    for (int round = 0; round < 10; round++) {
        vu low0, low1;
        const vu high0 = vu_product(c[0], 0xD2511F53u, &low0), high1 = vu_product(c[2], 0xCD9E8D57u, &low1);
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

#endif

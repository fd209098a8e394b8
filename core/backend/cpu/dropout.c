/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted dropout; 16 blocks of random bits are drawn side by side. Reference: backend/ref/dropout.c, base/rng.h.
 */
#include "backend/cpu/cpu.h"
#include "base/rng.h"

enum { BLOCKS = 16, COLUMNS = 4 * BLOCKS };

/* blocks first .. first + BLOCKS - 1 of the stream for one row: dt_rng_stream_block, vectorised by the compiler */
static void draw(const dt_rng_stream *s, uint64_t sample, uint64_t first, uint32_t bits[COLUMNS])
{
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS], k0 = s->k[0], k1 = s->k[1];
    for (uint32_t i = 0; i < BLOCKS; i++) {
        c0[i] = (uint32_t)(first + i);
        c1[i] = (uint32_t)((first + i) >> 32);
        c2[i] = s->k[2] ^ (uint32_t)sample;
        c3[i] = s->k[3] ^ (uint32_t)(sample >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < BLOCKS; i++) {
        bits[4 * i] = c0[i];
        bits[4 * i + 1] = c1[i];
        bits[4 * i + 2] = c2[i];
        bits[4 * i + 3] = c3[i];
    }
}

void CPU(dropout)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    const int64_t *key = (const int64_t *)a->in[1].data;
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    if (!a->run->training || a->attr->f[0] <= 0) {
        memmove(y, x, (size_t)(R * D) * sizeof(*x));
        return;
    }
    const double threshold = a->attr->f[0] * 0x1p32;
    const uint32_t whole = (uint32_t)threshold, least = (double)whole < threshold ? whole + 1 : whole;
    const float scale = (float)(1.0 / (1.0 - a->attr->f[0]));
    const dt_rng_key name = {a->run->seed, a->run->phase, (uint32_t)a->attr->i[0], a->run->step, 0};
    dt_rng_stream stream;
    dt_rng_stream_init(&stream, &name);
    for (int64_t r = 0; r < R; r++) {
        for (int64_t d = 0; d < D; d += COLUMNS) {
            const int64_t n = D - d < COLUMNS ? D - d : COLUMNS;
            uint32_t bits[COLUMNS];
            draw(&stream, (uint64_t)key[r], (uint64_t)d / 4, bits);
            for (int64_t i = 0; i < n; i++) {
                const float kept = x[r * D + d + i] * scale;
                y[r * D + d + i] = bits[i] >= least ? kept : 0;
            }
        }
    }
}

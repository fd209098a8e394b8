/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted dropout; a vector of blocks of random bits is drawn side by side. Reference: engine/backend/ref/dropout.c,
 * base/rng.h.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/philox.h"

enum { COLUMNS = 4 * VL };

/* blocks first .. first + VL - 1 of the stream for one row, as dt_rng_stream_block makes them; first + VL < 2^32 */
static void draw_row_bits(const dt_rng_stream *s, uint64_t sample, uint32_t first, uint32_t bits[COLUMNS])
{
    const vu zero = {0};
    vu counter = zero;
    for (uint32_t i = 0; i < VL; i++) {
        counter[i] = first + i;
    }
    vu c[4] = {counter, zero, zero + (s->k[2] ^ (uint32_t)sample), zero + (s->k[3] ^ (uint32_t)(sample >> 32))};
    draw_blocks(s, c);
    uint32_t word[4][VL];
    for (int i = 0; i < 4; i++) {
        memcpy(word[i], &c[i], sizeof(word[i]));
    }
    for (int i = 0; i < COLUMNS; i++) {
        bits[i] = word[i % 4][i / 4];
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
            draw_row_bits(&stream, (uint64_t)key[r], (uint32_t)(d / 4), bits);
            for (int64_t i = 0; i < n; i++) {
                const float kept = x[r * D + d + i] * scale;
                y[r * D + d + i] = bits[i] >= least ? kept : 0;
            }
        }
    }
}

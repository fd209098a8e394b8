/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that follow from keys. Standard normal ones, VL of them side by side: Box and Muller 1958 in double
 * precision. Reference: engine/backend/ref/axis.c, by the C library, with which this agrees within 3e-16 of the largest
 * number there is, so that rounding to float gives another bit once in some ten million numbers. Sums and products
 * alone, none fused: every build and every vector length ends in the same bits.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/philox.h"
#include "engine/backend/cpu/turn.h"

#include <math.h>

/* dt_random_unit: the upper 53 of 64 bits, exactly */
static ALWAYS_INLINE double uniform_from_words(uint32_t high, uint32_t low)
{
    return ((double)high * 0x1p21 + (double)(int32_t)(low >> 11)) * 0x1p-53;
}

/* log u, 2^-53 <= u <= 1: u = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = 2 atanh(f / (2 + f)).
 * The polynomial is a Chebyshev fit for this interval, error below 2^-55. */
static ALWAYS_INLINE double log_unit(double u)
{
    const uint64_t root = 0x3FE6A09E667F3BCD, one = 0x3FF0000000000000, mantissa = 0x000FFFFFFFFFFFFF;
    const uint64_t shifted = double_to_bits(u) + (one - root);
    const double n =
        bits_to_double(0x4330000000000000 | shifted >> 52) - (0x1p52 + 1023); /* without an integer's help */
    const double f = bits_to_double((shifted & mantissa) + root) - 1, s = f / (2 + f), z = s * s;
    double q = 0.14616585424934123;
    q = q * z + 0.1533171061820642;
    q = q * z + 0.18182889455675105;
    q = q * z + 0.22222211130259875;
    q = q * z + 0.2857142862600327;
    q = q * z + 0.39999999999899444;
    q = q * z + 0.666666666666667;
    const double square = 0.5 * f * f;
    return n * 0x1.62e42feep-1 - ((square - (s * (square + z * q) + n * 1.9082149292705877e-10)) - f);
}

/* dt_rng_stream_normal of the blocks in c */
static ALWAYS_INLINE vf draw_normals(const vu c[4])
{
    uint32_t word[4][VL];
    double u[VL], v[VL];
    float y[VL];
    for (int i = 0; i < 4; i++) {
        memcpy(word[i], &c[i], sizeof(word[i]));
    }
    for (int i = 0; i < VL; i++) {
        u[i] = 1.0 - uniform_from_words(word[0][i], word[1][i]);
        v[i] = uniform_from_words(word[2][i], word[3][i]) * 6.283185307179586;
    }
    for (int i = 0; i < VL; i++) {
        y[i] = (float)(sqrt(-2.0 * log_unit(u[i])) * sin_or_cos(v[i], 0));
    }
    return vf_load(y);
}

/* Of a row: number d is that of word d % 4 of block d / 4, one of 2^23 between 0 and 1, the middle of its interval. */
static void draw_uniform(const dt_rng_stream *s, uint64_t key, float *y, int64_t n)
{
    uint32_t word[4] = {0};
    for (int64_t d = 0; d < n; d++) {
        if (d % 4 == 0) {
            dt_rng_stream_block(s, key, (uint64_t)d / 4, word);
        }
        y[d] = ((float)(int32_t)(word[d % 4] >> 9) + 0.5f) * 0x1p-23f;
    }
}

void CPU(noise)(const dt_kernel_args *a)
{
    const bool is_uniform = a->attr->i[2] == DT_NOISE_UNIFORM;
    const uint64_t *key = (const uint64_t *)a->in[0].data;
    const int64_t n = a->attr->i[1], count = dt_view_count(&a->in[0]) * n;
    float *y = f32_out(a, 0);
    const dt_rng_key name = {a->run->seed, a->run->phase, (uint32_t)a->attr->i[0], a->run->step, 0};
    dt_rng_stream s;
    if (!a->run->training && a->attr->i[3] == 0) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = is_uniform ? 0.5f : 0;
        }
        return;
    }
    dt_rng_stream_init(&s, &name);
    if (is_uniform) {
        for (int64_t i = 0; i < count; i += n) {
            draw_uniform(&s, key[i / n], y + i, n);
        }
        return;
    }
    int64_t r = 0, d = 0; /* of the number to come */
    VF_FOR (i, k, count) {
        const vu zero = {0};
        vu column = zero, low = zero, high = zero;
        for (int64_t j = 0; j < k; j++) {
            column[j] = (uint32_t)d;
            low[j] = s.k[2] ^ (uint32_t)key[r];
            high[j] = s.k[3] ^ (uint32_t)(key[r] >> 32);
            d = d + 1 < n ? d + 1 : 0;
            r += d == 0;
        }
        vu c[4] = {column, zero, low, high};
        draw_blocks(&s, c);
        vf_put(y + i, draw_normals(c), k);
    }
}

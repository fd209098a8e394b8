/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard normal numbers that follow from keys, VL of them side by side: Box and Muller 1958 in double precision.
 * Reference: engine/backend/ref/axis.c, by the C library, with which this agrees within 3e-16 of the largest number
 * there is, so that rounding to float gives another bit once in some ten million numbers. Sums and products alone, none
 * fused: every build and every vector length ends in the same bits.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/philox.h"

#include <math.h>

static ALWAYS_INLINE double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static ALWAYS_INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* dt_random_unit: the upper 53 of 64 bits, exactly */
static ALWAYS_INLINE double unit(uint32_t high, uint32_t low)
{
    return ((double)high * 0x1p21 + (double)(int32_t)(low >> 11)) * 0x1p-53;
}

/* log u, 2^-53 <= u <= 1: u = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = 2 atanh(f / (2 + f)).
 * Polynomials here and below: Chebyshev fits for these intervals, errors below 2^-55. */
static ALWAYS_INLINE double log_unit(double u)
{
    const uint64_t root = 0x3FE6A09E667F3BCD, one = 0x3FF0000000000000, mantissa = 0x000FFFFFFFFFFFFF;
    const uint64_t shifted = bits_of(u) + (one - root);
    const double n = double_of(0x4330000000000000 | shifted >> 52) - (0x1p52 + 1023); /* without an integer's help */
    const double f = double_of((shifted & mantissa) + root) - 1, s = f / (2 + f), z = s * s;
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

/* cos x, 0 <= x <= 2 pi: x = n pi/2 + r with |r| <= pi/4 */
static ALWAYS_INLINE double cos_turn(double x)
{
    const double magic = 0x1.8p52, shifted = x * 0.6366197723675814 + magic, n = shifted - magic;
    const double r = (x - n * 0x1.921fb544p+0) - n * 6.077100506506192e-11, z = r * r;
    const uint64_t quarter = bits_of(shifted);
    double sine = 1.5918115263265747e-10, cosine = -1.1382623647474462e-11;
    sine = sine * z + -2.5051131650235178e-08;
    sine = sine * z + 2.7557316101617874e-06;
    sine = sine * z + -0.00019841269836756774;
    sine = sine * z + 0.008333333333330948;
    sine = sine * z + -0.16666666666666666;
    sine = r + r * z * sine;
    cosine = cosine * z + 2.087614614655861e-09;
    cosine = cosine * z + -2.7557317271145144e-07;
    cosine = cosine * z + 2.480158729876456e-05;
    cosine = cosine * z + -0.0013888888888887398;
    cosine = cosine * z + 0.041666666666666664;
    const double half = 0.5 * z, rest = 1 - half; /* what is lost in rest is put back */
    cosine = rest + (((1 - rest) - half) + z * z * cosine);
    const double size = (quarter & 1) != 0 ? sine : cosine;
    return double_of(bits_of(size) ^ ((quarter + 1) & 2) << 62);
}

/* dt_rng_stream_normal of the blocks in c */
static ALWAYS_INLINE vf normals(const vu c[4])
{
    uint32_t word[4][VL];
    double u[VL], v[VL];
    float y[VL];
    for (int i = 0; i < 4; i++) {
        memcpy(word[i], &c[i], sizeof(word[i]));
    }
    for (int i = 0; i < VL; i++) {
        u[i] = 1.0 - unit(word[0][i], word[1][i]);
        v[i] = unit(word[2][i], word[3][i]) * 6.283185307179586;
    }
    for (int i = 0; i < VL; i++) {
        y[i] = (float)(sqrt(-2.0 * log_unit(u[i])) * cos_turn(v[i]));
    }
    return vf_load(y);
}

void CPU(noise)(const dt_kernel_args *a)
{
    const uint64_t *key = (const uint64_t *)a->in[0].data;
    const int64_t n = a->attr->i[1], count = dt_view_count(&a->in[0]) * n;
    float *y = f32_out(a, 0);
    const dt_rng_key name = {a->run->seed, a->run->phase, (uint32_t)a->attr->i[0], a->run->step, 0};
    dt_rng_stream s;
    if (!a->run->training) {
        memset(y, 0, (size_t)count * sizeof(*y));
        return;
    }
    dt_rng_stream_init(&s, &name);
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
        vf_put(y + i, normals(c), k);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sine and cosine in double precision by sums and products alone, so that a loop over lanes is vectorised and every
 * vector length ends in the same bits.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_TURN_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_TURN_H

#include "engine/backend/cpu/simd.h"

static ALWAYS_INLINE double bits_to_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static ALWAYS_INLINE uint64_t double_to_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

#define TURN_MOST 0x1p20 /* the largest |x| for which n times the first part of pi/2 is exact */

/* cos x, ahead 0, or sin x, ahead 3: x = n pi/2 + r with |r| <= pi/4. Polynomials: Chebyshev fits for this interval,
 * errors below 2^-55. */
static ALWAYS_INLINE double sin_or_cos(double x, const uint64_t ahead)
{
    const double magic = 0x1.8p52, shifted = x * 0.6366197723675814 + magic, n = shifted - magic;
    const double r = (x - n * 0x1.921fb544p+0) - n * 6.077100506506192e-11, z = r * r;
    const uint64_t quarter = double_to_bits(shifted) + ahead;
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
    return bits_to_double(double_to_bits(size) ^ ((quarter + 1) & 2) << 62);
}

#endif

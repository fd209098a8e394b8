/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16 and fp16 on the host, one element at a time.
 */
#ifndef DTRAIN_TESTS_CUDA_HALF_H
#define DTRAIN_TESTS_CUDA_HALF_H

#include "dtrain/plugin.h"

#include <math.h>
#include <string.h>

/* Every value of fp16, worked out once. */
static inline const double *half_values(void)
{
    static double value[1 << 16];
    for (uint32_t bits = 1; value[1] == 0 && bits < 1 << 16; bits++) {
        const uint32_t at = (1 << 16) - bits; /* the second comes last */
        const int exponent = (int)(at >> 10 & 31), fraction = (int)(at & 1023);
        const double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                            : exponent == 0 ? ldexp(fraction, -24)
                                            : ldexp(fraction + 1024, exponent - 25);
        value[at] = (at & 0x8000) != 0 ? -size : size;
    }
    return value;
}

static inline double half_value(int32_t dtype, uint16_t bits)
{
    if (dtype != DT_BF16) {
        return half_values()[bits];
    }
    const uint32_t u = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* The nearest of all finite ones: by halves of the range of bits, which are in the order of their values, and of which
 * the exponent already determines all but the fraction. */
static inline uint16_t half_bits(int32_t dtype, double x)
{
    const int fraction = dtype == DT_BF16 ? 7 : 10, bias = dtype == DT_BF16 ? 127 : 15;
    const int largest = dtype == DT_BF16 ? 0x7f7f : 0x7bff;
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) {
        return 0x7fff;
    }
    x = fabs(x);
    if (x == 0) {
        return sign;
    }
    int exponent = 0; /* x is below 2^exponent */
    (void)frexp(x, &exponent);
    const int above_all = isinf(x) || exponent + bias > 2 * bias ? largest : (exponent + bias) << fraction;
    int high = above_all < 1 << fraction ? 1 << fraction : above_all > largest ? largest : above_all;
    int low = isinf(x) ? largest - 1 : high - (2 << fraction) < 0 ? 0 : high - (2 << fraction);
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (half_value(dtype, (uint16_t)middle) <= x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const double below = x - half_value(dtype, (uint16_t)low), above = half_value(dtype, (uint16_t)high) - x;
    const int nearest = below < above || (below == above && low % 2 == 0) ? low : high;
    return (uint16_t)(sign | nearest);
}

#endif

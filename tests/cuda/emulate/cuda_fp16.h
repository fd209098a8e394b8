/* SPDX-License-Identifier: Apache-2.0
 *
 * fp16 on a CPU. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_CUDA_FP16_H
#define DTRAIN_TESTS_CUDA_EMULATE_CUDA_FP16_H

#include <cmath>
#include <cstdint>

struct __half {
    uint16_t bits;
};

static inline float __half2float(__half h)
{
    const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    const float size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                       : exponent == 0 ? ldexpf((float)fraction, -24)
                                       : ldexpf((float)(fraction + 1024), exponent - 25);
    return (h.bits & 0x8000) != 0 ? -size : size;
}

/* to the nearest, ties to even */
static inline __half __float2half(float x)
{
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    if (x != x) {
        return {(uint16_t)(sign | 0x7e00)};
    }
    if (size >= 65520.0f) {
        return {(uint16_t)(sign | 0x7c00)};
    }
    if (size == 0) {
        return {sign};
    }
    int exponent = 0;
    (void)frexpf(size, &exponent);
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11; /* weight of the last bit */
    const int n = (int)nearbyintf(ldexpf(size, -unit));
    return {(uint16_t)(sign | (unit == -24 ? n : ((unit + 24) << 10) + n))};
}

#endif

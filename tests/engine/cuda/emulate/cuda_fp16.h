/* SPDX-License-Identifier: Apache-2.0
 *
 * fp16 on a CPU. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_CUDA_FP16_H
#define DTRAIN_TESTS_CUDA_EMULATE_CUDA_FP16_H

#include <cmath>
#include <cstdint>
#include <cstring>

struct __half {
    uint16_t bits;
};

/* Its exponent is 112 less than a float's of the same bits. */
static inline float __half2float(__half h)
{
    const uint32_t bits = (uint32_t)(h.bits & 0x7fff) << 13;
    float size;
    memcpy(&size, &bits, sizeof(size));
    size *= 0x1p112f;
    if ((h.bits & 0x7c00) == 0x7c00) {
        size = (h.bits & 1023) != 0 ? NAN : INFINITY;
    }
    return (h.bits & 0x8000) != 0 ? -size : size;
}

/* to the nearest, ties to even */
static inline __half __float2half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) {
        return {(uint16_t)(sign | 0x7e00)};
    }
    if (bits >= 0x477ff000) { /* 65520: halfway from the largest to the next */
        return {(uint16_t)(sign | 0x7c00)};
    }
    if (bits < 0x38800000) { /* 2^-14: below it fp16 counts in units of 2^-24, as floats from 0.5 to 1 do */
        const float size = fabsf(x) + 0.5f;
        memcpy(&bits, &size, sizeof(bits));
        return {(uint16_t)(sign | (bits - 0x3f000000))};
    }
    bits += 0xfff + (bits >> 13 & 1);
    return {(uint16_t)(sign | (bits - 0x38000000) >> 13)};
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16 on a CPU. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_CUDA_BF16_H
#define DTRAIN_TESTS_CUDA_EMULATE_CUDA_BF16_H

#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
    uint16_t bits;
};

/* to the nearest, ties to even */
static inline __nv_bfloat16 __float2bfloat16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    if (x != x) {
        return {(uint16_t)(u >> 16 | 0x40)};
    }
    return {(uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    const uint32_t u = (uint32_t)x.bits << 16;
    float y;
    memcpy(&y, &u, 4);
    return y;
}

#endif

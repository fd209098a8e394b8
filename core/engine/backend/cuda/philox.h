/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of base/rng.h on the device, bit for bit: Philox4x32-10 (Salmon et al. 2011). See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_PHILOX_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_PHILOX_H

#include "engine/backend/cuda/cuda.h"

struct dt_cuda_philox {
    uint32_t x[4];
};

__device__ static inline dt_cuda_philox dt_cuda_philox_round10(uint32_t k0, uint32_t k1, dt_cuda_philox c)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint32_t high0 = __umulhi(0xD2511F53u, c.x[0]), low0 = 0xD2511F53u * c.x[0];
        const uint32_t high1 = __umulhi(0xCD9E8D57u, c.x[2]), low1 = 0xCD9E8D57u * c.x[2];
        c = {{high1 ^ c.x[1] ^ k0, low1, high0 ^ c.x[3] ^ k1, low0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* dt_rng_stream_init */
__device__ static inline dt_cuda_philox dt_cuda_stream_of(const dt_device_run *run, uint32_t op)
{
    return dt_cuda_philox_round10((uint32_t)run->seed, (uint32_t)(run->seed >> 32),
                                  {{run->phase, op, (uint32_t)run->step, (uint32_t)(run->step >> 32)}});
}

/* dt_rng_stream_block; i < 2^32 */
__device__ static inline dt_cuda_philox dt_cuda_stream_block(const dt_cuda_philox &stream, uint64_t sample, uint32_t i)
{
    return dt_cuda_philox_round10(stream.x[0], stream.x[1],
                                  {{i, 0, stream.x[2] ^ (uint32_t)sample, stream.x[3] ^ (uint32_t)(sample >> 32)}});
}

#endif

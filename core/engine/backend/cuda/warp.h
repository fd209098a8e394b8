/* SPDX-License-Identifier: Apache-2.0
 *
 * A row for each warp: blocks of DT_CUDA_ROW_WARPS warps, grid (dt_cuda_row_blocks, leaves). Lane l takes columns
 * V l .. V l + V - 1, then those 32 V further on, so that a warp reads whole cache lines. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_WARP_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_WARP_H

#include "engine/backend/cuda/stored.h"

enum { DT_CUDA_ROW_WARPS = 8, DT_CUDA_ROW_THREADS = 32 * DT_CUDA_ROW_WARPS };

static inline unsigned dt_cuda_row_blocks(const dt_cuda_span *rows)
{
    return dt_cuda_blocks(rows->R, DT_CUDA_ROW_WARPS);
}

/* Row of this thread when block `block` of them takes DT_CUDA_ROW_WARPS; the same for all lanes of its warp. */
__device__ static inline int dt_cuda_row(int block)
{
    return block * DT_CUDA_ROW_WARPS + (int)threadIdx.x / 32;
}

/* f(d) for the columns of this lane that begin a piece of V; V divides D */
template <int V, typename F> __device__ static inline void dt_cuda_each_piece(int D, F f)
{
    for (int d = V * (int)(threadIdx.x % 32); d < D; d += 32 * V) {
        f(d);
    }
}

template <int V, typename T> __device__ static inline void dt_cuda_zero_row(T *y, int D)
{
    dt_cuda_each_piece<V>(D, [&](int d) { dt_cuda_store<V>(y + d, dt_cuda_pack<V>{}); });
}

__device__ static inline float dt_cuda_warp_max(float x)
{
    for (int half = 16; half > 0; half /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, half));
    }
    return x;
}

#endif

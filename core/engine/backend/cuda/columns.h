/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the rows of a leaf, 32 columns to a block of (32, DT_CUDA_COLUMN_LANES) threads: thread (x, y) adds rows y,
 * y + 32, ... of its column, then the 32 partial sums are added in a fixed tree, all in f64. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_COLUMNS_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_COLUMNS_H

#include "engine/backend/cuda/cuda.h"

/* Kernels with such blocks need __launch_bounds__(DT_CUDA_COLUMN_THREADS): without, nvcc may give a thread more
 * registers than 1024 threads can have, and their launch is refused. */
enum { DT_CUDA_COLUMN_LANES = 32, DT_CUDA_COLUMN_THREADS = 32 * DT_CUDA_COLUMN_LANES };

/* Sum of term(r) over rows y, y + 32, ... below R, added up over y: thread (x, 0) gets that of column x. All threads
 * of the block must call; term must be 0 for columns that are not there. */
template <typename F> __device__ static inline double dt_cuda_column_sum(int R, F term)
{
    __shared__ double part[DT_CUDA_COLUMN_LANES][33];
    enum { AHEAD = 8 };
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    double sum = 0;
    int r = y;
    for (; r < R - (AHEAD - 1) * DT_CUDA_COLUMN_LANES; r += AHEAD * DT_CUDA_COLUMN_LANES) {
        float t[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) { /* loads that do not wait for each other */
            t[i] = term(r + i * DT_CUDA_COLUMN_LANES);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            sum += t[i];
        }
    }
    for (; r < R; r += DT_CUDA_COLUMN_LANES) {
        sum += term(r);
    }
    part[y][x] = sum;
    __syncthreads();
    for (int half = DT_CUDA_COLUMN_LANES / 2; half > 0; half /= 2) {
        if (y < half) {
            part[y][x] += part[y + half][x];
        }
        __syncthreads();
    }
    sum = part[0][x];
    __syncthreads();
    return sum;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which elements refer to a row: what the derivative of picking rows by index needs, answered without sorting and
 * without atomics on floats. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_REFERRER_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_REFERRER_H

#include "engine/backend/cuda/cuda.h"

/* Positions of idx that hold a row lie in [n - before, last). Both are found with maxima of integers, whose order does
 * not matter; zeroed memory means nowhere. Rows refer to what is near, so the range is short; it is walked in order. */
struct dt_cuda_range {
    int32_t before, last;
};

__device__ static inline void dt_cuda_range_add(dt_cuda_range *range, int at, int n)
{
    atomicMax(&range->before, n - at);
    atomicMax(&range->last, at + 1);
}

/* f(at) for the positions that refer to `row`, in order and U at a time, so that their loads overlap; at[k] is -1 where
 * there are no more. The whole warp calls, each lane gets every position. */
template <int U, typename F>
__device__ static inline void dt_cuda_each_referrer(const int32_t *idx, dt_cuda_range range, int n, int row, F f)
{
    const int lane = (int)(threadIdx.x % 32);
    for (int from = n - range.before; from < range.last; from += 32) {
        const int i = from + lane;
        unsigned hits = __ballot_sync(0xffffffffu, i < range.last && idx[i] == row);
        while (hits != 0) {
            int at[U];
#pragma unroll
            for (int k = 0; k < U; k++) {
                at[k] = hits != 0 ? from + __ffs((int)hits) - 1 : -1;
                hits &= hits - 1;
            }
            f(at);
        }
    }
}

#endif

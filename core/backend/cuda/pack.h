/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbouring elements read and written in one piece. See cuda.h.
 */
#ifndef DTRAIN_CORE_BACKEND_CUDA_PACK_H
#define DTRAIN_CORE_BACKEND_CUDA_PACK_H

#include "backend/cuda/cuda.h"

#include <stdint.h>

template <int V> struct alignas(V * sizeof(float)) dt_cuda_pack {
    float x[V];
};

template <int V> __device__ static inline dt_cuda_pack<V> dt_cuda_load(const float *p)
{
    return *reinterpret_cast<const dt_cuda_pack<V> *>(p);
}

template <int V> __device__ static inline void dt_cuda_store(float *p, dt_cuda_pack<V> x)
{
    *reinterpret_cast<dt_cuda_pack<V> *>(p) = x;
}

/* May v be read in pieces of four, given that its rows are? True for what lies in an arena. */
static inline bool dt_cuda_is_wide(const dt_device_view *v)
{
    return (uintptr_t)v->data % (4 * sizeof(float)) == 0 && v->leaf_stride % 4 == 0;
}

#endif

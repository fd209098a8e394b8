/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats as they are stored: f32, bf16 or fp16 (engine/graph/storage.h decides the type of each tensor). Kernels
 * compute with all of them in f32 and round once, to the nearest, when they write. Two ways to take a tensor:
 *   dt_cuda_ptr<T>   the type is known to the compiler (dt_cuda_by_type): where many loads are to be under way at once
 *   dt_cuda_floats   each tensor has its own type, a branch that all threads take alike: where a thread reads little
 * Neighbouring elements are read and written in one piece of V. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_STORED_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_STORED_H

#include "engine/backend/cuda/cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* ---- one element ------------------------------------------------------------------------------------------------- */

__device__ static inline float dt_cuda_get(const float *p)
{
    return *p;
}

__device__ static inline float dt_cuda_get(const __nv_bfloat16 *p)
{
    return __bfloat162float(*p);
}

__device__ static inline float dt_cuda_get(const __half *p)
{
    return __half2float(*p);
}

__device__ static inline void dt_cuda_put(float *p, float x)
{
    *p = x;
}

__device__ static inline void dt_cuda_put(__nv_bfloat16 *p, float x)
{
    *p = __float2bfloat16(x);
}

/* beyond 65504 is infinity: the loss scale's affair */
__device__ static inline void dt_cuda_put(__half *p, float x)
{
    *p = __float2half(x);
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

template <int V> struct alignas(V * sizeof(float)) dt_cuda_pack {
    float x[V];
};

/* V elements as they lie in memory */
template <int V, typename T> struct alignas(V * sizeof(T)) dt_cuda_piece {
    T x[V];
};

template <int V, typename T> __device__ static inline dt_cuda_pack<V> dt_cuda_load(const T *p)
{
    const dt_cuda_piece<V, T> from = *reinterpret_cast<const dt_cuda_piece<V, T> *>(p);
    dt_cuda_pack<V> to;
#pragma unroll
    for (int i = 0; i < V; i++) {
        to.x[i] = dt_cuda_get(&from.x[i]);
    }
    return to;
}

template <int V, typename T> __device__ static inline void dt_cuda_store(T *p, dt_cuda_pack<V> x)
{
    dt_cuda_piece<V, T> to;
#pragma unroll
    for (int i = 0; i < V; i++) {
        dt_cuda_put(&to.x[i], x.x[i]);
    }
    *reinterpret_cast<dt_cuda_piece<V, T> *>(p) = to;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static inline size_t dt_cuda_element_bytes(int32_t dtype)
{
    return dtype == DT_BF16 || dtype == DT_F16 ? 2 : dtype == DT_F64 || dtype == DT_I64 ? 8 : dtype == DT_U8 ? 1 : 4;
}

/* May v be read in pieces of four, given that its rows are? True for arrays of an arena. */
static inline bool dt_cuda_is_vectorisable(const dt_device_view *v)
{
    return (uintptr_t)v->data % (4 * dt_cuda_element_bytes(v->dtype)) == 0 && v->leaf_stride % 4 == 0;
}

/* Elements as rows of one (dt_cuda_rows(.., 0)): are four neighbours always of one row, live together or not? */
static inline bool dt_cuda_is_in_fours(const dt_cuda_span &elements)
{
    return elements.R % 4 == 0 && (elements.live == nullptr || elements.inner % 4 == 0);
}

/* Bytes of scratch for n elements, so that what follows is aligned as well. */
static inline size_t dt_cuda_aligned_bytes_of(int64_t n, int32_t dtype)
{
    return ((size_t)n * dt_cuda_element_bytes(dtype) + 255) / 256 * 256;
}

/* A tensor of floats whose type a kernel finds out as it reads. NULL stays NULL. */
struct dt_cuda_floats {
    void *data;
    int64_t stride;
    int32_t dtype;

    template <int V> __device__ dt_cuda_pack<V> load(int leaf, int64_t i) const
    {
        const int64_t at = leaf * stride + i;
        return dtype == DT_F32    ? dt_cuda_load<V>((const float *)data + at)
               : dtype == DT_BF16 ? dt_cuda_load<V>((const __nv_bfloat16 *)data + at)
                                  : dt_cuda_load<V>((const __half *)data + at);
    }
    template <int V> __device__ void store(int leaf, int64_t i, dt_cuda_pack<V> x) const
    {
        const int64_t at = leaf * stride + i;
        if (dtype == DT_F32) {
            dt_cuda_store<V>((float *)data + at, x);
        } else if (dtype == DT_BF16) {
            dt_cuda_store<V>((__nv_bfloat16 *)data + at, x);
        } else {
            dt_cuda_store<V>((__half *)data + at, x);
        }
    }
    __device__ float get(int leaf, int64_t i) const
    {
        return load<1>(leaf, i).x[0];
    }
    __device__ void put(int leaf, int64_t i, float x) const
    {
        store<1>(leaf, i, {{x}});
    }
};

static inline dt_cuda_floats dt_cuda_in_floats(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_in(a, i);
    return {v->data, v->leaf_stride, v->dtype};
}

static inline dt_cuda_floats dt_cuda_out_floats(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_out(a, i);
    return {v->data, v->leaf_stride, v->dtype};
}

template <typename T_> struct dt_cuda_type {
    using T = T_;
};

/* run(type) for the type of elements */
template <typename F> static inline dt_status dt_cuda_by_type(int32_t dtype, F run)
{
    return dtype == DT_BF16  ? run(dt_cuda_type<__nv_bfloat16>{})
           : dtype == DT_F16 ? run(dt_cuda_type<__half>{})
                             : run(dt_cuda_type<float>{});
}

#endif

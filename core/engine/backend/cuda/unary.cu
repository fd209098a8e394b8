/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one element. See cuda.h; engine/backend/ref/unary.c has the plain loops.
 */
#include "engine/backend/cuda/stored.h"

namespace
{

enum { THREADS = 256 };

/* y = f(x, s) for each element, V of them a thread; s is a second input of the same shape or absent */
template <int V, typename F>
__global__ void apply_each(dt_cuda_floats x, dt_cuda_floats s, dt_cuda_floats y, dt_cuda_span rows, int n, F f)
{
    const int i = V * (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= n) {
        return;
    }
    dt_cuda_pack<V> p = {};
    if (rows.has(i, rows.extent(leaf))) {
        const dt_cuda_pack<V> second = s.data != nullptr ? s.load<V>(leaf, i) : dt_cuda_pack<V>{};
        p = x.load<V>(leaf, i);
        for (int v = 0; v < V; v++) {
            p.x[v] = f(p.x[v], second.x[v]);
        }
    }
    y.store<V>(leaf, i, p);
}

struct unary_of {
    int fn;
    float f0;
    __device__ float operator()(float x, float) const
    {
        return dt_cuda_unary(fn, f0, x);
    }
};

struct slope_of {
    int fn;
    float f0;
    __device__ float operator()(float dy, float s) const
    {
        return dy * dt_cuda_derivative(fn, f0, s);
    }
};

struct affine_of {
    float scale, shift;
    __device__ float operator()(float x, float) const
    {
        return scale * x + shift;
    }
};

struct clamp_of {
    float lo, hi;
    __device__ float operator()(float x, float) const
    {
        return dt_cuda_least(dt_cuda_greatest(x, lo), hi);
    }
};

struct clamp_bwd_of {
    float lo, hi;
    __device__ float operator()(float dy, float x) const
    {
        return x < lo || x > hi ? 0.0f : dy;
    }
};

/* Elements are rows of one, so that any ragged dimension is among them. */
template <typename F> dt_status launch(const dt_device_args *a, F f)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 0);
    if (rows.R == 0) {
        return DT_OK;
    }
    const bool is_wide = dt_cuda_is_in_fours(rows) && dt_cuda_is_vectorisable(&a->in[0]) &&
                         dt_cuda_is_vectorisable(dt_cuda_in(a, 1)) && dt_cuda_is_vectorisable(&a->out[0]);
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS * (is_wide ? 4 : 1)), a->leaves);
    const auto kernel = is_wide ? apply_each<4, F> : apply_each<1, F>;
    kernel<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_in_floats(a, 0), dt_cuda_in_floats(a, 1),
                                                    dt_cuda_out_floats(a, 0), rows, rows.R, f);
    return DT_CUDA_LAUNCHED();
}

dt_status unary(const dt_device_args *a)
{
    return launch(a, unary_of{(int)a->attr->i[0], (float)a->attr->f[0]});
}

dt_status unary_bwd(const dt_device_args *a)
{
    return launch(a, slope_of{(int)a->attr->i[0], (float)a->attr->f[0]});
}

dt_status affine(const dt_device_args *a)
{
    return launch(a, affine_of{(float)a->attr->f[0], (float)a->attr->f[1]});
}

dt_status clamp(const dt_device_args *a)
{
    return launch(a, clamp_of{(float)a->attr->f[0], (float)a->attr->f[1]});
}

dt_status clamp_bwd(const dt_device_args *a)
{
    return launch(a, clamp_bwd_of{(float)a->attr->f[0], (float)a->attr->f[1]});
}

} // namespace

DT_CUDA_KERNEL(UNARY, unary, unary);
DT_CUDA_KERNEL(UNARY_BWD, unary_bwd, unary_bwd);
DT_CUDA_KERNEL(AFFINE, affine, affine);
DT_CUDA_KERNEL(CLAMP, clamp, clamp);
DT_CUDA_KERNEL(CLAMP_BWD, clamp_bwd, clamp_bwd);

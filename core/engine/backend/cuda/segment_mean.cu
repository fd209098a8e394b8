/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean over runs of rows. See cuda.h; engine/backend/ref/reduce.c has the plain loops.
 */
#include "engine/backend/cuda/stored.h"

namespace
{

enum { THREADS = 256 };

/* x [R,D], ptr [B+1] -> y [B,D]; runs that are not live are empty */
template <int V, typename T>
__global__ void mean_rows(dt_cuda_ptr<const T> x, dt_cuda_ptr<const int32_t> ptr, dt_cuda_floats y, int B, int D)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    const int b = i / (D / V), d = i % (D / V) * V;
    if (b >= B) {
        return;
    }
    const int first = ptr.at(leaf)[b], last = ptr.at(leaf)[b + 1];
    const T *from = x.at(leaf) + d;
    double sum[V] = {};
#pragma unroll 4
    for (int r = first; r < last; r++) {
        const dt_cuda_pack<V> row = dt_cuda_load<V>(from + (int64_t)r * D);
        for (int k = 0; k < V; k++) {
            sum[k] += row.x[k];
        }
    }
    dt_cuda_pack<V> out = {};
    for (int k = 0; k < V && last > first; k++) {
        out.x[k] = (float)(sum[k] / (last - first));
    }
    y.store<V>(leaf, (int64_t)b * D + d, out);
}

/* dy [B,D], ptr -> dx [R,D]; rows in no run, those that are not live among them, get zeros */
template <int V>
__global__ void spread_gradient(dt_cuda_floats dy, dt_cuda_ptr<const int32_t> ptr, dt_cuda_floats dx, int B, int R,
                                int D)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    const int r = i / (D / V), d = i % (D / V) * V;
    if (r >= R) {
        return;
    }
    const int32_t *start = ptr.at(leaf);
    int below = 0, above = B + 1; /* start[below - 1] <= r < start[above] */
    while (below < above) {
        const int middle = (below + above) / 2;
        if (start[middle] <= r) {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    dt_cuda_pack<V> out = {};
    if (below > 0 && below <= B) {
        const int b = below - 1, n = start[b + 1] - start[b];
        out = dy.load<V>(leaf, (int64_t)b * D + d);
        for (int k = 0; k < V; k++) {
            out.x[k] /= (float)n;
        }
    }
    dx.store<V>(leaf, (int64_t)r * D + d, out);
}

bool is_vectorisable(const dt_device_view *a, const dt_device_view *b)
{
    return dt_cuda_last_dim(a) % 4 == 0 && dt_cuda_is_vectorisable(a) && dt_cuda_is_vectorisable(b);
}

dt_status segment_mean(const dt_device_args *a)
{
    const int B = (int)a->out[0].dim[0], D = (int)dt_cuda_last_dim(&a->out[0]);
    const dt_cuda_ptr<const int32_t> ptr = dt_cuda_src<int32_t>(a, 1);
    const dt_cuda_floats y = dt_cuda_out_floats(a, 0);
    const int64_t n = (int64_t)B * D;
    if (n == 0) {
        return DT_OK;
    }
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const dt_cuda_ptr<const T> x = dt_cuda_src<T>(a, 0);
        if (is_vectorisable(&a->in[0], &a->out[0])) {
            const dim3 grid(dt_cuda_blocks(n / 4, THREADS), a->leaves);
            mean_rows<4, T><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(x, ptr, y, B, D);
        } else {
            const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
            mean_rows<1, T><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(x, ptr, y, B, D);
        }
        return DT_CUDA_LAUNCHED();
    });
}

dt_status segment_mean_bwd(const dt_device_args *a)
{
    const int B = (int)a->in[1].dim[0] - 1, R = (int)a->out[0].dim[0], D = (int)dt_cuda_last_dim(&a->out[0]);
    const dt_cuda_floats dy = dt_cuda_in_floats(a, 0), dx = dt_cuda_out_floats(a, 0);
    const dt_cuda_ptr<const int32_t> ptr = dt_cuda_src<int32_t>(a, 1);
    const int64_t n = (int64_t)R * D;
    if (n == 0) {
        return DT_OK;
    }
    if (is_vectorisable(&a->in[0], &a->out[0])) {
        const dim3 grid(dt_cuda_blocks(n / 4, THREADS), a->leaves);
        spread_gradient<4><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dy, ptr, dx, B, R, D);
    } else {
        const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
        spread_gradient<1><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dy, ptr, dx, B, R, D);
    }
    return DT_CUDA_LAUNCHED();
}

} // namespace

DT_CUDA_KERNEL(SEGMENT_MEAN, segment_mean, segment_mean);
DT_CUDA_KERNEL(SEGMENT_MEAN_BWD, segment_mean_bwd, segment_mean_bwd);

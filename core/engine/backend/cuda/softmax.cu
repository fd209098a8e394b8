/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over the last dim, a warp for each row. See cuda.h; engine/backend/ref/softmax.c has the plain loops.
 */
#include "engine/backend/cuda/warp.h"

namespace
{

/* x [R,D] -> y [R,D]; y may be x: each lane reads what it writes. fmaxf drops NaN, but
 * the sum of exponentials, and with it the row, is then NaN. */
template <int V, typename T> __global__ void softmax_rows(dt_cuda_ptr<const T> x, dt_cuda_ptr<T> y, dt_cuda_span rows)
{
    const int r = dt_cuda_row((int)blockIdx.x), leaf = (int)blockIdx.y, D = rows.D;
    if (r >= rows.R) {
        return;
    }
    const T *from = x.at(leaf) + (int64_t)r * D;
    T *to = y.at(leaf) + (int64_t)r * D;
    if (!rows.has(r, rows.extent(leaf))) {
        dt_cuda_zero_row<V>(to, D);
        return;
    }
    float top = -INFINITY, sum = 0;
    dt_cuda_each_piece<V>(D, [&](int d) {
        const dt_cuda_pack<V> p = dt_cuda_load<V>(from + d);
        for (int i = 0; i < V; i++) {
            top = fmaxf(top, p.x[i]);
        }
    });
    top = dt_cuda_warp_max(top);
    dt_cuda_each_piece<V>(D, [&](int d) {
        const dt_cuda_pack<V> p = dt_cuda_load<V>(from + d);
        for (int i = 0; i < V; i++) {
            sum += expf(p.x[i] - top);
        }
    });
    const float scale = 1.0f / dt_cuda_warp_sum(sum);
    dt_cuda_each_piece<V>(D, [&](int d) {
        dt_cuda_pack<V> p = dt_cuda_load<V>(from + d);
        for (int i = 0; i < V; i++) {
            p.x[i] = expf(p.x[i] - top) * scale;
        }
        dt_cuda_store<V>(to + d, p);
    });
}

/* dx = y (dy - sum_d y dy) */
template <int V, typename T>
__global__ void softmax_bwd_rows(dt_cuda_ptr<const T> dy, dt_cuda_ptr<const T> y, dt_cuda_ptr<T> dx, dt_cuda_span rows)
{
    const int r = dt_cuda_row((int)blockIdx.x), leaf = (int)blockIdx.y, D = rows.D;
    if (r >= rows.R) {
        return;
    }
    const T *grad = dy.at(leaf) + (int64_t)r * D, *value = y.at(leaf) + (int64_t)r * D;
    T *to = dx.at(leaf) + (int64_t)r * D;
    float sum = 0;
    if (!rows.has(r, rows.extent(leaf))) {
        dt_cuda_zero_row<V>(to, D);
        return;
    }
    dt_cuda_each_piece<V>(D, [&](int d) {
        const dt_cuda_pack<V> g = dt_cuda_load<V>(grad + d), p = dt_cuda_load<V>(value + d);
        for (int i = 0; i < V; i++) {
            sum += g.x[i] * p.x[i];
        }
    });
    sum = dt_cuda_warp_sum(sum);
    dt_cuda_each_piece<V>(D, [&](int d) {
        dt_cuda_pack<V> g = dt_cuda_load<V>(grad + d);
        const dt_cuda_pack<V> p = dt_cuda_load<V>(value + d);
        for (int i = 0; i < V; i++) {
            g.x[i] = p.x[i] * (g.x[i] - sum);
        }
        dt_cuda_store<V>(to + d, g);
    });
}

dt_status softmax(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 1);
    if (rows.R == 0 || rows.D == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_row_blocks(&rows), a->leaves);
    const bool is_wide = rows.D % 4 == 0 && dt_cuda_is_vectorisable(&a->in[0]) && dt_cuda_is_vectorisable(&a->out[0]);
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const auto kernel = is_wide ? softmax_rows<4, T> : softmax_rows<1, T>;
        kernel<<<grid, DT_CUDA_ROW_THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_src<T>(a, 0), dt_cuda_dst<T>(a, 0), rows);
        return DT_CUDA_LAUNCHED();
    });
}

dt_status softmax_bwd(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 1);
    if (rows.R == 0 || rows.D == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_row_blocks(&rows), a->leaves);
    const bool is_wide = rows.D % 4 == 0 && dt_cuda_is_vectorisable(&a->in[0]) && dt_cuda_is_vectorisable(&a->in[1]) &&
                         dt_cuda_is_vectorisable(&a->out[0]);
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const auto kernel = is_wide ? softmax_bwd_rows<4, T> : softmax_bwd_rows<1, T>;
        kernel<<<grid, DT_CUDA_ROW_THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_src<T>(a, 0), dt_cuda_src<T>(a, 1),
                                                                    dt_cuda_dst<T>(a, 0), rows);
        return DT_CUDA_LAUNCHED();
    });
}

} // namespace

DT_CUDA_KERNEL(SOFTMAX, softmax, softmax);
DT_CUDA_KERNEL(SOFTMAX_BWD, softmax_bwd, softmax_bwd);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the rows and over the columns of a matrix; loss.cu sums everything. See cuda.h; engine/backend/ref/reduce.c
 * has the plain loops.
 */
#include "engine/backend/cuda/columns.h"
#include "engine/backend/cuda/warp.h"

namespace
{

/* y_m = sum_r dy[r,m] */
template <typename T>
__global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS)
    column_sums(dt_cuda_ptr<const T> dy, dt_cuda_ptr<float> y, dt_cuda_span rows, bool adds)
{
    const int leaf = (int)blockIdx.y, M = rows.D, m = (int)(32 * blockIdx.x + threadIdx.x), extent = rows.extent(leaf);
    const T *from = dy.at(leaf);
    const double sum = dt_cuda_column_sum(
        rows.R, [&](int r) { return m < M && rows.has(r, extent) ? dt_cuda_get(from + (int64_t)r * M + m) : 0.0f; });
    if (threadIdx.y == 0 && m < M) {
        float *to = y.at(leaf) + m;
        *to = (float)(adds ? *to + sum : sum);
    }
}

/* y_r = sum_d x[r,d], a warp for each row */
template <int V, typename T> __global__ void row_sums(dt_cuda_ptr<const T> x, dt_cuda_ptr<float> y, dt_cuda_span rows)
{
    const int r = dt_cuda_row((int)blockIdx.x), leaf = (int)blockIdx.y;
    if (r >= rows.R) {
        return;
    }
    float sum = 0;
    if (rows.has(r, rows.extent(leaf))) {
        const T *from = x.at(leaf) + (int64_t)r * rows.D;
        dt_cuda_each_piece<V>(rows.D, [&](int d) {
            const dt_cuda_pack<V> p = dt_cuda_load<V>(from + d);
            for (int i = 0; i < V; i++) {
                sum += p.x[i];
            }
        });
        sum = dt_cuda_warp_sum(sum);
    }
    if (threadIdx.x % 32 == 0) {
        y.at(leaf)[r] = sum;
    }
}

dt_status colsum(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 1);
    if (rows.D == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(rows.D, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        column_sums<T><<<grid, block, 0, dt_cuda_stream(a)>>>(dt_cuda_src<T>(a, 0), dt_cuda_dst<float>(a, 0), rows,
                                                              a->out[0].accum != 0);
        return DT_CUDA_LAUNCHED();
    });
}

dt_status rowsum(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 1);
    if (rows.R == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_row_blocks(&rows), a->leaves);
    const bool is_wide = rows.D % 4 == 0 && dt_cuda_is_vectorisable(&a->in[0]);
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const dt_cuda_ptr<const T> x = dt_cuda_src<T>(a, 0);
        const dt_cuda_ptr<float> y = dt_cuda_dst<float>(a, 0);
        if (is_wide) {
            row_sums<4, T><<<grid, DT_CUDA_ROW_THREADS, 0, dt_cuda_stream(a)>>>(x, y, rows);
        } else {
            row_sums<1, T><<<grid, DT_CUDA_ROW_THREADS, 0, dt_cuda_stream(a)>>>(x, y, rows);
        }
        return DT_CUDA_LAUNCHED();
    });
}

} // namespace

DT_CUDA_KERNEL(COLSUM, colsum, colsum);
DT_CUDA_KERNEL(ROWSUM, rowsum, rowsum);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation: 32 columns of a leaf to a block of threads, which sums over the rows of the leaf and then writes
 * them. See cuda.h; engine/backend/ref/batch_norm.c has the formulas in plain loops.
 */
#include "engine/backend/cuda/columns.h"
#include "engine/backend/cuda/stored.h"

namespace
{

using source = dt_cuda_ptr<const float>;
using target = dt_cuda_ptr<float>;

/* Which rows of a leaf count. */
struct counted {
    const float *mask;
    dt_cuda_span rows;
    int extent;

    __device__ counted(const dt_cuda_span &of, const source &masks, int leaf)
        : mask(masks.at(leaf)), rows(of), extent(of.extent(leaf))
    {
    }
    __device__ bool has(int r) const
    {
        return rows.has(r, extent) && (mask == nullptr || mask[r] > 0);
    }
    /* All threads; of columns that are not there as well. */
    __device__ double count() const
    {
        return dt_cuda_column_sum(rows.R, [&](int r) { return has(r) ? 1.0f : 0.0f; });
    }
};

template <typename T> struct forward {
    dt_cuda_ptr<const T> x;
    dt_cuda_ptr<T> y;
    source gamma, beta, mean, var, mask;
    target stat;
    dt_cuda_span rows;
    double eps;
    bool is_running;
};

template <typename T> __global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS) normalise(forward<T> f)
{
    const int d = (int)blockIdx.x * 32 + (int)threadIdx.x, leaf = (int)blockIdx.y, D = f.rows.D;
    const bool is_column = d < D;
    const counted c(f.rows, f.mask, leaf);
    const T *x = f.x.at(leaf);
    double n = 0, square = 0;
    float mean = f.is_running && is_column ? f.mean.at(leaf)[d] : 0;
    double v = f.is_running && is_column ? f.var.at(leaf)[d] : 0;
    if (!f.is_running) { /* all threads alike */
        n = c.count();
        const double sum = dt_cuda_column_sum(
            f.rows.R, [&](int r) { return is_column && c.has(r) ? dt_cuda_get(x + (int64_t)r * D + d) : 0.0f; });
        mean = n > 0 ? (float)(sum / n) : 0;
        square = dt_cuda_column_sum(f.rows.R, [&](int r) {
            const float from = is_column && c.has(r) ? dt_cuda_get(x + (int64_t)r * D + d) - mean : 0.0f;
            return from * from;
        });
        v = n > 0 ? square / n : 0;
    }
    if (!is_column) {
        return;
    }
    const float rstd = (float)(1.0 / sqrt(v + f.eps)), scale = f.gamma.at(leaf)[d] * rstd, beta = f.beta.at(leaf)[d];
    T *y = f.y.at(leaf);
    for (int r = (int)threadIdx.y; r < f.rows.R; r += DT_CUDA_COLUMN_LANES) {
        const int64_t at = (int64_t)r * D + d;
        dt_cuda_put(y + at, c.has(r) ? (dt_cuda_get(x + at) - mean) * scale + beta : 0.0f);
    }
    float *stat = f.stat.at(leaf);
    if (stat != nullptr && threadIdx.y == 0) {
        stat[d] = mean;
        stat[D + d] = rstd;
        stat[2 * D + d] = f.is_running || n < 1 ? 0.0f : f.mean.at(leaf)[d] - mean;
        stat[3 * D + d] = f.is_running || n < 2 ? 0.0f : (float)((double)f.var.at(leaf)[d] - square / (n - 1));
    }
}

template <typename T> struct backward {
    dt_cuda_ptr<const T> dy, x;
    dt_cuda_ptr<T> dx;
    source gamma, stat, mask;
    target sum[4]; /* dgamma, dbeta, dmean, dvar */
    bool adds[4];
    dt_cuda_span rows;
    const dt_device_run *run;
    double momentum;
    bool is_running;
};

template <typename T> __global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS) gradients(backward<T> b)
{
    const int d = (int)blockIdx.x * 32 + (int)threadIdx.x, leaf = (int)blockIdx.y, D = b.rows.D;
    const bool is_column = d < D;
    const counted c(b.rows, b.mask, leaf);
    const T *dy = b.dy.at(leaf), *x = b.x.at(leaf);
    const float *stat = b.stat.at(leaf);
    const float mean = is_column ? stat[d] : 0, rstd = is_column ? stat[D + d] : 0;
    const double n = c.count();
    const double dgamma = dt_cuda_column_sum(b.rows.R, [&](int r) {
        const int64_t at = (int64_t)r * D + d;
        return is_column && c.has(r) ? dt_cuda_get(dy + at) * ((dt_cuda_get(x + at) - mean) * rstd) : 0.0f;
    });
    const double dbeta = dt_cuda_column_sum(
        b.rows.R, [&](int r) { return is_column && c.has(r) ? dt_cuda_get(dy + (int64_t)r * D + d) : 0.0f; });
    if (!is_column) {
        return;
    }
    const bool is_batch = !b.is_running && n > 0;
    const float of_gamma = is_batch ? (float)(dgamma / n) : 0, of_beta = is_batch ? (float)(dbeta / n) : 0;
    const float scale = b.gamma.at(leaf)[d] * rstd;
    T *dx = b.dx.at(leaf);
    for (int r = (int)threadIdx.y; r < b.rows.R && dx != nullptr; r += DT_CUDA_COLUMN_LANES) {
        const int64_t at = (int64_t)r * D + d;
        const float up = c.has(r) ? dt_cuda_get(dy + at) : 0.0f, h = c.has(r) ? (dt_cuda_get(x + at) - mean) * rstd : 0;
        dt_cuda_put(dx + at, c.has(r) ? scale * (up - (of_beta + h * of_gamma)) : 0.0f);
    }
    const double share = b.run->share * b.momentum;
    const double sum[4] = {dgamma, dbeta, share * stat[2 * D + d], share * stat[3 * D + d]};
    for (int k = 0; k < 4 && threadIdx.y == 0; k++) {
        float *to = b.sum[k].at(leaf);
        if (to != nullptr) {
            to[d] = (float)(b.adds[k] ? to[d] + sum[k] : sum[k]);
        }
    }
}

/* x and y have one type */
template <typename T> dt_status batch_norm_of(const dt_device_args *a)
{
    forward<T> f = {};
    f.x = dt_cuda_src<T>(a, 0);
    f.y = dt_cuda_dst<T>(a, 0);
    f.gamma = dt_cuda_src<float>(a, 1);
    f.beta = dt_cuda_src<float>(a, 2);
    f.mean = dt_cuda_src<float>(a, 3);
    f.var = dt_cuda_src<float>(a, 4);
    f.mask = dt_cuda_src<float>(a, 5);
    f.stat = dt_cuda_dst<float>(a, 1);
    f.rows = dt_cuda_rows(a, &a->in[0], 1);
    f.eps = a->attr->f[0];
    f.is_running = a->attr->i[0] != 0;
    const dim3 grid(dt_cuda_blocks(f.rows.D, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
    normalise<T><<<grid, block, 0, dt_cuda_stream(a)>>>(f);
    return DT_CUDA_LAUNCHED();
}

dt_status batch_norm(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return batch_norm_of<typename decltype(type)::T>(a); });
}

/* dy, x and dx have one type */
template <typename T> dt_status batch_norm_bwd_of(const dt_device_args *a)
{
    backward<T> b = {};
    b.dy = dt_cuda_src<T>(a, 0);
    b.x = dt_cuda_src<T>(a, 1);
    b.gamma = dt_cuda_src<float>(a, 2);
    b.stat = dt_cuda_src<float>(a, 3);
    b.mask = dt_cuda_src<float>(a, 4);
    b.dx = dt_cuda_dst<T>(a, 0);
    for (uint32_t k = 0; k < 4; k++) {
        b.sum[k] = dt_cuda_dst<float>(a, k + 1);
        b.adds[k] = dt_cuda_out(a, k + 1)->accum != 0;
    }
    b.rows = dt_cuda_rows(a, &a->in[0], 1);
    b.run = a->run;
    b.momentum = a->attr->f[1];
    b.is_running = a->attr->i[0] != 0;
    const dim3 grid(dt_cuda_blocks(b.rows.D, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
    gradients<T><<<grid, block, 0, dt_cuda_stream(a)>>>(b);
    return DT_CUDA_LAUNCHED();
}

dt_status batch_norm_bwd(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return batch_norm_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL(BATCH_NORM, batch_norm, batch_norm);
DT_CUDA_KERNEL(BATCH_NORM_BWD, batch_norm_bwd, batch_norm_bwd);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalisation over the last dim with an optional residual, a warp for each row; backward the sums over rows
 * (dgamma, dbeta) are further blocks of the same launch. See cuda.h; engine/backend/ref/layernorm.c has the plain
 * loops.
 */
#include "engine/backend/cuda/columns.h"
#include "engine/backend/cuda/warp.h"

namespace
{

using source = dt_cuda_ptr<const float>;
using target = dt_cuda_ptr<float>;

/* x + r, or x where there is no r */
template <int V, typename T> __device__ dt_cuda_pack<V> sum_of(const T *x, const T *r, int64_t at)
{
    dt_cuda_pack<V> v = dt_cuda_load<V>(x + at);
    if (r != nullptr) {
        const dt_cuda_pack<V> w = dt_cuda_load<V>(r + at);
        for (int i = 0; i < V; i++) {
            v.x[i] += w.x[i];
        }
    }
    return v;
}

template <typename T> struct forward {
    dt_cuda_ptr<const T> x, r;
    dt_cuda_ptr<T> y;
    source gamma, beta;
    target stat;
    dt_cuda_span rows;
    float eps;
};

/* v = x + r   n = (v - mean) / sqrt(var + eps)   y = gamma n + beta   stat: mean, 1/sqrt(var + eps) */
template <int V, typename T> __global__ void normalise(forward<T> f)
{
    const int r = dt_cuda_row((int)blockIdx.x), leaf = (int)blockIdx.y, D = f.rows.D;
    if (r >= f.rows.R) {
        return;
    }
    const int64_t at = (int64_t)r * D;
    const T *x = f.x.at(leaf), *res = f.r.at(leaf);
    const float *gamma = f.gamma.at(leaf), *beta = f.beta.at(leaf);
    T *y = f.y.at(leaf) + at;
    float sum = 0, square = 0, mean = 0, rstd = 0;
    if (f.rows.has(r, f.rows.extent(leaf))) {
        dt_cuda_each_piece<V>(D, [&](int d) {
            const dt_cuda_pack<V> v = sum_of<V>(x, res, at + d);
            for (int i = 0; i < V; i++) {
                sum += v.x[i];
            }
        });
        mean = dt_cuda_warp_sum(sum) / (float)D;
        dt_cuda_each_piece<V>(D, [&](int d) {
            const dt_cuda_pack<V> v = sum_of<V>(x, res, at + d);
            for (int i = 0; i < V; i++) {
                square += (v.x[i] - mean) * (v.x[i] - mean);
            }
        });
        rstd = 1.0f / sqrtf(dt_cuda_warp_sum(square) / (float)D + f.eps);
        dt_cuda_each_piece<V>(D, [&](int d) {
            dt_cuda_pack<V> v = sum_of<V>(x, res, at + d);
            const dt_cuda_pack<V> g = dt_cuda_load<V>(gamma + d), b = dt_cuda_load<V>(beta + d);
            for (int i = 0; i < V; i++) {
                v.x[i] = g.x[i] * ((v.x[i] - mean) * rstd) + b.x[i];
            }
            dt_cuda_store<V>(y + d, v);
        });
    } else {
        dt_cuda_zero_row<V>(y, D);
    }
    float *stat = f.stat.at(leaf);
    if (stat != nullptr && threadIdx.x % 32 == 0) {
        stat[2 * (int64_t)r] = mean;
        stat[2 * (int64_t)r + 1] = rstd;
    }
}

template <typename T> struct backward {
    dt_cuda_ptr<const T> dy, x, r;
    dt_cuda_ptr<T> dx;
    source gamma, stat;
    target dgamma, dbeta;
    dt_cuda_span rows;
    int row_blocks; /* the first blocks of the grid; 0 without dx */
    bool adds_gamma, adds_beta;
};

/* with g = dy gamma and n as above:   dx = rstd (g - mean(g) - n mean(g n)) */
template <int V, typename T> __device__ void row_gradient(const backward<T> &b, int r, int leaf)
{
    const int D = b.rows.D;
    const int64_t at = (int64_t)r * D;
    T *dx = b.dx.at(leaf) + at;
    if (!b.rows.has(r, b.rows.extent(leaf))) {
        dt_cuda_zero_row<V>(dx, D);
        return;
    }
    const T *dy = b.dy.at(leaf), *x = b.x.at(leaf), *res = b.r.at(leaf);
    const float *gamma = b.gamma.at(leaf);
    const float mean = b.stat.at(leaf)[2 * (int64_t)r], rstd = b.stat.at(leaf)[2 * (int64_t)r + 1];
    float sum_g = 0, sum_gn = 0;
    dt_cuda_each_piece<V>(D, [&](int d) {
        const dt_cuda_pack<V> v = sum_of<V>(x, res, at + d), up = dt_cuda_load<V>(dy + at + d);
        const dt_cuda_pack<V> scale = dt_cuda_load<V>(gamma + d);
        for (int i = 0; i < V; i++) {
            const float g = up.x[i] * scale.x[i];
            sum_g += g;
            sum_gn += g * ((v.x[i] - mean) * rstd);
        }
    });
    const float mean_g = dt_cuda_warp_sum(sum_g) / (float)D, mean_gn = dt_cuda_warp_sum(sum_gn) / (float)D;
    dt_cuda_each_piece<V>(D, [&](int d) {
        const dt_cuda_pack<V> v = sum_of<V>(x, res, at + d), scale = dt_cuda_load<V>(gamma + d);
        dt_cuda_pack<V> up = dt_cuda_load<V>(dy + at + d);
        for (int i = 0; i < V; i++) {
            const float n = (v.x[i] - mean) * rstd;
            up.x[i] = rstd * (up.x[i] * scale.x[i] - mean_g - n * mean_gn);
        }
        dt_cuda_store<V>(dx + d, up);
    });
}

/* dgamma = sum_r dy n   dbeta = sum_r dy   for column d */
template <typename T> __device__ void column_gradient(const backward<T> &b, int d, int leaf)
{
    const int D = b.rows.D, extent = b.rows.extent(leaf);
    const T *dy = b.dy.at(leaf), *x = b.x.at(leaf), *res = b.r.at(leaf);
    const float *stat = b.stat.at(leaf);
    float *dgamma = b.dgamma.at(leaf), *dbeta = b.dbeta.at(leaf);
    const bool writes = threadIdx.y == 0 && d < D;
    if (dgamma != nullptr) {
        const double sum = dt_cuda_column_sum(b.rows.R, [&](int r) {
            const int64_t at = (int64_t)r * D + d;
            if (d >= D || !b.rows.has(r, extent)) {
                return 0.0f;
            }
            const float v = sum_of<1>(x, res, at).x[0];
            return dt_cuda_get(dy + at) * ((v - stat[2 * (int64_t)r]) * stat[2 * (int64_t)r + 1]);
        });
        if (writes) {
            dgamma[d] = (float)(b.adds_gamma ? dgamma[d] + sum : sum);
        }
    }
    if (dbeta != nullptr) {
        const double sum = dt_cuda_column_sum(b.rows.R, [&](int r) {
            return d < D && b.rows.has(r, extent) ? dt_cuda_get(dy + (int64_t)r * D + d) : 0.0f;
        });
        if (writes) {
            dbeta[d] = (float)(b.adds_beta ? dbeta[d] + sum : sum);
        }
    }
}

enum { ROWS_OF_BLOCK = DT_CUDA_COLUMN_LANES };

/* Blocks of (32, 32) threads: 32 rows of dx, or 32 columns of dgamma and dbeta. */
template <int V, typename T> __global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS) gradients(backward<T> b)
{
    const int block = (int)blockIdx.x, leaf = (int)blockIdx.y;
    if (block >= b.row_blocks) {
        column_gradient(b, (block - b.row_blocks) * 32 + (int)threadIdx.x, leaf);
        return;
    }
    const int r = block * ROWS_OF_BLOCK + (int)threadIdx.y;
    if (r < b.rows.R) {
        row_gradient<V>(b, r, leaf);
    }
}

bool are_vectorisable(const dt_device_args *a, uint32_t n_in, int D)
{
    bool is_wide = D % 4 == 0 && dt_cuda_is_vectorisable(&a->out[0]);
    for (uint32_t i = 0; i < n_in; i++) {
        is_wide = is_wide && dt_cuda_is_vectorisable(dt_cuda_in(a, i));
    }
    return is_wide;
}

/* x, r and y have one type */
template <typename T> dt_status layernorm_of(const dt_device_args *a)
{
    forward<T> f = {};
    f.x = dt_cuda_src<T>(a, 0);
    f.gamma = dt_cuda_src<float>(a, 1);
    f.beta = dt_cuda_src<float>(a, 2);
    f.r = dt_cuda_src<T>(a, 3);
    f.y = dt_cuda_dst<T>(a, 0);
    f.stat = dt_cuda_dst<float>(a, 1);
    f.rows = dt_cuda_rows(a, &a->in[0], 1);
    f.eps = (float)a->attr->f[0];
    if (f.rows.R == 0 || f.rows.D == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_row_blocks(&f.rows), a->leaves);
    const auto kernel = are_vectorisable(a, 4, f.rows.D) ? normalise<4, T> : normalise<1, T>;
    kernel<<<grid, DT_CUDA_ROW_THREADS, 0, dt_cuda_stream(a)>>>(f);
    return DT_CUDA_LAUNCHED();
}

dt_status layernorm(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return layernorm_of<typename decltype(type)::T>(a); });
}

/* dy, x, r and dx have one type */
template <typename T> dt_status layernorm_bwd_of(const dt_device_args *a)
{
    const dt_device_view *dgamma = dt_cuda_out(a, 1), *dbeta = dt_cuda_out(a, 2);
    backward<T> b = {};
    b.dy = dt_cuda_src<T>(a, 0);
    b.x = dt_cuda_src<T>(a, 1);
    b.gamma = dt_cuda_src<float>(a, 2);
    b.r = dt_cuda_src<T>(a, 3);
    b.stat = dt_cuda_src<float>(a, 4);
    b.dx = dt_cuda_dst<T>(a, 0);
    b.dgamma = dt_cuda_dst<float>(a, 1);
    b.dbeta = dt_cuda_dst<float>(a, 2);
    b.rows = dt_cuda_rows(a, &a->in[0], 1);
    b.row_blocks = b.dx.data != nullptr ? (int)dt_cuda_blocks(b.rows.R, ROWS_OF_BLOCK) : 0;
    b.adds_gamma = dgamma->accum != 0;
    b.adds_beta = dbeta->accum != 0;
    const bool has_columns = dgamma->data != nullptr || dbeta->data != nullptr;
    const unsigned n = (unsigned)b.row_blocks + (has_columns ? dt_cuda_blocks(b.rows.D, 32) : 0);
    if (n == 0) {
        return DT_OK;
    }
    const dim3 grid(n, a->leaves), block(32, DT_CUDA_COLUMN_LANES);
    const auto kernel = are_vectorisable(a, 4, b.rows.D) ? gradients<4, T> : gradients<1, T>;
    kernel<<<grid, block, 0, dt_cuda_stream(a)>>>(b);
    return DT_CUDA_LAUNCHED();
}

dt_status layernorm_bwd(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return layernorm_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL(LAYERNORM, layernorm, layernorm);
DT_CUDA_KERNEL(LAYERNORM_BWD, layernorm_bwd, layernorm_bwd);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops along an axis, and those that make numbers out of a shape or a key: a thread computes one number of the output.
 * See cuda.h; engine/backend/ref/axis.c has the plain loops.
 */
#include "engine/backend/cuda/philox.h"

namespace
{

enum { THREADS = 256 };

using source = dt_cuda_ptr<const float>;

/* y[r, d] = value(leaf, r, d) where row r is live, else 0 */
template <typename F> __global__ void compute(dt_cuda_ptr<float> y, dt_cuda_span rows, F value)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    const int r = i / rows.D, d = i % rows.D;
    if (r < rows.R) {
        y.at(leaf)[i] = rows.has(r, rows.extent(leaf)) ? value(leaf, r, d) : 0.0f;
    }
}

/* keep: dims of the output that a row holds */
template <typename F> dt_status launch(const dt_device_args *a, int32_t keep, F value)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->out[0], keep);
    const int64_t n = (int64_t)rows.R * rows.D;
    if (n == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
    compute<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_dst<float>(a, 0), rows, value);
    return DT_CUDA_LAUNCHED();
}

int dim_from_end(const dt_device_view *v, int32_t k)
{
    return (int)v->dim[v->rank - k];
}

/* ---- fill, noise ------------------------------------------------------------------------------------------------- */

struct fill_of {
    float value;
    __device__ float operator()(int, int, int) const
    {
        return value;
    }
};

dt_status fill(const dt_device_args *a)
{
    return launch(a, 0, fill_of{(float)a->attr->f[0]});
}

/* dt_rng_normal on the device */
struct noise_of {
    dt_cuda_ptr<const int64_t> key;
    const dt_device_run *run;
    uint32_t op;
    __device__ float operator()(int leaf, int r, int d) const
    {
        if (run->training == 0) {
            return 0;
        }
        const dt_cuda_philox bits =
            dt_cuda_stream_block(dt_cuda_stream_of(run, op), (uint64_t)key.at(leaf)[r], (uint32_t)d);
        const double u = 1.0 - unit(bits.x[0], bits.x[1]), v = unit(bits.x[2], bits.x[3]);
        return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
    }
    __device__ static double unit(uint32_t high, uint32_t low) /* dt_random_unit */
    {
        return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
    }
};

dt_status noise(const dt_device_args *a)
{
    return launch(a, 1, noise_of{dt_cuda_src<int64_t>(a, 0), a->run, (uint32_t)a->attr->i[0]});
}

/* ---- reduce ------------------------------------------------------------------------------------------------------ */

struct reduce_of {
    source x;
    int F, P, how;
    __device__ float operator()(int leaf, int r, int p) const
    {
        const float *from = x.at(leaf) + (int64_t)r * F * P + p;
        if (how == DT_REDUCE_MAX) {
            float top = from[0];
            for (int f = 1; f < F; f++) {
                top = dt_cuda_greatest(from[(int64_t)f * P], top);
            }
            return top;
        }
        double sum = 0;
        for (int f = 0; f < F; f++) {
            sum += from[(int64_t)f * P];
        }
        return (float)(how == DT_REDUCE_MEAN ? sum / F : sum);
    }
};

dt_status reduce(const dt_device_args *a)
{
    const int F = dim_from_end(&a->in[0], 2), P = dim_from_end(&a->in[0], 1);
    return launch(a, 1, reduce_of{dt_cuda_src<float>(a, 0), F, P, (int)a->attr->i[0]});
}

struct reduce_bwd_of {
    source dy;
    int P;
    float scale;
    __device__ float operator()(int leaf, int r, int d) const
    {
        return dy.at(leaf)[(int64_t)r * P + d % P] * scale;
    }
};

dt_status reduce_bwd(const dt_device_args *a)
{
    const float scale = a->attr->i[0] == DT_REDUCE_MEAN ? 1.0f / (float)a->attr->i[1] : 1.0f;
    return launch(a, 2, reduce_bwd_of{dt_cuda_src<float>(a, 0), dim_from_end(&a->in[0], 1), scale});
}

struct reduce_max_bwd_of {
    source dy, x, y;
    int F, P;
    __device__ float operator()(int leaf, int r, int d) const
    {
        const int f = d / P, p = d % P;
        const float *from = x.at(leaf) + (int64_t)r * F * P + p, top = y.at(leaf)[(int64_t)r * P + p];
        const auto is_top = [&](int k) { return from[(int64_t)k * P] == top || isnan(from[(int64_t)k * P]); };
        bool is_it = is_top(f);
        for (int k = 0; k < f; k++) {
            is_it = is_it && !is_top(k);
        }
        return is_it ? dy.at(leaf)[(int64_t)r * P + p] : 0.0f;
    }
};

dt_status reduce_max_bwd(const dt_device_args *a)
{
    const int F = dim_from_end(&a->in[1], 2), P = dim_from_end(&a->in[1], 1);
    return launch(
        a, 2, reduce_max_bwd_of{dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1), dt_cuda_src<float>(a, 2), F, P});
}

/* ---- transpose, products ----------------------------------------------------------------------------------------- */

struct transpose_of {
    source x;
    int A, B; /* of x */
    __device__ float operator()(int leaf, int r, int d) const
    {
        return x.at(leaf)[((int64_t)r * A + d % A) * B + d / A];
    }
};

dt_status transpose(const dt_device_args *a)
{
    return launch(a, 2, transpose_of{dt_cuda_src<float>(a, 0), dim_from_end(&a->in[0], 2), dim_from_end(&a->in[0], 1)});
}

struct matmul_of {
    source a, b;
    int M, N, K;
    bool ta, tb;
    __device__ float operator()(int leaf, int r, int d) const
    {
        const float *left = a.at(leaf) + (int64_t)r * M * K + (ta ? d / N : (int64_t)(d / N) * K);
        const float *right = b.at(leaf) + (int64_t)r * K * N + (tb ? (int64_t)(d % N) * K : d % N);
        const int left_k = ta ? M : 1, right_k = tb ? 1 : N;
        float sum = 0;
        for (int k = 0; k < K; k++) {
            sum = fmaf(left[(int64_t)k * left_k], right[(int64_t)k * right_k], sum);
        }
        return sum;
    }
};

dt_status matmul(const dt_device_args *a)
{
    const bool ta = a->attr->i[0] != 0, tb = a->attr->i[1] != 0;
    const int M = dim_from_end(&a->out[0], 2), N = dim_from_end(&a->out[0], 1);
    const int K = dim_from_end(&a->in[0], ta ? 2 : 1);
    return launch(a, 2, matmul_of{dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1), M, N, K, ta, tb});
}

/* ---- pick -------------------------------------------------------------------------------------------------------- */

struct pick_of {
    source x;
    dt_cuda_ptr<const int32_t> idx;
    int M, K, column;
    __device__ float operator()(int leaf, int r, int) const
    {
        const int m = idx.at(leaf)[(int64_t)r * K + column];
        return m >= 0 && m < M ? x.at(leaf)[(int64_t)r * M + m] : 0.0f;
    }
};

dt_status pick(const dt_device_args *a)
{
    return launch(a, 1,
                  pick_of{dt_cuda_src<float>(a, 0), dt_cuda_src<int32_t>(a, 1), dim_from_end(&a->in[0], 1),
                          dim_from_end(&a->in[1], 1), (int)a->attr->i[0]});
}

struct pick_bwd_of {
    source dy;
    dt_cuda_ptr<const int32_t> idx;
    int K, column;
    __device__ float operator()(int leaf, int r, int m) const
    {
        return m == idx.at(leaf)[(int64_t)r * K + column] ? dy.at(leaf)[r] : 0.0f;
    }
};

dt_status pick_bwd(const dt_device_args *a)
{
    return launch(a, 1,
                  pick_bwd_of{dt_cuda_src<float>(a, 0), dt_cuda_src<int32_t>(a, 1), dim_from_end(&a->in[1], 1),
                              (int)a->attr->i[0]});
}

/* ---- unfold ------------------------------------------------------------------------------------------------------ */

struct window {
    int L, C, O, K, stride, padding;
    bool is_circular;
};

window window_of(const dt_device_args *a, const dt_device_view *x, const dt_device_view *y)
{
    const int64_t *i = a->attr->i;
    return {dim_from_end(x, 2), dim_from_end(x, 1), dim_from_end(y, 2), (int)i[0], (int)i[1], (int)i[2], i[3] != 0};
}

struct unfold_of {
    source x;
    window w;
    __device__ float operator()(int leaf, int r, int d) const
    {
        const int c = d % w.C, k = d / w.C % w.K, o = d / (w.C * w.K);
        int l = o * w.stride + k - w.padding;
        if (w.is_circular) {
            l = l < 0 ? l + w.L : l >= w.L ? l - w.L : l;
        }
        return l >= 0 && l < w.L ? x.at(leaf)[((int64_t)r * w.L + l) * w.C + c] : 0.0f;
    }
};

dt_status unfold(const dt_device_args *a)
{
    return launch(a, 2, unfold_of{dt_cuda_src<float>(a, 0), window_of(a, &a->in[0], &a->out[0])});
}

/* Where x[l] was read: at l, and in circles at l - L and l + L, each counted from the begin of the padding. */
struct unfold_bwd_of {
    source dy;
    window w;
    __device__ float operator()(int leaf, int r, int d) const
    {
        const int c = d % w.C, l = d / w.C, reach = w.is_circular ? 1 : 0;
        const float *from = dy.at(leaf) + (int64_t)r * w.O * w.K * w.C + c;
        float sum = 0;
        for (int turn = -reach; turn <= reach; turn++) {
            const int q = l + turn * w.L + w.padding;
            if (q < 0 || q >= w.L + 2 * w.padding) {
                continue;
            }
            const int last = q / w.stride < w.O - 1 ? q / w.stride : w.O - 1;
            for (int o = q < w.K ? 0 : (q - w.K) / w.stride + 1; o <= last; o++) {
                sum += from[((int64_t)o * w.K + q - o * w.stride) * w.C];
            }
        }
        return sum;
    }
};

dt_status unfold_bwd(const dt_device_args *a)
{
    return launch(a, 2, unfold_bwd_of{dt_cuda_src<float>(a, 0), window_of(a, &a->out[0], &a->in[0])});
}

} // namespace

DT_CUDA_KERNEL(FILL, fill, fill);
DT_CUDA_KERNEL(NOISE, noise, noise);
DT_CUDA_KERNEL(REDUCE, reduce, reduce);
DT_CUDA_KERNEL(REDUCE_BWD, reduce_bwd, reduce_bwd);
DT_CUDA_KERNEL(REDUCE_MAX_BWD, reduce_max_bwd, reduce_max_bwd);
DT_CUDA_KERNEL(TRANSPOSE, transpose, transpose);
DT_CUDA_KERNEL(MATMUL, matmul, matmul);
DT_CUDA_KERNEL(PICK, pick, pick);
DT_CUDA_KERNEL(PICK_BWD, pick_bwd, pick_bwd);
DT_CUDA_KERNEL(UNFOLD, unfold, unfold);
DT_CUDA_KERNEL(UNFOLD_BWD, unfold_bwd, unfold_bwd);

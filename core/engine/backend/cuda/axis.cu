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

/* dt_rng_normal on the device, or uniform numbers */
struct noise_of {
    dt_cuda_ptr<const int64_t> key;
    const dt_device_run *run;
    uint32_t op;
    bool is_uniform, in_evaluation;
    __device__ float operator()(int leaf, int r, int d) const
    {
        if (run->training == 0 && !in_evaluation) {
            return is_uniform ? 0.5f : 0.0f;
        }
        const dt_cuda_philox bits = dt_cuda_stream_block(dt_cuda_stream_of(run, op), (uint64_t)key.at(leaf)[r],
                                                         (uint32_t)(is_uniform ? d / 4 : d));
        if (is_uniform) {
            return ((float)(bits.x[d % 4] >> 9) + 0.5f) * 0x1p-23f;
        }
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
    return launch(a, 1,
                  noise_of{dt_cuda_src<int64_t>(a, 0), a->run, (uint32_t)a->attr->i[0],
                           a->attr->i[2] == DT_NOISE_UNIFORM, a->attr->i[3] != 0});
}

/* ---- reduce ------------------------------------------------------------------------------------------------------ */

struct reduce_of {
    source x;
    int F, P, how;
    __device__ float operator()(int leaf, int r, int p) const
    {
        const float *from = x.at(leaf) + (int64_t)r * F * P + p;
        if (how == DT_REDUCE_MAX || how == DT_REDUCE_MIN) {
            float top = from[0];
            for (int f = 1; f < F; f++) {
                const float x_f = from[(int64_t)f * P];
                top = how == DT_REDUCE_MAX ? dt_cuda_greatest(x_f, top) : dt_cuda_least(x_f, top);
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

window window_args(const dt_device_args *a, const dt_device_view *x, const dt_device_view *y)
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
    return launch(a, 2, unfold_of{dt_cuda_src<float>(a, 0), window_args(a, &a->in[0], &a->out[0])});
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
    return launch(a, 2, unfold_bwd_of{dt_cuda_src<float>(a, 0), window_args(a, &a->out[0], &a->in[0])});
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

struct one_hot_of {
    dt_cuda_ptr<const int32_t> idx;
    int K, column;
    __device__ float operator()(int leaf, int r, int m) const
    {
        return m == idx.at(leaf)[(int64_t)r * K + column] ? 1.0f : 0.0f;
    }
};

dt_status one_hot(const dt_device_args *a)
{
    return launch(a, 1, one_hot_of{dt_cuda_src<int32_t>(a, 0), dim_from_end(&a->in[0], 1), (int)a->attr->i[0]});
}

/* Does element i of x come before element k, in falling order, NaN first, the first of equal ones first? */
__device__ bool is_before(const float *x, int i, int k)
{
    if (isnan(x[i]) || isnan(x[k])) {
        return isnan(x[i]) && (!isnan(x[k]) || i < k);
    }
    return x[i] > x[k] || (x[i] == x[k] && i < k);
}

/* A thread for each row: the first after the last one that was found, k times. */
__global__ void find_top_k(source x, dt_cuda_ptr<float> value, dt_cuda_ptr<int32_t> index, dt_cuda_span rows, int M)
{
    const int r = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y, k = rows.D;
    if (r >= rows.R) {
        return;
    }
    const bool is_live = rows.has(r, rows.extent(leaf));
    const float *from = x.at(leaf) + (int64_t)r * M;
    bool has_nan = false;
    int at = -1;
    for (int i = 0; i < k; i++) {
        int best = -1;
        for (int m = 0; m < M && is_live; m++) {
            if ((at < 0 || is_before(from, at, m)) && (best < 0 || is_before(from, m, best))) {
                best = m;
            }
        }
        at = is_live ? best : 0;
        has_nan = is_live && (has_nan || isnan(from[at]));
        value.at(leaf)[(int64_t)r * k + i] = !is_live ? 0.0f : has_nan ? nanf("") : from[at];
        if (index.data != nullptr) {
            index.at(leaf)[(int64_t)r * k + i] = at;
        }
    }
}

dt_status top_k(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->out[0], 1);
    if (rows.R == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS), a->leaves);
    find_top_k<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_src<float>(a, 0), dt_cuda_dst<float>(a, 0),
                                                        dt_cuda_dst<int32_t>(a, 1), rows, dim_from_end(&a->in[0], 1));
    return DT_CUDA_LAUNCHED();
}

struct top_k_bwd_of {
    source dy;
    dt_cuda_ptr<const int32_t> index;
    int k;
    __device__ float operator()(int leaf, int r, int m) const
    {
        float sum = 0; /* an element is among the k at most once */
        for (int i = 0; i < k; i++) {
            sum = index.at(leaf)[(int64_t)r * k + i] == m ? dy.at(leaf)[(int64_t)r * k + i] : sum;
        }
        return sum;
    }
};

dt_status top_k_bwd(const dt_device_args *a)
{
    return launch(a, 1, top_k_bwd_of{dt_cuda_src<float>(a, 0), dt_cuda_src<int32_t>(a, 1), dim_from_end(&a->in[0], 1)});
}

/* ---- order of dimensions, numbers -------------------------------------------------------------------------------- */

struct permute_of {
    source x;
    int dim[4], stride[4]; /* of the last dims of y, the first of them 1 where there are fewer than 4 */
    int row;
    __device__ float operator()(int leaf, int r, int d) const
    {
        int left = d;
        int64_t from = 0;
        for (int k = 3; k >= 0; k--) {
            from += (int64_t)(left % dim[k]) * stride[k];
            left /= dim[k];
        }
        return x.at(leaf)[(int64_t)r * row + from];
    }
};

dt_status permute(const dt_device_args *a)
{
    const dt_device_view *vx = &a->in[0], *vy = &a->out[0];
    permute_of f = {dt_cuda_src<float>(a, 0), {1, 1, 1, 1}, {0, 0, 0, 0}, 1};
    int64_t order = a->attr->i[0];
    int n = 0;
    for (int64_t left = order; left > 0; left /= 10) {
        n++;
    }
    for (int k = 3; k >= 4 - n; k--, order /= 10) {
        f.dim[k] = dim_from_end(vy, 4 - k);
        f.stride[k] = 1;
        for (int j = vx->rank - n + (int)(order % 10); j < vx->rank; j++) {
            f.stride[k] *= (int)vx->dim[j];
        }
        f.row *= f.dim[k];
    }
    return launch(a, n, f);
}

template <typename T> struct cast_of {
    dt_cuda_ptr<const T> x;
    __device__ float operator()(int leaf, int r, int) const
    {
        return (float)x.at(leaf)[r];
    }
};

dt_status cast(const dt_device_args *a)
{
    return dt_cuda_in(a, 0)->dtype == DT_U8 ? launch(a, 0, cast_of<uint8_t>{dt_cuda_src<uint8_t>(a, 0)})
                                            : launch(a, 0, cast_of<int32_t>{dt_cuda_src<int32_t>(a, 0)});
}

struct constant_of {
    float value[4];
    __device__ float operator()(int, int, int d) const
    {
        return value[d];
    }
};

dt_status constant(const dt_device_args *a)
{
    const double *f = a->attr->f;
    return launch(a, 1, constant_of{{(float)f[0], (float)f[1], (float)f[2], (float)f[3]}});
}

} // namespace

DT_CUDA_KERNEL(ONE_HOT, one_hot, one_hot);
DT_CUDA_KERNEL(TOP_K, top_k, top_k);
DT_CUDA_KERNEL(TOP_K_BWD, top_k_bwd, top_k_bwd);
DT_CUDA_KERNEL(PERMUTE, permute, permute);
DT_CUDA_KERNEL(CAST, cast, cast);
DT_CUDA_KERNEL(CONSTANT, constant, constant);
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and losses over rows, f64 scalars per leaf, and their gradients. Terms are float, their sum is double: blocks of
 * CHUNK elements, then the blocks of a leaf. See cuda.h; engine/backend/ref/loss.c and reduce.c have the plain loops
 * and the formulas.
 */
#include "engine/backend/cuda/cuda.h"

namespace
{

enum { THREADS = 256, CHUNK = 8 * THREADS };

using source = dt_cuda_ptr<const float>;

struct loss {
    source pred, log_sigma, target, weight; /* [R,P], log_sigma for the Gaussian alone; weight [R] */
    dt_cuda_ptr<const double> ds;
    int P;
    float delta;
};

/* first: the input with the prediction */
loss loss_args(const dt_device_args *a, uint32_t first, bool is_gaussian)
{
    const uint32_t target = first + (is_gaussian ? 2 : 1);
    const int64_t R = dt_cuda_count(&a->in[target + 1]);
    loss l = {};
    l.pred = dt_cuda_src<float>(a, first);
    l.log_sigma = dt_cuda_src<float>(a, first + 1);
    l.target = dt_cuda_src<float>(a, target);
    l.weight = dt_cuda_src<float>(a, target + 1);
    l.ds = dt_cuda_src<double>(a, 0);
    l.P = 1;
    l.delta = (float)a->attr->f[0];
    l.P = R > 0 ? (int)(dt_cuda_count(&a->in[first]) / R) : 1;
    return l;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

struct value_of {
    source x;
    __device__ double operator()(int leaf, int i) const
    {
        return x.at(leaf)[i];
    }
};

template <uint32_t OP> struct term_of {
    loss l;
    __device__ double operator()(int leaf, int i) const
    {
        const float w = l.weight.at(leaf)[i / l.P];
        if (w == 0) { /* its value is not read */
            return 0;
        }
        const float p = l.pred.at(leaf)[i], t = l.target.at(leaf)[i], d = p - t;
        switch (OP) {
        case DT_OPX_GAUSSIAN_NLL: {
            const float s = l.log_sigma.at(leaf)[i], n = d * expf(-s), half_log_2pi = 0.91893853320467274f;
            return w * (s + 0.5f * n * n + half_log_2pi);
        }
        case DT_OPX_BCE_LOGITS:
            return w * (dt_cuda_greatest(p, 0) - p * t + log1pf(expf(-fabsf(p))));
        case DT_OPX_MSE:
            return w * d * d;
        default: {
            const float size = fabsf(d);
            return w * (size <= l.delta ? 0.5f * d * d : l.delta * (size - 0.5f * l.delta));
        }
        }
    }
};

/* part [blocks] per leaf: sums over chunks of the live elements */
template <typename F> __global__ void sum_chunks(F term, dt_cuda_span rows, dt_cuda_ptr<double> part)
{
    __shared__ double shared[32];
    const int leaf = (int)blockIdx.y, extent = rows.extent(leaf);
    double sum = 0;
    for (int k = 0; k < CHUNK; k += THREADS) {
        const int i = (int)(blockIdx.x * CHUNK + k + threadIdx.x);
        sum += i < rows.R && rows.has(i, extent) ? term(leaf, i) : 0.0;
    }
    sum = dt_cuda_block_sum(sum, shared);
    if (threadIdx.x == 0) {
        part.at(leaf)[blockIdx.x] = sum;
    }
}

__global__ void sum_blocks(dt_cuda_ptr<const double> part, int n, dt_cuda_ptr<double> out)
{
    __shared__ double shared[32];
    const int leaf = (int)blockIdx.y;
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        sum += part.at(leaf)[i];
    }
    sum = dt_cuda_block_sum(sum, shared);
    if (threadIdx.x == 0) {
        *out.at(leaf) = sum;
    }
}

size_t total_scratch(const dt_device_args *a)
{
    return a->leaves * (size_t)dt_cuda_blocks(dt_cuda_count(&a->in[0]), CHUNK) * sizeof(double);
}

/* A leaf of one block needs no second sum; one of no elements gets 0 from it. */
template <typename F> dt_status total(const dt_device_args *a, F term)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 0);
    const unsigned n = dt_cuda_blocks(rows.R, CHUNK);
    const dt_cuda_ptr<double> out = dt_cuda_dst<double>(a, 0), part = {(double *)a->scratch, n};
    if (n > 0) {
        sum_chunks<<<dim3(n, a->leaves), THREADS, 0, dt_cuda_stream(a)>>>(term, rows, n == 1 ? out : part);
        DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    }
    if (n != 1) {
        const dt_cuda_ptr<const double> from = {part.data, part.stride};
        sum_blocks<<<dim3(1, a->leaves), THREADS, 0, dt_cuda_stream(a)>>>(from, (int)n, out);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status sum(const dt_device_args *a)
{
    return total(a, value_of{dt_cuda_src<float>(a, 0)});
}

template <uint32_t OP> dt_status loss_total(const dt_device_args *a)
{
    return total(a, term_of<OP>{loss_args(a, 0, OP == DT_OPX_GAUSSIAN_NLL)});
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

struct value_bwd_of {
    dt_cuda_ptr<const double> ds;
    __device__ void operator()(int leaf, int, float g[2]) const
    {
        g[0] = (float)*ds.at(leaf);
    }
};

template <uint32_t OP> struct term_bwd_of {
    loss l;
    __device__ void operator()(int leaf, int i, float g[2]) const
    {
        const float weight = l.weight.at(leaf)[i / l.P], w = weight * (float)*l.ds.at(leaf);
        if (weight == 0) {
            return;
        }
        const float p = l.pred.at(leaf)[i], t = l.target.at(leaf)[i], d = p - t;
        switch (OP) {
        case DT_OPX_GAUSSIAN_NLL: {
            const float inv = expf(-l.log_sigma.at(leaf)[i]), n = d * inv;
            g[0] = w * n * inv;
            g[1] = w * (1.0f - n * n);
            break;
        }
        case DT_OPX_BCE_LOGITS:
            g[0] = w * (dt_cuda_sigmoid(p) - t);
            break;
        case DT_OPX_MSE:
            g[0] = 2.0f * w * d;
            break;
        default:
            g[0] = w * dt_cuda_least(dt_cuda_greatest(d, -l.delta), l.delta);
            break;
        }
    }
};

/* The gradient of every element, of the prediction and of log_sigma. */
template <typename F>
__global__ void element_gradients(F gradient, dt_cuda_span rows, dt_cuda_ptr<float> first, dt_cuda_ptr<float> second)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= rows.R) {
        return;
    }
    float g[2] = {0, 0};
    if (rows.has(i, rows.extent(leaf))) {
        gradient(leaf, i, g);
    }
    if (first.data != nullptr) {
        first.at(leaf)[i] = g[0];
    }
    if (second.data != nullptr) {
        second.at(leaf)[i] = g[1];
    }
}

template <typename F> dt_status spread(const dt_device_args *a, F gradient)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->out[0], 0);
    if (rows.R == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS), a->leaves);
    element_gradients<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(gradient, rows, dt_cuda_dst<float>(a, 0),
                                                               dt_cuda_dst<float>(a, 1));
    return DT_CUDA_LAUNCHED();
}

dt_status sum_bwd(const dt_device_args *a)
{
    return spread(a, value_bwd_of{dt_cuda_src<double>(a, 0)});
}

template <uint32_t OP> dt_status loss_bwd(const dt_device_args *a)
{
    return spread(a, term_bwd_of<OP>{loss_args(a, 1, OP == DT_OPX_GAUSSIAN_NLL)});
}

} // namespace

DT_CUDA_KERNEL_WITH(SUM, sum, sum, total_scratch, nullptr, nullptr);
DT_CUDA_KERNEL(SUM_BWD, sum_bwd, sum_bwd);
DT_CUDA_KERNEL_WITH(GAUSSIAN_NLL, gaussian_nll, loss_total<DT_OPX_GAUSSIAN_NLL>, total_scratch, nullptr, nullptr);
DT_CUDA_KERNEL(GAUSSIAN_NLL_BWD, gaussian_nll_bwd, loss_bwd<DT_OPX_GAUSSIAN_NLL>);
DT_CUDA_KERNEL_WITH(BCE_LOGITS, bce_logits, loss_total<DT_OPX_BCE_LOGITS>, total_scratch, nullptr, nullptr);
DT_CUDA_KERNEL(BCE_LOGITS_BWD, bce_logits_bwd, loss_bwd<DT_OPX_BCE_LOGITS>);
DT_CUDA_KERNEL_WITH(MSE, mse, loss_total<DT_OPX_MSE>, total_scratch, nullptr, nullptr);
DT_CUDA_KERNEL(MSE_BWD, mse_bwd, loss_bwd<DT_OPX_MSE>);
DT_CUDA_KERNEL_WITH(HUBER, huber, loss_total<DT_OPX_HUBER>, total_scratch, nullptr, nullptr);
DT_CUDA_KERNEL(HUBER_BWD, huber_bwd, loss_bwd<DT_OPX_HUBER>);

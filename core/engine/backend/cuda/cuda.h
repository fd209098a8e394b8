/* SPDX-License-Identifier: Apache-2.0
 *
 * What every .cu file of this folder shares. Writing a kernel (binary.cu is the example to read):
 *
 *   1. The contract of the op is in dtrain/ops.def and engine/backend/ops.def, the plain loops in backend/ref/<file>.c,
 *   the
 *      rules of leaves, live sizes and padding in engine/device/device.h.
 *   2. Take shapes from the host's views, never from the device: `dt_cuda_rows(view, k)` describes a view as rows (all
 *      dims but the last k) and answers on the device which rows of which leaf are live.
 *   3. Grid: blockIdx.y (or z) is the leaf; element l of a view begins at data + l * leaf_stride (at<T>(view, l)).
 *   4. Write every element up to capacity: zero where the row is not live.
 *   5. Sums: f32 storage; f64 or a fixed pairwise tree where the sum runs over rows; no atomics on floats. The order
 *      may depend on capacity dims and live sizes of the leaf, never on the number of leaves or on timing.
 *   6. Return DT_CUDA_LAUNCHED(). Zero elements: return DT_OK before launching (a grid of 0 is an error in CUDA).
 *   7. DT_CUDA_KERNEL at the end of the file makes it the kernel of the op; files are listed in local.mk.
 * C++17, no exceptions, no containers; names static or in an anonymous namespace, exported ones extern "C".
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_CUDA_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_CUDA_H

#include "engine/backend/kernel.h"
#include "base/log.h"
#include "engine/device/device.h"

#include <cublasLt.h>
#include <cuda_runtime.h>

/* ---- host side --------------------------------------------------------------------------------------------------- */

extern "C" {
extern const dt_device_host *dt_cuda_host; /* set when the module is opened */
#define DT_OP(ID, number, name) extern const dt_device_kernel dt_cuda_op_##name;
#define DT_OP_VIEW(ID, number, name)
#include "engine/backend/ops.def"

/* Record a failed call with its text; out of memory becomes DT_ENOMEM. */
dt_status dt_cuda_check(cudaError_t e, const char *call, const char *file, int line);
dt_status dt_cublas_check(cublasStatus_t e, const char *call, const char *file, int line);
cublasLtHandle_t dt_cuda_blas(const dt_device *d);
/* What was found out about a device by asking it: of products (product.cu, the first of a list that it frees), of
 * clusters (lstm_cluster.cu: 0 not asked, 1 they fit, -1 they do not). */
struct dt_cuda_algorithm;
dt_cuda_algorithm **dt_cuda_algorithms(dt_device *d);
void dt_cuda_algorithms_free(dt_cuda_algorithm *first);
enum { DT_CUDA_CLUSTER_KINDS = 32 };
signed char *dt_cuda_clusters(dt_device *d);
/* Shared memory one block may opt in to, compute capability as 10 * major + minor. */
int dt_cuda_shared_max(const dt_device *d);
int dt_cuda_arch(const dt_device *d);
/* The compute capability, counted likewise, for which the code that runs there was compiled: an earlier one than the
 * device's when the driver translated PTX, and then __CUDA_ARCH__ was that. */
int dt_cuda_code(const dt_device *d);
}

#define DT_CUDA_FAIL(st, ...) dt_cuda_host->fail((st), __FILE__, __LINE__, __VA_ARGS__)
/* Return on failure: DT_CUDA(cudaMemsetAsync(...)); */
#define DT_CUDA(expr)                                                                                                  \
    do {                                                                                                               \
        cudaError_t dt_cuda_e_ = (expr);                                                                               \
        if (dt_cuda_e_ != cudaSuccess) {                                                                               \
            return dt_cuda_check(dt_cuda_e_, #expr, __FILE__, __LINE__);                                               \
        }                                                                                                              \
    } while (0)
#define DT_CUBLAS(expr)                                                                                                \
    do {                                                                                                               \
        cublasStatus_t dt_cublas_e_ = (expr);                                                                          \
        if (dt_cublas_e_ != CUBLAS_STATUS_SUCCESS) {                                                                   \
            return dt_cublas_check(dt_cublas_e_, #expr, __FILE__, __LINE__);                                           \
        }                                                                                                              \
    } while (0)
#define DT_CUDA_TRY(expr)                                                                                              \
    do {                                                                                                               \
        dt_status dt_cuda_st_ = (expr);                                                                                \
        if (dt_cuda_st_ < 0) {                                                                                         \
            return dt_cuda_st_;                                                                                        \
        }                                                                                                              \
    } while (0)
/* The kernel of an op: DT_CUDA_KERNEL(LINEAR, linear, run), outside of namespaces; one without is an undefined symbol.
 * */
#define DT_CUDA_KERNEL(ID, name, run) DT_CUDA_KERNEL_WITH(ID, name, run, nullptr, nullptr, nullptr)
#define DT_CUDA_KERNEL_WITH(ID, name, run, scratch, prepare, destroy)                                                  \
    extern "C" const dt_device_kernel dt_cuda_op_##name = {DT_OPX_##ID, 0, #name, run, scratch, prepare, destroy}
/* Status of the launch just made. */
#define DT_CUDA_LAUNCHED() dt_cuda_check(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)

static inline cudaStream_t dt_cuda_stream(const dt_device_args *a)
{
    return (cudaStream_t)(void *)a->stream;
}

static inline const dt_device_view *dt_cuda_in(const dt_device_args *a, uint32_t i)
{
    static const dt_device_view absent = {};
    return i < a->n_in ? &a->in[i] : &absent;
}

static inline const dt_device_view *dt_cuda_out(const dt_device_args *a, uint32_t i)
{
    static const dt_device_view absent = {};
    return i < a->n_out ? &a->out[i] : &absent;
}

static inline int64_t dt_cuda_count(const dt_device_view *v)
{
    int64_t n = 1;
    for (int32_t i = 0; i < v->rank; i++) {
        n *= v->dim[i];
    }
    return n;
}

static inline int64_t dt_cuda_last_dim(const dt_device_view *v)
{
    return v->dim[v->rank - 1];
}

/* ---- views on the device ----------------------------------------------------------------------------------------- */

/* A tensor as a kernel takes it by value: where leaf l begins. T is const for inputs. NULL stays NULL. */
template <typename T> struct dt_cuda_ptr {
    T *data;
    int64_t stride;
    __device__ T *at(int leaf) const
    {
        return data == nullptr ? nullptr : data + (int64_t)leaf * stride;
    }
};

template <typename T> static inline dt_cuda_ptr<const T> dt_cuda_src(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_in(a, i);
    return {(const T *)v->data, v->leaf_stride};
}

template <typename T> static inline dt_cuda_ptr<T> dt_cuda_dst(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_out(a, i);
    return {(T *)v->data, v->leaf_stride};
}

/* A view as R rows of D elements at capacity. Row r is live when (r / inner) % ragged_cap < the live size:
 * [N,D] has ragged_cap N, inner 1; [T,S,D] has ragged_cap S, inner 1; [N,F,D] has ragged_cap N, inner F. */
struct dt_cuda_span {
    const int32_t *live; /* of this symbol in leaf 0; NULL: all rows are live */
    int32_t n_symbols, plus;
    int32_t cap, inner;
    int32_t R, D;

    /* live extent of the ragged dimension, cap when there is none */
    __device__ int extent(int leaf) const
    {
        return live == nullptr ? cap : live[leaf * n_symbols] + plus;
    }
    /* is row r live, given the extent of its leaf */
    __device__ bool has(int r, int extent_of_leaf) const
    {
        return live == nullptr || r / inner % cap < extent_of_leaf;
    }
};

/* Rows of view v: all dims but the last k; D is the product of the last k (1 for k = 0). The ragged dimension must be
 * among the rows or absent. Capacities are bound by 2^31 elements per leaf (the plan refuses more). */
static inline dt_cuda_span dt_cuda_rows(const dt_device_args *a, const dt_device_view *v, int32_t k)
{
    dt_cuda_span s = {nullptr, (int32_t)a->n_symbols, 0, 1, 1, 1, 1};
    for (int32_t i = 0; i < v->rank; i++) {
        if (i < v->rank - k) {
            s.R *= (int32_t)v->dim[i];
        } else {
            s.D *= (int32_t)v->dim[i];
        }
    }
    s.cap = s.R > 0 ? s.R : 1;
    if (v->ragged >= 0 && v->ragged < v->rank - k) {
        s.live = a->live + v->symbol;
        s.plus = v->plus;
        s.cap = (int32_t)v->dim[v->ragged];
        for (int32_t i = v->ragged + 1; i < v->rank - k; i++) {
            s.inner *= (int32_t)v->dim[i];
        }
    }
    return s;
}

/* Bytes of scratch for n floats, so that what follows is aligned as well. */
static inline size_t dt_cuda_aligned_bytes(int64_t n)
{
    return ((size_t)n * sizeof(float) + 255) / 256 * 256;
}

/* Dynamic shared memory of a kernel, as many bytes as its launch asked for. */
#ifndef DT_CUDA_SHARED
#    define DT_CUDA_SHARED(T, name)                                                                                    \
        extern __shared__ __align__(128) unsigned char dt_cuda_shared_memory[];                                        \
        T *const name = reinterpret_cast<T *>(dt_cuda_shared_memory)
#endif

static inline unsigned dt_cuda_blocks(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

/* ---- functions of one element (engine/backend/ref/ref.h has the formulas)
 * ----------------------------------------------- */

__device__ static inline float dt_cuda_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* NaN when either is (engine/backend/kernel.h); fmaxf and fminf return the other one */
__device__ static inline float dt_cuda_greatest(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}

__device__ static inline float dt_cuda_least(float a, float b)
{
    return isnan(a) || a < b ? a : b;
}

__device__ static inline float dt_cuda_unary(int fn, float f0, float x)
{
    switch (fn) {
    case DT_FN_RELU:
        return x <= 0 ? 0 : x;
    case DT_FN_LEAKY:
        return x > 0 ? x : f0 * x;
    case DT_FN_ELU:
        return x > 0 ? x : f0 * expm1f(x);
    case DT_FN_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case DT_FN_TANH:
        return tanhf(x);
    case DT_FN_SIGMOID:
        return dt_cuda_sigmoid(x);
    case DT_FN_SOFTPLUS:
        return dt_cuda_greatest(x, 0) + log1pf(expf(-fabsf(x)));
    case DT_FN_EXP:
        return expf(x);
    case DT_FN_LOG:
        return logf(x);
    case DT_FN_SQRT:
        return sqrtf(x);
    case DT_FN_ABS:
        return fabsf(x);
    case DT_FN_SIN:
        return sinf(x);
    case DT_FN_COS:
        return cosf(x);
    default:
        return x;
    }
}

/* dy/dx from s: the result y, but the argument x for GELU, LOG, ABS, SIN and COS */
__device__ static inline float dt_cuda_derivative(int fn, float f0, float s)
{
    switch (fn) {
    case DT_FN_RELU:
        return s <= 0 ? 0 : 1;
    case DT_FN_LEAKY:
        return s > 0 ? 1 : f0;
    case DT_FN_ELU:
        return s > 0 ? 1 : s + f0;
    case DT_FN_GELU:
        return 0.5f * (1.0f + erff(s * 0.70710678118654752f)) + s * expf(-0.5f * s * s) * 0.39894228040143268f;
    case DT_FN_TANH:
        return 1.0f - s * s;
    case DT_FN_SIGMOID:
        return s * (1.0f - s);
    case DT_FN_SOFTPLUS:
        return -expm1f(-s);
    case DT_FN_EXP:
        return s;
    case DT_FN_LOG:
        return 1.0f / s;
    case DT_FN_SQRT:
        return 0.5f / s;
    case DT_FN_ABS:
        return s > 0 ? 1 : s < 0 ? -1 : s;
    case DT_FN_SIN:
        return cosf(s);
    case DT_FN_COS:
        return -sinf(s);
    default:
        return 1;
    }
}

/* Sums in a fixed tree: over a warp (all lanes get it), over a block of at most 1024 threads (thread 0 gets it).
 * Every thread of the block must call; shared holds 32 values. */
template <typename T> __device__ static inline T dt_cuda_warp_sum(T x)
{
    for (int half = 16; half > 0; half /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, half);
    }
    return x;
}

template <typename T> __device__ static inline T dt_cuda_block_sum(T x, T *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = (blockDim.x + 31) / 32;
    x = dt_cuda_warp_sum(x);
    if (lane == 0) {
        shared[warp] = x;
    }
    __syncthreads();
    x = warp == 0 && lane < n_warps ? shared[lane] : T(0);
    x = warp == 0 ? dt_cuda_warp_sum(x) : x;
    __syncthreads();
    return x;
}

#endif

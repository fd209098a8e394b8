/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA on a CPU, for tests: as much of the language and of the runtime as core/backend/cuda uses, so that its sources
 * run, unchanged but for the text of launches (launch.sed), where there is no GPU. Slow; made to find mistakes:
 *
 *   - threads of a block run one after the other, each until it waits; DT_EMULATE_ORDER=reverse starts from the last,
 *     so that a missing __syncthreads gives other results
 *   - shared memory is filled with 0xff (NaN) before every block
 *   - a barrier that not all threads reach, a shuffle with lanes that are not there, or with different masks: abort
 *   - launches that a GPU refuses (empty grids, too many threads, too much shared memory) are refused
 *
 * It does not find: misaligned vector loads, races between blocks, uses of memory beyond an allocation, timing.
 * Work given to a stream is done at once, or recorded while the stream is being captured. Threads: one.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_CUDA_RUNTIME_H
#define DTRAIN_TESTS_CUDA_EMULATE_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>
#include <type_traits>
#include <utility>

#define DT_CUDA_EMULATED 1
#define CUDART_VERSION   13000

/* ---- words of the language --------------------------------------------------------------------------------------- */

#define __global__
#define __device__
#define __host__
#define __constant__    static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__   static __attribute__((section("dt_shared")))

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

#define DT_VECTOR(T, name)                                                                                             \
    struct name##2                                                                                                     \
    {                                                                                                                  \
        T x, y;                                                                                                        \
    };                                                                                                                 \
    struct alignas(4 * sizeof(T)) name##4                                                                              \
    {                                                                                                                  \
        T x, y, z, w;                                                                                                  \
    };                                                                                                                 \
    static inline name##2 make_##name##2(T x, T y)                                                                     \
    {                                                                                                                  \
        return {x, y};                                                                                                 \
    }                                                                                                                  \
    static inline name##4 make_##name##4(T x, T y, T z, T w)                                                           \
    {                                                                                                                  \
        return {x, y, z, w};                                                                                           \
    }
DT_VECTOR(float, float)
DT_VECTOR(int, int)
DT_VECTOR(unsigned, uint)
#undef DT_VECTOR

template <typename A, typename B> static inline auto min(A a, B b)
{
    return a < b ? a : b;
}

template <typename A, typename B> static inline auto max(A a, B b)
{
    return a > b ? a : b;
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)(((uint64_t)a * b) >> 32);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

/* of integers only: sums of floats in any order are not allowed */
template <typename T> static inline T dt_emulate_swap(T *p, T x)
{
    static_assert(std::is_integral<T>::value, "atomics on floats give other bits every time");
    const T old = *p;
    *p = x;
    return old;
}

template <typename T> static inline T atomicAdd(T *p, T x)
{
    return dt_emulate_swap(p, (T)(*p + x));
}

template <typename T> static inline T atomicMax(T *p, T x)
{
    return dt_emulate_swap(p, max(*p, x));
}

template <typename T> static inline T atomicMin(T *p, T x)
{
    return dt_emulate_swap(p, min(*p, x));
}

template <typename T> static inline T atomicOr(T *p, T x)
{
    return dt_emulate_swap(p, (T)(*p | x));
}

template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}

using std::isfinite;
using std::isnan;

/* ---- threads of a block ------------------------------------------------------------------------------------------ */

void *dt_emulate_shared();
#define DT_CUDA_SHARED(T, name) T *const name = static_cast<T *>(dt_emulate_shared())
void __syncthreads();
int __syncthreads_or(int predicate);
void __syncwarp(unsigned mask = 0xffffffffu);
unsigned __ballot_sync(unsigned mask, int predicate);
/* value of lane `from` of this warp (modulo 32) */
void dt_emulate_shuffle(unsigned mask, const void *value, void *result, size_t bytes, int from);
int dt_emulate_lane();

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == mask;
}

template <typename T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    T result;
    const int me = dt_emulate_lane();
    dt_emulate_shuffle(mask, &value, &result, sizeof(T), me / width * width + (lane & (width - 1)));
    return result;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    T result;
    const int me = dt_emulate_lane(), from = me ^ bits;
    dt_emulate_shuffle(mask, &value, &result, sizeof(T), from / width <= me / width ? from : me);
    return result;
}

template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    T result;
    const int me = dt_emulate_lane();
    dt_emulate_shuffle(mask, &value, &result, sizeof(T), me % width + (int)delta < width ? me + (int)delta : me);
    return result;
}

template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    T result;
    const int me = dt_emulate_lane();
    dt_emulate_shuffle(mask, &value, &result, sizeof(T), me % width >= (int)delta ? me - (int)delta : me);
    return result;
}

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorStreamCaptureInvalidated = 901
};

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr {
    cudaDevAttrMaxSharedMemoryPerBlock,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrCooperativeLaunch
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
enum { cudaStreamDefault, cudaStreamNonBlocking, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

typedef struct dt_emulated_stream *cudaStream_t;
typedef struct dt_emulated_event *cudaEvent_t;
typedef struct dt_emulated_graph *cudaGraph_t;
typedef struct dt_emulated_graph *cudaGraphExec_t;
typedef struct dt_emulated_node *cudaGraphNode_t;
struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes;
};

cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *v);
cudaError_t cudaRuntimeGetVersion(int *v);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index);
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int index);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int index);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *f, const void *kernel);

template <typename F> static inline cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int bytes)
{
    return bytes <= 227 * 1024 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocHost(void **p, size_t bytes);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);
cudaError_t cudaMemset(void *p, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t s);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* What the next cudaGetLastError says. */
void dt_emulate_refuse(cudaError_t e);
/* Run now, or record when s is being captured. */
void dt_emulate_enqueue(cudaStream_t s, std::function<void()> work);
void dt_emulate_launch(const char *name, dim3 grid, dim3 block, unsigned cluster, size_t shared, cudaStream_t s,
                       std::function<void()> thread);

template <typename K> struct dt_emulate_call {
    const char *name;
    K kernel;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    template <typename... A> void operator()(A... a) const
    {
        const K k = kernel;
        dt_emulate_launch(name, grid, block, 1, shared, stream, [=] { k(a...); });
    }
};

template <typename K>
static inline dt_emulate_call<K> dt_emulate_bind(const char *name, K kernel, dim3 grid, dim3 block, size_t shared = 0,
                                                 cudaStream_t stream = nullptr)
{
    return {name, kernel, grid, block, shared, stream};
}

/* kernel<<<grid, block, shared, stream>>>(...) becomes DT_EMULATE((kernel), grid, block, shared, stream)(...) */
#define DT_EMULATE(kernel, ...)                                                                                        \
    dt_emulate_bind(                                                                                                   \
        #kernel, [=](auto... a) { kernel(a...); }, __VA_ARGS__)

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A... a)
{
    const unsigned cluster = c->numAttrs > 0 ? c->attrs[0].val.clusterDim.x : 1;
    dt_emulate_launch("of a cluster", c->gridDim, c->blockDim, cluster, c->dynamicSmemBytes, c->stream,
                      [=] { kernel(a...); });
    return cudaGetLastError();
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA on a CPU, for tests: as much of the language and of the runtime as core/engine/backend/cuda uses, so that its
 * sources run, unchanged but for the text of launches (launch.sed), where there is no GPU. Slow; made to find mistakes.
 *
 * Work (stream.cc, graph.cc) is done when a caller waits for it and not before, or long before: which stream goes on
 * next, and how far, is drawn from DT_EMULATED_SEED wherever nothing orders them. The legacy stream knows nothing of
 * non-blocking ones. Copies read and write when they are done; what a copy to the host will overwrite is garbage until
 * then. Nodes of a graph run in any order that its edges allow. cudaFree and cudaMalloc wait for nothing.
 *
 * Memory (memory.cc) is NaN before it is written and gone when it is freed. Every load and store of a kernel is
 * checked, because the compiler calls for it (-fsanitize=kernel-address): inside a block of the device's memory that is
 * still held, aligned, written before it is read; not written by one block of a launch and touched by another, but for
 * atomics. The host may not touch it: the module's code is held to that always, other code in a quarter of the seeds.
 *
 * Threads (block.cc): those of a block run one after the other, each until it waits, from the last one in half of the
 * launches, and blocks in an order that is drawn, so that a missing __syncthreads or an order of blocks gives other
 * results; DT_EMULATE_ORDER=forward or reverse decides. Shared memory is filled with 0xff (NaN) before every block. A
 * barrier that not all threads reach, a shuffle with lanes that are not there, or with different masks: the end.
 *
 * What a driver refuses is refused, by the limits of the compute capability in DT_EMULATE_ARCH (90: 9.0; else 8.0):
 * threads, shared memory, grids, clusters; a kernel with more threads than its __launch_bounds__, or than any can have
 * without (256 threads of 255 registers); code for another GPU (DT_EMULATED_CODE when the module is compiled); what
 * capture forbids.
 *
 * It does not find: races inside a block, races inside one piece of work, wrong clocks, timing. Threads: one.
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

static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, sizeof(u));
    return u;
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

/* A kernel begins with this call (launch.sed): may it go on? Not when the launch only asks for its bounds. */
bool dt_emulate_enter(unsigned max_threads, const char *name);
/* A thread may read and write p, as others do in any order. */
void dt_emulate_atomic(void *p, size_t bytes);
#define DT_EMULATE_UNCHECKED __attribute__((no_sanitize_address, noinline))

/* of integers only: sums of floats in any order are not allowed */
template <typename T> DT_EMULATE_UNCHECKED static T dt_emulate_swap(T *p, T x)
{
    static_assert(std::is_integral<T>::value, "atomics on floats give other bits every time");
    const T old = *p;
    *p = x;
    return old;
}

template <typename T> DT_EMULATE_UNCHECKED static T dt_emulate_peek(T *p)
{
    dt_emulate_atomic(p, sizeof(T));
    return *p;
}

template <typename T> static inline T atomicAdd(T *p, T x)
{
    return dt_emulate_swap(p, (T)(dt_emulate_peek(p) + x));
}

template <typename T> static inline T atomicMax(T *p, T x)
{
    return dt_emulate_swap(p, max(dt_emulate_peek(p), x));
}

template <typename T> static inline T atomicMin(T *p, T x)
{
    return dt_emulate_swap(p, min(dt_emulate_peek(p), x));
}

template <typename T> static inline T atomicOr(T *p, T x)
{
    return dt_emulate_swap(p, (T)(dt_emulate_peek(p) | x));
}

[[noreturn]] void __trap();

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

#define DT_EMULATED_ERRORS(E)                                                                                          \
    E(cudaSuccess, 0, "no error")                                                                                      \
    E(cudaErrorInvalidValue, 1, "invalid argument")                                                                    \
    E(cudaErrorMemoryAllocation, 2, "out of memory")                                                                   \
    E(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                              \
    E(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")                 \
    E(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                                   \
    E(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                    \
    E(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                           \
    E(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device")                \
    E(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                                  \
    E(cudaErrorNotReady, 600, "device not ready")                                                                      \
    E(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                        \
    E(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                                   \
    E(cudaErrorNotSupported, 801, "operation not supported")                                                           \
    E(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                      \
    E(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")               \
    E(cudaErrorStreamCaptureMerge, 902, "merge of two captures")                                                       \
    E(cudaErrorStreamCaptureUnmatched, 903, "capture was not initiated in this stream")                                \
    E(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                       \
    E(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")                 \
    E(cudaErrorStreamCaptureImplicit, 906, "operation would make the legacy stream depend on a capturing stream")      \
    E(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream")          \
    E(cudaErrorInvalidClusterSize, 912, "invalid cluster size")

enum cudaError_t {
#define DT_EMULATED_ERROR(name, number, text) name = number,
    DT_EMULATED_ERRORS(DT_EMULATED_ERROR)
#undef DT_EMULATED_ERROR
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
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum { cudaStreamDefault, cudaStreamNonBlocking, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaEventRecordDefault, cudaEventRecordExternal };

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
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion;
};

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *v);
cudaError_t cudaRuntimeGetVersion(int *v);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index);
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int index);
cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int to);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int index);
cudaError_t cudaSetDevice(int index);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *f, const void *kernel);

cudaError_t dt_emulate_allow_shared(const void *kernel, int bytes);
template <typename F> static inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute, int bytes)
{
    return dt_emulate_allow_shared((const void *)kernel, bytes);
}

/* How many clusters of a kernel go at once. DT_EMULATED_CLUSTERS: this many (1), or "error". */
cudaError_t dt_emulate_active_clusters(const void *kernel, unsigned cluster, size_t shared, int *n);

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
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* cluster 0: not asked for */
cudaError_t dt_emulate_launch(const void *kernel, dim3 grid, dim3 block, unsigned cluster, size_t shared,
                              cudaStream_t s, std::function<void()> thread);

template <typename K> struct dt_emulate_call {
    K kernel;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    template <typename... A> void operator()(A... a) const
    {
        const K k = kernel;
        (void)dt_emulate_launch(
            nullptr, grid, block, 0, shared, stream, [=]() __attribute__((no_sanitize_address)) { k(a...); });
    }
};

template <typename K>
static inline dt_emulate_call<K> dt_emulate_bind(K kernel, dim3 grid, dim3 block, size_t shared = 0,
                                                 cudaStream_t stream = nullptr)
{
    return {kernel, grid, block, shared, stream};
}

/* kernel<<<grid, block, shared, stream>>>(...) becomes DT_EMULATE((kernel), grid, block, shared, stream)(...) */
#define DT_EMULATE(kernel, ...) dt_emulate_bind([=](auto... a) { kernel(a...); }, __VA_ARGS__)

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

template <typename F>
static inline cudaError_t cudaOccupancyMaxActiveClusters(int *n, F *kernel, const cudaLaunchConfig_t *c)
{
    return dt_emulate_active_clusters((const void *)kernel, c->numAttrs > 0 ? c->attrs[0].val.clusterDim.x : 1,
                                      c->dynamicSmemBytes, n);
}

template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A... a)
{
    const unsigned cluster = c->numAttrs > 0 ? c->attrs[0].val.clusterDim.x : 0;
    return dt_emulate_launch((const void *)kernel, c->gridDim, c->blockDim, cluster, c->dynamicSmemBytes,
                             c->stream, [=]() __attribute__((no_sanitize_address)) { kernel(a...); });
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA runtime on a CPU: one device whose memory is the heap. See cuda_runtime.h.
 */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

struct dt_emulated_stream {
    dt_emulated_graph *capturing;
};

struct dt_emulated_graph {
    std::vector<std::function<void()>> nodes;
};

struct dt_emulated_event {
    double ms;
};

static cudaError_t last_error;

void dt_emulate_refuse(cudaError_t e)
{
    last_error = e;
}

void dt_emulate_enqueue(cudaStream_t s, std::function<void()> work)
{
    if (s != nullptr && s->capturing != nullptr) {
        s->capturing->nodes.push_back(work);
    } else {
        work();
    }
}

cudaError_t cudaGetLastError()
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation       ? "out of memory"
           : e == cudaErrorInvalidConfiguration ? "invalid configuration argument"
                                                : "invalid argument";
}

const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation       ? "cudaErrorMemoryAllocation"
           : e == cudaErrorInvalidConfiguration ? "cudaErrorInvalidConfiguration"
                                                : "cudaErrorInvalidValue";
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *v)
{
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = {};
    snprintf(p->name, sizeof(p->name), "emulated GPU");
    memcpy(p->uuid.bytes, "emulated GPU 001", sizeof(p->uuid.bytes));
    p->totalGlobalMem = (size_t)1 << 30;
    const char *arch = getenv("DT_EMULATE_ARCH"); /* 90: compute capability 9.0 */
    p->major = arch != nullptr ? atoi(arch) / 10 : 8;
    p->minor = arch != nullptr ? atoi(arch) % 10 : 0;
    p->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int)
{
    snprintf(text, (size_t)bytes, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int)
{
    *value = a == cudaDevAttrMaxSharedMemoryPerBlock            ? 48 * 1024
             : a == cudaDevAttrMaxSharedMemoryPerBlockOptin     ? 227 * 1024
             : a == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? 228 * 1024
             : a == cudaDevAttrMultiProcessorCount              ? 4
                                                                : 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    return index == 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *f, const void *)
{
    *f = {};
    return cudaSuccess;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t in_use;

/* the size stands in the 256 bytes before what is handed out */
cudaError_t cudaMalloc(void **p, size_t bytes)
{
    char *whole = (char *)aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (whole == nullptr) {
        return cudaErrorMemoryAllocation;
    }
    memcpy(whole, &bytes, sizeof(bytes));
    memset(whole + 256, 0xff, bytes);
    in_use += bytes;
    *p = whole + 256;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (p != nullptr) {
        size_t bytes;
        memcpy(&bytes, (char *)p - 256, sizeof(bytes));
        in_use -= bytes;
        free((char *)p - 256);
    }
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *p != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *total = (size_t)1 << 30;
    *left = *total > in_use ? *total - in_use : 0;
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    memset(p, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    dt_emulate_enqueue(s, [=] { memset(p, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t s)
{
    if (width > pitch) {
        return cudaErrorInvalidValue;
    }
    dt_emulate_enqueue(s, [=] {
        for (size_t i = 0; i < height; i++) {
            memset((char *)p + i * pitch, value, width);
        }
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s)
{
    dt_emulate_enqueue(s, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

/* ---- streams, events, graphs ------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = new dt_emulated_stream{nullptr};
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    delete s;
    return cudaSuccess;
}

/* waiting while capturing is a mistake that a GPU answers with this error */
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return s != nullptr && s->capturing != nullptr ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    if (s == nullptr || s->capturing != nullptr) {
        return cudaErrorInvalidValue;
    }
    s->capturing = new dt_emulated_graph;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    if (s == nullptr || s->capturing == nullptr) {
        return cudaErrorInvalidValue;
    }
    *g = s->capturing;
    s->capturing = nullptr;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = new dt_emulated_event{0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    dt_emulate_enqueue(s, [=] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        e->ms = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
    });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)(to->ms - from->ms);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *, size_t *n)
{
    *n = g->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long)
{
    *exec = new dt_emulated_graph(*g);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    for (const std::function<void()> &node : exec->nodes) {
        node();
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA implementation of engine/device/device.h: discovery, memory, streams, events, graphs, and the messages for
 * what fails. CUDA_VISIBLE_DEVICES is respected by the runtime itself: an index counts the devices that it leaves
 * visible.
 */
#include "engine/backend/cuda/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const dt_device_host *dt_cuda_host;

struct dt_device {
    dt_device_info about;
    cublasLtHandle_t blas;
    int shared_max;
    dt_cuda_algorithm *verdicts;
    signed char clusters[DT_CUDA_CLUSTER_KINDS];
};

struct dt_device_graph {
    cudaGraphExec_t exec;
    size_t n_nodes;
};

namespace
{
cudaStream_t stream_of(dt_device_stream *s)
{
    return (cudaStream_t)(void *)s;
}

cudaEvent_t event_of(dt_device_event *e)
{
    return (cudaEvent_t)(void *)e;
}

/* "cudaMalloc(&p, bytes)" without what is in brackets: that is for readers of the source */
int call_name_bytes(const char *call)
{
    return (int)strcspn(call, "(");
}

} // namespace

/* ---- errors ------------------------------------------------------------------------------------------------------ */

dt_status dt_cuda_check(cudaError_t e, const char *call, const char *file, int line)
{
    if (e == cudaSuccess) {
        return DT_OK;
    }
    const dt_status st = e == cudaErrorMemoryAllocation ? DT_ENOMEM : DT_ECUDA;
    (void)cudaGetLastError(); /* reported here; the next launch queries its own */
    return dt_cuda_host->fail(st, file, line, "%.*s failed: %s (%s)", call_name_bytes(call), call,
                              cudaGetErrorString(e), cudaGetErrorName(e));
}

dt_status dt_cublas_check(cublasStatus_t e, const char *call, const char *file, int line)
{
    if (e == CUBLAS_STATUS_SUCCESS) {
        return DT_OK;
    }
    const dt_status st = e == CUBLAS_STATUS_ALLOC_FAILED ? DT_ENOMEM : DT_ECUDA;
    return dt_cuda_host->fail(st, file, line, "%.*s failed: %s", call_name_bytes(call), call,
                              cublasLtGetStatusString(e));
}

/* ---- questions of kernels ---------------------------------------------------------------------------------------- */

cublasLtHandle_t dt_cuda_blas(const dt_device *d)
{
    return d->blas;
}

dt_cuda_algorithm **dt_cuda_algorithms(dt_device *d)
{
    return &d->verdicts;
}

signed char *dt_cuda_clusters(dt_device *d)
{
    return d->clusters;
}

int dt_cuda_shared_max(const dt_device *d)
{
    return d->shared_max;
}

int dt_cuda_arch(const dt_device *d)
{
    return (int)(10 * d->about.major + d->about.minor);
}

int dt_cuda_code(const dt_device *d)
{
    return (int)d->about.code;
}

namespace
{
/* ---- discovery --------------------------------------------------------------------------------------------------- */

dt_status count_devices(uint32_t *n_p)
{
    int n = 0, driver = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaSuccess && n > 0) {
        *n_p = (uint32_t)n;
        return DT_OK;
    }
    (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&driver);
    if (driver == 0) {
        return DT_CUDA_FAIL(DT_EUNSUPPORTED,
                            "no NVIDIA driver responds on this machine; install one (nvidia-smi must list the GPU; in "
                            "a container start it with --gpus all), or use --device cpu");
    }
    if (e == cudaErrorInsufficientDriver) {
        return DT_CUDA_FAIL(
            DT_EUNSUPPORTED,
            "the NVIDIA driver serves CUDA %d.%d, this build requires %d.%d; update the driver, or use --device cpu",
            driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    }
    if (e == cudaSuccess || e == cudaErrorNoDevice) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        return DT_CUDA_FAIL(DT_EUNSUPPORTED,
                            "the NVIDIA driver shows no GPU to this process (CUDA_VISIBLE_DEVICES is %s%s%s); unset or "
                            "correct it, or use --device cpu",
                            visible != NULL ? "\"" : "", visible != NULL ? visible : "not set",
                            visible != NULL ? "\"" : "");
    }
    return dt_cuda_check(e, "cudaGetDeviceCount", __FILE__, __LINE__);
}

void uuid_text(const cudaUUID_t *u, char *text, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)u->bytes;
    snprintf(text, bytes, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
             b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

dt_status describe_device(uint32_t index, dt_device_info *out_p)
{
    cudaDeviceProp p;
    DT_CUDA(cudaGetDeviceProperties(&p, (int)index));
    dt_device_info about = {};
    about.index = index;
    about.major = (uint32_t)p.major;
    about.minor = (uint32_t)p.minor;
    about.n_units = (uint32_t)p.multiProcessorCount;
    about.total_bytes = p.totalGlobalMem;
    snprintf(about.name, sizeof(about.name), "%.*s", (int)sizeof(about.name) - 1, p.name);
    uuid_text(&p.uuid, about.uuid, sizeof(about.uuid));
    DT_CUDA(cudaDeviceGetPCIBusId(about.bus, (int)sizeof(about.bus), (int)index));
    *out_p = about;
    return DT_OK;
}

void read_versions(dt_device_versions *out_p)
{
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaGetLastError();
    *out_p = {};
    out_p->driver = (uint32_t)driver;
    out_p->runtime = (uint32_t)runtime;
    out_p->built_for = CUDART_VERSION;
    out_p->blas = (uint32_t)cublasLtGetVersion();
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void close_device(dt_device *d)
{
    if (d != NULL) {
        if (d->blas != NULL) {
            (void)cublasLtDestroy(d->blas);
        }
        dt_cuda_algorithms_free(d->verdicts);
        free(d);
    }
}

/* Does this build hold code for the device, or PTX that the driver can translate? */
dt_status check_device_code(const dt_device_info *about, uint32_t *code_p)
{
    cudaFuncAttributes f = {};
    const cudaError_t e = dt_cuda_probe(&f);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorInvalidDeviceFunction) {
        (void)cudaGetLastError();
        return DT_CUDA_FAIL(DT_EUNSUPPORTED,
                            "%s has compute capability %u.%u, for which this build contains no code; build with "
                            "--with-nvcc-gencode=-gencode=arch=compute_%u%u,code=sm_%u%u, or use --device cpu",
                            about->name, about->major, about->minor, about->major, about->minor, about->major,
                            about->minor);
    }
    DT_CUDA_TRY(dt_cuda_check(e, "cudaFuncGetAttributes", __FILE__, __LINE__));
    *code_p = (uint32_t)f.ptxVersion;
    return DT_OK;
}

dt_status start_device(dt_device *d, uint32_t index)
{
    DT_CUDA_TRY(describe_device(index, &d->about));
    DT_CUDA(cudaSetDevice((int)index));
    DT_CUDA(cudaFree(NULL)); /* creates the context */
    DT_CUDA(cudaDeviceGetAttribute(&d->shared_max, cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)index));
    DT_CUDA_TRY(check_device_code(&d->about, &d->about.code));
    DT_CUBLAS(cublasLtCreate(&d->blas));
    return DT_OK;
}

dt_status open_device(uint32_t index, dt_device **out_p)
{
    uint32_t n = 0;
    DT_CUDA_TRY(count_devices(&n));
    if (index >= n) {
        return DT_CUDA_FAIL(DT_EUNSUPPORTED, "there is no GPU %u: this process sees %u, numbered from 0", index, n);
    }
    dt_device *d = (dt_device *)calloc(1, sizeof(*d));
    if (d == NULL) {
        return DT_CUDA_FAIL(DT_ENOMEM, "out of memory for a device");
    }
    const dt_status st = start_device(d, index);
    if (st < 0) {
        close_device(d);
        return st;
    }
    *out_p = d;
    return DT_OK;
}

const dt_device_info *info(const dt_device *d)
{
    return &d->about;
}

dt_status read_memory(dt_device *d, uint64_t *free_p, uint64_t *total_p)
{
    size_t left = 0, total = 0;
    DT_CUDA(cudaMemGetInfo(&left, &total));
    *free_p = left;
    *total_p = total;
    return DT_OK;
}

dt_status check_peer_access(uint32_t from, uint32_t to, uint32_t *can_p)
{
    int can = 0;
    DT_CUDA(cudaDeviceCanAccessPeer(&can, (int)from, (int)to));
    *can_p = can != 0 ? 1 : 0;
    return DT_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* cudaMemset returns before it is done, and our streams do not wait for the one that it is done in. */
dt_status zero_and_wait(void *p, size_t bytes)
{
    DT_CUDA(cudaMemset(p, 0, bytes));
    DT_CUDA(cudaStreamSynchronize(NULL));
    return DT_OK;
}

dt_status allocate_memory(dt_device *d, size_t bytes, void **device_p)
{
    void *p = NULL;
    const cudaError_t e = cudaMalloc(&p, bytes > 0 ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        size_t left = 0, total = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&left, &total);
        return DT_CUDA_FAIL(DT_ENOMEM, "%s cannot allocate %.1f MiB more: %.1f of %.1f MiB are free", d->about.name,
                            (double)bytes / 1048576.0, (double)left / 1048576.0, (double)total / 1048576.0);
    }
    DT_CUDA_TRY(dt_cuda_check(e, "cudaMalloc", __FILE__, __LINE__));
    const dt_status st = zero_and_wait(p, bytes > 0 ? bytes : 1);
    if (st < 0) {
        (void)cudaFree(p);
        return st;
    }
    *device_p = p;
    return DT_OK;
}

void release_memory(dt_device *d, void *device)
{
    (void)cudaFree(device);
}

dt_status allocate_pinned(dt_device *d, size_t bytes, void **host_p)
{
    void *p = NULL;
    DT_CUDA(cudaMallocHost(&p, bytes > 0 ? bytes : 1));
    memset(p, 0, bytes > 0 ? bytes : 1);
    *host_p = p;
    return DT_OK;
}

void release_pinned(dt_device *d, void *host)
{
    (void)cudaFreeHost(host);
}

dt_status copy(dt_device *d, void *to, const void *from, size_t bytes, uint32_t direction, dt_device_stream *s)
{
    const cudaMemcpyKind kind = direction == DT_DEVICE_TO_DEVICE ? cudaMemcpyHostToDevice
                                : direction == DT_DEVICE_TO_HOST ? cudaMemcpyDeviceToHost
                                                                 : cudaMemcpyDeviceToDevice;
    DT_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_of(s)));
    return DT_OK;
}

dt_status zero(dt_device *d, void *device, size_t bytes, dt_device_stream *s)
{
    DT_CUDA(cudaMemsetAsync(device, 0, bytes, stream_of(s)));
    return DT_OK;
}

/* ---- streams and events ------------------------------------------------------------------------------------------ */

dt_status stream_create(dt_device *d, dt_device_stream **out_p)
{
    cudaStream_t s = NULL;
    DT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    *out_p = (dt_device_stream *)(void *)s;
    return DT_OK;
}

void stream_destroy(dt_device *d, dt_device_stream *s)
{
    if (s != NULL) {
        (void)cudaStreamDestroy(stream_of(s));
    }
}

dt_status stream_sync(dt_device *d, dt_device_stream *s)
{
    DT_CUDA(cudaStreamSynchronize(stream_of(s)));
    return DT_OK;
}

dt_status event_create(dt_device *d, uint32_t timed, dt_device_event **out_p)
{
    cudaEvent_t e = NULL;
    DT_CUDA(cudaEventCreateWithFlags(&e, timed != 0 ? cudaEventDefault : cudaEventDisableTiming));
    *out_p = (dt_device_event *)(void *)e;
    return DT_OK;
}

void event_destroy(dt_device *d, dt_device_event *e)
{
    if (e != NULL) {
        (void)cudaEventDestroy(event_of(e));
    }
}

/* Without cudaEventRecordExternal an event that is recorded during capture is an edge of that graph, and waiting for it
 * outside is cudaErrorCapturedEvent; with it and no capture the call is invalid. */
dt_status event_record(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    DT_CUDA(cudaStreamIsCapturing(stream_of(s), &status));
    if (status == cudaStreamCaptureStatusNone) {
        DT_CUDA(cudaEventRecord(event_of(e), stream_of(s)));
    } else {
        DT_CUDA(cudaEventRecordWithFlags(event_of(e), stream_of(s), cudaEventRecordExternal));
    }
    return DT_OK;
}

dt_status event_wait(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    DT_CUDA(cudaStreamWaitEvent(stream_of(s), event_of(e), 0));
    return DT_OK;
}

dt_status event_sync(dt_device *d, dt_device_event *e)
{
    DT_CUDA(cudaEventSynchronize(event_of(e)));
    return DT_OK;
}

dt_status event_query(dt_device *d, dt_device_event *e, bool *is_done_p)
{
    const cudaError_t asked = cudaEventQuery(event_of(e));
    *is_done_p = asked == cudaSuccess;
    return asked == cudaErrorNotReady ? DT_OK : dt_cuda_check(asked, "cudaEventQuery", __FILE__, __LINE__);
}

dt_status event_ms(dt_device *d, dt_device_event *from, dt_device_event *to, float *ms_p)
{
    DT_CUDA(cudaEventElapsedTime(ms_p, event_of(from), event_of(to)));
    return DT_OK;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

dt_status capture_begin(dt_device *d, dt_device_stream *s)
{
    DT_CUDA(cudaStreamBeginCapture(stream_of(s), cudaStreamCaptureModeThreadLocal));
    return DT_OK;
}

dt_status instantiate_graph(cudaGraph_t graph, dt_device_graph *g)
{
    DT_CUDA(cudaGraphGetNodes(graph, NULL, &g->n_nodes));
    DT_CUDA(cudaGraphInstantiateWithFlags(&g->exec, graph, 0));
    return DT_OK;
}

dt_status capture_end(dt_device *d, dt_device_stream *s, dt_device_graph **out_p)
{
    cudaGraph_t graph = NULL;
    DT_CUDA(cudaStreamEndCapture(stream_of(s), &graph));
    dt_device_graph *g = (dt_device_graph *)calloc(1, sizeof(*g));
    const dt_status st =
        g == NULL ? DT_CUDA_FAIL(DT_ENOMEM, "out of memory for a captured graph") : instantiate_graph(graph, g);
    (void)cudaGraphDestroy(graph);
    if (st < 0) {
        free(g);
        return st;
    }
    *out_p = g;
    return DT_OK;
}

void graph_destroy(dt_device *d, dt_device_graph *g)
{
    if (g != NULL) {
        (void)cudaGraphExecDestroy(g->exec);
        free(g);
    }
}

dt_status graph_launch(dt_device *d, dt_device_graph *g, dt_device_stream *s)
{
    DT_CUDA(cudaGraphLaunch(g->exec, stream_of(s)));
    return DT_OK;
}

uint32_t graph_nodes(const dt_device_graph *g)
{
    return (uint32_t)g->n_nodes;
}

} // namespace

/* ---- the module -------------------------------------------------------------------------------------------------- */

extern "C" DT_EXPORT const dt_device_ops *dt_device_module(const dt_device_host *host)
{
    static dt_device_ops ops;
    dt_cuda_host = host;
    ops.struct_size = sizeof(ops);
    ops.version = DT_DEVICE_VERSION;
    ops.name = "cuda";
    ops.count = count_devices;
    ops.describe = describe_device;
    ops.versions = read_versions;
    ops.open = open_device;
    ops.close = close_device;
    ops.info = info;
    ops.memory = read_memory;
    ops.peer = check_peer_access;
    ops.alloc = allocate_memory;
    ops.release = release_memory;
    ops.pin = allocate_pinned;
    ops.unpin = release_pinned;
    ops.stream_create = stream_create;
    ops.stream_destroy = stream_destroy;
    ops.stream_sync = stream_sync;
    ops.event_create = event_create;
    ops.event_destroy = event_destroy;
    ops.event_record = event_record;
    ops.event_wait = event_wait;
    ops.event_sync = event_sync;
    ops.event_query = event_query;
    ops.event_ms = event_ms;
    ops.copy = copy;
    ops.zero = zero;
    ops.capture_begin = capture_begin;
    ops.capture_end = capture_end;
    ops.graph_destroy = graph_destroy;
    ops.graph_launch = graph_launch;
    ops.graph_nodes = graph_nodes;
    ops.kernel = dt_cuda_kernel;
    ops.narrow = dt_cuda_narrow_all;
    ops.begin = dt_cuda_begin;
    ops.sum = dt_cuda_sum;
    ops.measure = dt_cuda_measure;
    ops.apply = dt_cuda_apply;
    ops.add = dt_cuda_add;
    ops.blend = dt_cuda_blend;
    return &ops;
}

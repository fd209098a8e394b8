/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulated GPU (emulate/cuda_runtime.h) finds what it says it finds: each mistake below is made by a child process
 * and must end it with its words, each refusal must come with its error, and where nothing orders two pieces of work,
 * some seeds must do one first and some the other. Run by emulator.sh.
 */
#include "cublasLt.h"
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

int n_failed;

void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("not so: %s\n", what);
        n_failed++;
    }
}

#define REFUSED(expr, error) expect((expr) == (error), #expr " is " #error)
#define DONE(expr)           REFUSED(expr, cudaSuccess)

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

struct alignas(16) four {
    float x[4];
};

__global__ void store(float *p, int at, float x)
{
    p[at] = x;
}

__global__ void load(const float *p, int at, float *to)
{
    *to = p[at];
}

__global__ void load_four(const float *p, int at, float *to)
{
    *(four *)to = *(const four *)(p + at);
}

__global__ void same_word(int *p)
{
    *p = (int)blockIdx.x;
}

__global__ void add_up(int *p)
{
    atomicAdd(p, 1);
}

__global__ void parted()
{
    if (threadIdx.x == 0) {
        __syncwarp(0xffffffffu);
    } else {
        __syncthreads();
    }
}

__global__ void lanes_missing()
{
    (void)__shfl_xor_sync(0xffffffffu, 1, 16);
}

__global__ void usual()
{
    (void)threadIdx;
}

__global__ void __launch_bounds__(512) bounded()
{
    (void)threadIdx;
}

/* ---- what ends a program ----------------------------------------------------------------------------------------- */

cudaStream_t stream;
float *words; /* 8 of them */

void begin()
{
    DONE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DONE(cudaMalloc((void **)&words, 8 * sizeof(float)));
    DONE(cudaMemsetAsync(words, 0, 8 * sizeof(float), stream));
}

void finish()
{
    (void)cudaStreamSynchronize(stream);
}

void store_beyond()
{
    store<<<1, 1, 0, stream>>>(words, 8, 1.0f);
    finish();
}

void load_before()
{
    load<<<1, 1, 0, stream>>>(words, -1, words);
    finish();
}

void load_freed()
{
    finish();
    DONE(cudaFree(words));
    load<<<1, 1, 0, stream>>>(words, 0, words);
    finish();
}

void free_too_early()
{
    finish();
    store<<<1, 1, 0, stream>>>(words, 0, 1.0f);
    DONE(cudaFree(words));
    finish();
}

void load_unwritten()
{
    float *fresh = nullptr;
    DONE(cudaMalloc((void **)&fresh, 64));
    load<<<1, 1, 0, stream>>>(fresh, 3, words);
    finish();
}

void load_misaligned()
{
    load_four<<<1, 1, 0, stream>>>(words, 1, words);
    finish();
}

void load_host()
{
    static float *here = (float *)calloc(4, sizeof(float));
    load<<<1, 1, 0, stream>>>(here, 0, words);
    finish();
}

void host_loads()
{
    finish();
    printf("%f\n", (double)words[0]);
}

void blocks_race()
{
    same_word<<<2, 1, 0, stream>>>((int *)words);
    finish();
}

void parted_threads()
{
    parted<<<1, 64, 0, stream>>>();
    finish();
}

void warp_of_half()
{
    lanes_missing<<<1, 16, 0, stream>>>();
    finish();
}

void unpinned_too_early()
{
    float *here = nullptr;
    DONE(cudaMallocHost((void **)&here, 32));
    DONE(cudaMemcpyAsync(words, here, 32, cudaMemcpyHostToDevice, stream));
    DONE(cudaFreeHost(here));
    finish();
}

void stream_destroyed()
{
    DONE(cudaStreamDestroy(stream));
    finish();
}

/* Runs in a child; its words on stderr go to `said`. Returns its exit status, -1: ended by a signal. */
int in_child(const char *seed, int (*run)(), char *said, size_t bytes)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return -2;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        alarm(60);
        setenv("DT_EMULATED_SEED", seed, 1);
        _exit(run());
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n + 1 < bytes; n += (size_t)got) {
        got = read(ends[0], said + n, bytes - 1 - n);
        got = got > 0 ? got : 0;
    }
    said[n] = '\0';
    close(ends[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void (*mistake)();

int make_mistake()
{
    begin();
    mistake();
    return 0;
}

void test_mistakes()
{
    const struct {
        void (*make)();
        const char *words;
    } rows[] = {
        {store_beyond, "kernel store, block (0,0,0), thread 0: writes 4 bytes at"},
        {load_before, "kernel load, block (0,0,0), thread 0: reads 4 bytes at"},
        {load_freed, "beyond what is held there"},
        {free_too_early, "beyond what is held there"},
        {load_unwritten, "which nobody wrote"},
        {load_misaligned, "is not aligned for its type"},
        {load_host, "reads host memory"},
        {host_loads, "the host reads the device's memory"},
        {blocks_race, "of the same launch writes"},
        {parted_threads, "all threads wait and none can go on"},
        {warp_of_half, "a warp operation with a lane that is not there"},
        {unpinned_too_early, "was freed before it was copied"},
        {stream_destroyed, "a stream is used that was destroyed"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char said[4096];
        mistake = rows[i].make;
        const int status = in_child("3", make_mistake, said, sizeof(said));
        const bool is_reported =
            strstr(said, rows[i].words) != nullptr && strstr(said, "DT_EMULATED_SEED 3") != nullptr;
        if (status != -1 || !is_reported) {
            printf("mistake %zu: status %d, wanted \"%s\", got: %s\n", i, status, rows[i].words, said);
            n_failed++;
        }
    }
}

/* ---- what nothing orders ----------------------------------------------------------------------------------------- */

float host_word;

int word_of(float *p)
{
    DONE(cudaDeviceSynchronize());
    DONE(cudaMemcpyAsync(&host_word, p, sizeof(float), cudaMemcpyDeviceToHost, stream));
    finish();
    return (int)host_word;
}

/* zeros of the legacy stream and a store of a stream that does not wait for it */
int legacy_and_non_blocking()
{
    float *fresh = nullptr;
    begin();
    DONE(cudaMalloc((void **)&fresh, 64));
    DONE(cudaMemset(fresh, 0, 64));
    store<<<1, 1, 0, stream>>>(fresh, 0, 1.0f);
    return word_of(fresh);
}

/* the same, but the stream waits for the legacy one: always 1 */
int legacy_and_blocking()
{
    float *fresh = nullptr;
    begin();
    finish();
    DONE(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
    DONE(cudaMalloc((void **)&fresh, 64));
    DONE(cudaMemset(fresh, 0, 64));
    store<<<1, 1, 0, stream>>>(fresh, 0, 1.0f);
    return word_of(fresh);
}

int copy_of_what_changes()
{
    static float here;
    begin();
    here = 0;
    DONE(cudaMemcpyAsync(words, &here, sizeof(here), cudaMemcpyHostToDevice, stream));
    here = 1;
    return word_of(words);
}

int two_streams(bool is_ordered)
{
    cudaStream_t other;
    cudaEvent_t event;
    begin();
    finish();
    DONE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    DONE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    store<<<1, 1, 0, stream>>>(words, 0, 0.0f);
    DONE(cudaEventRecord(event, stream));
    if (is_ordered) {
        DONE(cudaStreamWaitEvent(other, event, 0));
    }
    store<<<1, 1, 0, other>>>(words, 0, 1.0f);
    return word_of(words);
}

int streams_without_event()
{
    return two_streams(false);
}

int streams_with_event()
{
    return two_streams(true);
}

/* two branches of a graph, which both write */
int branches_of_a_graph()
{
    cudaStream_t other;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin();
    DONE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    DONE(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    DONE(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    DONE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    DONE(cudaEventRecord(fork, stream));
    DONE(cudaStreamWaitEvent(other, fork, 0));
    store<<<1, 1, 0, stream>>>(words, 0, 0.0f);
    store<<<1, 1, 0, other>>>(words, 0, 1.0f);
    DONE(cudaEventRecord(join, other));
    DONE(cudaStreamWaitEvent(stream, join, 0));
    DONE(cudaStreamEndCapture(stream, &graph));
    DONE(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    DONE(cudaGraphLaunch(exec, stream));
    return word_of(words);
}

/* A graph writes 0, an event that each launch records, and 1 in another stream that waits for it: twice, so that the
 * second wait is not for the first launch. */
int event_in_a_graph(bool is_waited_for)
{
    cudaStream_t other;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin();
    finish();
    DONE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    DONE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DONE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    store<<<1, 1, 0, stream>>>(words, 0, 0.0f);
    DONE(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    DONE(cudaStreamEndCapture(stream, &graph));
    DONE(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        DONE(cudaGraphLaunch(exec, stream));
        if (is_waited_for || i == 0) {
            DONE(cudaStreamWaitEvent(other, event, 0));
        }
        store<<<1, 1, 0, other>>>(words, 0, 1.0f);
    }
    return word_of(words);
}

int launch_after_its_event()
{
    return event_in_a_graph(true);
}

int launch_after_an_earlier_event()
{
    return event_in_a_graph(false);
}

/* a result that is read without waiting; 2: garbage */
int result_too_early()
{
    static float here;
    begin();
    here = 0;
    store<<<1, 1, 0, stream>>>(words, 0, 1.0f);
    DONE(cudaMemcpyAsync(&here, words, sizeof(here), cudaMemcpyDeviceToHost, stream));
    return here != here ? 2 : (int)here;
}

enum { SEEDS = 64 };

/* Which of the outcomes 0, 1 and 2 did some seed bring? As bits. */
int outcomes(int (*run)())
{
    int seen = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        char text[32], said[4096];
        snprintf(text, sizeof(text), "%d", seed);
        const int status = in_child(text, run, said, sizeof(said));
        if (status < 0 || status > 2) {
            printf("seed %d: status %d: %s\n", seed, status, said);
            return 8;
        }
        seen |= 1 << status;
    }
    return seen;
}

void test_orders()
{
    expect(outcomes(legacy_and_non_blocking) == 3, "the legacy stream has no order with a non-blocking one");
    expect(outcomes(legacy_and_blocking) == 2, "the legacy stream has one with a blocking one");
    expect(outcomes(copy_of_what_changes) == 3, "a copy reads when it is asked for, or when it is done");
    expect(outcomes(streams_without_event) == 3, "two streams have no order");
    expect(outcomes(streams_with_event) == 2, "an event orders them");
    expect(outcomes(branches_of_a_graph) == 3, "nor have two branches of a graph");
    expect(outcomes(launch_after_its_event) == 2, "an event in a graph is recorded by each launch");
    expect(outcomes(launch_after_an_earlier_event) == 3, "who waited for an earlier launch has no order with this one");
    expect(outcomes(result_too_early) == 6, "what is not waited for is there or garbage, never what it was");
}

/* ---- what a driver refuses --------------------------------------------------------------------------------------- */

cudaError_t last_of_usual(dim3 grid, dim3 block, size_t shared)
{
    usual<<<grid, block, shared, stream>>>();
    return cudaGetLastError();
}

cudaError_t last_of_bounded(unsigned threads)
{
    bounded<<<1, threads, 0, stream>>>();
    return cudaGetLastError();
}

cudaError_t clustered(unsigned grid, unsigned cluster, size_t shared)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(grid);
    c.blockDim = dim3(32);
    c.dynamicSmemBytes = shared;
    c.stream = stream;
    c.attrs = &attribute;
    c.numAttrs = 1;
    (void)cudaGetLastError();
    return cudaLaunchKernelEx(&c, bounded);
}

/* how many clusters of `bounded` go at once */
cudaError_t clusters(unsigned blocks, size_t shared, int *n)
{
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = 32;
    config.dynamicSmemBytes = shared;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return cudaOccupancyMaxActiveClusters(n, bounded, &config);
}

void test_launches()
{
    int n = -1;
    begin();
    DONE(last_of_usual(1, 256, 0));
    REFUSED(last_of_usual(1, 257, 0), cudaErrorLaunchOutOfResources);
    DONE(last_of_bounded(512));
    REFUSED(last_of_bounded(513), cudaErrorLaunchOutOfResources);
    REFUSED(last_of_usual(1, 1025, 0), cudaErrorInvalidConfiguration);
    REFUSED(last_of_usual(1, dim3(1, 1, 65), 0), cudaErrorInvalidConfiguration);
    REFUSED(last_of_usual(0, 1, 0), cudaErrorInvalidConfiguration);
    REFUSED(last_of_usual(dim3(1, 65536), 1, 0), cudaErrorInvalidConfiguration);
    DONE(last_of_usual(1, 1, 48 * 1024));
    REFUSED(last_of_usual(1, 1, 48 * 1024 + 1), cudaErrorInvalidValue);
    setenv("DT_EMULATE_ARCH", "80", 1);
    REFUSED(clustered(2, 2, 0), cudaErrorNotSupported);
    REFUSED(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 164 * 1024),
            cudaErrorInvalidValue);
    setenv("DT_EMULATE_ARCH", "90", 1);
    DONE(clustered(8, 8, 0));
    REFUSED(clustered(3, 2, 0), cudaErrorInvalidClusterSize);
    REFUSED(clustered(16, 16, 0), cudaErrorInvalidClusterSize);
    REFUSED(clustered(2, 2, 100 * 1024), cudaErrorInvalidValue);
    DONE(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
    DONE(clustered(2, 2, 100 * 1024));
    DONE(clusters(2, 100 * 1024, &n));
    expect(n == 1, "a cluster has room");
    REFUSED(clusters(2, 101 * 1024, &n), cudaErrorInvalidValue);
    expect(n == 0, "a refused question has no clusters");
    setenv("DT_EMULATED_CLUSTERS", "0", 1);
    DONE(clusters(2, 0, &n));
    expect(n == 0, "no cluster has room");
    REFUSED(clustered(2, 2, 0), cudaErrorLaunchOutOfResources);
    unsetenv("DT_EMULATED_CLUSTERS");
    setenv("DT_EMULATE_ARCH", "70", 1);
    REFUSED(last_of_usual(1, 1, 0), cudaErrorNoKernelImageForDevice);
    cudaFuncAttributes f;
    REFUSED(cudaFuncGetAttributes(&f, nullptr), cudaErrorNoKernelImageForDevice);
    unsetenv("DT_EMULATE_ARCH");
    (void)cudaGetLastError();
    int *sum = (int *)words;
    add_up<<<4, 32, 0, stream>>>(sum);
    int here = 0;
    DONE(cudaMemcpyAsync(&here, sum, sizeof(here), cudaMemcpyDeviceToHost, stream));
    finish();
    expect(here == 128, "atomics of several blocks are allowed");
}

/* c [2,2] = a [2,k] b [k,2] in bf16, all zeros: how many algorithms there are, and what one says when it runs */
struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t found;
    int n_found;
};

product product_of(uint64_t k, uint32_t alignment)
{
    product p = {};
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS, scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    const uint64_t workspace = 512;
    cublasLtMatmulPreference_t choice;
    (void)cublasLtCreate(&p.handle);
    (void)cublasLtMatmulDescCreate(&p.op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    (void)cublasLtMatmulDescSetAttribute(p.op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    (void)cublasLtMatrixLayoutCreate(&p.a, CUDA_R_16BF, 2, k, 2);
    (void)cublasLtMatrixLayoutCreate(&p.b, CUDA_R_16BF, k, 2, (int64_t)k);
    (void)cublasLtMatrixLayoutCreate(&p.c, CUDA_R_16BF, 2, 2, 2);
    (void)cublasLtMatmulPreferenceCreate(&choice);
    (void)cublasLtMatmulPreferenceSetAttribute(choice, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, 8);
    (void)cublasLtMatmulPreferenceSetAttribute(choice, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, 4);
    (void)cublasLtMatmulPreferenceSetAttribute(choice, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, 4);
    (void)cublasLtMatmulAlgoGetHeuristic(p.handle, p.op, p.a, p.b, p.c, p.c, choice, 1, &p.found, &p.n_found);
    (void)cublasLtMatmulPreferenceDestroy(choice);
    return p;
}

cublasStatus_t multiply(const product &p, char *memory, char *bias, char *workspace)
{
    const float one = 1, none = 0;
    (void)cublasLtMatmulDescSetAttribute(p.op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
    return cublasLtMatmul(p.handle, p.op, &one, memory, p.a, memory + 256, p.b, &none, memory + 512, p.c, memory + 512,
                          p.c, &p.found.algo, workspace, 512, stream);
}

void test_products()
{
    char *memory = nullptr;
    DONE(cudaMalloc((void **)&memory, 4096));
    DONE(cudaMemset(memory, 0, 4096));
    DONE(cudaDeviceSynchronize());
    expect(product_of(1, 256).n_found == 0, "nothing is found for 16 bits and k of 1");
    expect(product_of(8, 2).n_found == 0, "nothing is found for 16 bits at multiples of 2 bytes");
    const product p = product_of(8, 256);
    expect(p.n_found == 1, "something is found otherwise");
    DONE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    REFUSED((int)multiply(p, memory, memory + 1024, memory + 2048 + 16), (int)CUBLAS_STATUS_INVALID_VALUE);
    REFUSED((int)multiply(p, memory, memory + 1024 + 2, memory + 2048), (int)CUBLAS_STATUS_INVALID_VALUE);
    REFUSED((int)multiply(p, memory, nullptr, memory + 2048), (int)CUBLAS_STATUS_INVALID_VALUE);
    REFUSED((int)multiply(p, memory, memory + 1024, memory + 2048), (int)CUBLAS_STATUS_SUCCESS);
    DONE(cudaStreamSynchronize(stream));
    DONE(cudaFree(memory));
}

void test_copies()
{
    float here[2] = {};
    REFUSED(cudaMemcpyAsync(words, here, 8, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue);
    REFUSED(cudaMemcpyAsync(here, words, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
    REFUSED(cudaMemcpyAsync(words + 7, here, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
    REFUSED(cudaMemsetAsync(here, 0, 8, stream), cudaErrorInvalidValue);
    REFUSED(cudaFree(words + 1), cudaErrorInvalidValue);
    REFUSED(cudaGetLastError(), cudaErrorInvalidValue);
}

/* f is called while the stream is captured; what the end of the capture says */
template <typename F> cudaError_t capture(F f)
{
    cudaGraph_t graph = nullptr;
    DONE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    f();
    const cudaError_t e = cudaStreamEndCapture(stream, &graph);
    expect((e == cudaSuccess) == (graph != nullptr), "a capture that fails has no graph");
    (void)cudaGetLastError();
    return e;
}

void test_capture()
{
    cudaStream_t other;
    cudaEvent_t event, timed;
    void *p = nullptr;
    float ms;
    DONE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    DONE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DONE(cudaEventCreateWithFlags(&timed, cudaEventDefault));
    DONE(capture([&] { store<<<1, 1, 0, stream>>>(words, 0, 1.0f); }));
    const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported, invalid = cudaErrorStreamCaptureInvalidated;
    REFUSED(capture([&] { REFUSED(cudaStreamSynchronize(stream), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaStreamSynchronize(other), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaDeviceSynchronize(), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaMalloc(&p, 8), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaFree(words), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaMallocHost(&p, 8), unsupported); }), invalid);
    REFUSED(capture([&] { REFUSED(cudaMemset(words, 0, 8), unsupported); }), invalid);
    DONE(cudaEventRecord(event, other));
    REFUSED(capture([&] { REFUSED(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation); }), invalid);
    REFUSED(capture([&] {
                DONE(cudaEventRecord(event, stream));
                REFUSED(cudaEventSynchronize(event), cudaErrorCapturedEvent);
            }),
            invalid);
    REFUSED(capture([&] {
                DONE(cudaEventRecord(event, stream));
                DONE(cudaStreamWaitEvent(other, event, 0));
                store<<<1, 1, 0, other>>>(words, 0, 1.0f);
                cudaGraph_t none;
                REFUSED(cudaStreamEndCapture(other, &none), cudaErrorStreamCaptureUnmatched);
            }),
            invalid);
    REFUSED(capture([&] {
                DONE(cudaEventRecord(event, stream));
                DONE(cudaStreamWaitEvent(other, event, 0));
                store<<<1, 1, 0, other>>>(words, 0, 1.0f);
            }),
            cudaErrorStreamCaptureUnjoined);
    REFUSED(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), unsupported);
    REFUSED(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), cudaErrorInvalidValue);
    DONE(capture([&] {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        DONE(cudaStreamIsCapturing(stream, &status));
        expect(status == cudaStreamCaptureStatusActive, "a stream that is captured says so");
        DONE(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
    }));
    DONE(cudaEventRecord(timed, stream));
    REFUSED(cudaEventElapsedTime(&ms, timed, timed), cudaErrorNotReady);
    finish();
    DONE(cudaEventElapsedTime(&ms, timed, timed));
    DONE(cudaEventRecord(event, stream));
    finish();
    REFUSED(cudaEventElapsedTime(&ms, event, timed), cudaErrorInvalidResourceHandle);
}

} // namespace

int main()
{
    unsetenv("DT_EMULATED_SEED");
    unsetenv("DT_EMULATE_ORDER");
    test_mistakes();
    test_orders();
    test_launches();
    test_products();
    test_copies();
    test_capture();
    printf("%d checks failed\n", n_failed);
    return n_failed != 0;
}

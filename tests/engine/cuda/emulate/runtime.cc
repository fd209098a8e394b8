/* SPDX-License-Identifier: Apache-2.0
 *
 * The one device, its errors, and what is drawn. See cuda_runtime.h.
 */
#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

/* ---- mistakes and chance ----------------------------------------------------------------------------------------- */

bool dt_emulate_has_seed()
{
    return getenv("DT_EMULATED_SEED") != nullptr;
}

static const char *seed_text()
{
    const char *seed = getenv("DT_EMULATED_SEED");
    return seed != nullptr ? seed : "none";
}

void dt_emulate_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "emulated GPU (DT_EMULATED_SEED %s)%s: ", seed_text(), dt_emulate_where());
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

/* SplitMix64 (Steele et al. 2014) */
unsigned dt_emulate_draw(unsigned n)
{
    static uint64_t state = dt_emulate_has_seed() ? strtoull(seed_text(), nullptr, 10) * 0xda942042e4dd58b5u : 0;
    if (!dt_emulate_has_seed() || n < 2) {
        return 0;
    }
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((x ^ x >> 31) % n);
}

/* ---- calls counted, and refused ---------------------------------------------------------------------------------- */

static std::map<std::string, uint64_t> calls;

static void write_counts()
{
    FILE *file = fopen(getenv("DT_EMULATED_COUNTS"), "w");
    for (const auto &c : calls) {
        if (file != nullptr) {
            fprintf(file, "%s %llu\n", c.first.c_str(), (unsigned long long)c.second);
        }
    }
    if (file == nullptr || fclose(file) != 0) {
        dt_emulate_die("cannot write %s", getenv("DT_EMULATED_COUNTS"));
    }
}

cudaError_t dt_emulate_count(const char *call)
{
    static const char *const refuse = getenv("DT_EMULATED_REFUSE");
    if (calls.empty() && getenv("DT_EMULATED_COUNTS") != nullptr) {
        atexit(write_counts);
    }
    const uint64_t n = ++calls[call];
    const size_t length = strlen(call);
    if (refuse == nullptr || strncmp(refuse, call, length) != 0 || refuse[length] != ':' ||
        strtoull(refuse + length + 1, nullptr, 10) != n) {
        return cudaSuccess;
    }
    const bool is_memory = strncmp(call, "cudaMalloc", strlen("cudaMalloc")) == 0;
    return dt_emulate_fail(is_memory ? cudaErrorMemoryAllocation : cudaErrorIllegalAddress);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static cudaError_t last_error;

cudaError_t dt_emulate_fail(cudaError_t e)
{
    last_error = e != cudaSuccess ? e : last_error;
    return e;
}

cudaError_t cudaPeekAtLastError()
{
    return last_error;
}

cudaError_t cudaGetLastError()
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define DT_EMULATED_ERROR(name, number, text)                                                                          \
    case name:                                                                                                         \
        return text;
        DT_EMULATED_ERRORS(DT_EMULATED_ERROR)
#undef DT_EMULATED_ERROR
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define DT_EMULATED_ERROR(name, number, text)                                                                          \
    case name:                                                                                                         \
        return #name;
        DT_EMULATED_ERRORS(DT_EMULATED_ERROR)
#undef DT_EMULATED_ERROR
    }
    return "unrecognized error code";
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

enum { KIB = 1024 };

int dt_emulate_arch()
{
    const char *arch = getenv("DT_EMULATE_ARCH");
    return arch != nullptr ? atoi(arch) : 80;
}

/* As built by default (m4/dt_cuda.m4): code runs on later minor versions as it is, and what the newest is made of can
 * be translated for later ones. DT_EMULATED_CODE: for that one, and what can be translated. */
int dt_emulate_code()
{
    const int arch = dt_emulate_arch();
#ifdef DT_EMULATED_CODE
    return arch < DT_EMULATED_CODE ? 0 : DT_EMULATED_CODE;
#else
    static const int built[] = {120, 100, 90, 89, 86, 80, 75};
    for (const int code : built) {
        if (code <= arch && (code / 10 == arch / 10 || code == built[0])) {
            return code;
        }
    }
    return 0;
#endif
}

/* CUDA C++ programming guide, table of technical specifications: what a block may opt in to */
size_t dt_emulate_shared_max()
{
    switch (dt_emulate_arch()) {
    case 75:
        return 64 * KIB;
    case 80:
    case 87:
        return 163 * KIB;
    case 86:
    case 89:
    case 120:
        return 99 * KIB;
    default:
        return 227 * KIB;
    }
}

/* The device of this process, and how many there seem to be. Memory, streams and kernels are of whichever is taken. */
static int current;

static int devices()
{
    const char *n = getenv("DT_EMULATE_DEVICES");
    return n != nullptr && atoi(n) > 0 ? atoi(n) : 1;
}

static bool is_device(int index)
{
    return index >= 0 && index < devices();
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = devices();
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *v)
{
    const char *driver = getenv("DT_EMULATE_DRIVER");
    *v = driver != nullptr ? atoi(driver) : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index)
{
    if (!is_device(index)) {
        return dt_emulate_fail(cudaErrorInvalidDevice);
    }
    const char *name = getenv("DT_EMULATE_NAME");
    *p = {};
    snprintf(p->name, sizeof(p->name), "%s", name != nullptr ? name : "emulated GPU");
    memcpy(p->uuid.bytes, "emulated GPU 001", sizeof(p->uuid.bytes));
    p->uuid.bytes[15] = (char)(p->uuid.bytes[15] + index);
    p->totalGlobalMem = (size_t)1 << 30;
    p->major = dt_emulate_arch() / 10;
    p->minor = dt_emulate_arch() % 10;
    p->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int index)
{
    if (!is_device(index)) {
        return dt_emulate_fail(cudaErrorInvalidDevice);
    }
    snprintf(text, (size_t)bytes, "0000:00:%02x.0", (unsigned)index & 255);
    return cudaSuccess;
}

/* there is one, and no device is its own peer */
cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int to)
{
    if (from != 0 || to != 0) {
        return dt_emulate_fail(cudaErrorInvalidDevice);
    }
    *can = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr a, int index)
{
    if (!is_device(index)) {
        return dt_emulate_fail(cudaErrorInvalidDevice);
    }
    *value = a == cudaDevAttrMaxSharedMemoryPerBlock            ? 48 * KIB
             : a == cudaDevAttrMaxSharedMemoryPerBlockOptin     ? (int)dt_emulate_shared_max()
             : a == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? (int)dt_emulate_shared_max() + KIB
             : a == cudaDevAttrMultiProcessorCount              ? 4
                                                                : 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    if (!is_device(index)) {
        return dt_emulate_fail(cudaErrorInvalidDevice);
    }
    if (index != current && dt_emulate_has_memory()) {
        dt_emulate_die("device %d is taken while memory of device %d is held: one device a process", index, current);
    }
    current = index;
    return cudaSuccess;
}

/* ptxVersion is that of the code which was compiled, also where the driver translated it for a later device. */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *f, const void *)
{
    if (dt_emulate_code() == 0) {
        return dt_emulate_fail(cudaErrorNoKernelImageForDevice);
    }
    *f = {};
    f->ptxVersion = dt_emulate_code();
    f->binaryVersion = dt_emulate_arch();
    return cudaSuccess;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for NVIDIA's management library: two GPUs, the first of them the emulated one, and a slice of one, with
 * numbers that tests know. Built whole, as libnvidia-ml.so.1; as an old one, which lacks what came later
 * (FAKE_NVML_OLD); and as one that is no use (FAKE_NVML_USELESS). The environment variable FAKE_NVML says what goes
 * wrong: "init", "memory", "busy" (the other program on the GPU, not this one), "gone" (every look fails); or what
 * there is to report: "alone" (no other program), "hot", "braked", "slow", "capped", "set" (clocks), "errors" and "no
 * ecc" (memory), "unloaded" (no persistence mode), "crowd" (more programs than were asked for), and "hostile":
 * numbers that cannot be, texts that do not end and drive terminals. It is NCCL, too, as far as doctor asks it.
 */
#include <config.h>

#include "dtrain/plugin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3]);
int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
int nvmlDeviceGetPersistenceMode(void *device, int *is_on);
int nvmlDeviceGetEccMode(void *device, int *is_on, int *after_restart);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int since, unsigned long long *n);
int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned bytes);
int ncclGetVersion(int *version);

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999, DRIVER = 9 };

typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, process *out);

static int begun;

static int goes_wrong(const char *what)
{
    const char *wrong = getenv("FAKE_NVML");
    return wrong != NULL && strcmp(wrong, what) == 0;
}

DT_EXPORT int nvmlInit_v2(void)
{
    begun += goes_wrong("init") ? 0 : 1;
    return goes_wrong("init") ? DRIVER : 0;
}

DT_EXPORT int nvmlShutdown(void)
{
    begun--;
    return 0;
}

DT_EXPORT const char *nvmlErrorString(int code)
{
    return code == DRIVER ? "Driver Not Loaded" : code == NOT_FOUND ? "Not Found" : "Unknown Error";
}

#ifndef FAKE_NVML_USELESS
typedef struct gpu {
    const char *uuid, *bus;
    unsigned long long total, used;
    unsigned utilisation, temperature;
    int is_slice;
} gpu;
static gpu gpus[] = {{"GPU-none", "0000:00:00.0", 1ULL << 33, 3000000000ULL, 87, 61, 0},
                     {"GPU-second", "0000:02:00.0", 1ULL << 34, 5000000000ULL, 12, 35, 0},
                     {"MIG-slice", "", 1ULL << 32, 700000000ULL, 0, 44, 1}};
static int find(const char *name, size_t at, void **device)
{
    for (size_t i = 0; begun > 0 && i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        const char *known = at == 0 ? gpus[i].uuid : gpus[i].bus;
        if (*known != '\0' && strcmp(known, name) == 0) {
            *device = &gpus[i];
            return 0;
        }
    }
    return NOT_FOUND;
}

DT_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    return find(uuid, 0, device);
}

DT_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    return find(bus, 1, device);
}

DT_EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3])
{
    const gpu *g = device;
    out[0] = g->total;
    out[1] = g->total - g->used;
    out[2] = g->used;
    return goes_wrong("memory") || goes_wrong("gone") ? UNKNOWN : 0;
}
#endif

#if !defined(FAKE_NVML_USELESS) && !defined(FAKE_NVML_OLD)
DT_EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2])
{
    const gpu *g = device;
    out[0] = g->utilisation;
    out[1] = 5;
    return goes_wrong("gone") ? UNKNOWN : g->is_slice ? NOT_SUPPORTED : 0;
}

DT_EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out)
{
    *out = ((const gpu *)device)->temperature;
    return goes_wrong("gone") ? UNKNOWN : sensor;
}

/* Another program and this one; of this one alone its number as counted outside of a container; or two
 * others. */
DT_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, process *out)
{
    const gpu *g = device;
    const process other = {.pid = 1, .used = 1000000}, own = {.pid = (unsigned)getpid(), .used = 600000000};
    if (goes_wrong("gone") || *n < 2) {
        return UNKNOWN;
    }
    if (goes_wrong("crowd") || goes_wrong("hostile")) {
        *n = goes_wrong("crowd") ? 200 : 4000000000U;
        return goes_wrong("crowd") ? INSUFFICIENT_SIZE : 0;
    }
    if (goes_wrong("alone")) {
        *n = 1;
        out[0] = own;
        return 0;
    }
    *n = g->is_slice ? 1 : 2;
    out[0] = other;
    out[0].used = g->is_slice ? 50000000 : other.used;
    out[1] = goes_wrong("busy") ? (process){.pid = 2, .used = 5} : own;
    return 0;
}

/* text, or bytes without an end */
static int write_text(char *to, unsigned bytes, const char *text)
{
    if (goes_wrong("hostile")) {
        memset(to, 'x', bytes);
        memcpy(to, "\033[2J\n", 5);
    } else {
        memcpy(to, text, strlen(text) + 1);
    }
    return goes_wrong("gone") ? UNKNOWN : 0;
}

DT_EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    return write_text(text, bytes, "580.95.05");
}

DT_EXPORT int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned bytes)
{
    return pid == 1 ? write_text(text, bytes, "/usr/bin/other\033[1m") : NOT_FOUND;
}

enum { CLOCK_SM = 1 };

DT_EXPORT int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz)
{
    const gpu *g = device;
    *mhz = goes_wrong("hostile") ? ~0U : kind == CLOCK_SM ? 345 : 1593;
    return goes_wrong("gone") ? UNKNOWN : g->is_slice ? NOT_SUPPORTED : 0;
}

DT_EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int kind, unsigned *mhz)
{
    const gpu *g = device;
    *mhz = goes_wrong("hostile") ? 0 : kind == CLOCK_SM ? 1980 : 1593;
    return goes_wrong("gone") ? UNKNOWN : g->is_slice ? NOT_SUPPORTED : 0;
}

DT_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    *bits = goes_wrong("hot")       ? 0x68
            : goes_wrong("braked")  ? 0x88
            : goes_wrong("slow")    ? 0x8
            : goes_wrong("capped")  ? 0x4
            : goes_wrong("set")     ? 0x2
            : goes_wrong("hostile") ? 0xffffffffffffff00ULL
                                    : 0x1;
    return goes_wrong("gone") ? UNKNOWN : 0;
}

DT_EXPORT int nvmlDeviceGetPersistenceMode(void *device, int *is_on)
{
    *is_on = goes_wrong("hostile") ? 77 : goes_wrong("unloaded") ? 0 : 1;
    return goes_wrong("gone") ? UNKNOWN : 0;
}

DT_EXPORT int nvmlDeviceGetEccMode(void *device, int *is_on, int *after_restart)
{
    *is_on = goes_wrong("no ecc") ? 0 : 1;
    *after_restart = 1;
    return goes_wrong("gone") ? UNKNOWN : 0;
}

DT_EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int kind, int since, unsigned long long *n)
{
    *n = goes_wrong("hostile") ? ~0ULL : goes_wrong("errors") ? 3 : 0;
    return goes_wrong("gone") || kind != 1 || since != 0 ? UNKNOWN : 0;
}
#endif

#ifndef FAKE_NVML_USELESS
/* The version is what FAKE_NCCL says. */
DT_EXPORT int ncclGetVersion(int *version)
{
    const char *said = getenv("FAKE_NCCL");
    if (said == NULL || strcmp(said, "fails") == 0) {
        return 1;
    }
    *version = (int)strtol(said, NULL, 10);
    return 0;
}
#endif

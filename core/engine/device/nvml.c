/* SPDX-License-Identifier: Apache-2.0
 *
 * See nvml.h. Types and numbers are those of NVML's stable interface; no header of it is needed.
 */
#include <config.h>

#include "engine/device/nvml.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INSUFFICIENT_SIZE = 7, SENSOR_GPU = 0, NAME_BYTES = 96 };
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, ECC_UNCORRECTED = 1, ECC_VOLATILE = 0 };
enum { MAX_MHZ = 100000, MAX_COUNTED = 100000, MAX_ERRORS = 1000000000 }; /* more is not a valid number */

typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;

typedef struct rates {
    unsigned gpu, memory;
} rates;

typedef struct process_info { /* of version 2 and 3 of the call */
    unsigned pid;
    unsigned long long used; /* all bits set: unknown */
    unsigned gpu_instance, compute_instance;
} process_info;

typedef struct calls {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int code);
    int (*by_uuid)(const char *uuid, void **device);
    int (*by_bus)(const char *bus, void **device);
    int (*memory)(void *device, memory_info *out);
    /* may be missing: */
    int (*utilisation)(void *device, rates *out);
    int (*temperature)(void *device, int sensor, unsigned *out);
    int (*processes)(void *device, unsigned *n, process_info *out);
    int (*driver)(char *text, unsigned bytes);
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*max_clock)(void *device, int kind, unsigned *mhz);
    int (*reasons)(void *device, unsigned long long *bits);
    int (*persistence)(void *device, int *is_on);
    int (*ecc)(void *device, int *is_on, int *after_restart);
    int (*ecc_errors)(void *device, int kind, int since, unsigned long long *n);
    int (*name)(unsigned pid, char *text, unsigned bytes);
} calls;

struct dt_nvml {
    void *library, *device;
    calls call;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The first of the names that is there. */
static bool find_call(void *library, const char *name, const char *older, void *call)
{
    void *found = dlsym(library, name);
    found = found == NULL && older != NULL ? dlsym(library, older) : found;
    memcpy(call, &found, sizeof(found));
    return found != NULL;
}

static dt_status find_calls(dt_nvml *n, const char *path)
{
    calls *c = &n->call;
    const struct {
        const char *name, *older;
        void *call;
    } needed[] = {{"nvmlInit_v2", "nvmlInit", &c->init},
                  {"nvmlShutdown", NULL, &c->shutdown},
                  {"nvmlErrorString", NULL, &c->error},
                  {"nvmlDeviceGetHandleByUUID", NULL, &c->by_uuid},
                  {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId", &c->by_bus},
                  {"nvmlDeviceGetMemoryInfo", NULL, &c->memory}};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (!find_call(n->library, needed[i].name, needed[i].older, needed[i].call)) {
            return DT_FAIL(DT_EUNSUPPORTED, "%s has no %s; update the NVIDIA driver", path, needed[i].name);
        }
    }
    const struct {
        const char *name, *older;
        void *call;
    } welcome[] = {
        {"nvmlDeviceGetUtilizationRates", NULL, &c->utilisation},
        {"nvmlDeviceGetTemperature", NULL, &c->temperature},
        {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", &c->processes},
        {"nvmlSystemGetDriverVersion", NULL, &c->driver},
        {"nvmlDeviceGetClockInfo", NULL, &c->clock},
        {"nvmlDeviceGetMaxClockInfo", NULL, &c->max_clock},
        {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons", &c->reasons},
        {"nvmlDeviceGetPersistenceMode", NULL, &c->persistence},
        {"nvmlDeviceGetEccMode", NULL, &c->ecc},
        {"nvmlDeviceGetTotalEccErrors", NULL, &c->ecc_errors},
        {"nvmlSystemGetProcessName", NULL, &c->name}};
    for (size_t i = 0; i < sizeof(welcome) / sizeof(welcome[0]); i++) {
        (void)find_call(n->library, welcome[i].name, welcome[i].older, welcome[i].call);
    }
    return DT_OK;
}

/* "MIG-..." where the variable names slices: CUDA counts them in this order, and gives no other details. */
static bool parse_mig_slice(const dt_device_info *info, char name[NAME_BYTES])
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    for (uint32_t i = 0; at != NULL && i < info->index; i++) {
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    const size_t n = at != NULL ? strcspn(at, ",") : 0;
    if (n < 4 || n >= NAME_BYTES || strncmp(at, "MIG-", 4) != 0) {
        return false;
    }
    memcpy(name, at, n);
    name[n] = '\0';
    return true;
}

static dt_status find_device(dt_nvml *n, const dt_device_info *info)
{
    char name[NAME_BYTES];
    int code = SUCCESS;
    if (parse_mig_slice(info, name)) {
        code = n->call.by_uuid(name, &n->device);
        return code == SUCCESS ? DT_OK
                               : DT_FAIL(DT_EUNSUPPORTED, "NVML does not recognise %s: %s", name, n->call.error(code));
    }
    if (n->call.by_uuid(info->uuid, &n->device) == SUCCESS) {
        return DT_OK;
    }
    if (strncmp(info->uuid, "GPU-", 4) == 0) {
        snprintf(name, sizeof(name), "MIG-%s", info->uuid + 4);
        if (n->call.by_uuid(name, &n->device) == SUCCESS) {
            return DT_OK;
        }
    }
    code = n->call.by_bus(info->bus, &n->device);
    return code == SUCCESS ? DT_OK
                           : DT_FAIL(DT_EUNSUPPORTED, "NVML does not recognise the GPU %s at %s: %s", info->uuid,
                                     info->bus[0] != '\0' ? info->bus : "no address", n->call.error(code));
}

dt_status dt_nvml_open(const char *library, const dt_device_info *info, dt_nvml **out_p)
{
    const char *path = library != NULL ? library : "libnvidia-ml.so.1";
    dt_nvml *n = dt_alloc(sizeof(*n));
    if (n == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for NVML");
    }
    n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    dt_status st = n->library != NULL ? find_calls(n, path)
                                      : DT_FAIL(DT_EUNSUPPORTED,
                                                "no NVML: %s; it comes with the NVIDIA driver, and "
                                                "into containers with the capability \"utility\"",
                                                dlerror());
    const int code = st == DT_OK ? n->call.init() : SUCCESS;
    if (code != SUCCESS) {
        st = DT_FAIL(DT_EUNSUPPORTED, "NVML does not start: %s", n->call.error(code));
    }
    const bool has_begun = st == DT_OK;
    if (st == DT_OK) {
        st = find_device(n, info);
    }
    if (st < 0) {
        if (has_begun) {
            (void)n->call.shutdown();
        }
        if (n->library != NULL) {
            dlclose(n->library);
        }
        dt_free(n);
        return st;
    }
    *out_p = n;
    return DT_OK;
}

void dt_nvml_close(dt_nvml *n)
{
    if (n != NULL) {
        (void)n->call.shutdown();
        dlclose(n->library);
        dt_free(n);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* false: unknown. *count_p may be more than the list has room for, and then nothing is in it. */
static bool read_processes(const dt_nvml *n, process_info list[DT_NVML_MAX_PROGRAMS], unsigned *count_p)
{
    unsigned count = DT_NVML_MAX_PROGRAMS;
    const int code = n->call.processes != NULL ? n->call.processes(n->device, &count, list) : INSUFFICIENT_SIZE + 1;
    const bool is_full = code == INSUFFICIENT_SIZE && count > DT_NVML_MAX_PROGRAMS && count <= MAX_COUNTED;
    *count_p = count;
    return is_full || (code == SUCCESS && count <= DT_NVML_MAX_PROGRAMS);
}

/* By process number. In a container NVML counts processes as the machine does: there, one alone is this one. */
static double sum_own_memory(const dt_nvml *n)
{
    process_info list[DT_NVML_MAX_PROGRAMS];
    unsigned count = 0;
    if (!read_processes(n, list, &count) || count > DT_NVML_MAX_PROGRAMS) {
        return (double)NAN;
    }
    const process_info *own = count == 1 ? list : NULL;
    for (unsigned i = 0; i < count; i++) {
        own = list[i].pid == (unsigned)getpid() ? &list[i] : own;
    }
    return own != NULL && own->used != ~0ULL ? (double)own->used : (double)NAN;
}

void dt_nvml_read_sample(const dt_nvml *n, dt_nvml_sample *out)
{
    memory_info m;
    rates r;
    unsigned degrees = 0;
    const double nothing = (double)NAN;
    *out = (dt_nvml_sample){nothing, nothing, sum_own_memory(n), nothing, nothing};
    if (n->call.memory(n->device, &m) == SUCCESS) {
        out->used = (double)m.used;
        out->total = (double)m.total;
    }
    if (n->call.utilisation != NULL && n->call.utilisation(n->device, &r) == SUCCESS) {
        out->utilisation = r.gpu;
    }
    if (n->call.temperature != NULL && n->call.temperature(n->device, SENSOR_GPU, &degrees) == SUCCESS) {
        out->temperature = degrees;
    }
}

/* ---- the state of the GPU ---------------------------------------------------------------------------------------- */

/* Text of the library: as it may not end, and may hold anything, one line that can be shown. */
static void mask_text(char *text, size_t bytes, int code)
{
    text[code == SUCCESS ? bytes - 1 : 0] = '\0';
    dt_mask_text(text, true);
}

static double read_clock(int (*call)(void *device, int kind, unsigned *mhz), void *device, int kind)
{
    unsigned mhz = 0;
    const bool is_known = call != NULL && call(device, kind, &mhz) == SUCCESS && mhz > 0 && mhz <= MAX_MHZ;
    return is_known ? (double)mhz : (double)NAN;
}

/* This process is one of them, under its own number or, in a container, another. */
static void read_programs(const dt_nvml *n, dt_nvml_state *out)
{
    process_info list[DT_NVML_MAX_PROGRAMS];
    unsigned count = 0;
    out->are_programs_known = read_processes(n, list, &count);
    if (!out->are_programs_known) {
        return;
    }
    out->n_programs = count > 0 ? count - 1 : 0;
    for (unsigned i = 0; i < count && count > 1 && count <= DT_NVML_MAX_PROGRAMS; i++) {
        if (list[i].pid == (unsigned)getpid()) {
            continue;
        }
        dt_nvml_program *p = &out->program[out->n_listed++];
        p->pid = list[i].pid;
        p->used = list[i].used <= (1ULL << 50) ? (double)list[i].used : (double)NAN;
        const int code = n->call.name != NULL ? n->call.name(p->pid, p->name, sizeof(p->name)) : INSUFFICIENT_SIZE;
        mask_text(p->name, sizeof(p->name), code);
    }
}

void dt_nvml_read_state(const dt_nvml *n, dt_nvml_state *out)
{
    static const int kind[DT_NVML_CLOCK_END] = {[DT_NVML_CLOCK_SM] = CLOCK_SM, [DT_NVML_CLOCK_MEMORY] = CLOCK_MEMORY};
    const calls *c = &n->call;
    unsigned long long bits = 0, errors = 0;
    int after = 0;
    memset(out, 0, sizeof(*out));
    mask_text(out->driver, sizeof(out->driver),
              c->driver != NULL ? c->driver(out->driver, sizeof(out->driver)) : INSUFFICIENT_SIZE);
    for (int i = 0; i < DT_NVML_CLOCK_END; i++) {
        out->mhz[i] = read_clock(c->clock, n->device, kind[i]);
        out->max_mhz[i] = read_clock(c->max_clock, n->device, kind[i]);
    }
    out->reasons = c->reasons != NULL && c->reasons(n->device, &bits) == SUCCESS ? bits : 0;
    if (c->persistence == NULL || c->persistence(n->device, &out->persistence) != SUCCESS || out->persistence > 1) {
        out->persistence = -1;
    }
    if (c->ecc == NULL || c->ecc(n->device, &out->ecc, &after) != SUCCESS || out->ecc > 1) {
        out->ecc = -1;
    }
    const bool has_errors = c->ecc_errors != NULL &&
                            c->ecc_errors(n->device, ECC_UNCORRECTED, ECC_VOLATILE, &errors) == SUCCESS &&
                            errors <= MAX_ERRORS;
    out->ecc_errors = has_errors ? (double)errors : (double)NAN;
    read_programs(n, out);
}

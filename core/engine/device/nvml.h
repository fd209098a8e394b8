/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver reports about a GPU while it works, by NVIDIA's management library (NVML). The host is not linked
 * with it: libnvidia-ml.so.1, which comes with the driver, is opened on demand, and what an older one lacks, or a kind
 * of device does not report (slices of a GPU have no utilisation of their own), is left out. One look takes about a
 * millisecond and allocates nothing. Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_DEVICE_NVML_H
#define DTRAIN_CORE_ENGINE_DEVICE_NVML_H

#include "engine/device/device.h"

#include <stdbool.h>

typedef struct dt_nvml dt_nvml;

typedef struct dt_nvml_sample { /* NAN: unknown */
    double used, total;         /* bytes of the device, all programs together */
    double reserved;            /* bytes that this process holds there: context, libraries, what it allocated */
    double utilisation;         /* share of the last moments with an active kernel, % */
    double temperature;         /* degrees Celsius */
} dt_nvml_sample;

enum { DT_NVML_MAX_PROGRAMS = 64, DT_NVML_NAME = 64 };

typedef struct dt_nvml_program {
    uint32_t pid; /* as the driver counts: in a container not as there */
    double used;  /* bytes; NAN: unknown */
    char name[DT_NVML_NAME];
} dt_nvml_program;

typedef enum dt_nvml_clock { DT_NVML_CLOCK_SM, DT_NVML_CLOCK_MEMORY, DT_NVML_CLOCK_END } dt_nvml_clock;

/* Why clocks are not at their most, one bit each, as NVML numbers them. */
enum {
    DT_NVML_IDLE = 0x1,
    DT_NVML_CLOCKS_SET = 0x2,
    DT_NVML_POWER_CAP = 0x4,
    DT_NVML_HW_SLOWDOWN = 0x8,
    DT_NVML_SYNC_BOOST = 0x10,
    DT_NVML_SW_HOT = 0x20,
    DT_NVML_HW_HOT = 0x40,
    DT_NVML_POWER_BRAKE = 0x80
};

typedef struct dt_nvml_state { /* what does not change from step to step; texts are one line and masked */
    char driver[DT_NVML_NAME]; /* "580.95.05"; "": unknown */
    double mhz[DT_NVML_CLOCK_END], max_mhz[DT_NVML_CLOCK_END]; /* NAN: unknown */
    uint64_t reasons;                                          /* 0 also when they are unknown */
    int persistence, ecc;                                      /* 1 on, 0 off, -1 unknown */
    double ecc_errors;                                         /* not corrected, since the driver began; NAN: unknown */
    bool are_programs_known;
    uint32_t n_programs; /* on the GPU, besides this one, which is on it */
    uint32_t n_listed;   /* below; one more than n_programs where it is unknown which is this one */
    dt_nvml_program program[DT_NVML_MAX_PROGRAMS]; /* none when there are more */
} dt_nvml_state;

/* library: NULL for the driver's own. Of several GPUs the one of the info's UUID; a slice (MIG) by the name that
 * CUDA_VISIBLE_DEVICES gives it; else by bus address. Errors: DT_EUNSUPPORTED with the reason (no library, one without
 * what is needed, no such GPU). */
dt_status dt_nvml_open(const char *library, const dt_device_info *info, dt_nvml **out_p) DT_NODISCARD;
void dt_nvml_read_sample(const dt_nvml *n, dt_nvml_sample *out);
void dt_nvml_read_state(const dt_nvml *n, dt_nvml_state *out); /* numbers that cannot be are left out */
void dt_nvml_close(dt_nvml *n);                                /* NULL is fine */

#endif

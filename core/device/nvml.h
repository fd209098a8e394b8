/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver says of a GPU while it works, by NVIDIA's management library (NVML). The host is not linked with it:
 * libnvidia-ml.so.1, which comes with the driver, is opened on demand, and what an older one lacks, or a kind of device
 * does not tell (slices of a GPU have no utilisation of their own), is left out. One look takes about a millisecond and
 * allocates nothing. Threads: [main].
 */
#ifndef DTRAIN_CORE_DEVICE_NVML_H
#define DTRAIN_CORE_DEVICE_NVML_H

#include "device/device.h"

typedef struct dt_nvml dt_nvml;

typedef struct dt_nvml_sample { /* NAN: not told */
    double used, total;         /* bytes of the device, all programs together */
    double reserved;            /* bytes that this process holds there: context, libraries, what it allocated */
    double utilisation;         /* share of the last moments with a kernel at work, % */
    double temperature;         /* degrees Celsius */
} dt_nvml_sample;

/* library: NULL for the driver's own. Of several GPUs the one of the info's UUID; a slice (MIG) by the name that
 * CUDA_VISIBLE_DEVICES gives it; else by bus address. Errors: DT_EUNSUPPORTED with the reason (no library, one without
 * what is needed, no such GPU). */
dt_status dt_nvml_open(const char *library, const dt_device_info *info, dt_nvml **out_p) DT_NODISCARD;
void dt_nvml_read(const dt_nvml *n, dt_nvml_sample *out);
void dt_nvml_close(dt_nvml *n); /* NULL is fine */

#endif

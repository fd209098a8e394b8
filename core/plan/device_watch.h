/* SPDX-License-Identifier: Apache-2.0
 *
 * The device while a phase runs, for its records: gpu/mem_allocated, what the host holds there, with gpu/mem_planned at
 * every record; and what NVML reports (engine/device/nvml.h) every so many seconds, metrics.device_every_s:
 * gpu/mem_reserved, gpu/mem_used, gpu/utilisation, gpu/temperature. Allocates nothing once begun. Threads: [main] of
 * rank 0.
 */
#ifndef DTRAIN_CORE_PLAN_DEVICE_WATCH_H
#define DTRAIN_CORE_PLAN_DEVICE_WATCH_H

#include "engine/device/nvml.h"
#include "telemetry/metrics/record.h"
#include <stdbool.h>

typedef struct dt_device_watch {
    bool has_device;
    dt_nvml *nvml; /* NULL: nothing is asked */
    double every_s, next_s;
    uint64_t planned;
} dt_device_watch;

/* info: NULL where the CPU computes. Logs where NVML is missing. */
void dt_device_watch_begin(dt_device_watch *w, const dt_device_info *info, uint64_t planned, double every_s);
void dt_device_watch_update(dt_device_watch *w, double now_s, dt_metrics *m);
void dt_device_watch_end(dt_device_watch *w);

#endif

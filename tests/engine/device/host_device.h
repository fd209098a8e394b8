/* SPDX-License-Identifier: Apache-2.0
 *
 * A device made of host memory, for tests without a GPU: it implements dt_device_ops with the kernels of the CPU lane,
 * leaf by leaf at live sizes, so that a step has the bits of the CPU path. Streams are queues that run as late as the
 * events allow: code that reads or overwrites memory without having waited for it gets wrong results.
 */
#ifndef DTRAIN_TESTS_DEVICE_HOST_DEVICE_H
#define DTRAIN_TESTS_DEVICE_HOST_DEVICE_H

#include "engine/backend/kernel.h"
#include "engine/device/device.h"

typedef struct host_device_counts {
    uint64_t launches, graph_launches, captures, syncs, allocations;
    uint64_t drains; /* syncs behind which their stream had nothing left to do */
    uint64_t live_bytes, peak_bytes;
} host_device_counts;

const dt_device_ops *host_device_ops(void);
dt_device *host_device(void);
host_device_counts host_device_read(void);       /* since the last reset */
void host_device_reset(uint64_t capacity_bytes); /* of its memory */
/* The n-th allocation from now fails with DT_ENOMEM; 0: none. */
void host_device_fail_alloc(uint32_t n);
/* The n-th launch from now, of a kernel or a graph, fails with DT_ECUDA; 0: none. */
void host_device_fail_launch(uint32_t n);

/* host_work.c: what the device computes when its turn has come: kernels of the CPU, shard by shard, and the end of a
 * step, each in the words of the CPU path. No queues there, and no state. Threads: [any]. */
enum { HOST_MAX_VIEWS = DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT };

void host_run_leaf(const dt_device_args *a, uint32_t op, uint32_t leaf);
void host_begin(const dt_device_finish *f);
void host_sum_piece(const dt_device_sums *f, const dt_device_piece *p);
void host_measure(const dt_device_finish *f);
void host_apply(const dt_device_finish *f);
void host_blend(const dt_device_blend *b);

#endif

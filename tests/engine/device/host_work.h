/* SPDX-License-Identifier: Apache-2.0
 *
 * What the device of host_device.h computes when its turn has come: kernels of the CPU, leaf by leaf, and the end of a
 * step, each in the words of the CPU path. No queues here, and no state. Threads: [any].
 */
#ifndef DTRAIN_TESTS_DEVICE_HOST_WORK_H
#define DTRAIN_TESTS_DEVICE_HOST_WORK_H

#include "engine/backend/kernel.h"
#include "engine/device/device.h"

enum { HOST_MAX_VIEWS = DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT };

void host_run_leaf(const dt_device_args *a, uint32_t op, uint32_t leaf);
void host_begin(const dt_device_finish *f);
void host_sum_piece(const dt_device_sums *f, const dt_device_piece *p);
void host_measure(const dt_device_finish *f);
void host_apply(const dt_device_finish *f);
void host_blend(const dt_device_blend *b);

#endif

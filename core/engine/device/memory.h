/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of devices, counted: the host allocates there through these alone. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_DEVICE_HELD_H
#define DTRAIN_CORE_ENGINE_DEVICE_HELD_H

#include "engine/device/device.h"

/* As the table's alloc and release (device.h). */
dt_status dt_device_allocate(const dt_device_ops *ops, dt_device *d, size_t bytes, void **device_p) DT_NODISCARD;
void dt_device_free(const dt_device_ops *ops, dt_device *d, void *device); /* NULL is fine */
uint64_t dt_device_allocated_bytes(void);                                  /* taken and not given back */

#endif

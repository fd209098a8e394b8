/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of devices, counted: the host allocates there through these alone. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_DEVICE_MEMORY_H
#define DTRAIN_CORE_ENGINE_DEVICE_MEMORY_H

#include "engine/device/device.h"

/* As the table's alloc, pin and release (device.h). out_p: address of a pointer to what it holds. */
dt_status dt_device_allocate(const dt_device_ops *ops, dt_device *d, size_t bytes, void *out_p) DT_NODISCARD;
dt_status dt_device_pin(const dt_device_ops *ops, dt_device *d, size_t bytes, void *out_p)
    DT_NODISCARD;                                                          /* not counted */
void dt_device_free(const dt_device_ops *ops, dt_device *d, void *device); /* NULL is fine */
uint64_t dt_device_allocated_bytes(void);                                  /* taken and not returned */

#endif

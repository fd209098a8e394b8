/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of plugins (dtrain/ext/ops.h): their descriptors by number, and the kernels that call their functions. Forward
 * has number DT_USER_OP_FIRST + 2 k, its derivative the next. Numbers hold within a process; no file names an op of a
 * plugin. Entries are added while plugins are loaded and never removed. Threads: any; adding, one at a time.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_USER_H
#define DTRAIN_CORE_ENGINE_BACKEND_USER_H

#include "dtrain/ext/ops.h"
#include "engine/backend/kernel.h"
#include "engine/device/device.h"

enum { DT_USER_OP_FIRST = 0x10000, DT_USER_OP_MOST = 128 };

/* DT_USER_OP_MOST at most, which the caller ensures. The descriptor must stay. */
void dt_user_op_add(const dt_user_op *op);
/* Of a forward or its derivative; NULL: of no plugin. */
const dt_user_op *dt_user_op_at(uint32_t op);

dt_kernel *dt_user_kernel_find(uint32_t op, dt_kernel_set set);
/* What dt_kernel_args.user must be for the op. */
const void *dt_user_kernel_data(uint32_t op);
size_t dt_user_scratch_bytes(uint32_t op, dt_kernel_set set, const dt_attr *attr, const dt_view *in, uint32_t n_in,
                             const dt_view *out, uint32_t n_out);
/* Of launch functions; NULL: the op has none, and runs on the CPU alone. */
const dt_device_kernel *dt_user_device_kernel(uint32_t op);
double dt_user_flops(uint32_t op, const dt_attr *attr, const dt_view *in, uint32_t n_in, const dt_view *out,
                     uint32_t n_out);

#endif

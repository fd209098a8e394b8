/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types by name and size. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_TENSOR_DTYPE_H
#define DTRAIN_CORE_ENGINE_TENSOR_DTYPE_H

#include "dtrain/plugin.h"

size_t dt_dtype_bytes(uint32_t dtype);              /* 0 when unknown */
const char *dt_dtype_name(uint32_t dtype);          /* "f32"; "?" when unknown */
uint32_t dt_dtype_find(const char *name, size_t n); /* of the first n characters; 0 when unknown */

#endif

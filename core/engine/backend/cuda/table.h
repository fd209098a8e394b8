/* SPDX-License-Identifier: Apache-2.0
 *
 * What device.cu takes from the other files of this folder. Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_TABLE_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_TABLE_H

#include "engine/backend/cuda/cuda.h"

extern "C" {
const dt_device_kernel *dt_cuda_kernel(uint32_t op); /* table.cu */
/* product.cu */
dt_status dt_cuda_narrow_all(dt_device *d, void *to, const float *from, int64_t n, uint32_t dtype, dt_device_stream *s);
/* sums.cu */
dt_status dt_cuda_sum(dt_device *d, const dt_device_sums *f, dt_device_stream *s);
dt_status dt_cuda_add(dt_device *d, float *to, const float *from, int64_t n, dt_device_stream *s);
/* optim.cu */
dt_status dt_cuda_begin(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
dt_status dt_cuda_measure(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
dt_status dt_cuda_apply(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
dt_status dt_cuda_blend(dt_device *d, const dt_device_blend *b, dt_device_stream *s);
cudaError_t dt_cuda_probe(cudaFuncAttributes *f); /* of one kernel: is there code for the current device? */
}

#endif

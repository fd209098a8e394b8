/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of all ops. See cuda.h.
 */
#include "engine/backend/cuda/table.h"

const dt_device_kernel *dt_cuda_kernel(uint32_t op)
{
    switch (op) {
#define DT_OP(ID, number, name)                                                                                        \
    case number:                                                                                                       \
        return &dt_cuda_op_##name;
#define DT_OP_VIEW(ID, number, name)
#include "engine/backend/ops.def"
    default:
        return nullptr;
    }
}

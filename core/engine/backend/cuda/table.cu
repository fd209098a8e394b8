/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of all files of this folder. See cuda.h.
 */
#include "engine/backend/cuda/table.h"

/* clang-format off */
#define DT_CUDA_FILES(FILE)                                                                                            \
    FILE(axis) FILE(binary) FILE(copy) FILE(cumsum) FILE(dropout) FILE(gat) FILE(graph_qk) FILE(gru) FILE(layernorm)   \
    FILE(linear) FILE(loss) FILE(lstm) FILE(policy) FILE(reduce) FILE(segment_mean) FILE(softmax) FILE(unary)
/* clang-format on */

#define FILE(name) extern "C" const dt_device_kernel dt_cuda_##name##_rows[];
DT_CUDA_FILES(FILE)
#undef FILE

const dt_device_kernel *dt_cuda_kernel(uint32_t op)
{
#define FILE(name) dt_cuda_##name##_rows,
    static const dt_device_kernel *const files[] = {DT_CUDA_FILES(FILE)};
#undef FILE
    for (const dt_device_kernel *row : files) {
        for (; row->op != 0; row++) {
            if (row->op == op) {
                return row;
            }
        }
    }
    return nullptr;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of activations, one after the other. Reference: engine/backend/ref/axis.c.
 */
#include "engine/backend/cpu/gemm.h"

void CPU(matmul)(const dt_kernel_args *args)
{
    const dt_view *a = &args->in[0], *y = &args->out[0];
    const int64_t R = dt_view_rows(y, 2), M = y->dim[y->rank - 2], N = last_dim(y);
    const bool ta = args->attr->i[0] != 0, tb = args->attr->i[1] != 0;
    const int64_t K = a->dim[a->rank - (ta ? 2 : 1)];
    for (int64_t r = 0; r < R; r++) {
        const dt_gemm g = {.M = M,
                           .N = N,
                           .K = K,
                           .a = f32_in(args, 0) + r * M * K,
                           .a_row = ta ? 1 : K,
                           .a_k = ta ? M : 1,
                           .b = f32_in(args, 1) + r * K * N,
                           .b_k = tb ? 1 : N,
                           .b_col = tb ? K : 1,
                           .c = f32_out(args, 0) + r * M * N,
                           .c_row = N};
        CPU(gemm)(&g, args->scratch);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * LINEAR and its two products backward. Reference: backend/ref/linear.c.
 */
#include "backend/cpu/gemm.h"

void CPU(linear)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = a->in[1].dim[0];
    const dt_gemm g = {.M = R,
                       .N = M,
                       .K = K,
                       .a = f32_in(a, 0),
                       .a_row = K,
                       .a_k = 1,
                       .b = f32_in(a, 1),
                       .b_k = 1,
                       .b_col = K,
                       .c = f32_out(a, 0),
                       .c_row = M,
                       .bias = f32_in(a, 2),
                       .fn = a->attr->i[0],
                       .f0 = a->attr->f[0]};
    if (a->kept != NULL) {
        CPU(gemm_kept)(&g, a->kept, a->run->is_kept != 0, a->scratch);
    } else {
        CPU(gemm)(&g, a->scratch);
    }
}

void CPU(linear_dx)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), M = a->in[1].dim[0], K = a->in[1].dim[1];
    const dt_gemm g = {.M = R,
                       .N = K,
                       .K = M,
                       .a = f32_in(a, 0),
                       .a_row = M,
                       .a_k = 1,
                       .b = f32_in(a, 1),
                       .b_k = K,
                       .b_col = 1,
                       .c = f32_out(a, 0),
                       .c_row = K};
    CPU(gemm)(&g, a->scratch);
}

void CPU(linear_dw)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), K = last_dim(&a->in[0]), M = last_dim(&a->in[1]);
    const dt_gemm g = {.M = M,
                       .N = K,
                       .K = R,
                       .a = f32_in(a, 1),
                       .a_row = 1,
                       .a_k = M,
                       .b = f32_in(a, 0),
                       .b_k = K,
                       .b_col = 1,
                       .c = f32_out(a, 0),
                       .c_row = K,
                       .accum = a->out[0].accum != 0};
    CPU(gemm)(&g, a->scratch);
}

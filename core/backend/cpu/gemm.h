/* SPDX-License-Identifier: Apache-2.0
 *
 * C = fn(A B + bias) on one thread: the product by oneDNN (dnnl_sgemm), bias and function in one pass behind it.
 *
 * A product's bits depend on its shape and on the instruction set in use, never on the thread; slices have the same
 * shapes whatever the number of threads and ranks. An own packed product was measured against it
 * (bench/kernels): 87 to 107 % of its rate forward, 67 to 103 % in the gradients, so the library stays.
 */
#ifndef DTRAIN_CORE_BACKEND_CPU_GEMM_H
#define DTRAIN_CORE_BACKEND_CPU_GEMM_H

#include "backend/cpu/cpu.h"

typedef struct dt_gemm {
    int64_t M, N, K;
    const float *a; /* A(m,k) = a[m a_row + k a_k]; one of the two strides is 1 */
    int64_t a_row, a_k;
    const float *b; /* B(k,n) = b[k b_k + n b_col]; one of the two strides is 1 */
    int64_t b_k, b_col;
    float *c; /* C(m,n) = c[m c_row + n] */
    int64_t c_row;
    const float *bias; /* [N] or NULL */
    bool accum;        /* add to C */
    int64_t fn;        /* applied to the result; 0 for none */
    double f0;
} dt_gemm;

void CPU(gemm)(const dt_gemm *g);

#endif

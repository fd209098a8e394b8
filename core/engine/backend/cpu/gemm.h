/* SPDX-License-Identifier: Apache-2.0
 *
 * C = A B on one thread, with B packed into panels of a few vectors' width and A read where it is.
 *
 * Each element of C is one chain of multiply-adds over k (in blocks of DT_GEMM_BLOCK, the same for every shape), so
 * that a row's bits depend neither on how many rows there are nor on how they are tiled.
 *
 * Why not oneDNN (2.6.3; bench/results, 2026-11-21-products.md): the kernels of dnnl_sgemm walk the packed B, which
 * is on the heap, with the stack pointer. A signal that arrives meanwhile writes its frame below that, over whatever
 * is allocated there. Its matmul primitives leave the stack alone and are 0 to 20 % faster at sizes they were compiled
 * for, but slices have new sizes all the time: 0.4 ms of compilation for 0.03 ms of work, and with sizes left open
 * they fall back to the kernels of dnnl_sgemm. The same holds for bf16, whose builds (gemm_bf16.c) take fp32 operands
 * and round them while packing: 0.6 to 1.8 times the rate of oneDNN's compiled primitives on operands already in bf16.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_GEMM_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_GEMM_H

#include "engine/backend/cpu/cpu.h"

enum {
    DT_GEMM_BLOCK = 512,         /* k per pass */
    DT_GEMM_COLUMNS = 256,       /* columns per pass; with it, what is packed at once takes a quarter of 2 MB */
    DT_GEMM_HALF_COLUMNS = 1024, /* the same in bf16: half of 2 MB, as A is packed again for each pass */
    DT_GEMM_TILE = 16            /* rows of the largest tile, rounded up to vectors */
};

typedef struct dt_gemm {
    int64_t M, N, K;
    const float *a; /* A(m,k) = a[m a_row + k a_k] */
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

/* scratch: dt_gemm_floats */
void CPU(gemm)(const dt_gemm *g, float *scratch);
/* Pack all of B once into dt_gemm_packed_floats, then multiply by it often (g->b is not read); its scratch:
 * dt_gemm_tile_floats. */
void CPU(gemm_pack)(const dt_gemm *g, float *packed);
void CPU(gemm_packed)(const dt_gemm *g, const float *packed, float *scratch);
/* CPU(gemm) with a place to keep the packed B (dt_gemm_packed_floats) for later calls; is_kept: it is there already. */
void CPU(gemm_kept)(const dt_gemm *g, float *kept, bool is_kept, float *scratch);

/* Upper bounds for every build and every smaller shape. The fp32 builds pack panels of at most 32 columns and a tile of
 * DT_GEMM_TILE rows; the bf16 builds pack half as much per element, but round K up to 32, and need 32 rows at once, a
 * place for 32 x 32 of C, and one for the bias. */
static inline int64_t dt_gemm_round(int64_t n)
{
    return (n + 31) / 32 * 32;
}
static inline size_t dt_gemm_tile_floats(int64_t K)
{
    return (size_t)dt_gemm_round(K < DT_GEMM_BLOCK ? K : DT_GEMM_BLOCK) * DT_GEMM_TILE + 32 * 32 + DT_GEMM_HALF_COLUMNS;
}
static inline size_t dt_gemm_packed_floats(int64_t N, int64_t K)
{
    return (size_t)(K < DT_GEMM_TILE ? DT_GEMM_TILE : K) * (size_t)dt_gemm_round(N);
}
static inline size_t dt_gemm_floats(int64_t N, int64_t K)
{
    const int64_t k = K < DT_GEMM_BLOCK ? K : DT_GEMM_BLOCK;
    const size_t full = dt_gemm_packed_floats(N < DT_GEMM_COLUMNS ? N : DT_GEMM_COLUMNS, k);
    const size_t half =
        (size_t)(dt_gemm_round(N < DT_GEMM_HALF_COLUMNS ? N : DT_GEMM_HALF_COLUMNS) * dt_gemm_round(k)) / 2;
    return (full > half ? full : half) + dt_gemm_tile_floats(K);
}

/* An empty sum is the bias, or 0. */
static inline void write_empty_sum(const dt_gemm *g)
{
    if (!g->accum) {
        for (int64_t m = 0; m < g->M; m++) {
            for (int64_t n = 0; n < g->N; n++) {
                g->c[m * g->c_row + n] = g->bias != NULL ? g->bias[n] : 0;
            }
            CPU(apply)(g->fn, g->f0, g->c + m * g->c_row, g->c + m * g->c_row, g->N);
        }
    }
}

#endif

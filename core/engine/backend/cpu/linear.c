/* SPDX-License-Identifier: Apache-2.0
 *
 * LINEAR and its two products backward. Reference: engine/backend/ref/linear.c.
 */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/scratch.h"

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

/* Rows of a that are not all 0, in order; NaN is not 0. */
static int64_t list_nonzero_rows(const dt_gemm *g, int32_t *row)
{
    int64_t n = 0;
    for (int64_t r = 0; r < g->M; r++) {
        vf sizes = vf_set(0);
        VF_FOR (i, k, g->K) {
            sizes = sizes + vf_abs(vf_get(g->a + r * g->K + i, k));
        }
        row[n] = (int32_t)r;
        n += vf_sum(sizes) != 0;
    }
    return n;
}

/* The last n rows of c to where they belong, zeros to the others: no row is written before it was read. */
static void scatter_nonzero_rows(const dt_gemm *g, const int32_t *row, int64_t n)
{
    const size_t bytes = (size_t)g->N * sizeof(float);
    int64_t r = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *from = g->c + (g->M - n + i) * g->N;
        memset(g->c + r * g->N, 0, (size_t)(row[i] - r) * bytes);
        r = row[i];
        if (g->c + r * g->N != from) {
            memcpy(g->c + r * g->N, from, bytes);
        }
        r++;
    }
    memset(g->c + r * g->N, 0, (size_t)(g->M - r) * bytes);
}

static void multiply_nonzero_rows(const dt_gemm *g, const int32_t *row, int64_t n, float *scratch)
{
    dt_gemm live = *g;
    for (int64_t i = 0; i < n; i++) {
        memcpy(scratch + i * g->K, g->a + row[i] * g->K, (size_t)g->K * sizeof(float));
    }
    live.M = n;
    live.a = scratch;
    live.c = g->c + (g->M - n) * g->N;
    CPU(gemm)(&live, scratch + dt_scratch_live(g->M, g->K));
    scatter_nonzero_rows(g, row, n);
}

/* A row of dy that is all 0 gives zeros, and where many are (they have no gradient: the critic that is not the
 * least, agents that are not there) only the others are multiplied. */
void CPU(linear_dx)(const dt_kernel_args *a)
{
    const int64_t R = dt_view_rows(&a->in[0], 1), M = a->in[1].dim[0], K = a->in[1].dim[1];
    int32_t row[DT_SCRATCH_LIVE / DT_SCRATCH_LIVE_WIDTH];
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
    const bool is_small = M >= DT_SCRATCH_LIVE_WIDTH && R * M <= DT_SCRATCH_LIVE;
    const int64_t n = is_small ? list_nonzero_rows(&g, row) : R;
    if (4 * n < 3 * R) {
        multiply_nonzero_rows(&g, row, n, a->scratch);
    } else {
        CPU(gemm)(&g, a->scratch);
    }
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

/* ---- products of activations, one after the other; reference: engine/backend/ref/axis.c -------------------------- */

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

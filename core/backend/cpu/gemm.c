/* SPDX-License-Identifier: Apache-2.0
 *
 * See gemm.h.
 */
#include "backend/cpu/gemm.h"

#include <dnnl.h>

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void clear(const dt_gemm *g)
{
    for (int64_t m = 0; m < g->M && !g->accum; m++) {
        memset(g->c + m * g->c_row, 0, (size_t)g->N * sizeof(float));
    }
}

static void finish(const dt_gemm *g)
{
    for (int64_t m = 0; m < g->M; m++) {
        float *row = g->c + m * g->c_row;
        if (g->bias != NULL) {
            VF_FOR (j, k, g->N) {
                vf_put(row + j, vf_get(row + j, k) + vf_get(g->bias + j, k), k);
            }
        }
        if (g->fn != 0) {
            CPU(apply)(g->fn, g->f0, row, row, g->N);
        }
    }
}

void CPU(gemm)(const dt_gemm *g)
{
    if (g->M == 0 || g->N == 0) {
        return;
    }
    if (g->K == 0) {
        clear(g);
    } else {
        /* a matrix with one row or column may be read either way; leading dimensions must cover it */
        const bool a_plain = g->a_k == 1, b_plain = g->b_col == 1;
        (void)dnnl_sgemm(a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', g->M, g->N, g->K, 1.0f, g->a,
                         a_plain ? larger(g->a_row, g->K) : larger(g->a_k, g->M), g->b,
                         b_plain ? larger(g->b_k, g->N) : larger(g->b_col, g->K), g->accum ? 1.0f : 0.0f, g->c,
                         g->c_row);
    }
    if (g->bias != NULL || g->fn != 0) {
        finish(g);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention over a graph's edges (Shi et al. 2021, TransformerConv). See ref.h.
 *
 *   z_ij = q_i.k_j / sqrt(C) + bias_ij     p_ij = softmax_j z_ij     out_i = sum_j p_ij v_j     per head
 *   q [N,H*C]  k, v [M,H*C]  bias [E,H] or absent  rowptr [N+1]  col [E], each in 0 .. M-1  prob [E,H]
 * A target without edges gets zeros.
 */
#include "engine/backend/ref/ref.h"

typedef struct graph_qk {
    const real *q, *k, *v, *bias;
    const int32_t *rowptr, *col;
    int64_t N, H, C;
} graph_qk;

static graph_qk graph_qk_args(const dt_kernel_args *a, uint32_t first)
{
    graph_qk g = {.q = real_in(a, first), .k = real_in(a, first + 1), .v = real_in(a, first + 2)};
    g.bias = real_in(a, first + 3);
    g.rowptr = i32_in(a, first + 4);
    g.col = i32_in(a, first + 5);
    g.N = a->in[first].dim[0];
    g.H = a->attr->i[0];
    g.C = a->in[first].dim[1] / g.H;
    return g;
}

static double dot(const real *a, const real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

void REF(graph_qk)(const dt_kernel_args *a)
{
    const graph_qk g = graph_qk_args(a, 0);
    real *out = real_out(a, 0), *prob = real_out(a, 1);
    const int64_t D = g.H * g.C;
    for (int64_t i = 0; i < g.N; i++) {
        for (int64_t head = 0; head < g.H; head++) {
            const int64_t c0 = head * g.C;
            double top = -INFINITY, sum = 0, value;
            for (int pass = 0; pass < 2; pass++) { /* the largest logit first, then the sum below it */
                for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                    const double z = dot(g.q + i * D + c0, g.k + g.col[x] * D + c0, g.C) / sqrt((double)g.C) +
                                     (g.bias != NULL ? g.bias[x * g.H + head] : 0);
                    if (pass == 0) {
                        top = greatest(top, z);
                    } else {
                        sum += exp(z - top);
                    }
                }
            }
            for (int64_t c = c0; c < c0 + g.C; c++) {
                value = 0;
                for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                    const double z = dot(g.q + i * D + c0, g.k + g.col[x] * D + c0, g.C) / sqrt((double)g.C) +
                                     (g.bias != NULL ? g.bias[x * g.H + head] : 0);
                    const double p = exp(z - top) / sum;
                    value += p * g.v[g.col[x] * D + c];
                    if (c == c0 && prob != NULL) {
                        prob[x * g.H + head] = (real)p;
                    }
                }
                out[i * D + c] = (real)value;
            }
        }
    }
}

/* dp_ij = dy_i.v_j    dz_ij = p_ij (dp_ij - sum_j p_ij dp_ij) */
void REF(graph_qk_bwd)(const dt_kernel_args *a)
{
    const graph_qk g = graph_qk_args(a, 1);
    const real *dy = real_in(a, 0), *prob = real_in(a, 7);
    real *dq = real_out(a, 0), *dk = real_out(a, 1), *dv = real_out(a, 2), *dbias = real_out(a, 3);
    const int64_t D = g.H * g.C;
    const double scale = 1.0 / sqrt((double)g.C);
    for (uint32_t i = 0; i < a->n_out; i++) {
        start_sum(a, i);
    }
    for (int64_t i = 0; i < g.N; i++) {
        for (int64_t head = 0; head < g.H; head++) {
            const int64_t c0 = head * g.C, c1 = c0 + g.C;
            double mean = 0;
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                mean += prob[x * g.H + head] * dot(dy + i * D + c0, g.v + g.col[x] * D + c0, g.C);
            }
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                const int64_t j = g.col[x];
                const double p = prob[x * g.H + head];
                const double dz = p * (dot(dy + i * D + c0, g.v + j * D + c0, g.C) - mean);
                if (dbias != NULL) {
                    dbias[x * g.H + head] += (real)dz;
                }
                for (int64_t c = c0; c < c1; c++) {
                    if (dq != NULL) {
                        dq[i * D + c] += (real)(dz * scale * g.k[j * D + c]);
                    }
                    if (dk != NULL) {
                        dk[j * D + c] += (real)(dz * scale * g.q[i * D + c]);
                    }
                    if (dv != NULL) {
                        dv[j * D + c] += (real)(p * dy[i * D + c]);
                    }
                }
            }
        }
    }
}

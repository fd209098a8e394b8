/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph attention with edge features (Velickovic et al. 2018, eq. 1 to 6; the edge term is linear in e). See ref.h.
 *
 *   z_ij = a_dst.h_i + a_src.h_j + w_e.e_ij     p_ij = softmax_j leaky(z_ij)     out_i = sum_j p_ij h_j     per head
 *   h [N,H*C]  a_dst, a_src [H*C]  e [E,K]  w_e [H,K]  rowptr [N+1]  col [E]  prob [E,H]     edge x goes to j = col[x]
 */
#include "engine/backend/ref/ref.h"

typedef struct gat {
    const real *h, *a_dst, *a_src, *e, *w_e;
    const int32_t *rowptr, *col;
    int64_t N, H, C, E, K;
    double slope;
} gat;

/* first is the number of inputs before h */
static gat gat_args(const dt_kernel_args *a, uint32_t first)
{
    gat g = {.h = real_in(a, first), .a_dst = real_in(a, first + 1), .a_src = real_in(a, first + 2)};
    g.e = real_in(a, first + 3);
    g.w_e = real_in(a, first + 4);
    g.rowptr = i32_in(a, first + 5);
    g.col = i32_in(a, first + 6);
    g.N = a->in[first].dim[0];
    g.H = a->attr->i[0];
    g.C = a->in[first].dim[1] / g.H;
    g.E = a->in[first + 6].dim[0];
    g.K = g.e != NULL ? last_dim(&a->in[first + 3]) : 0;
    g.slope = a->attr->f[0];
    return g;
}

static double gat_logit(const gat *g, int64_t i, int64_t x, int64_t head)
{
    const int64_t j = g->col[x], D = g->H * g->C;
    double z = 0;
    for (int64_t c = head * g->C; c < (head + 1) * g->C; c++) {
        z += (double)g->a_dst[c] * g->h[i * D + c] + (double)g->a_src[c] * g->h[j * D + c];
    }
    for (int64_t k = 0; k < g->K; k++) {
        z += (double)g->w_e[head * g->K + k] * g->e[x * g->K + k];
    }
    return z;
}

static double leaky(const gat *g, double z)
{
    return z > 0 ? z : g->slope * z;
}

void REF(gat)(const dt_kernel_args *a)
{
    const gat g = gat_args(a, 0);
    real *out = real_out(a, 0), *prob = real_out(a, 1);
    const int64_t D = g.H * g.C;
    for (int64_t i = 0; i < g.N; i++) {
        for (int64_t head = 0; head < g.H; head++) {
            double top = -INFINITY, sum = 0;
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                top = greatest(top, leaky(&g, gat_logit(&g, i, x, head)));
            }
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                sum += exp(leaky(&g, gat_logit(&g, i, x, head)) - top);
            }
            for (int64_t c = head * g.C; c < (head + 1) * g.C; c++) {
                double value = 0;
                for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                    value += exp(leaky(&g, gat_logit(&g, i, x, head)) - top) / sum * g.h[g.col[x] * D + c];
                }
                out[i * D + c] = (real)value;
            }
            if (prob != NULL) {
                for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                    prob[x * g.H + head] = (real)(exp(leaky(&g, gat_logit(&g, i, x, head)) - top) / sum);
                }
            }
        }
    }
}

/* dp_ij = dy_i.h_j    dz_ij = p_ij (dp_ij - sum_j p_ij dp_ij) leaky'(z_ij), then every product backward */
void REF(gat_bwd)(const dt_kernel_args *a)
{
    const gat g = gat_args(a, 1);
    const real *dy = real_in(a, 0), *prob = real_in(a, 8);
    real *dh = real_out(a, 0), *da_dst = real_out(a, 1), *da_src = real_out(a, 2), *de = real_out(a, 3),
         *dw_e = real_out(a, 4);
    const int64_t D = g.H * g.C;
    for (uint32_t i = 0; i < a->n_out; i++) {
        start_sum(a, i);
    }
    for (int64_t i = 0; i < g.N; i++) {
        for (int64_t head = 0; head < g.H; head++) {
            const int64_t c0 = head * g.C, c1 = c0 + g.C;
            double mean = 0;
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                for (int64_t c = c0; c < c1; c++) {
                    mean += (double)prob[x * g.H + head] * dy[i * D + c] * g.h[g.col[x] * D + c];
                }
            }
            for (int64_t x = g.rowptr[i]; x < g.rowptr[i + 1]; x++) {
                const int64_t j = g.col[x];
                const double p = prob[x * g.H + head];
                double dp = 0;
                for (int64_t c = c0; c < c1; c++) {
                    dp += (double)dy[i * D + c] * g.h[j * D + c];
                }
                const double dz = p * (dp - mean) * (gat_logit(&g, i, x, head) > 0 ? 1 : g.slope);
                for (int64_t c = c0; c < c1; c++) {
                    if (dh != NULL) {
                        dh[j * D + c] += (real)(p * dy[i * D + c] + dz * g.a_src[c]);
                        dh[i * D + c] += (real)(dz * g.a_dst[c]);
                    }
                    if (da_dst != NULL) {
                        da_dst[c] += (real)(dz * g.h[i * D + c]);
                    }
                    if (da_src != NULL) {
                        da_src[c] += (real)(dz * g.h[j * D + c]);
                    }
                }
                for (int64_t k = 0; k < g.K; k++) {
                    if (de != NULL) {
                        de[x * g.K + k] += (real)(dz * g.w_e[head * g.K + k]);
                    }
                    if (dw_e != NULL) {
                        dw_e[head * g.K + k] += (real)(dz * g.e[x * g.K + k]);
                    }
                }
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph attention, one pass per target: logits, softmax and weighted sum without edge tensors. The two node terms of
 * the logits are computed once per node. Reference: engine/backend/ref/gat.c, with the formulas.
 */
#include "engine/backend/cpu/attention.h"
#include "engine/backend/cpu/scratch.h"

typedef struct gat {
    const float *h, *a_dst, *a_src, *e, *w_e;
    const int32_t *rowptr, *col;
    int64_t N, K;
    float slope;
    float *s_dst, *s_src; /* [N,H]: a_dst.h_i, a_src.h_j */
    float *w_t, *z;       /* [K,H]: w_e transposed; [degree,H] */
} gat;

static gat gat_args(const dt_kernel_args *a, uint32_t first, float **scratch)
{
    gat g = {.h = f32_in(a, first), .a_dst = f32_in(a, first + 1), .a_src = f32_in(a, first + 2)};
    const int64_t H = a->attr->i[0], E = a->in[first + 6].dim[0];
    g.e = f32_in(a, first + 3);
    g.w_e = f32_in(a, first + 4);
    g.rowptr = i32_in(a, first + 5);
    g.col = i32_in(a, first + 6);
    g.N = a->in[first].dim[0];
    g.K = g.e != NULL ? last_dim(&a->in[first + 3]) : 0;
    g.slope = (float)a->attr->f[0];
    g.s_dst = *scratch;
    g.s_src = g.s_dst + g.N * H;
    g.w_t = g.s_src + g.N * H;
    g.z = g.w_t + g.K * H;
    *scratch = g.z + E * H + DT_SCRATCH_PAD;
    for (int64_t k = 0; k < g.K; k++) {
        for (int64_t h = 0; h < H; h++) {
            g.w_t[k * H + h] = g.w_e[h * g.K + k];
        }
    }
    return g;
}

static ALWAYS_INLINE void compute_node_terms(const gat *g, const int64_t H, const int64_t C)
{
    for (int64_t i = 0; i < g->N; i++) {
        dot_heads(H, C, g->h + i * H * C, g->a_dst, g->a_src, g->s_dst + i * H, g->s_src + i * H);
    }
}

/* z [degree,H] of target i, before leaky */
static ALWAYS_INLINE void compute_logits(const gat *g, int64_t i, const int64_t H)
{
    for (int64_t x = g->rowptr[i]; x < g->rowptr[i + 1]; x++) {
        float *z = g->z + (x - g->rowptr[i]) * H;
        memcpy(z, g->s_dst + i * H, (size_t)H * sizeof(*z));
        add_heads(z, g->s_src + g->col[x] * H, H);
        add_scaled_heads(z, g->e + x * g->K, 1, g->w_t, g->K, H);
    }
}

static ALWAYS_INLINE void gat_forward(const gat *g, float *out, float *prob, const int64_t H, const int64_t C)
{
    const vf zero = vf_set(0), slope = vf_set(g->slope);
    compute_node_terms(g, H, C);
    for (int64_t i = 0; i < g->N; i++) {
        const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first, n = degree * H;
        compute_logits(g, i, H);
        VF_FOR (x, k, n) {
            const vf z = vf_get(g->z + x, k);
            vf_put(g->z + x, vf_if_gt(z, zero, z, slope * z), k);
        }
        softmax_flat(g->z, n, H);
        if (prob != NULL) {
            memcpy(prob + first * H, g->z, (size_t)n * sizeof(*prob));
        }
        sum_weighted_values(g->z, g->h, g->col + first, degree, 1, out + i * H * C, H, C);
    }
}

void CPU(gat)(const dt_kernel_args *a)
{
    float *scratch = a->scratch;
    const gat g = gat_args(a, 0, &scratch);
    const int64_t H = a->attr->i[0], C = a->in[0].dim[1] / H;
    if (H == 8 && C == 32) { /* the guide's layer */
        gat_forward(&g, f32_out(a, 0), f32_out(a, 1), 8, 32);
    } else {
        gat_forward(&g, f32_out(a, 0), f32_out(a, 1), H, C);
    }
}

typedef struct gat_gradients {
    const float *dy, *prob;
    float *dh, *da_dst, *da_src, *de, *dw_e;
    float *d_dst, *d_src;      /* [N,H]: sums of dz over the edges into and out of a node */
    float *dw_t, *unused, *dz; /* [K,H] [H] [degree,H] */
} gat_gradients;

static ALWAYS_INLINE void compute_edge_gradients(const gat *g, const gat_gradients *b, int64_t first, int64_t degree,
                                                 const int64_t H)
{
    if (b->dw_e != NULL) {
        for (int64_t k = 0; k < g->K; k++) {
            add_scaled_heads(b->dw_t + k * H, g->e + first * g->K + k, g->K, b->dz, degree, H);
        }
    }
    if (b->de != NULL) {
        for (int64_t x = 0; x < degree; x++) {
            for (int64_t k = 0; k < g->K; k++) {
                vw sum = vw_set(0);
                VF_FOR (h, n, H) {
                    vw_fma(&sum, vf_get(b->dz + x * H + h, n), vf_get(g->w_t + k * H + h, n));
                }
                b->de[(first + x) * g->K + k] = vw_sum(sum);
            }
        }
    }
}

/* what reaches h through the two node terms, and their vectors */
static ALWAYS_INLINE void compute_node_gradients(const gat *g, const gat_gradients *b, const int64_t H, const int64_t C)
{
    for (int64_t i = 0; i < g->N; i++) {
        if (b->dh != NULL) {
            add_weighted_value(b->d_dst + i * H, g->a_dst, b->dh + i * H * C, H, C);
            add_weighted_value(b->d_src + i * H, g->a_src, b->dh + i * H * C, H, C);
        }
    }
    for (int64_t h = 0; h < H; h++) {
        VF_FOR (c, k, C) {
            vf dst = vf_set(0), src = vf_set(0);
            for (int64_t i = 0; i < g->N; i++) {
                const vf x = vf_get(g->h + (i * H + h) * C + c, k);
                dst = vf_fma(vf_set(b->d_dst[i * H + h]), x, dst);
                src = vf_fma(vf_set(b->d_src[i * H + h]), x, src);
            }
            if (b->da_dst != NULL) {
                vf_put(b->da_dst + h * C + c, vf_get(b->da_dst + h * C + c, k) + dst, k);
            }
            if (b->da_src != NULL) {
                vf_put(b->da_src + h * C + c, vf_get(b->da_src + h * C + c, k) + src, k);
            }
        }
    }
}

static ALWAYS_INLINE void gat_backward(const gat *g, const gat_gradients *b, const int64_t H, const int64_t C)
{
    const int64_t D = H * C;
    compute_node_terms(g, H, C);
    for (int64_t i = 0; i < g->N; i++) {
        const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
        const int32_t *col = g->col + first;
        const float *dy = b->dy + i * D, *prob = b->prob + first * H;
        compute_logits(g, i, H);
        for (int64_t x = 0; x < degree; x += 2) {
            const int64_t next = x + 1 < degree ? x + 1 : x;
            dot_heads(H, C, dy, g->h + col[x] * D, g->h + col[next] * D, b->dz + x * H,
                      next > x ? b->dz + next * H : b->unused);
        }
        softmax_flat_backward(prob, b->dz, g->z, g->slope, b->d_dst + i * H, degree * H, H);
        for (int64_t x = 0; x < degree; x++) {
            add_heads(b->d_src + col[x] * H, b->dz + x * H, H);
        }
        compute_edge_gradients(g, b, first, degree, H);
    }
    /* a pass of its own: now the rows of dh have the first-level cache to themselves */
    if (b->dh != NULL) {
        for (int64_t i = 0; i < g->N; i++) {
            const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
            scatter_weighted_values(b->prob + first * H, b->dy + i * D, g->col + first, degree, 1, b->dh, H, C);
        }
    }
    compute_node_gradients(g, b, H, C);
}

void CPU(gat_bwd)(const dt_kernel_args *a)
{
    float *scratch = a->scratch;
    const gat g = gat_args(a, 1, &scratch);
    const int64_t H = a->attr->i[0], C = a->in[1].dim[1] / H;
    gat_gradients b = {.dy = f32_in(a, 0),
                       .prob = f32_in(a, 8),
                       .dh = f32_out(a, 0),
                       .da_dst = f32_out(a, 1),
                       .da_src = f32_out(a, 2),
                       .de = f32_out(a, 3),
                       .dw_e = f32_out(a, 4)};
    b.d_dst = scratch;
    b.d_src = b.d_dst + g.N * H;
    b.dw_t = b.d_src + g.N * H;
    b.unused = b.dw_t + g.K * H;
    b.dz = b.unused + H;
    memset(b.d_dst, 0, (size_t)(2 * g.N * H + g.K * H) * sizeof(float));
    for (uint32_t i = 0; i < a->n_out; i++) {
        start_sum(a, i);
    }
    if (H == 8 && C == 32) {
        gat_backward(&g, &b, 8, 32);
    } else {
        gat_backward(&g, &b, H, C);
    }
    if (b.dw_e != NULL) {
        for (int64_t k = 0; k < g.K; k++) {
            for (int64_t h = 0; h < H; h++) {
                b.dw_e[h * g.K + k] += b.dw_t[k * H + h];
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention over edges, one pass per target. Reference: engine/backend/ref/graph_qk.c.
 */
#include "engine/backend/cpu/attention.h"
#include "engine/backend/cpu/scratch.h"

#include <math.h>

typedef struct graph_qk {
    const float *q, *k, *v, *bias;
    const int32_t *rowptr, *col;
    int64_t N;
    float *z, *unused; /* [degree,H], backward [E,H]; [H] */
} graph_qk;

static graph_qk graph_qk_args(const dt_kernel_args *a, uint32_t first)
{
    graph_qk g = {.q = f32_in(a, first), .k = f32_in(a, first + 1), .v = f32_in(a, first + 2)};
    g.bias = f32_in(a, first + 3);
    g.rowptr = i32_in(a, first + 4);
    g.col = i32_in(a, first + 5);
    g.N = a->in[first].dim[0];
    g.unused = a->scratch;
    g.z = g.unused + a->attr->i[0];
    return g;
}

/* out [degree,H]: heads of u with the rows col of v */
static ALWAYS_INLINE void dot_edges(const float *u, const float *v, const int32_t *col, int64_t degree, float *out,
                                    float *unused, const int64_t H, const int64_t C)
{
    for (int64_t x = 0; x < degree; x += 2) {
        const int64_t next = x + 1 < degree ? x + 1 : x;
        dot_heads(H, C, u, v + col[x] * H * C, v + col[next] * H * C, out + x * H, next > x ? out + next * H : unused);
    }
}

static ALWAYS_INLINE void graph_qk_forward(const graph_qk *g, float *out, float *prob, const int64_t H, const int64_t C)
{
    const vf scale = vf_set(1.0f / sqrtf((float)C));
    for (int64_t i = 0; i < g->N; i++) {
        const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first, n = degree * H;
        dot_edges(g->q + i * H * C, g->k, g->col + first, degree, g->z, g->unused, H, C);
        VF_FOR (x, k, n) {
            const vf bias = g->bias != NULL ? vf_get(g->bias + first * H + x, k) : (vf)vf_set(0);
            vf_put(g->z + x, vf_fma(vf_get(g->z + x, k), scale, bias), k);
        }
        softmax_flat(g->z, n, H);
        if (prob != NULL) {
            memcpy(prob + first * H, g->z, (size_t)n * sizeof(*prob));
        }
        sum_weighted_values(g->z, g->v, g->col + first, degree, 1, out + i * H * C, H, C);
    }
}

void CPU(graph_qk)(const dt_kernel_args *a)
{
    const graph_qk g = graph_qk_args(a, 0);
    const int64_t H = a->attr->i[0], C = a->in[0].dim[1] / H;
    if (H == 8 && C == 32) {
        graph_qk_forward(&g, f32_out(a, 0), f32_out(a, 1), 8, 32);
    } else {
        graph_qk_forward(&g, f32_out(a, 0), f32_out(a, 1), H, C);
    }
}

typedef struct gradients {
    const float *dy, *prob;
    float *dq, *dk, *dv, *dbias;
} gradients;

/* In passes, so that each has the rows of one tensor of a scene in the first-level cache: dz of all edges, then what
 * it gives to q, to k and, with the probabilities, to v. */
static ALWAYS_INLINE void graph_qk_backward(const graph_qk *g, const gradients *b, const int64_t H, const int64_t C)
{
    const int64_t D = H * C;
    const float scale = 1.0f / sqrtf((float)C);
    for (int64_t i = 0; i < g->N; i++) {
        const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
        dot_edges(b->dy + i * D, g->v, g->col + first, degree, g->z + first * H, g->unused, H, C);
        softmax_flat_backward(b->prob + first * H, g->z + first * H, NULL, 1, NULL, degree * H, H);
    }
    if (b->dbias != NULL) {
        memcpy(b->dbias, g->z, (size_t)(g->rowptr[g->N] * H) * sizeof(*g->z));
    }
    if (b->dq != NULL) {
        for (int64_t i = 0; i < g->N; i++) {
            const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
            sum_weighted_values(g->z + first * H, g->k, g->col + first, degree, scale, b->dq + i * D, H, C);
        }
    }
    if (b->dk != NULL) {
        for (int64_t i = 0; i < g->N; i++) {
            const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
            scatter_weighted_values(g->z + first * H, g->q + i * D, g->col + first, degree, scale, b->dk, H, C);
        }
    }
    if (b->dv != NULL) {
        for (int64_t i = 0; i < g->N; i++) {
            const int64_t first = g->rowptr[i], degree = g->rowptr[i + 1] - first;
            scatter_weighted_values(b->prob + first * H, b->dy + i * D, g->col + first, degree, 1, b->dv, H, C);
        }
    }
}

void CPU(graph_qk_bwd)(const dt_kernel_args *a)
{
    const graph_qk g = graph_qk_args(a, 1);
    const int64_t H = a->attr->i[0], C = a->in[1].dim[1] / H;
    const gradients b = {.dy = f32_in(a, 0),
                         .prob = f32_in(a, 7),
                         .dq = f32_out(a, 0),
                         .dk = f32_out(a, 1),
                         .dv = f32_out(a, 2),
                         .dbias = f32_out(a, 3)};
    for (uint32_t i = 0; i < a->n_out; i++) {
        start_sum(a, i);
    }
    if (H == 8 && C == 32) {
        graph_qk_backward(&g, &b, 8, 32);
    } else {
        graph_qk_backward(&g, &b, H, C);
    }
}

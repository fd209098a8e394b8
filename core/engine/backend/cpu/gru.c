/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU over a sequence, with the products arranged as in lstm.c. Reference: engine/backend/ref/gru.c.
 */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/scratch.h"
#include "engine/backend/cpu/vmath.h"

/* u: row of W h_{t-1} + b. gate: row of r, z, n, u, or NULL. */
static void gru_cell(const float *x, const float *u, const float *h_before, float *gate, float *h, int64_t H)
{
    VF_FOR (j, k, H) {
        const vf r = vf_sigmoid(vf_get(x + j, k) + vf_get(u + j, k));
        const vf z = vf_sigmoid(vf_get(x + H + j, k) + vf_get(u + H + j, k));
        const vf un = vf_get(u + 2 * H + j, k), n = vf_tanh(vf_fma(r, un, vf_get(x + 2 * H + j, k)));
        if (gate != NULL) {
            vf_put(gate + j, r, k);
            vf_put(gate + H + j, z, k);
            vf_put(gate + 2 * H + j, n, k);
            vf_put(gate + 3 * H + j, un, k);
        }
        vf_put(h + j, vf_fma(z, vf_get(h_before + j, k) - n, n), k);
    }
}

void CPU(gru)(const dt_kernel_args *a)
{
    const float *xw = f32_in(a, 0), *bh = f32_in(a, 2), *present = f32_in(a, 3);
    float *h = f32_out(a, 0), *gates = f32_out(a, 1);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[1].dim[1];
    float *packed = a->scratch, *tile = packed + dt_gemm_packed_floats(3 * H, H);
    float *zero = tile + dt_gemm_tile_floats(H), *u = zero + H; /* [H] [S,3H] */
    dt_gemm g = {.M = S,
                 .N = 3 * H,
                 .K = H,
                 .a_row = H,
                 .a_k = 1,
                 .b = f32_in(a, 1),
                 .b_k = 1,
                 .b_col = H,
                 .c = u,
                 .c_row = 3 * H,
                 .bias = bh};
    memset(zero, 0, (size_t)H * sizeof(*zero));
    CPU(gemm_pack)(&g, packed);
    for (int64_t t = 0; t < T; t++) {
        g.a = h + (t - 1) * S * H;
        if (t > 0) {
            CPU(gemm_packed)(&g, packed, tile);
        }
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H;
            const float *h_before = t > 0 ? h + row - S * H : zero;
            float *gate = gates != NULL ? gates + 4 * row : NULL;
            if (present == NULL || present[t * S + s] != 0) {
                gru_cell(xw + 3 * row, t > 0 ? u + s * 3 * H : bh, h_before, gate, h + row, H);
            } else { /* held; xw is not read */
                if (gate != NULL) {
                    memset(gate, 0, (size_t)(4 * H) * sizeof(*gate));
                }
                memcpy(h + row, h_before, (size_t)H * sizeof(*h));
            }
        }
    }
}

/* dh: carried from the step after; on return for the step before, without what comes through W.
 * dx (or NULL), dv, du: rows of the gradients of xw, of W h + b, and of its last third. */
static void gru_cell_backward(const float *dy, const float *gate, const float *h_before, float *dh, float *dx,
                              float *dv, float *du, int64_t H)
{
    const vf one = vf_set(1);
    VF_FOR (j, k, H) {
        const vf r = vf_get(gate + j, k), z = vf_get(gate + H + j, k), n = vf_get(gate + 2 * H + j, k),
                 u = vf_get(gate + 3 * H + j, k), d = vf_get(dh + j, k) + vf_get(dy + j, k);
        const vf dn = d * (one - z) * (one - n * n), dr = dn * u * (r * (one - r)),
                 dz = d * (vf_get(h_before + j, k) - n) * (z * (one - z));
        if (dx != NULL) {
            vf_put(dx + j, dr, k);
            vf_put(dx + H + j, dz, k);
            vf_put(dx + 2 * H + j, dn, k);
        }
        vf_put(dv + j, dr, k);
        vf_put(dv + H + j, dz, k);
        vf_put(dv + 2 * H + j, dn * r, k);
        vf_put(du + j, dn * r, k);
        vf_put(dh + j, d * z, k);
    }
}

static void add_row(float *sum, const float *row, int64_t n)
{
    VF_FOR (i, k, n) {
        vf_put(sum + i, vf_get(sum + i, k) + vf_get(row + i, k), k);
    }
}

void CPU(gru_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0), *h = f32_in(a, 1), *gates = f32_in(a, 2), *present = f32_in(a, 4);
    float *dxw = f32_out(a, 0), *dwh = f32_out(a, 1), *dbh = f32_out(a, 2);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    const size_t product = dt_scratch_recurrent_product(T, S, H, 3);
    float *packed = a->scratch, *tile = packed + dt_gemm_packed_floats(H, 3 * H);
    float *zero = packed + product, *dh = zero + H, *dv = dh + S * H,
          *du = dv + S * 3 * H; /* [H] [S,H] [S,3H] [T,S,H] */
    dt_gemm g = {.M = S,
                 .N = H,
                 .K = 3 * H,
                 .a = dv,
                 .a_row = 3 * H,
                 .a_k = 1,
                 .b = f32_in(a, 3),
                 .b_k = H,
                 .b_col = 1,
                 .c = dh,
                 .c_row = H,
                 .accum = true};
    dt_gemm w = {
        .M = 3 * H, .N = H, .a_row = 1, .a_k = 3 * H, .b_k = H, .b_col = 1, .c = dwh, .c_row = H, .accum = true};
    memset(zero, 0, (size_t)(H + S * H) * sizeof(*zero));
    start_sum(a, 1);
    start_sum(a, 2);
    CPU(gemm_pack)(&g, packed);
    for (int64_t t = T - 1; t >= 0; t--) {
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H;
            float *dx = dxw != NULL ? dxw + 3 * row : NULL;
            if (present == NULL || present[t * S + s] != 0) {
                gru_cell_backward(dy + row, gates + 4 * row, t > 0 ? h + row - S * H : zero, dh + s * H, dx,
                                  dv + s * 3 * H, du + row, H);
                if (dbh != NULL) {
                    add_row(dbh, dv + s * 3 * H, 3 * H);
                }
            } else { /* the state was held, so is its gradient */
                memset(dv + s * 3 * H, 0, (size_t)(3 * H) * sizeof(*dv));
                memset(du + row, 0, (size_t)H * sizeof(*du));
                if (dx != NULL) {
                    memset(dx, 0, (size_t)(3 * H) * sizeof(*dx));
                }
                add_row(dh + s * H, dy + row, H);
            }
        }
        if (t > 0) {
            CPU(gemm_packed)(&g, packed, tile);
        }
        if (t > 0 && dxw == NULL && dwh != NULL) {
            w.K = S;
            w.a = dv;
            w.b = h + (t - 1) * S * H;
            CPU(gemm)(&w, du + T * S * H);
        }
    }
    if (dxw != NULL && dwh != NULL && T > 1) { /* r and z rows from dxw, n rows from du */
        w.K = (T - 1) * S;
        w.b = h;
        w.M = 2 * H;
        w.a = dxw + S * 3 * H;
        CPU(gemm)(&w, a->scratch); /* the packed W is done with */
        w.M = H;
        w.a = du + S * H;
        w.a_k = H;
        w.c = dwh + 2 * H * H;
        CPU(gemm)(&w, a->scratch);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over a sequence: W_h is packed once, then one product and one pass over the gates per step; backward collects
 * the gates' gradients of all steps and makes one product for dwh. Reference: engine/backend/ref/lstm.c.
 */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/scratch.h"
#include "engine/backend/cpu/vmath.h"

/* z: products on entry, gates on return. x: row of xw. */
static void lstm_cell(const float *x, float *z, const float *c_before, float *c, float *h, int64_t H)
{
    VF_FOR (j, k, H) {
        const vf i = vf_sigmoid(vf_get(x + j, k) + vf_get(z + j, k));
        const vf f = vf_sigmoid(vf_get(x + H + j, k) + vf_get(z + H + j, k));
        const vf g = vf_tanh(vf_get(x + 2 * H + j, k) + vf_get(z + 2 * H + j, k));
        const vf o = vf_sigmoid(vf_get(x + 3 * H + j, k) + vf_get(z + 3 * H + j, k));
        const vf now = vf_fma(f, vf_get(c_before + j, k), i * g);
        vf_put(z + j, i, k);
        vf_put(z + H + j, f, k);
        vf_put(z + 2 * H + j, g, k);
        vf_put(z + 3 * H + j, o, k);
        vf_put(c + j, now, k);
        vf_put(h + j, o * vf_tanh(now), k);
    }
}

void CPU(lstm)(const dt_kernel_args *a)
{
    const float *xw = f32_in(a, 0), *present = f32_in(a, 2);
    float *h = f32_out(a, 0), *gates = f32_out(a, 1), *c = f32_out(a, 2);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[1].dim[1];
    float *packed = a->scratch, *tile = packed + dt_gemm_packed_floats(4 * H, H);
    float *zero = tile + dt_gemm_tile_floats(H), *state = zero + H, *products = state + S * H; /* [H] [S,H] [S,4H] */
    dt_gemm g = {
        .M = S, .N = 4 * H, .K = H, .a_row = H, .a_k = 1, .b = f32_in(a, 1), .b_k = 1, .b_col = H, .c_row = 4 * H};
    memset(zero, 0, (size_t)(H + S * H) * sizeof(*zero));
    CPU(gemm_pack)(&g, packed);
    for (int64_t t = 0; t < T; t++) {
        float *z = gates != NULL ? gates + t * S * 4 * H : products;
        g.a = h + (t - 1) * S * H;
        g.c = z;
        if (t > 0) {
            CPU(gemm_packed)(&g, packed, tile);
        } else {
            memset(z, 0, (size_t)(S * 4 * H) * sizeof(*z));
        }
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H;
            const float *c_before = c == NULL ? state + s * H : t > 0 ? c + row - S * H : zero;
            float *c_now = c == NULL ? state + s * H : c + row;
            if (present == NULL || present[t * S + s] != 0) {
                lstm_cell(xw + 4 * row, z + s * 4 * H, c_before, c_now, h + row, H);
            } else { /* held; xw is not read */
                memset(z + s * 4 * H, 0, (size_t)(4 * H) * sizeof(*z));
                memmove(c_now, c_before, (size_t)H * sizeof(*c));
                memcpy(h + row, t > 0 ? h + row - S * H : zero, (size_t)H * sizeof(*h));
            }
        }
    }
}

/* dh, dc: carried from the step after, on return for the step before, without what comes through W_h */
static void lstm_cell_backward(const float *dy, const float *gate, const float *c_before, const float *c, float *dh,
                               float *dc, float *dz, int64_t H)
{
    const vf one = vf_set(1);
    VF_FOR (j, k, H) {
        const vf i = vf_get(gate + j, k), f = vf_get(gate + H + j, k), g = vf_get(gate + 2 * H + j, k),
                 o = vf_get(gate + 3 * H + j, k);
        const vf tc = vf_tanh(vf_get(c + j, k)), d = vf_get(dh + j, k) + vf_get(dy + j, k);
        const vf dcell = vf_fma(d * o, one - tc * tc, vf_get(dc + j, k));
        vf_put(dz + j, dcell * g * (i * (one - i)), k);
        vf_put(dz + H + j, dcell * vf_get(c_before + j, k) * (f * (one - f)), k);
        vf_put(dz + 2 * H + j, dcell * i * (one - g * g), k);
        vf_put(dz + 3 * H + j, d * tc * (o * (one - o)), k);
        vf_put(dc + j, dcell * f, k);
        vf_put(dh + j, vf_set(0), k);
    }
}

void CPU(lstm_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0), *h = f32_in(a, 1), *gates = f32_in(a, 2), *c = f32_in(a, 3),
                *present = f32_in(a, 5);
    float *dxw = f32_out(a, 0), *dwh = f32_out(a, 1);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    const size_t product = dt_scratch_recurrent_product(T, S, H, 4);
    float *packed = a->scratch, *tile = packed + dt_gemm_packed_floats(H, 4 * H);
    float *zero = packed + product, *dh = zero + H, *dc = dh + S * H, *row_dz = dc + S * H; /* [H] [S,H] [S,H] [S,4H] */
    dt_gemm g = {.M = S,
                 .N = H,
                 .K = 4 * H,
                 .a_row = 4 * H,
                 .a_k = 1,
                 .b = f32_in(a, 4),
                 .b_k = H,
                 .b_col = 1,
                 .c = dh,
                 .c_row = H,
                 .accum = true};
    dt_gemm w = {
        .M = 4 * H, .N = H, .a_row = 1, .a_k = 4 * H, .b_k = H, .b_col = 1, .c = dwh, .c_row = H, .accum = true};
    memset(zero, 0, (size_t)(H + 2 * S * H) * sizeof(*zero));
    start_sum(a, 1);
    CPU(gemm_pack)(&g, packed);
    for (int64_t t = T - 1; t >= 0; t--) {
        float *dz = dxw != NULL ? dxw + t * S * 4 * H : row_dz;
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H;
            if (present == NULL || present[t * S + s] != 0) {
                lstm_cell_backward(dy + row, gates + 4 * row, t > 0 ? c + row - S * H : zero, c + row, dh + s * H,
                                   dc + s * H, dz + s * 4 * H, H);
            } else { /* the state was held, so is its gradient */
                memset(dz + s * 4 * H, 0, (size_t)(4 * H) * sizeof(*dz));
                VF_FOR (j, k, H) {
                    vf_put(dh + s * H + j, vf_get(dh + s * H + j, k) + vf_get(dy + row + j, k), k);
                }
            }
        }
        if (t > 0) { /* dh += dz W_h, also where it is held: dz is 0 there */
            g.a = dz;
            CPU(gemm_packed)(&g, packed, tile);
        }
        if (t > 0 && dxw == NULL && dwh != NULL) {
            w.K = S;
            w.a = dz;
            w.b = h + (t - 1) * S * H;
            CPU(gemm)(&w, row_dz + S * 4 * H);
        }
    }
    if (dxw != NULL && dwh != NULL && T > 1) {
        w.K = (T - 1) * S;
        w.a = dxw + S * 4 * H;
        w.b = h;
        CPU(gemm)(&w, a->scratch); /* the packed W_h is done with */
    }
}

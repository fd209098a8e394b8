/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over a sequence (Hochreiter and Schmidhuber 1997, with forget gate); the input product and both biases are
 * already in xw. See ref.h.
 *
 *   i f g o = sigma sigma tanh sigma (xw_t + W_h h_{t-1})     c_t = f c_{t-1} + i g     h_t = o tanh(c_t)
 *   xw [T,S,4H]  wh [4H,H]  present [T,S] or absent  h, c [T,S,H]  gates [T,S,4H]     h_{-1} = c_{-1} = 0
 * Where present is 0 the state is held, xw is not read, and the stored gates are 0.
 */
#include "engine/backend/ref/ref.h"

void REF(lstm)(const dt_kernel_args *a)
{
    const real *xw = real_in(a, 0), *wh = real_in(a, 1), *present = real_in(a, 2);
    real *h = real_out(a, 0), *gates = real_out(a, 1), *c = real_out(a, 2);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[1].dim[1];
    real *state = (real *)a->scratch; /* [S,H] cell state, when c is not kept */
    for (int64_t t = 0; t < T; t++) {
        for (int64_t s = 0; s < S; s++) {
            for (int64_t j = 0; j < H; j++) {
                const int64_t at = (t * S + s) * H + j, before = at - S * H;
                const real *row = xw + (t * S + s) * 4 * H;
                real *c_row = c != NULL ? c + at : state + s * H + j;
                const double c_before = t == 0 ? 0 : c != NULL ? c[before] : *c_row;
                double gate[4] = {0}, c_now = c_before, h_now = t == 0 ? 0 : h[before];
                if (present == NULL || present[t * S + s] != 0) {
                    for (int64_t q = 0; q < 4; q++) {
                        double z = row[q * H + j];
                        if (t > 0) {
                            for (int64_t k = 0; k < H; k++) {
                                z += (double)wh[(q * H + j) * H + k] * h[((t - 1) * S + s) * H + k];
                            }
                        }
                        gate[q] = q == 2 ? tanh(z) : sigmoid(z);
                    }
                    c_now = gate[1] * c_before + gate[0] * gate[2];
                    h_now = gate[3] * tanh(c_now);
                }
                if (gates != NULL) {
                    for (int64_t q = 0; q < 4; q++) {
                        gates[(t * S + s) * 4 * H + q * H + j] = (real)gate[q];
                    }
                }
                *c_row = (real)c_now;
                h[at] = (real)h_now;
            }
        }
    }
}

/* Backward in time with dh, dc [S,H] carried from t + 1:
 *   do = dh tanh(c)   dc += dh o (1 - tanh(c)^2)   di = dc g   df = dc c_{t-1}   dg = dc i   dc <- dc f
 *   dxw_t = (di, df, dg, do) through their functions     dh_{t-1} = W_h^T dxw_t     dwh = sum_t dxw_t h_{t-1}^T */
void REF(lstm_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *h = real_in(a, 1), *gates = real_in(a, 2), *c = real_in(a, 3), *wh = real_in(a, 4),
               *present = real_in(a, 5);
    real *dxw = real_out(a, 0), *dwh = real_out(a, 1);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    double *dh = (double *)a->scratch, *dc = dh + S * H, *dz = dc + S * H; /* [S,H] [S,H] [4H] */
    memset(dh, 0, (size_t)(2 * S * H) * sizeof(*dh));
    start_sum(a, 1);
    for (int64_t t = T - 1; t >= 0; t--) {
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H, before = row - S * H;
            const real *gate = gates + 4 * row;
            const bool is_present = present == NULL || present[t * S + s] != 0;
            for (int64_t j = 0; j < H; j++) {
                dh[s * H + j] += dy[row + j];
                double *const q = dz + j;
                q[0] = q[H] = q[2 * H] = q[3 * H] = 0;
                if (is_present) {
                    const double i = gate[j], f = gate[H + j], g = gate[2 * H + j], o = gate[3 * H + j];
                    const double tc = tanh(c[row + j]), c_before = t > 0 ? c[before + j] : 0;
                    dc[s * H + j] += dh[s * H + j] * o * (1 - tc * tc);
                    q[0] = dc[s * H + j] * g * i * (1 - i);
                    q[H] = dc[s * H + j] * c_before * f * (1 - f);
                    q[2 * H] = dc[s * H + j] * i * (1 - g * g);
                    q[3 * H] = dh[s * H + j] * tc * o * (1 - o);
                    dc[s * H + j] *= f;
                }
            }
            if (dxw != NULL) {
                for (int64_t m = 0; m < 4 * H; m++) {
                    dxw[4 * row + m] = (real)dz[m];
                }
            }
            if (is_present) {
                for (int64_t k = 0; k < H; k++) {
                    double sum = 0;
                    for (int64_t m = 0; m < 4 * H; m++) {
                        sum += dz[m] * wh[m * H + k];
                        if (dwh != NULL && t > 0) {
                            dwh[m * H + k] += (real)(dz[m] * h[before + k]);
                        }
                    }
                    dh[s * H + k] = sum;
                }
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU over a sequence (Cho et al. 2014, in PyTorch's form); the input product and bias are already in xw. See ref.h.
 *
 *   r z = sigma (xw_t + W h_{t-1} + b)   u = W_n h_{t-1} + b_n   n = tanh(xw_n + r u)   h_t = (1 - z) n + z h_{t-1}
 *   xw [T,S,3H]  wh [3H,H]  bh [3H]  present [T,S] or absent  h [T,S,H]  gates [T,S,4H] = r, z, n, u     h_{-1} = 0
 * Where present is 0 the state is held, xw is not read, and the stored gates are 0.
 */
#include "engine/backend/ref/ref.h"

void REF(gru)(const dt_kernel_args *a)
{
    const real *xw = real_in(a, 0), *wh = real_in(a, 1), *bh = real_in(a, 2), *present = real_in(a, 3);
    real *h = real_out(a, 0), *gates = real_out(a, 1);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[1].dim[1];
    for (int64_t t = 0; t < T; t++) {
        for (int64_t s = 0; s < S; s++) {
            const real *row = xw + (t * S + s) * 3 * H, *h_before = t > 0 ? h + ((t - 1) * S + s) * H : NULL;
            for (int64_t j = 0; j < H; j++) {
                double gate[4] = {0}, h_now = t > 0 ? h_before[j] : 0;
                if (present == NULL || present[t * S + s] != 0) {
                    double u[3];
                    for (int64_t q = 0; q < 3; q++) {
                        u[q] = bh[q * H + j];
                        if (t > 0) {
                            for (int64_t k = 0; k < H; k++) {
                                u[q] += (double)wh[(q * H + j) * H + k] * h_before[k];
                            }
                        }
                    }
                    gate[0] = sigmoid(row[j] + u[0]);
                    gate[1] = sigmoid(row[H + j] + u[1]);
                    gate[2] = tanh(row[2 * H + j] + gate[0] * u[2]);
                    gate[3] = u[2];
                    h_now = (1 - gate[1]) * gate[2] + gate[1] * h_now;
                }
                if (gates != NULL) {
                    for (int64_t q = 0; q < 4; q++) {
                        gates[((t * S + s) * 4 + q) * H + j] = (real)gate[q];
                    }
                }
                h[(t * S + s) * H + j] = (real)h_now;
            }
        }
    }
}

/* Backward in time with dh [S,H] carried from t + 1:
 *   dn = dh (1 - z)(1 - n^2)   dz = dh (h_{t-1} - n) z (1 - z)   dr = dn u r (1 - r)   du = dn r
 *   dxw = (dr, dz, dn)   dv = (dr, dz, du)   dh_{t-1} = dh z + W^T dv   dwh = sum dv h_{t-1}^T   dbh = sum dv */
void REF(gru_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *h = real_in(a, 1), *gates = real_in(a, 2), *wh = real_in(a, 3),
               *present = real_in(a, 4);
    real *dxw = real_out(a, 0), *dwh = real_out(a, 1), *dbh = real_out(a, 2);
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    double *dh = (double *)a->scratch, *dv = dh + S * H; /* [S,H] [3H] */
    memset(dh, 0, (size_t)(S * H) * sizeof(*dh));
    start_sum(a, 1);
    start_sum(a, 2);
    for (int64_t t = T - 1; t >= 0; t--) {
        for (int64_t s = 0; s < S; s++) {
            const int64_t row = (t * S + s) * H, before = row - S * H;
            const real *gate = gates + 4 * row;
            const bool is_present = present == NULL || present[t * S + s] != 0;
            for (int64_t j = 0; j < H; j++) {
                double *const d = &dh[s * H + j];
                *d += dy[row + j];
                double dn = 0;
                dv[j] = dv[H + j] = dv[2 * H + j] = 0;
                if (is_present) {
                    const double r = gate[j], z = gate[H + j], n = gate[2 * H + j], u = gate[3 * H + j];
                    dn = *d * (1 - z) * (1 - n * n);
                    dv[j] = dn * u * r * (1 - r);
                    dv[H + j] = *d * ((t > 0 ? h[before + j] : 0) - n) * z * (1 - z);
                    dv[2 * H + j] = dn * r;
                    *d *= z;
                }
                if (dxw != NULL) {
                    dxw[3 * row + j] = (real)dv[j];
                    dxw[3 * row + H + j] = (real)dv[H + j];
                    dxw[3 * row + 2 * H + j] = (real)dn;
                }
            }
            if (is_present) {
                for (int64_t m = 0; m < 3 * H; m++) {
                    for (int64_t k = 0; k < H; k++) {
                        dh[s * H + k] += dv[m] * wh[m * H + k];
                        if (dwh != NULL && t > 0) {
                            dwh[m * H + k] += (real)(dv[m] * h[before + k]);
                        }
                    }
                    if (dbh != NULL) {
                        dbh[m] += (real)dv[m];
                    }
                }
            }
        }
    }
}

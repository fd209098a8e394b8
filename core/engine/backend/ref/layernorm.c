/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalisation over the last dim, with an optional residual (Ba, Kiros and Hinton 2016). See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* v = x + r   n = (v - mean) / sqrt(var + f0)   y = gamma n + beta   stat [R,2]: mean, 1/sqrt(var + f0) */
void REF(layernorm)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0), *gamma = real_in(a, 1), *beta = real_in(a, 2), *res = real_in(a, 3);
    real *y = real_out(a, 0), *stat = real_out(a, 1);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    for (int64_t r = 0; r < R; r++) {
        double sum = 0, square = 0;
        for (int64_t d = 0; d < D; d++) {
            sum += (double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0);
        }
        const double mean = sum / (double)D;
        for (int64_t d = 0; d < D; d++) {
            const double v = (double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0) - mean;
            square += v * v;
        }
        const double rstd = 1.0 / sqrt(square / (double)D + a->attr->f[0]);
        for (int64_t d = 0; d < D; d++) {
            const double v = (double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0);
            y[r * D + d] = (real)(gamma[d] * (v - mean) * rstd + beta[d]);
        }
        if (stat != NULL) {
            stat[r * 2] = (real)mean;
            stat[r * 2 + 1] = (real)rstd;
        }
    }
}

/* with g = dy gamma and n as above:   dx = rstd (g - mean(g) - n mean(g n))   dgamma = sum_r dy n   dbeta = sum_r dy */
void REF(layernorm_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *x = real_in(a, 1), *gamma = real_in(a, 2), *res = real_in(a, 3);
    const real *stat = real_in(a, 4);
    real *dx = real_out(a, 0), *dgamma = real_out(a, 1), *dbeta = real_out(a, 2);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    if (dx != NULL) {
        for (int64_t r = 0; r < R; r++) {
            const double mean = stat[r * 2], rstd = stat[r * 2 + 1];
            double sum_g = 0, sum_gn = 0;
            for (int64_t d = 0; d < D; d++) {
                const double n = ((double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0) - mean) * rstd;
                const double g = (double)dy[r * D + d] * gamma[d];
                sum_g += g;
                sum_gn += g * n;
            }
            for (int64_t d = 0; d < D; d++) {
                const double n = ((double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0) - mean) * rstd;
                const double g = (double)dy[r * D + d] * gamma[d];
                dx[r * D + d] = (real)(rstd * (g - (sum_g + n * sum_gn) / (double)D));
            }
        }
    }
    for (int64_t d = 0; d < D; d++) {
        double sum_n = dgamma != NULL && a->out[1].accum ? dgamma[d] : 0;
        double sum = dbeta != NULL && a->out[2].accum ? dbeta[d] : 0;
        for (int64_t r = 0; r < R; r++) {
            const double v = (double)x[r * D + d] + (res != NULL ? res[r * D + d] : 0);
            sum_n += dy[r * D + d] * (v - stat[r * 2]) * stat[r * 2 + 1];
            sum += dy[r * D + d];
        }
        if (dgamma != NULL) {
            dgamma[d] = (real)sum_n;
        }
        if (dbeta != NULL) {
            dbeta[d] = (real)sum;
        }
    }
}

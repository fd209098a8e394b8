/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation: columns over the rows of a micro-batch (Ioffe & Szegedy 2015; Hoffer et al. 2017), or by running
 * statistics. See ref.h.
 */
#include "engine/backend/ref/ref.h"

static int is_counted(const real *mask, int64_t r)
{
    return mask == NULL || mask[r] > 0;
}

/* m = mean, v = mean of (x - m)^2 over the n rows that count, or the running ones (i0)
 * y = gamma (x - m) / sqrt(v + f0) + beta
 * stat [4,D]: m; 1/sqrt(v + f0); running mean - m, 0 where n = 0; running variance - v n/(n - 1), 0 where n < 2 */
void REF(batch_norm)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0), *gamma = real_in(a, 1), *beta = real_in(a, 2), *mean = real_in(a, 3);
    const real *var = real_in(a, 4), *mask = real_in(a, 5);
    real *y = real_out(a, 0), *stat = real_out(a, 1);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    const int is_running = a->attr->i[0] != 0;
    for (int64_t d = 0; d < D; d++) {
        double n = 0, sum = 0, square = 0;
        for (int64_t r = 0; r < R; r++) {
            if (is_counted(mask, r)) {
                n++;
                sum += x[r * D + d];
            }
        }
        const double m = is_running ? mean[d] : n > 0 ? sum / n : 0;
        for (int64_t r = 0; r < R; r++) {
            if (is_counted(mask, r)) {
                square += (x[r * D + d] - m) * (x[r * D + d] - m);
            }
        }
        const double v = is_running ? var[d] : n > 0 ? square / n : 0;
        const double rstd = 1.0 / sqrt(v + a->attr->f[0]);
        for (int64_t r = 0; r < R; r++) {
            y[r * D + d] = is_counted(mask, r) ? (real)(gamma[d] * (x[r * D + d] - m) * rstd + beta[d]) : 0;
        }
        if (stat != NULL) {
            stat[d] = (real)m;
            stat[D + d] = (real)rstd;
            stat[2 * D + d] = (real)(is_running || n < 1 ? 0 : mean[d] - m);
            stat[3 * D + d] = (real)(is_running || n < 2 ? 0 : var[d] - square / (n - 1));
        }
    }
}

static void add_to_element(const dt_kernel_args *a, uint32_t k, int64_t d, double x)
{
    real *out = real_out(a, k);
    if (out != NULL) {
        out[d] = (real)((a->out[k].accum ? out[d] : 0) + x);
    }
}

/* with h = (x - m) rstd, over the n rows that count:   dgamma = sum_r dy h   dbeta = sum_r dy
 *   dx = gamma rstd (dy - (dbeta + h dgamma)/n), or gamma rstd dy where m and v are the running ones
 *   dmean, dvar = f1 share stat[2], f1 share stat[3] */
void REF(batch_norm_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *x = real_in(a, 1), *gamma = real_in(a, 2), *stat = real_in(a, 3);
    const real *mask = real_in(a, 4);
    real *dx = real_out(a, 0);
    const int64_t R = dt_view_rows(&a->in[0], 1), D = last_dim(&a->in[0]);
    const double share = a->run->share * a->attr->f[1];
    for (int64_t d = 0; d < D; d++) {
        const double m = stat[d], rstd = stat[D + d];
        double n = 0, dgamma = 0, dbeta = 0;
        for (int64_t r = 0; r < R; r++) {
            if (is_counted(mask, r)) {
                n++;
                dgamma += dy[r * D + d] * (x[r * D + d] - m) * rstd;
                dbeta += dy[r * D + d];
            }
        }
        for (int64_t r = 0; r < R && dx != NULL; r++) {
            const double h = (x[r * D + d] - m) * rstd;
            const double of_batch = a->attr->i[0] != 0 ? 0 : (dbeta + h * dgamma) / n;
            dx[r * D + d] = is_counted(mask, r) ? (real)(gamma[d] * rstd * (dy[r * D + d] - of_batch)) : 0;
        }
        add_to_element(a, 1, d, dgamma);
        add_to_element(a, 2, d, dbeta);
        add_to_element(a, 3, d, share * stat[2 * D + d]);
        add_to_element(a, 4, d, share * stat[3 * D + d]);
    }
}

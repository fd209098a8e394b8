/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation: columns in blocks whose sums, in double, stay in the first cache while all rows pass. A sum adds
 * rows in their order in every build. Reference: engine/backend/ref/batch_norm.c.
 */
#include "engine/backend/cpu/cpu.h"

#include <math.h>

enum { BLOCK = 64 };

typedef struct rows { /* of x, or of x and dy, and which of them count */
    const float *x, *dy, *mask;
    int64_t R, D;
} rows;

static ALWAYS_INLINE bool is_counted(const rows *m, int64_t r)
{
    return m->mask == NULL || m->mask[r] > 0;
}

static int64_t count_rows(const rows *m)
{
    int64_t n = 0;
    for (int64_t r = 0; r < m->R; r++) {
        n += is_counted(m, r);
    }
    return n;
}

/* Columns [at, at + k) of the batch: means, and sums of squares of what differs from them. */
static void sum_columns(const rows *m, int64_t at, int64_t k, int64_t n, float *mean, double *square)
{
    double sum[BLOCK] = {0};
    for (int64_t r = 0; r < m->R; r++) {
        const float *x = m->x + r * m->D + at;
        for (int64_t d = 0; d < k && is_counted(m, r); d++) {
            sum[d] += (double)x[d];
        }
    }
    for (int64_t d = 0; d < k; d++) {
        mean[d] = n > 0 ? (float)(sum[d] / (double)n) : 0;
        square[d] = 0;
    }
    for (int64_t r = 0; r < m->R; r++) {
        const float *x = m->x + r * m->D + at;
        for (int64_t d = 0; d < k && is_counted(m, r); d++) {
            const double v = (double)x[d] - (double)mean[d];
            square[d] += v * v;
        }
    }
}

/* scale = gamma rstd */
static void normalise_columns(const rows *m, int64_t at, int64_t k, const float *mean, const float *scale,
                              const float *beta, float *out)
{
    for (int64_t r = 0; r < m->R; r++) {
        const float *x = m->x + r * m->D + at;
        float *y = out + r * m->D + at;
        if (!is_counted(m, r)) {
            memset(y, 0, (size_t)k * sizeof(*y));
            continue;
        }
        for (int64_t d = 0; d < k; d++) {
            y[d] = (x[d] - mean[d]) * scale[d] + beta[d];
        }
    }
}

void CPU(batch_norm)(const dt_kernel_args *a)
{
    const float *gamma = f32_in(a, 1), *beta = f32_in(a, 2), *running = f32_in(a, 3), *var = f32_in(a, 4);
    float *stat = f32_out(a, 1);
    const bool is_running = a->attr->i[0] != 0;
    const rows m = {.x = f32_in(a, 0), .mask = f32_in(a, 5), .R = dt_view_rows(&a->in[0], 1), .D = last_dim(&a->in[0])};
    const int64_t n = count_rows(&m);
    for (int64_t at = 0; at < m.D; at += BLOCK) {
        const int64_t k = m.D - at < BLOCK ? m.D - at : BLOCK;
        float mean[BLOCK], scale[BLOCK];
        double square[BLOCK];
        if (!is_running) {
            sum_columns(&m, at, k, n, mean, square);
        }
        for (int64_t d = 0; d < k; d++) {
            const double v = is_running ? (double)var[at + d] : n > 0 ? square[d] / (double)n : 0;
            const float rstd = (float)(1.0 / sqrt(v + a->attr->f[0]));
            mean[d] = is_running ? running[at + d] : mean[d];
            scale[d] = gamma[at + d] * rstd;
            if (stat != NULL) {
                stat[at + d] = mean[d];
                stat[m.D + at + d] = rstd;
                stat[2 * m.D + at + d] = is_running || n < 1 ? 0 : running[at + d] - mean[d];
                stat[3 * m.D + at + d] =
                    is_running || n < 2 ? 0 : (float)((double)var[at + d] - square[d] / (double)(n - 1));
            }
        }
        normalise_columns(&m, at, k, mean, scale, beta + at, f32_out(a, 0));
    }
}

/* sum_r dy h and sum_r dy, h = (x - mean) rstd, of columns [at, at + k) */
static void sum_gradients(const rows *m, int64_t at, int64_t k, const float *mean, const float *rstd, double *dgamma,
                          double *dbeta)
{
    memset(dgamma, 0, BLOCK * sizeof(*dgamma));
    memset(dbeta, 0, BLOCK * sizeof(*dbeta));
    for (int64_t r = 0; r < m->R; r++) {
        const float *x = m->x + r * m->D + at, *dy = m->dy + r * m->D + at;
        for (int64_t d = 0; d < k && is_counted(m, r); d++) {
            dgamma[d] += (double)(dy[d] * ((x[d] - mean[d]) * rstd[d]));
            dbeta[d] += (double)dy[d];
        }
    }
}

/* dx = scale (dy - (of_beta + h of_gamma)), scale = gamma rstd */
static void write_dx(const rows *m, int64_t at, int64_t k, const float *stat, const float *scale, const float *of_gamma,
                     const float *of_beta, float *out)
{
    const float *mean = stat + at, *rstd = stat + m->D + at;
    for (int64_t r = 0; r < m->R; r++) {
        const float *x = m->x + r * m->D + at, *dy = m->dy + r * m->D + at;
        float *dx = out + r * m->D + at;
        if (!is_counted(m, r)) {
            memset(dx, 0, (size_t)k * sizeof(*dx));
            continue;
        }
        for (int64_t d = 0; d < k; d++) {
            dx[d] = scale[d] * (dy[d] - (of_beta[d] + (x[d] - mean[d]) * rstd[d] * of_gamma[d]));
        }
    }
}

static void add_to_element(const dt_kernel_args *a, uint32_t k, int64_t d, double x)
{
    float *out = f32_out(a, k);
    if (out != NULL) {
        out[d] = (float)((a->out[k].accum ? (double)out[d] : 0) + x);
    }
}

void CPU(batch_norm_bwd)(const dt_kernel_args *a)
{
    const float *gamma = f32_in(a, 2), *stat = f32_in(a, 3);
    float *dx = f32_out(a, 0);
    const rows m = {.x = f32_in(a, 1),
                    .dy = f32_in(a, 0),
                    .mask = f32_in(a, 4),
                    .R = dt_view_rows(&a->in[0], 1),
                    .D = last_dim(&a->in[0])};
    const int64_t n = count_rows(&m);
    const double part = a->attr->i[0] != 0 || n < 1 ? 0 : 1 / (double)n, share = a->run->share * a->attr->f[1];
    for (int64_t at = 0; at < m.D; at += BLOCK) {
        const int64_t k = m.D - at < BLOCK ? m.D - at : BLOCK;
        double dgamma[BLOCK], dbeta[BLOCK];
        float scale[BLOCK], of_gamma[BLOCK], of_beta[BLOCK];
        sum_gradients(&m, at, k, stat + at, stat + m.D + at, dgamma, dbeta);
        for (int64_t d = 0; d < k; d++) {
            scale[d] = gamma[at + d] * stat[m.D + at + d];
            of_gamma[d] = part == 0 ? 0 : (float)(dgamma[d] * part);
            of_beta[d] = part == 0 ? 0 : (float)(dbeta[d] * part);
            add_to_element(a, 1, at + d, dgamma[d]);
            add_to_element(a, 2, at + d, dbeta[d]);
            add_to_element(a, 3, at + d, share * (double)stat[2 * m.D + at + d]);
            add_to_element(a, 4, at + d, share * (double)stat[3 * m.D + at + d]);
        }
        if (dx != NULL) {
            write_dx(&m, at, k, stat, scale, of_gamma, of_beta, dx);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/buffer/normaliser.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

dt_status dt_moments_init(dt_moments *m, size_t columns)
{
    memset(m, 0, sizeof(*m));
    m->columns = columns;
    m->mean = dt_alloc_n(4 * columns + 1, sizeof(double)); /* mean, m2, part */
    m->shift = dt_alloc_n(2 * columns, sizeof(float));
    if (m->mean == NULL || m->shift == NULL) {
        dt_moments_fini(m);
        return DT_FAIL(DT_ENOMEM, "out of memory for the statistics of %zu columns", columns);
    }
    m->m2 = m->mean + columns;
    m->part = m->m2 + columns;
    m->scale = m->shift + columns;
    dt_moments_apply(m);
    return DT_OK;
}

void dt_moments_fini(dt_moments *m)
{
    dt_free(m->mean);
    dt_free(m->shift);
    memset(m, 0, sizeof(*m));
}

void dt_moments_sum(const dt_moments_rows *r, size_t columns, double *part)
{
    const size_t D = columns;
    double *rows = part, *mean = part + 1, *m2 = mean + D;
    memset(part, 0, (1 + 2 * D) * sizeof(*part));
    for (size_t at = 0; at < r->blocks * r->stride; at += r->stride) {
        for (size_t i = at; i < at + r->n; i++) {
            if ((r->flag[i] & 1) != 0) {
                *rows += 1;
                for (size_t d = 0; d < D; d++) {
                    mean[d] += (double)r->x[i * D + d];
                }
            }
        }
    }
    if (*rows == 0) {
        return;
    }
    for (size_t d = 0; d < D; d++) {
        mean[d] /= *rows;
    }
    for (size_t at = 0; at < r->blocks * r->stride; at += r->stride) {
        for (size_t i = at; i < at + r->n; i++) {
            if ((r->flag[i] & 1) != 0) {
                for (size_t d = 0; d < D; d++) {
                    const double off = (double)r->x[i * D + d] - mean[d];
                    m2[d] += off * off;
                }
            }
        }
    }
}

/*   mean = mean_a + delta n_b / n,   M2 = M2_a + M2_b + delta^2 n_a n_b / n,   delta = mean_b - mean_a */
void dt_moments_merge(dt_moments *m, const double *part)
{
    const size_t D = m->columns;
    const double rows = part[0], *mean = part + 1, *m2 = mean + D, all = m->n + rows;
    if (rows == 0) {
        return;
    }
    for (size_t d = 0; d < D; d++) {
        const double delta = mean[d] - m->mean[d];
        m->mean[d] += delta * rows / all;
        m->m2[d] += m2[d] + delta * delta * m->n * rows / all;
    }
    m->n = all;
}

void dt_moments_add(dt_moments *m, const float *x, const unsigned char *flag, size_t n)
{
    const dt_moments_rows rows = {.x = x, .flag = flag, .n = n, .blocks = 1, .stride = n};
    dt_moments_sum(&rows, m->columns, m->part);
    dt_moments_merge(m, m->part);
}

void dt_moments_apply(dt_moments *m)
{
    static const double eps = 1e-8; /* of the variance, as in baselines' VecNormalize */
    for (size_t d = 0; d < m->columns; d++) {
        m->shift[d] = (float)m->mean[d];
        m->scale[d] = m->n > 0 ? (float)(1 / sqrt(m->m2[d] / m->n + eps)) : 1;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * See normaliser.h.
 */
#include <config.h>

#include "rollout/normaliser.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

dt_status dt_moments_init(dt_moments *m, size_t columns)
{
    memset(m, 0, sizeof(*m));
    m->columns = columns;
    m->mean = dt_alloc_n(4 * columns, sizeof(double)); /* mean, m2, batch */
    m->shift = dt_alloc_n(2 * columns, sizeof(float));
    if (m->mean == NULL || m->shift == NULL) {
        dt_moments_fini(m);
        return DT_FAIL(DT_ENOMEM, "out of memory for the statistics of %zu columns", columns);
    }
    m->m2 = m->mean + columns;
    m->batch = m->m2 + columns;
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

/*   mean = mean_a + delta n_b / n,   M2 = M2_a + M2_b + delta^2 n_a n_b / n,   delta = mean_b - mean_a */
void dt_moments_add(dt_moments *m, const float *x, const unsigned char *flag, size_t n)
{
    const size_t D = m->columns;
    double *mean = m->batch, *m2 = m->batch + D, rows = 0;
    memset(m->batch, 0, 2 * D * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        rows += flag[i] & 1;
        if ((flag[i] & 1) != 0) {
            for (size_t d = 0; d < D; d++) {
                mean[d] += (double)x[i * D + d];
            }
        }
    }
    if (rows == 0) {
        return;
    }
    for (size_t d = 0; d < D; d++) {
        mean[d] /= rows;
    }
    for (size_t i = 0; i < n; i++) {
        if ((flag[i] & 1) != 0) {
            for (size_t d = 0; d < D; d++) {
                const double off = (double)x[i * D + d] - mean[d];
                m2[d] += off * off;
            }
        }
    }
    const double all = m->n + rows;
    for (size_t d = 0; d < D; d++) {
        const double delta = mean[d] - m->mean[d];
        m->mean[d] += delta * rows / all;
        m->m2[d] += m2[d] + delta * delta * m->n * rows / all;
    }
    m->n = all;
}

void dt_moments_apply(dt_moments *m)
{
    static const double eps = 1e-8; /* of the variance, as in baselines' VecNormalize */
    for (size_t d = 0; d < m->columns; d++) {
        m->shift[d] = (float)m->mean[d];
        m->scale[d] = m->n > 0 ? (float)(1 / sqrt(m->m2[d] / m->n + eps)) : 1;
    }
}

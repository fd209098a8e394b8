/* SPDX-License-Identifier: Apache-2.0
 *
 * See feature_stats.h. A frame is read twice, for the mean and for the squares: no division waits for the one before,
 * and columns are summed side by side.
 */
#include <config.h>

#include "traffic/store/feature_stats.h"

#include <math.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef struct sums {
    float least[DT_NODE_FEATURES], most[DT_NODE_FEATURES];
    double sum[DT_NODE_FEATURES];
} sums;

static ALWAYS_INLINE void add_rows(sums *s, int width, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < width; d++) {
            const float value = x[i * width + d];
            s->sum[d] += (double)value;
            s->least[d] = value < s->least[d] ? value : s->least[d];
            s->most[d] = value > s->most[d] ? value : s->most[d];
        }
    }
}

static ALWAYS_INLINE void add_squares(double *square, const double *mean, int width, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < width; d++) {
            const double deviation = (double)x[i * width + d] - mean[d];
            square[d] += deviation * deviation;
        }
    }
}

/* rowptr NULL: n rows of x; else of each of n lists all but the first. */
static ALWAYS_INLINE void describe_feature_columns(dt_column_stat *out, int width, const float *x,
                                                   const int32_t *rowptr, int64_t n)
{
    const int64_t n_lists = rowptr == NULL ? n > 0 : n, count = rowptr == NULL || n == 0 ? n : rowptr[n] - n;
    double mean[DT_NODE_FEATURES], square[DT_NODE_FEATURES];
    sums s;
    for (int d = 0; d < width; d++) {
        s.least[d] = INFINITY;
        s.most[d] = -INFINITY;
        s.sum[d] = square[d] = 0;
    }
    for (int64_t i = 0; i < n_lists; i++) {
        const int64_t from = rowptr == NULL ? 0 : rowptr[i] + 1, end = rowptr == NULL ? n : rowptr[i + 1];
        add_rows(&s, width, x + from * width, end - from);
    }
    for (int d = 0; d < width; d++) {
        mean[d] = count > 0 ? s.sum[d] / (double)count : 0;
    }
    for (int64_t i = 0; i < n_lists; i++) {
        const int64_t from = rowptr == NULL ? 0 : rowptr[i] + 1, end = rowptr == NULL ? n : rowptr[i + 1];
        add_squares(square, mean, width, x + from * width, end - from);
    }
    for (int d = 0; d < width; d++) {
        out[d] = count == 0
                     ? (dt_column_stat){.n = 0}
                     : (dt_column_stat){(double)count, (double)s.least[d], (double)s.most[d], mean[d], square[d]};
    }
}

void dt_feature_stats_of(dt_feature_stats *out, uint32_t n, const float *node, const int32_t *rowptr, const float *edge)
{
    static const int32_t no_rows[1] = {0};
    describe_feature_columns(out->node, DT_NODE_FEATURES, node, NULL, n);
    describe_feature_columns(out->edge, DT_EDGE_FEATURES, edge, n > 0 ? rowptr : no_rows, n);
}

/* Welford's running mean and variance (Knuth, TAOCP 2, 4.2.2). */
void dt_column_stat_add(dt_column_stat *s, double x)
{
    const double d = x - s->mean;
    s->n += 1;
    s->mean += d / s->n;
    s->m2 += d * (x - s->mean);
    s->min = s->n == 1 || x < s->min ? x : s->min;
    s->max = s->n == 1 || x > s->max ? x : s->max;
}

/* What two sets of values make together (Chan, Golub and LeVeque 1979, eq. 2.1). */
static void merge_statistics(dt_column_stat *s, const dt_column_stat *more)
{
    if (s->n == 0 || more->n == 0) {
        *s = s->n == 0 ? *more : *s;
        return;
    }
    const double n = s->n + more->n, d = more->mean - s->mean;
    s->m2 += more->m2 + d * d * (s->n * more->n / n);
    s->mean += d * (more->n / n);
    s->min = more->min < s->min ? more->min : s->min;
    s->max = more->max > s->max ? more->max : s->max;
    s->n = n;
}

void dt_feature_stats_join(dt_feature_stats *s, const dt_feature_stats *more)
{
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        merge_statistics(&s->node[d], &more->node[d]);
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        merge_statistics(&s->edge[d], &more->edge[d]);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store records of its features: how many there are of each kind, their least, greatest, mean and variance.
 * Frames are summed up one by one and then joined in their order, so that the same frames make the same numbers, on any
 * number of threads. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_FEATURE_STATS_H
#define DTRAIN_PLUGINS_TRAFFIC_FEATURE_STATS_H

#include "dtrain/traffic/features.h"

typedef struct dt_column_stat { /* zeroed: of no values */
    double n, min, max, mean;
    double m2; /* sum of squares of the deviations from the mean */
} dt_column_stat;

typedef struct dt_feature_stats { /* edges without those of vehicles to themselves */
    dt_column_stat node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
} dt_feature_stats;
enum { DT_FEATURE_STATS_WIDTH = sizeof(dt_feature_stats) / sizeof(double) };

/* Of one frame: finite features of n vehicles, as dtrain/traffic/features.h makes them: the first edge of each vehicle
 * is to itself. */
void dt_feature_stats_of(dt_feature_stats *out, uint32_t n, const float *node, const int32_t *rowptr,
                         const float *edge);
void dt_feature_stats_join(dt_feature_stats *s, const dt_feature_stats *more);
void dt_column_stat_add(dt_column_stat *s, double x); /* one value more */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of one frame: neighbours of each vehicle, features of its edges, inverse TTC on its path. For features.c,
 * whose header defines them. Arithmetic goes by vectors and is that of one number after the other, bit for bit,
 * whatever instructions the processor has; so is the cosine of headings' differences, which is none of the C library's.
 * Threads: one grid, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_FEATURES_GRAPH_H
#define DTRAIN_PLUGINS_TRAFFIC_FEATURES_GRAPH_H

#include "traffic/features/nearby.h"

enum { DT_NEIGHBOURS_MOST = 256 };

/* g: built of v [n] with cells of radius_m, sines and cosines of headings filled in. Shapes as of dt_features_frame;
 * k_max in [1, DT_NEIGHBOURS_MOST]. */
void dt_features_graph(dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max, int32_t *rowptr,
                       int32_t *col, float *edge, float *path_ittc);

/* Sets of instructions, for tests that compare them: what is asked for must be one up to the best of this processor. */
typedef enum dt_graph_set { DT_GRAPH_PLAIN, DT_GRAPH_AVX2, DT_GRAPH_AVX512 } dt_graph_set;
dt_graph_set dt_graph_best(void);
void dt_features_graph_of(dt_graph_set set, dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m,
                          uint32_t k_max, int32_t *rowptr, int32_t *col, float *edge, float *path_ittc);
/* Its cosines of x [n], |x| <= 2 DT_HEADING_MAX. */
void dt_features_cosines_of(dt_graph_set set, const double *x, uint32_t n, double *out);

#endif

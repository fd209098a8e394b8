/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of one frame: neighbours of each vehicle, features of its edges, inverse TTC on its path. For features.c,
 * whose header defines them. Arithmetic goes by vectors of four and is that of one number after the other, bit for bit,
 * whatever instructions the processor has. Threads: one grid, one thread.
 */
#ifndef DTRAIN_CORE_DATA_FEATURES_GRAPH_H
#define DTRAIN_CORE_DATA_FEATURES_GRAPH_H

#include "data/nearby.h"

enum { DT_NEIGHBOURS_MOST = 256 };

/* g: built of v [n] with cells of radius_m. Shapes as of dt_features_frame; k_max in [1, DT_NEIGHBOURS_MOST]. */
void dt_features_graph(const dt_nearby *g, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                       int32_t *rowptr, int32_t *col, float *edge, float *path_ittc);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Roads in world models: what a vehicle sees of its lane joins what the head reads, and the way that the head predicts
 * is laid along the lane. Included by world_net.h; not installed, not part of the contract.
 *
 * A head predicts how far a vehicle gets, s along and l laterally. Without roads that is x and y; along a path
 * (traffic/ports.h), whose rows are d_k and dn_k, k = 0 .. P-1,
 *
 *   p(s, l) = sum_k r_k d_k + l sum_k r_k dn_k        r_0 = 1, r_k = min(max(s / step - (k - 1), 0), 1)
 *
 * so that a vehicle that keeps its speed follows its lane round the bend; behind the vehicle and behind the last piece
 * the path is straight. A path that is straight gives p = (s, l). Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_WORLD_ROAD_H
#define DTRAIN_MODELS_WORLD_ROAD_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"

enum { WORLD_PATH_COLUMNS = 4, WORLD_LANE_UNITS = 64 };
#define WORLD_PATH_STEP_M 4.0 /* of a piece */

/* progress [S,X,2] m along and lateral, path [S,P,4] -> [S,X,2] m in the vehicle's frame */
static inline dt_tensor *world_on_path(dt_graph *g, dt_tensor *progress, dt_tensor *path)
{
    const int64_t P = g->api->dim(path, 1);
    dt_tensor *s = dt_slice(g, progress, 0, 1), *aside = dt_slice(g, progress, 1, 1);
    dt_tensor *one = dt_fill(g, dt_slice(g, path, 0, 1), 1.0);         /* [S,P,1] */
    dt_tensor *pieces = dt_affine(g, s, 1.0 / WORLD_PATH_STEP_M, 2.0); /* of row k = 1 .. P, one number further each */
    dt_tensor *rank = dt_matmul(g, dt_fill(g, s, 1.0), dt_cumsum(g, one), 0, 1);
    dt_tensor *r = dt_sub(g, dt_matmul(g, pieces, one, 0, 1), rank); /* [S,X,P] */
    dt_tensor *part[4] = {dt_fill(g, s, 1.0), dt_binary(g, DT_BIN_MIN, dt_slice(g, r, 1, 1), dt_fill(g, s, 1.0)),
                          dt_clamp(g, dt_slice(g, r, 2, P - 3), 0.0, 1.0), dt_relu(g, dt_slice(g, r, P - 1, 1))};
    dt_tensor *at = dt_matmul(g, dt_concat(g, part, 4), path, 0, 0);
    return dt_add(g, dt_slice(g, at, 0, 2), dt_mul(g, dt_slice(g, at, 2, 2), aside));
}

#endif

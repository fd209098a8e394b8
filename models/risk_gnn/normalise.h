/* SPDX-License-Identifier: Apache-2.0
 *
 * Features normalised by the recordings that a model was trained on: constants of the model (traffic/normalise.h),
 * which phase 1 sets, so that they apply in every use of the model. In addition to the fixed scaling that every source
 * of vehicles has; until they are set they change nothing, but that accelerations are held within 5 m/s^2.
 *
 *   out = (in + shift) scale      accelerations: min(max(in, -5 m/s^2), 5 m/s^2) first
 */
#ifndef DTRAIN_RISK_GNN_NORMALISE_H
#define DTRAIN_RISK_GNN_NORMALISE_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/normalise.h"
#include "dtrain/traffic/features.h"
#include "dtrain/svc/graph.h"

static inline dt_status normalise_params(dt_params *reg)
{
    static const struct {
        const char *name;
        int64_t n;
        double first;
    } constant[] = {{"constant.node_shift", DT_NODE_FEATURES, 0},
                    {"constant.node_scale", DT_NODE_FEATURES, 1},
                    {"constant.edge_shift", DT_EDGE_FEATURES, 0},
                    {"constant.edge_scale", DT_EDGE_FEATURES, 1}};
    for (size_t i = 0; i < sizeof(constant) / sizeof(constant[0]); i++) {
        DT_TRY_H(
            reg->add(reg, constant[i].name, &constant[i].n, 1, DT_INIT_CONST | DT_INIT_CONSTANT, constant[i].first));
    }
    return DT_OK;
}

static inline dt_tensor *normalise_by(dt_graph *g, dt_tensor *x, const char *shift, const char *scale)
{
    return dt_mul(g, dt_add(g, x, g->api->param(g, shift)), g->api->param(g, scale));
}

/* nodes [N,9] as traffic/ports.h scales them */
static inline dt_tensor *normalise_nodes(dt_graph *g, dt_tensor *nodes)
{
    static const float unit[DT_NODE_FEATURES] = DT_NODE_SCALE;
    enum { A = DT_NORMALISED_ACCELERATION };
    const double most = DT_ACCELERATION_BOUND * (double)unit[A];
    dt_tensor *part[] = {dt_slice(g, nodes, 0, A), dt_clamp(g, dt_slice(g, nodes, A, 1), -most, most),
                         dt_slice(g, nodes, A + 1, DT_NODE_FEATURES - A - 1)};
    return normalise_by(g, dt_concat(g, part, 3), "constant.node_shift", "constant.node_scale");
}

/* edges [E,4] */
static inline dt_tensor *normalise_edges(dt_graph *g, dt_tensor *edges)
{
    return normalise_by(g, edges, "constant.edge_shift", "constant.edge_scale");
}

#endif

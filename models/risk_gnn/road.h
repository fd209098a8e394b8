/* SPDX-License-Identifier: Apache-2.0
 *
 * Roads in risk_gnn: pieces of lanes attend to those that they hang together with, vehicles to the pieces near them,
 * and what comes of it joins what a vehicle starts from. n = LayerNorm, in pieces p, vehicles i:
 *
 *   r_p  = ELU(W lane_node_p + b)
 *   r    <- r + O attention(Q n(r), K n(r), V n(r), w_e [edge, ELU(W edge)])          each layer
 *   a_i  = attention(Q h_i, K n(r), V n(r), w f)     over the pieces near i, f_ip = ELU(W near_edge_ip + b)
 *   h_i  <- told_i U [a_i, mean_p f_ip, mean_p on_ip f_ip]      is added to h_i before its nonlinearity
 *
 * told_i is the mean of the last column of the edges, on_ip the one before: a vehicle that no piece is near, and one
 * that is hidden, gets zeros. U starts as zeros, so a net with roads starts as the same net without them; heads of
 * w_e start by looking at one relation each. Source: Liang et al. 2020 (LaneGCN) with dot products in place of
 * convolutions, Shi et al. 2021.
 * Parameters: road.{in,link,near,q,k,v}.{w,b}, road.<i>.{q,k,v,o}.{w,b}, road.<i>.norm.{gamma,beta}, road.<i>.w_e,
 * road.norm.{gamma,beta}, road.w_near, road.out.
 * Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_RISK_GNN_ROAD_H
#define DTRAIN_MODELS_RISK_GNN_ROAD_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"

/* Ports of the role, dtrain/shapes.h. */
enum { ROAD_NODES, ROAD_ROWPTR, ROAD_COL, ROAD_EDGES, ROAD_NEAR_ROWPTR, ROAD_NEAR_COL, ROAD_NEAR_EDGES, N_ROAD_IN };

enum { ROAD_TEXT = 32 };

typedef struct road {
    int64_t hidden, heads, layers, units; /* of the net; layers among pieces */
    int64_t node, edge, near;             /* columns of the ports; 0: no roads are known */
    char text[3][ROAD_TEXT];              /* dims of these ports */
} road;

/* Columns that a phase tells among dims. Errors: DT_ESHAPE: of some of them, but not all, or fewer than are read. */
dt_status road_init(road *r, const dt_host *h, const dt_dim *dims, uint32_t n_dims);
static inline int road_is_known(const road *r)
{
    return r->node > 0;
}
/* Optional inputs, N_ROAD_IN of them. */
void road_ports(road *r, dt_port *out);
dt_status road_params(const road *r, dt_params *reg);
/* Are they offered? in: the road's inputs. */
int road_is_shown(const road *r, dt_tensor *const *in);
/* What is added to the vehicles [N,hidden]. */
dt_tensor *road_see(const road *r, dt_graph *g, dt_tensor *vehicles, dt_tensor *const *in);

#endif

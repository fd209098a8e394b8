/* SPDX-License-Identifier: Apache-2.0
 *
 * See road.h.
 */
#include "road.h"

#include <string.h>

enum { NAME = 48, LEAST_NEAR = 2 /* columns: on, told */ };

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static int64_t columns(const dt_dim *dims, uint32_t n_dims, const char *name)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return 0;
}

dt_status road_init(road *r, const dt_host *h, const dt_dim *dims, uint32_t n_dims)
{
    r->node = columns(dims, n_dims, "lane_nodes");
    r->edge = columns(dims, n_dims, "lane_edges");
    r->near = columns(dims, n_dims, "near_edges");
    if (r->node == 0 && r->edge == 0 && r->near == 0) {
        return DT_OK;
    }
    if (r->node < 1 || r->edge < 1 || r->near < LEAST_NEAR) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "risk_gnn: lane_nodes, lane_edges and near_edges have %lld, %lld and %lld columns; it reads "
                         "roads from all three of at least 1, 1 and %d (dtrain/shapes.h)",
                         (long long)r->node, (long long)r->edge, (long long)r->near, LEAST_NEAR);
    }
    snprintf(r->text[0], ROAD_TEXT, "L %lld", (long long)r->node);
    snprintf(r->text[1], ROAD_TEXT, "J %lld", (long long)r->edge);
    snprintf(r->text[2], ROAD_TEXT, "V %lld", (long long)r->near);
    return DT_OK;
}

void road_ports(road *r, dt_port *out)
{
    out[ROAD_NODES] = (dt_port){"lane_nodes", r->text[0], DT_F32, DT_PORT_OPTIONAL};
    out[ROAD_ROWPTR] = (dt_port){"lane_rowptr", "L+1", DT_I32, DT_PORT_OPTIONAL};
    out[ROAD_COL] = (dt_port){"lane_col", "J", DT_I32, DT_PORT_OPTIONAL};
    out[ROAD_EDGES] = (dt_port){"lane_edges", r->text[1], DT_F32, DT_PORT_OPTIONAL};
    out[ROAD_NEAR_ROWPTR] = (dt_port){"near_rowptr", "N+1", DT_I32, DT_PORT_OPTIONAL};
    out[ROAD_NEAR_COL] = (dt_port){"near_col", "V", DT_I32, DT_PORT_OPTIONAL};
    out[ROAD_NEAR_EDGES] = (dt_port){"near_edges", r->text[2], DT_F32, DT_PORT_OPTIONAL};
}

int road_is_shown(const road *r, dt_tensor *const *in)
{
    int n = 0;
    for (int k = 0; k < N_ROAD_IN && road_is_known(r); k++) {
        n += in[k] != NULL;
    }
    return n == N_ROAD_IN;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static const char *of_layer(char text[NAME], int64_t i, const char *name)
{
    snprintf(text, NAME, "road.%lld.%s", (long long)i, name);
    return text;
}

static dt_status add_linear(dt_params *reg, const char *name, int64_t rows, int64_t cols)
{
    char text[NAME + 4];
    const int64_t dim[2] = {rows, cols};
    snprintf(text, sizeof(text), "%s.w", name);
    DT_TRY_H(reg->add(reg, text, dim, 2, DT_INIT_XAVIER, 1.0));
    snprintf(text, sizeof(text), "%s.b", name);
    return reg->add(reg, text, dim, 1, DT_INIT_ZERO, 0.0);
}

static dt_status add_norm(dt_params *reg, const char *name, int64_t n)
{
    char text[NAME + 8];
    snprintf(text, sizeof(text), "%s.gamma", name);
    DT_TRY_H(reg->add(reg, text, &n, 1, DT_INIT_CONST, 1.0));
    snprintf(text, sizeof(text), "%s.beta", name);
    return reg->add(reg, text, &n, 1, DT_INIT_ZERO, 0.0);
}

static dt_status add_layer(const road *r, dt_params *reg, int64_t i)
{
    static const char *const square[] = {"q", "k", "v", "o"};
    char text[NAME];
    const int64_t w_e[2] = {r->heads, r->edge + r->units};
    DT_TRY_H(add_norm(reg, of_layer(text, i, "norm"), r->hidden));
    for (uint32_t k = 0; k < 4; k++) {
        DT_TRY_H(add_linear(reg, of_layer(text, i, square[k]), r->hidden, r->hidden));
    }
    return reg->add(reg, of_layer(text, i, "w_e"), w_e, 2, DT_INIT_EYE, 1.0);
}

dt_status road_params(const road *r, dt_params *reg)
{
    static const char *const square[] = {"road.q", "road.k", "road.v"};
    const int64_t w_near[2] = {r->heads, r->units}, out[2] = {r->hidden, r->hidden + 2 * r->units};
    DT_TRY_H(add_linear(reg, "road.in", r->hidden, r->node));
    DT_TRY_H(add_linear(reg, "road.link", r->units, r->edge));
    for (int64_t i = 0; i < r->layers; i++) {
        DT_TRY_H(add_layer(r, reg, i));
    }
    DT_TRY_H(add_norm(reg, "road.norm", r->hidden));
    for (uint32_t k = 0; k < 3; k++) {
        DT_TRY_H(add_linear(reg, square[k], r->hidden, r->hidden));
    }
    DT_TRY_H(add_linear(reg, "road.near", r->units, r->near));
    DT_TRY_H(reg->add(reg, "road.w_near", w_near, 2, DT_INIT_XAVIER, 1.0));
    return reg->add(reg, "road.out", out, 2, DT_INIT_ZERO, 0.0);
}

/* ---- graph ------------------------------------------------------------------------------------------------------- */

static dt_tensor *norm(dt_graph *g, dt_tensor *x, const char *name)
{
    char gamma[NAME + 8], beta[NAME + 8];
    snprintf(gamma, sizeof(gamma), "%s.gamma", name);
    snprintf(beta, sizeof(beta), "%s.beta", name);
    return dt_layernorm(g, x, g->api->param(g, gamma), g->api->param(g, beta), NULL);
}

/* edge [M, edge + units] */
static dt_tensor *layer(const road *r, dt_graph *g, dt_tensor *x, dt_tensor *edge, dt_tensor *const *in, int64_t i)
{
    char text[NAME];
    dt_tensor *z = norm(g, x, of_layer(text, i, "norm"));
    dt_tensor *q = dt_linear_of(g, z, of_layer(text, i, "q")), *k = dt_linear_of(g, z, of_layer(text, i, "k"));
    dt_tensor *v = dt_linear_of(g, z, of_layer(text, i, "v"));
    dt_tensor *bias = dt_linear(g, edge, g->api->param(g, of_layer(text, i, "w_e")), NULL);
    z = dt_graph_qk(g, q, k, v, bias, in[ROAD_ROWPTR], in[ROAD_COL], r->heads);
    return dt_add(g, x, dt_linear_of(g, z, of_layer(text, i, "o")));
}

/* Pieces after their layers [L,hidden]. */
static dt_tensor *pieces(const road *r, dt_graph *g, dt_tensor *const *in)
{
    dt_tensor *x = dt_elu(g, dt_linear_of(g, in[ROAD_NODES], "road.in"));
    dt_tensor *both[] = {in[ROAD_EDGES], dt_elu(g, dt_linear_of(g, in[ROAD_EDGES], "road.link"))};
    dt_tensor *edge = dt_concat(g, both, 2);
    for (int64_t i = 0; i < r->layers; i++) {
        g->api->recompute_begin(g);
        x = layer(r, g, x, edge, in, i);
        g->api->recompute_end(g);
    }
    return norm(g, x, "road.norm");
}

dt_tensor *road_see(const road *r, dt_graph *g, dt_tensor *vehicles, dt_tensor *const *in)
{
    dt_tensor *x = pieces(r, g, in), *near = in[ROAD_NEAR_EDGES], *rowptr = in[ROAD_NEAR_ROWPTR];
    dt_tensor *q = dt_linear_of(g, vehicles, "road.q");
    dt_tensor *k = dt_linear_of(g, x, "road.k"), *v = dt_linear_of(g, x, "road.v");
    dt_tensor *f = dt_elu(g, dt_linear_of(g, near, "road.near"));
    dt_tensor *bias = dt_linear(g, f, g->api->param(g, "road.w_near"), NULL);
    dt_tensor *on = dt_slice(g, near, r->near - 2, 1), *told = dt_slice(g, near, r->near - 1, 1);
    dt_tensor *part[] = {dt_graph_qk(g, q, k, v, bias, rowptr, in[ROAD_NEAR_COL], r->heads),
                         dt_segment_mean(g, f, rowptr), dt_segment_mean(g, dt_mul(g, f, on), rowptr)};
    dt_tensor *out = dt_linear(g, dt_concat(g, part, 3), g->api->param(g, "road.out"), NULL);
    return dt_mul(g, out, dt_segment_mean(g, told, rowptr));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * risk_gnn, role perception: graph attention over the vehicles of a frame; an embedding and a risk logit per vehicle.
 * Ports: traffic/ports.h. Two kinds of layer (n = LayerNorm):
 *
 *   gat          h <- h + ELU(n(GAT(W h + b)))       logit_ij = leaky(a_dst.h_i + a_src.h_j + w_e.e_ij), softmax over j
 *   transformer  h <- h + O attention(Q n(h), K n(h), V n(h), w_e e);  h <- h + W2 GELU(W1 n(h)), W1 4 times as wide
 *
 * e_ij = ELU(W_e0 edge_ij + b): which neighbour leads in the same lane is no linear function of gap and offset, so
 * edges pass a layer of their own before attention sees them. Their mean over a vehicle's edges joins its features,
 * because attention sums what neighbours are, not where they are: h_0 = ELU(W [node_i, mean_j e_ij, slots_i] + b), with
 * the nearest vehicle of each neighbour slot as slots_i (slots.h). Attention reads the edge's logits by slot before
 * e_ij; w_e starts as ones on the diagonal, so head k starts by looking at slot k.
 * With pose = false position and heading of the nodes are left out, so that a scene may lie anyhow; the edges are in
 * each vehicle's own frame in any case. On recordings of the same roads it costs much of the gain, so it is an option.
 * Attention weights sum to one, so the bias b of a gat layer passes through the sum unchanged: one product gives both.
 * Source: Velickovic et al. 2018 with edge features; Shi et al. 2021 (TransformerConv), pre-norm blocks as in Xiong et
 * al. 2020. risk = W2 ELU(W1 h + b1) + b2 with 128 units between.
 * Parameters: edge.{w,b}; in.{w,b}; gat: layer.<i>.{w,b,a_dst,a_src,w_e,gamma,beta}; transformer:
 * layer.<i>.{norm0,norm1}.{gamma,beta}, layer.<i>.{q,k,v,o,ffn0,ffn1}.{w,b}, layer.<i>.w_e, norm.{gamma,beta};
 * risk.{0,1}.{w,b}. With normalise = "store" also constant.{node,edge}_{shift,scale}: features are normalised
 * (normalise.h), but for the slots, whose thresholds are metres.
 */
#include "dtrain/helpers.h"
#include "dtrain/traffic/features.h"
#include "dtrain/svc/graph.h"
#include "normalise.h"
#include "slots.h"
#include <math.h>

enum { LAYER_PRESET, LAYER_GAT, LAYER_TRANSFORMER };
enum { PRESET_GUIDE, PRESET_15M };
enum { NORMALISE_FIXED, NORMALISE_STORE };
enum { IN_NODES, IN_ROWPTR, IN_COL, IN_EDGES, IN_ROW_KEY, N_IN };
enum { OUT_EMBEDDING, OUT_RISK, N_OUT };
enum {
    SPEED = 2,
    LENGTH = 6,
    POSE_FEATURES = 4
}; /* columns of nodes: x y speed accel sin cos length stop controlled */
enum { FFN_FACTOR = 4, RISK_HIDDEN = 128, TEXT = 48 };
#define LEAKY_SLOPE 0.2 /* Velickovic et al. 2018 */

typedef struct config {
    uint32_t preset, layer;
    int64_t hidden, heads, layers; /* 0: the preset's */
    int64_t edge_hidden;
    double dropout;
    uint8_t pose, reserved[3];
    uint32_t normalise;
} config;

typedef struct sizes {
    int64_t hidden, heads, layers, edge_hidden;
    uint32_t layer, pose, normalise;
    double dropout;
} sizes;

typedef struct state {
    sizes z;
    dt_port in[N_IN], out[N_OUT];
    uint32_t n_in;
    char embedding[TEXT];
} state;

/* Explicit options win over the preset. */
static sizes resolve_sizes(const config *c)
{
    static const sizes preset[] = {
        [PRESET_GUIDE] = {256, 8, 3, 0, LAYER_GAT, 0, 0, 0}, [PRESET_15M] = {256, 8, 3, 0, LAYER_TRANSFORMER, 0, 0, 0}};
    sizes z = preset[c->preset];
    z.hidden = c->hidden > 0 ? c->hidden : z.hidden;
    z.heads = c->heads > 0 ? c->heads : z.heads;
    z.layers = c->layers > 0 ? c->layers : z.layers;
    z.edge_hidden = c->edge_hidden;
    z.pose = c->pose;
    z.normalise = c->normalise;
    z.dropout = c->dropout;
    z.layer = c->layer != LAYER_PRESET ? c->layer : z.layer;
    return z;
}

static dt_status check(const dt_host *h, const void *cfg)
{
    const sizes z = resolve_sizes(cfg);
    if (z.hidden % z.heads != 0) {
        return DT_FAIL_H(h, DT_ECONFIG, "risk_gnn.hidden %lld is not a multiple of risk_gnn.heads %lld",
                         (long long)z.hidden, (long long)z.heads);
    }
    return DT_OK;
}

static void make_inputs(state *s)
{
    s->in[IN_NODES] = (dt_port){"nodes", "N 9", DT_F32, 0};
    s->in[IN_ROWPTR] = (dt_port){"rowptr", "N+1", DT_I32, 0};
    s->in[IN_COL] = (dt_port){"col", "E", DT_I32, 0};
    s->in[IN_EDGES] = (dt_port){"edges", "E 4", DT_F32, 0};
    s->in[IN_ROW_KEY] = (dt_port){"row_key", "N", DT_I64, DT_PORT_OPTIONAL};
    s->n_in = s->z.dropout > 0 ? N_IN : IN_ROW_KEY; /* a phase omits the key to disable dropout */
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->z = resolve_sizes(cfg);
    (void)h, (void)dims, (void)n_dims; /* the contract of the role fixes the number of features */
    make_inputs(s);
    snprintf(s->embedding, sizeof(s->embedding), "N %lld", (long long)s->z.hidden);
    s->out[OUT_EMBEDDING] = (dt_port){"embedding", s->embedding, DT_F32, 0};
    s->out[OUT_RISK] = (dt_port){"risk", "N", DT_F32, 0};
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = ((const state *)self)->n_in;
    return ((const state *)self)->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = N_OUT;
    return ((const state *)self)->out;
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* "layer.<i>.<name>", in text until the next call */
static const char *parameter_name(char text[TEXT], int64_t i, const char *name)
{
    snprintf(text, TEXT, "layer.%lld.%s", (long long)i, name);
    return text;
}

static dt_status add_vector(dt_params *reg, const char *name, int64_t n, uint32_t init, double a)
{
    return reg->add(reg, name, &n, 1, init, a);
}

/* <name>.w [rows, cols] and <name>.b [rows] */
static dt_status add_linear(dt_params *reg, const char *name, int64_t rows, int64_t cols)
{
    char text[TEXT + 4];
    const int64_t dim[2] = {rows, cols};
    snprintf(text, sizeof(text), "%s.w", name);
    DT_TRY_H(reg->add(reg, text, dim, 2, DT_INIT_XAVIER, 1.0));
    snprintf(text, sizeof(text), "%s.b", name);
    return add_vector(reg, text, rows, DT_INIT_ZERO, 0.0);
}

/* <name>.gamma = 1 and <name>.beta = 0, [n] */
static dt_status add_norm(dt_params *reg, const char *name, int64_t n)
{
    char text[TEXT + 8];
    snprintf(text, sizeof(text), "%s.gamma", name);
    DT_TRY_H(add_vector(reg, text, n, DT_INIT_CONST, 1.0));
    snprintf(text, sizeof(text), "%s.beta", name);
    return add_vector(reg, text, n, DT_INIT_ZERO, 0.0);
}

static dt_status add_gat(const sizes *z, dt_params *reg, int64_t i)
{
    char text[TEXT];
    const int64_t w_e[2] = {z->heads, N_SLOTS + z->edge_hidden};
    /* an attention vector maps the width of a head to one logit */
    const double a = sqrt(6.0 / (double)(z->hidden / z->heads + 1));
    snprintf(text, sizeof(text), "layer.%lld", (long long)i);
    DT_TRY_H(add_linear(reg, text, z->hidden, z->hidden));
    DT_TRY_H(add_vector(reg, parameter_name(text, i, "a_dst"), z->hidden, DT_INIT_UNIFORM, a));
    DT_TRY_H(add_vector(reg, parameter_name(text, i, "a_src"), z->hidden, DT_INIT_UNIFORM, a));
    DT_TRY_H(reg->add(reg, parameter_name(text, i, "w_e"), w_e, 2, DT_INIT_EYE, 1.0));
    snprintf(text, sizeof(text), "layer.%lld", (long long)i);
    return add_norm(reg, text, z->hidden);
}

static dt_status add_transformer(const sizes *z, dt_params *reg, int64_t i)
{
    static const char *const square[] = {"q", "k", "v", "o"};
    char text[TEXT];
    const int64_t w_e[2] = {z->heads, N_SLOTS + z->edge_hidden};
    DT_TRY_H(add_norm(reg, parameter_name(text, i, "norm0"), z->hidden));
    for (uint32_t k = 0; k < 4; k++) {
        DT_TRY_H(add_linear(reg, parameter_name(text, i, square[k]), z->hidden, z->hidden));
    }
    DT_TRY_H(reg->add(reg, parameter_name(text, i, "w_e"), w_e, 2, DT_INIT_EYE, 1.0));
    DT_TRY_H(add_norm(reg, parameter_name(text, i, "norm1"), z->hidden));
    DT_TRY_H(add_linear(reg, parameter_name(text, i, "ffn0"), FFN_FACTOR * z->hidden, z->hidden));
    return add_linear(reg, parameter_name(text, i, "ffn1"), z->hidden, FFN_FACTOR * z->hidden);
}

static dt_status params(void *self, dt_params *reg)
{
    const sizes *z = &((const state *)self)->z;
    DT_TRY_H(z->normalise == NORMALISE_STORE ? normalise_params(reg) : DT_OK);
    DT_TRY_H(add_linear(reg, "edge", z->edge_hidden, DT_EDGE_FEATURES));
    DT_TRY_H(add_linear(reg, "in", z->hidden,
                        DT_NODE_FEATURES - (z->pose ? 0 : POSE_FEATURES) + z->edge_hidden + SLOT_FEATURES));
    for (int64_t i = 0; i < z->layers; i++) {
        DT_TRY_H(z->layer == LAYER_GAT ? add_gat(z, reg, i) : add_transformer(z, reg, i));
    }
    if (z->layer == LAYER_TRANSFORMER) {
        DT_TRY_H(add_norm(reg, "norm", z->hidden));
    }
    DT_TRY_H(add_linear(reg, "risk.0", RISK_HIDDEN, z->hidden));
    return add_linear(reg, "risk.1", 1, RISK_HIDDEN);
}

/* ---- graph ------------------------------------------------------------------------------------------------------ */

static dt_tensor *record_linear(dt_graph *g, dt_tensor *x, const char *name)
{
    char w[TEXT + 4], b[TEXT + 4];
    snprintf(w, sizeof(w), "%s.w", name);
    snprintf(b, sizeof(b), "%s.b", name);
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}

static dt_tensor *record_layernorm(dt_graph *g, dt_tensor *x, const char *name)
{
    char gamma[TEXT + 8], beta[TEXT + 8];
    snprintf(gamma, sizeof(gamma), "%s.gamma", name);
    snprintf(beta, sizeof(beta), "%s.beta", name);
    return dt_layernorm(g, x, g->api->param(g, gamma), g->api->param(g, beta), NULL);
}

/* e [E, edge_hidden] */
static dt_tensor *record_gat_layer(const sizes *z, dt_graph *g, dt_tensor *h, dt_tensor *e, dt_tensor *const *in,
                                   int64_t i)
{
    char base[TEXT], text[TEXT];
    snprintf(base, sizeof(base), "layer.%lld", (long long)i);
    dt_tensor *a_dst = g->api->param(g, parameter_name(text, i, "a_dst"));
    dt_tensor *a_src = g->api->param(g, parameter_name(text, i, "a_src"));
    dt_tensor *w_e = g->api->param(g, parameter_name(text, i, "w_e"));
    dt_tensor *x =
        dt_gat(g, record_linear(g, h, base), a_dst, a_src, e, w_e, in[IN_ROWPTR], in[IN_COL], z->heads, LEAKY_SLOPE);
    return dt_add(g, h, dt_elu(g, record_layernorm(g, x, base)));
}

static dt_tensor *record_transformer_layer(const sizes *z, dt_graph *g, dt_tensor *h, dt_tensor *e,
                                           dt_tensor *const *in, int64_t i)
{
    char text[TEXT];
    dt_tensor *x = record_layernorm(g, h, parameter_name(text, i, "norm0"));
    dt_tensor *q = record_linear(g, x, parameter_name(text, i, "q"));
    dt_tensor *k = record_linear(g, x, parameter_name(text, i, "k"));
    dt_tensor *v = record_linear(g, x, parameter_name(text, i, "v"));
    dt_tensor *bias = dt_linear(g, e, g->api->param(g, parameter_name(text, i, "w_e")), NULL); /* [E, heads] */
    x = dt_graph_qk(g, q, k, v, bias, in[IN_ROWPTR], in[IN_COL], z->heads);
    h = dt_add(g, h, record_linear(g, x, parameter_name(text, i, "o")));
    x = record_layernorm(g, h, parameter_name(text, i, "norm1"));
    x = dt_gelu(g, record_linear(g, x, parameter_name(text, i, "ffn0")));
    return dt_add(g, h, record_linear(g, x, parameter_name(text, i, "ffn1")));
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    const sizes *z = &s->z;
    dt_tensor *key = s->n_in == N_IN ? in[IN_ROW_KEY] : NULL;
    const int is_fixed = z->normalise == NORMALISE_FIXED;
    dt_tensor *nodes = is_fixed ? in[IN_NODES] : normalise_nodes(g, in[IN_NODES]);
    dt_tensor *e = dt_elu(g, record_linear(g, is_fixed ? in[IN_EDGES] : normalise_edges(g, in[IN_EDGES]), "edge"));
    dt_tensor *near = dt_segment_mean(g, e, in[IN_ROWPTR]);
    dt_tensor *logits = slot_logits(g, in[IN_EDGES]);
    dt_tensor *slots = slot_nearest(g, in[IN_EDGES], logits, in[IN_ROWPTR]);
    dt_tensor *all[] = {nodes, near, slots};
    dt_tensor *own[] = {dt_slice(g, nodes, SPEED, 2), dt_slice(g, nodes, LENGTH, 3), near, slots};
    dt_tensor *h = dt_elu(g, record_linear(g, z->pose ? dt_concat(g, all, 3) : dt_concat(g, own, 4), "in"));
    dt_tensor *attend[] = {logits, e};
    e = dt_concat(g, attend, 2);
    for (int64_t i = 0; i < z->layers; i++) {
        g->api->recompute_begin(g); /* a layer is kept by its input alone where engine.recompute is set */
        h = z->layer == LAYER_GAT ? record_gat_layer(z, g, h, e, in, i) : record_transformer_layer(z, g, h, e, in, i);
        g->api->recompute_end(g);
    }
    if (z->layer == LAYER_TRANSFORMER) {
        h = record_layernorm(g, h, "norm");
    }
    h = key != NULL ? dt_dropout(g, h, key, z->dropout) : h;
    out[OUT_EMBEDDING] = h;
    out[OUT_RISK] =
        dt_merge(g, record_linear(g, dt_elu(g, record_linear(g, h, "risk.0")), "risk.1")); /* [N,1] -> [N] */
    return g->api->status(g);
}

/* ---- descriptor ------------------------------------------------------------------------------------------------- */

static const char *const preset_names[] = {"guide", "15m", NULL};
static const char *const layer_names[] = {"preset", "gat", "transformer", NULL};
static const char *const normalise_names[] = {"fixed", "store", NULL};

static const dt_option options[] = {
    DT_OPTION(config, preset, DT_OPT_ENUM, "guide", "1", 0, 1, preset_names,
              "preset of sizes: guide = 3 gat layers, 15m = 3 transformer layers; both hidden 256 and 8 heads"),
    DT_OPTION(
        config, layer, DT_OPT_ENUM, "preset", "1", 0, 2, layer_names,
        "gat: graph attention with edge features; transformer: dot products with edge bias and a feed-forward net"),
    DT_OPTION(config, hidden, DT_OPT_I64, "0", "1", 0, 8192, NULL, "width of the embedding; 0 takes the preset's"),
    DT_OPTION(config, heads, DT_OPT_I64, "0", "1", 0, 64, NULL,
              "attention heads, a divisor of hidden; 0 takes the preset's"),
    DT_OPTION(config, layers, DT_OPT_I64, "0", "1", 0, 32, NULL, "attention layers; 0 takes the preset's"),
    DT_OPTION(config, pose, DT_OPT_BOOL, "true", "1", 0, 1, NULL,
              "use position and heading of vehicles in the scene's frame; false: results are independent of a scene's "
              "position and rotation"),
    DT_OPTION(config, normalise, DT_OPT_ENUM, "fixed", "1", 0, 1, normalise_names,
              "features of vehicles and edges: fixed: scaled by fixed numbers; store: also by statistics of the scenes "
              "that phase 1 trains on, by kind (docs/explanation/normalisation.md)"),
    DT_OPTION(config, dropout, DT_OPT_F64, "0.4", "1", 0, 0.95, NULL, "dropout of the embedding in training"),
    DT_OPTION(config, edge_hidden, DT_OPT_I64, "16", "1", 1, 1024, NULL,
              "width that the 4 edge features are projected to before attention"),
    DT_OPTION_END};

DT_MODEL_DEFINE(component, "risk_gnn", "graph attention over the vehicles of a frame: embeddings and risk",
                "Velickovic et al. 2018; Shi et al. 2021", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "perception", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "risk_gnn", "1.0", "dtrain", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * Vehicles. x_j: node j of the graph, e_ij: edge from source j to target i, i itself among its sources.
 *
 *   x  <- tanh(W n + b), then layers times x <- x + W_o attention(Q x, K x, V x, w_e . e)   n: embedding, or nodes
 *   a_ji = exp(s_i + c(e_ji)) / sum_k exp(s_k + c(e_jk))       the share of j's attention that falls on i; s = 4 tanh(
 *                                                              w_s . x), c = 4 tanh(w_c . tanh(W_e e + b))
 *   influence_i = 1 - exp(-sum of a_ji over all j but i)       0..1
 *   p = tanh(W_p [ego, x_agent, foresight] + b_p)              foresight where it is offered
 *   mean = influence * learned + (1 - influence) * follow,     follow = ego[8], what the car-following model would do
 *                                                              (0 for other actions), learned = follow + W_m p + b_m
 *   logits = influence * (W_l p + b_l) + (1 - influence) * 4 on the first choice, which is to keep the lane
 *   value, cost_value: linear in p, of the policy's trunk or of one of its own
 *
 * So vehicles that no other attends to drive like all others, and the model selects the ones to control. With k
 * vehicles that look at each other alike the sum is (k - 1) / k.
 *
 * The sum over j runs over i's own edges: j is among i's sources where i is among j's, but for the limit of neighbours;
 * and e_ji is e_ij seen from the other side (gap and offset negated), exactly so for vehicles of one heading.
 *
 * Sources: dot-product attention of Vaswani et al. 2017 on edges as Shi et al. 2021, shares as in Velickovic et al.
 * 2018. Attention usually weighs what is read; here what falls on a vehicle weighs what it may do.
 */
#include "influence.h"

enum { IN_EGO, IN_SOURCE, IN_ROWPTR, IN_COL, IN_EDGES, IN_AGENT_NODE, IN_FORESIGHT };
enum { EGO_FOLLOW = 8, NODE_SPEED = 2, NODE_LENGTH = 6, NODE_USED = 5, EDGES = 4, EDGE_HIDDEN = 16 };
#define SCORE_MOST 4.0
#define KEEP_LOGIT 4.0
#define TINY       1e-12 /* below e^-8 / 1000 */

/* to order 1: speeds / 15 m/s, gaps / 50 m, ways / 100 m, accelerations / 3 m/s^2 */
static const influence_run ego_scales[] = {{1, 1.0 / 15}, {1, 0.02}, {1, 1.0 / 15}, {1, 0.02},
                                           {2, 1.0 / 15}, {1, 0.01}, {2, 1.0 / 3},  {0, 0.1}};
static const influence_run node_scales[] = {{1, 1.0 / 15}, {1, 1.0 / 3}, {1, 0.1}, {1, 0.01}, {0, 1.0}};
static const influence_run edge_scales[] = {{1, 0.05}, {1, 0.25}, {1, 0.2}, {0, 1.0}};

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static dt_status add_weight(dt_params *reg, const char *trunk, const char *name, int64_t i, int64_t out, int64_t in)
{
    char text[CONTROLLER_TEXT];
    const int64_t w[2] = {out, in};
    return reg->add(reg, influence_param_name(text, trunk, name, i), w, 2, DT_INIT_ORTHO, 1.0);
}

static dt_status trunk_params(const influence *s, dt_params *reg, const char *trunk)
{
    const int64_t H = s->config.hidden, source = s->has_embedding ? s->source : NODE_USED;
    char text[CONTROLLER_TEXT];
    DT_TRY_H(controller_add(reg, influence_param_name(text, trunk, "node", -1), H, source, CONTROLLER_HIDDEN_GAIN));
    DT_TRY_H(
        controller_add(reg, influence_param_name(text, trunk, "edge", -1), EDGE_HIDDEN, EDGES, CONTROLLER_HIDDEN_GAIN));
    for (int64_t i = 0; i < s->config.layers; i++) {
        DT_TRY_H(add_weight(reg, trunk, "query", i, H, H));
        DT_TRY_H(add_weight(reg, trunk, "key", i, H, H));
        DT_TRY_H(add_weight(reg, trunk, "from", i, H, H));
        DT_TRY_H(add_weight(reg, trunk, "out", i, H, H));
        DT_TRY_H(add_weight(reg, trunk, "bias", i, s->config.heads, EDGE_HIDDEN));
    }
    return controller_add(reg, influence_param_name(text, trunk, "agent", -1), H, s->columns + H + s->Z,
                          CONTROLLER_HIDDEN_GAIN);
}

dt_status vehicles_params(const influence *s, dt_params *reg)
{
    const int64_t H = s->config.hidden;
    DT_TRY_H(trunk_params(s, reg, "policy"));
    if (s->config.trunk == INFLUENCE_SEPARATE) {
        DT_TRY_H(trunk_params(s, reg, "critic"));
    }
    DT_TRY_H(add_weight(reg, "influence", "source", -1, 1, H));
    DT_TRY_H(controller_add(reg, "influence.edge", EDGE_HIDDEN, EDGES, CONTROLLER_HIDDEN_GAIN));
    DT_TRY_H(add_weight(reg, "influence", "pair", -1, 1, EDGE_HIDDEN));
    return controller_head_params(&s->net, reg, H, H);
}

/* ---- graph ------------------------------------------------------------------------------------------------------- */

static dt_tensor *apply_weight(dt_graph *g, dt_tensor *x, const char *trunk, const char *name, int64_t i)
{
    char text[CONTROLLER_TEXT];
    return dt_linear(g, x, g->api->param(g, influence_param_name(text, trunk, name, i)), NULL);
}

/* x [N, H] and, of agents, p [A, H] */
static void record_trunk(const influence *s, dt_graph *g, dt_tensor *const *in, const char *trunk, dt_tensor **x_p,
                         dt_tensor **p_p)
{
    char text[CONTROLLER_TEXT];
    dt_tensor *source = in[IN_SOURCE];
    if (!s->has_embedding) {
        dt_tensor *used[2] = {dt_slice(g, source, NODE_SPEED, 2), dt_slice(g, source, NODE_LENGTH, 3)};
        source = influence_scale_inputs(g, dt_concat(g, used, 2), node_scales, NODE_USED);
    }
    dt_tensor *x = dt_tanh(g, controller_linear(g, source, influence_param_name(text, trunk, "node", -1)));
    dt_tensor *e = influence_scale_inputs(g, in[IN_EDGES], edge_scales, EDGES);
    e = dt_tanh(g, controller_linear(g, e, influence_param_name(text, trunk, "edge", -1)));
    for (int64_t i = 0; i < s->config.layers; i++) {
        dt_tensor *seen = dt_graph_qk(g, apply_weight(g, x, trunk, "query", i), apply_weight(g, x, trunk, "key", i),
                                      apply_weight(g, x, trunk, "from", i), apply_weight(g, e, trunk, "bias", i),
                                      in[IN_ROWPTR], in[IN_COL], s->config.heads);
        x = dt_add(g, x, apply_weight(g, seen, trunk, "out", i));
    }
    dt_tensor *all[3] = {influence_scale_inputs(g, in[IN_EGO], ego_scales, s->columns),
                         dt_gather(g, x, in[IN_AGENT_NODE]), s->Z > 0 ? in[IN_FORESIGHT] : NULL};
    *x_p = x;
    *p_p = dt_tanh(
        g, controller_linear(g, dt_concat(g, all, s->Z > 0 ? 3 : 2), influence_param_name(text, trunk, "agent", -1)));
}

static dt_tensor *record_exp(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_EXP, x, 0.0);
}

/* 1 / x, x > 0 */
static dt_tensor *reciprocal(dt_graph *g, dt_tensor *x)
{
    return record_exp(g, dt_affine(g, dt_unary(g, DT_FN_LOG, dt_affine(g, x, 1.0, TINY), 0.0), -1.0, 0.0));
}

static dt_tensor *magnitude(dt_graph *g, dt_tensor *x)
{
    return dt_binary(g, DT_BIN_MAX, x, dt_affine(g, x, -1.0, 0.0));
}

/* [E, 1]: 1 on a node's edge to itself, whose gap and offset are 0, else 0 (from 1 mm on) */
static dt_tensor *self_edges(dt_graph *g, dt_tensor *edges)
{
    dt_tensor *far = dt_add(g, magnitude(g, dt_slice(g, edges, 0, 1)), magnitude(g, dt_slice(g, edges, 1, 1)));
    return dt_clamp(g, dt_affine(g, far, -1000.0, 1.0), 0.0, 1.0);
}

/* exp c(e), [E, 1]; side -1: seen from the source */
static dt_tensor *pair_weight(dt_graph *g, dt_tensor *edges, double side)
{
    dt_tensor *both[2] = {dt_affine(g, dt_slice(g, edges, 0, 2), side, 0.0), dt_slice(g, edges, 2, 2)};
    dt_tensor *e = influence_scale_inputs(g, dt_concat(g, both, 2), edge_scales, EDGES);
    dt_tensor *c =
        dt_tanh(g, apply_weight(g, dt_tanh(g, controller_linear(g, e, "influence.edge")), "influence", "pair", -1));
    return record_exp(g, dt_affine(g, c, SCORE_MOST, 0.0));
}

/* x [N, H] -> [N, 1] */
static dt_tensor *record_influence(dt_graph *g, dt_tensor *x, dt_tensor *const *in)
{
    dt_tensor *edges = in[IN_EDGES], *rowptr = in[IN_ROWPTR], *col = in[IN_COL];
    dt_tensor *score = dt_tanh(g, apply_weight(g, x, "influence", "source", -1));
    dt_tensor *source = record_exp(g, dt_affine(g, score, SCORE_MOST, 0.0));
    dt_tensor *self = self_edges(g, edges), *other = dt_affine(g, self, -1.0, 1.0);
    dt_tensor *degree = reciprocal(g, dt_segment_mean(g, self, rowptr)); /* [N, 1], one edge of each is to itself */

    /* all that j has to give, and what of it goes to each i that j looks at */
    dt_tensor *paid = dt_mul(g, dt_gather(g, source, col), pair_weight(g, edges, 1.0));
    dt_tensor *whole = dt_mul(g, dt_segment_mean(g, paid, rowptr), degree);
    dt_tensor *share = dt_mul(g, pair_weight(g, edges, -1.0), dt_gather(g, reciprocal(g, whole), col));
    dt_tensor *sum = dt_mul(g, dt_segment_mean(g, dt_mul(g, share, other), rowptr), dt_mul(g, degree, source));
    return dt_affine(g, record_exp(g, dt_affine(g, sum, -1.0, 0.0)), -1.0, 1.0);
}

/* first [A, 1], then zeros: [A, n] */
static dt_tensor *pad_with_zeros(dt_graph *g, dt_tensor *first, int64_t n)
{
    if (n == 1) {
        return first;
    }
    dt_tensor *both[2] = {first, controller_columns(g, dt_affine(g, first, 0.0, 0.0), n - 1)};
    return dt_concat(g, both, 2);
}

dt_status vehicles_forward(const influence *s, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const controller_net *n = &s->net;
    dt_tensor *x = NULL, *act = NULL, *critic = NULL, *unused = NULL;
    record_trunk(s, g, in, "policy", &x, &act);
    critic = act;
    if (s->config.trunk == INFLUENCE_SEPARATE) {
        record_trunk(s, g, in, "critic", &unused, &critic);
    }
    DT_TRY_H(controller_heads(n, g, act, critic, out));

    dt_tensor *mine = dt_gather(g, record_influence(g, x, in), in[IN_AGENT_NODE]); /* [A, 1] */
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (strcmp(n->out[i].name, "mean") == 0) {
            dt_tensor *follow = pad_with_zeros(g, dt_slice(g, in[IN_EGO], EGO_FOLLOW, 1), n->continuous);
            out[i] = dt_add(g, dt_mul(g, out[i], mine), follow);
        } else if (strcmp(n->out[i].name, "logits") == 0) {
            dt_tensor *keep = pad_with_zeros(g, dt_affine(g, mine, -KEEP_LOGIT, KEEP_LOGIT), n->choices);
            out[i] = dt_add(g, dt_mul(g, out[i], mine), keep);
        }
    }
    return g->api->status(g);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_field, role controller: a policy for UAVs over a field (env_ipp) that begins as the greedy rule and learns
 * where that is short-sighted (residual policies: Silver et al. 2018, arXiv 1812.06298).
 *
 *   gain    what each move is expected to reveal at once: column 0 of port moves
 *   plane   of each tile of the lattice, from obs: others over it, entropy H, p H (what is left to find out there), p
 *   x       planes, altitude, budget, gain / typical gain
 *   h       = act(W_i ... x ...)                          `layers` of them
 *   logits  = s gain / typical gain + W_l h + W_x x + b    s: learned, begins as `rule`
 *   value, cost_value from a net of their own over x      heads: controller_net.h
 *
 * W_x is a potential over the lattice: what is in each direction. With env_ipp.view = "own" it is in the same
 * columns wherever the UAV is. Nothing is learned at first but that: W_l is small, W_x is 0. Parameters: policy.<i>,
 * critic.<i>, potential.w, rule, head.*.
 */
#include "controller_net.h"

enum { PLANES = 7, OTHERS = 1, ALTITUDE = 2, BUDGET = 3, PROBABILITY = 4, ENTROPY = 5, READ = 4 };
enum { GAIN = 0, COLUMNS = 2 }; /* of moves */
#define TYPICAL_GAIN 0.05       /* of a move at the lowest altitude over what is not known yet, in env_ipp's defaults */

typedef struct config {
    int64_t hidden, layers;
    double rule, policy_gain, log_std_init;
} config;

typedef struct state {
    controller_net net;
    config config;
    int64_t n; /* tiles */
} state;

static const dt_option options[] = {
    DT_OPTION(config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the hidden layers"),
    DT_OPTION(config, layers, DT_OPT_I64, "2", "1", 1, 16, NULL, "hidden layers"),
    DT_OPTION(config, rule, DT_OPT_F64, "10", "1", 0, 1000, NULL,
              "initial weight of the greedy rule in the logits; 0: learned from scratch"),
    CONTROLLER_HEAD_OPTIONS(config), DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, s->config.policy_gain, s->config.log_std_init));
    DT_TRY_H(controller_require_obs(&s->net, h));
    s->n = s->net.D / PLANES; /* gains may follow the planes */
    if (s->n < 1 || s->net.choices < 1 || controller_dim(dims, n_dims, "moves", 0) != COLUMNS) {
        return DT_FAIL_H(
            h, DT_ESHAPE,
            "controller_field acts in env_ipp, which shows %d planes of a lattice in \"obs\" and the expected "
            "information of moves in \"moves\"; this environment has obs of %lld columns, moves of %lld, choices %lld",
            PLANES, (long long)s->net.D, (long long)controller_dim(dims, n_dims, "moves", 0),
            (long long)s->net.choices);
    }
    controller_input(&s->net, "obs", "A %lld", (long long)s->net.D);
    controller_input(&s->net, "moves", "A %lld %d", (long long)s->net.choices, COLUMNS);
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    return controller_inputs(&((const state *)self)->net, n_p);
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    return controller_outputs(&((const state *)self)->net, n_p);
}

static int64_t count_columns(const state *s) /* of x */
{
    return READ * s->n + 2 + s->net.choices;
}

static int64_t layer_width(const state *s, int64_t layer) /* of what enters it */
{
    return layer == 0 ? count_columns(s) : s->config.hidden;
}

static dt_status trunk_params(const state *s, dt_params *reg, const char *trunk)
{
    char name[CONTROLLER_TEXT];
    for (int64_t i = 0; i < s->config.layers; i++) {
        snprintf(name, sizeof(name), "%s.%lld", trunk, (long long)i);
        DT_TRY_H(controller_add(reg, name, s->config.hidden, layer_width(s, i), CONTROLLER_HIDDEN_GAIN));
    }
    return DT_OK;
}

static bool has_value(const state *s) /* has it values at all? */
{
    return s->net.has_value || s->net.K > 0;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    const int64_t w[2] = {s->net.choices, count_columns(s)};
    DT_TRY_H(trunk_params(s, reg, "policy"));
    DT_TRY_H(has_value(s) ? trunk_params(s, reg, "critic") : DT_OK);
    DT_TRY_H(reg->add(reg, "potential.w", w, 2, DT_INIT_ZERO, 0.0));
    DT_TRY_H(reg->add(reg, "rule", w, 1, DT_INIT_CONST, s->config.rule));
    return controller_head_params(&s->net, reg, s->config.hidden, s->config.hidden);
}

static dt_tensor *slice_plane(const state *s, dt_graph *g, dt_tensor *obs, int64_t k)
{
    return dt_slice(g, obs, k * s->n, s->n);
}

static dt_tensor *record_trunk(const state *s, dt_graph *g, dt_tensor *x, const char *name)
{
    char text[CONTROLLER_TEXT];
    for (int64_t i = 0; i < s->config.layers; i++) {
        snprintf(text, sizeof(text), "%s.%lld", name, (long long)i);
        x = dt_relu(g, controller_linear(g, x, text));
    }
    return x;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *p = slice_plane(s, g, in[0], PROBABILITY), *H = slice_plane(s, g, in[0], ENTROPY);
    dt_tensor *gain = dt_affine(g, dt_merge(g, dt_slice(g, in[1], GAIN, 1)), 1 / TYPICAL_GAIN, 0.0); /* [A, choices] */
    dt_tensor *part[] = {
        slice_plane(s, g, in[0], OTHERS),     H,   dt_mul(g, p, H), p, dt_slice(g, in[0], ALTITUDE * s->n, 1),
        dt_slice(g, in[0], BUDGET * s->n, 1), gain};
    dt_tensor *x = dt_concat(g, part, sizeof(part) / sizeof(part[0]));
    dt_tensor *act = record_trunk(s, g, x, "policy"), *critic = has_value(s) ? record_trunk(s, g, x, "critic") : act;
    DT_TRY_H(controller_heads(&s->net, g, act, critic, out));
    dt_tensor *more =
        dt_add(g, dt_linear(g, x, g->api->param(g, "potential.w"), NULL), dt_mul(g, gain, g->api->param(g, "rule")));
    dt_tensor **logits = &out[s->net.has_value ? 1 : 0];
    *logits = dt_add(g, *logits, more);
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "controller_field", "for env_ipp: the greedy rule and a learned correction",
                "Westheider, Rueckin & Popovic 2023, arXiv 2303.01150; Silver et al. 2018, arXiv 1812.06298", config,
                state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "controller_field", "1.0", "dtrain", "Apache-2.0");

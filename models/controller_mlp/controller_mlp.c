/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_mlp, role controller: fully connected layers over each agent's own observation, one net for all agents.
 * Ports: dtrain/roles.h; heads and first values: controller_net.h.
 *
 *   h_0 = obs, and foresight where it is offered,  h_{i+1} = act(W_i h_i + b_i)
 *   p and c are the last h of two nets, which need not be as deep as each other (critic_layers), or of one (trunk =
 *   "shared")
 *
 * Source: Schulman et al. 2017 (two layers of 64, tanh, nothing shared); Huang et al. 2022.
 * Parameters: policy.<i>.{w,b}, critic.<i>.{w,b} (shared: trunk.<i>.{w,b}), head.*.
 */
#include "controller_net.h"

enum { SEPARATE, SHARED };
enum { TANH, RELU };
static const char *const trunks[] = {"separate", "shared", NULL};
static const char *const activations[] = {"tanh", "relu", NULL};

typedef struct config {
    int64_t hidden, layers, critic_layers;
    uint32_t activation, trunk;
    uint8_t foresight, reserved[7];
    double policy_gain, log_std_init;
} config;

typedef struct state {
    controller_net net;
    config config;
    int64_t Z; /* columns of foresight that are read, or 0 */
} state;

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    if (c->trunk == SHARED && c->critic_layers >= 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "controller_mlp.critic_layers = %lld requests separate layers of values, and trunk = "
                         "\"shared\" has none; leave it at -1, or set trunk = \"separate\"",
                         (long long)c->critic_layers);
    }
    return DT_OK;
}

static const dt_option options[] = {
    DT_OPTION(config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the hidden layers"),
    DT_OPTION(config, layers, DT_OPT_I64, "2", "1", 0, 16, NULL, "hidden layers; 0: linear in the observation"),
    DT_OPTION(config, critic_layers, DT_OPT_I64, "-1", "1", -1, 16, NULL,
              "hidden layers of the value network; 0: linear; -1: as many as layers"),
    DT_OPTION(config, activation, DT_OPT_ENUM, "tanh", NULL, 0, 0, activations, "activation after every hidden layer"),
    DT_OPTION(config, trunk, DT_OPT_ENUM, "separate", NULL, 0, 0, trunks,
              "whether values have hidden layers of their own or share those of the policy"),
    DT_OPTION(config, foresight, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "read the predictions of a world model, in phases that offer them"),
    CONTROLLER_HEAD_OPTIONS(config),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, s->config.policy_gain, s->config.log_std_init));
    DT_TRY_H(controller_require_obs(&s->net, h));
    controller_input(&s->net, "obs", "A %lld", (long long)s->net.D);
    s->Z = s->config.foresight ? controller_dim(dims, n_dims, "foresight", 0) : 0;
    if (s->Z > 0) {
        controller_input(&s->net, "foresight", "A %lld", (long long)s->Z);
    }
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

static bool has_value(const state *s) /* has it values at all? */
{
    return s->net.has_value || s->net.K > 0;
}

static int64_t critic_layers(const state *s)
{
    if (!has_value(s)) {
        return 0;
    }
    return s->config.critic_layers < 0 ? s->config.layers : s->config.critic_layers;
}

static int64_t layer_width(const state *s, int64_t layer) /* of what enters it */
{
    return layer == 0 ? s->net.D + s->Z : s->config.hidden;
}

static dt_status trunk_params(const state *s, dt_params *reg, const char *trunk, int64_t layers)
{
    char name[CONTROLLER_TEXT];
    for (int64_t i = 0; i < layers; i++) {
        snprintf(name, sizeof(name), "%s.%lld", trunk, (long long)i);
        DT_TRY_H(controller_add(reg, name, s->config.hidden, layer_width(s, i), CONTROLLER_HIDDEN_GAIN));
    }
    return DT_OK;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    if (s->config.trunk == SHARED) {
        DT_TRY_H(trunk_params(s, reg, "trunk", s->config.layers));
    } else {
        DT_TRY_H(trunk_params(s, reg, "policy", s->config.layers));
        DT_TRY_H(trunk_params(s, reg, "critic", critic_layers(s)));
    }
    return controller_head_params(&s->net, reg, layer_width(s, s->config.layers), layer_width(s, critic_layers(s)));
}

static dt_tensor *record_trunk(const state *s, dt_graph *g, dt_tensor *x, const char *trunk, int64_t layers)
{
    char name[CONTROLLER_TEXT];
    for (int64_t i = 0; i < layers; i++) {
        snprintf(name, sizeof(name), "%s.%lld", trunk, (long long)i);
        x = controller_linear(g, x, name);
        x = s->config.activation == TANH ? dt_tanh(g, x) : dt_relu(g, x);
    }
    return x;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    const bool is_shared = s->config.trunk == SHARED;
    dt_tensor *x = s->Z > 0 ? dt_concat(g, in, 2) : in[0];
    dt_tensor *act = record_trunk(s, g, x, is_shared ? "trunk" : "policy", s->config.layers);
    dt_tensor *critic = is_shared ? act : record_trunk(s, g, x, "critic", critic_layers(s));
    return controller_heads(&s->net, g, act, critic, out);
}

DT_MODEL_DEFINE(component, "controller_mlp", "actions and values from each agent's own observation",
                "Schulman et al. 2017; Huang et al. 2022", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "controller_mlp", "1.0", "dtrain", "Apache-2.0");

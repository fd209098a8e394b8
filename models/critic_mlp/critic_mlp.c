/* SPDX-License-Identifier: Apache-2.0
 *
 * critic_mlp, role critic: fully connected layers over what an agent observes and does. Ports: critic_net.h.
 *
 *   h_0 = (obs, action),  h_{i+1} = act(W_i h_i + b_i),  q = w h + b        for each estimate a net of its own
 *
 * Source: Haarnoja et al. 2018 (two layers of 256, ReLU), Fujimoto et al. 2018 (two estimates).
 * Parameters: q<k>.<i>.{w,b}, q<k>.head.{w,b}; first values as PyTorch's.
 */
#include "critic_net.h"

enum { RELU, TANH };
static const char *const activations[] = {"relu", "tanh", NULL};

typedef struct config {
    int64_t hidden, layers;
    uint32_t activation, reserved;
} config;

typedef struct state {
    critic_net net;
    config config;
} state;

static const dt_option options[] = {
    DT_OPTION(config, hidden, DT_OPT_I64, "256", "1", 1, 8192, NULL, "width of the hidden layers"),
    DT_OPTION(config, layers, DT_OPT_I64, "2", "1", 0, 16, NULL, "hidden layers; 0: linear"),
    DT_OPTION(config, activation, DT_OPT_ENUM, "relu", NULL, 0, 0, activations, "activation after every hidden layer"),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    return critic_net_init(&s->net, h, dims, n_dims);
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return ((const state *)self)->net.in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const state *)self)->net.out;
}

static void param_name(char name[CRITIC_TEXT], int64_t estimate, int64_t layer, const state *s)
{
    if (layer < s->config.layers) {
        snprintf(name, CRITIC_TEXT, "q%lld.%lld", (long long)estimate, (long long)layer);
    } else {
        snprintf(name, CRITIC_TEXT, "q%lld.head", (long long)estimate);
    }
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    char name[CRITIC_TEXT];
    for (int64_t k = 0; k < s->net.Q; k++) {
        for (int64_t i = 0; i <= s->config.layers; i++) {
            const int64_t in = i == 0 ? s->net.D + s->net.P : s->config.hidden;
            param_name(name, k, i, s);
            DT_TRY_H(dt_linear_params(reg, name, i < s->config.layers ? s->config.hidden : 1, in, DT_INIT_ZERO, 0.0));
        }
    }
    return DT_OK;
}

static dt_tensor *record_estimate(const state *s, dt_graph *g, dt_tensor *x, int64_t k)
{
    char name[CRITIC_TEXT];
    for (int64_t i = 0; i <= s->config.layers; i++) {
        param_name(name, k, i, s);
        x = dt_linear_of(g, x, name);
        if (i < s->config.layers) {
            x = s->config.activation == TANH ? dt_tanh(g, x) : dt_relu(g, x);
        }
    }
    return x;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *x = dt_concat(g, in, 2), *q[CRITIC_MAX_ESTIMATES];
    for (int64_t k = 0; k < s->net.Q; k++) {
        q[k] = record_estimate(s, g, x, k);
    }
    out[0] = critic_join(g, q, s->net.Q);
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "critic_mlp", "Q values of actions, by fully connected layers",
                "Haarnoja et al. 2018; Fujimoto et al. 2018", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "critic", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "critic_mlp", "1.0", "dtrain", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * critic_others, role critic: fully connected layers that estimate the value of each choice of an agent, given what all
 * the others chose. One net for all agents.
 *
 *   h_0 = obs, the agent's row of state (where there is one), others        h_{i+1} = act(W_i h_i + b_i)
 *   q = W_q h + b_q                                                         [A, choices]
 *
 * With layers = 0 it is linear: a table, where obs identifies the agent and there are two of them. Ports:
 * dtrain/roles.h. First values: controller_net.h. Source: Foerster et al. 2018, arXiv 1705.08926.
 * Parameters: critic.<i>.{w,b}, head.q.{w,b}.
 */
#include "controller_net.h"

enum { TANH, RELU };
static const char *const activations[] = {"tanh", "relu", NULL};

typedef struct config {
    int64_t hidden, layers;
    uint32_t activation;
    uint8_t state, reserved[3];
} config;

typedef struct state {
    config config;
    int64_t D, G, M, choices; /* columns of obs, state, others */
    dt_port in[4], out[1];
    uint32_t n_in;
    char text[5][CONTROLLER_TEXT];
} state;

static const dt_option options[] = {
    DT_OPTION(config, hidden, DT_OPT_I64, "128", "1", 1, 8192, NULL, "width of the hidden layers"),
    DT_OPTION(config, layers, DT_OPT_I64, "2", "1", 0, 16, NULL, "hidden layers; 0: linear"),
    DT_OPTION(config, activation, DT_OPT_ENUM, "relu", NULL, 0, 0, activations, "activation after every hidden layer"),
    DT_OPTION(config, state, DT_OPT_BOOL, "true", NULL, 0, 0, NULL,
              "read the global state, \"state\" [G F] by \"agent_state\" [A], if the environment provides it"),
    DT_OPTION_END};

static void add_input(state *s, const char *name, const char *symbol, int64_t columns, uint32_t dtype)
{
    if (columns > 0) {
        snprintf(s->text[s->n_in], CONTROLLER_TEXT, "%s %lld", symbol, (long long)columns);
    } else {
        snprintf(s->text[s->n_in], CONTROLLER_TEXT, "%s", symbol);
    }
    s->in[s->n_in] = (dt_port){name, s->text[s->n_in], dtype, 0};
    s->n_in++;
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    s->D = controller_dim(dims, n_dims, "D", 0);
    s->M = controller_dim(dims, n_dims, "others", 0);
    s->choices = controller_dim(dims, n_dims, "choices", 0);
    s->G = s->config.state ? controller_dim(dims, n_dims, "state", 0) : 0;
    if (s->D < 1 || s->M < 1 || s->choices < 1) {
        return DT_FAIL_H(
            h, DT_ESHAPE,
            "the phase gives D %lld, others %lld, choices %lld: critic_others needs an observation \"obs\" "
            "[A D], \"others\" [A M] and discrete actions",
            (long long)s->D, (long long)s->M, (long long)s->choices);
    }
    s->n_in = 0;
    add_input(s, "obs", "A", s->D, DT_F32);
    add_input(s, "others", "A", s->M, DT_F32);
    if (s->G > 0) {
        add_input(s, "state", "G", s->G, DT_F32);
        add_input(s, "agent_state", "A", 0, DT_I32);
    }
    snprintf(s->text[4], CONTROLLER_TEXT, "A %lld", (long long)s->choices);
    s->out[0] = (dt_port){"q", s->text[4], DT_F32, 0};
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = ((const state *)self)->n_in;
    return ((const state *)self)->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const state *)self)->out;
}

static int64_t layer_width(const state *s, int64_t layer) /* of what enters it */
{
    return layer == 0 ? s->D + s->G + s->M : s->config.hidden;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    char name[CONTROLLER_TEXT];
    for (int64_t i = 0; i < s->config.layers; i++) {
        snprintf(name, sizeof(name), "critic.%lld", (long long)i);
        DT_TRY_H(controller_add(reg, name, s->config.hidden, layer_width(s, i), CONTROLLER_HIDDEN_GAIN));
    }
    return controller_add(reg, "head.q", s->choices, layer_width(s, s->config.layers), CONTROLLER_VALUE_GAIN);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    char name[CONTROLLER_TEXT];
    dt_tensor *part[3] = {in[0], in[1], s->G > 0 ? dt_gather(g, in[2], in[3]) : NULL};
    dt_tensor *x = dt_concat(g, part, s->G > 0 ? 3 : 2);
    for (int64_t i = 0; i < s->config.layers; i++) {
        snprintf(name, sizeof(name), "critic.%lld", (long long)i);
        x = controller_linear(g, x, name);
        x = s->config.activation == TANH ? dt_tanh(g, x) : dt_relu(g, x);
    }
    out[0] = controller_linear(g, x, "head.q");
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "critic_others", "Q values of each choice, given the choices of the others",
                "Foerster et al. 2018, arXiv 1705.08926", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "critic", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "critic_others", "1.0", "dtrain", "Apache-2.0");

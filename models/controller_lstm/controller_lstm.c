/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_lstm, role controller: an LSTM over the last W observations of each agent, one net for all agents; its
 * state after the last of them feeds the heads. Ports: dtrain/roles.h; heads and first values: controller_net.h.
 *
 *   x_t = tanh(W_e obs_t + b_e)  (encoder > 0, else obs_t)      h_t = LSTM(h_{t-1}, x_t), held before the agent came
 *   p = c = h_W
 *
 * The state starts at zero W - 1 steps back at every step: what is older is forgotten, and what is drawn and what is
 * learned from are the same function of the same observations. The forget gate starts open by forget_bias, so that the
 * state lasts (Gers et al. 2000; Jozefowicz et al. 2015).
 * Source: Hochreiter & Schmidhuber 1997; in a controller: Bakker 2002.
 * Parameters: encoder.{w,b}, lstm.x.w [4 hidden, in], lstm.x.b [4 hidden] (gates i f g o), lstm.h.w [4 hidden, hidden],
 * head.*.
 */
#include "controller_net.h"

enum { IN_HISTORY, IN_PRESENT };
enum { GATE_FORGET = 1, N_GATES = 4 };

typedef struct config {
    int64_t hidden, encoder;
    double forget_bias, policy_gain, log_std_init;
} config;

typedef struct state {
    controller_net net;
    config config;
} state;

static const dt_option options[] = {
    DT_OPTION(config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the recurrent state"),
    DT_OPTION(config, encoder, DT_OPT_I64, "64", "1", 0, 8192, NULL,
              "width of the layer between observation and LSTM; 0: none"),
    DT_OPTION(config, forget_bias, DT_OPT_F64, "1", "1", -10, 10, NULL,
              "bias of the forget gate; above 0 the state lasts longer (Jozefowicz et al. 2015: 1)"),
    CONTROLLER_HEAD_OPTIONS(config), DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, s->config.policy_gain, s->config.log_std_init));
    DT_TRY_H(controller_require_obs(&s->net, h));
    if (s->net.W < 2) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "controller_lstm has a memory of a window of observations, but the phase gives W 1: set the "
                         "option window of the phase to the steps that matter, at least 2");
    }
    controller_input(&s->net, "obs_history", "%lld A %lld", (long long)s->net.W, (long long)s->net.D);
    controller_input(&s->net, "present", "%lld A", (long long)s->net.W);
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

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    const int64_t hidden = s->config.hidden, wh[2] = {N_GATES * hidden, hidden};
    if (s->config.encoder > 0) {
        DT_TRY_H(controller_add(reg, "encoder", s->config.encoder, s->net.D, CONTROLLER_HIDDEN_GAIN));
    }
    const int64_t in = s->config.encoder > 0 ? s->config.encoder : s->net.D;
    DT_TRY_H(controller_add(reg, "lstm.x", N_GATES * hidden, in, 1.0));
    DT_TRY_H(reg->add(reg, "lstm.h.w", wh, 2, DT_INIT_ORTHO, 1.0));
    return controller_head_params(&s->net, reg, hidden, hidden);
}

/* xw [W,A,4H] with forget_bias on the columns of the forget gate */
static dt_tensor *open_forget_gate(const state *s, dt_graph *g, dt_tensor *xw)
{
    dt_tensor *gate[N_GATES];
    for (int64_t i = 0; i < N_GATES; i++) {
        gate[i] = dt_slice(g, xw, i * s->config.hidden, s->config.hidden);
    }
    gate[GATE_FORGET] = dt_affine(g, gate[GATE_FORGET], 1.0, s->config.forget_bias);
    return dt_concat(g, gate, N_GATES);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *x = in[IN_HISTORY];
    if (s->config.encoder > 0) {
        x = dt_tanh(g, controller_linear(g, x, "encoder"));
    }
    dt_tensor *xw = controller_linear(g, x, "lstm.x"); /* all steps in one product */
    if (s->config.forget_bias != 0) {
        xw = open_forget_gate(s, g, xw);
    }
    dt_tensor *h = dt_lstm(g, xw, g->api->param(g, "lstm.h.w"), in[IN_PRESENT]);
    dt_tensor *last = dt_step(g, h, -1);
    return controller_heads(&s->net, g, last, last, out);
}

DT_MODEL_DEFINE(component, "controller_lstm", "actions and values from an LSTM over each agent's last observations",
                "Hochreiter & Schmidhuber 1997; Bakker 2002", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "controller_lstm", "1.0", "dtrain", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_conv, role controller: convolutions over the image that an agent observes, one net for all agents. Layers
 * and which observation is the image: conv_net.h; ports: dtrain/roles.h; heads: controller_net.h.
 *
 * Source: Mnih et al. 2015 (layers); Schulman et al. 2017 (policy and values share them: trunk = "shared").
 * Parameters: trunk.* (separate: policy.*, critic.*), head.*.
 */
#include "conv_net.h"

enum { SHARED, SEPARATE };
static const char *const trunks[] = {"shared", "separate", NULL};

typedef struct config {
    const char *channels, *kernels, *strides;
    int64_t hidden;
    uint32_t layout, trunk;
    uint8_t padding, reserved[7];
    double policy_gain, log_std_init;
} config;

typedef struct state {
    controller_net net;
    conv_net conv;
    config config;
} state;

static dt_status read_config(conv_net *n, const dt_host *h, const config *c)
{
    const conv_config of = CONV_CONFIG(c);
    return conv_read(n, h, "controller_conv", &of);
}

static dt_status check(const dt_host *h, const void *cfg)
{
    conv_net n = {0};
    return read_config(&n, h, cfg);
}

static const dt_option options[] = {
    CONV_OPTIONS(config),
    DT_OPTION(config, trunk, DT_OPT_ENUM, "shared", NULL, 0, 0, trunks,
              "whether values share the layers of the policy or have layers of their own"),
    CONTROLLER_HEAD_OPTIONS(config), DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, s->config.policy_gain, s->config.log_std_init));
    DT_TRY_H(read_config(&s->conv, h, &s->config));
    DT_TRY_H(conv_init(&s->conv, h, s->config.layout, dims, n_dims));
    s->net.n_in = conv_inputs(&s->conv, s->net.in);
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

static bool has_critic(const state *s) /* layers of its own */
{
    return s->config.trunk == SEPARATE && (s->net.has_value || s->net.K > 0);
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    const bool is_shared = s->config.trunk == SHARED;
    DT_TRY_H(conv_params(&s->conv, reg, is_shared ? "trunk" : "policy", s->conv.D));
    DT_TRY_H(has_critic(s) ? conv_params(&s->conv, reg, "critic", s->conv.D) : DT_OK);
    return controller_head_params(&s->net, reg, s->conv.hidden, s->conv.hidden);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    const bool is_shared = s->config.trunk == SHARED;
    dt_tensor *image = conv_image(&s->conv, g, in[0]);
    const uint32_t n_more = s->net.n_in - 1;
    dt_tensor *act = conv_record(&s->conv, g, is_shared ? "trunk" : "policy", image, in + 1, n_more);
    dt_tensor *critic = has_critic(s) ? conv_record(&s->conv, g, "critic", image, in + 1, n_more) : act;
    return controller_heads(&s->net, g, act, critic, out);
}

DT_MODEL_DEFINE(component, "controller_conv", "actions and values from the image that each agent observes",
                "Mnih et al. 2015; Schulman et al. 2017", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "controller_conv", "1.0", "dtrain", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * normed, role controller: two layers with batch norm over each agent's own observation, for policies and values alike.
 * For tests alone.
 */
#include "controller_net.h"

enum { WIDTH = 16 };

typedef struct config {
    uint8_t unused, reserved[7];
} config;

typedef struct state {
    controller_net net;
} state;

static const dt_option options[] = {DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    (void)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, 0.01, 0));
    DT_TRY_H(controller_require_obs(&s->net, h));
    controller_input(&s->net, "obs", "A %lld", (long long)s->net.D);
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
    DT_TRY_H(dt_batch_norm_params(reg, "seen", s->net.D));
    DT_TRY_H(controller_add(reg, "first", WIDTH, s->net.D, CONTROLLER_HIDDEN_GAIN));
    DT_TRY_H(dt_batch_norm_params(reg, "hidden", WIDTH));
    return controller_head_params(&s->net, reg, WIDTH, WIDTH);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *x = dt_batch_norm_of(g, in[0], "seen", NULL);
    dt_tensor *h = dt_relu(g, dt_batch_norm_of(g, controller_linear(g, x, "first"), "hidden", NULL));
    return controller_heads(&s->net, g, h, h, out);
}

DT_MODEL_DEFINE(component, "normed", "batch norm between layers", "Ioffe & Szegedy 2015", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "normed", "1.0", "dtrain", "Apache-2.0");

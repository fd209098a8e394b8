/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_idm, role controller: every vehicle accelerates as the car-following model of the environment would have
 * it, as all the others do. Without parameters.
 *
 *   mean = ego[:, column] for the first continuous action, 0 for the others       log_std = -10
 *   logits = 0 where there are choices: it knows nothing of them                  values 0
 *
 * Ports: traffic/ports.h.
 */
#include "controller_net.h"

typedef struct config {
    int64_t column;
} config;

typedef struct state {
    controller_net net;
    config config;
} state;

static const dt_option options[] = {DT_OPTION(config, column, DT_OPT_I64, "8", "1", 0, 1023, NULL,
                                              "column of the observation ego that holds the acceleration"),
                                    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    const int64_t columns = controller_dim(dims, n_dims, "ego", 0);
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, 0.0, CONTROLLER_SURE));
    if (s->net.continuous < 1 || columns <= s->config.column) {
        return DT_FAIL_H(
            h, DT_ESHAPE,
            "controller_idm needs an environment whose agents choose accelerations and observe \"ego\" [A F] "
            "with more than %lld columns; this one has continuous %lld and %lld columns of ego",
            (long long)s->config.column, (long long)s->net.continuous, (long long)columns);
    }
    if (controller_dim(dims, n_dims, "squashed", 0) > 0) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "controller_idm returns accelerations in m/s^2, but this phase applies tanh to actions");
    }
    controller_input(&s->net, "ego", "A %lld", (long long)columns);
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
    return DT_OK;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *accel = dt_slice(g, in[0], s->config.column, 1); /* [A, 1] */
    dt_tensor *none = dt_affine(g, accel, 0.0, 0.0), *mean = accel;
    if (s->net.continuous > 1) {
        dt_tensor *all[2] = {accel, controller_columns(g, none, s->net.continuous - 1)};
        mean = dt_concat(g, all, 2);
    }
    uint32_t i = 0;
    if (s->net.has_value) {
        out[i++] = dt_merge(g, none);
    }
    if (s->net.choices > 0) {
        out[i++] = controller_columns(g, none, s->net.choices);
    }
    out[i++] = mean;
    out[i++] = dt_affine(g, mean, 0.0, CONTROLLER_SURE);
    if (s->net.K > 0) {
        out[i++] = controller_columns(g, none, s->net.K);
    }
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "controller_idm", "vehicles by the environment's own car following",
                "Treiber, Hennecke & Helbing 2000", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "controller_idm", "1.0", "dtrain", "Apache-2.0");

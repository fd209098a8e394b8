/* SPDX-License-Identifier: Apache-2.0
 *
 * temperature, role temperature: one number above 0 that learns, what soft actor-critic weighs entropy by.
 *
 *   out  log_alpha "1" f32   its logarithm, the parameter itself
 *
 * Source: Haarnoja et al. 2018, arXiv 1812.05905, section 5. Parameter: log_alpha.
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"

#include <math.h>

typedef struct config {
    double initial;
} config;

DT_STATE_DEFINE(state, config);

static const dt_option options[] = {
    DT_OPTION(config, initial, DT_OPT_F64, "1", "reward / nat", 1e-6, 1e6, NULL, "initial value"), DT_OPTION_END};

DT_MODEL_CREATE_DEFINE(create, state);

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = 0;
    return NULL;
}

DT_PORTS_DEFINE(outputs, {"log_alpha", "1", DT_F32, 0});

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    const int64_t one = 1;
    return reg->add(reg, "log_alpha", &one, 1, DT_INIT_CONST, log(s->config.initial));
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    out[0] = g->api->param(g, "log_alpha");
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "temperature", "learned positive weight of the entropy",
                "Haarnoja et al. 2018, arXiv 1812.05905", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "temperature", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "temperature", "1.0", "dtrain", "Apache-2.0");

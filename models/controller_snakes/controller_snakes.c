/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_snakes, role controller: plays env_snakes by one of its rules, as a yardstick for learned policies. The
 * environment reports in port advice [A 24] what each rule would do in the agents' place, a column a choice:
 *
 *   logits = sharpness * advice[:, choices * rule .. choices * rule + choices - 1]
 *   value, cost_value and continuous actions 0
 *
 * An environment that can is instructed to report it (plugin.h, dtrain.program/1). Threads: as dt_model_ops.
 */
#include "controller_net.h"

enum { RULES = 6 };

typedef struct config {
    uint32_t rule, reserved;
    double sharpness;
} config;

typedef struct state {
    controller_net net;
    config config;
} state;

static const char *const rules[] = {"random", "l1", "l2", "l3", "l4", "evasion", NULL};
static const dt_option options[] = {
    DT_OPTION(config, rule, DT_OPT_ENUM, "l2", NULL, 0, 0, rules, "rule that acts; l2 is the greedy one"),
    DT_OPTION(config, sharpness, DT_OPT_F64, "1000", "1", 0, 1e6, NULL,
              "logit of the rule's action; sampled actions follow it if it is large"),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, 0.0, 0.0));
    const int64_t columns = controller_dim(dims, n_dims, "advice", 0);
    if (s->net.choices < 1 || columns != RULES * s->net.choices) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "controller_snakes plays env_snakes, whose agents observe \"advice\" [A %d choices]; this "
                         "environment has choices %lld and %lld columns of advice",
                         RULES, (long long)s->net.choices, (long long)columns);
    }
    controller_input(&s->net, "advice", "A %lld", (long long)columns);
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
    dt_tensor *advice = dt_slice(g, in[0], (int64_t)s->config.rule * s->net.choices, s->net.choices);
    dt_tensor *none = dt_affine(g, dt_slice(g, in[0], 0, 1), 0.0, 0.0); /* [A, 1] */
    uint32_t i = 0;
    if (s->net.has_value) {
        out[i++] = dt_merge(g, none);
    }
    out[i++] = dt_affine(g, advice, s->config.sharpness, 0.0);
    if (s->net.continuous > 0) {
        out[i++] = controller_columns(g, none, s->net.continuous);
        out[i] = dt_affine(g, out[i - 1], 0.0, CONTROLLER_SURE);
        i++;
    }
    if (s->net.K > 0) {
        out[i] = controller_columns(g, none, s->net.K);
    }
    return g->api->status(g);
}

static const void *extension(const char *id)
{
    return strcmp(id, DT_EXT_PROGRAM) == 0 ? "" : NULL;
}

DT_MODEL_DEFINE(component, "controller_snakes", "plays env_snakes by a rule",
                "jidiai/Competition_3v3snakes; zhizhengzhao/snake", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "controller_snakes", "1.0", "dtrain", "Apache-2.0");

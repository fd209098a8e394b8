/* SPDX-License-Identifier: Apache-2.0
 *
 * critic_quadratic, role critic: a quadratic function of what an agent observes and does, z = (obs, action). Ports:
 * critic_net.h.
 *
 *   q = z' W z + v z + b        for each estimate parameters of its own
 *
 * With linear dynamics and quadratic rewards the values of a linear policy have this form exactly (Bradtke 1993).
 * Parameters: q<k>.square [n, n], which is W; q<k>.line.{w,b}. First W: -curvature I; the rest is 0.
 */
#include "critic_net.h"

typedef struct config {
    double curvature;
} config;

typedef struct state {
    critic_net net;
    config config;
} state;

static const dt_option options[] = {
    DT_OPTION(config, curvature, DT_OPT_F64, "0", "1", 0, 1e3, NULL, "q starts as -curvature (|obs|^2 + |action|^2)"),
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

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    const int64_t n = s->net.D + s->net.P, square[] = {n, n}, line[] = {1, n}, one = 1;
    char name[CRITIC_TEXT];
    for (int64_t k = 0; k < s->net.Q; k++) {
        snprintf(name, CRITIC_TEXT, "q%lld.square", (long long)k);
        DT_TRY_H(reg->add(reg, name, square, 2, DT_INIT_EYE, -s->config.curvature));
        snprintf(name, CRITIC_TEXT, "q%lld.line.w", (long long)k);
        DT_TRY_H(reg->add(reg, name, line, 2, DT_INIT_ZERO, 0.0));
        snprintf(name, CRITIC_TEXT, "q%lld.line.b", (long long)k);
        DT_TRY_H(reg->add(reg, name, &one, 1, DT_INIT_ZERO, 0.0));
    }
    return DT_OK;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *z = dt_concat(g, in, 2), *q[CRITIC_MAX_ESTIMATES];
    for (int64_t k = 0; k < s->net.Q; k++) {
        char square[CRITIC_TEXT], line[CRITIC_TEXT];
        snprintf(square, CRITIC_TEXT, "q%lld.square", (long long)k);
        snprintf(line, CRITIC_TEXT, "q%lld.line", (long long)k);
        dt_tensor *wz = dt_linear(g, z, g->api->param(g, square), NULL);
        q[k] = dt_add(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, z, wz)), dt_linear_of(g, z, line));
    }
    out[0] = critic_join(g, q, s->net.Q);
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "critic_quadratic", "Q values of actions, as a quadratic function", "Bradtke 1993, NIPS 5",
                config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "critic", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "critic_quadratic", "1.0", "dtrain", "Apache-2.0");

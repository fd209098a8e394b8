/* SPDX-License-Identifier: Apache-2.0
 *
 * world_constant_velocity, role world: every vehicle keeps its recorded speed along its recorded heading. Nothing to
 * train; the uncertainty is given. It is the yardstick of trajectory prediction and the proof that a world model can be
 * swapped. Ports: traffic/ports.h.
 *
 *   x_f = v (f+1) dt    y_f = 0    sigma_f = floor + rate (f+1) dt, along and across
 *
 * Source: Schoeller et al. 2020, What the constant velocity model can teach us.
 */
#include "world_future.h"

typedef struct config {
    double sigma_along, sigma_across, sigma_floor;
} config;

typedef struct state {
    world_ports ports;
    config config;
} state;

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    return world_ports_init(&s->ports, h, dims, n_dims);
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1; /* of all that is offered the motion is enough */
    return &((const state *)self)->ports.in[WORLD_IN_MOTION];
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = ((const state *)self)->ports.n_out;
    return ((const state *)self)->ports.out;
}

static dt_status params(void *self, dt_params *reg)
{
    return DT_OK;
}

/* x [S,D] -> [S,n,D], n copies; doubling, because one concatenation takes at most 8 */
static dt_tensor *repeat(dt_graph *g, dt_tensor *x, int64_t n)
{
    dt_tensor *all = NULL;
    for (int64_t left = n; left > 0; left >>= 1) {
        if (left & 1) {
            dt_tensor *part[2] = {all, x};
            all = all == NULL ? x : dt_concat(g, part, 2);
        }
        if (left > 1) {
            dt_tensor *part[2] = {x, x};
            x = dt_concat(g, part, 2);
        }
    }
    return dt_split(g, all, n);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    const double dt_s = s->ports.dt_s;
    dt_tensor *v = dt_slice(g, dt_step(g, in[0], -1), WORLD_MOTION_SPEED, 1); /* [S,1] */
    dt_tensor *move[2] = {dt_affine(g, v, dt_s, 0.0), dt_affine(g, v, 0.0, 0.0)};
    out[WORLD_OUT_FUTURE] = dt_cumsum(g, repeat(g, dt_concat(g, move, 2), s->ports.F));

    dt_tensor *grow[2] = {dt_affine(g, v, 0.0, s->config.sigma_along * dt_s),
                          dt_affine(g, v, 0.0, s->config.sigma_across * dt_s)};
    dt_tensor *sigma = dt_cumsum(g, repeat(g, dt_concat(g, grow, 2), s->ports.F));
    out[WORLD_OUT_SPREAD] = dt_unary(g, DT_FN_LOG, dt_affine(g, sigma, 1.0, s->config.sigma_floor), 0.0);
    return g->api->status(g);
}

static const dt_option options[] = {
    DT_OPTION(config, sigma_along, DT_OPT_F64, "1.2", "m/s", 0.0, 100.0, NULL,
              "growth of the standard deviation along the heading"),
    DT_OPTION(config, sigma_across, DT_OPT_F64, "0.3", "m/s", 0.0, 100.0, NULL,
              "growth of the standard deviation across the heading"),
    DT_OPTION(config, sigma_floor, DT_OPT_F64, "0.1", "m", 1e-3, 100.0, NULL, "standard deviation at time 0"),
    DT_OPTION_END};

DT_MODEL_DEFINE(component, "world_constant_velocity", "every vehicle keeps its speed and heading; nothing to train",
                "Schoeller et al. 2020", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "world", .flags = DT_COMP_DETERMINISTIC);

DT_PLUGIN_DEFINE_ONE(component, "world_constant_velocity", "1.0", "dtrain", "Apache-2.0");

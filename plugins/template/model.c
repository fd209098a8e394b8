/* SPDX-License-Identifier: Apache-2.0
 *
 * template: a world model that swaps with world_lstm in phase1_world_model.
 *
 * It looks at a vehicle's motion at the first and the last step of the history and corrects constant velocity:
 *
 *   h       = tanh(W [motion_0, motion_T] + b)
 *   v_f     = (speed + a_f . h, b_f . h)                     velocity in future step f, along and across the heading
 *   p_f     = sum_{k<=f} v_k dt
 *   sigma_f = floor + sum_{k<=f} softplus(c_k . h) dt        standard deviation; the port carries its logarithm
 *
 * The last layers start at zero, so that an untrained model is constant velocity. Ports: traffic/ports.h, role world.
 *
 *   make && dtrain check ./template.so
 *   DTRAIN_PLUGIN_PATH=. dtrain --plugin phase1_world_model --set models.world=template
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/graph.h>
#include <string.h>

enum { MOTION = 6, SPEED = 4 }; /* columns of motion: x y cos sin speed accel */
enum { TEXT = 48 };
#define SIGMA_FLOOR_M 0.05 /* half the noise of a recorded position */
#define MOTION_SCALE  0.1  /* metres and m/s come in tens */

typedef struct template_config { /* the host fills it from the section template */
    int64_t hidden;
} template_config;

typedef struct state { /* the host allocates it, zeroed */
    template_config config;
    int64_t T, F; /* steps of history and future */
    double dt_s;
    char text[2][TEXT];
    dt_port in[1], out[2];
} state;

static const dt_option options[] = {
    DT_OPTION(template_config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the hidden layer"),
    DT_OPTION_END};

/* A size that the phase fixes, by name; 0 when it does not. */
static int64_t find_dim(const dt_dim *dims, uint32_t n_dims, const char *name)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return 0;
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = (state *)self;
    s->config = *(const template_config *)cfg;
    s->T = find_dim(dims, n_dims, "T");
    s->F = find_dim(dims, n_dims, "F");
    s->dt_s = (double)find_dim(dims, n_dims, "dt_ms") / 1000.0;
    if (s->T < 1 || s->F < 1 || !(s->dt_s > 0)) {
        return DT_FAIL_H(h, DT_ESHAPE, "template needs the dimensions T, F and dt_ms from the phase, each at least 1");
    }
    /* what we read of all that the phase offers, and what we give */
    snprintf(s->text[0], TEXT, "%lld S %d", (long long)s->T, MOTION);
    snprintf(s->text[1], TEXT, "S %lld 2", (long long)s->F);
    const dt_port in = {"motion", s->text[0], DT_F32, 0};
    const dt_port future = {"future", s->text[1], DT_F32, 0}, spread = {"spread", s->text[1], DT_F32, 0};
    s->in[0] = in;
    s->out[0] = future;
    s->out[1] = spread;
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const state *)self)->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return ((const state *)self)->out;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = (const state *)self;
    const int64_t w[] = {s->config.hidden, 2 * MOTION}, b[] = {s->config.hidden};
    const int64_t axis[] = {s->F, s->config.hidden}, both[] = {2 * s->F, s->config.hidden};
    DT_TRY_H(reg->add(reg, "hidden.w", w, 2, DT_INIT_FAN_IN, 1.0));
    DT_TRY_H(reg->add(reg, "hidden.b", b, 1, DT_INIT_ZERO, 0.0));
    DT_TRY_H(reg->add(reg, "along.w", axis, 2, DT_INIT_ZERO, 0.0));
    DT_TRY_H(reg->add(reg, "across.w", axis, 2, DT_INIT_ZERO, 0.0));
    return reg->add(reg, "sigma.w", both, 2, DT_INIT_ZERO, 0.0);
}

/* Records ops, runs nothing; the host differentiates. Errors stick to the graph, so we go straight through. */
static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = (const state *)self;
    const dt_graph_api *api = g->api;
    dt_tensor *last = dt_step(g, in[0], -1); /* [S,6] */
    dt_tensor *seen[2] = {dt_step(g, in[0], 0), last};
    dt_tensor *x = dt_affine(g, dt_concat(g, seen, 2), MOTION_SCALE, 0.0);
    dt_tensor *h = dt_tanh(g, dt_linear(g, x, api->param(g, "hidden.w"), api->param(g, "hidden.b")));

    dt_tensor *along = dt_linear(g, h, api->param(g, "along.w"), NULL); /* [S,F] */
    dt_tensor *across = dt_linear(g, h, api->param(g, "across.w"), NULL);
    along = dt_add(g, along, dt_slice(g, last, SPEED, 1));                          /* one speed per row */
    dt_tensor *velocity[2] = {dt_split(g, along, s->F), dt_split(g, across, s->F)}; /* [S,F,1] each */
    out[0] = dt_cumsum(g, dt_affine(g, dt_concat(g, velocity, 2), s->dt_s, 0.0));

    dt_tensor *grow = dt_split(g, dt_linear(g, h, api->param(g, "sigma.w"), NULL), s->F); /* [S,F,2] */
    dt_tensor *sigma = dt_cumsum(g, dt_unary(g, DT_FN_SOFTPLUS, grow, 0.0));
    out[1] = dt_unary(g, DT_FN_LOG, dt_affine(g, sigma, s->dt_s, SIGMA_FLOOR_M), 0.0);
    return api->status(g);
}

DT_MODEL_DEFINE(model, "template", "constant velocity with a learned correction", "none", template_config, state,
                options,
                DT_OPS(DT_SET(create, create), DT_SET(inputs, inputs), DT_SET(outputs, outputs), DT_SET(params, params),
                       DT_SET(forward, forward), DT_SET(destroy, dt_no_op)),
                DT_SET(role, "world"), DT_SET(flags, DT_COMP_DETERMINISTIC));

DT_PLUGIN_DEFINE_ONE(model, "template", "0.1", "you", "Apache-2.0");

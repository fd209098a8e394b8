/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_world: a world model by convolution over time, for phase1_world_model in place of world_lstm.
 *
 * The motion of the last steps goes through two layers of width-3 convolutions, written as products of shifted steps;
 * what comes out corrects constant velocity. Ports: traffic/ports.h, role world.
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/graph.h>

#include "misbehave.h"

#include <string.h>

enum { MOTION = 6, SPEED = 4, WIDTH = 3, STEPS = 2 * WIDTH - 1, TEXT = 48 }; /* STEPS: what two layers look back on */

typedef struct config {
    int64_t channels;
} config;

typedef struct state {
    config config;
    int64_t T, F;
    double dt_s;
    char motion[TEXT], future[TEXT];
    dt_port in[1], out[2];
} state;

static const dt_option options[] = {
    DT_OPTION(config, channels, DT_OPT_I64, "32", "1", 1, 1024, NULL, "channels of each layer"), DT_OPTION_END};

static int64_t size_of(const dt_dim *dims, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return 0;
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    s->T = size_of(dims, n_dims, "T");
    s->F = size_of(dims, n_dims, "F");
    s->dt_s = (double)size_of(dims, n_dims, "dt_ms") / 1000.0;
    if (s->T < 1 || s->F < 1 || !(s->dt_s > 0)) {
        return DT_FAIL_H(h, DT_ESHAPE, "conv_world needs T, F and dt_ms of at least 1, got %lld, %lld and %g s",
                         (long long)s->T, (long long)s->F, s->dt_s);
    }
    snprintf(s->motion, TEXT, "%lld S %d", (long long)s->T, MOTION);
    snprintf(s->future, TEXT, "S %lld 2", (long long)s->F);
    s->in[0] = (dt_port){"motion", s->motion, DT_F32, 0};
    s->out[0] = (dt_port){"future", s->future, DT_F32, 0};
    s->out[1] = (dt_port){"spread", s->future, DT_F32, 0};
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
    const state *s = self;
    const int64_t C = s->config.channels;
    const int64_t first[] = {C, WIDTH * MOTION}, second[] = {C, WIDTH * C}, bias[] = {C}, head[] = {2 * s->F, C};
    DT_TRY_H(reg->add(reg, "conv1.w", first, 2, DT_INIT_FAN_IN, 1.0));
    DT_TRY_H(reg->add(reg, "conv1.b", bias, 1, DT_INIT_ZERO, 0.0));
    DT_TRY_H(reg->add(reg, "conv2.w", second, 2, DT_INIT_FAN_IN, 1.0));
    DT_TRY_H(reg->add(reg, "conv2.b", bias, 1, DT_INIT_ZERO, 0.0));
    DT_TRY_H(reg->add(reg, "turn.w", head, 2, DT_INIT_ZERO, 0.0));
    return reg->add(reg, "spread.w", head, 2, DT_INIT_ZERO, 0.0);
}

/* WIDTH steps side by side through one layer */
static dt_tensor *convolve(dt_graph *g, dt_tensor *const *x, const char *w, const char *b)
{
    return dt_elu(g, dt_linear(g, dt_concat(g, x, WIDTH), g->api->param(g, w), g->api->param(g, b)));
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *step[STEPS], *mid[WIDTH];
    misbehave(self, sizeof(state));
    for (int64_t i = 0; i < STEPS; i++) { /* the last ones; a short history repeats its first */
        const int64_t t = s->T - STEPS + i;
        step[i] = dt_affine(g, dt_step(g, in[0], t > 0 ? t : 0), 0.1, 0.0);
    }
    for (int i = 0; i < WIDTH; i++) {
        mid[i] = convolve(g, step + i, "conv1.w", "conv1.b");
    }
    dt_tensor *h = convolve(g, mid, "conv2.w", "conv2.b");                                  /* [S,C] */
    dt_tensor *turn = dt_split(g, dt_linear(g, h, g->api->param(g, "turn.w"), NULL), s->F); /* [S,F,2] m/s */
    dt_tensor *along = dt_merge(g, dt_slice(g, turn, 0, 1));
    along = dt_add(g, along, dt_slice(g, dt_step(g, in[0], -1), SPEED, 1));
    dt_tensor *velocity[2] = {dt_split(g, along, s->F), dt_slice(g, turn, 1, 1)};
    out[0] = dt_cumsum(g, dt_affine(g, dt_concat(g, velocity, 2), s->dt_s, 0.0));
    dt_tensor *grow = dt_split(g, dt_linear(g, h, g->api->param(g, "spread.w"), NULL), s->F);
    dt_tensor *sigma = dt_cumsum(g, dt_unary(g, DT_FN_SOFTPLUS, grow, 0.0));
    out[1] = dt_unary(g, DT_FN_LOG, dt_affine(g, sigma, s->dt_s, 0.05), 0.0);
    return g->api->status(g);
}

static void destroy(void *self)
{
    (void)self;
}

static const dt_model_ops ops = {.struct_size = sizeof(dt_model_ops),
                                 .create = create,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .params = params,
                                 .forward = forward,
                                 .destroy = destroy};
static const dt_component model = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_MODEL,
                                   .id = "conv_world",
                                   .summary = "convolution over time corrects constant velocity",
                                   .reference = "Bai, Kolter and Koltun (2018), arXiv:1803.01271",
                                   .role = "world",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .ops = &ops};
DT_PLUGIN_DEFINE_ONE(model, "conv_world", "0.1", "a stranger", "Apache-2.0");

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the world models have in common: the ports of the role, the features that enter a recurrent net, and the head
 * over its state. Included by the models next to it; not installed, not part of the contract.
 *
 * How a state becomes futures: world_future.h.
 *
 * What enters: x_t = motion_t, scaled, and the embedding only if narrow > 0 brings it in, narrowed to so many columns.
 * Embeddings of the past let a net learn a recording by heart (NGSIM: error at 5 s 0.86 of constant velocity's with all
 * of it, 0.82 with 8 columns, 0.75 without). The head sees the state, the embedding and motion of the last step, and
 * motion some steps ago.
 *
 * Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_WORLD_NET_H
#define DTRAIN_MODELS_WORLD_NET_H

#include "world_future.h"

/* ---- recurrent world models ------------------------------------------------------------------------------------ */

typedef struct world_config {
    uint32_t preset;
    uint8_t reserved[4];
    int64_t hidden, layers, head; /* 0: the preset's */
    int64_t narrow, futures;
    double dropout;
    uint8_t kinematic, calibrated, reserved_too[6];
} world_config;

static const char *const world_presets[] = {"guide", "15m", NULL};

/* The rows of a recurrent model's option table. */
#define WORLD_OPTIONS                                                                                                  \
    DT_OPTION(world_config, preset, DT_OPT_ENUM, "guide", "1", 0, 1, world_presets,                                    \
              "preset of sizes: guide = hidden 256, 15m = hidden 640; both 2 layers and head 256"),                    \
        DT_OPTION(world_config, hidden, DT_OPT_I64, "0", "1", 0, 8192, NULL,                                           \
                  "width of the recurrent state; 0 takes the preset's"),                                               \
        DT_OPTION(world_config, layers, DT_OPT_I64, "0", "1", 0, 8, NULL, "recurrent layers; 0 takes the preset's"),   \
        DT_OPTION(world_config, head, DT_OPT_I64, "0", "1", 0, 8192, NULL,                                             \
                  "width of the layer between state and future; 0 takes the preset's"),                                \
        DT_OPTION(world_config, narrow, DT_OPT_I64, "0", "1", 0, 8192, NULL,                                           \
                  "columns that embeddings are projected to before the recurrent layers; 0: they see only motion"),    \
        DT_OPTION(world_config, dropout, DT_OPT_F64, "0.4", "1", 0, 0.95, NULL,                                        \
                  "dropout of the head's inputs and units in training"),                                               \
        DT_OPTION(world_config, futures, DT_OPT_I64, "1", "1", 1, WORLD_MAX_FUTURES, NULL,                             \
                  "predicted futures of each vehicle, with their probabilities"),                                      \
        DT_OPTION(world_config, kinematic, DT_OPT_BOOL, "false", "", 0, 0, NULL,                                       \
                  "vehicles move along their heading, at speeds that are not negative"),                               \
        DT_OPTION(                                                                                                     \
            world_config, calibrated, DT_OPT_BOOL, "false", "", 0, 0, NULL,                                            \
            "add a temperature of deviations and radii of regions, which phase1_world_model.calibration_folds fits"),  \
        DT_OPTION_END

typedef struct world_net {
    world_ports ports;
    int64_t hidden, layers, head, narrow;
    double dropout;
} world_net;

/* create, inputs and outputs of a recurrent model (dt_model_ops) */
static inline dt_status world_net_create(void *self, const dt_host *h, const void *config, const dt_dim *dims,
                                         uint32_t n_dims)
{
    const world_config *c = config;
    world_net *w = self;
    w->hidden = c->hidden > 0 ? c->hidden : (c->preset == 1 ? 640 : 256);
    w->layers = c->layers > 0 ? c->layers : 2;
    w->head = c->head > 0 ? c->head : 256;
    w->narrow = c->narrow;
    w->dropout = c->dropout;
    int64_t H = 0;
    DT_TRY_H(world_dim(h, dims, n_dims, "H", &H));
    DT_TRY_H(world_ports_init(&w->ports, h, dims, n_dims));
    const world_future_format how = {
        .futures = c->futures, .is_kinematic = c->kinematic, .is_calibrated = c->calibrated};
    world_ports_add_outputs(&w->ports, &how);
    if (w->narrow == 0) { /* of embeddings the last one is enough */
        snprintf(w->ports.text[0], WORLD_TEXT, "S %lld", (long long)H);
        w->ports.in[WORLD_IN_HISTORY].name = "latest";
    }
    return DT_OK;
}

static inline const dt_port *world_net_inputs(const void *self, uint32_t *n_p)
{
    const world_net *w = self;
    *n_p = w->ports.R > 0 ? WORLD_N_IN : w->dropout > 0 ? WORLD_IN_LANE : WORLD_IN_SEQ_KEY;
    return w->ports.in;
}

static inline const dt_port *world_net_outputs(const void *self, uint32_t *n_p)
{
    *n_p = ((const world_net *)self)->ports.n_out;
    return ((const world_net *)self)->ports.out;
}

/* The plugin of a recurrent model: the file that uses this defines params and forward. */
#define WORLD_NET_PLUGIN(ID, SUMMARY, REFERENCE)                                                                       \
    static const dt_option options[] = {WORLD_OPTIONS};                                                                \
    DT_MODEL_DEFINE(component, ID, SUMMARY, REFERENCE, world_config, world_net, options,                               \
                    DT_OPS(.create = world_net_create, .inputs = world_net_inputs, .outputs = world_net_outputs,       \
                           .params = params, .forward = forward, .destroy = dt_no_op),                                 \
                    .role = "world", .flags = DT_COMP_DETERMINISTIC);                                                  \
    DT_PLUGIN_DEFINE_ONE(component, ID, "1.0", "dtrain", "Apache-2.0")

/* The head also sees the motion of T-1, (T-1)/2, ... 1 steps ago: what a recurrent state learns slowly from few
 * vehicles, how speed and path changed, is there directly. Fills back[], returns how many. */
static inline uint32_t world_lags(const world_net *w, int64_t back[WORLD_MAX_LAGS])
{
    uint32_t n = 0;
    for (int64_t k = w->ports.T - 1; k > 0 && n < WORLD_MAX_LAGS; k /= 2) {
        back[n++] = k;
    }
    return n;
}

/* Columns that enter recurrent layer i. */
static inline int64_t world_net_width(const world_net *w, int64_t i)
{
    return i == 0 ? w->narrow + WORLD_MOTION : w->hidden;
}

/* One matrix [rows, cols] and, with bias, one vector [rows], both U(-a, a) with a = 1/sqrt(fan_in), the default of
 * PyTorch's LSTM and Linear. fan_in 0: zeros. */
static inline dt_status world_add(dt_params *reg, const char *name, int64_t rows, int64_t cols, int64_t fan_in,
                                  int bias)
{
    char text[WORLD_TEXT + 4];
    const int64_t dim[2] = {rows, cols};
    const uint32_t init = fan_in > 0 ? DT_INIT_UNIFORM : DT_INIT_ZERO;
    const double a = fan_in > 0 ? 1.0 / sqrt((double)fan_in) : 0.0;
    snprintf(text, sizeof(text), "%s.w", name);
    DT_TRY_H(reg->add(reg, text, dim, 2, init, a));
    if (!bias) {
        return DT_OK;
    }
    snprintf(text, sizeof(text), "%s.b", name);
    return reg->add(reg, text, dim, 1, init, a);
}

static inline dt_status world_head_params(const world_net *w, dt_params *reg)
{
    int64_t back[WORLD_MAX_LAGS];
    const int64_t in = w->hidden + w->ports.H + WORLD_MOTION * (1 + (int64_t)world_lags(w, back));
    if (w->narrow > 0) {
        DT_TRY_H(world_add(reg, "narrow", w->narrow, w->ports.H, w->ports.H, 1));
    }
    DT_TRY_H(world_add(reg, "head.0", w->head, in, in, 1));
    if (w->ports.R > 0) {
        DT_TRY_H(world_add(reg, "lane.0", WORLD_LANE_UNITS, w->ports.R, w->ports.R, 1));
        DT_TRY_H(world_add(reg, "lane.1", w->head, WORLD_LANE_UNITS, WORLD_LANE_UNITS, 0));
    }
    DT_TRY_H(world_future_params(&w->ports, reg));
    return world_add(reg, "head.1", world_future_columns(&w->ports), w->head, 0, 1);
}

/* y = x w^T + b with the parameters <name>.w and <name>.b */
static inline dt_tensor *world_linear(dt_graph *g, dt_tensor *x, const char *name)
{
    char w[WORLD_TEXT + 4], b[WORLD_TEXT + 4];
    snprintf(w, sizeof(w), "%s.w", name);
    snprintf(b, sizeof(b), "%s.b", name);
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}

/* motion [T,S,6] with everything brought to order 1, as gates need it */
static inline dt_tensor *world_scale_motion(dt_graph *g, dt_tensor *motion)
{
    dt_tensor *part[4] = {dt_affine(g, dt_slice(g, motion, 0, 2), 1.0 / 2.0, 0.0), dt_slice(g, motion, 2, 2),
                          dt_affine(g, dt_slice(g, motion, WORLD_MOTION_SPEED, 1), 1.0 / 5.0, 0.0),
                          dt_affine(g, dt_slice(g, motion, WORLD_MOTION_ACCEL, 1), 1.0 / 2.0, 0.0)};
    return dt_concat(g, part, 4);
}

/* What enters the first recurrent layer: [T,S,narrow+6] */
static inline dt_tensor *world_sequence(const world_net *w, dt_graph *g, dt_tensor *history, dt_tensor *scaled)
{
    if (w->narrow == 0) {
        return scaled;
    }
    dt_tensor *part[2] = {world_linear(g, history, "narrow"), scaled};
    return dt_concat(g, part, 2);
}

static inline dt_tensor *world_drop(const world_net *w, dt_graph *g, dt_tensor *x, dt_tensor *key)
{
    return w->dropout > 0 && key != NULL ? dt_dropout(g, x, key, w->dropout) : x;
}

/* Are roads known, and provided? A model that knows none of them is not given their ports. */
static inline int world_has_roads(const world_net *w, dt_tensor *const *in)
{
    return w->ports.R > 0 && in[WORLD_IN_LANE] != NULL && in[WORLD_IN_PATH] != NULL;
}

/* What the head's first layer gets from the lane [S,R]: [S,head] */
static inline dt_tensor *world_record_lane(const world_net *w, dt_graph *g, dt_tensor *lane, dt_tensor *key)
{
    dt_tensor *z = dt_relu(g, world_linear(g, lane, "lane.0"));
    return dt_linear(g, world_drop(w, g, z, key), g->api->param(g, "lane.1.w"), NULL);
}

/* State of every step [T,S,hidden], inputs, scaled motion -> the predicted future. */
static inline dt_status world_head(const world_net *w, dt_graph *g, dt_tensor *state, dt_tensor *const *in,
                                   dt_tensor *scaled, dt_tensor **out)
{
    dt_tensor *motion = in[WORLD_IN_MOTION], *key = w->dropout > 0 ? in[WORLD_IN_SEQ_KEY] : NULL;
    int64_t back[WORLD_MAX_LAGS];
    const uint32_t n_lags = world_lags(w, back);
    dt_tensor *embedding = in[WORLD_IN_HISTORY];
    embedding = w->narrow > 0 ? dt_step(g, embedding, -1) : embedding;
    dt_tensor *part[3 + WORLD_MAX_LAGS] = {world_drop(w, g, dt_step(g, state, -1), key), embedding,
                                           dt_step(g, scaled, -1)};
    for (uint32_t i = 0; i < n_lags; i++) {
        part[3 + i] = dt_step(g, scaled, -1 - back[i]);
    }
    dt_tensor *z = world_linear(g, dt_concat(g, part, 3 + n_lags), "head.0");
    z = dt_relu(g, world_has_roads(w, in) ? dt_add(g, z, world_record_lane(w, g, in[WORLD_IN_LANE], key)) : z);
    z = world_drop(w, g, z, key);
    dt_tensor *speed = dt_slice(g, dt_step(g, motion, -1), WORLD_MOTION_SPEED, 1); /* [S,1] */
    dt_tensor *path = world_has_roads(w, in) ? in[WORLD_IN_PATH] : NULL;
    world_futures(&w->ports, g, world_linear(g, z, "head.1"), speed, path, out);
    return g->api->status(g);
}

#endif

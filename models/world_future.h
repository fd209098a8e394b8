/* SPDX-License-Identifier: Apache-2.0
 *
 * What the world models have in common besides their nets: the ports of the role, and how numbers z become futures.
 * Included by world_net.h and by the models next to it; not installed, not part of the contract.
 *
 * A future is constant velocity plus a learned correction of velocity, summed over time (v: speed at the last history
 * step, the x axis is the heading there; dt: seconds between steps; f, k: future steps, from 0):
 *
 *   free        x_f     = sum_{k<=f} (v + s z_xk) dt       y_f = sum_{k<=f} s z_yk dt            s = 5 m/s
 *   kinematic   x_f     = sum_{k<=f} w_k cos h_k dt        y_f = sum_{k<=f} w_k sin h_k dt
 *               w_k     = max(v + s z_xk + a_j t_k, 0)     tan(h_k / 2) = c z_yk                 c = 1/4
 *   both        sigma_f = floor + growth sum_{k<=f} softplus(u_k) dt       per axis, the ports carry its logarithm
 *
 * Kinematic vehicles go where they head, never backwards, and stopped vehicles may stay stopped. Below 0 the speed has
 * a tenth of its slope, so that a future that is stopped by mistake can learn to go.
 *
 * Where roads are known x runs along the vehicle's lane and y lateral to it, the way is laid along the lane
 * (world_road.h), and of z_xk and z_yk the part min(t_k / 2 s, 1) counts: no vehicle changes speed at once, and what is
 * learned of later seconds does not blur the first. A vehicle that points away from its lane continues laterally for a
 * while, n_y being what of its heading points to the lane's left and r = 0.7 s:
 *
 *   y_f += v n_y r (1 - exp(-t_f / r))
 *
 * Of several futures j each has its own z, and a logit: p = softmax. In the beginning they differ by accelerations a_j,
 * so that braking, keeping and going are distinguished from the first step on (anchors: Chai et al. 2019, MultiPath).
 * Ports future and spread sum them up by their mean and deviation, axis by axis (Bishop 1994):
 *
 *   m_f = sum_j p_j m_jf            sigma_f^2 = sum_j p_j (sigma_jf^2 + (m_jf - m_f)^2)
 *
 * Calibrated, all sigma are multiplied by e^temperature, of each axis and step, which is fitted to data that was held
 * out from training (Guo et al. 2017) by phases that do that, and is a parameter of the model like others.
 *
 * z begins at zero, so one untrained future is constant velocity with an uncertainty that grows linearly; sigma_j never
 * shrinks with the horizon. Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_WORLD_FUTURE_H
#define DTRAIN_MODELS_WORLD_FUTURE_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"
#include "world_road.h"
#include <math.h>
#include <string.h>

enum { WORLD_MOTION = 6, WORLD_AXES = 2, WORLD_TEXT = 48, WORLD_MAX_LAGS = 5, WORLD_MAX_FUTURES = 8 };
enum {
    WORLD_IN_HISTORY, /* or latest */
    WORLD_IN_MOTION,
    WORLD_IN_PRESENT,
    WORLD_IN_SEQ_KEY,
    WORLD_IN_LANE, /* from here on where roads are known */
    WORLD_IN_PATH,
    WORLD_N_IN
};
enum {
    WORLD_OUT_FUTURE,
    WORLD_OUT_SPREAD,
    WORLD_OUT_FUTURES, /* from here on of several futures */
    WORLD_OUT_SPREADS,
    WORLD_OUT_PROBABILITY,
    WORLD_N_OUT,
    WORLD_MAX_OUT = WORLD_N_OUT + 2 /* temperature and regions, reported last */
};
enum { WORLD_REGIONS = 150 };                            /* radii of 3 classes, 5 seconds, 10 levels: traffic/ports.h */
enum { WORLD_MOTION_SPEED = 4, WORLD_MOTION_ACCEL = 5 }; /* columns of motion */

#define WORLD_CORRECTION_MPS   5.0  /* what drivers change their speed by within the horizon */
#define WORLD_TURN             0.25 /* at 10 m/s as much across as s */
#define WORLD_STEADY_S         2.0  /* until a change of speed is whole, where roads are known */
#define WORLD_ALIGN_S          0.7  /* until a vehicle has turned into its lane's direction, but for 1/e */
#define WORLD_SLOPE_BELOW      0.1  /* of a speed below 0 */
#define WORLD_SIGMA_FLOOR_M    0.05 /* half the noise of a recorded position */
#define WORLD_SIGMA_GROWTH_MPS 1.0  /* times softplus(0) = 0.69 m of standard deviation per second before training */

typedef struct world_ports {
    int64_t H, T, F; /* embedding width (0: no embedding), history and future steps */
    int64_t R, P;    /* columns of lane, rows of path; 0: roads are not known */
    double dt_s;
    int64_t K;             /* futures */
    uint8_t is_kinematic;  /* vehicles move along their heading */
    uint8_t is_calibrated; /* deviations have a temperature, regions their radii */
    uint32_t n_out;
    dt_port in[WORLD_N_IN], out[WORLD_MAX_OUT];
    char text[WORLD_N_IN + WORLD_MAX_OUT][WORLD_TEXT];
} world_ports;

/* Size of a dimension that the phase fixes. Errors: DT_ESHAPE when it is missing or not positive. */
static inline dt_status world_dim(const dt_host *h, const dt_dim *dims, uint32_t n_dims, const char *name,
                                  int64_t *size_p)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            if (dims[i].size < 1) {
                return DT_FAIL_H(h, DT_ESHAPE,
                                 "the phase gives dimension %s the size %lld, a world model needs 1 or more%s", name,
                                 (long long)dims[i].size,
                                 strcmp(name, "H") == 0 ? ": embeddings come from models.perception, set it" : "");
            }
            *size_p = dims[i].size;
            return DT_OK;
        }
    }
    return DT_FAIL_H(
        h, DT_ESHAPE,
        "the phase does not fix dimension %s: a world model needs T (history steps), F (future steps), dt_ms "
        "(step in ms) and, if it reads embeddings, H (their width: set models.perception)",
        name);
}

/* Ports of role world (traffic/ports.h) with the phase's sizes. p must not move afterwards. */
static inline dt_status world_ports_init(world_ports *p, const dt_host *h, const dt_dim *dims, uint32_t n_dims)
{
    int64_t dt_ms = 0;
    for (uint32_t i = 0; i < n_dims; i++) {
        p->H = strcmp(dims[i].name, "H") == 0 ? dims[i].size : p->H;
        p->R = strcmp(dims[i].name, "R") == 0 ? dims[i].size : p->R;
        p->P = strcmp(dims[i].name, "P") == 0 ? dims[i].size : p->P;
    }
    DT_TRY_H(world_dim(h, dims, n_dims, "T", &p->T));
    DT_TRY_H(world_dim(h, dims, n_dims, "F", &p->F));
    DT_TRY_H(world_dim(h, dims, n_dims, "dt_ms", &dt_ms));
    p->dt_s = (double)dt_ms / 1000.0;

    snprintf(p->text[0], WORLD_TEXT, "%lld S %lld", (long long)p->T, (long long)p->H);
    snprintf(p->text[1], WORLD_TEXT, "%lld S %d", (long long)p->T, WORLD_MOTION);
    snprintf(p->text[2], WORLD_TEXT, "%lld S", (long long)p->T);
    snprintf(p->text[WORLD_IN_LANE], WORLD_TEXT, "S %lld", (long long)p->R);
    snprintf(p->text[WORLD_IN_PATH], WORLD_TEXT, "S %lld %d", (long long)p->P, WORLD_PATH_COLUMNS);
    snprintf(p->text[WORLD_N_IN], WORLD_TEXT, "S %lld %d", (long long)p->F, WORLD_AXES);
    p->in[WORLD_IN_HISTORY] = (dt_port){"history", p->text[0], DT_F32, 0};
    p->in[WORLD_IN_MOTION] = (dt_port){"motion", p->text[1], DT_F32, 0};
    p->in[WORLD_IN_PRESENT] = (dt_port){"present", p->text[2], DT_F32, 0};
    p->in[WORLD_IN_SEQ_KEY] = (dt_port){"seq_key", "S", DT_I64, DT_PORT_OPTIONAL};
    p->in[WORLD_IN_LANE] = (dt_port){"lane", p->text[WORLD_IN_LANE], DT_F32, DT_PORT_OPTIONAL};
    p->in[WORLD_IN_PATH] = (dt_port){"path", p->text[WORLD_IN_PATH], DT_F32, DT_PORT_OPTIONAL};
    p->out[WORLD_OUT_FUTURE] = (dt_port){"future", p->text[WORLD_N_IN], DT_F32, 0};
    p->out[WORLD_OUT_SPREAD] = (dt_port){"spread", p->text[WORLD_N_IN], DT_F32, 0};
    p->K = 1;
    p->n_out = WORLD_OUT_FUTURES;
    return DT_OK;
}

typedef struct world_future_format { /* how futures are reported */
    int64_t futures;
    uint8_t is_kinematic, is_calibrated;
} world_future_format;

/* The ports that this takes; one future alone needs none of its own. */
static inline void world_ports_add_outputs(world_ports *p, const world_future_format *how)
{
    char *text = p->text[WORLD_N_IN + 2], *share = p->text[WORLD_N_IN + 3], *scale = p->text[WORLD_N_IN + 4],
         *radii = p->text[WORLD_N_IN + 5];
    p->K = how->futures;
    p->is_kinematic = how->is_kinematic;
    p->is_calibrated = how->is_calibrated;
    if (p->K > 1) {
        snprintf(text, WORLD_TEXT, "S %lld %lld %d", (long long)p->K, (long long)p->F, WORLD_AXES);
        snprintf(share, WORLD_TEXT, "S %lld", (long long)p->K);
        p->out[WORLD_OUT_FUTURES] = (dt_port){"futures", text, DT_F32, 0};
        p->out[WORLD_OUT_SPREADS] = (dt_port){"spreads", text, DT_F32, 0};
        p->out[WORLD_OUT_PROBABILITY] = (dt_port){"probability", share, DT_F32, 0};
        p->n_out = WORLD_N_OUT;
    }
    if (p->is_calibrated) {
        snprintf(scale, WORLD_TEXT, "%lld", (long long)(WORLD_AXES * p->F));
        snprintf(radii, WORLD_TEXT, "%d", WORLD_REGIONS);
        p->out[p->n_out++] = (dt_port){"temperature", scale, DT_F32, 0};
        p->out[p->n_out++] = (dt_port){"regions", radii, DT_F32, 0};
    }
}

/* ---- from z to futures ------------------------------------------------------------------------------------------- */

/* Columns of z: of all futures z_x, z_y, u_x, u_y; then, of several, their logits. */
static inline int64_t world_future_columns(const world_ports *p)
{
    return 2 * WORLD_AXES * p->K * p->F + (p->K > 1 ? p->K : 0);
}

/* The parameters of how futures are reported: logarithms of factors, 0 until they are fitted. */
static inline dt_status world_future_params(const world_ports *p, dt_params *reg)
{
    const int64_t n = WORLD_AXES * p->F, n_regions = WORLD_REGIONS;
    if (!p->is_calibrated) {
        return DT_OK;
    }
    DT_TRY_H(reg->add(reg, "temperature", &n, 1, DT_INIT_ZERO, 0));
    return reg->add(reg, "regions", &n_regions, 1, DT_INIT_ZERO, 0);
}

/* x, y [S,K F] -> [S,K,F,2]; one future: [S,F,2] */
static inline dt_tensor *world_stack_axes(const world_ports *p, dt_graph *g, dt_tensor *x, dt_tensor *y)
{
    dt_tensor *part[2] = {x, y};
    for (int a = 0; a < WORLD_AXES; a++) {
        part[a] = p->K > 1 ? dt_split(g, part[a], p->K) : part[a];
        part[a] = dt_split(g, part[a], p->F);
    }
    return dt_concat(g, part, WORLD_AXES);
}

/* The accelerations that futures begin with, as speeds [S,K F]; like: [S,F]. */
static inline dt_tensor *world_anchors(const world_ports *p, dt_graph *g, dt_tensor *like)
{
    static const double anchor_mps2[WORLD_MAX_FUTURES] = {0, -1, 1, -2, 2, -3, 0.5, -0.5};
    dt_tensor *part[WORLD_MAX_FUTURES];
    dt_tensor *t = dt_merge(g, dt_cumsum(g, dt_split(g, dt_fill(g, like, p->dt_s), p->F)));
    for (int64_t j = 0; j < p->K; j++) {
        part[j] = dt_affine(g, t, anchor_mps2[j], 0.0);
    }
    return dt_concat(g, part, (uint32_t)p->K);
}

/* max(x, 0), with some slope below */
static inline dt_tensor *world_not_negative(dt_graph *g, dt_tensor *x)
{
    dt_tensor *zero = dt_fill(g, x, 0.0), *below = dt_affine(g, dt_min(g, x, zero), WORLD_SLOPE_BELOW, 0.0);
    return dt_add(g, dt_max(g, x, zero), dt_sub(g, below, dt_stop(g, below)));
}

/* z_x, z_y [S,K F], speed [S,1] -> velocities [S,K,F,2] */
static inline dt_tensor *world_velocity(const world_ports *p, dt_graph *g, dt_tensor *zx, dt_tensor *zy,
                                        dt_tensor *speed)
{
    dt_tensor *v = dt_add(g, dt_affine(g, zx, WORLD_CORRECTION_MPS, 0.0), speed);
    v = p->K > 1 ? dt_add(g, v, world_anchors(p, g, dt_slice(g, zx, 0, p->F))) : v;
    if (!p->is_kinematic) {
        return world_stack_axes(p, g, v, dt_affine(g, zy, WORLD_CORRECTION_MPS, 0.0));
    }
    v = world_not_negative(g, v);
    dt_tensor *tan_half = dt_affine(g, zy, WORLD_TURN, 0.0), *square = dt_mul(g, tan_half, tan_half);
    dt_tensor *unit = dt_div(g, v, dt_affine(g, square, 1.0, 1.0));
    return world_stack_axes(p, g, dt_mul(g, unit, dt_affine(g, square, -1.0, 1.0)),
                            dt_mul(g, unit, dt_affine(g, tan_half, 2.0, 0.0)));
}

/* sum_j p_j x_j: x [S,K,2 F], probability [S,K,1] -> [S,2 F] */
static inline dt_tensor *world_mixture_mean(dt_graph *g, dt_tensor *x, dt_tensor *probability)
{
    return dt_reduce(g, DT_REDUCE_SUM, dt_mul(g, x, probability));
}

/* x [S,D] for each of K futures: [S,K,D] */
static inline dt_tensor *world_repeat_futures(dt_graph *g, dt_tensor *x, int64_t K)
{
    dt_tensor *part[WORLD_MAX_FUTURES];
    for (int64_t j = 0; j < K; j++) {
        part[j] = x;
    }
    return dt_split(g, dt_concat(g, part, (uint32_t)K), K);
}

/* Ports future and spread, of several futures. */
static inline void world_sum_up(const world_ports *p, dt_graph *g, dt_tensor **out)
{
    dt_tensor *probability = dt_split(g, out[WORLD_OUT_PROBABILITY], 0); /* [S,K,1] */
    dt_tensor *all = dt_merge(g, out[WORLD_OUT_FUTURES]);
    dt_tensor *deviation = dt_unary(g, DT_FN_EXP, dt_merge(g, out[WORLD_OUT_SPREADS]), 0.0);
    dt_tensor *mean = world_mixture_mean(g, all, probability);
    dt_tensor *apart = dt_sub(g, all, world_repeat_futures(g, mean, p->K));
    dt_tensor *square = dt_add(g, dt_mul(g, apart, apart), dt_mul(g, deviation, deviation));
    dt_tensor *log_square = dt_unary(g, DT_FN_LOG, world_mixture_mean(g, square, probability), 0.0);
    out[WORLD_OUT_FUTURE] = dt_split(g, mean, p->F);
    out[WORLD_OUT_SPREAD] = dt_split(g, dt_affine(g, log_square, 0.5, 0.0), p->F);
}

/* What part of z counts at every step [S,K F], all of it from WORLD_STEADY_S on; like: [S,F] */
static inline dt_tensor *world_ramp_weight(const world_ports *p, dt_graph *g, dt_tensor *like)
{
    dt_tensor *part[WORLD_MAX_FUTURES];
    dt_tensor *t = dt_merge(g, dt_cumsum(g, dt_split(g, dt_fill(g, like, p->dt_s / WORLD_STEADY_S), p->F)));
    t = dt_clamp(g, t, 0.0, 1.0);
    for (int64_t j = 0; j < p->K; j++) {
        part[j] = t;
    }
    return p->K > 1 ? dt_concat(g, part, (uint32_t)p->K) : t;
}

/* How far vehicles get laterally before they point along it [S,K,F,2], one: [S,F,2]; speed [S,1],
 * path [S,P,4], like: [S,F] */
static inline dt_tensor *world_aligning_distance(const world_ports *p, dt_graph *g, dt_tensor *speed, dt_tensor *path,
                                                 dt_tensor *like)
{
    dt_tensor *part[WORLD_MAX_FUTURES];
    dt_tensor *t = dt_merge(g, dt_cumsum(g, dt_split(g, dt_fill(g, like, -p->dt_s / WORLD_ALIGN_S), p->F)));
    dt_tensor *left = dt_slice(g, dt_merge(g, path), 2, 1); /* the normal at the vehicle, along its heading */
    dt_tensor *share = dt_affine(g, dt_unary(g, DT_FN_EXP, t, 0.0), -WORLD_ALIGN_S, WORLD_ALIGN_S);
    dt_tensor *aside = dt_mul(g, share, dt_mul(g, speed, left));
    for (int64_t j = 0; j < p->K; j++) {
        part[j] = aside;
    }
    aside = p->K > 1 ? dt_concat(g, part, (uint32_t)p->K) : aside;
    return world_stack_axes(p, g, dt_fill(g, aside, 0.0), aside);
}

/* Ways [S,K,F,2], one [S,F,2], along a path [S,P,4]. */
static inline dt_tensor *world_along_path(const world_ports *p, dt_graph *g, dt_tensor *way, dt_tensor *path)
{
    if (p->K == 1) {
        return world_on_path(g, way, path);
    }
    dt_tensor *all = dt_split(g, dt_merge(g, dt_merge(g, way)), p->K * p->F);
    return dt_split(g, dt_split(g, dt_merge(g, world_on_path(g, all, path)), p->K), p->F);
}

/* z [S,columns], speed at the last history step [S,1], path [S,P,4] or NULL -> out, in the order of the ports */
static inline void world_futures(const world_ports *p, dt_graph *g, dt_tensor *z, dt_tensor *speed, dt_tensor *path,
                                 dt_tensor **out)
{
    const int64_t n = p->K * p->F;
    dt_tensor *zx = dt_slice(g, z, 0, n), *zy = dt_slice(g, z, n, n);
    if (path != NULL) {
        dt_tensor *growth_of_z = world_ramp_weight(p, g, dt_slice(g, zx, 0, p->F));
        zx = dt_mul(g, zx, growth_of_z);
        zy = dt_mul(g, zy, growth_of_z);
    }
    dt_tensor *velocity = world_velocity(p, g, zx, zy, speed);
    dt_tensor *future = dt_cumsum(g, dt_affine(g, velocity, p->dt_s, 0.0));
    if (path != NULL) {
        future = dt_add(g, future, world_aligning_distance(p, g, speed, path, dt_slice(g, zx, 0, p->F)));
        future = world_along_path(p, g, future, path);
    }
    dt_tensor *growth =
        dt_unary(g, DT_FN_SOFTPLUS, world_stack_axes(p, g, dt_slice(g, z, 2 * n, n), dt_slice(g, z, 3 * n, n)), 0.0);
    dt_tensor *sigma = dt_affine(g, dt_cumsum(g, growth), WORLD_SIGMA_GROWTH_MPS * p->dt_s, WORLD_SIGMA_FLOOR_M);
    dt_tensor *spread = dt_unary(g, DT_FN_LOG, sigma, 0.0);
    if (p->is_calibrated) {
        dt_tensor *temperature = g->api->param(g, "temperature");
        spread = dt_split(g, dt_add(g, dt_merge(g, spread), temperature), p->F);
        out[p->n_out - 2] = dt_affine(g, temperature, 1.0, 0.0);
        out[p->n_out - 1] = dt_affine(g, g->api->param(g, "regions"), 1.0, 0.0);
    }
    if (p->K == 1) {
        out[WORLD_OUT_FUTURE] = future;
        out[WORLD_OUT_SPREAD] = spread;
        return;
    }
    out[WORLD_OUT_FUTURES] = future;
    out[WORLD_OUT_SPREADS] = spread;
    out[WORLD_OUT_PROBABILITY] = dt_softmax(g, dt_slice(g, z, 4 * n, p->K));
    world_sum_up(p, g, out);
}

#endif

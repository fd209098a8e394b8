/* SPDX-License-Identifier: Apache-2.0
 *
 * What the learned controllers have in common: the ports of the role and the heads that turn features of an agent into
 * a distribution over its actions and into values. Included by the models next to it; not installed, not part of the
 * contract.
 *
 *   logits     = W_l p + b_l          [A, choices]      p: features for acting, c: for valuing, [A, width]
 *   mean       = W_m p + b_m          [A, continuous]
 *   log_std    = s                    the same row for every agent, learned, whatever the agent sees; where the phase
 *                                     requests (dim spread 1): W_s p + b_s [A, continuous]
 *   value      = w_v c + b_v          [A]; not where the phase requests none (dim values 0)
 *   cost_value = W_k c + b_k          [A, K]
 *
 * Initial values as in "The 37 implementation details of PPO" (Huang et al. 2022): orthogonal, gain sqrt 2 for hidden
 * layers, policy_gain (0.01) for what chooses actions, so that every choice starts about as likely, 1 for values;
 * biases 0. Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_CONTROLLER_NET_H
#define DTRAIN_MODELS_CONTROLLER_NET_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { CONTROLLER_TEXT = 48, CONTROLLER_MAX_IN = 7, CONTROLLER_MAX_OUT = 5 };
#define CONTROLLER_HIDDEN_GAIN 1.4142135623730951
#define CONTROLLER_VALUE_GAIN  1.0
#define CONTROLLER_SURE        (-10.0) /* log_std of a rule: the drawn action is the rule's */

typedef struct controller_net {
    int64_t D, choices, continuous, K, W; /* sizes that the phase fixes */
    double policy_gain, log_std;
    bool has_value, has_spread; /* dims values, spread */
    dt_port in[CONTROLLER_MAX_IN], out[CONTROLLER_MAX_OUT];
    uint32_t n_in, n_out;
    char text[CONTROLLER_MAX_IN + CONTROLLER_MAX_OUT][CONTROLLER_TEXT];
} controller_net;

/* Rows of every controller's option table. */
#define CONTROLLER_HEAD_OPTIONS(T)                                                                                     \
    DT_OPTION(T, policy_gain, DT_OPT_F64, "0.01", "1", 0, 10, NULL,                                                    \
              "scale of the initial weights of the action head (Huang et al. 2022: 0.01)"),                            \
        DT_OPTION(T, log_std_init, DT_OPT_F64, "0", "1", -10, 2, NULL,                                                 \
                  "initial logarithm of the standard deviation of continuous actions")

static inline int64_t controller_dim(const dt_dim *dims, uint32_t n_dims, const char *name, int64_t missing)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return missing;
}

/* Sizes and outputs; the inputs are the model's own to add (controller_input). n must not move afterwards. Errors:
 * DT_ESHAPE when the phase gives nothing to choose. */
static inline dt_status controller_net_init(controller_net *n, const dt_host *h, const dt_dim *dims, uint32_t n_dims,
                                            double policy_gain, double log_std)
{
    n->D = controller_dim(dims, n_dims, "D", 0);
    n->choices = controller_dim(dims, n_dims, "choices", 0);
    n->continuous = controller_dim(dims, n_dims, "continuous", 0);
    n->K = controller_dim(dims, n_dims, "K", 0);
    n->W = controller_dim(dims, n_dims, "W", 1);
    n->policy_gain = policy_gain;
    n->log_std = log_std;
    n->has_value = controller_dim(dims, n_dims, "values", 1) > 0;
    n->has_spread = controller_dim(dims, n_dims, "spread", 0) > 0;
    if (n->D < 0 || n->choices < 0 || n->continuous < 0 || n->choices + n->continuous < 1 || n->K < 0 || n->W < 1) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the phase gives D %lld, choices %lld, continuous %lld, K %lld, W %lld: a controller needs W "
                         "(steps of history) of 1 or more, and choices or continuous actions",
                         (long long)n->D, (long long)n->choices, (long long)n->continuous, (long long)n->K,
                         (long long)n->W);
    }
    const struct {
        const char *name;
        int64_t columns;
        bool is_there;
    } out[CONTROLLER_MAX_OUT] = {{"value", 0, n->has_value},
                                 {"logits", n->choices, n->choices > 0},
                                 {"mean", n->continuous, n->continuous > 0},
                                 {"log_std", n->continuous, n->continuous > 0},
                                 {"cost_value", n->K, n->K > 0}};
    n->n_in = n->n_out = 0;
    for (uint32_t i = 0; i < CONTROLLER_MAX_OUT; i++) {
        if (out[i].is_there) {
            char *text = n->text[CONTROLLER_MAX_IN + n->n_out];
            if (out[i].columns > 0) {
                snprintf(text, CONTROLLER_TEXT, "A %lld", (long long)out[i].columns);
            } else {
                snprintf(text, CONTROLLER_TEXT, "A");
            }
            n->out[n->n_out++] = (dt_port){out[i].name, text, DT_F32, 0};
        }
    }
    return DT_OK;
}

/* The columns of port obs. Errors: DT_ESHAPE. */
static inline dt_status controller_require_obs(const controller_net *n, const dt_host *h)
{
    return n->D > 0 ? DT_OK
                    : DT_FAIL_H(h, DT_ESHAPE,
                                "the phase gives D 0: the environment has no observation \"obs\" [A D], "
                                "which this controller reads; controller_conv reads images");
}

/* Adds an input: dims is printed from the sizes given. */
static inline void controller_input(controller_net *n, const char *name, const char *dims, ...) DT_PRINTF(3, 4);
static inline void controller_input(controller_net *n, const char *name, const char *dims, ...)
{
    va_list ap;
    va_start(ap, dims);
    vsnprintf(n->text[n->n_in], CONTROLLER_TEXT, dims, ap);
    va_end(ap);
    n->in[n->n_in] = (dt_port){name, n->text[n->n_in], DT_F32, 0};
    n->n_in++;
}

/* The same of indices. */
static inline void controller_index(controller_net *n, const char *name, const char *dims)
{
    controller_input(n, name, "%s", dims);
    n->in[n->n_in - 1].dtype = DT_I32;
}

static inline const dt_port *controller_inputs(const controller_net *n, uint32_t *n_p)
{
    *n_p = n->n_in;
    return n->in;
}

static inline const dt_port *controller_outputs(const controller_net *n, uint32_t *n_p)
{
    *n_p = n->n_out;
    return n->out;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* <name>.w [out, in] orthogonal and <name>.b [out] zero */
static inline dt_status controller_add(dt_params *reg, const char *name, int64_t out, int64_t in, double gain)
{
    const int64_t w[2] = {out, in}, b[1] = {out};
    char text[CONTROLLER_TEXT + 2];
    snprintf(text, sizeof(text), "%s.w", name);
    DT_TRY_H(reg->add(reg, text, w, 2, DT_INIT_ORTHO, gain));
    snprintf(text, sizeof(text), "%s.b", name);
    return reg->add(reg, text, b, 1, DT_INIT_ZERO, 0.0);
}

static inline dt_tensor *controller_linear(dt_graph *g, dt_tensor *x, const char *name)
{
    char w[CONTROLLER_TEXT + 2], b[CONTROLLER_TEXT + 2];
    snprintf(w, sizeof(w), "%s.w", name);
    snprintf(b, sizeof(b), "%s.b", name);
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}

/* column [A, m] n times repeated: [A, n m] */
static inline dt_tensor *controller_columns(dt_graph *g, dt_tensor *column, int64_t n)
{
    enum { MOST = 8 }; /* that one concat takes */
    dt_tensor *sum = column;
    for (int64_t k = 1; k < n;) {
        dt_tensor *part[MOST] = {sum};
        uint32_t m = 1;
        for (; m < MOST && k < n; k++) {
            part[m++] = column;
        }
        sum = dt_concat(g, part, m);
    }
    return sum;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* head.mean and head.log_std; where it is seen, head.log_std.w begins as head.mean.w does, and its b is what all begin
 * with. */
static inline dt_status controller_gaussian_params(const controller_net *n, dt_params *reg, int64_t act_width)
{
    const int64_t w[2] = {n->continuous, act_width};
    DT_TRY_H(controller_add(reg, "head.mean", n->continuous, act_width, n->policy_gain));
    if (!n->has_spread) {
        return reg->add(reg, "head.log_std", &n->continuous, 1, DT_INIT_CONST, n->log_std);
    }
    DT_TRY_H(reg->add(reg, "head.log_std.w", w, 2, DT_INIT_ORTHO, n->policy_gain));
    return reg->add(reg, "head.log_std.b", &n->continuous, 1, DT_INIT_CONST, n->log_std);
}

/* act_width, critic_width: of the features for acting and for valuing. */
static inline dt_status controller_head_params(const controller_net *n, dt_params *reg, int64_t act_width,
                                               int64_t critic_width)
{
    if (n->choices > 0) {
        DT_TRY_H(controller_add(reg, "head.logits", n->choices, act_width, n->policy_gain));
    }
    if (n->continuous > 0) {
        DT_TRY_H(controller_gaussian_params(n, reg, act_width));
    }
    if (n->K > 0) {
        DT_TRY_H(controller_add(reg, "head.cost_value", n->K, critic_width, CONTROLLER_VALUE_GAIN));
    }
    return n->has_value ? controller_add(reg, "head.value", 1, critic_width, CONTROLLER_VALUE_GAIN) : DT_OK;
}

/* A row per agent of each; act [A, width]. */
static inline void controller_gaussian(const controller_net *n, dt_graph *g, dt_tensor *act, dt_tensor **mean_p,
                                       dt_tensor **log_std_p)
{
    *mean_p = controller_linear(g, act, "head.mean");
    if (n->has_spread) {
        *log_std_p = controller_linear(g, act, "head.log_std");
        return;
    }
    *log_std_p = dt_add(g, dt_affine(g, *mean_p, 0.0, 0.0), g->api->param(g, "head.log_std"));
}

/* act, critic: [A, width]; out follows the output ports. */
static inline dt_status controller_heads(const controller_net *n, dt_graph *g, dt_tensor *act, dt_tensor *critic,
                                         dt_tensor **out)
{
    uint32_t i = 0;
    if (n->has_value) {
        out[i++] = dt_merge(g, controller_linear(g, critic, "head.value"));
    }
    if (n->choices > 0) {
        out[i++] = controller_linear(g, act, "head.logits");
    }
    if (n->continuous > 0) {
        controller_gaussian(n, g, act, &out[i], &out[i + 1]);
        i += 2;
    }
    if (n->K > 0) {
        out[i++] = controller_linear(g, critic, "head.cost_value");
    }
    return g->api->status(g);
}

#endif

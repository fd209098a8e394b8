/* SPDX-License-Identifier: Apache-2.0
 *
 * Controllers of signals by a rule, without parameters: the phase with the most of something is the most likely one.
 * Included by the models next to it; not installed, not part of the contract.
 *
 *   logits = sharpness * (phases[:, :, column] + phases[:, :, 10] / patience_s)
 *   value, cost_value and continuous actions 0
 *
 * Lanes are counted whole, and phases that serve other links of the same lanes have as much: then the vehicle first at
 * its line waits longest for its link decides. The same makes waiting count for more vehicles the longer it lasts, so
 * that no vehicle waits for ever. (Without column 10, or with patience_s = 0, ties are as likely, and the most likely
 * one is the first.) What may not be asked for is masked by the host. Columns of the observation phases:
 * traffic/ports.h. Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_CONTROLLER_RULE_H
#define DTRAIN_MODELS_CONTROLLER_RULE_H

#include "controller_net.h"

#include <string.h>

enum { RULE_VEHICLES, RULE_STANDING, RULE_PRESSURE, RULE_PROGRAM, RULE_ALLOWED, RULE_NEAR, RULE_WAITED = 10 };

typedef struct rule_config {
    int64_t column;
    double sharpness, patience_s;
} rule_config;

typedef struct rule_state {
    controller_net net;
    rule_config config;
    int64_t columns;
} rule_state;

/* The rows of the option table; COLUMN and PATIENCE_S as text. */
#define RULE_OPTIONS(COLUMN, PATIENCE_S)                                                                               \
    DT_OPTION(rule_config, column, DT_OPT_I64, COLUMN, "1", 0, 63, NULL,                                               \
              "column of the observation phases to compare; 5 means 0 if there are fewer columns"),                    \
        DT_OPTION(rule_config, sharpness, DT_OPT_F64, "1000", "1", 0, 1e6, NULL,                                       \
                  "logit per unit of difference between phases; sampled actions follow the rule if it is large"),      \
        DT_OPTION(rule_config, patience_s, DT_OPT_F64, PATIENCE_S, "s", 0, 1e6, NULL,                                  \
                  "a first vehicle that waited this long counts as one more vehicle; shorter waits break ties; "       \
                  "0: waiting is ignored"),                                                                            \
        DT_OPTION_END

static inline dt_status rule_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    rule_state *s = self;
    s->config = *(const rule_config *)cfg;
    s->columns = controller_dim(dims, n_dims, "phases", 0);
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, 0.0, 0.0));
    if (s->net.choices < 1 || s->columns < 1) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "a rule for signals needs an environment whose agents choose a phase and observe \"phases\" "
                         "[A choices F]; this one has choices %lld and %lld columns of phases",
                         (long long)s->net.choices, (long long)s->columns);
    }
    if (s->config.column == RULE_NEAR && s->columns <= RULE_NEAR) {
        s->config.column = RULE_VEHICLES;
    }
    if (s->config.column >= s->columns) {
        return DT_FAIL_H(h, DT_ESHAPE, "column %lld of the observation phases, which has %lld",
                         (long long)s->config.column, (long long)s->columns);
    }
    controller_input(&s->net, "phases", "A %lld %lld", (long long)s->net.choices, (long long)s->columns);
    return DT_OK;
}

static inline const dt_port *rule_inputs(const void *self, uint32_t *n_p)
{
    return controller_inputs(&((const rule_state *)self)->net, n_p);
}

static inline const dt_port *rule_outputs(const void *self, uint32_t *n_p)
{
    return controller_outputs(&((const rule_state *)self)->net, n_p);
}

static inline dt_status rule_params(void *self, dt_params *reg)
{
    return DT_OK;
}

static inline dt_status rule_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const rule_state *s = self;
    dt_tensor *what = dt_merge(g, dt_slice(g, in[0], s->config.column, 1)); /* [A, choices] */
    dt_tensor *none = dt_affine(g, dt_slice(g, what, 0, 1), 0.0, 0.0);      /* [A, 1] */
    if (s->config.patience_s > 0 && s->columns > RULE_WAITED) {
        dt_tensor *waited = dt_merge(g, dt_slice(g, in[0], RULE_WAITED, 1));
        what = dt_add(g, what, dt_affine(g, waited, 1 / s->config.patience_s, 0.0));
    }
    uint32_t i = 0;
    if (s->net.has_value) {
        out[i++] = dt_merge(g, none);
    }
    out[i++] = dt_affine(g, what, s->config.sharpness, 0.0);
    if (s->net.continuous > 0) {
        out[i++] = controller_columns(g, none, s->net.continuous);
        out[i] = dt_affine(g, out[i - 1], 0.0, CONTROLLER_SURE);
        i++;
    }
    if (s->net.K > 0) {
        out[i++] = controller_columns(g, none, s->net.K);
    }
    return g->api->status(g);
}

/* The plugin of a rule, and of one with extensions. */
#define RULE_PLUGIN(ID, COLUMN, PATIENCE_S, SUMMARY, REFERENCE)                                                        \
    RULE_PLUGIN_OF(ID, COLUMN, PATIENCE_S, SUMMARY, REFERENCE, NULL)
#define RULE_PLUGIN_OF(ID, COLUMN, PATIENCE_S, SUMMARY, REFERENCE, EXTENSION)                                          \
    static const dt_option options[] = {RULE_OPTIONS(COLUMN, PATIENCE_S)};                                             \
    DT_MODEL_DEFINE(component, ID, SUMMARY, REFERENCE, rule_config, rule_state, options,                               \
                    DT_OPS(.create = rule_create, .inputs = rule_inputs, .outputs = rule_outputs,                      \
                           .params = rule_params, .forward = rule_forward, .destroy = dt_no_op),                       \
                    .role = "controller", .flags = DT_COMP_DETERMINISTIC, .extension = (EXTENSION));                   \
    DT_PLUGIN_DEFINE_ONE(component, ID, "1.0", "dtrain", "Apache-2.0")

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What controller_influence keeps, and the two nets that it can be: over the signals or over the vehicles of an
 * environment. Included by the files next to it alone. Threads: as dt_model_ops.
 */
#ifndef DTRAIN_MODELS_INFLUENCE_H
#define DTRAIN_MODELS_INFLUENCE_H

#include "controller_net.h"

enum { INFLUENCE_SEPARATE, INFLUENCE_SHARED };

typedef struct influence_config {
    int64_t hidden, layers, heads;
    uint32_t trunk;
    uint8_t row, foresight, reserved[2];
    double rule, policy_gain, log_std_init;
} influence_config;

typedef struct influence {
    controller_net net;
    influence_config config;
    int64_t columns; /* of phases, or of ego */
    int64_t source;  /* columns of what nodes are known by: an embedding, or nodes themselves */
    int64_t Z;       /* columns of foresight that are read, or 0 */
    bool has_vehicles, has_neighbours, has_embedding;
} influence;

typedef struct influence_run { /* n columns that are multiplied by one constant; 0: all that are left */
    int64_t n;
    double scale;
} influence_run;

/* x [.., columns] times the constants of its columns, within +-INFLUENCE_MOST: no normaliser spans several nets. */
dt_tensor *influence_scale_inputs(dt_graph *g, dt_tensor *x, const influence_run *run, int64_t columns);
/* <trunk>.<name>, <trunk>.<name>.<i> for i >= 0; text [CONTROLLER_TEXT] */
const char *influence_param_name(char *text, const char *trunk, const char *name, int64_t i);

dt_status signals_params(const influence *s, dt_params *reg);
dt_status signals_forward(const influence *s, dt_graph *g, dt_tensor *const *in, dt_tensor **out);
dt_status vehicles_params(const influence *s, dt_params *reg);
dt_status vehicles_forward(const influence *s, dt_graph *g, dt_tensor *const *in, dt_tensor **out);

#endif

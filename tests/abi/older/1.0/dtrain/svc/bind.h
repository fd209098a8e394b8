/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1": the models and data that the configuration wires to this phase.
 *
 * A phase asks for a role ("perception") and says what it can feed and what it needs; the host creates the component
 * that models.<role> names, compares ports, and refuses a wrong swap here, by name and shape, before anything is
 * allocated. Handles live until the phase is destroyed; the host owns them. Threads: [main], in create.
 */
#ifndef DTRAIN_SVC_BIND_H
#define DTRAIN_SVC_BIND_H

#include "dtrain/plugin.h"
#include "dtrain/svc/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_BIND "dtrain.bind/1"

typedef struct dt_data dt_data; /* bound data */

typedef struct dt_model_want {
    uint32_t struct_size, n_dims;
    const char *role;
    const dt_dim *dims;    /* sizes fixed by the phase, passed to the model's create */
    const dt_port *offers; /* inputs the phase can feed */
    const dt_port *needs;  /* outputs the phase must get; a number in dims must match, a letter matches anything */
    uint32_t n_offers, n_needs;
} dt_model_want;

typedef struct dt_bind_api {
    uint32_t struct_size, reserved;
    /* Errors: DT_ECONFIG (no component under models.<role>), DT_ESHAPE (ports do not fit). */
    dt_status (*model)(const dt_host *h, const dt_model_want *want, dt_model **out);
    /* Port of a bound model by name, NULL when it has none. */
    const dt_port *(*model_output)(const dt_model *m, const char *name);
    const char *(*model_id)(const dt_model *m);
    /* Size of token i in a port's dims, -1 when it is a letter or missing. */
    int64_t (*port_dim)(const dt_port *p, uint32_t i);
    /* Data as configured under data.source, with overrides of its options ("split" = "eval"). Errors: DT_ECONFIG,
     * DT_EDATA, DT_ENOTFOUND. */
    dt_status (*data)(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out);
    const dt_port *(*data_field)(const dt_data *d, const char *name);
    uint64_t (*data_count)(const dt_data *d);
} dt_bind_api;

#ifdef __cplusplus
}
#endif
#endif

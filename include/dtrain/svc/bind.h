/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1": the models, data and environment that the configuration wires to this phase.
 *
 * A phase requests a role ("perception") with the inputs that it offers and the outputs that it needs; the host creates
 * the component that models.<role> names, compares ports, and rejects a model that does not fit here, by port name and
 * shape, before anything is allocated. Handles live until the phase is destroyed; the host owns them. Threads: [main],
 * in create.
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
typedef struct dt_env dt_env;   /* a bound environment: all its instances */

/* Flag of dt_model_request: models.<role> may be empty; *out is then NULL. */
enum { DT_MODEL_OPTIONAL = 1u };

typedef struct dt_model_request {
    uint32_t struct_size, n_dims;
    const char *role;
    const dt_dim *dims;    /* sizes fixed by the phase, passed to the model's create */
    const dt_port *offers; /* inputs that the phase offers */
    const dt_port *needs;  /* outputs that the phase requires; a number in dims must match, a symbol matches any size */
    uint32_t n_offers, n_needs;
    uint32_t flags, reserved; /* DT_MODEL_* */
} dt_model_request;
/* The usual one; offers and needs are arrays: const dt_model_request want = DT_MODEL_REQUEST("world", in, out); */
#define DT_MODEL_REQUEST(ROLE, OFFERS, NEEDS)                                                                          \
    DT_DESC_(dt_model_request, DT_OPS(DT_SET(role, ROLE), DT_SET(offers, OFFERS), DT_SET(needs, NEEDS),                \
                                      DT_SET(n_offers, (uint32_t)(sizeof(OFFERS) / sizeof((OFFERS)[0]))),              \
                                      DT_SET(n_needs, (uint32_t)(sizeof(NEEDS) / sizeof((NEEDS)[0])))))

typedef struct dt_bind_api {
    uint32_t struct_size, reserved;
    /* Errors: DT_ECONFIG (no component under models.<role>), DT_ESHAPE (ports do not fit). */
    dt_status (*model)(const dt_host *h, const dt_model_request *want, dt_model **out);
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
    /* The environment under env.id; one instance is created for its spec. At most one per phase. Errors: DT_ECONFIG,
     * DT_ENOTFOUND, those of the environment. */
    dt_status (*env)(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_env **out);
    const dt_env_spec *(*env_spec)(const dt_env *e);
    const char *(*env_id)(const dt_env *e);
    uint32_t (*env_instances)(const dt_env *e); /* of all ranks together */
    /* Samples that the phase generates, read through ops (create and destroy are not called; fields, symbols, count,
     * sizes and read are required). count and the largest sizes are read here, once, and must not grow later. Threads
     * of the host call read up to data.prefetch batches ahead of the step that uses them; to change the content of
     * samples, use refill (svc/train.h). Every rank has all samples, and a resumed phase generates them again. Errors:
     * DT_EPLUGIN (an invalid function or port), those of ops. */
    dt_status (*own_data)(const dt_host *h, const dt_data_ops *ops, void *self, dt_data **out);
    /* Number of places whose agents are rows of a rollout: those of the learning team if the configuration has
     * opponents (section opponents), else all. */
    uint32_t (*env_learners)(const dt_env *e);
    /* Statistics of the n columns of a field over all samples (dt_data_ops.statistics); for a stream, those of
     * data.store. Errors: DT_ENOTFOUND (no such field), DT_ESHAPE (not n columns), DT_EUNSUPPORTED (the component has
     * none), DT_EPLUGIN (inconsistent values), those of the component. */
    dt_status (*data_statistics)(const dt_data *d, const char *field, dt_field_stat *out, uint32_t n);
} dt_bind_api;

#ifdef __cplusplus
}
#endif
#endif

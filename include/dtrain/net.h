/* SPDX-License-Identifier: Apache-2.0
 *
 * Fully connected networks of a phase's own, of sizes that the phase knows once it has seen its environment: a model of
 * the environment, an ensemble of them, a mixing network. All of it is in this header. A network is a model like any
 * other, of the plugin that has the phase:
 *
 *   DT_NET_DEFINE(net, "mine_dynamics", "dynamics", "Chua et al. 2018");      listed in DT_PLUGIN_DEFINE_OF, and in
 *                                                               DT_DEFAULTS_DEFINE "models.dynamics=mine_dynamics"
 *   create    dt_net_bind(h, bind, "dynamics", X, Y, copies, &s->dynamics);
 *   record    dt_net_record(g, s->dynamics, NULL, x)
 *
 *   x "A X", of every copy  h_0 = x,  h_{i+1} = act(W_i h_i + b_i),  y = W h + b      y "A copies*Y", copy by copy
 *
 * Options: hidden, layers, activation. Parameters: <copy>.<layer>.{w,b}; first values as PyTorch's, biases 0, so that
 * copies differ by them alone. Threads: [main].
 */
#ifndef DTRAIN_NET_H
#define DTRAIN_NET_H

#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DT_NET_MAX_COPIES = 8, DT_NET_TEXT_ = 48 };
enum { DT_NET_X_, DT_NET_Y_, DT_NET_COPIES_, DT_NET_SIZES_ };
enum { DT_NET_SWISH, DT_NET_ELU, DT_NET_RELU, DT_NET_TANH }; /* swish: x sigmoid(x) */

typedef struct dt_net_config_ {
    int64_t hidden, layers;
    uint32_t activation, reserved;
} dt_net_config_;

typedef struct dt_net_ {
    dt_net_config_ config;
    int64_t size[DT_NET_SIZES_];
    char text[2][DT_NET_TEXT_];
    dt_port port[2]; /* x, y */
} dt_net_;

static inline dt_status dt_net_create_(void *self, const dt_host *h, const void *config, const dt_dim *dims,
                                       uint32_t n_dims)
{
    static const char *const name[DT_NET_SIZES_] = {"X", "Y", "copies"};
    dt_net_ *s = (dt_net_ *)self;
    memcpy(&s->config, config, sizeof(s->config));
    for (uint32_t i = 0; i < n_dims; i++) {
        for (uint32_t k = 0; k < DT_NET_SIZES_; k++) {
            s->size[k] = strcmp(dims[i].name, name[k]) == 0 ? dims[i].size : s->size[k];
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t columns = i == 0 ? s->size[DT_NET_X_] : s->size[DT_NET_Y_] * s->size[DT_NET_COPIES_];
        snprintf(s->text[i], DT_NET_TEXT_, "A %lld", (long long)columns);
        s->port[i].name = i == 0 ? "x" : "y";
        s->port[i].dims = s->text[i];
        s->port[i].dtype = DT_F32;
    }
    if (s->size[DT_NET_X_] < 1 || s->size[DT_NET_Y_] < 1 || s->size[DT_NET_COPIES_] < 1) {
        return DT_FAIL_H(h, DT_ESHAPE, "this network is bound by dt_net_bind alone");
    }
    return DT_OK;
}

static inline const dt_port *dt_net_inputs_(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return &((const dt_net_ *)self)->port[0];
}

static inline const dt_port *dt_net_outputs_(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return &((const dt_net_ *)self)->port[1];
}

static inline dt_status dt_net_params_(void *self, dt_params *reg)
{
    const dt_net_ *s = (const dt_net_ *)self;
    char name[DT_NET_TEXT_];
    for (int64_t k = 0; k < s->size[DT_NET_COPIES_]; k++) {
        for (int64_t i = 0; i <= s->config.layers; i++) {
            snprintf(name, sizeof(name), "%lld.%lld", (long long)k, (long long)i);
            const dt_status st =
                dt_linear_params(reg, name, i < s->config.layers ? s->config.hidden : s->size[DT_NET_Y_],
                                 i > 0 ? s->config.hidden : s->size[DT_NET_X_], DT_INIT_ZERO, 0);
            if (st < 0) {
                return st;
            }
        }
    }
    return DT_OK;
}

static inline dt_tensor *dt_net_activate_(dt_graph *g, uint32_t activation, dt_tensor *x)
{
    switch (activation) {
    case DT_NET_ELU:
        return dt_elu(g, x);
    case DT_NET_RELU:
        return dt_relu(g, x);
    case DT_NET_TANH:
        return dt_tanh(g, x);
    default:
        return dt_mul(g, x, dt_sigmoid(g, x));
    }
}

static inline dt_status dt_net_forward_(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const dt_net_ *s = (const dt_net_ *)self;
    const uint32_t copies = (uint32_t)s->size[DT_NET_COPIES_];
    dt_tensor *y[DT_NET_MAX_COPIES] = {NULL};
    char name[DT_NET_TEXT_];
    for (uint32_t k = 0; k < copies && k < DT_NET_MAX_COPIES; k++) {
        y[k] = in[0];
        for (int64_t i = 0; i <= s->config.layers; i++) {
            snprintf(name, sizeof(name), "%u.%lld", k, (long long)i);
            y[k] = dt_linear_of(g, y[k], name);
            y[k] = i < s->config.layers ? dt_net_activate_(g, s->config.activation, y[k]) : y[k];
        }
    }
    out[0] = copies > 1 ? dt_concat(g, y, copies) : y[0];
    return g->api->status(g);
}

/* A model of the plugin, called NAME there. */
#define DT_NET_DEFINE(NAME, ID, ROLE, REFERENCE)                                                                       \
    static const char *const NAME##_activations_[] = {"swish", "elu", "relu", "tanh", NULL};                           \
    static const dt_option NAME##_options_[] = {                                                                       \
        DT_OPTION(dt_net_config_, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the hidden layers"),         \
        DT_OPTION(dt_net_config_, layers, DT_OPT_I64, "2", "1", 0, 16, NULL, "hidden layers; 0: linear"),              \
        DT_OPTION(dt_net_config_, activation, DT_OPT_ENUM, "swish", NULL, 0, 0, NAME##_activations_,                   \
                  "activation after every hidden layer; swish: x sigmoid(x)"),                                         \
        DT_OPTION_END};                                                                                                \
    DT_MODEL_DEFINE(                                                                                                   \
        NAME, ID, "fully connected layers in the role of " ROLE, REFERENCE, dt_net_config_, dt_net_, NAME##_options_,  \
        DT_OPS(DT_SET(create, dt_net_create_), DT_SET(inputs, dt_net_inputs_), DT_SET(outputs, dt_net_outputs_),       \
               DT_SET(params, dt_net_params_), DT_SET(forward, dt_net_forward_), DT_SET(destroy, dt_no_op)),           \
        DT_SET(role, ROLE), DT_SET(flags, DT_COMP_DETERMINISTIC))

/* In create of the phase: binds the model that models.<role> names, of X columns to copies * Y. Errors: DT_EINVAL (no
 * column, no copy or more than DT_NET_MAX_COPIES), those of bind->model. */
static inline dt_status dt_net_bind(const dt_host *h, const dt_bind_api *bind, const char *role, int64_t X, int64_t Y,
                                    int64_t copies, dt_model **out_p)
{
    char text[2][DT_NET_TEXT_];
    dt_port offer, need;
    dt_dim dims[DT_NET_SIZES_];
    dt_model_request want;
    if (X < 1 || Y < 1 || copies < 1 || copies > DT_NET_MAX_COPIES) {
        return DT_FAIL_H(h, DT_EINVAL, "a network %s of %lld columns to %lld, %lld times; 1 to %d copies are possible",
                         role, (long long)X, (long long)Y, (long long)copies, DT_NET_MAX_COPIES);
    }
    memset(&offer, 0, sizeof(offer));
    memset(&want, 0, sizeof(want));
    snprintf(text[0], DT_NET_TEXT_, "A %lld", (long long)X);
    snprintf(text[1], DT_NET_TEXT_, "A %lld", (long long)(Y * copies));
    offer.name = "x";
    offer.dims = text[0];
    offer.dtype = DT_F32;
    need = offer;
    need.name = "y";
    need.dims = text[1];
    dims[DT_NET_X_].name = "X";
    dims[DT_NET_X_].size = X;
    dims[DT_NET_Y_].name = "Y";
    dims[DT_NET_Y_].size = Y;
    dims[DT_NET_COPIES_].name = "copies";
    dims[DT_NET_COPIES_].size = copies;
    want.struct_size = (uint32_t)sizeof(want);
    want.role = role;
    want.dims = dims;
    want.n_dims = DT_NET_SIZES_;
    want.offers = &offer;
    want.needs = &need;
    want.n_offers = want.n_needs = 1;
    return bind->model(h, &want, out_p);
}

/* y of x, by the parameters of a target network where target is not NULL. NULL after an error, which is the graph's. */
static inline dt_tensor *dt_net_record(dt_graph *g, dt_model *m, const char *target, dt_tensor *x)
{
    dt_named in, out;
    in.name = "x";
    in.tensor = x;
    out.name = "y";
    out.tensor = NULL;
    return g->api->model_as(g, m, target, &in, 1, &out, 1) < 0 ? NULL : out.tensor;
}

#ifdef __cplusplus
}
#endif
#endif

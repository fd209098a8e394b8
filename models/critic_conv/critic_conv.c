/* SPDX-License-Identifier: Apache-2.0
 *
 * critic_conv, role critic: convolutions over the image that an agent observes; what it does enters after them. Layers
 * and which observation is the image: conv_net.h; ports: critic_net.h, with the image in place of obs, or before it.
 *
 *   q = w relu(W (convolutions of the image, obs, action) + b) + c      for each estimate a net of its own
 *
 * Source: Mnih et al. 2015 (layers), Fujimoto et al. 2018 (two estimates).
 * Parameters: q<k>.*, q<k>.head.{w,b}.
 */
#include "conv_net.h"

enum { MAX_ESTIMATES = 8, MAX_INPUTS = 3 };

typedef struct config {
    const char *channels, *kernels, *strides;
    int64_t hidden;
    uint32_t layout;
    uint8_t padding, reserved[3];
} config;

typedef struct state {
    conv_net conv;
    config config;
    int64_t P, Q;
    uint32_t n_in;
    dt_port in[MAX_INPUTS], out[1];
    char action[CONTROLLER_TEXT], q[CONTROLLER_TEXT];
} state;

static const dt_option options[] = {CONV_OPTIONS(config), DT_OPTION_END};

static dt_status read_config(conv_net *n, const dt_host *h, const config *c)
{
    const conv_config of = CONV_CONFIG(c);
    return conv_read(n, h, "critic_conv", &of);
}

static dt_status check(const dt_host *h, const void *cfg)
{
    conv_net n = {0};
    return read_config(&n, h, cfg);
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    s->P = controller_dim(dims, n_dims, "P", 0);
    s->Q = controller_dim(dims, n_dims, "Q", 0);
    if (s->P < 1 || s->Q < 1 || s->Q > MAX_ESTIMATES) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the phase gives P %lld, Q %lld: a critic needs columns of action \"A P\", and makes 1 to %d "
                         "estimates",
                         (long long)s->P, (long long)s->Q, MAX_ESTIMATES);
    }
    DT_TRY_H(read_config(&s->conv, h, &s->config));
    DT_TRY_H(conv_init(&s->conv, h, s->config.layout, dims, n_dims));
    snprintf(s->action, sizeof(s->action), "A %lld", (long long)s->P);
    snprintf(s->q, sizeof(s->q), "A %lld", (long long)s->Q);
    s->n_in = conv_inputs(&s->conv, s->in);
    s->in[s->n_in++] = (dt_port){"action", s->action, DT_F32, 0};
    s->out[0] = (dt_port){"q", s->q, DT_F32, 0};
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    const state *s = self;
    *n_p = s->n_in;
    return s->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const state *)self)->out;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    char name[CONTROLLER_TEXT];
    for (int64_t k = 0; k < s->Q; k++) {
        snprintf(name, sizeof(name), "q%lld", (long long)k);
        DT_TRY_H(conv_params(&s->conv, reg, name, s->conv.D + s->P));
        snprintf(name, sizeof(name), "q%lld.head", (long long)k);
        DT_TRY_H(controller_add(reg, name, 1, s->conv.hidden, CONTROLLER_VALUE_GAIN));
    }
    return DT_OK;
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    char name[CONTROLLER_TEXT];
    dt_tensor *image = conv_image(&s->conv, g, in[0]), *q[MAX_ESTIMATES];
    for (int64_t k = 0; k < s->Q; k++) {
        snprintf(name, sizeof(name), "q%lld", (long long)k);
        dt_tensor *h = conv_record(&s->conv, g, name, image, in + 1, s->n_in - 1);
        snprintf(name, sizeof(name), "q%lld.head", (long long)k);
        q[k] = controller_linear(g, h, name);
    }
    out[0] = s->Q > 1 ? dt_concat(g, q, (uint32_t)s->Q) : q[0];
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "critic_conv", "Q values of actions in what an image shows, by convolutions",
                "Mnih et al. 2015; Fujimoto et al. 2018", config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "critic", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "critic_conv", "1.0", "dtrain", "Apache-2.0");

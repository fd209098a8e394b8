/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of mbpo.c: an ensemble of networks of one shape. Each predicts the change of an observation and the reward
 * as independent Gaussians (Lakshminarayanan et al. 2017, arXiv 1612.01474). Two hidden layers, x sigmoid(x).
 */
#ifndef MBPO_ENSEMBLE_H
#define MBPO_ENSEMBLE_H

#include <dtrain/helpers.h>
#include <dtrain/svc/graph.h>

enum { MAX_MEMBERS = 8, TEXT = 48 };
static const char *const ensemble_loss[MAX_MEMBERS] = {"nll_0", "nll_1", "nll_2", "nll_3",
                                                       "nll_4", "nll_5", "nll_6", "nll_7"};
enum { OBSERVED, ACTED, MEMBERS, HIDDEN, SIZES };
typedef struct ensemble {
    int64_t size[SIZES]; /* from the phase */
    char dims[3][TEXT];
    dt_port port[3];
} ensemble;

static const dt_port *ensemble_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return ((const ensemble *)self)->port;
}

/* Of each member: means, logarithms of spreads. */
static const dt_port *ensemble_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const ensemble *)self)->port + 2;
}

static dt_status ensemble_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    ensemble *s = (ensemble *)self;
    (void)cfg;
    for (uint32_t i = 0; i < n_dims && i < SIZES; i++) {
        s->size[i] = dims[i].size;
    }
    const int64_t width[] = {s->size[OBSERVED], s->size[ACTED], s->size[MEMBERS] * (2 * s->size[OBSERVED] + 2)};
    static const char *const name[] = {"obs", "action", "prediction"};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(s->dims[i], TEXT, "A %lld", (long long)width[i]);
        s->port[i] = (dt_port){name[i], s->dims[i], DT_F32, 0};
    }
    return n_dims >= SIZES && s->size[MEMBERS] <= MAX_MEMBERS
               ? DT_OK
               : DT_FAIL_H(h, DT_ESHAPE, "mbpo_ensemble is a model of the phase mbpo");
}

static dt_status ensemble_params(void *self, dt_params *reg)
{
    const int64_t *size = ((const ensemble *)self)->size, D = size[OBSERVED], H = size[HIDDEN];
    const int64_t width[] = {D + size[ACTED], H, H, 2 * D + 2};
    char name[TEXT];
    for (int k = 0; k < 3 * (int)size[MEMBERS]; k++) {
        (void)snprintf(name, TEXT, "m%d.%d", k / 3, k % 3);
        DT_TRY_H(dt_linear_params(reg, name, width[k % 3 + 1], width[k % 3], DT_INIT_ZERO, 0));
    }
    return DT_OK;
}

static dt_status ensemble_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const uint32_t members = (uint32_t)((const ensemble *)self)->size[MEMBERS];
    dt_tensor *y[MAX_MEMBERS] = {NULL};
    char name[TEXT];
    for (uint32_t m = 0; m < members; m++) {
        y[m] = dt_concat(g, in, 2);
        for (int i = 0; i < 3; i++) {
            (void)snprintf(name, TEXT, "m%u.%d", m, i);
            y[m] = dt_linear_of(g, y[m], name);
            y[m] = i < 2 ? dt_mul(g, y[m], dt_sigmoid(g, y[m])) : y[m];
        }
    }
    out[0] = members > 1 ? dt_concat(g, y, members) : y[0];
    return g->api->status(g);
}

DT_MODEL_DEFINE(ensemble_model, "mbpo_ensemble", "an ensemble of probabilistic models of an environment",
                "Lakshminarayanan et al. 2017, arXiv 1612.01474", ensemble, ensemble, NULL,
                DT_OPS(DT_SET(create, ensemble_create), DT_SET(inputs, ensemble_inputs),
                       DT_SET(outputs, ensemble_outputs), DT_SET(params, ensemble_params),
                       DT_SET(forward, ensemble_forward), DT_SET(destroy, dt_no_op)),
                DT_SET(role, "dynamics"), DT_SET(flags, DT_COMP_DETERMINISTIC));

/* Of member m: mean [A,P] and logarithm of the spread, -5 to 5. */
static dt_tensor *record_member(dt_graph *g, dt_tensor *all, int64_t P, int64_t m, dt_tensor **log_std_p)
{
    *log_std_p = dt_affine(g, dt_tanh(g, dt_affine(g, dt_slice(g, all, (2 * m + 1) * P, P), 0.2, 0)), 5, 0);
    return dt_slice(g, all, 2 * m * P, P);
}

/* A draw of the Gaussians [A,n]. */
static dt_tensor *record_draw(dt_graph *g, dt_tensor *mean, dt_tensor *log_std, int64_t n)
{
    dt_tensor *noise = dt_noise_of(g, g->api->input(g, "row_key"), n, DT_NOISE_NORMAL, 1);
    return dt_add(g, mean, dt_mul(g, noise, dt_unary(g, DT_FN_EXP, log_std, 0)));
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase that makes its samples itself, changes them in the middle of training, looks at its parameters by name and
 * talks to the other ranks. For tests alone: the option wrong names what it does wrong.
 *
 *   y = scale (x0 - 2 x1), one layer learns it from x times a constant; scale is 1 + the epoch that training is in
 *
 * Predictions pass an op of its own, fitter_bend, which changes them little.
 */
#include "dtrain/ext/ops.h"
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/comm.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/train.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN = 2, SAMPLES = 90 };

typedef struct config {
    const char *wrong;
    uint8_t stale;
} config;

static const dt_option options[] = {
    DT_OPTION(config, wrong, DT_OPT_STR, "", NULL, 0, 0, NULL, "what is done wrong"),
    DT_OPTION(config, stale, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "samples never change"), DT_OPTION_END};

typedef struct state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_comm_api *comm;
    const dt_metrics_api *metrics;
    config config;
    dt_data *data;
    dt_model *model;
    dt_train *trainer;
    double scale, next; /* of the samples, now and after the next change */
} state;

static bool is_wrong(const state *s, const char *how)
{
    return strcmp(s->config.wrong, how) == 0;
}

static void nothing(void *self) {}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static const dt_port *fields(const void *self, uint32_t *n_p)
{
    static const dt_port f[] = {{"x", "A 2", DT_F32, 0}, {"y", "A 1", DT_F32, 0}};
    *n_p = 2;
    return f;
}

static const char *const *symbols(const void *self, uint32_t *n_p)
{
    static const char *const s[] = {"A"};
    *n_p = 1;
    return s;
}

static dt_status count(const void *self, uint64_t *n_p)
{
    *n_p = SAMPLES;
    return DT_OK;
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    size[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size[0] += 1 + (int64_t)(index[i] % 3);
    }
    return DT_OK;
}

static dt_status read_samples(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const state *s = self;
    float *x = out[0], *y = out[1];
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t row = 0; row <= index[i] % 3; row++, x += IN, y++) {
            x[0] = (float)((index[i] * 5 + row) % 17) / 8 - 1;
            x[1] = (float)((index[i] * 7 + row) % 13) / 6 - 1;
            y[0] = (float)s->scale * (x[0] - 2 * x[1]);
        }
    }
    return DT_OK;
}

/* Of x, and not true: the host looks at what is said, not at the samples. */
static dt_status statistics(void *self, const char *field, dt_field_stat *out, uint32_t n)
{
    const state *s = self;
    if (strcmp(field, "x") != 0) {
        return DT_FAIL_H(s->h, DT_EUNSUPPORTED, "fitter knows x alone");
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (dt_field_stat){.n = 3, .min = -1, .max = 1, .mean = is_wrong(s, "mean") ? 2 : 0.25, .std = 0.5};
    }
    return DT_OK;
}

static const dt_data_ops samples = {.struct_size = sizeof(dt_data_ops),
                                    .fields = fields,
                                    .symbols = symbols,
                                    .count = count,
                                    .sizes = sizes,
                                    .read = read_samples,
                                    .statistics = statistics};

/* ---- the model --------------------------------------------------------------------------------------------------- */

static const dt_port in[] = {{"x", "A 2", DT_F32, 0}}, out_ports[] = {{"y", "A 1", DT_F32, 0}};

static dt_status net_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n)
{
    (void)self, (void)h, (void)cfg, (void)dims, (void)n;
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return out_ports;
}

static dt_status net_params(void *self, dt_params *reg)
{
    static const int64_t unit = IN;
    DT_TRY_H(dt_linear_params(reg, "out", 1, IN, DT_INIT_ZERO, 0));
    return reg->add(reg, "constant.unit", &unit, 1, DT_INIT_CONST | DT_INIT_CONSTANT, 1);
}

static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *tensor, dt_tensor **out)
{
    out[0] = dt_linear_of(g, dt_mul(g, tensor[0], g->api->param(g, "constant.unit")), "out");
    return g->api->status(g);
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = nothing};

/* ---- an op of its own -------------------------------------------------------------------------------------------- */

/* y = x + x^3 / 64 */
static void bend(const dt_op_call *c)
{
    const float *x = c->in[0].data;
    float *y = c->out[0].data;
    for (int64_t i = 0; i < c->in[0].dim[0] * c->in[0].dim[1]; i++) {
        y[i] = x[i] + x[i] * x[i] * x[i] / 64;
    }
}

static void bend_backward(const dt_op_call *c)
{
    const float *dy = c->in[0].data, *x = c->in[1].data;
    float *dx = c->out[0].data;
    for (int64_t i = 0; i < c->in[1].dim[0] * c->in[1].dim[1]; i++) {
        dx[i] = dy[i] * (1 + 3 * x[i] * x[i] / 64);
    }
}

static const dt_user_op bend_op = {.struct_size = sizeof(dt_user_op),
                                   .name = "fitter_bend",
                                   .summary = "x + x^3 / 64",
                                   .shape = "x[N,D] -> y[N,D]",
                                   .forward = bend,
                                   .backward = bend_backward};
static const dt_user_op stiff_op = {.struct_size = sizeof(dt_user_op),
                                    .name = "fitter_stiff",
                                    .summary = "the same without a derivative",
                                    .shape = "x[N,D] -> y[N,D]",
                                    .forward = bend};
static const dt_user_op *const user_ops[] = {&bend_op, NULL}, *const net_user_ops[] = {&stiff_op, NULL};

static const void *extension(const char *id)
{
    static const char *const defaults[] = {"training.epochs=4", NULL};
    if (strcmp(id, DT_EXT_DEFAULTS) == 0 && getenv("FITTER_DEFAULTS") != NULL) { /* a phase's, not its plugin's */
        return defaults;
    }
    return strcmp(id, DT_EXT_OPS) == 0 ? user_ops : NULL;
}

static const void *net_extension(const char *id) /* ops may be a component's, too */
{
    return strcmp(id, DT_EXT_OPS) == 0 ? net_user_ops : NULL;
}

/* ---- the phase --------------------------------------------------------------------------------------------------- */

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    dt_data_ops ops = samples;
    s->h = h;
    s->config = *(const config *)cfg;
    s->scale = 1;
    const dt_bind_api *bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->comm = h->service(h, DT_SVC_COMM);
    s->metrics = h->service(h, DT_SVC_METRICS);
    if (!DT_HAS(bind, own_data) || !DT_HAS(s->train, refill) || !DT_HAS(s->comm, reduce) || s->metrics == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "fitter needs a host of 1.2");
    }
    ops.read = is_wrong(s, "no read") ? NULL : ops.read;
    ops.struct_size = is_wrong(s, "small") ? 16 : ops.struct_size;
    dt_model_request net = DT_MODEL_REQUEST("net", in, out_ports);
    const dt_port no_name[] = {{NULL, "A 2", DT_F32, 0}}, no_dims[] = {{"x", NULL, DT_F32, 0}};
    net.role = is_wrong(s, "no role") ? NULL : net.role;
    net.offers = is_wrong(s, "no port name") ? no_name : is_wrong(s, "no dims") ? no_dims : net.offers;
    DT_TRY_H(bind->own_data(h, &ops, s, &s->data));
    if (bind->data_count(s->data) != SAMPLES || bind->data_field(s->data, "y") == NULL) {
        return DT_FAIL_H(h, DT_EPLUGIN, "the host sees other samples");
    }
    return bind->model(h, &net, &s->model);
}

static dt_status record(void *user, dt_graph *g)
{
    const state *s = user;
    if (is_wrong(s, "no reason to record")) {
        return DT_ENOTFOUND;
    }
    const dt_named x = {is_wrong(s, "no input name") ? NULL : "x", g->api->input(g, "x")};
    dt_named y = {"y", NULL};
    DT_TRY_H(g->api->model(g, s->model, &x, 1, &y, 1));
    dt_tensor *weight = dt_merge(g, dt_fill(g, y.tensor, 1));
    const char *op = is_wrong(s, "stiff") ? "fitter_stiff" : is_wrong(s, "no op") ? "fitter_none" : "fitter_bend";
    dt_tensor *bent = g->api->user_op(g, op, &y.tensor, 1, NULL);
    bent = is_wrong(s, "constant loss") ? dt_stop(g, bent) : bent;
    return g->api->loss(g, "mse", dt_mse(g, bent, g->api->input(g, "y"), weight), 1, "A");
}

/* The names, sizes and places of all parameters, and behind the last there is none. */
static dt_status check_parameters(const state *s)
{
    static const char *const name[] = {"net.out.w", "net.out.b", "net.constant.unit"};
    static const uint64_t numbers[] = {IN, 1, IN}, at[] = {0, IN, DT_NOT_IN_VECTOR};
    dt_train_param p = {.struct_size = sizeof(p)};
    for (uint64_t i = 0; i < 3; i++) {
        DT_TRY_H(s->train->parameter(s->trainer, i, &p));
        if (strcmp(p.name, name[i]) != 0 || p.count != numbers[i] || p.at != at[i] || p.is_trained != (i < 2) ||
            p.is_constant != (i == 2) || p.is_target) {
            return DT_FAIL_H(s->h, DT_EPLUGIN, "parameter %u is %s, %u numbers", (unsigned)i, p.name,
                             (unsigned)p.count);
        }
    }
    if (s->train->parameter(s->trainer, 3, &p) != DT_ENOTFOUND) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "there is a fourth parameter");
    }
    return DT_OK;
}

static dt_status check_statistics(const state *s)
{
    const dt_bind_api *bind = s->h->service(s->h, DT_SVC_BIND);
    dt_field_stat x[IN] = {{0}};
    DT_TRY_H(bind->data_statistics(s->data,
                                   is_wrong(s, "field")     ? "z"
                                   : is_wrong(s, "unknown") ? "y"
                                                            : "x",
                                   x,
                                   is_wrong(s, "columns")   ? 3
                                   : is_wrong(s, "unknown") ? 1
                                                            : IN));
    return x[IN - 1].n == 3 && x[0].mean == 0.25
               ? DT_OK
               : DT_FAIL_H(s->h, DT_EPLUGIN, "statistics %g %g", x[IN - 1].n, x[0].mean);
}

/* What is set is there, and nothing but a constant, of its size, of numbers, can be. */
static dt_status set_constant(const state *s)
{
    const float unit[IN] = {is_wrong(s, "number") ? NAN : 0.5f, 2};
    const char *name = is_wrong(s, "trained") ? "net.out.w" : "net.constant.unit";
    float is[IN] = {0};
    DT_TRY_H(s->train->constant_set(s->trainer, name, unit, is_wrong(s, "size") ? 1 : IN));
    DT_TRY_H(s->train->constant_get(s->trainer, name, is, IN));
    return memcmp(is, unit, sizeof(is)) == 0 ? DT_OK : DT_FAIL_H(s->h, DT_EPLUGIN, "the constant is another");
}

static dt_status check_ranks(const state *s)
{
    const double rank = s->comm->rank(s->h), n = s->comm->size(s->h);
    double sum[] = {rank + 1, 1}, least = rank + 3, most = rank, word = rank == n - 1 ? 7 : 0;
    DT_TRY_H(s->comm->reduce(s->h, DT_RANKS_SUM, sum, 2));
    DT_TRY_H(s->comm->reduce(s->h, DT_RANKS_MIN, &least, 1));
    DT_TRY_H(s->comm->reduce(s->h, DT_RANKS_MAX, &most, 1));
    DT_TRY_H(s->comm->broadcast(s->h, (uint32_t)n - 1, &word, sizeof(word)));
    if (sum[0] != n * (n + 1) / 2 || sum[1] != n || least != 3 || most != n - 1 || word != 7) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "ranks told %g %g %g %g %g", sum[0], sum[1], least, most, word);
    }
    if (is_wrong(s, "root")) {
        return s->comm->broadcast(s->h, (uint32_t)n, &word, sizeof(word));
    }
    return is_wrong(s, "how") ? s->comm->reduce(s->h, 9, &word, 1) : DT_OK;
}

/* Where the option names it, the last of several ranks fails before calls that the others make. */
static dt_status fail_on_last_rank(const state *s, const char *where)
{
    const uint32_t n = s->comm->size(s->h);
    const bool is_last = n > 1 && s->comm->rank(s->h) + 1 == n;
    return is_last && is_wrong(s, where) ? DT_FAIL_H(s->h, DT_EPLUGIN, "fitter fails on its last rank") : DT_OK;
}

static dt_status start(void *self)
{
    state *s = self;
    DT_TRY_H(fail_on_last_rank(s, "last starts"));
    dt_model *none = NULL;
    dt_train_desc desc = DT_TRAIN_DESC(s, record, s->data, &s->model, 1);
    desc.data = is_wrong(s, "no data") ? NULL : desc.data;
    desc.record = is_wrong(s, "no record") ? NULL : desc.record;
    desc.models = is_wrong(s, "no models") ? NULL : is_wrong(s, "no model") ? &none : desc.models;
    desc.n_models = is_wrong(s, "many models") ? UINT32_MAX : desc.n_models;
    const char *role = "net", *loss = NULL;
    dt_train_group group = {.struct_size = sizeof(group), .n_roles = 1, .n_losses = 1, .role = &role, .loss = &loss};
    desc.group = is_wrong(s, "no group name") || is_wrong(s, "no loss name") ? &group : NULL;
    group.name = is_wrong(s, "no loss name") ? "all" : NULL;
    desc.n_groups = desc.group != NULL;
    DT_TRY_H(s->train->create(s->h, is_wrong(s, "no desc") ? NULL : &desc, &s->trainer));
    DT_TRY_H(check_parameters(s));
    DT_TRY_H(check_statistics(s));
    return check_ranks(s);
}

static dt_status change(void *user)
{
    state *s = user;
    s->scale = s->next;
    return DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    if (is_wrong(s, "no reason")) {
        return DT_EIO;
    }
    if (is_wrong(s, "own code")) {
        return -77;
    }
    if (is_wrong(s, "no metric name") || is_wrong(s, "empty metric name")) {
        s->metrics->scalar(s->h, is_wrong(s, "no metric name") ? NULL : "", 1);
    }
    if (is_wrong(s, "no step input name")) {
        const float one = 1;
        return s->train->set(s->trainer, NULL, &one, 1);
    }
    uint64_t step = 0, steps = 0, per_epoch = 0;
    DT_TRY_H(s->train->position(s->trainer, &step, &steps, &per_epoch));
    if (step == 7 && is_wrong(s, "hangs") && s->comm->rank(s->h) + 1 == s->comm->size(s->h)) {
        for (;;) {
            (void)pause();
        }
    }
    DT_TRY_H(step == 0 ? set_constant(s) : fail_on_last_rank(s, "last iterates"));
    s->next = 1 + (double)(step / per_epoch);
    if (!s->config.stale && s->next != s->scale) { /* at an epoch's begin, and where a run goes on */
        DT_TRY_H(s->train->refill(s->trainer, change, s));
    }
    return dt_train_iterate(s->train, s->trainer, out);
}

DT_STOP_DEFINE(stop, state);

static const dt_phase_ops ops = {.struct_size = sizeof(dt_phase_ops),
                                 .create = create,
                                 .start = start,
                                 .iterate = iterate,
                                 .stop = stop,
                                 .destroy = nothing};

static const dt_component phase = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_PHASE,
                                   .id = "fitter",
                                   .summary = "a line, and samples of its own",
                                   .reference = "none",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(config),
                                   .state_size = sizeof(state),
                                   .options = options,
                                   .ops = &ops};

static const dt_component net = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_MODEL,
                                 .id = "fitter_net",
                                 .summary = "one layer",
                                 .reference = "none",
                                 .role = "net",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .state_size = sizeof(int32_t),
                                 .ops = &net_ops,
                                 .extension = net_extension};

DT_PLUGIN_DEFINE_WITH("fitter", "0.1", "tests", "Apache-2.0", DT_OPS(&phase, &net), DT_SET(extension, extension));

/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "toy.h"

#include "base/err.h"
#include "base/rng.h"
#include "comm/tree_sum.h"

#include <math.h>
#include <string.h>

enum { IN = 5, OUT = 2 };

const dt_scaler_config toy_overflowing = {.kind = DT_SCALING_DYNAMIC,
                                          .initial = 0x1p140,
                                          .min = 1,
                                          .max = 0x1p140,
                                          .growth = 2,
                                          .backoff = 0x1p-16,
                                          .interval = 4,
                                          .hysteresis = 1,
                                          .max_skips = 5};

void assert_error_has(const char *part)
{
    if (strstr(dt_error_text(), part) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", dt_error_text(), part);
    }
}

static int64_t rows_of(uint64_t sample)
{
    return 1 + (int64_t)(sample * 7 % 5);
}

static const dt_port *toy_fields(const void *self, uint32_t *n)
{
    static const dt_port f[] = {
        {"x", "N 5", DT_F32, 0}, {"y", "N 2", DT_F32, 0}, {"w", "N", DT_F32, 0}, {"key", "N", DT_I64, 0}};
    *n = 4;
    return f;
}

static const char *const *toy_symbols(const void *self, uint32_t *n)
{
    static const char *const s[] = {"N"};
    *n = 1;
    return s;
}

static dt_status toy_count(const void *self, uint64_t *n)
{
    *n = ((const toy *)self)->count;
    return DT_OK;
}

static dt_status toy_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    size[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        size[0] += rows_of(index[i]);
    }
    return DT_OK;
}

static uint64_t toy_part(const void *self, uint64_t index)
{
    return index / 7;
}

static dt_status toy_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    toy *t = self;
    float *x = out[0];
    float *y = out[1];
    float *w = out[2];
    int64_t *k = out[3];
    int64_t row = 0;
    t->is_keyless = k == NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (t->is_parted && toy_part(t, index[i]) != toy_part(t, index[0])) {
            return DT_FAIL(DT_EPLUGIN, "samples %d and %d are of two parts", (int)index[0], (int)index[i]);
        }
        if ((int64_t)index[i] == t->broken_sample) {
            return DT_FAIL(DT_EDATA, "sample %d cannot be read", (int)index[i]);
        }
        for (int64_t r = 0; r < rows_of(index[i]); r++, row++) {
            const dt_rng_key rk = {.seed = 11, .sample = index[i], .step = (uint64_t)r};
            for (int j = 0; j < IN; j++) {
                x[row * IN + j] = (float)(2 * dt_rng_uniform(&rk, (uint64_t)j) - 1);
            }
            if ((int64_t)index[i] == t->poison_sample) {
                x[row * IN] = NAN;
            }
            y[row * OUT] = x[row * IN + 1] * x[row * IN + 2];
            y[row * OUT + 1] = sinf(2 * x[row * IN + 3]) + 0.5f * x[row * IN + 4];
            w[row] = 1;
            if (k != NULL) {
                k[row] = (int64_t)(key[i] * 16 + (uint64_t)r);
            }
        }
    }
    return DT_OK;
}

/* Samples with many rows are drawn more often; the first never is. */
static dt_status toy_weights(void *self, double *out, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        out[i] = i == 0 ? 0 : (double)rows_of(i);
    }
    return DT_OK;
}

static void batch_norm_params(dt_param_table *t, const char *role, int64_t n)
{
    static const char *const name[] = {"bn.gamma", "bn.beta", "bn.mean", "bn.var"};
    static const uint32_t kind[] = {DT_INIT_CONST, DT_INIT_ZERO, DT_INIT_ZERO | DT_INIT_STATISTIC,
                                    DT_INIT_CONST | DT_INIT_STATISTIC};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dt_param_table_add(t, role, name[i], &n, 1, kind[i], 1), DT_OK);
    }
}

static dt_tensor *batch_norm(const toy *t, dt_graph *g, dt_tensor *x, dt_tensor *mask)
{
    const dt_graph_api *api = g->api;
    return dt_batch_norm(g, x, api->param(g, "bn.gamma"), api->param(g, "bn.beta"), api->param(g, "bn.mean"),
                         api->param(g, "bn.var"), mask, t->momentum, 1e-5);
}

static dt_status toy_record(void *user, dt_graph *g)
{
    const toy *t = user;
    const dt_graph_api *api = g->api;
    dt_graph_set_scope(g, "net");
    dt_tensor *x = api->input(g, "x");
    x = t->has_constant ? dt_mul(g, x, api->param(g, "constant.unit")) : x;
    if (t->has_batch_norm) {
        x = batch_norm(t, g, x, dt_affine(g, dt_merge(g, dt_slice(g, x, 0, 1)), 1, 0.5));
    }
    dt_tensor *h = dt_tanh(g, dt_linear(g, x, api->param(g, "w1"), api->param(g, "b1")));
    if (t->dropout > 0) {
        h = dt_dropout(g, h, api->input(g, "key"), t->dropout);
    }
    dt_tensor *y = dt_linear(g, h, api->param(g, "w2"), api->param(g, "b2"));
    dt_graph_set_scope(g, "");
    dt_tensor *scale = api->step_input(g, "scale", OUT);
    dt_tensor *loss = dt_mse(g, dt_mul(g, y, scale), api->input(g, "y"), api->input(g, "w"));
    api->loss(g, "mse", loss, 1.0, "N");
    if (t->apart != NULL) {
        api->loss(g, "hidden", dt_sum(g, h), 0.0, "N");
    }
    api->output(g, "y_hat", y);
    return api->status(g);
}

/* What stored samples teach: the same net. */
static dt_status toy_record_stored(void *user, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    dt_graph_set_scope(g, "net");
    dt_tensor *h = dt_tanh(g, dt_linear(g, api->input(g, "x"), api->param(g, "w1"), api->param(g, "b1")));
    h = dt_dropout(g, h, api->input(g, "key"), 0.1);
    dt_tensor *y = dt_linear(g, h, api->param(g, "w2"), api->param(g, "b2"));
    dt_graph_set_scope(g, "");
    dt_tensor *loss = dt_mse(g, y, api->input(g, "y"), api->input(g, "w"));
    api->loss(g, "stored_mse", loss, 0.5, "N");
    api->output(g, "y_hat", y);
    return api->status(g);
}

/* ---- the pair ---------------------------------------------------------------------------------------------------- */

static char actor[] = "actor", critic[] = "critic"; /* what the graph's models are: their roles */

static dt_status pair_model(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                            uint32_t n_out)
{
    const dt_graph_api *api = g->api;
    assert_int_equal(n_out, 1);
    assert_int_equal(n_in, (char *)m == actor ? 1 : 2);
    dt_graph_set_scope(g, (char *)m);
    if ((char *)m == actor) {
        out[0].tensor = dt_tanh(g, dt_linear(g, in[0].tensor, api->param(g, "w"), api->param(g, "b")));
    } else {
        dt_tensor *both[2] = {in[0].tensor, in[1].tensor};
        dt_tensor *x = dt_concat(g, both, 2);
        x = ((const toy *)user)->has_batch_norm ? batch_norm(user, g, x, NULL) : x;
        dt_tensor *h = dt_linear(g, x, api->param(g, "w1"), api->param(g, "b1"));
        out[0].tensor = dt_linear(g, dt_tanh(g, h), api->param(g, "w2"), api->param(g, "b2"));
    }
    dt_graph_set_scope(g, "");
    return api->status(g);
}

static dt_tensor *act(dt_graph *g, const char *target)
{
    const dt_named in = {"x", g->api->input(g, "x")};
    dt_named out = {"a", NULL};
    (void)g->api->model_as(g, (dt_model *)actor, target, &in, 1, &out, 1);
    return out.tensor;
}

static dt_tensor *value_of(dt_graph *g, const char *target, dt_tensor *a)
{
    const dt_named in[] = {{"x", g->api->input(g, "x")}, {"a", a}};
    dt_named out = {"q", NULL};
    (void)g->api->model_as(g, (dt_model *)critic, target, in, 2, &out, 1);
    return out.tensor;
}

static dt_status pair_record(void *user, dt_graph *g)
{
    const toy *t = user;
    const dt_graph_api *api = g->api;
    const char *as = t->as != NULL ? t->as : "target";
    dt_tensor *y = api->input(g, "y"), *a = act(g, NULL);
    dt_tensor *goal = dt_add(g, dt_slice(g, y, 0, 1), dt_affine(g, value_of(g, as, act(g, "target")), 0.5, 0));
    api->loss(g, "critic", dt_mse(g, value_of(g, NULL, y), goal, api->input(g, "w")), 1.0, "N");
    api->loss(g, "actor", dt_sum(g, value_of(g, t->is_valued_by_target ? "target" : NULL, a)), -1.0, "N");
    api->output(g, "a", a);
    api->output(g, "a_past", act(g, "past"));
    return api->status(g);
}

static void pair_params(toy *t)
{
    const int64_t w[] = {OUT, IN}, w1[] = {t->pair_hidden, IN + OUT}, w2[] = {1, t->pair_hidden};
    dt_param_table *p = &t->params;
    const int64_t unit = t->is_grouped && !t->is_crowded ? DT_SLICE_UNIT : 1;
    assert_int_equal(dt_param_table_add(p, "actor", "w", w, 2, DT_INIT_FAN_IN, 1), DT_OK);
    assert_int_equal(dt_param_table_add(p, "actor", "b", w, 1, DT_INIT_ZERO, 0), DT_OK);
    dt_param_table_align(p, unit);
    if (t->has_batch_norm) {
        batch_norm_params(p, "critic", IN + OUT);
    }
    assert_int_equal(dt_param_table_add(p, "critic", "w1", w1, 2, DT_INIT_FAN_IN, 1), DT_OK);
    assert_int_equal(dt_param_table_add(p, "critic", "b1", w1, 1, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(p, "critic", "w2", w2, 2, DT_INIT_FAN_IN, 1), DT_OK);
    assert_int_equal(dt_param_table_add(p, "critic", "b2", w2, 1, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add_target(p, "actor", "target"), DT_OK);
    assert_int_equal(dt_param_table_add_target(p, "critic", "target"), DT_OK);
    assert_int_equal(dt_param_table_add_target(p, "actor", "past"), DT_OK);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status no_model(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                          uint32_t n_out)
{
    (void)user, (void)g, (void)m, (void)in, (void)n_in, (void)out, (void)n_out;
    return DT_EINVAL;
}

void toy_init(toy *t)
{
    memset(t, 0, sizeof(*t));
    t->ops = (dt_data_ops){.struct_size = sizeof(dt_data_ops),
                           .fields = toy_fields,
                           .symbols = toy_symbols,
                           .count = toy_count,
                           .sizes = toy_sizes,
                           .read = toy_read,
                           .weights = toy_weights};
    t->count = 150;
    t->poison_sample = t->broken_sample = -1;
    t->dropout = 0.1;
    t->momentum = 0.1;
    t->hidden = 24;
    t->pair_hidden = 12;
    t->config = (dt_trainer_config){.seed = 3,
                                    .threads = 2,
                                    .shards = 8,
                                    .bucket_bytes = 4096,
                                    .prefetch = 1,
                                    .batch = 32,
                                    .slice_rows = 9,
                                    .epochs = 30,
                                    .gradient_clip = 0.5,
                                    .reuse = true,
                                    .fuse = true};
    static const char *const critic_name[] = {"critic"}, *const actor_name[] = {"actor"};
    t->group[0] =
        (dt_trainer_group){.name = "critic", .role = critic_name, .loss = critic_name, .n_roles = 1, .n_losses = 1};
    t->group[1] =
        (dt_trainer_group){.name = "actor", .role = actor_name, .loss = actor_name, .n_roles = 1, .n_losses = 1};
    t->n_groups = 2;
    t->config.optim =
        (dt_optim_step){.kind = DT_OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-4};
    t->config.schedule =
        (dt_schedule){.kind = DT_SCHEDULE_COSINE, .lr = 2e-2, .eta_min = 1e-4, .warmup = 1, .t_max = 30};
}

static void net_params(toy *t)
{
    const int64_t w1[] = {t->hidden, IN}, b1[] = {t->hidden}, w2[] = {OUT, t->hidden};
    static const int64_t b2[] = {OUT}, unit[] = {IN};
    if (t->has_constant) {
        assert_int_equal(
            dt_param_table_add(&t->params, "net", "constant.unit", unit, 1, DT_INIT_CONST | DT_INIT_CONSTANT, 1),
            DT_OK);
    }
    if (t->has_batch_norm) {
        batch_norm_params(&t->params, "net", IN);
    }
    assert_int_equal(dt_param_table_add(&t->params, "net", "w1", w1, 2, DT_INIT_FAN_IN, 1), DT_OK);
    assert_int_equal(dt_param_table_add(&t->params, "net", "b1", b1, 1, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&t->params, "net", "w2", w2, 2, DT_INIT_FAN_IN, 1), DT_OK);
    assert_int_equal(dt_param_table_add(&t->params, "net", "b2", b2, 1, DT_INIT_ZERO, 0), DT_OK);
}

dt_status toy_try_start(toy *t)
{
    if (t->comm == NULL) {
        assert_int_equal(dt_comm_create_null(&t->comm), DT_OK);
    }
    assert_int_equal(dt_samples_open(&t->source, &t->ops, t, t->config.slice_rows), DT_OK);
    t->source.is_live = t->is_live;
    t->source.keyed = 3;
    if (t->is_parted) {
        t->source.part = toy_part;
        t->source.apart = "key";
    }
    if (t->stored != NULL) {
        toy *b = t->stored;
        assert_int_equal(dt_samples_open(&b->source, &b->ops, b, t->config.slice_rows), DT_OK);
    }
    (t->is_pair ? pair_params : net_params)(t);
    uint32_t n_frozen = 0;
    if (t->freeze != NULL) {
        assert_int_equal(dt_param_table_freeze(&t->params, t->freeze, &n_frozen), DT_OK);
        assert_true(n_frozen > 0);
    }
    const dt_trainer_desc d = {.config = &t->config,
                               .params = &t->params,
                               .source = &t->source,
                               .comm = t->comm,
                               .device_ops = t->device_ops,
                               .device = t->device,
                               .user = t,
                               .stored = t->stored != NULL ? &t->stored->source : NULL,
                               .n_stored = t->n_stored,
                               .record = t->is_pair ? pair_record : toy_record,
                               .record_stored = t->stored != NULL ? toy_record_stored : NULL,
                               .apart = t->apart,
                               .group = t->is_grouped ? t->group : NULL,
                               .n_groups = t->is_grouped ? t->n_groups : 0,
                               .target = t->is_pair ? t->target : NULL,
                               .model = t->is_pair ? pair_model : no_model};
    return dt_trainer_create(&d, &t->trainer);
}

void toy_start(toy *t)
{
    const float scale[OUT] = {1, 1};
    const dt_status st = toy_try_start(t);
    if (st != DT_OK) {
        print_message("%s\n", dt_error_text());
    }
    assert_int_equal(st, DT_OK);
    assert_int_equal(dt_trainer_step_input_set(t->trainer, "scale", scale, OUT), DT_OK); /* the pair reads none */
}

void toy_fini(toy *t)
{
    dt_trainer_destroy(t->trainer);
    dt_param_table_fini(&t->params);
    dt_comm_destroy(t->comm);
}

dt_status toy_step(toy *t, dt_step_report *r)
{
    const uint64_t step = dt_trainer_step_number(t->trainer);
    return t->turn != NULL ? dt_trainer_step_groups(t->trainer, t->turn[step % t->n_turns], r)
                           : dt_trainer_step(t->trainer, r);
}

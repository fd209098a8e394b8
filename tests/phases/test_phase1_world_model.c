/* SPDX-License-Identifier: Apache-2.0
 *
 * phase1_world_model in a fake host: what it binds and records, the progressive horizon, and the figures of an
 * evaluation against values computed by hand.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "dtrain/svc/bind.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The opaque things of the services: one of each. */
struct dt_data {
    bool is_eval;
};
struct dt_model {
    const char *role;
};
struct dt_train {
    dt_train_desc desc;
};
struct dt_rows {
    int64_t S;
};

enum { T = 2, F = 5, S = 4, N = 6, K = 3 };

/* Four vehicles, 2 history steps and 5 future steps at 1 Hz. Vehicles 0 and 1 are complete, 3 is positive already. */
typedef struct world {
    mock_host host; /* first */
    mock_graph graph;
    dt_data data[2];
    dt_model model[2];
    dt_train train;
    dt_rows rows;
    uint64_t n_samples;
    const char *missing; /* a field that the data lacks */
    const char *absent;  /* a value that evaluation lacks */
    char overrides[MOCK_TEXT], wants[MOCK_TEXT], reports[MOCK_TEXT];
    double value[128][16]; /* of reports, in their order */
    uint32_t n_reports;
    float horizon[F];
    uint64_t step;
    float motion[T][S][6], target[S][F][2], future[S][F][2], spread[S][F][2], risk[N];
    int32_t seq_row[T][S], site[S], sample_of_seq[S];
    uint8_t complete[S], risk_state[N];
    bool has_futures, has_sites, has_temperature, epoch_end;
    const char *regions_dims; /* of the world model's port, or NULL */
    float temperature[F][2], regions[150];
    const char *futures_dims; /* of the world model's port */
    float futures[S][K][F][2], spreads[S][K][F][2], probability[S][K];
} world;

static world *w; /* services get no user pointer from dt_bind_api's handles */

static void append(char text[MOCK_TEXT], const char *fmt, ...) DT_PRINTF(2, 3);
static void append(char text[MOCK_TEXT], const char *fmt, ...)
{
    const size_t n = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, MOCK_TEXT - n, fmt, ap);
    va_end(ap);
}

/* ---- fake services ----------------------------------------------------------------------------------------------- */

static dt_status bind_model(const dt_host *h, const dt_model_want *want, dt_model **out)
{
    (void)h;
    append(w->wants, "%s:", want->role);
    for (uint32_t i = 0; i < want->n_dims; i++) {
        append(w->wants, " %s=%lld", want->dims[i].name, (long long)want->dims[i].size);
    }
    for (uint32_t i = 0; i < want->n_offers; i++) {
        append(w->wants, " %s[%s]", want->offers[i].name, want->offers[i].dims);
    }
    for (uint32_t i = 0; i < want->n_needs; i++) {
        append(w->wants, " ->%s[%s]", want->needs[i].name, want->needs[i].dims);
    }
    append(w->wants, "\n");
    *out = &w->model[strcmp(want->role, "world") == 0];
    (*out)->role = want->role;
    return DT_OK;
}

static const dt_port *bind_model_output(const dt_model *m, const char *name)
{
    static const dt_port embedding = {"embedding", "N 64", DT_F32, 0}, probability = {"probability", "S 3", DT_F32, 0};
    static dt_port futures = {"futures", NULL, DT_F32, 0};
    static const dt_port temperature = {"temperature", "10", DT_F32, 0};
    if (strcmp(m->role, "world") == 0 && strcmp(name, "temperature") == 0) {
        return w->has_temperature ? &temperature : NULL;
    }
    static dt_port regions = {"regions", NULL, DT_F32, 0};
    if (strcmp(m->role, "world") == 0 && strcmp(name, "regions") == 0) {
        regions.dims = w->regions_dims;
        return regions.dims != NULL ? &regions : NULL;
    }
    if (strcmp(m->role, "world") == 0) {
        futures.dims = w->futures_dims;
        return !w->has_futures ? NULL : strcmp(name, "probability") == 0 ? &probability : &futures;
    }
    assert_string_equal(m->role, "perception");
    assert_string_equal(name, "embedding");
    return &embedding;
}

static int64_t bind_port_dim(const dt_port *p, uint32_t i)
{
    const char *at = p->dims;
    for (; i > 0; i--) {
        at = strchr(at, ' ') + 1;
    }
    return *at >= '0' && *at <= '9' ? strtoll(at, NULL, 10) : -1;
}

static dt_status bind_data(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out)
{
    (void)h;
    *out = &w->data[0];
    for (uint32_t i = 0; i < n; i++) {
        append(w->overrides, "%s=%s ", overrides[i].key, overrides[i].value);
        if (strcmp(overrides[i].key, "split") == 0 && strcmp(overrides[i].value, "train") != 0) {
            *out = &w->data[1];
            (*out)->is_eval = true;
        }
    }
    return DT_OK;
}

static const dt_port *bind_data_field(const dt_data *d, const char *name)
{
    static const dt_port seq_row = {"seq_row", "2 S", DT_I32, 0}, target = {"target", "S 5 2", DT_F32, 0};
    (void)d;
    if (w->missing != NULL && strcmp(name, w->missing) == 0) {
        return NULL;
    }
    if (strcmp(name, "lane") == 0 || strcmp(name, "path") == 0) {
        return NULL; /* without roads */
    }
    return strcmp(name, "seq_row") == 0 ? &seq_row : &target;
}

static uint64_t bind_data_count(const dt_data *d)
{
    (void)d;
    return w->n_samples;
}

static dt_status train_create(const dt_host *h, const dt_train_desc *desc, dt_train **out)
{
    (void)h;
    w->train.desc = *desc;
    assert_false(desc->data->is_eval);
    mock_graph_init(&w->graph, NULL);
    DT_TRY_H(desc->record(desc->user, &w->graph.graph));
    *out = &w->train;
    return DT_OK;
}

static void train_destroy(dt_train *t)
{
    t->desc.record = NULL;
}

static dt_status train_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    (void)t;
    assert_string_equal(name, "horizon_weight");
    assert_int_equal(n, F);
    memcpy(w->horizon, value, sizeof(w->horizon));
    return DT_OK;
}

static dt_status train_step(dt_train *t, dt_step_report *out)
{
    (void)t;
    w->step++;
    out->step = w->step;
    out->steps = 100;
    out->epoch = w->step / 10;
    out->loss = 1.5;
    out->grad_norm = 0.25;
    out->learning_rate = 1e-3;
    out->samples = 64;
    out->epoch_end = w->epoch_end;
    return w->step == 100 ? DT_DONE : DT_OK;
}

static dt_status train_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    (void)t;
    assert_true(d->is_eval);
    return each(user, &w->rows);
}

static const void *train_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    const struct {
        const char *name;
        const void *at;
    } all[] = {{"motion", w->motion},
               {"target", w->target},
               {"future", w->future},
               {"spread", w->spread},
               {"risk", w->risk},
               {"seq_row", w->seq_row},
               {"complete", w->complete},
               {"risk_state", w->risk_state},
               {"futures", w->has_futures ? w->futures : NULL},
               {"spreads", w->has_futures ? w->spreads : NULL},
               {"probability", w->has_futures ? w->probability : NULL},
               {"site", w->has_sites ? w->site : NULL},
               {"sample_of_seq", w->sample_of_seq}};
    *rank = 1;
    dim[0] = strcmp(name, "complete") == 0 ? r->S : 0;
    dim[1] = strcmp(name, "futures") == 0 ? K : 0;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(name, all[i].name) == 0 && (w->absent == NULL || strcmp(name, w->absent) != 0)) {
            return all[i].at;
        }
    }
    return NULL;
}

static dt_status train_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch)
{
    (void)t;
    *step = w->step;
    *steps = 100;
    *steps_per_epoch = 10;
    return DT_OK;
}

static uint64_t train_vector_size(const dt_train *t)
{
    assert_string_equal(t->desc.apart, "temperature");
    return F * 2 + (w->regions_dims != NULL ? 150 : 0);
}

static dt_status train_vector_get(dt_train *t, float *out)
{
    (void)t;
    memcpy(out, w->temperature, sizeof(w->temperature));
    if (w->regions_dims != NULL) {
        memcpy(out + F * 2, w->regions, sizeof(w->regions));
    }
    return DT_OK;
}

static dt_status train_vector_set(dt_train *t, const float *in)
{
    (void)t;
    memcpy(w->temperature, in, sizeof(w->temperature));
    if (w->regions_dims != NULL) {
        memcpy(w->regions, in + F * 2, sizeof(w->regions));
    }
    return DT_OK;
}

static const uint64_t *train_samples(const dt_rows *r, uint32_t *n)
{
    static const uint64_t sample[1] = {0};
    (void)r;
    *n = 1;
    return sample;
}

static void metrics_scalar(const dt_host *h, const char *name, double value)
{
    (void)h;
    append(w->reports, "%s=%g\n", name, value);
}

static void metrics_report(const dt_host *h, const char *key, const double *value, uint32_t n)
{
    (void)h;
    append(w->reports, "%s ", key);
    assert_true(w->n_reports < 128 && n <= 16);
    memcpy(w->value[w->n_reports++], value, (n > 0 ? n : 1) * sizeof(*value));
}

static const dt_bind_api bind_api = {.struct_size = sizeof(dt_bind_api),
                                     .model = bind_model,
                                     .model_output = bind_model_output,
                                     .port_dim = bind_port_dim,
                                     .data = bind_data,
                                     .data_field = bind_data_field,
                                     .data_count = bind_data_count};
static const dt_train_api train_api = {.struct_size = sizeof(dt_train_api),
                                       .create = train_create,
                                       .destroy = train_destroy,
                                       .set = train_set,
                                       .step = train_step,
                                       .evaluate = train_evaluate,
                                       .rows = train_rows,
                                       .samples = train_samples,
                                       .vector_size = train_vector_size,
                                       .vector_get = train_vector_get,
                                       .vector_set = train_vector_set,
                                       .position = train_position};
static const dt_metrics_api metrics_api = {
    .struct_size = sizeof(dt_metrics_api), .scalar = metrics_scalar, .report = metrics_report};

/* ---- fixture ----------------------------------------------------------------------------------------------------- */

typedef struct phase {
    const dt_component *c;
    const dt_phase_ops *ops;
    void *config, *self;
} phase;

static const char *const at_1_hz[] = {"rate_hz=1",         "history_s=2",      "horizon_s=5",
                                      "horizon_start_s=1", "horizon_epochs=4", NULL};

static void world_init(void)
{
    w = calloc(1, sizeof(*w));
    assert_non_null(w);
    mock_host_init(&w->host);
    mock_host_serve(&w->host, DT_SVC_BIND, &bind_api);
    mock_host_serve(&w->host, DT_SVC_TRAIN, &train_api);
    mock_host_serve(&w->host, DT_SVC_METRICS, &metrics_api);
    w->n_samples = 7;
    w->rows.S = S;
    w->futures_dims = "S 3 5 2";
    for (int64_t v = 0; v < S; v++) {
        w->motion[T - 1][v][4] = 2.0F; /* m/s: constant velocity says x = 2, 4, 6, 8, 10 */
        w->seq_row[T - 1][v] = (int32_t)(v + 1);
        w->seq_row[0][v] = -1;
        w->complete[v] = v < 2;
        w->risk_state[v + 1] = v == 3 ? 2 : v == 1;
        for (int64_t f = 0; f < F; f++) {
            w->target[v][f][0] = 2.0F * (float)(f + 1);
            w->target[v][f][1] = v == 0 ? 0.0F : 3.0F;                 /* constant velocity is 3 m off for vehicle 1 */
            w->future[v][f][0] = w->target[v][f][0] + 4.0F * (float)v; /* the model: exact for 0, 4 m off for 1 */
            w->future[v][f][1] = w->target[v][f][1];
        }
    }
    w->risk[1] = 0.1F; /* negative */
    w->risk[2] = 0.5F; /* positive */
    w->risk[3] = 0.5F; /* negative, a tie */
    w->risk[4] = 9.0F; /* positive already: left out */
}

static dt_status phase_open(phase *p, const char *const *set)
{
    memset(p, 0, sizeof(*p));
    p->c = mock_load("phases", "phase1_world_model", "phase1_world_model");
    assert_non_null(p->c);
    p->ops = p->c->ops;
    p->config = mock_config(p->c, set);
    p->self = calloc(1, p->c->state_size);
    assert_true(p->config != NULL && p->self != NULL);
    DT_TRY_H(p->c->check(&w->host.host, p->config));
    return p->ops->create(p->self, &w->host.host, p->config);
}

static void phase_close(phase *p)
{
    p->ops->destroy(p->self);
    assert_int_equal(w->host.n_live, 0);
    free(p->self);
    free(p->config);
    free(w);
    w = NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_binds_by_role_and_size(void **test)
{
    (void)test;
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_string_equal(w->overrides, "split=train history_s=2 horizon_s=5 rate_hz=1 "
                                      "split=eval history_s=2 horizon_s=5 rate_hz=1 ");
    assert_string_equal(
        w->wants, "perception: nodes[N 9] rowptr[N+1] col[E] edges[E 4] row_key[N] ->embedding[N H] ->risk[N]\n"
                  "world: H=64 T=2 F=5 dt_ms=1000 history[2 S 64] latest[S 64] motion[2 S 6] present[2 S] seq_key[S] "
                  "->future[S 5 2] ->spread[S 5 2]\n");
    phase_close(&p);
}

static void test_records_three_losses_and_three_outputs(void **test)
{
    (void)test;
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_losses, 3);
    assert_string_equal(w->graph.loss[0].name, "nll");
    assert_string_equal(w->graph.loss[0].symbol, "S");
    assert_string_equal(w->graph.loss[2].name, "risk");
    assert_string_equal(w->graph.loss[2].symbol, "N");
    assert_int_equal(w->graph.loss[0].value->op, DT_OP_GAUSSIAN_NLL);
    assert_string_equal(w->graph.loss[0].value->in[2]->name, "target");
    assert_int_equal(w->graph.loss[2].value->op, DT_OP_BCE_LOGITS);
    assert_string_equal(w->graph.loss[1].name, "position");
    assert_int_equal(w->graph.loss[1].value->op, DT_OP_MSE);
    assert_int_equal(w->graph.n_outputs, 3);
    p.ops->stop(p.self);
    assert_null(w->train.desc.record);
    phase_close(&p);
}

/* The sum over vehicles of roots, each weighted; in place of the squares. */
static void test_distances_are_learnt_where_they_are_asked_for(void **test)
{
    (void)test;
    static const char *const set[] = {"rate_hz=1",         "history_s=2",       "horizon_s=5",
                                      "position_weight=0", "distance_weight=3", NULL};
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_losses, 3);
    assert_string_equal(w->graph.loss[1].name, "distance");
    assert_string_equal(w->graph.loss[1].symbol, "S");
    assert_true(w->graph.loss[1].weight == 3);
    const dt_tensor *sum = w->graph.loss[1].value;
    assert_int_equal(sum->op, DT_OP_SUM);
    assert_int_equal(sum->in[0]->op, DT_OP_BINARY);
    assert_int_equal(sum->in[0]->in[0]->op, DT_OP_UNARY);
    p.ops->stop(p.self);
    phase_close(&p);
}

static void test_horizon_grows_and_weights_sum_to_one(void **test)
{
    (void)test;
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_int_equal(out.step, 1);
    assert_int_equal(out.steps, 100);
    assert_int_equal(out.samples, 64);
    assert_true(out.loss == 1.5 && out.grad_norm == 0.25 && out.learning_rate == 1e-3);
    assert_float_equal(w->horizon[0], 1.0, 1e-6); /* epoch 0: the first second alone */
    assert_float_equal(w->horizon[1], 0.0, 1e-6);
    assert_non_null(strstr(w->host.log, "the horizon grows from 1 s to 5 s in 4 epochs (curriculum)"));
    w->host.log[0] = '\0';
    w->step = 15; /* epoch 1.5 of 4: 1 + 4 * 1.5 / 4 = 2.5 s */
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_float_equal(w->horizon[0], 0.4, 1e-6);
    assert_float_equal(w->horizon[1], 0.4, 1e-6);
    assert_float_equal(w->horizon[2], 0.2, 1e-6);
    assert_float_equal(w->horizon[3], 0.0, 1e-6);
    w->step = 99;
    assert_int_equal(p.ops->iterate(p.self, &out), DT_DONE);
    assert_float_equal(w->horizon[4], 0.2, 1e-6);
    assert_string_equal(w->host.log, ""); /* it is said once */
    phase_close(&p);
}

static void test_evaluation_figures(void **test)
{
    (void)test;
    world_init();
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    for (int round = 0; round < 2; round++) { /* the second one starts from zero again */
        w->n_reports = 0;
        w->reports[0] = '\0';
        assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
        assert_int_equal(out.evaluated, 1);
        assert_string_equal(w->reports,
                            "horizon_s rmse_m displacement_m cv_rmse_m cv_displacement_m nll risk_auroc samples "
                            "rmse_over_cv risk_prevalence risk_samples coverage_50 coverage_80 coverage_95 "
                            "reliability/level reliability/share min_ade_1 min_fde_1 miss_rate_1 min_ade_6 min_fde_6 "
                            "miss_rate_6 cv_ade cv_miss_rate ");
        for (int i = 0; i < 5; i++) {
            assert_float_equal(w->value[0][i], i + 1, 1e-9);
            assert_float_equal(w->value[1][i], sqrt(16.0 / 2), 1e-6);
            assert_float_equal(w->value[2][i], 2.0, 1e-6);
            assert_float_equal(w->value[3][i], sqrt(9.0 / 2), 1e-6);
            assert_float_equal(w->value[4][i], 1.5, 1e-6);
            assert_float_equal(w->value[8][i], 4.0 / 3.0, 1e-6);
        }
        /* sigma 1: log(2 pi) per step, and 16/2 for vehicle 1 */
        assert_float_equal(w->value[5][0], log(2 * 3.14159265358979) + 4.0, 1e-6);
        /* scores: negative 0.1, positive 0.5, negative 0.5: one win, one tie */
        assert_float_equal(w->value[6][0], 0.75, 1e-9);
        assert_float_equal(w->value[7][0], 2, 1e-9);
        assert_float_equal(w->value[9][0], 1.0 / 3.0, 1e-9);
        assert_float_equal(w->value[10][0], 3, 1e-9);
        /* one future: in the middle of all ellipses, or 4 sigma off; half of the windows are missed */
        for (int i = 11; i < 14; i++) {
            assert_float_equal(w->value[i][0], 0.5, 1e-9);
            assert_float_equal(w->value[i][4], 0.5, 1e-9);
        }
        static const double rest[] = {2, 2, 0.5, 2, 2, 0.5, 1.5, 0.5};
        for (int i = 0; i < 8; i++) {
            assert_float_equal(w->value[16 + i][0], rest[i], 1e-6);
        }
    }
    phase_close(&p);
}

/* Value of a report by its key, in the order of reports. */
static double reported(const char *key, uint32_t at)
{
    char text[64];
    snprintf(text, sizeof(text), "%s ", key);
    uint32_t n = 0;
    for (const char *c = w->reports; *c != '\0'; c = strchr(c, ' ') + 1, n++) {
        if (strncmp(c, text, strlen(text)) == 0) {
            return w->value[n][at];
        }
    }
    fail_msg("nothing is reported as %s", key);
    return NAN;
}

/* Vehicle 0: 10, 0 and 1 m off across, by falling probability; vehicle 1: 3 m off at the end alone, then worse. */
static void set_futures(void)
{
    static const float off[2][K] = {{10, 0, 1}, {3, 7, 8}}, probability[2][K] = {{0.5F, 0.2F, 0.3F}, {0.6F, 0.4F, 0}};
    w->has_futures = true;
    for (int v = 0; v < 2; v++) {
        for (int k = 0; k < K; k++) {
            w->probability[v][k] = probability[v][k];
            for (int f = 0; f < F; f++) {
                w->futures[v][k][f][0] = w->target[v][f][0];
                w->futures[v][k][f][1] = w->target[v][f][1] + (v == 0 || f == F - 1 ? off[v][k] : 0);
            }
        }
    }
}

static void test_figures_of_several_futures(void **test)
{
    (void)test;
    world_init();
    set_futures();
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(w->graph.n_outputs, 6);
    assert_string_equal(w->graph.loss[0].name, "nll");
    assert_int_equal(w->graph.loss[0].value->op, DT_OP_SUM); /* of the mixture */
    assert_int_equal(w->graph.loss[1].value->op, DT_OP_MSE);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("min_ade_1", 0), (10 + 0.6) / 2, 1e-6);
    assert_float_equal(reported("min_fde_1", 0), (10 + 3) / 2.0, 1e-6);
    assert_float_equal(reported("miss_rate_1", 0), 1, 1e-9);
    assert_float_equal(reported("min_ade_6", 0), (0 + 0.6) / 2, 1e-6);
    assert_float_equal(reported("min_fde_6", 0), (0 + 3) / 2.0, 1e-6);
    assert_float_equal(reported("miss_rate_6", 0), 0.5, 1e-9);
    phase_close(&p);

    world_init();
    set_futures();
    w->futures_dims = "S 3 4 2";
    assert_int_equal(phase_open(&p, at_1_hz), DT_ESHAPE);
    assert_non_null(strstr(w->host.message, "output futures is [S 3 4 2]; phase1_world_model takes 2 to 8 futures"));
    phase_close(&p);

    world_init();
    set_futures();
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    w->has_futures = false; /* the graph has them, the rows do not */
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EPLUGIN);
    assert_non_null(strstr(w->host.message, "no values named futures"));
    phase_close(&p);
}

/* Shares of windows in ellipses: sqrt(-2 log(1 - level)) sigma far, and by site. */
static void test_coverage_and_sites(void **test)
{
    (void)test;
    world_init();
    for (int f = 0; f < F; f++) {
        w->future[0][f][0] = w->target[0][f][0] + 1.17F; /* 50 %: 1.1774 */
        w->future[1][f][0] = w->target[1][f][0] + 1.80F; /* 80 %: 1.7941, 95 %: 2.4477 */
    }
    w->has_sites = true;
    w->site[1] = 3;
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("coverage_50", 2), 0.5, 1e-9);
    assert_float_equal(reported("coverage_80", 2), 0.5, 1e-9);
    assert_float_equal(reported("coverage_95", 2), 1, 1e-9);
    assert_float_equal(reported("reliability/level", 4), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 3), 0, 1e-9);
    assert_float_equal(reported("reliability/share", 4), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 8), 1, 1e-9);
    assert_float_equal(reported("sites/0/samples", 0), 1, 1e-9);
    assert_float_equal(reported("sites/0/rmse_m", 0), 1.17, 1e-5);
    assert_float_equal(reported("sites/3/rmse_m", 4), 1.80, 1e-5);
    assert_float_equal(reported("sites/3/coverage_80", 4), 0, 1e-9);
    phase_close(&p);
}

static void test_evaluation_without_windows_says_so(void **test)
{
    (void)test;
    world_init();
    memset(w->complete, 0, sizeof(w->complete));
    memset(w->risk_state, 3, sizeof(w->risk_state));
    phase p;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_true(isnan(w->value[1][0]) && isnan(w->value[6][0]));
    assert_non_null(strstr(w->host.log, "no complete window of 2 s history and 5 s future"));
    phase_close(&p);
}

static void test_evaluation_refuses_what_is_not_finite(void **test)
{
    (void)test;
    dt_progress out = {.struct_size = sizeof(out)};
    phase p;
    world_init();
    w->future[0][4][1] = NAN;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EDIVERGED);
    assert_non_null(strstr(w->host.message, "positions at 5 s are not finite"));
    phase_close(&p);

    world_init();
    w->risk[1] = INFINITY;
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EDIVERGED);
    assert_non_null(strstr(w->host.message, "risk of a vehicle is inf"));
    phase_close(&p);

    world_init();
    w->absent = "spread";
    assert_int_equal(phase_open(&p, at_1_hz), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_EPLUGIN);
    assert_non_null(strstr(w->host.message, "no values named spread"));
    phase_close(&p);
}

static void test_refusals_before_training(void **test)
{
    (void)test;
    const struct {
        const char *set[6];
        const char *missing, *text;
        uint64_t n_samples;
        dt_status st;
    } bad[] = {
        {{"rate_hz=3", NULL}, NULL, "rate_hz 3: a step of 333.333 ms", 7, DT_ECONFIG},
        {{"rate_hz=1", "history_s=0.1", NULL}, NULL, "history_s 0.1 and horizon_s 5", 7, DT_ECONFIG},
        {{"nll_weight=0", "position_weight=0", "risk_weight=0", NULL}, NULL, "nothing to train", 7, DT_ECONFIG},
        {{"rate_hz=1", "history_s=3", NULL},
         NULL,
         "windows of 2 + 5 steps, phase1_world_model asked for 3 + 5",
         7,
         DT_ESHAPE},
        {{"rate_hz=1", "history_s=2", NULL}, "target_weight", "no field target_weight", 7, DT_ESHAPE},
        {{"rate_hz=1", "history_s=2", NULL}, NULL, "split train of the data has no samples", 0, DT_EDATA},
    };
    for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        phase p;
        world_init();
        w->missing = bad[i].missing;
        w->n_samples = bad[i].n_samples;
        assert_int_equal(phase_open(&p, bad[i].set), bad[i].st);
        if (strstr(w->host.message, bad[i].text) == NULL) {
            fail_msg("case %u: \"%s\" lacks \"%s\"", i, w->host.message, bad[i].text);
        }
        phase_close(&p);
    }
}

static dt_status open_and_evaluate(phase *p)
{
    dt_progress out = {.struct_size = sizeof(out)};
    DT_TRY_H(phase_open(p, at_1_hz));
    DT_TRY_H(p->ops->start(p->self));
    return p->ops->evaluate(p->self, &out);
}

static void test_every_failed_allocation_leaves_nothing_behind(void **test)
{
    (void)test;
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        phase p;
        world_init();
        w->host.fail_alloc = n;
        const dt_status st = open_and_evaluate(&p);
        failed = w->host.fail_alloc == 0;
        assert_int_equal(st, failed ? DT_ENOMEM : DT_OK);
        assert_true(!failed || strstr(w->host.message, "no memory for") != NULL);
        phase_close(&p);
    }
}

static void test_defaults_of_host_sections(void **test)
{
    (void)test;
    const dt_component *c = mock_load("phases", "phase1_world_model", "phase1_world_model");
    assert_non_null(c);
    const char *const *d = c->extension("dtrain.defaults/1");
    static const char *const want[] = {"data.batch=64",
                                       "training.epochs=50",
                                       "training.learning_rate=1e-3",
                                       "training.warmup_epochs=5",
                                       "training.weight_decay=1e-4",
                                       "training.gradient_clip=1.0",
                                       "training.eta_min=1e-6",
                                       "training.eval_interval=10",
                                       "training.save_interval=5"};
    for (uint32_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint32_t k = 0;
        while (d[k] != NULL && strcmp(d[k], want[i]) != 0) {
            k++;
        }
        if (d[k] == NULL) {
            fail_msg("no default %s", want[i]);
        }
    }
    assert_null(c->extension("dtrain.defaults/2"));
}

/* The temperature is that of deviations which make what was recorded most likely: at the end of an epoch alone. */
static void test_temperature_is_fitted(void **test)
{
    (void)test;
    static const char *const set[] = {"rate_hz=1", "history_s=2", "horizon_s=5", "calibration_folds=4", NULL};
    world_init();
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    assert_int_equal(phase_open(&p, set), DT_ECONFIG);
    assert_non_null(strstr(w->host.message, "the world model has no temperature to fit"));
    phase_close(&p);

    world_init();
    w->has_temperature = true;
    for (int v = 0; v < 2; v++) {
        for (int f = 0; f < F; f++) { /* sigma is 1; sqrt(2) of the best one along x, 0 along y */
            w->future[v][f][0] = w->target[v][f][0] + (float)(sqrt(2) * exp(0.4));
            w->temperature[f][1] = 0.1F * (float)f;
        }
    }
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_non_null(strstr(w->overrides, "split=train history_s=2 horizon_s=5 rate_hz=1 calibration_folds=4 "));
    assert_non_null(strstr(w->overrides, "split=eval history_s=2 horizon_s=5 rate_hz=1 split=calibration"));
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_true(w->temperature[0][0] == 0);
    w->epoch_end = true;
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    for (int f = 0; f < F; f++) {
        assert_float_equal(w->temperature[f][0], 0.4, 1e-6);
        assert_float_equal(w->temperature[f][1], 0.4 + 0.1 * f, 1e-6);
    }
    /* the mean of 0.4 and 0.4 .. 0.8 */
    assert_non_null(strstr(w->reports, "calibration/temperature=0.5\n"));
    memset(w->complete, 0, sizeof(w->complete)); /* nothing to fit it to: it stays */
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_float_equal(w->temperature[0][0], 0.4, 1e-6);
    phase_close(&p);
}

/* Radii of one class: of two vehicles, one 3 deviations off and one 7. Regions of 60 % and less hold one of two, which
 * no factor does; evaluation is by them, and tells them. */
static void test_radii_are_fitted(void **test)
{
    (void)test;
    static const char *const set[] = {"rate_hz=1", "history_s=2", "horizon_s=5", "calibration_folds=4", NULL};
    phase p;
    dt_progress out = {.struct_size = sizeof(out)};
    world_init();
    w->has_temperature = true;
    w->regions_dims = "149";
    assert_int_equal(phase_open(&p, set), DT_ESHAPE);
    assert_non_null(strstr(w->host.message, "output regions is [149]; phase1_world_model takes [150]"));
    phase_close(&p);

    world_init();
    w->has_temperature = true;
    w->regions_dims = "150";
    for (int f = 0; f < F; f++) {
        w->future[0][f][0] = w->target[0][f][0] + 3;
        w->future[1][f][0] = w->target[1][f][0] + 7;
    }
    w->epoch_end = true;
    assert_int_equal(phase_open(&p, set), DT_OK);
    assert_int_equal(p.ops->start(p.self), DT_OK);
    assert_string_equal(w->graph.error, "");
    assert_int_equal(p.ops->iterate(p.self, &out), DT_OK);
    assert_non_null(strstr(w->reports, "calibration/windows=2\n"));
    assert_int_equal(p.ops->evaluate(p.self, &out), DT_OK);
    assert_float_equal(reported("coverage_50", 0), 1, 1e-9); /* rank 2 of 2 */
    assert_float_equal(reported("reliability/share", 2), 0.5, 1e-9);
    assert_float_equal(reported("reliability/share", 9), 1, 1e-9);
    assert_true(reported("regions/steady", 0) >= 3 && reported("regions/steady", 0) < 3 * 1.014);
    assert_true(reported("regions/steady", 9) >= 7 && reported("regions/steady", 9) < 7 * 1.014);
    for (int i = 0; i < 150; i++) { /* the same in every class: the others have none of their own */
        assert_float_equal(w->regions[i], w->regions[i % 50], 1e-5);
    }
    phase_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binds_by_role_and_size),
        cmocka_unit_test(test_records_three_losses_and_three_outputs),
        cmocka_unit_test(test_distances_are_learnt_where_they_are_asked_for),
        cmocka_unit_test(test_horizon_grows_and_weights_sum_to_one),
        cmocka_unit_test(test_evaluation_figures),
        cmocka_unit_test(test_figures_of_several_futures),
        cmocka_unit_test(test_coverage_and_sites),
        cmocka_unit_test(test_evaluation_without_windows_says_so),
        cmocka_unit_test(test_evaluation_refuses_what_is_not_finite),
        cmocka_unit_test(test_temperature_is_fitted),
        cmocka_unit_test(test_radii_are_fitted),
        cmocka_unit_test(test_refusals_before_training),
        cmocka_unit_test(test_every_failed_allocation_leaves_nothing_behind),
        cmocka_unit_test(test_defaults_of_host_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

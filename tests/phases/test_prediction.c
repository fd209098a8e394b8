/* SPDX-License-Identifier: Apache-2.0
 *
 * The losses of scenes (phases/scenes/prediction.c) over a real graph, against their definitions in double: the normal
 * and mixture likelihoods, squares, distances and the risk, each weighted by what was recorded and by the horizon, with
 * gradients by central differences of the definitions. Missing futures carry values that would show.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/scenes/prediction.h"

#include "unit.h"

#include "base/err.h"
#include "engine/graph/plan.h"

enum { S = 6, F = 5, K = 3, AXES = 2, N = 8, STEPS = F * AXES, ARENA = 1024 };

static float target[S][F][AXES], weight[S][F], future[S][F][AXES], spread[S][F][AXES], horizon[F];
static float futures[S][K][F][AXES], spreads[S][K][F][AXES], probability[S][K];
static float risk[N], risk_label[N], risk_weight[N];
static const dt_port fields[] = {{"target", "S 5 2", DT_F32, 0},    {"target_weight", "S 5", DT_F32, 0},
                                 {"future", "S 5 2", DT_F32, 0},    {"spread", "S 5 2", DT_F32, 0},
                                 {"futures", "S 3 5 2", DT_F32, 0}, {"spreads", "S 3 5 2", DT_F32, 0},
                                 {"probability", "S 3", DT_F32, 0}, {"risk", "N", DT_F32, 0},
                                 {"risk_label", "N", DT_F32, 0},    {"risk_weight", "N", DT_F32, 0},
                                 {"motion", "2 S 6", DT_F32, 0},    {"present", "2 S", DT_F32, 0},
                                 {"seq_key", "S", DT_I64, 0},       {"seq_row", "2 S", DT_I32, 0},
                                 {"nodes", "N 9", DT_F32, 0},       {"rowptr", "N+1", DT_I32, 0},
                                 {"col", "E", DT_I32, 0},           {"edges", "E 4", DT_F32, 0},
                                 {"row_key", "N", DT_I64, 0},       {"embedding", "N 4", DT_F32, 0}};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), N_READ = 10 };
static void *const field[N_FIELDS] = {target,  weight,      future, spread,     futures,
                                      spreads, probability, risk,   risk_label, risk_weight};

static double draw(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

static void fill(void)
{
    for (int s = 0; s < S; s++) {
        for (int f = 0; f < F; f++) {
            const bool is_missing = s == 2 || (s == 4 && f >= 2);
            weight[s][f] = is_missing ? 0 : 1;
            horizon[f] = f == F - 1 ? 0.1F : 0.225F;
            for (int d = 0; d < AXES; d++) {
                target[s][f][d] = is_missing ? 1e4F : (float)(3 * draw(s * 31 + f * 5 + d));
                future[s][f][d] = (float)(3 * draw(s * 13 + f * 3 + d + 7));
                spread[s][f][d] = (float)(0.6 * draw(s * 3 + f * 11 + d + 2));
                for (int k = 0; k < K; k++) {
                    futures[s][k][f][d] = (float)(3 * draw(s * 17 + k * 41 + f * 5 + d));
                    spreads[s][k][f][d] = (float)(0.6 * draw(s * 5 + k * 7 + f * 3 + d));
                }
            }
        }
        probability[s][0] = 0.6F;
        probability[s][1] = 0.4F;
        probability[s][2] = 0; /* held at 1e-12 */
    }
    for (int n = 0; n < N; n++) {
        risk[n] = (float)(4 * draw(n + 3));
        risk_label[n] = (float)(n % 2);
        risk_weight[n] = n == 3 ? 0 : 1 + 0.5F * (float)(n % 3);
    }
}

/* ---- definitions ------------------------------------------------------------------------------------------------- */

typedef struct values {
    double nll, position, distance, risk, temperature;
} values;

static double density(double x, double mean, double log_sigma) /* -log N */
{
    const double z = (x - mean) / exp(log_sigma);
    return 0.5 * z * z + log_sigma + 0.5 * log(2 * M_PI);
}

/* shift: added to all predicted positions; temperature [2F]: part of the spreads that the model predicts, NULL: none */
static values define(bool is_mixture, const double *shift, const double *temperature)
{
    values v = {0};
    for (int s = 0; s < S; s++) {
        double likely[K] = {0}, sum = 0;
        for (int f = 0; f < F; f++) {
            const double w = (double)weight[s][f] * (double)horizon[f];
            if (w == 0) {
                continue;
            }
            double square = 0;
            for (int d = 0; d < AXES; d++) {
                const double q = (double)target[s][f][d], t = temperature != NULL ? temperature[f * AXES + d] : 0;
                const double m = (double)future[s][f][d] + shift[d];
                square += (q - m) * (q - m);
                v.nll += is_mixture ? 0 : w * density(q, m, (double)spread[s][f][d] - t);
                for (int k = 0; k < K; k++) {
                    likely[k] +=
                        w * density(q, (double)futures[s][k][f][d] + shift[d], (double)spreads[s][k][f][d] - t);
                }
            }
            v.position += w * square;
            v.distance += w * sqrt(square + 0.05 * 0.05);
        }
        for (int k = 0; k < K; k++) {
            sum += fmax((double)probability[s][k], 1e-12) * exp(-5 * likely[k]);
        }
        v.nll += is_mixture ? -log(sum) / 5 : 0;
        for (int i = 0; i < STEPS && temperature != NULL; i++) {
            v.temperature += temperature[i] / STEPS;
        }
    }
    for (int n = 0; n < N; n++) {
        const double p = 1 / (1 + exp(-(double)risk[n])), y = (double)risk_label[n];
        v.risk -= (double)risk_weight[n] * (y * log(p) + (1 - y) * log(1 - p));
    }
    return v;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static int perception, world; /* their addresses are models */

static bool is_offered(const dt_named *in, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(in[i].name, name) == 0) {
            return in[i].tensor != NULL;
        }
    }
    return false;
}

/* Each output is the field of its name; positions are shifted by a parameter. */
static dt_status model(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out, uint32_t n_out)
{
    const dt_graph_api *api = g->api;
    assert_true(is_offered(in, n_in, (void *)m == &world ? "present" : "row_key"));
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = out[i].name;
        const bool is_param = strcmp(name, "temperature") == 0 || strcmp(name, "regions") == 0;
        out[i].tensor = is_param ? api->param(g, name) : api->input(g, name);
        if (strcmp(name, "future") == 0 || strcmp(name, "futures") == 0) {
            out[i].tensor = dt_add(g, out[i].tensor, api->param(g, "shift"));
        }
    }
    return api->status(g);
}

typedef struct result {
    double loss[DT_GRAPH_MAX_LOSSES], shift[AXES], temperature[STEPS];
} result;

static void run_plan(dt_graph *g, const dt_param_table *table, const double *seed, const double *const *at, result *out)
{
    static const int64_t live[] = {S, N, 1, 1};
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .training = true, .reuse = true, .cap = live};
    const dt_kernel_run how = {.training = 1};
    const float *const inputs[] = {horizon};
    double params[ARENA] = {0}, grads[ARENA] = {0};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_true(table->total <= ARENA);
    for (int i = 0; i < 2; i++) {
        memcpy(params + table->param[i].offset, at[i], (size_t)table->param[i].count * sizeof(double));
    }
    if (dt_plan_compile(g, &pd, &p) != DT_OK || dt_exec_create(p, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const dt_exec_feed feed = {.size = live,
                               .field = field,
                               .step_input = inputs,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = out->loss,
                               .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(out->shift, grads + table->param[0].offset, sizeof(out->shift));
    memcpy(out->temperature, grads + table->param[1].offset, sizeof(out->temperature));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

static void near(const char *what, double is, double want, double tolerance)
{
    if (!(fabs(is - want) <= tolerance * (1 + fabs(want)))) {
        fail_msg("%s: %.12g is not %.12g", what, is, want);
    }
}

static double value_of(const char *name, const values *v)
{
    return strcmp(name, "nll") == 0        ? v->nll
           : strcmp(name, "position") == 0 ? v->position
           : strcmp(name, "distance") == 0 ? v->distance
           : strcmp(name, "risk") == 0     ? v->risk
                                           : v->temperature;
}

static void check(bool is_mixture, bool has_temperature, bool has_perception)
{
    static const char *const symbol[] = {"S", "N", "E", "B"}, *const param[] = {"shift", "temperature", "regions"};
    static const int64_t dim[] = {AXES, STEPS, 150};
    const double shift[AXES] = {0.25, -0.5};
    double temperature[STEPS];
    dt_param_table table = {0};
    dt_graph *g = NULL;
    const dt_graph_loss *loss = NULL;
    prediction p = {.F = F, .T = 2, .K = is_mixture ? K : 0, .world = (dt_model *)(void *)&world};
    p.config = (prediction_config){.nll_weight = 1, .position_weight = 0.5, .risk_weight = 2, .distance_weight = 0.125};
    p.has_temperature = p.has_regions = p.calibrates = has_temperature;
    p.perception = has_perception ? (dt_model *)(void *)&perception : NULL;
    fill();
    for (int i = 0; i < STEPS; i++) {
        temperature[i] = 0.3 * draw(i + 20);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_param_table_add(&table, "m", param[i], &dim[i], 1, DT_INIT_ZERO, 0), DT_OK);
    }
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 4, .field = fields, .n_fields = N_FIELDS, .params = &table};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_set_scope(g, "m");
    dt_graph_api api = *g->api;
    api.model = model;
    g->api = &api;
    if (prediction_record(&p, g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const values want = define(is_mixture, shift, has_temperature ? temperature : NULL);
    const uint32_t n = dt_graph_losses(g, &loss);
    assert_int_equal(n, 3 + has_temperature + has_perception);
    for (uint32_t i = 0; i < n; i++) {
        const bool is_risk = strcmp(loss[i].name, "risk") == 0, is_apart = strcmp(loss[i].name, "temperature") == 0;
        double seed[DT_GRAPH_MAX_LOSSES] = {0};
        const double *const at[] = {shift, temperature};
        result got = {0};
        seed[i] = 1;
        run_plan(g, &table, seed, at, &got);
        near(loss[i].name, got.loss[i], value_of(loss[i].name, &want), 1e-6); /* fields are f32 */
        assert_string_equal(loss[i].symbol, is_risk ? "N" : "S");
        const double weights[] = {1, 0.5, 0.125, 2, 0};
        static const char *const names[] = {"nll", "position", "distance", "risk", "temperature"};
        for (int k = 0; k < 5; k++) {
            assert_true(strcmp(loss[i].name, names[k]) != 0 || loss[i].weight == weights[k]);
        }
        for (int a = 0; a < AXES; a++) {
            double more[AXES] = {shift[0], shift[1]}, less[AXES] = {shift[0], shift[1]};
            const double h = 1e-5;
            more[a] += h;
            less[a] -= h;
            const values up = define(is_mixture, more, has_temperature ? temperature : NULL);
            const values down = define(is_mixture, less, has_temperature ? temperature : NULL);
            near(loss[i].name, got.shift[a], (value_of(loss[i].name, &up) - value_of(loss[i].name, &down)) / (2 * h),
                 1e-6);
        }
        for (int k = 0; k < STEPS && is_apart; k++) {
            near("d temperature", got.temperature[k], (double)S / STEPS, 1e-9);
        }
    }
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
}

static void test_losses_are_as_defined(void **unused)
{
    for (int i = 0; i < 8; i++) {
        check(i % 2 == 1, i / 2 % 2 == 1, i / 4 == 1);
    }
}

/* ---- the horizon ------------------------------------------------------------------------------------------------- */

static float given[F];

static dt_status set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_string_equal(name, "horizon_weight");
    assert_int_equal(n, F);
    memcpy(given, value, sizeof(given));
    return DT_OK;
}

/* At least one step and at most all of them; weights sum to 1, and the last step counts by its fraction. */
static void test_horizon_is_within_the_future(void **unused)
{
    static const double asked[] = {0, 0.4, 0.5, 1.25, 2.5, 2.6, 100}, want[] = {0.5, 0.5, 0.5, 1.25, 2.5, 2.5, 2.5};
    static const dt_train_api train = {.struct_size = sizeof(train), .set = set};
    float room[F];
    prediction p = {.F = F, .weight = room};
    p.config.rate_hz = 2;
    for (int i = 0; i < 7; i++) {
        double got = 0, sum = 0;
        assert_int_equal(prediction_set_horizon(&p, &train, NULL, asked[i], &got), DT_OK);
        near("horizon", got, want[i], 1e-12);
        for (int f = 0; f < F; f++) {
            const double share = fmin(fmax(2 * want[i] - f, 0), 1) / (2 * want[i]);
            near("weight", (double)given[f], share, 1e-6);
            sum += (double)given[f];
        }
        near("sum", sum, 1, 1e-6);
    }
}

static dt_status check_seconds(double history_s, double horizon_s)
{
    mock_host host;
    mock_host_init(&host);
    const prediction_config c = {.rate_hz = 10, .history_s = history_s, .horizon_s = horizon_s, .nll_weight = 1};
    return prediction_check(&host.host, "phase1", &c);
}

/* History and horizon hold a step each. */
static void test_seconds(void **state)
{
    assert_int_equal(check_seconds(0.1, 0.1), DT_OK);
    assert_int_equal(check_seconds(0.1, 0.04), DT_ECONFIG);
    assert_int_equal(check_seconds(0.04, 0.1), DT_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seconds), cmocka_unit_test(test_losses_are_as_defined),
                                       cmocka_unit_test(test_horizon_is_within_the_future)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * phases/scenes/normalise.c and dtrain/traffic/normalise.h: what statistics by hand make of features, by kind; when a
 * perception is fitted, and when it stays as it is.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "dtrain/traffic/normalise.h"
#include "dtrain/svc/comm.h"
#include "scenes/normalise.h"

#include "unit.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static void assert_normaliser(dt_normaliser k, double shift, double scale, uint32_t is_left)
{
    assert_true(k.shift == shift);
    assert_true(k.scale == scale);
    assert_int_equal(k.is_left, is_left);
}

static void test_measures(void **test)
{
    const dt_field_stat speed = {.n = 100, .min = 0, .max = 30, .mean = 15, .std = 5}, none = {.n = 0};
    assert_normaliser(dt_normaliser_measure(&speed, 10), -15, 0.2, 0);
    assert_normaliser(dt_normaliser_measure(&none, 10), 0, 1, 1);
    /* the least deviation that counts is a hundredth of the unit */
    const dt_field_stat little = {.n = 2, .mean = 4, .std = 0.25}, less = {.n = 2, .mean = 4, .std = 0.2499};
    assert_normaliser(dt_normaliser_measure(&little, 25), -4, 4, 0);
    assert_normaliser(dt_normaliser_measure(&less, 25), 0, 1, 1);
    const dt_field_stat alike = {.n = 9, .min = 4, .max = 4, .mean = 4, .std = 0};
    assert_normaliser(dt_normaliser_measure(&alike, 1), 0, 1, 1);
    const dt_field_stat wild[] = {{.n = 9, .mean = NAN, .std = 1},
                                  {.n = 9, .mean = 1, .std = NAN},
                                  {.n = 9, .mean = INFINITY, .std = 1},
                                  {.n = 9, .mean = 1, .std = INFINITY},
                                  {.n = 9, .mean = 1, .std = -1}};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        assert_normaliser(dt_normaliser_measure(&wild[i], 1), 0, 1, 1);
    }
}

static void test_positions_and_accelerations(void **test)
{
    const dt_field_stat x = {.n = 9, .min = -400, .max = 300}, y = {.n = 9, .min = -20, .max = 300};
    assert_normaliser(dt_normaliser_position(&x, &y, 30), 0, 1.0 / 500, 0); /* the corner of 400 by 300 */
    const dt_field_stat alone = {.n = 9}, none = {.n = 0}, wild = {.n = 9, .min = -INFINITY, .max = 1};
    assert_normaliser(dt_normaliser_position(&alone, &alone, 30), 0, 1, 1);
    assert_normaliser(dt_normaliser_position(&none, &y, 30), 0, 1, 1);
    assert_normaliser(dt_normaliser_position(&x, &wild, 30), 0, 1, 1);
    assert_normaliser(dt_normaliser_acceleration(2), 0, 0.4, 0); /* 5 m/s^2 in units of 2 m/s^2 are 1 */
}

/* ---- a host ------------------------------------------------------------------------------------------------------ */

struct dt_data {
    int unused;
};
struct dt_train {
    int unused;
};
struct dt_model {
    int unused;
};

typedef struct constant {
    const char *name;
    uint64_t n;
    float value[DT_NODE_FEATURES];
} constant;

static struct world {
    mock_host host;
    constant constant[4];
    bool has_constants, is_trained;
    dt_field_stat node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
    dt_status reading, others; /* what statistics say here, and the worst of other ranks */
    int asked, sets, agreements;
    struct dt_data data;
    struct dt_train train;
    struct dt_model model;
    prediction p;
} * w;

static dt_status data_statistics(const dt_data *d, const char *field, dt_field_stat *out, uint32_t n)
{
    const bool is_node = strcmp(field, "nodes") == 0;
    assert_ptr_equal(d, &w->data);
    assert_true(is_node || strcmp(field, "edges") == 0);
    assert_int_equal(n, is_node ? DT_NODE_FEATURES : DT_EDGE_FEATURES);
    memcpy(out, is_node ? w->node : w->edge, n * sizeof(*out));
    w->asked++;
    return w->reading;
}

static dt_status parameter(const dt_train *t, uint64_t i, dt_train_param *out)
{
    static const char *const weight[] = {"perception.in.w", "world.head.w"};
    assert_int_equal(out->struct_size, sizeof(*out));
    if (i < 2) {
        *out = (dt_train_param){.name = weight[i], .is_trained = i == 1 || w->is_trained};
        return DT_OK;
    }
    if (i >= 6 || !w->has_constants) {
        return DT_ENOTFOUND;
    }
    *out = (dt_train_param){.name = w->constant[i - 2].name, .is_constant = 1};
    return DT_OK;
}

static constant *find(const char *name, uint64_t n)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(w->constant[i].name, name) == 0) {
            assert_int_equal(w->constant[i].n, n);
            return &w->constant[i];
        }
    }
    fail_msg("no constant %s", name);
    return NULL;
}

static dt_status constant_get(dt_train *t, const char *name, float *out, uint64_t n)
{
    memcpy(out, find(name, n)->value, n * sizeof(*out));
    return DT_OK;
}

static dt_status constant_set(dt_train *t, const char *name, const float *value, uint64_t n)
{
    memcpy(find(name, n)->value, value, n * sizeof(*value));
    w->sets++;
    return DT_OK;
}

static uint32_t rank(const dt_host *h)
{
    return 0;
}

static dt_status agree(const dt_host *h, dt_status mine)
{
    w->agreements++;
    return mine < 0 ? mine : w->others;
}

static const dt_bind_api bind_api = {.struct_size = sizeof(dt_bind_api), .data_statistics = data_statistics};
static const dt_train_api train_api = {.struct_size = sizeof(dt_train_api),
                                       .parameter = parameter,
                                       .constant_get = constant_get,
                                       .constant_set = constant_set};
static const dt_comm_api comm_api = {.struct_size = sizeof(dt_comm_api), .rank = rank, .agree = agree};

/* Statistics as the data scales features: speeds of 15 m/s that deviate by 5 m/s are 1.5 and 0.5. */
static int set_up(void **test)
{
    static const constant first[4] = {{"perception.constant.node_shift", DT_NODE_FEATURES, {0}},
                                      {"perception.constant.node_scale", DT_NODE_FEATURES, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
                                      {"perception.constant.edge_shift", DT_EDGE_FEATURES, {0}},
                                      {"perception.constant.edge_scale", DT_EDGE_FEATURES, {1, 1, 1, 1}}};
    w = calloc(1, sizeof(*w));
    assert_non_null(w);
    mock_host_init(&w->host);
    mock_host_serve(&w->host, DT_SVC_COMM, &comm_api);
    memcpy(w->constant, first, sizeof(first));
    w->has_constants = w->is_trained = true;
    w->p = (prediction){.h = &w->host.host, .bind = &bind_api, .phase = "phase1", .perception = &w->model};
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        w->node[d] = (dt_field_stat){.n = 50, .min = -1, .max = 1, .mean = 0.5, .std = 0.25};
    }
    w->node[0] = (dt_field_stat){.n = 50, .min = -4, .max = 2, .mean = 0, .std = 1};
    w->node[1] = (dt_field_stat){.n = 50, .min = -1, .max = 3, .mean = 0, .std = 1};
    w->node[2] = (dt_field_stat){.n = 50, .min = 0, .max = 3, .mean = 1.5, .std = 0.5};
    w->node[7] = (dt_field_stat){.n = 50}; /* no stop line anywhere */
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        w->edge[d] = (dt_field_stat){.n = 90, .min = -9, .max = 9, .mean = d, .std = 1 + d};
    }
    return 0;
}

static int tear_down(void **test)
{
    free(w);
    return 0;
}

static dt_status fit(int is_forced)
{
    return normalise_fit(&w->p, &train_api, &w->train, &w->data, is_forced);
}

static void assert_numbers(int i, const float *want)
{
    assert_memory_equal(w->constant[i].value, want, w->constant[i].n * sizeof(*want));
}

static void test_fitted_by_kind(void **test)
{
    /* positions: the corner of 4 by 3; 1 = 30 m, so 150 m. acceleration: 5 m/s^2 are 2.5 units. length: mean 0.5 */
    static const float node_shift[] = {0, 0, -1.5F, 0, 0, 0, -0.5F, 0, 0};
    static const float node_scale[] = {0.2F, 0.2F, 2, 0.4F, 1, 1, 4, 1, 1};
    static const float edge_shift[] = {0, -1, -2, -3}, edge_scale[] = {1, 1 / 2.F, 1 / 3.F, 1 / 4.F};
    assert_int_equal(fit(0), DT_OK);
    assert_numbers(0, node_shift);
    assert_numbers(1, node_scale);
    assert_numbers(2, edge_shift);
    assert_numbers(3, edge_scale);
    assert_int_equal(w->sets, 4);
    assert_int_equal(w->agreements, 1);
    assert_true(mock_names(w->host.log, "stop distance"));

    /* what is fitted stays, unless it is asked for */
    w->node[2].std = 1;
    assert_int_equal(fit(0), DT_OK);
    assert_int_equal(w->sets, 4);
    assert_int_equal(w->asked, 2);
    assert_true(mock_names(w->host.log, "phase1.refit_normalisation"));
    assert_int_equal(fit(1), DT_OK);
    assert_int_equal(w->sets, 8);
    assert_true(w->constant[1].value[2] == 1);
}

/* A store in which nothing varies still counts as fitted. */
static void test_nothing_varies(void **test)
{
    static const float scale[] = {1, 1, 1, 0.4F, 1, 1, 1, 1, 1};
    memset(w->node, 0, sizeof(w->node));
    memset(w->edge, 0, sizeof(w->edge));
    assert_int_equal(fit(0), DT_OK);
    assert_numbers(1, scale);
    assert_true(mock_names(w->host.log, "x y speed length stop distance gap lateral offset closing inverse"));
    assert_int_equal(fit(0), DT_OK);
    assert_int_equal(w->sets, 4);
}

static void test_left_alone(void **test)
{
    w->p.perception = NULL;
    assert_int_equal(fit(1), DT_OK);
    w->p.perception = &w->model;
    w->has_constants = false;
    assert_int_equal(fit(0), DT_OK);
    assert_int_equal(fit(1), DT_ECONFIG);
    assert_true(mock_names(w->host.message, "phase1.refit_normalisation normalise \"store\""));
    w->has_constants = true;
    w->is_trained = false;
    assert_int_equal(fit(0), DT_OK);
    assert_true(mock_names(w->host.log, "frozen"));
    assert_int_equal(fit(1), DT_ECONFIG);
    assert_true(mock_names(w->host.message, "phase1.refit_normalisation frozen"));
    assert_int_equal(w->sets, 0);
    assert_int_equal(w->asked, 0);
}

/* Nothing is set before all ranks have read. */
static void test_failures(void **test)
{
    w->reading = DT_EDATA;
    assert_int_equal(fit(0), DT_EDATA);
    assert_int_equal(w->agreements, 1);
    w->reading = DT_OK;
    w->others = DT_EIO;
    assert_int_equal(fit(0), DT_EIO);
    assert_int_equal(w->sets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_positions_and_accelerations),
        cmocka_unit_test_setup_teardown(test_fitted_by_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_varies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

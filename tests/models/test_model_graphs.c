/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models bench in the host's real graph: every output has the shape its port promises, an untrained
 * world model is constant velocity, and recomputing saves memory without a changed bit.
 */
#include "bench.h"

#include "tensor/dtype.h"
#include "tensor/shape.h"

static const char *const symbol[] = {"N", "E", "S", "B"};
enum { N_SYMBOLS = 4 };

static void record(bench *m, const char *id, const char *const *set, const dt_dim *dims)
{
    assert_int_equal(bench_create(m, id, set, dims, 4), DT_OK);
    bench_record(m, symbol, N_SYMBOLS);
}

static void check_model(const char *id, const char *const *set)
{
    static const dt_dim dims[] = {{"H", 24}, {"T", 3}, {"F", 5}, {"dt_ms", 200}};
    bench m;
    record(&m, id, set, dims);
    bench_close(&m);
}

/* ---- recomputing ------------------------------------------------------------------------------------------------ */

enum { LIVE = 24 };

/* Numbers of all signs; row pointers count up by one, so that a row has one edge, and the edges go round. */
static void *new_field(const dt_port *port)
{
    static const int64_t live[N_SYMBOLS] = {LIVE, LIVE, LIVE, LIVE};
    dt_shape shape;
    int64_t n = 0;
    assert_int_equal(dt_shape_parse(port->dims, port->dtype, symbol, N_SYMBOLS, &shape), DT_OK);
    assert_true(dt_shape_count(&shape, live, &n));
    void *p = calloc((size_t)n, dt_dtype_bytes(port->dtype));
    for (int64_t i = 0; i < n && port->dtype != DT_I64; i++) { /* keys of dropout stay 0 */
        if (port->dtype == DT_I32) {
            ((int32_t *)p)[i] = (int32_t)(n == LIVE ? (i + 1) % LIVE : i);
        } else {
            ((float *)p)[i] = strcmp(port->name, "present") == 0 ? 1 : (float)(i * 7 % 23) / 11 - 1;
        }
    }
    return p;
}

/* The gradient of the sum of all outputs, and the bytes it took. */
static float *gradient(const bench *m, bool recompute, dt_plan_info *info_p)
{
    static const int64_t live[N_SYMBOLS] = {LIVE, LIVE, LIVE, LIVE};
    void *field[8] = {NULL};
    const size_t total = (size_t)m->r.table.total;
    float *params = aligned_alloc(64, total * sizeof(float)), *grads = aligned_alloc(64, total * sizeof(float));
    double seed[DT_GRAPH_MAX_LOSSES], loss[DT_GRAPH_MAX_LOSSES] = {0};
    memset(grads, 0, total * sizeof(float));
    assert_int_equal(dt_param_table_init(&m->r.table, 42, params), DT_OK);
    for (uint32_t i = 0; i < m->n_in; i++) {
        field[i] = new_field(&m->in[i]);
    }
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        seed[i] = 1;
    }
    const dt_plan_desc pd = {.lane = DT_LANE_CPU,
                             .training = true,
                             .reuse = true,
                             .poison = true,
                             .fuse = true,
                             .recompute = recompute,
                             .cap = live};
    const dt_kernel_run run = {.training = 1};
    const dt_exec_feed feed = {
        .size = live, .field = field, .params = params, .grads = grads, .loss_seed = seed, .loss = loss, .run = &run};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(m->g, &pd, &p), DT_OK);
    *info_p = *dt_plan_info_get(p);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    for (uint32_t i = 0; i < m->n_in; i++) {
        free(field[i]);
    }
    free(params);
    return grads;
}

/* Recomputing takes at least `saved` of the memory away, and changes no bit. */
static void check_recompute(const char *id, const char *const *set, double saved)
{
    static const dt_dim dims[] = {{"H", 24}, {"T", 6}, {"F", 5}, {"dt_ms", 200}};
    bench m;
    dt_plan_info kept, again;
    record(&m, id, set, dims);
    for (uint32_t i = 0; i < m.n_out; i++) {
        assert_int_equal(m.g->api->loss(m.g, m.out[i].name, dt_sum(m.g, m.to[i]), 1, "1"), DT_OK);
    }
    float *one = gradient(&m, false, &kept), *other = gradient(&m, true, &again);
    assert_memory_equal(one, other, (size_t)m.r.table.total * sizeof(float));
    double sum = 0;
    for (int64_t i = 0; i < m.r.table.total; i++) {
        sum += fabs((double)one[i]);
    }
    assert_true(sum > 0 && isfinite(sum));
    assert_int_equal(kept.n_recomputed, 0);
    assert_true(again.n_recomputed > 0);
    if ((double)again.lower_bound_bytes > (1 - saved) * (double)kept.lower_bound_bytes) {
        fail_msg("%s: %zu bytes with recomputing, %zu without", id, again.lower_bound_bytes, kept.lower_bound_bytes);
    }
    free(one);
    free(other);
    bench_close(&m);
}

static void test_recompute(void **state)
{
    (void)state;
    check_recompute("risk_gnn", (const char *const[]){"hidden=32", "heads=4", "layers=4", NULL}, 0.3);
    check_recompute("risk_gnn", (const char *const[]){"hidden=32", "heads=4", "layers=4", "layer=transformer", NULL},
                    0.4);
    check_recompute("world_lstm", (const char *const[]){"hidden=16", "layers=3", NULL}, 0.3);
    check_recompute("world_gru", (const char *const[]){"hidden=16", "layers=3", NULL}, 0.3);
}

/* ---- untrained models compute ----------------------------------------------------------------------------------- */

enum { N_SEQ = 3, STEPS = 4, FUTURE = 5, EMBEDDING = 6 };

/* Runs a world model with its initial weights: future and spread [N_SEQ,FUTURE,2]. */
static void run_world(const char *id, float motion[STEPS][N_SEQ][6], float *future, float *spread)
{
    static const dt_dim dims[] = {{"H", EMBEDDING}, {"T", STEPS}, {"F", FUTURE}, {"dt_ms", 200}};
    static const int64_t live[N_SYMBOLS] = {0, 0, N_SEQ, 0};
    bench m;
    record(&m, id, NULL, dims);

    float *params = calloc((size_t)m.r.table.total + 64, sizeof(*params));
    assert_non_null(params);
    assert_int_equal(dt_param_table_init(&m.r.table, 42, params), DT_OK);
    float history[STEPS][N_SEQ][EMBEDDING], present[STEPS][N_SEQ];
    for (int i = 0; i < STEPS * N_SEQ; i++) {
        (&present[0][0])[i] = 1;
        for (int k = 0; k < EMBEDDING; k++) {
            (&history[0][0][0])[i * EMBEDDING + k] = (float)((i * 7 + k * 3) % 11) / 5 - 1;
        }
    }
    const int64_t key[N_SEQ] = {0};
    const void *field[4] = {motion};
    if (m.n_in == 4) { /* with dropout, which is the identity here */
        field[0] = history;
        field[1] = motion;
        field[2] = present;
        field[3] = key;
    }
    const dt_plan_desc pd = {.lane = DT_LANE_REF32, .reuse = true, .cap = live};
    const dt_kernel_run run = {0};
    const dt_exec_feed feed = {.size = live, .field = (void *const *)field, .params = params, .run = &run};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(m.g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(future, dt_exec_output(e, "future")->data, N_SEQ * FUTURE * 2 * sizeof(*future));
    memcpy(spread, dt_exec_output(e, "spread")->data, N_SEQ * FUTURE * 2 * sizeof(*spread));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    free(params);
    bench_close(&m);
}

/* Every world model begins as constant velocity; its uncertainty grows with time. */
static void test_untrained_worlds_are_constant_velocity(void **state)
{
    (void)state;
    static const char *const ids[] = {"world_constant_velocity", "world_lstm", "world_gru"};
    static const double floor_m[] = {0.1, 0.05, 0.05}, along[] = {1.2, 0.6931471806, 0.6931471806},
                        across[] = {0.3, 0.6931471806, 0.6931471806};
    float motion[STEPS][N_SEQ][6] = {{{0}}}, future[N_SEQ][FUTURE][2], spread[N_SEQ][FUTURE][2];
    for (int v = 0; v < N_SEQ; v++) {
        for (int t = 0; t < STEPS; t++) {
            motion[t][v][2] = 1;
            motion[t][v][4] = 100; /* only the last step's speed counts */
        }
        motion[STEPS - 1][v][4] = (float)(3 * v);
    }
    for (int m = 0; m < 3; m++) {
        run_world(ids[m], motion, &future[0][0][0], &spread[0][0][0]);
        for (int v = 0; v < N_SEQ; v++) {
            for (int f = 0; f < FUTURE; f++) {
                const double t = 0.2 * (f + 1);
                assert_float_equal(future[v][f][0], 3 * v * t, 1e-5);
                assert_float_equal(future[v][f][1], 0, 1e-6);
                assert_float_equal(spread[v][f][0], log(floor_m[m] + along[m] * t), 1e-5);
                assert_float_equal(spread[v][f][1], log(floor_m[m] + across[m] * t), 1e-5);
            }
        }
    }
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static void test_risk_gnn(void **state)
{
    (void)state;
    check_model("risk_gnn", (const char *const[]){"hidden=16", "heads=4", "layers=2", NULL});
    check_model("risk_gnn", (const char *const[]){"hidden=16", "heads=4", "layers=2", "layer=transformer", NULL});
    check_model("risk_gnn", NULL);
}

static void test_world_models(void **state)
{
    (void)state;
    check_model("world_lstm", (const char *const[]){"hidden=8", "head=6", NULL});
    check_model("world_gru", (const char *const[]){"hidden=8", "head=6", "layers=1", NULL});
    check_model("world_constant_velocity", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_risk_gnn),
        cmocka_unit_test(test_world_models),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_untrained_worlds_are_constant_velocity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models bench in the host's real graph: every output has the shape its port promises, an untrained
 * world model is constant velocity, and recomputing saves memory without a changed bit.
 */
#include "bench.h"

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

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
    const dt_plan_desc pd = {.kernels = DT_KERNELS_CPU,
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
    check_recompute("risk_gnn", (const char *const[]){"hidden=32", "heads=4", "layers=4", NULL}, 0.3);
    check_recompute("risk_gnn", (const char *const[]){"hidden=32", "heads=4", "layers=4", "layer=transformer", NULL},
                    0.4);
    check_recompute("world_lstm", (const char *const[]){"hidden=16", "layers=3", NULL}, 0.3);
    check_recompute("world_gru", (const char *const[]){"hidden=16", "layers=3", NULL}, 0.3);
}

/* ---- untrained models compute ----------------------------------------------------------------------------------- */

enum { N_SEQ = 3, STEPS = 4, FUTURE = 5, EMBEDDING = 6, LANE = 7, PATH = 5 };

typedef struct wanted { /* an output, copied */
    const char *name;
    float *to;
    size_t n;
} wanted;

static int64_t step_ms = 200; /* of the future */
static float temperature;     /* of a calibrated model, all numbers of it */

/* Runs a world model with its initial weights; bias: of the last layer, NULL: as it begins; path [N_SEQ,PATH,4], NULL:
 * it knows no roads. */
static void run_world_on(const char *id, const char *const *set, float motion[STEPS][N_SEQ][6], const float *bias,
                         float *path, const wanted *want, uint32_t n_want)
{
    const dt_dim dims[] = {{"H", EMBEDDING}, {"T", STEPS}, {"F", FUTURE}, {"dt_ms", step_ms}, {"R", LANE}, {"P", PATH}};
    static const int64_t live[N_SYMBOLS] = {0, 0, N_SEQ, 0};
    bench m;
    assert_int_equal(bench_create(&m, id, set, dims, path != NULL ? 6 : 4), DT_OK);
    bench_record(&m, symbol, N_SYMBOLS);

    float *params = calloc((size_t)m.r.table.total + 64, sizeof(*params));
    assert_non_null(params);
    assert_int_equal(dt_param_table_init(&m.r.table, 42, params), DT_OK);
    for (uint32_t i = 0; bias != NULL && i < m.r.table.n; i++) {
        const dt_param *last = &m.r.table.param[i];
        if (strstr(last->name, "head.1.b") != NULL) {
            memcpy(params + last->offset, bias, (size_t)last->count * sizeof(*bias));
        }
    }
    for (uint32_t i = 0; i < m.r.table.n; i++) {
        const dt_param *q = &m.r.table.param[i];
        for (int64_t k = 0; k < q->count && strcmp(q->name, "m.temperature") == 0; k++) {
            params[q->offset + k] = temperature;
        }
    }
    float history[STEPS][N_SEQ][EMBEDDING], present[STEPS][N_SEQ];
    for (int i = 0; i < STEPS * N_SEQ; i++) {
        (&present[0][0])[i] = 1;
        for (int k = 0; k < EMBEDDING; k++) {
            (&history[0][0][0])[i * EMBEDDING + k] = (float)((i * 7 + k * 3) % 11) / 5 - 1;
        }
    }
    const int64_t key[N_SEQ] = {0};
    float lane[N_SEQ][LANE];
    for (int i = 0; i < N_SEQ * LANE; i++) {
        (&lane[0][0])[i] = (float)(i % 5) / 4;
    }
    const void *field[6] = {motion, NULL, NULL, NULL, lane, path};
    if (m.n_in >= 4) { /* with dropout, which is the identity here */
        field[0] = history;
        field[1] = motion;
        field[2] = present;
        field[3] = key;
    }
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF32, .reuse = true, .cap = live};
    const dt_kernel_run run = {0};
    const dt_exec_feed feed = {.size = live, .field = (void *const *)field, .params = params, .run = &run};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(m.g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    for (uint32_t i = 0; i < n_want; i++) {
        assert_non_null(dt_exec_output(e, want[i].name));
        memcpy(want[i].to, dt_exec_output(e, want[i].name)->data, want[i].n * sizeof(*want[i].to));
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    free(params);
    bench_close(&m);
}

static void run_world(const char *id, const char *const *set, float motion[STEPS][N_SEQ][6], const float *bias,
                      const wanted *want, uint32_t n_want)
{
    run_world_on(id, set, motion, bias, NULL, want, n_want);
}

/* Every world model begins as constant velocity; its uncertainty grows with time. */
static void test_untrained_worlds_are_constant_velocity(void **state)
{
    static const char *const ids[] = {"world_constant_velocity", "world_lstm", "world_gru"};
    static const char *const free_one[] = {"futures=1", "kinematic=false", NULL}, *const kinematic_one[] = {
                                                                                      "futures=1", "kinematic=true",
                                                                                      NULL};
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
    for (int k = 0; k < 6; k++) {
        const int m = k % 3;
        const char *const *one = m == 0 ? NULL : k < 3 ? free_one : kinematic_one;
        const wanted want[] = {{"future", &future[0][0][0], N_SEQ * FUTURE * 2},
                               {"spread", &spread[0][0][0], N_SEQ * FUTURE * 2}};
        run_world(ids[m], one, motion, NULL, want, 2);
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

/* Kinematic vehicles go where they head, and not backwards: the last layer says how fast and where to. */
static void test_kinematic_vehicles(void **state)
{
    enum { COLUMNS = 4 * FUTURE };
    static const char *const set[] = {"futures=1", "kinematic=true", NULL};
    float motion[STEPS][N_SEQ][6] = {{{0}}}, future[N_SEQ][FUTURE][2], bias[COLUMNS] = {0};
    const wanted want = {"future", &future[0][0][0], N_SEQ * FUTURE * 2};
    for (int f = 0; f < FUTURE; f++) {
        bias[f] = -0.8F;                   /* 4 m/s slower */
        bias[FUTURE + f] = f == 4 ? 4 : 0; /* to the left in the last step: tan(45 degrees) */
    }
    motion[STEPS - 1][1][4] = 3; /* stands before that */
    motion[STEPS - 1][2][4] = 6;
    run_world("world_lstm", set, motion, bias, &want, 1);
    for (int f = 0; f < FUTURE; f++) {
        for (int v = 0; v < 2; v++) {
            assert_true(future[v][f][0] == 0 && future[v][f][1] == 0);
        }
        assert_float_equal(future[2][f][0], 2 * 0.2 * (f < 4 ? f + 1 : 4), 1e-5);
        assert_float_equal(future[2][f][1], f < 4 ? 0 : 2 * 0.2, 1e-5);
    }
}

/* Several futures, and what sums them up. */
static void test_several_futures(void **state)
{
    enum { K = 3, COLUMNS = 4 * K * FUTURE + K };
    static const char *const set[] = {"futures=3", "kinematic=true", NULL};
    static const char *const ids[] = {"world_lstm", "world_gru"};
    static const double at_first[K] = {0, -1, 1}; /* m/s^2 */
    float motion[STEPS][N_SEQ][6] = {{{0}}}, bias[COLUMNS] = {0};
    float future[N_SEQ][FUTURE][2], spread[N_SEQ][FUTURE][2], probability[N_SEQ][K];
    float futures[N_SEQ][K][FUTURE][2], spreads[N_SEQ][K][FUTURE][2];
    const wanted want[] = {{"future", &future[0][0][0], N_SEQ * FUTURE * 2},
                           {"spread", &spread[0][0][0], N_SEQ * FUTURE * 2},
                           {"futures", &futures[0][0][0][0], N_SEQ * K * FUTURE * 2},
                           {"spreads", &spreads[0][0][0][0], N_SEQ * K * FUTURE * 2},
                           {"probability", &probability[0][0], N_SEQ * K}};
    motion[STEPS - 1][1][4] = 3;
    motion[STEPS - 1][2][4] = 6;
    bias[COLUMNS - 1] = 0.6931471806F; /* the last one is twice as probable */
    for (int m = 0; m < 2; m++) {
        run_world(ids[m], set, motion, bias, want, 5);
        for (int v = 0; v < N_SEQ; v++) {
            double way[K] = {0};
            for (int f = 0; f < FUTURE; f++) {
                const double t = 0.2 * (f + 1), sigma = 0.05 + 0.6931471806 * t;
                double mean = 0, square = 0;
                for (int j = 0; j < K; j++) {
                    assert_float_equal(probability[v][j], j == 2 ? 0.5 : 0.25, 1e-6);
                    way[j] += 0.2 * fmax(0, 3 * v + at_first[j] * t);
                    assert_float_equal(futures[v][j][f][0], way[j], 1e-5);
                    assert_float_equal(futures[v][j][f][1], 0, 1e-6);
                    assert_float_equal(spreads[v][j][f][0], log(sigma), 1e-5);
                    mean += (j == 2 ? 0.5 : 0.25) * way[j];
                    square += (j == 2 ? 0.5 : 0.25) * way[j] * way[j];
                }
                assert_float_equal(future[v][f][0], mean, 1e-5);
                assert_float_equal(spread[v][f][0], 0.5 * log(sigma * sigma + square - mean * mean), 1e-4);
                assert_float_equal(spread[v][f][1], log(sigma), 1e-5);
            }
        }
    }
}

/* Where roads are known it begins as constant speed along the lane: three pieces of 4 m, each turned 30 degrees further
 * left, and straight on. Of several futures the first keeps its speed. */
static void test_untrained_worlds_follow_their_lane(void **state)
{
    static const char *const ids[] = {"world_lstm", "world_gru"}, *const three[] = {"futures=3", NULL};
    float motion[STEPS][N_SEQ][6] = {{{0}}}, future[N_SEQ][FUTURE][2], futures[N_SEQ][3][FUTURE][2];
    float path[N_SEQ][PATH][4];
    for (int v = 0; v < N_SEQ; v++) {
        motion[STEPS - 1][v][4] = (float)(15 * v - 5); /* -5, 10, 25 m/s: it rolls back, and over the end */
        for (int k = 0; k < PATH; k++) {
            const double a = (k - 1) * M_PI / 6;
            path[v][k][0] = k == 0 ? 0 : (float)(4 * cos(a));
            path[v][k][1] = k == 0 ? 0 : (float)(4 * sin(a));
            path[v][k][2] = k == 0 ? 0 : (float)(-sin(a) + sin(a - M_PI / 6));
            path[v][k][3] = k == 0 ? 1 : (float)(cos(a) - cos(a - M_PI / 6));
        }
    }
    for (int m = 0; m < 4; m++) {
        const wanted one = {"future", &future[0][0][0], N_SEQ * FUTURE * 2};
        const wanted several = {"futures", &futures[0][0][0][0], N_SEQ * 3 * FUTURE * 2};
        run_world_on(ids[m % 2], m < 2 ? NULL : three, motion, NULL, &path[0][0][0], m < 2 ? &one : &several, 1);
        for (int v = 0; v < N_SEQ; v++) {
            for (int f = 0; f < FUTURE; f++) {
                const double s = (15 * v - 5) * 0.2 * (f + 1);
                const float *at = m < 2 ? future[v][f] : futures[v][0][f];
                double x = 0, y = 0;
                for (int k = 1; k < PATH; k++) {
                    const double from = k == 1 ? -1e9 : 4 * (k - 1), to = k == PATH - 1 ? 1e9 : 4 * k;
                    const double on = fmin(fmax(s, from), to) - 4 * (k - 1);
                    x += s > from ? on * cos((k - 1) * M_PI / 6) : 0;
                    y += s > from ? on * sin((k - 1) * M_PI / 6) : 0;
                }
                assert_float_equal(at[0], x, 1e-4);
                assert_float_equal(at[1], y, 1e-4);
            }
        }
    }
}

/* Along a lane what the last layer says counts little at first: 5 m/s faster, and 2.5 m/s to the left, after 2 s. */
static void test_worlds_change_speed_steadily_on_a_lane(void **state)
{
    enum { COLUMNS = 4 * FUTURE };
    float motion[STEPS][N_SEQ][6] = {{{0}}}, future[N_SEQ][FUTURE][2], bias[COLUMNS] = {0};
    float path[N_SEQ][PATH][4] = {{{0}}};
    const wanted want = {"future", &future[0][0][0], N_SEQ * FUTURE * 2};
    for (int f = 0; f < FUTURE; f++) {
        bias[f] = 1;
        bias[FUTURE + f] = 0.5F;
    }
    for (int v = 0; v < N_SEQ; v++) {
        motion[STEPS - 1][v][4] = (float)(4 * v);
        path[v][0][3] = 1; /* straight on */
        for (int k = 1; k < PATH; k++) {
            path[v][k][0] = 4;
        }
    }
    for (step_ms = 200; step_ms <= 600; step_ms += 200) { /* 1 to 3 s */
        const double dt_s = (double)step_ms / 1000;
        run_world_on("world_lstm", NULL, motion, bias, &path[0][0][0], &want, 1);
        for (int v = 0; v < N_SEQ; v++) {
            double x = 0, y = 0;
            for (int f = 0; f < FUTURE; f++) {
                const double share = fmin(dt_s * (f + 1) / 2, 1);
                x += dt_s * (4 * v + 5 * share);
                y += dt_s * 2.5 * share;
                assert_float_equal(future[v][f][0], x, 1e-3);
                assert_float_equal(future[v][f][1], y, 1e-3);
            }
        }
    }
    step_ms = 200;
}

/* A temperature is added to the logarithms of all deviations, of one future and of several, and reported as it is. */
static void test_temperature_widens(void **state)
{
    static const char *const one[] = {"futures=1", "calibrated=true", NULL}, *const two[] = {"futures=2",
                                                                                             "calibrated=true", NULL};
    float motion[STEPS][N_SEQ][6] = {{{0}}}, spread[2][N_SEQ][FUTURE][2], spreads[2][N_SEQ][2][FUTURE][2];
    float seen[FUTURE * 2];
    for (int k = 0; k < 2; k++) {
        temperature = 0.3F * (float)k;
        const wanted of_one[] = {{"spread", &spread[k][0][0][0], N_SEQ * FUTURE * 2},
                                 {"temperature", seen, FUTURE * 2}};
        const wanted of_two = {"spreads", &spreads[k][0][0][0][0], N_SEQ * 2 * FUTURE * 2};
        run_world("world_lstm", one, motion, NULL, of_one, 2);
        run_world("world_lstm", two, motion, NULL, &of_two, 1);
        for (int i = 0; i < FUTURE * 2; i++) {
            assert_true(seen[i] == temperature);
        }
    }
    for (int i = 0; i < N_SEQ * FUTURE * 2; i++) {
        assert_float_equal((&spread[1][0][0][0])[i] - (&spread[0][0][0][0])[i], 0.3, 1e-5);
    }
    for (int i = 0; i < N_SEQ * 2 * FUTURE * 2; i++) {
        assert_float_equal((&spreads[1][0][0][0][0])[i] - (&spreads[0][0][0][0][0])[i], 0.3, 1e-5);
    }
    temperature = 0;
}

/* Who points aside of the lane goes on aside, 0.7 s of it in all: here 0.1 and -0.2 of the way. One future, and two. */
static void test_worlds_turn_into_their_lane(void **state)
{
    static const char *const ids[] = {"world_lstm", "world_gru"}, *const two[] = {"futures=2", NULL};
    float motion[STEPS][N_SEQ][6] = {{{0}}}, future[N_SEQ][FUTURE][2], futures[N_SEQ][2][FUTURE][2];
    float path[N_SEQ][PATH][4] = {{{0}}};
    for (int v = 0; v < N_SEQ; v++) {
        const double aside = v % 2 == 0 ? 0.1 : -0.2, ahead = sqrt(1 - aside * aside);
        motion[STEPS - 1][v][4] = (float)(4 * v);
        path[v][0][2] = (float)aside;
        path[v][0][3] = (float)ahead;
        for (int k = 1; k < PATH; k++) {
            path[v][k][0] = (float)(4 * ahead);
            path[v][k][1] = (float)(-4 * aside);
        }
    }
    for (int m = 0; m < 4; m++) {
        const wanted one = {"future", &future[0][0][0], N_SEQ * FUTURE * 2};
        const wanted several = {"futures", &futures[0][0][0][0], N_SEQ * 2 * FUTURE * 2};
        run_world_on(ids[m % 2], m < 2 ? NULL : two, motion, NULL, &path[0][0][0], m < 2 ? &one : &several, 1);
        for (int v = 0; v < N_SEQ; v++) {
            const double left = path[v][0][2], along = path[v][0][3];
            for (int f = 0; f < FUTURE; f++) {
                const float *at = m < 2 ? future[v][f] : futures[v][0][f];
                const double s = 4 * v * 0.2 * (f + 1), l = 4 * v * left * 0.7 * (1 - exp(-0.2 * (f + 1) / 0.7));
                assert_float_equal(at[0], s * along + l * left, 1e-4);
                assert_float_equal(at[1], -s * left + l * along, 1e-4);
            }
        }
    }
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static void test_risk_gnn(void **state)
{
    check_model("risk_gnn", (const char *const[]){"hidden=16", "heads=4", "layers=2", NULL});
    check_model("risk_gnn", (const char *const[]){"hidden=16", "heads=4", "layers=2", "layer=transformer", NULL});
    check_model("risk_gnn", NULL);
}

static void test_world_models(void **state)
{
    check_model("world_lstm", (const char *const[]){"hidden=8", "head=6", NULL});
    check_model("world_gru", (const char *const[]){"hidden=8", "head=6", "layers=1", NULL});
    check_model("world_lstm", (const char *const[]){"hidden=8", "head=6", "futures=8", "kinematic=true", NULL});
    check_model("world_gru", (const char *const[]){"hidden=8", "head=6", "futures=2", "kinematic=false", NULL});
    check_model("world_constant_velocity", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_risk_gnn),
        cmocka_unit_test(test_world_models),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_untrained_worlds_are_constant_velocity),
        cmocka_unit_test(test_kinematic_vehicles),
        cmocka_unit_test(test_several_futures),
        cmocka_unit_test(test_untrained_worlds_follow_their_lane),
        cmocka_unit_test(test_worlds_change_speed_steadily_on_a_lane),
        cmocka_unit_test(test_temperature_widens),
        cmocka_unit_test(test_worlds_turn_into_their_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * risk_gnn with normalise = "store" compared with the same net without: what its constants make of features, bit for
 * bit, in the plain reference and in the CPU's kernels; none of it has a gradient.
 */
#include "bench.h"

enum { ROWS = 6, WIDE = 9, EDGES = 12, EDGE = 4, HIDDEN = 8, N_SYMBOLS = 4, ACCELERATION = 3, TTC = 3, CONSTANTS = 4 };
static const char *const symbol[] = {"N", "E", "S", "B"};
static const char *const constant[CONSTANTS] = {"constant.node_shift", "constant.node_scale", "constant.edge_shift",
                                                "constant.edge_scale"};

typedef struct scene {
    float node[ROWS][WIDE], edge[EDGES][EDGE];
} scene;

static void draw(scene *s)
{
    for (int i = 0; i < ROWS * WIDE; i++) {
        (&s->node[0][0])[i] = (float)(i * 7 % 23) / 11 - 1;
    }
    for (int e = 0; e < EDGES; e++) { /* each vehicle to itself, which is all zeros, and to the next */
        for (int d = 0; d < EDGE; d++) {
            s->edge[e][d] = e % 2 == 0 ? 0 : (float)((e * 5 + d * 3) % 13) / 6 - 1;
        }
    }
}

typedef struct seen {
    float embedding[ROWS][HIDDEN], risk[ROWS];
} seen;

/* value: of the constants, NULL: as they begin. of_others not NULL: in place of outputs, sizes of the gradients of
 * their sum, of constants and of all else. */
static seen look(const char *layer, bool has_pose, bool is_store, uint32_t kernels, const scene *s,
                 const float *const *value, double *of_constants, double *of_others)
{
    static const int64_t live[N_SYMBOLS] = {ROWS, EDGES, 0, 0};
    const char *const set[] = {"hidden=8",
                               "heads=2",
                               "layers=2",
                               "dropout=0",
                               layer,
                               has_pose ? "pose=true" : "pose=false",
                               is_store ? "normalise=store" : "normalise=fixed",
                               NULL};
    int32_t rowptr[ROWS + 1], col[EDGES];
    bench b;
    seen out;
    memset(&out, 0, sizeof(out));
    for (int e = 0; e < EDGES; e++) {
        rowptr[e / 2] = e - e % 2;
        col[e] = e % 2 == 0 ? e / 2 : (e / 2 + 1) % ROWS;
    }
    rowptr[ROWS] = EDGES;
    assert_int_equal(bench_create(&b, "risk_gnn", set, NULL, 0), DT_OK);
    bench_record(&b, symbol, N_SYMBOLS);
    const bool is_training = of_others != NULL;
    for (uint32_t i = 0; i < b.n_out && is_training; i++) {
        assert_int_equal(b.g->api->loss(b.g, b.out[i].name, dt_sum(b.g, b.to[i]), 1, "1"), DT_OK);
    }
    const size_t bytes = (size_t)b.r.table.total * sizeof(float);
    float *params = aligned_alloc(64, bytes + 64), *grads = aligned_alloc(64, bytes + 64);
    memset(grads, 0, bytes);
    assert_int_equal(dt_param_table_init(&b.r.table, 42, params), DT_OK);
    for (int i = 0; i < CONSTANTS && is_store; i++) {
        char name[MOCK_NAME];
        snprintf(name, sizeof(name), "m.%s", constant[i]);
        const dt_param *p = dt_param_table_find(&b.r.table, name);
        assert_true(p != NULL && p->frozen);
        assert_true(params[p->offset] == (float)(i % 2)); /* shift 0, scale 1 */
        if (value != NULL && value[i] != NULL) {
            memcpy(params + p->offset, value[i], (size_t)p->count * sizeof(float));
        }
    }
    double seed[DT_GRAPH_MAX_LOSSES], loss[DT_GRAPH_MAX_LOSSES] = {0};
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        seed[i] = 1;
    }
    const void *field[4] = {s->node, rowptr, col, s->edge};
    const dt_plan_desc pd = {.kernels = kernels, .training = is_training, .reuse = true, .fuse = true, .cap = live};
    const dt_kernel_run run = {.training = is_training};
    const dt_exec_feed feed = {.size = live,
                               .field = (void *const *)field,
                               .params = params,
                               .grads = is_training ? grads : NULL,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &run};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b.g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    if (!is_training) {
        take(e, "embedding", &out.embedding[0][0], (size_t)ROWS * HIDDEN);
        take(e, "risk", out.risk, ROWS);
    }
    for (uint32_t i = 0; i < b.r.table.n && is_training; i++) {
        const dt_param *q = &b.r.table.param[i];
        double *to = q->is_constant ? of_constants : of_others;
        for (int64_t k = 0; k < q->count; k++) {
            *to += fabs((double)grads[q->offset + k]);
        }
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    free(params);
    free(grads);
    bench_close(&b);
    return out;
}

static const char *const layers[] = {"layer=gat", "layer=transformer"};
static const uint32_t sets[] = {DT_KERNELS_REF32, DT_KERNELS_CPU};

static void assert_alike(const seen *a, const seen *b)
{
    assert_memory_equal(a, b, sizeof(*a));
}

/* Before they are set nothing changes, but that 2.5, 5 m/s^2, is the hardest acceleration. */
static void test_constants_begin_as_nothing(void **state)
{
    for (int i = 0; i < 8; i++) {
        const bool has_pose = i % 2 == 0;
        const char *layer = layers[i / 2 % 2];
        const uint32_t kernels = sets[i / 4];
        scene s, held;
        draw(&s);
        const seen fixed = look(layer, has_pose, false, kernels, &s, NULL, NULL, NULL);
        seen store = look(layer, has_pose, true, kernels, &s, NULL, NULL, NULL);
        assert_alike(&fixed, &store);
        s.node[0][ACCELERATION] = 4;
        s.node[1][ACCELERATION] = -2.51F;
        held = s;
        held.node[0][ACCELERATION] = 2.5F;
        held.node[1][ACCELERATION] = -2.5F;
        const seen wild = look(layer, has_pose, false, kernels, &s, NULL, NULL, NULL);
        const seen calm = look(layer, has_pose, false, kernels, &held, NULL, NULL, NULL);
        store = look(layer, has_pose, true, kernels, &s, NULL, NULL, NULL);
        assert_alike(&calm, &store);
        assert_memory_not_equal(&wild, &store, sizeof(store));
    }
}

/* (x + shift) scale, column by column: the plain net sees the same of features that are so already. */
static void test_features_are_shifted_and_scaled(void **state)
{
    static const float shift[WIDE] = {0, 0, -0.5F, 0, 0, 0, 0.25F, -1, 0};
    static const float scale[WIDE] = {0.125F, 0.125F, 2, 0.4F, 1, 1, 4, 0.5F, 1};
    /* of edges the slots read all columns but the last, and in metres */
    static const float edge_shift[EDGE] = {0, 0, 0, -0.5F}, edge_scale[EDGE] = {1, 1, 1, 2};
    static const float *const value[CONSTANTS] = {shift, scale, edge_shift, edge_scale};
    for (int i = 0; i < 8; i++) {
        const bool has_pose = i % 2 == 0;
        const char *layer = layers[i / 2 % 2];
        const uint32_t kernels = sets[i / 4];
        scene s, done;
        draw(&s);
        done = s;
        for (int r = 0; r < ROWS; r++) {
            for (int d = 0; d < WIDE; d++) {
                done.node[r][d] = (s.node[r][d] + shift[d]) * scale[d];
            }
        }
        for (int e = 0; e < EDGES; e++) {
            done.edge[e][TTC] = (s.edge[e][TTC] + edge_shift[TTC]) * edge_scale[TTC];
        }
        const seen fixed = look(layer, has_pose, false, kernels, &done, NULL, NULL, NULL);
        const seen store = look(layer, has_pose, true, kernels, &s, value, NULL, NULL);
        assert_alike(&fixed, &store);
    }
}

/* The first three columns of edges are scaled for attention, and not for the slots: a scale of 0 hides how far a
 * vehicle is from attention alone. */
static void test_slots_stay_in_metres(void **state)
{
    static const float none[EDGE] = {0, 0, 0, 0};
    static const float *const value[CONSTANTS] = {NULL, NULL, NULL, none};
    scene s, farther;
    draw(&s);
    s.edge[1][0] = 0.5F; /* 10 m ahead in the same kernels */
    s.edge[1][1] = 0;
    farther = s;
    farther.edge[1][0] = 1.5F;
    const seen near = look(layers[0], true, true, DT_KERNELS_CPU, &s, value, NULL, NULL);
    const seen far = look(layers[0], true, true, DT_KERNELS_CPU, &farther, value, NULL, NULL);
    assert_memory_not_equal(near.embedding[0], far.embedding[0], sizeof(near.embedding[0]));
    farther = s;
    farther.edge[1][TTC] = 0.9F; /* which no slot reads */
    const seen same = look(layers[0], true, true, DT_KERNELS_CPU, &farther, value, NULL, NULL);
    assert_alike(&near, &same);
}

static void test_constants_have_no_gradient(void **state)
{
    for (int i = 0; i < 2; i++) {
        double of_constants = 0, of_others = 0;
        scene s;
        draw(&s);
        (void)look(layers[i], true, true, DT_KERNELS_CPU, &s, NULL, &of_constants, &of_others);
        assert_true(of_constants == 0);
        assert_true(of_others > 0 && isfinite(of_others));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_begin_as_nothing),
        cmocka_unit_test(test_features_are_shifted_and_scaled),
        cmocka_unit_test(test_slots_stay_in_metres),
        cmocka_unit_test(test_constants_have_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

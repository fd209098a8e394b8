/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models recorded in the host's real graph: every output has the shape its port promises,
 * and an untrained world model is constant velocity.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "base/err.h"
#include "graph/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct registry {
    dt_params reg; /* first */
    dt_param_table table;
} registry;

static dt_status registry_add(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init,
                              double a)
{
    return dt_param_table_add(&((registry *)reg)->table, "m", name, dim, n_dims, init, a);
}

static void check_model(const char *id, const char *const *set)
{
    static const dt_dim dims[] = {{"H", 24}, {"T", 3}, {"F", 5}, {"dt_ms", 200}};
    static const char *const symbol[] = {"N", "E", "S", "B"};
    mock_host host;
    mock_host_init(&host);
    const dt_component *c = mock_load("models", id, id);
    assert_non_null(c);
    const dt_model_ops *ops = c->ops;
    void *config = mock_config(c, set), *self = calloc(1, c->state_size);
    assert_true(config != NULL && self != NULL);
    assert_int_equal(ops->create(self, &host.host, config, dims, 4), DT_OK);

    registry r = {.reg = {.struct_size = sizeof(dt_params), .add = registry_add}};
    assert_int_equal(ops->params(self, &r.reg), DT_OK);
    uint32_t n_in = 0, n_out = 0;
    const dt_port *in = ops->inputs(self, &n_in), *out = ops->outputs(self, &n_out);
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 4, .field = in, .n_fields = n_in, .params = &r.table};
    dt_graph *g = NULL;
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_scope(g, "m");
    dt_tensor *from[8] = {NULL}, *to[8] = {NULL};
    for (uint32_t i = 0; i < n_in; i++) {
        from[i] = g->api->input(g, in[i].name);
    }
    const dt_status st = ops->forward(self, g, from, to);
    if (st != DT_OK) {
        fail_msg("%s: %s", id, dt_error_text());
    }
    for (uint32_t i = 0; i < n_out; i++) {
        char want[MOCK_TEXT];
        dt_str got = {0};
        snprintf(want, sizeof(want), "%s f32", out[i].dims);
        dt_graph_shape_text(to[i], &got);
        assert_string_equal(dt_str_text(&got), want);
        dt_str_fini(&got);
    }
    dt_graph_destroy(g);
    dt_param_table_fini(&r.table);
    ops->destroy(self);
    free(self);
    free(config);
}

/* ---- untrained models compute ----------------------------------------------------------------------------------- */

enum { N_SEQ = 3, STEPS = 4, FUTURE = 5, EMBEDDING = 6 };

/* Runs a world model with its initial weights: future and spread [N_SEQ,FUTURE,2]. */
static void run_world(const char *id, float motion[STEPS][N_SEQ][6], float *future, float *spread)
{
    static const dt_dim dims[] = {{"H", EMBEDDING}, {"T", STEPS}, {"F", FUTURE}, {"dt_ms", 200}};
    static const char *const symbol[] = {"S"};
    static const int64_t live[] = {N_SEQ};
    mock_host host;
    mock_host_init(&host);
    const dt_component *c = mock_load("models", id, id);
    assert_non_null(c);
    const dt_model_ops *ops = c->ops;
    void *config = mock_config(c, NULL), *self = calloc(1, c->state_size);
    assert_int_equal(ops->create(self, &host.host, config, dims, 4), DT_OK);
    registry r = {.reg = {.struct_size = sizeof(dt_params), .add = registry_add}};
    assert_int_equal(ops->params(self, &r.reg), DT_OK);
    uint32_t n_in = 0, n_out = 0;
    const dt_port *in = ops->inputs(self, &n_in);
    assert_non_null(ops->outputs(self, &n_out));
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 1, .field = in, .n_fields = n_in, .params = &r.table};
    dt_graph *g = NULL;
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_scope(g, "m");
    dt_tensor *from[8] = {NULL}, *to[8] = {NULL};
    for (uint32_t i = 0; i < n_in; i++) {
        from[i] = g->api->input(g, in[i].name);
    }
    assert_int_equal(ops->forward(self, g, from, to), DT_OK);
    assert_int_equal(g->api->output(g, "future", to[0]), DT_OK);
    assert_int_equal(g->api->output(g, "spread", to[1]), DT_OK);

    float *params = calloc((size_t)r.table.total + 64, sizeof(*params));
    assert_non_null(params);
    dt_param_table_init(&r.table, 42, params);
    float history[STEPS][N_SEQ][EMBEDDING], present[STEPS][N_SEQ];
    for (int i = 0; i < STEPS * N_SEQ; i++) {
        (&present[0][0])[i] = 1;
        for (int k = 0; k < EMBEDDING; k++) {
            (&history[0][0][0])[i * EMBEDDING + k] = (float)((i * 7 + k * 3) % 11) / 5 - 1;
        }
    }
    const int64_t key[N_SEQ] = {0};
    const void *field[4] = {motion};
    if (n_in == 4) { /* with dropout, which is the identity here */
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
    assert_int_equal(dt_plan_compile(g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(future, dt_exec_output(e, "future")->data, N_SEQ * FUTURE * 2 * sizeof(*future));
    memcpy(spread, dt_exec_output(e, "spread")->data, N_SEQ * FUTURE * 2 * sizeof(*spread));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(g);
    dt_param_table_fini(&r.table);
    ops->destroy(self);
    free(params);
    free(self);
    free(config);
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
        cmocka_unit_test(test_untrained_worlds_are_constant_velocity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

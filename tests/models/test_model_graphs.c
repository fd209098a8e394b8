/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models recorded in the host's real graph: every output has the shape its port promises.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "base/err.h"
#include "graph/graph.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

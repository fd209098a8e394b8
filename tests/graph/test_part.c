/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/graph/part.c.
 */
#include "harness.h"

#include "graph/part.h"

static void record(dt_graph *g)
{
    dt_tensor *h = dt_relu(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL));
    (void)g->api->output(g, "h", h);
    (void)g->api->loss(g, "both", dt_sum(g, dt_linear(g, h, P(g, "top"), NULL)), 1, "N");
    (void)g->api->loss(g, "one", dt_sum(g, dt_affine(g, h, 3, 0)), 0.5, "B");
}

static const param_spec spec[] = {{"w", 3, 5}, {"top", 2, 3}, {"unused", 2, 2}, {NULL, 0, 0}};
static const model m = {spec, record};

static void says(const char *part)
{
    if (strstr(dt_error_text(), part) == NULL) {
        fail_msg("\"%s\" says nothing of %s", dt_error_text(), part);
    }
}

static void test_pick(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "both"}, *const twice[] = {"one", "one"}, *const strange[] = {"none"};
    bench b;
    const dt_graph_loss *loss = NULL;
    bench_open(&b, &m, 2, 1, 1);
    assert_int_equal(dt_graph_pick(b.g, strange, 1), DT_EINVAL);
    says("no loss none is recorded; there are: both, one");
    assert_int_equal(dt_graph_pick(b.g, twice, 2), DT_EINVAL);
    says("loss one is asked for twice");
    assert_int_equal(dt_graph_losses(b.g, &loss), 2);
    assert_int_equal(dt_graph_pick(b.g, names, 2), DT_OK);
    assert_int_equal(dt_graph_losses(b.g, &loss), 2);
    assert_string_equal(loss[0].name, "one");
    assert_string_equal(loss[0].symbol, "B");
    assert_string_equal(loss[1].name, "both");
    assert_int_equal(dt_graph_pick(b.g, names, 1), DT_OK);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    assert_int_equal(ir.n_losses, 1);
    assert_int_equal(ir.n_outputs, 0);
    assert_string_equal(ir.loss[0].name, "one");
    dt_ir_fini(&ir);
    bench_close(&b);
}

static void test_drop(void **state)
{
    (void)state;
    bench b;
    const dt_graph_loss *loss = NULL;
    bench_open(&b, &m, 2, 1, 1);
    dt_graph_drop(b.g, 0);
    assert_int_equal(dt_graph_losses(b.g, &loss), 1);
    assert_string_equal(loss[0].name, "one");
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    assert_int_equal(ir.n_losses, 1);
    assert_int_equal(ir.n_outputs, 1); /* those stay */
    assert_string_equal(ir.loss[0].name, "one");
    dt_ir_fini(&ir);
    bench_close(&b);
}

static void test_reach_and_hold(void **state)
{
    (void)state;
    bench b;
    bool reached[3] = {false}; /* in the order of spec */
    bench_open(&b, &m, 2, 1, 1);
    assert_int_equal(dt_graph_reach(b.g, "fun", reached), DT_EINVAL);
    says("no loss fun is recorded");
    assert_int_equal(dt_graph_reach(b.g, "both", reached), DT_OK);
    assert_true(reached[0] && reached[1] && !reached[2]);
    assert_int_equal(dt_graph_reach(b.g, "one", reached), DT_OK);
    assert_true(reached[0] && !reached[1] && !reached[2]);
    dt_graph_hold(b.g, reached);
    assert_int_equal(dt_graph_reach(b.g, "both", reached), DT_OK); /* as if they were frozen */
    assert_true(!reached[0] && reached[1] && !reached[2]);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_reach_and_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

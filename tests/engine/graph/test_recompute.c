/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/recompute.c: what is computed again, and where. The numbers: test_plan.c.
 */
#include "harness.h"

#include "engine/graph/derive.h"
#include "engine/graph/passes.h"

static void record(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w0"), NULL);
    g->api->recompute_begin(g);
    h = dt_dropout(g, dt_gelu(g, dt_linear(g, h, P(g, "w1"), NULL)), I(g, "key"), 0.5);
    h = dt_linear(g, h, P(g, "w2"), NULL); /* leaves the region: kept */
    g->api->recompute_end(g);
    h = dt_tanh(g, h);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_mul(g, h, h)), 1, "N");
}

static void test_clones(void **state)
{
    static const param_spec spec[] = {{"w0", 4, 5}, {"w1", 4, 4}, {"w2", 4, 4}, {NULL, 0, 0}};
    static const model m = {spec, record};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    uint32_t n = 0;
    assert_int_equal(dt_derive_run(&ir), DT_OK);
    assert_int_equal(dt_pass_recompute(&ir, &n), DT_OK);
    assert_int_equal(n, 3); /* product, gelu, dropout; not the product whose result was kept */
    dt_str s = {0};
    dt_ir_print(&ir, &s);
    const char *text = dt_str_text(&s);
    /* same stream as the first time */
    const char *first = strstr(text, "dropout x="), *again = strstr(first + 1, "dropout x=");
    assert_non_null(strstr(first, "i0=65536 f0=0.5 region=1\n"));
    assert_non_null(strstr(again, "i0=65536 f0=0.5 again\n"));
    /* after the derivative of what follows the region, right before the first reader */
    const char *tanh_bwd = strstr(text, "unary_bwd"), *dw2 = strstr(text, "+grad(m.w2)");
    assert_non_null(tanh_bwd);
    assert_non_null(dw2);
    assert_true(tanh_bwd < again && again < dw2);
    assert_true(strchr(again, '\n') + 1 == dw2);
    dt_str_fini(&s);
    dt_ir_fini(&ir);
    bench_close(&b);
}

/* What leaves the region is kept: the derivative of the square reads it, and it is not computed again. */
static void record_leaves(dt_graph *g)
{
    g->api->recompute_begin(g);
    dt_tensor *h = dt_gelu(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL));
    g->api->recompute_end(g);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_mul(g, h, h)), 1, "N");
}

static void test_what_leaves_is_kept(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {NULL, 0, 0}};
    static const model m = {spec, record_leaves};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    uint32_t n = 0;
    assert_int_equal(dt_derive_run(&ir), DT_OK);
    assert_int_equal(dt_pass_recompute(&ir, &n), DT_OK);
    assert_int_equal(n, 1); /* the product, which gelu's derivative reads */
    dt_ir_fini(&ir);
    bench_close(&b);
}

/* Nodes after the clones read these, and none of the values that are to be forgotten. */
static void test_clones_are_read(void **state)
{
    static const param_spec spec[] = {{"w0", 4, 5}, {"w1", 4, 4}, {"w2", 4, 4}, {NULL, 0, 0}};
    static const model m = {spec, record};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    uint32_t n = 0, n_read = 0;
    assert_int_equal(dt_derive_run(&ir), DT_OK);
    assert_int_equal(dt_pass_recompute(&ir, &n), DT_OK);
    for (int32_t i = 0; i < ir.n_nodes; i++) {
        const dt_node *clone = &ir.node[i];
        for (int32_t k = i + 1; clone->is_clone && k < ir.n_nodes; k++) {
            const dt_node *reader = &ir.node[k];
            for (uint32_t in = 0; in < reader->n_in; in++) {
                n_read += reader->is_backward && !reader->is_clone && reader->in[in] == clone->out[0];
            }
        }
    }
    assert_true(n_read >= 2); /* by the derivatives of gelu and of the last product */
    dt_ir_fini(&ir);
    bench_close(&b);
}

static void record_unmarked(dt_graph *g)
{
    g->api->recompute_begin(g); /* nothing in here is needed backward */
    dt_tensor *h = dt_affine(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), 2, 0);
    g->api->recompute_end(g);
    (void)g->api->loss(g, "sum", dt_sum(g, h), 1, "N");
}

static void test_nothing_to_do(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {NULL, 0, 0}};
    static const model m = {spec, record_unmarked};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    uint32_t n = 9;
    assert_int_equal(dt_derive_run(&ir), DT_OK);
    int32_t before = ir.n_nodes;
    assert_int_equal(dt_pass_recompute(&ir, &n), DT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ir.n_nodes, before);
    dt_ir_fini(&ir);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clones),
        cmocka_unit_test(test_what_leaves_is_kept),
        cmocka_unit_test(test_clones_are_read),
        cmocka_unit_test(test_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

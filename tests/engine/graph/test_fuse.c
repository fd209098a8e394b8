/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/passes.c: what is fused and what must not be. The numbers: test_plan.c.
 */
#include "harness.h"

#include "engine/graph/passes.h"

static const param_spec spec[] = {{"w", 5, 5}, {"gamma", 5, 0}, {"beta", 5, 0}, {NULL, 0, 0}};

static dt_tensor *line(dt_graph *g)
{
    return dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
}

static dt_tensor *norm(dt_graph *g, dt_tensor *x)
{
    return dt_layernorm(g, x, P(g, "gamma"), P(g, "beta"), NULL);
}

static void record_elu(dt_graph *g)
{
    (void)g->api->output(g, "y", dt_elu(g, line(g)));
}

static void record_residual(dt_graph *g)
{
    (void)g->api->output(g, "y", norm(g, dt_add(g, I(g, "nodes"), dt_tanh(g, line(g)))));
}

static void record_gelu(dt_graph *g)
{
    (void)g->api->output(g, "y", dt_gelu(g, line(g)));
}

static void record_log(dt_graph *g)
{
    (void)g->api->output(g, "y", dt_unary(g, DT_FN_LOG, line(g), 0));
}

static void record_read_twice(dt_graph *g)
{
    dt_tensor *u = line(g);
    (void)g->api->output(g, "y", dt_concat(g, (dt_tensor *[]){dt_relu(g, u), u}, 2));
}

static void record_is_output(dt_graph *g)
{
    dt_tensor *u = line(g);
    (void)g->api->output(g, "u", u);
    (void)g->api->output(g, "y", dt_relu(g, u));
}

static void record_across_region(dt_graph *g)
{
    dt_tensor *u = line(g);
    g->api->recompute_begin(g);
    (void)g->api->output(g, "y", dt_relu(g, u));
    g->api->recompute_end(g);
}

static void record_sum_read_twice(dt_graph *g)
{
    dt_tensor *v = dt_add(g, I(g, "nodes"), dt_affine(g, I(g, "nodes"), 2, 0));
    (void)g->api->output(g, "y", dt_concat(g, (dt_tensor *[]){norm(g, v), v}, 2));
}

static void record_row_sum(dt_graph *g) /* r has the shape of x, a row does not */
{
    (void)g->api->output(g, "y", norm(g, dt_add(g, I(g, "nodes"), P(g, "beta"))));
}

static void record_difference(dt_graph *g)
{
    (void)g->api->output(g, "y", norm(g, dt_sub(g, I(g, "nodes"), dt_affine(g, I(g, "nodes"), 2, 0))));
}

static void test_what_fuses(void **state)
{
    static const struct {
        void (*record)(dt_graph *g);
        uint32_t n_fused;
        const char *text;
    } rows[] = {
        {record_elu, 1, "= linear x=nodes w=m.w i0=3 f0=1\n"},
        {record_residual, 2, "= layernorm x=nodes gamma=m.gamma beta=m.beta r=%"},
        {record_gelu, 0, "= unary"},
        {record_log, 0, "= unary"},
        {record_read_twice, 0, "= unary"},
        {record_is_output, 0, "= unary"},
        {record_across_region, 0, "= unary"},
        {record_sum_read_twice, 0, "= binary"},
        {record_row_sum, 0, "= binary"},
        {record_difference, 0, "= binary"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const model m = {spec, rows[i].record};
        bench b;
        bench_open(&b, &m, 2, 1, 1);
        dt_ir ir = {0};
        bench_ir(&b, &ir);
        int32_t before = ir.n_nodes;
        uint32_t n = 99;
        dt_pass_fuse(&ir, &n);
        assert_int_equal(n, rows[i].n_fused);
        assert_int_equal(ir.n_nodes, before - (int32_t)n);
        dt_str s = {0};
        dt_ir_print(&ir, &s);
        if (strstr(dt_str_text(&s), rows[i].text) == NULL) {
            fail_msg("\"%s\" is not in\n%s", rows[i].text, dt_str_text(&s));
        }
        dt_str_fini(&s);
        dt_ir_fini(&ir);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

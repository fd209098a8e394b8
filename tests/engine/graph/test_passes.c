/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/passes.c and recompute.c: what is fused and what must not be, what is dead, what is
 * computed again. The numbers: test_plan.c.
 */
#include "harness.h"

#include "engine/graph/passes.h"
#include "engine/graph/derive.h"

static const param_spec fused_params[] = {{"w", 5, 5}, {"gamma", 5, 0}, {"beta", 5, 0}, {NULL, 0, 0}};

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
        const model m = {fused_params, rows[i].record};
        bench b;
        bench_open(&b, &m, 2, 1, 1);
        dt_ir *ir = bench_ir(&b);
        int32_t before = ir->n_nodes;
        uint32_t n = 99;
        dt_pass_fuse(ir, &n);
        assert_int_equal(n, rows[i].n_fused);
        assert_int_equal(ir->n_nodes, before - (int32_t)n);
        dt_str s = {0};
        dt_ir_print(ir, &s);
        if (strstr(dt_str_text(&s), rows[i].text) == NULL) {
            fail_msg("\"%s\" is not in\n%s", rows[i].text, dt_str_text(&s));
        }
        dt_str_fini(&s);
        bench_close(&b);
    }
}

/* ---- dead code --------------------------------------------------------------------------------------------------- */

static void record(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)dt_tanh(g, dt_relu(g, h)); /* nobody asks for it */
    dt_tensor *y = dt_affine(g, h, 2, 0);
    (void)g->api->output(g, "y", y);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_affine(g, h, 3, 0)), 1, "N");
}

static void test_drops_unread_values(void **state)
{
    static const param_spec spec[] = {{"w", 3, 5}, {NULL, 0, 0}};
    static const model m = {spec, record};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_ir(ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                  "%5 N 3 f32 = affine x=%2 f0=2\n"
                  "%6 N 3 f32 = affine x=%2 f0=3\n"
                  "%7 1 f64 = sum x=%6\n"
                  "loss sum = 1 * %7 / N\n"
                  "output y = %5\n");
    ir->n_outputs = 0;
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_ir(ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                  "%6 N 3 f32 = affine x=%2 f0=3\n"
                  "%7 1 f64 = sum x=%6\n"
                  "loss sum = 1 * %7 / N\n");
    bench_close(&b);
}

/* of two critics next to each other the first alone evaluates an actor */
static void record_parts(dt_graph *g)
{
    dt_tensor *part[] = {dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), dt_linear(g, I(g, "nodes"), P(g, "v"), NULL)};
    dt_tensor *both = dt_concat(g, part, 2);
    (void)g->api->output(g, "second", dt_affine(g, dt_slice(g, both, 3, 3), 2, 0));
    (void)g->api->output(g, "some", dt_slice(g, both, 4, 2));
}

static void record_across(dt_graph *g)
{
    dt_tensor *part[] = {dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), dt_linear(g, I(g, "nodes"), P(g, "v"), NULL)};
    (void)g->api->output(g, "y", dt_slice(g, dt_concat(g, part, 2), 2, 2));
}

static void test_slices_of_parts(void **state)
{
    static const param_spec spec[] = {{"w", 3, 5}, {"v", 3, 5}, {NULL, 0, 0}};
    static const model of_parts = {spec, record_parts}, across = {spec, record_across};
    bench b;
    dt_ir *ir = NULL;
    bench_open(&b, &of_parts, 2, 1, 1);
    ir = bench_ir(&b);
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_ir(ir, "%4 N 3 f32 = linear x=nodes w=m.v\n"
                  "%6 N 3 f32 = affine x=%4 f0=2\n"
                  "%7 N 2 f32 = slice x=%4 i0=1 i1=2\n"
                  "output second = %6\n"
                  "output some = %7\n");
    bench_close(&b);
    bench_open(&b, &across, 2, 1, 1);
    ir = bench_ir(&b);
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_int_equal(ir->n_nodes, 4);
    bench_close(&b);
}

/* ---- what is computed again, and where --------------------------------------------------------------------------- */

static void record_recomputed(dt_graph *g)
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
    static const model m = {spec, record_recomputed};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    uint32_t n = 0;
    assert_int_equal(dt_derive_run(ir), DT_OK);
    assert_int_equal(dt_pass_recompute(ir, &n), DT_OK);
    assert_int_equal(n, 3); /* product, gelu, dropout; not the product whose result was kept */
    dt_str s = {0};
    dt_ir_print(ir, &s);
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
    dt_ir *ir = bench_ir(&b);
    uint32_t n = 0;
    assert_int_equal(dt_derive_run(ir), DT_OK);
    assert_int_equal(dt_pass_recompute(ir, &n), DT_OK);
    assert_int_equal(n, 1); /* the product, which gelu's derivative reads */
    bench_close(&b);
}

/* Nodes after the clones read these, and none of the values that are to be forgotten. */
static void test_clones_are_read(void **state)
{
    static const param_spec spec[] = {{"w0", 4, 5}, {"w1", 4, 4}, {"w2", 4, 4}, {NULL, 0, 0}};
    static const model m = {spec, record_recomputed};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    uint32_t n = 0, n_read = 0;
    assert_int_equal(dt_derive_run(ir), DT_OK);
    assert_int_equal(dt_pass_recompute(ir, &n), DT_OK);
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *clone = &ir->node[i];
        for (int32_t k = i + 1; clone->is_clone && k < ir->n_nodes; k++) {
            const dt_node *reader = &ir->node[k];
            for (uint32_t in = 0; in < reader->n_in; in++) {
                n_read += reader->is_backward && !reader->is_clone && reader->in[in] == clone->out[0];
            }
        }
    }
    assert_true(n_read >= 2); /* by the derivatives of gelu and of the last product */
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
    dt_ir *ir = bench_ir(&b);
    uint32_t n = 9;
    assert_int_equal(dt_derive_run(ir), DT_OK);
    int32_t before = ir->n_nodes;
    assert_int_equal(dt_pass_recompute(ir, &n), DT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ir->n_nodes, before);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fuses),          cmocka_unit_test(test_slices_of_parts),
        cmocka_unit_test(test_drops_unread_values), cmocka_unit_test(test_clones),
        cmocka_unit_test(test_what_leaves_is_kept), cmocka_unit_test(test_clones_are_read),
        cmocka_unit_test(test_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

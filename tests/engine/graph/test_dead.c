/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/passes.c.
 */
#include "harness.h"

#include "engine/graph/passes.h"

static void record(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)dt_tanh(g, dt_relu(g, h)); /* nobody asks for it */
    dt_tensor *y = dt_affine(g, h, 2, 0);
    (void)g->api->output(g, "y", y);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_affine(g, h, 3, 0)), 1, "N");
}

static void test_drops_what_nobody_reads(void **state)
{
    static const param_spec spec[] = {{"w", 3, 5}, {NULL, 0, 0}};
    static const model m = {spec, record};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    assert_int_equal(dt_pass_drop_dead(&ir), DT_OK);
    assert_ir(&ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                   "%5 N 3 f32 = affine x=%2 f0=2\n"
                   "%6 N 3 f32 = affine x=%2 f0=3\n"
                   "%7 1 f64 = sum x=%6\n"
                   "loss sum = 1 * %7 / N\n"
                   "output y = %5\n");
    ir.n_outputs = 0;
    assert_int_equal(dt_pass_drop_dead(&ir), DT_OK);
    assert_ir(&ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                   "%6 N 3 f32 = affine x=%2 f0=3\n"
                   "%7 1 f64 = sum x=%6\n"
                   "loss sum = 1 * %7 / N\n");
    dt_ir_fini(&ir);
    bench_close(&b);
}

/* of two critics beside each other the first alone judges an actor */
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
    dt_ir ir = {0};
    bench_open(&b, &of_parts, 2, 1, 1);
    bench_ir(&b, &ir);
    assert_int_equal(dt_pass_drop_dead(&ir), DT_OK);
    assert_ir(&ir, "%4 N 3 f32 = linear x=nodes w=m.v\n"
                   "%6 N 3 f32 = affine x=%4 f0=2\n"
                   "%7 N 2 f32 = slice x=%4 i0=1 i1=2\n"
                   "output second = %6\n"
                   "output some = %7\n");
    dt_ir_fini(&ir);
    bench_close(&b);
    bench_open(&b, &across, 2, 1, 1);
    bench_ir(&b, &ir);
    assert_int_equal(dt_pass_drop_dead(&ir), DT_OK);
    assert_int_equal(ir.n_nodes, 4);
    dt_ir_fini(&ir);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_of_parts),
        cmocka_unit_test(test_drops_what_nobody_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

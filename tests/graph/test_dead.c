/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/graph/dead.c.
 */
#include "harness.h"

#include "graph/passes.h"

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
    (void)state;
    static const param_spec spec[] = {{"w", 3, 5}, {NULL, 0, 0}};
    static const model m = {spec, record};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir ir = {0};
    bench_ir(&b, &ir);
    assert_int_equal(dt_pass_dead(&ir), DT_OK);
    assert_ir(&ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                   "%5 N 3 f32 = affine x=%2 f0=2\n"
                   "%6 N 3 f32 = affine x=%2 f0=3\n"
                   "%7 1 f64 = sum x=%6\n"
                   "loss sum = 1 * %7 / N\n"
                   "output y = %5\n");
    ir.n_outputs = 0;
    assert_int_equal(dt_pass_dead(&ir), DT_OK);
    assert_ir(&ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                   "%6 N 3 f32 = affine x=%2 f0=3\n"
                   "%7 1 f64 = sum x=%6\n"
                   "loss sum = 1 * %7 / N\n");
    dt_ir_fini(&ir);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drops_what_nobody_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

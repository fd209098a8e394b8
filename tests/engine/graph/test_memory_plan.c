/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/memory_plan.c: no two values that live at once overlap, and little is wasted.
 */
#include "harness.h"

#include "engine/graph/derive.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/passes.h"

static dt_memory plan(const dt_ir *ir, bool reuse)
{
    const dt_memory_desc d = {.cap = capacity, .f32_bytes = 4, .reuse = reuse};
    dt_memory m = {0};
    assert_int_equal(dt_memory_plan(ir, &d, &m), DT_OK);
    return m;
}

/* Every pair of blocks of every model, by brute force. */
static void test_blocks_do_not_overlap(void **state)
{
    for (int k = 0; k < N_MODELS; k++) {
        bench b;
        bench_open(&b, models[k].m, 2, 1, 1);
        dt_ir *ir = bench_ir(&b);
        assert_int_equal(dt_derive_run(ir), DT_OK);
        assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
        dt_memory m = plan(ir, true), apart = plan(ir, false);
        assert_true(m.n_blocks > 10);
        size_t sum = 0;
        for (int32_t i = 0; i < m.n_blocks; i++) {
            const dt_memory_block *x = &m.at[i];
            assert_true(x->offset % 256 == 0 && x->bytes % 256 == 0 && x->offset + x->bytes <= m.bytes);
            assert_true(x->first <= x->last);
            for (int32_t j = 0; j < i; j++) {
                const dt_memory_block *y = &m.at[j];
                bool in_time = x->first <= y->last && y->first <= x->last;
                bool in_space = x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
                assert_false(in_time && in_space);
            }
        }
        for (int32_t i = 0; i < apart.n_blocks; i++) {
            assert_int_equal(apart.at[i].offset, sum);
            sum += apart.at[i].bytes;
        }
        assert_int_equal(apart.bytes, sum);
        assert_true(m.lower_bound_bytes <= m.bytes && m.bytes < apart.bytes);
        assert_true((double)m.bytes < 1.25 * (double)m.lower_bound_bytes); /* far above: a bug in the search */
        dt_memory_fini(&m);
        dt_memory_fini(&apart);
        bench_close(&b);
    }
}

static void record_chain(dt_graph *g)
{
    dt_tensor *x = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL); /* %2 */
    dt_tensor *y = dt_tanh(g, x);                                /* %3 overwrites %2 */
    dt_tensor *z = dt_merge(g, dt_split(g, y, 2));               /* %4 %5 view %3 */
    z = dt_affine(g, z, 2, 0);                                   /* %6 overwrites them */
    dt_tensor *both = dt_mul(g, z, z);                           /* %7 reads %6 twice: its own place */
    dt_tensor *s = dt_softmax(g, both);                          /* %8 may not overwrite */
    (void)g->api->output(g, "s", s);
    (void)g->api->output(g, "t", dt_affine(g, s, 2, 0)); /* %9: s is still wanted */
}

static void test_sharing(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {NULL, 0, 0}};
    static const model chain = {spec, record_chain};
    bench b;
    bench_open(&b, &chain, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    dt_memory m = plan(ir, true);
    static const int32_t want[10] = {-1, -1, 0, 0, 0, 0, 0, 1, 2, 3};
    for (int v = 0; v < 10; v++) {
        assert_int_equal(m.block[v], want[v]);
    }
    assert_int_equal(m.at[0].first, 0);
    assert_int_equal(m.at[0].last, 5);
    assert_int_equal(m.at[2].last, ir->n_nodes);
    assert_int_equal(m.at[3].last, ir->n_nodes);
    dt_memory_fini(&m);
    m = plan(ir, false);
    static const int32_t apart[10] = {-1, -1, 0, 1, 1, 1, 2, 3, 4, 5};
    for (int v = 0; v < 10; v++) {
        assert_int_equal(m.block[v], apart[v]);
    }
    dt_memory_fini(&m);
    bench_close(&b);
}

/* An input of which only the shape counts does not keep its value. */
static void record_gather(dt_graph *g)
{
    dt_tensor *h = dt_affine(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), 2, 0);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_gather(g, h, I(g, "seq_row"))), 1, "N");
}

static void test_shape_only(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {NULL, 0, 0}};
    static const model gather = {spec, record_gather};
    bench b;
    bench_open(&b, &gather, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_derive_run(ir), DT_OK);
    dt_memory m = plan(ir, true);
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        if (ir->node[i].op == DT_OPX_GATHER) {
            assert_int_equal(m.at[m.block[ir->node[i].in[0]]].last, i);
        }
    }
    dt_memory_fini(&m);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_do_not_overlap),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_shape_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

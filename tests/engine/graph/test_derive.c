/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/derive.c: which nodes the derivative records. Their numbers: test_plan.c.
 */
#include "harness.h"

#include "engine/graph/derive.h"
#include "engine/graph/passes.h"

static void record(dt_graph *g)
{
    dt_tensor *h = dt_relu(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), P(g, "b0")));
    h = dt_linear(g, h, P(g, "w1"), P(g, "b1"));
    dt_tensor *z = dt_add(g, dt_mul(g, h, h), P(g, "b1")); /* two consumers of h, b1 used twice */
    (void)g->api->loss(g, "sum", dt_sum(g, z), 1, "N");
}

static const param_spec spec[] = {{"w0", 3, 5}, {"b0", 3, 0}, {"w1", 2, 3}, {"b1", 2, 0}, {NULL, 0, 0}};
static const model both = {spec, record};

static void test_nodes(void **state)
{
    bench b;
    bench_open(&b, &both, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_derive_run(ir), DT_OK);
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_ir(ir, "%3 N 3 f32 = linear x=nodes w=m.w0 b=m.b0\n"
                  "%4 N 3 f32 = unary x=%3 i0=1\n"
                  "%7 N 2 f32 = linear x=%4 w=m.w1 b=m.b1\n"
                  "%8 N 2 f32 = binary a=%7 b=%7 i0=3\n"
                  "%9 N 2 f32 = binary a=%8 b=m.b1 i0=1\n"
                  "%10 1 f64 = sum x=%9\n"
                  "%12 N 2 f32 = sum_bwd ds=seed(sum) x=%9\n"
                  "+grad(m.b1) 2 f32 = colsum dy=%12\n"
                  "%14 N 2 f32 = binary a=%12 b=%7 i0=3\n"
                  "%15 N 2 f32 = binary a=%12 b=%7 i0=3\n"
                  "%16 N 2 f32 = binary a=%14 b=%15 i0=1\n"
                  "+grad(m.w1) 2 3 f32 = linear_dw x=%4 dy=%16\n"
                  "+grad(m.b1) 2 f32 = colsum dy=%16\n"
                  "%19 N 3 f32 = linear_dx dy=%16 w=m.w1\n"
                  "%20 N 3 f32 = unary_bwd dy=%19 s=%4 i0=1\n"
                  "+grad(m.w0) 3 5 f32 = linear_dw x=nodes dy=%20\n"
                  "+grad(m.b0) 3 f32 = colsum dy=%20\n"
                  "loss sum = 1 * %10 / N\n");
    bench_close(&b);
}

/* Below the last trained parameter nothing is computed. */
static void test_frozen(void **state)
{
    bench b;
    uint32_t n = 0;
    bench_params(&b, &both);
    assert_int_equal(dt_param_table_freeze(&b.params, "m.?0", &n), DT_OK);
    bench_graph(&b, &both);
    slice_init(&b.s, 2, 1, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_derive_run(ir), DT_OK);
    dt_str s = {0};
    dt_ir_print(ir, &s);
    assert_null(strstr(dt_str_text(&s), "grad(m.w0)"));
    assert_null(strstr(dt_str_text(&s), "grad(m.b0)"));
    assert_null(strstr(dt_str_text(&s), "linear_dx"));
    assert_null(strstr(dt_str_text(&s), "unary_bwd"));
    assert_non_null(strstr(dt_str_text(&s), "+grad(m.w1)"));
    dt_str_fini(&s);
    bench_close(&b);
}

/* A gradient that others read, or that goes to two parameters, is added explicitly. */
static void record_shared(dt_graph *g)
{
    dt_tensor *row = dt_add(g, dt_tanh(g, P(g, "a")), P(g, "b"));
    dt_tensor *z = dt_add(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), row);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_add(g, z, dt_add(g, P(g, "b"), P(g, "c")))), 1, "N");
}

static void test_explicit_adds(void **state)
{
    static const param_spec s[] = {{"w", 2, 5}, {"a", 2, 0}, {"b", 2, 0}, {"c", 2, 0}, {NULL, 0, 0}};
    static const model m = {s, record_shared};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_derive_run(ir), DT_OK);
    dt_str text = {0};
    dt_ir_print(ir, &text);
    static const char *const want[] = {
        "grad(m.c) 2 f32 = binary a=grad(m.c) b=%",
        "grad(m.b) 2 f32 = binary a=grad(m.b) b=%",
        "grad(m.a) 2 f32 = binary a=grad(m.a) b=%",
        "+grad(m.w) 2 5 f32 = linear_dw",
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        if (strstr(dt_str_text(&text), want[i]) == NULL) {
            fail_msg("\"%s\" is not in\n%s", want[i], dt_str_text(&text));
        }
    }
    assert_null(strstr(dt_str_text(&text), "+grad(m.b)"));
    dt_str_fini(&text);
    bench_close(&b);
}

/* Of an op with several results each alone has a derivative; what has none, and what nobody reads, costs nothing. */
static void record_results(dt_graph *g)
{
    dt_tensor *logits = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL), *entropy, *clipped;
    dt_tensor *log_prob = dt_categorical(g, logits, I(g, "action"), 1, NULL, &entropy);
    (void)dt_ppo_clip(g, log_prob, I(g, "label"), I(g, "label_weight"), 0.2, 0.25, NULL, &clipped);
    (void)g->api->loss(g, "entropy", dt_sum(g, entropy), 1, "N");
    (void)g->api->loss(g, "clipped", dt_sum(g, clipped), 1, "N");
    dt_tensor *mean = dt_slice(g, logits, 0, 2);
    (void)g->api->loss(g, "log_prob", dt_sum(g, dt_gaussian(g, mean, P(g, "s"), mean, NULL)), 1, "N");
}

static void test_results(void **state)
{
    static const param_spec s[] = {{"w", 3, 5}, {"s", 2, 0}, {NULL, 0, 0}};
    static const model m = {s, record_results};
    bench b;
    bench_open(&b, &m, 2, 1, 1);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(dt_derive_run(ir), DT_OK);
    assert_int_equal(dt_pass_drop_dead(ir), DT_OK);
    assert_ir(ir, "%2 N 3 f32 = linear x=nodes w=m.w\n"
                  "%4 N f32, %5 N f32 = categorical logits=%2 action=action i0=1\n"
                  "%8 N f32, -, %10 N f32 = ppo_clip log_prob=%4 old=label advantage=label_weight f0=0.2 f1=0.25\n"
                  "%11 1 f64 = sum x=%5\n"
                  "%12 1 f64 = sum x=%10\n"
                  "%13 N 2 f32 = slice x=%2 i1=2\n"
                  "%15 N f32, - = gaussian mean=%13 log_std=m.s action=%13\n"
                  "%17 1 f64 = sum x=%15\n"
                  "%21 N f32 = sum_bwd ds=seed(log_prob) x=%15\n"
                  "%22 N 2 f32, %23 N 2 f32 = gaussian_bwd dlog_prob=%21 mean=%13 log_std=m.s action=%13\n"
                  "+grad(m.s) 2 f32 = colsum dy=%23\n"
                  "%25 N 3 f32 = slice_bwd dy=%22 i1=2 i2=3\n"
                  "%27 N f32 = sum_bwd ds=seed(entropy) x=%5\n"
                  "%28 N 3 f32 = categorical_bwd dentropy=%27 logits=%2 action=action i0=1\n"
                  "%29 N 3 f32 = binary a=%25 b=%28 i0=1\n"
                  "+grad(m.w) 3 5 f32 = linear_dw x=nodes dy=%29\n"
                  "loss entropy = 1 * %11 / N\n"
                  "loss clipped = 1 * %12 / N\n"
                  "loss log_prob = 1 * %17 / N\n");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_explicit_adds),
        cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

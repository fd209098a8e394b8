/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of plugins: what is rejected when they are registered, recorded and derived; shapes; derivatives through a plan
 * in every kernel set of the CPU; what dt_user_op_verify finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness.h"
#include "engine/graph/op_user.h"

#include <pthread.h>
#include <stdio.h>

static int64_t count(const dt_op_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= t->dim[i];
    }
    return n;
}

/* y = scale x^2, square = x^2 kept for the derivative */
static void bend(const dt_op_call *c)
{
    const float *x = c->in[0].data, *scale = c->in[1].data;
    float *y = c->out[0].data, *square = c->out[1].data;
    const int64_t n = count(&c->in[0]), D = c->in[0].dim[c->in[0].rank - 1];
    for (int64_t i = 0; i < n; i++) {
        square[i] = x[i] * x[i];
        y[i] = (scale != NULL ? scale[i % D] : 1) * square[i];
    }
}

static void bend_backward(const dt_op_call *c)
{
    const float *dy = c->in[0].data, *x = c->in[1].data, *scale = c->in[2].data, *square = c->in[4].data;
    float *dx = c->out[0].data, *dscale = c->out[1].data, *sum = c->scratch;
    const int64_t n = count(&c->in[1]), D = c->in[1].dim[c->in[1].rank - 1];
    for (int64_t d = 0; d < D; d++) {
        sum[d] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        dx[i] = 2 * x[i] * (scale != NULL ? scale[i % D] : 1) * dy[i];
        sum[i % D] += dy[i] * square[i];
    }
    for (int64_t d = 0; d < D && scale != NULL; d++) {
        dscale[d] = sum[d];
    }
}

static void bend_backward_wrong(const dt_op_call *c)
{
    bend_backward(c);
    ((float *)c->out[0].data)[0] *= 1.1f;
}

static uint64_t bend_scratch(const dt_op_call *c)
{
    return 8 * sizeof(float) + (c->in[0].data != NULL);
}

static void forgetful(const dt_op_call *c)
{
    const int64_t n = count(&c->out[0]);
    for (int64_t i = 1; i < n; i++) {
        ((float *)c->out[0].data)[i] = 0;
    }
}

static void outside(const dt_op_call *c)
{
    const int64_t n = count(&c->out[0]);
    for (int64_t i = 0; i <= n; i++) {
        ((float *)c->out[0].data)[i] = 1;
    }
}

static void changes_input(const dt_op_call *c)
{
    const int64_t n = count(&c->out[0]);
    for (int64_t i = 0; i < n; i++) {
        ((float *)c->in[0].data)[i] += 1;
        ((float *)c->out[0].data)[i] = 1;
    }
}

#define OP(NAME, SHAPE, FORWARD, BACKWARD)                                                                             \
    {                                                                                                                  \
        .struct_size = sizeof(dt_user_op), .name = NAME, .shape = SHAPE, .forward = FORWARD, .backward = BACKWARD,     \
        .scratch_bytes = bend_scratch                                                                                  \
    }
#define BEND_SHAPE "x[...,D] scale?[D] -> y[...,D] square[...,D]"

static const dt_user_op good = OP("bend", BEND_SHAPE, bend, bend_backward);
static const dt_user_op without = OP("bend_alone", BEND_SHAPE, bend, NULL);
static const dt_user_op grown = OP("grown", "x[N,3K] idx?[...]:i32 -> y[N+1,2K,i1,7]", bend, NULL);

static void record_bend(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w0"), NULL);
    dt_tensor *y = g->api->user_op(g, "bend", (dt_tensor *[]){h, P(g, "scale")}, 2, NULL);
    dt_tensor *z = g->api->user_op(g, "bend", &y, 1, NULL);
    (void)g->api->output(g, "z", z);
    (void)g->api->loss(g, "bend", dt_sum(g, y), 1, "N");
    (void)g->api->loss(g, "twice", dt_sum(g, z), 1, "N");
}

static const param_spec params_bend[] = {{"w0", 6, 5}, {"scale", 6, 0}, {NULL, 0, 0}};
static const model model_bend = {params_bend, record_bend};

static void test_derivative_in_a_plan(void **state)
{
    bench b;
    bench_open(&b, &model_bend, 17, 3, 2);
    result r = run(&b, &plain);
    for (int64_t i = 0; i < b.params.total; i++) {
        const double keep = b.value[i], h = 1e-3;
        b.value[i] = keep + h;
        result up = run(&b, &plain);
        b.value[i] = keep - h;
        result down = run(&b, &plain);
        b.value[i] = keep;
        const double want = (up.total - down.total) / (2 * h);
        if (!(fabs(r.grad[i] - want) <= 2e-3 * fmax(1, fabs(want)))) {
            fail_msg("gradient %lld is %g, by differences %g", (long long)i, r.grad[i], want);
        }
        result_fini(&up);
        result_fini(&down);
    }
    dt_plan_desc cpu = plain;
    cpu.kernels = DT_KERNELS_CPU;
    result f = run(&b, &cpu);
    for (int64_t i = 0; i < b.params.total; i++) {
        assert_true(fabs(r.grad[i] - f.grad[i]) <= 1e-4 * fmax(1, fabs(r.grad[i])));
    }
    result_fini(&f);
    result_fini(&r);
    bench_close(&b);
}

static void assert_error(dt_status got, dt_status want, const char *text)
{
    assert_int_equal(got, want);
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, dt_error_text());
    }
}

static void record_nothing(dt_graph *g) {}

static const model model_nothing = {params_bend, record_nothing};

static void test_recording(void **state)
{
    bench b;
    bench_open(&b, &model_nothing, 4, 2, 1);
    dt_str s = {0};
    dt_tensor *x = dt_linear(b.g, I(b.g, "nodes"), P(b.g, "w0"), NULL);
    const dt_attr attr = {.i = {0, 5}};
    dt_tensor *y = b.g->api->user_op(b.g, "grown", &x, 1, &attr);
    assert_non_null(y);
    dt_graph_shape_text(y, &s);
    assert_string_equal(dt_str_text(&s), "N+1 4 5 7 f32");
    dt_str_fini(&s);
    assert_null(b.g->api->user_op(b.g, "grown", &x, 1, NULL));
    assert_error(b.g->api->status(b.g), DT_EINVAL, "grown: i1 is 0; as a size it must be 1 to 2147483647");
    bench_close(&b);

    bench_open(&b, &model_nothing, 4, 2, 1);
    x = I(b.g, "nodes");
    assert_null(b.g->api->user_op(b.g, "unbent", &x, 1, NULL));
    assert_error(b.g->api->status(b.g), DT_ENOTFOUND, "no loaded plugin has an op named unbent; there are bend, ");
    bench_close(&b);

    bench_open(&b, &model_nothing, 4, 2, 1);
    x = dt_linear(b.g, I(b.g, "nodes"), P(b.g, "w0"), NULL);
    (void)b.g->api->loss(b.g, "alone", dt_sum(b.g, b.g->api->user_op(b.g, "bend_alone", &x, 1, NULL)), 1, "N");
    dt_plan *p = NULL;
    assert_error(dt_plan_compile(b.g, &plain, &p), DT_EUNSUPPORTED, "op bend_alone has no derivative");
    bench_close(&b);
}

static void assert_bad(const char *name, const char *shape, const char *text)
{
    const dt_user_op op = OP(name, shape, bend, NULL);
    assert_error(dt_user_op_register(&op, "mine"), DT_EPLUGIN, text);
}

static void test_registration(void **state)
{
    assert_int_equal(dt_user_op_register(&good, "mine"), DT_OK); /* again */
    const dt_user_op same = good;
    assert_error(dt_user_op_register(&same, "other"), DT_EPLUGIN, "plugins mine and other both have an op named bend");
    assert_bad("linear", "x[D] -> y[D]", "the op linear has the name of an op of dtrain");
    assert_bad("Bend", "x[D] -> y[D]", "an op: its name \"Bend\"");
    assert_bad(NULL, "x[D] -> y[D]", "an op: its name is NULL");
    assert_bad("a", NULL, "the op a has no shape");
    assert_bad("a", "", "at least one input");
    assert_bad("a", "x[D]", "at least one input");
    assert_bad("a", "x[D] -> y[E]", "a size of an output is in no input");
    assert_bad("a", "x[D] w?[E] -> y[E]", "or only in an optional one");
    assert_bad("a", "x[D] -> y[...]", "a size of an output is in no input");
    assert_bad("a", "x?[D] -> y[3]", "the first input cannot be optional");
    assert_bad("a", "x[D] -> y?[D]", "an output cannot be optional");
    assert_bad("a", "x[D] -> y[D]:i32", "a result must be f32");
    assert_bad("a", "x[D] -> y[D] -> z[D]", "\"->\" appears twice");
    assert_bad("a", "a[D] b[D] c[D] d[D] e[D] -> y[D]", "more than 4 inputs");
    assert_bad("a", "x[D] -> a[D] b[D] c[D] d[D]", "more than 3 outputs");
    const char *const wrong[] = {"x[...,...] -> y[3]", "x[d] -> y[3]",     "x[] -> y[3]",
                                 "x -> y[3]",          "x[0K] -> y[3]",    "x[i4] -> y[3]",
                                 "x[D -> y[3]",        "x[D]:f64 -> y[3]", "x[1,2,3,4,5,6,7,8,9] -> y",
                                 "x[D]y[D]",           "x[99999999K] ->",  "averyverylongname[D]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_bad("a", wrong[i], "expected name[sizes]");
    }
    assert_int_equal(dt_user_op_find("a"), 0);
}

enum { RANKS = 4, SHARED_OPS = 16 };
static dt_user_op shared[SHARED_OPS];
static pthread_barrier_t begin;

/* As ranks in threads do, each for itself. */
static void *register_shared(void *wrong_p)
{
    pthread_barrier_wait(&begin);
    for (uint32_t i = 0; i < SHARED_OPS; i++) {
        if (dt_user_op_register(&shared[i], "mine") != DT_OK || dt_user_op_find(shared[i].name) == 0) {
            *(bool *)wrong_p = true;
        }
    }
    return NULL;
}

static void test_registration_by_several_threads(void **state)
{
    static char name[SHARED_OPS][16];
    pthread_t thread[RANKS];
    bool wrong[RANKS] = {false};
    for (uint32_t i = 0; i < SHARED_OPS; i++) {
        snprintf(name[i], sizeof(name[i]), "shared%u", i);
        shared[i] = (dt_user_op)OP(name[i], BEND_SHAPE, bend, bend_backward);
    }
    pthread_barrier_init(&begin, NULL, RANKS);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(pthread_create(&thread[r], NULL, register_shared, &wrong[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
        assert_false(wrong[r]);
    }
    pthread_barrier_destroy(&begin);
}

static void verify(const char *name, void (*forward)(const dt_op_call *), void (*backward)(const dt_op_call *),
                   const char *shape, const char *text)
{
    dt_user_op *op = dt_alloc(sizeof(*op)); /* registered ops stay */
    *op = (dt_user_op)OP(name, shape, forward, backward);
    assert_int_equal(dt_user_op_register(op, "mine"), DT_OK);
    assert_error(dt_user_op_verify(dt_user_op_find(name)), DT_EPLUGIN, text);
}

static void test_verify(void **state)
{
    assert_int_equal(dt_user_op_verify(dt_user_op_find("bend")), DT_OK);
    assert_int_equal(dt_user_op_verify(dt_user_op_find("bend_alone")), DT_OK);
    verify("wrong_slope", bend, bend_backward_wrong, BEND_SHAPE, "backward: the gradient of input 0 at element 0 is");
    verify("forgetful", forgetful, NULL, "x[...,D] -> y[...,D]", "two calls of forward differ in output 0");
    verify("outside", outside, NULL, "x[...,D] -> y[...,D]", "forward writes outside of output 0");
    verify("changes_input", changes_input, NULL, "x[...,D] -> y[...,D]", "forward changes its input 0");
}

static int setup(void **state)
{
    return dt_user_op_register(&good, "mine") == DT_OK && dt_user_op_register(&without, "mine") == DT_OK &&
                   dt_user_op_register(&grown, "mine") == DT_OK
               ? 0
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derivative_in_a_plan),
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_registration),
        cmocka_unit_test(test_registration_by_several_threads),
        cmocka_unit_test(test_verify),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped critics and the temperature in a fake host over the real graph: ports, first values, refusals, and what
 * they compute against the same formulas written out in double.
 */
#include "models/bench.h"

enum { D = 3, P = 2, Z = D + P, Q = 2, AGENTS = 4, HIDDEN = 8 };
static const dt_dim all_dims[] = {{"D", D}, {"P", P}, {"Q", Q}};

/* Other values than the first, of which some are 0 and would hide mistakes. */
static void shake(bench *b)
{
    for (int64_t i = 0; i < b->r.table.total; i++) {
        b->params[i] = (float)bench_value((int)i + 7);
    }
}

static void run(const bench *b, const void *const *field, const char *name, float *out, size_t n)
{
    static const int64_t live[] = {1, AGENTS};
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(b, live, field, &p);
    take(e, name, out, n);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

static double mlp(const bench *b, int estimate, int layers, bool is_tanh, const double *z)
{
    char name[MOCK_NAME];
    double x[HIDDEN] = {0}, y[HIDDEN], q = 0;
    memcpy(x, z, Z * sizeof(*x));
    for (int i = 0; i < layers; i++) {
        snprintf(name, sizeof(name), "q%d.%d", estimate, i);
        bench_linear(b, name, x, i == 0 ? Z : HIDDEN, y, HIDDEN);
        for (int k = 0; k < HIDDEN; k++) {
            x[k] = is_tanh ? tanh(y[k]) : fmax(y[k], 0);
        }
    }
    snprintf(name, sizeof(name), "q%d.head", estimate);
    bench_linear(b, name, x, layers == 0 ? Z : HIDDEN, &q, 1);
    return q;
}

static double quadratic(const bench *b, int estimate, const double *z)
{
    char name[MOCK_NAME];
    double q = 0;
    snprintf(name, sizeof(name), "q%d.square", estimate);
    const float *w = param(b, name);
    snprintf(name, sizeof(name), "q%d.line", estimate);
    bench_linear(b, name, z, Z, &q, 1);
    for (int i = 0; i < Z; i++) {
        for (int k = 0; k < Z; k++) {
            q += (double)w[i * Z + k] * z[i] * z[k];
        }
    }
    return q;
}

/* layers below 0: the quadratic one */
static void check(const char *id, const char *const *set, int layers, bool is_tanh)
{
    bench b;
    float obs[AGENTS][D], action[AGENTS][P], q[AGENTS][Q];
    bench_open(&b, id, set, all_dims, 3);
    shake(&b);
    for (int i = 0; i < AGENTS * D; i++) {
        (&obs[0][0])[i] = (float)bench_value(i);
    }
    for (int i = 0; i < AGENTS * P; i++) {
        (&action[0][0])[i] = (float)bench_value(3 * i + 1);
    }
    run(&b, (const void *const[]){obs, action}, "q", &q[0][0], AGENTS * Q);
    for (int a = 0; a < AGENTS; a++) {
        double z[Z];
        for (int k = 0; k < Z; k++) {
            z[k] = (double)(k < D ? obs[a][k] : action[a][k - D]);
        }
        for (int k = 0; k < Q; k++) {
            const double want = layers < 0 ? quadratic(&b, k, z) : mlp(&b, k, layers, is_tanh, z);
            assert_true(fabs((double)q[a][k] - want) <= 2e-5 * (1 + fabs(want)));
        }
    }
    bench_close(&b);
}

static void test_critics_compute(void **state)
{
    check("critic_mlp", (const char *const[]){"hidden=8", NULL}, 2, false);
    check("critic_mlp", (const char *const[]){"hidden=8", "layers=1", "activation=tanh", NULL}, 1, true);
    check("critic_mlp", (const char *const[]){"layers=0", NULL}, 0, false);
    check("critic_quadratic", NULL, -1, false);
}

static void test_ports_and_parameters(void **state)
{
    static const dt_dim one[] = {{"D", D}, {"P", P}, {"Q", 1}};
    bench b;
    bench_open(&b, "critic_mlp", NULL, all_dims, 3);
    assert_int_equal(b.n_in, 2);
    assert_port(&b.in[0], "obs", "A 3");
    assert_port(&b.in[1], "action", "A 2");
    assert_int_equal(b.n_out, 1);
    assert_port(&b.out[0], "q", "A 2");
    assert_int_equal(b.r.table.trained_count, 2 * (256 * Z + 256 + 256 * 256 + 256 + 256 + 1));
    assert_true(param(&b, "q0.head.w")[0] != param(&b, "q1.head.w")[0]); /* estimates begin apart */
    bench_close(&b);
    bench_open(&b, "critic_mlp", NULL, one, 3);
    assert_port(&b.out[0], "q", "A 1");
    bench_close(&b);
    bench_open(&b, "critic_quadratic", (const char *const[]){"curvature=0.5", NULL}, one, 3);
    for (int i = 0; i < Z * Z; i++) {
        assert_true(param(&b, "q0.square")[i] == (i % (Z + 1) == 0 ? -0.5F : 0.0F));
    }
    bench_close(&b);
}

static void test_temperature(void **state)
{
    bench b;
    float log_alpha = 0;
    bench_open(&b, "temperature", (const char *const[]){"initial=0.25", NULL}, NULL, 0);
    assert_int_equal(b.n_in, 0);
    assert_port(&b.out[0], "log_alpha", "1");
    run(&b, NULL, "log_alpha", &log_alpha, 1);
    assert_true(fabs((double)log_alpha - log(0.25)) < 1e-6);
    bench_close(&b);
}

static void refuse(const char *id, const dt_dim *dims)
{
    bench b;
    assert_int_equal(bench_create(&b, id, NULL, dims, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "a critic needs columns of obs"));
    bench_close(&b);
}

static void test_refusals(void **state)
{
    static const dt_dim blind[] = {{"D", 0}, {"P", P}, {"Q", 1}}, idle[] = {{"D", D}, {"P", 0}, {"Q", 1}},
                        none[] = {{"D", D}, {"P", P}, {"Q", 0}}, many[] = {{"D", D}, {"P", P}, {"Q", 9}};
    static const char *const ids[] = {"critic_mlp", "critic_quadratic"};
    for (int i = 0; i < 2; i++) {
        refuse(ids[i], blind);
        refuse(ids[i], idle);
        refuse(ids[i], none);
        refuse(ids[i], many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_critics_compute),
        cmocka_unit_test(test_ports_and_parameters),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

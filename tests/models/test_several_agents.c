/* SPDX-License-Identifier: Apache-2.0
 *
 * critic_others and controller_field in a fake host over the real graph: ports, refusals, and what they compute against
 * the same formulas written out in double.
 */
#include "models/bench.h"

enum { AGENTS = 3, CHOICES = 4, D = 17, OTHERS = AGENTS * CHOICES, STATE = 5, WORLDS = 2, HIDDEN = 6 };
enum { TILES = 2, X = 4 * TILES + 2 + CHOICES }; /* D is 7 planes of TILES, and columns that are not read */
static const dt_dim dims[] = {{"D", D}, {"choices", CHOICES}, {"moves", 2}, {"others", OTHERS}, {"state", STATE}};

static void fill(float *x, int n, int at)
{
    for (int i = 0; i < n; i++) {
        x[i] = (float)bench_value(i + at);
    }
}

/* as bench_open, over worlds G as well */
static void open_bench(bench *b, const char *id, const char *const *set)
{
    static const char *const symbol[] = {"B", "A", "G"};
    assert_int_equal(bench_create(b, id, set, dims, 5), DT_OK);
    bench_record(b, symbol, 3);
    b->params = aligned_alloc(64, (size_t)b->r.table.total * sizeof(float) + 64);
    assert_int_equal(dt_param_table_init(&b->r.table, 11, b->params), DT_OK);
}

static void run(const bench *b, const void *const *field, const char *name, float *out, size_t n)
{
    static const int64_t live[] = {1, AGENTS, WORLDS};
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(b, live, field, &p);
    take(e, name, out, n);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

static void near_all(const float *got, const double *want, int n)
{
    for (int i = 0; i < n; i++) {
        assert_true(fabs((double)got[i] - want[i]) <= 2e-5 * (1 + fabs(want[i])));
    }
}

/* ---- critic_others ----------------------------------------------------------------------------------------------- */

static double relu(double x)
{
    return fmax(x, 0);
}

static void check_critic(const char *const *set, bool has_state, int layers, double (*activation)(double))
{
    bench b;
    static const int32_t world[AGENTS] = {1, 0, 1};
    float obs[AGENTS][D], others[AGENTS][OTHERS], state[WORLDS][STATE], q[AGENTS][CHOICES];
    open_bench(&b, "critic_others", set);
    assert_int_equal(b.n_in, has_state ? 4 : 2);
    assert_port(&b.in[0], "obs", "A 17");
    assert_port(&b.in[1], "others", "A 12");
    fill(b.params, (int)b.r.table.total, 7);
    fill(&obs[0][0], AGENTS * D, 1);
    fill(&others[0][0], AGENTS * OTHERS, 2);
    fill(&state[0][0], WORLDS * STATE, 3);
    run(&b, (const void *const[]){obs, others, state, world}, "q", &q[0][0], AGENTS * CHOICES);
    for (int a = 0; a < AGENTS; a++) {
        double x[D + OTHERS + STATE], h[HIDDEN], want[CHOICES];
        const int n = D + OTHERS + (has_state ? STATE : 0);
        for (int k = 0; k < n; k++) {
            x[k] = (double)(k < D ? obs[a][k] : k < D + OTHERS ? others[a][k - D] : state[world[a]][k - D - OTHERS]);
        }
        if (layers > 0) {
            bench_linear(&b, "critic.0", x, n, h, HIDDEN);
            for (int k = 0; k < HIDDEN; k++) {
                h[k] = activation(h[k]);
            }
        }
        bench_linear(&b, "head.q", layers > 0 ? h : x, layers > 0 ? HIDDEN : n, want, CHOICES);
        near_all(q[a], want, CHOICES);
    }
    bench_close(&b);
}

static void test_critic_of_others(void **unused)
{
    check_critic((const char *const[]){"layers=0", NULL}, true, 0, NULL);
    check_critic((const char *const[]){"layers=1", "hidden=6", NULL}, true, 1, relu);
    check_critic((const char *const[]){"layers=1", "hidden=6", "activation=tanh", NULL}, true, 1, tanh);
    check_critic((const char *const[]){"layers=1", "hidden=6", "state=false", NULL}, false, 1, relu);
}

static void test_critic_needs_others(void **unused)
{
    bench b;
    assert_int_equal(bench_create(&b, "critic_others", NULL, dims, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "others 0, choices 4: critic_others needs"));
    b.ops->destroy(b.self);
    free(b.self);
    free(b.config);
}

/* ---- controller_field -------------------------------------------------------------------------------------------- */

/* what stands at the top of controller_field.c */
static void field_logits(const bench *b, const float *obs, float (*moves)[2], double *out)
{
    double x[X], h[HIDDEN], gain[CHOICES];
    for (int t = 0; t < TILES; t++) {
        const double p = (double)obs[4 * TILES + t], H = (double)obs[5 * TILES + t];
        x[t] = (double)obs[TILES + t];
        x[TILES + t] = H;
        x[2 * TILES + t] = p * H;
        x[3 * TILES + t] = p;
    }
    x[4 * TILES] = (double)obs[2 * TILES];
    x[4 * TILES + 1] = (double)obs[3 * TILES];
    for (int c = 0; c < CHOICES; c++) {
        gain[c] = x[4 * TILES + 2 + c] = (double)moves[c][0] / 0.05;
    }
    bench_linear(b, "policy.0", x, X, h, HIDDEN);
    for (int k = 0; k < HIDDEN; k++) {
        h[k] = fmax(h[k], 0);
    }
    bench_linear(b, "head.logits", h, HIDDEN, out, CHOICES);
    const float *w = param(b, "potential.w"), *rule = param(b, "rule");
    for (int c = 0; c < CHOICES; c++) {
        out[c] += (double)rule[c] * gain[c];
        for (int k = 0; k < X; k++) {
            out[c] += (double)w[c * X + k] * x[k];
        }
    }
}

static void test_controller_of_a_field(void **unused)
{
    static const char *const set[] = {"layers=1", "hidden=6", "rule=3", "policy_gain=0", NULL};
    bench b;
    float obs[AGENTS][D], moves[AGENTS][CHOICES][2], logits[AGENTS][CHOICES];
    double want[CHOICES];
    open_bench(&b, "controller_field", set);
    fill(&obs[0][0], AGENTS * D, 1);
    fill(&moves[0][0][0], AGENTS * CHOICES * 2, 2);
    run(&b, (const void *const[]){obs, moves}, "logits", &logits[0][0], AGENTS * CHOICES);
    for (int a = 0; a < AGENTS; a++) { /* first it is the rule */
        for (int c = 0; c < CHOICES; c++) {
            want[c] = 3 * (double)moves[a][c][0] / 0.05;
        }
        near_all(logits[a], want, CHOICES);
    }
    fill(b.params, (int)b.r.table.total, 7);
    run(&b, (const void *const[]){obs, moves}, "logits", &logits[0][0], AGENTS * CHOICES);
    for (int a = 0; a < AGENTS; a++) {
        field_logits(&b, obs[a], moves[a], want);
        near_all(logits[a], want, CHOICES);
    }
    bench_close(&b);
}

static void test_controller_elsewhere(void **unused)
{
    bench b;
    assert_int_equal(bench_create(&b, "controller_field", NULL, dims, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "controller_field acts in env_ipp"));
    b.ops->destroy(b.self);
    free(b.self);
    free(b.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_critic_of_others),
        cmocka_unit_test(test_critic_needs_others),
        cmocka_unit_test(test_controller_of_a_field),
        cmocka_unit_test(test_controller_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped controllers in a fake host over the real graph: ports for every kind of action, first values, and what
 * untrained ones compute against the same formulas written out in double.
 */
#include "models/bench.h"

enum { D = 5, W = 6, CHOICES = 4, CONTINUOUS = 2, COSTS = 3, AGENTS = 3, HIDDEN = 8 };
static const dt_dim all_dims[] = {{"D", D}, {"W", W}, {"choices", CHOICES}, {"continuous", CONTINUOUS}, {"K", COSTS}};
enum { N_DIMS = sizeof(all_dims) / sizeof(all_dims[0]) };

typedef struct outputs {
    float value[AGENTS], logits[AGENTS * CHOICES], mean[AGENTS * CONTINUOUS], log_std[AGENTS * CONTINUOUS],
        cost_value[AGENTS * COSTS];
} outputs;

static void run(const bench *b, const void *const *field, outputs *out)
{
    static const int64_t live[] = {1, AGENTS};
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(b, live, field, &p);
    take(e, "value", out->value, AGENTS);
    take(e, "logits", out->logits, AGENTS * CHOICES);
    take(e, "mean", out->mean, AGENTS * CONTINUOUS);
    take(e, "log_std", out->log_std, AGENTS * CONTINUOUS);
    take(e, "cost_value", out->cost_value, AGENTS * COSTS);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

static void near(const float *is, const double *want, int n)
{
    for (int i = 0; i < n; i++) {
        if (fabs((double)is[i] - want[i]) > 1e-5 * (1 + fabs(want[i]))) {
            print_error("%d: %g is not %g\n", i, (double)is[i], want[i]);
        }
        assert_true(fabs((double)is[i] - want[i]) <= 1e-5 * (1 + fabs(want[i])));
    }
}

/* the heads of agent a over features for acting, n_act of them, and for valuing */
static void check_heads(const bench *b, const outputs *o, int a, const double *act, int n_act, const double *critic,
                        double log_std)
{
    double y[8], s[CONTINUOUS] = {log_std, log_std};
    bench_linear(b, "head.value", critic, HIDDEN, y, 1);
    near(&o->value[a], y, 1);
    bench_linear(b, "head.logits", act, n_act, y, CHOICES);
    near(&o->logits[(size_t)a * CHOICES], y, CHOICES);
    bench_linear(b, "head.mean", act, n_act, y, CONTINUOUS);
    near(&o->mean[(size_t)a * CONTINUOUS], y, CONTINUOUS);
    near(&o->log_std[(size_t)a * CONTINUOUS], s, CONTINUOUS);
    bench_linear(b, "head.cost_value", critic, HIDDEN, y, COSTS);
    near(&o->cost_value[(size_t)a * COSTS], y, COSTS);
}

/* ---- mlp --------------------------------------------------------------------------------------------------------- */

static void mlp_trunk(const bench *b, const char *trunk, int layers, const double *obs, bool is_relu, double *h)
{
    char name[MOCK_NAME];
    double x[HIDDEN];
    memcpy(x, obs, D * sizeof(*x));
    memcpy(h, obs, D * sizeof(*h));
    for (int layer = 0; layer < layers; layer++) {
        snprintf(name, sizeof(name), "%s.%d", trunk, layer);
        bench_linear(b, name, x, layer == 0 ? D : HIDDEN, h, HIDDEN);
        for (int i = 0; i < HIDDEN; i++) {
            h[i] = is_relu ? fmax(h[i], 0) : tanh(h[i]);
        }
        memcpy(x, h, HIDDEN * sizeof(*x));
    }
}

static void check_mlp(const char *const *set, int layers, bool is_shared, bool is_relu, double log_std)
{
    bench b;
    float obs[AGENTS][D];
    outputs o;
    bench_open(&b, "controller_mlp", set, all_dims, N_DIMS);
    for (int i = 0; i < AGENTS * D; i++) {
        (&obs[0][0])[i] = (float)bench_value(i);
    }
    for (uint32_t i = 0; i < b.r.table.n; i++) { /* biases start at 0 and would hide mistakes */
        const dt_param *p = &b.r.table.param[i];
        for (int64_t k = 0; p->init == DT_INIT_ZERO && k < p->count; k++) {
            b.params[p->offset + k] = (float)bench_value((int)(k + i));
        }
    }
    run(&b, (const void *const[]){obs}, &o);
    for (int a = 0; a < AGENTS; a++) {
        double x[D], act[HIDDEN], critic[HIDDEN];
        for (int k = 0; k < D; k++) {
            x[k] = (double)obs[a][k];
        }
        mlp_trunk(&b, is_shared ? "trunk" : "policy", layers, x, is_relu, act);
        mlp_trunk(&b, is_shared ? "trunk" : "critic", 2, x, is_relu, critic);
        check_heads(&b, &o, a, act, layers > 0 ? HIDDEN : D, critic, log_std);
    }
    bench_close(&b);
}

static void test_mlp_computes(void **state)
{
    check_mlp((const char *const[]){"hidden=8", NULL}, 2, false, false, 0);
    check_mlp((const char *const[]){"hidden=8", "layers=0", "critic_layers=2", NULL}, 0, false, false, 0);
    check_mlp((const char *const[]){"hidden=8", "trunk=shared", "activation=relu", "log_std_init=-0.5", NULL}, 2, true,
              true, -0.5);
}

static void test_ports_follow_the_actions(void **state)
{
    static const dt_dim discrete[] = {{"D", 4}, {"choices", 2}, {"continuous", 0}, {"K", 0}, {"W", 1}};
    static const dt_dim continuous[] = {{"D", 3}, {"continuous", 1}};
    bench b;
    bench_open(&b, "controller_mlp", NULL, all_dims, N_DIMS);
    assert_int_equal(b.n_in, 1);
    assert_port(&b.in[0], "obs", "A 5");
    assert_int_equal(b.n_out, 5);
    assert_port(&b.out[0], "value", "A");
    assert_port(&b.out[1], "logits", "A 4");
    assert_port(&b.out[2], "mean", "A 2");
    assert_port(&b.out[3], "log_std", "A 2");
    assert_port(&b.out[4], "cost_value", "A 3");
    bench_close(&b);

    bench_open(&b, "controller_mlp", NULL, discrete, 5);
    assert_int_equal(b.n_out, 2);
    assert_port(&b.out[1], "logits", "A 2");
    assert_null(dt_param_table_find(&b.r.table, "m.head.log_std"));
    bench_close(&b);

    /* two layers of 64 for the policy, two for the values, as the papers have it */
    bench_open(&b, "controller_mlp", NULL, continuous, 2);
    assert_int_equal(b.n_out, 3);
    assert_port(&b.out[1], "mean", "A 1");
    assert_int_equal(b.r.table.trained_count, 2 * (64 * 3 + 64 + 64 * 64 + 64) + 64 + 1 + 1 + 64 + 1);
    bench_close(&b);

    bench_open(&b, "controller_mlp", (const char *const[]){"layers=0", NULL}, discrete, 5);
    assert_int_equal(b.r.table.trained_count, 2 * 4 + 2 + 4 + 1);
    bench_close(&b);
    bench_open(&b, "controller_mlp", (const char *const[]){"critic_layers=0", NULL}, discrete, 5);
    assert_int_equal(b.r.table.trained_count, 64 * 4 + 64 + 64 * 64 + 64 + 2 * 64 + 2 + 4 + 1);
    bench_close(&b);
}

/* Phases with a critic of its own ask for no value, and for a deviation that depends on what is seen. */
static void test_no_value_and_a_spread(void **state)
{
    static const dt_dim dims[] = {{"D", D}, {"continuous", CONTINUOUS}, {"values", 0}, {"spread", 1}};
    bench b;
    float obs[AGENTS][D], log_std[AGENTS * CONTINUOUS];
    static const int64_t live[] = {1, AGENTS};
    bench_open(&b, "controller_mlp", (const char *const[]){"hidden=8", "log_std_init=-1", "policy_gain=1", NULL}, dims,
               4);
    assert_int_equal(b.n_out, 2);
    assert_port(&b.out[0], "mean", "A 2");
    assert_port(&b.out[1], "log_std", "A 2");
    assert_int_equal(b.r.table.trained_count, 8 * D + 8 + 8 * 8 + 8 + 2 * (8 * CONTINUOUS + CONTINUOUS));
    for (int i = 0; i < AGENTS * D; i++) {
        (&obs[0][0])[i] = (float)bench_value(i);
    }
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(&b, live, (const void *const[]){obs}, &p);
    take(e, "log_std", log_std, AGENTS * CONTINUOUS);
    for (int a = 0; a < AGENTS; a++) {
        double x[D], act[HIDDEN], want[CONTINUOUS];
        for (int k = 0; k < D; k++) {
            x[k] = (double)obs[a][k];
        }
        mlp_trunk(&b, "policy", 2, x, false, act);
        bench_linear(&b, "head.log_std", act, HIDDEN, want, CONTINUOUS);
        near(&log_std[(size_t)a * CONTINUOUS], want, CONTINUOUS);
    }
    assert_true(param(&b, "head.log_std.b")[0] == -1.0F);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

/* the size of orthonormal rows determines the gain; biases are 0 */
static void test_first_values(void **state)
{
    static const struct {
        const char *name;
        int columns;
        double gain;
    } rows[] = {{"policy.1", 64, 1.41421356}, {"critic.1", 64, 1.41421356}, {"head.logits", 64, 0.01},
                {"head.mean", 64, 0.01},      {"head.value", 64, 1},        {"head.cost_value", 64, 1}};
    bench b;
    bench_open(&b, "controller_mlp", NULL, all_dims, N_DIMS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[MOCK_NAME];
        double square = 0;
        snprintf(name, sizeof(name), "%s.w", rows[i].name);
        const float *w = param(&b, name);
        for (int k = 0; k < rows[i].columns; k++) {
            square += (double)w[k] * (double)w[k];
        }
        assert_true(fabs(sqrt(square) - rows[i].gain) < 1e-6);
        snprintf(name, sizeof(name), "%s.b", rows[i].name);
        assert_true(param(&b, name)[0] == 0.0F);
    }
    bench_close(&b);
}

static void test_refusals(void **state)
{
    static const dt_dim none[] = {{"D", 4}, {"choices", 0}, {"continuous", 0}};
    static const dt_dim blind[] = {{"choices", 2}};
    static const dt_dim now[] = {{"D", 4}, {"choices", 2}, {"W", 1}};
    bench b;
    assert_int_equal(bench_create(&b, "controller_mlp", NULL, none, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "D 4, choices 0, continuous 0"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_lstm", NULL, blind, 1), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "the environment has no observation \"obs\" [A D]"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_lstm", NULL, now, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "the phase gives W 1: set the option window"));
    bench_close(&b);
    bench_open(&b, "controller_mlp", (const char *const[]){"trunk=shared", "critic_layers=1", NULL}, now, 3);
    assert_int_equal(b.c->check(&b.host.host, b.config), DT_ECONFIG);
    assert_non_null(strstr(b.host.message, "controller_mlp.critic_layers"));
    bench_close(&b);
}

/* ---- lstm -------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Agent a came at step `from`; its state after the last step. */
static void lstm_state(const bench *b, const float *history, int a, int from, double forget_bias, bool has_encoder,
                       double *h)
{
    enum { ENCODER = 7 };
    double c[HIDDEN] = {0}, x[ENCODER + D], obs[D], gates[4 * HIDDEN];
    const float *wh = param(b, "lstm.h.w");
    memset(h, 0, HIDDEN * sizeof(*h));
    for (int t = from; t < W; t++) {
        for (int k = 0; k < D; k++) {
            obs[k] = (double)history[(t * AGENTS + a) * D + k];
        }
        memcpy(x, obs, sizeof(obs));
        if (has_encoder) {
            bench_linear(b, "encoder", obs, D, x, ENCODER);
            for (int k = 0; k < ENCODER; k++) {
                x[k] = tanh(x[k]);
            }
        }
        bench_linear(b, "lstm.x", x, has_encoder ? ENCODER : D, gates, 4 * HIDDEN);
        for (int i = 0; i < 4 * HIDDEN; i++) {
            for (int k = 0; k < HIDDEN; k++) {
                gates[i] += (double)wh[i * HIDDEN + k] * h[k];
            }
        }
        for (int i = 0; i < HIDDEN; i++) { /* i f g o */
            c[i] = sigmoid(gates[HIDDEN + i] + forget_bias) * c[i] + sigmoid(gates[i]) * tanh(gates[2 * HIDDEN + i]);
            h[i] = sigmoid(gates[3 * HIDDEN + i]) * tanh(c[i]);
        }
    }
}

static void check_lstm(const char *const *set, double forget_bias, bool has_encoder)
{
    bench b;
    outputs o;
    float history[W][AGENTS][D], present[W][AGENTS];
    bench_open(&b, "controller_lstm", set, all_dims, N_DIMS);
    assert_int_equal(b.n_in, 2);
    assert_port(&b.in[0], "obs_history", "6 A 5");
    assert_port(&b.in[1], "present", "6 A");
    for (int t = 0; t < W; t++) {
        for (int a = 0; a < AGENTS; a++) {
            present[t][a] = t >= 2 * a; /* agent a came at step 2 a */
            for (int k = 0; k < D; k++) {
                history[t][a][k] = t >= 2 * a ? (float)bench_value((t * AGENTS + a) * D + k) : 0;
            }
        }
    }
    run(&b, (const void *const[]){history, present}, &o);
    for (int a = 0; a < AGENTS; a++) {
        double h[HIDDEN];
        lstm_state(&b, &history[0][0][0], a, 2 * a, forget_bias, has_encoder, h);
        check_heads(&b, &o, a, h, HIDDEN, h, 0);
    }
    bench_close(&b);
}

static void test_lstm_computes(void **state)
{
    check_lstm((const char *const[]){"hidden=8", "encoder=7", NULL}, 1, true);
    check_lstm((const char *const[]){"hidden=8", "encoder=0", "forget_bias=0", NULL}, 0, false);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Runs a rule on one observation of AGENTS rows; choices, continuous and costs as given. */
static void run_rule(const char *id, const char *const *set, const dt_dim *dims, const float *field, bench *b,
                     float *action, size_t n_actions)
{
    static const int64_t live[] = {1, AGENTS};
    bench_open(b, id, set, dims, 5);
    assert_int_equal(b->r.table.n, 0); /* nothing to train */
    dt_plan *p = NULL;
    dt_exec *e = bench_execute(b, live, (const void *const[]){field}, &p);
    float value[AGENTS], cost_value[AGENTS * 11];
    take(e, b->out[1].name, action, n_actions);
    take(e, "value", value, AGENTS);
    take(e, "cost_value", cost_value, AGENTS * 11);
    for (int i = 0; i < AGENTS * 11; i++) {
        assert_true(cost_value[i] == 0 && value[i % AGENTS] == 0);
    }
    if (dt_exec_output(e, "log_std") != NULL) { /* what is drawn is what the rule says */
        float log_std[AGENTS * 2];
        take(e, "log_std", log_std, AGENTS * 2);
        for (int i = 0; i < AGENTS * 2; i++) {
            assert_true(log_std[i] == -10);
        }
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

/* continuous: 0 or 2 actions that a rule for signals does not use */
static void check_rule_of(const char *id, const char *const *set, int columns, int column, double patience_s,
                          int continuous)
{
    const dt_dim dims[] = {{"D", 0}, {"choices", CHOICES}, {"continuous", continuous}, {"K", 11}, {"phases", columns}};
    float phases[AGENTS * CHOICES * 13], logits[AGENTS * CHOICES];
    bench b;
    for (int i = 0; i < AGENTS * CHOICES * columns; i++) {
        phases[i] = (float)(i * 37 % 101);
    }
    run_rule(id, set, dims, phases, &b, logits, AGENTS * CHOICES);
    char want[MOCK_TEXT];
    snprintf(want, sizeof(want), "A 4 %d", columns);
    assert_port(&b.in[0], "phases", want);
    assert_string_equal(b.out[1].name, "logits");
    for (int i = 0; i < AGENTS * CHOICES; i++) {
        const double waited = columns > 10 && patience_s > 0 ? (double)phases[i * columns + 10] / patience_s : 0;
        assert_true(fabs((double)logits[i] - 1000 * ((double)phases[i * columns + column] + waited)) <=
                    (waited > 0 ? 0.02 : 0));
    }
    assert_int_equal(b.n_out, continuous > 0 ? 5 : 3);
    bench_close(&b);
}

static void check_rule(const char *id, const char *const *set, int columns, int column, double patience_s)
{
    check_rule_of(id, set, columns, column, patience_s, 0);
    check_rule_of(id, set, columns, column, patience_s, 2);
}

static void test_rules_of_signals(void **state)
{
    check_rule("controller_fixed", NULL, 5, 3, 0);
    check_rule("controller_fixed", NULL, 13, 3, 0); /* a program does not mind who waits */
    check_rule("controller_max_pressure", NULL, 8, 2, 60);
    check_rule("controller_max_pressure", NULL, 13, 2, 60);
    check_rule("controller_greedy", NULL, 8, 5, 60);
    check_rule("controller_greedy", NULL, 13, 5, 60);
    check_rule("controller_greedy", NULL, 5, 0, 60); /* nobody counts who is near */
    check_rule("controller_greedy", (const char *const[]){"column=1", NULL}, 5, 1, 60);
    check_rule("controller_greedy", (const char *const[]){"patience_s=5", NULL}, 13, 5, 5);
    check_rule("controller_greedy", (const char *const[]){"patience_s=0", NULL}, 13, 5, 0);
}

static void test_idm(void **state)
{
    static const dt_dim dims[] = {{"D", 0}, {"choices", 0}, {"continuous", 2}, {"K", 11}, {"ego", 9}};
    float ego[AGENTS * 9], mean[AGENTS * 2];
    bench b;
    for (int i = 0; i < AGENTS * 9; i++) {
        ego[i] = (float)bench_value(i);
    }
    run_rule("controller_idm", NULL, dims, ego, &b, mean, AGENTS * 2);
    assert_port(&b.in[0], "ego", "A 9");
    assert_string_equal(b.out[1].name, "mean");
    assert_port(&b.out[2], "log_std", "A 2");
    for (int a = 0; a < AGENTS; a++) {
        assert_true(mean[2 * a] == ego[9 * a + 8] && mean[2 * a + 1] == 0);
    }
    bench_close(&b);
}

static void test_snakes(void **state)
{
    static const dt_dim dims[] = {{"D", 26}, {"choices", 4}, {"continuous", 0}, {"K", 11}, {"advice", 24}};
    static const char *const rule[] = {"rule=random", "rule=l1", "rule=l2", "rule=l3", "rule=l4", "rule=evasion"};
    float advice[AGENTS * 24], logits[AGENTS * 4];
    for (int i = 0; i < AGENTS * 24; i++) {
        advice[i] = (float)bench_value(i);
    }
    for (int k = 0; k < 6; k++) {
        bench b;
        run_rule("controller_snakes", (const char *const[]){rule[k], NULL}, dims, advice, &b, logits, AGENTS * 4);
        assert_port(&b.in[0], "advice", "A 24");
        assert_string_equal(b.out[1].name, "logits");
        for (int i = 0; i < AGENTS * 4; i++) {
            assert_true(logits[i] == 1000 * advice[i / 4 * 24 + 4 * k + i % 4]);
        }
        bench_close(&b);
    }
}

/* where no value is wanted, the first output is the action */
static void test_rules_without_values(void **state)
{
    static const dt_dim signals[] = {{"choices", 4}, {"phases", 13}, {"values", 0}};
    static const dt_dim cars[] = {{"continuous", 1}, {"ego", 9}, {"values", 0}};
    static const dt_dim snakes[] = {{"choices", 4}, {"advice", 24}, {"values", 0}};
    bench b;
    bench_open(&b, "controller_greedy", NULL, signals, 3);
    assert_int_equal(b.n_out, 1);
    assert_port(&b.out[0], "logits", "A 4");
    bench_close(&b);
    bench_open(&b, "controller_idm", NULL, cars, 3);
    assert_int_equal(b.n_out, 2);
    assert_port(&b.out[0], "mean", "A 1");
    bench_close(&b);
    bench_open(&b, "controller_snakes", NULL, snakes, 3);
    assert_int_equal(b.n_out, 1);
    assert_port(&b.out[0], "logits", "A 4");
    bench_close(&b);
}

static void test_rules_refuse_other_worlds(void **state)
{
    static const dt_dim cartpole[] = {{"D", 4}, {"choices", 2}};
    static const dt_dim narrow[] = {{"choices", 4}, {"phases", 2}};
    static const dt_dim slow[] = {{"continuous", 1}, {"ego", 8}};
    static const dt_dim squashed[] = {{"continuous", 1}, {"ego", 9}, {"squashed", 1}};
    bench b;
    assert_int_equal(bench_create(&b, "controller_greedy", NULL, cartpole, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "this one has choices 2 and 0 columns of phases"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_max_pressure", NULL, narrow, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "column 2 of the observation phases, which has 2"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_idm", NULL, slow, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "with more than 8 columns; this one has continuous 1 and 8"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_idm", NULL, squashed, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "this phase applies tanh to actions"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_snakes", NULL, narrow, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "has choices 4 and 0 columns of advice"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp_computes),
        cmocka_unit_test(test_ports_follow_the_actions),
        cmocka_unit_test(test_no_value_and_a_spread),
        cmocka_unit_test(test_first_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lstm_computes),
        cmocka_unit_test(test_rules_of_signals),
        cmocka_unit_test(test_idm),
        cmocka_unit_test(test_snakes),
        cmocka_unit_test(test_rules_without_values),
        cmocka_unit_test(test_rules_refuse_other_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

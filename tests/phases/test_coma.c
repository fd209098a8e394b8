/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_coma's losses against problems that are solved elsewhere: the gradient that they have on the climbing game, in
 * expectation over what the agents draw, is that of the expected payoff, to rounding; one draw of it varies less than
 * with a value as baseline, and that less than without a baseline; following it ends where it has to (all numbers are
 * of an independent computation). And against a second computation, in double, with masks, chance and clipping.
 */
#include "../../phases/phase_coma/coma_loss.h"

#include "unit.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/graph/plan.h"

enum { CHOICES = 3, MOST_ROWS = 32 };
static const double climbing[CHOICES][CHOICES] = {{11, -30, 0}, {-30, 7, 6}, {0, 0, 5}};
static const double z1[CHOICES] = {0.2, -0.1, 0.4}, z2[CHOICES] = {-0.3, 0.5, 0.1};

static double draw(uint32_t stream, uint64_t i) /* U(-1,1) */
{
    const dt_rng_key key = {.seed = 7, .op = stream};
    return 2 * dt_rng_uniform(&key, i) - 1;
}

/* ---- the graph of the phase -------------------------------------------------------------------------------------- */

/* Logits and Q of row i are rows of parameters: row i looks at z[i] and q[i], by a one-hot x. */
typedef struct rig {
    coma_loss_config config;
    int rows;
    double z[MOST_ROWS][CHOICES], q[MOST_ROWS][CHOICES];
    float x[MOST_ROWS][MOST_ROWS], mask[MOST_ROWS][CHOICES], log_prob[MOST_ROWS], td[MOST_ROWS];
    int32_t action[MOST_ROWS];
    float epsilon[CHOICES];
    double policy, critic, entropy, kl;                    /* losses, sums */
    double dz[MOST_ROWS][CHOICES], dq[MOST_ROWS][CHOICES]; /* of the weighted losses */
} rig;

static const dt_port fields[] = {{"x", "A 32", DT_F32, 0},
                                 {"mask", "A 3", DT_F32, 0},
                                 {"action_i", "A 1", DT_I32, 0},
                                 {"log_prob", "A", DT_F32, 0},
                                 {"td_target", "A 1", DT_F32, 0}};

static void set_params(const rig *r, const dt_param_table *t, double *params)
{
    for (int c = 0; c < CHOICES; c++) { /* [out, in] */
        for (int i = 0; i < r->rows; i++) {
            params[t->param[0].offset + c * MOST_ROWS + i] = r->z[i][c];
            params[t->param[1].offset + c * MOST_ROWS + i] = r->q[i][c];
        }
    }
}

static void get_grads(rig *r, const dt_param_table *t, const double *grads)
{
    for (int c = 0; c < CHOICES; c++) {
        for (int i = 0; i < r->rows; i++) {
            r->dz[i][c] = grads[t->param[0].offset + c * MOST_ROWS + i];
            r->dq[i][c] = grads[t->param[1].offset + c * MOST_ROWS + i];
        }
    }
}

static dt_status record(const rig *r, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    dt_tensor *x = api->input(g, "x");
    const coma_policy p = coma_record_policy(g, dt_linear(g, x, api->param(g, "z"), NULL), CHOICES);
    return coma_record_losses(&r->config, g, &p, dt_linear(g, x, api->param(g, "q"), NULL));
}

static void compile(const rig *r, dt_param_table *table, dt_graph **g, dt_plan **plan, dt_exec **e)
{
    static const char *const symbol[] = {"A", "B"};
    static const int64_t cap[] = {MOST_ROWS, MOST_ROWS}, dim[] = {CHOICES, MOST_ROWS};
    assert_int_equal(dt_param_table_add(table, "m", "z", dim, 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(table, "m", "q", dim, 2, DT_INIT_ZERO, 0), DT_OK);
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 2, .field = fields, .n_fields = 5, .params = table};
    assert_int_equal(dt_graph_create(&d, g), DT_OK);
    dt_graph_set_scope(*g, "m");
    const dt_plan_desc pd = {
        .kernels = DT_KERNELS_REF64, .training = true, .reuse = true, .poison = true, .fuse = true, .cap = cap};
    if (record(r, *g) != DT_OK || dt_plan_compile(*g, &pd, plan) != DT_OK || dt_exec_create(*plan, e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
}

static void keep_losses(rig *r, const dt_graph *g, const double *got)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    for (uint32_t i = 0; i < n; i++) {
        double *place = strcmp(loss[i].name, "policy_loss") == 0   ? &r->policy
                        : strcmp(loss[i].name, "critic_loss") == 0 ? &r->critic
                        : strcmp(loss[i].name, "entropy") == 0     ? &r->entropy
                                                                   : &r->kl;
        *place = got[i];
    }
}

/* Losses are sums over rows, and their weights the phase's. */
static void run(rig *r)
{
    dt_param_table table = {0};
    dt_graph *g = NULL;
    dt_plan *plan = NULL;
    dt_exec *e = NULL;
    const dt_graph_loss *loss = NULL;
    double seed[DT_GRAPH_MAX_LOSSES] = {0}, got[DT_GRAPH_MAX_LOSSES] = {0};
    compile(r, &table, &g, &plan, &e);
    const uint32_t n = dt_graph_losses(g, &loss);
    for (uint32_t i = 0; i < n; i++) {
        seed[i] = loss[i].weight;
    }
    double *params = dt_alloc_n((size_t)table.total, sizeof(*params));
    double *grads = dt_alloc_n((size_t)table.total, sizeof(*grads));
    set_params(r, &table, params);
    for (int i = 0; i < r->rows; i++) {
        r->x[i][i] = 1;
    }
    const int64_t size[] = {r->rows, r->rows};
    void *const field[] = {r->x, r->mask, r->action, r->log_prob, r->td};
    const float *step_input[] = {r->epsilon};
    const dt_kernel_run how = {.training = 1};
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = got,
                               .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    keep_losses(r, g, got);
    get_grads(r, &table, grads);
    dt_free(params);
    dt_free(grads);
    dt_exec_destroy(e);
    dt_plan_destroy(plan);
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
}

/* ---- games ------------------------------------------------------------------------------------------------------- */

static void softmax(const double *z, double *p)
{
    double sum = 0;
    for (int c = 0; c < CHOICES; c++) {
        sum += exp(z[c]);
    }
    for (int c = 0; c < CHOICES; c++) {
        p[c] = exp(z[c]) / sum;
    }
}

static double payoff(const double pay[CHOICES][CHOICES], const double *a, const double *b)
{
    double p[CHOICES], q[CHOICES], J = 0;
    softmax(a, p);
    softmax(b, q);
    for (int i = 0; i < CHOICES; i++) {
        for (int j = 0; j < CHOICES; j++) {
            J += p[i] * q[j] * pay[i][j];
        }
    }
    return J;
}

/* Both agents' rows of every joint action: 2 (3 i + j) is the first agent's. */
static void play_climbing(rig *r, uint32_t baseline)
{
    memset(r, 0, sizeof(*r));
    r->config.baseline = baseline;
    r->rows = 2 * CHOICES * CHOICES;
    for (int row = 0; row < r->rows; row++) {
        const int i = row / 2 / CHOICES, j = row / 2 % CHOICES, is_second = row % 2;
        memcpy(r->z[row], is_second ? z2 : z1, sizeof(z1));
        r->action[row] = is_second ? j : i;
        for (int c = 0; c < CHOICES; c++) {
            const double pay = is_second ? climbing[i][c] : climbing[c][j];
            r->q[row][c] = baseline == COMA_VALUE ? payoff(climbing, z1, z2) + (c - 1) : pay; /* mean: the payoff */
            r->mask[row][c] = 1;
        }
        r->td[row] = (float)climbing[i][j];
    }
    run(r);
}

/* Mean of the ascent that is followed, over joint actions as they are drawn, and the sum of the variances of the first
 * agent's part. */
static double moments(const rig *r, double mean[2][CHOICES])
{
    double p[CHOICES], q[CHOICES], trace = 0;
    softmax(z1, p);
    softmax(z2, q);
    memset(mean, 0, 2 * sizeof(mean[0]));
    for (int row = 0; row < r->rows; row++) {
        for (int c = 0; c < CHOICES; c++) {
            const double share = p[row / 2 / CHOICES] * q[row / 2 % CHOICES];
            mean[row % 2][c] -= share * r->dz[row][c];
            trace += row % 2 == 0 ? share * r->dz[row][c] * r->dz[row][c] : 0;
        }
    }
    for (int c = 0; c < CHOICES; c++) {
        trace -= mean[0][c] * mean[0][c];
    }
    return trace;
}

/* The same with the expected payoff as baseline, by hand: what a critic of values would do. */
static double value_trace(void)
{
    const double J = payoff(climbing, z1, z2);
    double p[CHOICES], q[CHOICES], mean[CHOICES] = {0}, trace = 0;
    softmax(z1, p);
    softmax(z2, q);
    for (int u = 0; u < CHOICES * CHOICES; u++) {
        const int i = u / CHOICES, j = u % CHOICES;
        for (int c = 0; c < CHOICES; c++) {
            const double g = (climbing[i][j] - J) * ((c == i) - p[c]);
            mean[c] += p[i] * q[j] * g;
            trace += p[i] * q[j] * g * g;
        }
    }
    for (int c = 0; c < CHOICES; c++) {
        trace -= mean[c] * mean[c];
    }
    return trace;
}

static void test_gradient_of_the_climbing_game(void **unused)
{
    static const double known[CHOICES] = {-2.76572841, 0.61751327, 2.14821514};
    static rig r;
    double mean[2][CHOICES];
    assert_true(fabs(payoff(climbing, z1, z2) - -3.6287779890) < 5e-11);
    for (uint32_t baseline = COMA_COUNTERFACTUAL; baseline <= COMA_NO_BASELINE; baseline++) {
        play_climbing(&r, baseline);
        (void)moments(&r, mean);
        for (int k = 0; k < 2 * CHOICES; k++) {
            double a[CHOICES], b[CHOICES], *moved = k < CHOICES ? &a[k] : &b[k - CHOICES], slope = 0;
            static const double weight[] = {1, -8, 0, 8, -1}; /* five points: error of h^4 */
            const double h = 1e-3;
            memcpy(a, z1, sizeof(a));
            memcpy(b, z2, sizeof(b));
            const double at = *moved;
            for (int i = 0; i < 5; i++) {
                *moved = at + (i - 2) * h;
                slope += weight[i] * payoff(climbing, a, b) / (12 * h);
            }
            assert_true(fabs(mean[k / CHOICES][k % CHOICES] - slope) < 1e-10);
        }
        for (int c = 0; c < CHOICES; c++) {
            assert_true(fabs(mean[0][c] - known[c]) < 6e-9); /* eight decimals are known */
        }
    }
}

static void test_order_of_variances(void **unused)
{
    static rig r;
    double mean[2][CHOICES];
    play_climbing(&r, COMA_COUNTERFACTUAL);
    const double coma = moments(&r, mean);
    play_climbing(&r, COMA_NO_BASELINE);
    const double reinforce = moments(&r, mean);
    play_climbing(&r, COMA_VALUE);
    const double value = moments(&r, mean);
    assert_true(fabs(value - value_trace()) < 1e-9);
    assert_true(fabs(coma - 111.5) < 0.05);
    assert_true(fabs(value - 128.6) < 0.05);
    assert_true(fabs(reinforce - 138.8) < 0.05);
}

/* ---- where following the gradient ends --------------------------------------------------------------------------- */

/* The expectation of the counterfactual gradient, in double: sum over u of p(u) A_i(u) grad log p_i(u_i). */
static double ascent(const double pay[CHOICES][CHOICES], const double *a, const double *b, double g[2][CHOICES])
{
    double p[CHOICES], q[CHOICES], row[CHOICES] = {0}, column[CHOICES] = {0}, J = 0;
    softmax(a, p);
    softmax(b, q);
    for (int i = 0; i < CHOICES; i++) {
        for (int j = 0; j < CHOICES; j++) {
            row[i] += q[j] * pay[i][j];
            column[j] += p[i] * pay[i][j];
            J += p[i] * q[j] * pay[i][j];
        }
    }
    for (int c = 0; c < CHOICES; c++) {
        g[0][c] = p[c] * (row[c] - J);
        g[1][c] = q[c] * (column[c] - J);
    }
    return J;
}

/* Follows it until the payoff stays; the steps grow where it is flat. */
static double limit(const double pay[CHOICES][CHOICES], double *a, double *b)
{
    double J = 0;
    for (int k = 0; k < 4000; k++) {
        double g[2][CHOICES], most = 1e-12;
        J = ascent(pay, a, b, g);
        for (int c = 0; c < CHOICES; c++) {
            most = fmax(most, fmax(fabs(g[0][c]), fabs(g[1][c])));
        }
        const double h = fmin(0.05 / most, 100);
        for (int c = 0; c < CHOICES; c++) {
            a[c] += h * g[0][c];
            b[c] += h * g[1][c];
        }
    }
    return J;
}

static double normal(uint64_t i)
{
    const dt_rng_key key = {.seed = 11, .op = 1};
    return sqrt(-2 * log(1 - dt_rng_uniform(&key, 2 * i))) * cos(2 * M_PI * dt_rng_uniform(&key, 2 * i + 1));
}

static void fill_penalty(double k, double pay[CHOICES][CHOICES])
{
    const double penalty[CHOICES][CHOICES] = {{-k, 0, 10}, {0, 2, 0}, {10, 0, -k}};
    memcpy(pay, penalty, sizeof(penalty));
}

/* Of games begun at random logits of deviation 1/2, the share that ends near this payoff; expected are shares of 20,000
 * games by another program. Of the climbing game it stays near 6 for long, which is no limit: there the second
 * agent gains by turning to 7. */
static void check_share(const double pay[CHOICES][CHOICES], double end, double share)
{
    enum { GAMES = 400 };
    int n = 0;
    for (uint64_t i = 0; i < GAMES; i++) {
        double a[CHOICES], b[CHOICES];
        for (uint64_t c = 0; c < CHOICES; c++) {
            a[c] = 0.5 * normal(i * 2 * CHOICES + c);
            b[c] = 0.5 * normal(i * 2 * CHOICES + CHOICES + c);
        }
        n += fabs(limit(pay, a, b) - end) < 0.3;
    }
    const double got = (double)n / GAMES;
    if (fabs(got - share) > 0.06) { /* of 400, 2.4 standard errors at least */
        fail_msg("%.3f of games end at %g, expected %.3f", got, end, share);
    }
}

static void test_limits_from_equal_choices(void **unused)
{
    static const double k[] = {0, 25, 100}, end[] = {5, 2, 2};
    double a[CHOICES] = {0}, b[CHOICES] = {0}, pay[CHOICES][CHOICES];
    assert_true(fabs(limit(climbing, a, b) - 7) < 0.05);
    for (int i = 0; i < 3; i++) {
        memset(a, 0, sizeof(a));
        memset(b, 0, sizeof(b));
        fill_penalty(k[i], pay);
        assert_true(fabs(limit(pay, a, b) - end[i]) < 0.05);
    }
}

static void test_limits_from_random_choices(void **unused)
{
    double pay[CHOICES][CHOICES];
    check_share(climbing, 7, 0.863);
    check_share(climbing, 11, 0.137);
    fill_penalty(0, pay);
    check_share(pay, 10, 1);
    fill_penalty(25, pay);
    check_share(pay, 10, 0.564);
    check_share(pay, 2, 0.436);
    fill_penalty(100, pay);
    check_share(pay, 10, 0.131);
    check_share(pay, 2, 0.869);
}

/* ---- with masks, chance and clipping ----------------------------------------------------------------------------- */

static void mixed(const rig *r, int i, double *p)
{
    double sum = 0, n = 0;
    for (int c = 0; c < CHOICES; c++) {
        sum += r->mask[i][c] > 0 ? exp(r->z[i][c]) : 0;
        n += r->mask[i][c] > 0;
    }
    for (int c = 0; c < CHOICES; c++) {
        const double e = (double)r->epsilon[0];
        p[c] = r->mask[i][c] > 0 ? (1 - e) * exp(r->z[i][c]) / sum + e / n : 0;
    }
}

/* What the critic says of the choice that was made. */
static double estimate(const rig *r, int i)
{
    return r->config.baseline == COMA_VALUE ? (r->q[i][0] + r->q[i][1] + r->q[i][2]) / CHOICES : r->q[i][r->action[i]];
}

static double advantage(const rig *r, int i)
{
    double p[CHOICES], A = estimate(r, i);
    mixed(r, i, p);
    if (r->config.baseline == COMA_VALUE) {
        return (double)r->td[i] - A;
    }
    for (int c = 0; c < CHOICES; c++) {
        A -= r->config.baseline == COMA_COUNTERFACTUAL ? p[c] * r->q[i][c] : 0;
    }
    return A;
}

static double policy_row(const rig *r, int i, double A)
{
    double p[CHOICES], entropy = 0;
    mixed(r, i, p);
    for (int c = 0; c < CHOICES; c++) {
        entropy -= p[c] > 0 ? p[c] * log(p[c]) : 0;
    }
    const double drawn = p[r->action[i]], ratio = drawn / exp((double)r->log_prob[i]), clip = r->config.clip;
    const double loss = clip > 0 ? -fmin(ratio * A, fmin(fmax(ratio, 1 - clip), 1 + clip) * A) : -A * log(drawn);
    return loss - r->config.entropy_coef * entropy;
}

static void check_second_computation(double clip, uint32_t baseline, float epsilon)
{
    static rig r;
    memset(&r, 0, sizeof(r));
    r.config = (coma_loss_config){.clip = clip, .entropy_coef = 0.03, .baseline = baseline};
    r.rows = 23;
    for (int c = 0; c < CHOICES; c++) {
        r.epsilon[c] = epsilon;
    }
    for (int i = 0; i < r.rows; i++) {
        double p[CHOICES];
        r.action[i] = i % CHOICES;
        r.td[i] = (float)draw(1, (uint64_t)i);
        for (int c = 0; c < CHOICES; c++) {
            const uint64_t at = (uint64_t)(i * CHOICES + c);
            r.z[i][c] = 2 * draw(2, at);
            r.q[i][c] = 3 * draw(3, at);
            r.mask[i][c] = c == r.action[i] || draw(4, at) > 0 ? 1.0F : 0.0F;
        }
        mixed(&r, i, p);
        r.log_prob[i] = (float)(log(p[r.action[i]]) + 0.4 * draw(5, (uint64_t)i)); /* inside and outside the clip */
    }
    run(&r);
    double critic = 0, policy = 0;
    for (int i = 0; i < r.rows; i++) {
        const double A = advantage(&r, i), error = estimate(&r, i) - (double)r.td[i], h = 1e-5;
        critic += error * error;
        policy += policy_row(&r, i, A);
        for (int c = 0; c < CHOICES; c++) {
            const double share = baseline == COMA_VALUE ? 1.0 / CHOICES : c == r.action[i];
            const double at = r.z[i][c], want = share * 2 * error;
            r.z[i][c] = at + h;
            const double up = policy_row(&r, i, A);
            r.z[i][c] = at - h;
            const double slope = (up - policy_row(&r, i, A)) / (2 * h);
            r.z[i][c] = at;
            assert_true(fabs(r.dz[i][c] - slope) < 1e-7);
            assert_true(fabs(r.dq[i][c] - want) < 1e-12); /* no more than the critic's: nothing through A */
        }
    }
    assert_true(fabs(r.critic - critic) < 1e-11);
    assert_true(fabs(r.policy - r.config.entropy_coef * r.entropy - policy) < 1e-11);
}

static void test_second_computation(void **unused)
{
    check_second_computation(0, COMA_COUNTERFACTUAL, 0.25F);
    check_second_computation(0, COMA_COUNTERFACTUAL, 0);
    check_second_computation(0, COMA_NO_BASELINE, 0.5F);
    check_second_computation(0.2, COMA_COUNTERFACTUAL, 0.125F);
    check_second_computation(0, COMA_VALUE, 0.25F);
    check_second_computation(0.2, COMA_VALUE, 0.125F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_of_the_climbing_game),
        cmocka_unit_test(test_order_of_variances),
        cmocka_unit_test(test_limits_from_equal_choices),
        cmocka_unit_test(test_limits_from_random_choices),
        cmocka_unit_test(test_second_computation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

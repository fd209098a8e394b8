/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss of phase2_ppo and its gradient against a second computation of both, in double, that shares nothing with the
 * graph: formulas of the papers row by row, and central differences of them. Two discrete heads with masks, two
 * continuous actions, two costs, every kind of value clipping, entropy and KL terms, advantages alone and mixed. And
 * how coefficients change from round to round.
 */
#include "mock/mock.h"
#include "../../phases/ppo/ppo.h"

#include "unit.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/graph/plan.h"
#include "rl/policy/wiring.h"

enum { ROWS = 23, D = 3, HEADS = 2, CHOICES = 5, P = 2, K = 2 };
enum { OUT = CHOICES + 2 * P + 1 + K, PARAMS = OUT * (D + 1) }; /* one linear layer gives everything */
static const int32_t choices[HEADS] = {3, 2};
static const double value_coef = 0.7, cost_coef = 0.4, entropy_now = 0.03, kl_now = 0.6;
static const float mix[1 + K] = {0.5f, -0.375f, -0.125f};

static float obs[ROWS][D], mask[ROWS][CHOICES], action_f[ROWS][P], old[ROWS], value[ROWS], advantage[ROWS];
static float target[ROWS], cost_value[ROWS][K], cost_advantage[ROWS][K], cost_target[ROWS][K];
static int32_t action_i[ROWS][HEADS];

static const dt_port fields[] = {{"obs", "A 3", DT_F32, 0},        {"mask", "A 5", DT_F32, 0},
                                 {"action_i", "A 2", DT_I32, 0},   {"action_f", "A 2", DT_F32, 0},
                                 {"log_prob", "A", DT_F32, 0},     {"value", "A", DT_F32, 0},
                                 {"advantage", "A", DT_F32, 0},    {"target", "A", DT_F32, 0},
                                 {"cost_value", "A 2", DT_F32, 0}, {"cost_advantage", "A 2", DT_F32, 0},
                                 {"cost_target", "A 2", DT_F32, 0}};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };
static void *const field[N_FIELDS] = {obs,       mask,   action_i,   action_f,       old,        value,
                                      advantage, target, cost_value, cost_advantage, cost_target};

static double draw(uint32_t stream, uint64_t i) /* U(-1,1) */
{
    const dt_rng_key key = {.seed = 5, .op = stream};
    return 2 * dt_rng_uniform(&key, i) - 1;
}

/* ---- the second computation -------------------------------------------------------------------------------------- */

typedef struct sums {
    double policy, value, cost_value, entropy, kl, clipped;
} sums;

static double output(const double *w, int row, int o)
{
    double y = w[OUT * D + o];
    for (int d = 0; d < D; d++) {
        y += w[o * D + d] * (double)obs[row][d];
    }
    return y;
}

static void log_prob_of(const double *w, int row, double *log_prob, double *entropy)
{
    *log_prob = *entropy = 0;
    for (int h = 0, at = 0; h < HEADS; at += choices[h++]) {
        double z = 0;
        for (int j = at; j < at + choices[h]; j++) {
            z += mask[row][j] > 0 ? exp(output(w, row, j)) : 0;
        }
        for (int j = at; j < at + choices[h]; j++) {
            const double p = mask[row][j] > 0 ? exp(output(w, row, j)) / z : 0;
            *entropy -= p > 0 ? p * log(p) : 0;
            *log_prob += j - at == action_i[row][h] ? log(p) : 0;
        }
    }
    for (int a = 0; a < P; a++) {
        const double s = exp(output(w, row, CHOICES + P + a));
        const double n = ((double)action_f[row][a] - output(w, row, CHOICES + a)) / s;
        *log_prob += -0.5 * n * n - log(s * sqrt(2 * M_PI));
        *entropy += log(s * sqrt(2 * M_PI * exp(1.0)));
    }
}

static double value_row(uint32_t mode, double clip, double v, double v_old, double goal)
{
    const double e = (v - goal) * (v - goal);
    if (mode == 1) {
        const double moved = v_old + fmin(fmax(v - v_old, -clip), clip);
        return fmax(e, (moved - goal) * (moved - goal));
    }
    return mode == 2 ? fmin(e, clip) : e;
}

static double advantage_of(const ppo_loss_config *c, int row)
{
    double a = (c->has_mix ? (double)mix[0] : 1) * (double)advantage[row];
    for (int k = 0; k < K; k++) {
        a += c->has_mix ? (double)mix[1 + k] * (double)cost_advantage[row][k] : 0;
    }
    return a;
}

static double loss_of_rows(const ppo_loss_config *c, const double *w, sums *s)
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < ROWS; i++) {
        double log_prob, entropy;
        log_prob_of(w, i, &log_prob, &entropy);
        const double r = exp(log_prob - (double)old[i]), a = advantage_of(c, i);
        s->policy -= c->is_apart ? r * a : fmin(r * a, fmin(fmax(r, 1 - c->clip), 1 + c->clip) * a);
        s->kl += r - 1 - log(r);
        s->clipped += !c->is_apart && fabs(r - 1) > c->clip;
        s->entropy += entropy;
        s->value += value_row(c->value_clip_mode, c->value_clip, output(w, i, CHOICES + 2 * P), (double)value[i],
                              (double)target[i]);
        for (int k = 0; k < K; k++) {
            s->cost_value += value_row(c->value_clip_mode, c->value_clip, output(w, i, CHOICES + 2 * P + 1 + k),
                                       (double)cost_value[i][k], (double)cost_target[i][k]);
        }
    }
    return ((c->is_apart ? 0 : s->policy) + value_coef * s->value + cost_coef * s->cost_value -
            entropy_now * s->entropy + kl_now * s->kl) /
           ROWS;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* What the host does for a bound controller: here one linear layer whose columns are all outputs. */
static dt_status forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                         uint32_t n_out)
{
    dt_tensor *y = dt_linear(g, in[0].tensor, g->api->param(g, "w"), g->api->param(g, "b"));
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = out[i].name;
        out[i].tensor = strcmp(name, "logits") == 0    ? dt_slice(g, y, 0, CHOICES)
                        : strcmp(name, "mean") == 0    ? dt_slice(g, y, CHOICES, P)
                        : strcmp(name, "log_std") == 0 ? dt_slice(g, y, CHOICES + P, P)
                        : strcmp(name, "value") == 0   ? dt_merge(g, dt_slice(g, y, CHOICES + 2 * P, 1))
                                                       : dt_slice(g, y, CHOICES + 2 * P + 1, K);
    }
    return g->api->status(g);
}

static double run_graph(dt_wiring *wiring, const ppo_loss_config *c, const double *w, dt_kernel_set kernels,
                        double *grad, sums *sum)
{
    static const char *const symbol[] = {"A", "B"};
    static const int64_t cap[] = {ROWS, ROWS};
    const int64_t dim[2][2] = {{OUT, D}, {OUT, 0}};
    dt_param_table table = {0};
    dt_graph *g = NULL;
    dt_plan *plan = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_param_table_add(&table, "controller", "w", dim[0], 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&table, "controller", "b", dim[1], 1, DT_INIT_ZERO, 0), DT_OK);
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = 2, .field = fields, .n_fields = N_FIELDS, .params = &table, .model = forward};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_set_scope(g, "controller");
    dt_policy_tensors policy = {.struct_size = sizeof(policy)};
    if (wiring->api->record(wiring, g, NULL, &policy) != DT_OK || ppo_record_losses(wiring, c, g, &policy) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const dt_plan_desc pd = {
        .kernels = kernels, .training = true, .reuse = true, .poison = true, .fuse = true, .cap = cap};
    if (dt_plan_compile(g, &pd, &plan) != DT_OK || dt_exec_create(plan, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }

    const char *const *name = NULL;
    const int64_t *count = NULL;
    const float now[2] = {(float)entropy_now, (float)kl_now};
    const float *step_input[3];
    const uint32_t n_inputs = c->has_mix ? 3 : 2;
    assert_int_equal(dt_plan_step_inputs(plan, &name, &count), n_inputs);
    for (uint32_t i = 0; i < n_inputs; i++) {
        const bool is_mix = strcmp(name[i], "advantage_mix") == 0;
        step_input[i] = is_mix ? mix : strcmp(name[i], "entropy_coef") == 0 ? &now[0] : &now[1];
    }
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    double seed[DT_GRAPH_MAX_LOSSES] = {0}, got[DT_GRAPH_MAX_LOSSES] = {0}, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        seed[i] = loss[i].weight / ROWS;
    }
    const bool wide = kernels == DT_KERNELS_REF64;
    double *params = dt_alloc_n((size_t)table.total, sizeof(double));
    double *grads = dt_alloc_n((size_t)table.total, sizeof(double));
    for (int i = 0; i < PARAMS; i++) {
        const int64_t at = i < OUT * D ? table.param[0].offset + i : table.param[1].offset + i - OUT * D;
        if (wide) {
            params[at] = w[i];
        } else {
            ((float *)(void *)params)[at] = (float)w[i];
        }
    }
    const int64_t size[] = {ROWS, ROWS};
    const dt_kernel_run run = {.training = 1};
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = got,
                               .run = &run};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    for (int i = 0; i < PARAMS; i++) {
        const int64_t at = i < OUT * D ? table.param[0].offset + i : table.param[1].offset + i - OUT * D;
        grad[i] = wide ? grads[at] : (double)((float *)(void *)grads)[at];
    }
    for (uint32_t i = 0; i < n; i++) {
        double *place = strcmp(loss[i].name, "policy_loss") == 0       ? &sum->policy
                        : strcmp(loss[i].name, "value_loss") == 0      ? &sum->value
                        : strcmp(loss[i].name, "cost_value_loss") == 0 ? &sum->cost_value
                        : strcmp(loss[i].name, "entropy") == 0         ? &sum->entropy
                        : strcmp(loss[i].name, "approx_kl") == 0       ? &sum->kl
                        : strcmp(loss[i].name, "clipfrac") == 0        ? &sum->clipped
                                                                       : NULL;
        total += seed[i] * got[i];
        if (place != NULL) {
            *place = got[i];
        }
    }
    dt_free(params);
    dt_free(grads);
    dt_exec_destroy(e);
    dt_plan_destroy(plan);
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
    return total;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void fill(double *w)
{
    for (int i = 0; i < PARAMS; i++) {
        w[i] = 0.8 * draw(1, (uint64_t)i);
    }
    for (int i = 0; i < ROWS; i++) {
        for (int d = 0; d < D; d++) {
            obs[i][d] = (float)draw(2, (uint64_t)(i * D + d));
        }
        for (int j = 0; j < CHOICES; j++) {
            mask[i][j] = draw(3, (uint64_t)(i * CHOICES + j)) > -0.5 ? 1.0f : 0.0f;
        }
        for (int h = 0, at = 0; h < HEADS; at += choices[h++]) { /* the action is always allowed */
            action_i[i][h] = (int32_t)((draw(4, (uint64_t)(i * HEADS + h)) + 1) / 2 * choices[h]);
            mask[i][at + action_i[i][h]] = 1;
        }
        for (int a = 0; a < P; a++) {
            action_f[i][a] = (float)draw(5, (uint64_t)(i * P + a));
        }
        double log_prob, entropy;
        log_prob_of(w, i, &log_prob, &entropy);
        old[i] = (float)(log_prob + 0.5 * draw(6, (uint64_t)i)); /* inside and outside the clip */
        advantage[i] = (float)draw(7, (uint64_t)i);
        value[i] = (float)draw(8, (uint64_t)i);
        target[i] = (float)(1.5 * draw(9, (uint64_t)i));
        for (int k = 0; k < K; k++) {
            cost_value[i][k] = (float)draw(10, (uint64_t)(i * K + k));
            cost_advantage[i][k] = (float)draw(12, (uint64_t)(i * K + k));
            cost_target[i][k] = (float)(1.5 * draw(11, (uint64_t)(i * K + k)));
        }
    }
}

static void check_mode(uint32_t mode, double clip, bool has_mix, bool is_apart)
{
    static const dt_port own = {"obs", "A 3", DT_F32, 0};
    static const dt_env_spec spec = {.struct_size = sizeof(spec),
                                     .obs = &own,
                                     .n_obs = 1,
                                     .n_agents = 1,
                                     .choices = choices,
                                     .n_heads = HEADS,
                                     .n_continuous = P,
                                     .n_costs = K};
    dt_wired wiring = {
        .face = {.api = &dt_wiring_service, .spec = &spec, .n_choices = CHOICES, .own = &own, .window = 1}};
    const ppo_loss_config c = {.clip = 0.2,
                               .value_clip_mode = mode,
                               .value_clip = clip,
                               .value_coef = value_coef,
                               .cost_value_coef = cost_coef,
                               .has_entropy = true,
                               .has_kl = true,
                               .has_mix = has_mix,
                               .is_apart = is_apart};
    double w[PARAMS], grad[PARAMS], single[PARAMS];
    fill(w);
    sums want, got, rough;
    const double total = loss_of_rows(&c, w, &want);
    assert_true(is_apart || (want.clipped > 3 && want.clipped < ROWS - 3)); /* both branches are taken */
    assert_true(fabs(run_graph(&wiring.face, &c, w, DT_KERNELS_REF64, grad, &got) - total) <
                1e-7); /* coefficients are floats */
    assert_true(fabs(got.policy - want.policy) < 1e-12 * ROWS);
    assert_true(fabs(got.value - want.value) < 1e-12 * ROWS);
    assert_true(fabs(got.cost_value - want.cost_value) < 1e-12 * ROWS);
    assert_true(fabs(got.entropy - want.entropy) < 1e-12 * ROWS);
    assert_true(fabs(got.kl - want.kl) < 1e-12 * ROWS);
    assert_true(got.clipped == want.clipped);
    assert_true(fabs(run_graph(&wiring.face, &c, w, DT_KERNELS_CPU, single, &rough) - total) < 1e-5);
    for (int i = 0; i < PARAMS; i++) {
        const double h = 1e-5, at = w[i];
        sums unused;
        w[i] = at + h;
        const double up = loss_of_rows(&c, w, &unused);
        w[i] = at - h;
        const double down = loss_of_rows(&c, w, &unused);
        w[i] = at;
        const double slope = (up - down) / (2 * h);
        if (fabs(grad[i] - slope) > 1e-7) {
            fail_msg("parameter %d: %.12g, differences say %.12g", i, grad[i], slope);
        }
        assert_true(fabs(single[i] - slope) < 1e-4);
    }
}

static void test_plain_values(void **unused)
{
    check_mode(DT_VALUE_PLAIN, 0.3, false, false);
}

static void test_values_clipped_by_their_step(void **unused)
{
    check_mode(DT_VALUE_CLIP_STEP, 0.3, false, false);
}

static void test_values_clipped_by_their_error(void **unused)
{
    check_mode(DT_VALUE_CLIP_ERROR, 0.3, false, false);
}

static void test_mixed_advantages(void **unused)
{
    check_mode(DT_VALUE_PLAIN, 0.3, true, false);
}

/* A phase that updates the policy itself: policy_loss is not clipped, and no gradient is of it. */
static void test_policy_apart(void **unused)
{
    check_mode(DT_VALUE_PLAIN, 0.3, true, true);
}

/* ---- coefficients from round to round ---------------------------------------------------------------------------- */

static struct {
    char name[32];
    float value;
} sets[8];
static int n_sets;

static dt_status keep_set(dt_train *t, const char *name, const float *x, uint32_t n)
{
    assert_int_equal(n, 1);
    snprintf(sets[n_sets].name, sizeof(sets[0].name), "%s", name);
    sets[n_sets++].value = x[0];
    return DT_OK;
}

static void expect_set(const char *name, double want)
{
    for (int i = n_sets - 1; i >= 0; i--) {
        if (strcmp(sets[i].name, name) == 0) {
            assert_true(fabs((double)sets[i].value - want) < 1e-6);
            return;
        }
    }
    fail_msg("%s is not set", name);
}

/* The weight of the entropy goes in a line from the first round to the last; advantages have the unit they had. */
static void test_coefficients_of_a_round(void **unused)
{
    static const dt_train_api train = {.struct_size = sizeof(train), .set = keep_set};
    dt_rounds rounds = {.train = &train, .n_rounds = 5};
    ppo k = {.rounds = &rounds, .is_normalised = true, .kl_coef = 0.25};
    k.config = (ppo_config){.entropy_coef = 0.5, .entropy_coef_end = 0.1};
    k.loss.has_entropy = k.loss.has_kl = true;
    k.loss.imagine.weight = 1;
    for (uint64_t round = 0; round < 5; round++) {
        n_sets = 0;
        assert_int_equal(ppo_begin_round(&k, round), DT_OK);
        expect_set("entropy_coef", 0.5 - 0.1 * (double)round);
        expect_set("kl_coef", 0.25);
        expect_set("advantage_unit", 1);
        const dt_rollout_report r = {.advantage_std = 8};
        assert_int_equal(ppo_after_collect(&k, round, &r), DT_OK);
        expect_set("advantage_unit", 1.0 / 8);
    }
    rounds.n_rounds = 1;
    assert_int_equal(ppo_begin_round(&k, 0), DT_OK);
    expect_set("entropy_coef", 0.5);
    k.is_normalised = false;
    assert_int_equal(ppo_after_collect(&k, 0, &(const dt_rollout_report){.advantage_std = 8}), DT_OK);
    expect_set("advantage_unit", 1);
}

static dt_status create_wiring(const dt_host *h, const dt_wiring_desc *d, dt_wiring **out_p)
{
    static dt_wiring wiring;
    wiring.F = d->flags; /* for the test to see */
    *out_p = &wiring;
    return DT_OK;
}

static void test_create(void **unused)
{
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics)};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring), .create = create_wiring};
    const dt_wiring_config w = {.foresight = 0};
    const dt_rounds_config rounds = {.normalise_advantage = 1};
    for (int has_target = 0; has_target < 2; has_target++) {
        const ppo_config c = {.clip = 0.25, .kl_target = has_target * 0.01, .kl_coef = 0.5, .entropy_coef_end = 0.1};
        mock_host h;
        ppo k = {.kl_coef = 7};
        mock_host_init(&h);
        mock_host_serve(&h, DT_SVC_METRICS, &metrics);
        mock_host_serve(&h, DT_SVC_WIRING, &wiring);
        assert_int_equal(ppo_create(&k, &h.host, "p", &c, &w, &rounds), DT_OK);
        assert_true(k.kl_coef == (has_target ? 0.5 : 0)); /* initial weight of the penalty */
        assert_int_equal(k.loss.has_kl, has_target);
        assert_true(k.loss.has_entropy && k.loss.clip == 0.25 && k.is_normalised && !k.loss.is_apart);
        assert_int_equal(k.wiring->F, 0); /* no imagined branches: any observation */
    }
}

static dt_status after(ppo *k, uint64_t pass, double kl)
{
    const char *const name[] = {"policy_loss", "approx_kl"};
    const double means[] = {99, kl};
    const dt_pass_report r = {.n_losses = 2, .pass = pass, .passes = 3, .loss_name = name, .loss_value = means};
    return ppo_after_pass(k, &r);
}

/* Schulman et al. 2017, section 4: the penalty doubles above 1.5 times its aim and halves below its aim / 1.5, once a
 * round; a pass that leads too far is the last one. */
static void test_penalty_and_stop(void **unused)
{
    ppo k = {.kl_coef = 1};
    k.config.kl_target = 0.01;
    static const double kl[] = {0.0151, 0.0149, 0.0067, 0.0066}, factor[] = {2, 1, 1, 0.5};
    for (int i = 0; i < 4; i++) {
        k.kl_coef = 1;
        assert_int_equal(after(&k, 0, kl[i]), DT_OK);
        assert_true(k.kl_coef == 1); /* not before the last pass */
        assert_int_equal(after(&k, 2, kl[i]), DT_OK);
        assert_true(k.kl_coef == factor[i]);
    }
    k.kl_coef = 1e6;
    assert_int_equal(after(&k, 2, 1), DT_OK);
    assert_true(k.kl_coef == 1e6);
    k.kl_coef = 1e-6;
    assert_int_equal(after(&k, 2, 0), DT_OK);
    assert_true(k.kl_coef == 1e-6);
    k.kl_coef = 1;
    k.config.target_kl = 0.02;
    assert_int_equal(after(&k, 0, 0.0299), DT_OK);
    assert_true(k.kl_coef == 1);
    assert_int_equal(after(&k, 0, 0.0301), DT_DONE);
    assert_true(k.kl_coef == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_values),
        cmocka_unit_test(test_values_clipped_by_their_step),
        cmocka_unit_test(test_values_clipped_by_their_error),
        cmocka_unit_test(test_mixed_advantages),
        cmocka_unit_test(test_policy_apart),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_coefficients_of_a_round),
        cmocka_unit_test(test_penalty_and_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

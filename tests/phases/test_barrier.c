/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss of the learned barrier and what is counted of it, part by part, and the gradient of the whole, against a
 * second computation in double: labels from steps until costs, both sides of every margin, rows without a next one.
 */
#include "../../phases/phase3_constrained/barrier.h"

#include "unit.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/graph/plan.h"
#include "rl/policy/wiring.h"
#include "mock/recorded.h"

enum { ROWS = 400, D = 3, K = 3, PARTS = 9, PARAMS = D + 1 };
static const barrier subject = {.config = {.alpha = 0.3, .margin = 0.8, .coef = 1, .unsafe_steps = 2, .safe_steps = 5},
                                .marks = {1, 0, 1}};

static bool of_stored; /* the same rows are recorded vehicles, and their first cost a hazard */
static float obs[ROWS][D], next_obs[ROWS][D], next_present[ROWS], cost_in[ROWS][K], hazard_in[ROWS];

static dt_port fields[] = {{"obs", "A 3", DT_F32, 0},        {"next_obs", "A 3", DT_F32, 0},
                           {"next_present", "A", DT_F32, 0}, {"cost_in", "A 3", DT_F32, 0},
                           {"ahead", "S 1 3", DT_F32, 0},    {"next_ahead", "S 1 3", DT_F32, 0},
                           {"beside", "S 1 3", DT_F32, 0},   {"next_beside", "S 1 3", DT_F32, 0},
                           {"target", "S 1 3", DT_F32, 0},   {"hazard_in", "S", DT_F32, 0}};
static void *const field[] = {obs, next_obs, next_present, cost_in, obs, next_obs, obs, next_obs, obs, hazard_in};

static double draw(uint32_t stream, uint64_t i) /* U(-1,1) */
{
    const dt_rng_key key = {.seed = 8, .op = stream};
    return 2 * dt_rng_uniform(&key, i) - 1;
}

static void fill(void)
{
    static const float in[] = {0, 1, 2, 3, 4, 5, 6, 40, DT_ROLLOUT_NEVER, -1, -5, -6, -30};
    for (uint64_t i = 0; i < ROWS; i++) {
        for (uint64_t d = 0; d < D; d++) {
            obs[i][d] = (float)draw(1, i * D + d);
            next_obs[i][d] = obs[i][d] + (float)(0.5 * draw(2, i * D + d));
        }
        next_present[i] = draw(3, i) > -0.7 ? 1.0f : 0.0f;
        for (uint64_t k = 0; k < K; k++) {
            const bool is_rare = k != 1 && draw(4, i * K + k) > -0.5; /* most rows are far from costs */
            const uint32_t at =
                is_rare ? 6 + (uint32_t)((draw(5, i * K + k) + 1) * 3.5) : (uint32_t)((draw(5, i * K + k) + 1) * 6.5);
            cost_in[i][k] = in[at < 13 ? at : 12];
        }
        hazard_in[i] = cost_in[i][0];
    }
}

/* ---- the second computation -------------------------------------------------------------------------------------- */

static double value_of(const double *w, const float *x)
{
    double h = w[D];
    for (int d = 0; d < D; d++) {
        h += w[d] * (double)x[d];
    }
    return h;
}

static double bounded(double h)
{
    return fmin(fmax(h, -subject.config.margin), subject.config.margin);
}

static void parts_of(const double *w, double *sum)
{
    const barrier_config *c = &subject.config;
    memset(sum, 0, PARTS * sizeof(*sum));
    for (int i = 0; i < ROWS; i++) {
        bool is_safe = true, is_unsafe = false;
        for (int k = 0; k < (of_stored ? 1 : K); k += 2) { /* those that mark */
            const double n = (double)cost_in[i][k];
            is_safe = is_safe && fabs(n) > (double)c->safe_steps;
            is_unsafe = is_unsafe || (n >= 0 && n <= (double)c->unsafe_steps);
        }
        const double h = value_of(w, obs[i]), h1 = value_of(w, next_obs[i]);
        const double lost = (1 - c->alpha) * bounded(h) - bounded(h1);
        const bool steps = is_safe && next_present[i] > 0;
        sum[0] += is_safe ? fmax(c->margin - h, 0) : 0;
        sum[1] += is_unsafe ? fmax(c->margin + h, 0) : 0;
        sum[2] += steps ? fmax(lost + 0.1 * c->margin, 0) : 0;
        sum[3] += steps && lost > 0;
        sum[4] += is_safe && h > 0;
        sum[5] += is_unsafe && h <= 0;
        sum[6] += is_safe;
        sum[7] += is_unsafe;
        sum[8] += steps;
    }
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* What the host does for a bound shield. */
static dt_status forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                         uint32_t n_out)
{
    assert_int_equal(n_in, of_stored ? 3 : 1);
    assert_string_equal(in[0].name, of_stored ? "ahead" : "obs");
    assert_int_equal(n_out, 1);
    assert_string_equal(out[0].name, "barrier");
    dt_tensor *x = of_stored ? dt_merge(g, in[0].tensor) : in[0].tensor;
    out[0].tensor = dt_merge(g, dt_linear(g, x, g->api->param(g, "w"), g->api->param(g, "b")));
    return g->api->status(g);
}

static double run(const double *w, const float *mix, double *grad)
{
    static const char *const symbol[] = {"A", "S", "B"};
    static const int64_t cap[] = {ROWS, ROWS, ROWS}, size[] = {ROWS, ROWS, ROWS}, dim[2][2] = {{1, D}, {1, 0}};
    static const dt_port ports[] = {{"obs", "A 3", DT_F32, 0}};
    const dt_env_spec spec = {.struct_size = sizeof(spec), .obs = ports, .n_obs = 1, .n_costs = K};
    dt_wired wiring = {
        .face = {.api = &dt_wiring_service, .spec = &spec, .own = &ports[0], .shield = (dt_model *)(uintptr_t)1}};
    dt_param_table table = {0};
    dt_graph *g = NULL;
    fields[2].dims = of_stored ? "S" : "A"; /* next_present, which both have */
    dt_plan *plan = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_param_table_add(&table, "shield", "w", dim[0], 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&table, "shield", "b", dim[1], 1, DT_INIT_ZERO, 0), DT_OK);
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = 3, .field = fields, .n_fields = 10, .params = &table, .model = forward};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_set_scope(g, "shield");
    const dt_policy_tensors policy = {.foreseen = NULL};
    if ((of_stored ? barrier_record_stored(&subject, &wiring.face, g)
                   : barrier_record(&subject, &wiring.face, g, &policy)) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const dt_plan_desc pd = {
        .kernels = DT_KERNELS_REF64, .training = true, .reuse = true, .poison = true, .fuse = true, .cap = cap};
    if (dt_plan_compile(g, &pd, &plan) != DT_OK || dt_exec_create(plan, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    double *params = dt_alloc_n((size_t)table.total, sizeof(double)),
           *grads = dt_alloc_n((size_t)table.total, sizeof(double));
    memcpy(params + table.param[0].offset, w, D * sizeof(double));
    params[table.param[1].offset] = w[D];
    double got = 0;
    const double seed = 1;
    const dt_kernel_run how = {.training = 1};
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = &mix,
                               .params = params,
                               .grads = grads,
                               .loss_seed = &seed,
                               .loss = &got,
                               .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(grad, grads + table.param[0].offset, D * sizeof(double));
    grad[D] = grads[table.param[1].offset];
    dt_free(params);
    dt_free(grads);
    dt_exec_destroy(e);
    dt_plan_destroy(plan);
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
    return got;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static const double weights[][PARAMS] = {{0.9, -1.4, 0.6, 0.1}, {-0.2, 0.3, 0.1, 0.7}, {0, 0, 0, -0.5}};

static void test_parts(void **state)
{
    fill();
    for (size_t t = 0; t < sizeof(weights) / sizeof(weights[0]); t++) {
        double want[PARTS], grad[PARAMS];
        parts_of(weights[t], want);
        assert_true(want[6] > 40 && want[7] > 20 && want[6] + want[7] < ROWS - 10 && want[8] < want[6]);
        for (int p = 0; p < PARTS; p++) {
            float mix[PARTS] = {0};
            mix[p] = 1;
            const double got = run(weights[t], mix, grad);
            if (fabs(got - want[p]) > 1e-4) {
                fail_msg("part %d is %.9g, expected %.9g", p, got, want[p]);
            }
        }
    }
}

static void test_parts_of_stored(void **state)
{
    of_stored = true;
    test_parts(state);
    of_stored = false;
}

static void test_gradient(void **state)
{
    const float mix[PARTS] = {0.5f, 2, 1.5f};
    fill();
    for (size_t t = 0; t < sizeof(weights) / sizeof(weights[0]); t++) {
        double w[PARAMS], grad[PARAMS];
        memcpy(w, weights[t], sizeof(w));
        (void)run(w, mix, grad);
        for (int i = 0; i < PARAMS; i++) {
            double side[2];
            for (int s = 0; s < 2; s++) {
                double sum[PARTS];
                w[i] = weights[t][i] + (s == 0 ? 1e-6 : -1e-6);
                parts_of(w, sum);
                side[s] = 0.5 * sum[0] + 2 * sum[1] + 1.5 * sum[2];
            }
            w[i] = weights[t][i];
            const double slope = (side[0] - side[1]) / 2e-6;
            if (fabs(grad[i] - slope) > 1e-3 * (1 + fabs(slope))) {
                fail_msg("gradient %d is %.9g, expected %.9g", i, grad[i], slope);
            }
        }
    }
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* A trainer whose parts are given: barrier_loss is the sum of mix times parts. */
static double part_of[2][PARTS];
static float mix_of[2][PARTS];

static dt_status set_mix(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_int_equal(n, PARTS);
    memcpy(mix_of[strcmp(name, "stored_barrier_mix") == 0], value, sizeof(mix_of[0]));
    return DT_OK;
}

static dt_status losses(dt_train *t, const char *const *name, uint32_t n, double *out)
{
    for (uint32_t k = 0; k < n; k++) {
        assert_string_equal(name[k], k == 0 ? "barrier_loss" : "stored_barrier_loss");
        out[k] = 0;
        for (int i = 0; i < PARTS; i++) {
            out[k] += (double)mix_of[k][i] * part_of[k][i];
        }
    }
    return DT_OK;
}

/* Terms are learnt as means over their own rows, rare ones over LEAST_SHARE of all; figures are shares of theirs. */
static void test_a_round(void **state)
{
    static const dt_train_api train = {.struct_size = sizeof(train), .set = set_mix, .losses = losses};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const double parts[2][PARTS] = {{0.25, 0.02, 0.1, 0.05, 0.4, 0.0003, 0.5, 0.0004, 0.2},
                                           {0.5, 0.1, 0.3, 0.06, 0.2, 0.05, 0.8, 0.1, 0.6}};
    dt_rounds rounds = {.train = &train};
    const ppo l = {.metrics = &metrics, .rounds = &rounds};
    barrier b = {.config = {.coef = 3}, .has_stored = true};
    memcpy(part_of, parts, sizeof(parts));
    n_recorded = 0;
    assert_int_equal(barrier_after_collect(&b, &l), DT_OK);
    for (int k = 0; k < 2; k++) {
        assert_true(fabs((double)mix_of[k][0] - 3 / parts[k][6]) < 1e-6);
        assert_true(fabs((double)mix_of[k][1] - 3 / fmax(parts[k][7], 1e-3)) < 1e-3);
        assert_true(fabs((double)mix_of[k][2] - 3 / parts[k][8]) < 1e-6);
        for (int i = 3; i < PARTS; i++) {
            assert_true(mix_of[k][i] == 0);
        }
    }
    assert_true(fabs(recorded_value("barrier/violation_rate") - (0.05 / 0.2)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/accuracy") - ((0.4 + 0.0003) / (0.5 + 0.0004))) < 1e-12);
    assert_true(fabs(recorded_value("barrier/accuracy_safe") - (0.4 / 0.5)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/accuracy_unsafe") - (0.0003 / 0.0004)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/unsafe") - (0.0004)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/safe_loss") - (0.25 / 0.5)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/unsafe_loss") - (0.02 / 0.0004)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/step_loss") - (0.1 / 0.2)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/stored_violation_rate") - (0.06 / 0.6)) < 1e-12);
    assert_true(fabs(recorded_value("barrier/stored_step_loss") - (0.3 / 0.6)) < 1e-12);

    part_of[0][7] = part_of[0][8] = 0; /* no such rows: nothing is learnt of them, and nothing reported */
    n_recorded = 0;
    b.has_stored = false;
    assert_int_equal(barrier_after_collect(&b, &l), DT_OK);
    assert_true(mix_of[0][0] == 6 && mix_of[0][1] == 0 && mix_of[0][2] == 0);
    assert_false(is_recorded("barrier/violation_rate") || is_recorded("barrier/accuracy_unsafe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_of_stored),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

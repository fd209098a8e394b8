/* SPDX-License-Identifier: Apache-2.0
 *
 * What phase3_constrained makes of a round: the mix of advantages, costs seen and followed, multipliers, violations in a
 * row, and which costs mark a state as unsafe; numbers by hand, the trainer a fake.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/phase3_constrained/phase3_constrained.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { K = 3 };
static float mix[1 + K];  /* as it was set last */
static double surrogates; /* what "policy_loss" is said to be */
static struct {
    char name[48];
    double value;
} told[64];
static int n_told;

static void is_near(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-6 * (1 + fabs(want)))) {
        fail_msg("%s: %.12g is not %.12g", what, is, want);
    }
}

static dt_status fake_set(dt_train *t, const char *name, const float *x, uint32_t n)
{
    (void)t;
    if (strcmp(name, "advantage_mix") == 0) {
        assert_int_equal(n, 1 + K);
        memcpy(mix, x, sizeof(mix));
    }
    return DT_OK;
}

/* The surrogate of the cost that the mix picks: that cost counts, the others 1000 times as much. */
static dt_status fake_losses(dt_train *t, const char *const *loss, uint32_t n, double *out)
{
    (void)t;
    assert_int_equal(n, 1);
    assert_string_equal(loss[0], "policy_loss");
    *out = 0;
    for (int k = 0; k < K; k++) {
        *out -= (double)mix[1 + k] * surrogates * (k + 1);
    }
    assert_true(mix[0] == 0);
    return DT_OK;
}

static void fake_scalar(const dt_host *h, const char *name, double value)
{
    (void)h;
    assert_true(n_told < 64);
    snprintf(told[n_told].name, sizeof(told[0].name), "%s", name);
    told[n_told++].value = value;
}

static double was_told(const char *name) /* last; NAN: never */
{
    for (int i = n_told - 1; i >= 0; i--) {
        if (strcmp(told[i].name, name) == 0) {
            return told[i].value;
        }
    }
    return NAN;
}

typedef struct rig {
    mock_host host;
    dt_rounds rounds;
    dt_wiring wiring;
    dt_env_spec spec;
    state s;
} rig;

/* Three costs, "a", "b", "c"; limits 10 of a and 4 of c. */
static void rig_open(rig *r, uint32_t algorithm)
{
    static const dt_train_api train = {.struct_size = sizeof(train), .set = fake_set, .losses = fake_losses};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = fake_scalar};
    static const char *const costs[] = {"a", "b", "c"};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    r->spec = (dt_env_spec){.n_costs = K, .costs = costs};
    r->wiring = (dt_wiring){.spec = &r->spec, .env_id = "test"};
    r->rounds = (dt_rounds){.train = &train, .wiring = &r->wiring, .n_rounds = 10};
    r->s.rounds = r->s.clipped.rounds = &r->rounds;
    r->s.clipped.h = &r->host.host;
    r->s.clipped.wiring = &r->wiring;
    r->s.clipped.metrics = &metrics;
    r->s.clipped.is_normalised = true;
    r->s.limits = (limits){.has = {1, 0, 1}, .at = {10, 0, 4}};
    r->s.aim = 0.5;
    r->s.rule = (multiplier_rule){.algorithm = algorithm,
                                  .start = 0.25,
                                  .max = 100,
                                  .rate = 0.5,
                                  .kp = 2,
                                  .ki = 0.2,
                                  .kd = 0.1,
                                  .delay = 1,
                                  .penalty = 3,
                                  .sharpness = 5};
    for (uint32_t k = 0; k < DT_ENV_MAX_COSTS; k++) {
        multiplier_init(&r->s.kept.multiplier[k]);
    }
    r->s.seen.rows = NAN;
    n_told = 0;
}

/* A = (A_0 - sum lambda_k A_k) / (1 + sum lambda_k sigma_k / sigma_0), of costs with a limit. */
static void test_mix(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(set_mix(&r.s), DT_OK);
    assert_true(mix[0] == 1 && mix[1] == 0 && mix[2] == 0 && mix[3] == 0);
    multiplier *m = r.s.kept.multiplier;
    m[0].value = 2, m[0].unit = 4; /* unit: sigma_0 / sigma_k */
    m[1].value = 9, m[1].unit = 1; /* without a limit */
    m[2].value = 3, m[2].unit = 2;
    assert_int_equal(set_mix(&r.s), DT_OK);
    is_near("mix", (double)mix[0], 1 / (1 + 0.5 + 1.5));
    is_near("mix", (double)mix[1], -2 / 3.0);
    is_near("mix", (double)mix[2], 0);
    is_near("mix", (double)mix[3], -3 / 3.0);
    r.s.is_cpo = true; /* limits bound the step themselves */
    assert_int_equal(set_mix(&r.s), DT_OK);
    assert_true(mix[0] == 1 && mix[1] == 0 && mix[2] == 0 && mix[3] == 0);
}

static void test_seen_costs(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PENALTY);
    see_costs(&r.s, &(dt_rollout_report){.agent_steps = 300,
                                         .env_steps = 100,
                                         .episodes = 2,
                                         .episode_length = 20,
                                         .advantage_std = 8,
                                         .episode_cost = {1, 2, 3}});
    is_near("rows", r.s.seen.rows, 3 * 20); /* three agents, twenty steps */
    is_near("cost", r.s.seen.cost[2], 3);
    is_near("scale", r.s.scale, 8);
    /* no episode ended: as before */
    see_costs(
        &r.s,
        &(dt_rollout_report){
            .agent_steps = 700, .env_steps = 100, .episode_length = 9, .advantage_std = 2, .episode_cost = {7, 7, 7}});
    is_near("rows", r.s.seen.rows, 60);
    is_near("cost", r.s.seen.cost[2], 3);
    is_near("scale", r.s.scale, 2);
    r.s.clipped.is_normalised = false;
    see_costs(&r.s, &(dt_rollout_report){.advantage_std = 2});
    is_near("scale", r.s.scale, 1);
}

/* J_k and what its surrogate has changed since the first pass: rows times scale times the difference. */
static void test_costs_are_followed(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PENALTY);
    multiplier *m = r.s.kept.multiplier;
    m[0].unit = m[2].unit = 2;
    m[0].size = m[2].size = 1;
    m[0].rounds = m[2].rounds = 1;
    assert_int_equal(follow_costs(&r.s, 0), DT_OK); /* nothing was seen yet */
    assert_true(isnan(r.s.seen.rows));
    r.s.seen.rows = 10;
    r.s.scale = 0.5;
    r.s.seen.cost[0] = 4.9; /* the aims are 5 and 2 */
    r.s.seen.cost[2] = 3;
    for (int pass = 0; pass < 2; pass++) {
        multiplier want[2] = {m[0], m[2]};
        surrogates = pass == 0 ? 7 : 7.05; /* the mean of a moves by 0.05, of c by three times as much */
        const double moved = pass == 0 ? 0 : 10 * 0.5 * 0.05;
        multiplier_follow(&want[0], &r.s.rule, 4.9 + moved, 5);
        multiplier_follow(&want[1], &r.s.rule, 3 + 3 * moved, 2);
        assert_int_equal(follow_costs(&r.s, (uint64_t)pass), DT_OK);
        is_near("multiplier", m[0].value, want[0].value);
        is_near("multiplier", m[2].value, want[1].value);
        assert_true(pass == 0 ? m[0].value == 0 : m[0].value > 0); /* it is above its aim now */
        assert_true(m[1].value == 0);
    }
    assert_true(mix[0] > 0 && mix[0] < 1); /* and the mix is set again */
}

static void test_multipliers(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.s.seen.rate = 2;
    r.s.seen.most = 8; /* of ki a quarter is used */
    const dt_rollout_report report = {
        .episode_cost = {12, 50, NAN}, .advantage_std = 6, .cost_advantage_std = {3, 1, 1}, .episodes = 1};
    multiplier want = r.s.kept.multiplier[0];
    multiplier_update(&want, &r.s.rule, 12, 5, 6.0 / 3, 0.25);
    assert_int_equal(update_multipliers(&r.s, 4, &report), DT_OK);
    is_near("multiplier", r.s.kept.multiplier[0].value, want.value);
    assert_true(want.value > 0);
    is_near("multiplier", was_told("multipliers/a"), want.value);
    is_near("limit", was_told("limits/a"), 10);
    is_near("unjudged", was_told("limits_unjudged/a"), 4); /* of five rounds one */
    is_near("unjudged", was_told("limits_unjudged/c"), 5);
    assert_true(isnan(was_told("multipliers/c")) && isnan(was_told("limits/b")));
    assert_int_equal(r.s.kept.multiplier[1].rounds, 0);
    assert_int_equal(r.s.kept.multiplier[2].rounds, 0);
    is_near("mix", (double)mix[0], 1 / (1 + want.value / want.unit)); /* at once */
    /* advantages that hardly differ are noise: at least a thousandth of the limit */
    rig_open(&r, MULTIPLIER_PID);
    want = r.s.kept.multiplier[0];
    multiplier_update(&want, &r.s.rule, 12, 5, 6.0 / 0.01, 1);
    const dt_rollout_report flat = {.episode_cost = {12, 0, NAN}, .advantage_std = 6, .cost_advantage_std = {1e-9}};
    assert_int_equal(update_multipliers(&r.s, 0, &flat), DT_OK);
    is_near("multiplier", r.s.kept.multiplier[0].value, want.value);
}

static void test_violations(void **unused)
{
    (void)unused;
    static const double cost[] = {11, 12, 10, 11, 12, 13, 14}; /* at its limit it is kept */
    static const uint64_t rounds[] = {1, 2, 0, 1, 2, 3, 4};
    for (uint32_t on = ON_NOTHING; on <= ON_STOP; on++) {
        rig r;
        rig_open(&r, MULTIPLIER_PID);
        r.s.on_violations = on;
        r.s.max_violations = 3;
        for (int i = 0; i < 7; i++) {
            const dt_status st = count_violation(&r.s, 0, cost[i]);
            assert_int_equal(r.s.kept.violations[0], rounds[i]);
            assert_int_equal(st, on == ON_STOP && i >= 5 ? DT_EDIVERGED : DT_OK);
        }
    }
}

static void test_marked_costs(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(mark_costs(&r.s, ""), DT_OK); /* those with a limit */
    assert_true(r.s.barrier.marks[0] && !r.s.barrier.marks[1] && r.s.barrier.marks[2]);
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(mark_costs(&r.s, " b, c"), DT_OK);
    assert_true(!r.s.barrier.marks[0] && r.s.barrier.marks[1] && r.s.barrier.marks[2]);
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(mark_costs(&r.s, "a,d"), DT_ECONFIG);
    assert_non_null(strstr(r.host.message, "\"d\""));
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(mark_costs(&r.s, "ab"), DT_ECONFIG);
}

static void test_check(void **unused)
{
    (void)unused;
    mock_host h;
    mock_host_init(&h);
    config *c = mock_config(&component, NULL);
    const config plain = *c;
    assert_int_equal(check(&h.host, c), DT_OK);
    c->margin = 1;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    *c = plain;
    c->shield_safe_steps = c->shield_unsafe_steps;
    assert_int_equal(check(&h.host, c), DT_OK);
    c->shield_safe_steps--;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    *c = plain;
    c->clipped.target_kl = 0.01;
    assert_int_equal(check(&h.host, c), DT_OK);
    c->algorithm = ALGORITHM_CPO;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    c->clipped.target_kl = 0;
    c->clipped.kl_target = 0.01;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    c->clipped.kl_target = 0;
    assert_int_equal(check(&h.host, c), DT_OK);
    free(c);
}

/* A limit that no episode was held to fails the run. */
static void test_finish(void **unused)
{
    (void)unused;
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.s.kept.multiplier[0].rounds = 1;
    assert_int_equal(finish(&r.s), DT_ECONFIG);
    r.s.kept.multiplier[2].rounds = 1;
    assert_int_equal(finish(&r.s), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_seen_costs),
        cmocka_unit_test(test_costs_are_followed),
        cmocka_unit_test(test_multipliers),
        cmocka_unit_test(test_violations),
        cmocka_unit_test(test_marked_costs),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

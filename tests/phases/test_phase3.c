/* SPDX-License-Identifier: Apache-2.0
 *
 * What phase3_constrained makes of a round: the mix of advantages, observed costs and surrogates, multipliers,
 * violations in a row, and which costs mark a state as unsafe; numbers by hand, the trainer a fake.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#define trust_region_step fake_region_step
#include "../../phases/phase3_constrained/phase3_constrained.c"
#include "mock/recorded.h"

#include "unit.h"

enum { K = 3 };
static float mix[1 + K];  /* as it was set last */
static double surrogates; /* what "policy_loss" is said to be */

static dt_status fake_set(dt_train *t, const char *name, const float *x, uint32_t n)
{
    if (strcmp(name, "advantage_mix") == 0) {
        assert_int_equal(n, 1 + K);
        memcpy(mix, x, sizeof(mix));
    }
    return DT_OK;
}

/* The surrogate of the cost that the mix picks: that cost counts, the others 1000 times as much. */
static dt_status fake_losses(dt_train *t, const char *const *loss, uint32_t n, double *out)
{
    assert_int_equal(n, 1);
    assert_string_equal(loss[0], "policy_loss");
    *out = 0;
    for (int k = 0; k < K; k++) {
        *out -= (double)mix[1 + k] * surrogates * (k + 1);
    }
    assert_true(mix[0] == 0);
    return DT_OK;
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
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const char *const costs[] = {"a", "b", "c"};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    r->spec = (dt_env_spec){.n_costs = K, .costs = costs};
    r->wiring = (dt_wiring){.spec = &r->spec, .env_id = "test"};
    r->rounds = (dt_rounds){.train = &train, .wiring = &r->wiring, .n_rounds = 10};
    r->s.rounds = r->s.ppo.rounds = &r->rounds;
    r->s.ppo.h = &r->host.host;
    r->s.ppo.wiring = &r->wiring;
    r->s.ppo.metrics = &metrics;
    r->s.ppo.is_normalised = true;
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
    r->s.observed.rows = NAN;
    n_recorded = 0;
}

/* A = (A_0 - sum lambda_k A_k) / (1 + sum lambda_k sigma_k / sigma_0), of costs with a limit. */
static void test_mix(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(set_advantage_mix(&r.s), DT_OK);
    assert_true(mix[0] == 1 && mix[1] == 0 && mix[2] == 0 && mix[3] == 0);
    multiplier *m = r.s.kept.multiplier;
    m[0].value = 2, m[0].unit = 4; /* unit: sigma_0 / sigma_k */
    m[1].value = 9, m[1].unit = 1; /* without a limit */
    m[2].value = 3, m[2].unit = 2;
    assert_int_equal(set_advantage_mix(&r.s), DT_OK);
    is_near("mix", (double)mix[0], 1 / (1 + 0.5 + 1.5));
    is_near("mix", (double)mix[1], -2 / 3.0);
    is_near("mix", (double)mix[2], 0);
    is_near("mix", (double)mix[3], -3 / 3.0);
    r.s.is_cpo = true; /* limits bound the step themselves */
    assert_int_equal(set_advantage_mix(&r.s), DT_OK);
    assert_true(mix[0] == 1 && mix[1] == 0 && mix[2] == 0 && mix[3] == 0);
}

static void test_seen_costs(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PENALTY);
    observe_costs(&r.s, &(dt_rollout_report){.agent_steps = 300,
                                             .env_steps = 100,
                                             .episodes = 2,
                                             .episode_length = 20,
                                             .advantage_std = 8,
                                             .episode_cost = {1, 2, 3}});
    is_near("rows", r.s.observed.rows, 3 * 20); /* three agents, twenty steps */
    is_near("cost", r.s.observed.cost[2], 3);
    is_near("scale", r.s.scale, 8);
    /* no episode ended: as before */
    observe_costs(
        &r.s,
        &(dt_rollout_report){
            .agent_steps = 700, .env_steps = 100, .episode_length = 9, .advantage_std = 2, .episode_cost = {7, 7, 7}});
    is_near("rows", r.s.observed.rows, 60);
    is_near("cost", r.s.observed.cost[2], 3);
    is_near("scale", r.s.scale, 2);
    r.s.ppo.is_normalised = false;
    observe_costs(&r.s, &(dt_rollout_report){.advantage_std = 2});
    is_near("scale", r.s.scale, 1);
}

/* J_k and what its surrogate has changed since the first pass: rows times scale times the difference. */
static void test_costs_are_followed(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PENALTY);
    multiplier *m = r.s.kept.multiplier;
    m[0].unit = m[2].unit = 2;
    m[0].size = m[2].size = 1;
    m[0].rounds = m[2].rounds = 1;
    assert_int_equal(update_multipliers_in_round(&r.s, 0), DT_OK); /* nothing was seen yet */
    assert_true(isnan(r.s.observed.rows));
    r.s.observed.rows = 10;
    r.s.scale = 0.5;
    r.s.observed.cost[0] = 4.9; /* the aims are 5 and 2 */
    r.s.observed.cost[2] = 3;
    for (int pass = 0; pass < 2; pass++) {
        multiplier want[2] = {m[0], m[2]};
        surrogates = pass == 0 ? 7 : 7.05; /* the mean of a moves by 0.05, of c by three times as much */
        const double moved = pass == 0 ? 0 : 10 * 0.5 * 0.05;
        multiplier_update_in_round(&want[0], &r.s.rule, 4.9 + moved, 5);
        multiplier_update_in_round(&want[1], &r.s.rule, 3 + 3 * moved, 2);
        assert_int_equal(update_multipliers_in_round(&r.s, (uint64_t)pass), DT_OK);
        is_near("multiplier", m[0].value, want[0].value);
        is_near("multiplier", m[2].value, want[1].value);
        assert_true(pass == 0 ? m[0].value == 0 : m[0].value > 0); /* it is above its aim now */
        assert_true(m[1].value == 0);
    }
    assert_true(mix[0] > 0 && mix[0] < 1); /* and the mix is set again */
}

static void test_multipliers(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.s.observed.rate = 2;
    r.s.observed.max_rate = 8; /* of ki a quarter is used */
    const dt_rollout_report report = {
        .episode_cost = {12, 50, NAN}, .advantage_std = 6, .cost_advantage_std = {3, 1, 1}, .episodes = 1};
    multiplier want = r.s.kept.multiplier[0];
    multiplier_update(&want, &r.s.rule, 12, 5, 6.0 / 3, 0.25);
    assert_int_equal(update_multipliers(&r.s, 4, &report), DT_OK);
    is_near("multiplier", r.s.kept.multiplier[0].value, want.value);
    assert_true(want.value > 0);
    is_near("multiplier", recorded_value("multipliers/a"), want.value);
    is_near("limit", recorded_value("limits/a"), 10);
    is_near("unjudged", recorded_value("limits_fail_unevaluated/a"), 4); /* of five rounds one */
    is_near("unjudged", recorded_value("limits_fail_unevaluated/c"), 5);
    assert_true(isnan(recorded_value("multipliers/c")) && isnan(recorded_value("limits/b")));
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

/* ---- steps of the trust region ----------------------------------------------------------------------------------- */

static double excess_given[K];
static int64_t bound_by;
static trust_region_report step_taken;
static dt_status step_status;

dt_status trust_region_step(trust_region *t, const double *excess, int64_t k, trust_region_report *out)
{
    memcpy(excess_given, excess, sizeof(excess_given));
    bound_by = k;
    *out = step_taken;
    return step_status;
}

static const dt_rollout_report of_round = {.agent_steps = 300,
                                           .env_steps = 100,
                                           .episodes = 2,
                                           .episode_length = 20,
                                           .advantage_std = 8,
                                           .episode_cost = {12, 50, 1}};

/* The step is bounded by the cost that is the most above its aim, a mean over rows; its multiplier is the step's. */
static void test_policy_is_moved(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.s.is_cpo = true;
    multiplier *m = r.s.kept.multiplier;
    for (int k = 0; k < K; k++) {
        m[k].value = NAN;
    }
    observe_costs(&r.s, &of_round);
    step_status = DT_OK;
    step_taken = (trust_region_report){
        .solution = {.nu = NAN, .kind = TRUST_REGION_RECOVER}, .share = 0.25, .kl = 0.0625, .gain = -3};
    assert_int_equal(take_trust_region_step(&r.s), DT_OK);
    assert_int_equal(bound_by, 0);
    is_near("excess", excess_given[0], (12 - 5) / 60.0);
    is_near("excess", excess_given[2], (1 - 2) / 60.0);
    assert_true(isnan(excess_given[1]));
    assert_true(isnan(m[0].value) && isnan(m[2].value)); /* the step had none */
    assert_true(recorded_value("trust_region/kl") == 0.0625 && recorded_value("trust_region/share") == 0.25);
    assert_true(recorded_value("trust_region/gain") == -3 && recorded_value("trust_region/recovering") == 1);
    step_taken.solution.nu = 0.75;
    step_taken.solution.kind = TRUST_REGION_RECOVER + 1;
    n_recorded = 0;
    assert_int_equal(update_multipliers(&r.s, 0, &of_round), DT_OK);
    assert_false(is_recorded("multipliers/a")); /* not known yet */
    assert_int_equal(take_trust_region_step(&r.s), DT_OK);
    assert_true(m[0].value == 0.75 && m[1].value == 0 && m[2].value == 0);
    assert_true(recorded_value("trust_region/recovering") == 0);
    assert_int_equal(update_multipliers(&r.s, 1, &of_round), DT_OK);
    assert_true(recorded_value("multipliers/a") == 0.75 && recorded_value("multipliers/c") == 0);
    assert_true(m[0].rounds == 2 && m[2].rounds == 2 && m[1].rounds == 0 && m[0].value == 0.75);
    assert_true(recorded_value("limits_fail_unevaluated/a") == 0 && mix[0] == 1 && mix[1] == 0);
    step_status = DT_EDIVERGED;
    step_taken.solution.nu = 9;
    n_recorded = 0;
    assert_int_equal(take_trust_region_step(&r.s), DT_EDIVERGED);
    assert_true(m[0].value == 0.75 && n_recorded == 0);
    step_status = DT_OK;
    r.s.limits = (limits){.has = {0}}; /* no cost bounds it: multipliers stay */
    assert_int_equal(take_trust_region_step(&r.s), DT_OK);
    assert_true(bound_by == -1 && m[0].value == 0.75);
}

static void test_violations(void **unused)
{
    static const double cost[] = {11, 12, 10, 11, 12, 13, 14}; /* at its limit it is kept */
    static const uint64_t rounds[] = {1, 2, 0, 1, 2, 3, 4};
    for (uint32_t on = REACT_NONE; on <= REACT_STOP; on++) {
        rig r;
        rig_open(&r, MULTIPLIER_PID);
        r.s.on_violations = on;
        r.s.max_violations = 3;
        for (int i = 0; i < 7; i++) {
            const dt_status st = check_violation(&r.s, 0, cost[i]);
            assert_int_equal(r.s.kept.violations[0], rounds[i]);
            assert_int_equal(st, on == REACT_STOP && i >= 5 ? DT_EDIVERGED : DT_OK);
        }
    }
}

static void test_marked_costs(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(select_unsafe_costs(&r.s, ""), DT_OK); /* those with a limit */
    assert_true(r.s.barrier.marks[0] && !r.s.barrier.marks[1] && r.s.barrier.marks[2]);
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(select_unsafe_costs(&r.s, " b, c"), DT_OK);
    assert_true(!r.s.barrier.marks[0] && r.s.barrier.marks[1] && r.s.barrier.marks[2]);
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(select_unsafe_costs(&r.s, "a,d"), DT_ECONFIG);
    assert_non_null(strstr(r.host.message, "\"d\""));
    rig_open(&r, MULTIPLIER_PID);
    assert_int_equal(select_unsafe_costs(&r.s, "ab"), DT_ECONFIG);
}

static void test_check(void **unused)
{
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
    c->ppo.target_kl = 0.01;
    assert_int_equal(check(&h.host, c), DT_OK);
    c->algorithm = ALGORITHM_CPO;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    c->ppo.target_kl = 0;
    c->ppo.kl_target = 0.01;
    assert_int_equal(check(&h.host, c), DT_ECONFIG);
    c->ppo.kl_target = 0;
    assert_int_equal(check(&h.host, c), DT_OK);
    free(c);
}

/* A limit that no episode was held to fails the run. */
static void test_finish(void **unused)
{
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.s.kept.multiplier[0].rounds = 1;
    assert_int_equal(finish(&r.s), DT_ECONFIG);
    r.s.kept.multiplier[2].rounds = 1;
    assert_int_equal(finish(&r.s), DT_OK);
}

/* ---- what is asked of rounds ------------------------------------------------------------------------------------- */

static dt_rounds_desc made;
static dt_rounds made_rounds;
static dt_wiring made_wiring;

static dt_status fake_rounds(const dt_host *h, const dt_rounds_desc *d, dt_rounds **out)
{
    memset(&made, 0, sizeof(made));
    memcpy(&made, d, d->struct_size < sizeof(made) ? d->struct_size : sizeof(made));
    *out = &made_rounds;
    return DT_OK;
}

static dt_status fake_wiring(const dt_host *h, const dt_wiring_desc *d, dt_wiring **out)
{
    (void)h, (void)d;
    *out = &made_wiring;
    return DT_OK;
}

static void serve(mock_host *h)
{
    static const dt_rounds_api rounds = {.struct_size = sizeof(rounds), .create = fake_rounds};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring), .create = fake_wiring};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const char *const costs[] = {"a"};
    static const dt_env_spec spec = {.n_costs = 1, .costs = costs};
    mock_host_init(h);
    mock_host_serve(h, DT_SVC_ROUNDS, &rounds);
    mock_host_serve(h, DT_SVC_WIRING, &wiring);
    mock_host_serve(h, DT_SVC_METRICS, &metrics);
    made_wiring = (dt_wiring){.api = &wiring, .spec = &spec, .env_id = "test"};
}

/* A pass whose KL is above 1.5 times the target is the last one. */
static void assert_stops(double target_kl)
{
    const char *const name[] = {"approx_kl"};
    const double is_far[] = {1.51 * target_kl}, is_near_by[] = {1.49 * target_kl};
    dt_pass_report r = {.struct_size = sizeof(r), .n_losses = 1, .passes = 4, .loss_name = name, .loss_value = is_far};
    assert_non_null(made.after_pass);
    assert_int_equal(made.after_pass(made.user, &r), DT_DONE);
    r.loss_value = is_near_by;
    assert_int_equal(made.after_pass(made.user, &r), DT_OK);
}

static void test_phase2(void **unused)
{
    mock_host h;
    serve(&h);
    const dt_component *c = mock_load("phases", "phase2_ppo", "phase2_ppo");
    assert_non_null(c);
    void *cfg = mock_config(c, (const char *const[]){"target_kl=0.02", NULL}), *self = calloc(1, c->state_size);
    const dt_phase_ops *ops = c->ops;
    assert_int_equal(ops->create(self, &h.host, cfg), DT_OK);
    assert_non_null(made.record);
    assert_non_null(made.begin);
    assert_non_null(made.collected);
    assert_ptr_equal(made.wiring, &made_wiring);
    assert_stops(0.02);
    free(self);
    free(cfg);
}

static void test_phase3(void **unused)
{
    static const struct {
        const char *algorithm;
        bool follows, is_cpo;
    } c[] = {{"algorithm=pid_lagrangian", false, false},
             {"algorithm=lagrangian", false, false},
             {"algorithm=penalty", true, false},
             {"algorithm=log_barrier", true, false},
             {"algorithm=cpo", false, true}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        mock_host h;
        state s;
        serve(&h);
        memset(&s, 0, sizeof(s));
        const char *const set[] = {"limits=a:3",     "margin=0.25", c[i].algorithm,     "rate=0.5",
                                   "penalty=7",      "barrier_t=9", "max_violations=4", "learn_shield=false",
                                   "target_kl=0.02", NULL};
        config *cfg = mock_config(&component, set);
        const dt_bind_api bind = {.struct_size = sizeof(bind)};
        mock_host_serve(&h, DT_SVC_BIND, &bind);
        const dt_status st = create(&s, &h.host, cfg);
        if (st != DT_OK) {
            fail_msg("%s", h.message);
        }
        assert_ptr_equal(made.user, &s);
        assert_int_equal(made.before_pass != NULL, c[i].follows);
        assert_int_equal(s.follows, c[i].follows);
        assert_int_equal(s.is_cpo, c[i].is_cpo);
        assert_int_equal(made.normalise, c[i].is_cpo ? DT_NORMALISE_MEAN : DT_NORMALISE_BY_REWARD);
        assert_int_equal(made.manual_loss != NULL, c[i].is_cpo);
        assert_stops(0.02);
        is_near("aim", s.aim, 0.75);
        is_near("limit", s.limits.at[0], 3);
        is_near("rate", s.rule.rate, 0.5);
        is_near("penalty", s.rule.penalty, 7);
        is_near("sharpness", s.rule.sharpness, 9);
        assert_int_equal(s.max_violations, 4);
        assert_true(s.ppo.loss.has_mix && s.ppo.loss.is_apart == c[i].is_cpo);
        assert_int_equal(isnan(s.kept.multiplier[0].value) != 0, c[i].is_cpo); /* until a step has one */
        free(cfg);
    }
}

static double rate_now;

static dt_status fake_iterate(dt_rounds *r, dt_progress *out)
{
    out->epoch_end = 1;
    out->learning_rate = rate_now;
    return DT_OK;
}

/* Gains follow the learning rate, as a share of its largest. */
static void test_rates(void **unused)
{
    static const double rates[] = {1, 4, 2};
    static const dt_rounds_api api = {.struct_size = sizeof(api), .iterate = fake_iterate};
    rig r;
    rig_open(&r, MULTIPLIER_PID);
    r.rounds.api = &api;
    for (int i = 0; i < 3; i++) {
        dt_progress out = {0};
        rate_now = rates[i];
        assert_int_equal(iterate(&r.s, &out), DT_OK);
        is_near("rate", r.s.observed.rate, rates[i]);
        is_near("most", r.s.observed.max_rate, i == 0 ? 1 : 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_seen_costs),
        cmocka_unit_test(test_costs_are_followed),
        cmocka_unit_test(test_multipliers),
        cmocka_unit_test(test_policy_is_moved),
        cmocka_unit_test(test_violations),
        cmocka_unit_test(test_marked_costs),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_phase2),
        cmocka_unit_test(test_phase3),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

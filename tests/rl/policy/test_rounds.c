/* SPDX-License-Identifier: Apache-2.0
 *
 * core/rl/policy/rounds.c: what rounds do, with a trainer and a rollout that only count: passes and what is reported of
 * them, a phase that wants no more, rounds without samples, and how many steps a round has.
 */
#include "../../../core/rl/policy/rounds.c"
#include "mock/recorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { PASSES = 3, STEPS = 4, ROUNDS = 2 };

static uint64_t now, sought; /* step of the trainer; to which it was moved */
static uint64_t empty_step;  /* this step has no samples; 0: all have */
static dt_rollout_report collected_report;
static uint64_t n_ahead, n_begun, n_collected, last_round;
static double kl[8]; /* mean "approx_kl" of passes, as they were reported */
static uint64_t pass_steps[8], n_before, n_passes, stop_after;

static dt_status fake_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *per_epoch)
{
    *step = now;
    *steps = ROUNDS * PASSES * STEPS;
    *per_epoch = STEPS;
    return DT_OK;
}

/* Step k, from 1, has losses k and 10 k, of k samples. */
static dt_status fake_step(dt_train *t, dt_step_report *r)
{
    now++;
    r->n_losses = 2;
    r->loss_name[0] = "policy_loss";
    r->loss_name[1] = "approx_kl";
    r->loss_value[0] = (double)now;
    r->loss_value[1] = 10 * (double)now;
    r->loss = 100 * (double)now;
    r->learning_rate = 0.5;
    r->samples = now == empty_step ? 0 : now;
    return DT_OK;
}

static dt_status fake_seek(dt_train *t, uint64_t step)
{
    now = sought = step;
    return DT_OK;
}

static dt_status fake_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    (void)r, (void)t;
    *out = collected_report;
    return DT_OK;
}

static dt_status fake_ahead(dt_rollout *r, dt_train *t)
{
    (void)r, (void)t;
    n_ahead++;
    return DT_OK;
}

static dt_status on_begin(void *user, uint64_t round)
{
    n_begun++;
    last_round = round;
    return DT_OK;
}

static dt_status on_collected(void *user, uint64_t round, const dt_rollout_report *r)
{
    assert_int_equal(round, last_round);
    assert_int_equal(r->agent_steps, collected_report.agent_steps);
    n_collected++;
    return DT_OK;
}

static dt_status on_before(void *user, uint64_t pass_of)
{
    assert_int_equal(pass_of, n_passes);
    n_before++;
    return DT_OK;
}

static dt_status on_after(void *user, const dt_pass_report *r)
{
    assert_int_equal(r->pass, n_passes);
    assert_int_equal(r->passes, PASSES);
    assert_int_equal(r->n_losses, 2);
    assert_string_equal(r->loss_name[1], "approx_kl");
    kl[n_passes] = r->loss_value[1];
    pass_steps[n_passes++] = r->steps;
    return n_passes == stop_after ? DT_DONE : DT_OK;
}

static const dt_train_api train = {
    .struct_size = sizeof(train), .position = fake_position, .step = fake_step, .seek = fake_seek};
static const dt_rollout_api rollout = {
    .struct_size = sizeof(rollout), .collect = fake_collect, .collect_ahead = fake_ahead};
static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};

typedef struct rig {
    rounds r;
    dt_stage stage;
    dt_wiring wiring;
    dt_env_spec spec;
} rig;

static void rig_open(rig *g)
{
    static const char *const costs[] = {"crash"}, *const names[] = {"delay"};
    memset(g, 0, sizeof(*g));
    g->spec = (dt_env_spec){.costs = costs, .n_costs = 1, .metrics = names, .n_metrics = 1};
    g->stage.host.priv = &g->stage;
    g->wiring = (dt_wiring){.spec = &g->spec};
    g->r = (rounds){.face = {.train = &train, .rollout = &rollout, .wiring = &g->wiring, .n_rounds = ROUNDS},
                    .h = &g->stage.host,
                    .metrics = &metrics,
                    .config = {.sgd_epochs = PASSES, .iterations = ROUNDS, .train_batch = 8, .fragment = 4},
                    .d = {.phase = "test",
                          .begin = on_begin,
                          .collected = on_collected,
                          .before_pass = on_before,
                          .after_pass = on_after}};
    collected_report = (dt_rollout_report){.agent_steps = 50,
                                           .env_steps = 25,
                                           .episodes = 2,
                                           .episode_return = 7,
                                           .episode_length = 9,
                                           .episode_cost = {3},
                                           .metric = {4},
                                           .interventions = 0.25,
                                           .infeasible = 0.125,
                                           .explained_variance = 0.5,
                                           .total_s = 5};
    now = sought = empty_step = n_ahead = n_begun = n_collected = n_before = n_passes = stop_after = 0;
    n_recorded = 0;
}

static void test_passes(void **state)
{
    rig g;
    dt_progress p = {0};
    rig_open(&g);
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_OK);
    assert_int_equal(now, PASSES * STEPS);
    assert_int_equal(n_passes, PASSES);
    assert_int_equal(n_before, PASSES);
    assert_true(kl[0] == 10 * 2.5 && kl[1] == 10 * 6.5 && kl[2] == 10 * 10.5); /* means of each pass alone */
    assert_true(pass_steps[0] == STEPS && sought == 0);
    assert_true(p.step == 12 && p.steps == 24 && p.epoch == 0 && p.iterations == 1 && p.epochs == ROUNDS);
    assert_true(p.samples == 25 && p.loss == 1200 && p.learning_rate == 0.5 && p.epoch_end == 1);
    assert_true(n_begun == 1 && n_collected == 1 && last_round == 0 && n_ahead == 0);
    assert_true(fabs(recorded_value("charts/episodic_return") - 7) < 1e-9 &&
                fabs(recorded_value("charts/episodic_length") - 9) < 1e-9);
    assert_true(fabs(recorded_value("costs/crash") - 3) < 1e-9 && fabs(recorded_value("env/delay") - 4) < 1e-9 &&
                fabs(recorded_value("charts/episodes") - 2) < 1e-9);
    assert_true(fabs(recorded_value("shield/interventions") - 0.25) < 1e-9 &&
                fabs(recorded_value("shield/infeasible") - 0.125) < 1e-9);
    assert_true(fabs(recorded_value("charts/env_steps_per_s") - 5) < 1e-9 &&
                fabs(recorded_value("losses/explained_variance") - 0.5) < 1e-9);
    n_passes = 0;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_DONE); /* the second is the last */
    assert_true(p.step == 24 && p.epoch == 1 && p.iterations == 2 && last_round == 1);
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_DONE);
    assert_int_equal(n_begun, 2);
}

/* A phase that wants no more passes: the others are left out, and the next round begins where it would have. */
static void test_stop(void **state)
{
    rig g;
    dt_progress p = {0};
    rig_open(&g);
    stop_after = 2;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_OK);
    assert_int_equal(n_passes, 2);
    assert_int_equal(sought, PASSES * STEPS);
    assert_true(p.step == 12 && p.loss == 800);
    n_passes = 0;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_DONE);
    assert_int_equal(sought, 2 * PASSES * STEPS);
    assert_int_equal(p.epoch, 1);
}

/* A minibatch without samples counts in no mean, and is not what is reported last. */
static void test_empty_step(void **state)
{
    rig g;
    dt_progress p = {0};
    rig_open(&g);
    empty_step = 12;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_OK);
    assert_true(kl[2] == 10 * 10 && pass_steps[2] == 3 && pass_steps[1] == 4); /* of 9, 10, 11 */
    assert_true(p.loss == 1100);
}

/* No agent acted: nothing is learnt, nothing is made up, the round is counted. */
static void test_empty_round(void **state)
{
    rig g;
    dt_progress p = {0};
    rig_open(&g);
    collected_report = (dt_rollout_report){.episodes = 0, .episode_length = NAN};
    for (int k = 0; k < ROUNDS; k++) {
        n_recorded = 0;
        assert_int_equal(rounds_iterate(&g.r.face, &p), k == 0 ? DT_OK : DT_DONE);
        assert_true(n_passes == 0 && n_before == 0 && n_collected == 0);
        assert_int_equal(sought, (uint64_t)(k + 1) * PASSES * STEPS);
        assert_true(isnan(p.loss) && isnan(p.grad_norm) && isnan(p.learning_rate));
        assert_true(fabs(recorded_value("charts/rounds_without_samples") - (k + 1)) < 1e-9 &&
                    fabs(recorded_value("charts/episodes") - 0) < 1e-9);
        assert_false(is_recorded("charts/episodic_return") || is_recorded("costs/crash") || is_recorded("env/delay"));
    }
}

/* The next round is collected ahead where that is wanted, but none after the last. */
static void test_ahead(void **state)
{
    rig g;
    dt_progress p = {0};
    rig_open(&g);
    g.r.config.overlap = 1;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_OK);
    assert_int_equal(n_ahead, 1);
    n_passes = 0;
    assert_int_equal(rounds_iterate(&g.r.face, &p), DT_DONE);
    assert_int_equal(n_ahead, 1);
}

static dt_rollout_desc made;
static dt_port made_kept[2];

static dt_status fake_create(const dt_host *h, dt_env *e, const dt_rollout_desc *d, dt_rollout **out)
{
    (void)h, (void)e, (void)out;
    made = *d;
    memcpy(made_kept, d->kept, d->n_kept * sizeof(*d->kept));
    return DT_OK;
}

/* 25 samples of three instances in fragments of 4 steps: three fragments. And what the rollout receives. */
static void test_experience(void **state)
{
    static const dt_rollout_api api = {.struct_size = sizeof(api), .create = fake_create};
    static dt_env env;
    static dt_wired wired;
    rig g;
    rig_open(&g);
    env.opts.instances = 3;
    wired.face = (dt_wiring){.spec = &g.spec, .env = &env, .window = 5, .F = 7};
    wired.config.keep_foresight = 1;
    g.r.face.rollout = &api;
    g.r.d.wiring = &wired.face;
    g.r.d.transitions = 1;
    g.r.config.train_batch = 25;
    g.r.config.gamma = 0.9;
    g.r.config.lambda = 0.8;
    g.r.config.cost_gamma = 0.7;
    g.r.config.cost_lambda = 0.6;
    g.r.config.clip_obs = 5;
    g.r.config.clip_reward = 6;
    g.r.config.overlap = 1;
    g.r.config.centre = 1;
    g.r.config.normalise_reward = 1;
    assert_int_equal(create_experience(&g.r), DT_OK);
    assert_int_equal(made.steps, 12);
    assert_true(made.gamma == 0.9 && made.lambda == 0.8 && made.cost_gamma == 0.7 && made.cost_lambda == 0.6);
    assert_true(made.clip_obs == 5 && made.clip_reward == 6 && made.window == 5 && made.transitions == 1);
    assert_true(made.has_ahead == 1 && made.centre == 1 && made.normalise_reward == 1 && made.normalise_obs == 0);
    assert_int_equal(made.n_kept, 2);
    assert_string_equal(made_kept[1].name, "foreseen");
    wired.face.F = 0;
    g.r.config.train_batch = 24; /* two whole ones */
    assert_int_equal(create_experience(&g.r), DT_OK);
    assert_int_equal(made.steps, 8);
    assert_int_equal(made.n_kept, 0);
}

static void test_advantages(void **state)
{
    rounds r = {.config = {.normalise_advantage = 0}, .d = {.normalise = DT_NORMALISE_BY_REWARD}};
    assert_int_equal(normalisation_flags(&r), DT_NORMALISE_NONE);
    r.config.normalise_advantage = 1;
    assert_int_equal(normalisation_flags(&r), DT_NORMALISE_BY_REWARD);
    r.d.normalise = 0;
    assert_int_equal(normalisation_flags(&r), DT_NORMALISE_EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),      cmocka_unit_test(test_stop),  cmocka_unit_test(test_empty_step),
        cmocka_unit_test(test_empty_round), cmocka_unit_test(test_ahead), cmocka_unit_test(test_experience),
        cmocka_unit_test(test_advantages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * phases/offpolicy/learner.c on services that only count (offpolicy_host.h): what it asks for in create and start, the
 * order of acting, drawing and learning in a round, with and without priorities, what it reports, and its refusals.
 * (Its losses: test_sac.c and test_ddpg.c.)
 */
#include "offpolicy_host.h"

#include "unit.h"

static offpolicy_config usual(void)
{
    return (offpolicy_config){.iterations = 3,
                              .collect_steps = 3,
                              .intensity = 2,
                              .buffer_size = 100,
                              .learning_starts = 24,
                              .n_step = 1,
                              .gamma = 0.875,
                              .reward_scale = 1,
                              .priority_correction = 0.25,
                              .critics = 2,
                              .policy_delay = 1};
}

static dt_status create(offpolicy_learner *l, const offpolicy_config *c, bool squash)
{
    return offpolicy_create(l, &fake.host.host, "phase_x", c, squash);
}

static void assert_message(const char *words)
{
    assert_true(mock_names(fake.host.message, words));
}

static void test_check(void **unused)
{
    offpolicy_config c = usual();
    host_open();
    c.learning_starts = c.buffer_size;
    assert_int_equal(offpolicy_check(&fake.host.host, "phase_x", &c), DT_OK);
    c.learning_starts++;
    assert_int_equal(offpolicy_check(&fake.host.host, "phase_x", &c), DT_ECONFIG);
    assert_message("phase_x.learning_starts 101");
    assert_message("phase_x.buffer_size 100");
}

static void test_create(void **unused)
{
    offpolicy_config c = usual();
    offpolicy_learner l = {0};
    host_open();
    assert_int_equal(create(&l, &c, true), DT_OK);
    assert_string_equal(fake.phase, "phase_x");
    assert_int_equal(fake.flags, DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | DT_WIRING_STATE_LOG_STD);
    assert_string_equal(fake.bound[0], "critic: P=2 Q=2 action[A 2] -> q[A 2]");
    assert_int_equal(fake.n_bound, 1);
    assert_ptr_equal(l.models.critic, fake.model[0]);
    assert_true(fake.rollout.steps == 3 && fake.rollout.gamma == 0.875 && fake.rollout.transitions == 2);
    assert_true(fake.rollout.squash == 1);
    assert_true(fake.replay.n_step == 1 && fake.replay.capacity == 100 && fake.replay.gamma == 0.875);
    assert_int_equal(fake.replay.draw, 8 * 3 * 2); /* intensity times a round */
    assert_true(fake.replay.alpha == 0 && fake.replay.beta == 0.25);
    assert_true(l.updates == 0 && l.error == NULL);
    offpolicy_destroy(&l);
    assert_int_equal(fake.host.n_live, 0);
    assert_int_equal(fake.n_destroyed, 0); /* there is no trainer */

    host_open(); /* deterministic, of a graph, by priorities */
    fake.wiring.has_graph = 1;
    c.priority = 0.5;
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_int_equal(fake.flags, DT_WIRING_NO_VALUE | DT_WIRING_NO_OUTPUTS | DT_WIRING_NO_LOG_STD | DT_WIRING_SQUASHED);
    assert_true(fake.rollout.transitions == 3 && fake.rollout.squash == 0);
    assert_true(fake.replay.draw == 0 && fake.replay.alpha == 0.5);
    assert_int_equal(l.updates, 10); /* 48 samples in batches of 5 */
    assert_int_equal(l.most_errors, 5 * HOST_PLACES);
    assert_int_equal(fake.host.n_live, 1);
    offpolicy_destroy(&l);
    assert_int_equal(fake.host.n_live, 0);

    host_open();
    fake.batch = 6; /* 48 samples are 8 batches */
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_int_equal(l.updates, 8);
    offpolicy_destroy(&l);
    host_open();
    fake.host.fail_alloc = 1;
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_ENOMEM);
    host_open();
    fake.batch = UINT64_MAX / 4; /* a size that does not fit */
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_ENOMEM);
    offpolicy_destroy(&(offpolicy_learner){0}); /* before create */
}

static void test_refused(void **unused)
{
    offpolicy_config c = usual();
    offpolicy_learner l = {0};
    host_open();
    c.buffer_size = 24; /* exactly a round */
    assert_int_equal(create(&l, &c, false), DT_OK);
    c.buffer_size = 23;
    host_open();
    assert_int_equal(create(&l, &c, false), DT_ECONFIG);
    assert_message("phase_x.collect_steps 24");
    c = usual();
    c.n_step = 3;
    host_open();
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_int_equal(fake.replay.n_step, 3);
    host_open();
    fake.wiring.has_graph = 1;
    assert_int_equal(create(&l, &c, false), DT_ECONFIG);
    assert_message("phase_x.n_step 3");
    for (uint32_t i = 0; i < 6; i++) { /* each service is needed */
        host_open();
        fake.host.service_id[i] = "none";
        assert_int_equal(create(&l, &c, false), DT_EUNSUPPORTED);
    }
    const float open_low[] = {-INFINITY, -INFINITY}, open_high[] = {INFINITY, INFINITY};
    host_open();
    fake.spec.low = open_low;
    assert_int_equal(create(&l, &c, false), DT_ESHAPE); /* bounds on one side */
    fake.spec.high = open_high;
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_false(l.models.is_bounded);
    const float low[] = {-1, -INFINITY}, high[] = {1, INFINITY};
    fake.spec.low = low;
    fake.spec.high = high;
    assert_int_equal(create(&l, &c, false), DT_ESHAPE); /* of one action */
    static float many_low[ACTOR_CRITIC_MAX_ACTIONS + 1], many_high[ACTOR_CRITIC_MAX_ACTIONS + 1];
    fake.spec.low = many_low;
    fake.spec.high = many_high;
    fake.spec.n_continuous = ACTOR_CRITIC_MAX_ACTIONS;
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_true(l.models.is_bounded && l.models.n_actions == ACTOR_CRITIC_MAX_ACTIONS);
    fake.spec.n_continuous++;
    assert_int_equal(create(&l, &c, false), DT_ESHAPE);

    int32_t choices[] = {3, ACTOR_CRITIC_MAX_CHOICES, 2};
    host_open();
    fake.spec.n_continuous = 1;
    fake.spec.n_heads = 3;
    fake.spec.choices = choices;
    fake.wiring.n_choices = 69;
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_true(l.models.widest == ACTOR_CRITIC_MAX_CHOICES && l.models.n_choices == 69 && l.models.n_actions == 70);
    choices[1]++;
    assert_int_equal(create(&l, &c, false), DT_ESHAPE);
    choices[1] = 4;
    fake.wiring.n_choices = ACTOR_CRITIC_MAX_COLUMNS - 1;
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_OK);
    fake.wiring.n_choices = ACTOR_CRITIC_MAX_COLUMNS;
    assert_int_equal(create(&l, &c, false), DT_ESHAPE);
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static int n_explored;
static uint64_t last_round;

static dt_status explore(offpolicy_learner *l, uint64_t round)
{
    n_explored++;
    last_round = round;
    return DT_OK;
}

static dt_status record(void *self, dt_graph *g)
{
    (void)self, (void)g;
    return DT_OK;
}

static dt_status start(offpolicy_learner *l, uint32_t n_groups)
{
    static const dt_train_group group[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    static const dt_train_target target[2] = {{.name = "x"}, {.name = "y"}};
    return offpolicy_start(l, record, group, n_groups, target, 2);
}

static void test_start(void **unused)
{
    static const int32_t choices[] = {3, 2};
    offpolicy_config c = usual();
    offpolicy_learner l = {.explore = explore};
    host_open();
    assert_int_equal(create(&l, &c, false), DT_OK);
    n_explored = 0;
    assert_int_equal(start(&l, 2), DT_OK);
    assert_int_equal(l.groups, 1 | 2);
    assert_int_equal(fake.train.epochs, 3);
    assert_true(fake.train.n_groups == 2 && fake.train.n_targets == 2 && fake.train.n_models == 3);
    assert_string_equal(fake.group[1].name, "b");
    assert_string_equal(fake.targets[1].name, "y");
    assert_ptr_equal(fake.train.data, &fake.replay);
    assert_ptr_equal(fake.train.user, &l);
    assert_true(fake.train.record == record);
    assert_int_equal(fake.n_set, 0);
    assert_int_equal(n_explored, 0);
    offpolicy_destroy(&l);
    assert_int_equal(fake.n_destroyed, 1);

    host_open(); /* with choices, by priorities */
    fake.spec.n_heads = 2;
    fake.spec.choices = choices;
    fake.wiring.n_choices = 5;
    c.priority = 1;
    l = (offpolicy_learner){0};
    assert_int_equal(create(&l, &c, false), DT_OK);
    assert_string_equal(fake.bound[0], "critic: P=7 Q=2 action[A 7] -> q[A 2]");
    assert_int_equal(start(&l, 3), DT_OK);
    assert_int_equal(l.groups, 1 | 2 | 4);
    assert_int_equal(fake.train.epochs, 3 * 10);
    assert_string_equal(fake.set_name, "eye");
    assert_int_equal(fake.n_set, 9);
    for (int i = 0; i < 9; i++) {
        assert_true(fake.set_value[i] == (i / 3 == i % 3 ? 1 : 0));
    }
    offpolicy_destroy(&l);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void begin(offpolicy_learner *l, const offpolicy_config *c)
{
    *l = (offpolicy_learner){.explore = explore};
    assert_int_equal(create(l, c, false), DT_OK);
    assert_int_equal(start(l, 2), DT_OK);
    l->critic = 2;
    fake.said[0] = '\0';
    n_explored = n_recorded = 0;
}

static void test_rounds(void **unused)
{
    offpolicy_config c = usual();
    offpolicy_learner l;
    dt_progress p = {0};
    host_open();
    c.learning_starts = 49; /* three collects of 24 */
    c.policy_delay = 3;
    begin(&l, &c);
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK);
    assert_said("cacacadu2u2u3u2"); /* all groups in every third update */
    assert_true(n_explored == 1 && last_round == 0);
    assert_true(p.step == 4 && p.steps == 12 && p.epoch == 0 && p.epochs == 3 && p.iterations == 1);
    assert_true(p.samples == 72 && p.loss == 2 && p.grad_norm == 1 && p.learning_rate == 0.5 && p.epoch_end == 1);
    assert_true(recorded_value("charts/episodic_return") == -7 && recorded_value("charts/episodic_length") == 15);
    assert_true(recorded_value("costs/crash") == 0.5 && recorded_value("env/delay") == 2.5);
    assert_true(recorded_value("charts/episodes") == 3 && recorded_value("charts/replay") == 72);
    assert_true(recorded_value("time/env") == 0.75 && recorded_value("time/policy") == 0.375);
    assert_true(recorded_value("time/learn") >= 0 && recorded_value("time/learn") < 60);
    assert_true(!is_recorded("charts/rounds_without_samples"));
    const double rate = recorded_value("charts/learn_samples_per_s"), learn_s = recorded_value("time/learn");
    assert_true(fabs(rate * fmax(learn_s, 1e-9) - 4 * 16) < 1e-6);
    assert_true(recorded_value("charts/env_steps_per_s") <= 72 / fmax(learn_s, 1e-9) * (1 + 1e-9));

    fake.report.episodes = 0;
    fake.report.episode_length = NAN;
    fake.samples = 0;
    n_recorded = 0;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK); /* enough is kept */
    assert_said("cadu2u3u2u2");
    assert_true(last_round == 1 && p.epoch == 1 && p.iterations == 2 && p.samples == 24 && p.step == 8);
    assert_true(!is_recorded("charts/episodic_return") && !is_recorded("costs/crash") && !is_recorded("env/delay"));
    assert_true(recorded_value("charts/episodes") == 0 && isnan(recorded_value("charts/learn_samples_per_s")));
    assert_int_equal(offpolicy_iterate(&l, &p), DT_DONE);
    assert_said("cadu3u2u2u3");
    assert_true(last_round == 2 && p.step == 12);
    assert_int_equal(offpolicy_iterate(&l, &p), DT_DONE); /* nothing is left */
    assert_said("");

    p = (dt_progress){0};
    assert_int_equal(offpolicy_evaluate(&l, &p), DT_OK);
    assert_said("r");
    assert_int_equal(p.evaluated, 1);
    l.explore = NULL;
    assert_int_equal(offpolicy_evaluate(&l, &p), DT_OK);
    offpolicy_destroy(&l);
}

/* learning_starts samples are enough. */
static void test_first_round(void **unused)
{
    offpolicy_config c = usual();
    offpolicy_learner l;
    dt_progress p = {0};
    host_open();
    c.learning_starts = 48;
    begin(&l, &c);
    fake.n_silent = 1;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK);
    assert_said("cacadu3u3u3u3");
    assert_true(recorded_value("charts/rounds_without_samples") == 1);
    fake.n_silent = 1;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK);
    assert_true(recorded_value("charts/rounds_without_samples") == 2); /* of all rounds */
    offpolicy_destroy(&l);
}

/* A batch is drawn for each update, and its errors are reported before the next. */
static void test_priorities(void **unused)
{
    static const float error[HOST_ROWS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    offpolicy_config c = usual();
    offpolicy_learner l;
    dt_progress p = {0};
    host_open();
    c.priority = 0.5;
    fake.batch = 16; /* 3 updates */
    fake.steps = 9;
    memcpy(fake.error, error, sizeof(error));
    fake.part[0] = 3, fake.part[1] = 0, fake.part[2] = 7;
    begin(&l, &c);
    assert_int_equal(l.updates, 3);
    for (uint64_t round = 0; round < 3; round++) {
        assert_int_equal(offpolicy_iterate(&l, &p), round < 2 ? DT_OK : DT_DONE);
        assert_said("cadu3epdu3epdu3ep");
        assert_true(p.epoch == round && p.step == 3 * (round + 1)); /* of the phase's updates, not the trainer's */
        assert_int_equal(fake.n_priority, 10);
        assert_memory_equal(fake.priority, error, sizeof(error));
    }
    offpolicy_destroy(&l);
    host_open();
    fake.batch = 5; /* room for 5 samples of 2 places */
    fake.part[0] = 10;
    begin(&l, &c);
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK);
    fake.part[1] = 1; /* one more */
    fake.step = 0;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_EPLUGIN);
    assert_message("phase_x");
    fake.part[1] = 0;
    fake.rank = 2;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_EPLUGIN);
    fake.rank = 1;
    fake.lacks_errors = true;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_EPLUGIN);
    offpolicy_destroy(&l);
}

static void test_errors_end_the_round(void **unused)
{
    static const char *const said[] = {"c", "ca", "cad", "cadu3", "cadu3e"};
    dt_status *const at[] = {&fake.collect, &fake.add, &fake.draw, &fake.update, &fake.evaluation};
    for (int i = 0; i < 5; i++) {
        offpolicy_config c = usual();
        offpolicy_learner l;
        dt_progress p = {0};
        host_open();
        c.priority = i == 4;
        begin(&l, &c);
        *at[i] = DT_EDIVERGED;
        assert_int_equal(offpolicy_iterate(&l, &p), DT_EDIVERGED);
        assert_said(said[i]);
        offpolicy_destroy(&l);
    }
}

static bool is_prioritised;

static void prepare(void *self)
{
    static const int32_t choices[] = {3};
    host_open();
    fake.spec.n_heads = 1; /* so that all is set that can be */
    fake.spec.choices = choices;
    fake.wiring.n_choices = 3;
    fake.batch = 16;
    fake.steps = 100;
    *(offpolicy_learner *)self = (offpolicy_learner){.explore = explore};
}

static dt_status create_and_start(void *self)
{
    offpolicy_config c = usual();
    c.priority = is_prioritised;
    DT_TRY_H(create(self, &c, false));
    return start(self, 2);
}

static void prepare_round(void *self)
{
    prepare(self);
    assert_int_equal(create_and_start(self), DT_OK);
    fake.said[0] = '\0';
    n_recorded = 0;
}

static dt_status make_round(void *self)
{
    dt_progress p = {0};
    return offpolicy_iterate(self, &p);
}

static dt_status evaluate_it(void *self)
{
    dt_progress p = {0};
    return offpolicy_evaluate(self, &p);
}

static void test_no_error_is_lost(void **unused)
{
    offpolicy_learner l;
    for (int i = 0; i < 2; i++) {
        is_prioritised = i > 0;
        assert_no_error_is_lost(prepare, create_and_start, &l);
        assert_no_error_is_lost(prepare_round, make_round, &l);
        assert_no_error_is_lost(prepare_round, evaluate_it, &l);
    }
}

/* No agent acts in 100,000 steps of each instance. */
static void test_deserted(void **unused)
{
    offpolicy_config c = usual();
    offpolicy_learner l;
    dt_progress p = {0};
    host_open();
    c.collect_steps = 50000;
    c.learning_starts = c.buffer_size = 8 * 50000;
    begin(&l, &c);
    fake.n_silent = 10;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_ECONFIG);
    assert_said("caca");
    assert_message("100000 phase_x.learning_starts opponents.learner");
    fake.n_silent = 1;
    fake.kept = 0;
    fake.report.env_steps = 150000;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_OK);
    assert_said("cacacadu3u3u3u3");
    offpolicy_destroy(&l);
    host_open();
    c.collect_steps = 33333; /* 99,999 steps are not yet too many */
    begin(&l, &c);
    fake.n_silent = 10;
    assert_int_equal(offpolicy_iterate(&l, &p), DT_ECONFIG);
    assert_said("cacacaca");
    offpolicy_destroy(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_first_round),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_errors_end_the_round),
        cmocka_unit_test(test_no_error_is_lost),
        cmocka_unit_test(test_deserted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

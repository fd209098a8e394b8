/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_ddpg's losses and their gradients against Lillicrap et al. 2016 (arXiv 1509.02971, eqs. 4 to 6) and, with
 * target noise, Fujimoto et al. 2018 (arXiv 1802.09477, eq. 14) written out in double.
 */
#include "offpolicy_rig.h"
#include "offpolicy_host.h"
#include "mock/options.h"

#include "../../phases/phase_ddpg.c"

#include <stdlib.h>

static double q_of(const rig *r, int view, int k, int row, const double *a)
{
    double q = view == NOW ? r->params.critic[k] : 0;
    for (int i = 0; i < MOVES; i++) {
        q += a[i] * (double)r->rows.w[view][k][row][i];
    }
    return q;
}

static void check_losses(double noise, double clip, double reward_scale)
{
    static rig r;
    static rig_result of_actor, of_critic;
    static const float log_noise[MOVES] = {0};
    state s;
    double weight = 0, actor = 0, critic = 0, d_actor[MOVES] = {0}, d_critic[CRITICS] = {0};
    rig_open(&r);
    memset(&s, 0, sizeof(s));
    s.config.target_noise = noise;
    s.config.target_noise_clip = clip;
    s.learner.config = (offpolicy_config){.reward_scale = reward_scale, .critics = CRITICS, .n_step = 1};
    s.learner.models = (actor_critic){.spec = &r.spec,
                                      .wiring = &r.wiring,
                                      .n_actions = MOVES,
                                      .n_critics = CRITICS,
                                      .is_bounded = true,
                                      .critic = (dt_model *)(void *)&rig_critic};
    r.step_input[0] = log_noise;
    if (record(&s, r.g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    rig_run(&r, "actor_loss", &of_actor);
    rig_run(&r, "critic_loss", &of_critic);
    int n_moved = 0;
    for (int row = 0; row < ROWS; row++) {
        double done[MOVES];
        const double *b = of_actor.next_action[row];
        for (int i = 0; i < MOVES; i++) {
            const double a = tanh((double)r.rows.mean[NOW][row][i] + r.params.actor[i]);
            const double plain = tanh((double)r.rows.mean[TARGET_NEXT][row][i] + r.params.actor[i]);
            rig_near("action", of_actor.action[row][i], a);
            done[i] = (double)r.rows.executed[row][i] / (double)bound_high[i];
            d_actor[i] -= (1 - a * a) * (double)r.rows.w[NOW][0][row][i];
            if (noise > 0) {
                assert_true(fabs(b[i]) <= 1 && fabs(b[i] - plain) <= clip + 1e-12);
                n_moved += fabs(b[i] - plain) > 1e-3;
            } else {
                rig_near("next action", b[i], plain);
            }
        }
        actor -= q_of(&r, NOW, 0, row, of_actor.action[row]);
        const double next = fmin(q_of(&r, TARGET_NEXT, 0, row, b), q_of(&r, TARGET_NEXT, 1, row, b));
        const double y = reward_scale * (double)r.rows.reward[row] + (double)r.rows.discount[row] * next;
        for (int k = 0; k < CRITICS; k++) {
            const double off = q_of(&r, NOW, k, row, done) - y;
            critic += (double)r.rows.weight[row] * off * off;
            d_critic[k] += 2 * (double)r.rows.weight[row] * off;
        }
    }
    assert_true(noise > 0 ? n_moved > ROWS : n_moved == 0);
    rig_near("actor_loss", rig_loss(&of_actor, r.g, "actor_loss", &weight), actor);
    assert_true(weight == 1);
    rig_near("critic_loss", rig_loss(&of_actor, r.g, "critic_loss", &weight), critic);
    assert_true(weight == 1);
    for (int i = 0; i < MOVES; i++) {
        rig_near("d actor_loss / d actor", of_actor.grad.actor[i], d_actor[i]);
        rig_near("d critic_loss / d actor", of_critic.grad.actor[i], 0);
    }
    for (int k = 0; k < CRITICS; k++) {
        rig_near("d critic_loss / d critic", of_critic.grad.critic[k], d_critic[k]);
    }
    rig_close(&r);
}

static void test_losses_are_those_of_the_papers(void **unused)
{
    check_losses(0, 0.5, 1);
    check_losses(0.2, 0.1, 0.25);
    check_losses(0.5, 1.5, 1); /* beyond the bounds, which hold */
}

/* ---- discrete actions -------------------------------------------------------------------------------------------- */

/* The actor's logits are what is its mean elsewhere. */
static dt_status record_logits(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out)
{
    DT_TRY_H(rig_record(w, g, view, out));
    out->logits = out->mean;
    out->mean = out->log_std = NULL;
    return DT_OK;
}

static void softmax(const float *mask, const double *z, double *p)
{
    double sum = 0;
    for (int i = 0; i < MOVES; i++) {
        p[i] = mask[i] > 0 ? exp(z[i]) : 0;
        sum += p[i];
    }
    for (int i = 0; i < MOVES; i++) {
        p[i] /= sum;
    }
}

/* Probabilities of what is allowed take the place of moves, and a 1 that of what was done. */
static void check_choices(double penalty, float share)
{
    static rig r;
    static rig_result of_actor, of_critic;
    static const int32_t choices[] = {MOVES};
    static const float eye[MOVES * MOVES] = {1, 0, 0, 1};
    const float epsilon[MOVES] = {share, share};
    const dt_wiring_api wiring = {
        .struct_size = sizeof(wiring), .record = record_logits, .record_model = rig_record_model};
    state s;
    double weight = 0, actor = 0, critic = 0, d_actor[MOVES] = {0}, d_critic[CRITICS] = {0};
    rig_open(&r);
    r.spec = (dt_env_spec){.n_heads = 1, .choices = choices, .n_agents = 1};
    r.wiring.api = &wiring;
    r.wiring.n_choices = MOVES;
    memset(&s, 0, sizeof(s));
    s.config.logit_penalty = penalty;
    s.config.target_noise = 0.5; /* of continuous actions alone */
    s.learner.config = (offpolicy_config){.reward_scale = 1, .critics = CRITICS, .n_step = 1};
    s.learner.models = (actor_critic){.spec = &r.spec,
                                      .wiring = &r.wiring,
                                      .n_choices = MOVES,
                                      .n_actions = MOVES,
                                      .n_critics = CRITICS,
                                      .widest = MOVES,
                                      .is_bounded = true,
                                      .critic = (dt_model *)(void *)&rig_critic};
    r.step_input[0] = epsilon;
    r.step_input[1] = eye;
    if (record(&s, r.g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    rig_run(&r, "actor_loss", &of_actor);
    rig_run(&r, "critic_loss", &of_critic);
    for (int row = 0; row < ROWS; row++) {
        double z[MOVES], next_z[MOVES], p[MOVES], next_p[MOVES], done[MOVES] = {0}, q = 0, n = 0;
        for (int i = 0; i < MOVES; i++) {
            z[i] = (double)r.rows.mean[NOW][row][i] + r.params.actor[i];
            next_z[i] = (double)r.rows.mean[TARGET_NEXT][row][i] + r.params.actor[i];
            n += (double)r.rows.mask[row][i];
        }
        softmax(r.rows.mask[row], z, p);
        softmax(r.rows.next_mask[row], next_z, next_p);
        done[r.rows.taken[row]] = 1;
        for (int i = 0; i < MOVES; i++) {
            q += p[i] * (double)r.rows.w[NOW][0][row][i];
        }
        for (int i = 0; i < MOVES; i++) {
            const double mixed = (1 - (double)share) * p[i] + (double)share * (double)r.rows.mask[row][i] / n;
            rig_near("probability", of_actor.action[row][i], p[i]);
            rig_near("next probability", of_actor.next_action[row][i], next_p[i]);
            rig_near("drawn with", exp(of_actor.logits[row][i]), mixed);
            actor += penalty * z[i] * z[i];
            d_actor[i] += 2 * penalty * z[i] - p[i] * ((double)r.rows.w[NOW][0][row][i] - q);
        }
        actor -= q_of(&r, NOW, 0, row, p);
        const double next = fmin(q_of(&r, TARGET_NEXT, 0, row, next_p), q_of(&r, TARGET_NEXT, 1, row, next_p));
        const double y = (double)r.rows.reward[row] + (double)r.rows.discount[row] * next;
        for (int k = 0; k < CRITICS; k++) {
            const double off = q_of(&r, NOW, k, row, done) - y;
            critic += (double)r.rows.weight[row] * off * off;
            d_critic[k] += 2 * (double)r.rows.weight[row] * off;
        }
    }
    rig_near("actor_loss", rig_loss(&of_actor, r.g, "actor_loss", &weight), actor);
    rig_near("critic_loss", rig_loss(&of_critic, r.g, "critic_loss", &weight), critic);
    for (int i = 0; i < MOVES; i++) {
        rig_near("d actor_loss / d actor", of_actor.grad.actor[i], d_actor[i]);
        rig_near("d critic_loss / d actor", of_critic.grad.actor[i], 0);
    }
    for (int k = 0; k < CRITICS; k++) {
        rig_near("d critic_loss / d critic", of_critic.grad.critic[k], d_critic[k]);
    }
    rig_close(&r);
}

static void test_choices(void **unused)
{
    check_choices(0, 0);
    check_choices(0.125, 0.25F);
}

/* first at round 0, times speed in each, and last at least */
static void test_schedule(void **unused)
{
    assert_true(decayed_value(0.5, 0.1, 0.9, 0) == 0.5);
    rig_near("noise", decayed_value(0.5, 0.1, 0.9, 3), 0.5 * 0.729);
    assert_true(decayed_value(0.5, 0.1, 0.9, 1000) == 0.1);
}

/* ---- create, start and exploration ------------------------------------------------------------------------------- */

static config configured(const char *const *set)
{
    void *at = mock_config(&component, set);
    const config c = *(const config *)at;
    free(at);
    return c;
}

static void test_start(void **unused)
{
    static const char *const set[] = {"actor_learning_rate=0.25",
                                      "critic_learning_rate=0.5",
                                      "actor_clip=3",
                                      "critic_clip=4",
                                      "tau=0.125",
                                      "policy_delay=2",
                                      "critics=2",
                                      NULL};
    const config c = configured(set);
    state s = {0};
    host_open();
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_string_equal(fake.phase, "phase_ddpg");
    assert_true((fake.flags & DT_WIRING_SQUASHED) != 0 && fake.rollout.squash == 0);
    assert_string_equal(fake.bound[0], "critic: P=2 Q=2 action[A 2] -> q[A 2]");
    assert_int_equal(start(&s), DT_OK);
    assert_true(fake.train.n_groups == 2 && s.learner.groups == 3 && s.learner.critic == 2);
    const dt_train_group *actor = &fake.group[0], *critic = &fake.group[1];
    assert_string_equal(actor->name, "actor");
    assert_string_equal(critic->name, "critic");
    assert_string_equal(actor->role[0], "controller");
    assert_string_equal(critic->role[0], "critic");
    assert_true(actor->n_roles == 1 && critic->n_roles == 1 && actor->n_losses == 1 && critic->n_losses == 2);
    assert_string_equal(actor->loss[0], "actor_loss");
    assert_string_equal(critic->loss[0], "critic_loss");
    assert_string_equal(critic->loss[1], "q");
    assert_true(actor->learning_rate == 0.25 && critic->learning_rate == 0.5);
    assert_true(actor->gradient_clip == 3 && critic->gradient_clip == 4);
    assert_int_equal(fake.train.n_targets, 2);
    assert_ptr_equal(fake.targets[0].model, fake.wiring.controller);
    assert_ptr_equal(fake.targets[1].model, fake.model[0]);
    /* both targets move when the actor does, after every second update of the critic */
    assert_true(fake.targets[0].every == 1 && fake.targets[1].every == 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(fake.targets[i].name, "target");
        assert_true(fake.targets[i].tau == 0.125);
    }
    assert_true(fake.train.record == record);
    offpolicy_destroy(&s);
    host_open();
    fake.wiring.perception = (dt_model *)(void *)&rig_critic;
    s = (state){0};
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_int_equal(start(&s), DT_OK);
    assert_true(fake.group[0].n_roles == 2 && fake.group[1].n_roles == 1);
    assert_string_equal(fake.group[0].role[1], "perception");
    offpolicy_destroy(&s);
}

/* Noise is set in the environment's units, as a logarithm; in evaluations there is next to none. */
static void test_noise(void **unused)
{
    static const char *const set[] = {"noise=0.5", "noise_end=0.1", "noise_speed=0.5", NULL};
    const config c = configured(set);
    state s = {0};
    host_open(); /* -3 to 3, -1 to 2 */
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_int_equal(start(&s), DT_OK);
    assert_string_equal(fake.set_name, "log_noise");
    assert_int_equal(fake.n_set, 2);
    assert_true(fabs((double)fake.set_value[0] - log(1e-9 * 3)) < 1e-5);
    assert_string_equal(fake.acting_name, "log_noise");
    assert_true(fake.acting_value[0] == fake.set_value[0] && fake.acting_value[1] == fake.set_value[1]);
    assert_int_equal(n_recorded, 0);
    assert_int_equal(update_exploration(&s.learner, 1), DT_OK);
    assert_true(fabs((double)fake.set_value[0] - log(0.25 * 3)) < 1e-6);
    assert_true(fabs((double)fake.set_value[1] - log(0.25 * 1.5)) < 1e-6);
    assert_true(n_recorded == 1 && recorded_value("charts/noise") == 0.25);
    assert_int_equal(update_exploration(&s.learner, 30), DT_OK);
    assert_true(fabs((double)fake.set_value[1] - log(0.1 * 1.5)) < 1e-6);
    offpolicy_destroy(&s);
}

static void test_epsilon(void **unused)
{
    static const char *const set[] = {"epsilon=0.75", "epsilon_end=0.25", "epsilon_speed=0.5", NULL};
    static const int32_t choices[] = {3, 2};
    const config c = configured(set);
    state s = {0};
    host_open();
    fake.spec.n_continuous = 0;
    fake.spec.n_heads = 2;
    fake.spec.choices = choices;
    fake.wiring.n_choices = 5;
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_int_equal(start(&s), DT_OK);
    assert_string_equal(fake.set_name, "epsilon");
    assert_int_equal(fake.n_set, 5);
    assert_true(fake.set_value[0] == 0 && fake.set_value[4] == 0);
    assert_int_equal(update_exploration(&s.learner, 1), DT_OK);
    for (int i = 0; i < 5; i++) {
        assert_true(fake.set_value[i] == 0.375F);
    }
    assert_true(n_recorded == 1 && recorded_value("charts/epsilon") == 0.375);
    assert_int_equal(update_exploration(&s.learner, 2), DT_OK);
    assert_true(fake.set_value[4] == 0.25F);
    assert_string_equal(fake.acting_name, "epsilon");
    assert_true(fake.acting_value[0] == 0 && fake.acting_value[4] == 0); /* evaluations and exports do not explore */
    offpolicy_destroy(&s);
}

static void prepare(void *self)
{
    host_open();
    memset(self, 0, sizeof(state));
}

static dt_status create_and_start(void *self)
{
    const config c = configured(NULL);
    DT_TRY_H(create(self, &fake.host.host, &c));
    return start(self);
}

static void test_no_error_is_lost(void **unused)
{
    state s;
    assert_no_error_is_lost(prepare, create_and_start, &s);
}

static void test_options(void **unused)
{
    config c = configured(NULL);
    assert_options(&component, "iterations=1000 [1,1e+09]\n"
                               "collect_steps=8 [1,1e+06]\n"
                               "intensity=128 [1,1e+06]\n"
                               "buffer_size=100000 [1,1e+12]\n"
                               "learning_starts=1000 [1,1e+12]\n"
                               "n_step=1 [1,1024]\n"
                               "gamma=0.99 [0,1]\n"
                               "tau=0.01 [1e-09,1]\n"
                               "reward_scale=1 [1e-09,1e+09]\n"
                               "priority=0 [0,1]\n"
                               "priority_correction=0.4 [0,1]\n"
                               "actor_learning_rate=3e-4 [0,10]\n"
                               "critic_learning_rate=3e-4 [0,10]\n"
                               "actor_clip=0 [-1,1e+09]\n"
                               "critic_clip=0 [-1,1e+09]\n"
                               "critics=1 [1,8]\n"
                               "policy_delay=1 [1,1e+06]\n"
                               "noise=0.1 [0,1000]\n"
                               "noise_end=0.1 [0,1000]\n"
                               "noise_speed=1 [0,1]\n"
                               "epsilon=0.5 [0,1]\n"
                               "epsilon_end=0.05 [0,1]\n"
                               "epsilon_speed=0.9995 [0,1]\n"
                               "target_noise=0 [0,1000]\n"
                               "target_noise_clip=0.5 [0,1000]\n"
                               "logit_penalty=1e-3 [0,1000]\n");
    host_open();
    c.learn.learning_starts = c.learn.buffer_size;
    assert_int_equal(check(&fake.host.host, &c), DT_OK);
    c.learn.learning_starts++;
    assert_int_equal(check(&fake.host.host, &c), DT_ECONFIG);
    assert_non_null(strstr(fake.host.message, "phase_ddpg.learning_starts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_the_papers),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_epsilon),
        cmocka_unit_test(test_no_error_is_lost),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

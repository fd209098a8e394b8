/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_sac's losses and their gradients against Haarnoja et al. 2018 (arXiv 1812.05905, eqs. 5 to 18) written out in
 * double, with the noise that was drawn recovered from the actions; and what it binds and trains, on services that only
 * keep what they are given.
 */
#include "offpolicy_rig.h"
#include "offpolicy_host.h"
#include "mock/options.h"

#include "../../phases/phase_sac.c"

#include <stdlib.h>

/* What the actor says of a row, and log pi of an action a = tanh(u): log N(u) - log(1 - a^2), eq. 21. */
static double log_pi(const double *mean, const double *log_std, const double *a)
{
    double sum = 0;
    for (int i = 0; i < MOVES; i++) {
        const double s = exp(log_std[i]), z = (atanh(a[i]) - mean[i]) / s;
        sum += -0.5 * z * z - log(s * sqrt(2 * M_PI)) - log(1 - a[i] * a[i]);
    }
    return sum;
}

typedef struct expected {
    double actor, entropy, critic, q, temperature, alpha;
    double d_actor[MOVES], d_critic[CRITICS], d_log_alpha, surprise[ROWS];
    int n_least[CRITICS];
} expected;

static double q_of(const rig *r, int view, int k, int row, const double *a)
{
    double q = view == NOW ? r->params.critic[k] : 0;
    for (int i = 0; i < MOVES; i++) {
        q += a[i] * (double)r->rows.w[view][k][row][i];
    }
    return q;
}

static void says(const rig *r, int view, int row, double *mean, double *log_std)
{
    for (int i = 0; i < MOVES; i++) {
        mean[i] = (double)r->rows.mean[view][row][i] + r->params.actor[i];
        log_std[i] = fmin(fmax((double)r->rows.log_std[view][row][i], -20), 2);
    }
}

static expected expect(const rig *r, const rig_result *got, double alpha, double target_entropy, double reward_scale)
{
    expected e = {0};
    for (int row = 0; row < ROWS; row++) {
        double mean[MOVES], log_std[MOVES], next_mean[MOVES], next_log_std[MOVES], done[MOVES], surprise = 0;
        const double *a = got->action[row], *b = got->next_action[row], weight = (double)r->rows.weight[row];
        says(r, NOW, row, mean, log_std);
        says(r, NEXT, row, next_mean, next_log_std);
        const double lp = log_pi(mean, log_std, a), q0 = q_of(r, NOW, 0, row, a), q1 = q_of(r, NOW, 1, row, a);
        const int least = q1 < q0;
        e.n_least[least]++;
        e.actor += alpha * lp - fmin(q0, q1);
        e.entropy -= lp;
        e.temperature += (lp + target_entropy) * r->params.log_alpha;
        e.d_log_alpha -= lp + target_entropy;
        e.alpha += alpha;
        for (int i = 0; i < MOVES; i++) { /* at fixed noise d log pi / d mean = 2 a, d a / d mean = 1 - a^2 */
            e.d_actor[i] += alpha * 2 * a[i] - (1 - a[i] * a[i]) * (double)r->rows.w[NOW][least][row][i];
            done[i] = (double)r->rows.executed[row][i] / (double)bound_high[i];
        }
        const double next = fmin(q_of(r, TARGET_NEXT, 0, row, b), q_of(r, TARGET_NEXT, 1, row, b)) -
                            alpha * log_pi(next_mean, next_log_std, b);
        const double y = reward_scale * (double)r->rows.reward[row] + (double)r->rows.discount[row] * next;
        for (int k = 0; k < CRITICS; k++) {
            const double off = q_of(r, NOW, k, row, done) - y;
            e.critic += weight * off * off;
            e.d_critic[k] += 2 * weight * off;
            e.q += q_of(r, NOW, k, row, done);
            surprise += fabs(off) / CRITICS;
        }
        e.surprise[row] = surprise;
    }
    return e;
}

typedef struct setting {
    double temperature, target_entropy, reward_scale, priority;
} setting;

static void record_rig(rig *r, state *s, const setting *c)
{
    rig_open(r);
    memset(s, 0, sizeof(*s));
    s->config.temperature = c->temperature;
    s->config.target_entropy = c->target_entropy;
    s->temperature = c->temperature > 0 ? NULL : (dt_model *)(void *)&rig_temperature;
    s->learner.config =
        (offpolicy_config){.reward_scale = c->reward_scale, .priority = c->priority, .critics = CRITICS, .n_step = 1};
    s->learner.models = (actor_critic){.spec = &r->spec,
                                       .wiring = &r->wiring,
                                       .n_actions = MOVES,
                                       .n_critics = CRITICS,
                                       .is_bounded = true,
                                       .critic = (dt_model *)(void *)&rig_critic};
    if (record(s, r->g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
}

static void check_losses(const setting *c)
{
    static rig r;
    static rig_result of_actor, of_critic, of_temperature;
    state s;
    double weight = 0;
    record_rig(&r, &s, c);
    r.rows.log_std[NOW][2][0] = 3; /* held at 2 */
    rig_run(&r, "actor_loss", &of_actor);
    rig_run(&r, "critic_loss", &of_critic);
    const double alpha = c->temperature > 0 ? c->temperature : exp(r.params.log_alpha);
    const expected e =
        expect(&r, &of_actor, alpha, c->target_entropy != 0 ? c->target_entropy : -MOVES, c->reward_scale);
    assert_true(e.n_least[0] > 1 && e.n_least[1] > 1); /* either critic is the least in some rows */
    rig_near("actor_loss", rig_loss(&of_actor, r.g, "actor_loss", &weight), e.actor);
    assert_true(weight == 1);
    rig_near("entropy", rig_loss(&of_actor, r.g, "entropy", &weight), e.entropy);
    assert_true(weight == 0);
    rig_near("critic_loss", rig_loss(&of_actor, r.g, "critic_loss", &weight), e.critic);
    assert_true(weight == 1);
    rig_near("q", rig_loss(&of_actor, r.g, "q", &weight), e.q);
    assert_true(weight == 0);
    for (int i = 0; i < MOVES; i++) {
        rig_near("d actor_loss / d actor", of_actor.grad.actor[i], e.d_actor[i]);
        rig_near("d critic_loss / d actor", of_critic.grad.actor[i], 0); /* the target is a constant */
    }
    for (int k = 0; k < CRITICS; k++) {
        rig_near("d critic_loss / d critic", of_critic.grad.critic[k], e.d_critic[k]);
    }
    rig_near("d actor_loss / d log_alpha", of_actor.grad.log_alpha, 0);
    rig_near("d critic_loss / d log_alpha", of_critic.grad.log_alpha, 0);
    for (int row = 0; row < ROWS && c->priority > 0; row++) {
        rig_near("td_error", of_actor.surprise[row], e.surprise[row]);
    }
    if (c->temperature <= 0) {
        rig_run(&r, "temperature_loss", &of_temperature);
        rig_near("temperature_loss", rig_loss(&of_temperature, r.g, "temperature_loss", &weight), e.temperature);
        assert_true(weight == -1);
        rig_near("alpha", rig_loss(&of_temperature, r.g, "alpha", &weight), e.alpha);
        assert_true(weight == 0);
        rig_near("d temperature_loss / d log_alpha", of_temperature.grad.log_alpha, e.d_log_alpha);
        rig_near("d temperature_loss / d actor", of_temperature.grad.actor[0], 0);
    }
    rig_close(&r);
}

static void test_losses_are_those_of_the_paper(void **unused)
{
    static const setting all[] = {{.reward_scale = 1},
                                  {.target_entropy = 0.7, .reward_scale = 0.25, .priority = 0.6},
                                  {.temperature = 0.3, .reward_scale = 2}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check_losses(&all[i]);
    }
}

/* ---- create and start -------------------------------------------------------------------------------------------- */

static config configured(const char *const *set)
{
    void *at = mock_config(&component, set);
    const config c = *(const config *)at;
    free(at);
    return c;
}

static void check_group(int i, const char *name, const char *role, const char *loss, const char *second, double rate,
                        double clip)
{
    const dt_train_group *g = &fake.group[i];
    assert_string_equal(g->name, name);
    assert_string_equal(g->role[0], role);
    assert_int_equal(g->n_losses, 2);
    assert_string_equal(g->loss[0], loss);
    assert_string_equal(g->loss[1], second);
    assert_true(g->learning_rate == rate && g->gradient_clip == clip);
}

static void test_start(void **unused)
{
    static const char *const set[] = {
        "actor_learning_rate=0.25", "critic_learning_rate=0.5", "actor_clip=3", "critic_clip=4", "tau=0.125", NULL};
    config c = configured(set);
    state s = {0};
    host_open();
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_string_equal(fake.phase, "phase_sac");
    assert_true((fake.flags & DT_WIRING_STATE_LOG_STD) != 0 && fake.rollout.squash == 1);
    assert_string_equal(fake.bound[0], "critic: P=2 Q=2 action[A 2] -> q[A 2]");
    assert_string_equal(fake.bound[1], "temperature: -> log_alpha[1]");
    assert_int_equal(fake.n_bound, 2);
    assert_ptr_equal(s.temperature, fake.model[1]);
    assert_int_equal(start(&s), DT_OK);
    assert_true(fake.train.n_groups == 3 && s.learner.groups == 7 && s.learner.critic == 2);
    check_group(0, "actor", "controller", "actor_loss", "entropy", 0.25, 3);
    check_group(1, "critic", "critic", "critic_loss", "q", 0.5, 4);
    check_group(2, "temperature", "temperature", "temperature_loss", "alpha", 3e-4, -1); /* a number is not clipped */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fake.group[i].n_roles, 1);
    }
    assert_int_equal(fake.train.n_targets, 1);
    assert_string_equal(fake.targets[0].name, "target");
    assert_ptr_equal(fake.targets[0].model, fake.model[0]);
    assert_true(fake.targets[0].tau == 0.125 && fake.targets[0].every == 1);
    assert_true(fake.train.record == record && fake.n_set == 0);
    offpolicy_destroy(&s);

    host_open(); /* alpha is a number; perception learns with the actor */
    c.temperature = 0.5;
    fake.wiring.perception = (dt_model *)(void *)&rig_critic;
    s = (state){0};
    assert_int_equal(create(&s, &fake.host.host, &c), DT_OK);
    assert_true(fake.n_bound == 1 && s.temperature == NULL);
    assert_int_equal(start(&s), DT_OK);
    assert_true(fake.train.n_groups == 2 && s.learner.groups == 3);
    assert_true(fake.group[0].n_roles == 2 && fake.group[1].n_roles == 1);
    assert_string_equal(fake.group[0].role[1], "perception");
    offpolicy_destroy(&s);
}

static void test_refused(void **unused)
{
    static const int32_t choices[] = {3};
    config c = configured(NULL);
    state s = {0};
    host_open();
    fake.spec.n_continuous = 0;
    assert_int_equal(create(&s, &fake.host.host, &c), DT_ESHAPE);
    fake.spec.n_continuous = 2;
    fake.spec.n_heads = 1;
    fake.spec.choices = choices;
    fake.wiring.n_choices = 3;
    assert_int_equal(create(&s, &fake.host.host, &c), DT_ESHAPE);
    assert_true(mock_names(fake.host.message, "1 2"));
    c.learn.learning_starts = c.learn.buffer_size;
    assert_int_equal(check(&fake.host.host, &c), DT_OK);
    c.learn.learning_starts++;
    assert_int_equal(check(&fake.host.host, &c), DT_ECONFIG);
    assert_non_null(strstr(fake.host.message, "phase_sac.learning_starts"));
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
    assert_options(&component, "iterations=1000 [1,1e+09]\n"
                               "collect_steps=8 [1,1e+06]\n"
                               "intensity=256 [1,1e+06]\n"
                               "buffer_size=100000 [1,1e+12]\n"
                               "learning_starts=1000 [1,1e+12]\n"
                               "n_step=1 [1,1024]\n"
                               "gamma=0.99 [0,1]\n"
                               "tau=0.005 [1e-09,1]\n"
                               "reward_scale=1 [1e-09,1e+09]\n"
                               "priority=0 [0,1]\n"
                               "priority_correction=0.4 [0,1]\n"
                               "actor_learning_rate=3e-4 [0,10]\n"
                               "critic_learning_rate=3e-4 [0,10]\n"
                               "actor_clip=0 [-1,1e+09]\n"
                               "critic_clip=0 [-1,1e+09]\n"
                               "critics=2 [1,8]\n"
                               "policy_delay=1 [1,1e+06]\n"
                               "temperature=0 [0,1e+06]\n"
                               "target_entropy=0 [-1000,1000]\n"
                               "temperature_learning_rate=3e-4 [0,10]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_the_paper),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_error_is_lost),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_sac's losses and their gradients against Haarnoja et al. 2018 (arXiv 1812.05905, eqs. 5 to 18) written out in
 * double, with the noise that was drawn recovered from the actions.
 */
#include "offpolicy_rig.h"

#include "../../phases/phase_sac/phase_sac.c"

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
    s->learner.roles = (offpolicy_roles){.spec = &r->spec,
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
        rig_near("surprise", of_actor.surprise[row], e.surprise[row]);
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
    (void)unused;
    static const setting all[] = {{.reward_scale = 1},
                                  {.target_entropy = 0.7, .reward_scale = 0.25, .priority = 0.6},
                                  {.temperature = 0.3, .reward_scale = 2}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check_losses(&all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses_are_those_of_the_paper)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

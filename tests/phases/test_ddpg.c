/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_ddpg's losses and their gradients against Lillicrap et al. 2016 (arXiv 1509.02971, eqs. 4 to 6) and, with
 * target noise, Fujimoto et al. 2018 (arXiv 1802.09477, eq. 14) written out in double.
 */
#include "offpolicy_rig.h"

#include "../../phases/phase_ddpg/phase_ddpg.c"

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
    s.learner.roles = (offpolicy_roles){.spec = &r.spec,
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
    (void)unused;
    check_losses(0, 0.5, 1);
    check_losses(0.2, 0.1, 0.25);
    check_losses(0.5, 1.5, 1); /* beyond the bounds, which hold */
}

/* first at round 0, times speed in each, and last at least */
static void test_schedule(void **unused)
{
    (void)unused;
    assert_true(scheduled(0.5, 0.1, 0.9, 0) == 0.5);
    rig_near("noise", scheduled(0.5, 0.1, 0.9, 3), 0.5 * 0.729);
    assert_true(scheduled(0.5, 0.1, 0.9, 1000) == 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_the_papers),
        cmocka_unit_test(test_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_pendulum against figures of Gymnasium's Pendulum-v1: returns of fixed rollouts in double, means
 * of the random and the idle policy.
 */
#include "env_rig.h"

#include "../../plugins/env_pendulum/pendulum.h"

static void test_spec(void **state)
{
    env_rig r;
    rig_open(&r, "env_pendulum", NULL);
    assert_string_equal(r.spec.obs[0].dims, "A 3");
    assert_int_equal(r.spec.n_heads, 0);
    assert_int_equal(r.spec.n_continuous, 1);
    assert_true(r.spec.low[0] == -2.0F && r.spec.high[0] == 2.0F);
    assert_int_equal(r.spec.max_steps, 200);
    rig_close(&r);
}

static void test_wrap(void **state)
{
    for (double theta = -20; theta < 20; theta += 0.01) {
        const double w = pendulum_wrap(theta);
        assert_true(w >= -PENDULUM_PI && w < PENDULUM_PI + 1e-12);
        rig_near(sin(w), sin(theta), 1e-14);
        rig_near(cos(w), cos(theta), 1e-14);
    }
    rig_near(pendulum_wrap(-PENDULUM_PI), -PENDULUM_PI, 0);
    rig_near(pendulum_wrap(0.5), 0.5, 0);
}

/* 200 steps in double: theta = pi/2 at rest without torque; theta = 1, theta' = 0.5 under 2, and under 2 cos(0.1 t) */
static void test_fixed_rollouts(void **state)
{
    static const struct {
        pendulum start;
        double torque, swing, want;
    } rows[] = {
        {{PENDULUM_PI / 2, 0}, 0, 0, -1211.21137}, {{1, 0.5}, 2, 0, -1681.17739}, {{1, 0.5}, 2, 0.1, -1161.41163}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pendulum s = rows[i].start;
        double sum = 0;
        for (int t = 0; t < 200; t++) {
            sum -= pendulum_step(&s, sin(s.theta), rows[i].torque * cos(rows[i].swing * t));
            assert_true(fabs(s.theta_dot) <= PENDULUM_SPEED);
        }
        rig_near(sum, rows[i].want, 1e-5 * fabs(rows[i].want));
    }
}

/* the plugin is those mechanics from a start that its seed draws, in floats */
static void test_against_the_mechanics(void **state)
{
    env_rig r;
    rig_open(&r, "env_pendulum", NULL);
    for (uint64_t seed = 0; seed < 5; seed++) {
        dt_random random;
        dt_random_init(&random, seed, 0);
        pendulum s = {.theta = PENDULUM_PI * (2 * dt_random_uniform(&random) - 1)};
        s.theta_dot = 2 * dt_random_uniform(&random) - 1;
        int64_t n_upright = 0;
        bool is_over = false;
        rig_reset(&r, seed);
        rig_near((double)r.obs[0], cos(s.theta), 1e-7);
        for (int t = 0; t < 200; t++) {
            assert_false(is_over);
            const float u = (float)(2 * sin(0.3 * t + (double)seed));
            r.act_f[0] = u;
            is_over = rig_step(&r);
            const double cost = pendulum_step(&s, sin(s.theta), (double)u);
            rig_near((double)r.reward, -cost, 1e-6 * (1 + cost));
            rig_near((double)r.obs[0], cos(s.theta), 1e-6);
            rig_near((double)r.obs[1], sin(s.theta), 1e-6);
            rig_near((double)r.obs[2], s.theta_dot, 1e-5);
            n_upright += fabs(atan2(sin(s.theta), cos(s.theta))) <= 0.1;
        }
        assert_true(is_over);
        assert_int_equal(r.truncated, 1);
        rig_near(r.metric[0], (double)n_upright / 200, 1e-12);
    }
    rig_close(&r);
}

static void test_policies(void **state)
{
    enum { N = 4000 };
    env_rig r;
    dt_random random;
    dt_random_init(&random, 5, 1);
    rig_open(&r, "env_pendulum", NULL);
    for (int is_idle = 0; is_idle < 2; is_idle++) {
        double sum = 0;
        for (uint64_t seed = 0; seed < N; seed++) {
            for (rig_reset(&r, seed); !rig_push(&r, is_idle ? 0 : dt_random_between(&random, -2, 2));) {
            }
            sum += r.episode_return;
        }
        rig_near(sum / N, is_idle ? -1218 : -1229, 5 * (is_idle ? 357 : 287) / sqrt(N));
    }
    rig_close(&r);
}

static void test_same_seed_same_bits(void **state)
{
    env_rig a, b;
    rig_open(&a, "env_pendulum", NULL);
    rig_open(&b, "env_pendulum", NULL);
    rig_reset(&a, 1); /* the instances have different pasts */
    (void)rig_push(&a, 1);
    rig_reset(&a, 3);
    rig_reset(&b, 3);
    for (int t = 0; t < 50; t++) {
        (void)rig_push(&a, sin(t));
        (void)rig_push(&b, sin(t));
        assert_memory_equal(a.obs, b.obs, sizeof(a.obs));
        assert_memory_equal(&a.reward, &b.reward, sizeof(a.reward));
    }
    rig_close(&a);
    rig_close(&b);
}

static void test_refusals(void **state)
{
    env_rig r;
    rig_open(&r, "env_pendulum", NULL);
    rig_reset(&r, 1);
    r.io.act_f = r.act_f;
    static const float wrong[] = {2.001F, -2.001F, NAN};
    for (int i = 0; i < 3; i++) {
        r.act_f[0] = wrong[i];
        assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
        assert_non_null(strstr(r.host.message, "N m is outside [-2, 2]"));
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),           cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_fixed_rollouts), cmocka_unit_test(test_against_the_mechanics),
        cmocka_unit_test(test_policies),       cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_lqr: its solution against figures worked out elsewhere, against the equation that it solves and
 * against a simulation; the plugin against the mechanics; gain, bounds and refusals.
 */
#include "env_rig.h"

#include "../../plugins/env_lqr/lqr.h"

static const lqr usual = {.a = 0.95, .b = 0.5, .r = 0.1, .sigma = 0.2};

/* of x' = .95 x + .5 u + w, var w = .04, cost x^2 + .1 u^2, gamma = .9 */
static void test_solution(void **state)
{
    const lqr_solution s = lqr_solve(&usual, 0.9);
    rig_near(s.K, 1.40666648, 5e-9);
    rig_near(s.P, 1.26726663, 5e-9);
    rig_near(s.xx, -2.02933732, 5e-9);
    rig_near(s.xu, -1.08351297, 5e-9);
    rig_near(s.uu, -0.38513499, 5e-9);
    rig_near(s.one, -0.45621599, 5e-9);
}

/* Q(x, u) = -(x^2 + r u^2) + gamma E max_u' Q(x', u'), and u = -K x is the greatest: on many systems */
static void test_bellman(void **state)
{
    dt_random r;
    dt_random_init(&r, 5, 0);
    for (int i = 0; i < 200; i++) {
        const lqr s = {.a = dt_random_between(&r, -1.5, 1.5),
                       .b = dt_random_between(&r, 0.1, 2),
                       .r = dt_random_between(&r, 0.01, 2),
                       .sigma = dt_random_between(&r, 0, 1)};
        const double gamma = dt_random_between(&r, 0, 0.99);
        const lqr_solution q = lqr_solve(&s, gamma);
        const double best = q.xx - q.xu * q.K + q.uu * q.K * q.K; /* of x^2, at u = -K x */
        rig_near(q.xu - 2 * q.uu * q.K, 0, 1e-9 * (1 + fabs(q.xu)));
        rig_near(best, -q.P, 1e-9 * q.P);
        rig_near(q.xx, -1 + gamma * best * s.a * s.a, 1e-9 * q.P);
        rig_near(q.xu, gamma * best * 2 * s.a * s.b, 1e-9 * q.P);
        rig_near(q.uu, -s.r + gamma * best * s.b * s.b, 1e-9 * (s.r + q.P));
        rig_near(q.one, gamma * (best * s.sigma * s.sigma + q.one), 1e-9 * (1 + fabs(q.one)));
    }
}

/* the plugin is those mechanics, in floats; its gain is that of the policy that acted */
static void test_against_the_mechanics(void **state)
{
    env_rig r;
    rig_open(&r, "env_lqr", NULL);
    assert_string_equal(r.spec.obs[0].dims, "A 1");
    assert_int_equal(r.spec.n_continuous, 1);
    assert_true(isinf(r.spec.low[0]) && r.spec.low[0] < 0 && isinf(r.spec.high[0]) && r.spec.high[0] > 0);
    for (uint64_t seed = 0; seed < 5; seed++) {
        dt_random random;
        dt_random_init(&random, seed, 0);
        double x = 2 * (2 * dt_random_uniform(&random) - 1);
        bool is_over = false;
        rig_reset(&r, seed);
        for (int t = 0; t < 50; t++) {
            assert_false(is_over);
            rig_near((double)r.obs[0], x, 1e-6 * (1 + fabs(x)));
            r.act_f[0] = -0.75F * r.obs[0];
            const double u = (double)r.act_f[0];
            is_over = rig_step(&r);
            rig_near((double)r.reward, -(x * x + 0.1 * u * u), 1e-6 * (1 + x * x));
            x = 0.95 * x + 0.5 * u + 0.2 * dt_random_normal(&random);
        }
        assert_true(is_over);
        assert_int_equal(r.truncated, 1);
        assert_int_equal(r.terminated, 0);
        rig_near(r.metric[0], 0.75, 1e-6);
    }
    rig_close(&r);
}

static void test_bounds(void **state)
{
    env_rig r;
    rig_open(&r, "env_lqr", (const char *const[]){"bound=3", "max_steps=2", NULL});
    assert_true(r.spec.low[0] == -3.0F && r.spec.high[0] == 3.0F);
    assert_int_equal(r.spec.max_steps, 2);
    rig_close(&r);
}

/* a policy that drives the state away is reported, and no number that is none comes out */
static void test_lost(void **state)
{
    env_rig r;
    rig_open(&r, "env_lqr", NULL);
    rig_reset(&r, 1);
    r.io.act_f = r.act_f;
    r.act_f[0] = 1e8F;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EDIVERGED);
    assert_non_null(strstr(r.host.message, "the policy is unstable"));
    r.act_f[0] = NAN;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EDIVERGED);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solution), cmocka_unit_test(test_bellman), cmocka_unit_test(test_against_the_mechanics),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

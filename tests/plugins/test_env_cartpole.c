/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_cartpole against figures of Gymnasium's CartPole-v1: exact states, the random policy's mean, and
 * linear policies, one of which never fails.
 */
#include "env_rig.h"

#include "../../plugins/env_cartpole/cartpole.h"

static const char *const from_zero[] = {"start=0", NULL};

static void test_spec(void **state)
{
    env_rig r;
    rig_open(&r, "env_cartpole", NULL);
    assert_string_equal(r.spec.obs[0].name, "obs");
    assert_string_equal(r.spec.obs[0].dims, "A 4");
    assert_int_equal(r.spec.n_heads, 1);
    assert_int_equal(r.spec.choices[0], 2);
    assert_int_equal(r.spec.n_continuous, 0);
    assert_int_equal(r.spec.max_steps, 500);
    rig_near(r.spec.step_s, 0.02, 0);
    rig_close(&r);
}

/* from 0, always to the right: the states of steps 1 and 5, the end at step 9 */
static void test_states(void **state)
{
    static const double want[2][4] = {{0, 0.19512195, 0, -0.29268293},
                                      {0.03903233, 0.97636392, -0.05871949, -1.48153256}};
    env_rig r;
    cartpole exact = {0, 0, 0, 0};
    rig_open(&r, "env_cartpole", from_zero);
    rig_reset(&r, 1);
    for (int i = 0; i < 4; i++) {
        assert_true(r.obs[i] == 0.0F);
    }
    for (int t = 1; t <= 9; t++) {
        assert_int_equal(rig_choose(&r, 1), t == 9);
        assert_true(r.reward == 1.0F); /* for the last step too */
        cartpole_step(&exact, true);
        const double is[4] = {exact.x, exact.x_dot, exact.theta, exact.theta_dot};
        for (int i = 0; i < 4; i++) {
            assert_true(r.obs[i] == (float)is[i]);
            if (t == 1 || t == 5) {
                rig_near(is[i], want[t == 5][i], 5e-9);
            }
        }
    }
    assert_int_equal(r.terminated, 1);
    assert_true(r.metric[0] == 0);
    /* and the mirror image */
    rig_reset(&r, 1);
    for (int t = 1; t <= 9; t++) {
        assert_int_equal(rig_choose(&r, 0), t == 9);
    }
    rig_near((double)r.obs[3], -exact.theta_dot, 1e-6);
    rig_close(&r);
}

/* uniform start in [-0.05, 0.05], one seed one start, whatever came before */
static void test_start(void **state)
{
    enum { N = 4000 };
    env_rig r;
    double sum[4] = {0}, square[4] = {0}, largest = 0;
    float first[4], second[4];
    rig_open(&r, "env_cartpole", NULL);
    for (uint64_t seed = 0; seed < N; seed++) {
        rig_reset(&r, seed);
        for (int i = 0; i < 4; i++) {
            sum[i] += (double)r.obs[i];
            square[i] += (double)r.obs[i] * (double)r.obs[i];
            largest = fmax(largest, fabs((double)r.obs[i]));
        }
    }
    assert_true(largest <= 0.05 && largest > 0.0499);
    for (int i = 0; i < 4; i++) {
        rig_near(sum[i] / N, 0, 5 * 0.05 / sqrt(3.0 * N));
        rig_near(square[i] / N, 0.05 * 0.05 / 3, 5 * 0.05 * 0.05 * 0.2981 / sqrt(N));
    }
    rig_reset(&r, 7);
    memcpy(first, r.obs, sizeof(first));
    for (int i = 0; i < 5; i++) {
        (void)rig_choose(&r, 0);
    }
    rig_reset(&r, 8);
    memcpy(second, r.obs, sizeof(second));
    rig_reset(&r, 7);
    assert_memory_equal(first, r.obs, sizeof(first));
    assert_memory_not_equal(first, second, sizeof(first));
    rig_close(&r);
}

static void test_truncation(void **state)
{
    static const char *const short_one[] = {"max_steps=3", NULL};
    env_rig r;
    rig_open(&r, "env_cartpole", short_one);
    assert_int_equal(r.spec.max_steps, 3);
    rig_reset(&r, 1);
    assert_false(rig_choose(&r, 0));
    assert_false(rig_choose(&r, 1));
    assert_true(rig_choose(&r, 0));
    assert_int_equal(r.truncated, 1);
    assert_true(r.metric[0] == 1);
    rig_close(&r);
    /* the step that fails at the limit is a termination: the value of what follows is 0 */
    static const char *const nine[] = {"start=0", "max_steps=9", NULL};
    rig_open(&r, "env_cartpole", nine);
    rig_reset(&r, 1);
    while (!rig_choose(&r, 1)) {
    }
    assert_int_equal(r.episode_steps, 9);
    assert_int_equal(r.terminated, 1);
    assert_int_equal(r.truncated, 0);
    rig_close(&r);
}

/* mean return of n episodes of a policy: 0 random, 1 theta, 2 theta', 3 both, 4 all of the state */
static double mean_return(int policy, uint64_t n, double *least_p)
{
    env_rig r;
    dt_random random;
    double sum = 0;
    *least_p = INFINITY;
    dt_random_init(&random, 99, 1);
    rig_open(&r, "env_cartpole", NULL);
    for (uint64_t seed = 0; seed < n; seed++) {
        bool is_over = false;
        for (rig_reset(&r, 1000 + seed); !is_over;) {
            const double x = (double)r.obs[0], v = (double)r.obs[1], theta = (double)r.obs[2], w = (double)r.obs[3];
            const double side[5] = {0, theta, w, theta + w, theta + w + 0.1 * x + 0.3 * v};
            is_over = rig_choose(&r, policy == 0 ? (int32_t)dt_random_below(&random, 2) : side[policy] > 0);
        }
        sum += r.episode_return;
        *least_p = fmin(*least_p, r.episode_return);
    }
    rig_close(&r);
    return sum / (double)n;
}

static void test_policies(void **state)
{
    double least = 0;
    rig_near(mean_return(0, 10000, &least), 22.26, 5 * 11.8 / sqrt(10000));
    rig_near(mean_return(1, 3000, &least), 42.2, 1.0);
    rig_near(mean_return(2, 1000, &least), 199.1, 6.0);
    rig_near(mean_return(3, 500, &least), 484.5, 6.0);
    rig_near(mean_return(4, 500, &least), 500, 0);
    rig_near(least, 500, 0);
}

static void test_refusals(void **state)
{
    env_rig r;
    rig_open(&r, "env_cartpole", NULL);
    rig_reset(&r, 1);
    r.io.act_i = r.act_i;
    static const int32_t wrong[] = {2, -1};
    for (int i = 0; i < 2; i++) {
        r.act_i[0] = wrong[i];
        assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
        assert_non_null(strstr(r.host.message, i == 0 ? "action 2, expected 0 (left)" : "action -1"));
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),       cmocka_unit_test(test_states),   cmocka_unit_test(test_start),
        cmocka_unit_test(test_truncation), cmocka_unit_test(test_policies), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

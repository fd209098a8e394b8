/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_tmaze: what is seen and earned at every place, the shortest way, what memory is worth.
 */
#include "env_rig.h"

enum { NORTH, EAST, SOUTH, WEST };

static void sees(const env_rig *r, float a, float b, float c)
{
    assert_true(r->obs[0] == a && r->obs[1] == b && r->obs[2] == c);
}

static void walks(env_rig *r, int32_t action, float reward)
{
    assert_false(rig_choose(r, action));
    assert_true(r->reward == reward);
}

/* the goal that the sign at the start shows */
static int32_t sign(const env_rig *r)
{
    assert_true(r->obs[1] == 1.0F && r->obs[0] + r->obs[2] == 1.0F);
    return r->obs[2] == 1.0F ? NORTH : SOUTH;
}

static void test_places(void **state)
{
    static const char *const three[] = {"length=3", NULL};
    env_rig r;
    rig_open(&r, "env_tmaze", three);
    assert_int_equal(r.spec.choices[0], 4);
    rig_reset(&r, 1);
    const int32_t goal = sign(&r);
    const float south = goal == SOUTH, north = goal == NORTH;
    sees(&r, south, 1, north);
    for (int i = 0; i < 3; i++) { /* walls all around, but in the east */
        static const int32_t wall[] = {NORTH, SOUTH, WEST};
        walks(&r, wall[i], -0.1F);
        sees(&r, south, 1, north);
    }
    walks(&r, EAST, 0);
    sees(&r, 1, 0, 1);
    walks(&r, NORTH, -0.1F);
    walks(&r, SOUTH, -0.1F);
    sees(&r, 1, 0, 1);
    walks(&r, WEST, 0);
    sees(&r, south, 1, north);
    walks(&r, EAST, 0);
    walks(&r, EAST, 0);
    sees(&r, 1, 0, 1);
    walks(&r, EAST, 0);
    sees(&r, 0, 1, 0);
    walks(&r, EAST, -0.1F);
    sees(&r, 0, 1, 0);
    assert_true(rig_choose(&r, goal));
    assert_true(r.reward == 4.0F && r.terminated == 1);
    assert_true(r.metric[0] == 1 && r.metric[1] == 1);
    rig_close(&r);
}

/* 1000 seeds: with memory always the goal in 21 steps, without it half of the time */
static void test_memory(void **state)
{
    enum { N = 1000 };
    env_rig r;
    rig_open(&r, "env_tmaze", NULL);
    int n_north = 0, n_lucky = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        for (int has_memory = 0; has_memory < 2; has_memory++) {
            rig_reset(&r, seed);
            const int32_t goal = sign(&r);
            for (int i = 0; i < 20; i++) {
                walks(&r, EAST, 0);
            }
            assert_true(rig_choose(&r, has_memory ? goal : SOUTH));
            assert_int_equal(r.episode_steps, 21);
            assert_true(r.reward == (has_memory || goal == SOUTH ? 4.0F : -0.1F));
            assert_true(r.metric[0] == (r.reward > 0) && r.metric[1] == 1);
            n_lucky += !has_memory && r.reward > 0;
            n_north += has_memory && goal == NORTH;
        }
    }
    assert_int_equal(n_north + n_lucky, N);
    assert_in_range(n_north, N / 2 - 80, N / 2 + 80); /* 5 deviations of 15.8 */
    rig_close(&r);
}

static void test_options(void **state)
{
    static const char *const forward[] = {"length=2", "max_steps=3", "back=false", NULL};
    env_rig r;
    rig_open(&r, "env_tmaze", forward);
    assert_int_equal(r.spec.choices[0], 3);
    assert_int_equal(r.spec.max_steps, 3);
    rig_reset(&r, 1);
    walks(&r, EAST, 0);
    walks(&r, NORTH, -0.1F);
    assert_true(rig_choose(&r, EAST)); /* time is over at the junction */
    assert_int_equal(r.truncated, 1);
    sees(&r, 0, 1, 0);
    assert_true(r.metric[0] == 0 && r.metric[1] == 0);
    rig_reset(&r, 1); /* the goal in the very last step is an end, and not one by time */
    const int32_t goal = sign(&r);
    walks(&r, EAST, 0);
    walks(&r, EAST, 0);
    assert_true(rig_choose(&r, goal));
    assert_true(r.terminated == 1 && r.truncated == 0 && r.reward == 4.0F);
    r.act_i[0] = WEST;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "action 3, expected 0 to 2"));
    rig_close(&r);
}

static void test_refusals(void **state)
{
    static const char *const hopeless[] = {"length=20", "max_steps=20", NULL};
    env_rig r;
    rig_open(&r, "env_tmaze", NULL);
    assert_int_equal(r.component->check(&r.host.host, r.config), DT_OK);
    void *config = mock_config(r.component, hopeless);
    assert_int_equal(r.component->check(&r.host.host, config), DT_ECONFIG);
    assert_non_null(strstr(r.host.message, "at least 21"));
    free(config);
    rig_reset(&r, 1);
    r.io.act_i = r.act_i;
    r.act_i[0] = -1;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "action -1, expected 0 to 3"));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

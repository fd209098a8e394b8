/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_matrix: what every pair of choices pays in each game, who sees what, when it ends.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { AGENTS = 2, CHOICES = 3 };

typedef struct rig {
    mock_host host;
    const dt_env_ops *ops;
    void *config, *self, *list[1];
    dt_env_io io;
    float obs[AGENTS][AGENTS], reward[AGENTS];
    uint8_t alive[AGENTS], mask[AGENTS][CHOICES], terminated[AGENTS], truncated[AGENTS];
    int32_t act[AGENTS];
    int64_t size[1];
    double metric[2];
} rig;

static void open_rig(rig *r, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    const dt_component *c = mock_load("plugins", "env_matrix", "env_matrix");
    assert_non_null(c);
    r->ops = c->ops;
    r->config = mock_config(c, set);
    r->self = calloc(1, c->state_size);
    assert_int_equal(r->ops->create(r->self, &r->host.host, r->config), DT_OK);
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    assert_int_equal(r->ops->spec(r->self, &spec), DT_OK);
    assert_int_equal(spec.n_agents, AGENTS);
    assert_int_equal(spec.choices[0], set != NULL && strcmp(set[0], "game=two_step") == 0 ? 2 : CHOICES);
    r->list[0] = r->obs;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = 1,
                        .obs = r->list,
                        .size = r->size,
                        .alive = r->alive,
                        .mask = &r->mask[0][0],
                        .act_i = r->act,
                        .reward = r->reward,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
    assert_int_equal(r->ops->reset(r->self, &r->io, 1), DT_OK);
}

static void close_rig(rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

static dt_status play(rig *r, int32_t row, int32_t column)
{
    memset(r->obs, 0, sizeof(r->obs));
    memset(r->terminated, 0, sizeof(r->terminated));
    r->act[0] = row;
    r->act[1] = column;
    return r->ops->step(r->self, &r->io);
}

static void check_game(const char *const *set, const double pay[CHOICES][CHOICES], double mean, double best)
{
    rig r;
    open_rig(&r, set);
    for (int u = 0; u < CHOICES * CHOICES; u++) {
        const bool is_last = u + 1 == CHOICES * CHOICES;
        assert_int_equal(play(&r, u / CHOICES, u % CHOICES), is_last ? DT_DONE : DT_OK);
        for (int i = 0; i < AGENTS; i++) {
            assert_true((double)r.reward[i] == pay[u / CHOICES][u % CHOICES]);
            assert_true(r.obs[i][i] == 1 && r.obs[i][1 - i] == 0);
            assert_int_equal(r.alive[i], !is_last);
            assert_int_equal(r.terminated[i], is_last);
            assert_int_equal(r.truncated[i], 0);
        }
    }
    assert_true(r.metric[0] > mean - 1e-9 && r.metric[0] < mean + 1e-9);
    assert_true(r.metric[1] > best - 1e-9 && r.metric[1] < best + 1e-9);
    assert_int_equal(r.ops->reset(r.self, &r.io, 1), DT_OK); /* the next episode starts at 0 */
    assert_int_equal(play(&r, 0, 0), DT_OK);
    close_rig(&r);
}

static void test_games(void **unused)
{
    static const double climbing[CHOICES][CHOICES] = {{11, -30, 0}, {-30, 7, 6}, {0, 0, 5}};
    static const double penalty[CHOICES][CHOICES] = {{-25, 0, 10}, {0, 2, 0}, {10, 0, -25}};
    static const char *const one[] = {"repeats=9", NULL};
    static const char *const other[] = {"repeats=9", "game=penalty", "k=25", NULL};
    check_game(one, climbing, -31.0 / 9, 1.0 / 9);
    check_game(other, penalty, -28.0 / 9, 2.0 / 9);
}

/* Every choice of the first agent in the first step, and of both in the second. */
static void test_two_steps(void **unused)
{
    static const char *const set[] = {"game=two_step", "repeats=8", NULL};
    static const double risky[2][2] = {{0, 1}, {1, 8}};
    float obs[AGENTS][5];
    rig r;
    open_rig(&r, set);
    r.list[0] = obs;
    for (int u = 0; u < 8; u++) {
        const int matrix = u / 4, row = u / 2 % 2, column = u % 2;
        for (int step = 0; step < 2; step++) {
            const bool is_last = u == 7 && step == 1;
            memset(obs, 0, sizeof(obs));
            assert_int_equal(step == 0 ? play(&r, matrix, column) : play(&r, row, column), is_last ? DT_DONE : DT_OK);
            for (int i = 0; i < AGENTS; i++) {
                assert_true((double)r.reward[i] == (step == 0 ? 0 : matrix == 0 ? 7 : risky[row][column]));
                for (int d = 0; d < 5; d++) {
                    assert_true(obs[i][d] == (d == i || d == AGENTS + (step == 0 ? 1 + matrix : 0)));
                }
                assert_int_equal(r.terminated[i], is_last);
            }
        }
    }
    assert_true(r.metric[0] == 38.0 / 8 && r.metric[1] == 1.0 / 8);
    assert_int_equal(play(&r, 2, 0), DT_EINVAL);
    close_rig(&r);
}

static void test_choices_that_are_none(void **unused)
{
    rig r;
    open_rig(&r, NULL);
    assert_int_equal(play(&r, 0, 3), DT_EINVAL);
    assert_string_equal(r.host.message, "action 3 of agent 1, expected 0 to 2");
    assert_int_equal(play(&r, -1, 0), DT_EINVAL);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_games), cmocka_unit_test(test_two_steps),
                                       cmocka_unit_test(test_choices_that_are_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

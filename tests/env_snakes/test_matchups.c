/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules against rules in env_snakes, compared with what the original measured with the same rules in 300 games each
 * (zhizhengzhao/snake, env/snakes.py): mean scores of both teams, shares of games won and lost. Both sides are means of
 * samples, so they may differ by 3.5 standard errors of their difference; the tables have two or three digits. And
 * which rule plays when, by schedules.
 */
#include "../../plugins/env_snakes/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, THEIR_GAMES = 300, NUMBERS = 4 };

typedef struct matchup {
    uint32_t first, second;
    double want[NUMBERS]; /* scores of first and second, share won and lost by the first */
} matchup;

static const matchup table[] = {
    {RIVAL_RANDOM, RIVAL_RANDOM, {0.89, 0.86, 0.34, 0.34}}, {RIVAL_RANDOM, RIVAL_L1, {0.79, 5.45, 0.08, 0.81}},
    {RIVAL_RANDOM, RIVAL_L2, {0.56, 20.4, 0.01, 0.99}},     {RIVAL_RANDOM, RIVAL_L3, {0.79, 12.9, 0.02, 0.95}},
    {RIVAL_RANDOM, RIVAL_L4, {0.81, 15.1, 0.03, 0.94}},     {RIVAL_RANDOM, RIVAL_EVASION, {0.76, 15.3, 0.02, 0.93}},
    {RIVAL_L2, RIVAL_RANDOM, {20.4, 0.62, 0.98, 0.01}},     {RIVAL_L2, RIVAL_L1, {15.1, 2.56, 0.91, 0.07}},
    {RIVAL_L2, RIVAL_L2, {10.2, 11.4, 0.44, 0.52}},         {RIVAL_L2, RIVAL_L3, {11.1, 7.3, 0.63, 0.32}},
    {RIVAL_L2, RIVAL_L4, {12.0, 8.6, 0.64, 0.34}},          {RIVAL_L2, RIVAL_EVASION, {12.0, 10.4, 0.54, 0.41}},
};

static void play(const matchup *m, uint64_t seed, double out[NUMBERS])
{
    board b;
    dt_random r[2];
    dt_random_init(&r[0], seed, 1);
    dt_random_init(&r[1], seed, 2);
    board_begin(&b, seed);
    for (uint32_t t = 0; t < STEPS && !b.is_over; t++) {
        uint8_t action[BOARD_SNAKES];
        rival_act(m->first, &b, 0, &r[0], action);
        rival_act(m->second, &b, 1, &r[1], action + BOARD_TEAM);
        board_step(&b, action, NULL);
    }
    out[0] = board_team_score(&b, 0);
    out[1] = board_team_score(&b, 1);
    out[2] = out[0] > out[1];
    out[3] = out[0] < out[1];
}

static void test_table(void **state)
{
    const char *asked = getenv("DT_SNAKES_GAMES");
    const int games = asked != NULL ? atoi(asked) : 1000;
    assert_true(games >= 100);
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        const matchup *m = &table[k];
        double sum[NUMBERS] = {0}, square[NUMBERS] = {0};
        for (int g = 0; g < games; g++) {
            double is[NUMBERS];
            play(m, (uint64_t)g, is);
            for (int i = 0; i < NUMBERS; i++) {
                sum[i] += is[i];
                square[i] += is[i] * is[i];
            }
        }
        for (int i = 0; i < NUMBERS; i++) {
            const double mean = sum[i] / games, variance = square[i] / games - mean * mean;
            const double rounding = i < 2 && m->want[i] >= 5 ? 0.05 : 0.005;
            const double limit = 3.5 * sqrt(variance * (1.0 / games + 1.0 / THEIR_GAMES)) + rounding;
            if (fabs(mean - m->want[i]) > limit) {
                print_error("rules %u and %u, number %d: %.3f, measured %.3f, limit %.3f\n", m->first, m->second, i,
                            mean, m->want[i], limit);
            }
            assert_true(fabs(mean - m->want[i]) <= limit);
            sum[i] = mean;
        }
        print_message("# %u %u: %.2f %.2f (%.3f/%.3f)\n", m->first, m->second, sum[0], sum[1], sum[2], sum[3]);
    }
}

static void test_schedules(void **state)
{
    static const struct {
        uint32_t kind;
        uint32_t at[9]; /* after 0, 2, 6, 8, 9, 12, 17, 19 and 20 of 20 episodes */
    } want[] = {
        {SCHEDULE_FIXED, {RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4, RIVAL_L4}},
        {SCHEDULE_LINEAR,
         {RIVAL_RANDOM, RIVAL_RANDOM, RIVAL_L1, RIVAL_L1, RIVAL_L1, RIVAL_L2, RIVAL_L3, RIVAL_L3, RIVAL_L4}},
        {SCHEDULE_EXPONENTIAL,
         {RIVAL_RANDOM, RIVAL_RANDOM, RIVAL_RANDOM, RIVAL_L1, RIVAL_L1, RIVAL_L1, RIVAL_L3, RIVAL_L3, RIVAL_L4}},
        {SCHEDULE_CURRICULUM,
         {RIVAL_RANDOM, RIVAL_L1, RIVAL_L3, RIVAL_L3, RIVAL_L4, RIVAL_EVASION, RIVAL_L2, RIVAL_L2, RIVAL_L2}},
    };
    static const uint64_t at[] = {0, 2, 6, 8, 9, 12, 17, 19, 20};
    for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
        schedule s = {.kind = want[k].kind, .rule = RIVAL_L4, .episodes = 20, .evasion_from = -1};
        for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
            assert_int_equal(schedule_rule(&s, at[i]), want[k].at[i]);
        }
        assert_int_equal(schedule_rule(&s, UINT64_MAX), want[k].at[8]);
        s.evasion_from = 8;
        assert_int_equal(schedule_rule(&s, 6), want[k].at[2]);
        assert_int_equal(schedule_rule(&s, 8), RIVAL_EVASION);
        assert_int_equal(schedule_rule(&s, UINT64_MAX), RIVAL_EVASION);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

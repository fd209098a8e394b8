/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/rl/evaluate: names, means and deviations over seeds (results.c); the numbers of a seed by those of its
 * episodes (evaluate.c).
 */
#include "../../../core/rl/evaluate/evaluate.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rl/evaluate/results.h"

static char said[1024];

static void report(const dt_host *h, const char *key, const double *value, uint32_t n)
{
    size_t at = strlen(said);
    at += (size_t)snprintf(said + at, sizeof(said) - at, "%s", key);
    for (uint32_t i = 0; i < (n > 0 ? n : 1); i++) {
        at += (size_t)snprintf(said + at, sizeof(said) - at, " %g", value[i]);
    }
    snprintf(said + at, sizeof(said) - at, "\n");
}

static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .report = report};

static void test_numbers_over_seeds(void **state)
{
    static const char *const costs[] = {"crash"}, *const names[] = {"delay_s", "never"};
    const dt_env_spec spec = {.costs = costs, .n_costs = 1, .metrics = names, .n_metrics = 2};
    const uint64_t seed[3] = {4, 5, 6};
    dt_rollout_report r[3] = {
        {.episode_return = 1, .episode_length = 10, .agent_steps = 10},
        {.episode_return = 2, .episode_length = 10, .agent_steps = 10},
        {.episode_return = 6, .episode_length = 10, .agent_steps = 20, .interventions = 0.5, .infeasible = 0.1}};
    for (int i = 0; i < 3; i++) {
        r[i].episode_cost[0] = i == 1 ? NAN : 2 * i; /* one seed has none */
        r[i].metric[0] = 7;
        r[i].metric[1] = NAN;
    }
    said[0] = '\0';
    dt_evaluation_report_results(NULL, &metrics, &spec, seed, r, 3);
    assert_string_equal(said, "seeds 4 5 6\nreturn/mean 3\nreturn/std 2.64575\nreturn/values 1 2 6\n"
                              "length/mean 10\nlength/std 0\nlength/values 10 10 10\n"
                              "costs/crash/mean 2\ncosts/crash/std 2.82843\ncosts/crash/values 0 nan 4\n"
                              "metrics/delay_s/mean 7\nmetrics/delay_s/std 0\nmetrics/delay_s/values 7 7 7\n"
                              "metrics/never/mean nan\nmetrics/never/std nan\nmetrics/never/values nan nan nan\n"
                              "shield/interventions 10\nshield/infeasible_rate 0.05\n");
}

/* Two episodes of a seed: items of a job, then the episode's return, length, cost and metric. */
static void test_numbers_of_a_seed(void **state)
{
    static dt_rollout r;
    static dt_env env;
    const evaluation e = {.r = &r, .episodes = 2, .items = ITEM_EPISODE + 4};
    double job[2][ITEM_EPISODE + 4] = {
        {[ITEM_STEPS] = 4, [ITEM_ROWS] = 10, [ITEM_CHANGED] = 3, [ITEM_INFEASIBLE] = 1, [ITEM_ENV_S] = 0.5},
        {[ITEM_STEPS] = 6, [ITEM_ROWS] = 30, [ITEM_CHANGED] = 5, [ITEM_INFEASIBLE] = 3, [ITEM_ENV_S] = 1}};
    const double of_episode[2][4] = {{1, 4, 2, 7}, {3, 6, 0, NAN}};
    dt_rollout_report all = {.struct_size = sizeof(all)};
    env.layout.spec.n_costs = env.layout.spec.n_metrics = 1;
    r.env = &env;
    memcpy(job[0] + ITEM_EPISODE, of_episode[0], sizeof(of_episode[0]));
    memcpy(job[1] + ITEM_EPISODE, of_episode[1], sizeof(of_episode[1]));
    summarise_seed(&e, job[0], &all);
    assert_true(all.env_steps == 10 && all.agent_steps == 40 && all.episodes == 2);
    assert_float_equal(all.interventions, 0.2, 0); /* of the actions, not of the steps */
    assert_float_equal(all.infeasible, 0.1, 0);
    assert_float_equal(all.env_s, 1.5, 0);
    assert_true(isnan(all.explained_variance));
    assert_float_equal(all.episode_return, 2, 0);
    assert_float_equal(all.episode_return_std, sqrt(2), 1e-12);
    assert_float_equal(all.episode_length, 5, 0);
    assert_float_equal(all.episode_cost[0], 1, 0);
    assert_float_equal(all.episode_cost_std[0], sqrt(2), 1e-12);
    assert_float_equal(all.metric[0], 7, 0); /* the second episode's is not known */
    assert_true(isnan(all.metric_std[0]));
    job[0][ITEM_ROWS] = job[1][ITEM_ROWS] = 0;
    summarise_seed(&e, job[0], &all);
    assert_true(isnan(all.interventions) && isnan(all.infeasible));
}

/* Two episodes of a seed, two places; then two seeds. */
static void test_returns_of_places(void **state)
{
    const evaluation e = {.episodes = 2, .items = ITEM_EPISODE + 3, .places = 2};
    const double job[2][ITEM_EPISODE + 3] = {{[ITEM_EPISODE + 1] = 1, 10}, {[ITEM_EPISODE + 1] = 3, 20}};
    double of_place[4] = {0, 0, 6, 25};
    summarise_places(&e, job[0], of_place);
    said[0] = '\0';
    dt_evaluation_report_places(NULL, &metrics, of_place, 2, 2);
    assert_string_equal(said, "place_returns/0/mean 4\nplace_returns/0/std 2.82843\nplace_returns/0/values 2 6\n"
                              "place_returns/1/mean 20\nplace_returns/1/std 7.07107\nplace_returns/1/values 15 25\n");
    said[0] = '\0';
    const double unknown[4] = {4, NAN, 6, NAN}; /* the second place never acted */
    dt_evaluation_report_places(NULL, &metrics, unknown, 2, 2);
    assert_string_equal(said, "place_returns/0/mean 5\nplace_returns/0/std 1.41421\nplace_returns/0/values 4 6\n");
    dt_evaluation_report_places(NULL, &metrics, of_place, 2, 0);
    assert_null(strstr(said, "place_returns/2"));
}

static void test_one_seed_has_no_deviation(void **state)
{
    const dt_env_spec spec = {0};
    const uint64_t seed = 9;
    const dt_rollout_report r = {.episode_return = -3, .episode_length = 2};
    said[0] = '\0';
    dt_evaluation_report_results(NULL, &metrics, &spec, &seed, &r, 1);
    assert_string_equal(said, "seeds 9\nreturn/mean -3\nreturn/std nan\nreturn/values -3\n"
                              "length/mean 2\nlength/std nan\nlength/values 2\n"
                              "shield/interventions nan\nshield/infeasible_rate nan\n"); /* of no step of an agent */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_over_seeds),
        cmocka_unit_test(test_numbers_of_a_seed),
        cmocka_unit_test(test_returns_of_places),
        cmocka_unit_test(test_one_seed_has_no_deviation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/rl/evaluate/results.c: names, means and deviations over seeds.
 */
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
    (void)h;
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
    (void)state;
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

static void test_one_seed_has_no_deviation(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_one_seed_has_no_deviation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

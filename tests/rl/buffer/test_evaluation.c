/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluations through the service: what their episodes are, and what is reported of them.
 */
#include <config.h>

#include "worlds.h"

#include "base/log.h"
#include "base/mem.h"
#include "dtrain/svc/metrics.h"
#include "rl/rollout/rollout.h"
#include "rl/experience/service.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_evaluate(void **state)
{
    world w;
    float after[2][2048];
    dt_rollout_report r[3], alone;
    const uint64_t seed[] = {4, 11, 107};
    for (int k = 0; k < 2; k++) {
        world_begin_env(&w, "counter", "tiny.steps=10");
        assert_done(world_iterate(&w));
        if (k == 1) {
            for (int i = 0; i < 3; i++) {
                r[i].struct_size = alone.struct_size = sizeof(r[i]);
            }
            assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 3, 5, 0, r));
            assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed + 1, 1, 5, 0, &alone));
            for (int i = 0; i < 3; i++) {
                assert_int_equal(r[i].episodes, 5);
                assert_true(r[i].episode_length >= 3 && r[i].episode_length <= 7);
                assert_true(r[i].env_steps == (uint64_t)(5 * r[i].episode_length + 0.5));
                assert_true(r[i].episode_return_std > 0);
            }
            /* a seed's result does not depend on what else is evaluated */
            assert_true(alone.episode_return == r[1].episode_return && alone.metric[0] == r[1].metric[0]);
            /* the first episode of a seed has that seed, and the most likely action leaves nothing to chance */
            assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 3, 1, 1, r));
            assert_true(r[0].metric[0] == 40 && r[1].metric[0] == 110 && r[2].metric[0] == 70);
            assert_true(r[0].episode_length == 7 && r[1].episode_length == 4 && r[2].episode_length == 5);
        }
        assert_done(world_iterate(&w));
        assert_true(w.stage->params.total <= 2048);
        memcpy(after[k], dt_trainer_params(w.stage->trainer), (size_t)w.stage->params.total * sizeof(float));
        if (k == 1) { /* looking changes nothing */
            assert_memory_equal(after[0], after[1], (size_t)w.stage->params.total * sizeof(float));
        }
        world_close(&w);
    }
}

/* The k-th episode of a seed is the same however many are asked for, so that differences of sums are its numbers. */
static void test_episodes_of_a_seed(void **state)
{
    enum { MOST = 6 };
    static const uint64_t seed[] = {23, 8};
    double number[4][MOST], sum[4] = {0}, steps = 0;
    world w;
    world_begin_env(&w, "counter", "tiny.steps=10");
    assert_done(world_iterate(&w));
    for (uint32_t n = 1; n <= MOST; n++) {
        dt_rollout_report r[2] = {{.struct_size = sizeof(r[0])}, {.struct_size = sizeof(r[0])}};
        assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 2, n, 0, r));
        const double mean[4] = {r[0].episode_return, r[0].episode_length, r[0].episode_cost[0], r[0].metric[0]};
        double unused, std[4];
        for (int k = 0; k < 4; k++) {
            number[k][n - 1] = n * mean[k] - sum[k];
            sum[k] += number[k][n - 1];
            mean_and_deviation(number[k], (int)n, &unused, &std[k]);
        }
        steps += number[1][n - 1];
        assert_close(number[0][n - 1] - number[2][n - 1], number[1][n - 1]); /* reward 1 + action, cost the action */
        assert_close(number[1][n - 1], round(number[1][n - 1]));
        assert_close(number[1][n - 1], 3 + fmod(round(number[3][n - 1] / 10), 5)); /* metric 10 (seed % 100) */
        assert_int_equal(r[0].episodes, n);
        assert_close((double)r[0].env_steps, steps);
        assert_close((double)r[0].agent_steps, steps);
        assert_int_equal(n > 1, !isnan(r[0].episode_return_std));
        if (n > 1) {
            assert_close(r[0].episode_return_std, std[0]);
            assert_close(r[0].episode_cost_std[0], std[2]);
            assert_close(r[0].metric_std[0], std[3]);
        }
        assert_true(r[0].interventions == 0 && r[0].infeasible == 0 && isnan(r[0].explained_variance));
    }
    assert_true(number[3][0] == 230 && number[3][1] != 230);
    world_close(&w);
}

/* Where the shield permits nothing that the environment does, every action is reported as infeasible. */
static void test_infeasible(void **state)
{
    static const char *const from[] = {"tiny.shield_from=-0.25", "tiny.shield_from=1.5", "tiny.shield_from=-10"};
    for (int k = 0; k < 3; k++) { /* -10: to -9.6; what is executed is then a bound of the environment */
        const char *const settings[] = {"env.id=torque", "tiny.steps=12", "tiny.shield=true", from[k], NULL};
        const uint64_t seed = 5;
        dt_rollout_report r = {.struct_size = sizeof(r)};
        world w;
        world_begin(&w, settings);
        assert_done(world_iterate(&w));
        assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 4, 0, &r));
        assert_true(w.phase->report.infeasible == (k > 0 ? 1 : 0) && r.infeasible == (k > 0 ? 1 : 0));
        assert_true(k > 0 || (r.interventions > 0.1 && r.interventions <= 1));
        assert_close(r.episode_length, 6);
        if (k > 0) {
            assert_close(r.episode_return, k == 1 ? 300 : -300);
        }
        world_close(&w);
    }
}

/* A metric that some episodes do not know has the mean of the others; where none knows it, it has none. */
static void test_unknown_metric(void **state)
{
    const uint64_t seed = 4;
    dt_rollout_report r = {.struct_size = sizeof(r)};
    world w;
    world_begin_env(&w, "liar", "liar.lie=unsaid"); /* of odd seeds */
    assert_done(world_iterate(&w));
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 8, 1, &r));
    assert_true(r.metric[0] >= 0 && r.metric[0] <= 980 && r.metric_std[0] >= 0);
    assert_true(isfinite(w.phase->report.metric[0]));
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 1, 1, &r)); /* of one episode */
    assert_true(isfinite(r.episode_return) && isnan(r.episode_return_std));
    world_close(&w);
    world_begin_env(&w, "liar", "liar.lie=undying");
    assert_done(world_iterate(&w));
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 2, 1, &r));
    assert_true(isnan(r.metric[0]) && isnan(r.metric_std[0]));
    world_close(&w);
}

static void count_warning(void *user, int level, const char *line)
{
    int *n = user;
    n[strstr(line, "charts/unplayed_episodes") == NULL] +=
        level == DT_LOG_WARN && strstr(line, "unplayed_episodes") != NULL;
}

/* Of an episode in which no agent acted neither return nor costs are known, in evaluations as in rounds. */
static void test_episodes_without_agents(void **state)
{
    const uint64_t seed[] = {4, 5}; /* even and odd */
    dt_rollout_report r[2] = {{.struct_size = sizeof(*r)}, {.struct_size = sizeof(*r)}};
    int warned[2] = {0}; /* of rounds, of evaluations */
    world w;
    dt_log_sink_set(count_warning, warned);
    world_begin_env(&w, "liar", "liar.lie=deserted");
    assert_done(world_iterate(&w));
    assert_true(w.phase->report.episodes > 0 && w.phase->report.episode_return >= 3);
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 2, 1, 1, r));
    assert_true(r[0].episode_return >= 7 && isfinite(r[0].episode_cost[0]));
    assert_true(isnan(r[1].episode_return) && isnan(r[1].episode_cost[0]));
    assert_true(r[1].episode_length == 3 && r[1].metric[0] == 50); /* the environment's own numbers are known */
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 1, 16, 1, r));
    assert_true(r[0].episode_return >= 3 && r[0].agent_steps < 16 * 3 + 16 * 4);
    assert_true(warned[0] == 1 && warned[1] == 1); /* once each */
    world_close(&w);
    dt_log_sink_set(NULL, NULL);
    world_begin_env(&w, "liar", "liar.lie=nobody");
    assert_done(w.phase->rollout->collect(w.phase->r, w.phase->t, r));
    assert_true(r[0].episodes == 0 && isnan(r[0].episode_return) && isnan(r[0].episode_cost[0]));
    assert_true(r[0].episode_length >= 3 && isfinite(r[0].metric[0]));
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 2, 3, 1, r));
    assert_true(isnan(r[0].episode_return) && isnan(r[1].episode_cost[0]) && r[0].agent_steps == 0);
    world_close(&w);
}

static void test_many_pictures(void **state)
{
    enum { MANY = 200 };
    world w;
    world_begin_env(&w, "counter", NULL);
    const dt_host *h = &w.stage->host;
    const dt_metrics_api *m = h->service(h, DT_SVC_METRICS);
    for (int i = 0; i < MANY; i++) {
        const float value = (float)i;
        char key[32];
        snprintf(key, sizeof(key), "traffic/%d", i);
        m->picture(h, key, &value, 0, 1);
    }
    assert_int_equal(w.stage->results.n_pictures, MANY);
    for (int i = 0; i < MANY; i++) {
        char key[32];
        snprintf(key, sizeof(key), "traffic/%d", i);
        assert_string_equal(w.stage->results.picture[i].key, key);
        assert_true(w.stage->results.picture[i].n == 1 && w.stage->results.picture[i].value[0] == i);
    }
    world_close(&w);
}

/* In training a reset is given how many episodes the instance had; no episode of an evaluation depends on that. */
static void test_number_of_episode(void **state)
{
    const uint64_t seed = 4;
    dt_rollout_report r = {.struct_size = sizeof(r)};
    world w;
    world_begin_env(&w, "liar", "liar.lie=episode");
    assert_done(world_iterate(&w));
    assert_done(world_iterate(&w));
    assert_true(w.phase->report.metric[0] > 0);
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 20, 1, &r));
    assert_true(r.metric[0] == 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_metric),          cmocka_unit_test(test_number_of_episode),
        cmocka_unit_test(test_many_pictures),           cmocka_unit_test(test_evaluate),
        cmocka_unit_test(test_episodes_of_a_seed),      cmocka_unit_test(test_infeasible),
        cmocka_unit_test(test_episodes_without_agents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

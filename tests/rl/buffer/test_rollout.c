/* SPDX-License-Identifier: Apache-2.0
 *
 * Rollouts through the service, as a phase sees them: what is collected is what happened, in tiny worlds whose every
 * number is known.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "dtrain/svc/metrics.h"
#include "rl/rollout/rollout.h"
#include "rl/experience/service.h"
#include "state/snapshot/snapshot.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- what is collected ------------------------------------------------------------------------------------------- */

/* Every observation follows from the one before and the action between them. */
static void test_counter(void **state)
{
    world w;
    world_begin_env(&w, "counter", "tiny.steps=20");
    assert_done(world_iterate(&w));
    const uint64_t M = 6;
    uint64_t rows = 0, ends = 0;
    double returns = 0;
    assert_int_equal(world_source(&w)->count, 20 * M);
    for (uint64_t i = 0; i < M; i++) {
        float step = 0, seed = -1, last = -1, total = 0;
        for (uint64_t t = 0; t < 20; t++) {
            sample s;
            const uint64_t index = t * M + i;
            read_samples(&w, &index, 1, &s);
            if (s.size[0] == 0) { /* a reset is an empty sample */
                assert_true(step == 3 + fmodf(seed, 5));
                returns += (double)total;
                ends++;
                step = total = 0;
                seed = last = -1;
                drop_sample(&w, &s);
                continue;
            }
            rows++;
            assert_true(f32(&w, &s, "state", 0) == step);
            seed = seed < 0 ? f32(&w, &s, "state", 1) : seed;
            assert_true(f32(&w, &s, "state", 1) == seed);
            assert_true(f32(&w, &s, "state", 2) == last);
            assert_true(f32(&w, &s, "mask", 1) == (step == 1 ? 0.0f : 1.0f));
            last = (float)i32(&w, &s, "action_i", 0);
            assert_true(last >= 0 && last <= 2 && !(step == 1 && last == 1));
            assert_true(f32(&w, &s, "log_prob", 0) < 0);
            const float target = f32(&w, &s, "advantage", 0) + f32(&w, &s, "value", 0);
            assert_true(fabsf(f32(&w, &s, "target", 0) - target) < 1e-5f);
            total += 1 + last;
            step++;
            drop_sample(&w, &s);
        }
    }
    const dt_rollout_report *r = &w.phase->report;
    assert_int_equal(r->agent_steps, rows);
    assert_int_equal(r->env_steps, rows);
    assert_true(ends > 10);
    assert_true(r->episodes >= ends && r->episodes <= ends + M);
    assert_true(r->episode_return >= r->episode_length && r->episode_return <= 3 * r->episode_length);
    assert_true(fabs(r->episode_cost[0] - (r->episode_return - r->episode_length)) < 1e-9); /* the actions alone */
    assert_true(r->metric[0] >= 0 && r->metric[0] <= 990);
    assert_true(returns > 0);
    world_close(&w);
}

/* What a round is reported to be, from its samples: an episode is over after 3 + seed % 5 steps. */
static void test_report(void **state)
{
    enum { STEPS = 40, M = 6, MOST = STEPS * M };
    static double number[4][MOST]; /* return, length, cost, metric of each episode that ended */
    world w;
    int n = 0;
    uint64_t rows = 0;
    world_begin_env(&w, "counter", "tiny.steps=40");
    for (int round = 0; round < 2; round++) {
        static double step[M], earned[M], paid[M], seed[M];
        n = 0;
        rows = 0;
        if (round == 0) {
            memset(step, 0, sizeof(step));
            memset(earned, 0, sizeof(earned));
            memset(paid, 0, sizeof(paid));
        }
        assert_done(world_iterate(&w));
        for (uint64_t k = 0; k < STEPS * M; k++) { /* step by step, instance by instance */
            const uint64_t i = k % M;
            sample s;
            read_samples(&w, &k, 1, &s);
            if (s.size[0] > 0) {
                const double action = i32(&w, &s, "action_i", 0);
                seed[i] = (double)f32(&w, &s, "state", 1);
                step[i]++;
                earned[i] += 1 + action;
                paid[i] += action;
                rows++;
                if (step[i] == 3 + fmod(seed[i], 5)) {
                    number[0][n] = earned[i];
                    number[1][n] = step[i];
                    number[2][n] = paid[i];
                    number[3][n++] = 10 * seed[i];
                    step[i] = earned[i] = paid[i] = 0;
                }
            }
            drop_sample(&w, &s);
        }
        const dt_rollout_report *r = &w.phase->report;
        double mean[4], std[4];
        for (int k = 0; k < 4; k++) {
            mean_and_deviation(number[k], n, &mean[k], &std[k]);
        }
        assert_true(n > 30 && std[0] > 0 && std[2] > 0 && std[3] > 0);
        assert_int_equal(r->episodes, n);
        assert_int_equal(r->agent_steps, rows);
        assert_int_equal(r->env_steps, rows);
        assert_close(r->episode_return, mean[0]);
        assert_close(r->episode_return_std, std[0]);
        assert_close(r->episode_length, mean[1]);
        assert_close(r->episode_cost[0], mean[2]);
        assert_close(r->episode_cost_std[0], std[2]);
        assert_close(r->metric[0], mean[3]);
        assert_close(r->metric_std[0], std[3]);
        assert_close(r->interventions, 0);
        assert_close(r->infeasible, 0);
    }
    world_close(&w);
}

/* Advantages by the textbook, from the fields: the chain stops at ends; behind what was truncated lies a value. */
static void test_ends_bootstrap(void **state)
{
    world w;
    world_begin_env(&w, "counter", "tiny.steps=20");
    assert_done(world_iterate(&w));
    const uint64_t M = 6;
    uint64_t n_terminated = 0, n_truncated = 0;
    for (uint64_t i = 0; i < M; i++) {
        for (uint64_t t = 0; t + 1 < 20; t++) {
            sample s, next;
            const uint64_t index = t * M + i, after = index + M;
            read_samples(&w, &index, 1, &s);
            read_samples(&w, &after, 1, &next);
            if (s.size[0] == 1 && next.size[0] == 0) { /* its last step: one reward, and maybe a value */
                const float reward = 1 + (float)i32(&w, &s, "action_i", 0);
                const float delta = f32(&w, &s, "advantage", 0) + f32(&w, &s, "value", 0) - reward;
                /* lengths 3, 5, 7 come from even seeds mod 10 = 0, 2, 4 or odd ones 5, 7, 9 */
                const int seed = (int)f32(&w, &s, "state", 1);
                if (seed % 2 == 0) {
                    assert_true(fabsf(delta) < 1e-5f);
                    n_terminated++;
                } else {
                    assert_true(fabsf(delta) > 1e-5f); /* 0.9 V(last observation) */
                    n_truncated++;
                }
            }
            drop_sample(&w, &s);
            drop_sample(&w, &next);
        }
    }
    assert_true(n_terminated > 3 && n_truncated > 3);
    world_close(&w);
}

/* What comes after a row is the row after, where there is one. */
static void test_transitions(void **state)
{
    enum { STEPS = 20, M = 6 };
    world w;
    const char *const settings[] = {"env.id=counter", "tiny.steps=20", "tiny.transitions=1", NULL};
    world_begin(&w, settings);
    uint64_t n_next = 0, n_never = 0, n_ahead = 0, n_open = 0;
    for (int round = 0; round < 3; round++) {
        assert_done(world_iterate(&w));
        for (uint64_t i = 0; i < M; i++) {
            for (uint64_t t = 0; t < STEPS; t++) {
                sample s, next;
                const uint64_t index = t * M + i, after = index + M;
                read_samples(&w, &index, 1, &s);
                if (s.size[0] == 0) {
                    drop_sample(&w, &s);
                    continue;
                }
                const float step = f32(&w, &s, "state", 0), seed = f32(&w, &s, "state", 1);
                const bool goes_on = step + 1 < 3 + fmodf(seed, 5);
                assert_true(f32(&w, &s, "next_present", 0) == (float)goes_on);
                for (int d = 0; d < 3; d++) {
                    const float follows[] = {step + 1, seed, (float)i32(&w, &s, "action_i", 0)};
                    assert_true(f32(&w, &s, "next_state", d) == (goes_on ? follows[d] : 0));
                }
                n_next += goes_on;
                /* the cost is the action; an odd seed's end is a truncation */
                const float ahead = f32(&w, &s, "cost_in", 0);
                float want = i32(&w, &s, "action_i", 0) > 0 ? 0 : t + 1 == STEPS ? -1 : NAN;
                if (isnan(want) && goes_on) {
                    read_samples(&w, &after, 1, &next);
                    const float later = f32(&w, &next, "cost_in", 0);
                    want = later < 0 ? later - 1 : later < DT_ROLLOUT_NEVER ? later + 1 : later;
                    drop_sample(&w, &next);
                } else if (!goes_on && want != 0) {
                    want = fmodf(seed, 2) == 0 ? DT_ROLLOUT_NEVER : -1;
                }
                assert_true(ahead == want);
                n_never += ahead == DT_ROLLOUT_NEVER;
                n_ahead += ahead > 0 && ahead < DT_ROLLOUT_NEVER;
                n_open += ahead < 0;
                drop_sample(&w, &s);
            }
        }
    }
    assert_true(n_next > 100 && n_never > 0 && n_ahead > 3 && n_open > 0);
    world_close(&w);
}

/* Several samples packed are the samples one after another: rows, ragged rows, indices counted over the slice. */
static void test_crowd_is_packed(void **state)
{
    world w;
    world_begin_env(&w, "crowd", "tiny.steps=25");
    assert_done(world_iterate(&w));
    enum { N = 40 };
    uint64_t index[N];
    sample all;
    int64_t row = 0, node = 0, edge = 0;
    for (uint64_t i = 0; i < N; i++) {
        index[i] = (i * 17) % world_source(&w)->count;
    }
    read_samples(&w, index, N, &all);
    for (int i = 0; i < N; i++) {
        sample s;
        read_samples(&w, &index[i], 1, &s);
        const int64_t A = s.size[0], n = s.size[1], e = s.size[2];
        for (int64_t a = 0; a < A; a++) {
            assert_true(f32(&w, &all, "own", 2 * (row + a)) == f32(&w, &s, "own", 2 * a));
            assert_true(f32(&w, &s, "own", 2 * a) >= 0); /* only who is there */
            for (int64_t t = 0; t < 3; t++) {            /* steps come first */
                const float want = f32(&w, &s, "own", 2 * a + 1) + 10 * (float)(t + 1);
                assert_true(f32(&w, &s, "own_steps", 2 * (t * A + a) + 1) == want);
                assert_true(f32(&w, &all, "own_steps", 2 * (t * all.size[0] + row + a) + 1) == want);
            }
            assert_int_equal(i32(&w, &all, "node", row + a), i32(&w, &s, "node", a) + node);
            assert_true(i32(&w, &s, "node", a) < n);
            assert_int_equal(i32(&w, &all, "action_i", 2 * (row + a) + 1), i32(&w, &s, "action_i", 2 * a + 1));
            assert_true(f32(&w, &all, "cost_target", 2 * (row + a) + 1) == f32(&w, &s, "cost_target", 2 * a + 1));
        }
        for (int64_t k = 0; k < n; k++) {
            assert_true(f32(&w, &s, "node_steps", n + k) == f32(&w, &s, "nodes", 2 * k + 1) + 2);
            assert_true(f32(&w, &all, "node_steps", all.size[1] + node + k) == f32(&w, &s, "nodes", 2 * k + 1) + 2);
            assert_true(f32(&w, &all, "nodes", 2 * (node + k) + 1) == f32(&w, &s, "nodes", 2 * k + 1));
            assert_int_equal(i32(&w, &all, "rowptr", node + k), i32(&w, &s, "rowptr", k) + edge);
            const int32_t driver = i32(&w, &s, "driver", k);
            assert_int_equal(i32(&w, &all, "driver", node + k), driver < 0 ? -1 : driver + row);
            assert_true(driver < A);
        }
        assert_int_equal(i32(&w, &s, "rowptr", n), e);
        for (int64_t k = 0; k < e; k++) {
            assert_int_equal(i32(&w, &all, "col", edge + k), i32(&w, &s, "col", k) + node);
        }
        row += A;
        node += n;
        edge += e;
        drop_sample(&w, &s);
    }
    assert_int_equal(all.size[0], row);
    assert_int_equal(i32(&w, &all, "rowptr", node), edge);
    assert_true(row > N / 2 && node > row);
    drop_sample(&w, &all);
    world_close(&w);
}

/* The same run twice is the same bits; learning has changed the parameters. */
static void test_runs_repeat(void **state)
{
    float *params[2];
    size_t bytes = 0;
    for (int k = 0; k < 2; k++) {
        world w;
        world_begin_env(&w, "crowd", "tiny.steps=12");
        for (int i = 0; i < 3; i++) {
            assert_done(world_iterate(&w));
        }
        bytes = (size_t)w.stage->params.total * sizeof(float);
        params[k] = malloc(bytes);
        memcpy(params[k], dt_trainer_params(w.stage->trainer), bytes);
        world_close(&w);
    }
    assert_memory_equal(params[0], params[1], bytes);
    free(params[0]);
    free(params[1]);
}

/* Bounds of the environment and of the shield hold for what is executed; what was drawn is kept. */
static void test_shield(void **state)
{
    world w;
    world_begin_env(&w, "torque", "tiny.steps=30");
    assert_done(world_iterate(&w));
    assert_true(w.phase->report.interventions == 0);
    assert_true(w.phase->report.episode_return <= 50 * 6);
    world_close(&w);
    const char *const settings[] = {"env.id=torque", "tiny.steps=30", "tiny.shield=true", NULL};
    world_begin(&w, settings);
    assert_done(world_iterate(&w));
    uint64_t beyond = 0;
    for (uint64_t i = 0; i < world_source(&w)->count; i++) {
        sample s;
        read_samples(&w, &i, 1, &s);
        const float a = s.size[0] > 0 ? f32(&w, &s, "action_f", 0) : 0;
        beyond += a < -0.25f || a > 0.125f;
        drop_sample(&w, &s);
    }
    const dt_rollout_report *r = &w.phase->report;
    assert_true(beyond > 20);
    assert_true(fabs(r->interventions - (double)beyond / (double)r->agent_steps) < 1e-9);
    assert_true(r->episode_return >= 50 * 6 * -0.25 && r->episode_return <= 50 * 6 * 0.125);
    assert_true(r->infeasible == 0);
    world_close(&w);
}

/* ---- normalisation ----------------------------------------------------------------------------------------------- */

/* Rows of two rounds of "torque" as they are kept: [round, step, instance]. */
typedef struct torque_row {
    bool acts;
    double raw, advantage, value, target; /* raw: the reward as the environment pays it */
} torque_row;
enum { TORQUE_STEPS = 35, TORQUE_INSTANCES = 6 };

static void read_torque(world *w, torque_row row[TORQUE_STEPS][TORQUE_INSTANCES])
{
    assert_int_equal(world_source(w)->count, TORQUE_STEPS * TORQUE_INSTANCES);
    for (uint64_t i = 0; i < TORQUE_STEPS * TORQUE_INSTANCES; i++) {
        sample s;
        torque_row *r = &row[i / TORQUE_INSTANCES][i % TORQUE_INSTANCES];
        read_samples(w, &i, 1, &s);
        *r = (torque_row){.acts = s.size[0] > 0};
        if (r->acts) {
            r->raw = 50 * fmin(fmax((double)f32(w, &s, "action_f", 0), -1), 1);
            r->advantage = (double)f32(w, &s, "advantage", 0);
            r->value = (double)f32(w, &s, "value", 0);
            r->target = (double)f32(w, &s, "target", 0);
        }
        drop_sample(w, &s);
    }
}

/* Standard deviation of the discounted returns of all steps of both rounds, from when an agent came. */
static double deviation_of_returns(torque_row row[2][TORQUE_STEPS][TORQUE_INSTANCES])
{
    double n = 0, sum = 0, squares = 0;
    for (int i = 0; i < TORQUE_INSTANCES; i++) {
        double ret = 0;
        for (int t = 0; t < 2 * TORQUE_STEPS; t++) {
            const torque_row *r = &row[t / TORQUE_STEPS][t % TORQUE_STEPS][i];
            ret = r->acts ? 0.9 * ret + r->raw : 0; /* an episode ends in a row without an action */
            n += r->acts;
            sum += r->acts ? ret : 0;
            squares += r->acts ? ret * ret : 0;
        }
    }
    return sqrt(squares / n - sum / n * (sum / n) + 1e-8);
}

/* Rewards that advantages were made of: r = A - gamma lambda A' + V - gamma V'; the next row is of the same agent. */
static void check_rewards(torque_row row[TORQUE_STEPS][TORQUE_INSTANCES], double deviation)
{
    int n = 0;
    for (int i = 0; i < TORQUE_INSTANCES; i++) {
        for (int t = 0; t + 1 < TORQUE_STEPS; t++) {
            const torque_row *r = &row[t][i], *next = &row[t + 1][i];
            if (r->acts && next->acts) {
                const double reward = r->advantage - 0.9 * 0.8 * next->advantage + r->value - 0.9 * next->value;
                assert_true(fabs(reward - r->raw / deviation) < 1e-4);
                n++;
            }
            assert_true(!r->acts || fabs(r->target - r->advantage - r->value) < 1e-5);
        }
    }
    assert_true(n > 100);
}

/* Both bounds of clip_reward, 5 here: a rare loss of 1000 is the lower one, and what is usual is far from them. */
static void test_reward_bounds(void **state)
{
    const char *const settings[] = {
        "env.id=liar", "liar.lie=debt", "tiny.steps=120", "tiny.normalise_reward=true", "tiny.transitions=2", NULL};
    world w;
    float least = 0, most = 0;
    world_begin(&w, settings);
    assert_done(world_iterate(&w));
    for (uint64_t i = 0; i < world_source(&w)->count; i++) {
        sample s;
        read_samples(&w, &i, 1, &s);
        if (s.size[0] > 0) {
            least = fminf(least, f32(&w, &s, "reward", 0));
            most = fmaxf(most, f32(&w, &s, "reward", 0));
        }
        drop_sample(&w, &s);
    }
    assert_true(least == -5);
    assert_true(most > 0 && most < 1);
    world_close(&w);
}

/* What the first round saw scales the second; a constant becomes 0; rewards lose their unit. */
static void test_normalised(void **state)
{
    const char *const settings[] = {"env.id=torque", "tiny.steps=35", "tiny.normalise_obs=true",
                                    "tiny.normalise_reward=true", NULL};
    static torque_row row[2][TORQUE_STEPS][TORQUE_INSTANCES];
    world w;
    world_begin(&w, settings);
    assert_done(world_iterate(&w));
    read_torque(&w, row[0]);
    assert_done(world_iterate(&w));
    read_torque(&w, row[1]);
    const double deviation = deviation_of_returns(row);
    assert_true(deviation > 10); /* the environment pays up to 50 a step */
    check_rewards(row[1], deviation);
    double n = 0, sum = 0, squares = 0;
    for (uint64_t i = 0; i < world_source(&w)->count; i++) {
        sample s;
        read_samples(&w, &i, 1, &s);
        if (s.size[0] > 0) {
            const double x = (double)f32(&w, &s, "state", 0);
            n++;
            sum += x;
            squares += x * x;
            assert_true(f32(&w, &s, "state", 2) == 0);
        }
        drop_sample(&w, &s);
    }
    assert_true(n > 100);
    assert_true(fabs(sum / n) < 0.1 && fabs(squares / n - 1) < 0.15);
    assert_true(fabs(w.phase->report.episode_return) > 5); /* reported as they are */
    world_close(&w);
}

/* The window holds what the place saw in the steps before, and nothing from before its agent came. */
static void test_history(void **state)
{
    const char *const settings[] = {"env.id=counter", "tiny.steps=6", "tiny.window=4", NULL};
    world w;
    world_begin(&w, settings);
    for (int k = 0; k < 3; k++) { /* windows reach back into the round before */
        assert_done(world_iterate(&w));
        for (uint64_t i = 0; i < world_source(&w)->count; i++) {
            sample s;
            read_samples(&w, &i, 1, &s);
            for (int64_t back = 0; back < 4 && s.size[0] > 0; back++) {
                const float step = f32(&w, &s, "state", 0);
                const bool is_there = (float)back <= step;
                const int64_t at = (3 - back) * 3;
                assert_true(f32(&w, &s, "present", 3 - back) == (float)is_there);
                assert_true(f32(&w, &s, "state_history", at) == (is_there ? step - (float)back : 0));
                assert_true(f32(&w, &s, "state_history", at + 1) == (is_there ? f32(&w, &s, "state", 1) : 0));
            }
            drop_sample(&w, &s);
        }
    }
    world_close(&w);
}

/* An episode that its environment does not end is cut at its longest length exactly, and who is both terminated and
 * truncated is terminated. */
static void test_ends(void **state)
{
    static const char *const lies[] = {"liar.lie=undying", "liar.lie=both"};
    for (int k = 0; k < 2; k++) {
        const char *const settings[] = {"env.id=liar", lies[k], "tiny.steps=20", "tiny.transitions=2", NULL};
        world w;
        uint64_t n_terminated = 0, n_truncated = 0;
        world_begin(&w, settings);
        assert_done(world_iterate(&w));
        for (uint64_t i = 0; i + 6 < world_source(&w)->count; i++) { /* not the last step of the round */
            sample s;
            read_samples(&w, &i, 1, &s);
            if (s.size[0] > 0) {
                n_terminated += f32(&w, &s, "terminated", 0) != 0;
                n_truncated += f32(&w, &s, "truncated", 0) != 0;
            }
            drop_sample(&w, &s);
        }
        assert_true(k == 0 ? w.phase->report.episode_length == 7 : w.phase->report.episode_length < 7);
        assert_true(k == 0 ? n_terminated == 0 && n_truncated == 12 : n_terminated > 6 && n_truncated == 0);
        world_close(&w);
    }
}

/* What opponents see, do and earn is nowhere: where they act, all is as where nobody is in their places. */
static void test_opponents_move_nothing(void **state)
{
    static const char *const more[][5] = {
        {"tiny.normalise_obs=true", "tiny.normalise_reward=true", "tiny.window=3", "tiny.transitions=2", NULL},
        {"tiny.normalise_advantage=true", "tiny.annotation=A 2", "tiny.transitions=2", "tiny.window=2", NULL},
        {"tiny.replay=100", "tiny.transitions=2", "tiny.alpha=0.6", "tiny.normalise_obs=true", NULL}};
    static const char *const teams[] = {"relay.teams=two", "relay.teams=alone", "relay.teams=one"};
    static float params[3][2048];
    dt_rollout_report report[3], evaluated[3];
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        for (int k = 0; k < 3; k++) {
            const char *settings[9] = {"env.id=relay", "tiny.steps=9", "opponents.learner=1", teams[k]};
            const uint64_t seed = 5;
            world w;
            memcpy(settings + 4, more[i], sizeof(more[i]));
            memset(params[k], 0, sizeof(params[k]));
            world_begin(&w, settings);
            for (int round = 0; round < 4; round++) {
                assert_done(world_iterate(&w));
            }
            evaluated[k] = (dt_rollout_report){.struct_size = sizeof(evaluated[k])};
            assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, &seed, 1, 8, 0, &evaluated[k]));
            evaluated[k].env_s = evaluated[k].total_s = 0;
            world_keep(&w, params[k], &report[k]);
            world_close(&w);
        }
        assert_memory_equal(params[0], params[1], sizeof(params[0]));
        assert_memory_equal(&report[0], &report[1], sizeof(report[0]));
        assert_memory_equal(&evaluated[0], &evaluated[1], sizeof(evaluated[0]));
        assert_memory_not_equal(params[0], params[2], sizeof(params[0])); /* one team of all learns from all */
        assert_true(report[0].agent_steps < report[2].agent_steps);
    }
}

static void test_no_such_opponents(void **state)
{
    static const char *const settings[] = {"env.id=relay", "relay.teams=two", "opponents.target=slow", NULL};
    static const char *const team[] = {"env.id=relay", "relay.teams=two", "opponents.learner=2", NULL};
    world w;
    world_begin(&w, settings);
    assert_int_equal(world_iterate(&w), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "no such target network"));
    world_close(&w);
    world_open(&w, team, NULL);
    assert_int_equal(world_create(&w), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "no such team"));
    world_close(&w);
}

/* A row of an output does not depend on how many rows run next to it: what makes all of the above true. */
static void test_rows_are_alone(void **state)
{
    static const char *const one[] = {"env.id=torque", "tiny.steps=40", "env.instances=1", "data.batch=8", NULL};
    static const char *const many[] = {"env.id=torque", "tiny.steps=40", "env.instances=33", "data.batch=8", NULL};
    world a, b;
    world_open(&a, one, NULL);
    world_open(&b, many, NULL);
    world_start(&a);
    world_start(&b);
    dt_rollout_report r = {.struct_size = sizeof(r)};
    assert_done(a.phase->rollout->collect(a.phase->r, a.phase->t, &r));
    assert_done(b.phase->rollout->collect(b.phase->r, b.phase->t, &r));
    for (uint64_t t = 0; t < 40; t++) {
        sample x, y;
        const uint64_t index = t * 33;
        read_samples(&a, &t, 1, &x);
        read_samples(&b, &index, 1, &y);
        assert_int_equal(x.size[0], y.size[0]);
        for (uint32_t f = 0; f < world_source(&a)->n_fields && x.size[0] > 0; f++) {
            if (strcmp(world_source(&a)->field[f].name, "row_key") != 0) {
                assert_memory_equal(x.at[f], y.at[f], dt_samples_field_bytes(world_source(&a), f, x.size));
            }
        }
        drop_sample(&a, &x);
        drop_sample(&b, &y);
    }
    world_close(&a);
    world_close(&b);
}

/* After the first round nothing is allocated but what an episode's actions need, in ever fewer steps. */
static void test_no_allocation(void **state)
{
    world w;
    world_begin_env(&w, "crowd", "env.workers=1");
    dt_rollout_report r = {.struct_size = sizeof(r)};
    for (int k = 0; k < 4; k++) {
        assert_done(w.phase->rollout->collect(w.phase->r, w.phase->t, &r));
    }
    const uint64_t before = dt_alloc_calls();
    assert_done(w.phase->rollout->collect(w.phase->r, w.phase->t, &r));
    assert_int_equal(dt_alloc_calls(), before);
    world_close(&w);
}

/* A round ahead is acted by the parameters of when it began, and learnt from one round later. */
static void test_ahead(void **state)
{
    const char *const in_turn[] = {"env.id=counter", "tiny.steps=20", NULL};
    const char *const ahead[] = {"env.id=counter", "tiny.steps=20", "tiny.ahead=true", NULL};
    static float before[2][2048], after[2][2048];
    dt_rollout_report first[2], second[2];
    for (int k = 0; k < 2; k++) {
        world w;
        world_begin(&w, k == 0 ? in_turn : ahead);
        assert_int_equal(w.phase->rollout->collect_ahead(w.phase->r, w.phase->t), DT_EPLUGIN);
        assert_non_null(strstr(dt_error_text(), k == 0 ? "without has_ahead" : "before the first collect"));
        assert_done(world_iterate(&w));
        world_keep(&w, before[k], &first[k]);
        if (k == 1) {
            assert_int_equal(w.phase->rollout->collect_ahead(w.phase->r, w.phase->t), DT_EPLUGIN);
            assert_non_null(strstr(dt_error_text(), "while one is in progress; collect it first"));
        }
        assert_done(world_iterate(&w));
        world_keep(&w, after[k], &second[k]);
        world_close(&w); /* with a round under way */
    }
    assert_memory_equal(before[0], before[1],
                        sizeof(before[0])); /* the first round is nobody's but the first policy's */
    assert_memory_equal(&first[0], &first[1], sizeof(first[0]));
    assert_true(memcmp(after[0], after[1], sizeof(after[0])) != 0);
}

/* What acting computed is there to learn from, and only where learning changes nothing of it; with it or without, the
 * same is learnt. */
static void test_kept(void **state)
{
    enum { MOST = 4096 };
    static float params[2][MOST];
    dt_rollout_report report[2];
    world w;
    world_begin_env(&w, "counter", "tiny.steps=20");
    for (int i = 0; i < 3; i++) {
        assert_done(world_iterate(&w));
    }
    world_keep(&w, params[0], &report[0]);
    world_close(&w);
    const char *const settings[] = {"env.id=counter", "tiny.steps=20", "tiny.kept=A 3", NULL};
    world_begin(&w, settings);
    for (int i = 0; i < 3; i++) {
        assert_done(world_iterate(&w));
    }
    world_keep(&w, params[1], &report[1]);
    assert_memory_equal(params[0], params[1], sizeof(params[0]));
    uint64_t rows = 0;
    for (uint64_t index = 0; index < world_source(&w)->count; index++) {
        sample s;
        read_samples(&w, &index, 1, &s);
        for (int64_t i = 0; i < 3 * s.size[0]; i++) {
            assert_true(f32(&w, &s, "twice", i) == 2 * f32(&w, &s, "state", i));
        }
        for (int64_t i = 0; i < s.size[0]; i++, rows++) {
            assert_true(f32(&w, &s, "learnt", i) == 0);
        }
        drop_sample(&w, &s);
    }
    assert_true(rows > 60);
    world_close(&w);
}

/* Instance i is of entry i modulo their number: every other one has episodes of 7 steps, whatever the seed. */
static void test_mix(void **state)
{
    const char *const settings[] = {"env.id=counter", "env.mix=counter,liar:lie=ends", "tiny.steps=20", NULL};
    const uint64_t M = 6;
    uint32_t others = 0;
    world w;
    world_begin(&w, settings);
    assert_done(world_iterate(&w));
    for (uint64_t i = 0; i < M; i++) {
        uint32_t length = 0, seed = 0;
        for (uint64_t t = 0; t < 20; t++) {
            sample s;
            const uint64_t index = t * M + i;
            read_samples(&w, &index, 1, &s);
            if (s.size[0] == 0) {
                assert_int_equal(length, i % 2 == 1 ? 7 : 3 + seed % 5);
                others += i % 2 == 1 && 3 + seed % 5 != 7;
                length = 0;
            } else {
                seed = (uint32_t)f32(&w, &s, "state", 1);
                length++;
            }
            drop_sample(&w, &s);
        }
    }
    assert_true(others > 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_ends_bootstrap),
        cmocka_unit_test(test_transitions),
        cmocka_unit_test(test_crowd_is_packed),
        cmocka_unit_test(test_runs_repeat),
        cmocka_unit_test(test_shield),
        cmocka_unit_test(test_rows_are_alone),
        cmocka_unit_test(test_opponents_move_nothing),
        cmocka_unit_test(test_no_such_opponents),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_reward_bounds),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

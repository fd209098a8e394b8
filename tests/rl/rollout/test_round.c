/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a rollout by themselves, on a round written by hand: instances over ranks, counts and means, returns and
 * advantages, statistics of observations, logs of actions. Two instances of two places, four steps:
 *
 *   step            0               1               2               3
 *   instance 0  0: r 1, goes on  r 2, terminated  (reset)         r 4, goes on
 *               1: r 10, goes on r 20, truncated  (reset)         nobody
 *   instance 1  0: r 5, goes on  r 6, goes on     r 7, truncated  (reset)
 *               1: nobody
 */
#include <config.h>

#include "base/err.h"
#include "comm/comm.h"
#include "rl/rollout/exchange.h"
#include "rl/rollout/obs_stats.h"
#include "rl/rollout/round.h"

#include "../../../core/rl/rollout/episode_log.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 4, M = 2, A = 2, PLACES = M * A, ROWS = STEPS * PLACES, SLOTS = STEPS * M };
enum { GOES_ON = DT_STEP_ACTED, TERMINATED = GOES_ON | DT_STEP_TERMINATED, TRUNCATED = GOES_ON | DT_STEP_TRUNCATED };

static const dt_port state_port = {"state", "A 2", DT_F32, 0};
static const int32_t choices[] = {3};
static const float low[] = {-1}, high[] = {1};
static const char *const costs[] = {"hits"}, *const metrics[] = {"score"};
static const uint8_t flag[ROWS] = {GOES_ON,    GOES_ON,   GOES_ON,   0, /* a row of numbers a step */
                                   TERMINATED, TRUNCATED, GOES_ON,   0, /* */
                                   0,          0,         TRUNCATED, 0, GOES_ON, 0, 0, 0};
static const float reward[ROWS] = {1, 10, 5, 0, 2, 20, 6, 0, 0, 0, 7, 0, 4, 0, 0, 0};

typedef struct round {
    dt_layout layout;
    dt_buffer b;
    size_t first; /* row of step 0 */
} round_of;

static void assert_near(double is, double want)
{
    if (!(fabs(is - want) <= 1e-6 * (1 + fabs(want))) && !(isnan(is) && isnan(want))) {
        fail_msg("%.9g is not %.9g", is, want);
    }
}

static void open_round(round_of *r)
{
    const dt_env_spec spec = {.struct_size = sizeof(spec),
                              .n_agents = A,
                              .obs = &state_port,
                              .n_obs = 1,
                              .choices = choices,
                              .n_heads = 1,
                              .low = low,
                              .high = high,
                              .n_continuous = 1,
                              .costs = costs,
                              .n_costs = 1,
                              .metrics = metrics,
                              .n_metrics = 1,
                              .max_steps = 10};
    memset(r, 0, sizeof(*r));
    assert_int_equal(dt_layout_init(&r->layout, "hand", &spec), DT_OK);
    const dt_buffer_desc d = {.layout = &r->layout, .steps = STEPS, .instances = M, .window = 2, .gamma = 0.5};
    assert_int_equal(dt_buffer_init(&r->b, &d), DT_OK);
    r->first = dt_buffer_slot(&r->b, 0, 0) * A;
    for (size_t i = 0; i < ROWS; i++) {
        r->b.flag[r->first + i] = flag[i];
        r->b.row[r->first + i] = flag[i] != 0 ? DT_ROW_ACTS : 0;
        r->b.reward[r->first + i] = reward[i];
        r->b.n_acts[(r->first + i) / A] += flag[i] != 0;
    }
    r->b.is_filled = true;
}

static void end_episode(round_of *r, uint32_t t, uint32_t i, uint8_t done, const double *numbers)
{
    const size_t slot = dt_buffer_slot(&r->b, t, i);
    r->b.done[slot] = done;
    memcpy(r->b.episode + slot * r->b.episode_items, numbers, r->b.episode_items * sizeof(*numbers));
}

static void close_round(round_of *r)
{
    dt_buffer_fini(&r->b);
    dt_layout_fini(&r->layout);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static void test_partition(void **state)
{
    dt_comm *comm = NULL;
    dt_partition p;
    assert_int_equal(dt_comm_create_null(&comm), DT_OK);
    assert_int_equal(dt_partition_init(&p, comm, 7), DT_OK);
    assert_true(p.first == 0 && p.last == 7 && dt_partition_count_own(&p) == 7 && dt_partition_largest(&p) == 7);
    for (uint64_t i = 0; i < 7; i++) {
        assert_int_equal(dt_partition_owner(&p, i), 0);
    }
    assert_int_equal(dt_partition_init(&p, comm, 0), DT_ECONFIG);
    dt_comm_destroy(comm);
}

/* ---- counts and means -------------------------------------------------------------------------------------------- */

static void test_counts(void **state)
{
    static const double ended[] = {3, 2, 1, 0.5}, unplayed[] = {100, 100, 100, 100};
    uint64_t sample[SLOTS];
    static const uint64_t acted[] = {0, 1, 2, 3, 5, 6};
    round_of r;
    open_round(&r);
    end_episode(&r, 1, 0, DT_DONE_ENDED, ended);
    end_episode(&r, 2, 1, DT_DONE_ENDED | DT_DONE_CUT, ended);
    end_episode(&r, 3, 0, DT_DONE_ENDED | DT_DONE_UNPLAYED, unplayed);
    r.b.done[0] = DT_DONE_ENDED; /* of the history: it is no part of the round */
    assert_int_equal(dt_round_count_episodes(&r.b), 2);
    assert_int_equal(dt_round_count_ends(&r.b, DT_DONE_ENDED), 3);
    assert_int_equal(dt_round_count_ends(&r.b, DT_DONE_CUT), 1);
    assert_int_equal(dt_round_count_ends(&r.b, DT_DONE_UNPLAYED), 1);
    assert_int_equal(dt_round_count_rows(&r.b), 8);
    assert_int_equal(dt_round_count_env_steps(&r.b), 6);
    assert_int_equal(dt_round_list_acted(&r.b, sample), 6);
    assert_memory_equal(sample, acted, sizeof(acted));
    dt_round_mark_unfinished(&r.b);
    for (size_t i = 0; i < r.b.n_places; i++) {
        const bool is_last = i >= r.first + ROWS - PLACES && i < r.first + ROWS;
        assert_int_equal((r.b.report[i] & DT_REPORT_OPEN) != 0, is_last);
    }
    close_round(&r);
}

static void test_means(void **state)
{
    const double x[] = {1, 90, 3, 91, NAN, 92, 8, 93};
    const uint8_t done[] = {DT_DONE_ENDED, DT_DONE_ENDED | DT_DONE_CUT, DT_DONE_ENDED, 0};
    const uint8_t unplayed[] = {DT_DONE_ENDED, DT_DONE_ENDED | DT_DONE_UNPLAYED, 0, 0};
    double std = 0;
    assert_near(dt_episode_mean(x, 2, 4, NULL, 0, &std), 4);
    assert_near(std, sqrt((9 + 1 + 16) / 2.0));
    assert_near(dt_episode_mean(x, 2, 4, done, DT_DONE_UNPLAYED, &std), 2);
    assert_near(std, sqrt(2));
    assert_near(dt_episode_mean(x, 2, 4, unplayed, DT_DONE_UNPLAYED, &std), 1); /* of one there is no deviation */
    assert_near(dt_episode_mean(x, 2, 4, unplayed, 0, NULL), 2);
    assert_true(isnan(std));
    assert_true(isnan(dt_episode_mean(x + 4, 2, 1, NULL, 0, &std)) && isnan(std));
    assert_near(dt_episode_mean(x, 2, 4, done, DT_DONE_UNPLAYED, NULL), 2);
}

static void test_parts_of_a_mix_and_places(void **state)
{
    static const uint8_t is_opponent[A] = {0, 1};
    static const double first[] = {3, 2, 1, 0.5}, later[] = {6, 4, 0, 0}, second[] = {5, 4, 3, NAN};
    round_of r;
    open_round(&r);
    end_episode(&r, 1, 0, DT_DONE_ENDED, first);
    end_episode(&r, 3, 0, DT_DONE_ENDED, later);
    end_episode(&r, 2, 1, DT_DONE_ENDED | DT_DONE_UNPLAYED, second);
    const dt_round_part one = dt_round_summarise_part(&r.b, 0, 2), other = dt_round_summarise_part(&r.b, 1, 2);
    assert_int_equal(one.episodes, 2);
    assert_near(one.episode_return, 4.5);
    assert_near(one.episode_length, 3);
    assert_int_equal(other.episodes, 0); /* no learning agent was in it */
    assert_true(isnan(other.episode_return) && other.episode_length == 4);
    r.b.d.is_opponent = is_opponent;
    assert_true(isnan(dt_round_summarise_part(&r.b, 1, 2).episode_length));
    assert_near(dt_round_mean_reward(&r.b, 0), (1 + 5 + 2 + 6 + 7 + 4) / 6.0);
    assert_near(dt_round_mean_reward(&r.b, 1), (10 + 20) / 2.0);
    close_round(&r);
}

static void test_summary(void **state)
{
    static const double first[] = {3, 2, 1, 0.5}, second[] = {5, 4, 3, NAN}, empty[] = {0, 6, 0, 1.5};
    static const uint8_t is_opponent[A] = {0, 1};
    dt_rollout_report out = {.struct_size = sizeof(out)};
    dt_returns x = {.deviation = {0.25, 0.75}};
    round_of r;
    open_round(&r);
    end_episode(&r, 1, 0, DT_DONE_ENDED, first);
    end_episode(&r, 2, 1, DT_DONE_ENDED, second);
    r.b.report[r.first] = DT_REPORT_CHANGED;
    r.b.report[r.first + 1] = DT_REPORT_CHANGED | DT_REPORT_INFEASIBLE;
    r.b.report[r.first + 3] = DT_REPORT_CHANGED | DT_REPORT_INFEASIBLE; /* nobody acted */
    dt_round_summarise(&r.b, &x, &out);
    assert_true(out.env_steps == 6 && out.agent_steps == 8 && out.episodes == 2 && out.n_costs == 1);
    assert_int_equal(out.n_metrics, 1);
    assert_near(out.interventions, 2.0 / 8);
    assert_near(out.infeasible, 1.0 / 8);
    assert_near(out.episode_return, 4);
    assert_near(out.episode_return_std, sqrt(2));
    assert_near(out.episode_length, 3);
    assert_near(out.episode_cost[0], 2);
    assert_near(out.episode_cost_std[0], sqrt(2));
    assert_near(out.metric[0], 0.5);
    assert_true(isnan(out.metric_std[0]));
    assert_near(out.advantage_std, 0.25);
    assert_near(out.cost_advantage_std[0], 0.75);
    end_episode(&r, 3, 0, DT_DONE_ENDED | DT_DONE_UNPLAYED, empty);
    for (int k = 0; k < 2; k++) { /* no agent acted: length and metrics are known, unless opponents played */
        r.b.d.is_opponent = k > 0 ? is_opponent : NULL;
        dt_round_summarise(&r.b, &x, &out);
        assert_int_equal(out.episodes, 2);
        assert_near(out.episode_return, 4);
        assert_near(out.episode_cost[0], 2);
        assert_near(out.episode_length, k > 0 ? 3 : 4);
        assert_near(out.metric[0], k > 0 ? 0.5 : 1);
    }
    close_round(&r);
}

/* ---- returns ----------------------------------------------------------------------------------------------------- */

static void test_normalised_rewards(void **state)
{
    /* discounted by a half since the agent came: 1, 2.5; 10, 25; 5, 8.5, 11.25; 4; what others leave is 0 */
    static const double sums[] = {1, 10, 5, 2.5, 25, 8.5, 11.25, 4};
    double mean = 0, square = 0;
    const dt_rollout_desc d = {.gamma = 0.5, .clip_reward = 1.25};
    dt_returns x = {0};
    round_of r;
    open_round(&r);
    for (int i = 0; i < 8; i++) {
        mean += sums[i] / 8;
    }
    for (int i = 0; i < 8; i++) {
        square += (sums[i] - mean) * (sums[i] - mean);
    }
    r.b.reward[r.first + 2] = -50; /* clipped from below; it changes the sums as well */
    r.b.reward[r.first + 2] = reward[2];
    assert_int_equal(dt_returns_init(&x, PLACES), DT_OK);
    dt_returns_normalise_rewards(&x, &d, &r.b);
    assert_near(x.moments.n, 8);
    assert_near(x.moments.mean[0], mean);
    assert_near(x.moments.m2[0], square);
    for (int i = 0; i < ROWS; i++) {
        const double scaled = (double)reward[i] * (double)x.moments.scale[0];
        assert_near((double)r.b.reward[r.first + (size_t)i], fmin(scaled, 1.25));
    }
    assert_true((double)r.b.reward[r.first + 5] == 1.25); /* 20 is clipped */
    /* of agents that go on the sum continues in the next round */
    assert_near(x.running[0], 4);
    assert_near(x.running[1], 0);
    assert_near(x.running[2], 0);
    for (int i = 0; i < ROWS; i++) {
        r.b.reward[r.first + (size_t)i] = i == 0 ? -1e6F : 0;
    }
    dt_returns_normalise_rewards(&x, &(dt_rollout_desc){.gamma = 0.5, .clip_reward = 1}, &r.b);
    assert_true((double)r.b.reward[r.first] == -1);
    r.b.reward[r.first] = -1e6F;
    dt_returns_normalise_rewards(&x, &(dt_rollout_desc){.gamma = 0.5}, &r.b); /* without a bound */
    assert_true((double)r.b.reward[r.first] < -1);
    dt_returns_fini(&x);
    close_round(&r);
}

/* y_t = r_t + gamma ((1 - lambda) V_{t+1} + lambda y_{t+1}) for the rows that acted, in their order. */
/* The sum starts again at an end, also where an agent acts in the next step. */
static void test_running_returns_end(void **state)
{
    static const uint8_t end[] = {TERMINATED, TRUNCATED};
    for (size_t i = 0; i < sizeof(end); i++) {
        dt_returns x = {0};
        round_of r;
        open_round(&r);
        for (int t = 0; t < STEPS; t++) {
            r.b.flag[r.first + (size_t)t * PLACES] = t == 1 ? end[i] : GOES_ON;
            r.b.reward[r.first + (size_t)t * PLACES] = (float)(1 << t);
        }
        assert_int_equal(dt_returns_init(&x, PLACES), DT_OK);
        dt_returns_normalise_rewards(&x, &(dt_rollout_desc){.gamma = 0.5}, &r.b);
        assert_near(x.running[0], 4 * 0.5 + 8);
        dt_returns_fini(&x);
        close_round(&r);
    }
}

static void test_returns_of_values(void **state)
{
    /* rows: step 0 (0,0) (0,1) (1,0); step 1 the same; step 2 (1,0); step 3 (0,0) */
    static const float value[] = {1, 2, 3, 4, 5, 6, 7, 8}, next[] = {0, 0, 0, 40, 50, 60, 70, 80};
    const double g = 0.5, l = 0.25;
    double want[8];
    float out[8];
    dt_returns x = {0};
    round_of r;
    open_round(&r);
    assert_int_equal(dt_returns_init(&x, PLACES), DT_OK);
    want[7] = 4 + g * 80; /* the round ends, the episode does not: what follows is next_value */
    want[6] = 7 + g * 70; /* truncated */
    want[5] = 6 + g * ((1 - l) * 7 + l * want[6]);
    want[4] = 20 + g * 50;
    want[3] = 2; /* terminated */
    want[2] = 5 + g * ((1 - l) * 6 + l * want[5]);
    want[1] = 10 + g * ((1 - l) * 5 + l * want[4]);
    want[0] = 1 + g * ((1 - l) * 4 + l * want[3]);
    dt_returns_estimate_from_values(&x, &r.b, value, next, g, l, out, 8);
    for (int i = 0; i < 8; i++) {
        assert_near((double)out[i], want[i]);
    }
    dt_returns_estimate_from_values(&x, &r.b, value, NULL, g, l, out, 8);
    assert_near((double)out[7], 4);
    assert_near((double)out[6], 7);
    assert_near((double)out[4], 20);
    dt_returns_fini(&x);
    close_round(&r);
}

/* Targets are advantages and values; costs have their own gamma and lambda; deviations are of before normalising. */
static void test_estimates(void **state)
{
    dt_rollout_desc d = {.gamma = 0.5, .lambda = 1, .cost_gamma = 1, .cost_lambda = 0};
    dt_returns x = {0};
    double plain[8], deviation;
    round_of r;
    open_round(&r);
    float *a = r.b.advantage + r.first, *ca = r.b.cost_advantage + r.first;
    for (int i = 0; i < ROWS; i++) {
        r.b.value[r.first + (size_t)i] = 0.5F;
        r.b.cost[r.first + (size_t)i] = (float)i;
        r.b.cost_value[r.first + (size_t)i] = 2;
    }
    assert_int_equal(dt_returns_init(&x, PLACES), DT_OK);
    dt_returns_estimate(&x, &d, &r.b);
    assert_near((double)a[4], 2 - 0.5);           /* terminated */
    assert_near((double)a[0], 1 + 0.5 * 2 - 0.5); /* lambda 1: the return */
    assert_near((double)ca[0], 0 + 2 - 2);        /* gamma 1, lambda 0: one step */
    assert_near((double)ca[4], 4 - 2);            /* terminated */
    assert_near((double)ca[2], 2 + 2 - 2);
    for (int i = 0; i < ROWS; i++) {
        if (flag[i] != 0) {
            assert_near((double)r.b.target[r.first + (size_t)i], (double)a[i] + 0.5);
            assert_near((double)r.b.cost_target[r.first + (size_t)i], (double)ca[i] + 2);
        }
    }
    int n = 0;
    double mean = 0, square = 0;
    for (int i = 0; i < ROWS; i++) {
        if (flag[i] != 0) {
            plain[n++] = (double)a[i];
            mean += (double)a[i] / 8;
        }
    }
    for (int i = 0; i < 8; i++) {
        square += (plain[i] - mean) * (plain[i] - mean);
    }
    deviation = x.deviation[0];
    assert_near(deviation, sqrt(square / 7));
    /* costs by the deviation of the reward's advantages */
    const double cost_before = (double)ca[4], cost_deviation = x.deviation[1];
    d.normalise_advantage = DT_NORMALISE_BY_REWARD;
    dt_returns_estimate(&x, &d, &r.b);
    assert_near(x.deviation[0], deviation);
    assert_near(x.deviation[1], cost_deviation);
    assert_near(((double)a[4] - (double)a[0]) * deviation, 1.5 - 1.5);
    assert_near(((double)ca[4] - (double)ca[0]) * deviation, cost_before);
    d.normalise_advantage = DT_NORMALISE_MEAN; /* and not by any */
    dt_returns_estimate(&x, &d, &r.b);
    assert_near((double)ca[4] - (double)ca[0], cost_before);
    d.centre = 1; /* rewards of mean 0: 55 / 8 is taken off */
    d.normalise_advantage = DT_NORMALISE_NONE;
    dt_returns_estimate(&x, &d, &r.b);
    assert_near((double)a[4], 2 - 55 / 8.0 - 0.5);
    dt_returns_fini(&x);
    close_round(&r);
}

/* ---- observations ------------------------------------------------------------------------------------------------ */

static void test_observations(void **state)
{
    dt_comm *comm = NULL;
    dt_partition split;
    dt_obs_stats s = {0}, off = {0};
    dt_buffer_scale saved[DT_ENV_MAX_OBS];
    round_of r;
    open_round(&r);
    assert_int_equal(dt_comm_create_null(&comm), DT_OK);
    assert_int_equal(dt_partition_init(&split, comm, M), DT_OK);
    assert_int_equal(dt_obs_stats_init(&off, &r.layout, false, 0), DT_OK);
    assert_false(dt_obs_stats_has_ports(&off));
    assert_int_equal(dt_obs_stats_add_round(&off, &split, &r.b), DT_OK);
    assert_int_equal(dt_obs_stats_init(&s, &r.layout, true, 3), DT_OK);
    assert_true(dt_obs_stats_has_ports(&s));
    float *obs = (float *)(void *)r.b.obs[0] + r.first * 2;
    double mean = 0, square = 0;
    for (int i = 0; i < ROWS; i++) {
        obs[2 * i] = (float)(i * i);
        obs[2 * i + 1] = flag[i] != 0 ? -2 : 1000; /* rows without an agent do not count */
        mean += flag[i] != 0 ? i * i / 8.0 : 0;
    }
    for (int i = 0; i < ROWS; i++) {
        square += flag[i] != 0 ? (i * i - mean) * (i * i - mean) : 0;
    }
    dt_obs_stats_set_scale(&s, &r.b);
    assert_null(r.b.scale[0].mean); /* nothing was added */
    assert_int_equal(dt_obs_stats_add_round(&s, &split, &r.b), DT_OK);
    dt_obs_stats_apply(&s);
    assert_near(s.port[0].n, 8);
    assert_near(s.port[0].mean[0], mean);
    assert_near(s.port[0].m2[0], square);
    assert_near(s.port[0].mean[1], -2);
    dt_obs_stats_set_scale(&s, &r.b);
    assert_ptr_equal(r.b.scale[0].mean, s.port[0].shift);
    assert_ptr_equal(r.b.scale[0].scale, s.port[0].scale);
    assert_near((double)r.b.scale[0].clip, 3);

    dt_obs_stats_fix_scale(&s, &r.b); /* stays while the next one is fixed, too */
    const dt_buffer_scale fixed = r.b.scale[0];
    const float was = fixed.mean[0], was_scale = fixed.scale[0];
    assert_true(fixed.mean != s.port[0].shift && (double)was == (double)s.port[0].shift[0]);
    obs[0] = 5000;
    assert_int_equal(dt_obs_stats_add_round(&s, &split, &r.b), DT_OK);
    dt_obs_stats_apply(&s);
    dt_obs_stats_fix_scale(&s, &r.b);
    assert_true(r.b.scale[0].mean != fixed.mean && (double)r.b.scale[0].mean[0] > (double)was);
    assert_true((double)fixed.mean[0] == (double)was && (double)fixed.scale[0] == (double)was_scale);

    dt_exchange x = {.split = &split, .own = &r.b, .rows = &r.b, .has_last = true};
    const float *mean_before = r.b.scale[0].mean;
    dt_exchange_begin_raw(&x, saved);
    assert_null(r.b.scale[0].mean);
    dt_exchange_end_raw(&x, saved);
    assert_true(r.b.scale[0].mean == mean_before && !x.has_last);
    dt_obs_stats_fini(&s);
    dt_obs_stats_fini(&off);
    dt_comm_destroy(comm);
    close_round(&r);
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static void test_episode_logs(void **state)
{
    static const double numbers[4] = {0};
    dt_episode_logs x = {0};
    round_of r;
    open_round(&r);
    assert_int_equal(dt_episode_logs_init(&x, &r.layout.spec, M), DT_OK);
    assert_int_equal(x.action_bytes, A * (sizeof(int32_t) + sizeof(float)));
    for (int i = 0; i < ROWS; i++) {
        r.b.act_i[r.first + (size_t)i] = i;
        r.b.act_f[r.first + (size_t)i] = 100;
        r.b.executed_f[r.first + (size_t)i] = (float)i / 8;
    }
    end_episode(&r, 1, 0, DT_DONE_ENDED, numbers);
    end_episode(&r, 2, 1, DT_DONE_ENDED, numbers);
    assert_int_equal(dt_episode_logs_add_round(&x, &r.b), DT_OK);
    /* step 2 of the first instance is a reset, step 3 the only one of episode 1; the other's episode 1 has none yet */
    assert_true(x.log[0].episode == 1 && x.log[0].steps == 1 && !x.log[0].is_over);
    assert_true(x.log[1].episode == 1 && x.log[1].steps == 0 && !x.log[1].is_over);
    const struct {
        int32_t i[A];
        float f[A];
    } *a = (const void *)x.log[0].action;
    assert_true(a->i[0] == 12 && a->i[1] == 0); /* as executed; nobody is at the second place */
    assert_true((double)a->f[0] == 1.5 && (double)a->f[1] == 0);
    r.b.done[dt_buffer_slot(&r.b, 1, 0)] = 0;
    r.b.done[dt_buffer_slot(&r.b, 2, 1)] = 0;
    end_episode(&r, 3, 1, DT_DONE_ENDED, numbers);
    assert_int_equal(dt_episode_logs_add_round(&x, &r.b), DT_OK);
    assert_true(x.log[0].episode == 1 && x.log[0].steps == 5 && !x.log[0].is_over);
    assert_true(x.log[1].episode == 1 && x.log[1].steps == 4 && x.log[1].is_over);
    dt_episode_logs_fini(&x);
    close_round(&r);
}

/* Actions in a checkpoint are foreign: those of the first place, which acts, and of the second, where nobody does. */
static dt_status check_of(round_of *r, size_t place, int32_t choice, float value)
{
    char record[4096] = {0}, action[A * (sizeof(int32_t) + sizeof(float))] = {0};
    const dt_instance x = {.record = record};
    const char *why = NULL;
    assert_true(r->layout.alive + A <= sizeof(record) && r->layout.mask + A * sizeof(choices) <= sizeof(record));
    record[r->layout.alive] = 1;
    memset(record + r->layout.mask, 1, A * (size_t)choices[0]);
    record[r->layout.mask + 1] = 0; /* choice 1 of the first place is forbidden */
    memcpy(action + place * sizeof(choice), &choice, sizeof(choice));
    memcpy(action + A * sizeof(choice) + place * sizeof(value), &value, sizeof(value));
    const dt_status st = check_action(&r->layout, &x, action, place, &why);
    assert_int_equal(st == DT_OK, why == NULL);
    return st;
}

/* Each head has its own part of the mask. */
static void test_foreign_choices(void **state)
{
    static const int32_t two[] = {2, 3}, chosen[][2] = {{1, 0}, {0, 2}, {0, 1}, {1, 1}};
    static const uint8_t mask[] = {1, 1, 1, 0, 1};
    const dt_env_spec spec = {
        .struct_size = sizeof(spec), .n_agents = 1, .obs = &state_port, .n_obs = 1, .choices = two, .n_heads = 2};
    char record[1024] = {0};
    const dt_instance x = {.record = record};
    const char *why = NULL;
    dt_layout l;
    assert_int_equal(dt_layout_init(&l, "heads", &spec), DT_OK);
    assert_true(l.alive < sizeof(record) && l.mask + sizeof(mask) <= sizeof(record));
    record[l.alive] = 1;
    memcpy(record + l.mask, mask, sizeof(mask));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(check_action(&l, &x, (const char *)chosen[i], 0, &why), i < 2 ? DT_OK : DT_EDATA);
    }
    dt_layout_fini(&l);
}

static void test_foreign_actions(void **state)
{
    round_of r;
    open_round(&r);
    assert_int_equal(check_of(&r, 0, 0, -1), DT_OK);
    assert_int_equal(check_of(&r, 0, 2, 1), DT_OK);
    assert_int_equal(check_of(&r, 0, 1, 0), DT_EDATA);
    assert_int_equal(check_of(&r, 0, -1, 0), DT_EDATA);
    assert_int_equal(check_of(&r, 0, 3, 0), DT_EDATA); /* where the next place's mask permits its choice 0 */
    assert_int_equal(check_of(&r, 0, 0, 1.5F), DT_EDATA);
    assert_int_equal(check_of(&r, 0, 0, -1.5F), DT_EDATA);
    assert_int_equal(check_of(&r, 0, 0, NAN), DT_EDATA);
    assert_int_equal(check_of(&r, 1, 0, 0), DT_OK);
    assert_int_equal(check_of(&r, 1, 1, 0), DT_EDATA);
    assert_int_equal(check_of(&r, 1, 0, 0.5F), DT_EDATA);
    close_round(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_parts_of_a_mix_and_places),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_normalised_rewards),
        cmocka_unit_test(test_running_returns_end),
        cmocka_unit_test(test_returns_of_values),
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_observations),
        cmocka_unit_test(test_episode_logs),
        cmocka_unit_test(test_foreign_actions),
        cmocka_unit_test(test_foreign_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_constrained: the optima and multipliers of its table are computed again, each in a way of its
 * own, and the best policies earn and cost that much when they play.
 */
#include "env_rig.h"

enum { QUEUE = 6 }; /* lengths */

/* ---- the optima, computed --------------------------------------------------------------------------------------- */

typedef struct optimum {
    double value, multiplier;
} optimum;

/* max sum_i w_i r_i, sum_i w_i c_i <= d over mixtures of n points, by its dual: min over l >= 0 of the convex
 * max_i (r_i - l c_i) + l d, whose kinks are where two points are worth the same. */
static optimum best_mixture(const double *r, const double *c, int n, double d)
{
    optimum best = {INFINITY, 0};
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const double l = c[i] > c[j] ? (r[i] - r[j]) / (c[i] - c[j]) : 0;
            double worth = -INFINITY;
            for (int k = 0; k < n; k++) {
                worth = fmax(worth, r[k] - l * c[k]);
            }
            if (l >= 0 && worth + l * d < best.value) {
                best = (optimum){worth + l * d, l};
            }
        }
    }
    return best;
}

/* Long run of the queue where admit[q] is the probability of letting in: per step what enters, and the length. */
static void queue_means(const double *admit, double *reward_p, double *cost_p)
{
    double share[QUEUE] = {1}, next[QUEUE];
    for (int t = 0; t < 4000; t++) { /* the chain mixes by a factor of 0.9 per step and better */
        memset(next, 0, sizeof(next));
        *reward_p = *cost_p = 0;
        for (int q = 0; q < QUEUE; q++) {
            for (int is_done = 0; is_done < 2; is_done++) {
                const double enters = 0.5 * admit[q], p = share[q] * (is_done ? 0.4 : 0.6);
                const int left = q - (is_done && q > 0);
                next[left] += p * (1 - enters);
                if (enters > 0) {
                    next[left + 1] += p * enters;
                }
                *reward_p += p * enters;
                *cost_p += p * (left + enters);
            }
        }
        memcpy(share, next, sizeof(share));
    }
}

static void test_bandit_and_detour(void **state)
{
    static const double reward[] = {0, 0.8, 1}, cost[] = {0, 0.5, 1};
    const optimum bandit = best_mixture(reward, cost, 3, 0.6);
    rig_near(bandit.value, 0.84, 1e-12);
    rig_near(bandit.multiplier, 0.4, 1e-12);
    const double way[] = {0.9 * 0.9 * 0.9, 1}, shortcut[] = {0, 1};
    const optimum detour = best_mixture(way, shortcut, 2, 0.25);
    rig_near(detour.value, 0.79675, 1e-12);
    rig_near(detour.multiplier, 0.271, 1e-12);
}

/* All mixtures of the policies without chance are all policies, in what they earn and cost (Altman 1999, ch. 4). */
static void test_queue_optimum(void **state)
{
    static const double threshold[QUEUE][2] = {{0, 0},
                                               {2.0 / 9, 5.0 / 9},
                                               {14.0 / 43, 50.0 / 43},
                                               {0.360248, 1.832298},
                                               {0.376600, 2.559415},
                                               {0.385529, 3.338044}};
    double reward[32], cost[32];
    for (int set = 0; set < 32; set++) {
        double admit[QUEUE] = {0};
        for (int q = 0; q < QUEUE - 1; q++) {
            admit[q] = set >> q & 1;
        }
        queue_means(admit, &reward[set], &cost[set]);
    }
    for (int k = 0; k < QUEUE; k++) {
        rig_near(reward[(1 << k) - 1], threshold[k][0], 5e-7);
        rig_near(cost[(1 << k) - 1], threshold[k][1], 5e-7);
    }
    const optimum best = best_mixture(reward, cost, 32, 1);
    rig_near(best.value, 14.0 / 47, 1e-9);
    rig_near(best.multiplier, 8.0 / 47, 1e-9);
    const double admit[QUEUE] = {1, 16.0 / 23};
    double earns = 0, waits = 0;
    queue_means(admit, &earns, &waits);
    rig_near(earns, 14.0 / 47, 1e-12);
    rig_near(waits, 1, 1e-12);
}

/* u = -K x: E[x^2] = 1 / (1 - (0.95 - K)^2), E[u^2] = K^2 E[x^2]. The K that spends 0.2, and what more would bring. */
static double lqr_variance(double K)
{
    return 1 / (1 - (0.95 - K) * (0.95 - K));
}

static double lqr_gain(double effort)
{
    double low = 0, high = 0.95;
    for (int i = 0; i < 100; i++) {
        const double K = (low + high) / 2;
        if (K * K * lqr_variance(K) < effort) {
            low = K;
        } else {
            high = K;
        }
    }
    return low;
}

static void test_lqr_optimum(void **state)
{
    const double h = 1e-4, K = lqr_gain(0.2);
    rig_near(K, 0.36160518, 5e-9);
    rig_near(lqr_variance(K), 1.52953953, 5e-9);
    const double slope = (lqr_variance(lqr_gain(0.2 - h)) - lqr_variance(lqr_gain(0.2 + h))) / (2 * h);
    rig_near(slope, 3.68953013, 1e-5);
    /* no other policy, linear or not, does better with this multiplier: K solves the Riccati equation
     * P = 1 + 0.95^2 P - 0.95^2 P^2 / (P + l), K = 0.95 P / (P + l) */
    double P = 1;
    for (int i = 0; i < 1000; i++) {
        P = 1 + 0.9025 * P - 0.9025 * P * P / (P + 3.68953013);
    }
    rig_near(P, 2.26744555, 5e-9);
    rig_near(0.95 * P / (P + 3.68953013), K, 5e-9);
}

/* ---- the best policies, played ----------------------------------------------------------------------------------- */

static const char *problem[][3] = {
    {"problem=bandit", NULL}, {"problem=detour", NULL}, {"problem=queue", NULL}, {"problem=lqr", NULL}};

static int32_t draw(dt_random *r, const double *p)
{
    const double u = dt_random_uniform(r);
    return u < p[0] ? 0 : u < p[0] + p[1] ? 1 : 2;
}

/* Means over n episodes of their sums, discounted from the start, of what `act` plays. */
static void play(env_rig *r, int n, double gamma, void (*act)(env_rig *, dt_random *), double *reward_p, double *cost_p)
{
    dt_random dice;
    dt_random_init(&dice, 1, 99);
    *reward_p = *cost_p = 0;
    for (int i = 0; i < n; i++) {
        bool is_over = false;
        double weight = 1;
        for (rig_reset(r, (uint64_t)i); !is_over; weight *= gamma) {
            act(r, &dice);
            is_over = rig_step(r);
            *reward_p += weight * (double)r->reward / n;
            *cost_p += (double)r->cost[0] / n;
        }
    }
}

static void act_bandit(env_rig *r, dt_random *dice)
{
    static const double p[] = {0, 0.8, 0.2};
    assert_true(r->obs[0] == 1.0F && r->mask[0] + r->mask[1] + r->mask[2] == 3);
    r->act_i[0] = draw(dice, p);
}

static void act_detour(env_rig *r, dt_random *dice)
{
    static const double p[] = {0.25, 0.75};
    assert_int_equal(r->mask[0], r->obs[0] == 1.0F);
    assert_true(r->obs[0] + r->obs[1] + r->obs[2] + r->obs[3] == 1.0F && r->mask[1] == 1);
    r->act_i[0] = r->mask[0] != 0 ? draw(dice, p) : 1;
}

static void act_queue(env_rig *r, dt_random *dice)
{
    static const double p[] = {7.0 / 23, 16.0 / 23};
    assert_int_equal(r->mask[1], r->obs[5] == 0.0F);
    r->act_i[0] = r->obs[0] == 1.0F ? 1 : r->obs[1] == 1.0F ? draw(dice, p) : 0;
}

static void act_lqr(env_rig *r, dt_random *dice)
{
    r->act_f[0] = -0.36160518F * r->obs[0];
}

/* The queue begins as it is in the long run under the best policy: 12, 23 and 12 of 47. */
static void test_the_queue_begins_in_balance(void **state)
{
    enum { N = 4700 };
    int n[3] = {0};
    env_rig r;
    rig_open(&r, "env_constrained", (const char *const[]){"problem=queue", NULL});
    for (uint64_t seed = 0; seed < N; seed++) {
        rig_reset(&r, seed);
        for (int k = 0; k < 3; k++) {
            n[k] += r.obs[k] == 1.0F;
        }
    }
    assert_int_equal(n[0] + n[1] + n[2], N);
    assert_in_range(n[0], 1200 - 150, 1200 + 150); /* 5 deviations of 30 */
    assert_in_range(n[1], 2300 - 170, 2300 + 170);
    assert_in_range(n[2], 1200 - 150, 1200 + 150);
    rig_close(&r);
}

/* Tolerances: four deviations of the mean. */
static void test_best_policies_play(void **state)
{
    double reward = 0, cost = 0;
    env_rig r;
    rig_open(&r, "env_constrained", problem[0]);
    assert_string_equal(r.spec.costs[0], "price");
    play(&r, 100000, 1, act_bandit, &reward, &cost);
    rig_near(reward, 0.84, 4 * 0.08 / 316);
    rig_near(cost, 0.6, 4 * 0.2 / 316);
    assert_int_equal(r.episode_steps, 1);
    rig_close(&r);

    rig_open(&r, "env_constrained", problem[1]);
    assert_int_equal(r.spec.max_steps, 4);
    play(&r, 100000, 0.9, act_detour, &reward, &cost);
    rig_near(reward, 0.79675, 4 * 0.118 / 316);
    rig_near(cost, 0.25, 4 * 0.433 / 316);
    rig_close(&r);

    rig_open(&r, "env_constrained", problem[2]); /* neighbours depend: about 10 steps of one are worth one */
    play(&r, 1000, 1, act_queue, &reward, &cost);
    rig_near(reward / 200, 14.0 / 47, 4 * 0.46 / 447);
    rig_near(cost / 200, 1, 4 * 0.71 * 3.3 / 447);
    assert_int_equal(r.truncated, 1);
    assert_true(r.metric[0] * 200 == r.episode_return);
    rig_close(&r);

    rig_open(&r, "env_constrained", problem[3]);
    assert_true(isinf(r.spec.low[0]) && isinf(r.spec.high[0]));
    play(&r, 1000, 1, act_lqr, &reward, &cost);
    rig_near(reward / 200, -1.52953953, 4 * 2.2 * 1.5 / 447);
    rig_near(cost / 200, 0.2, 4 * 0.28 * 1.5 / 447);
    rig_close(&r);
}

/* Nothing but admission fills the queue, and it never leaves 0 to 5. */
static void test_queue_is_bounded(void **state)
{
    env_rig r;
    rig_open(&r, "env_constrained", problem[2]);
    for (uint64_t seed = 0; seed < 20; seed++) {
        rig_reset(&r, seed);
        for (bool is_over = false; !is_over;) {
            is_over = rig_choose(&r, r.mask[1]);
            assert_true(r.cost[0] >= 0.0F && r.cost[0] <= 5.0F && r.obs[(int)r.cost[0]] == 1.0F);
        }
        rig_reset(&r, seed);
        float before = 5;
        for (bool is_over = false; !is_over; before = r.cost[0]) {
            is_over = rig_choose(&r, 0);
            assert_true(r.cost[0] <= before && r.reward == 0.0F);
        }
    }
    rig_close(&r);
}

static void refuses(env_rig *r, const char *words)
{
    r->io.act_i = r->act_i;
    r->io.act_f = r->act_f;
    assert_int_equal(r->ops->step(r->self, &r->io), DT_EINVAL);
    assert_non_null(strstr(r->host.message, words));
}

static void test_refusals(void **state)
{
    env_rig r;
    rig_open(&r, "env_constrained", problem[0]);
    rig_reset(&r, 1);
    r.act_i[0] = 3;
    refuses(&r, "action 3, expected 0 to 2");
    rig_close(&r);
    rig_open(&r, "env_constrained", problem[1]);
    rig_reset(&r, 1);
    assert_false(rig_choose(&r, 1));
    r.act_i[0] = 0; /* no way back to the shortcut */
    refuses(&r, "action 0, expected 0 to 1, and one that the mask allows");
    rig_close(&r);
    rig_open(&r, "env_constrained", problem[3]);
    rig_reset(&r, 1);
    r.act_f[0] = INFINITY;
    refuses(&r, "action inf, expected a finite number");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bandit_and_detour),  cmocka_unit_test(test_queue_optimum),
        cmocka_unit_test(test_lqr_optimum),        cmocka_unit_test(test_the_queue_begins_in_balance),
        cmocka_unit_test(test_best_policies_play), cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

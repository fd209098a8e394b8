/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of multipliers on a problem whose answer is known: reward p and cost p for p in [0,1], cost at most 0.3, so
 * that the multiplier of the solution is 1. The policy is one sigmoid that climbs p - lambda p; next to it numbers by
 * hand.
 */
#include "../../phases/phase3_constrained/multiplier.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const double limit = 0.3;

typedef struct result {
    double p, multiplier; /* means of the last tenth */
} result;

/* scale: what the same cost is counted in. */
static result solve(const multiplier_rule *r, double rate, int rounds, double scale)
{
    multiplier m;
    result out = {0, 0};
    double x = 0;
    multiplier_init(&m);
    for (int i = 0; i < rounds; i++) {
        const double p = 1 / (1 + exp(-x));
        multiplier_update(&m, r, scale * p, scale * limit, 1 / scale, 1);
        const double lambda = scale * m.value;
        x += rate * p * (1 - p) * (1 - lambda) / (1 + lambda);
        if (i >= rounds - rounds / 10) {
            out.p += p / (rounds / 10);
            out.multiplier += lambda / (rounds / 10);
        }
    }
    return out;
}

static void test_pid_settles(void **unused)
{
    (void)unused;
    const multiplier_rule r = {
        .algorithm = MULTIPLIER_PID, .start = 0.1, .max = 100, .kp = 1, .ki = 0.05, .kd = 0, .delay = 1};
    const result got = solve(&r, 0.1, 20000, 1), pence = solve(&r, 0.1, 20000, 100);
    assert_true(fabs(got.p - 0.3) < 1e-3);
    assert_true(fabs(got.multiplier - 1) < 1e-3);
    assert_true(fabs(pence.p - got.p) < 1e-9 && fabs(pence.multiplier - got.multiplier) < 1e-9);
}

static void test_mean_of_plain_ascent(void **unused)
{
    (void)unused;
    const multiplier_rule r = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.1, .max = 100, .rate = 0.01};
    assert_true(fabs(solve(&r, 0.1, 20000, 1).multiplier - 1) < 0.05);
}

static void test_penalty_is_exact_when_large_enough(void **unused)
{
    (void)unused;
    const multiplier_rule enough = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 2};
    const multiplier_rule little = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 0.5};
    assert_true(fabs(solve(&enough, 0.01, 20000, 1).p - 0.3) < 3e-3);
    assert_true(fabs(solve(&enough, 0.01, 20000, 100).p - 0.3) < 3e-3);
    assert_true(solve(&little, 0.1, 20000, 1).p > 0.9);
}

static void test_log_barrier_stays_inside(void **unused)
{
    (void)unused;
    for (double t = 10; t <= 400; t *= 2) { /* 1 = d / (t (d - p)) */
        const multiplier_rule r = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 100, .sharpness = t};
        assert_true(fabs(solve(&r, 0.01, 40000, 1).p - 0.3 * (1 - 1 / t)) < 3e-3);
    }
}

static void test_by_hand(void **unused)
{
    (void)unused;
    multiplier m;
    const multiplier_rule plain = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.1, .max = 1, .rate = 0.5};
    multiplier_init(&m);
    assert_true(m.value == 0);
    multiplier_update(&m, &plain, 0.6, 0.3, 2, 1); /* 2 (0.1 + 0.5 * 0.3 / 0.6) */
    assert_true(fabs(m.value - 0.7) < 1e-12);
    for (int i = 0; i < 10; i++) {
        multiplier_update(&m, &plain, 9, 0.3, 2, 1);
    }
    assert_true(fabs(m.value - 2) < 1e-12);      /* max in units */
    multiplier_update(&m, &plain, 9, 0.3, 0, 1); /* a round that tells of no unit */
    assert_true(fabs(m.unit - 2) < 1e-12);
    for (int i = 0; i < 10; i++) {
        multiplier_update(&m, &plain, 0, 30, 2, 1);
    }
    assert_true(m.value == 0);

    multiplier_update(&m, &plain, 60, 30, 2, 0.5); /* half of the rate: 2 * 0.5 * 0.5 */
    assert_true(fabs(m.value - 0.5) < 1e-12);

    const multiplier_rule pid = {.algorithm = MULTIPLIER_PID,
                                 .start = 0.1,
                                 .max = 10,
                                 .kp = 0.5,
                                 .ki = 0.2,
                                 .kd = 2,
                                 .error_ema = 0.5,
                                 .cost_ema = 0,
                                 .delay = 2};
    multiplier_init(&m);
    multiplier_update(&m, &pid, 1, 0.5, 1, 1); /* e 0.5: 0.5 * 0.5 + (0.1 + 0.2 * 0.5) */
    assert_true(fabs(m.value - 0.45) < 1e-12);
    multiplier_update(&m, &pid, 1, 0.5, 1, 1); /* nothing rose two rounds ago: there was no such round */
    assert_true(fabs(m.value - 0.55) < 1e-12);
    multiplier_update(&m, &pid, 1.5, 0.5, 1, 1); /* size 1.05: e 0.95238, smoothed 0.72619, rise 0.45238 */
    assert_true(fabs(m.value - (0.3 + (0.5 * 0.726190476 + 0.2 * 0.952380952 + 2 * 0.452380952))) < 1e-8);

    const multiplier_rule penalty = {.algorithm = MULTIPLIER_PENALTY, .max = 20, .penalty = 5};
    multiplier_init(&m);
    multiplier_update(&m, &penalty, 1, 0, 3, 1); /* a limit of 0: any cost is above it */
    assert_true(m.value == 15);
    multiplier_update(&m, &penalty, 0, 0, 3, 1);
    assert_true(m.value == 0);
    multiplier_follow(&m, &penalty, 0.1, 0); /* the policy has moved within the round */
    assert_true(m.value == 15);

    const multiplier_rule barrier = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 20, .sharpness = 10};
    multiplier_init(&m);
    multiplier_update(&m, &barrier, 0.75, 1, 2, 1); /* 2 / (10 * 0.25) */
    assert_true(fabs(m.value - 0.8) < 1e-12);
    multiplier_follow(&m, &barrier, 0.5, 1);
    assert_true(fabs(m.value - 0.4) < 1e-12);
    multiplier_follow(&m, &barrier, 1, 1);
    assert_true(m.value == 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_pid_settles),
        cmocka_unit_test(test_mean_of_plain_ascent),
        cmocka_unit_test(test_penalty_is_exact_when_large_enough),
        cmocka_unit_test(test_log_barrier_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

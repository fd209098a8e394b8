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

static result solve(const multiplier_rule *r, double rate, int rounds)
{
    multiplier m;
    result out = {0, 0};
    double x = 0;
    multiplier_init(&m, r);
    for (int i = 0; i < rounds; i++) {
        const double p = 1 / (1 + exp(-x));
        multiplier_update(&m, r, p, limit);
        x += rate * p * (1 - p) * (1 - m.value) / (1 + m.value);
        if (i >= rounds - rounds / 10) {
            out.p += p / (rounds / 10);
            out.multiplier += m.value / (rounds / 10);
        }
    }
    return out;
}

static void test_pid_settles(void **unused)
{
    (void)unused;
    const multiplier_rule r = {
        .algorithm = MULTIPLIER_PID, .start = 0.1, .max = 100, .kp = 1, .ki = 0.05, .kd = 0, .delay = 1};
    const result got = solve(&r, 0.1, 20000);
    assert_true(fabs(got.p - 0.3) < 1e-3);
    assert_true(fabs(got.multiplier - 1) < 1e-3);
}

static void test_penalty_is_exact_when_large_enough(void **unused)
{
    (void)unused;
    const multiplier_rule enough = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 2};
    const multiplier_rule little = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 0.5};
    assert_true(fabs(solve(&enough, 0.01, 20000).p - 0.3) < 3e-3);
    assert_true(solve(&little, 0.1, 20000).p > 0.9);
}

static void test_log_barrier_stays_inside(void **unused)
{
    (void)unused;
    for (double t = 10; t <= 400; t *= 2) { /* 1 = 1 / (t (d - p)) */
        const multiplier_rule r = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 100, .sharpness = t};
        assert_true(fabs(solve(&r, 0.01, 40000).p - (0.3 - 1 / t)) < 3e-3);
    }
}

static void test_by_hand(void **unused)
{
    (void)unused;
    multiplier m;
    const multiplier_rule plain = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.1, .max = 1, .rate = 0.5};
    multiplier_init(&m, &plain);
    assert_true(m.value == 0.1);
    multiplier_update(&m, &plain, 1.3, 0.3);
    assert_true(fabs(m.value - 0.6) < 1e-12);
    multiplier_update(&m, &plain, 9, 0.3);
    assert_true(m.value == 1);
    multiplier_update(&m, &plain, 0, 3);
    assert_true(m.value == 0);

    const multiplier_rule pid = {.algorithm = MULTIPLIER_PID,
                                 .start = 0.1,
                                 .max = 10,
                                 .kp = 0.5,
                                 .ki = 0.2,
                                 .kd = 2,
                                 .error_ema = 0.5,
                                 .cost_ema = 0,
                                 .delay = 2};
    multiplier_init(&m, &pid);
    multiplier_update(&m, &pid, 1, 0.5); /* 0.5 * 0.5 + (0.1 + 0.1) */
    assert_true(fabs(m.value - 0.45) < 1e-12);
    multiplier_update(&m, &pid, 1, 0.5); /* nothing rose two rounds ago: there was no such round */
    assert_true(fabs(m.value - 0.55) < 1e-12);
    multiplier_update(&m, &pid, 2, 0.5); /* error 0.5 * 0.5 + 0.5 * 1.5, sum 0.3 + 0.3, rise 1 */
    assert_true(fabs(m.value - (0.5 + 0.6 + 2)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_pid_settles),
        cmocka_unit_test(test_penalty_is_exact_when_large_enough),
        cmocka_unit_test(test_log_barrier_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cost is the furthest above its limit, by how much per row, and rounds in a row above a limit: numbers by hand.
 */
#include "../../phases/constraints/limits.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { N = 4 };

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-12);
}

/* Limits 10, 2, 1 and one that is not set; half of each is the aim. */
static const limits three = {.has = {1, 1, 1, 0}, .at = {10, 2, 1, 0}};

static void test_excess(void **state)
{
    (void)state;
    double excess[N];
    /* above by 3 of 8, by 3 of 4, by 0.5 of 1: the second is the worst share, though the first is as far above */
    assert_int_equal(limits_worst_excess(&three, N, 0.5, (const double[]){8, 4, 1, 1e9}, 20, excess), 1);
    near(excess[0], 3.0 / 20);
    near(excess[1], 3.0 / 20);
    near(excess[2], 0.5 / 20);
    assert_true(isnan(excess[3])); /* without a limit it is none, however large */
    /* below all limits: the share is of the limit then; by 4 of 5, by 0.1 of 1, by 0.4 of 0.5 */
    assert_int_equal(limits_worst_excess(&three, N, 0.5, (const double[]){1, 0.9, 0.1, 0}, 4, excess), 1);
    near(excess[0], -1);
    near(excess[1], -0.025);
    near(excess[2], -0.1);
    /* equal shares: the first; all of the limit is the aim */
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 2, 0}, 1, excess), 0);
    near(excess[0], 10);
    /* the last one may be the worst */
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 30, 0}, 1, excess), 2);
}

static void test_without_episodes(void **state)
{
    (void)state;
    double excess[N];
    const limits none = {.has = {0}};
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 2, 0}, 0, excess), -1);
    for (int k = 0; k < N; k++) {
        assert_true(isnan(excess[k]));
    }
    assert_int_equal(limits_worst_excess(&none, N, 1, (const double[]){20, 4, 2, 0}, 1, excess), -1);
    /* a limit of 0 that is kept */
    const limits zero = {.has = {1}, .at = {0}};
    assert_int_equal(limits_worst_excess(&zero, 1, 1, (const double[]){0}, 1, excess), 0);
    near(excess[0], 0);
    /* one of 0 that is not kept is all above: 1, and not the third of the other */
    const limits first_zero = {.has = {1, 1}, .at = {0, 2}};
    assert_int_equal(limits_worst_excess(&first_zero, 2, 1, (const double[]){0.5, 3}, 1, excess), 0);
}

static void test_rounds(void **state)
{
    (void)state;
    uint64_t rounds = 0;
    const double cost[] = {2, 1, 1.5, 3, 4, 1};
    const uint64_t expected[] = {1, 0, 1, 2, 3, 0}; /* at the limit is not above it */
    for (int i = 0; i < 6; i++) {
        rounds = limits_count_rounds(rounds, cost[i], 1);
        assert_int_equal(rounds, expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_excess), cmocka_unit_test(test_without_episodes),
                                       cmocka_unit_test(test_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

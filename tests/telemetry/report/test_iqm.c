/* SPDX-License-Identifier: Apache-2.0
 *
 * Interquartile means and their intervals against values computed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "telemetry/report/iqm.h"

#include <math.h>

enum { RESAMPLES = 4000 };

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9);
}

static void test_middle_half(void **state)
{
    static const double v[] = {100, 3, 1, 2, -50, 4, 5, 6};
    near(dt_iqm_compute(v, 8), (2 + 3 + 4 + 5) / 4.0); /* two of eight are left out at each end */
    near(dt_iqm_compute(v, 4), 2.5);                   /* 1, 2, 3, 100: one */
    near(dt_iqm_compute(v, 3), (100 + 3 + 1) / 3.0);   /* none of three */
    near(dt_iqm_compute(v, 5), 2);                     /* -50, 1, 2, 3, 100 */
    near(dt_iqm_compute(v, 1), 100);
    assert_true(isnan(dt_iqm_compute(v, 0)));
}

static void test_interval(void **state)
{
    static const double v[] = {3, 1, 8}, same[] = {2, 2, 2, 2};
    /* of 27 resamples of three one is (1,1,1) and one (8,8,8): 3.7 % each, more than 2.5 % */
    const dt_iqm r = dt_iqm_interval(v, 3, RESAMPLES);
    near(r.value, 4);
    near(r.low, 1);
    near(r.high, 8);
    /* four: the middle two are both 1 or less than that in 13 of 256, 5.1 %; both 9 as often */
    static const double four[] = {1, 9, 4, 5};
    const dt_iqm f = dt_iqm_interval(four, 4, RESAMPLES);
    near(f.value, 4.5);
    near(f.low, 1);
    near(f.high, 9);
    const dt_iqm s = dt_iqm_interval(same, 4, RESAMPLES), again = dt_iqm_interval(v, 3, RESAMPLES);
    assert_true(s.low == 2 && s.high == 2 && s.value == 2);
    assert_true(again.low == r.low && again.high == r.high);
    const dt_iqm one = dt_iqm_interval(v, 1, RESAMPLES), none = dt_iqm_interval(v, 0, RESAMPLES);
    assert_true(one.value == 3 && isnan(one.low) && isnan(one.high) && isnan(none.value));
}

static void test_improvement(void **state)
{
    /* two tasks: 3 of 4 pairs, and 1 1/2 of 2 */
    static const double a[] = {1, 3, 5, 6}, b[] = {0, 2, 5};
    static const uint32_t end_a[] = {2, 4}, end_b[] = {2, 3};
    const dt_strata x = {a, end_a, 2}, y = {b, end_b, 2};
    const dt_iqm p = dt_iqm_improvement(&x, &y, false, RESAMPLES), q = dt_iqm_improvement(&x, &y, true, RESAMPLES);
    near(p.value, 0.75);
    near(q.value, 0.25);
    assert_true(p.low < p.value && p.value < p.high && p.low >= 0.25 && p.high <= 1);
    const dt_iqm s = dt_iqm_share(&x, 3, false, RESAMPLES), r = dt_iqm_share(&x, 3, true, RESAMPLES);
    near(s.value, 0.75); /* 1 of 2, and 2 of 2 */
    near(s.low, 0.5);
    near(s.high, 1);
    near(r.value, 0.5);
}

static void test_difference(void **state)
{
    static const double a[] = {10, 12}, b[] = {1, 4};
    /* 16 equally likely pairs of resamples: 6 (one of 16, 6.3 %) is the least, 11 the greatest */
    const dt_iqm d = dt_iqm_difference(a, 2, b, 2, RESAMPLES);
    near(d.value, 8.5);
    near(d.low, 6);
    near(d.high, 11);
    const dt_iqm one = dt_iqm_difference(a, 2, b, 1, RESAMPLES);
    assert_true(one.value == 10 && isnan(one.low));
}

/* Tasks keep their number of results: of the first only 0 and 1 are drawn, of the second 10 and 11. */
static void test_strata(void **state)
{
    static const double v[] = {0, 1, 10, 11};
    static const uint32_t end[] = {2, 4}, one_each[] = {1, 2};
    const dt_strata a = {v, end, 2}, alone = {v, one_each, 2}, none = {v, end, 0};
    const dt_iqm r = dt_iqm_stratified(&a, RESAMPLES);
    near(r.value, 5.5); /* of 0, 1, 10, 11 the middle two */
    near(r.low, 5);     /* (0,0) or (1,0) or (0,1) or (1,1), and the same of 10: a middle of (0..1, 10..11) */
    near(r.high, 6);
    assert_true(isnan(dt_iqm_stratified(&alone, RESAMPLES).low) && isnan(dt_iqm_stratified(&none, 9).value));
}

/* More than fit the stack: 0..99 without the lowest and highest 25. */
static void test_many(void **state)
{
    double v[100];
    for (int i = 0; i < 100; i++) {
        v[i] = 99 - i;
    }
    near(dt_iqm_compute(v, 100), 49.5);
    const dt_iqm r = dt_iqm_interval(v, 100, RESAMPLES);
    assert_true(r.value == 49.5 && r.low > 38 && r.low < 45 && r.high > 54 && r.high < 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_middle_half), cmocka_unit_test(test_interval), cmocka_unit_test(test_improvement),
        cmocka_unit_test(test_difference),  cmocka_unit_test(test_strata),   cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

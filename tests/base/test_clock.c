/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/clock.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clock.h"

static void test_monotonic(void **state)
{
    (void)state;
    double a = dt_clock_s(), b = dt_clock_s();
    assert_true(b >= a);
    assert_true(a > 0);
}

static void test_utc_shape(void **state)
{
    (void)state;
    char t[32], tiny[5] = "abcd";
    dt_clock_utc(t, sizeof(t));
    assert_int_equal(strlen(t), 20);
    assert_int_equal(t[4], '-');
    assert_int_equal(t[10], 'T');
    assert_int_equal(t[13], ':');
    assert_int_equal(t[19], 'Z');
    assert_true(strcmp(t, "2026-01-01T00:00:00Z") > 0 || strcmp(t, "2020-01-01T00:00:00Z") > 0);
    dt_clock_utc(tiny, sizeof(tiny));
    assert_string_equal(tiny, "");
}

static void test_memory_gauges(void **state)
{
    (void)state;
    uint64_t now = dt_rss_bytes(), peak = dt_rss_peak_bytes();
    assert_true(now > 100000);
    assert_true(peak + 1000000 >= now);
    assert_true(peak < (uint64_t)1 << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_utc_shape),
        cmocka_unit_test(test_memory_gauges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

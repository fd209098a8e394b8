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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static time_t offset_s; /* of the kernel's clock */

int clock_gettime(clockid_t id, struct timespec *t)
{
    const int is = (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec += offset_s;
    return is;
}

static void test_monotonic(void **state)
{
    double a = dt_clock_s(), b = dt_clock_s();
    assert_true(b >= a);
    assert_true(a > 0);
}

/* A process that is restored elsewhere: time continues from where it was, and then goes on. */
static void test_goes_back(void **state)
{
    const double a = dt_clock_s();
    offset_s = -365 * 86400;
    const double b = dt_clock_s();
    usleep(20000);
    const double c = dt_clock_s();
    assert_true(b >= a - 0.02 && b < a + 5);
    assert_true(c - b >= 0.015 && c - b < 5);
    offset_s -= 1000;
    const double d = dt_clock_s();
    assert_true(d >= c - 0.02 && d < c + 5);
    offset_s = 0;
}

static void test_utc_shape(void **state)
{
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
    uint64_t now = dt_rss_bytes(), peak = dt_rss_peak_bytes();
    assert_true(now > 100000);
    assert_true(peak + 1000000 >= now);
    assert_true(peak < (uint64_t)1 << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_goes_back),
        cmocka_unit_test(test_utc_shape),
        cmocka_unit_test(test_memory_gauges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The monitor of mixed precision: what it warns about, when, and when it is silent.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/amp/monitor.h"

static const dt_scaler_config scaling = {.kind = DT_SCALING_DYNAMIC};

/* A window whose first n_skipped steps overflow; "" when nothing was said. Only its last step may say anything. */
static const char *window(dt_amp_monitor *m, const dt_scaler_config *c, double scale, double norm, int n_skipped)
{
    static char text[512];
    text[0] = '\0';
    for (int i = 0; i < DT_AMP_WINDOW; i++) {
        const bool said = dt_amp_monitor_step(m, c, scale, i >= n_skipped, norm, text, sizeof(text));
        assert_true(!said || i == DT_AMP_WINDOW - 1);
        if (!said) {
            text[0] = '\0';
        }
    }
    return text;
}

static void assert_says(const char *text, const char *piece)
{
    if (strstr(text, piece) == NULL) {
        fail_msg("\"%s\" says nothing about \"%s\"", text, piece);
    }
}

static void test_normal_is_silent(void **state)
{
    dt_amp_monitor m = {0};
    assert_string_equal(window(&m, &scaling, 65536, 1, 0), "");
    assert_string_equal(window(&m, &scaling, 1024, 0.11, 1), "");
    assert_string_equal(window(&m, &scaling, 16777216, 9.9, 1), "");
    assert_true(m.overflow_rate == 1.0 / DT_AMP_WINDOW);
    const dt_scaler_config fixed = {.kind = DT_SCALING_NONE}; /* says nothing of overflows, and they have no norm */
    assert_string_equal(window(&m, &fixed, 1, 0.11, DT_AMP_WINDOW / 2), "");
    assert_string_equal(window(&m, &fixed, 1, 9.9, DT_AMP_WINDOW / 2), "");
}

static void test_each_range(void **state)
{
    dt_amp_monitor m = {0};
    assert_says(window(&m, &scaling, 512, 1, 0), "the loss scale is 512, normal is 1024 to 1.67772e+07");
    assert_says(window(&m, &scaling, 65536, 1, 2), "1 % of the last 200 steps overflowed and were skipped, normal");
    assert_says(window(&m, &scaling, 65536, 12, 0), "the mean gradient norm is 12, normal is 0.1 to 10");
    assert_string_equal(window(&m, &scaling, 65536, 1, 0), "");
    assert_says(window(&m, &scaling, 65536, 0.05, 0), "the mean gradient norm is 0.05");
}

static void test_said_once_until_it_was_back(void **state)
{
    dt_amp_monitor m = {0};
    assert_says(window(&m, &scaling, 65536, 20, 0), "norm");
    assert_string_equal(window(&m, &scaling, 65536, 20, 0), "");
    assert_says(window(&m, &scaling, 2, 20, 0), "the loss scale is 2"); /* only what is new */
    assert_string_equal(window(&m, &scaling, 65536, 1, 0), "");
    assert_says(window(&m, &scaling, 2, 20, 100), "the loss scale is 2, normal is 1024 to 1.67772e+07; 50 %");
}

static void test_without_scaling_only_the_norm_counts(void **state)
{
    dt_amp_monitor m = {0};
    const dt_scaler_config none = {.kind = DT_SCALING_NONE};
    assert_string_equal(window(&m, &none, 1, 1, 0), "");
    assert_says(window(&m, &none, 1, 100, 0), "the mean gradient norm is 100");
}

static void test_rate_before_the_first_window(void **state)
{
    dt_amp_monitor m = {0};
    char text[64];
    (void)dt_amp_monitor_step(&m, &scaling, 65536, true, 1, text, sizeof(text));
    (void)dt_amp_monitor_step(&m, &scaling, 65536, false, 1, text, sizeof(text));
    assert_true(m.overflow_rate == 0.5);
}

static void test_short_room_is_not_overrun(void **state)
{
    dt_amp_monitor m = {0};
    char text[32];
    memset(text, 'z', sizeof(text));
    for (int i = 0; i < DT_AMP_WINDOW; i++) {
        (void)dt_amp_monitor_step(&m, &scaling, 2, i % 2 == 0, 50, text, 16);
    }
    assert_int_equal(text[16], 'z');
    assert_int_equal(strlen(text), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_is_silent),
        cmocka_unit_test(test_each_range),
        cmocka_unit_test(test_said_once_until_it_was_back),
        cmocka_unit_test(test_without_scaling_only_the_norm_counts),
        cmocka_unit_test(test_rate_before_the_first_window),
        cmocka_unit_test(test_short_room_is_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

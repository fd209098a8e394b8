/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss scaler against the rules it was taken from: both readings of hysteresis, growth, bounds, static scale and
 * giving up; and the monitor of mixed precision.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/amp/scaler.h"

static dt_scaler_config dynamic(void)
{
    return (dt_scaler_config){.kind = DT_SCALING_DYNAMIC,
                              .initial = 65536,
                              .min = 1,
                              .max = 16777216,
                              .growth = 2,
                              .backoff = 0.5,
                              .interval = 4,
                              .hysteresis = 1,
                              .max_skips = 50};
}

/* '.' is a good step, 'x' an overflow; after each, the scale must be initial * 2^(digit of want - '5') */
static void play(const dt_scaler_config *c, const char *steps, const char *want)
{
    dt_scaler s;
    dt_scaler_init(&s, c);
    assert_int_equal(strlen(steps), strlen(want));
    for (size_t i = 0; steps[i] != '\0'; i++) {
        dt_scaler_update(&s, c, steps[i] == '.');
        double expected = c->initial;
        for (int k = want[i]; k < '5'; k++) {
            expected /= 2;
        }
        for (int k = want[i]; k > '5'; k--) {
            expected *= 2;
        }
        if (s.scale != expected) {
            fail_msg("%s: after step %zu the scale is %g, expected %g", steps, i + 1, s.scale, expected);
        }
    }
}

/* torch.amp.GradScaler: every overflow halves, interval good steps in a row double. */
static void test_hysteresis_of_one_is_pytorchs(void **state)
{
    dt_scaler_config c = dynamic();
    play(&c, "....x...x....x", "55565555444454");
    c.refill = true;
    play(&c, "....x...x....x", "55565555444454");
}

/* Apex: overflows in a row use the tolerance up, a good step gives it back. */
static void test_consecutive(void **state)
{
    dt_scaler_config c = dynamic();
    c.hysteresis = 3;
    c.refill = true;
    play(&c, "xx.xx.xxxx.xx", "5555555543333");
    play(&c, "xx....x", "5555566");
}

/* Megatron: overflows use the tolerance up between growths, then each one backs off. */
static void test_until_growth(void **state)
{
    dt_scaler_config c = dynamic();
    c.hysteresis = 3;
    play(&c, "x.x.x.x....x.x", "55554433334444");
}

static void test_bounds(void **state)
{
    dt_scaler_config c = dynamic();
    c.interval = 1;
    c.max = 4 * c.initial;
    c.min = c.initial / 4;
    play(&c, "....xxxxxxx.", "677765433334");
}

static void test_static_scale_stays(void **state)
{
    dt_scaler_config c = dynamic();
    c.kind = DT_SCALING_STATIC;
    c.initial = 8192;
    play(&c, "......xxx......", "555555555555555");
}

static void test_no_scaling(void **state)
{
    dt_scaler_config c = {.kind = DT_SCALING_NONE, .initial = 3};
    dt_scaler s;
    dt_scaler_init(&s, &c);
    dt_scaler_update(&s, &c, true);
    assert_false(dt_scaler_has_failed(&s, &c));
    assert_true(s.scale == 1);
    dt_scaler_update(&s, &c, false);
    assert_true(s.scale == 1);
    assert_true(dt_scaler_has_failed(&s, &c));
}

/* The scale must not decay for ever while all gradients are NaN. */
static void test_gives_up_after_so_many_in_a_row(void **state)
{
    dt_scaler_config c = dynamic();
    c.max_skips = 3;
    dt_scaler s;
    dt_scaler_init(&s, &c);
    static const struct {
        char step;
        bool gives_up;
    } rows[] = {{'x', false}, {'x', false}, {'.', false}, {'x', false}, {'x', false}, {'x', true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_scaler_update(&s, &c, rows[i].step == '.');
        assert_int_equal(dt_scaler_has_failed(&s, &c), rows[i].gives_up);
    }
    assert_int_equal(s.skips, 3);
    assert_int_equal(s.overflows, 5);
}

/* A scaler put back from its numbers goes on as if nothing had happened. */
static void test_state_is_all_there_is(void **state)
{
    dt_scaler_config c = dynamic();
    c.hysteresis = 2;
    dt_scaler whole, cut, back;
    dt_scaler_init(&whole, &c);
    dt_scaler_init(&cut, &c);
    const char *steps = "..x...x.....xxx.....";
    for (size_t i = 0; steps[i] != '\0'; i++) {
        if (i == 11) {
            back = (dt_scaler){cut.scale, cut.good, cut.tolerance, cut.skips, cut.overflows};
            cut = back;
        }
        dt_scaler_update(&whole, &c, steps[i] == '.');
        dt_scaler_update(&cut, &c, steps[i] == '.');
        assert_memory_equal(&whole, &cut, sizeof(whole));
    }
}

/* ---- the monitor of mixed precision: what it warns about, when, and when it is silent ---------------------------- */

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
        cmocka_unit_test(test_hysteresis_of_one_is_pytorchs),
        cmocka_unit_test(test_consecutive),
        cmocka_unit_test(test_until_growth),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_static_scale_stays),
        cmocka_unit_test(test_no_scaling),
        cmocka_unit_test(test_gives_up_after_so_many_in_a_row),
        cmocka_unit_test(test_state_is_all_there_is),
        cmocka_unit_test(test_normal_is_silent),
        cmocka_unit_test(test_each_range),
        cmocka_unit_test(test_said_once_until_it_was_back),
        cmocka_unit_test(test_without_scaling_only_the_norm_counts),
        cmocka_unit_test(test_rate_before_the_first_window),
        cmocka_unit_test(test_short_room_is_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

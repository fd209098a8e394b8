/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss scaler against the rules it was taken from: both readings of hysteresis, growth, bounds, static scale and
 * giving up.
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

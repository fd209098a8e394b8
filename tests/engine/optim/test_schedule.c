/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/optim/schedule.c against closed forms and PyTorch's recursive definitions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/optim/optim.h"

static void test_constant(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_CONSTANT, .lr = 0.25};
    assert_true(dt_schedule_rate(&s, 0) == 0.25);
    assert_true(dt_schedule_rate(&s, 1e9) == 0.25);
}

static void test_cosine_is_pytorchs(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_COSINE, .lr = 1e-3, .eta_min = 1e-5, .t_max = 50};
    assert_true(dt_schedule_rate(&s, 0) == 1e-3);
    assert_true(fabs(dt_schedule_rate(&s, 25) - (1e-3 + 1e-5) / 2) < 1e-18);
    /* CosineAnnealingLR: eta_{t+1} = eta_min + (eta_t - eta_min) (1 + cos(pi (t+1)/T)) / (1 + cos(pi t/T)) */
    double rate = 1e-3;
    for (int t = 0; t < 49; t++) {
        rate = 1e-5 + (rate - 1e-5) * (1 + cos(M_PI * (t + 1) / 50)) / (1 + cos(M_PI * t / 50));
        assert_true(fabs(dt_schedule_rate(&s, t + 1) - rate) < 1e-15);
    }
    assert_true(dt_schedule_rate(&s, 50) == 1e-5);
    assert_true(dt_schedule_rate(&s, 51) == 1e-5);
}

static void test_warmup_is_linear_and_meets_the_cosine(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_COSINE, .lr = 0.4, .eta_min = 0.1, .warmup = 2, .t_max = 10};
    assert_true(fabs(dt_schedule_rate(&s, 0.5) - 0.1) < 1e-15);
    assert_true(fabs(dt_schedule_rate(&s, 1.5) - 0.3) < 1e-15);
    assert_true(dt_schedule_rate(&s, 2) == 0.4);
    assert_true(fabs(dt_schedule_rate(&s, 6) - 0.25) < 1e-15);
    assert_true(dt_schedule_rate(&s, 10) == 0.1);
    const dt_schedule constant = {.kind = DT_SCHEDULE_CONSTANT, .lr = 0.4, .warmup = 4};
    assert_true(fabs(dt_schedule_rate(&constant, 1) - 0.1) < 1e-15);
    assert_true(dt_schedule_rate(&constant, 4) == 0.4);
}

static void test_linear(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_LINEAR, .lr = 0.4, .eta_min = 0.1, .warmup = 2, .t_max = 8};
    assert_true(fabs(dt_schedule_rate(&s, 1) - 0.2) < 1e-15);
    assert_true(dt_schedule_rate(&s, 2) == 0.4);
    assert_true(fabs(dt_schedule_rate(&s, 5) - 0.25) < 1e-15);
    assert_true(dt_schedule_rate(&s, 8) == 0.1);
    assert_true(dt_schedule_rate(&s, 9) == 0.1);
}

static void test_step(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_STEP, .lr = 0.8, .step_size = 30, .gamma = 0.1};
    assert_true(dt_schedule_rate(&s, 0) == 0.8);
    assert_true(dt_schedule_rate(&s, 29.9) == 0.8);
    assert_true(fabs(dt_schedule_rate(&s, 30) - 0.08) < 1e-16);
    assert_true(fabs(dt_schedule_rate(&s, 95) - 0.0008) < 1e-18);
}

/* By the words of the configuration: a schedule without a row fails, and so does one whose rate stays as it is. */
static void test_each_choice(void **state)
{
    static const char *const words[] = {DT_SCHEDULES(DT_CHOICE_WORD)};
    static const double expected[][3] = {/* at x = 3, 6, 9 */
                                         [DT_SCHEDULE_CONSTANT] = {0.4, 0.4, 0.4},
                                         [DT_SCHEDULE_COSINE] = {0.325, 0.175, 0.1},
                                         [DT_SCHEDULE_STEP] = {0.4, 0.2, 0.1},
                                         [DT_SCHEDULE_LINEAR] = {0.3, 0.2, 0.1}};
    assert_int_equal(sizeof(expected) / sizeof(expected[0]), sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const dt_schedule s = {
            .kind = (dt_schedule_kind)i, .lr = 0.4, .eta_min = 0.1, .t_max = 9, .step_size = 4, .gamma = 0.5};
        for (int k = 0; k < 3; k++) {
            const double rate = dt_schedule_rate(&s, 3 * (k + 1));
            if (fabs(rate - expected[i][k]) > 1e-15) {
                fail_msg("%s at %d: %.17g instead of %.17g", words[i], 3 * (k + 1), rate, expected[i][k]);
            }
        }
        assert_int_equal(strcmp(words[i], "constant") == 0, expected[i][0] == expected[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_cosine_is_pytorchs),
        cmocka_unit_test(test_warmup_is_linear_and_meets_the_cosine),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_each_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

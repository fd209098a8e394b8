/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer in mixed precision: bf16 keeps the promises of fp32 (threads, ranks, memory plan, resume: the same bits),
 * a scaled loss changes no bit until it overflows, and an overflow skips the step, everywhere alike, until the scale
 * fits or the run gives up by name.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12 };

/* ---- configurations ---------------------------------------------------------------------------------------------- */

static void plain(toy *t) {}

static void in_bf16(toy *t)
{
    t->config.math = DT_DEVICE_MATH_BF16;
}

/* so large that it overflows until it was lowered twice */
static void overflowing(toy *t)
{
    t->config.scaling = toy_overflowing;
    t->config.scaling.hysteresis = 2;
}

static void overflowing_in_bf16(toy *t)
{
    in_bf16(t);
    overflowing(t);
}

/* Skips the test on a processor without it. */
static void need_bf16(void)
{
    if (dt_cpu_bf16_check() != DT_OK) {
        print_message("[  no bf16 ] %s\n", dt_error_text());
        skip();
    }
}

/* ---- exactness --------------------------------------------------------------------------------------------------- */

static void threads_and_plans(toy_change *change, const outcome *whole)
{
    static const struct {
        uint32_t threads;
        bool reuse, poison;
    } rows[] = {{1, true, false}, {3, true, false}, {4, true, true}, {2, false, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        toy t;
        outcome o;
        toy_init(&t);
        change(&t);
        t.config.threads = rows[i].threads;
        t.config.reuse = rows[i].reuse;
        t.config.poison = rows[i].poison;
        toy_start(&t);
        outcome_run(&t, &o, 0, STEPS);
        outcome_keep(&t, &o);
        outcome_same(whole, &o);
        outcome_drop(&o);
        toy_fini(&t);
    }
}

static void promises(toy_change *change)
{
    outcome whole;
    outcome_train(change, STEPS, &whole);
    threads_and_plans(change, &whole);
    for (int cut = 1; cut < STEPS; cut++) {
        outcome_resumed(change, STEPS, cut, &whole);
    }
    outcome_on_ranks(change, STEPS, 2, &whole);
    outcome_on_ranks(change, STEPS, 8, &whole);
    outcome_drop(&whole);
}

static void test_bf16_keeps_the_promises(void **state)
{
    need_bf16();
    promises(in_bf16);
}

static void test_skipped_steps_keep_the_promises(void **state)
{
    promises(overflowing);
}

static void test_skipped_steps_in_bf16_keep_the_promises(void **state)
{
    need_bf16();
    promises(overflowing_in_bf16);
}

static void test_bf16_is_near_fp32_but_not_the_same(void **state)
{
    outcome full, half;
    need_bf16();
    outcome_train(plain, STEPS, &full);
    outcome_train(in_bf16, STEPS, &half);
    assert_true(memcmp(full.loss, half.loss, sizeof(full.loss)) != 0);
    for (int i = 0; i < STEPS; i++) {
        if (!(fabs(half.loss[i] - full.loss[i]) <= 0.01 * full.loss[i])) {
            fail_msg("step %d: loss %g in bf16, %g in fp32", i + 1, half.loss[i], full.loss[i]);
        }
    }
    outcome_drop(&full);
    outcome_drop(&half);
}

/* ---- scaling ----------------------------------------------------------------------------------------------------- */

static void scaled(toy *t)
{
    t->config.scaling = (dt_scaler_config){.kind = DT_SCALING_STATIC, .initial = 8192, .max_skips = 1};
}

static void test_a_scale_that_fits_changes_no_bit(void **state)
{
    outcome one, scale;
    outcome_train(plain, STEPS, &one);
    outcome_train(scaled, STEPS, &scale);
    outcome_same_state(&one, &scale);
    assert_memory_equal(one.loss, scale.loss, sizeof(one.loss));
    assert_memory_equal(one.norm, scale.norm, sizeof(one.norm));
    assert_true(scale.scale[0] == 8192 && one.scale[0] == 1);
    outcome_drop(&one);
    outcome_drop(&scale);
}

/* hysteresis 2: the first overflow is let pass, each one in a row after it lowers the scale */
static void test_skipped_steps_advance_nothing(void **state)
{
    toy t;
    outcome one;
    outcome_train(plain, STEPS, &one);
    toy_init(&t);
    overflowing(&t);
    toy_start(&t);
    const size_t bytes = (size_t)t.params.total * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, dt_trainer_params(t.trainer), bytes);
    uint64_t skipped = 0;
    dt_step_report r = {.struct_size = sizeof(r)};
    for (;;) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
        assert_int_equal(r.step, skipped + 1); /* the data goes on */
        assert_true(r.learning_rate == one.rate[0]);
        if (dt_trainer_updates(t.trainer) > 0) {
            break;
        }
        skipped++;
        assert_memory_equal(before, dt_trainer_params(t.trainer), bytes);
        assert_true(dt_trainer_moment(t.trainer, 0)[0] == 0);
        assert_false(isfinite(r.grad_norm));
        assert_int_equal(dt_trainer_scaler(t.trainer)->skips, skipped);
        assert_true(dt_trainer_scaler(t.trainer)->scale == ldexp(1, 140 - 16 * ((int)skipped - 1)));
    }
    assert_true(skipped >= 2);
    assert_true(memcmp(before, dt_trainer_params(t.trainer), bytes) != 0);
    assert_int_equal(dt_trainer_updates(t.trainer), 1);
    assert_int_equal(dt_trainer_scaler(t.trainer)->overflows, skipped);
    assert_int_equal(dt_trainer_scaler(t.trainer)->skips, 0);
    assert_true(dt_trainer_overflow_rate(t.trainer) == (double)skipped / (double)(skipped + 1));
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_true(r.learning_rate == one.rate[1]);
    free(before);
    outcome_drop(&one);
    toy_fini(&t);
}

static void test_gives_up_by_name(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_init(&t);
    overflowing(&t);
    t.config.scaling.kind = DT_SCALING_STATIC;
    t.config.scaling.max_skips = 3;
    toy_start(&t);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(toy_step(&t, &r), DT_EDIVERGED);
    assert_non_null(strstr(dt_error_text(), "3 steps in a row"));
    assert_non_null(strstr(dt_error_text(), "the gradient of net."));
    toy_fini(&t);
}

/* A broken sample costs one step an epoch, not the run. */
static void test_one_bad_batch_is_survived(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_init(&t);
    scaled(&t);
    t.config.scaling.max_skips = 2;
    t.poison_sample = 40;
    toy_start(&t);
    for (int i = 0; i < 16; i++) { /* four epochs */
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    const uint64_t overflows = dt_trainer_scaler(t.trainer)->overflows;
    assert_true(overflows >= 1 && overflows <= 4); /* an epoch drops its last 22 samples */
    assert_int_equal(dt_trainer_updates(t.trainer), 16 - overflows);
    for (int64_t i = 0; i < t.params.total; i++) {
        assert_true(isfinite(dt_trainer_params(t.trainer)[i]));
    }
    toy_fini(&t);
}

static void allocates_nothing(toy_change *change)
{
    toy t;
    outcome o;
    toy_init(&t);
    change(&t);
    toy_start(&t);
    outcome_run(&t, &o, 0, 2);
    const uint64_t before = dt_alloc_calls();
    outcome_run(&t, &o, 2, STEPS);
    assert_int_equal(dt_alloc_calls() - before, 0);
    toy_fini(&t);
}

static void test_a_steady_step_allocates_nothing(void **state)
{
    allocates_nothing(overflowing);
}

static void test_a_steady_step_in_bf16_allocates_nothing(void **state)
{
    need_bf16();
    allocates_nothing(overflowing_in_bf16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_keeps_the_promises),
        cmocka_unit_test(test_skipped_steps_keep_the_promises),
        cmocka_unit_test(test_skipped_steps_in_bf16_keep_the_promises),
        cmocka_unit_test(test_bf16_is_near_fp32_but_not_the_same),
        cmocka_unit_test(test_a_scale_that_fits_changes_no_bit),
        cmocka_unit_test(test_skipped_steps_advance_nothing),
        cmocka_unit_test(test_gives_up_by_name),
        cmocka_unit_test(test_one_bad_batch_is_survived),
        cmocka_unit_test(test_a_steady_step_allocates_nothing),
        cmocka_unit_test(test_a_steady_step_in_bf16_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

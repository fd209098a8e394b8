/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants of a model: no step moves them, though weights decay; set between two steps they act from the next one on,
 * alike on a device, with any number of threads and of ranks.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "engine/device/host_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, SET_AT = 3 };

static void with_constant(toy *t)
{
    t->has_constant = true;
    t->config.slice_rows = 64;
    t->config.optim.weight_decay = 0.1;
}

static int64_t n_numbers(const toy *t)
{
    assert_string_equal(t->params.param[0].name, "net.constant.unit");
    return t->params.param[0].count;
}

static void set(toy *t, float value)
{
    float unit[16];
    assert_true(n_numbers(t) <= 16);
    for (int64_t i = 0; i < n_numbers(t); i++) {
        unit[i] = value + (float)i;
    }
    assert_int_equal(dt_trainer_constant_set(t->trainer, 0, unit), DT_OK);
}

static void assert_is(toy *t, float value, float step)
{
    float unit[16];
    assert_int_equal(dt_trainer_constant_get(t->trainer, 0, unit), DT_OK);
    for (int64_t i = 0; i < n_numbers(t); i++) {
        assert_true(unit[i] == value + step * (float)i);
    }
}

/* set_at < 0: never */
static void run(bool on_device, uint32_t threads, int set_at, outcome *o)
{
    toy t;
    toy_init(&t);
    with_constant(&t);
    t.config.threads = threads;
    if (on_device) {
        host_device_reset(UINT64_C(1) << 32);
        t.device_ops = host_device_ops();
        t.device = host_device();
        t.config.synchronous = true;
        t.config.graphs = true;
    }
    toy_start(&t);
    assert_is(&t, 1, 0);
    assert_int_equal(dt_trainer_vector_size(t.trainer), t.params.count - n_numbers(&t));
    assert_true(dt_trainer_vector_offset(t.trainer, 0) == UINT64_MAX);
    outcome_run(&t, o, 0, SET_AT);
    if (set_at == SET_AT) {
        set(&t, 0.5F);
    }
    outcome_run(&t, o, SET_AT, STEPS);
    assert_is(&t, set_at == SET_AT ? 0.5F : 1, set_at == SET_AT ? 1 : 0);
    outcome_keep(&t, o);
    for (int k = 1; k < 3; k++) { /* moments */
        for (int64_t i = 0; i < n_numbers(&t); i++) {
            assert_true(o->state[k][t.params.param[0].offset + i] == 0);
        }
    }
    toy_fini(&t);
}

static void test_no_step_moves_them(void **state)
{
    outcome never, once, other;
    run(false, 1, -1, &never);
    run(false, 1, SET_AT, &once);
    assert_true(once.loss[SET_AT - 1] == never.loss[SET_AT - 1]);
    assert_true(once.loss[SET_AT] != never.loss[SET_AT]); /* the very next step has it */
    run(false, 3, SET_AT, &other);
    outcome_same(&once, &other);
    outcome_drop(&other);
    run(true, 2, SET_AT, &other);
    outcome_same_state(&once, &other);
    outcome_same_reports(&once, &other);
    assert_true(host_device_read().launches + host_device_read().graph_launches > 0);
    outcome_drop(&other);
    outcome_drop(&once);
    outcome_drop(&never);
}

static void test_ranks_and_resumes(void **state)
{
    outcome one;
    outcome_train(with_constant, STEPS, &one);
    outcome_on_ranks(with_constant, STEPS, 3, &one);
    outcome_resumed(with_constant, STEPS, 5, &one);
    outcome_drop(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_step_moves_them),
        cmocka_unit_test(test_ranks_and_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

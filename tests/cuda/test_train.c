/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer on the CUDA module: its losses are those of the CPU but for rounding, and its bits do not depend on
 * graphs, on how many leaves a launch holds, or on an interruption. Emulated, or on a GPU with DT_CHECK_GPU=1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cuda/open.h"
#include "toy.h"

#define LOSS_TOL 1e-4 /* relative; differences of rounding grow from step to step */

enum { STEPS = 8 };

static const dt_device_ops *ops;
static dt_device *device;

typedef struct outcome {
    double loss[STEPS];
    float *params;
    size_t bytes;
} outcome;

static void run_steps(toy *t, outcome *o, int from, int to)
{
    for (int i = from; i < to; i++) {
        dt_step_report r = {.struct_size = sizeof(r)};
        if (toy_step(t, &r) != DT_OK) {
            fail_msg("step %d: %s", i, dt_error_text());
        }
        o->loss[i] = r.loss;
    }
    assert_int_equal(dt_trainer_hold(t->trainer), DT_OK);
    o->bytes = (size_t)t->params.total * sizeof(float);
    o->params = malloc(o->bytes);
    memcpy(o->params, dt_trainer_params(t->trainer), o->bytes);
}

static void start(toy *t, bool on_device, bool graphs, uint32_t micro_leaves)
{
    toy_init(t);
    t->config.slice_rows = 64;
    t->config.synchronous = true; /* every report is of its own step */
    t->config.graphs = graphs;
    t->config.micro_leaves = micro_leaves;
    if (on_device) {
        t->device_ops = ops;
        t->device = device;
    }
    toy_start(t);
}

static void train(outcome *o, bool on_device, bool graphs, uint32_t micro_leaves)
{
    toy t;
    start(&t, on_device, graphs, micro_leaves);
    run_steps(&t, o, 0, STEPS);
    toy_fini(&t);
}

static void same_bits(const outcome *a, const outcome *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
    assert_memory_equal(a->params, b->params, a->bytes);
}

static void test_losses_are_those_of_the_cpu(void **state)
{
    (void)state;
    outcome cpu, cuda;
    train(&cpu, false, true, 0);
    train(&cuda, true, true, 0);
    for (int i = 0; i < STEPS; i++) {
        if (!(fabs(cuda.loss[i] - cpu.loss[i]) <= LOSS_TOL * fabs(cpu.loss[i]))) {
            fail_msg("step %d: loss %.9g, on the CPU %.9g", i, cuda.loss[i], cpu.loss[i]);
        }
    }
    assert_true(cuda.loss[STEPS - 1] < cuda.loss[0]);
    free(cpu.params);
    free(cuda.params);
}

static void test_bits_do_not_depend_on_graphs_or_leaves_of_a_launch(void **state)
{
    (void)state;
    outcome first, other;
    train(&first, true, true, 8);
    for (uint32_t leaves = 1; leaves <= 8; leaves *= 2) {
        train(&other, true, leaves != 8, leaves); /* 8: without graphs */
        same_bits(&first, &other);
        free(other.params);
    }
    free(first.params);
}

static void test_resume_equals_no_interruption(void **state)
{
    (void)state;
    outcome whole, half, rest;
    toy t;
    train(&whole, true, true, 0);
    start(&t, true, true, 0);
    run_steps(&t, &half, 0, STEPS / 2);
    float *moment[2];
    for (uint32_t i = 0; i < 2; i++) {
        moment[i] = malloc(half.bytes);
        memcpy(moment[i], dt_trainer_moment(t.trainer, i), half.bytes);
    }
    toy_fini(&t);

    start(&t, true, true, 0);
    assert_int_equal(dt_trainer_hold(t.trainer), DT_OK);
    memcpy(dt_trainer_params(t.trainer), half.params, half.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(dt_trainer_moment(t.trainer, i), moment[i], half.bytes);
        free(moment[i]);
    }
    dt_trainer_step_set(t.trainer, STEPS / 2);
    memcpy(rest.loss, half.loss, sizeof(rest.loss));
    run_steps(&t, &rest, STEPS / 2, STEPS);
    toy_fini(&t);
    same_bits(&whole, &rest);
    free(whole.params);
    free(half.params);
    free(rest.params);
}

int main(void)
{
    const int status = cuda_open(&ops, &device);
    if (status != 0) {
        return status;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_are_those_of_the_cpu),
        cmocka_unit_test(test_bits_do_not_depend_on_graphs_or_leaves_of_a_launch),
        cmocka_unit_test(test_resume_equals_no_interruption),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ops->close(device);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer on the CUDA module: its losses are those of the CPU but for rounding, and its bits do not depend on
 * graphs, on how many leaves a launch holds, or on an interruption; in fp32, and stored in bf16 and in fp16.
 * Emulated, or on a GPU with DT_CHECK_GPU=1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/cuda/open.h"
#include "toy.h"

#define LOSS_TOL 1e-4 /* relative; differences of rounding grow from step to step */
#define HALF_TOL 2e-2 /* stored in 8 bits; errors of single values average out in a loss */

enum { STEPS = 8 };

static const dt_device_ops *ops;
static dt_device *device;
static uint32_t math = DT_DEVICE_MATH_F32;
static double first_scale; /* of the loss; 0: none */
static bool has_batch_norm;
static bool is_pair; /* an actor and a critic in turns, with target networks (toy.h) */

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
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    o->bytes = (size_t)t->params.total * sizeof(float);
    o->params = malloc(o->bytes);
    memcpy(o->params, dt_trainer_params(t->trainer), o->bytes);
}

static void start(toy *t, bool on_device, bool graphs, uint32_t micro_shards)
{
    static const uint32_t turns[] = {1, 3, 2};
    toy_init(t);
    t->is_pair = t->is_grouped = is_pair;
    t->has_batch_norm = has_batch_norm;
    t->turn = is_pair ? turns : NULL;
    t->n_turns = 3;
    for (int i = 0; i < 3; i++) {
        t->target[i] = (dt_target_rule){.tau = i == 2 ? 1 : 0.1, .every = 1 + (uint64_t)i};
    }
    t->config.slice_rows = 64;
    t->config.synchronous = true; /* every report is of its own step */
    t->config.graphs = graphs;
    t->config.micro_shards = micro_shards;
    if (on_device) {
        t->device_ops = ops;
        t->device = device;
        t->config.math = math;
    }
    if (on_device && first_scale > 0) {
        t->config.scaling = (dt_scaler_config){.kind = DT_SCALING_DYNAMIC,
                                               .initial = first_scale,
                                               .min = 1,
                                               .max = 65536,
                                               .growth = 2,
                                               .backoff = 0.5,
                                               .interval = 1000,
                                               .hysteresis = 1,
                                               .max_skips = 50};
    }
    toy_start(t);
}

static void train(outcome *o, bool on_device, bool graphs, uint32_t micro_shards)
{
    toy t;
    start(&t, on_device, graphs, micro_shards);
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
    outcome cpu, cuda;
    train(&cpu, false, true, 0);
    train(&cuda, true, true, 0);
    const double tol = math == DT_DEVICE_MATH_F32 ? LOSS_TOL : HALF_TOL;
    for (int i = 0; i < STEPS; i++) {
        if (!(fabs(cuda.loss[i] - cpu.loss[i]) <= tol * fabs(cpu.loss[i]))) {
            fail_msg("step %d: loss %.9g, on the CPU %.9g", i, cuda.loss[i], cpu.loss[i]);
        }
    }
    assert_true(cuda.loss[STEPS - 1] < cuda.loss[0]);
    free(cpu.params);
    free(cuda.params);
}

/* How many of them are not as the CPU has them. */
static uint64_t count_different(const outcome *a, const outcome *b, float tol)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->bytes / sizeof(float); i++) {
        n += !(fabsf(a->params[i] - b->params[i]) <= tol);
    }
    return n;
}

static void test_groups_and_targets(void **state)
{
    const uint32_t tried[] = {DT_DEVICE_MATH_F32, DT_DEVICE_MATH_BF16};
    outcome cpu, first, other;
    is_pair = true;
    train(&cpu, false, true, 0);
    for (size_t k = 0; k < sizeof(tried) / sizeof(tried[0]); k++) {
        math = tried[k];
        const double tol = math == DT_DEVICE_MATH_F32 ? LOSS_TOL : HALF_TOL;
        train(&first, true, true, 8);
        for (int i = 0; i < STEPS; i++) {
            assert_true(fabs(first.loss[i] - cpu.loss[i]) <= tol * (fabs(cpu.loss[i]) + 0.5));
        }
        assert_int_equal(first.bytes, cpu.bytes);
        assert_int_equal(count_different(&first, &cpu, math == DT_DEVICE_MATH_F32 ? 1e-3F : 0.1F), 0);
        for (uint32_t leaves = 2; leaves <= 8; leaves *= 4) {
            train(&other, true, leaves != 8, leaves); /* 8: without graphs */
            same_bits(&first, &other);
            free(other.params);
        }
        free(first.params);
    }
    free(cpu.params);
    math = DT_DEVICE_MATH_F32;
    is_pair = false;
}

static void test_bits_do_not_depend_on_graphs_or_leaves_of_a_launch(void **state)
{
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
    assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
    memcpy(dt_trainer_params(t.trainer), half.params, half.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(dt_trainer_moment(t.trainer, i), moment[i], half.bytes);
        free(moment[i]);
    }
    dt_trainer_step_number_set(t.trainer, STEPS / 2);
    memcpy(rest.loss, half.loss, sizeof(rest.loss));
    run_steps(&t, &rest, STEPS / 2, STEPS);
    toy_fini(&t);
    same_bits(&whole, &rest);
    free(whole.params);
    free(half.params);
    free(rest.params);
}

static void test_all_of_it_stored_in_half(void **state)
{
    for (math = DT_DEVICE_MATH_BF16; math <= DT_DEVICE_MATH_F16; math++) {
        first_scale = math == DT_DEVICE_MATH_F16 ? 1024 : 0;
        test_losses_are_those_of_the_cpu(state);
        test_bits_do_not_depend_on_graphs_or_leaves_of_a_launch(state);
        test_resume_equals_no_interruption(state);
    }
    math = DT_DEVICE_MATH_F32;
    first_scale = 0;
}

/* Running statistics move as on the CPU, whatever activations are stored in. */
static void test_batch_norm(void **state)
{
    has_batch_norm = true;
    for (math = DT_DEVICE_MATH_F32; math <= DT_DEVICE_MATH_F16; math++) {
        outcome cpu, cuda;
        first_scale = math == DT_DEVICE_MATH_F16 ? 1024 : 0;
        test_losses_are_those_of_the_cpu(state);
        train(&cpu, false, true, 0);
        train(&cuda, true, true, 0);
        assert_int_equal(count_different(&cuda, &cpu, math == DT_DEVICE_MATH_F32 ? 1e-3F : 0.1F), 0);
        free(cpu.params);
        free(cuda.params);
        test_bits_do_not_depend_on_graphs_or_leaves_of_a_launch(state);
    }
    math = DT_DEVICE_MATH_F32;
    first_scale = 0;
    has_batch_norm = false;
}

static void scale_params(toy *t, float by)
{
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    for (int64_t i = 0; i < t->params.total; i++) {
        dt_trainer_params(t->trainer)[i] *= by;
    }
}

/* Activations beyond 65504 are infinite in fp16, and in fp32 or bf16 they are not: no update, and a lower scale. */
static void test_activations_that_fp16_cannot_hold(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    math = DT_DEVICE_MATH_F16;
    first_scale = 1024;
    start(&t, true, true, 0);
    scale_params(&t, 0x1p20f);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
    assert_true(dt_trainer_scaler(t.trainer)->scale == 512);
    assert_int_equal(dt_trainer_scaler(t.trainer)->overflows, 1);
    assert_int_equal(dt_trainer_updates(t.trainer), 0);
    scale_params(&t, 0x1p-20f);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
    assert_true(dt_trainer_scaler(t.trainer)->scale == 512);
    assert_int_equal(dt_trainer_updates(t.trainer), 1);
    toy_fini(&t);

    math = DT_DEVICE_MATH_BF16;
    start(&t, true, true, 0);
    scale_params(&t, 0x1p20f);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
    assert_int_equal(dt_trainer_updates(t.trainer), 1);
    toy_fini(&t);
    math = DT_DEVICE_MATH_F32;
    first_scale = 0;
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
        cmocka_unit_test(test_groups_and_targets),
        cmocka_unit_test(test_all_of_it_stored_in_half),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_activations_that_fp16_cannot_hold),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ops->close(device);
    return failed;
}

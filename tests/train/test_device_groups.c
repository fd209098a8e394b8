/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of losses and target networks on a device made of host memory (tests/engine/device/host_device.h): a pair that
 * learns in turns ends in the bits of the CPU, captured or not, a step delayed or not, on any ranks and after resumes.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "base/mem.h"
#include "comm/tree_sum.h"
#include "engine/device/host_device.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, CRITIC = 1, ACTOR = 2, BOTH = 3 };

static void as_pair(toy *t)
{
    static const uint32_t turns[] = {CRITIC, BOTH, ACTOR, CRITIC, CRITIC};
    t->is_pair = t->is_grouped = true;
    t->config.slice_rows = 64; /* a leaf is one slice on the CPU too */
    t->target[0] = (dt_target_rule){.tau = 0.1, .every = 1};
    t->target[1] = (dt_target_rule){.tau = 0.3, .every = 2};
    t->target[2] = (dt_target_rule){.tau = 1, .every = 3};
    t->turn = turns;
    t->n_turns = 5;
    t->group[0].gradient_clip = 0.3;
    t->group[1].gradient_clip = -1;
    t->group[1].learning_rate = 5e-3;
}

static void without_groups(toy *t)
{
    as_pair(t);
    t->is_grouped = false;
    t->turn = NULL;
}

static void of_sgd(toy *t)
{
    as_pair(t);
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9};
}

/* Some steps overflow: what they would have moved stays, and is not counted. */
static void of_scaled_losses(toy *t)
{
    as_pair(t);
    t->config.scaling = toy_overflowing;
}

static toy_change *const changes[] = {as_pair, without_groups, of_sgd, of_scaled_losses};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };
static toy_change *now; /* the one of these that is tried */

static void on_device(toy *t)
{
    now(t);
    t->config.graphs = true;
    t->config.synchronous = true;
    t->device_ops = host_device_ops();
    t->device = host_device();
}

static void on_device_uncaptured(toy *t)
{
    on_device(t);
    t->config.graphs = false;
    t->config.micro_shards = 2;
}

static void on_device_behind(toy *t)
{
    on_device(t);
    t->config.synchronous = false;
}

static void on_device_in_buckets(toy *t)
{
    on_device(t);
    t->config.bucket_bytes = 8192;
}

static void test_equals_the_cpu(void **state)
{
    toy_change *const device[] = {on_device, on_device_uncaptured, on_device_behind};
    for (int c = 0; c < CHANGES; c++) {
        outcome cpu;
        outcome_train(changes[c], STEPS, &cpu);
        now = changes[c];
        for (int i = 0; i < 3; i++) {
            outcome there;
            host_device_reset(UINT64_C(1) << 32);
            outcome_train(device[i], STEPS, &there);
            outcome_same_state(&cpu, &there);
            if (device[i] != on_device_behind && changes[c] != of_scaled_losses) { /* of skipped steps another rate */
                outcome_same_reports(&cpu, &there);
            }
            outcome_drop(&there);
            assert_int_equal(host_device_read().live_bytes, 0);
        }
        outcome_drop(&cpu);
    }
}

static void test_ranks_and_resumes_equal_the_cpu(void **state)
{
    for (int c = 0; c < CHANGES; c++) {
        outcome cpu, one, there[4];
        outcome_train(changes[c], STEPS, &cpu);
        now = changes[c];
        host_device_reset(UINT64_C(1) << 32);
        outcome_train(on_device, STEPS, &one);
        for (uint32_t ranks = 2; ranks <= 4; ranks++) {
            outcome_of_ranks(on_device_in_buckets, NULL, 0, STEPS, ranks, there);
            for (uint32_t i = 0; i < ranks; i++) {
                outcome_same_state(&cpu, &there[i]);
                outcome_same(&one, &there[i]);
                outcome_drop(&there[i]);
            }
        }
        for (int cut = 1; cut < STEPS; cut += 3) {
            outcome_resumed(on_device, STEPS, cut, &one);
        }
        outcome_drop(&one);
        outcome_drop(&cpu);
    }
}

/* Each choice of groups is captured once for each of the two buffers, whatever comes between. */
static void test_steady_steps(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    host_device_reset(UINT64_C(1) << 32);
    toy_init(&t);
    now = as_pair;
    on_device(&t);
    t.config.epochs = 100;
    t.count = 32 * 64; /* one epoch of 64 steps */
    toy_start(&t);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    const host_device_counts before = host_device_read();
    const uint64_t allocs = dt_alloc_calls();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    const host_device_counts after = host_device_read();
    assert_int_equal(after.graph_launches - before.graph_launches, 10);
    assert_int_equal(after.captures, before.captures);
    assert_int_equal(dt_alloc_calls(), allocs);
    toy_fini(&t);
}

/* Asked for by hand between steps that are under way. */
static void test_a_copy_is_exact(void **state)
{
    outcome o[2];
    for (int there = 0; there < 2; there++) {
        toy t;
        host_device_reset(UINT64_C(1) << 32);
        toy_init(&t);
        as_pair(&t);
        t.target[2].every = 0;
        if (there == 1) {
            now = as_pair;
            on_device_behind(&t);
            t.target[2].every = 0;
        }
        toy_start(&t);
        outcome_run(&t, &o[there], 0, 5);
        assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "past"), DT_OK);
        outcome_run(&t, &o[there], 5, STEPS);
        outcome_keep(&t, &o[there]);
        toy_fini(&t);
    }
    outcome_same_state(&o[0], &o[1]);
    outcome_drop(&o[0]);
    outcome_drop(&o[1]);
}

typedef struct acts { /* what the actor and its past do */
    float a[2000], past[2000];
    int64_t n;
} acts;

static dt_status keep_acts(void *user, const dt_rows *rows)
{
    acts *k = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *a = dt_rows_get_output(rows, "a", dim, &rank), *past = dt_rows_get_output(rows, "a_past", dim, &rank);
    const int64_t n = dim[0] * dim[1];
    assert_true(k->n + n <= 2000);
    memcpy(k->a + k->n, a, (size_t)n * sizeof(*a));
    memcpy(k->past + k->n, past, (size_t)n * sizeof(*past));
    k->n += n;
    return DT_OK;
}

static void test_they_act(void **state)
{
    static acts k[2];
    for (int there = 0; there < 2; there++) {
        toy t;
        outcome unused;
        host_device_reset(UINT64_C(1) << 32);
        toy_init(&t);
        now = as_pair;
        (there == 1 ? on_device : as_pair)(&t);
        toy_start(&t);
        outcome_run(&t, &unused, 0, 4);
        assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, &k[there], keep_acts), DT_OK);
        toy_fini(&t);
    }
    assert_true(k[0].n > 100);
    assert_true(memcmp(k[0].a, k[0].past, sizeof(k[0].a)) != 0);
    assert_memory_equal(&k[0], &k[1], sizeof(k[0]));
}

/* Where groups share a block of the arena, its sum of squares would be nobody's. */
static void test_a_shared_block_is_refused(void **state)
{
    toy t;
    toy_init(&t);
    now = as_pair;
    on_device(&t);
    t.is_crowded = true;
    assert_int_equal(toy_try_start(&t), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "critic.w1"));
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_cpu), cmocka_unit_test(test_ranks_and_resumes_equal_the_cpu),
        cmocka_unit_test(test_steady_steps),   cmocka_unit_test(test_a_copy_is_exact),
        cmocka_unit_test(test_they_act),       cmocka_unit_test(test_a_shared_block_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

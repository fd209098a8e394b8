/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer's device path on a device made of host memory (tests/engine/device/host_device.h), whose kernels are the
 * CPU's: staging at capacity, live sizes, capture and replay, late results, groups of leaves, memory that grows,
 * checkpoints and failures must give the bits of the CPU path.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/device/host_device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 11 };

static void init(toy *t, bool on_device)
{
    toy_init(t);
    t->config.slice_rows = 64; /* a leaf is one slice on the CPU too */
    t->config.graphs = true;
    if (on_device) {
        host_device_reset(UINT64_C(1) << 32);
        t->device_ops = host_device_ops();
        t->device = host_device();
    }
}

static void finish(toy *t, outcome *o)
{
    outcome_run(t, o, 0, STEPS);
    outcome_keep(t, o);
    toy_fini(t);
}

static void on_cpu(outcome *o)
{
    toy t;
    init(&t, false);
    toy_start(&t);
    finish(&t, o);
}

static void test_equals_the_cpu(void **state)
{
    outcome cpu, device;
    toy t;
    on_cpu(&cpu);
    for (uint32_t group = 1; group <= 8; group *= 2) {
        for (int graphs = 0; graphs < 2; graphs++) {
            init(&t, true);
            t.config.synchronous = true;
            t.config.graphs = graphs != 0;
            t.config.micro_shards = group;
            toy_start(&t);
            finish(&t, &device);
            outcome_same_state(&cpu, &device);
            outcome_same_reports(&cpu, &device);
            outcome_drop(&device);
        }
    }
    outcome_drop(&cpu);
}

/* Stored samples in addition to live ones, drawn again between steps. */
static void test_mixed_data_equals_the_cpu(void **state)
{
    enum { HALF = 5 };
    outcome o[2];
    for (int on_device = 0; on_device < 2; on_device++) {
        toy t, stored;
        init(&t, on_device != 0);
        toy_init(&stored);
        stored.count = 40;
        t.config.synchronous = true;
        t.is_live = true;
        t.stored = &stored;
        t.n_stored = 60;
        toy_start(&t);
        dt_trainer_discard_prefetched(t.trainer);
        outcome_run(&t, &o[on_device], 0, HALF);
        dt_trainer_discard_prefetched(t.trainer);
        outcome_run(&t, &o[on_device], HALF, STEPS);
        outcome_keep(&t, &o[on_device]);
        toy_fini(&t);
    }
    outcome_same_state(&o[0], &o[1]);
    outcome_same_reports(&o[0], &o[1]);
    outcome_drop(&o[0]);
    outcome_drop(&o[1]);
}

static void test_sgd_and_frozen_tensors(void **state)
{
    outcome cpu, device;
    toy t;
    for (int on_device = 0; on_device < 2; on_device++) {
        init(&t, on_device != 0);
        t.config.synchronous = true;
        t.config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 1e-3};
        t.freeze = "net.w1";
        toy_start(&t);
        finish(&t, on_device ? &device : &cpu);
    }
    outcome_same_state(&cpu, &device);
    outcome_same_reports(&cpu, &device);
    outcome_drop(&cpu);
    outcome_drop(&device);
}

/* The device decides by itself, a step before the host knows: schedule, update count and scale must come out alike. */
static void test_skipped_steps_equal_the_cpu(void **state)
{
    dt_scaler_config scaling = toy_overflowing;
    scaling.hysteresis = 2;
    toy t;
    outcome cpu, device;
    init(&t, false);
    t.config.scaling = scaling;
    toy_start(&t);
    outcome_run(&t, &cpu, 0, STEPS);
    outcome_keep(&t, &cpu);
    const uint64_t updates = dt_trainer_updates(t.trainer);
    const dt_scaler scaler = *dt_trainer_scaler(t.trainer);
    assert_in_range(updates, 1, STEPS - 2);
    toy_fini(&t);
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        init(&t, true);
        t.config.scaling = scaling;
        t.config.synchronous = synchronous != 0;
        toy_start(&t);
        outcome_run(&t, &device, 0, STEPS);
        outcome_keep(&t, &device);
        outcome_same_state(&cpu, &device);
        assert_int_equal(dt_trainer_updates(t.trainer), updates);
        const dt_scaler *s = dt_trainer_scaler(t.trainer);
        assert_true(s->scale == scaler.scale && s->good == scaler.good && s->tolerance == scaler.tolerance);
        assert_int_equal(s->skips, scaler.skips);
        outcome_drop(&device);
        toy_fini(&t);
    }
    outcome_drop(&cpu);
}

/* Results come one step late, but for the first step and the last of an epoch (4 steps each here). */
/* However many steps were made, and whether the last one was skipped: who holds knows all of them. */
static void test_held_state_counts_all_steps(void **state)
{
    for (int steps = 1; steps <= STEPS; steps++) {
        outcome o[2];
        for (int on = 0; on < 2; on++) {
            toy t;
            init(&t, on != 0);
            t.config.scaling = toy_overflowing;
            t.config.scaling.hysteresis = 2;
            toy_start(&t);
            outcome_run(&t, &o[on], 0, steps);
            outcome_keep(&t, &o[on]);
            toy_fini(&t);
        }
        outcome_same_state(&o[0], &o[1]);
        assert_int_equal(o[0].scaler.overflows, o[1].scaler.overflows);
        assert_int_equal(o[0].scaler.skips, o[1].scaler.skips);
        assert_true(o[0].scaler.scale == o[1].scaler.scale && o[0].scaler.tolerance == o[1].scaler.tolerance);
        outcome_drop(&o[0]);
        outcome_drop(&o[1]);
    }
}

static void test_results_come_late(void **state)
{
    outcome cpu, device;
    toy t;
    on_cpu(&cpu);
    init(&t, true);
    toy_start(&t);
    finish(&t, &device);
    outcome_same_state(&cpu, &device);
    for (int i = 0; i < STEPS; i++) {
        const int reported = i == 0 || (i + 1) % 4 == 0 ? i : i - 1;
        assert_true(device.loss[i] == cpu.loss[reported]);
        assert_true(device.norm[i] == cpu.norm[reported]);
        assert_true(device.rate[i] == cpu.rate[reported]);
    }
    outcome_drop(&cpu);
    outcome_drop(&device);
}

/* Once warm, a step is one launch of a graph and one wait for the step before; it allocates nothing. */
static void test_steady_step(void **state)
{
    toy t;
    init(&t, true);
    t.config.epochs = 100;
    t.count = 32 * 64; /* one epoch of 64 steps */
    toy_start(&t);
    dt_step_report r = {.struct_size = sizeof(r)};
    for (int i = 0; i < 40; i++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    const host_device_counts before = host_device_read();
    const uint64_t allocs = dt_alloc_calls();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    const host_device_counts after = host_device_read();
    assert_int_equal(after.graph_launches - before.graph_launches, 10);
    assert_int_equal(after.launches, before.launches);
    assert_int_equal(after.captures, before.captures);
    assert_int_equal(after.allocations, before.allocations);
    assert_true(after.syncs - before.syncs <= 30); /* a buffer's copy, the step before, and its repetition */
    assert_int_equal(dt_alloc_calls(), allocs);
    toy_fini(&t);
}

static void test_resume_equals_no_interruption(void **state)
{
    outcome cpu, device;
    on_cpu(&cpu);
    for (int cut = 1; cut < STEPS; cut += 3) {
        toy a, b;
        outcome half;
        init(&a, true);
        toy_start(&a);
        outcome_run(&a, &half, 0, cut);
        outcome_keep(&a, &half);
        device = half;
        outcome_run(&a, &device, cut, STEPS); /* looking at the state does not disturb it */
        outcome_keep(&a, &device);
        outcome_same_state(&cpu, &device);
        outcome_drop(&device);
        toy_fini(&a);

        init(&b, true);
        toy_start(&b);
        outcome_restore(&b, &half, cut);
        outcome_run(&b, &device, cut, STEPS);
        outcome_keep(&b, &device);
        outcome_same_state(&cpu, &device);
        outcome_drop(&device);
        outcome_drop(&half);
        toy_fini(&b);
    }
    outcome_drop(&cpu);
}

/* A later epoch may hold a larger leaf than any of the first: memory grows, graphs are captured again. */
static void test_memory_grows(void **state)
{
    outcome cpu, device;
    toy t;
    for (int on_device = 0; on_device < 2; on_device++) {
        init(&t, on_device != 0);
        t.count = 37; /* one step an epoch; the others come in another order */
        t.config.shards = 4;
        t.config.batch = 24;
        t.config.synchronous = true;
        toy_start(&t);
        finish(&t, on_device ? &device : &cpu);
    }
    outcome_same_state(&cpu, &device);
    outcome_same_reports(&cpu, &device);
    outcome_drop(&cpu);
    outcome_drop(&device);
}

static void test_micro_batch_follows_memory(void **state)
{
    outcome cpu, device;
    toy t;
    on_cpu(&cpu);
    init(&t, true);
    t.config.synchronous = true;
    toy_start(&t);
    const uint64_t peak = host_device_read().peak_bytes;
    toy_fini(&t);

    init(&t, true);
    t.config.synchronous = true;
    host_device_reset(peak); /* 5 % are left to the driver, so not everything fits */
    toy_start(&t);
    finish(&t, &device);
    assert_true(host_device_read().peak_bytes < peak);
    outcome_same_state(&cpu, &device);
    outcome_drop(&device);

    init(&t, true);
    host_device_reset(40000);
    assert_int_equal(toy_try_start(&t), DT_ENOMEM);
    toy_fini(&t);
    outcome_drop(&cpu);
    assert_int_equal(host_device_read().live_bytes, 0);
}

/* Of all leaves at once one arena of sums is kept; of groups one for each sum that waits for its sibling. */
static void test_sums_that_are_kept(void **state)
{
    const struct {
        uint32_t leaves, group, arenas;
    } kept[] = {{8, 8, 1}, {8, 4, 1}, {8, 2, 2}, {8, 1, 3}, {16, 1, 4}, {128, 128, 1}};
    for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++) {
        toy t;
        dt_trainer_memory m;
        init(&t, true);
        t.config.shards = kept[k].leaves;
        t.config.batch = kept[k].leaves > 16 ? kept[k].leaves : t.config.batch;
        t.config.micro_shards = kept[k].group;
        toy_start(&t);
        dt_trainer_memory_get(t.trainer, &m);
        assert_int_equal(dt_trainer_concurrent_shards(t.trainer), kept[k].group);
        assert_int_equal(m.grads, kept[k].arenas * m.params);
        assert_true(dt_trainer_reduction_bytes(t.trainer) >=
                    (2 * kept[k].leaves + 1) * sizeof(float) * t.params.trained_count);
        dt_step_report r = {.struct_size = sizeof(r)};
        assert_int_equal(toy_step(&t, &r), DT_OK);
        toy_fini(&t);
    }
}

/* What the plan could not know: an allocation fails. Once the smaller group, then a clear stop, and nothing leaks. */
static void test_out_of_memory(void **state)
{
    outcome cpu, device;
    bool was_smaller = false;
    on_cpu(&cpu);
    for (uint32_t n = 1;; n++) {
        toy t;
        init(&t, true);
        t.config.synchronous = true;
        host_device_fail_alloc(n);
        const dt_status st = toy_try_start(&t);
        if (st == DT_OK) {
            const float scale[2] = {1, 1};
            host_device_fail_alloc(0);
            assert_int_equal(dt_trainer_step_input_set(t.trainer, "scale", scale, 2), DT_OK);
            finish(&t, &device);
            outcome_same_state(&cpu, &device);
            outcome_drop(&device);
            was_smaller = true;
            if (host_device_read().allocations < n) {
                break;
            }
        } else {
            assert_int_equal(st, DT_ENOMEM);
            assert_error_has("no room for");
            toy_fini(&t);
        }
        assert_int_equal(host_device_read().live_bytes, 0);
    }
    assert_true(was_smaller);
    outcome_drop(&cpu);
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

typedef struct seen {
    float y[1024], x[4096];
    uint64_t sample[256];
    int64_t n_y, n_x, n_samples, n_calls;
} seen;

static dt_status look(void *user, const dt_rows *rows)
{
    seen *o = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0, n = 0;
    const float *y = dt_rows_get_output(rows, "y_hat", dim, &rank);
    assert_non_null(y);
    assert_int_equal(rank, 2);
    assert_int_equal(dim[1], 2);
    memcpy(o->y + o->n_y, y, (size_t)(dim[0] * 2) * sizeof(float));
    o->n_y += dim[0] * 2;
    const float *x = dt_rows_get_output(rows, "x", dim, &rank);
    memcpy(o->x + o->n_x, x, (size_t)(dim[0] * 5) * sizeof(float));
    o->n_x += dim[0] * 5;
    const uint64_t *sample = dt_rows_samples(rows, &n);
    memcpy(o->sample + o->n_samples, sample, n * sizeof(*sample));
    o->n_samples += n;
    o->n_calls++;
    assert_null(dt_rows_get_output(rows, "no such name", dim, &rank));
    return DT_OK;
}

static void test_evaluation(void **state)
{
    static seen cpu[3], device[3];
    outcome unused;
    memset(cpu, 0, sizeof(cpu));
    memset(device, 0, sizeof(device));
    for (int on_device = 0; on_device < 2; on_device++) {
        toy t;
        seen *o = on_device ? device : cpu;
        init(&t, on_device != 0);
        toy_start(&t);
        assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, &o[0], look), DT_OK); /* before any step */
        outcome_run(&t, &unused, 0, 6);
        assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, &o[1], look), DT_OK); /* a step is in flight */
        assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
        outcome_run(&t, &unused, 6, STEPS);
        assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
        assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, &o[2], look), DT_OK); /* after a checkpoint */
        toy_fini(&t);
    }
    assert_int_equal(cpu[0].n_samples, 150);
    assert_memory_equal(cpu, device, sizeof(cpu));
    assert_int_equal(host_device_read().live_bytes, 0);
}

/* ---- several ranks ----------------------------------------------------------------------------------------------- */

/* Virtual ranks share the device of host memory; a GPU each has one. */
static void on_device(toy *t)
{
    t->config.slice_rows = 64;
    t->config.graphs = true;
    t->config.synchronous = true;
    t->config.bucket_bytes = 8192; /* several */
    t->device_ops = host_device_ops();
    t->device = host_device();
}

static void on_device_in_groups(toy *t)
{
    on_device(t);
    t->config.micro_shards = 2; /* of 3 leaves: one at a time */
    t->config.graphs = false;
}

static void on_device_clipped(toy *t)
{
    on_device(t);
    t->config.gradient_clip = 0.01;
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 1e-3};
    t->freeze = "net.w1";
}

static void on_device_scaled(toy *t)
{
    on_device(t);
    t->config.scaling = toy_overflowing;
    t->config.scaling.hysteresis = 2;
}

static void on_cpu_alike(toy_change *change, outcome *o)
{
    toy t;
    toy_init(&t);
    change(&t);
    t.device_ops = NULL;
    t.device = NULL;
    t.config.micro_shards = 0;
    toy_start(&t);
    finish(&t, o);
}

/* The last batch of an epoch has fewer samples than there are leaves, and is drawn by weight. */
static void on_device_of_what_is_left(toy *t)
{
    on_device(t);
    t->count = 4 * t->config.batch + 3;
    t->config.keep_last = true;
    t->config.sampling = DT_SAMPLING_WEIGHTED;
    t->config.readers = 2;
}

static void test_ranks_equal_the_cpu(void **state)
{
    enum { MOST = 8 };
    toy_change *const change[] = {on_device, on_device_in_groups, on_device_clipped, on_device_scaled,
                                  on_device_of_what_is_left};
    host_device_reset(UINT64_C(1) << 32);
    for (size_t k = 0; k < sizeof(change) / sizeof(change[0]); k++) {
        outcome cpu, one, rank[MOST];
        on_cpu_alike(change[k], &cpu);
        outcome_train(change[k], STEPS, &one);
        for (uint32_t n = 2; n <= MOST; n += n < 5 ? 1 : 3) {
            outcome_of_ranks(change[k], NULL, 0, STEPS, n, rank);
            for (uint32_t i = 0; i < n; i++) {
                outcome_same_state(&cpu, &rank[i]);
                outcome_same(&one, &rank[i]); /* of skipped steps a device reports another rate */
                outcome_drop(&rank[i]);
            }
        }
        outcome_drop(&one);
        outcome_drop(&cpu);
    }
    assert_int_equal(host_device_read().live_bytes, 0);
}

static void test_ranks_resume_on_others(void **state)
{
    enum { CUT = 5 };
    const uint32_t to[] = {1, 2, 4};
    outcome cpu, half[3], rest[4];
    on_cpu_alike(on_device, &cpu);
    outcome_of_ranks(on_device, NULL, 0, CUT, 3, half);
    for (size_t k = 0; k < sizeof(to) / sizeof(to[0]); k++) {
        outcome_of_ranks(on_device, &half[2], CUT, STEPS, to[k], rest);
        for (uint32_t i = 0; i < to[k]; i++) {
            outcome_same(&cpu, &rest[i]);
            outcome_drop(&rest[i]);
        }
    }
    for (int i = 0; i < 3; i++) {
        outcome_drop(&half[i]);
    }
    outcome_drop(&cpu);
}

/* One rank cannot read: it takes part in the sum, and all end with what it says. */
typedef struct failing {
    toy t;
    dt_status st;
    dt_error why;
    pthread_t thread;
} failing;

static void *fail_on_rank(void *arg)
{
    failing *f = arg;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_start(&f->t);
    for (int i = 0; i < 60 && f->st == DT_OK; i++) {
        f->st = toy_step(&f->t, &r);
    }
    dt_error_save(&f->why, f->st);
    return NULL;
}

/* Ranks of one sim world, each a thread with a device, of which a sample is broken or poisoned, to their ends. */
static void fail_on_ranks(failing *f, int ranks, int64_t broken_sample, int64_t poison_sample)
{
    enum { MOST = 4 };
    dt_comm *comm[MOST];
    assert_in_range(ranks, 1, MOST);
    assert_int_equal(dt_comm_create_simulated((uint32_t)ranks, 30, comm), DT_OK);
    for (int i = 0; i < ranks; i++) {
        memset(&f[i], 0, sizeof(f[i]));
        toy_init(&f[i].t);
        on_device(&f[i].t);
        f[i].t.comm = comm[i];
        f[i].t.broken_sample = broken_sample; /* -1: none */
        f[i].t.poison_sample = poison_sample;
        assert_int_equal(pthread_create(&f[i].thread, NULL, fail_on_rank, &f[i]), 0);
    }
    for (int i = 0; i < ranks; i++) {
        pthread_join(f[i].thread, NULL);
    }
}

static void test_a_rank_that_fails_is_named(void **state)
{
    enum { RANKS = 3 };
    failing f[RANKS];
    fail_on_ranks(f, RANKS, 3, -1);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(f[i].st, DT_EDATA);
        assert_int_equal(dt_error_restore(&f[i].why), DT_EDATA);
        assert_error_has("sample 3 cannot be read");
        toy_fini(&f[i].t);
    }
    assert_int_equal(host_device_read().live_bytes, 0);
}

static void test_ranks_diverge_alike(void **state)
{
    enum { RANKS = 2 };
    failing f[RANKS];
    fail_on_ranks(f, RANKS, -1, 17);
    char first[sizeof(f[0].why.text)];
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(f[i].st, DT_EDIVERGED);
        assert_int_equal(dt_error_restore(&f[i].why), DT_EDIVERGED);
        assert_error_has("the gradient of net.");
        assert_error_has("is not finite");
        if (i > 0) {
            assert_string_equal(first, dt_error_text());
        }
        snprintf(first, sizeof(first), "%s", dt_error_text());
        toy_fini(&f[i].t);
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void test_divergence_is_named(void **state)
{
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        toy t;
        init(&t, true);
        t.config.synchronous = synchronous != 0;
        t.poison_sample = 17;
        toy_start(&t);
        dt_step_report r = {.struct_size = sizeof(r)};
        dt_status st = DT_OK;
        for (int i = 0; i < 60 && st == DT_OK; i++) { /* an epoch leaves some samples out */
            st = toy_step(&t, &r);
        }
        assert_int_equal(st, DT_EDIVERGED);
        assert_error_has("the gradient of net.");
        assert_error_has("is not finite");
        /* the update was not made */
        assert_int_equal(dt_trainer_synchronize(t.trainer), DT_OK);
        for (int64_t i = 0; i < t.params.total; i++) {
            assert_true(isfinite(dt_trainer_params(t.trainer)[i]));
        }
        toy_fini(&t);
    }
}

static void test_errors(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    init(&t, true);
    t.broken_sample = 3;
    toy_start(&t);
    dt_status st = DT_OK;
    for (int i = 0; i < 60 && st == DT_OK; i++) {
        st = toy_step(&t, &r);
    }
    assert_int_equal(st, DT_EDATA);
    assert_error_has("sample 3 cannot be read");
    toy_fini(&t);

    init(&t, true);
    t.config.half = DT_HALF_BF16;
    assert_int_equal(toy_try_start(&t), DT_EUNSUPPORTED);
    assert_error_has("comm.wire = \"bf16\" rounds gradients where the CPU adds them, and a GPU computes here");
    toy_fini(&t);

    init(&t, true);
    t.is_parted = true;
    assert_int_equal(toy_try_start(&t), DT_EUNSUPPORTED);
    assert_error_has("stores: its port must declare which rows it counts");
    toy_fini(&t);
    assert_int_equal(host_device_read().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_cpu),
        cmocka_unit_test(test_mixed_data_equals_the_cpu),
        cmocka_unit_test(test_sgd_and_frozen_tensors),
        cmocka_unit_test(test_skipped_steps_equal_the_cpu),
        cmocka_unit_test(test_held_state_counts_all_steps),
        cmocka_unit_test(test_results_come_late),
        cmocka_unit_test(test_steady_step),
        cmocka_unit_test(test_resume_equals_no_interruption),
        cmocka_unit_test(test_memory_grows),
        cmocka_unit_test(test_micro_batch_follows_memory),
        cmocka_unit_test(test_sums_that_are_kept),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_ranks_equal_the_cpu),
        cmocka_unit_test(test_ranks_resume_on_others),
        cmocka_unit_test(test_a_rank_that_fails_is_named),
        cmocka_unit_test(test_ranks_diverge_alike),
        cmocka_unit_test(test_divergence_is_named),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer's promises: threads and virtual ranks change no bit, a resumed run equals the uninterrupted one, slices
 * only change what they must, a steady step allocates nothing, training learns, and failures say what happened.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12 };

static void train(uint32_t threads, bool reuse, bool poison, bool fuse, outcome *o)
{
    toy t;
    toy_init(&t);
    t.config.threads = threads;
    t.config.reuse = reuse;
    t.config.poison = poison;
    t.config.fuse = fuse;
    toy_start(&t);
    outcome_run(&t, o, 0, STEPS);
    outcome_keep(&t, o);
    toy_fini(&t);
}

static void test_threads_change_no_bit(void **state)
{
    outcome one;
    train(1, true, false, true, &one);
    for (uint32_t threads = 2; threads <= 4; threads++) {
        outcome many;
        train(threads, true, false, true, &many);
        outcome_same(&one, &many);
        outcome_drop(&many);
    }
    outcome_drop(&one);
}

static void train_live(uint32_t threads, bool is_live, double dropout, outcome *o)
{
    toy t;
    toy_init(&t);
    t.config.threads = threads;
    t.is_live = is_live;
    t.dropout = dropout;
    toy_start(&t);
    outcome_run(&t, o, 0, STEPS);
    assert_int_equal(t.is_keyless, is_live && dropout == 0);
    outcome_keep(&t, o);
    toy_fini(&t);
}

/* Read by the workers themselves instead of ahead, with or without the field that nothing looks at. */
static void test_a_live_source_changes_no_bit(void **state)
{
    for (int with = 0; with < 2; with++) {
        outcome ahead;
        train_live(2, false, 0.1 * with, &ahead);
        for (uint32_t threads = 1; threads <= 4; threads++) {
            outcome live;
            train_live(threads, true, 0.1 * with, &live);
            outcome_same(&ahead, &live);
            outcome_drop(&live);
        }
        outcome_drop(&ahead);
    }
}

/* What is read by parts goes into slices of one each, on any threads. */
static void test_parts(void **state)
{
    outcome o[4];
    for (uint32_t threads = 1; threads <= 4; threads++) {
        toy t;
        toy_init(&t);
        t.config.threads = threads;
        t.config.slice_rows = 64;
        t.is_parted = true;
        toy_start(&t);
        outcome_run(&t, &o[threads - 1], 0, STEPS);
        outcome_keep(&t, &o[threads - 1]);
        toy_fini(&t);
    }
    for (int i = 0; i < 4; i++) {
        outcome_same(&o[0], &o[i]);
    }
    for (int i = 0; i < 4; i++) {
        outcome_drop(&o[i]);
    }
}

static void test_memory_plan_changes_no_bit(void **state)
{
    outcome reuse, separate, poisoned;
    train(2, true, false, true, &reuse);
    train(2, false, false, true, &separate);
    train(2, true, true, true, &poisoned);
    outcome_same(&reuse, &separate);
    outcome_same(&reuse, &poisoned);
    outcome_drop(&reuse);
    outcome_drop(&separate);
    outcome_drop(&poisoned);
}

/* ---- virtual ranks, resume, allocation, learning ----------------------------------------------------------------- */

static void on_two_threads(toy *t)
{
    t->config.threads = 2;
}

/* More leaves than there are samples of a batch: most hold one or none. */
static void of_many_leaves(toy *t)
{
    t->config.shards = 256;
    t->config.bucket_bytes = 1;
}

static void test_many_leaves_change_no_bit_over_ranks(void **state)
{
    outcome one;
    outcome_train(of_many_leaves, 4, &one);
    outcome_on_ranks(of_many_leaves, 4, 3, &one);
    outcome_on_ranks(of_many_leaves, 4, 8, &one);
    outcome_drop(&one);
}

static void test_ranks_change_no_bit(void **state)
{
    outcome one;
    outcome_train(on_two_threads, STEPS, &one);
    static const uint32_t counts[] = {2, 3, 4, 8};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        outcome_on_ranks(NULL, STEPS, counts[c], &one);
    }
    outcome_drop(&one);
}

/* A last batch of what is left, drawn by weight and read by three threads; it has fewer samples than leaves. */
static void of_what_is_left(toy *t)
{
    t->count = 4 * t->config.batch + 3;
    t->config.keep_last = true;
    t->config.sampling = DT_SAMPLING_WEIGHTED;
    t->config.readers = 3;
    t->config.prefetch = 4;
}

static void of_what_is_left_in_order(toy *t)
{
    of_what_is_left(t);
    t->config.sampling = DT_SAMPLING_SEQUENTIAL;
    t->config.readers = 1;
    t->config.threads = 2;
}

/* Not even one batch: all there is, less than a sample for each leaf. */
static void of_too_few(toy *t)
{
    of_what_is_left(t);
    t->config.shards = 4;
    t->count = 3;
}

static void test_fewer_than_a_batch_are_one(void **state)
{
    outcome one;
    outcome_train(of_too_few, STEPS, &one);
    outcome_on_ranks(of_too_few, STEPS, 2, &one);
    outcome_on_ranks(of_too_few, STEPS, 3, &one);
    outcome_resumed(of_too_few, STEPS, 3, &one);
    outcome_drop(&one);
    toy t;
    dt_step_report r;
    toy_init(&t);
    of_too_few(&t);
    toy_start(&t);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(r.samples, 3);
    assert_true(r.epoch_end);
    assert_int_equal(dt_trainer_steps_per_epoch(t.trainer), 1);
    toy_fini(&t);
}

static void test_what_is_left_is_a_batch(void **state)
{
    static void (*const of[])(toy *) = {of_what_is_left, of_what_is_left_in_order};
    for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
        outcome one;
        outcome_train(of[k], STEPS, &one);
        outcome_on_ranks(of[k], STEPS, 2, &one);
        outcome_on_ranks(of[k], STEPS, 3, &one);
        for (int cut = 3; cut < 7; cut++) { /* before the small batch, after it, and in the next epoch */
            outcome_resumed(of[k], STEPS, cut, &one);
        }
        outcome_drop(&one);
    }
    toy t;
    dt_step_report r;
    toy_init(&t);
    of_what_is_left(&t);
    toy_start(&t);
    for (int step = 1; step <= 6; step++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
        assert_int_equal(r.samples, step == 5 ? 3 : t.config.batch);
        assert_int_equal(r.epoch_end, step == 5);
    }
    toy_fini(&t);
}

static void test_resume_equals_no_interruption(void **state)
{
    outcome whole;
    outcome_train(on_two_threads, STEPS, &whole);
    for (int cut = 1; cut < STEPS; cut += 4) { /* also across the end of an epoch of 4 steps */
        outcome_resumed(on_two_threads, STEPS, cut, &whole);
    }
    outcome_drop(&whole);
}

static void test_a_steady_step_allocates_nothing(void **state)
{
    toy t;
    outcome o;
    toy_init(&t);
    toy_start(&t);
    outcome_run(&t, &o, 0, 4);
    const uint64_t before = dt_alloc_calls();
    outcome_run(&t, &o, 4, STEPS);
    assert_int_equal(dt_alloc_calls() - before, 0);
    toy_fini(&t);
}

static void test_training_learns(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    double first = 0;
    toy_init(&t);
    t.config.threads = 2;
    t.dropout = 0;
    toy_start(&t);
    dt_status st = DT_OK;
    while ((st = toy_step(&t, &r)) == DT_OK) {
        first = r.step == 1 ? r.loss : first;
    }
    assert_int_equal(st, DT_DONE);
    assert_int_equal(r.step, 30 * (150 / 32));
    assert_int_equal(r.steps, r.step);
    assert_true(r.epoch_end);
    assert_true(first > 0.3);
    assert_true(r.loss < 0.15 * first);
    toy_fini(&t);
}

static dt_status sum_rows(void *user, const dt_rows *rows)
{
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0, n = 0;
    int64_t *total = user;
    const float *y = dt_rows_get_output(rows, "y_hat", dim, &rank);
    assert_non_null(y);
    assert_int_equal(rank, 2);
    assert_int_equal(dim[1], 2);
    const uint64_t *index = dt_rows_samples(rows, &n);
    assert_int_equal(index[0], (uint64_t)total[1]); /* in order, nothing twice */
    total[0] += dim[0];
    total[1] += n;
    assert_non_null(dt_rows_get_output(rows, "x", dim, &rank));
    assert_null(dt_rows_get_output(rows, "nothing", dim, &rank));
    return DT_OK;
}

static void test_evaluation_sees_every_sample_once(void **state)
{
    toy t;
    int64_t expected = 0;
    toy_init(&t);
    t.config.threads = 3;
    toy_start(&t);
    for (uint64_t i = 0; i < t.count; i++) {
        int64_t size = 0;
        assert_int_equal(t.ops.sizes(&t, &i, 1, &size), DT_OK);
        expected += size;
    }
    for (int round = 0; round < 2; round++) {
        int64_t total[2] = {0, 0};
        assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, total, sum_rows), DT_OK);
        assert_int_equal(total[0], expected);
        assert_int_equal(total[1], t.count);
    }
    toy_fini(&t);
}

typedef struct look_of_rank {
    toy t;
    pthread_t thread;
    int64_t total[2];
    uint64_t hash; /* of all that was handed out, in order */
    bool stumbles; /* in the middle */
    dt_status st;
} look_of_rank;

static dt_status hash_rows(void *user, const dt_rows *rows)
{
    look_of_rank *l = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *y = dt_rows_get_output(rows, "y_hat", dim, &rank);
    l->hash = dt_hash64(y, (size_t)(dim[0] * dim[1]) * sizeof(*y), l->hash);
    const float *x = dt_rows_get_output(rows, "x", dim, &rank);
    l->hash = dt_hash64(x, (size_t)(dim[0] * dim[1]) * sizeof(*x), l->hash);
    if (l->stumbles && l->total[1] > 60) {
        return DT_FAIL(DT_EINTERRUPTED, "asked to stop in the middle");
    }
    return sum_rows(l->total, rows);
}

static void *look(void *arg)
{
    look_of_rank *l = arg;
    toy_start(&l->t);
    l->st = dt_trainer_evaluate(l->t.trainer, &l->t.source, l, hash_rows);
    return NULL;
}

/* Ranks of 1, 2, 3, ... threads; stumbling: one of them, or none. */
static void look_on_ranks(uint32_t n, uint32_t stumbling, uint64_t want)
{
    static look_of_rank l[4];
    dt_comm *comm[4];
    assert_int_equal(dt_comm_create_simulated(n, 30, comm), DT_OK);
    memset(l, 0, sizeof(l));
    for (uint32_t i = 0; i < n; i++) {
        toy_init(&l[i].t);
        l[i].t.comm = comm[i];
        l[i].t.config.threads = 1 + i;
        l[i].stumbles = i == stumbling;
        assert_int_equal(pthread_create(&l[i].thread, NULL, look, &l[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(l[i].thread, NULL);
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(l[i].st, stumbling < n ? DT_EINTERRUPTED : DT_OK);
        if (stumbling >= n) {
            assert_int_equal(l[i].total[1], l[i].t.count);
            assert_int_equal(l[i].hash, want);
        }
        toy_fini(&l[i].t);
    }
}

static void test_ranks_evaluate_parts_and_see_all(void **state)
{
    look_of_rank one = {.hash = 0};
    toy_init(&one.t);
    look(&one);
    assert_int_equal(one.st, DT_OK);
    for (uint32_t n = 2; n <= 4; n++) {
        look_on_ranks(n, UINT32_MAX, one.hash);
    }
    look_on_ranks(3, 1, 0);
    toy_fini(&one.t);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void test_divergence_names_the_parameter(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_init(&t);
    t.poison_sample = 40;
    toy_start(&t);
    dt_status st = DT_OK;
    for (int i = 0; i < 8 && st == DT_OK; i++) {
        st = toy_step(&t, &r);
    }
    assert_int_equal(st, DT_EDIVERGED);
    assert_non_null(strstr(dt_error_text(), "net.w1"));
    assert_non_null(strstr(dt_error_text(), "learning_rate"));
    toy_fini(&t);
}

static void test_unreadable_data_stops_the_step(void **state)
{
    for (int is_live = 0; is_live < 2; is_live++) {
        toy t;
        dt_step_report r = {.struct_size = sizeof(r)};
        toy_init(&t);
        t.is_live = is_live != 0;
        t.broken_sample = 77;
        toy_start(&t);
        dt_status st = DT_OK;
        for (int i = 0; i < 8 && st == DT_OK; i++) {
            st = toy_step(&t, &r);
        }
        assert_int_equal(st, DT_EDATA);
        assert_non_null(strstr(dt_error_text(), "sample 77"));
        toy_fini(&t);
    }
}

typedef struct failing_rank {
    toy t;
    pthread_t thread;
    dt_status st;
    int steps;
    char text[512];
} failing_rank;

static void *step_until_it_fails(void *arg)
{
    failing_rank *f = arg;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_start(&f->t);
    for (f->steps = 0; f->steps < 8 && f->st == DT_OK; f->steps++) {
        f->st = toy_step(&f->t, &r);
    }
    snprintf(f->text, sizeof(f->text), "%s", dt_error_text());
    return NULL;
}

/* Sums of buckets are under way on the others when a rank cannot read its sample. */
static void fail_on_a_rank(toy_change *mode)
{
    enum { RANKS = 3 };
    static failing_rank f[RANKS];
    dt_comm *comm[RANKS];
    uint32_t n_named = 0;
    assert_int_equal(dt_comm_create_simulated(RANKS, 30, comm), DT_OK);
    memset(f, 0, sizeof(f));
    for (uint32_t i = 0; i < RANKS; i++) {
        toy_init(&f[i].t);
        f[i].t.comm = comm[i];
        f[i].t.config.bucket_bytes = 1;
        mode(&f[i].t);
        f[i].t.broken_sample = 77;
        assert_int_equal(pthread_create(&f[i].thread, NULL, step_until_it_fails, &f[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(f[i].thread, NULL);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(f[i].st, DT_EDATA);
        assert_int_equal(f[i].steps, f[0].steps);
        assert_non_null(strstr(f[i].text, "sample 77"));
        n_named += strncmp(f[i].text, "rank ", 5) == 0; /* by those whose sample it is not */
        toy_fini(&f[i].t);
    }
    assert_int_equal(n_named, RANKS - 1);
}

static void exact(toy *t) {}

static void fast(toy *t)
{
    t->config.fast_sums = true;
}

static void bf16(toy *t)
{
    t->config.half = DT_HALF_BF16;
}

static void test_a_rank_that_fails_takes_part_and_all_fail(void **state)
{
    fail_on_a_rank(exact);
    fail_on_a_rank(fast);
    fail_on_a_rank(bf16);
}

static void test_wrong_sizes_are_refused(void **state)
{
    toy t;
    toy_init(&t);
    t.config.batch = 151;
    assert_int_equal(toy_try_start(&t), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "151"));
    toy_fini(&t);
    toy_init(&t);
    t.config.shards = 6;
    assert_int_equal(toy_try_start(&t), DT_EINVAL);
    toy_fini(&t);
    toy_init(&t);
    toy_start(&t);
    const float one = 1;
    assert_int_equal(dt_trainer_step_input_set(t.trainer, "scale", &one, 1), DT_ESHAPE);
    toy_fini(&t);
}

static void test_step_inputs_must_be_set(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_init(&t);
    assert_int_equal(toy_try_start(&t), DT_OK);
    assert_int_equal(toy_step(&t, &r), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "scale"));
    toy_fini(&t);
}

static void test_frozen_parameters_stay(void **state)
{
    toy t;
    outcome o;
    uint32_t n = 0;
    toy_init(&t);
    toy_start(&t);
    const dt_param *w1 = dt_param_table_find(&t.params, "net.w1");
    float before[16];
    assert_int_equal(dt_param_table_freeze(&t.params, "net.w1", &n), DT_OK);
    assert_int_equal(n, 1);
    memcpy(before, dt_trainer_params(t.trainer) + w1->offset, sizeof(before));
    outcome_run(&t, &o, 0, 3);
    assert_memory_equal(before, dt_trainer_params(t.trainer) + w1->offset, sizeof(before));
    const dt_param *w2 = dt_param_table_find(&t.params, "net.w2");
    assert_true(dt_trainer_moment(t.trainer, 0)[w2->offset] != 0);
    toy_fini(&t);
}

/* Forgetting what was read ahead changes nothing while the data stays as it is. */
static void test_refill(void **state)
{
    outcome plain, refilled;
    train(2, true, false, true, &plain);
    toy t;
    toy_init(&t);
    toy_start(&t);
    for (int i = 0; i < STEPS; i++) {
        dt_trainer_discard_prefetched(t.trainer);
        outcome_run(&t, &refilled, i, i + 1);
    }
    outcome_keep(&t, &refilled);
    toy_fini(&t);
    outcome_same(&plain, &refilled);
    outcome_drop(&plain);
    outcome_drop(&refilled);
}

/* Passed steps count for the schedule and for where training stands, not as updates. */
static void test_seek(void **state)
{
    dt_step_report r = {.struct_size = sizeof(r)};
    toy whole, t;
    toy_init(&whole);
    toy_start(&whole);
    for (int i = 0; i < 11; i++) {
        assert_int_equal(toy_step(&whole, &r), DT_OK);
    }
    const double rate = r.learning_rate;
    toy_fini(&whole);
    toy_init(&t);
    toy_start(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(toy_step(&t, &r), DT_OK);
    }
    assert_int_equal(dt_trainer_seek(t.trainer, 2), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "cannot continue at step 2: it is outside 3 (now)"));
    assert_int_equal(dt_trainer_seek(t.trainer, 10), DT_OK);
    assert_int_equal(toy_step(&t, &r), DT_OK);
    assert_int_equal(r.step, 11);
    assert_true(r.learning_rate == rate);
    assert_int_equal(dt_trainer_updates(t.trainer), 4);
    assert_int_equal(dt_trainer_bypassed_steps(t.trainer), 7);
    assert_int_equal(dt_trainer_seek(t.trainer, dt_trainer_steps(t.trainer)), DT_OK);
    assert_int_equal(toy_step(&t, &r), DT_DONE);
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_a_live_source_changes_no_bit),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_refill),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_memory_plan_changes_no_bit),
        cmocka_unit_test(test_ranks_change_no_bit),
        cmocka_unit_test(test_many_leaves_change_no_bit_over_ranks),
        cmocka_unit_test(test_what_is_left_is_a_batch),
        cmocka_unit_test(test_fewer_than_a_batch_are_one),
        cmocka_unit_test(test_resume_equals_no_interruption),
        cmocka_unit_test(test_a_steady_step_allocates_nothing),
        cmocka_unit_test(test_training_learns),
        cmocka_unit_test(test_evaluation_sees_every_sample_once),
        cmocka_unit_test(test_ranks_evaluate_parts_and_see_all),
        cmocka_unit_test(test_divergence_names_the_parameter),
        cmocka_unit_test(test_unreadable_data_stops_the_step),
        cmocka_unit_test(test_a_rank_that_fails_takes_part_and_all_fail),
        cmocka_unit_test(test_wrong_sizes_are_refused),
        cmocka_unit_test(test_step_inputs_must_be_set),
        cmocka_unit_test(test_frozen_parameters_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

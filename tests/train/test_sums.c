/* SPDX-License-Identifier: Apache-2.0
 *
 * How gradients of ranks become one, in each mode: which bits depend on what, and how many bytes are sent for it.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "comm/tree_sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8, CUT = 3, MOST = 8 };

/* Several buckets of several slices each. */
static void large(toy *t)
{
    t->hidden = 1200;
    t->config.bucket_bytes = (uint64_t)5 * DT_SLICE_UNIT * sizeof(float);
}

static void fast(toy *t)
{
    large(t);
    t->config.fast_sums = true;
}

static void drop_all(outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        outcome_drop(&o[i]);
    }
}

/* ---- fast -------------------------------------------------------------------------------------------------------- */

static void test_fast_sums_of_one_rank_are_exact(void **state)
{
    outcome exact, one;
    outcome_train(large, STEPS, &exact);
    outcome_train(fast, STEPS, &one);
    outcome_same(&exact, &one);
    outcome_drop(&exact);
    outcome_drop(&one);
}

/* A sum of 8 leaves in another order is off by at most 7 * 2^-24 of the leaves' magnitudes. An update of AdamW is at
 * most about the rate, 2e-2, and follows the gradient's relative error: where leaves cancel to a hundredth, that is
 * 100 * 7 * 2^-24 * 2e-2 = 8e-7 a step. */
static void check_near(const outcome *got, const outcome *want)
{
    const size_t n = want->bytes / sizeof(float);
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)got->state[0][i] - (double)want->state[0][i]);
        if (!(off <= STEPS * 8e-7)) {
            fail_msg("parameter %zu is %.9g, and %.9g of exact sums", i, (double)got->state[0][i],
                     (double)want->state[0][i]);
        }
    }
}

static void test_fast_sums_are_near_and_repeat(void **state)
{
    outcome exact, first[MOST], second[MOST], half[MOST], resumed[MOST];
    outcome_train(large, STEPS, &exact);
    for (uint32_t ranks = 2; ranks <= 3; ranks++) {
        outcome_of_ranks(fast, NULL, 0, STEPS, ranks, first);
        outcome_of_ranks(fast, NULL, 0, STEPS, ranks, second);
        outcome_of_ranks(fast, NULL, 0, CUT, ranks, half);
        outcome_of_ranks(fast, half, CUT, STEPS, ranks, resumed);
        for (uint32_t r = 0; r < ranks; r++) {
            check_near(&first[r], &exact);
            outcome_same(&first[0], &first[r]);
            outcome_same(&first[0], &second[r]);
            outcome_same(&first[0], &resumed[r]);
        }
        if (ranks == 3) { /* else fast would be exact, and this would prove nothing */
            assert_memory_not_equal(first[0].state[0], exact.state[0], exact.bytes);
        }
        drop_all(first, ranks);
        drop_all(second, ranks);
        drop_all(half, ranks);
        drop_all(resumed, ranks);
    }
    outcome_drop(&exact);
}

/* ---- halves ------------------------------------------------------------------------------------------------------ */

static void bf16(toy *t)
{
    large(t);
    t->config.half = DT_HALF_BF16;
}

static void fp16(toy *t)
{
    large(t);
    t->config.half = DT_HALF_FP16;
}

static void bf16_of_two_leaves(toy *t)
{
    bf16(t);
    t->config.shards = 2;
}

static void whole_of_one_leaf(toy *t)
{
    large(t);
    t->config.shards = 1;
}

static void bf16_of_one_leaf(toy *t)
{
    bf16(t);
    t->config.shards = 1;
}

static void test_halves_end_in_the_same_bits_on_any_ranks(void **state)
{
    static toy_change *const kinds[] = {bf16, fp16};
    outcome whole;
    outcome_train(large, STEPS, &whole);
    for (size_t k = 0; k < 2; k++) {
        outcome one;
        outcome_train(kinds[k], STEPS, &one);
        assert_memory_not_equal(one.state[0], whole.state[0], whole.bytes);
        for (uint32_t ranks = 1; ranks <= 4; ranks++) {
            outcome_on_ranks(kinds[k], STEPS, ranks, &one);
        }
        outcome_on_ranks(kinds[k], STEPS, 8, &one);
        outcome_resumed(kinds[k], STEPS, CUT, &one);
        outcome_drop(&one);
    }
    outcome_drop(&whole);
}

static void test_halves_go_on_on_another_number_of_ranks(void **state)
{
    outcome one, half[MOST], resumed[MOST];
    outcome_train(bf16, STEPS, &one);
    outcome_of_ranks(bf16, NULL, 0, CUT, 3, half);
    outcome_of_ranks(bf16, half, CUT, STEPS, 4, resumed);
    for (uint32_t r = 0; r < 4; r++) {
        outcome_same(&one, &resumed[r]);
    }
    outcome_drop(&one);
    drop_all(half, 3);
    drop_all(resumed, 4);
}

static void test_halves_of_few_leaves(void **state)
{
    outcome one, whole;
    outcome_train(bf16_of_two_leaves, STEPS, &one);
    outcome_on_ranks(bf16_of_two_leaves, STEPS, 2, &one);
    outcome_drop(&one);
    outcome_train(whole_of_one_leaf, STEPS, &whole); /* the root alone: nothing is ever sent */
    outcome_train(bf16_of_one_leaf, STEPS, &one);
    outcome_same(&whole, &one);
    outcome_drop(&whole);
    outcome_drop(&one);
}

/* The first scale takes gradients beyond 65504, which fp32 holds easily. */
static void scaled(toy *t)
{
    large(t);
    t->config.scaling = (dt_scaler_config){.kind = DT_SCALING_DYNAMIC,
                                           .initial = 0x1p24,
                                           .min = 1,
                                           .max = 0x1p24,
                                           .growth = 2,
                                           .backoff = 0x1p-4,
                                           .interval = 3,
                                           .hysteresis = 1,
                                           .max_skips = 6};
}

static void scaled_fp16(toy *t)
{
    scaled(t);
    t->config.half = DT_HALF_FP16;
}

static void test_overflow_of_fp16_skips_a_step(void **state)
{
    outcome whole, one;
    outcome_train(scaled, STEPS, &whole);
    assert_int_equal(whole.updates, STEPS);
    outcome_train(scaled_fp16, STEPS, &one);
    assert_in_range(one.updates, 1, STEPS - 1);
    assert_true(one.scaler.overflows > 0 && one.scale[0] == 0x1p20);
    for (uint32_t ranks = 2; ranks <= 4; ranks++) {
        outcome_on_ranks(scaled_fp16, STEPS, ranks, &one);
    }
    outcome_drop(&whole);
    outcome_drop(&one);
}

static void test_overflow_of_fp16_without_a_scale_ends_training(void **state)
{
    toy t;
    dt_step_report r = {.struct_size = sizeof(r)};
    toy_init(&t);
    fp16(&t);
    t.config.scaling = (dt_scaler_config){.kind = DT_SCALING_STATIC, .initial = 0x1p30, .max_skips = 2};
    toy_start(&t);
    assert_int_equal(toy_step(&t, &r), DT_OK); /* skipped */
    assert_int_equal(toy_step(&t, &r), DT_EDIVERGED);
    assert_non_null(strstr(dt_error_text(), "is not finite"));
    assert_non_null(strstr(dt_error_text(), "comm.wire"));
    toy_fini(&t);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static const uint32_t weights[] = {4, 1, 2};

static void weighed(toy *t)
{
    large(t);
    t->config.shard_weights = weights;
}

static void weighed_bf16(toy *t)
{
    bf16(t);
    t->config.shard_weights = weights;
}

static void weighed_many(toy *t) /* nodes of many heights: fewer sums fit among the calls that may be under way */
{
    weighed(t);
    t->config.shards = 256;
}

static void many(toy *t)
{
    large(t);
    t->config.shards = 256;
}

static void test_weights_change_no_bit(void **state)
{
    static toy_change *const with[] = {weighed, weighed_bf16, weighed_many}, *const without[] = {large, bf16, many};
    for (size_t k = 0; k < 3; k++) {
        const int steps = k == 2 ? 2 : STEPS;
        outcome one, of[MOST];
        outcome_train(without[k], steps, &one);
        for (uint32_t ranks = 2; ranks <= 3; ranks++) {
            outcome_of_ranks(with[k], NULL, 0, steps, ranks, of);
            for (uint32_t r = 0; r < ranks; r++) {
                outcome_same(&one, &of[r]);
            }
            drop_all(of, ranks);
        }
        outcome_of_ranks(with[k], NULL, 0, steps, 1, of); /* one weight: all leaves */
        outcome_same(&one, &of[0]);
        drop_all(of, 1);
        outcome_drop(&one);
    }
}

static void test_weights_that_leave_a_rank_without_work(void **state)
{
    static const uint32_t small[] = {100, 1};
    dt_comm *comm[2];
    assert_int_equal(dt_comm_create_simulated(2, 5, comm), DT_OK);
    toy t;
    toy_init(&t);
    t.comm = comm[0];
    t.config.shard_weights = small;
    assert_int_equal(toy_try_start(&t), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "1 of 101"));
    toy_fini(&t);
    dt_comm_destroy(comm[1]);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Up to the end of the last parameter. */
static int64_t count_of(const toy *t)
{
    const dt_param *last = &t->params.param[t->params.n - 1];
    return last->offset + last->count;
}

/* By the formula: of each bucket, a rank sends all but its slice for each of its nodes, and its slice to all others. */
static uint64_t exchange_of(const toy *t, uint32_t ranks, uint32_t rank)
{
    const int64_t most = (int64_t)(t->config.bucket_bytes / sizeof(float));
    const dt_tree_shape shape = {.leaves = t->config.shards, .ranks = ranks, .rank = rank};
    const uint64_t each = t->config.half != DT_HALF_NONE ? 2 : 4;
    dt_tree_node node[DT_TREE_MAX_NODES];
    const uint64_t n_nodes = t->config.fast_sums ? 1 : dt_tree_list_cover(&shape, rank, node);
    uint64_t sent = 0;
    for (int64_t at = 0; at < count_of(t); at += most) {
        const dt_range bucket = {at, at + most < count_of(t) ? at + most : count_of(t)};
        const dt_range slice = dt_rank_slice(bucket, ranks, rank);
        const uint64_t own = (uint64_t)(slice.end - slice.begin), all = (uint64_t)(bucket.end - bucket.begin);
        sent += (all - own) * each * n_nodes + own * 4 * (ranks - 1);
    }
    return sent;
}

/* What else a step sends: sums of squares of a rank's units, losses of as many leaves as any rank has, and an agreement
 * of 512 bytes, each to all others. */
static uint64_t rest_of(const toy *t, uint32_t ranks, uint32_t rank)
{
    const int64_t most = (int64_t)(t->config.bucket_bytes / sizeof(float));
    const uint64_t leaves = (t->config.shards + ranks - 1) / ranks;
    uint64_t units = 0;
    for (int64_t at = 0; at < count_of(t); at += most) {
        const dt_range bucket = {at, at + most < count_of(t) ? at + most : count_of(t)};
        const dt_range slice = dt_rank_slice(bucket, ranks, rank);
        units += (uint64_t)(slice.end - slice.begin + DT_SLICE_UNIT - 1) / DT_SLICE_UNIT;
    }
    return (units * sizeof(double) + leaves * sizeof(double) + 512) * (ranks - 1);
}

static void test_ranks_send_what_the_formula_says(void **state)
{
    static toy_change *const modes[] = {large, fast, bf16, fp16};
    uint64_t all[4][MOST + 1] = {{0}};
    for (size_t m = 0; m < 4; m++) {
        for (uint32_t ranks = 2; ranks <= MOST; ranks++) {
            outcome o[MOST];
            toy t;
            outcome_of_ranks(modes[m], NULL, 0, 2, ranks, o);
            toy_init(&t);
            modes[m](&t);
            toy_start(&t);
            for (uint32_t r = 0; r < ranks; r++) {
                assert_int_equal(o[r].announced, exchange_of(&t, ranks, r));
                assert_int_equal(o[r].sent, o[r].announced + rest_of(&t, ranks, r));
                all[m][ranks] += o[r].announced;
            }
            /* of all ranks together: w P (R - 1) for as many nodes as each has, and 4 P (R - 1) */
            if (ranks == 2 || ranks == 4 || ranks == 8) {
                const uint64_t P = (uint64_t)count_of(&t), w = t.config.half != DT_HALF_NONE ? 2 : 4;
                assert_int_equal(all[m][ranks], (w + 4) * P * (ranks - 1));
            }
            toy_fini(&t);
            drop_all(o, ranks);
        }
    }
    for (uint32_t ranks = 2; ranks <= MOST; ranks++) {
        assert_true(all[1][ranks] <= all[0][ranks] && all[2][ranks] <= all[0][ranks] * 3 / 4);
        assert_int_equal(all[2][ranks], all[3][ranks]);
    }
    assert_true(all[1][3] < all[0][3]); /* three ranks have more than one node each */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_sums_of_one_rank_are_exact),
        cmocka_unit_test(test_fast_sums_are_near_and_repeat),
        cmocka_unit_test(test_halves_end_in_the_same_bits_on_any_ranks),
        cmocka_unit_test(test_halves_go_on_on_another_number_of_ranks),
        cmocka_unit_test(test_halves_of_few_leaves),
        cmocka_unit_test(test_overflow_of_fp16_skips_a_step),
        cmocka_unit_test(test_overflow_of_fp16_without_a_scale_ends_training),
        cmocka_unit_test(test_weights_change_no_bit),
        cmocka_unit_test(test_weights_that_leave_a_rank_without_work),
        cmocka_unit_test(test_ranks_send_what_the_formula_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/tree.c and tree_sum.c: slices of a range, leaves dealt by weight, and the nodes that a rank
 * is left with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "comm/tree_sum.h"

enum { MAX_RANKS = 8 };

static void test_slices_cover_a_range_in_units(void **state)
{
    static const dt_range ranges[] = {{0, 0}, {0, 1}, {64, 1024}, {64, 1088}, {1000000, 2000001}, {128, 3 * 1024 + 64}};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        for (uint32_t R = 1; R <= 7; R++) {
            int64_t at = ranges[i].begin, least = INT64_MAX, most = 0;
            for (uint32_t r = 0; r < R; r++) {
                const dt_range s = dt_rank_slice(ranges[i], R, r);
                assert_true(s.end == s.begin || s.begin == at);
                assert_true(s.end == s.begin || s.end == ranges[i].end || s.end % DT_SLICE_UNIT == 0);
                least = s.end - s.begin < least ? s.end - s.begin : least;
                most = s.end - s.begin > most ? s.end - s.begin : most;
                at = s.end > s.begin ? s.end : at;
            }
            assert_int_equal(at, ranges[i].end);
            assert_true(most - least <= 2 * DT_SLICE_UNIT);
        }
    }
}

static void deal(uint32_t leaves, uint32_t ranks, const uint32_t *weight, const uint32_t *want)
{
    uint32_t begin[MAX_RANKS + 1], at = 0;
    assert_int_equal(dt_tree_partition(leaves, ranks, weight, begin), DT_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(begin[r], at);
        at += want[r];
    }
    assert_int_equal(begin[ranks], at);
    assert_int_equal(at, leaves);
}

static void test_weights_deal_leaves_by_largest_remainders(void **state)
{
    deal(8, 3, (uint32_t[]){2, 1, 1}, (uint32_t[]){4, 2, 2});
    deal(8, 3, (uint32_t[]){1, 1, 1}, (uint32_t[]){3, 3, 2});        /* equal remainders: lower ranks */
    deal(16, 4, (uint32_t[]){5, 3, 1, 1}, (uint32_t[]){8, 5, 2, 1}); /* 8, 4.8, 1.6, 1.6 */
    deal(8, 2, (uint32_t[]){1000000, 142858}, (uint32_t[]){7, 1});   /* 6.99999 and 1.00001 */
    deal(4096, 2, (uint32_t[]){1000000, 245}, (uint32_t[]){4095, 1});
    deal(8, 1, (uint32_t[]){7}, (uint32_t[]){8});
    deal(4, 4, (uint32_t[]){3, 3, 3, 3}, (uint32_t[]){1, 1, 1, 1});
    uint32_t begin[MAX_RANKS + 1];
    assert_int_equal(dt_tree_partition(8, 2, (uint32_t[]){1, 0}, begin), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "1 to 1000000"));
    assert_int_equal(dt_tree_partition(8, 2, (uint32_t[]){1000001, 1}, begin), DT_EINVAL);
    assert_int_equal(dt_tree_partition(4096, 2, (uint32_t[]){1000000, 1}, begin), DT_EINVAL); /* 0.004 of a leaf */
    assert_int_equal(dt_tree_partition(8, 3, (uint32_t[]){100, 100, 1}, begin), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "1 of 201"));
    assert_int_equal(dt_tree_partition(2, 3, (uint32_t[]){1, 1, 1}, begin), DT_EINVAL);
    assert_int_equal(dt_tree_partition(8192, 1, (uint32_t[]){1}, begin), DT_EINVAL);
    assert_int_equal(dt_tree_partition(8, 0, NULL, begin), DT_EINVAL);
}

static void test_the_most_nodes_of_a_rank(void **state)
{
    const uint32_t begin[] = {0, 1, 4095, 4096};
    dt_tree_shape shape = {.leaves = 4096, .ranks = 3};
    assert_int_equal(dt_tree_max_nodes(&shape), 11);
    shape.begin = begin;
    assert_int_equal(dt_tree_max_nodes(&shape), 22); /* two of each height but the highest two */
    assert_true(dt_tree_max_nodes(&shape) <= DT_TREE_MAX_NODES);
    shape = (dt_tree_shape){.leaves = 64, .ranks = 8};
    assert_int_equal(dt_tree_max_nodes(&shape), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_cover_a_range_in_units),
        cmocka_unit_test(test_weights_deal_leaves_by_largest_remainders),
        cmocka_unit_test(test_the_most_nodes_of_a_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

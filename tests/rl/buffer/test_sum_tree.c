/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of priorities: what it finds is what a scan finds, and its sums are those of what it holds now.
 */
#include <config.h>

#include "base/err.h"
#include "rl/replay/sum_tree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 37 };

static uint64_t find(const dt_sum_tree *t, double at)
{
    uint64_t leaf[2];
    double both[] = {at / 2, at};
    dt_sum_tree_find(t, both, 2, leaf);
    return leaf[1];
}

static double priority(uint64_t i)
{
    return i % 5 == 3 ? 0 : (double)(i * i % 11) + 0.125;
}

static uint64_t scan(const dt_sum_tree *t, double at)
{
    double sum = 0;
    uint64_t last = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        if (dt_sum_tree_get(t, i) > 0) {
            last = i;
            sum += dt_sum_tree_get(t, i);
            if (at < sum) {
                return i;
            }
        }
    }
    return last;
}

static void test_find(void **state)
{
    for (uint64_t n = 1; n <= MOST; n++) {
        dt_sum_tree t;
        double sum = 0;
        assert_int_equal(dt_sum_tree_init(&t, n), DT_OK);
        for (uint64_t i = 0; i < n; i++) {
            dt_sum_tree_set(&t, i, priority(i));
            sum += priority(i);
        }
        assert_true(dt_sum_tree_total(&t) == sum); /* eighths: no sum of them rounds */
        for (double at = 0; at < sum; at += 0.0625) {
            assert_int_equal(find(&t, at), scan(&t, at));
        }
        const uint64_t last = find(&t, nextafter(sum, 0));
        assert_true(dt_sum_tree_get(&t, last) > 0);
        dt_sum_tree_fini(&t);
    }
}

/* Whatever was in it before: the same priorities are the same bits, and the end of the sum has a leaf. */
static void test_no_history(void **state)
{
    dt_sum_tree a, b;
    assert_int_equal(dt_sum_tree_init(&a, MOST), DT_OK);
    assert_int_equal(dt_sum_tree_init(&b, MOST), DT_OK);
    for (int round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < MOST; i++) {
            dt_sum_tree_set(&a, (i * 7 + (uint64_t)round) % MOST,
                            exp((double)((i * 31 + (uint64_t)round * 17) % 40) - 20));
        }
    }
    for (uint64_t i = 0; i < MOST; i++) {
        dt_sum_tree_set(&b, MOST - 1 - i, dt_sum_tree_get(&a, MOST - 1 - i));
    }
    assert_memory_equal(a.node, b.node, a.bytes);
    const uint64_t last = find(&a, nextafter(dt_sum_tree_total(&a), 0));
    assert_true(dt_sum_tree_get(&a, last) > 0);
    dt_sum_tree_fini(&a);
    dt_sum_tree_fini(&b);
}

/* A place at the very end of the sum belongs to the last leaf that has a priority, not to an empty one after it. */
static void test_the_end_has_a_priority(void **state)
{
    for (uint64_t used = 1; used <= 5; used++) {
        dt_sum_tree t;
        assert_int_equal(dt_sum_tree_init(&t, 5), DT_OK);
        for (uint64_t i = 0; i < used; i++) {
            dt_sum_tree_set(&t, i, 0.25);
        }
        assert_int_equal(find(&t, dt_sum_tree_total(&t)), used - 1);
        dt_sum_tree_fini(&t);
    }
}

static void test_too_many(void **state)
{
    dt_sum_tree t;
    assert_int_equal(dt_sum_tree_init(&t, UINT64_MAX), DT_ENOMEM);
    assert_non_null(strstr(dt_error_text(), "18446744073709551615"));
    dt_sum_tree_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_no_history),
                                       cmocka_unit_test(test_the_end_has_a_priority), cmocka_unit_test(test_too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * include/dtrain/checked.h: what does not fit is said, and leaves what was there; what fits is exact up to the bounds.
 */
#include "dtrain/checked.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_sums_and_products(void **state)
{
    int32_t i = 5;
    assert_true(dt_add_i32(INT32_MAX - 1, 1, &i));
    assert_int_equal(i, INT32_MAX);
    assert_false(dt_add_i32(i, 1, &i));
    assert_false(dt_mul_i32(1 << 16, 1 << 15, &i));
    assert_int_equal(i, INT32_MAX);
    assert_true(dt_mul_i32(-(1 << 16), 1 << 15, &i));
    assert_int_equal(i, INT32_MIN);
    uint32_t u = 5;
    assert_false(dt_add_u32(UINT32_MAX, 1, &u));
    assert_int_equal(u, 5);
    int64_t l = 5;
    assert_false(dt_add_i64(INT64_MIN, -1, &l));
    assert_false(dt_mul_i64(INT64_MAX, 2, &l));
    assert_int_equal(l, 5);
    size_t s = 5;
    assert_false(dt_add_size(SIZE_MAX, 1, &s));
    assert_false(dt_mul_size(SIZE_MAX / 2, 3, &s));
    assert_false(dt_grow_size(&s, SIZE_MAX / 8, 9));
    assert_false(dt_grow_size(&s, SIZE_MAX, 1));
    assert_int_equal(s, 5);
    assert_true(dt_grow_size(&s, 6, 7));
    assert_int_equal(s, 47);
}

static void test_narrowing(void **state)
{
    int32_t i = 5;
    int64_t l = 5;
    assert_false(dt_i32_of_i64(INT64_C(1) << 31, &i));
    assert_false(dt_i32_of_i64(-(INT64_C(1) << 31) - 1, &i));
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 9223372036854775808.0};
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        assert_false(dt_i64_of_f64(bad[k], &l));
        assert_false(dt_i32_of_f64(bad[k], &i));
    }
    assert_false(dt_i32_of_f64(2147483648.0, &i));
    assert_false(dt_i32_of_f64(-2147483649.0, &i));
    assert_int_equal(i, 5);
    assert_int_equal(l, 5);
    assert_true(dt_i32_of_f64(2147483647.9, &i));
    assert_int_equal(i, INT32_MAX);
    assert_true(dt_i32_of_f64(-2147483648.9, &i));
    assert_int_equal(i, INT32_MIN);
    assert_true(dt_i64_of_f64(-9223372036854775808.0, &l));
    assert_true(l == INT64_MIN);
    assert_true(dt_i32_of_i64(-7, &i));
    assert_int_equal(i, -7);
}

static void test_what_is_shown(void **state)
{
    assert_int_equal(dt_i64_within(NAN, -3, 9), -3);
    assert_int_equal(dt_i64_within(INFINITY, -3, 9), 9);
    assert_int_equal(dt_i64_within(-INFINITY, -3, 9), -3);
    assert_int_equal(dt_i64_within(2.9, -3, 9), 2);
    assert_true(dt_i64_within(1e300, 0, INT64_MAX) == INT64_MAX);
    assert_true(dt_i64_within(-1e300, INT64_MIN, 0) == INT64_MIN);
}

static void test_bombs(void **state)
{
    assert_false(dt_is_bomb(1, DT_UNPACK_ANY_BYTES));
    assert_true(dt_is_bomb(1, DT_UNPACK_ANY_BYTES + 1));
    assert_false(dt_is_bomb((uint64_t)1 << 30, (uint64_t)60 << 30));
    assert_true(dt_is_bomb((uint64_t)1 << 20, (uint64_t)1 << 30));
    assert_true(dt_is_bomb(1, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums_and_products), cmocka_unit_test(test_narrowing),
                                       cmocka_unit_test(test_what_is_shown), cmocka_unit_test(test_bombs)};
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}

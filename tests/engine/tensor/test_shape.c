/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/tensor/shape.c and dtype.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

static const char *const symbol[] = {"N", "E", "NE"};

static void test_parse_and_print(void **state)
{
    static const char *const dims[] = {"N 256", "N+1", "1", "15 E 6", "NE NE+1 2"};
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        dt_shape s;
        dt_str text = {0};
        assert_int_equal(dt_shape_parse(dims[i], DT_I32, symbol, 3, &s), DT_OK);
        dt_shape_text(&s, symbol, &text);
        assert_int_equal(strncmp(dt_str_text(&text), dims[i], strlen(dims[i])), 0);
        assert_string_equal(dt_str_text(&text) + strlen(dims[i]), " i32");
        dt_str_fini(&text);
    }
}

static void test_parse_refusals(void **state)
{
    static const struct {
        const char *dims;
        uint32_t dtype;
        const char *text;
    } rows[] = {
        {"N 0", DT_F32, "dims \"N 0\": dimension 0 must be at least 1"},
        {"Q", DT_F32, "dimension \"Q\" is neither a number nor one of the ragged symbols"},
        {"N+2", DT_F32, "\"N+2\""},
        {"", DT_F32, "name no dimension"},
        {"1 1 1 1 1 1 1 1 1", DT_F32, "at most 8 tokens"},
        {"N", 99, "dtype 99"},
        {"1048576 1048577", DT_F32, "more than 1099511627776 elements"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_shape s;
        assert_int_equal(dt_shape_parse(rows[i].dims, rows[i].dtype, symbol, 3, &s), DT_EINVAL);
        assert_non_null(strstr(dt_error_text(), rows[i].text));
    }
}

static void test_count_and_equality(void **state)
{
    const int64_t size[3] = {10, 0, 7}, huge[3] = {INT64_MAX / 2, 1, 1};
    dt_shape a, b;
    int64_t n = 0;
    assert_int_equal(dt_shape_parse("N+1 4", DT_F32, symbol, 3, &a), DT_OK);
    assert_true(dt_shape_count(&a, size, &n));
    assert_int_equal(n, 44);
    assert_false(dt_shape_count(&a, huge, &n));
    assert_int_equal(dt_shape_parse("E 4", DT_F32, symbol, 3, &b), DT_OK);
    assert_true(dt_shape_count(&b, size, &n));
    assert_int_equal(n, 0);
    assert_true(dt_shape_equal(&a, &a));
    assert_false(dt_shape_equal(&a, &b));
    b = a;
    b.dtype = DT_I32;
    assert_false(dt_shape_equal(&a, &b));
    assert_false(dt_extent_equal(dt_extent_number(1), a.dim[0]));
    assert_int_equal(dt_shape_parse("1048576 1048576", DT_F32, symbol, 3, &a), DT_OK); /* 2^40 */
}

static void test_dtypes(void **state)
{
    assert_int_equal(dt_dtype_bytes(DT_F32), 4);
    assert_int_equal(dt_dtype_bytes(DT_I64), 8);
    assert_int_equal(dt_dtype_bytes(DT_U8), 1);
    assert_int_equal(dt_dtype_bytes(0), 0);
    assert_string_equal(dt_dtype_name(DT_BF16), "bf16");
    assert_string_equal(dt_dtype_name(99), "?");
    assert_int_equal(dt_dtype_find("f64 x", 3), DT_F64);
    assert_int_equal(dt_dtype_find("f6", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_and_print),
        cmocka_unit_test(test_parse_refusals),
        cmocka_unit_test(test_count_and_equality),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

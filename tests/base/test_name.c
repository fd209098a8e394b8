/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts that plugins hand over: each kind of mistake has a message of its own, with whose name it is.
 */
#include <config.h>

#include "base/name.h"

#include "../refused.h"

static dt_status check(dt_name_kind kind, uint32_t most, const char *name)
{
    return dt_name_check(DT_EPLUGIN, kind, most, name, "%s: port %d", "mine", 3);
}

static void test_names(void **state)
{
    REFUSED(check(DT_NAME_WORD, 9, NULL), "mine: port 3", "NULL", "[a-z][a-z0-9_]*, 1 to 9");
    REFUSED(check(DT_NAME_WORD, 9, ""), "mine: port 3", "empty");
    REFUSED(check(DT_NAME_WORD, 3, "long"), "\"long...\"", "longer than 3");
    REFUSED(check(DT_NAME_WORD, 9, "a b"), "\"a b\"", "' ' at place 2");
    REFUSED(check(DT_NAME_WORD, 9, "Big"), "'B' at place 1");
    REFUSED(check(DT_NAME_PARAM, 9, ".w"), "'.' at place 1");
    REFUSED(check(DT_NAME_KEY, 9, "a\"b"), "place 2");
    REFUSED(check(DT_NAME_SYMBOL, 15, "n"), "capital");
    REFUSED(check(DT_NAME_SYMBOL, 15, "N+1"), "'+' at place 2");
    assert_int_equal(check(DT_NAME_WORD, 4, "long"), DT_OK);
    assert_int_equal(check(DT_NAME_PARAM, 9, "0.w"), DT_OK);
    assert_int_equal(check(DT_NAME_KEY, 9, "carry/h"), DT_OK);
    assert_int_equal(check(DT_NAME_SYMBOL, 9, "N_2"), DT_OK);
    assert_false(dt_name_is(DT_NAME_WORD, NULL));
    assert_int_equal(dt_name_given(NULL, "input"), DT_EINVAL);
    assert_int_equal(dt_name_given("x", "input"), DT_OK);
}

static void test_texts(void **state)
{
    REFUSED(dt_text_check(DT_EPLUGIN, 4, NULL, "a unit"), "a unit is NULL");
    REFUSED(dt_text_check(DT_EPLUGIN, 4, "12345", "a unit"), "longer than 4 bytes");
    REFUSED(dt_text_check(DT_EPLUGIN, 4, "1\xff", "a unit"), "place 2");
    REFUSED(dt_text_check(DT_EPLUGIN, 4, "\033[", "a unit"), "place 1");
    assert_int_equal(dt_text_check(DT_EPLUGIN, 4, "", "a unit"), DT_OK);
    assert_int_equal(dt_text_check(DT_EPLUGIN, 4, "1/s", "a unit"), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

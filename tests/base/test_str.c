/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/str.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void test_growing(void **state)
{
    dt_str s = {0};
    assert_string_equal(dt_str_text(&s), "");
    for (int i = 0; i < 1000; i++) {
        dt_str_addf(&s, "%d,", i);
    }
    dt_str_add(&s, "end");
    dt_str_add_n(&s, "!!zz", 2);
    assert_int_equal(s.bytes, 10 * 2 + 90 * 3 + 900 * 4 + 5);
    assert_int_equal(strlen(s.text), s.bytes);
    assert_memory_equal(s.text, "0,1,2,3,", 8);
    assert_string_equal(s.text + s.bytes - 9, "999,end!!");
    assert_int_equal(dt_str_status(&s), DT_OK);
    dt_str_clear(&s);
    assert_string_equal(dt_str_text(&s), "");
    dt_str_fini(&s);
    dt_str_fini(&s);
}

static void test_out_of_memory_sticks(void **state)
{
    dt_str s = {0};
    dt_fault_reset("alloc:1");
    dt_str_add(&s, "lost");
    dt_fault_reset(NULL);
    dt_str_add(&s, "kept out");
    dt_str_addf(&s, "%d", 1);
    assert_string_equal(dt_str_text(&s), "");
    assert_int_equal(dt_str_status(&s), DT_ENOMEM);
    assert_non_null(strstr(dt_error_text(), "out of memory"));
    dt_str_fini(&s);
}

static void test_glob(void **state)
{
    assert_true(dt_glob_match("*", ""));
    assert_true(dt_glob_match("perception.*", "perception.layer0.weight"));
    assert_true(dt_glob_match("*.weight", "a.b.weight"));
    assert_true(dt_glob_match("a*b*c", "a__b__bc"));
    assert_true(dt_glob_match("l?yer", "layer"));
    assert_true(dt_glob_match("**x", "x"));
    assert_false(dt_glob_match("l?yer", "lyer"));
    assert_false(dt_glob_match("a*b", "abc"));
    assert_false(dt_glob_match("", "a"));
    assert_true(dt_glob_match("", ""));
    assert_false(dt_glob_match("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void test_edit_distance(void **state)
{
    assert_int_equal(dt_edit_distance("", ""), 0);
    assert_int_equal(dt_edit_distance("", "abc"), 3);
    assert_int_equal(dt_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(dt_edit_distance("learning_rate", "learnign_rate"), 1);
    assert_int_equal(dt_edit_distance("ab", "ba"), 1);
    assert_int_equal(dt_edit_distance("hiden", "hidden"), 1);
    char big[100];
    memset(big, 'x', 99);
    big[99] = '\0';
    assert_int_equal(dt_edit_distance(big, "x"), 64);
}

static void test_did_you_mean(void **state)
{
    static const char *const keys[] = {"epochs", "learning_rate", "weight_decay", "lr", NULL};
    assert_string_equal(dt_suggest_word("epoch", keys), "epochs");
    assert_string_equal(dt_suggest_word("learnin_rat", keys), "learning_rate");
    assert_string_equal(dt_suggest_word("weight_deacy", keys), "weight_decay");
    assert_null(dt_suggest_word("momentum", keys));
    assert_null(dt_suggest_word("xy", keys)); /* nothing of "lr" is in it */
    assert_null(dt_suggest_word("", keys));
}

static void test_whole_numbers(void **state)
{
    int64_t v = 0;
    assert_true(dt_parse_whole("9223372036854775807", &v) && v == INT64_MAX);
    assert_true(dt_parse_whole("0x10", &v) && v == 16);
    assert_true(dt_parse_whole("1e3", &v) && v == 1000);
    assert_true(dt_parse_whole("-2.5e4", &v) && v == -25000);
    assert_true(dt_parse_whole("5.0", &v) && v == 5);
    assert_true(dt_parse_whole("9007199254740991.0", &v) && v == 9007199254740991);
    static const char *const bad[] = {"", "1.5", "1e-3", "9007199254740992.0", "1e30", "1e400", "1e", "inf", "9e3x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(dt_parse_whole(bad[i], &v));
    }
}

static void test_integers(void **state)
{
    int64_t v = 0;
    assert_true(dt_parse_i64("0", &v) && v == 0);
    assert_true(dt_parse_i64("-12", &v) && v == -12);
    assert_true(dt_parse_i64("+7", &v) && v == 7);
    assert_true(dt_parse_i64("0x1F", &v) && v == 31);
    assert_true(dt_parse_i64("-0x10", &v) && v == -16);
    assert_true(dt_parse_i64("9223372036854775807", &v) && v == INT64_MAX);
    assert_true(dt_parse_i64("-9223372036854775808", &v) && v == INT64_MIN);
    v = 5;
    static const char *const bad[] = {"",
                                      "-",
                                      "+-1",
                                      "1 ",
                                      " 1",
                                      "1.0",
                                      "0x",
                                      "1e3",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999",
                                      "a",
                                      "0xg"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(dt_parse_i64(bad[i], &v));
    }
    assert_int_equal(v, 5);
}

static void test_floats(void **state)
{
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* a comma locale, where installed, must change nothing */
    double v = 0;
    assert_true(dt_parse_f64("1.5", &v) && v == 1.5);
    assert_true(dt_parse_f64("-1e-3", &v) && v == -1e-3);
    assert_true(dt_parse_f64("5", &v) && v == 5);
    assert_true(dt_parse_f64(".5", &v) && v == 0.5);
    v = 3;
    static const char *const bad[] = {"",     "nan",   "inf", "-inf", "1,5", " 1", "1 ",
                                      "0x10", "1e999", "e",   "1e",   "--1", "."};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(dt_parse_f64(bad[i], &v));
    }
    assert_true(v == 3);
}

/* Numbers of few digits are read without strtod, to the same bits. */
static void test_parse_short(void **state)
{
    static const char *const edges[] = {"0",   "-0",  "-0.0", "0.000000000000000", "000000000000001.5",
                                        "5.",  "-.5", "0.1",  "9007199254740992",  "9007199254740993",
                                        "0.3", "1.",  "-7",   "123456789.1234567", "999999999999999.9"};
    (void)setlocale(LC_ALL, "C"); /* strtod's */
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        double v = 1, want = 2;
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t digits = random >> (11 + random % 50);
        if (i < (int)(sizeof(edges) / sizeof(edges[0]))) {
            snprintf(text, sizeof(text), "%s", edges[i]);
        } else {
            snprintf(text, sizeof(text), "%s%" PRIu64 ".%0*" PRIu64, i % 3 == 0 ? "-" : "", digits, i % 8,
                     random % 1000);
        }
        want = strtod(text, NULL);
        assert_true(dt_parse_f64(text, &v));
        assert_memory_equal(&v, &want, sizeof(v));
    }
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"a", 1},
        {"", 1}, /* the NUL itself */
        {"\xC2\x80", 2},
        {"\xDF\xBFz", 2},
        {"\xE0\xA0\x80", 3},
        {"\xED\x9F\xBF", 3},
        {"\xF4\x8F\xBF\xBF", 4},
        {"\x80", 0},
        {"\xC1\xBF", 0},         /* two bytes for what one says */
        {"\xE0\x9F\xBF", 0},     /* three for two */
        {"\xED\xA0\x80", 0},     /* a surrogate */
        {"\xF4\x90\x80\x80", 0}, /* beyond U+10FFFF */
        {"\xF5\x80\x80\x80", 0},
        {"\xE2\x82", 0}, /* cut */
        {"\xC3", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(dt_utf8_bytes(cases[i].text), cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),       cmocka_unit_test(test_out_of_memory_sticks),
        cmocka_unit_test(test_glob),          cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_did_you_mean),  cmocka_unit_test(test_integers),
        cmocka_unit_test(test_whole_numbers), cmocka_unit_test(test_floats),
        cmocka_unit_test(test_parse_short),   cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

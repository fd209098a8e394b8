/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/json_read.c: tokens, places, refusals, and the same results however the input is cut into pieces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"

typedef struct source {
    const char *text;
    size_t bytes, piece; /* at most piece bytes at a time */
    bool is_failing;     /* at the end: an error instead of the end */
} source;

static int64_t read_source(void *user, char *buf, size_t bytes)
{
    source *s = user;
    size_t n = s->bytes < s->piece ? s->bytes : s->piece;
    n = n < bytes ? n : bytes;
    if (n == 0 && s->is_failing) {
        (void)DT_FAIL(DT_EDATA, "the archive is cut short");
        return -1;
    }
    memcpy(buf, s->text, n);
    s->text += n;
    s->bytes -= n;
    return (int64_t)n;
}

/* All tokens as one line: {} [] "text" 'key' #number true... The status of the last call is returned. */
static dt_status flatten(const char *text, size_t bytes, size_t piece, dt_str *out)
{
    source s = {.text = text, .bytes = bytes, .piece = piece};
    dt_json *j = NULL;
    dt_status st = dt_json_open(read_source, &s, "in", &j);
    assert_int_equal(st, DT_OK);
    dt_json_token t = {.kind = DT_JSON_NULL};
    dt_str_clear(out);
    while ((st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        switch (t.kind) {
        case DT_JSON_OBJECT:
            dt_str_add(out, "{ ");
            break;
        case DT_JSON_OBJECT_END:
            dt_str_add(out, "} ");
            break;
        case DT_JSON_ARRAY:
            dt_str_add(out, "[ ");
            break;
        case DT_JSON_ARRAY_END:
            dt_str_add(out, "] ");
            break;
        case DT_JSON_KEY:
            dt_str_addf(out, "'%s' ", t.text);
            assert_int_equal(strlen(t.text), t.bytes);
            break;
        case DT_JSON_STRING:
            dt_str_addf(out, "\"%s\" ", t.text);
            assert_int_equal(strlen(t.text), t.bytes);
            break;
        case DT_JSON_NUMBER:
            assert_int_equal(strlen(t.text), t.bytes);
            if (t.is_integer) {
                assert_true((double)t.integer == t.number);
                dt_str_addf(out, "#%lld ", (long long)t.integer);
            } else {
                dt_str_addf(out, "#%.17g ", t.number);
            }
            break;
        default:
            dt_str_add(out, t.kind == DT_JSON_TRUE ? "true " : t.kind == DT_JSON_FALSE ? "false " : "null ");
            break;
        }
    }
    dt_json_close(j);
    return st;
}

static void expect_tokens(const char *text, const char *want)
{
    static const size_t pieces[] = {1, 2, 3, 7, 1000000};
    dt_str out = {0};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        assert_int_equal(flatten(text, strlen(text), pieces[i], &out), DT_OK);
        assert_string_equal(dt_str_text(&out), want);
    }
    dt_str_fini(&out);
}

static void expect_refusal_n(const char *text, size_t bytes, const char *want)
{
    static const size_t pieces[] = {1, 2, 3, 1000000};
    dt_str out = {0};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        assert_int_equal(flatten(text, bytes, pieces[i], &out), DT_EDATA);
        if (strstr(dt_error_text(), want) == NULL) {
            fail_msg("%s: \"%s\" does not say \"%s\"", text, dt_error_text(), want);
        }
    }
    dt_str_fini(&out);
}

static void expect_refusal(const char *text, const char *want)
{
    expect_refusal_n(text, strlen(text), want);
}

static void test_structure(void **state)
{
    expect_tokens("{}", "{ } ");
    expect_tokens(" [ ] ", "[ ] ");
    expect_tokens("{\"a\":1,\"b\":[true,false,null,\"x\"],\"c\":{\"d\":{}}}",
                  "{ 'a' #1 'b' [ true false null \"x\" ] 'c' { 'd' { } } } ");
    expect_tokens("\r\n\t 7 \n", "#7 ");
    expect_tokens("\"top\"", "\"top\" ");
    expect_tokens("null", "null ");
    expect_tokens("\xEF\xBB\xBF[1]", "[ #1 ] ");
    expect_tokens("[[],[[]],{\"\":\"\"}]", "[ [ ] [ [ ] ] { '' \"\" } ] ");
}

static void test_strings(void **state)
{
    expect_tokens("\"a\\n\\t\\\"\\\\\\/\\b\\f\\rz\"", "\"a\n\t\"\\/\b\f\rz\" ");
    expect_tokens("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00!\"", "\"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80!\" ");
    expect_tokens("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7f\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7f\" ");
    expect_tokens("\"\\nplain\xC3\xA9 text\\u0042 after\"", "\"\nplain\xC3\xA9 textB after\" ");
    expect_refusal("\"ab", "in:1:4: ");
    expect_refusal("\"ab\\", "expected an escape");
    expect_refusal("\"\\x\"", "in:1:2: ");
    expect_refusal("\"\\u12g4\"", "four hexadecimal digits");
    expect_refusal("\"\\u12", "four hexadecimal digits");
    expect_refusal("\"\\u0000\"", "\\u0000");
    expect_refusal("\"\\ud800\"", "half of a surrogate pair");
    expect_refusal("\"\\ud800\\u0041\"", "half of a surrogate pair");
    expect_refusal("\"\\udc00\"", "half of a surrogate pair");
    expect_refusal("\"a\nb\"", "in:1:3: ");
    expect_refusal_n("\"a\0b\"", 5, "a control character must be escaped");
    /* UTF-8: overlong, surrogate, too large, cut, stray continuation */
    static const char *const bad[] = {"\"\xC0\x80\"",
                                      "\"\xC1\xBF\"",
                                      "\"\xE0\x80\x80\"",
                                      "\"\xED\xA0\x80\"",
                                      "\"\xF4\x90\x80\x80\"",
                                      "\"\xF0\x80\x80\x80\"",
                                      "\"\xF8\x88\x80\x80\"",
                                      "\"\x80\"",
                                      "\"\xE2\x82\"",
                                      "\"\xC3\"",
                                      "\"\xFF\"",
                                      "\"\xF0\x9F\x98"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refusal(bad[i], "not valid UTF-8");
    }
}

static void test_refused_structure(void **state)
{
    expect_refusal("", "in:1:1: ");
    expect_refusal("  \n ", "in:2:2: ");
    expect_refusal("[1,]", "in:1:4: ");
    expect_refusal("[1 2]", "in:1:4: ");
    expect_refusal("[1", "expected ',' or ']'");
    expect_refusal("[,1]", "found ','");
    expect_refusal("{\"a\":1,}", "found '}', expected a key in quotes");
    expect_refusal("{,}", "expected a key in quotes or '}'");
    expect_refusal("{a:1}", "found 'a', expected a key in quotes or '}'");
    expect_refusal("{\"a\" 1}", "expected ':' after a key");
    expect_refusal("{\"a\":}", "found '}', expected a value");
    expect_refusal("{\"a\":1", "expected ',' or '}'");
    expect_refusal("{\"a\":1]", "found ']', expected ',' or '}'");
    expect_refusal("[1}", "found '}', expected ',' or ']'");
    expect_refusal("1 2", "found '2', expected nothing after the document");
    expect_refusal("{}}", "expected nothing after the document");
    expect_refusal("]", "found ']', expected a value");
    expect_refusal("tru", "unknown word");
    expect_refusal("nul]", "unknown word");
    expect_refusal("True", "found 'T', expected a value");
    expect_refusal("NaN", "found 'N'");
    expect_refusal("[Infinity]", "found 'I'");
    expect_refusal("'a'", "found '''");
    expect_refusal("// comment", "found '/'");
    expect_refusal("\xEF\xBB", "found byte 0xef");
    expect_refusal("{\n  \"a\": [1,\n 2,\n   x]}", "in:4:4: ");
    expect_refusal_n("\0", 1, "found byte 0x00");
    expect_refusal_n("[1]\0", 4, "expected nothing after the document");
}

static void test_depth_is_limited(void **state)
{
    char text[200];
    memset(text, '[', 100);
    text[100] = '\0';
    expect_refusal(text, "in:1:65: ");
    memset(text + 64, ']', 64);
    text[128] = '\0';
    dt_str out = {0};
    assert_int_equal(flatten(text, 128, 1000, &out), DT_OK);
    dt_str_fini(&out);
}

static void test_number_syntax(void **state)
{
    expect_tokens("[0,-0,1,-1,9223372036854775807,-9223372036854775808]",
                  "[ #0 #0 #1 #-1 #9223372036854775807 #-9223372036854775808 ] ");
    expect_tokens("[9223372036854775808,1e2,1E+2,1.0,12.5e-1]", "[ #9.2233720368547758e+18 #100 #100 #1 #1.25 ] ");
    expect_tokens("[1e-400,0e999999999999]", "[ #0 #0 ] ");
    static const char *const bad[] = {"01", "-01", "00", "-",    "+1",    ".5",  "1.",   "1.e3",
                                      "1e", "1e+", "-a", "0x10", "1.2.3", "--1", "1e1.5"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refusal(bad[i], "in:1:");
    }
    expect_refusal("1e999", "in:1:1: ");
    expect_refusal("[-1e309]", "in:1:2: ");
}

/* Every text reads as strtod reads it, bit for bit. */
static void expect_strtod(const char *text)
{
    dt_json *j = NULL;
    dt_json_token t;
    assert_int_equal(dt_json_open_mem(text, strlen(text), "in", &j), DT_OK);
    assert_int_equal(dt_json_next(j, &t), DT_OK);
    double want = strtod(text, NULL);
    if (memcmp(&want, &t.number, sizeof(want)) != 0) {
        fail_msg("%s: %.17g, want %.17g", text, t.number, want);
    }
    dt_json_close(j);
}

static void test_numbers_are_rounded_exactly(void **state)
{
    static const char *const hard[] = {"0.1",
                                       "0.3",
                                       "2.2250738585072011e-308",
                                       "2.2250738585072014e-308",
                                       "4.9406564584124654e-324",
                                       "1.7976931348623157e308",
                                       "9007199254740993",
                                       "9007199254740992.5",
                                       "9007199254740993.0000000000000001",
                                       "6.02214076e23",
                                       "1e23",
                                       "8.5e22",
                                       "-0.0",
                                       "123456789012345678901234567890",
                                       "0.000000000000000000000000000000000000000000001",
                                       "1.00000000000000011102230246251565404236316680908203125",
                                       "1.00000000000000011102230246251565404236316680908203124",
                                       "1.00000000000000011102230246251565404236316680908203126",
                                       "9214843084008499",
                                       "18411825114862929e-19", /* of 64 bits exactly between two doubles */
                                       "27583195986108163e-8",
                                       "40835150773787992e-7",
                                       "48492037826983929e7",
                                       "45579229095835192e-15",
                                       "77385536271027982e-11",
                                       "0.500000000000000166533453693773481063544750213623046875",
                                       "3.518437208883201171875e13",
                                       "36028797018963964",
                                       "36028797018963966",
                                       "36028797018963972.0"};
    for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
        expect_strtod(hard[i]);
    }
    /* random mantissas of 1 to 19 digits with random points and exponents, and doubles as programs print them */
    const dt_rng_key key = {.seed = 5};
    char text[80];
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t r[4];
        dt_philox(&key, i, r);
        uint64_t bits = (uint64_t)r[0] << 32 | r[1], power = 1;
        for (uint32_t d = 0; d < r[2] % 19 + 1; d++) {
            power *= 10;
        }
        snprintf(text, sizeof(text), "%s%llu.%03ue%d", r[3] & 1 ? "-" : "", (unsigned long long)(bits % power),
                 r[2] >> 20 & 511, (int)(r[3] >> 8) % 60 - 30);
        expect_strtod(text);
        double v = ldexp((double)(bits >> 11), (int)(r[3] % 80) - 70);
        snprintf(text, sizeof(text), "%.17g", v);
        expect_strtod(text);
        snprintf(text, sizeof(text), "%.16g", v);
        expect_strtod(text);
        /* just at, below and above halfway between two doubles of 54 bits */
        snprintf(text, sizeof(text), "%llu", (unsigned long long)((bits >> 10 | 1) + (r[3] % 3) - 1));
        expect_strtod(text);
    }
}

static void test_places(void **state)
{
    dt_json *j = NULL;
    dt_json_token t;
    const char *text = "{\n  \"key\": [10,\n\t\"x\"]\n}";
    source s = {.text = text, .bytes = strlen(text), .piece = 1};
    assert_int_equal(dt_json_open(read_source, &s, "file.json", &j), DT_OK);
    static const int places[][2] = {{1, 1}, {2, 3}, {2, 10}, {2, 11}, {3, 2}, {3, 5}, {4, 1}, {4, 2}};
    static const int depths[] = {1, 1, 2, 2, 2, 1, 0, 0};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(dt_json_next(j, &t), DT_OK);
        assert_int_equal(t.line, places[i][0]);
        assert_int_equal(t.column, places[i][1]);
        assert_int_equal(dt_json_depth(j), depths[i]);
        if (i == 3) {
            assert_int_equal(dt_json_fail(j, "epochs %d is above %d", 10, 5), DT_EDATA);
            assert_string_equal(dt_error_text(), "file.json:2:11: epochs 10 is above 5");
        }
    }
    assert_int_equal(t.kind, DT_JSON_END);
    assert_int_equal(dt_json_next(j, &t), DT_OK); /* the end stays the end */
    assert_int_equal(t.kind, DT_JSON_END);
    dt_json_close(j);
}

static void test_skip(void **state)
{
    dt_json *j = NULL;
    dt_json_token t;
    const char *text = "{\"a\":{\"x\":[1,{\"y\":2}]},\"b\":\"s\",\"c\":3}";
    assert_int_equal(dt_json_open_mem(text, strlen(text), "in", &j), DT_OK);
    assert_int_equal(dt_json_next(j, &t), DT_OK);
    for (char name = 'a'; name <= 'c'; name++) {
        assert_int_equal(dt_json_next(j, &t), DT_OK);
        assert_int_equal(t.kind, DT_JSON_KEY);
        assert_int_equal(t.text[0], name);
        assert_int_equal(dt_json_skip(j), DT_OK);
    }
    assert_int_equal(dt_json_skip(j), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "no value to skip"));
    dt_json_close(j);
}

static void test_long_tokens(void **state)
{
    /* a string across many windows is whole; one above the limit is refused, without holding it */
    enum { BIG = 900000 };
    char *text = dt_alloc(3000000);
    text[0] = '"';
    memset(text + 1, 'x', BIG);
    memcpy(text + BIG - 5, "\\u00e9", 6);
    text[BIG + 1] = '"';
    dt_json *j = NULL;
    dt_json_token t;
    source s = {.text = text, .bytes = BIG + 2, .piece = 1000};
    assert_int_equal(dt_json_open(read_source, &s, "in", &j), DT_OK);
    assert_int_equal(dt_json_next(j, &t), DT_OK);
    assert_int_equal(t.bytes, BIG - 4);
    assert_memory_equal(t.text + BIG - 7, "x\xC3\xA9", 3);
    assert_int_equal(dt_json_next(j, &t), DT_OK);
    assert_int_equal(t.kind, DT_JSON_END);
    dt_json_close(j);
    memset(text + 1, 'x', 2999999);
    uint64_t live = dt_alloc_live_bytes();
    assert_int_equal(dt_json_open_mem(text, 3000000, "in", &j), DT_OK);
    assert_int_equal(dt_json_next(j, &t), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "longer than 1 MiB"));
    assert_true(dt_alloc_live_bytes() - live < 1200000);
    assert_int_equal(dt_json_next(j, &t), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "after an error"));
    dt_json_close(j);
    /* a number of 2000 digits, which ends at the end of the input */
    memset(text, '3', 2000);
    memcpy(text + 1, ".", 1);
    assert_int_equal(dt_json_open_mem(text, 2000, "in", &j), DT_OK);
    assert_int_equal(dt_json_next(j, &t), DT_OK);
    assert_true(t.number == 10.0 / 3);
    dt_json_close(j);
    dt_free(text);
}

static void test_memory_is_bounded_by_the_window(void **state)
{
    dt_str big = {0};
    dt_str_add(&big, "[");
    for (int i = 0; i < 100000; i++) {
        dt_str_addf(&big, "%s{\"id\": %d, \"x\": %d.%06d}", i > 0 ? "," : "", i, i % 500, i);
    }
    dt_str_add(&big, "]");
    dt_json *j = NULL;
    dt_json_token t;
    assert_int_equal(dt_json_open_mem(big.text, big.bytes, "in", &j), DT_OK);
    uint64_t live = dt_alloc_live_bytes(), calls = dt_alloc_calls();
    int64_t sum = 0;
    do {
        assert_int_equal(dt_json_next(j, &t), DT_OK);
        sum += t.is_integer ? t.integer : 0;
    } while (t.kind != DT_JSON_END);
    assert_int_equal(sum, (int64_t)100000 * 99999 / 2);
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_int_equal(dt_alloc_calls(), calls);
    dt_json_close(j);
    dt_str_fini(&big);
}

static void test_source_errors_come_through(void **state)
{
    source s = {.text = "[1,2", .bytes = 4, .piece = 100, .is_failing = true};
    dt_json *j = NULL;
    dt_json_token t;
    assert_int_equal(dt_json_open(read_source, &s, "a.json.xz", &j), DT_OK);
    dt_status st = DT_OK;
    while (st == DT_OK) {
        st = dt_json_next(j, &t);
    }
    assert_int_equal(st, DT_EDATA);
    assert_string_equal(dt_error_text(), "a.json.xz: the archive is cut short");
    dt_json_close(j);
    for (int i = 1; i <= 3; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", i);
        dt_fault_reset(spec);
        assert_int_equal(dt_json_open_mem("1", 1, "in", &j), DT_ENOMEM);
        assert_non_null(strstr(dt_error_text(), "out of memory"));
    }
    dt_fault_reset(NULL);
}

/* Every prefix and every changed byte of a document: a clean answer, never a crash (sanitizers look on). */
static void test_cut_and_changed_documents(void **state)
{
    const char *text = "{\"samples\":[{\"id\":\"s\\u00e90\",\"t\":-1.5e-3,\"v\":[true,null,12345678901234567890]}],"
                       "\"\xE2\x82\xAC\":\"\\ud83d\\ude00\"}";
    const size_t bytes = strlen(text);
    dt_str out = {0};
    for (size_t n = 0; n < bytes; n++) {
        assert_int_equal(flatten(text, n, 5, &out), DT_EDATA);
    }
    char changed[256];
    for (size_t n = 0; n < bytes; n++) {
        for (int c = 0; c < 256; c++) {
            memcpy(changed, text, bytes);
            changed[n] = (char)c;
            dt_status st = flatten(changed, bytes, 9, &out);
            assert_true(st == DT_OK || st == DT_EDATA);
        }
    }
    dt_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_refused_structure),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_number_syntax),
        cmocka_unit_test(test_numbers_are_rounded_exactly),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_long_tokens),
        cmocka_unit_test(test_memory_is_bounded_by_the_window),
        cmocka_unit_test(test_source_errors_come_through),
        cmocka_unit_test(test_cut_and_changed_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

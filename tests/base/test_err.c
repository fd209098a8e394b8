/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/err.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/err.h"

static void test_fail_records_text_and_place(void **state)
{
    dt_error_clear();
    assert_string_equal(dt_error_text(), "");
    assert_string_equal(dt_error_where(), "");
    assert_int_equal(DT_FAIL(DT_ECONFIG, "clip_eps %g is outside (0,1)", 1.5), DT_ECONFIG);
    assert_string_equal(dt_error_text(), "clip_eps 1.5 is outside (0,1)");
    assert_non_null(strstr(dt_error_where(), "test_err.c:"));
    assert_null(strstr(dt_error_where(), ".."));
}

static void test_context_goes_in_front(void **state)
{
    dt_status st = DT_FAIL(DT_EDATA, "cut short");
    assert_int_equal(DT_CONTEXT(st, "loading phase %s", "p1"), DT_EDATA);
    assert_string_equal(dt_error_text(), "loading phase p1: cut short");
    dt_error_clear();
    assert_int_equal(DT_CONTEXT(DT_EIO, "alone"), DT_EIO);
    assert_string_equal(dt_error_text(), "alone");
}

static void test_record_may_quote_itself(void **state)
{
    (void)DT_FAIL(DT_EIO, "inner");
    (void)DT_FAIL(DT_EPEER, "rank 1: %s", dt_error_text());
    assert_string_equal(dt_error_text(), "rank 1: inner");
}

/* Names of others drive no terminal and begin no line; a text of several lines is made of records. */
static void test_foreign_words_are_masked(void **state)
{
    (void)DT_FAIL(DT_EDATA, "format is \"%s\"", "a\nerror owned\x1b[2J");
    assert_string_equal(dt_error_text(), "format is \"a?error owned?[2J\"");
    (void)DT_FAIL_LINES(DT_EDATA, "two errors\n%s\nand\x07", dt_error_text());
    assert_string_equal(dt_error_text(), "two errors\nformat is \"a?error owned?[2J\"\nand?");
    (void)DT_CONTEXT(DT_EDATA, "file %s", "b\n\tc\x7f");
    assert_string_equal(dt_error_text(), "file b?\tc?: two errors\nformat is \"a?error owned?[2J\"\nand?");
}

static void test_long_text_is_cut(void **state)
{
    char big[3 * DT_ERROR_TEXT_BYTES];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    (void)DT_FAIL(DT_EIO, "%s", big);
    assert_int_equal(strlen(dt_error_text()), DT_ERROR_TEXT_BYTES - 1);
    (void)DT_CONTEXT(DT_EIO, "front");
    assert_int_equal(strlen(dt_error_text()), DT_ERROR_TEXT_BYTES - 1);
    assert_memory_equal(dt_error_text(), "front: xxx", 10);
    (void)DT_CONTEXT(DT_EIO, "%s", big);
    assert_int_equal(strlen(dt_error_text()), DT_ERROR_TEXT_BYTES - 1);
}

static void *worker(void *arg)
{
    dt_status st = DT_FAIL(DT_ENOMEM, "worker is out of memory");
    dt_error_save(arg, st);
    return NULL;
}

static void test_records_are_per_thread_and_can_be_handed_over(void **state)
{
    dt_error_clear();
    dt_error e;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, worker, &e), 0);
    pthread_join(t, NULL);
    assert_string_equal(dt_error_text(), "");
    assert_int_equal(dt_error_restore(&e), DT_ENOMEM);
    assert_string_equal(dt_error_text(), "worker is out of memory");
    assert_non_null(strstr(dt_error_where(), "test_err.c:"));
}

static dt_status tried(dt_status st)
{
    DT_TRY(st);
    return DT_EIO;
}

static dt_status tried_done(dt_status st)
{
    DT_TRY_DONE(st);
    return DT_EDATA;
}

/* A positive code is a decision for the caller: DT_TRY never drops it, and DT_TRY_DONE drops the end of a stream. */
static void test_try_drops_no_code(void **state)
{
    assert_int_equal(tried(DT_EDATA), DT_EDATA);
    assert_int_equal(tried(DT_DONE), DT_DONE);
    assert_int_equal(tried(DT_AGAIN), DT_AGAIN);
    assert_int_equal(tried(DT_OK), DT_EIO);
    assert_int_equal(tried_done(DT_EIO), DT_EIO);
    assert_int_equal(tried_done(DT_AGAIN), DT_AGAIN);
    assert_int_equal(tried_done(DT_DONE), DT_EDATA);
    assert_int_equal(tried_done(DT_OK), DT_EDATA);
}

static void test_every_code_has_a_name(void **state)
{
    static const dt_status codes[] = {DT_OK,     DT_DONE,      DT_AGAIN,        DT_EINVAL,  DT_ECONFIG,
                                      DT_ESHAPE, DT_ENOTFOUND, DT_EABI,         DT_EDATA,   DT_ENOMEM,
                                      DT_EIO,    DT_ECUDA,     DT_EUNSUPPORTED, DT_EPLUGIN, DT_EINTERRUPTED,
                                      DT_ECOMM,  DT_EPEER,     DT_EDIVERGED};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_string_not_equal(dt_status_name(codes[i]), "DT_?");
        assert_string_not_equal(dt_status_text(codes[i]), "unknown status");
    }
    assert_string_equal(dt_status_name(DT_ECONFIG), "DT_ECONFIG");
    assert_string_equal(dt_status_text(DT_ECONFIG), "configuration or command line");
    assert_string_equal(dt_status_name(-99), "DT_?");
}

static void test_blame(void **state)
{
    assert_int_equal(dt_error_blame_plugin(DT_FAIL(DT_EINVAL, "rank 7 of 2")), DT_EPLUGIN);
    assert_string_equal(dt_error_text(), "rank 7 of 2");
    assert_int_equal(dt_error_status(), DT_EPLUGIN);
    assert_int_equal(DT_BREACH(DT_ESHAPE, "3 values, not 2"), DT_ESHAPE);
    assert_int_equal(dt_error_blame_plugin(DT_CONTEXT(DT_ESHAPE, "start")), DT_EPLUGIN);
    assert_string_equal(dt_error_text(), "start: 3 values, not 2");
    dt_error kept; /* from one thread to another */
    dt_error_save(&kept, DT_BREACH(DT_ENOTFOUND, "no constant"));
    dt_error_clear();
    assert_int_equal(dt_error_blame_plugin(dt_error_restore(&kept)), DT_EPLUGIN);
    static const dt_status others[] = {DT_OK,    DT_DONE, DT_ECONFIG,      DT_ESHAPE, DT_ENOTFOUND,
                                       DT_EDATA, DT_EIO,  DT_EUNSUPPORTED, DT_EBROKEN};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(dt_error_blame_plugin(others[i] < 0 ? DT_FAIL(others[i], "other") : others[i]), others[i]);
    }
    (void)DT_BREACH(DT_ESHAPE, "handled");
    assert_int_equal(dt_error_blame_plugin(DT_ECONFIG), DT_ECONFIG); /* of another cause */
}

/* A callback that fails says why, or the message says who did not. */
static void test_failures_of_plugins_have_a_reason(void **state)
{
    uint64_t before = 0;
    (void)DT_FAIL(DT_EDATA, "of long ago");
    before = dt_error_count();
    assert_int_equal(dt_error_require_reason(DT_EIO, before, "mine", "step"), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "mine: step returned DT_EIO"));
    assert_non_null(strstr(dt_error_text(), "DT_FAIL_H"));
    before = dt_error_count();
    (void)DT_FAIL(DT_EIO, "%s", "");
    assert_int_equal(dt_error_require_reason(DT_EIO, before, "mine", "step"), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "without a reason"));
    before = dt_error_count();
    (void)DT_FAIL(DT_EIO, "the disk is full");
    assert_int_equal(dt_error_require_reason(DT_EIO, before, "mine", "step"), DT_EIO);
    assert_string_equal(dt_error_text(), "the disk is full");
    assert_int_equal(dt_error_require_reason(-99, before, "mine", "step"), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "returned -99"));
    assert_int_equal(dt_error_require_reason(DT_DONE, before, "mine", "step"), DT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_fail_records_text_and_place),
        cmocka_unit_test(test_context_goes_in_front),
        cmocka_unit_test(test_record_may_quote_itself),
        cmocka_unit_test(test_foreign_words_are_masked),
        cmocka_unit_test(test_long_text_is_cut),
        cmocka_unit_test(test_records_are_per_thread_and_can_be_handed_over),
        cmocka_unit_test(test_try_drops_no_code),
        cmocka_unit_test(test_every_code_has_a_name),
        cmocka_unit_test(test_failures_of_plugins_have_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/logfile.c: files turn over by size, the oldest goes, lines stay whole, what was there is gone on
 * with, and a log that cannot be turned over is still written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/logfile.h"
#include "base/mem.h"

static char top[64], path[96];

static int begin(void **state)
{
    snprintf(top, sizeof(top), "test_logfile.%ld.tmp", (long)getpid());
    snprintf(path, sizeof(path), "%s/a.log", top);
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    return dt_fs_remove_tree(top);
}

/* Lines of FILE.i without their times, a blank between; "" when it is not there. */
static const char *lines(int i)
{
    static char out[512];
    char name[128], *text = NULL;
    size_t bytes = 0;
    out[0] = '\0';
    snprintf(name, sizeof(name), i > 0 ? "%s.%d" : "%s", path, i);
    if (dt_fs_read_all(name, 1 << 16, &text, &bytes) < 0) {
        dt_error_clear();
        return out;
    }
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
        assert_int_equal(line[20], ' ');
        assert_int_equal(line[19], 'Z');
        strcat(out, out[0] != '\0' ? " " : "");
        strcat(out, line + 21);
    }
    dt_free(text);
    return out;
}

static dt_logfile *open_log(uint64_t max_bytes, uint32_t keep)
{
    dt_logfile *f = NULL;
    const dt_logfile_opts o = {.max_bytes = max_bytes, .keep = keep};
    assert_int_equal(dt_logfile_open(path, &o, &f), DT_OK);
    return f;
}

/* A line "a" is 23 bytes. */
static void test_turns_over(void **state)
{
    dt_logfile *f = open_log(50, 2);
    static const char *const line[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t i = 0; i < 7; i++) {
        dt_logfile_write_line(f, line[i]);
    }
    assert_string_equal(lines(0), "g");
    assert_string_equal(lines(1), "e f");
    assert_string_equal(lines(2), "c d");
    assert_string_equal(lines(3), "");
    dt_logfile_close(f);

    f = open_log(50, 2); /* another process goes on with it, and with its size */
    dt_logfile_write_line(f, "h");
    dt_logfile_write_line(f, "i");
    dt_logfile_write_line(f, "a line longer than a whole file is written all the same");
    assert_string_equal(lines(0), "a line longer than a whole file is written all the same");
    assert_string_equal(lines(1), "i");
    assert_string_equal(lines(2), "g h");
    dt_logfile_close(f);
}

static void test_keeps_none_or_all(void **state)
{
    dt_logfile *f = open_log(50, 0);
    for (int i = 0; i < 5; i++) {
        dt_logfile_write_line(f, i % 2 == 0 ? "x" : "y");
    }
    assert_string_equal(lines(0), "x");
    assert_string_equal(lines(1), "");
    dt_logfile_close(f);
    f = open_log(0, 3);
    for (int i = 0; i < 5; i++) {
        dt_logfile_write_line(f, "z");
    }
    assert_string_equal(lines(0), "x z z z z z");
    dt_logfile_close(f);
    dt_logfile_write_line(NULL, "none");
}

static void test_no_place(void **state)
{
    dt_logfile *f = NULL;
    const dt_logfile_opts o = {.max_bytes = 50, .keep = 1};
    assert_int_equal(dt_logfile_open("no/such/folder/x.log", &o, &f), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "no/such/folder/x.log"));
    assert_null(f);

    char taken[128];
    snprintf(taken, sizeof(taken), "%s.1", path); /* a folder is in the way: it cannot be turned over */
    assert_int_equal(dt_fs_mkdirs(taken), DT_OK);
    f = open_log(50, 1);
    for (int i = 0; i < 5; i++) {
        dt_logfile_write_line(f, "w");
    }
    assert_string_equal(lines(0), "w w w w w");
    dt_logfile_close(f);
}

/* Another program removes or cuts the log: it goes on, and says so once. */
static void test_removed_meanwhile(void **state)
{
    dt_logfile *f = open_log(0, 0);
    dt_logfile_write_line(f, "w");
    assert_false(dt_logfile_is_recreated(f));
    assert_int_equal(unlink(path), 0);
    dt_logfile_write_line(f, "w");
    dt_logfile_write_line(f, "w");
    assert_true(dt_logfile_is_recreated(f));
    assert_non_null(strstr(lines(0), "w w"));
    assert_int_equal(truncate(path, 0), 0);
    dt_logfile_write_line(f, "w");
    assert_string_equal(lines(0), "w");
    dt_logfile_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turns_over, begin, end),
        cmocka_unit_test_setup_teardown(test_keeps_none_or_all, begin, end),
        cmocka_unit_test_setup_teardown(test_no_place, begin, end),
        cmocka_unit_test_setup_teardown(test_removed_meanwhile, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

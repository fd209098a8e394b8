/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/lock.c: one holder, named to the next; free once the holder is gone, however it went.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/lock.h"

static char path[64];

static int begin(void **state)
{
    snprintf(path, sizeof(path), "test_lock.%ld.tmp", (long)getpid());
    unlink(path);
    return 0;
}

static int end(void **state)
{
    unlink(path);
    return 0;
}

static void test_one_holder(void **state)
{
    int fd = -1, second = -1;
    char who[64];
    assert_false(dt_lock_is_held(path)); /* no such file */
    assert_int_equal(dt_lock_check(path), DT_OK);
    assert_int_equal(dt_lock_acquire(path, &fd), DT_OK);
    assert_true(dt_lock_is_held(path));
    assert_int_equal(dt_lock_acquire(path, &second), DT_AGAIN);
    assert_int_equal(second, -1);
    snprintf(who, sizeof(who), "is held by process %ld on ", (long)getpid());
    assert_non_null(strstr(dt_error_text(), who));
    dt_error_clear();
    assert_int_equal(dt_lock_check(path), DT_AGAIN);
    assert_non_null(strstr(dt_error_text(), who));
    assert_true(dt_lock_is_held(path)); /* having asked gave nothing up */
    dt_lock_release(fd);
    assert_false(dt_lock_is_held(path));
    assert_int_equal(dt_lock_check(path), DT_OK);
    char expected[64], text[4096] = {0}; /* of a longer holder before nothing is left */
    memset(text, 'x', 400);
    assert_int_equal(dt_fs_write_atomic(path, text, strlen(text)), DT_OK);
    assert_int_equal(dt_lock_acquire(path, &fd), DT_OK);
    const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    snprintf(expected, sizeof(expected), "process %ld on ", (long)getpid());
    assert_true(n > 0 && n < 400 && strncmp(text, expected, strlen(expected)) == 0 && text[n - 1] == '\n');
    dt_lock_release(fd);
    dt_lock_release(-1);
}

static void test_gone_with_its_holder(void **state)
{
    int ready[2], fd = -1;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        const bool is_mine = dt_lock_acquire(path, &fd) == DT_OK;
        const ssize_t n = write(ready[1], is_mine ? "1" : "0", 1);
        pause();
        _exit(n == 1 ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, '1');
    assert_true(dt_lock_is_held(path));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(dt_lock_is_held(path));
    close(ready[0]);
    close(ready[1]);
}

static void test_no_place(void **state)
{
    int fd = -1;
    assert_int_equal(dt_lock_acquire("no/such/folder/lock", &fd), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no/such/folder/lock"));
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_holder, begin, end),
        cmocka_unit_test_setup_teardown(test_gone_with_its_holder, begin, end),
        cmocka_unit_test(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/mapping.h: a mapped file that becomes shorter reads as zeros and is reported; any other SIGBUS is
 * deadly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/mapping.h"

enum { PAGES = 16, READERS = 4 };
static char path[64];
static size_t page;

static void *read_all(void *p)
{
    const volatile uint8_t *b = p;
    size_t sum = 0;
    for (size_t i = 0; i < PAGES * page; i++) {
        sum += b[i];
    }
    return (void *)sum;
}

/* In a process of its own, because a loss stays on record. */
static int lose(bool is_guarded, bool is_ours)
{
    const pid_t pid = fork();
    if (pid > 0) {
        int ended = 0;
        assert_int_equal(waitpid(pid, &ended, 0), pid);
        return ended;
    }
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGBUS, SIG_DFL); /* cmocka's own handler hides it */
    uint8_t *bytes = malloc(PAGES * page);
    memset(bytes, 1, PAGES * page);
    const void *p = NULL, *q = NULL;
    size_t n = 0;
    if (is_guarded) {
        dt_mapping_install_guard();
    }
    if (dt_fs_write_atomic(path, bytes, PAGES * page) != DT_OK || dt_fs_map(path, &p, &n) != DT_OK ||
        dt_fs_map(path, &q, &n) != DT_OK || dt_mapping_check(0) != DT_OK) {
        _exit(100);
    }
    dt_fs_unmap(q, n); /* its place is used again */
    if (!is_ours) {
        dt_mapping_remove(p);
    }
    if ((size_t)read_all((void *)(uintptr_t)p) != PAGES * page || truncate(path, (off_t)(2 * page)) != 0) {
        _exit(101);
    }
    pthread_t t[READERS];
    for (int i = 0; i < READERS; i++) {
        pthread_create(&t[i], NULL, read_all, (void *)(uintptr_t)p);
    }
    for (int i = 0; i < READERS; i++) {
        void *sum = NULL;
        pthread_join(t[i], &sum);
        if ((size_t)sum != 2 * page) {
            _exit(102);
        }
    }
    if (dt_mapping_check(0) != DT_EDATA || strstr(dt_error_text(), path) == NULL) {
        _exit(103);
    }
    dt_fs_unmap(p, n);
    _exit(dt_mapping_check(0) == DT_EDATA ? 0 : 104); /* it stays on record */
}

static void test_loss(void **state)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    snprintf(path, sizeof(path), "test_mapping.%ld.tmp", (long)getpid());
    assert_int_equal(lose(true, true), 0);
    const int alone = lose(false, true), foreign = lose(true, false);
    assert_true(WIFSIGNALED(alone) && WTERMSIG(alone) == SIGBUS); /* without the guard: what this is about */
    assert_true(WIFSIGNALED(foreign) && WTERMSIG(foreign) == SIGBUS);
    assert_int_equal(dt_mapping_check(0), DT_OK);
    unlink(path);
}

/* A file is overwritten while it is mapped, in a process of its own. Returns how that ended. */
static int overwrite(bool in_place, bool crashes)
{
    const pid_t pid = fork();
    if (pid > 0) {
        int ended = 0;
        assert_int_equal(waitpid(pid, &ended, 0), pid);
        return ended;
    }
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL);
    uint8_t *bytes = calloc(1, page);
    const void *p = NULL;
    size_t n = 0;
    dt_mapping_install_guard();
    dt_crash_install();
    if (dt_fs_write_atomic(path, bytes, page) != DT_OK || dt_fs_map(path, &p, &n) != DT_OK ||
        dt_mapping_check(0) != DT_OK) {
        _exit(100);
    }
    usleep(20000); /* more than the file system's clock ticks */
    if (in_place) {
        FILE *f = fopen(path, "r+");
        if (f == NULL || fputc(1, f) != 1 || fclose(f) != 0) {
            _exit(101);
        }
    } else if (dt_fs_write_atomic(path, bytes, page) != DT_OK) {
        _exit(102);
    }
    if (crashes) {
        raise(SIGSEGV);
        _exit(103);
    }
    const dt_status st = dt_mapping_check(0);
    if (st == DT_EDATA && strstr(dt_error_text(), path) == NULL) {
        _exit(104);
    }
    dt_fs_unmap(p, n);
    free(bytes);
    _exit(st == DT_EDATA && dt_mapping_check(0) == DT_EDATA ? 1 : st == DT_OK ? 0 : 105);
}

static void test_overwritten(void **state)
{
    const int changed = overwrite(true, false), replaced = overwrite(false, false);
    const int crashed = overwrite(true, true), by_itself = overwrite(false, true);
    assert_true(WIFEXITED(changed) && WEXITSTATUS(changed) == 1);
    assert_true(WIFEXITED(replaced) && WEXITSTATUS(replaced) == 0);
    assert_true(WIFEXITED(crashed) && WEXITSTATUS(crashed) == DT_EXIT_DATA);
    assert_true(WIFSIGNALED(by_itself) && WTERMSIG(by_itself) == SIGSEGV);
    unlink(path);
}

static bool put_byte(int byte)
{
    FILE *f = fopen(path, "r+");
    return f != NULL && fputc(byte, f) == byte && fclose(f) == 0;
}

/* Times that change without the content are no change, again and again; the next change of the content is one. */
static void test_touched(void **state)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const struct timespec other[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
        uint8_t *bytes = calloc(1, page);
        const void *p = NULL;
        size_t n = 0;
        if (dt_fs_write_atomic(path, bytes, page) != DT_OK || dt_fs_map(path, &p, &n) != DT_OK) {
            _exit(100);
        }
        usleep(20000);
        if (utimensat(AT_FDCWD, path, NULL, 0) != 0 || dt_mapping_check(0) != DT_OK || /* touch */
            utimensat(AT_FDCWD, path, other, 0) != 0 || dt_mapping_check(0) != DT_OK) {
            _exit(101);
        }
        usleep(20000);
        if (!put_byte(0) || dt_mapping_check(0) != DT_OK) { /* what was there */
            _exit(102);
        }
        usleep(120000); /* long enough that this time is known */
        if (dt_mapping_check(0) != DT_OK || dt_mapping_check(0) != DT_OK) {
            _exit(103);
        }
        const bool is_seen = put_byte(1) && dt_mapping_check(0) == DT_EDATA;
        dt_fs_unmap(p, n);
        free(bytes);
        _exit(is_seen ? 0 : 104);
    }
    int ended = 0;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loss), cmocka_unit_test(test_overwritten),
                                       cmocka_unit_test(test_touched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

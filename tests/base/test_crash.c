/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/crash.c: a process that crashes says how and where, in its log too, and ends by its signal.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"

static void not_ours(int number)
{
    _exit(3);
}

/* A child that gets the signal; what it wrote to its log and to standard error. Its status. */
static int crash(int number, bool is_taken, char out[2][8192])
{
    char path[2][64];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof(path[i]), "test_crash.%ld.%d", (long)getpid(), i);
    }
    const pid_t child = fork();
    if (child == 0) {
        const int log = open(path[0], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        dup2(open(path[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600), STDERR_FILENO);
        for (int i = 1; i < 32; i++) { /* of a sanitizer or the test's frame */
            signal(i, SIG_DFL);
        }
        signal(number, is_taken ? not_ours : SIG_DFL);
        dt_crash_install();
        dt_crash_set_log(log);
        raise(number);
        _exit(9);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path[i], "r");
        assert_non_null(f);
        out[i][fread(out[i], 1, sizeof(out[i]) - 1, f)] = '\0';
        fclose(f);
        unlink(path[i]);
    }
    return status;
}

static void test_reports(void **state)
{
    static const struct {
        int number;
        const char *says;
    } of[] = {{SIGSEGV, "crash: ended by SIGSEGV: "},
              {SIGABRT, "crash: ended by SIGABRT: "},
              {SIGFPE, "crash: ended by SIGFPE: "},
              {SIGILL, "crash: ended by SIGILL: "}};
    char out[2][8192];
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        const int status = crash(of[i].number, false, out);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), of[i].number);
        for (int k = 0; k < 2; k++) {
            assert_true(strncmp(out[k], of[i].says, strlen(of[i].says)) == 0);
#ifdef HAVE_EXECINFO_H
            assert_non_null(strstr(out[k], "crash: backtrace, most recent call first:\n"));
            assert_non_null(strstr(out[k], "test_crash")); /* this program is among them */
#endif
        }
    }
}

static void test_leaves_others_alone(void **state)
{
    char out[2][8192];
    const int status = crash(SIGSEGV, true, out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_string_equal(out[0], "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_leaves_others_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

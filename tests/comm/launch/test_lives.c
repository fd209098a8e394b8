/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ends of a job are worth another life: a fake mpirun runs one rank that joins the board and leaves with a code.
 * What a run itself decides, such as divergence, is final; a lost process is started again.
 */
#include <config.h>

#include "comm/board.h"
#include "comm/launch/launch.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dtrain-lives-XXXXXX", self[4096];

/* What mpirun says of a rank that is killed while it connects, before it ends with a 1 of its own. */
static const char killed[] = "--------------------------------------------------------------------------\n"
                             "mpirun noticed that process rank 0 with PID 0 on node x exited on signal 9 (Killed).\n"
                             "--------------------------------------------------------------------------\n";

/* The rank: its code is the last argument, -1: it is killed; each life leaves a byte in the file. */
static int rank(const char *lives, const char *code)
{
    dt_board *b = NULL;
    FILE *f = fopen(lives, "a");
    if (f == NULL || fputc('.', f) == EOF || fclose(f) != 0 || getenv(DT_BOARD_ENV) == NULL ||
        dt_board_open(getenv(DT_BOARD_ENV), &b) != DT_OK) {
        return 99;
    }
    dt_board_mark_joined(b, 0);
    if (atoi(code) < 0) {
        fputs(killed, stderr);
        _exit(DT_EXIT_FAILED);
    }
    dt_board_mark_left(b, 0, atoi(code));
    dt_board_close(b);
    return atoi(code);
}

static int begin(void **state)
{
    char path[sizeof(folder) + 16];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/mpirun", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nwhile [ \"$1\" != rank ]; do shift; done\nexec '%s' \"$@\"\n", self);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
    char value[8192];
    snprintf(value, sizeof(value), "%s:%s", folder, getenv("PATH"));
    return setenv("PATH", value, 1);
}

static int end(void **state)
{
    char path[sizeof(folder) + 16];
    (void)state;
    static const char *const name[] = {"mpirun", "lives"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, name[i]);
        unlink(path);
    }
    return rmdir(folder);
}

/* lives that a job has whose rank leaves with this code, at most two; code_p: of the job */
static int64_t lives_of(int code, int *code_p)
{
    char lives[sizeof(folder) + 16], number[16], *left = NULL;
    struct stat s;
    snprintf(lives, sizeof(lives), "%s/lives", folder);
    snprintf(number, sizeof(number), "%d", code);
    unlink(lives);
    const char *const arg[] = {"rank", lives, number};
    const dt_launch_desc d = {.n = 1, .max_restarts = 1, .program = self, .arg = arg, .n_arg = 3};
    assert_int_equal(dt_launch_run(&d, code_p, &left), DT_OK);
    dt_free(left);
    assert_int_equal(stat(lives, &s), 0);
    return s.st_size;
}

static void test_what_a_run_decides_is_final(void **state)
{
    (void)state;
    static const int final[] = {DT_EXIT_DONE, DT_EXIT_FAILED, DT_EXIT_USAGE,    DT_EXIT_PLUGIN,
                                DT_EXIT_DATA, DT_EXIT_DEVICE, DT_EXIT_DIVERGED, DT_EXIT_INTERRUPTED};
    for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++) {
        int code = -1;
        assert_int_equal(lives_of(final[i], &code), 1);
        assert_int_equal(code, final[i]);
    }
}

static void test_lost_processes_begin_again(void **state)
{
    (void)state;
    static const int lost[] = {DT_EXIT_PEER, DT_EXIT_DIVERGED + 1, 128 + 11, -1};
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        int code = -1;
        assert_int_equal(lives_of(lost[i], &code), 2);
        assert_int_equal(code, DT_EXIT_PEER);
    }
    int code = -1;
    assert_int_equal(lives_of(128 + 15, &code), 1); /* signalled twice: not a fault */
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0) {
        return rank(argv[2], argv[3]);
    }
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0) {
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_run_decides_is_final),
        cmocka_unit_test(test_lost_processes_begin_again),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ends of a job are worth another life, and after what wait: a fake mpirun runs one rank that joins the board and
 * leaves with a code.
 * What a run itself decides, such as divergence, is final; a lost process is started again.
 */
#include <config.h>

#include "comm/board.h"
#include "comm/launch/launch.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/fault.h"
#include "base/mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dtrain-lives-XXXXXX", self[4096];

/* What mpirun says of a rank that is killed while it connects, before it ends with a 1 of its own. */
static const char killed[] = "--------------------------------------------------------------------------\n"
                             "mpirun noticed that process rank 0 with PID 0 on node x exited on signal 9 (Killed).\n"
                             "--------------------------------------------------------------------------\n";

/* In place of a code: no process starts; the launcher is asked to stop while the rank starts. */
enum { NOTHING = -2, STOPS = -3, RESIZES = -4 };
/* -100 - N: it stops, as only N ranks have work; -200 - N: N have, and the same as RESIZES. */
enum { LIMITS = -100, LIMITS_AND_RESIZES = -200 };

/* The rank: codes of its lives are in the last argument, -1: it is killed; each life leaves a byte in the file. */
static int rank(const char *lives, const char *codes)
{
    dt_board *b = NULL;
    struct stat s;
    const char *code = codes;
    for (int64_t i = stat(lives, &s) == 0 ? s.st_size : 0; i > 0 && strchr(code, ',') != NULL; i--) {
        code = strchr(code, ',') + 1;
    }
    FILE *f = fopen(lives, "a");
    if (f == NULL || fputc('.', f) == EOF || fclose(f) != 0 || getenv(DT_BOARD_ENV) == NULL ||
        dt_board_open(getenv(DT_BOARD_ENV), &b) != DT_OK) {
        return 99;
    }
    if (atoi(code) == NOTHING) {
        dt_board_close(b);
        return 213;
    }
    dt_board_mark_joined(b, 0);
    while (atoi(code) == STOPS) { /* until mpirun would end it */
        kill(getppid(), SIGTERM);
        pause();
    }
    const int limit = atoi(code) / 100 * 100; /* 0: none */
    if (limit < 0) {
        dt_board_limit_ranks(b, (uint32_t)(limit - atoi(code)));
    }
    while (atoi(code) == RESIZES ||
           limit == LIMITS_AND_RESIZES) { /* a step of a run that saves after each, until it is stopped for it */
        if (dt_board_resize_is_requested(b)) {
            dt_board_mark_resized(b);
            dt_board_mark_left(b, 0, 0);
            dt_board_close(b);
            return 0;
        }
        usleep(1000);
    }
    if (limit == LIMITS) {
        dt_board_mark_resized(b);
        dt_board_mark_left(b, 0, 0);
        dt_board_close(b);
        return 0;
    }
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
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/mpirun", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\necho $2 >>%s/sizes\nwhile [ \"$1\" != rank ]; do shift; done\nexec '%s' \"$@\"\n", folder,
            self);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
    char value[8192];
    snprintf(value, sizeof(value), "%s:%s", folder, getenv("PATH"));
    return setenv("PATH", value, 1);
}

static int end(void **state)
{
    char path[sizeof(folder) + 16];
    static const char *const name[] = {"mpirun", "lives", "sizes"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, name[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static int64_t saved = -1; /* the newest checkpoint, as the launcher sees it */

static int64_t newest_step(const char *run)
{
    return saved;
}

static dt_launch_range processes = {1, 1};

/* lives that a job has whose rank leaves with these codes, with max_restarts; code_p: of the job */
static int64_t count_lives(const char *codes, uint64_t max_restarts, int *code_p)
{
    char lives[sizeof(folder) + 16], *left = NULL;
    struct stat s;
    snprintf(lives, sizeof(lives), "%s/lives", folder);
    unlink(lives);
    const char *const arg[] = {"rank", lives, codes};
    const dt_launch_desc d = {.processes = processes,
                              .max_restarts = max_restarts,
                              .program = self,
                              .arg = arg,
                              .n_arg = 3,
                              .stands = saved >= 0 ? folder : NULL,
                              .newest_step = newest_step};
    assert_int_equal(dt_launch_run(&d, code_p, &left), DT_OK);
    dt_free(left);
    assert_int_equal(stat(lives, &s), 0);
    return s.st_size;
}

static int64_t lives_of(int code, int *code_p)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", code);
    assert_true(dt_fault_reset("launch.wait:1+"));
    return count_lives(number, 1, code_p);
}

static void test_what_a_run_decides_is_final(void **state)
{
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
    static const int lost[] = {DT_EXIT_PEER, DT_EXIT_DIVERGED + 1, 128 + 11, -1};
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        int code = -1;
        assert_int_equal(lives_of(lost[i], &code), 2);
        assert_int_equal(code, DT_EXIT_PEER);
    }
    int code = -1;
    assert_int_equal(lives_of(128 + 15, &code), 1); /* signalled twice: not a fault */
}

/* A network that is away for a while costs no restart; a job whose first attempt starts nothing is over. */
static void test_outages_cost_no_restart(void **state)
{
    int code = -1;
    assert_true(dt_fault_reset("launch.wait:1+"));
    assert_int_equal(count_lives("-1,-2,-2,-2,-2,0", 1, &code), 6);
    assert_int_equal(code, DT_EXIT_DONE);
    assert_int_equal(count_lives("-2,0", 1, &code), 1);
    assert_int_equal(code, DT_EXIT_DEVICE);
    assert_true(dt_fault_reset("launch.wait:1+,launch.outage:3")); /* the third start fails after ten minutes */
    assert_int_equal(count_lives("-1,-2", 1, &code), 4);
    assert_int_equal(code, DT_EXIT_DEVICE);
    assert_true(dt_fault_reset(NULL));
}

/* What the launcher would wait between n restarts; saves: each one has saved a checkpoint. */
static void list_waits(uint32_t n, bool saves, char waits[64])
{
    dt_launch_wait w = {.saved = -1};
    waits[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        snprintf(waits + strlen(waits), 64 - strlen(waits), "%g ", dt_launch_wait_next(&w, saves ? (int64_t)i : 5));
    }
}

static void test_waits_grow_without_progress(void **state)
{
    char waits[64];
    list_waits(9, false, waits);
    assert_string_equal(waits, "1 2 4 8 16 32 60 60 60 ");
    list_waits(4, true, waits);
    assert_string_equal(waits, "1 1 1 1 ");
}

/* Code of a job whose second life is asked to stop while it starts; signals are counted by the process. */
static int stopped_code(int64_t newest)
{
    int status = 0, code = -1;
    const pid_t child = fork();
    if (child == 0) {
        saved = newest;
        assert_true(dt_fault_reset("launch.wait:1+"));
        (void)count_lives("-1,-3", 3, &code);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void test_stop_during_restart(void **state)
{
    assert_int_equal(stopped_code(0), DT_EXIT_INTERRUPTED);
    assert_int_equal(stopped_code(-1), 128 + SIGTERM);
}

/* Processes of the lives of a job of 1 to 3 processes: "3 2 3 " */
static void list_sizes(const char *codes, char sizes[64])
{
    char path[sizeof(folder) + 16];
    int code = -1, n = 0;
    snprintf(path, sizeof(path), "%s/sizes", folder);
    unlink(path);
    processes = (dt_launch_range){1, 3};
    assert_true(dt_fault_reset("launch.wait:1+"));
    (void)count_lives(codes, 5, &code);
    assert_int_equal(code, DT_EXIT_DONE);
    processes = (dt_launch_range){1, 1};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    sizes[0] = '\0';
    while (fscanf(f, "%d", &n) == 1) {
        snprintf(sizes + strlen(sizes), 64 - strlen(sizes), "%d ", n);
    }
    fclose(f);
}

static void test_elastic_jobs(void **state)
{
    char sizes[64];
    list_sizes("0", sizes);
    assert_string_equal(sizes, "3 ");
    list_sizes("-1,0", sizes); /* without the lost one */
    assert_string_equal(sizes, "3 2 ");
    list_sizes("-1,-1,-1,0", sizes); /* the minimum is 1: the slot of the last one is needed again */
    assert_int_equal(strncmp(sizes, "3 2 1 ", 6), 0);
    list_sizes("-1,-4,0", sizes); /* its slot returns, and the ranks stop at a checkpoint for it */
    assert_string_equal(sizes, "3 2 3 ");
}

/* More processes than have work: fewer are started, which is no restart. */
static void test_work_limits_processes(void **state)
{
    char sizes[64];
    int code = -1;
    list_sizes("-102,0", sizes);
    assert_string_equal(sizes, "3 2 ");
    list_sizes("-102,-101,0", sizes);
    assert_string_equal(sizes, "3 2 1 ");
    list_sizes("-101,-203,0", sizes); /* there is more work later */
    assert_string_equal(sizes, "3 1 3 ");
    list_sizes("-101,-202,0", sizes);
    assert_string_equal(sizes, "3 1 2 ");
    processes = (dt_launch_range){1, 3};
    assert_int_equal(count_lives("-102,0", 0, &code), 2);
    processes = (dt_launch_range){1, 1};
    assert_int_equal(code, DT_EXIT_DONE);
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
        cmocka_unit_test(test_what_a_run_decides_is_final), cmocka_unit_test(test_lost_processes_begin_again),
        cmocka_unit_test(test_outages_cost_no_restart),     cmocka_unit_test(test_waits_grow_without_progress),
        cmocka_unit_test(test_stop_during_restart),         cmocka_unit_test(test_elastic_jobs),
        cmocka_unit_test(test_work_limits_processes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

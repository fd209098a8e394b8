/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/launch/cause.c: which rank was lost first, where mpirun ends the others at once and where a rank is
 * lost before it has joined the board.
 */
#include <config.h>

#include "launch/cause.h"

#include "base/exit.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 3 };
static dt_board *board;
static dt_cause cause;
static pid_t pid[N];
static char said[8192];

static void hear(void *user, int level, const char *line)
{
    (void)user;
    (void)level;
    const size_t n = strlen(said);
    snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

/* Ranks that are there: each joins and waits. */
static int begin(void **state)
{
    (void)state;
    said[0] = '\0';
    memset(pid, 0, sizeof(pid));
    dt_log_sink_set(hear, NULL);
    assert_int_equal(dt_cause_make(N, &cause), DT_OK);
    return dt_board_make(N, &board) == DT_OK ? 0 : 1;
}

static void join(uint32_t rank)
{
    int ready[2];
    char c = 0;
    assert_int_equal(pipe(ready), 0);
    pid[rank] = fork();
    if (pid[rank] == 0) {
        dt_board_join(board, rank);
        (void)!write(ready[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
}

static void lose(uint32_t rank)
{
    kill(pid[rank], SIGKILL);
    assert_int_equal(waitpid(pid[rank], NULL, 0), pid[rank]);
    pid[rank] = 0;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        if (pid[r] > 0) {
            lose(r);
        }
    }
    dt_log_sink_set(NULL, NULL);
    dt_cause_fini(&cause);
    dt_board_close(board);
    return 0;
}

static void test_one_is_gone(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        join(r);
    }
    dt_cause_look(&cause, board);
    assert_false(cause.is_known || cause.is_open);
    lose(1);
    dt_cause_look(&cause, board);
    assert_true(cause.is_known && cause.rank == 1);
    assert_non_null(strstr(said, "rank 1 (process "));
    lose(0);
    dt_cause_look(&cause, board);
    dt_cause_settle(&cause, 0, true);
    assert_int_equal(cause.rank, 1);
}

/* All are gone when they are looked at: mpirun was asked which was the first. */
static void test_all_are_gone(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        join(r);
    }
    for (uint32_t r = 0; r < N; r++) {
        lose(r);
    }
    dt_cause_look(&cause, board);
    assert_true(cause.is_open && !cause.is_known);
    assert_string_equal(said, "");
    dt_cause_settle(&cause, 2, true);
    assert_true(cause.is_known && cause.rank == 2);
    assert_non_null(strstr(said, "rank 2 (process "));
    assert_null(strstr(said, "rank 0"));
}

/* Rank 1 is lost before it joins, and mpirun ends the others. */
static void test_one_never_joined(void **state)
{
    (void)state;
    join(0);
    join(2);
    dt_cause_look(&cause, board);
    assert_false(cause.is_known || cause.is_open);
    lose(0);
    dt_cause_look(&cause, board);
    assert_string_equal(said, ""); /* rank 0 was not the first */
    lose(2);
    dt_cause_look(&cause, board);
    dt_cause_settle(&cause, -1, true);
    assert_true(cause.is_known && cause.rank == 1);
    assert_non_null(strstr(said, "rank 1 is gone"));
    assert_null(strstr(said, "rank 0"));
}

/* ---- a rank that the others wait for ----------------------------------------------------------------------------- */

/* Rank r has ended so many collectives, and is in the next one if it waits. */
static void call(uint32_t r, uint64_t ended, bool waits)
{
    for (uint64_t k = 1; k <= ended + waits; k++) {
        dt_board_begin(board, r, &(dt_board_call){.number = k, .bytes = 8, .op = "all_reduce", .root = UINT32_MAX});
        if (k <= ended) {
            dt_board_end(board, r, k);
        }
    }
}

static void expect_absent(uint32_t rank)
{
    dt_cause_look(&cause, board);
    assert_true(cause.is_known);
    assert_int_equal(cause.rank, rank);
    dt_cause_tell(&cause, "");
}

static void test_one_does_not_come(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, r == 1 ? 2 : 3, r != 1); /* rank 1 has ended two, the others are in their fourth */
    }
    dt_cause_look(&cause, board);
    assert_false(cause.is_known); /* nobody has waited in vain yet */
    dt_board_leave(board, 0, DT_EXIT_INTERRUPTED);
    dt_cause_look(&cause, board);
    assert_false(cause.is_known); /* it left for another reason */
    dt_board_leave(board, 0, DT_EXIT_PEER);
    expect_absent(1);
    assert_non_null(strstr(said, "rank 1 (process "));
    assert_non_null(strstr(said, "its last was collective 2"));
    assert_non_null(strstr(said, "it was in collective 4"));
}

static void test_one_has_called_nothing(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, 0, r != 2);
    }
    dt_board_leave(board, 1, DT_EXIT_PEER);
    expect_absent(2);
    assert_non_null(strstr(said, "called no collective yet"));
}

/* Rank 1 is a collective behind, but rank 0 is held by a signal. */
static void test_one_is_stopped(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, 4, r != 1);
    }
    assert_int_equal(kill(pid[0], SIGSTOP), 0);
    int how = 0;
    assert_int_equal(waitpid(pid[0], &how, WUNTRACED), pid[0]);
    dt_board_leave(board, 2, DT_EXIT_PEER);
    expect_absent(0);
    assert_non_null(strstr(said, "SIGSTOP"));
}

/* All are in the same collective, and one that never joined is none that is waited for: nothing is known. */
static void test_none_is_behind(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < N - 1; r++) {
        join(r);
        call(r, 4, true);
    }
    dt_board_leave(board, 0, DT_EXIT_PEER);
    dt_cause_look(&cause, board);
    assert_false(cause.is_known || cause.is_open);
}

/* The last lines of the lost rank's log, and no others. */
static void test_last_lines(void **state)
{
    (void)state;
    enum { WRITTEN = 60, SHOWN = 50 };
    char folder[] = "test_cause.XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/rank-1.log", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 1; i <= WRITTEN; i++) {
        fprintf(f, "<%d>\n", i);
    }
    assert_int_equal(fclose(f), 0);
    for (uint32_t r = 0; r < N; r++) {
        join(r);
    }
    lose(1);
    dt_cause_look(&cause, board);
    dt_cause_tell(&cause, folder);
    for (int i = 1; i <= WRITTEN; i++) {
        char line[16];
        snprintf(line, sizeof(line), "| <%d>\n", i);
        assert_int_equal(strstr(said, line) != NULL, i > WRITTEN - SHOWN);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_all_are_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_one_never_joined, begin, end),
        cmocka_unit_test_setup_teardown(test_one_does_not_come, begin, end),
        cmocka_unit_test_setup_teardown(test_one_has_called_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_one_is_stopped, begin, end),
        cmocka_unit_test_setup_teardown(test_none_is_behind, begin, end),
        cmocka_unit_test_setup_teardown(test_last_lines, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

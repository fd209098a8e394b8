/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/launch/cause.c: which rank was lost first, where mpirun ends the others at once and where a rank is
 * lost before it has joined the board.
 */
#include <config.h>

#include "launch/cause.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 3 };
static dt_board *board;
static dt_cause cause;
static pid_t pid[N];
static char said[1024];

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_all_are_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_one_never_joined, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

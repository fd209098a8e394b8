/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/launch/cause.c: which rank was lost first, where mpirun ends the others at once and where a rank
 * is lost before it has joined the board.
 */
#include <config.h>

#include "comm/launch/cause.h"

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
    const size_t n = strlen(said);
    snprintf(said + n, sizeof(said) - n, "%s\n", strncmp(line, "error ", 6) == 0 ? line + 6 : line);
}

/* Ranks that are there: each joins and waits. */
static int begin(void **state)
{
    said[0] = '\0';
    memset(pid, 0, sizeof(pid));
    dt_log_sink_set(hear, NULL);
    assert_int_equal(dt_cause_init(N, &cause), DT_OK);
    return dt_board_create(N, &board) == DT_OK ? 0 : 1;
}

static void join(uint32_t rank)
{
    int ready[2];
    char c = 0;
    assert_int_equal(pipe(ready), 0);
    pid[rank] = fork();
    if (pid[rank] == 0) {
        dt_board_mark_joined(board, rank);
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
    for (uint32_t r = 0; r < N; r++) {
        join(r);
    }
    dt_cause_update(&cause, board);
    assert_false(cause.is_known || cause.is_open);
    lose(1);
    dt_cause_update(&cause, board);
    assert_true(cause.is_known && cause.rank == 1);
    assert_non_null(strstr(said, "rank 1 (process "));
    lose(0);
    dt_cause_update(&cause, board);
    dt_cause_decide(&cause, 0, true);
    assert_int_equal(cause.rank, 1);
}

/* All are gone when they are looked at: mpirun was asked which was the first. */
static void test_all_are_gone(void **state)
{
    for (uint32_t r = 0; r < N; r++) {
        join(r);
    }
    for (uint32_t r = 0; r < N; r++) {
        lose(r);
    }
    dt_cause_update(&cause, board);
    assert_true(cause.is_open && !cause.is_known);
    assert_string_equal(said, "");
    dt_cause_decide(&cause, 2, true);
    assert_true(cause.is_known && cause.rank == 2);
    assert_non_null(strstr(said, "rank 2 (process "));
    assert_null(strstr(said, "rank 0"));
}

/* Rank 1 is lost before it joins, and mpirun ends the others. */
static void test_one_never_joined(void **state)
{
    join(0);
    join(2);
    dt_cause_update(&cause, board);
    assert_false(cause.is_known || cause.is_open);
    lose(0);
    dt_cause_update(&cause, board);
    assert_string_equal(said, ""); /* rank 0 was not the first */
    lose(2);
    dt_cause_update(&cause, board);
    dt_cause_decide(&cause, -1, true);
    assert_true(cause.is_known && cause.rank == 1);
    assert_non_null(strstr(said, "rank 1 is gone"));
    assert_null(strstr(said, "rank 0"));
}

/* ---- a rank that the others wait for ----------------------------------------------------------------------------- */

/* Rank r has ended so many collectives, and is in the next one if it waits. */
static void call(uint32_t r, uint64_t ended, bool waits)
{
    for (uint64_t k = 1; k <= ended + waits; k++) {
        dt_board_call_begin(board, r,
                            &(dt_board_call){.number = k, .bytes = 8, .op = "all_reduce", .root = UINT32_MAX});
        if (k <= ended) {
            dt_board_call_end(board, r, k);
        }
    }
}

static void expect_absent(uint32_t rank)
{
    dt_cause_update(&cause, board);
    assert_true(cause.is_known);
    assert_int_equal(cause.rank, rank);
    dt_cause_log(&cause, "");
}

static void test_one_does_not_come(void **state)
{
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, r == 1 ? 2 : 3, r != 1); /* rank 1 has ended two, the others are in their fourth */
    }
    dt_cause_update(&cause, board);
    assert_false(cause.is_known); /* nobody has waited in vain yet */
    dt_board_mark_left(board, 0, DT_EXIT_INTERRUPTED);
    dt_cause_update(&cause, board);
    assert_false(cause.is_known); /* it left for another reason */
    dt_board_mark_left(board, 0, DT_EXIT_PEER);
    expect_absent(1);
    assert_non_null(strstr(said, "rank 1 (process "));
    assert_non_null(strstr(said, "its last was collective 2"));
    assert_non_null(strstr(said, "it was in collective 4"));
}

static void test_one_has_called_nothing(void **state)
{
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, 0, r != 2);
    }
    dt_board_mark_left(board, 1, DT_EXIT_PEER);
    expect_absent(2);
    assert_non_null(strstr(said, "called no collective yet"));
}

/* Rank 1 is a collective behind, but rank 0 is held by a signal. */
static void test_one_is_stopped(void **state)
{
    for (uint32_t r = 0; r < N; r++) {
        join(r);
        call(r, 4, r != 1);
    }
    assert_int_equal(kill(pid[0], SIGSTOP), 0);
    int how = 0;
    assert_int_equal(waitpid(pid[0], &how, WUNTRACED), pid[0]);
    dt_board_mark_left(board, 2, DT_EXIT_PEER);
    expect_absent(0);
    assert_non_null(strstr(said, "SIGSTOP"));
}

/* All are in the same collective, and one that never joined is none that is waited for: nothing is known. */
static void test_none_is_behind(void **state)
{
    for (uint32_t r = 0; r < N - 1; r++) {
        join(r);
        call(r, 4, true);
    }
    dt_board_mark_left(board, 0, DT_EXIT_PEER);
    dt_cause_update(&cause, board);
    assert_false(cause.is_known || cause.is_open);
}

/* The last lines of the lost rank's log, and no others. */
static void test_last_lines(void **state)
{
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
    dt_cause_update(&cause, board);
    dt_cause_log(&cause, folder);
    for (int i = 1; i <= WRITTEN; i++) {
        char line[16];
        snprintf(line, sizeof(line), "| <%d>\n", i);
        assert_int_equal(strstr(said, line) != NULL, i > WRITTEN - SHOWN);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* What is said of every rank, word by word: where each was, no more than eight others, and the log of the first. */
static void test_what_is_said(void **state)
{
    enum { RANKS = 12 };
    static dt_board_rank was[RANKS];
    char folder[] = "test_cause.XXXXXX", path[64];
    dt_cause c = {.n = RANKS, .was = was, .seen_s = 100};
    memset(was, 0, sizeof(was));
    for (int r = 0; r < RANKS; r++) {
        was[r] = (dt_board_rank){.state = r == 2 ? DT_BOARD_NEVER : DT_BOARD_LEFT, .process = 1000 + r};
    }
    was[0].state = DT_BOARD_HERE;
    was[0].has_called = was[1].has_called = was[3].has_called = true;
    was[0].last =
        (dt_board_call){.number = 4, .bytes = 64, .begin_s = 90, .end_s = 97.5, .op = "sum", .root = UINT32_MAX};
    was[1].last = (dt_board_call){.number = 5, .begin_s = 98, .op = "barrier", .root = UINT32_MAX};
    was[3].last = (dt_board_call){.number = 5, .begin_s = 99, .op = "broadcast", .bytes = 8, .root = 1};
    dt_cause_log(&c, ""); /* nothing is known */
    assert_string_equal(said, "");
    c.is_known = true;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/train.log", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    dt_cause_log(&c, folder);
    static const char others[] =
        "rank 1 (process 1001): it was in collective 5 (barrier), begun 2.0 s before\n"
        "rank 3 (process 1003): it was in collective 5 (broadcast of 8 bytes from rank 1), begun "
        "1.0 s before\n"
        "rank 4 (process 1004): it has called no collective yet\n"
        "rank 5 (process 1005): it has called no collective yet\n"
        "rank 6 (process 1006): it has called no collective yet\n"
        "rank 7 (process 1007): it has called no collective yet\n"
        "rank 8 (process 1008): it has called no collective yet\n"
        "rank 9 (process 1009): it has called no collective yet\n"
        "and 2 more ranks\n";
    char want[4096];
    snprintf(
        want, sizeof(want),
        "rank 0 (process 1000) did not come; its last was collective 4 (sum of 64 bytes), which ended 2.5 s before\n"
        "%sits log (%s) is empty\n",
        others, path);
    assert_string_equal(said, want);

    said[0] = '\0'; /* a log longer than what is read of it: its last 50 lines, the last one without an end */
    f = fopen(path, "w");
    for (int i = 0; i < 20000; i++) {
        fprintf(f, "%d\n", i);
    }
    fprintf(f, "half");
    fclose(f);
    was[0].is_stopped = true;
    for (int r = 9; r < RANKS; r++) { /* eight others, and none left over */
        was[r].state = DT_BOARD_NEVER;
    }
    was[11].state = DT_BOARD_LEFT;
    dt_cause_log(&c, folder);
    assert_non_null(strstr(said, "rank 0 (process 1000)"));
    assert_non_null(strstr(said, "rank 11 (process 1011)"));
    assert_null(strstr(said, "more ranks"));
    assert_non_null(strstr(said, "train.log):\n    | 19951\n"));
    assert_string_equal(said + strlen(said) - 23, "    | 19999\n    | half\n");

    said[0] = '\0'; /* a machine is gone: of no rank it is known that it was the first */
    snprintf(c.node, sizeof(c.node), "m1");
    dt_cause_log(&c, folder);
    assert_null(strstr(said, "log"));
    assert_non_null(strstr(said, "rank 0 (process 1000)"));
    dt_cause_clear(&c);
    assert_true(c.node[0] == '\0' && !c.is_known && !c.is_open);
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
        cmocka_unit_test_setup_teardown(test_what_is_said, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/board.c: what ranks of one machine see of each other, also of those that are held, gone or
 * have left; that nothing else is taken for a board; and every error that its header names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "comm/board.h"

enum { RANKS = 3 };

static dt_board *make(void)
{
    dt_board *b = NULL;
    assert_int_equal(dt_board_create(RANKS, &b), DT_OK);
    return b;
}

static dt_board_rank seen(const dt_board *b, uint32_t rank)
{
    dt_board_rank out;
    dt_board_read_rank(b, rank, &out);
    return out;
}

/* A process that joins as this rank and waits to be ended. */
static pid_t child_as(dt_board *b, uint32_t rank)
{
    int joined[2];
    char word = 0;
    assert_int_equal(pipe(joined), 0);
    const pid_t child = fork();
    if (child == 0) {
        dt_board_mark_joined(b, rank);
        if (write(joined[1], "j", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    assert_true(child > 0);
    assert_int_equal(read(joined[0], &word, 1), 1);
    close(joined[0]);
    close(joined[1]);
    return child;
}

static void end_child(pid_t child)
{
    int how = 0;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
}

/* A state of the kernel's may take a moment. */
static void await_stopped(const dt_board *b, uint32_t rank, bool want)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int i = 0; i < 5000 && seen(b, rank).is_stopped != want; i++) {
        nanosleep(&nap, NULL);
    }
    assert_true(seen(b, rank).is_stopped == want);
}

/* ---- what is seen ------------------------------------------------------------------------------------------------ */

static void test_what_one_writes_the_other_sees(void **state)
{
    dt_board *b = make(), *other = NULL;
    assert_int_equal(dt_board_open(dt_board_path(b), &other), DT_OK);
    assert_int_equal(seen(other, 1).state, DT_BOARD_NEVER);
    assert_string_equal(dt_board_run_dir(other), "");
    dt_board_mark_joined(b, 1);
    dt_board_run_dir_set(b, "runs/first");
    dt_board_rank r = seen(other, 1);
    assert_true(r.state == DT_BOARD_HERE && r.process == (int)getpid() && !r.is_stopped && !r.has_called);
    assert_string_equal(dt_board_run_dir(other), "runs/first");
    dt_board_call_begin(b, 1, &(dt_board_call){.number = 1, .bytes = 8, .op = "broadcast", .root = 2});
    r = seen(other, 1);
    assert_true(r.has_called && r.last.number == 1 && r.last.begin_s > 0 && r.last.end_s == 0 && r.last.root == 2);
    dt_board_call_end(b, 1, 1);
    r = seen(other, 1);
    assert_true(r.last.end_s >= r.last.begin_s);
    dt_board_mark_left(b, 1, 7);
    r = seen(other, 1);
    assert_true(r.state == DT_BOARD_LEFT && r.code == 7);
    dt_board_limit_ranks(b, 2);
    dt_board_clear(b);
    assert_int_equal(dt_board_max_ranks(other), 2); /* of the whole job */
    assert_int_equal(seen(other, 1).state, DT_BOARD_NEVER);
    assert_string_equal(dt_board_run_dir(other), "");
    dt_board_call call;
    assert_int_equal(dt_board_list_calls(other, 1, 1, &call), 0);
    dt_board_close(other);
    dt_board_close(b);
    dt_board_close(NULL);
}

static void test_a_rank_out_of_range_is_absent(void **state)
{
    dt_board *b = make();
    dt_board_call call = {.number = 1};
    dt_board_mark_joined(b, RANKS);
    dt_board_call_begin(b, RANKS, &call);
    dt_board_call_end(b, RANKS, 1);
    dt_board_mark_left(b, RANKS, 0);
    assert_int_equal(seen(b, RANKS).state, DT_BOARD_NEVER);
    assert_int_equal(dt_board_list_calls(b, RANKS, 1, &call), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(seen(b, r).state, DT_BOARD_NEVER);
    }
    dt_board_mark_joined(NULL, 0); /* without shared memory nothing is reported */
    dt_board_call_begin(NULL, 0, &call);
    dt_board_call_end(NULL, 0, 1);
    dt_board_mark_left(NULL, 0, 0);
    dt_board_run_dir_set(NULL, "runs/first");
    dt_board_close(b);
}

static void test_the_newest_calls_stay(void **state)
{
    enum { CALLS = DT_BOARD_CALLS + 10 };
    static dt_board_call out[DT_BOARD_CALLS];
    dt_board *b = make();
    for (uint64_t i = 1; i <= CALLS; i++) {
        dt_board_call_begin(b, 0, &(dt_board_call){.number = i, .op = "barrier", .root = UINT32_MAX});
    }
    assert_int_equal(dt_board_list_calls(b, 0, 3, out), 3);
    assert_true(out[0].number == CALLS - 2 && out[2].number == CALLS);
    assert_int_equal(dt_board_list_calls(b, 0, UINT32_MAX, out), DT_BOARD_CALLS);
    assert_true(out[0].number == CALLS - DT_BOARD_CALLS + 1 && out[DT_BOARD_CALLS - 1].number == CALLS);
    dt_board_call_end(b, 0, 10); /* its place is another call's by now */
    dt_board_call_end(b, 0, 0);
    assert_int_equal(dt_board_list_calls(b, 0, UINT32_MAX, out), DT_BOARD_CALLS);
    for (uint32_t i = 0; i < DT_BOARD_CALLS; i++) {
        assert_true(out[i].end_s == 0);
    }
    dt_board_close(b);
}

static void test_calls_as_text(void **state)
{
    char text[64];
    dt_board_describe_call(&(dt_board_call){.op = "barrier", .root = UINT32_MAX}, text, sizeof(text));
    assert_string_equal(text, "barrier");
    dt_board_describe_call(&(dt_board_call){.op = "all_gather", .bytes = 512, .root = UINT32_MAX}, text, sizeof(text));
    assert_string_equal(text, "all_gather of 512 bytes");
    dt_board_describe_call(&(dt_board_call){.op = "broadcast", .bytes = 8, .root = 0}, text, sizeof(text));
    assert_string_equal(text, "broadcast of 8 bytes from rank 0");
    dt_board_describe_call(&(dt_board_call){.op = "broadcast", .bytes = 8, .root = 0}, text, 14);
    assert_string_equal(text, "broadcast of ");
    dt_board_describe_call(&(dt_board_call){.op = "broadcast", .bytes = 8, .root = 0}, text, 5);
    assert_string_equal(text, "broa");
}

static void test_a_process_that_is_held_or_gone(void **state)
{
    dt_board *b = make();
    const pid_t child = child_as(b, 2);
    assert_true(seen(b, 2).state == DT_BOARD_HERE && seen(b, 2).process == child);
    kill(child, SIGSTOP);
    await_stopped(b, 2, true);
    assert_int_equal(seen(b, 2).state, DT_BOARD_HERE);
    kill(child, SIGCONT);
    await_stopped(b, 2, false);
    end_child(child);
    assert_int_equal(seen(b, 2).state, DT_BOARD_GONE);
    assert_int_equal(dt_board_kill_processes(b), 0); /* its number may be that of another process */
    dt_board_close(b);
}

static void test_what_is_left_is_ended(void **state)
{
    dt_board *b = make();
    const pid_t one = child_as(b, 0), two = child_as(b, 2);
    dt_board_mark_left(b, 2, 0); /* it said so, and did not end */
    int how = 0;
    assert_int_equal(dt_board_kill_processes(b), 2);
    assert_int_equal(waitpid(one, &how, 0), one);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(waitpid(two, &how, 0), two);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    dt_board_close(b);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refuses_path(const char *path, const char *why)
{
    dt_board *b = NULL;
    assert_int_equal(dt_board_open(path, &b), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), why));
    assert_null(b);
}

static void test_nothing_else_is_a_board(void **state)
{
    char path[128], nonce[32];
    dt_board *b = make();
    const char *proc = strchr(dt_board_path(b), ':');
    snprintf(nonce, sizeof(nonce), "%.*s", (int)(proc - dt_board_path(b)), dt_board_path(b));
    refuses_path("", "is not here");
    refuses_path("0", "is not here");
    refuses_path("0:/dev/null", "is not here");
    refuses_path("0:/proc/0/fd/3", "is not here");
    snprintf(path, sizeof(path), "1%s", proc); /* another job's */
    refuses_path(path, "is not the shared memory of this job");
    const int null = open("/dev/null", O_RDWR), file = memfd_create("file", MFD_CLOEXEC);
    assert_true(null >= 0 && file >= 0);
    snprintf(path, sizeof(path), "%s:/proc/%ld/fd/%d", nonce, (long)getpid(), null);
    refuses_path(path, "is not the shared memory of this job");
    snprintf(path, sizeof(path), "%s:/proc/%ld/fd/%d", nonce, (long)getpid(), file);
    refuses_path(path, "is not the shared memory of this job"); /* empty */
    /* a board that was cut off behind its head, and one whose head says nothing of it */
    static char head[65536];
    snprintf(path, sizeof(path), "%s", proc + 1);
    const int whole = open(path, O_RDWR | O_CLOEXEC);
    assert_true(whole >= 0);
    assert_int_equal(pread(whole, head, sizeof(head), 0), sizeof(head));
    assert_int_equal(pwrite(file, head, sizeof(head), 0), sizeof(head));
    snprintf(path, sizeof(path), "%s:/proc/%ld/fd/%d", nonce, (long)getpid(), file);
    refuses_path(path, "is not the shared memory of this job");
    memset(head, 0, sizeof(head));
    assert_int_equal(pwrite(whole, head, 8, 0), 8);
    refuses_path(dt_board_path(b), "is not the shared memory of this job");
    snprintf(path, sizeof(path), "%s", dt_board_path(b));
    close(whole);
    close(file);
    close(null);
    dt_board_close(b);
    refuses_path(path, "is not here"); /* over */
}

static void test_a_system_without_shared_memory(void **state)
{
    struct rlimit before, none;
    dt_board *b = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const dt_status st = dt_board_create(RANKS, &b);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, DT_EUNSUPPORTED);
    assert_non_null(strstr(dt_error_text(), "cannot make shared memory for 3 ranks: "));
    assert_null(b);
}

static void test_too_little_memory(void **state)
{
    dt_board *b = NULL, *good = make();
    assert_int_equal(dt_board_create(UINT32_MAX, &b), DT_ENOMEM); /* more than addresses there are */
    assert_non_null(strstr(dt_error_text(), "cannot map "));
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_board_create(RANKS, &b), DT_ENOMEM);
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_board_open(dt_board_path(good), &b), DT_ENOMEM);
    dt_fault_reset(NULL);
    assert_null(b);
    dt_board_close(good);
}

static void test_nothing_stays_open(void **state)
{
    const uint64_t live = dt_alloc_live_bytes();
    const int before = dup(0);
    close(before);
    for (int i = 0; i < 20; i++) {
        dt_board *b = make(), *other = NULL;
        assert_int_equal(dt_board_open(dt_board_path(b), &other), DT_OK);
        dt_board_close(b);
        dt_board_mark_joined(other, 0); /* a process that has it keeps it */
        assert_int_equal(seen(other, 0).state, DT_BOARD_HERE);
        dt_board_close(other);
    }
    const int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    assert_true(dt_alloc_live_bytes() == live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_one_writes_the_other_sees),
        cmocka_unit_test(test_a_rank_out_of_range_is_absent),
        cmocka_unit_test(test_the_newest_calls_stay),
        cmocka_unit_test(test_calls_as_text),
        cmocka_unit_test(test_a_process_that_is_held_or_gone),
        cmocka_unit_test(test_what_is_left_is_ended),
        cmocka_unit_test(test_nothing_else_is_a_board),
        cmocka_unit_test(test_a_system_without_shared_memory),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_nothing_stays_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

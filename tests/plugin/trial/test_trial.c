/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugin/trial/trial.h and base/fence.h: code that never returns as it should, reported by name; this process
 * goes on.
 */
#include "plugin/trial/trial.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double LONG_S = 100, SHORT_S = 3; /* long enough for a busy machine to reach the step */
static volatile int zero;                      /* what a compiler does not see through */

static void expect_end(void (*work)(void *user, dt_trial *t), double timeout_s, const char *step, const char *words)
{
    dt_trial_result r;
    assert_int_equal(dt_trial_execute(work, NULL, NULL, timeout_s, &r), DT_EIO);
    if (strstr(dt_error_text(), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", dt_error_text(), words);
    }
    assert_string_equal(r.step, step);
}

typedef struct both { /* sides of a trial */
    dt_str heard;
    int number;
} both;

static void hear(void *user, const char *text, size_t bytes)
{
    dt_str_add_n(&((both *)user)->heard, text, bytes);
}

/* ---- what returns ------------------------------------------------------------------------------------------------ */

static void works(void *user, dt_trial *t)
{
    ((both *)user)->number = 5; /* in the copy alone */
    dt_trial_report(t, "one ", 4);
    dt_trial_report(t, "two", 3);
    char *block = dt_alloc(100);
    memset(block, 1, 100);
    block = dt_realloc(block, 5000);
    assert_int_equal(block[99], 1);
    dt_free(block);
    dt_free(dt_alloc(0));
}

static void test_what_returns(void **state)
{
    dt_trial_result r;
    both b = {.number = 3};
    assert_int_equal(dt_trial_execute(works, hear, &b, LONG_S, &r), DT_OK);
    assert_string_equal(dt_str_text(&b.heard), "one two");
    assert_int_equal(b.number, 3);
    assert_string_equal(r.step, "");
    dt_str_fini(&b.heard);
}

/* ---- what does not ----------------------------------------------------------------------------------------------- */

static void exits(void *user, dt_trial *t)
{
    dt_trial_begin_step(t, "create");
    exit(0);
}

static void crashes(void *user, dt_trial *t)
{
    dt_trial_begin_step(t, "step");
    raise(SIGABRT);
}

static void loops(void *user, dt_trial *t)
{
    dt_trial_begin_step(t, "check");
    while (zero == 0) {
    }
}

static void test_what_does_not_return(void **state)
{
    expect_end(exits, LONG_S, "create", "it ended the process with code 0");
    expect_end(crashes, LONG_S, "step", "it was killed by signal 6, Aborted");
    expect_end(loops, SHORT_S, "check", "it did not return within 3 s");
}

/* A second process leaves out what ended the first, and is not blamed for it. */
static void goes_on(void *user, dt_trial *t)
{
    t->broken = "create\nstep\n";
    if (dt_trial_begin_step(t, "create") || !dt_trial_begin_step(t, "creat") || dt_trial_begin_step(t, "step")) {
        dt_trial_begin_step(t, "wrong");
        return;
    }
    assert_string_equal(t->step, "");
    dt_trial_begin_step(t, "stop");
    dt_trial_report_call(t, "call %d", 7);
}

static void crashes_in_a_call(void *user, dt_trial *t)
{
    dt_trial_begin_step(t, "play");
    dt_trial_report_call(t, "step %d", 7);
    raise(SIGABRT);
}

static void closes_all(void *user, dt_trial *t)
{
    (void)dt_trial_begin_step(t, "playing");
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    (void)dt_trial_begin_step(t, "destroy");
}

static void closes_all_and_loops(void *user, dt_trial *t)
{
    (void)dt_trial_begin_step(t, "playing");
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    while (zero == 0) {
    }
}

static void writes_into_all(void *user, dt_trial *t)
{
    (void)dt_trial_begin_step(t, "playing");
    for (int fd = 3; fd < 64; fd++) {
        (void)!write(fd, "stray", 5);
    }
}

static void test_files_of_the_program(void **state)
{
    expect_end(closes_all, LONG_S, "playing", "it closed a file of the program");
    expect_end(closes_all_and_loops, SHORT_S, "playing", "it did not return within");
    expect_end(writes_into_all, LONG_S, "playing", "it wrote into a file of the program");
}

static void test_steps_and_calls(void **state)
{
    dt_trial_result r;
    assert_int_equal(dt_trial_execute(goes_on, NULL, NULL, LONG_S, &r), DT_OK);
    assert_string_equal(r.step, "stop");
    assert_string_equal(r.call, "");
    assert_int_equal(dt_trial_execute(crashes_in_a_call, NULL, NULL, LONG_S, &r), DT_EIO);
    assert_string_equal(r.step, "play");
    assert_string_equal(r.call, "step 7");
}

/* ---- what it leaves behind --------------------------------------------------------------------------------------- */

static void starts_another(void *user, dt_trial *t)
{
    const pid_t pid = fork();
    while (pid == 0) {
        pause();
    }
    dt_trial_report(t, (const char *)&pid, sizeof(pid));
    raise(SIGABRT);
}

static void test_nothing_is_left_behind(void **state)
{
    both b = {0};
    dt_trial_result r;
    pid_t pid = 0;
    /* the other one holds the pipe open, so this ends by the clock */
    assert_int_equal(dt_trial_execute(starts_another, hear, &b, SHORT_S, &r), DT_EIO);
    assert_int_equal(b.heard.bytes, sizeof(pid));
    memcpy(&pid, dt_str_text(&b.heard), sizeof(pid));
    int tries = 0;
    while (kill(pid, 0) == 0 && tries++ < 10000) { /* it is init's to bury */
        usleep(1000);
    }
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    dt_str_fini(&b.heard);
}

/* ---- wild writes ------------------------------------------------------------------------------------------------- */

enum { BYTES = 100 };
static char *block;

static void writes_a_page_behind(void *user, dt_trial *t)
{
    block = dt_alloc(BYTES);
    block[BYTES + 200 + zero] = 1;
}

static void writes_a_byte_behind(void *user, dt_trial *t)
{
    block = dt_alloc(BYTES);
    block[BYTES + zero] = 1;
}

static void writes_in_front(void *user, dt_trial *t)
{
    block = dt_alloc(BYTES);
    block[zero - 64] = 1;
}

static void writes_after_release(void *user, dt_trial *t)
{
    block = dt_alloc(BYTES);
    dt_free(block);
    block[zero] = 1;
}

static void writes_behind_and_frees(void *user, dt_trial *t)
{
    block = dt_alloc(BYTES);
    block[BYTES + zero] = 1;
    dt_free(block);
    dt_trial_begin_step(t, "too late");
}

static void writes_to_nowhere(void *user, dt_trial *t)
{
    *(volatile char *)(uintptr_t)(16 + zero) = 1;
}

static void test_wild_writes(void **state)
{
    expect_end(writes_a_page_behind, LONG_S, "", "it accessed memory past the end of a block of 100 bytes");
    expect_end(writes_a_byte_behind, LONG_S, "", "it wrote past the end of a block of 100 bytes");
    expect_end(writes_in_front, LONG_S, "", "it wrote before the start of a block of 100 bytes");
    expect_end(writes_after_release, LONG_S, "", "it used, after freeing it, a block of 100 bytes");
    expect_end(writes_behind_and_frees, LONG_S, "", "it wrote past the end of a block of 100 bytes");
#ifndef __SANITIZE_ADDRESS__ /* which ends the process by its own words */
    expect_end(writes_to_nowhere, LONG_S, "", "it was killed by signal 11");
#endif
}

static void test_there_is_no_fence_here(void **state)
{
    char *p = dt_alloc(BYTES);
    assert_non_null(p);
    dt_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_returns),           cmocka_unit_test(test_what_does_not_return),
        cmocka_unit_test(test_files_of_the_program),   cmocka_unit_test(test_steps_and_calls),
        cmocka_unit_test(test_nothing_is_left_behind), cmocka_unit_test(test_wild_writes),
        cmocka_unit_test(test_there_is_no_fence_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

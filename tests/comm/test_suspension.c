/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/suspension.c: a process that is stopped and goes on knows it, for how long, and since when.
 */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "comm/suspension.h"

static void nap(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* In a child that is stopped for so long: what it says then. */
static void stop_child(long ms, bool has_looked, char out[2][DT_SUSPENSION_TEXT_BYTES])
{
    int end[2];
    assert_int_equal(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        dt_suspension s = {0};
        char text[2][DT_SUSPENSION_TEXT_BYTES];
        dt_signals_install();
        (void)(has_looked && dt_suspension_check(&s, dt_clock_s()) > 0);
        raise(SIGSTOP);
        const double now = dt_clock_s(), stood = dt_suspension_check(&s, now);
        dt_suspension_text(&s, now, text[0]);
        (void)!write(end[1], (stood > 0) == (text[0][0] != '\0') ? text[0] : "?", DT_SUSPENSION_TEXT_BYTES);
        (void)dt_suspension_check(&s, dt_clock_s()); /* once is enough */
        dt_suspension_reset(&s);
        dt_suspension_text(&s, now, text[1]);
        (void)!write(end[1], text[1], DT_SUSPENSION_TEXT_BYTES);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    nap(ms);
    kill(child, SIGCONT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read(end[0], out[i], DT_SUSPENSION_TEXT_BYTES), DT_SUSPENSION_TEXT_BYTES);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(end[0]);
    close(end[1]);
}

static void test_knows(void **state)
{
    char text[2][DT_SUSPENSION_TEXT_BYTES];
    double s = 0, ago = 0;
    stop_child(1300, true, text);
    assert_int_equal(sscanf(text[0],
                            "; this rank itself was stopped by a signal (SIGSTOP) for up to %lf s, until %lf s ago", &s,
                            &ago),
                     2);
    assert_true(s >= 1 && ago >= 0);
    assert_string_equal(text[1], "");
}

static void test_says_nothing_else(void **state)
{
    char text[2][DT_SUSPENSION_TEXT_BYTES];
    dt_suspension s = {0};
    stop_child(1300, false, text); /* who never looked does not know since when */
    assert_string_equal(text[0], "");
    assert_true(dt_suspension_check(&s, dt_clock_s()) == 0);
    assert_true(dt_suspension_check(&s, dt_clock_s() + 100) == 0); /* it only took long */
    dt_suspension_text(&s, dt_clock_s(), text[0]);
    assert_string_equal(text[0], "");
}

/* Twice within one collective: both together. Less than a second is none. */
static void test_adds_up(void **state)
{
    char text[DT_SUSPENSION_TEXT_BYTES];
    double whole = 0, ago = 0;
    dt_suspension s = {0};
    dt_signals_install();
    static const double held[] = {5, 0.9, 3};
    for (int i = 0; i < 3; i++) {
        s.seen_s = dt_clock_s() - held[i];
        raise(SIGCONT);
        const double stood = dt_suspension_check(&s, dt_clock_s());
        assert_true(held[i] < 1 ? stood == 0 : stood >= held[i] && stood < held[i] + 1);
    }
    assert_true(s.for_s >= 8 && s.for_s < 10);
    dt_suspension_text(&s, s.until_s + 4, text);
    assert_int_equal(sscanf(text,
                            "; this rank itself was stopped by a signal (SIGSTOP) for up to %lf s, until %lf s ago",
                            &whole, &ago),
                     2);
    assert_true(whole >= 8 && whole <= 10 && ago == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_adds_up), cmocka_unit_test(test_knows),
                                       cmocka_unit_test(test_says_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

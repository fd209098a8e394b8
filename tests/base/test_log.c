/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/log.c: what reaches the sink and in which order the screen is wiped and redrawn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static struct {
    int n_lines, last_level;
    char last[512], screen[16];
} seen;

static void sink(void *user, int level, const char *line)
{
    assert_ptr_equal(user, &seen);
    seen.n_lines++;
    seen.last_level = level;
    snprintf(seen.last, sizeof(seen.last), "%s", line);
}

static void wipe(void *user)
{
    strcat(seen.screen, "w");
}

static void redraw(void *user)
{
    strcat(seen.screen, "r");
}

static int begin(void **state)
{
    memset(&seen, 0, sizeof(seen));
    dt_log_sink_set(sink, &seen);
    dt_log_level_set(-1); /* quiet: standard error belongs to the test report */
    dt_log_prefix_set("");
    return 0;
}

static void test_sink_gets_info_and_below_whatever_the_level(void **state)
{
    dt_log(DT_LOG_INFO, "epoch %d", 3);
    assert_int_equal(seen.n_lines, 1);
    assert_int_equal(seen.last_level, DT_LOG_INFO);
    assert_string_equal(seen.last, "info  epoch 3");
    dt_log(DT_LOG_DEBUG, "not kept");
    assert_int_equal(seen.n_lines, 1);
    dt_log_sink_set(NULL, NULL);
    dt_log(DT_LOG_ERROR, "nobody listens");
    assert_int_equal(seen.n_lines, 1);
}

static void test_prefix_and_control_characters(void **state)
{
    dt_log_prefix_set("rank 1 phase1");
    dt_log(DT_LOG_WARN, "bad name \x1b[2J\x7f");
    assert_string_equal(seen.last, "warn  rank 1 phase1: bad name ?[2J?");
    dt_log(DT_LOG_WARN, "no component \"%s\"\n", "x\nerror owned");
    assert_string_equal(seen.last, "warn  rank 1 phase1: no component \"x?error owned\"");
    dt_log_lines(DT_LOG_WARN, "one\ntwo\n");
    assert_string_equal(seen.last, "warn  rank 1 phase1: two");
    assert_int_equal(seen.n_lines, 4);
    dt_log_prefix_set("");
    dt_log(DT_LOG_ERROR, "plain");
    assert_string_equal(seen.last, "error plain");
}

static void test_long_lines_are_cut(void **state)
{
    char big[9000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    dt_log(DT_LOG_INFO, "%s", big);
    assert_int_equal(seen.n_lines, 1);
}

static void test_screen_is_wiped_and_redrawn_around_a_visible_line(void **state)
{
    dt_log_screen_set(wipe, redraw, NULL);
    dt_log(DT_LOG_ERROR, "hidden line");
    assert_string_equal(seen.screen, "");
    dt_log_level_set(DT_LOG_ERROR);
    dt_log(DT_LOG_ERROR, "visible line, part of the test");
    dt_log_screen_set(NULL, NULL, NULL);
    assert_string_equal(seen.screen, "wr");
}

static void test_level_names(void **state)
{
    assert_int_equal(dt_log_level_parse("error"), DT_LOG_ERROR);
    assert_int_equal(dt_log_level_parse("debug"), DT_LOG_DEBUG);
    assert_int_equal(dt_log_level_parse("loud"), -1);
    assert_int_equal(dt_log_level_parse(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sink_gets_info_and_below_whatever_the_level, begin),
        cmocka_unit_test_setup(test_prefix_and_control_characters, begin),
        cmocka_unit_test_setup(test_long_lines_are_cut, begin),
        cmocka_unit_test_setup(test_screen_is_wiped_and_redrawn_around_a_visible_line, begin),
        cmocka_unit_test_setup(test_level_names, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

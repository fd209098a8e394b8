/* SPDX-License-Identifier: Apache-2.0
 *
 * core/comm/launch/notes.c: lines wait until the run's folder is known and are then in its launch.log, in order: lines
 * of the log, and whole lines of bytes that come in pieces; what is drawn again, empty or endless is none.
 */
#include <config.h>

#include "comm/launch/notes.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[32], path[64], text[1 << 22];

static int begin(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/dtrain-notes-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/launch.log", folder);
    text[0] = '\0';
    dt_log_level_set(DT_LOG_WARN); /* on the terminal; what is noted does not depend on it */
    return 0;
}

static int end(void **state)
{
    unlink(path);
    return rmdir(folder);
}

/* launch.log as text; NULL: there is none */
static const char *noted(void)
{
    char line[8192];
    size_t n = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return NULL;
    }
    while (fgets(line, sizeof(line), f) != NULL) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", line);
    }
    fclose(f);
    return text;
}

static void give(dt_launch_notes *n, const char *bytes)
{
    dt_launch_notes_add(n, bytes, strlen(bytes));
}

static void test_lines_wait(void **state)
{
    dt_launch_notes n = {0};
    dt_launch_notes_begin(&n);
    dt_log(DT_LOG_ERROR, "from the log");
    give(&n, "first\nsec");
    give(&n, "ond\n\n\nprogress 1%\rprogress 2%\rdone\n");
    assert_null(noted());
    dt_launch_notes_open(&n, folder);
    assert_true(!n.has_failed && n.file != NULL && n.waiting.bytes == 0);
    give(&n, "later\nhalf a line");
    dt_log(DT_LOG_ERROR, "and on");
    dt_launch_notes_open(&n, "/nowhere"); /* it is open */
    assert_false(n.has_failed);
    dt_launch_notes_end(&n);
    assert_null(n.file);
    dt_log(DT_LOG_ERROR, "after the end");
    assert_non_null(noted());
    char *at = text;
    static const char *const want[] = {"from the log", "first", "second", "done", "later", "and on"};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        char *newline = strchr(at, '\n');
        assert_non_null(newline);
        *newline = '\0';
        const size_t length = strlen(at), wanted = strlen(want[i]);
        if (length <= wanted || at[length - wanted - 1] != ' ' || strcmp(at + length - wanted, want[i]) != 0) {
            fail_msg("line %zu is \"%s\"", i, at);
        }
        at = newline + 1;
    }
    assert_true(*at == '\0');
}

/* Foreign bytes do not reach a terminal as they are; a line without an end is forgotten. */
static void test_foreign_bytes(void **state)
{
    dt_launch_notes n = {0};
    dt_launch_notes_begin(&n);
    dt_launch_notes_open(&n, folder);
    give(&n, "red \x1b[31m\n");
    for (int i = 0; i < 4000; i++) { /* as long as a line may be */
        give(&n, "a");
    }
    give(&n, "\n");
    for (int i = 0; i < 4001; i++) {
        give(&n, "b");
    }
    give(&n, "cd\n");
    dt_launch_notes_end(&n);
    assert_non_null(noted());
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "red "));
    assert_non_null(strstr(text, "aaaa"));
    assert_null(strchr(text, 'b'));
    const size_t length = strlen(text);
    assert_string_equal(text + length - 2, "d\n"); /* c takes the place of what was too long */
}

/* What waits is bounded. */
static void test_most_waiting(void **state)
{
    dt_launch_notes n = {0};
    char line[1025];
    memset(line, 'x', sizeof(line));
    line[1023] = '\n';
    line[1024] = '\0';
    for (int i = 0; i < 1500; i++) {
        give(&n, line);
    }
    assert_int_equal(n.waiting.bytes, 1 << 20);
    dt_launch_notes_open(&n, folder);
    dt_launch_notes_end(&n);
}

static void test_no_folder(void **state)
{
    dt_launch_notes n = {0};
    char nowhere[64];
    snprintf(nowhere, sizeof(nowhere), "%s/none/run", folder);
    give(&n, "kept\n");
    dt_launch_notes_open(&n, nowhere);
    assert_true(n.has_failed && n.file == NULL);
    assert_string_equal(dt_error_text(), "");
    assert_int_equal(n.waiting.bytes, 5);
    dt_launch_notes_open(&n, folder); /* reported once, and not tried again */
    assert_null(n.file);
    assert_null(noted());
    dt_launch_notes_end(&n);
    assert_int_equal(dt_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_wait, begin, end),
        cmocka_unit_test_setup_teardown(test_foreign_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_most_waiting, begin, end),
        cmocka_unit_test_setup_teardown(test_no_folder, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/launch/listen.c: lines of the processes pass as they came, in whatever pieces; what mpirun says of
 * a lost process is read and kept back; what keeps it from starting passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/launch/listen.h"

#define RULE "--------------------------------------------------------------------------\n"

static char passed[16384];

/* In pieces of so many bytes; what reached standard error meanwhile lies in passed. */
static void listen_to(dt_listen *l, const char *text, size_t piece)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    *l = (dt_listen){.rank = -1};
    for (size_t at = 0, n = strlen(text); at < n; at += piece) {
        dt_listen_add(l, text + at, n - at < piece ? n - at : piece);
    }
    dt_listen_end(l);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    passed[fread(passed, 1, sizeof(passed) - 1, file)] = '\0';
    fclose(file);
}

static const size_t pieces[] = {1, 7, 64, 100000};

static void test_lines_pass(void **state)
{
    static const char text[] = "info  step 1\n\nwarn  --- not a rule\nno end of a line";
    dt_listen l;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        listen_to(&l, text, pieces[i]);
        assert_string_equal(passed, text);
        assert_int_equal(l.rank, -1);
        assert_int_equal(l.signal, 0);
    }
}

static void test_a_lost_process_is_read(void **state)
{
    static const struct {
        const char *text;
        int rank, signal;
    } said[] = {
        {"info  before\n" RULE
         "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-"
         "direction, the job has been aborted.\n" RULE RULE
         "mpirun noticed that process rank 3 with PID 0 on node here "
         "exited on signal 9 (Killed).\n" RULE "info  after\n",
         3, 9},
        {"info  before\n" RULE
         "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe "
         "job to be terminated. The first process to do so was:\n\n  Process name: [[5310,1],12]\n  Exit code:    "
         "9\n" RULE "info  after\n",
         12, 0},
        {"info  before\n" RULE
         "mpirun has exited due to process rank 1 with PID 0 on\nnode here exiting improperly.\n" RULE "info  after\n",
         1, 0},
    };
    dt_listen l;
    for (size_t k = 0; k < sizeof(said) / sizeof(said[0]); k++) {
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
            listen_to(&l, said[k].text, pieces[i]);
            assert_string_equal(passed, "info  before\ninfo  after\n");
            assert_int_equal(l.rank, said[k].rank);
            assert_int_equal(l.signal, said[k].signal);
        }
    }
}

/* After a block, lines pass again, whatever they contain. */
static void test_lines_after_a_block_pass(void **state)
{
    dt_listen l;
    listen_to(&l,
              RULE "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9\n" RULE
                   "info  started by mpirun: process rank 4\n",
              64);
    assert_string_equal(passed, "info  started by mpirun: process rank 4\n");
    assert_int_equal(l.rank, 1);
    assert_false(l.is_inside);
}

static void test_what_keeps_it_from_starting_passes(void **state)
{
    dt_listen l;
    listen_to(&l, RULE "There are not enough slots available in the system\n" RULE, 64);
    assert_non_null(strstr(passed, "There are not enough slots available"));
    assert_int_equal(l.rank, -1);
    /* a rule that is never closed hides nothing */
    listen_to(&l, RULE "ORTE was unable to do something\n", 64);
    assert_non_null(strstr(passed, "unable to do something"));
}

static void test_more_than_there_is_room_for(void **state)
{
    static char text[12000];
    dt_listen l;
    memset(text, 'x', sizeof(text) - 2);
    listen_to(&l, text, 5000);
    assert_string_equal(passed, text);
    static char block[12000];
    snprintf(block, sizeof(block),
             RULE "mpirun noticed that process rank 2 with PID 0 on node x exited on signal 11\n%.9000s\n" RULE, text);
    listen_to(&l, block, 700);
    assert_int_equal(l.rank, 2);
    assert_int_equal(l.signal, 11);
    assert_string_equal(passed, "");
}

static void test_a_lost_machine_is_read(void **state)
{
    static const char text[] =
        "info  before\n" RULE "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[30344,0],0] on "
        "node node-a\n  Remote daemon: [[30344,0],1] on node node-b\n\nThis is usually due to either a failure of the "
        "TCP "
        "network\nconnection to the node, or possibly an internal failure of\nthe daemon itself.\n" RULE
        "info  after\n";
    dt_listen l;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        listen_to(&l, text, pieces[i]);
        assert_string_equal(passed, "info  before\ninfo  after\n");
        assert_string_equal(l.node, "node-b");
        assert_int_equal(l.rank, -1);
    }
    listen_to(&l, RULE "ORTE has lost communication with a remote daemon.\n" RULE, 64);
    assert_string_equal(l.node, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_pass),
        cmocka_unit_test(test_a_lost_process_is_read),
        cmocka_unit_test(test_a_lost_machine_is_read),
        cmocka_unit_test(test_lines_after_a_block_pass),
        cmocka_unit_test(test_what_keeps_it_from_starting_passes),
        cmocka_unit_test(test_more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

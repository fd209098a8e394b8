/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/launch/hostfile.c: which lines a file of hosts may have.
 */
#include <config.h>

#include "comm/launch/hostfile.h"

#include "base/err.h"
#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static dt_status check(const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "test_hostfile.%ld.tmp", (long)getpid());
    assert_int_equal(dt_fs_write_atomic(path, text, strlen(text)), DT_OK);
    const dt_status st = dt_hostfile_check(path);
    unlink(path);
    return st;
}

static void test_accepted(void **state)
{
    static const char *const good[] = {"node1\n",
                                       "node1",
                                       "# hosts\n\nnode1 slots=4\n\tnode2\tslots=1  max_slots=8 # two\n",
                                       "node1 slots=65536\n",
                                       "user@10.0.0.1:22 count=3\n",
                                       "node1 color=7\n"};
    assert_int_equal(dt_hostfile_check(NULL), DT_OK);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (check(good[i]) != DT_OK) {
            fail_msg("%s: %s", good[i], dt_error_text());
        }
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *line; /* that the error names; "" where it is the whole file */
    } bad[] = {{"node1 slots=0\n", "line 1"},
               {"node1\nnode2 slots=65537\n", "line 2"},
               {"node1 slots=-1\n", "line 1"},
               {"node1 slots=\n", "line 1"},
               {"node1 slots=4x\n", "line 1"},
               {"node1 slots=18446744073709551617\n", "line 1"},
               {"node1 max_slots=0\n", "line 1"},
               {"node1 max-slots=0\n", "line 1"},
               {"node1 count=0\n", "line 1"},
               {"\n\nslots=4 node1\n", "line 3"},
               {"node1 node2\n", "line 1"},
               {"node1\r\n", "line 1"},
               {"node1\nnode$2\n", "line 2"},
               {"node\x7f\n", "line 1"},
               {"node\x01\n", "line 1"},
               {"", ""},
               {"# node1\n  \n", ""}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (check(bad[i].text) != DT_ECONFIG || strstr(dt_error_text(), bad[i].line) == NULL) {
            fail_msg("%s: %s", bad[i].text, dt_error_text());
        }
        dt_error_clear();
    }
    assert_int_equal(dt_hostfile_check("test_hostfile.none"), DT_ECONFIG);
    assert_int_equal(dt_hostfile_check("/dev/null"), DT_ECONFIG);
    dt_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Who takes part in an elastic job, by a clock of the test's: hosts and slots that are lost, return, join and leave;
 * and the hostfile as it is read and written.
 */
#include <config.h>

#include "comm/launch/hosts.h"

#include "base/err.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/dtrain-hosts-XXXXXX";

static void write_hosts(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static dt_launch_hosts make(const char *text, dt_launch_range processes, dt_launch_range machines)
{
    dt_launch_hosts h;
    write_hosts(text);
    assert_int_equal(dt_hosts_init(path, processes, machines, &h), DT_OK);
    return h;
}

/* "2 0 1 ": processes of each host in the next attempt; "": fewer than allowed */
static const char *chosen(dt_launch_hosts *h, double now)
{
    static char text[64];
    text[0] = '\0';
    const uint32_t n = dt_hosts_choose(h, now);
    for (uint32_t i = 0; i < h->n && n > 0; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", h->host[i].n_used);
    }
    return text;
}

static void test_lines(void **state)
{
    dt_launch_hosts h = make("# all\na.b slots=2 max_slots=4\n\nb slots = 1 username=u # c\na.b slots=1\nc\n",
                             (dt_launch_range){1, 100}, (dt_launch_range){0, 0});
    assert_int_equal(h.n, 3);
    assert_string_equal(chosen(&h, 0), "3 1 1 ");
    char text[256] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(dt_hosts_write(&h, fileno(f)), DT_OK);
    assert_int_equal(dt_hosts_write(&h, fileno(f)), DT_OK);
    assert_true(pread(fileno(f), text, sizeof(text) - 1, 0) > 0);
    assert_string_equal(text, "a.b slots=3\nb slots=1 username=u\nc slots=1\n");
    memset(text, 0, sizeof(text));
    assert_int_equal(dt_hosts_write_one(&h, 1, fileno(f)), DT_OK);
    assert_true(pread(fileno(f), text, sizeof(text) - 1, 0) > 0);
    assert_string_equal(text, "b slots=1 username=u\n");
    fclose(f);
    dt_hosts_fini(&h);
}

static void test_minimum(void **state)
{
    dt_launch_hosts h;
    write_hosts("a slots=2\nb slots=1\n");
    assert_int_equal(dt_hosts_init(path, (dt_launch_range){1, 8}, (dt_launch_range){3, 4}, &h), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "--nnodes 3:4"));
    assert_non_null(strstr(dt_error_text(), "2 hosts"));
    assert_int_equal(dt_hosts_init(path, (dt_launch_range){4, 8}, (dt_launch_range){0, 0}, &h), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "--nproc 4:8"));
    assert_non_null(strstr(dt_error_text(), "3 slots"));
    write_hosts("# none\n");
    assert_int_equal(dt_hosts_init(path, (dt_launch_range){1, 8}, (dt_launch_range){0, 0}, &h), DT_ECONFIG);
    dt_error_clear();
}

static void test_limits(void **state)
{
    dt_launch_hosts h = make("a slots=2\nb slots=2\nc slots=2\n", (dt_launch_range){1, 5}, (dt_launch_range){1, 2});
    assert_string_equal(chosen(&h, 0), "2 2 0 "); /* two machines at most */
    dt_hosts_lose_host(&h, "a", 10, 0);
    assert_string_equal(chosen(&h, 10), "0 2 2 "); /* another one takes its place */
    h.processes.max = 3;
    assert_string_equal(chosen(&h, 10), "0 2 1 ");
    dt_hosts_fini(&h);
}

/* No more than have work, but never fewer than allowed, and one on each machine that there must be. */
static void test_work(void **state)
{
    dt_launch_hosts h = make("a slots=4\nb slots=4\n", (dt_launch_range){1, 8}, (dt_launch_range){0, 0});
    assert_string_equal(chosen(&h, 0), "4 4 ");
    h.most = 5;
    assert_int_equal(dt_hosts_find_change(&h, 0), 5);
    assert_string_equal(chosen(&h, 0), "4 1 ");
    h.most = 3;
    assert_string_equal(chosen(&h, 0), "3 0 ");
    h.machines = (dt_launch_range){2, 2};
    assert_string_equal(chosen(&h, 0), "2 1 ");
    h.most = 1;
    assert_string_equal(chosen(&h, 0), "1 1 ");
    h.processes.min = 4;
    assert_string_equal(chosen(&h, 0), "3 1 ");
    h.most = 12; /* a later phase has work for more */
    assert_int_equal(dt_hosts_find_change(&h, 0), 8);
    h.most = 0;
    assert_int_equal(dt_hosts_find_change(&h, 0), 8);
    dt_hosts_fini(&h);
}

static void test_slots_return(void **state)
{
    dt_launch_hosts h;
    assert_int_equal(dt_hosts_init(NULL, (dt_launch_range){2, 4}, (dt_launch_range){0, 0}, &h), DT_OK);
    assert_string_equal(chosen(&h, 0), "4 ");
    assert_int_equal(dt_hosts_find_change(&h, 0), 0);
    dt_hosts_lose_rank(&h, 3, 10, 0);
    assert_string_equal(chosen(&h, 11.5), "3 "); /* without it, though its second is over */
    assert_int_equal(dt_hosts_find_change(&h, 11.5), 4);
    dt_hosts_lose_rank(&h, 0, 20, 0); /* nothing was saved meanwhile: 2 s; the other slot is back */
    assert_string_equal(chosen(&h, 20), "3 ");
    assert_int_equal(dt_hosts_find_change(&h, 21.5), 0);
    assert_int_equal(dt_hosts_find_change(&h, 22), 4);
    dt_hosts_lose_rank(&h, 1, 30, 5);
    dt_hosts_lose_rank(&h, 0, 30, 5);
    dt_hosts_lose_rank(&h, 0, 30, 5);
    assert_string_equal(chosen(&h, 30), ""); /* fewer than 2 */
    assert_string_equal(chosen(&h, 100), "4 ");
    dt_hosts_lose_rank(&h, 7, 110, 5); /* no such rank */
    assert_string_equal(chosen(&h, 110), "4 ");
    dt_hosts_fini(&h);
}

static void test_ranks_of_hosts(void **state)
{
    dt_launch_hosts h = make("a slots=2\nb slots=2\n", (dt_launch_range){1, 4}, (dt_launch_range){0, 0});
    assert_string_equal(chosen(&h, 0), "2 2 ");
    dt_hosts_lose_rank(&h, 2, 0, 0);
    assert_string_equal(chosen(&h, 0), "2 1 ");
    dt_hosts_lose_rank(&h, 0, 0.5, 0);
    assert_string_equal(chosen(&h, 0.5), "1 1 ");
    dt_hosts_fini(&h);
}

static void test_hosts_return(void **state)
{
    dt_launch_hosts h = make("a slots=1\nb.example.org slots=2\n", (dt_launch_range){1, 8}, (dt_launch_range){0, 0});
    assert_string_equal(chosen(&h, 0), "1 2 ");
    dt_hosts_lose_host(&h, "nobody", 1, 0);
    dt_hosts_lose_host(&h, "b", 1, 0); /* as mpirun names it */
    assert_string_equal(chosen(&h, 1), "1 0 ");
    assert_int_equal(dt_hosts_find_probe(&h, 1.5), UINT32_MAX);
    assert_int_equal(dt_hosts_find_probe(&h, 2), 1);
    dt_hosts_set_probed(&h, 1, false, 2);
    assert_int_equal(dt_hosts_find_probe(&h, 3.5), UINT32_MAX); /* 2 s, then 4 s */
    assert_int_equal(dt_hosts_find_probe(&h, 4), 1);
    assert_int_equal(dt_hosts_find_change(&h, 100), 0);
    dt_hosts_set_probed(&h, 1, true, 4);
    assert_int_equal(dt_hosts_find_change(&h, 4), 3);
    assert_string_equal(chosen(&h, 4), "1 2 ");
    dt_hosts_suspect_all(&h, 5);
    assert_string_equal(chosen(&h, 5), "");
    dt_hosts_set_probed(&h, dt_hosts_find_probe(&h, 5), true, 5);
    dt_hosts_set_probed(&h, dt_hosts_find_probe(&h, 5), false, 5);
    assert_string_equal(chosen(&h, 5), "1 0 ");
    dt_hosts_fini(&h);
}

static void test_hostfile_changes(void **state)
{
    dt_launch_hosts h = make("a slots=1\nb slots=1\n", (dt_launch_range){1, 8}, (dt_launch_range){0, 0});
    assert_string_equal(chosen(&h, 0), "1 1 ");
    write_hosts("a slots=2\nc slots=3\n"); /* b leaves, c is new, a has more */
    assert_int_equal(dt_hosts_read_again(&h, 1), DT_OK);
    assert_int_equal(dt_hosts_find_change(&h, 1), 2);
    assert_int_equal(dt_hosts_find_probe(&h, 1), 2);
    dt_hosts_set_probed(&h, 2, true, 1);
    assert_string_equal(chosen(&h, 1), "2 0 3 ");
    write_hosts("a slots=x\n");
    assert_int_equal(dt_hosts_read_again(&h, 2), DT_ECONFIG);
    dt_error_clear();
    assert_string_equal(chosen(&h, 2), "2 0 3 ");
    dt_hosts_fini(&h);
}

int main(void)
{
    const int fd = mkstemp(path);
    if (fd < 0) {
        return 77;
    }
    close(fd);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_minimum),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_work),
        cmocka_unit_test(test_slots_return), cmocka_unit_test(test_ranks_of_hosts),
        cmocka_unit_test(test_hosts_return), cmocka_unit_test(test_hostfile_changes),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}

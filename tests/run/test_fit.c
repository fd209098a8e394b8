/* SPDX-License-Identifier: Apache-2.0
 *
 * What the system lets a process have (core/plan/machine/limits.h), on folders that look like it, and plans held
 * against it (core/plan/fit.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "plan/fit.h"

static char top[64];
static char said[4096];

static void hear(void *user, int level, const char *text)
{
    strncat(said, text, sizeof(said) - strlen(said) - 1);
}

static void put(const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", top, file);
    *strrchr(path, '/') = '\0';
    assert_int_equal(dt_fs_mkdirs(path), DT_OK);
    path[strlen(path)] = '/';
    assert_int_equal(dt_fs_write_atomic(path, text, strlen(text)), DT_OK);
}

static int begin(void **state)
{
    snprintf(top, sizeof(top), "test_fit.%ld.tmp", (long)getpid());
    said[0] = '\0';
    dt_log_sink_set(hear, NULL);
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    dt_log_sink_set(NULL, NULL);
    dt_error_clear();
    return dt_fs_remove_tree(top);
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    dt_limits r;
    assert_false(dt_limits_read(top, &r));
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 90 kB\nSwapFree: 50 kB\n");
    assert_true(dt_limits_read(top, &r));
    assert_int_equal(r.memory, 400 * 1024);
    assert_int_equal(r.total, 1000 * 1024);
    assert_int_equal(r.swap, 50 * 1024);
    assert_string_equal(r.by, "the machine");
    /* a group that leaves more than the machine says nothing; who leaves least counts, and not who has the lowest
     * limit: here the one above, whose others took much */
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "900000\n");
    put("sys/fs/cgroup/a/b/memory.current", "100000\n");
    assert_true(dt_limits_read(top, &r));
    assert_int_equal(r.memory, 400 * 1024);
    put("sys/fs/cgroup/a/memory.max", "950000\n");
    put("sys/fs/cgroup/a/memory.current", "930000\n");
    put("sys/fs/cgroup/a/memory.stat", "inactive_file 10000\n");
    assert_true(dt_limits_read(top, &r));
    assert_int_equal(r.memory, 30000);
    assert_int_equal(r.total, 950000);
    assert_int_equal(r.swap, 0); /* the machine's is not the group's */
    assert_string_equal(r.by, "the control group");
    /* the older kind, and one that is full */
    put("proc/self/cgroup", "4:memory:/job\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "20000\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "22000\n");
    assert_true(dt_limits_read(top, &r));
    assert_int_equal(r.memory, 0);
    assert_int_equal(r.total, 20000);
}

static void test_limits(void **state)
{
    dt_limits r;
    struct rlimit before, less;
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\nCommitLimit: 70 kB\nCommitted_AS: 30 kB\n");
    (void)dt_limits_read(top, &r);
    const uint64_t mapped = r.address;
    put("proc/sys/vm/overcommit_memory", "2\n");
    (void)dt_limits_read(top, &r);
    assert_int_equal(r.address, 40 * 1024);
    assert_string_equal(r.address_by, "vm.overcommit_memory = 2");
    put("proc/sys/vm/overcommit_memory", "0\n");
    (void)dt_limits_read(top, &r);
    assert_true(r.address == mapped);
    /* what ulimit -d leaves: less than it says, for this program holds some */
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    less = (struct rlimit){.rlim_cur = 1 << 30, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_DATA, &less), 0);
    (void)dt_limits_read(top, &r);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_true(r.address < 1 << 30);
    if (r.address > 0) { /* with a sanitizer the program holds more than that */
        assert_string_equal(r.address_by, "ulimit -d");
    }
    /* files: those that are open do not count again */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    (void)dt_limits_read(top, &r);
    const int more = dup(0);
    const uint64_t files = r.files;
    (void)dt_limits_read(top, &r);
    close(more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_in_range(files, 1, 63);
    assert_int_equal(r.files, files - 1);
    /* processes and cores of a container */
    put("proc/self/cgroup", "0::/c\n");
    put("sys/fs/cgroup/c/pids.max", "100\n");
    put("sys/fs/cgroup/c/pids.current", "60\n");
    put("sys/fs/cgroup/c/cpu.max", "50000 100000\n");
    (void)dt_limits_read(top, &r);
    assert_in_range(r.processes, 1, 40);
    assert_int_equal(r.cores, 1);
    const uint32_t all = dt_limits_count_cores("/nowhere");
    put("sys/fs/cgroup/c/cpu.max", "100001 100000\n"); /* a part of a core is one */
    assert_int_equal(dt_limits_count_cores(top), all < 2 ? all : 2);
    put("sys/fs/cgroup/c/cpu.max", "200000 100000\n");
    assert_int_equal(dt_limits_count_cores(top), all < 2 ? all : 2);
    put("sys/fs/cgroup/c/cpu.max", "100000 100000\n");
    assert_int_equal(dt_limits_count_cores(top), 1);
    put("sys/fs/cgroup/c/cpu.max", "max 100000\n");
    assert_int_equal(dt_limits_count_cores(top), dt_limits_count_cores("/nowhere"));
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static const uint64_t GB = 1000 * 1000 * 1000;

static dt_fit machine(void)
{
    return (dt_fit){.is_known = true,
                    .held = GB / 10,
                    .room = {.memory = 10 * GB,
                             .total = 16 * GB,
                             .by = "the machine",
                             .address = UINT64_MAX,
                             .files = 1000,
                             .processes = UINT64_MAX,
                             .cores = 2}};
}

static void refused(const dt_fit *fit, const dt_forecast *f, const char *why)
{
    said[0] = '\0';
    assert_int_equal(dt_fit_check(fit, f, true), DT_ECONFIG);
    if (strstr(dt_error_text(), why) == NULL) {
        fail_msg("expected \"%s\" in: %s", why, dt_error_text());
    }
    assert_string_equal(said, "");
    dt_error_clear();
}

static void passes(const dt_fit *fit, const dt_forecast *f, const char *warning)
{
    said[0] = '\0';
    assert_int_equal(dt_fit_check(fit, f, false), DT_OK);
    assert_string_equal(said, "");
    assert_int_equal(dt_fit_check(fit, f, true), DT_OK);
    if (warning[0] == '\0' ? said[0] != '\0' : strstr(said, warning) == NULL) {
        fail_msg("expected \"%s\", said: %s", warning, said);
    }
}

static void test_plans(void **state)
{
    dt_fit m = machine();
    dt_forecast f = {.resident = 5 * GB};
    passes(&m, &f, "");
    /* what is held is not taken again, and recordings can be dropped */
    f.resident = 9 * GB + GB / 10;
    passes(&m, &f, "");
    f.resident = 40 * GB;
    f.recordings = 35 * GB;
    passes(&m, &f, "");
    f = (dt_forecast){.resident = 9 * GB + GB / 2};
    passes(&m, &f, "plans are accurate to 10 %");
    f.resident = 262 * GB;
    refused(&m, &f, "the plan takes 262 GB, but the machine has 16 GB, of which 10 GB are free");
    /* processes count */
    f = (dt_forecast){.resident = GB, .processes = 20 * GB, .rollout = {.processes = 20, .evaluated = 10}};
    refused(&m, &f, "the plan takes 21 GB (1 in this process, 20 in processes of environments), but");
    m.room.swap = 30 * GB;
    passes(&m, &f, "the rest is swapped, and slow");
    f.processes = 80 * GB;
    refused(&m, &f, "of which 10 GB and 30 GB of swap are free");
    m.is_known = false;
    passes(&m, &f, "");
    /* and so does each process of the run on this machine */
    m = machine();
    f = (dt_forecast){.resident = 6 * GB};
    passes(&m, &f, "");
    m.alike = 2;
    refused(&m, &f, "the plan of 2 processes takes 12 GB, but the machine has 16 GB, of which 10 GB are free");
    f.resident = 4 * GB;
    passes(&m, &f, "");
}

static void test_target(void **state)
{
    dt_fit m = machine();
    dt_forecast f = {.resident = 2 * GB, .processes = GB, .recordings = GB};
    m.target_gb = 4;
    passes(&m, &f, "");
    m.target_gb = 3.1;
    passes(&m, &f, "3.00 GB are planned, close to memory.target_gb = 3.1");
    m.target_gb = 2.9; /* more than the process alone, less than with its workers; recordings are in it */
    refused(&m, &f,
            "the plan takes 3 GB (2 in this process, 1 in processes of environments), and memory.target_gb = 2.9 "
            "allows less");
    m.target_gb = 200; /* does not make the machine larger */
    f.resident = 100 * GB;
    refused(&m, &f, "but the machine has 16 GB");
}

static void test_processes(void **state)
{
    dt_fit m = machine();
    dt_forecast f = {.resident = GB, .processes = GB, .rollout = {.processes = 60, .evaluating = 10}};
    passes(&m, &f, "");
    f.rollout.processes = 400;
    refused(&m, &f,
            "410 processes of environments, 10 of them while it evaluates, need 1227 open files, "
            "and 1000 may still be opened: raise ulimit -n");
    m.room.files = UINT64_MAX;
    passes(&m, &f, "400 processes of environments take turns on 2 cores; 64 collect as fast");
    m.room.processes = 409;
    passes(&m, &f, "take turns");
    m.room.processes = 408;
    refused(&m, &f, "and 408 may still be started: raise ulimit -u or pids.max");
    f.rollout.processes = 0; /* as many in this process */
    f.rollout.evaluating = 0;
    passes(&m, &f, "");
}

static void test_reports(void **state)
{
    dt_fit m = machine();
    dt_forecast f = {.resident = 20 * GB, .recordings = GB};
    dt_str text = {0}, json = {0};
    dt_json_out o = {.s = &json};
    m.target_gb = 12;
    dt_fit_text(&m, &f, &text);
    assert_string_equal(dt_str_text(&text),
                        "  machine      2 cores; 10000.0 MB of memory free of 16000.0 MB (the machine); "
                        "memory.target_gb allows 12000.0 MB; the plan takes 20000.0 MB, recordings included\n");
    dt_json_obj(&o, NULL);
    dt_fit_json(&m, &f, &o);
    dt_json_end(&o, '}');
    assert_non_null(strstr(dt_str_text(&json), "\"memory_free\":10000000000"));
    assert_non_null(strstr(dt_str_text(&json), "\"fits\":false"));
    assert_string_equal(dt_error_text(), "");
    dt_str_fini(&text);
    dt_str_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_limits, begin, end),
        cmocka_unit_test_setup_teardown(test_plans, begin, end),
        cmocka_unit_test_setup_teardown(test_target, begin, end),
        cmocka_unit_test_setup_teardown(test_processes, begin, end),
        cmocka_unit_test_setup_teardown(test_reports, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the system says about memory, on folders that look like it, and the levels of the watch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "plan/memory_watch.h"
#include "plan/machine/limits.h"

static char top[64];
static char said[4096];

static void hear(void *user, int level, const char *text)
{
    strncat(said, text, sizeof(said) - strlen(said) - 1);
    strncat(said, "\n", sizeof(said) - strlen(said) - 1);
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
    snprintf(top, sizeof(top), "test_memory_watch.%ld.tmp", (long)getpid());
    said[0] = '\0';
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    return dt_fs_remove_tree(top);
}

static void uses(uint64_t used, uint64_t limit)
{
    uint64_t is_used = 0, is_limit = 0;
    assert_true(dt_limits_memory_use(top, &is_used, &is_limit));
    assert_int_equal(is_used, used);
    assert_int_equal(is_limit, limit);
}

static void test_system(void **state)
{
    uint64_t used = 0, limit = 0;
    assert_false(dt_limits_memory_use(top, &used, &limit));
    put("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n");
    uses(600 * 1024, 1000 * 1024);
    /* a group without a limit, one with, and one above it that has less */
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "5000\n");
    uses(600 * 1024, 1000 * 1024);
    put("sys/fs/cgroup/a/b/memory.max", "9000\n");
    uses(5000, 9000);
    put("sys/fs/cgroup/a/b/memory.stat", "anon 1000\ninactive_file 1500\n");
    uses(3500, 9000);
    put("sys/fs/cgroup/a/memory.max", "8000\n");
    put("sys/fs/cgroup/a/memory.current", "7000\n");
    uses(7000, 8000);
    /* a limit above what the machine has is none */
    put("sys/fs/cgroup/a/memory.max", "900000000\n");
    put("sys/fs/cgroup/a/b/memory.max", "900000000\n");
    uses(600 * 1024, 1000 * 1024);
    /* the older kind of groups */
    put("proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n");
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "20000\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "12000\n");
    put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
    uses(10000, 20000);
}

static bool heard(const char *piece)
{
    return strstr(said, piece) != NULL;
}

static void test_levels(void **state)
{
    const dt_memory_opts o = {.warn_fraction = 0.75, .shed_fraction = 0.875, .watch_s = 1};
    dt_memory_watch w;
    dt_log_sink_set(hear, NULL);
    dt_memory_watch_init(&w, &o, true);
    w.root = top;
    dt_memory_watch_update(&w, 0.5, NULL); /* nobody says */
    assert_int_equal(w.limit, 0);
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 300000 kB\n");
    dt_memory_watch_update(&w, 1, NULL);
    assert_int_equal(w.limit, 0); /* too early for another look */
    dt_memory_watch_update(&w, 2, NULL);
    assert_int_equal(w.used, 700000 * 1024);
    assert_string_equal(said, "");
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 200000 kB\n");
    dt_memory_watch_update(&w, 3, NULL);
    assert_true(heard("0.82 of 1.02 GB of memory are in use (80 %): memory is released above"));
    said[0] = '\0';
    dt_memory_watch_update(&w, 4, NULL);
    assert_string_equal(said, ""); /* once */
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 100000 kB\n");
    dt_memory_watch_update(&w, 5, NULL);
    assert_true(heard("(90 %): returned freed blocks to the system"));
    dt_memory_watch_update(&w, 6, NULL);
    assert_true(heard("nothing is left to release; end other programs"));
    said[0] = '\0';
    dt_memory_watch_update(&w, 7, NULL);
    assert_string_equal(said, "");
    /* below the lower level everything may be said again */
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n");
    dt_memory_watch_update(&w, 8, NULL);
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 200000 kB\n");
    dt_memory_watch_update(&w, 9, NULL);
    assert_true(heard("(80 %)"));
    /* other ranks keep silent, and 0 means never */
    said[0] = '\0';
    w.may_log = false;
    put("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 10000 kB\n");
    dt_memory_watch_update(&w, 10, NULL);
    w.may_log = true;
    w.o.warn_fraction = w.o.shed_fraction = 0;
    dt_memory_watch_update(&w, 11, NULL);
    assert_string_equal(said, "");
    dt_log_sink_set(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_system, begin, end),
        cmocka_unit_test_setup_teardown(test_levels, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

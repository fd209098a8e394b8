/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/mem.c and core/base/fault.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"

static int reset(void **state)
{
    dt_fault_reset(NULL);
    return 0;
}

static void check_zero(const unsigned char *p, size_t bytes)
{
    assert_non_null(p);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(p[i], 0);
    }
}

static void test_blocks_are_zeroed_aligned_and_counted(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 262143, 262144, 1000001};
    uint64_t live = dt_alloc_live_bytes(), calls = dt_alloc_calls();
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            unsigned char *p = dt_alloc(sizes[i]);
            check_zero(p, sizes[i]);
            assert_int_equal((uintptr_t)p % 64, 0);
            assert_int_equal(dt_alloc_live_bytes() - live, sizes[i] == 0 ? 1 : sizes[i]);
            memset(p, 0xff, sizes[i]);
            dt_free(p);
        }
    }
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_int_equal(dt_alloc_calls() - calls, 2 * sizeof(sizes) / sizeof(sizes[0]));
    dt_free(NULL);
}

static void test_realloc_keeps_the_bytes(void **state)
{
    uint64_t live = dt_alloc_live_bytes();
    char *p = dt_realloc(NULL, 3);
    assert_non_null(p);
    memcpy(p, "ab", 3);
    p = dt_realloc(p, 300000);
    assert_non_null(p);
    assert_string_equal(p, "ab");
    assert_int_equal((uintptr_t)p % 64, 0);
    p = dt_realloc(p, 2);
    assert_non_null(p);
    assert_memory_equal(p, "ab", 2);
    dt_fault_reset("alloc:1");
    assert_null(dt_realloc(p, 100));
    assert_memory_equal(p, "ab", 2);
    dt_free(p);
    assert_int_equal(dt_alloc_live_bytes(), live);
}

static void test_sizes_cannot_overflow(void **state)
{
    size_t out = 7;
    assert_false(dt_mul_size(SIZE_MAX / 2, 3, &out));
    assert_true(dt_mul_size(6, 7, &out));
    assert_int_equal(out, 42);
    assert_null(dt_alloc_n(SIZE_MAX / 2, 3));
    assert_null(dt_alloc(SIZE_MAX));
    assert_null(dt_alloc(SIZE_MAX - 100));
    void *arena = NULL;
    assert_int_equal(dt_arena_map(SIZE_MAX, &arena), DT_ENOMEM);
    assert_non_null(strstr(dt_error_text(), "arena of"));
}

static void test_strdup(void **state)
{
    assert_null(dt_strdup(NULL));
    char *s = dt_strdup("words");
    assert_string_equal(s, "words");
    dt_free(s);
    dt_fault_reset("alloc:1");
    assert_null(dt_strdup("words"));
}

static void test_arena_is_zeroed_and_given_back(void **state)
{
    uint64_t live = dt_alloc_live_bytes();
    void *p = NULL;
    const uint64_t mapped = dt_arena_live_bytes();
    dt_arena_peak_reset();
    assert_int_equal(dt_arena_map(5000001, &p), DT_OK);
    assert_int_equal(dt_arena_live_bytes() - mapped, dt_arena_bytes(5000001)); /* counted apart, in whole pages */
    assert_true(dt_arena_bytes(5000001) >= 5000001 && dt_arena_bytes(5000001) % dt_arena_bytes(1) == 0);
    check_zero(p, 5000001);
    assert_true(dt_alloc_live_bytes() - live >= 5000001);
    dt_arena_unmap(p, 5000001);
    assert_int_equal(dt_arena_live_bytes(), mapped);
    assert_int_equal(dt_arena_peak_bytes(), mapped + dt_arena_bytes(5000001));
    dt_arena_peak_reset();
    assert_int_equal(dt_arena_peak_bytes(), mapped);
    assert_int_equal(dt_alloc_live_bytes(), live);
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_arena_map(100, &p), DT_ENOMEM);
}

/* What touching the first so many bytes makes resident is what was said: at most, as huge pages may have run out. */
static void test_touched_is_counted(void **state)
{
    enum { BYTES = 5000001 };
    const size_t page = dt_arena_bytes(1), used[] = {0, 1, 100000, 2097152, 2097153, 4194305, BYTES};
    static unsigned char in[BYTES / 4096 + 1];
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        void *p = NULL;
        size_t resident = 0;
        assert_int_equal(dt_arena_map(BYTES, &p), DT_OK);
        for (size_t at = 0; at < used[i]; at += page) {
            ((char *)p)[at] = 1;
        }
        assert_int_equal(mincore(p, BYTES, in), 0);
        for (size_t k = 0; k < dt_arena_bytes(BYTES) / page; k++) {
            resident += (in[k] & 1) != 0 ? page : 0;
        }
        assert_true(resident >= used[i] && resident <= dt_arena_touched(BYTES, used[i]));
        const size_t last = used[i] > 0 ? used[i] - 1 : 0;
        assert_true(dt_arena_touched(BYTES, used[i]) < used[i] + dt_arena_granule(BYTES, last));
        dt_arena_unmap(p, BYTES);
    }
    assert_int_equal(dt_arena_granule(BYTES, BYTES - 1), page); /* behind the last whole huge page */
    assert_int_equal(dt_arena_touched(BYTES, BYTES + 1), dt_arena_bytes(BYTES));
    assert_int_equal(dt_arena_touched(1, 1), page);
}

static void test_fault_modes(void **state)
{
    dt_fault_reset("a.b:2,c:1+");
    assert_false(dt_fault("a.b"));
    assert_true(dt_fault("a.b"));
    assert_false(dt_fault("a.b"));
    assert_true(dt_fault("c"));
    assert_true(dt_fault("c"));
    assert_false(dt_fault("other"));
    assert_int_equal(dt_fault_count(), 3);
    dt_fault_reset("fs.*:3");
    assert_false(dt_fault("fs.open"));
    assert_false(dt_fault("fs.write"));
    assert_false(dt_fault("alloc"));
    assert_true(dt_fault("fs.fsync"));
    assert_int_equal(dt_fault_count(), 1);
    dt_fault_reset(NULL);
    assert_int_equal(dt_fault_count(), 0);
    assert_false(dt_fault("fs.fsync"));
}

static void test_bad_specifications_are_named_and_ignored(void **state)
{
    static const char *const bad[] = {
        "alloc",   "alloc:",   ":3",        "alloc:0",
        "alloc:x", "alloc:1?", "alloc:1+!", "a-name-that-is-far-too-long-for-any-fault-point-at-all:1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(dt_fault_reset(bad[i]));
        assert_false(dt_fault("alloc"));
    }
    assert_true(dt_fault_reset("alloc:900000"));
    assert_true(dt_fault_reset(NULL));
}

static void test_kill_mode_kills(void **state)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dt_fault_reset("boom:2!");
        (void)dt_fault("boom");
        (void)dt_fault("boom");
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void test_environment_names_faults(void **state)
{
    /* main set DTRAIN_FAULT before the first visit of all */
    void *first = dt_alloc(8), *second = dt_alloc(8), *third = dt_alloc(8);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    dt_free(first);
    dt_free(third);
}

int main(void)
{
    setenv("DTRAIN_FAULT", "alloc:2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_names_faults),
        cmocka_unit_test_setup(test_blocks_are_zeroed_aligned_and_counted, reset),
        cmocka_unit_test_setup(test_realloc_keeps_the_bytes, reset),
        cmocka_unit_test_setup(test_sizes_cannot_overflow, reset),
        cmocka_unit_test_setup(test_strdup, reset),
        cmocka_unit_test_setup(test_arena_is_zeroed_and_given_back, reset),
        cmocka_unit_test_setup(test_touched_is_counted, reset),
        cmocka_unit_test_setup(test_fault_modes, reset),
        cmocka_unit_test_setup(test_bad_specifications_are_named_and_ignored, reset),
        cmocka_unit_test_setup(test_kill_mode_kills, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

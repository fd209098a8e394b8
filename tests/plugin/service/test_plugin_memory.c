/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugin/service/plugin_memory.h: what plugins hold is counted, and what of it nobody touched.
 */
#include "plugin/service/plugin_memory.h"

#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum { LARGE = 32 << 20, SMALL = 1000, HUGE_PAGE = 2 << 20 };

static void test_counts(void **state)
{
    assert_int_equal(dt_plugin_memory_bytes(), 0);
    char *small = dt_plugin_alloc(SMALL), *large = dt_plugin_alloc(LARGE), *other = dt_plugin_alloc(LARGE);
    assert_int_equal(dt_plugin_memory_bytes(), SMALL + 2 * (uint64_t)LARGE);
    assert_true(dt_plugin_memory_untouched_bytes() >= 2 * (uint64_t)LARGE - 4 * HUGE_PAGE);
    memset(large, 1, LARGE);
    assert_true(dt_plugin_memory_untouched_bytes() <= LARGE);
    assert_true(dt_plugin_memory_untouched_bytes() >= LARGE - 2 * HUGE_PAGE);
    dt_plugin_release(other);
    assert_int_equal(dt_plugin_memory_untouched_bytes(), 0);
    dt_plugin_release(small);
    dt_plugin_release(large);
    dt_plugin_release(NULL);
    assert_int_equal(dt_plugin_memory_bytes(), 0);
}

static void test_out_of_memory(void **state)
{
    for (int n = 1; n <= 2; n++) { /* the entry, then the block */
        dt_fault_reset(n == 1 ? "alloc:1" : "alloc:2");
        assert_null(dt_plugin_alloc(LARGE));
        assert_int_equal(dt_plugin_memory_bytes(), 0);
        assert_int_equal(dt_plugin_memory_untouched_bytes(), 0);
    }
    dt_fault_reset(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

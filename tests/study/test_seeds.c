/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of seeds, and how many trainings a plan lets run at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "study/plan.h"
#include "study/seed_list.h"
#include "study/trainings.h"

static void test_lists(void **state)
{
    uint64_t seed[DT_SEEDS_MAX];
    uint32_t n = 0;
    assert_int_equal(dt_seed_list_parse("1..10", seed, &n), DT_OK);
    assert_int_equal(n, 10);
    assert_true(seed[0] == 1 && seed[9] == 10);
    assert_int_equal(dt_seed_list_parse("7,0,2..3", seed, &n), DT_OK);
    assert_int_equal(n, 4);
    assert_true(seed[0] == 7 && seed[1] == 0 && seed[2] == 2 && seed[3] == 3);
    static const char *const bad[] = {
        "",   "a",     "1..", "..3",     "3..1", "1,,2", "1,1",     "2,1..3",
        "-1", "1...3", "1.5", "0..1000", "1,2,", " 1",   "1..2..3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        n = 77;
        assert_int_equal(dt_seed_list_parse(bad[i], seed, &n), DT_ECONFIG);
        assert_int_equal(n, 77);
        dt_error_clear();
    }
    assert_int_equal(dt_seed_list_parse("0..999", seed, &n), DT_OK);
    assert_int_equal(n, DT_SEEDS_MAX);
}

static void test_parallel(void **state)
{
    const dt_study_plan small = {.memory = 100}, large = {.memory = 1000}, gpu = {.memory = 100, .device = 1};
    assert_int_equal(dt_study_count_parallel(&small, 10, 4, 1 << 20), 4);
    assert_int_equal(dt_study_count_parallel(&small, 3, 4, 1 << 20), 3);
    assert_int_equal(dt_study_count_parallel(&large, 10, 4, 3000), 2); /* 2,700 of 3,000 may be used */
    assert_int_equal(dt_study_count_parallel(&large, 10, 4, 10), 1);
    assert_int_equal(dt_study_count_parallel(&large, 10, 4, 0), 4);
    assert_int_equal(dt_study_count_parallel(&gpu, 10, 4, 1 << 20), 1);
    assert_int_equal(dt_study_count_parallel(&small, 5000, 5000, 0), DT_TRAININGS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

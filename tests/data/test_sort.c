/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/data/sort.c: the order, in memory and through runs on disk, and what happens when the disk refuses.
 */
#include "fixture.h"

#include "base/rng.h"
#include "data/sort.h"

/* n rows of 3 scenes, 40 frames, 25 vehicles, in any order; a row's line is its number. */
static void sort_by(uint32_t jobs, int64_t n, size_t memory_rows, int64_t want_runs)
{
    dt_sort *s = NULL;
    dt_rng_key key = {.seed = 9};
    assert_ok(dt_sort_create(at("s"), memory_rows * sizeof(dt_table_row), jobs, &s));
    for (int64_t i = 0; i < n; i++) {
        double u = dt_rng_uniform(&key, (uint64_t)i);
        dt_table_row r = {.line = i,
                          .scene = (int32_t)(3 * u),
                          .frame = (int64_t)(4000 * u) % 40 - 20,
                          .x = (double)i,
                          .id = (int64_t)(1e6 * u) % 25 - 12};
        assert_ok(dt_sort_add(s, &r));
    }
    uint8_t *seen = dt_alloc_n((size_t)n + 1, 1);
    const dt_table_row *r = NULL;
    dt_table_row before = {.scene = -1};
    dt_status st;
    int64_t count = 0;
    while ((st = dt_sort_next(s, &r)) == DT_OK) {
        bool is_after = r->scene != before.scene   ? r->scene > before.scene
                        : r->frame != before.frame ? r->frame > before.frame
                        : r->id != before.id       ? r->id > before.id
                                                   : r->line > before.line;
        assert_true(is_after);
        assert_true(r->x == (double)r->line);
        assert_int_equal(seen[r->line]++, 0);
        before = *r;
        count++;
    }
    assert_int_equal(st, DT_DONE);
    assert_int_equal(count, n);
    assert_int_equal(dt_sort_next(s, &r), DT_DONE); /* and stays at the end */
    assert_int_equal(dt_sort_runs(s), want_runs);
    dt_free(seen);
    dt_sort_destroy(s);
}

static void sort_all(int64_t n, size_t memory_rows, int64_t want_runs)
{
    sort_by(1, n, memory_rows, want_runs);
    sort_by(2, n, memory_rows, want_runs);
}

static void test_orders(void **state)
{
    (void)state;
    sort_all(0, 8, 0);
    sort_all(1, 8, 0);
    sort_all(8, 8, 0);
    sort_all(9, 8, 2);
    sort_all(1000, 64, 16);
    sort_all(1000, 7, 143); /* more runs than the buffer has rows */
    sort_all(50, 1, 50);
    sort_all(5000, 100000, 0);
    sort_all(20001, 100000, 0); /* enough for two threads */
    sort_all(20001, 10000, 3);
    char **name = NULL;
    size_t n = 0;
    assert_ok(dt_fs_list(top, &name, &n)); /* the temporary file has no name */
    assert_int_equal(n, 0);
    dt_fs_list_free(name, n);
}

static void test_refusals(void **state)
{
    (void)state;
    dt_sort *s = NULL;
    dt_table_row r = {0};
    dt_fault_reset("alloc:2");
    assert_fails(dt_sort_create(at("s"), 1 << 20, 1, &s), DT_ENOMEM, "sort buffer of 1048576 bytes");
    dt_fault_reset(NULL);
    assert_ok(dt_sort_create(at("no/such/folder/s"), 1, 1, &s));
    assert_ok(dt_sort_add(s, &r));
    assert_fails(dt_sort_add(s, &r), DT_EIO, "temporary file");
    dt_sort_destroy(s);
    assert_ok(dt_sort_create(at("s"), 1, 1, &s));
    assert_ok(dt_sort_add(s, &r));
    dt_fault_reset("fs.write:1");
    assert_fails(dt_sort_add(s, &r), DT_EIO, "temporary file");
    dt_fault_reset(NULL);
    dt_sort_destroy(s);
    dt_sort_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_orders, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

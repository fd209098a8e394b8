/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/sort.c: the order, in memory and through runs on disk, and what happens when the disk
 * refuses.
 */
#include "fixture.h"

#include "base/rng.h"
#include "traffic/import/sort.h"

/* Rows of 3 scenes, 40 frames, 25 vehicles, in any order; and with lines that fall, with numbers that no word has room
 * for, and in order. */
enum { ANY, FALLING, WIDE, ORDERED };

static dt_table_row row_of(int kind, int64_t n, int64_t i)
{
    const dt_rng_key key = {.seed = 9};
    const double u = dt_rng_uniform(&key, (uint64_t)i);
    dt_table_row r = {.line = kind == FALLING ? n - 1 - i : i,
                      .scene = (int32_t)(3 * u),
                      .frame = (int64_t)(4000 * u) % 40 - 20,
                      .id = (int64_t)(1e6 * u) % 25 - 12};
    if (kind == WIDE) {
        r.frame *= INT64_C(400000000000000);
        r.id *= INT64_C(700000000000000);
    } else if (kind == ORDERED) {
        r.scene = 0;
        r.frame = i / 20;
        r.id = i % 20;
    }
    r.x = (double)r.line;
    return r;
}

/* A row's line is its number, from either end. */
static void sort_kind(int kind, uint32_t jobs, int64_t n, size_t memory_rows, int64_t want_runs)
{
    dt_sort *s = NULL;
    assert_ok(dt_sort_create(at("s"), memory_rows * sizeof(dt_table_row), jobs, &s));
    for (int64_t i = 0; i < n; i++) {
        dt_table_row r = row_of(kind, n, i);
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
    for (int kind = ANY; kind <= ORDERED; kind++) {
        sort_kind(kind, 1, n, memory_rows, want_runs);
        sort_kind(kind, 2, n, memory_rows, want_runs);
    }
}

static void test_orders(void **state)
{
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

/* Without memory for keys rows are sorted all the same. */
static void test_no_memory_for_keys(void **state)
{
    for (int k = 1; k <= 3; k++) {
        char fault[16];
        dt_sort *s = NULL;
        const dt_table_row *r = NULL;
        dt_table_row two[2] = {{.frame = 5}, {.frame = 4}};
        assert_ok(dt_sort_create(at("s"), 2 * sizeof(*two), 1, &s));
        assert_ok(dt_sort_add(s, &two[0]));
        assert_ok(dt_sort_add(s, &two[1]));
        snprintf(fault, sizeof(fault), "alloc:%d", k);
        dt_fault_reset(fault);
        assert_ok(dt_sort_next(s, &r));
        dt_fault_reset(NULL);
        assert_int_equal(r->frame, 4);
        assert_ok(dt_sort_next(s, &r));
        assert_int_equal(r->frame, 5);
        dt_sort_destroy(s);
    }
}

static void test_refusals(void **state)
{
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
        cmocka_unit_test_setup_teardown(test_no_memory_for_keys, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

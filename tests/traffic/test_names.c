/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of names.c, tracker.c and repeats.c of plugins/traffic.
 */
#include "fixture.h"

#include "traffic/text/names.h"
#include "traffic/store/tracker.h"
#include "traffic/store/repeats.h"

#include <time.h>

static void test_numbers(void **state)
{
    const uint64_t live = dt_alloc_live_bytes();
    dt_names t = {0};
    char name[16];
    int32_t number = -1;
    bool is_new = false;
    assert_int_equal(dt_names_find(&t, "0"), -1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) { /* grows four times */
            snprintf(name, sizeof(name), "%d", i);
            assert_ok(dt_names_add(&t, name, &number, &is_new));
            assert_int_equal(number, i);
            assert_int_equal(is_new, round == 0);
        }
    }
    assert_int_equal(t.n, 1000);
    assert_string_equal(t.name[999], "999");
    assert_int_equal(dt_names_find(&t, "17"), 17);
    assert_int_equal(dt_names_find(&t, "1000"), -1);
    dt_names_fini(&t);
    assert_int_equal(dt_alloc_live_bytes(), live);
}

static void test_no_memory(void **state)
{
    int32_t number = 0;
    bool is_new = false;
    for (int n = 1; n <= 3; n++) { /* the list, the buckets, the name */
        char fault[32];
        dt_names t = {0};
        snprintf(fault, sizeof(fault), "alloc:%d", n);
        dt_fault_reset(fault);
        assert_fails(dt_names_add(&t, "a", &number, &is_new), DT_ENOMEM, "no memory");
        dt_fault_reset(NULL);
        assert_ok(dt_names_add(&t, "a", &number, &is_new));
        dt_names_fini(&t);
    }
}

/* Scenes are the same one where frames, poses, speeds and cores are; each of them distinguishes two. */
static void test_repeats(void **state)
{
    static const double pose[5][3] = {{1, 2, 3}, {1.5, 2, 3}, {1, 2.5, 3}, {1, 2, 3.5}, {1, 2, 3}};
    const uint64_t base = dt_repeats_hash(0, 7, pose[0], 4);
    assert_true(dt_repeats_hash(0, 7, pose[4], 4) == base);
    for (int k = 1; k < 4; k++) {
        assert_true(dt_repeats_hash(0, 7, pose[k], 4) != base);
    }
    assert_true(dt_repeats_hash(0, 8, pose[0], 4) != base && dt_repeats_hash(0, 7, pose[0], 4.5f) != base);
    assert_true(dt_repeats_hash(1, 7, pose[0], 4) != base);
    assert_true(dt_repeats_hash_core(base, 0) != dt_repeats_hash_core(base, 1));
}

/* Numbers of vehicles that fall into one bucket of a multiplicative hash: quadratic time would be over a minute. */
static void test_vehicles_flood(void **state)
{
    enum { N = 200000 };
    dt_tracker live;
    dt_tracked_vehicle *v = NULL;
    bool is_new = false;
    const clock_t from = clock();
    dt_tracker_init(&live, 10);
    for (int64_t i = 0; i < N; i++) {
        assert_ok(dt_tracker_get(&live, i << 44, 0, &v, &is_new));
        assert_true(is_new && v->id == i << 44);
    }
    assert_int_equal(live.n, N);
    assert_ok(dt_tracker_get(&live, INT64_C(77) << 44, 0, &v, &is_new));
    assert_false(is_new);
    dt_tracker_fini(&live);
    assert_true((double)(clock() - from) / CLOCKS_PER_SEC < 2);
}

/* A vehicle that is out of sight for a second and a frame is another one. */
static void test_out_of_sight(void **state)
{
    static const struct {
        int64_t frame;
        bool is_new;
    } seen[] = {{0, true}, {10, false}, {21, true}, {22, false}};
    dt_tracker t;
    dt_tracked_vehicle *v = NULL;
    bool is_new = false;
    dt_tracker_init(&t, 10);
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        assert_ok(dt_tracker_get(&t, 7, seen[i].frame, &v, &is_new));
        assert_int_equal(is_new, seen[i].is_new);
        v->frame = seen[i].frame;
    }
    dt_tracker_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_repeats, begin, end),
        cmocka_unit_test_setup_teardown(test_vehicles_flood, begin, end),
        cmocka_unit_test_setup_teardown(test_out_of_sight, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

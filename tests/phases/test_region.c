/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of mixtures: exact for one Gaussian, and to about 0.02 where the answer is known for several.
 */
#include "scenes/region.h"

#include "unit.h"

static void test_one_is_an_ellipse(void **test)
{
    const region_gaussian g = {.p = 1, .x = 3, .y = -1, .sigma_x = 2, .sigma_y = 0.5};
    assert_float_equal(region_level(&g, 1, 3, -1), 0, 1e-12);
    assert_float_equal(region_level(&g, 1, 3 + 2 * sqrt(-2 * log(0.5)), -1), 0.5, 1e-12);
    assert_float_equal(region_level(&g, 1, 3, -1 - 0.5 * sqrt(-2 * log(0.05))), 0.95, 1e-12);
}

static void test_several_that_are_one(void **test)
{
    region_gaussian g[3];
    for (int j = 0; j < 3; j++) {
        g[j] = (region_gaussian){.p = j == 2 ? 0.5 : 0.25, .x = 3, .y = -1, .sigma_x = 2, .sigma_y = 0.5};
    }
    for (double d = 0.1; d < 4; d += 0.1) {
        const double x = 3 + 2 * d * 0.6, y = -1 + 0.5 * d * 0.8;
        assert_float_equal(region_level(g, 3, x, y), region_level(g, 1, x, y), 0.03);
    }
    assert_true(region_level(g, 3, 30, 30) >= 1 - 1e-9);
}

/* Far from each other: half of each lies in the region of one half; the narrow one comes before the broad one. */
static void test_apart(void **test)
{
    const double r = sqrt(-2 * log(0.5));
    const region_gaussian same[2] = {{0.5, 0, 0, 1, 1}, {0.5, 100, 0, 1, 1}};
    assert_float_equal(region_level(same, 2, r, 0), 0.5, 0.03);
    assert_float_equal(region_level(same, 2, 100, r), 0.5, 0.03);
    assert_true(region_level(same, 2, 50, 0) >= 1 - 1e-9);
    const region_gaussian other[2] = {{0.8, 0, 0, 1, 1}, {0.2, 500, 0, 30, 30}};
    assert_float_equal(region_level(other, 2, 500, 0), 0.8, 0.03); /* after nearly all of the narrow one */
    assert_float_equal(region_level(other, 2, r, 0), 0.4, 0.03);
    const region_gaussian never[2] = {{1, 0, 0, 1, 1}, {0, 5, 0, 1, 1}};
    assert_float_equal(region_level(never, 2, r, 0), 0.5, 0.03); /* as if the second were not there */
}

/* Far from both as well, where each is 0 in doubles. */
static void test_log_density(void **test)
{
    const region_gaussian g[2] = {{0.25, 0, 0, 2, 0.5}, {0.75, 0, 0, 2, 0.5}};
    const double at_mean = -log(2 * 3.14159265358979 * 2 * 0.5);
    assert_float_equal(region_log_density(g, 2, 0, 0), at_mean, 1e-12);
    assert_float_equal(region_log_density(g, 2, 2 * 3, 0.5 * 4), at_mean - 12.5, 1e-9);
    assert_float_equal(region_log_density(g, 2, 200, 0), at_mean - 5000, 1e-6);
    const region_gaussian never[2] = {{0, 0, 0, 1, 1}, {1, 9, 0, 2, 0.5}};
    assert_float_equal(region_log_density(never, 2, 9, 0), at_mean, 1e-12);
    assert_true(region_log_density(never, 1, 9, 0) == -INFINITY); /* of what is impossible */
}

/* Distances are those of the level's Gaussian; of one they go on where levels are 1 within rounding. */
static void test_distances(void **test)
{
    const region_gaussian one = {.p = 1, .x = 3, .y = -1, .sigma_x = 2, .sigma_y = 0.5};
    assert_float_equal(region_distance(&one, 1, 3 + 2 * 3, -1 + 0.5 * 4), 5, 1e-12);
    assert_float_equal(region_distance(&one, 1, 3 + 2 * 300, -1), 300, 1e-9);
    const region_gaussian two[3] = {{0.5, 0, 0, 1, 1}, {0.5, 100, 0, 2, 2}, {0, 40, 0, 1, 1}};
    const double level = region_level(two, 3, 1, 0);
    assert_float_equal(region_distance(two, 3, 1, 0), sqrt(-2 * log(1 - level)), 1e-9);
    assert_float_equal(region_distance(two, 3, 40, 0), 30, 1e-9); /* of the second: the third is impossible */
    double before = 0;
    for (double x = 0; x > -20; x -= 0.25) { /* further out is never nearer */
        const double d = region_distance(two, 3, x, 0);
        assert_true(d >= before);
        before = d;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_an_ellipse),
        cmocka_unit_test(test_several_that_are_one),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_log_density),
        cmocka_unit_test(test_distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

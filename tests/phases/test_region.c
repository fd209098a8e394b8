/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of mixtures: exact for one Gaussian, and to about 0.02 where the answer is known for several.
 */
#include "region.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_one_is_an_ellipse(void **test)
{
    (void)test;
    const region_gaussian g = {.p = 1, .x = 3, .y = -1, .sigma_x = 2, .sigma_y = 0.5};
    assert_float_equal(region_level(&g, 1, 3, -1), 0, 1e-12);
    assert_float_equal(region_level(&g, 1, 3 + 2 * sqrt(-2 * log(0.5)), -1), 0.5, 1e-12);
    assert_float_equal(region_level(&g, 1, 3, -1 - 0.5 * sqrt(-2 * log(0.05))), 0.95, 1e-12);
}

static void test_several_that_are_one(void **test)
{
    (void)test;
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
    (void)test;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_an_ellipse),
        cmocka_unit_test(test_several_that_are_one),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Radii of regions: vehicles of known distributions that were not fitted lie inside as often as levels say, which no
 * Gaussian's radii reach; classes, ranks of few vehicles, and what is not finite or absent.
 */
#include "scenes/radii.h"

#include "unit.h"

enum { FITTED = 4000, EVALUATED = 20000 };

static double uniform(uint64_t *state) /* in (0, 1): Knuth's linear congruences, upper bits */
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return ((double)(*state >> 33) + 0.5) / 2147483648.0;
}

/* Distances in the plane: of Student's t with 3 degrees of freedom, of a Laplace distribution on both axes, and of
 * vehicles that stand, half of them exactly. */
static double distance_of(uint32_t kind, uint64_t *state)
{
    const double u = uniform(state), v = uniform(state);
    if (kind == 0) {
        return u < 0.5 ? 0 : 5 * v;
    }
    if (kind == 1) {
        return sqrt(3 * (pow(u, -2.0 / 3.0) - 1));
    }
    return hypot(log(u), log(v));
}

static void test_levels_are_held(void **test)
{
    static radii_counts c;
    float table[RADII_SIZE];
    uint64_t state = 7, inside[RADII_CLASSES][RADII_LEVELS] = {{0}};
    uint32_t gaussian_at_95 = 0;
    memset(&c, 0, sizeof(c));
    for (uint32_t i = 0; i < FITTED; i++) {
        for (uint32_t k = 0; k < RADII_CLASSES; k++) {
            radii_add(&c, k, 0, distance_of(k, &state));
        }
    }
    radii_fit(&c, 1, table);
    for (uint32_t i = 0; i < EVALUATED; i++) {
        for (uint32_t k = 0; k < RADII_CLASSES; k++) {
            const double d = distance_of(k, &state);
            for (uint32_t l = 0; l < RADII_LEVELS; l++) {
                inside[k][l] += d <= radii_get(table, k, 0, l);
            }
            gaussian_at_95 += k == 1 && d <= sqrt(-2 * log(0.05));
        }
    }
    assert_true(gaussian_at_95 < 0.85 * EVALUATED); /* by 10 points too few: deviations alone do not do it */
    for (uint32_t k = 0; k < RADII_CLASSES; k++) {
        for (uint32_t l = 0; l < RADII_LEVELS; l++) {
            const double p = radii_level[l], share = (double)inside[k][l] / EVALUATED;
            /* binomial, of those fitted and those evaluated, and what a bin's width adds */
            const double wide = 4 * sqrt(p * (1 - p) * (1.0 / FITTED + 1.0 / EVALUATED)) + 0.01;
            const int is_point = k == 0 && p < 0.5; /* half of them are in the middle: no region has fewer */
            assert_true(share >= p - wide && (is_point ? fabs(share - 0.5) < 0.02 : share <= p + wide));
        }
    }
    for (uint32_t l = 0; l < RADII_LEVELS; l++) { /* later seconds have none: a Gaussian's */
        assert_float_equal(radii_get(table, 1, 1, l), sqrt(-2 * log(1 - radii_level[l])), 1e-9);
    }
}

static void test_classes(void **test)
{
    assert_int_equal(radii_class(0, 0), 0);
    assert_int_equal(radii_class(0.5, -4), 0);
    assert_int_equal(radii_class(0.51, 0.99), 1);
    assert_int_equal(radii_class(20, -0.99), 1);
    assert_int_equal(radii_class(20, 1), 2);
    assert_int_equal(radii_class(3, -1), 2);
}

/* n distances of 1 .. n, of one class: the radius of a level is that of rank ceil((n + 1) level). */
static void test_few_vehicles(void **test)
{
    static radii_counts c;
    float table[RADII_SIZE];
    memset(&c, 0, sizeof(c));
    for (int d = 1; d <= 9; d++) {
        radii_add(&c, 1, 0, d);
    }
    radii_fit(&c, 1, table);
    const double up = 1.014; /* a bin's width */
    for (uint32_t l = 0; l < 9; l++) {
        const double r = radii_get(table, 1, 0, l);
        assert_true(r >= l + 1 - 1e-6 && r <= (l + 1) * up); /* ranks 1 .. 9 */
    }
    const double most = radii_get(table, 1, 0, 9); /* 95 % of 10 is 9.5: nobody knows, so the largest */
    assert_true(most >= 9 - 1e-6 && most <= 9 * up);
    for (uint32_t l = 0; l < RADII_LEVELS; l++) { /* a class of none has that of all */
        assert_float_equal(radii_get(table, 2, 0, l), radii_get(table, 1, 0, l), 1e-5);
    }

    memset(&c, 0, sizeof(c)); /* two near ones among many far ones: theirs where two suffice, then that of all */
    radii_add(&c, 0, 0, 0.1);
    radii_add(&c, 0, 0, 0.1);
    for (int i = 0; i < 97; i++) {
        radii_add(&c, 1, 0, 2);
    }
    radii_fit(&c, 1, table);
    assert_float_equal(radii_get(table, 0, 0, 4), 0.1, 0.002);
    assert_float_equal(radii_get(table, 0, 0, 6), 2, 0.03); /* rank 3 of 2 */

    memset(&c, 0, sizeof(c)); /* one alone is not believed to be small */
    radii_add(&c, 0, 0, 0.1);
    radii_fit(&c, 1, table);
    assert_float_equal(radii_get(table, 0, 0, 9), sqrt(-2 * log(0.05)), 1e-5);
    radii_add(&c, 0, 0, 1e9); /* beyond the last bin */
    radii_fit(&c, 1, table);
    assert_float_equal(radii_get(table, 0, 0, 9), 1000, 0.1);
}

/* [(class * 5 + second) * 10 + level], as a world model keeps it. */
static void test_places_in_the_table(void **test)
{
    static radii_counts c;
    float table[RADII_SIZE];
    for (int i = 0; i < RADII_SIZE; i++) {
        table[i] = 0.01F * (float)i;
    }
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < 5; i++) {
            for (uint32_t l = 0; l < 10; l++) {
                const double gaussian = sqrt(-2 * log(1 - radii_level[l]));
                const double want = gaussian * exp(0.01 * ((k * 5 + i) * 10 + l));
                assert_float_equal(radii_get(table, k, i, l), want, 1e-5 * want);
            }
        }
    }
    memset(&c, 0, sizeof(c));
    for (int n = 0; n < 1000; n++) {
        radii_add(&c, 1, 3, 7);
    }
    radii_fit(&c, 5, table);
    assert_float_equal(sqrt(-2 * log(0.5)) * exp((double)table[(1 * 5 + 3) * 10 + 4]), 7, 0.1);
}

static void test_regions_hold_those_of_lower_levels(void **test)
{
    static radii_counts c;
    float table[RADII_SIZE];
    memset(&c, 0, sizeof(c));
    for (int i = 0; i < 3;
         i++) { /* far ones of their own class, near ones of all: levels that fall back do not shrink */
        radii_add(&c, 2, 4, 50);
    }
    for (int i = 0; i < 500; i++) {
        radii_add(&c, 1, 4, 0.01);
    }
    radii_fit(&c, 5, table);
    for (uint32_t k = 0; k < RADII_CLASSES; k++) {
        for (uint32_t l = 1; l < RADII_LEVELS; l++) {
            assert_true(radii_get(table, k, 4, l) >= radii_get(table, k, 4, l - 1) * (1 - 1e-6));
        }
    }
    assert_float_equal(radii_get(table, 2, 4, 9), 50, 0.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_held),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_few_vehicles),
        cmocka_unit_test(test_places_in_the_table),
        cmocka_unit_test(test_regions_hold_those_of_lower_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

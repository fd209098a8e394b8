/* SPDX-License-Identifier: Apache-2.0
 *
 * Advantages against numbers computed elsewhere (double precision, by hand and in another language), in the layout that
 * rollouts have: the row after the step that ended an agent holds its last observation, and no agent acts there.
 */
#include <config.h>

#include "rl/buffer/gae.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 8 };

/* gamma 0.99, lambda 0.95, r = (1, 0, 2, -1, .5, 1), V = (.5, .4, .3, .2, .1, .6), terminated at its third step,
 * truncated at the fifth with V(last observation) = .8; after the sixth V = .7 */
static const float reward[STEPS] = {1, 0, 2, 9, -1, 0.5f, 9, 1};
static const float value[STEPS + 1] = {0.5f, 0.4f, 0.3f, 123, 0.2f, 0.1f, 0.8f, 0.6f, 0.7f};
static const uint8_t flag[STEPS] = {1, 1, 1 | DT_STEP_TERMINATED, 0, 1, 1 | DT_STEP_TRUNCATED, 0, 1};
static const double expected[STEPS] = {2.30284692, 1.49585, 1.7, 0, 0.020076, 1.192, 0, 1.093};

static void run(const uint8_t *flags, float *out)
{
    double carry[1];
    const dt_gae g = {
        .reward = reward, .value = value, .flag = flags, .gamma = 0.99, .lambda = 0.95, .steps = STEPS, .places = 1};
    dt_gae_estimate(&g, carry, out);
}

static void test_advantages(void **state)
{
    float a[STEPS];
    run(flag, a);
    for (int t = 0; t < STEPS; t++) {
        assert_true(fabs((double)a[t] - expected[t]) < 1e-6);
    }
}

/* The mistake that costs most: with the same numbers it is seen. */
static void test_truncation_is_not_termination(void **state)
{
    float a[STEPS];
    uint8_t wrong[STEPS];
    memcpy(wrong, flag, sizeof(wrong));
    wrong[5] = 1 | DT_STEP_TERMINATED;
    run(wrong, a);
    assert_true(fabs((double)a[4] - -0.7248) < 1e-6);
    assert_true(fabs((double)a[5] - 0.4) < 1e-6);
    assert_true(fabs((double)a[2] - 1.7) < 1e-6);
}

/* The sum does not continue into an agent that takes the place in the very next step. */
static void test_ends_cut_the_sum(void **state)
{
    static const uint8_t end[] = {DT_STEP_TERMINATED, DT_STEP_TRUNCATED, DT_STEP_TERMINATED | DT_STEP_TRUNCATED, 0};
    static const float r[] = {1, 100}, v[] = {0.5f, 0.25f, 0.75f};
    for (int k = 0; k < 4; k++) {
        const uint8_t f[] = {DT_STEP_ACTED | end[k], DT_STEP_ACTED};
        const double next = (end[k] & DT_STEP_TERMINATED) != 0 ? 0 : 0.9 * 0.25;
        const double later = 100 + 0.9 * 0.75 - 0.25;
        float a[2];
        double carry[1];
        const dt_gae g = {.reward = r, .value = v, .flag = f, .gamma = 0.9, .lambda = 0.8, .steps = 2, .places = 1};
        dt_gae_estimate(&g, carry, a);
        assert_true(fabs((double)a[1] - later) < 1e-5);
        assert_true(fabs((double)a[0] - (1 + next - 0.5 + (end[k] == 0 ? 0.9 * 0.8 * later : 0))) < 1e-5);
    }
}

/* Places next to each other are estimated as if each were alone. */
static void test_places_are_apart(void **state)
{
    enum { PLACES = 5 };
    float r[STEPS * PLACES], v[(STEPS + 1) * PLACES], a[STEPS * PLACES], alone[STEPS];
    uint8_t f[STEPS * PLACES];
    double carry[PLACES];
    run(flag, alone);
    for (int p = 0; p < PLACES; p++) {
        for (int t = 0; t <= STEPS; t++) {
            v[t * PLACES + p] = value[t] + (p == 2 ? 0 : (float)p * 1000);
            if (t < STEPS) {
                r[t * PLACES + p] = reward[t] * (p == 2 ? 1 : (float)p);
                f[t * PLACES + p] = p == 2 ? flag[t] : (uint8_t)(t % 2);
            }
        }
    }
    const dt_gae g = {
        .reward = r, .value = v, .flag = f, .gamma = 0.99, .lambda = 0.95, .steps = STEPS, .places = PLACES};
    dt_gae_estimate(&g, carry, a);
    for (int t = 0; t < STEPS; t++) {
        assert_memory_equal(&a[t * PLACES + 2], &alone[t], sizeof(float));
    }
}

static void test_normalise(void **state)
{
    const uint8_t f[] = {1, 0, 1, 1, 0, 1};
    float a[] = {3, 1000, 5, 7, -50, 9};
    const float raw[] = {3, 1000, 5, 7, -50, 9};
    const double scale = dt_gae_normalise(f, 6, 0, a);
    double sum = 0, squares = 0;
    for (int i = 0; i < 6; i++) {
        sum += f[i] ? (double)a[i] : 0;
        squares += f[i] ? (double)a[i] * (double)a[i] : 0;
    }
    assert_true(fabs(sum) < 1e-6);
    assert_true(fabs(squares / 3 - 1) < 1e-6);
    assert_true(a[1] == 0 && a[4] == 0);
    assert_true(fabs(scale * ((double)raw[0] - 6) - (double)a[0]) < 1e-6);
    float one[] = {4};
    dt_gae_normalise(f, 1, 0, one);
    assert_true(one[0] == 0);
    float given[] = {3, 1000, 5, 7, -50, 9}; /* mean 6 */
    assert_true(dt_gae_normalise(f, 6, 0.5, given) == 0.5);
    assert_true(given[0] == -1.5F && given[1] == 0 && given[5] == 1.5F);
}

static void test_centre(void **state)
{
    const uint8_t f[] = {1, 0, 1, 1, 0, 1};
    float a[] = {3, 1000, 5, 7, -50, 9};
    const float want[] = {-3, 0, -1, 1, 0, 3};
    double mean = 0;
    assert_true(fabs(dt_gae_compute_deviation(f, 6, a, &mean) - sqrt(20.0 / 3)) < 1e-12);
    assert_true(mean == 6);
    assert_true(dt_gae_compute_deviation(f, 1, a, &mean) == 0 && mean == 3);
    assert_true(dt_gae_compute_deviation(f + 1, 1, a, &mean) == 0 && mean == 0); /* nobody acted */
    dt_gae_centre(f, 6, a);
    assert_memory_equal(a, want, sizeof(a));
}

static void test_explained_variance(void **state)
{
    const uint8_t f[] = {1, 1, 0, 1, 1};
    const float target[] = {1, 2, 99, 3, 4}, exact[] = {0, 1, -7, 2, 3}, flat[] = {5, 5, 1, 5, 5};
    assert_true(fabs(dt_gae_explained_variance(f, 5, target, exact) - 1) < 1e-12); /* off by a constant */
    assert_true(fabs(dt_gae_explained_variance(f, 5, target, flat)) < 1e-12);
    assert_true(isnan(dt_gae_explained_variance(f, 5, flat, target)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advantages),         cmocka_unit_test(test_truncation_is_not_termination),
        cmocka_unit_test(test_ends_cut_the_sum),   cmocka_unit_test(test_places_are_apart),
        cmocka_unit_test(test_normalise),          cmocka_unit_test(test_centre),
        cmocka_unit_test(test_explained_variance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

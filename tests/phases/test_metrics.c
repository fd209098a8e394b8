/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of one window of several futures (phases/scenes/metrics.c): which numbers of the window each future has.
 */
#include "scenes/metrics.h"

#include "unit.h"

enum { F = 4, K = 3 };

static float futures[K][F][2], spreads[K][F][2], probability[K] = {0.5F, 0.3F, 0.2F}, future[F][2], spread[F][2];
static float target[F][2];

static void fill(void)
{
    for (int f = 0; f < F; f++) {
        for (int d = 0; d < 2; d++) {
            future[f][d] = (float)(100 + 10 * f + d);
            spread[f][d] = 0.3F + 0.01F * (float)(f + d);
            target[f][d] = 1.25F * (float)(f + d);
            for (int j = 0; j < K; j++) {
                futures[j][f][d] = (float)(100 * j + 10 * f + d);
                spreads[j][f][d] = 0.1F * (float)j + 0.01F * (float)f - 0.2F * (float)d;
            }
        }
    }
}

static void test_futures_have_their_own_numbers(void **unused)
{
    region_gaussian g[METRICS_MAX_FUTURES];
    metrics_horizons s;
    fill();
    metrics_horizons_init(&s, F, 2);
    assert_int_equal(s.n_horizons, 2); /* 1 and 2 s of 2 Hz */
    assert_true(s.step[0] == 1 && s.step[1] == 3 && s.seconds[0] == 1 && s.seconds[1] == 2);
    metrics_window w = {.target = &target[0][0],
                        .future = &future[0][0],
                        .spread = &spread[0][0],
                        .futures = &futures[0][0][0],
                        .spreads = &spreads[0][0][0],
                        .probability = probability,
                        .K = K};
    for (int f = 0; f < F; f++) {
        assert_int_equal(metrics_mixture_at(&s, &w, f, g), K);
        for (int j = 0; j < K; j++) {
            assert_true(g[j].p == (double)probability[j]);
            assert_true(g[j].x == 100 * j + 10 * f && g[j].y == 100 * j + 10 * f + 1);
            assert_true(fabs(g[j].sigma_x - exp((double)spreads[j][f][0])) < 1e-12);
            assert_true(fabs(g[j].sigma_y - exp((double)spreads[j][f][1])) < 1e-12);
        }
    }
    w.futures = w.spreads = NULL;
    assert_int_equal(metrics_mixture_at(&s, &w, 2, g), 1);
    assert_true(g[0].p == 1 && g[0].x == 120 && g[0].y == 121);
    assert_true(fabs(g[0].sigma_x - exp((double)spread[2][0])) < 1e-12);
    assert_true(fabs(g[0].sigma_y - exp((double)spread[2][1])) < 1e-12);
}

/* One future of which the most probable is 3 m off at the end alone, the least probable exact; six are all of them. */
static void test_sums_of_a_window(void **unused)
{
    metrics_horizons s;
    static metrics_sums sum;
    fill();
    memset(&sum, 0, sizeof(sum));
    metrics_horizons_init(&s, F, 2);
    for (int f = 0; f < F; f++) {
        future[f][0] = target[f][0] + 0.5F * (float)f;
        future[f][1] = target[f][1];
        for (int j = 0; j < K; j++) {
            futures[j][f][0] = target[f][0] + (j == 0 && f == F - 1 ? 3.0F : j == 1 ? 8.0F : 0.0F);
            futures[j][f][1] = target[f][1];
        }
    }
    metrics_window w = {.target = &target[0][0],
                        .future = &future[0][0],
                        .spread = &spread[0][0],
                        .futures = &futures[0][0][0],
                        .spreads = &spreads[0][0][0],
                        .probability = probability,
                        .K = K,
                        .speed = 2};
    metrics_add(&sum, &s, &w);
    assert_int_equal(sum.n_windows, 1);
    double nll = 0, cv = 0;
    for (int f = 0; f < F; f++) {
        for (int d = 0; d < 2; d++) {
            const double z = ((double)target[f][d] - (double)future[f][d]) / exp((double)spread[f][d]);
            nll += (0.5 * z * z + (double)spread[f][d] + 0.5 * log(2 * M_PI)) / F;
        }
        cv += hypot(2 * 0.5 * (f + 1) - (double)target[f][0], (double)target[f][1]) / F;
    }
    assert_true(fabs(sum.nll - nll) < 1e-9 && fabs(sum.cv_ade - cv) < 1e-9);
    for (int i = 0; i < 2; i++) { /* after 1 and 2 s */
        const double off = 0.5 * (i == 0 ? 1 : 3);
        assert_true(fabs(sum.square[i] - off * off) < 1e-9 && fabs(sum.distance[i] - off) < 1e-9);
        const int f = i == 0 ? 1 : 3;
        const double still = hypot(2 * (i + 1) - (double)target[f][0], (double)target[f][1]);
        assert_true(fabs(sum.cv_square[i] - still * still) < 1e-9 && fabs(sum.cv_distance[i] - still) < 1e-9);
    }
    assert_true(fabs(sum.ade[0] - 3.0 / F) < 1e-9 && fabs(sum.fde[0] - 3) < 1e-9 && sum.missed[0] == 1);
    assert_true(sum.ade[1] == 0 && sum.fde[1] == 0 && sum.missed[1] == 0);
    const uint64_t missed = sum.cv_missed;
    for (int k = 0; k < 2; k++) { /* only the last step counts for a miss: here all others are far off, or none is */
        for (int f = 0; f < F; f++) {
            target[f][0] = (float)(f + 1) + ((f == F - 1) == (k == 0) ? 0.0F : 4.0F);
            target[f][1] = 0;
        }
        metrics_add(&sum, &s, &w);
        assert_int_equal(sum.cv_missed, missed + (uint64_t)k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_futures_have_their_own_numbers),
        cmocka_unit_test(test_sums_of_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

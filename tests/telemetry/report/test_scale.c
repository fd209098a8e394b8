/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/report/{scale,html,curve,unit}.c: ranges, ticks, numbers as people read them, escapes,
 * thinned curves and what they are drawn over, units.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "telemetry/report/curve.h"
#include "telemetry/report/html.h"
#include "telemetry/report/scale.h"
#include "telemetry/report/unit.h"

static void expect_ticks(double low, double high, bool is_log, const char *want)
{
    const dt_scale s = {.low = low, .high = high, .from = 0, .to = 1, .is_log = is_log};
    dt_tick tick[DT_SCALE_MAX_TICKS];
    dt_str got = {0};
    const uint32_t n = dt_scale_list_ticks(&s, 5, tick);
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(&got, "%s%s", i > 0 ? " " : "", tick[i].text);
        assert_true(tick[i].value >= low - 1e-9 * (high - low) && tick[i].value <= high + 1e-9 * (high - low));
    }
    assert_string_equal(dt_str_text(&got), want);
    dt_str_fini(&got);
}

static void test_ticks(void **state)
{
    expect_ticks(0, 1, false, "0 0.2 0.4 0.6 0.8 1.0");
    expect_ticks(-0.031, 0.004, false, "−0.03 −0.02 −0.01 0");
    expect_ticks(0, 22200, false, "0 5k 10k 15k 20k");
    expect_ticks(4.1e5, 1.4e6, false, "0.6M 0.8M 1.0M 1.2M 1.4M");
    expect_ticks(1.3e-4, 2.6e-4, false, "1.5e−4 2.0e−4 2.5e−4");
    expect_ticks(8e-6, 2e-3, true, "1e−5 1e−4 0.001");
    expect_ticks(0.5, 30, true, "1 10");
    expect_ticks(0.5, 30, false, "10 20 30");
}

/* numbers of a foreign file may be as large, or as near each other, as doubles can be */
static void test_wild_numbers(void **state)
{
    static const double pairs[][2] = {{-1.7e308, 1.7e308}, {1e-308, 1.7e308}, {0, 5e-324},       {5e-324, 5e-324},
                                      {9.2e18, 9.2e18},    {1e300, 1e300},    {-1e-320, 1e-320}, {1, 1 + 1e-15}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        for (int may_log = 0; may_log < 2; may_log++) {
            double values[] = {pairs[i][0], pairs[i][1]};
            size_t outside = 0;
            dt_tick tick[DT_SCALE_MAX_TICKS];
            const dt_scale fit = dt_scale_fit(values, 2, may_log, &outside),
                           over = dt_scale_of_range(pairs[i][0], pairs[i][1], 0, 100);
            assert_true(isfinite(fit.high - fit.low) && fit.high > fit.low && over.high > over.low);
            assert_true(dt_scale_list_ticks(&fit, 5, tick) <= DT_SCALE_MAX_TICKS);
            assert_true(dt_scale_list_ticks(&over, 5, tick) <= DT_SCALE_MAX_TICKS);
            assert_true(isfinite(dt_scale_map(&fit, pairs[i][0])) && isfinite(dt_scale_map(&over, 1e308)));
        }
    }
}

static void test_ranges(void **state)
{
    size_t outside = 9;
    double few[] = {3, NAN, 9, 5, INFINITY};
    dt_scale s = dt_scale_fit(few, 5, true, &outside);
    assert_true(s.low == 0 && s.high > 9 && s.high < 10 && !s.is_log && outside == 0);
    double near_each_other[] = {100, 101, 102};
    s = dt_scale_fit(near_each_other, 3, true, &outside);
    assert_true(s.low > 99 && s.low < 100 && s.high > 102);
    double decades[] = {1e-4, 1, 5};
    s = dt_scale_fit(decades, 3, true, &outside);
    assert_true(s.is_log && s.low < 1e-4 && s.low > 0);
    assert_true(!dt_scale_fit(decades, 3, false, &outside).is_log);
    double one[] = {7, 7};
    s = dt_scale_fit(one, 2, true, &outside);
    assert_true(s.low < 7 && s.high > 7);
    double zero[] = {0};
    s = dt_scale_fit(zero, 1, true, &outside);
    assert_true(s.low < 0 && s.high > 0);
    s = dt_scale_fit(zero, 0, true, &outside);
    assert_true(s.low == 0 && s.high == 1);
    double spiked[300];
    for (int i = 0; i < 300; i++) {
        spiked[i] = i == 150 ? -1e9 : i % 10;
    }
    s = dt_scale_fit(spiked, 300, true, &outside);
    assert_true(s.low >= -1 && s.high < 11 && outside > 0 && outside <= 6);
    const dt_scale linear = {.low = 10, .high = 20, .from = 100, .to = 0};
    assert_true(fabs(dt_scale_map(&linear, 15) - 50) < 1e-12);
    const dt_scale decade = {.low = 1, .high = 100, .from = 0, .to = 10, .is_log = true};
    assert_true(fabs(dt_scale_map(&decade, 10) - 5) < 1e-12);
}

static void test_numbers(void **state)
{
    char t[DT_NUMBER_BYTES], more[DT_NUMBER_BYTES];
    assert_string_equal(dt_number_text(-0.000012345, t), "−1.234e−5");
    assert_string_equal(dt_number_text(123456, t), "123456");
    assert_string_equal(dt_number_text(0.5, t), "0.5");
    assert_string_equal(dt_number_text(NAN, t), "–");
    assert_string_equal(dt_number_text(-INFINITY, t), "−∞");
    assert_string_equal(dt_short_text(1373817, t), "1.37M");
    assert_string_equal(dt_short_text(-14297, t), "−14.3k");
    assert_string_equal(dt_short_text(2078, t), "2078");
    assert_string_equal(dt_short_text(0.01234, t), "0.0123");
    assert_string_equal(dt_duration_text(3723, t), "1 h 02 min");
    assert_string_equal(dt_duration_text(200, t), "3 min 20 s");
    assert_string_equal(dt_duration_text(6.3, t), "6.30 s");
    assert_string_equal(dt_duration_text(1e300, t), "2562047788015215 h 30 min"); /* foreign records: no cast wraps */
    assert_string_equal(dt_duration_text(NAN, t), dt_duration_text(-1, more));
    assert_string_equal(dt_duration_text(INFINITY, t), dt_duration_text(-1, more));
    assert_string_equal(dt_bytes_text(117.4e6, t), "117 MB");
    assert_string_equal(dt_bytes_text(6.35e6, t), "6.3 MB");
    assert_string_equal(dt_bytes_text(1.5e9, t), "1.50 GB");
    assert_string_equal(dt_time_text("2026-11-21T08:05:02Z", t), "2026-11-21 08:05");
    assert_string_equal(dt_time_text("", t), "");
    const double row[] = {2.853, -12.4, NAN}, whole[] = {1359, 3}, small[] = {1e-5};
    assert_int_equal(dt_decimals_for(row, 3), 2);
    assert_int_equal(dt_decimals_for(whole, 2), 0);
    assert_int_equal(dt_decimals_for(small, 1), -1);
    assert_string_equal(dt_aligned_text(-0.001, 2, t), "0.00");
    assert_string_equal(dt_aligned_text(-12.4, 2, t), "−12.40");
}

static void test_escapes(void **state)
{
    dt_str s = {0};
    dt_html_escape(&s, "<a b=\"x\">'&amp;\x01\xff\xef\xbf\xbf é\x7f");
    assert_string_equal(dt_str_text(&s),
                        "&lt;a b=&quot;x&quot;&gt;&#39;&amp;amp;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd é\xef\xbf\xbd");
    dt_str_fini(&s);
}

static void test_curves(void **state)
{
    enum { N = 5000 };
    uint64_t *step = dt_alloc_n(N, sizeof(*step));
    uint32_t *at = dt_alloc_n(N, sizeof(*at));
    double *value = dt_alloc_n(N, sizeof(*value));
    dt_curve *c = dt_alloc(sizeof(*c));
    assert_true(step != NULL && at != NULL && value != NULL && c != NULL);
    for (uint32_t i = 0; i < N; i++) {
        step[i] = 10 * (i + 1);
        at[i] = i;
        value[i] = i == 777 ? 1e6 : i == 778 ? NAN : 3;
    }
    const dt_records r = {.step = step, .n = N};
    dt_series s = {.name = "loss", .n = N, .at = at, .value = value};
    value[N - 1] = 4;
    dt_curve_make(&r, &s, NULL, c);
    assert_true(c->last == 4); /* not smoothed */
    value[N - 1] = 3;
    dt_curve_make(&r, &s, NULL, c);
    assert_true(c->n <= DT_CURVE_MAX_POINTS && c->n_smooth == DT_CURVE_PIECES);
    bool has_spike = false;
    for (uint32_t i = 0; i < c->n; i++) {
        has_spike = has_spike || (c->x[i] == 7780 && c->y[i] == 1e6);
        assert_true(isfinite(c->y[i]) && (i == 0 || c->x[i] > c->x[i - 1]));
    }
    assert_true(has_spike);
    assert_true(c->smooth_x[c->n_smooth - 1] == 10 * N && fabs(c->smooth_y[c->n_smooth - 1] - 3) < 1e-3);
    assert_true(c->smooth_y[0] == 3); /* no pull to 0 at the beginning */
    static char *const whole[] = {"lr", "charts/horizon_s", "mem/rss", "amp/loss_scale", "limits/x", "multipliers/x"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        s.name = whole[i];
        dt_curve_make(&r, &s, NULL, c);
        assert_true(c->n > 0 && c->n_smooth == 0);
    }
    s.name = "loss";
    s.n = 5;
    dt_curve_make(&r, &s, NULL, c);
    assert_true(c->n == 5 && c->n_smooth == 0);
    dt_free(step);
    dt_free(at);
    dt_free(value);
    dt_free(c);
}

static void test_axes(void **state)
{
    static uint64_t step[] = {1, 2, 3, 4, 5};
    static uint32_t all[] = {1, 2, 4}, some[] = {1, 3, 4};
    static double env_steps[] = {100, 200, 400}, loss[] = {9, 8, 7};
    dt_phase_records phase = {.first = 1, .n = 4};
    const dt_records r = {.step = step, .n = 5, .phase = &phase, .n_phases = 1};
    const dt_series s = {.name = "loss", .n = 3, .at = some, .value = loss};
    dt_series over = {.name = "env_steps", .n = 3, .at = all, .value = env_steps};
    dt_curve *c = dt_alloc(sizeof(*c));
    assert_non_null(c);
    assert_true(dt_curve_may_use_axis(&r, &over));
    dt_curve_make(&r, &s, &over, c);
    assert_true(c->n == 3 && c->x[0] == 100 && c->x[1] == 200 && c->x[2] == 400 && c->y[2] == 7);
    env_steps[1] = 500;
    assert_false(dt_curve_may_use_axis(&r, &over)); /* it falls */
    env_steps[1] = NAN;
    assert_false(dt_curve_may_use_axis(&r, &over));
    env_steps[1] = 200;
    all[0] = 2;
    all[1] = 3;
    assert_false(dt_curve_may_use_axis(&r, &over)); /* begun by a program that did not count them */
    over.n = 0;
    assert_false(dt_curve_may_use_axis(&r, &over));
    dt_free(c);
}

static void test_units(void **state)
{
    static const char *const pair[][2] = {{"time/step", "s"},
                                          {"charts/horizon_s", "s"},
                                          {"eval/rmse_m/5", "m"},
                                          {"eval/rmse_m/std", "m"},
                                          {"eval/metrics/strict_delay_s/mean", "s"},
                                          {"env/speed_mps", "m/s"},
                                          {"charts/env_steps_per_s", "steps/s"},
                                          {"env/finished_per_s", "1/s"},
                                          {"charts/episodic_length", "steps"},
                                          {"eval/length/mean", "steps"},
                                          {"eval/length/means", ""},
                                          {"eval/rmse_m/5b", ""},
                                          {"loss", ""},
                                          {"_s", ""},
                                          {"/5", ""},
                                          {"", ""},
                                          {"costs/collisions", ""}};
    for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
        assert_string_equal(dt_unit_of(pair[i][0]), pair[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),   cmocka_unit_test(test_wild_numbers), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_escapes),      cmocka_unit_test(test_curves),
        cmocka_unit_test(test_axes),    cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions: what is drawn has the probability it says, masks and shields hold, and the most likely one is the most
 * likely one.
 */
#include <config.h>

#include "rl/buffer/dist.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int32_t choices[] = {3, 2};
static const float low[] = {-1, -INFINITY}, high[] = {1, INFINITY};
static const dt_dist space = {.choices = choices, .low = low, .high = high, .n_heads = 2, .n_continuous = 2};

static const float logits[] = {1, 2, -1, 0.5f, 0.5f}, mean[] = {0.5f, -3}, log_std[] = {0.25f, -1};

typedef struct drawn {
    uint8_t mask[5];
    int32_t i[2];
    float f[2], executed[2];
    dt_dist_result result;
} drawn;

static drawn draw(uint64_t sample, bool greedy, const uint8_t *mask, const float *allow, const float *lo,
                  const float *hi)
{
    drawn d = {0};
    const dt_rng_key key = {.seed = 5, .step = 9};
    dt_rng_stream s;
    dt_rng_stream_init(&s, &key);
    memcpy(d.mask, mask, sizeof(d.mask));
    const dt_dist_row row = {.logits = logits,
                             .allow = allow,
                             .mean = mean,
                             .log_std = log_std,
                             .low = lo,
                             .high = hi,
                             .mask = d.mask,
                             .drawn_i = d.i,
                             .drawn_f = d.f,
                             .executed_f = d.executed};
    d.result = dt_dist_draw_action(&space, &s, sample, greedy, &row);
    return d;
}

static double gaussian(double x, double m, double log_s)
{
    const double z = (x - m) / exp(log_s);
    return -0.5 * z * z - log_s - 0.5 * log(2 * 3.14159265358979323846);
}

static const uint8_t all[] = {1, 1, 1, 1, 1};

static void test_frequencies(void **state)
{
    enum { N = 20000 };
    double n[3] = {0}, second = 0, sum = 0, squares = 0, both = 0;
    const double z = exp(1) + exp(2) + exp(-1);
    for (uint64_t k = 0; k < N; k++) {
        const drawn d = draw(k, false, all, NULL, NULL, NULL);
        n[d.i[0]]++;
        second += d.i[1];
        both += d.i[0] == 1 && d.i[1] == 1;
        const double u = ((double)d.f[0] - 0.5) / exp(0.25);
        sum += u;
        squares += u * u;
        const double expected = (double)logits[d.i[0]] - log(z) - log(2) + gaussian((double)d.f[0], 0.5, 0.25) +
                                gaussian((double)d.f[1], -3, -1);
        assert_true(fabs((double)d.result.log_prob - expected) < 1e-4);
        assert_true(d.executed[0] == (d.f[0] < -1 ? -1 : d.f[0] > 1 ? 1 : d.f[0]));
        assert_true(d.executed[1] == d.f[1]);
    }
    assert_true(fabs(n[0] / N - exp(1) / z) < 0.015);
    assert_true(fabs(n[1] / N - exp(2) / z) < 0.015);
    assert_true(fabs(second / N - 0.5) < 0.015);
    assert_true(fabs(both / N - 0.5 * exp(2) / z) < 0.015); /* heads are independent */
    assert_true(fabs(sum / N) < 0.03 && fabs(squares / N - 1) < 0.04);
}

static void test_mask(void **state)
{
    const uint8_t mask[] = {1, 0, 1, 0, 1};
    for (uint64_t k = 0; k < 500; k++) {
        const drawn d = draw(k, false, mask, NULL, NULL, NULL);
        assert_true(d.i[0] != 1 && d.i[1] == 1);
        const double p = (double)logits[d.i[0]] - log(exp(1) + exp(-1)) + gaussian((double)d.f[0], 0.5, 0.25) +
                         gaussian((double)d.f[1], -3, -1);
        assert_true(fabs((double)d.result.log_prob - p) < 1e-4);
        assert_false(d.result.is_changed || d.result.is_infeasible);
    }
}

static void test_shield_cuts_choices(void **state)
{
    const float allow[] = {0, 0, 2, 1, 1}, none[] = {0, 0, 0, 1, 1};
    drawn d = draw(1, false, all, allow, NULL, NULL);
    assert_int_equal(d.i[0], 2);
    assert_true(d.result.is_changed && !d.result.is_infeasible);
    assert_memory_equal(d.mask, ((uint8_t[]){0, 0, 1, 1, 1}), 5); /* what was drawn from is kept */
    d = draw(1, false, all, none, NULL, NULL);
    assert_true(d.result.is_infeasible && !d.result.is_changed);
    assert_memory_equal(d.mask, all, 5);

    /* nothing is permitted: the least harm remains, of what the mask leaves */
    const float harm[] = {-1, 0, -0.5f, 1, 1}, unknown[] = {NAN, -1, NAN, 1, 1}, lost[] = {NAN, NAN, NAN, 1, 1};
    const uint8_t masked[] = {1, 0, 1, 1, 1};
    d = draw(1, false, all, harm, NULL, NULL);
    assert_true(d.i[0] == 1 && d.result.is_infeasible && d.result.is_changed);
    assert_memory_equal(d.mask, ((uint8_t[]){0, 1, 0, 1, 1}), 5);
    d = draw(1, false, masked, harm, NULL, NULL);
    assert_true(d.i[0] == 2 && d.result.is_infeasible && d.result.is_changed);
    d = draw(1, false, all, unknown, NULL, NULL);
    assert_true(d.i[0] == 1 && d.result.is_infeasible);
    d = draw(1, false, all, lost, NULL, NULL);
    assert_true(d.result.is_infeasible && !d.result.is_changed);
    assert_memory_equal(d.mask, all, 5);
}

static void test_shield_bounds(void **state)
{
    const float lo[] = {-0.5f, -INFINITY}, hi[] = {-0.25f, INFINITY};
    const float beyond_lo[] = {-9, 0}, beyond_hi[] = {-5, 9}, empty_lo[] = {0.5f, 0}, empty_hi[] = {0.25f, 9};
    for (uint64_t k = 0; k < 100; k++) {
        const drawn free = draw(k, false, all, NULL, NULL, NULL);
        drawn d = draw(k, false, all, NULL, lo, hi);
        assert_true(d.f[0] == free.f[0] && d.result.log_prob == free.result.log_prob); /* the policy's own */
        assert_true(d.executed[0] >= -0.5f && d.executed[0] <= -0.25f);
        assert_int_equal(d.result.is_changed, d.executed[0] != free.executed[0]);
        d = draw(k, false, all, NULL, beyond_lo, beyond_hi); /* brake harder than the brakes can */
        assert_true(d.executed[0] == -1 && d.result.is_infeasible);
        d = draw(k, false, all, NULL, empty_lo, empty_hi);
        assert_true(d.executed[0] == free.executed[0] && d.result.is_infeasible);
    }
}

static void test_greedy(void **state)
{
    const uint8_t mask[] = {1, 0, 1, 1, 1};
    drawn d = draw(1, true, all, NULL, NULL, NULL);
    assert_int_equal(d.i[0], 1);
    assert_int_equal(d.i[1], 0); /* the first of equals */
    assert_true(d.f[0] == 0.5f && d.f[1] == -3);
    d = draw(1, true, mask, NULL, NULL, NULL);
    assert_int_equal(d.i[0], 0);
}

static void test_not_finite(void **state)
{
    const float nan[] = {NAN, NAN};
    const drawn d = draw(1, false, all, NULL, nan, NULL);
    assert_true(isnan(d.result.log_prob));
    float bad[] = {1, INFINITY, 0, 0, 0};
    drawn e = {0};
    memcpy(e.mask, all, sizeof(e.mask));
    const dt_rng_key key = {0};
    dt_rng_stream s;
    dt_rng_stream_init(&s, &key);
    const dt_dist_row row = {.logits = bad,
                             .mean = mean,
                             .log_std = log_std,
                             .mask = e.mask,
                             .drawn_i = e.i,
                             .drawn_f = e.f,
                             .executed_f = e.executed};
    assert_true(isnan(dt_dist_draw_action(&space, &s, 0, false, &row).log_prob));
}

/* Squashed into [2, 5]: what is executed follows from u, whose density is that of tanh(u), which adds up to 1. */
static void test_squashed(void **state)
{
    static const float from[] = {2}, to[] = {5}, at[] = {0.75f}, width[] = {-0.5f}, tight[] = {4}, wide[] = {10};
    const dt_dist d = {.low = from, .high = to, .n_continuous = 1, .is_squashed = true};
    const dt_rng_key key = {.seed = 5, .step = 9};
    dt_rng_stream stream;
    float u = 0, executed = 0;
    double inverse = 0;
    enum { N = 20000 };
    dt_rng_stream_init(&stream, &key);
    dt_dist_row row = {.mean = at, .log_std = width, .drawn_f = &u, .executed_f = &executed};
    for (uint64_t k = 0; k < N; k++) {
        const dt_dist_result r = dt_dist_draw_action(&d, &stream, k, false, &row);
        const double y = tanh((double)u), want = gaussian((double)u, 0.75, -0.5) - log(1 - y * y);
        assert_true(fabs((double)executed - (3.5 + 1.5 * y)) < 1e-6);
        assert_true(fabs((double)r.log_prob - want) < 1e-4 * fmax(1, fabs(want)) && !r.is_changed);
        inverse += y > 0 && y < 0.9 ? 1 / exp((double)r.log_prob) : 0; /* its mean: the length of where it is counted */
    }
    assert_true(fabs(inverse / N - 0.9) < 0.02);
    (void)dt_dist_draw_action(&d, NULL, 0, true, &row);
    assert_true(u == 0.75f && fabs((double)executed - (3.5 + 1.5 * tanh(0.75))) < 1e-6);
    row.low = tight; /* of a shield, in units of what is executed */
    row.high = wide;
    const float far[] = {-40}, beyond[] = {40};
    row.mean = far;
    dt_dist_result r = dt_dist_draw_action(&d, NULL, 0, true, &row);
    assert_true(executed == 4 && r.is_changed && u == -40);
    assert_true(fabs((double)r.log_prob - (-0.5 * log(2 * 3.14159265358979323846) + 0.5 + 80 - 2 * log(2))) < 1e-3);
    row.mean = beyond;
    r = dt_dist_draw_action(&d, NULL, 0, true, &row);
    assert_true(executed == 5 && !r.is_changed && isfinite(r.log_prob));
}

/* Moves of one row are independent of each other and of other rows; only finite numbers have a probability. */
static void test_moves_are_independent(void **state)
{
    enum { N = 20000, MOVES = 5 };
    static const float lo[MOVES] = {-9, -9, -9, -9, -9}, hi[MOVES] = {9, 9, 9, 9, 9}, zero[MOVES] = {0};
    const dt_dist d = {.low = lo, .high = hi, .n_continuous = MOVES};
    const dt_rng_key key = {.seed = 6, .step = 2};
    dt_rng_stream s;
    double sum[MOVES] = {0}, product[MOVES][MOVES] = {{0}};
    float z[MOVES], executed[MOVES];
    dt_dist_row row = {.mean = zero, .log_std = zero, .drawn_f = z, .executed_f = executed};
    dt_rng_stream_init(&s, &key);
    for (uint64_t k = 0; k < N; k++) {
        (void)dt_dist_draw_action(&d, &s, k, false, &row);
        for (int i = 0; i < MOVES; i++) {
            sum[i] += (double)z[i] / N;
            for (int j = 0; j < MOVES; j++) {
                product[i][j] += (double)z[i] * (double)z[j] / N;
            }
        }
    }
    for (int i = 0; i < MOVES; i++) {
        assert_true(fabs(sum[i]) < 0.03);
        for (int j = 0; j < MOVES; j++) {
            assert_true(fabs(product[i][j] - (i == j)) < 0.04);
        }
    }
    static const float wide[MOVES] = {500, 0, 0, 0, 0};
    row.log_std = wide; /* a draw that no float holds has no finite density: it is marked */
    assert_true(isnan(dt_dist_draw_action(&d, &s, 0, false, &row).log_prob));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_squashed),      cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_mask),          cmocka_unit_test(test_shield_cuts_choices),
        cmocka_unit_test(test_shield_bounds), cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_not_finite),    cmocka_unit_test(test_moves_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
